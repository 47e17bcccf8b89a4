package mcp_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudomator/claudomator/internal/app"
)

// update writes the list again instead of comparing it.
var update = flag.Bool("update", false, "write docs/mcp-tools.json again")

// described is a tool as the endpoint tells of it.
type described struct {
	Name         string         `json:"name"`
	Description  string         `json:"description"`
	InputSchema  map[string]any `json:"inputSchema"`
	OutputSchema map[string]any `json:"outputSchema,omitempty"`
}

// list is everything that is told of the tools, over all roles.
func (w *world) list() []described {
	w.Helper()
	tools := map[string]described{}
	for _, r := range []run{w.task(app.TaskRequest{Name: "described"}), w.judge()} {
		var answer struct {
			Result struct{ Tools []described }
		}
		got := w.post(r.token, request("tools/list", `{}`))
		if err := json.Unmarshal([]byte(got.body), &answer); err != nil {
			w.Fatalf("%v in %s", err, got.body)
		}
		for _, t := range answer.Result.Tools {
			tools[t.Name] = t
		}
	}
	var all []described
	for _, t := range tools {
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b described) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// TestToolList holds docs/mcp-tools.json to what the endpoint tells: a change of
// the surface is seen in a review.
func TestToolList(t *testing.T) {
	w := newWorld(t)
	var told struct {
		Result struct{ Instructions string }
	}
	if err := json.Unmarshal([]byte(w.post(w.task(app.TaskRequest{}).token, initialize("2025-11-25")).body), &told); err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	e := json.NewEncoder(&got)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(map[string]any{"instructions": told.Result.Instructions, "tools": w.list()}); err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("..", "..", "docs", "mcp-tools.json")
	if *update {
		if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("docs/mcp-tools.json is not current; run go generate ./internal/mcp\n%s", diff)
	}
}

// A description is a prompt: short, and true in every name it uses.
func TestDescriptions(t *testing.T) {
	w := newWorld(t)
	tools := w.list()
	if len(tools) != 7 {
		t.Errorf("%d tools", len(tools))
	}
	var names []string
	for _, tool := range tools {
		names = append(names, tool.Name)
	}
	for _, tool := range tools {
		if n := len(tool.Description); n > 700 {
			t.Errorf("%s: %d bytes, at most 700 are read with care", tool.Name, n)
		}
		if first, _, _ := strings.Cut(tool.Description, "."); len(first) > 200 {
			t.Errorf("%s: its first sentence does not say when to use it: %s", tool.Name, first)
		}
		if !strings.Contains(tool.Description, "\nReturns {\"") {
			t.Errorf("%s does not say what it returns", tool.Name)
		}
		var arguments []string
		arguments = describedFields(t, tool.Name, tool.InputSchema, arguments)
		for _, quoted := range regexp.MustCompile("`([^`]*)`").FindAllStringSubmatch(tool.Description, -1) {
			if !slices.Contains(arguments, quoted[1]) {
				t.Errorf("%s: there is no argument `%s`", tool.Name, quoted[1])
			}
		}
		for _, other := range regexp.MustCompile(`\b[a-z]+_[a-z]+\b`).FindAllString(tool.Description, -1) {
			if !slices.Contains(append(names, "task_id"), other) && !slices.Contains(arguments, other) {
				t.Errorf("%s: nothing is named %s", tool.Name, other)
			}
		}
		if len(tool.OutputSchema) > 0 {
			t.Errorf("%s has an output schema: clients hold its errors to it", tool.Name)
		}
	}
}

// describedFields collects the names of a schema's fields, each of which must
// say what it is for, and have one plain type.
func describedFields(t *testing.T, at string, schema map[string]any, names []string) []string {
	t.Helper()
	fields, _ := schema["properties"].(map[string]any)
	if schema["type"] == "object" && schema["additionalProperties"] != false {
		t.Errorf("%s takes what it does not know", at)
	}
	for name, value := range fields {
		field := value.(map[string]any)
		if text, _ := field["description"].(string); text == "" || len(text) > 120 {
			t.Errorf("%s.%s is described as %q", at, name, text)
		}
		if _, plain := field["type"].(string); !plain {
			t.Errorf("%s.%s is of type %v", at, name, field["type"])
		}
		names = append(names, name)
		names = describedFields(t, at+"."+name, field, names)
		if items, ok := field["items"].(map[string]any); ok {
			names = describedFields(t, at+"."+name, items, names)
		}
	}
	return names
}

// What a description says a tool returns is what it returns.
func TestPromisedResults(t *testing.T) {
	w := newWorld(t)
	j := w.judge("it works")
	top := w.task(app.TaskRequest{})
	arguments := map[string]string{
		"spawn_subtask": `{"name":"A","instructions":"a"}`, "suggest_improvement": `{"title":"A tidy","description":"a"}`,
		"ask_user": `{"question":"?"}`, "report_blocker": `{"text":"b"}`, "report_summary": `{"text":"s"}`,
		"report_verdict": `{"approved":false,"reasoning":"no"}`, "get_context": `{}`,
	}
	may := map[string][]string{"get_context": {"parent", "rejection", "attempt", "gates", "verdicts", "history"}}
	for _, tool := range w.list() {
		r := top
		if tool.Name == "report_verdict" || tool.Name == "get_context" {
			r = j
		}
		var result map[string]any
		if err := json.Unmarshal([]byte(w.call(r, tool.Name, arguments[tool.Name])), &result); err != nil {
			t.Fatal(err)
		}
		_, promise, _ := strings.Cut(tool.Description, "\nReturns ")
		for key := range result {
			if !strings.Contains(promise, `"`+key+`"`) {
				t.Errorf("%s returns %s, which it does not promise", tool.Name, key)
			}
		}
		for _, key := range regexp.MustCompile(`"([a-z_]+)"`).FindAllStringSubmatch(promise, -1) {
			if _, kept := result[key[1]]; !kept && !slices.Contains(may[tool.Name], key[1]) {
				t.Errorf("%s does not return %s, which it promises", tool.Name, key[1])
			}
		}
	}
}

package mcp_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"net/http"
	"net/url"
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
	Annotations  *struct {
		ReadOnlyHint bool `json:"readOnlyHint"`
	} `json:"annotations,omitempty"`
}

// told is what an endpoint tells of itself.
type told struct {
	Instructions string      `json:"instructions"`
	Tools        []described `json:"tools"`
}

// told asks an endpoint about itself, with all credentials, as they are not
// offered the same tools.
func (w *world) told(url string, tokens ...string) told {
	w.Helper()
	var all told
	tools := map[string]described{}
	for _, token := range tokens {
		var answer struct{ Result told }
		for _, request := range []string{initialize("2025-11-25"), request("tools/list", `{}`)} {
			got := w.post(token, request, to(w, url))
			if err := json.Unmarshal([]byte(got.body), &answer); err != nil {
				w.Fatalf("%v in %s", err, got.body)
			}
		}
		all.Instructions = answer.Result.Instructions
		for _, t := range answer.Result.Tools {
			tools[t.Name] = t
		}
	}
	for _, name := range slices.Sorted(maps.Keys(tools)) {
		all.Tools = append(all.Tools, tools[name])
	}
	return all
}

// to sends a request to another URL.
func to(w *world, address string) func(*http.Request) {
	return func(r *http.Request) {
		var err error
		if r.URL, err = url.Parse(address); err != nil {
			w.Fatal(err)
		}
	}
}

// run tells of the run endpoint, over all roles.
func (w *world) run() told {
	w.Helper()
	return w.told(w.url, w.task(app.TaskRequest{Name: "described"}).token, w.judge().token, w.planner().token, w.retro().token)
}

func (w *world) admin() told {
	w.Helper()
	return w.told(w.url+"/admin", ownerToken)
}

// TestToolList holds docs/mcp-tools.json and docs/mcp-admin-tools.json to what
// the endpoints tell: a change of a surface is seen in a review.
func TestToolList(t *testing.T) {
	w := newWorld(t)
	for file, tells := range map[string]told{"mcp-tools.json": w.run(), "mcp-admin-tools.json": w.admin()} {
		var got bytes.Buffer
		e := json.NewEncoder(&got)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		if err := e.Encode(tells); err != nil {
			t.Fatal(err)
		}
		golden := filepath.Join("..", "..", "docs", file)
		if *update {
			if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got.String()); diff != "" {
			t.Errorf("docs/%s is not current; run go generate ./internal/mcp\n%s", file, diff)
		}
	}
}

// A description is a prompt: short, and true in every name it uses.
func TestDescriptions(t *testing.T) {
	w := newWorld(t)
	run, admin := w.run(), w.admin()
	if len(run.Tools) != 9 || len(admin.Tools) < 45 {
		t.Errorf("%d and %d tools", len(run.Tools), len(admin.Tools))
	}
	for _, told := range []told{run, admin} {
		names := []string{"task_id"}
		for _, tool := range told.Tools {
			names = append(names, tool.Name)
		}
		for _, tool := range told.Tools {
			checkDescription(t, tool, names)
		}
		checkNames(t, "the instructions", told.Instructions, names)
	}
}

func checkDescription(t *testing.T, tool described, names []string) {
	t.Helper()
	if n := len(tool.Description); n > 700 {
		t.Errorf("%s: %d bytes, at most 700 are read with care", tool.Name, n)
	}
	if first, _, _ := strings.Cut(tool.Description, "."); len(first) > 200 {
		t.Errorf("%s: its first sentence does not say when to use it: %s", tool.Name, first)
	}
	if !strings.Contains(tool.Description, "\nReturns {\"") {
		t.Errorf("%s does not say what it returns", tool.Name)
	}
	arguments := describedFields(t, tool.Name, tool.InputSchema, nil)
	for _, quoted := range regexp.MustCompile("`([^`]*)`").FindAllStringSubmatch(tool.Description, -1) {
		if !slices.Contains(arguments, quoted[1]) {
			t.Errorf("%s: there is no argument `%s`", tool.Name, quoted[1])
		}
	}
	if (tool.InputSchema["properties"] == nil || len(arguments) == 0) != strings.Contains(tool.Description, "Takes no arguments") {
		t.Errorf("%s takes %v, and says otherwise", tool.Name, arguments)
	}
	checkNames(t, tool.Name, tool.Description, append(names, arguments...))
	if len(tool.OutputSchema) > 0 {
		t.Errorf("%s has an output schema: clients hold its errors to it", tool.Name)
	}
}

// checkNames: every name in a text is one of those, or of a key of a result,
// which stands in quotes (what is promised there is tested where it is returned).
func checkNames(t *testing.T, at, text string, names []string) {
	t.Helper()
	text = regexp.MustCompile(`"[a-z_]+"`).ReplaceAllString(text, "")
	for _, name := range regexp.MustCompile(`\b[a-z]+_[a-z]+\b`).FindAllString(text, -1) {
		if !slices.Contains(names, name) {
			t.Errorf("%s: nothing is named %s", at, name)
		}
	}
}

// describedFields collects the names of a schema's fields, each of which must
// say what it is for, and have one plain type.
func describedFields(t *testing.T, at string, schema map[string]any, names []string) []string {
	t.Helper()
	fields, _ := schema["properties"].(map[string]any)
	_, keyed := schema["additionalProperties"].(map[string]any) // a map, with the caller's own keys
	if schema["type"] == "object" && !keyed && schema["additionalProperties"] != false {
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
	runs := map[string]run{"report_verdict": j, "get_context": j, "report_plan": w.planner(), "report_lessons": w.retro()}
	top := w.task(app.TaskRequest{})
	arguments := map[string]string{
		"spawn_subtask": `{"name":"A","instructions":"a"}`, "suggest_improvement": `{"title":"A tidy","description":"a"}`,
		"ask_user": `{"question":"?"}`, "report_blocker": `{"text":"b"}`, "report_summary": `{"text":"s"}`,
		"report_verdict": `{"approved":false,"reasoning":"no"}`, "get_context": `{}`, "report_plan": `{"plan":{"name":"A"}}`,
		"report_lessons": `{"lessons":[]}`,
	}
	may := map[string][]string{"get_context": {"parent", "story", "rejection", "attempt", "gates", "verdicts", "history"}}
	for _, tool := range w.run().Tools {
		r, special := runs[tool.Name]
		if !special {
			r = top
		}
		var result map[string]any
		if err := json.Unmarshal([]byte(w.call(r, tool.Name, arguments[tool.Name])), &result); err != nil {
			t.Fatal(err)
		}
		checkPromise(t, tool, result, may[tool.Name])
	}
}

// checkPromise: a tool returns what its description says, but for what may be
// left out; where that names only the beginning ("...") it may return more.
func checkPromise(t testing.TB, tool described, result map[string]any, may []string) {
	t.Helper()
	_, promise, _ := strings.Cut(tool.Description, "\nReturns ")
	for key := range result {
		if !strings.Contains(promise, `"`+key+`"`) && !strings.Contains(promise, "...") {
			t.Errorf("%s returns %s, which it does not promise", tool.Name, key)
		}
	}
	for _, key := range regexp.MustCompile(`"([a-z_]+)"`).FindAllStringSubmatch(promise, -1) {
		if _, kept := result[key[1]]; !kept && !slices.Contains(may, key[1]) {
			t.Errorf("%s does not return %s, which it promises", tool.Name, key[1])
		}
	}
}

package mcp_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

// Every tool does what the table of the specification says.
func TestTools(t *testing.T) {
	w := newWorld(t)
	r := w.task(app.TaskRequest{Name: "top", AcceptanceCriteria: []string{"it works"}})

	a := w.spawn(r, `{"name":"A","instructions":"do <a> & more","acceptance_criteria":["a is there"],"role":"builder"}`)
	b := w.spawn(r, `{"name":"B","instructions":"do b","depends_on":["A"],"role":null}`)
	c := w.spawn(r, `{"name":"C","instructions":"do c","depends_on":["`+string(a)+`","B"],"acceptance_criteria":[]}`)
	if got := w.get(a); got.Agent.Instructions != "do <a> & more" || got.Agent.Role != work.Builder || got.ParentTaskID != r.TaskID ||
		got.Origin != work.FromAgent || got.CreatedBy != r.TaskID || !slices.Equal(got.AcceptanceCriteria, []string{"a is there"}) {
		t.Errorf("subtask A: %+v", got.Task)
	}
	if got := w.get(c); !slices.Equal(got.DependsOn, []work.Position{work.Position(a), work.Position(b)}) || got.Kind != work.Subtask {
		t.Errorf("subtask C: %+v", got.Task)
	}
	if again := w.spawn(r, `{"name":"B","instructions":"do b","depends_on":["A"]}`); again != b {
		t.Errorf("spawned again: %s, want %s", again, b)
	}

	i := w.made(w.call(r, "suggest_improvement", `{"title":"tidy","description":"tidy up"}`))
	if got := w.get(i); got.Kind != work.Improvement || got.Name != "tidy" || got.Agent.Instructions != "tidy up" {
		t.Errorf("improvement: %+v", got.Task)
	}

	for tool, arguments := range map[string]string{
		"report_blocker": `{"text":"no network"}`,
		"report_summary": `{"text":"all done"}`,
	} {
		if got := w.call(r, tool, arguments); got != `{"ok":true}` {
			t.Errorf("%s: %s", tool, got)
		}
	}
	if got := w.get(r.TaskID); got.Summary != "all done" || !slices.Equal(got.Blockers, []string{"no network"}) {
		t.Errorf("reports: %+v", got.Task)
	}

	if got := w.call(r, "ask_user", `{"question":"which?","options":["x","y"]}`); got != `{"parked":true}` {
		t.Errorf("ask_user: %s", got)
	}
	if x := <-w.parked; x != r.ID {
		t.Errorf("parked %s, want %s", x, r.ID)
	}
	w.View(r.TreeID, func(tree *work.Tree) {
		if q := tree.Execution(r.ID).Asked; q == nil || q.Text != "which?" || !slices.Equal(q.Options, []string{"x", "y"}) {
			t.Errorf("question: %+v", q)
		}
	})
}

func TestContext(t *testing.T) {
	w := newWorld(t)
	r := w.task(app.TaskRequest{Name: "top"})
	keys := func(text string) []string {
		var object map[string]any
		if err := json.Unmarshal([]byte(text), &object); err != nil {
			t.Fatal(err)
		}
		var names []string
		for name, value := range object {
			if value == nil {
				t.Errorf("%s is null", name)
			}
			names = append(names, name)
		}
		slices.Sort(names)
		return names
	}
	if diff := cmp.Diff([]string{"criteria", "interactions", "lessons", "siblings", "task"}, keys(w.call(r, "get_context", ""))); diff != "" {
		t.Errorf("context of a task alone (-want +got):\n%s", diff)
	}
	a := w.spawn(r, `{"name":"A","instructions":"do a"}`)
	w.spawn(r, `{"name":"B","instructions":"do b"}`)
	w.end(r)
	var c app.RunContext
	if err := json.Unmarshal([]byte(w.call(w.begin(a), "get_context", `{}`)), &c); err != nil {
		t.Fatal(err)
	}
	if c.Task.ID != a || c.Parent == nil || c.Parent.ID != r.TaskID || len(c.Siblings) != 1 || c.Siblings[0].Name != "B" {
		t.Errorf("context of a child: %+v", c)
	}
	j := w.judge("it works")
	if err := json.Unmarshal([]byte(w.call(j, "get_context", `null`)), &c); err != nil {
		t.Fatal(err)
	}
	if c.Attempt == nil || c.Attempt.Commit != "h1" || c.Attempt.Base != "b0" || !slices.Equal(c.Criteria, []string{"it works"}) {
		t.Errorf("context of a judge: %+v", c)
	}
}

func TestVerdict(t *testing.T) {
	w := newWorld(t)
	j := w.judge("it works")
	verdict := `{"approved":false,"reasoning":"no test","criteria":[{"criterion":"it works","met":false,"how":"read only"}],
		"findings":[{"kind":"missing-test","severity":"high","file":"a.go","line":3,"text":"test it"}],
		"evidence":[{"command":"go test","exit_code":1,"output":"FAIL"}]}`
	if got := w.call(j, "report_verdict", verdict); got != `{"ok":true}` {
		t.Errorf("verdict: %s", got)
	}
	want := &work.Verdict{
		Reasoning: "no test", Criteria: []work.Criterion{{Criterion: "it works", How: "read only"}},
		Findings: work.Findings{{Kind: "missing-test", Severity: "high", File: "a.go", Line: 3, Text: "test it"}},
		Evidence: []work.Evidence{{Command: "go test", ExitCode: 1, Output: "FAIL"}},
	}
	w.View(j.TreeID, func(tree *work.Tree) {
		if diff := cmp.Diff(want, tree.Execution(j.ID).Reported); diff != "" {
			t.Errorf("verdict (-want +got):\n%s", diff)
		}
	})
	if e := w.refused(j, "report_verdict", verdict); e.Code != work.Illegal || e.Reason != "already_reported" {
		t.Errorf("second verdict: %v (%s)", e, e.Reason)
	}
}

// An approval that was refused for what it lacks can be mended, and then counts.
func TestMendedApproval(t *testing.T) {
	w := newWorld(t)
	j := w.judge("it works", "it is fast")
	one := `{"criterion":"it works","met":true,"how":"go test: 0"}`
	e := w.refused(j, "report_verdict", `{"approved":true,"reasoning":"fine","criteria":[`+one+`]}`)
	if e.Reason != "criteria" || !cmp.Equal(e.Details["criteria"], []any{"it is fast"}) {
		t.Errorf("%+v", e)
	}
	w.call(j, "report_verdict", `{"approved":true,"reasoning":"fine","criteria":[`+one+`,{"criterion":" it is fast","met":true,"how":"read only"}]}`)
	w.end(j)
	if got := w.get(j.TaskID); got.Verdict == nil || !got.Verdict.Approved || got.State != work.Completed {
		t.Errorf("the judge: %+v", got.Task)
	}
}

// A role sees and calls what it is offered, and nothing else.
func TestRoles(t *testing.T) {
	w := newWorld(t)
	top := w.task(app.TaskRequest{Name: "top"})
	child := w.spawn(top, `{"name":"A","instructions":"do a"}`)
	w.end(top)
	all := []string{"ask_user", "get_context", "report_blocker", "report_summary", "report_verdict", "spawn_subtask", "suggest_improvement"}
	for name, c := range map[string]struct {
		run     run
		forbids []string
	}{
		"top-level": {w.task(app.TaskRequest{}), []string{"report_verdict"}},
		"child":     {w.begin(child), []string{"report_verdict", "suggest_improvement"}},
		"judge":     {w.judge(), []string{"spawn_subtask", "suggest_improvement"}},
	} {
		want := slices.DeleteFunc(slices.Clone(all), func(n string) bool { return slices.Contains(c.forbids, n) })
		if diff := cmp.Diff(want, w.names(w.connect(c.run.token))); diff != "" {
			t.Errorf("%s: tools (-want +got):\n%s", name, diff)
		}
		for _, tool := range c.forbids {
			if e := w.refused(c.run, tool, `{"nonsense":1}`); e.Code != work.Forbidden || e.Reason != "not_offered" {
				t.Errorf("%s calls %s: %s %s", name, tool, e.Code, e)
			}
		}
	}
}

func TestRefusals(t *testing.T) {
	w := newWorld(t)
	r := w.task(app.TaskRequest{Name: "top"})
	j := w.judge("it works")
	w.spawn(r, `{"name":"A","instructions":"do a"}`)
	w.call(r, "suggest_improvement", `{"title":"tidy","description":"tidy up"}`)
	w.call(r, "ask_user", `{"question":"which?"}`)
	long := strings.Repeat("x", 1<<20)
	for _, c := range []struct {
		run             run
		tool, arguments string
		code            work.Code
		says, hint      string
	}{
		{r, "spawn_subtask", `{"name":"B","instructions":"b","parent":"x"}`, work.Invalid, `there is no argument "parent"`, "spawn_subtask takes acceptance_criteria, depends_on, instructions (required), name (required), role"},
		{r, "spawn_subtask", `{"Name":"B","instructions":"b"}`, work.Invalid, `there is no argument "Name"`, "takes"},
		{r, "spawn_subtask", `{"` + long + `":1}`, work.Invalid, `there is no argument "xxx`, "takes"},
		{r, "spawn_subtask", `{"name":"B"}`, work.Invalid, "instructions is missing", "takes"},
		{r, "spawn_subtask", ``, work.Invalid, "name is missing", "takes"},
		{r, "spawn_subtask", `{"name":" \n","instructions":"b"}`, work.Invalid, "name is empty", "takes"},
		{r, "spawn_subtask", `{"name":"B","instructions":"b","depends_on":"A"}`, work.Invalid, "depends_on must be of type array", "takes"},
		{r, "spawn_subtask", `{"name":"B","instructions":"b","depends_on":["A",2]}`, work.Invalid, "depends_on[1] must be of type string", "takes"},
		{r, "spawn_subtask", `{"name":"B","instructions":["` + long + `"]}`, work.Invalid, "instructions must be of type string", "takes"},
		{r, "spawn_subtask", `["name"]`, work.Invalid, "the arguments must be of type object", "takes"},
		{r, "spawn_subtask", `{"name":null,"instructions":"b"}`, work.Invalid, "name must be of type string", "takes"},
		{r, "spawn_subtask", `{"name":"B","instructions":"b","depends_on":["Z"]}`, work.Invalid, `no sibling "Z"`, "spawn it first"},
		{r, "spawn_subtask", `{"name":"B","instructions":"b","role":"checker"}`, work.Invalid, `"checker"`, "builder"},
		{r, "spawn_subtask", `{"name":"A","instructions":"other"}`, work.Conflict, "other content", "another name"},
		{r, "suggest_improvement", `{"title":"tidy","description":"other"}`, work.Conflict, "other content", "another name"},
		{r, "suggest_improvement", `{"title":"x","description":""}`, work.Invalid, "description is empty", "suggest_improvement takes description (required), title (required)"},
		{r, "ask_user", `{"question":"again?"}`, work.Illegal, "asked already", ""},
		{r, "ask_user", `{"question":"","options":[]}`, work.Invalid, "question is empty", "takes"},
		{r, "report_blocker", `{"text":"\t"}`, work.Invalid, "text is empty", "takes"},
		{r, "report_summary", `{"text":1}`, work.Invalid, "text must be of type string", "takes"},
		{r, "get_context", `{"task":"other"}`, work.Invalid, `there is no argument "task"`, "get_context takes no arguments"},
		{j, "report_verdict", `{"reasoning":"fine"}`, work.Invalid, "approved is missing", "takes"},
		{j, "report_verdict", `{"approved":"yes","reasoning":"fine"}`, work.Invalid, "approved must be of type boolean", "takes"},
		{j, "report_verdict", `{"approved":true,"reasoning":"fine","criteria":[{"criterion":"it works","met":true}]}`, work.Invalid, "criteria[0].how is missing", "takes"},
		{j, "report_verdict", `{"approved":true,"reasoning":"fine","criteria":[{"criterion":"it works","met":true,"how":" "}]}`, work.Invalid, "criteria[0].how is empty", "takes"},
		{j, "report_verdict", `{"approved":true,"reasoning":"fine"}`, work.Invalid, "does not prove 1 of the criteria", `for each of: ["it works"]`},
		{j, "report_verdict", `{"approved":true,"reasoning":"fine","criteria":[{"criterion":"it is fine","met":true,"how":"read only"}]}`, work.Invalid, "does not prove", `["it works"]`},
		{j, "report_verdict", `{"approved":true,"reasoning":"fine","criteria":[{"criterion":"it works","met":false,"how":"read only"}]}`, work.Invalid, "does not prove", "do not approve"},
		{j, "report_verdict", `{"approved":true,"reasoning":"fine","criteria":[{"criterion":"it works","met":true,"how":"read only"},{"criterion":"it is fast","met":false,"how":"timed"}]}`, work.Invalid, "does not prove", `["it is fast"]`},
		{j, "report_verdict", `{"approved":false,"reasoning":"no","findings":[{"kind":"bug","text":"x","line":1.5}]}`, work.Invalid, "findings[0].line must be of type integer", "takes"},
		{j, "report_verdict", `{"approved":false,"reasoning":"no","findings":[{"kind":"bug","text":"x","role":"gate"}]}`, work.Invalid, `"findings[0].role"`, "takes"},
		{j, "report_verdict", `{"approved":false,"reasoning":"no","evidence":[{"command":"x","exit_code":99999999999}]}`, work.Invalid, "evidence[0].exit_code must be", "takes"},
		{r, "report_plan", `{}`, work.Invalid, `unknown tool "report_plan"`, ""},
		{r, "", `{}`, work.Invalid, `unknown tool ""`, ""},
		{r, "report_summary", `{"text":`, work.Invalid, "not JSON", "text"},
	} {
		e := w.refused(c.run, c.tool, c.arguments)
		if e.Code != c.code || !strings.Contains(e.Message, c.says) || !strings.Contains(e.Hint, c.hint) {
			t.Errorf("%s %.80s: %s %.200q (hint %q), want %s %q (hint %q)", c.tool, c.arguments, e.Code, e.Message, e.Hint, c.code, c.says, c.hint)
		}
		if len(e.Message) > 300 {
			t.Errorf("%s %.80s: a message of %d bytes", c.tool, c.arguments, len(e.Message))
		}
	}
	if log := w.Log.String(); log != "" {
		t.Errorf("refusals are no news, but were logged: %s", log)
	}
}

// An agent whose program shows it text alone reads everything that matters.
func TestErrorsAsText(t *testing.T) {
	w := newWorld(t)
	r := w.task(app.TaskRequest{})
	w.spawn(r, `{"name":"A <b>","instructions":"do a"}`)
	res, err := w.connect(r.token).CallTool(t.Context(), &sdk.CallToolParams{
		Name: "spawn_subtask", Arguments: map[string]any{"name": "A <b>", "instructions": "other"},
	})
	if err != nil {
		t.Fatal(err)
	}
	text := res.Content[0].(*sdk.TextContent).Text
	if !res.IsError || !strings.HasPrefix(text, `conflict (name_taken): a subtask named "A <b>" exists`) || !strings.HasSuffix(text, "\nhint: choose another name") {
		t.Errorf("error %t: %s", res.IsError, text)
	}
	structured, _ := res.StructuredContent.(map[string]any)
	if structured["code"] != "conflict" || structured["reason"] != "name_taken" || structured["hint"] != "choose another name" {
		t.Errorf("structured: %v", structured)
	}
}

// What agents say may be long; what is too long is refused in words.
func TestSizes(t *testing.T) {
	w := newWorld(t)
	r := w.task(app.TaskRequest{})
	long := strings.Repeat("0123456789abcde\n", 1<<16) // 1 MiB
	argument, err := json.Marshal(map[string]string{"name": "A", "instructions": long})
	if err != nil {
		t.Fatal(err)
	}
	if got := w.get(w.spawn(r, string(argument))); got.Agent.Instructions != long {
		t.Errorf("instructions of %d bytes came as %d", len(long), len(got.Agent.Instructions))
	}
	if e := w.refused(r, "spawn_subtask", `{"name":"`+strings.Repeat("n", 2000)+`","instructions":"x"}`); e.Code != work.Invalid {
		t.Errorf("long name: %s", e)
	}
}

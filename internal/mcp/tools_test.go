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

// planned is a plan that uses every field, as a planner writes it.
const planned = `{"plan":{"name":"Cards","goal":"sell <gift> cards","branch_name":"story/cards","spec":"# Spec","policy":"checked",
	"acceptance_criteria":["they sell"],"tasks":[
		{"name":"till","instructions":"sell them","acceptance_criteria":"sold","depends_on":["print"]},
		{"name":"print","instructions":"print them","subtasks":[{"name":"paper","instructions":"buy paper"}]}],
	"validation":{"type":"test","steps":["make test"],"success_criteria":"green"}}}`

// A planner's plan is its story's; a later one takes its place, as long as nobody
// has approved it.
func TestPlan(t *testing.T) {
	w := newWorld(t)
	r := w.planner()
	for _, plan := range []string{`{"plan":{"name":"First"}}`, planned} {
		if got := w.call(r, "report_plan", plan); got != `{"ok":true}` {
			t.Errorf("plan: %s", got)
		}
	}
	id := string(w.get(r.TaskID).StoryID)
	want := &work.Plan{
		Name: "Cards", Goal: "sell <gift> cards", BranchName: "story/cards", Spec: "# Spec", Policy: "checked", AcceptanceCriteria: []string{"they sell"},
		Tasks: []work.PlanTask{
			{Name: "till", Instructions: "sell them", AcceptanceCriteria: []string{"sold"}, DependsOn: []string{"print"}},
			{Name: "print", Instructions: "print them", Subtasks: []work.PlanSubtask{{Name: "paper", Instructions: "buy paper"}}},
		},
		Validation: work.Validations{{Type: work.TestValidation, Steps: []string{"make test"}, SuccessCriteria: "green"}},
	}
	if diff := cmp.Diff(want, w.story(id).Plan); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
	w.end(r)
	if _, err := w.Service.ApproveStory(w.Owner(), id); err != nil {
		t.Fatal(err)
	}
	if e := w.refused(r, "report_plan", planned); e.Code != work.Unauthenticated {
		t.Errorf("a late plan: %v", e)
	}
}

// A planner is told all that is wrong with its plan in one answer, which is kept
// until it is mended: what does not fit, and what breaks a rule.
func TestWrongPlans(t *testing.T) {
	w := newWorld(t)
	r := w.planner()
	id := string(w.get(r.TaskID).StoryID)
	e := w.refused(r, "report_plan", `{"plan":{"name":"A","color":"red","policy":"strict","spec":7,"branch_name":"a..b","tasks":[
		{"name":"x","instruction":"y","depends_on":["z"]},{"name":"x","instructions":" "},{"name":"p","instructions":"p","depends_on":["q"]},
		{"name":"q","instructions":"q","depends_on":["p"]}],"validation":[{"type":"test","steps":[]}]}}`)
	problems, _ := e.Details["problems"].([]any)
	for _, says := range []string{
		`there is no argument "plan.color"`, "plan.spec must be of type string", `there is no argument "plan.tasks[0].instruction"`,
		`tasks[0] "x": instructions are missing`, `depends_on names no task of the plan: "z"`, `tasks[1] "x": another task has that name`,
		`tasks[1] "x": instructions are missing`, "p → q → p", `policy "strict" is unknown`, `"a..b" is not a legal git branch name`, "steps are missing",
	} {
		if !strings.Contains(e.Message, says) || !slices.ContainsFunc(problems, func(p any) bool { return strings.Contains(p.(string), says) }) {
			t.Errorf("the refusal does not say %q: %s %v", says, e.Message, problems)
		}
	}
	if e.Reason != "plan" || e.Code != work.Invalid || len(problems) != 11 {
		t.Errorf("%s %s, %d problems: %s", e.Code, e.Reason, len(problems), e.Message)
	}
	if got := w.story(id); got.PlanError != e.Message || got.Plan != nil {
		t.Errorf("kept: %q, plan %+v", got.PlanError, got.Plan)
	}
	e = w.refused(r, "report_plan", `{"name":"A"}`)
	if got := w.story(id); e.Reason != "arguments" || !strings.Contains(got.PlanError, `there is no argument "name"; plan is missing`) {
		t.Errorf("what is no plan at all: %v, kept: %q", e, got.PlanError)
	}
	many := `{"plan":{"name":"A","tasks":[` + strings.Repeat(`{},`, 100) + `{}]}}`
	if e := w.refused(r, "report_plan", many); !strings.Contains(e.Message, "the plan has 202 problems") || !strings.HasSuffix(e.Message, "and 152 more") {
		t.Errorf("many problems: %s", e.Message)
	}
	w.call(r, "report_plan", planned)
	if got := w.story(id); got.PlanError != "" || got.Plan == nil {
		t.Errorf("mended: %q, plan %+v", got.PlanError, got.Plan)
	}
}

// What a retro has learned is its project's, once; a later report takes its place.
func TestLessons(t *testing.T) {
	w := newWorld(t)
	r := w.retro()
	learned := func() []string {
		p, err := w.Service.Project(w.Owner(), "p")
		if err != nil {
			t.Fatal(err)
		}
		return p.Lessons
	}
	own := []string{"a person's own"}
	if _, err := w.Service.SetProject(w.Owner(), "p", app.ProjectInput{Lessons: &own}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		lessons string
		want    []string
	}{
		{`["test first","run\nmake"," ","test first"]`, []string{"a person's own", "test first", "run make"}},
		{`["run make"]`, []string{"a person's own", "run make"}},
		{`[]`, own},
	} {
		if got := w.call(r, "report_lessons", `{"lessons":`+c.lessons+`}`); got != `{"ok":true}` {
			t.Errorf("lessons: %s", got)
		}
		if diff := cmp.Diff(c.want, learned()); diff != "" {
			t.Errorf("after %s (-want +got):\n%s", c.lessons, diff)
		}
	}
	w.end(r)
	if e := w.refused(r, "report_lessons", `{"lessons":["late"]}`); e.Code != work.Unauthenticated || !slices.Equal(learned(), own) {
		t.Errorf("late lessons: %v, %q", e, learned())
	}
}

// A role sees and calls what it is offered, and nothing else.
func TestRoles(t *testing.T) {
	w := newWorld(t)
	top := w.task(app.TaskRequest{Name: "top"})
	child := w.spawn(top, `{"name":"A","instructions":"do a"}`)
	w.end(top)
	all := []string{
		"ask_user", "get_context", "report_blocker", "report_lessons", "report_plan", "report_summary", "report_verdict", "spawn_subtask", "suggest_improvement",
	}
	for name, c := range map[string]struct {
		run     run
		forbids []string
	}{
		"top-level": {w.task(app.TaskRequest{}), []string{"report_verdict", "report_plan", "report_lessons"}},
		"child":     {w.begin(child), []string{"report_verdict", "report_plan", "report_lessons", "suggest_improvement"}},
		"judge":     {w.judge(), []string{"spawn_subtask", "suggest_improvement", "report_plan", "report_lessons"}},
		"planner":   {w.planner(), []string{"spawn_subtask", "suggest_improvement", "report_verdict", "report_lessons"}},
		"retro":     {w.retro(), []string{"spawn_subtask", "suggest_improvement", "report_verdict", "report_plan"}},
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
	j, p, l := w.judge("it works"), w.planner(), w.retro()
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
		{r, "report_plan", `{}`, work.Forbidden, "may not use report_plan", "offered"},
		{r, "report_lessons", `{}`, work.Forbidden, "may not use report_lessons", "offered"},
		{p, "report_plan", `{}`, work.Invalid, "plan is missing", "report_plan takes plan (required)"},
		{p, "report_plan", `{"name":"a"}`, work.Invalid, `there is no argument "name"; plan is missing`, "takes"},
		{p, "report_plan", `{"plan":null}`, work.Invalid, "plan must be of type object", "takes"},
		{p, "report_plan", `{"plan":"{}"}`, work.Invalid, "plan must be of type object", "takes"},
		{p, "report_plan", `{"plan":{}}`, work.Invalid, "name is missing", "mend them and give the whole plan again"},
		{p, "report_plan", `{"plan":{"name":"a","Spec":"b"}}`, work.Invalid, `there is no argument "plan.Spec"`, "mend"},
		{p, "report_plan", `{"plan":{"name":"a"},"draft":true}`, work.Invalid, `there is no argument "draft"`, "mend"},
		{p, "report_plan", `{"plan":{"name":"a","tasks":[{"name":"x","instructions":"y","acceptance_criteria":[1]}]}}`, work.Invalid, "plan.tasks[0].acceptance_criteria[0] must be of type string", "mend"},
		{p, "report_plan", `{"plan":{"name":"a","validation":{"type":"tests","steps":["x"]}}}`, work.Invalid, "plan.validation[0].type must be one of [build test smoke]", "mend"},
		{p, "report_plan", `{"plan":{"name":"` + long + `"}}`, work.Invalid, "name", "mend"},
		{p, "report_plan", `{"plan":{"name":"a","tasks":[{"name":"` + long + `","instructions":"y","depends_on":["` + long + `"]}]}}`, work.Invalid, "circle", "mend"},
		{l, "report_lessons", `{}`, work.Invalid, "lessons is missing", "report_lessons takes lessons (required)"},
		{l, "report_lessons", `{"lessons":"one"}`, work.Invalid, "lessons must be of type array", "takes"},
		{l, "report_lessons", `{"lessons":["a","b","c","d","e","f","g","h","i","j","k"]}`, work.Invalid, "at most 10", "matter most"},
		{l, "report_lessons", `{"lessons":["` + long + `"]}`, work.Invalid, "a lesson", ""},
		{r, "", `{}`, work.Invalid, `unknown tool ""`, ""},
		{r, "report_summary", `{"text":`, work.Invalid, "not JSON", "text"},
	} {
		e := w.refused(c.run, c.tool, c.arguments)
		if e.Code != c.code || !strings.Contains(e.Message, c.says) || !strings.Contains(e.Hint, c.hint) {
			t.Errorf("%s %.80s: %s %.200q (hint %q), want %s %q (hint %q)", c.tool, c.arguments, e.Code, e.Message, e.Hint, c.code, c.says, c.hint)
		}
		if len(e.Message) > 400 {
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

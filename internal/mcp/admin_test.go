package mcp_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/app/apptest"
	"github.com/claudomator/claudomator/internal/mcp"
	"github.com/claudomator/claudomator/internal/work"
)

// The parity table names every tool that is registered, and no other.
func TestOperationsNameEveryTool(t *testing.T) {
	w := newWorld(t)
	var table, registered []string
	for _, op := range app.Operations() {
		table = append(table, op.MCP.As...)
	}
	for _, tool := range w.admin().Tools {
		registered = append(registered, tool.Name)
	}
	slices.Sort(table)
	if diff := cmp.Diff(registered, table); diff != "" {
		t.Errorf("registered tools (-) and parity table (+):\n%s", diff)
	}
}

// person is somebody's agent, with what its tools have returned.
type person struct {
	*world
	token string
	tools map[string]described
	used  map[string]bool
}

func (w *world) person(token string) *person {
	p := &person{world: w, token: token, tools: map[string]described{}, used: map[string]bool{}}
	for _, tool := range w.admin().Tools {
		p.tools[tool.Name] = tool
	}
	return p
}

// optional are the keys that a tool may leave out.
func optional() map[string][]string {
	return map[string][]string{
		"list_tasks": {"next"}, "show_tree": {"attempts", "judges", "children"},
		"list_stories": {"next"}, "show_story_tree": {"attempts", "judges", "children"}, "ship_story": {"reports"},
	}
}

// use calls a tool, which must succeed and return what it promises.
func (p *person) use(tool, arguments string) json.RawMessage {
	p.Helper()
	out, err := mcp.Call(p.Context(), p.url+"/admin", p.token, tool, json.RawMessage(arguments))
	if err != nil {
		p.Fatalf("%s %s: %v", tool, arguments, err)
	}
	var result map[string]any
	if err := json.Unmarshal(out, &result); err != nil {
		p.Fatalf("%s: %v in %s", tool, err, out)
	}
	checkPromise(p.TB, p.tools[tool], result, optional()[tool])
	p.used[tool] = true
	return out
}

// task is the task that a tool returns.
func (p *person) task(tool, arguments string) app.TaskView {
	p.Helper()
	return decoded[app.TaskView](p.world, p.use(tool, arguments))
}

func decoded[T any](w *world, data []byte) (v T) {
	w.Helper()
	if err := json.Unmarshal(data, &v); err != nil {
		w.Fatalf("%v in %s", err, data)
	}
	return v
}

// refusal calls a tool, which must be refused.
func (p *person) refusal(tool, arguments string) *work.Error {
	p.Helper()
	out, err := mcp.Call(p.Context(), p.url+"/admin", p.token, tool, json.RawMessage(arguments))
	e, ok := work.AsError(err)
	if !ok {
		p.Fatalf("%s %s: %s, %v; want a refusal", tool, arguments, out, err)
	}
	return e
}

// rest asks the other surface the same.
func (p *person) rest(path string) string {
	p.Helper()
	got := p.post(p.token, "", to(p.world, p.http.URL+path), func(r *http.Request) { r.Method = http.MethodGet })
	if got.status != http.StatusOK {
		p.Fatalf("%s: %d %s", path, got.status, got.body)
	}
	return strings.TrimSpace(got.body)
}

func named(id work.TaskID, more string) string { return fmt.Sprintf(`{"task":%q%s}`, id, more) }

// A person's agent does with tools all that a person does: each tool once, and
// what it returns is what the API returns.
func TestAdminTools(t *testing.T) {
	w := newWorld(t)
	p := w.person(ownerToken)
	p.projects()
	fix := p.reviewed()
	p.landed(fix)
	p.children()
	p.planned()
	small := p.shipped()
	p.use("list_agents", "")
	if got, want := string(p.use("list_templates", `{"project":"home"}`)), `{"items":`+p.rest("/api/projects/home/templates")+`}`; !same(t, got, want) {
		t.Errorf("list_templates: %s\nthe API: %s", got, want)
	}
	p.use("list_roles", `{}`)
	if got := string(p.use("show_role", `{"role":"checker"}`)); !strings.Contains(got, `"command":["true"]`) {
		t.Errorf("role: %s", got)
	}
	for tool, path := range map[string]string{
		"list_projects": "/api/projects", "list_attention": "/api/attention", "list_agents": "/api/agents", "list_merges": "/api/merges",
		"list_roles": "/api/roles", "list_epics": "/api/epics",
	} {
		if got, want := string(p.use(tool, "{}")), `{"items":`+p.rest(path)+`}`; !same(t, got, want) {
			t.Errorf("%s: %s\nthe API: %s", tool, got, want)
		}
	}
	for tool, path := range map[string]string{"show_task": "", "show_tree": "/tree", "list_executions": "/executions"} {
		got, want := string(p.use(tool, named(fix, ""))), p.rest("/api/tasks/"+string(fix)+path)
		if tool == "list_executions" {
			want = `{"items":` + want + `}`
		}
		if !same(t, got, want) {
			t.Errorf("%s: %s\nthe API: %s", tool, got, want)
		}
	}
	for tool, path := range map[string]string{"show_story": "", "show_story_tree": "/task-tree"} {
		if got, want := string(p.use(tool, of(small, ""))), p.rest("/api/stories/"+string(small)+path); !same(t, got, want) {
			t.Errorf("%s: %s\nthe API: %s", tool, got, want)
		}
	}
	if got, want := string(p.use("list_stories", "{}")), p.rest("/api/stories"); !same(t, got, want) {
		t.Errorf("list_stories: %s\nthe API: %s", got, want)
	}
	for name := range p.tools {
		if !p.used[name] {
			t.Errorf("%s was never used", name)
		}
	}
	if log := w.Log.String(); log != "" {
		t.Errorf("the log has %s", log)
	}
}

// same compares two JSON documents.
func same(t *testing.T, a, b string) bool {
	t.Helper()
	var x, y any
	if err := json.Unmarshal([]byte(a), &x); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(b), &y); err != nil {
		t.Fatal(err)
	}
	return cmp.Equal(x, y)
}

func (p *person) projects() {
	made := decoded[work.Project](p.world, p.use("add_project", `{"name":"house","repository":"/srv/house","validate":["make"],
		"policies":{"builder/*":"human"},"limits":{"slots":2,"timeout":"30m"},"environment":{"A":"b"},"max_fix_attempts":2}`))
	if made.Repository != "/srv/house" || made.Environment["A"] != "b" || made.Limits.Slots != 2 || made.Policies["builder/*"] != "human" {
		p.Errorf("project: %+v", made)
	}
	changed := decoded[work.Project](p.world, p.use("change_project", `{"project":"house","name":"home","environment":{}}`))
	if changed.Name != "home" || len(changed.Environment) != 0 || changed.Limits.Slots != 2 {
		p.Errorf("project: %+v", changed)
	}
	p.use("show_project", `{"project":"home"}`)
	p.use("list_projects", ``)
}

// reviewed takes a task from its making to the acceptance of its fix.
func (p *person) reviewed() work.TaskID {
	create := `{"name":"a","project":"p","agent":{"instructions":"do <a>","max_budget_usd":0.5},"review":"human","acceptance_criteria":["it works"],
		"timeout":"1h","tags":["t"],"idempotency_key":"k"}`
	made := p.task("create_task", create)
	if again := p.task("create_task", create); again.ID != made.ID {
		p.Errorf("the same key made %s and %s", made.ID, again.ID)
	}
	if made.Agent.Instructions != "do <a>" || made.Agent.MaxBudgetUSD != 0.5 || made.State != work.Pending || made.Origin != work.FromPerson {
		p.Errorf("made: %+v", made)
	}
	if got := p.task("change_task", named(made.ID, `,"priority":"high","tags":[]`)); got.Priority != work.High || len(got.Tags) != 0 {
		p.Errorf("changed: %+v", got)
	}
	if got := p.task("start_task", named(made.ID, "")); got.State != work.Queued {
		p.Errorf("started: %s", got.State)
	}
	p.Run(made.ID, apptest.Changed())
	if got := string(p.use("list_attention", "{}")); !strings.Contains(got, string(made.ID)) || !strings.Contains(got, `"accept"`) {
		p.Errorf("attention: %s", got)
	}
	if got := string(p.use("show_diff", named(made.ID, ""))); got != `{"diff":"diff of p: b0..h1\n","cut":false}` {
		p.Errorf("diff: %s", got)
	}
	rejected := p.task("reject_task", named(made.ID, `,"comment":"not so","findings":[{"kind":"bug","file":"a.go","line":3,"text":"wrong"}]`))
	fix := rejected.SupersededBy
	if got := p.get(fix); got.RejectionComment != "not so" || len(got.RejectionFindings) != 1 {
		p.Errorf("fix: %+v", got)
	}
	p.Run(fix, work.End{Outcome: work.FailedRun, Error: "exit status 1"})
	p.task("retry_task", named(fix, `,"fresh":true`))
	p.Run(fix, apptest.Changed())
	p.task("message_task", named(fix, `,"text":"one more thing"`))
	p.Run(fix, apptest.Changed())
	if got := p.task("accept_task", named(fix, `,"land":false`)); got.State != work.Completed || got.Accepted == nil || got.Accepted.By != work.Person("owner") {
		p.Errorf("accepted: %+v", got)
	}
	page := decoded[app.Page[*work.Task]](p.world, p.use("list_tasks", `{"project":"p","state":["READY","COMPLETED"],"limit":1}`))
	if len(page.Items) != 1 || page.Items[0].ID != fix {
		p.Errorf("page: %+v", page)
	}
	if events := decoded[struct{ Items []work.Event }](p.world, p.use("list_events", named(fix, `,"last":1`))); len(events.Items) != 1 {
		p.Errorf("events: %+v", events)
	}
	list := decoded[struct{ Items []work.Execution }](p.world, p.use("list_executions", named(fix, "")))
	id := list.Items[0].ID
	p.use("show_execution", fmt.Sprintf(`{"execution":%q}`, id))
	if got := string(p.use("read_log", fmt.Sprintf(`{"execution":%q}`, id))); got != fmt.Sprintf(`{"execution_id":%q,"lines":[{"execution":%q}],"cut":false}`, id, id) {
		p.Errorf("log: %s", got)
	}
	return fix
}

func (p *person) landed(task work.TaskID) {
	m := decoded[work.Merge](p.world, p.use("start_merge", named(task, `,"into":"release"`)))
	of := fmt.Sprintf(`{"merge":%q}`, m.ID)
	conflict := func() {
		p.Do(p.get(task).TreeID, work.LandConflict{Merge: m.ID, Current: task, Files: []string{"a.go"}})
	}
	if m.Target != "release" {
		p.Errorf("merge: %+v", m)
	}
	p.use("show_merge", of)
	p.use("list_merges", named(task, ""))
	conflict()
	p.use("continue_merge", of)
	conflict()
	p.use("abort_merge", of)
}

// children are asked, submitted, dropped, postponed and cancelled.
func (p *person) children() {
	parent := p.task("create_task", `{"project":"p","name":"parent","review":"human","start":true}`).ID
	make := func(name string) work.TaskID {
		return p.task("create_task", fmt.Sprintf(`{"parent_task_id":%q,"name":%q}`, parent, name)).ID
	}
	child, later := make("child"), make("later")
	if got := p.task("postpone_task", named(later, "")); got.ParentTaskID != "" {
		p.Errorf("postponed: %+v", got)
	}
	x := p.Begin(parent, "token")
	p.Do(x.TreeID, work.Ask{Execution: x.ID, Question: work.Question{Text: "which?"}})
	p.Do(x.TreeID, work.End{Execution: x.ID, Fence: x.Fence, Outcome: work.Asked})
	if got := p.task("answer_task", named(parent, `,"text":"this"`)); len(got.Interactions) != 1 || got.Interactions[0].Answer != "this" {
		p.Errorf("answered: %+v", got.Interactions)
	}
	p.Run(parent, apptest.Changed())
	failed := work.End{Outcome: work.FailedRun, Error: "no"}
	p.Run(child, failed)
	p.task("submit_task", named(child, ""))
	p.Run(child, failed)
	if got := p.task("drop_task", named(child, "")); !got.Dropped {
		p.Errorf("dropped: %+v", got)
	}
	p.use("show_tree", named(parent, ""))
	if got := p.task("cancel_task", named(parent, "")); got.State != work.Cancelled {
		p.Errorf("cancelled: %s", got.State)
	}
}

// The scopes of tokens hold as on the API, and no credential is good for the
// other endpoint.
func TestAdminCredentials(t *testing.T) {
	w := newWorld(t)
	r := w.task(app.TaskRequest{Name: "there"})
	token := func(name string, scope app.Scope) *app.NewToken {
		made, err := w.Service.CreateToken(w.Owner(), name, scope)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	reader, gone := token("reader", app.ScopeRead), token("gone", app.ScopeAdmin)
	if err := w.Service.RevokeToken(w.Owner(), gone.ID); err != nil {
		t.Fatal(err)
	}
	want := ""
	for name, header := range map[string]string{
		"none": "", "wrong": "Bearer wrong", "revoked": "Bearer " + gone.Secret, "a run's": "Bearer " + r.token, "another scheme": "Basic " + ownerToken,
	} {
		for _, body := range []string{initialize("2025-11-25"), request("tools/list", `{}`), request("tools/call", `{"name":"list_tasks","arguments":{}}`), "", "{{{"} {
			got := w.post("", body, to(w, w.url+"/admin"), apptest.Header("Authorization", header))
			if want == "" {
				want = got.body
			}
			if got.status != http.StatusUnauthorized || got.body != want || got.header.Get("WWW-Authenticate") == "" {
				t.Errorf("token %s, %s: %d %s", name, body, got.status, got.body)
			}
		}
	}
	if got := w.post(ownerToken, request("tools/list", `{}`)); got.status != http.StatusUnauthorized {
		t.Errorf("a person at the run endpoint: %d %s", got.status, got.body)
	}

	p := w.person(reader.Secret)
	for name, tool := range p.tools {
		arguments := map[string]any{}
		required, _ := tool.InputSchema["required"].([]any)
		for _, key := range required {
			arguments[key.(string)] = string(r.TaskID)
		}
		text, err := json.Marshal(arguments)
		if err != nil {
			t.Fatal(err)
		}
		_, err = mcp.Call(t.Context(), w.url+"/admin", reader.Secret, name, text)
		reads := tool.Annotations != nil && tool.Annotations.ReadOnlyHint
		if forbidden := work.CodeOf(err) == work.Forbidden && err != nil; forbidden == reads {
			t.Errorf("a reader uses %s (reads: %v): %v", name, reads, err)
		}
	}

	for name, edit := range map[string]func(*http.Request){
		"another's name": func(r *http.Request) { r.Host = "evil.example" },
		"another's page": apptest.Header("Origin", "https://evil.example"),
	} {
		got := w.post(ownerToken, request("tools/call", `{"name":"create_task","arguments":{"name":"evil"}}`), to(w, w.url+"/admin"), edit)
		if got.status != http.StatusMisdirectedRequest && got.status != http.StatusForbidden {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	if got := w.post(ownerToken, "", to(w, w.url+"/admin"), func(r *http.Request) { r.Method = http.MethodGet }); got.status != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d %s", got.status, got.body)
	}
}

// What is refused is said as the API says it, in words that help.
func TestAdminRefusals(t *testing.T) {
	w := newWorld(t)
	p := w.person(ownerToken)
	made := p.task("create_task", `{"name":"a","project":"p"}`)
	draft := decoded[app.Approved](w, p.use("approve_plan", `{"name":"d","draft":true}`)).Story
	before, err := w.Service.Tasks(w.Owner(), app.TaskQuery{All: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		tool, arguments string
		code            work.Code
		says, hint      string
	}{
		{"create_task", `{"name":"b","instrctions":"x"}`, work.Invalid, `there is no argument "instrctions"`, "create_task takes"},
		{"create_task", `{"Name":"b"}`, work.Invalid, `there is no argument "Name"`, "name (required)"},
		{"create_task", `{"name":"b","agent":{"Type":"command"}}`, work.Invalid, `"agent.Type"`, "takes"},
		{"create_task", `{"name":"b","agent":{"max_budget_usd":"much"}}`, work.Invalid, "agent.max_budget_usd must be of type number", "takes"},
		{"create_task", `{"name":"b","timeout":"soon"}`, work.Invalid, "soon", "takes"},
		{"create_task", `{"name":"b","project":"cellar"}`, work.NotFound, "cellar", ""},
		{"create_task", `{}`, work.Invalid, "name is missing", "takes"},
		{"add_project", `{"name":"q","environment":{"A":1}}`, work.Invalid, `environment["A"] must be of type string`, "takes"},
		{"add_project", `{"name":"p"}`, work.Conflict, `"p"`, "another name"},
		{"list_tasks", `{"state":["DONE"]}`, work.Invalid, "state[0] must be one of [PENDING", "takes"},
		{"list_tasks", `{"limit":501}`, work.Invalid, "501", ""},
		{"list_events", named(made.ID, `,"last":-1`), work.Invalid, "-1", ""},
		{"read_log", `{"execution":"nosuchrun","last":1001}`, work.Invalid, "1001", ""},
		{"read_log", `{"execution":"nosuchrun"}`, work.NotFound, "nosuchrun", ""},
		{"show_task", `{"task":"nosuchtask"}`, work.NotFound, "nosuchtask", ""},
		{"show_merge", `{"merge":"nosuchmerge"}`, work.NotFound, "nosuchmerge", ""},
		{"accept_task", named(made.ID, ""), work.Illegal, "PENDING", "start"},
		{"reject_task", named(made.ID, `,"comment":" "`), work.Invalid, "comment is empty", "takes"},
		{"elaborate_story", `{"goal":" "}`, work.Invalid, "goal is empty", "goal (required)"},
		{"elaborate_story", `{"goal":"x","agent":"hal"}`, work.Invalid, "hal", "command"},
		{"approve_plan", `{"name":"x","tasks":[{"name":"y"}],"colour":"red"}`, work.Invalid, `there is no argument "colour"; tasks[0].instructions is missing`, "takes"},
		{"approve_plan", `{"name":"x","policy":"checked","validation":{"type":"test","steps":[]}}`, work.Invalid, "policy checked; validation[0]: steps are missing", "mend"},
		{"approve_plan", `{"name":"x","validation":{"type":"tests","steps":["y"]}}`, work.Invalid, "validation[0].type must be one of [build test smoke]", "takes"},
		{"change_story", of(draft.ID, `,"plan":{"name":"x","tasks":{}}`), work.Invalid, "plan.tasks must be of type array", "takes"},
		{"change_story", of(draft.ID, `,"epic":"autumn"`), work.NotFound, "autumn", ""},
		{"list_stories", `{"status":["DONE"]}`, work.Invalid, "status[0] must be one of [DRAFT", "takes"},
		{"show_story", `{"story":"nosuchstory"}`, work.NotFound, "nosuchstory", ""},
		{"ship_story", of(draft.ID, ""), work.Illegal, "only a SHIPPABLE story", "approve"},
		{"stop_deploy", of(draft.ID, ""), work.Illegal, "not being deployed", "edit"},
		{"add_epic", `{}`, work.Invalid, "name is missing", "takes"},
		{"remove_task", named(made.ID, ""), work.Invalid, `unknown tool "remove_task"`, ""},
		{"create_token", `{"name":"x","scope":"admin"}`, work.Invalid, "unknown tool", ""},
	} {
		e := p.refusal(c.tool, c.arguments)
		if e.Code != c.code || !strings.Contains(e.Message, c.says) || !strings.Contains(e.Hint, c.hint) {
			t.Errorf("%s %s: %s %q (hint %q), want %s %q (hint %q)", c.tool, c.arguments, e.Code, e.Message, e.Hint, c.code, c.says, c.hint)
		}
	}
	if e := p.refusal("accept_task", named(made.ID, "")); fmt.Sprint(e.Details["allowed"]) != fmt.Sprint(made.Actions) {
		t.Errorf("allowed: %v, want %v", e.Details["allowed"], made.Actions)
	}
	if e := p.refusal("accept_story", of(draft.ID, "")); e.Code != work.Illegal {
		t.Errorf("accept a draft: %v", e)
	}
	if e := p.refusal("ship_story", of(draft.ID, "")); fmt.Sprint(e.Details["allowed"]) != fmt.Sprint(draft.Actions) {
		t.Errorf("allowed: %v, want %v", e.Details["allowed"], draft.Actions)
	}
	if diff := cmp.Diff(draft, w.story(string(draft.ID))); diff != "" {
		t.Errorf("a refusal changed the story:\n%s", diff)
	}
	after, err := w.Service.Tasks(w.Owner(), app.TaskQuery{All: true})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("a refusal changed something:\n%s", diff)
	}
	if log := w.Log.String(); log != "" {
		t.Errorf("refusals are no news, but were logged: %s", log)
	}
}

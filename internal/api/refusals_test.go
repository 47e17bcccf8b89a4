package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/app/apptest"
	"github.com/claudomator/claudomator/internal/work"
)

// What is wrong with a request is said by status, code, the field's name and a
// hint; and a refused request leaves nothing behind.
func TestRefusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Project("house")
	task := w.Task(app.TaskRequest{Name: "first"})
	draft, err := w.Service.ApprovePlan(w.Owner(), app.ApproveInput{PlanInput: app.PlanInput{Name: "draft", BranchName: "story/d"}, Draft: true})
	if err != nil {
		t.Fatal(err)
	}
	story := "/api/stories/" + string(draft.Story.ID)
	read, err := w.Service.CreateToken(w.Owner(), "reader", app.ScopeRead)
	if err != nil {
		t.Fatal(err)
	}
	as := func(token string) func(*http.Request) { return apptest.Header("Authorization", "Bearer "+token) }
	long := func(n int) string { return strings.Repeat("x", n) }
	tests := []struct {
		name, method, path, body string
		edit                     func(*http.Request)
		status                   int
		code                     work.Code
		says                     string // in detail
		hint                     string // in hint
	}{
		{name: "unknown key", method: "POST", path: "/api/tasks", body: `{"name":"a","instrctions":"b"}`, status: 422, code: work.Invalid, says: "instrctions: unexpected", hint: "/docs"},
		{name: "unknown key inside", method: "POST", path: "/api/tasks", body: `{"name":"a","agent":{"typ":"command"}}`, status: 422, code: work.Invalid, says: "agent.typ"},
		{name: "key in another case", method: "POST", path: "/api/tasks", body: `{"Name":"a"}`, status: 422, code: work.Invalid, says: `unexpected property "Name"`, hint: "/docs"},
		{name: "key in two cases", method: "POST", path: "/api/tasks", body: `{"name":"a","NAME":"b"}`, status: 422, code: work.Invalid, says: `unexpected property "NAME"`},
		{name: "key in another case inside", method: "POST", path: "/api/tasks", body: `{"name":"a","agent":{"Type":"command"}}`, status: 422, code: work.Invalid, says: `unexpected property "agent.Type"`},
		{name: "key in another case in a list", method: "POST", path: "/api/tasks/" + string(task.ID) + "/reject", body: `{"comment":"a","findings":[{"kind":"a","text":"b","Line":3}]}`, status: 422, code: work.Invalid, says: `unexpected property "findings[0].Line"`},
		{name: "key in another case in an optional body", method: "POST", path: "/api/tasks/" + string(task.ID) + "/retry", body: `{"Fresh":true}`, status: 422, code: work.Invalid, says: `unexpected property "Fresh"`},
		{name: "absurd duration", method: "POST", path: "/api/tasks", body: `{"name":"a","timeout":"99999999h"}`, status: 422, code: work.Invalid, says: "too long: at most 8760h"},
		{name: "long duration", method: "POST", path: "/api/tasks", body: `{"name":"a","timeout":"8761h"}`, status: 422, code: work.Invalid, says: "too long", hint: "8760h"},
		{name: "another repository", method: "POST", path: "/api/tasks", body: `{"name":"a","repository_url":"/srv/other"}`, status: 422, code: work.Invalid, says: "/srv/other", hint: "claudomator project add"},
		{name: "another repository than the project's", method: "POST", path: "/api/tasks", body: `{"name":"a","project":"house","repository_url":"/srv/other"}`, status: 422, code: work.Invalid, says: "house has no repository", hint: "repository_url"},
		{name: "no such role", method: "PUT", path: "/api/roles/nope", body: `{}`, status: 422, code: work.Invalid, says: "nope", hint: "evaluator-tests"},
		{name: "no such role, with a model", method: "PUT", path: "/api/roles/chekcer", body: `{"model":"m"}`, status: 422, code: work.Invalid, says: "chekcer", hint: "needs an agent or a prompt"},
		{name: "no such token", method: "DELETE", path: "/api/tokens/x", status: 404, code: work.NotFound, says: `there is no token "x"`, hint: "token list"},
		{name: "a folder of the server's machine, by a reader", method: "POST", path: "/api/rescue", body: `{"snapshot":"c0ffee","to":"/new"}`, edit: as(read.Secret), status: 403, code: work.Forbidden, says: "may only read", hint: "scope admin"},
		{name: "freeing the disk, by a reader", method: "POST", path: "/api/disk/reclaim", edit: as(read.Secret), status: 403, code: work.Forbidden, says: "may only read"},
		{name: "nowhere to restore to", method: "POST", path: "/api/rescue", body: `{"snapshot":"c0ffee"}`, status: 422, code: work.Invalid, says: "folder or to a branch", hint: "give one"},
		{name: "a folder that is not absolute", method: "POST", path: "/api/rescue", body: `{"snapshot":"c0ffee","to":"../x"}`, status: 422, code: work.Invalid, says: "absolute"},
		{name: "a folder that holds something", method: "POST", path: "/api/rescue", body: `{"snapshot":"c0ffee","to":"/old"}`, status: 409, code: work.Conflict, says: "not an empty folder"},
		{name: "no such snapshot", method: "POST", path: "/api/rescue", body: `{"snapshot":"beef","to":"/new"}`, status: 404, code: work.NotFound, says: "beef", hint: "rescue"},
		{name: "nothing is kept of it", method: "GET", path: "/api/tasks/nobody/rescue", status: 404, code: work.NotFound, says: "nobody", hint: "rescue"},
		{name: "unknown query", method: "GET", path: "/api/tasks?stat=READY", status: 422, code: work.Invalid, says: "stat: unknown query"},
		{name: "wrong type", method: "POST", path: "/api/tasks", body: `{"name":7}`, status: 422, code: work.Invalid, says: "name: expected string"},
		{name: "wrong type inside", method: "POST", path: "/api/tasks", body: `{"name":"a","agent":{"max_turns":"many"}}`, status: 422, code: work.Invalid, says: "agent.max_turns"},
		{name: "wrong number", method: "POST", path: "/api/tasks", body: `{"name":"a","agent":{"max_turns":1.5}}`, status: 422, code: work.Invalid, says: "max_turns"},
		{name: "too large a number", method: "POST", path: "/api/tasks", body: `{"name":"a","agent":{"max_turns":1e30}}`, status: 422, code: work.Invalid},
		{name: "criteria of another type", method: "POST", path: "/api/tasks", body: `{"name":"a","acceptance_criteria":7}`, status: 422, code: work.Invalid, says: "acceptance_criteria"},
		{name: "duration", method: "POST", path: "/api/tasks", body: `{"name":"a","timeout":"soon"}`, status: 422, code: work.Invalid, says: "soon"},
		{name: "duration as number", method: "POST", path: "/api/tasks", body: `{"name":"a","timeout":30}`, status: 422, code: work.Invalid, says: "timeout"},
		{name: "query of another type", method: "GET", path: "/api/tasks?limit=ten", status: 422, code: work.Invalid, says: "limit"},
		{name: "page too large", method: "GET", path: "/api/tasks?limit=501", status: 422, code: work.Invalid, says: "501"},
		{name: "unknown state", method: "GET", path: "/api/tasks?state=DONE", status: 422, code: work.Invalid, says: "READY"},
		{name: "nothing required", method: "POST", path: "/api/tasks", body: `{}`, status: 422, code: work.Invalid, says: "name"},
		{name: "null", method: "POST", path: "/api/tasks", body: `null`, status: 422, code: work.Invalid},
		{name: "a list", method: "POST", path: "/api/tasks", body: `[{"name":"a"}]`, status: 422, code: work.Invalid, says: "object"},
		{name: "no body", method: "POST", path: "/api/tasks", status: 400, code: work.Invalid, says: "required"},
		{name: "bad JSON", method: "POST", path: "/api/tasks", body: `{"name":`, status: 400, code: work.Invalid, says: "JSON", hint: "JSON"},
		{name: "two documents", method: "POST", path: "/api/tasks", body: `{"name":"a"}{"name":"b"}`, status: 400, code: work.Invalid},
		{name: "long name", method: "POST", path: "/api/tasks", body: `{"name":"` + long(1001) + `"}`, status: 422, code: work.Invalid, says: "1001 bytes"},
		{name: "long instructions", method: "POST", path: "/api/tasks", body: `{"name":"a","agent":{"instructions":"` + long(8<<20+1) + `"}}`, status: 422, code: work.Invalid, hint: "file of the repository"},
		{name: "huge body", method: "POST", path: "/api/tasks", body: `{"name":"` + long(app.MaxBody) + `"}`, status: 413, code: work.Invalid, says: "16 MiB", hint: "file of the repository"},
		{name: "huge body with a key", method: "POST", path: "/api/projects", body: `{"name":"` + long(app.MaxBody) + `"}`, edit: apptest.Header("Idempotency-Key", "k"), status: 413, code: work.Invalid, says: "16 MiB"},
		{name: "long key", method: "POST", path: "/api/tasks", body: `{"name":"a"}`, edit: apptest.Header("Idempotency-Key", long(256)), status: 422, code: work.Invalid, says: "256 bytes"},
		{name: "long key elsewhere", method: "POST", path: "/api/projects", body: `{"name":"a"}`, edit: apptest.Header("Idempotency-Key", long(256)), status: 422, code: work.Invalid, says: "256 bytes"},
		{name: "a form", method: "POST", path: "/api/tasks", body: `name=a`, edit: apptest.Header("Content-Type", "application/x-www-form-urlencoded"), status: 415, code: work.Invalid, hint: "application/json"},
		{name: "plain text", method: "POST", path: "/api/tasks", body: `{"name":"a"}`, edit: apptest.Header("Content-Type", "text/plain"), status: 415, code: work.Invalid, hint: "application/json"},
		{name: "wrong method", method: "PUT", path: "/api/tasks", body: `{}`, status: 405, code: work.Invalid, hint: "POST"},
		{name: "no route", method: "GET", path: "/api/nothing", status: 404, code: work.NotFound, hint: "/docs"},
		{name: "no task", method: "GET", path: "/api/tasks/nosuchtask", status: 404, code: work.NotFound},
		{name: "no project", method: "POST", path: "/api/tasks", body: `{"name":"a","project":"cellar"}`, status: 404, code: work.NotFound},
		{name: "no dependency", method: "POST", path: "/api/tasks", body: `{"name":"a","depends_on":["nosuchtask"]}`, status: 404, code: work.NotFound},
		{name: "no agent", method: "POST", path: "/api/tasks", body: `{"name":"a","agent":{"type":"hal"}}`, status: 422, code: work.Invalid, says: "hal", hint: "command"},
		{name: "no policy", method: "POST", path: "/api/tasks", body: `{"name":"a","review":"strict"}`, status: 422, code: work.Invalid, says: "strict"},
		{name: "no repository", method: "POST", path: "/api/projects", body: `{"name":"b","repository":"relative"}`, status: 422, code: work.Invalid, says: "relative"},
		{name: "a name that is taken", method: "POST", path: "/api/projects", body: `{"name":"house"}`, status: 409, code: work.Conflict},
		{name: "bad role", method: "PUT", path: "/api/roles/checker", body: `{"agent":"command"}`, status: 422, code: work.Invalid},
		{name: "bad scope", method: "POST", path: "/api/tokens", body: `{"name":"x","scope":"root"}`, status: 422, code: work.Invalid, says: "root", hint: "admin or read"},
		{name: "wrong state", method: "POST", path: "/api/tasks/" + string(task.ID) + "/accept", status: 409, code: work.Illegal, says: "PENDING", hint: "start"},
		{name: "cycle", method: "PATCH", path: "/api/tasks/" + string(task.ID), body: `{"depends_on":["` + string(task.ID) + `"]}`, status: 422, code: work.Invalid, says: "circle"},
		{name: "no goal", method: "POST", path: "/api/stories/elaborate", body: `{}`, status: 422, code: work.Invalid, says: "goal"},
		{name: "blank goal", method: "POST", path: "/api/stories/elaborate", body: `{"goal":" "}`, status: 422, code: work.Invalid, says: "goal", hint: "say what is wanted"},
		{name: "key of a plan in another case", method: "POST", path: "/api/stories/approve", body: `{"name":"a","tasks":[{"name":"a","instructions":"b","Subtasks":[]}]}`, status: 422, code: work.Invalid, says: `unexpected property "tasks[0].Subtasks"`},
		{name: "unknown keys of a plan", method: "POST", path: "/api/stories/approve", body: `{"name":"a","task":[],"tasks":[{"name":"a","instruction":"b"}]}`, status: 422, code: work.Invalid, says: "body.task: unexpected property; body.tasks[0].instruction: unexpected property; body.tasks[0]: expected required property instructions to be present"},
		{name: "broken plan", method: "POST", path: "/api/stories/approve", body: `{"name":"a","policy":"checked","branch_name":"a..b"}`, status: 422, code: work.Invalid, says: "the plan has 2 problems", hint: "whole plan again"},
		{name: "long plan", method: "POST", path: "/api/stories/approve", body: `{"name":"` + long(9<<10) + `","tasks":[{"name":"` + long(9<<10) + `","instructions":"a","depends_on":["` + long(9<<10) + `"]}]}`, status: 422, code: work.Invalid, says: "circle"},
		{name: "branch of another story", method: "POST", path: "/api/stories/approve", body: `{"name":"a","branch_name":"story/d/e"}`, status: 409, code: work.Conflict, says: "story/d", hint: "another name"},
		{name: "no epic", method: "POST", path: "/api/stories/approve", body: `{"name":"a","epic":"autumn"}`, status: 404, code: work.NotFound, says: "autumn"},
		{name: "nameless epic", method: "POST", path: "/api/epics", body: `{"name":" "}`, status: 422, code: work.Invalid, says: "name"},
		{name: "no story", method: "GET", path: "/api/stories/nosuchstory", status: 404, code: work.NotFound, says: "nosuchstory"},
		{name: "no story to change", method: "PATCH", path: "/api/stories/nosuchstory", body: `{"name":"a"}`, status: 404, code: work.NotFound},
		{name: "no story to accept", method: "POST", path: "/api/stories/nosuchstory/accept", status: 404, code: work.NotFound},
		{name: "unknown status", method: "GET", path: "/api/stories?status=DONE", status: 422, code: work.Invalid, says: "SHIPPABLE"},
		{name: "ship a draft", method: "POST", path: story + "/ship", status: 409, code: work.Illegal, says: "only a SHIPPABLE story", hint: "approve"},
		{name: "reject without a comment", method: "POST", path: story + "/reject", body: `{}`, status: 422, code: work.Invalid, says: "comment"},
		{name: "ship mode", method: "PATCH", path: "/api/projects/house", body: `{"ship_mode":"push"}`, status: 422, code: work.Invalid, says: "ship_mode"},
		{name: "reader approves a plan", method: "POST", path: "/api/stories/approve", body: `{"name":"a"}`, edit: as(read.Secret), status: 403, code: work.Forbidden, hint: "scope admin"},
		{name: "reader ships", method: "POST", path: story + "/ship", edit: as(read.Secret), status: 403, code: work.Forbidden},
		{name: "bad event id", method: "GET", path: "/api/events", edit: apptest.Header("Last-Event-ID", "x"), status: 422, code: work.Invalid, says: "Last-Event-ID"},
		{name: "events of no task", method: "GET", path: "/api/events?task=nosuchtask", status: 404, code: work.NotFound},
		{name: "negative offset", method: "GET", path: "/api/executions/nosuch/log?offset=-1", status: 404, code: work.NotFound},

		{name: "foreign host", method: "GET", path: "/api/tasks", edit: func(r *http.Request) { r.Host = "evil.example" }, status: 421, code: work.Forbidden, says: "evil.example", hint: "allowed hosts"},
		{name: "loopback name with another port", method: "GET", path: "/api/tasks", edit: func(r *http.Request) { r.Host = "localhost:1" }, status: 421, code: work.Forbidden},
		{name: "loopback name without port", method: "GET", path: "/api/tasks", edit: func(r *http.Request) { r.Host = "localhost" }, status: 421, code: work.Forbidden},
		{name: "foreign origin", method: "POST", path: "/api/tasks", body: `{"name":"a"}`, edit: apptest.Header("Origin", "https://evil.example"), status: 403, code: work.Forbidden, says: "another site"},
		{name: "other site", method: "POST", path: "/api/tasks", body: `{"name":"a"}`, edit: apptest.Header("Sec-Fetch-Site", "cross-site"), status: 403, code: work.Forbidden},
		{name: "no token", method: "POST", path: "/api/tasks", body: `{"name":"a"}`, edit: apptest.Header("Authorization", ""), status: 401, code: work.Unauthenticated, hint: "Bearer"},
		{name: "bad token", method: "POST", path: "/api/tasks", body: `{"name":"a"}`, edit: as("wrong"), status: 401, code: work.Unauthenticated, hint: "Bearer"},
		{name: "another scheme", method: "POST", path: "/api/tasks", body: `{"name":"a"}`, edit: apptest.Header("Authorization", "Basic "+w.token), status: 401, code: work.Unauthenticated},
		{name: "token in the URL", method: "GET", path: "/api/tasks?token=" + w.token, edit: apptest.Header("Authorization", ""), status: 401, code: work.Unauthenticated},
		{name: "reader creates", method: "POST", path: "/api/tasks", body: `{"name":"a"}`, edit: as(read.Secret), status: 403, code: work.Forbidden, hint: "scope admin"},
		{name: "reader lists tokens", method: "GET", path: "/api/tokens", edit: as(read.Secret), status: 403, code: work.Forbidden},
	}
	before := w.picture()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var edits []func(*http.Request)
			if tt.edit != nil {
				edits = append(edits, tt.edit)
			}
			got := w.ask(tt.method, tt.path, tt.body, edits...)
			if got.status != tt.status || got.Code != tt.code || got.Status != tt.status {
				t.Errorf("status %d, code %q, in the body %d; want %d, %q: %s", got.status, got.Code, got.Status, tt.status, tt.code, got.body)
			}
			if !strings.Contains(got.Detail, tt.says) || !strings.Contains(got.Hint, tt.hint) {
				t.Errorf("detail %q, hint %q; want %q, %q in them", got.Detail, got.Hint, tt.says, tt.hint)
			}
			if low := strings.ToLower(string(got.body)); strings.Contains(low, "constraint") || strings.Contains(low, "sql") {
				t.Errorf("the answer speaks of the database: %s", got.body)
			}
			if len(got.body) > 2000 {
				t.Errorf("the answer repeats what was sent: %d bytes", len(got.body))
			}
		})
	}
	if diff := cmp.Diff(before, w.picture()); diff != "" {
		t.Errorf("something was half-written:\n%s", diff)
	}
	if strings.Contains(w.Log.String(), "internal error") {
		t.Errorf("a refusal was logged as a bug:\n%s", w.Log)
	}
}

// picture is all that a request could have changed.
func (w *world) picture() string {
	w.Helper()
	seq, err := w.store.LastSeq(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	var all []any
	all = append(all, seq)
	for _, path := range []string{"/api/projects", "/api/tasks?all=true", "/api/stories", "/api/epics", "/api/roles", "/api/tokens", "/api/merges"} {
		all = append(all, string(w.ask("GET", path, "").body))
	}
	return fmt.Sprint(all...)
}

// What an action may not be asked now, it may be asked instead.
func TestIllegalNamesWhatIsAllowed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Project("house")
	task := w.Task(app.TaskRequest{Name: "a"})
	got := w.ask("POST", "/api/tasks/"+string(task.ID)+"/accept", "")
	if !slices.Contains(got.Allowed, string(work.DoStart)) || got.Reason != "wrong_state" || got.Title != "Conflict" || got.Type != "about:blank" {
		t.Errorf("%s", got.body)
	}
	if diff := cmp.Diff(fmt.Sprint(task.Actions), fmt.Sprint(got.Allowed)); diff != "" {
		t.Errorf("the task's actions (-) and what is allowed (+):\n%s", diff)
	}
}

// Each code has one status, and each status of a refusal is one of theirs.
func TestEveryCodeHasItsStatus(t *testing.T) {
	t.Parallel()
	want := map[work.Code]int{
		work.Invalid: 422, work.NotFound: 404, work.Conflict: 409, work.Illegal: 409, work.Unauthenticated: 401,
		work.Forbidden: 403, work.Exhausted: 429, work.Unavailable: 503, work.Timeout: 504, work.Internal: 500,
	}
	for _, code := range work.Codes() {
		w := newWorldWith(t, func(context.Context) error {
			return work.Errorf(code, "it is so").WithReason("r").WithHint("h").With("k", "v")
		})
		got := w.ask("GET", "/api/projects", "")
		if got.status != want[code] || got.Code != code {
			t.Errorf("%s: %d %s", code, got.status, got.body)
		}
		if told := got.Detail == "it is so" && got.Reason == "r" && got.Hint == "h" && got.Details["k"] == "v"; told != (code != work.Internal) {
			t.Errorf("%s: %s", code, got.body)
		}
	}
}

// newWorldWith makes a server whose projects cannot be listed.
func newWorldWith(t *testing.T, fail func(context.Context) error) *world {
	t.Helper()
	w := newWorld(t)
	w.handler.o.API = failing{w.Service, fail}
	w.handler = newServer(w.handler.o)
	w.http.Config.Handler = w.handler
	return w
}

// failing is the service with one broken method.
type failing struct {
	app.API
	fail func(context.Context) error
}

func (f failing) Projects(ctx context.Context) ([]*work.Project, error) { return nil, f.fail(ctx) }

// A bug is answered with an id that is in the log once, and with nothing else.
func TestBugsAreInTheLog(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, func(context.Context) error { return errors.New("disk /secret/path is on fire") })
	got := w.ask("GET", "/api/projects", "")
	id, _ := got.Details["id"].(string)
	if got.status != 500 || id == "" || strings.Contains(string(got.body), "secret") {
		t.Fatalf("%d %s", got.status, got.body)
	}
	if n := strings.Count(w.Log.String(), id); n != 1 || !strings.Contains(w.Log.String(), "on fire") {
		t.Errorf("the id is in the log %d times:\n%s", n, w.Log)
	}
}

// A panic ends its request, is in the log, and the server goes on.
func TestPanicsEndTheirRequestOnly(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, func(context.Context) error { panic("out of cheese") })
	got := w.ask("GET", "/api/projects", "")
	if got.status != 500 || got.Code != work.Internal || !strings.Contains(w.Log.String(), "out of cheese") {
		t.Errorf("%d %s\n%s", got.status, got.body, w.Log)
	}
	if got := w.ask("GET", "/api/tasks", ""); got.status != 200 {
		t.Errorf("after the panic: %d %s", got.status, got.body)
	}
}

// An answer that breaks in the middle does not look whole.
func TestTornAnswersAreCutOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Project("torn")
	task := w.Task(app.TaskRequest{Name: "a", Start: true})
	w.Run(task.ID, apptest.Changed())
	var out strings.Builder
	err := w.client().TaskDiff(t.Context(), string(task.ID), &out)
	if work.CodeOf(err) != work.Unavailable || out.Len() == 0 {
		t.Errorf("%v after %d bytes", err, out.Len())
	}
	if !strings.Contains(w.Log.String(), "read the vault: torn") {
		t.Errorf("the log does not say why:\n%s", w.Log)
	}
}

// Criteria may be a list or one text; so says the document, so it is taken.
func TestCriteriaAsListOrText(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Project("house")
	for in, want := range map[string][]string{`"one"`: {"one"}, `["one","two"]`: {"one", "two"}} {
		got := w.ask("POST", "/api/tasks", `{"name":"a","acceptance_criteria":`+in+`}`)
		var view app.TaskView
		if err := json.Unmarshal(got.body, &view); err != nil || got.status != 201 {
			t.Fatalf("%s: %d %s", in, got.status, got.body)
		}
		if diff := cmp.Diff(want, view.AcceptanceCriteria); diff != "" {
			t.Error(diff)
		}
	}
}

// What the server keeps to itself is in no answer.
func TestNothingInternalLeaks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Project("house")
	task := w.Task(app.TaskRequest{Name: "a", Start: true})
	w.Begin(task.ID, "token")
	id, story := string(task.ID), string(w.shippable("Small").ID)
	for _, path := range []string{"/api/stories", "/api/stories/" + story, "/api/stories/" + story + "/task-tree", "/api/tasks", "/api/tasks/" + id, "/api/tasks/" + id + "/tree", "/api/tasks/" + id + "/executions", "/api/tokens", "/api/projects"} {
		got := w.ask("GET", path, "")
		for _, word := range []string{"ook", "ence", "ash", "ersion", "ease"} {
			for _, key := range keys(t, got.body) {
				if strings.HasSuffix(key, word) {
					t.Errorf("GET %s shows %q", path, key)
				}
			}
		}
	}
}

// keys are all keys in a JSON document.
func keys(t *testing.T, data []byte) []string {
	t.Helper()
	var all []string
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, inner := range v {
				all = append(all, k)
				walk(inner)
			}
		case []any:
			for _, inner := range v {
				walk(inner)
			}
		}
	}
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	walk(v)
	return all
}

// A role of one's own needs somebody who plays it, or what it is told.
func TestRolesOfOnesOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, body := range []string{`{"prompt":"Look at the colours."}`, `{"agent":"claude"}`, `{"command":["true"]}`} {
		if got := w.ask("PUT", "/api/roles/painter", body); got.status != 200 {
			t.Errorf("%s: %d %s", body, got.status, got.body)
		}
	}
	if got := w.ask("PUT", "/api/roles/builder", `{}`); got.status != 200 {
		t.Errorf("a known role: %d %s", got.status, got.body)
	}
}

// A token's name may be another's, too; then its id says which is meant.
func TestAmbiguousTokens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var made []*app.NewToken
	for range 2 {
		token, err := w.Service.CreateToken(w.Owner(), "laptop", app.ScopeRead)
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, token)
	}
	got := w.ask("DELETE", "/api/tokens/laptop", "")
	if got.status != 422 || got.Reason != "ambiguous" || !strings.Contains(got.Hint, made[1].ID) {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := w.ask("DELETE", "/api/tokens/"+made[0].ID, ""); got.status != 204 {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := w.ask("DELETE", "/api/tokens/laptop", ""); got.status != 204 {
		t.Errorf("the other is the only one now: %d %s", got.status, got.body)
	}
}

// An answer whose reader is gone is given up, and its status is sent once.
func TestGoneReaders(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	w := newWorldWith(t, func(context.Context) error { cancel(); return nil })
	r := httptest.NewRequest(http.MethodGet, "/api/projects", nil)
	r.Host = "claudomator.example"
	r.Header.Set("Authorization", "Bearer "+w.token)
	gone := &gone{header: http.Header{}}
	w.handler.ServeHTTP(gone, r.WithContext(ctx))
	if diff := cmp.Diff([]int{200}, gone.statuses); diff != "" {
		t.Errorf("statuses:\n%s", diff)
	}
	if strings.Contains(w.Log.String(), "internal error") {
		t.Errorf("a reader that is gone is no bug:\n%s", w.Log)
	}
}

// gone is a connection that breaks when it is written to.
type gone struct {
	header   http.Header
	statuses []int
}

func (g *gone) Header() http.Header       { return g.header }
func (g *gone) WriteHeader(status int)    { g.statuses = append(g.statuses, status) }
func (g *gone) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

// The repository of a request is its project's, or names the project.
func TestRepositoryOfATask(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Project("cellar")
	for name, repository := range map[string]string{"house": "/srv/house", "far": "https://git.example/far.git"} {
		if _, err := w.Service.AddProject(w.Owner(), app.ProjectInput{Name: &name, Repository: &repository}); err != nil {
			t.Fatal(err)
		}
	}
	projects := map[work.ProjectID]string{}
	all, err := w.Service.Projects(w.Owner())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		projects[p.ID] = p.Name
	}
	for _, c := range []struct {
		body string
		want string // the project; empty: refused
	}{
		{`"repository_url":"/srv/house"`, "house"},
		{`"repository_url":"/srv/house","project":"house"`, "house"},
		{`"repository_url":"https://git.example/far"`, "far"},
		{`"repository_url":"https://git.example/far.git/","project":"far"`, "far"},
		{`"repository_url":"/srv/house","project":"far"`, ""},
		{`"repository_url":"/srv/house.git","project":"house"`, ""},
		{`"repository_url":"/srv/house","project":"cellar"`, ""},
		{`"repository_url":"https://git.example/near"`, ""},
		{`"repository_url":"relative"`, ""},
	} {
		got := w.ask("POST", "/api/tasks", `{"name":"a",`+c.body+`}`)
		var view app.TaskView
		if got.status == 201 {
			if err := json.Unmarshal(got.body, &view); err != nil {
				t.Fatal(err)
			}
		}
		if projects[view.ProjectID] != c.want || (c.want == "") != (got.Reason == "repository") {
			t.Errorf("%s: %d %s, want project %q", c.body, got.status, got.body, c.want)
		}
		if c.want == "" {
			continue
		}
		child := `{"name":"child","parent_task_id":"` + string(view.ID) + `","repository_url":"`
		if got := w.ask("POST", "/api/tasks", child+`/srv/other"}`); got.status != 422 || got.Reason != "repository" {
			t.Errorf("a child elsewhere: %d %s", got.status, got.body)
		}
	}
}

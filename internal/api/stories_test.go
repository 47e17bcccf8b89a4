package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/app/apptest"
	"github.com/claudomator/claudomator/internal/work"
)

// plan is a plan that uses every field.
func plan(name string) app.PlanInput {
	return app.PlanInput{
		Name: name, Goal: "gift cards\nat the till", Spec: "# Spec", BranchName: "story/" + strings.ToLower(name), Policy: "checked",
		AcceptanceCriteria: app.StringList{"they can be bought"},
		Tasks: []app.PlanTaskInput{
			{Name: "till", Instructions: "sell them", AcceptanceCriteria: app.StringList{"sold"}, DependsOn: []string{"print"}},
			{Name: "print", Instructions: "print them", Subtasks: []app.PlanSubtaskInput{{Name: "paper", Instructions: "buy <paper>"}, {Name: "ink", Instructions: "buy ink"}}},
		},
		Validation: app.ValidationList{{Type: work.TestValidation, Steps: []string{"make test"}, SuccessCriteria: "green"}},
	}
}

// stories are planned, edited, approved, built, rejected, shipped and cancelled,
// as a person asks for it.
func (s subject) stories() {
	add := seen[*work.EpicProgress](s, "AddEpic")
	add(s.AddEpic(s.ctx, app.EpicInput{Name: "spring"}))
	add(s.AddEpic(s.ctx, app.EpicInput{Name: "spring"}))
	add(s.AddEpic(s.ctx, app.EpicInput{Name: " "}))
	deploy := "make deploy"
	seen[*work.Project](s, "SetProject")(s.SetProject(s.ctx, "house", app.ProjectInput{Deploy: &deploy}))
	approve := seen[*app.Approved](s, "ApprovePlan")
	whole := app.ApproveInput{PlanInput: plan("Cards"), Project: "house", Epic: "spring", IdempotencyKey: "cards"}
	cards := approve(s.ApprovePlan(s.ctx, whole))
	approve(s.ApprovePlan(s.ctx, whole)) // the same one
	whole.Name = "Others"
	approve(s.ApprovePlan(s.ctx, whole)) // the key of another request
	approve(s.ApprovePlan(s.ctx, app.ApproveInput{PlanInput: app.PlanInput{Policy: "checked", BranchName: "a..b"}, Project: "house"}))
	approve(s.ApprovePlan(s.ctx, app.ApproveInput{PlanInput: plan("Cards"), Project: "house"})) // the branch is taken
	approve(s.ApprovePlan(s.ctx, app.ApproveInput{PlanInput: plan("x"), Project: "house", Epic: "autumn"}))
	seen[*app.TreeNode](s, "StoryTree")(s.StoryTree(s.ctx, string(cards.Story.ID)))
	seen[*app.TreeNode](s, "StoryTree")(s.StoryTree(s.ctx, "nosuchstory"))
	s.elaborated()
	s.shipped()
	page := seen[app.Page[*work.Story]](s, "Stories")
	first := page(s.Stories(s.ctx, app.StoryQuery{Project: "house", Limit: 1, Statuses: []work.StoryStatus{work.InProgress, work.DeployFailed}}))
	page(s.Stories(s.ctx, app.StoryQuery{After: first.Next, Limit: 1, Epic: "spring", Text: "ard"}))
	page(s.Stories(s.ctx, app.StoryQuery{Limit: 501}))
	page(s.Stories(s.ctx, app.StoryQuery{Epic: "autumn"}))
	seen[[]work.EpicProgress](s, "Epics")(s.Epics(s.ctx))
	seen[[]app.Template](s, "Templates")(s.Templates(s.ctx, "house"))
	seen[[]app.Template](s, "Templates")(s.Templates(s.ctx, "nosuchproject"))
}

// elaborated is a story that a planner plans, and that is given up.
func (s subject) elaborated() {
	elaborate := seen[*app.Elaborated](s, "Elaborate")
	goal := app.ElaborateInput{Project: "house", Goal: "sell gift cards", Name: "Gift", Policy: "arbitrated", Epic: "spring", Agent: "command", IdempotencyKey: "gift"}
	begun := elaborate(s.Elaborate(s.ctx, goal))
	elaborate(s.Elaborate(s.ctx, goal))
	elaborate(s.Elaborate(s.ctx, app.ElaborateInput{Project: "house"}))
	elaborate(s.Elaborate(s.ctx, app.ElaborateInput{Project: "house", Goal: "x", Agent: "hal"}))
	id := string(begun.StoryID)
	approve, edit := seen[*app.Approved](s, "ApproveStory"), seen[*app.StoryView](s, "EditStory")
	name, policy, criteria := "Gifts", "strict", app.StringList{"sold"}
	approve(s.ApproveStory(s.ctx, id)) // it is being planned
	edit(s.EditStory(s.ctx, id, app.StoryPatch{Spec: &name}))
	x := s.Begin(begun.TaskID, "token")
	s.Do(x.TreeID, work.Report{Execution: x.ID, Plan: &work.Plan{Name: "Gift", Tasks: []work.PlanTask{{Name: "sell", Instructions: "sell"}}}})
	s.Do(x.TreeID, work.End{Execution: x.ID, Fence: x.Fence, Outcome: work.Success, Base: "b0", Head: "b0"})
	edit(s.EditStory(s.ctx, id, app.StoryPatch{Name: &name, AcceptanceCriteria: &criteria}))
	edit(s.EditStory(s.ctx, id, app.StoryPatch{Policy: &policy}))
	mended := plan("Gifts")
	edit(s.EditStory(s.ctx, id, app.StoryPatch{Plan: &mended, Epic: new(string)}))
	mended.Tasks[0].DependsOn = []string{"till"}
	edit(s.EditStory(s.ctx, id, app.StoryPatch{Plan: &mended}))
	seen[*app.StoryView](s, "Story")(s.Story(s.ctx, "Gifts"))
	approve(s.ApproveStory(s.ctx, id))
	approve(s.ApproveStory(s.ctx, id))
	cancel := seen[*app.StoryView](s, "CancelStory")
	cancel(s.CancelStory(s.ctx, id))
	cancel(s.CancelStory(s.ctx, id))
}

// shipped is a story that comes as far as its deployment, twice.
func (s subject) shipped() {
	made := seen[*app.Approved](s, "ApprovePlan")(s.ApprovePlan(s.ctx, app.ApproveInput{PlanInput: app.PlanInput{Name: "Small", Goal: "do it"}, Project: "house"}))
	id := string(made.Story.ID)
	accept, reject, ship := seen[*app.StoryView](s, "AcceptStory"), seen[*app.StoryView](s, "RejectStory"), seen[*app.Shipment](s, "ShipStory")
	accept(s.AcceptStory(s.ctx, id))
	ship(s.ShipStory(s.ctx, id, app.ShipRequest{})) // nothing is there
	s.Run(made.Story.RootID, apptest.Changed())
	reject(s.RejectStory(s.ctx, id, app.RejectInput{}))
	rejected := reject(s.RejectStory(s.ctx, id, app.RejectInput{Comment: "not so", Findings: work.Findings{{Kind: "bug", Text: "wrong"}}}))
	s.Run(rejected.RootID, apptest.Changed())
	accept(s.AcceptStory(s.ctx, id))
	pressed := app.ShipRequest{IdempotencyKey: "ship"}
	ship(s.ShipStory(s.ctx, id, pressed))
	ship(s.ShipStory(s.ctx, id, pressed))           // the same press
	ship(s.ShipStory(s.ctx, id, app.ShipRequest{})) // it is being shipped
	stop := seen[*app.StoryView](s, "StopDeploy")
	stop(s.StopDeploy(s.ctx, id)) // it is not deployed yet
	s.landed(made.Story)
	stop(s.StopDeploy(s.ctx, id))
	seen[*app.StoryView](s, "CancelStory")(s.CancelStory(s.ctx, id))
	ship(s.ShipStory(s.ctx, id, app.ShipRequest{})) // goes on
	ship(s.ShipStory(s.ctx, "nosuchstory", app.ShipRequest{}))
}

// landed plays the engine: what is shipped is landed and pushed.
func (w *world) landed(story *app.StoryView) {
	w.Helper()
	tree, ship := work.TreeID(story.RootTaskID), w.story(string(story.ID)).Ship
	w.Do(tree, work.Landed{Merge: ship.MergeID, Commit: "c1"})
	w.Do(tree, work.Pushed{Task: w.story(string(story.ID)).RootID})
}

func (w *world) story(ref string) *app.StoryView {
	w.Helper()
	view, err := w.Service.Story(w.Owner(), ref)
	if err != nil {
		w.Fatal(err)
	}
	return view
}

// shippable is a story that a person has accepted.
func (w *world) shippable(name string) *app.StoryView {
	w.Helper()
	made, err := w.Service.ApprovePlan(w.Owner(), app.ApproveInput{PlanInput: app.PlanInput{Name: name}})
	if err != nil {
		w.Fatal(err)
	}
	w.Run(made.Story.RootID, apptest.Changed())
	view, err := w.Service.AcceptStory(w.Owner(), string(made.Story.ID))
	if err != nil {
		w.Fatal(err)
	}
	return view
}

// What begins before it is done is answered with 202, what makes something with
// 201, and what is refused with what is possible instead.
func TestStoriesOverHTTP(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Project("house")
	got := w.ask("POST", "/api/stories/elaborate", `{"goal":"sell gift cards"}`)
	var begun app.Elaborated
	if err := json.Unmarshal(got.body, &begun); err != nil || got.status != 202 || begun.StoryID == "" || begun.TaskID == "" {
		t.Errorf("elaborate: %d %s", got.status, got.body)
	}
	if got := w.ask("POST", "/api/stories/"+string(begun.StoryID)+"/approve", ""); got.status != 409 || got.Reason != "planning" {
		t.Errorf("approve what is being planned: %d %s", got.status, got.body)
	}
	got = w.ask("POST", "/api/stories/approve", `{"name":"a","tasks":[{"name":"x","instructions":"x","subtasks":[{"name":"s","instructions":"s"}]},{"name":"y","instructions":"y"}]}`)
	var approved struct {
		Story   map[string]any `json:"story"`
		TaskIDs []work.TaskID  `json:"task_ids"`
	}
	if err := json.Unmarshal(got.body, &approved); err != nil || got.status != 201 || len(approved.TaskIDs) != 2 || approved.Story["status"] != "IN_PROGRESS" {
		t.Fatalf("approve: %d %s", got.status, got.body)
	}
	for i, name := range []string{"x", "y"} {
		if task, err := w.Service.Task(w.Owner(), string(approved.TaskIDs[i])); err != nil || task.Name != name {
			t.Errorf("task %d of the plan is %v, %v", i, task, err)
		}
	}
	if got := w.ask("POST", "/api/epics", `{"name":"spring"}`); got.status != 201 {
		t.Errorf("epic: %d %s", got.status, got.body)
	}
	if got := w.ask("GET", "/api/stories", ""); got.status != 200 || !strings.HasPrefix(string(got.body), `{"items":[{`) {
		t.Errorf("list: %d %s", got.status, got.body)
	}
	if got := w.ask("GET", "/api/stories?status=DEPLOYED", ""); string(bytes.TrimSpace(got.body)) != `{"items":[]}` {
		t.Errorf("no stories: %s", got.body)
	}
}

// Ship answers 202 where there is something to ship, and again for its key;
// otherwise 409, with what can be asked, and the ship or its commit.
func TestShipOverHTTP(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Project("house")
	small := w.shippable("Small")
	id, path := string(small.ID), "/api/stories/"+string(small.ID)+"/ship"
	key := apptest.Header("Idempotency-Key", "k")
	for range 2 { // by name, and once more after the first answer was lost
		got := w.ask("POST", "/api/stories/Small/ship", "", key)
		var shipment app.Shipment
		if err := json.Unmarshal(got.body, &shipment); err != nil || got.status != 202 || shipment.StoryID != small.ID || shipment.Message == "" {
			t.Fatalf("%d %s", got.status, got.body)
		}
	}
	got := w.ask("POST", path, "")
	ship, _ := got.Details["ship"].(map[string]any)
	if got.status != 409 || got.Reason != "shipping" || ship["step"] != "land" || got.Allowed == nil {
		t.Errorf("shipped twice: %d %s", got.status, got.body)
	}
	w.landed(small)
	if status := w.story(id).Status; status != work.Deployed {
		t.Fatalf("the story is %s", status)
	}
	if got := w.ask("POST", path, ""); got.status != 409 || got.Reason != "already_shipped" || got.Details["commit"] != "c1" {
		t.Errorf("shipped before: %d %s", got.status, got.body)
	}
	if got := w.ask("POST", path, "", key); got.status != 202 {
		t.Errorf("the key of the ship that is over: %d %s", got.status, got.body)
	}
	if got := w.ask("POST", "/api/stories/nosuchstory/ship", ""); got.status != 404 || got.Code != work.NotFound {
		t.Errorf("no such story: %d %s", got.status, got.body)
	}
}

// What a story may not be asked now, it may be asked instead: in the words of
// its view.
func TestIllegalNamesWhatAStoryAllows(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Project("house")
	small := w.shippable("Small")
	for _, verb := range []string{"approve", "stop-deploy"} {
		got := w.ask("POST", "/api/stories/"+string(small.ID)+"/"+verb, "")
		if got.status != 409 || !slices.Contains(got.Allowed, string(work.ActShip)) || fmt.Sprint(got.Allowed) != fmt.Sprint(small.Actions) {
			t.Errorf("%s: %d %s, want allowed %v", verb, got.status, got.body, small.Actions)
		}
	}
	draft, err := w.Service.ApprovePlan(w.Owner(), app.ApproveInput{PlanInput: app.PlanInput{Name: "draft"}, Draft: true})
	if err != nil {
		t.Fatal(err)
	}
	for verb, body := range map[string]string{"accept": "", "reject": `{"comment":"no"}`, "ship": ""} { // the root refuses the first two
		got := w.ask("POST", "/api/stories/draft/"+verb, body)
		if got.status != 409 || fmt.Sprint(got.Allowed) != fmt.Sprint(draft.Story.Actions) || got.Hint != "possible now: edit, approve, cancel" {
			t.Errorf("%s a draft: %d %s, want allowed %v", verb, got.status, got.body, draft.Story.Actions)
		}
	}
	cancelled, err := w.Service.CancelStory(w.Owner(), string(small.ID))
	if err != nil {
		t.Fatal(err)
	}
	got := w.ask("POST", "/api/stories/"+string(small.ID)+"/ship", "")
	if len(cancelled.Actions) != 0 || got.status != 409 || !strings.Contains(string(got.body), `"allowed":[]`) {
		t.Errorf("nothing is allowed any more: %d %s", got.status, got.body)
	}
}

// One story for one key, however often and whenever it is asked for; the store
// remembers it, and what was shipped, too.
func TestOneStoryForOneKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Project("house")
	small := w.shippable("Small")
	for i, r := range []struct {
		path, body, other string
		status            int
	}{
		{"/api/stories/elaborate", `{"goal":"g"}`, `{"goal":"h"}`, 202},
		{"/api/stories/approve", `{"name":"n","branch_name":"story/mine"}`, `{"name":"m"}`, 201},
		{"/api/stories/" + string(small.ID) + "/ship", ``, ``, 202},
	} {
		key := apptest.Header("Idempotency-Key", fmt.Sprint("key", i))
		answers := w.atOnce(8, "POST", r.path, r.body, key)
		w.handler = newServer(w.handler.o) // as after a restart
		w.http.Config.Handler = w.handler
		answers = append(answers, w.ask("POST", r.path, r.body, key))
		for _, got := range answers {
			if got.status != r.status || string(got.body) != string(answers[0].body) {
				t.Errorf("%s: %d %s, not %s", r.path, got.status, got.body, answers[0].body)
			}
		}
		if r.other != "" {
			if got := w.ask("POST", r.path, r.other, key); got.status != 409 || got.Reason != "key_reused" {
				t.Errorf("%s with another body: %d %s", r.path, got.status, got.body)
			}
		}
		if got := w.ask("POST", r.path, r.body, apptest.Header("Idempotency-Key", strings.Repeat("x", 256))); got.status != 422 {
			t.Errorf("%s with a long key: %d %s", r.path, got.status, got.body)
		}
	}
	page, err := w.Service.Stories(w.Owner(), app.StoryQuery{})
	if err != nil || len(page.Items) != 3 {
		t.Errorf("%d stories, %v", len(page.Items), err)
	}
}

// A validation may be one or a list; so says the document, so it is taken. What is
// wrong with it is said by app, with all else that is wrong with the plan.
func TestValidationAsListOrOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Project("house")
	one := `{"type":"test","steps":["make test"]}`
	for in, want := range map[string]int{one: 1, `[` + one + `,` + one + `]`: 2, `[]`: 0, `null`: 0} {
		got := w.ask("POST", "/api/stories/approve", `{"name":"a","draft":true,"validation":`+in+`}`)
		var approved app.Approved
		if err := json.Unmarshal(got.body, &approved); err != nil || got.status != 201 || len(approved.Story.Validation) != want {
			t.Errorf("%s: %d %s", in, got.status, got.body)
		}
	}
	for in, says := range map[string]string{
		`7`: "validation", `{"type":"test","step":["x"]}`: `"step"`, `[{"type":"test","steps":["x"],"Steps":["y"]}]`: "validation[0].Steps",
		`{"type":"test","Steps":["x"]}`: "validation.Steps", `{"type":"tests","steps":[]}`: `type "tests" is unknown: build, test or smoke; validation[0]: steps are missing`,
	} {
		got := w.ask("POST", "/api/stories/approve", `{"name":"a","validation":`+in+`}`)
		if got.status != 422 || got.Code != work.Invalid || !strings.Contains(got.Detail, says) {
			t.Errorf("%s: %d %s, want %s", in, got.status, got.body, says)
		}
	}
}

// TestPlanSchema holds docs/plan.schema.json, which editors use, to what the
// server takes: both say the same of a plan.
func TestPlanSchema(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Project("house")
	golden := filepath.Join("..", "..", "docs", "plan.schema.json")
	if *update {
		if err := os.WriteFile(golden, planSchema(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	got := w.ask("GET", "/plan.schema.json", "")
	if diff := cmp.Diff(string(want), string(got.body)); diff != "" || got.header.Get("Content-Type") != "application/schema+json" {
		t.Errorf("docs/plan.schema.json is not current; run go generate ./internal/api\n%s", diff)
	}
	if got := w.ask("GET", "/plan.schema.json", "", func(r *http.Request) { r.Header.Del("Authorization") }); got.status != 401 {
		t.Errorf("without credential: %d", got.status)
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(got.body, &schema); err != nil {
		t.Fatal(err)
	}
	editor, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	full, err := json.Marshal(plan("Cards"))
	if err != nil {
		t.Fatal(err)
	}
	for text, fits := range map[string]bool{
		string(full): true, `{"name":"a"}`: true, `{"name":"a","acceptance_criteria":"one","validation":{"type":"smoke","steps":["x"]}}`: true,
		`{}`: false, `{"name":"a","task":[]}`: false, `{"name":"a","tasks":[{"name":"x"}]}`: false, `{"name":"a","policy":"strict"}`: false,
		`{"name":"a","validation":{"type":"tests","steps":["x"]}}`: false, `{"name":"a","tasks":[{"name":"x","instructions":"y","subtasks":["z"]}]}`: false,
	} {
		var value any
		if err := json.Unmarshal([]byte(text), &value); err != nil {
			t.Fatal(err)
		}
		if err := editor.Validate(value); (err == nil) != fits {
			t.Errorf("the editor says of %s: %v", text, err)
		}
		draft := strings.TrimSuffix(text, "}") + `,"draft":true}`
		if text == "{}" {
			draft = `{"draft":true}`
		}
		if got := w.ask("POST", "/api/stories/approve", draft); (got.status == 201) != fits {
			t.Errorf("the server says of %s: %d %s", text, got.status, got.body)
		}
	}
	described(t, "plan", &schema)
}

// described finds the fields of a schema that say nothing of themselves.
func described(t *testing.T, at string, s *jsonschema.Schema) {
	t.Helper()
	for name, field := range s.Properties {
		if field.Description == "" {
			t.Errorf("%s.%s is not described", at, name)
		}
	}
	for name, def := range s.Defs {
		described(t, name, def)
	}
}

package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

func (f *fake) story(ref string) (*app.StoryView, error) {
	for _, v := range f.stories {
		if f.err == nil && (string(v.ID) == ref || v.Name == ref) {
			copied := *v
			copied.Rests = f.storyRests(v)
			return &copied, nil
		}
	}
	return nil, cmpErr(f.err, work.Errorf(work.NotFound, "there is no story %q", ref))
}

// storyRests is what a server says of a story on whose root and planner nothing hangs.
func (f *fake) storyRests(v *app.StoryView) bool {
	about := v.RootID
	switch v.Status {
	case work.Draft:
		about = v.Planner
	case work.InProgress, work.Validating, work.NeedsFix:
	case work.Shipping:
		return v.Paused
	case work.ReviewReady, work.Shippable, work.Deployed, work.DeployFailed, work.StoryCancelled:
		return true
	}
	t, err := f.view(string(about))
	return err != nil || t.Rests
}

func (f *fake) actStory(what, ref string) (*app.StoryView, error) {
	f.asked = append(f.asked, what)
	return f.story(ref)
}

func (f *fake) Elaborate(_ context.Context, in app.ElaborateInput) (*app.Elaborated, error) {
	f.goal = in
	return &app.Elaborated{StoryID: "s1", TaskID: "planner"}, f.err
}

func (f *fake) ApprovePlan(_ context.Context, in app.ApproveInput) (*app.Approved, error) {
	f.plan = in
	if f.planned != nil {
		if err := f.planned(in); err != nil {
			return nil, err
		}
	}
	view := &app.StoryView{Story: work.Story{ID: "made", Name: in.Name, Status: work.InProgress, Plan: &work.Plan{}}}
	out := &app.Approved{Story: view}
	for i, t := range in.Tasks {
		view.Plan.Tasks = append(view.Plan.Tasks, work.PlanTask{Name: t.Name})
		out.TaskIDs = append(out.TaskIDs, work.TaskID(fmt.Sprintf("t%d", i+1)))
	}
	return out, f.err
}

func (f *fake) Stories(_ context.Context, q app.StoryQuery) (app.Page[*work.Story], error) {
	f.asked = append(f.asked, fmt.Sprintf("stories %+v", q))
	page := app.Page[*work.Story]{Items: []*work.Story{}}
	for _, v := range f.stories {
		page.Items = append(page.Items, &v.Story)
	}
	return page, f.err
}

func (f *fake) Story(_ context.Context, ref string) (*app.StoryView, error) {
	f.looks++
	if f.before != nil {
		f.before()
	}
	return f.story(ref)
}

func (f *fake) EditStory(_ context.Context, ref string, in app.StoryPatch) (*app.StoryView, error) {
	f.edit = in
	return f.story(ref)
}

func (f *fake) ApproveStory(_ context.Context, ref string) (*app.Approved, error) {
	view, err := f.actStory("approve", ref)
	if err != nil {
		return nil, err
	}
	return &app.Approved{Story: view, TaskIDs: view.TaskIDs}, nil
}

func (f *fake) AcceptStory(_ context.Context, ref string) (*app.StoryView, error) {
	return f.actStory("accept", ref)
}

func (f *fake) RejectStory(_ context.Context, ref string, in app.RejectInput) (*app.StoryView, error) {
	return f.actStory(fmt.Sprintf("reject %q %v extra %d", in.Comment, in.Findings, in.Extra), ref)
}

func (f *fake) ShipStory(_ context.Context, ref string, in app.ShipRequest) (*app.Shipment, error) {
	view, err := f.actStory("ship "+in.IdempotencyKey, ref)
	if err != nil {
		return nil, err
	}
	out := &app.Shipment{StoryID: view.ID, Message: "story \"" + view.Name + "\" is being shipped"}
	if view.Ship != nil {
		out.Reports = view.Ship.Reports
	}
	return out, nil
}

func (f *fake) StopDeploy(_ context.Context, ref string) (*app.StoryView, error) {
	return f.actStory("stop-deploy", ref)
}

func (f *fake) CancelStory(_ context.Context, ref string) (*app.StoryView, error) {
	return f.actStory("cancel story", ref)
}

func (f *fake) StoryTree(_ context.Context, ref string) (*app.TreeNode, error) {
	if _, err := f.story(ref); err != nil {
		return nil, err
	}
	return f.tree, nil
}

func (f *fake) Templates(_ context.Context, project string) ([]app.Template, error) {
	f.asked = append(f.asked, "templates of "+project)
	return slices.Clone(f.files), f.err
}

func (f *fake) Epics(context.Context) ([]work.EpicProgress, error) { return f.epics, f.err }

func (f *fake) AddEpic(_ context.Context, in app.EpicInput) (*work.EpicProgress, error) {
	return &work.EpicProgress{Epic: work.Epic{ID: "e9", Name: in.Name}}, f.err
}

// cards is a server with a story that has gone through everything: rejected once,
// nested, judged by a panel, asking, and shipped in vain.
func cards() *fake {
	ago := func(d time.Duration) time.Time { return noon().Add(-d) }
	api := shop()
	node := func(id, name, state string, change ...func(*work.Task)) *app.TreeNode {
		v := task(id, state)
		v.Name, v.Kind, v.StoryID, v.AttemptNo, v.Agent = name, work.Subtask, "giftcards2345678", 1, work.AgentSpec{Role: work.Builder}
		for _, c := range change {
			c(&v.Task)
		}
		return &app.TreeNode{Task: &v.Task}
	}
	judge := func(id string, role work.Role, agent, state string, verdict *work.Verdict) *work.Task {
		return &work.Task{ID: work.TaskID(id), Name: string(role) + ": Store cards", State: work.State(state), Agent: work.AgentSpec{Role: role, Type: agent}, Verdict: verdict}
	}
	root := node("root234567890123", "Gift cards", "COMPLETED", func(t *work.Task) {
		t.Kind, t.AttemptNo, t.AttemptOf, t.RejectionComment = work.TopLevel, 2, "root000000000000", "a card can be used twice\nsee the second test"
	})
	store := node("store23456789012", "Store cards\x1b[31m\u202e", "READY/judges", func(t *work.Task) {
		t.AttemptNo, t.RejectionFindings = 3, work.Findings{{File: "card.go", Line: 7, Text: "no lock"}}
	})
	store.Judges = []*work.Task{
		judge("judge10000000000", work.EvaluatorCorrectness, "codex", "COMPLETED", &work.Verdict{Approved: true, Reasoning: "all of it holds", Criteria: []work.Criterion{{Criterion: "a card is stored once", Met: true, How: "go test, exit 0"}}}),
		judge("judge20000000000", work.EvaluatorSecurity, "codex", "COMPLETED", &work.Verdict{Reasoning: "the number is written to the log, where everybody on the machine can read it"}),
		judge("judge30000000000", work.EvaluatorTests, "", "RUNNING", nil),
		judge("judge40000000000", work.EvaluatorQuality, "claude", "FAILED", nil),
		judge("judge50000000000", work.Arbitration, "claude", "BLOCKED/question", nil),
	}
	store.Judges[3].Reason, store.Judges[4].State, store.Judges[4].BlockedOn = "exit status 1", work.Blocked, work.OnQuestion
	deep := node("schema3456789012", "数え直すことが必要な表の定義", "FAILED", func(t *work.Task) { t.Dropped = true })
	deep.Children = []*app.TreeNode{node("below34567890123", "Write the migration", "RUNNING")}
	store.Children = []*app.TreeNode{deep, node("index34567890123", "Index them", "PENDING")}
	pay := node("pay2345678901234", "Pay with a card", "BLOCKED/question")
	root.Children = []*app.TreeNode{store, pay}
	api.tree = root
	api.stories = []*app.StoryView{{
		Story: work.Story{
			ID: "giftcards2345678", ProjectID: "p1", EpicID: "e1", Name: "Gift cards", Goal: "Customers can pay with gift cards.", Spec: "A card has a number and a balance.\n\n- numbers are unique\x07",
			Status: work.DeployFailed, BranchName: "story/gift-cards", AcceptanceCriteria: []string{"a card cannot be used twice"}, RootTaskID: "root000000000000",
			Plan: &work.Plan{Name: "Gift cards", Tasks: []work.PlanTask{
				{Name: "Store cards\x1b[31m\u202e", Instructions: "In card.go, add type Card.\nTest it.", AcceptanceCriteria: []string{"a card is stored once", "nothing is logged"}, Subtasks: []work.PlanSubtask{{Name: "Index them", Instructions: "Add an index."}}},
				{Name: "Pay with a card", Instructions: "In pay.go, take a Card.", DependsOn: []string{"Store cards"}},
			}},
			Validation:       work.Validations{{Type: work.TestValidation, Steps: []string{"go test ./..."}}, {Type: work.SmokeValidation, Steps: []string{"curl -f localhost"}, SuccessCriteria: "the page is there"}},
			ValidationResult: &work.ValidationResult{Commit: "0123456789abcdef", At: ago(9 * time.Minute), Steps: []work.GateResult{{Command: "go vet"}, {Command: "go test ./...", ExitCode: 1, Output: "FAIL card\n"}}},
			Ship:             &work.Ship{By: work.Person("ann"), StartedAt: ago(10 * time.Minute), Step: work.ShipDeploy, MergeID: "m1", Commit: "fedcba9876543210", Error: "the deployment failed: make deploy ended with exit code 2", Reports: []string{"Store cards: the number is logged"}},
			CreatedAt:        ago(5 * time.Hour), UpdatedAt: ago(time.Minute),
		},
		Actions: []work.Act{work.ActReject, work.ActShip}, RootID: "root234567890123", Planner: "planner234567890", TaskIDs: []work.TaskID{"store23456789012", "pay2345678901234"},
		Progress: app.Progress{Tasks: 5, Completed: 1, Running: 1, Waiting: 1}, Attempts: 2, SpentUSD: 1.234,
		Needs: "the ship failed after the landing: the deployment failed: make deploy ended with exit code 2",
	}}
	api.epics = []work.EpicProgress{{Epic: work.Epic{ID: "e1", Name: "Payment"}, Stories: map[work.StoryStatus]int{work.Deployed: 2, work.DeployFailed: 1, work.Draft: 3, work.StoryCancelled: 1}}, {Epic: work.Epic{ID: "e2", Name: "Empty"}}}
	api.items = []work.Item{
		{Kind: work.ItemStory, StoryID: "giftcards2345678", Name: "Gift cards", Text: "the ship failed after the landing: the deployment failed: make deploy ended with exit code 2", Acts: []work.Act{work.ActReject, work.ActShip}},
		{Kind: work.ItemQuestion, StoryID: "giftcards2345678", TaskID: "pay2345678901234", Name: "Pay with a card", Text: "May a card be used for a part of the sum?", Actions: []work.Action{work.DoAnswer}},
		{Kind: work.ItemReview, TaskID: "fixbasket2345678", Name: "Fix", Text: "waits for a person's decision", Actions: []work.Action{work.DoAccept}},
	}
	step := func(d time.Duration, kind string, name work.ShipStep) work.Event {
		return work.Event{Seq: int64(100 + len(api.events)), At: ago(d), Kind: kind, Body: map[string]any{"step": name}}
	}
	api.events = []work.Event{{Seq: 3, At: ago(5 * time.Hour), Kind: "story.created"}}
	for _, e := range []work.Event{
		step(time.Hour, "ship.started", work.ShipAccept), step(10*time.Minute, "ship.started", work.ShipAccept), step(10*time.Minute-2*time.Second, "ship.step", work.ShipValidate), step(9*time.Minute, "ship.step", work.ShipLand),
		step(9*time.Minute-time.Second, "ship.step", work.ShipPush), step(9*time.Minute-time.Second, "ship.step", work.ShipDeploy), step(8*time.Minute, "ship.failed", work.ShipDeploy),
	} {
		e.Seq = int64(100 + len(api.events))
		api.events = append(api.events, e)
	}
	api.executions = []*work.Execution{
		{ID: "x1", TaskID: "root234567890123", Kind: work.AgentRun, Number: 1, State: work.ExecutionEnded, Outcome: work.Success, CreatedAt: ago(time.Hour)},
		{ID: "x2", TaskID: "root234567890123", Kind: work.GateRun, Number: 2, State: work.ExecutionEnded, Outcome: work.Success, CreatedAt: ago(time.Hour)},
		{ID: "x3", TaskID: "root234567890123", Kind: work.DeployRun, Number: 3, State: work.ExecutionEnded, Outcome: work.Success, Gates: []work.GateResult{{Command: "make deploy", ExitCode: 2}}, CreatedAt: ago(9 * time.Minute)},
	}
	return api
}

// draftOf makes the story a draft that nobody has approved.
func draftOf(api *fake) *fake {
	v := api.stories[0]
	v.Status, v.Ship, v.ValidationResult, v.Actions, v.Attempts, v.Progress = work.Draft, nil, nil, []work.Act{work.ActEdit, work.ActApprove, work.ActCancel}, 1, app.Progress{}
	v.PlanError = "tasks[0] \"Store cards\": instructions are missing"
	api.tree = &app.TreeNode{Task: &work.Task{ID: "root000000000000", Name: v.Name, State: work.Pending, AttemptNo: 1}}
	api.items = []work.Item{{Kind: work.ItemStory, StoryID: v.ID, Name: v.Name, Text: "the story's plan awaits approval", Acts: v.Actions}}
	v.Needs = api.items[0].Text
	return api
}

// deepTree is a chain of so many tasks, one below the other.
func deepTree(levels int) *app.TreeNode {
	n := &app.TreeNode{Task: &work.Task{ID: work.TaskID(fmt.Sprintf("level%02d0000", levels)), Name: fmt.Sprintf("Level %d", levels), State: work.Running, AttemptNo: 1}}
	if levels > 1 {
		n.Children = []*app.TreeNode{deepTree(levels - 1), {Task: &work.Task{ID: work.TaskID(fmt.Sprintf("side%02d00000", levels)), Name: "Beside", State: work.Completed, AttemptNo: 1}}}
	}
	if levels == 1 {
		n.Judges = []*work.Task{{ID: "deepjudge", Agent: work.AgentSpec{Role: work.EvaluatorCorrectness}, State: work.Running}}
	}
	return n
}

package app_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

// A task's own timeout goes before the server's, and never beyond its wall.
func TestTimeoutOfARun(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "a.db"))
	s.project(t)
	for given, want := range map[time.Duration]time.Duration{0: 30 * time.Minute, time.Minute: time.Minute, 3 * time.Hour: time.Hour} {
		task := s.create(t, app.TaskRequest{Timeout: work.Duration(given), Start: true})
		runs, err := s.Executions(s.ctx, string(task.ID))
		if err != nil || len(runs) != 1 {
			t.Fatalf("%d executions, %v", len(runs), err)
		}
		plan, err := s.PlanRun(s.ctx, task.TreeID, runs[0].ID)
		if err != nil || plan.Timeout != want {
			t.Errorf("with %s: %+v, %v, want %s", given, plan, err, want)
		}
	}
}

// A planner works in a throw-away workspace of the branch as it is, for the time that
// it or its role is given, and goes on with its conversation when it was answered.
func TestPlannersRun(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "a.db"))
	s.project(t)
	begun, err := s.Elaborate(s.ctx, app.ElaborateInput{Goal: "a bridge", Agent: "model"})
	if err != nil {
		t.Fatal(err)
	}
	task, err := s.Task(s.ctx, string(begun.TaskID))
	if err != nil {
		t.Fatal(err)
	}
	plan := func() *app.RunPlan {
		t.Helper()
		runs, err := s.Executions(s.ctx, string(task.ID))
		if err != nil || len(runs) == 0 {
			t.Fatal(runs, err)
		}
		p, err := s.PlanRun(s.ctx, task.TreeID, runs[len(runs)-1].ID)
		if err != nil || p.Refusal != nil {
			t.Fatal(p, err)
		}
		return p
	}
	first := plan()
	if !first.Detached || first.Base != "" || first.On != nil || first.Spec.Type != "model" || first.Timeout != 30*time.Minute || first.Facts != nil || first.Commands != nil {
		t.Errorf("%+v", first)
	}
	timeout := work.Duration(20 * time.Minute)
	if _, err := s.SetRole(s.ctx, "planner", app.RoleInput{Timeout: &timeout}); err != nil {
		t.Fatal(err)
	}
	if p := plan(); p.Timeout != 20*time.Minute {
		t.Errorf("with a role: %s", p.Timeout)
	}
	x := first.Execution.ID
	for _, c := range []work.Command{
		work.Begin{Execution: x, Node: "n", Lease: task.CreatedAt.Add(time.Minute), Spec: first.Spec},
		work.Ask{Execution: x, Question: work.Question{Text: "over which river?"}},
		work.End{Execution: x, Fence: 1, Outcome: work.Asked, Handle: "talk-1"},
	} {
		if err := s.Do(s.ctx, task.TreeID, work.System(), c); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.AnswerTask(s.ctx, string(task.ID), "the Spree"); err != nil {
		t.Fatal(err)
	}
	if p := plan(); p.Resume != "talk-1" || !strings.Contains(p.News, "the Spree") || !p.Detached || p.Base != "" {
		t.Errorf("answered: resumes %q with %q, %+v", p.Resume, p.News, p)
	}
}

// What a project says of a role holds there, on top of what holds for all.
func TestRolesOfAProject(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "a.db"))
	s.project(t)
	other, repo := "q", "/other"
	if _, err := s.AddProject(s.ctx, app.ProjectInput{Name: &other, Repository: &repo}); err != nil {
		t.Fatal(err)
	}
	set := func(in app.RoleInput) {
		t.Helper()
		if _, err := s.SetRole(s.ctx, "builder", in); err != nil {
			t.Fatal(err)
		}
	}
	spec := func(project string) (work.AgentSpec, string) {
		t.Helper()
		task := s.create(t, app.TaskRequest{Project: project, Agent: app.AgentInput{Role: "builder", Instructions: "x"}, Start: true})
		runs, err := s.Executions(s.ctx, string(task.ID))
		if err != nil || len(runs) != 1 {
			t.Fatal(runs, err)
		}
		plan, err := s.PlanRun(s.ctx, task.TreeID, runs[0].ID)
		if err != nil {
			t.Fatal(err)
		}
		return plan.Spec, plan.Prompt
	}
	model, small, prompt, off, budget := "model", "small", "Build bells.", false, 2.0
	set(app.RoleInput{Agent: &model, Model: &small, MaxBudgetUSD: &budget})
	set(app.RoleInput{Project: "p", Prompt: &prompt})
	for _, tt := range []struct{ project, prompt string }{{"p", "Build bells.\n\n# Task"}, {"q", "You are a builder"}} {
		got, text := spec(tt.project)
		if got.Type != "model" || got.Model != "small" || got.MaxBudgetUSD != 2 || !strings.HasPrefix(text, tt.prompt) {
			t.Errorf("in %s: %+v, prompt %.40q", tt.project, got, text)
		}
	}
	command := "command"
	set(app.RoleInput{Project: "p", Agent: &command, Command: &[]string{"true"}})
	if got, _ := spec("p"); got.Type != "command" || got.Model != "" || got.Command[0] != "true" {
		t.Errorf("with an agent of its own: %+v", got)
	}
	set(app.RoleInput{Project: "p", Active: &off})
	if got, text := spec("p"); got.Type != "model" || !strings.HasPrefix(text, "You are a builder") {
		t.Errorf("taken back: %+v, prompt %.40q", got, text)
	}
	if all, err := s.Role(s.ctx, "builder"); err != nil || len(all) != 5 || all[0].Version != 0 || all[0].Active || all[4].ProjectID == "" {
		t.Errorf("versions %+v, %v", all, err)
	}
	if _, err := s.SetRole(s.ctx, "builder", app.RoleInput{Project: "nowhere", Prompt: &prompt}); work.CodeOf(err) != work.NotFound {
		t.Errorf("unknown project: %v", err)
	}
	if all, err := s.Role(s.ctx, "checker"); err != nil || len(all) != 1 || !all[0].Active || !strings.HasPrefix(all[0].Prompt, "You are the checker") {
		t.Errorf("what comes with the program: %+v, %v", all, err)
	}
}

// TestModelOfAnotherJudge: where another agent judges than the role's model was meant
// for, it runs with its own model.
func TestModelOfAnotherJudge(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "a.db"), func(o *app.Options) { o.Defaults.Judges = []string{"model"} })
	s.project(t)
	if _, err := s.SetRole(s.ctx, "checker", app.RoleInput{Model: new("of-another")}); err != nil {
		t.Fatal(err)
	}
	task := s.create(t, app.TaskRequest{Agent: app.AgentInput{Type: "other", Instructions: "x"}, Review: "checked", Start: true})
	run := s.running(t, task.ID)
	if err := s.Do(s.ctx, task.TreeID, work.System(), work.End{Execution: run.Execution, Fence: 1, Outcome: work.Success, Base: "b", Head: "h", Result: &work.Result{Base: "b", Head: "h", Files: 1}}); err != nil {
		t.Fatal(err)
	}
	node, err := s.TaskTree(s.ctx, string(task.ID))
	if err != nil || len(node.Judges) != 1 {
		t.Fatalf("judged by %+v, %v", node, err)
	}
	runs, err := s.Executions(s.ctx, string(node.Judges[0].ID))
	if err != nil || len(runs) != 1 {
		t.Fatal(runs, err)
	}
	plan, err := s.PlanRun(s.ctx, task.TreeID, runs[0].ID)
	if err != nil || plan.Spec.Type != "model" || plan.Spec.Model != "" {
		t.Errorf("%+v, %v; want the agent model without a model", plan, err)
	}
}

// TestAgentOfTheRole: a task whose role says who plays it needs no other agent.
func TestAgentOfTheRole(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "a.db"), func(o *app.Options) { o.Defaults.Agent = "" })
	s.project(t)
	in := app.TaskRequest{Name: "a task", Agent: app.AgentInput{Role: "builder", Instructions: "x"}, Start: true}
	if _, err := s.CreateTask(s.ctx, in); reason(err) != "no_agent" {
		t.Errorf("without any agent: %v", err)
	}
	if _, err := s.SetRole(s.ctx, "builder", app.RoleInput{Agent: new("model")}); err != nil {
		t.Fatal(err)
	}
	task := s.create(t, in)
	runs, err := s.Executions(s.ctx, string(task.ID))
	if err != nil || len(runs) != 1 {
		t.Fatal(runs, err)
	}
	if plan, err := s.PlanRun(s.ctx, task.TreeID, runs[0].ID); err != nil || plan.Refusal != nil || plan.Spec.Type != "model" {
		t.Errorf("%+v, %v", plan, err)
	}
}

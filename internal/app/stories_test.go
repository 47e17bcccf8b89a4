package app_test

import (
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

// house is a server with a project p.
func house(t *testing.T) *server {
	t.Helper()
	s := open(t, filepath.Join(t.TempDir(), "a.db"))
	s.project(t)
	return s
}

func plan(name, branch string) app.ApproveInput {
	return app.ApproveInput{PlanInput: app.PlanInput{
		Name: name, BranchName: branch, Tasks: []app.PlanTaskInput{{Name: "two", Instructions: "2", DependsOn: []string{"one"}}, {Name: "one", Instructions: "1"}},
	}}
}

func TestApprovedPlanNamesItsTasksInOrder(t *testing.T) {
	t.Parallel()
	s := house(t)
	got, err := s.ApprovePlan(s.ctx, plan("a story", ""))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, id := range got.TaskIDs {
		task, err := s.Task(s.ctx, string(id))
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, task.Name)
	}
	if !slices.Equal(names, []string{"two", "one"}) || got.Story.Status != work.InProgress || got.Story.BranchName != "story/a-story" {
		t.Errorf("it has %v, is %s, on %s", names, got.Story.Status, got.Story.BranchName)
	}
}

// TestOneRequestIsOneStory: also when it is repeated by many at once.
func TestOneRequestIsOneStory(t *testing.T) {
	t.Parallel()
	s := house(t)
	in := plan("once", "")
	in.IdempotencyKey = "k"
	ids := make([]work.StoryID, 10)
	var wait sync.WaitGroup
	for i := range ids {
		wait.Go(func() {
			got, err := s.ApprovePlan(s.ctx, in)
			if err != nil {
				t.Error(err)
				return
			}
			ids[i] = got.Story.ID
		})
	}
	wait.Wait()
	if len(slices.Compact(ids)) != 1 {
		t.Errorf("one key made %v", ids)
	}
	in.Name = "other"
	if _, err := s.ApprovePlan(s.ctx, in); reason(err) != "key_reused" {
		t.Errorf("another request with the key: %v", err)
	}
}

// TestStoriesDoNotShareBranches: a name that is asked for is refused, one that is
// made is made another.
func TestStoriesDoNotShareBranches(t *testing.T) {
	t.Parallel()
	s := house(t)
	for _, c := range []struct{ name, asked, got, refused string }{
		{"Fix it!", "", "story/fix-it", ""},
		{"fix IT", "", "story/fix-it-2", ""},
		{"asked", "story/fix-it", "", "branch_taken"},
		{"below", "story/fix-it/more", "", "branch_taken"},
		{"above", "story", "", "branch_taken"},
		{"case", "Story/Fix-It", "", "branch_taken"},
		{"target", "main", "", "branch_taken"},
		{"odd", "a..b", "", "plan"},
		{"own", "feature/own", "feature/own", ""},
		{"☃ ☃", "", "story/unnamed", ""},
	} {
		got, err := s.ApprovePlan(s.ctx, plan(c.name, c.asked))
		if reason(err) != c.refused {
			t.Errorf("%s: %v, want %q", c.name, err, c.refused)
		}
		if err == nil && got.Story.BranchName != c.got {
			t.Errorf("%s is on %s, want %s", c.name, got.Story.BranchName, c.got)
		}
	}
	draft := plan("draft", "")
	draft.Draft = true
	got, err := s.ApprovePlan(s.ctx, draft)
	if err != nil || got.Story.Status != work.Draft {
		t.Fatalf("the draft: %+v, %v", got, err)
	}
	taken := "story/fix-it-2"
	if _, err := s.EditStory(s.ctx, string(got.Story.ID), app.StoryPatch{BranchName: &taken}); reason(err) != "branch_taken" {
		t.Errorf("an edit to a branch that is taken: %v", err)
	}
	if _, err := s.CancelStory(s.ctx, "Fix it!"); err != nil {
		t.Fatal(err)
	}
	if again, err := s.ApprovePlan(s.ctx, plan("asked", "story/fix-it")); err != nil || again.Story.BranchName != "story/fix-it" {
		t.Errorf("the branch of a cancelled story is not free: %v", err)
	}
}

// TestWhatAStoryNeeds is one sentence, from a draft to what is deployed; nothing while
// something goes on by itself.
func TestWhatAStoryNeeds(t *testing.T) {
	t.Parallel()
	s := house(t)
	needs := func(ref, want string) *app.StoryView {
		t.Helper()
		got, err := s.Story(s.ctx, ref)
		if err != nil || got.Needs != want {
			t.Errorf("%s needs %q, want %q (%v)", got.Status, got.Needs, want, err)
		}
		return got
	}
	must := func(tree work.TreeID, command work.Command) {
		t.Helper()
		if err := s.Do(s.ctx, tree, work.System(), command); err != nil {
			t.Fatal(err)
		}
	}
	made, err := s.Elaborate(s.ctx, app.ElaborateInput{Goal: "learn"})
	if err != nil {
		t.Fatal(err)
	}
	needs("learn", "")
	c := s.running(t, made.TaskID)
	if err := s.Ask(s.ctx, c, work.Question{Text: "what?"}); err != nil {
		t.Fatal(err)
	}
	must(c.Tree, work.End{Execution: c.Execution, Fence: 1, Outcome: work.Asked})
	needs("learn", "1 thing in its tree needs you")

	if _, err := s.ApprovePlan(s.ctx, app.ApproveInput{PlanInput: app.PlanInput{Name: "whole"}, Draft: true}); err != nil {
		t.Fatal(err)
	}
	needs("whole", "the story's plan awaits approval")
	if _, err := s.ApproveStory(s.ctx, "whole"); err != nil {
		t.Fatal(err)
	}
	root := needs("whole", "").RootTaskID
	c = s.running(t, root)
	must(c.Tree, work.End{Execution: c.Execution, Fence: 1, Outcome: work.Success, Base: "b", Head: "h", Result: &work.Result{Base: "b", Head: "h", NoChanges: true}})
	needs("whole", "the task at its root awaits a person: it changed nothing, and the agent gave no reason")
	if _, err := s.AcceptStory(s.ctx, "whole"); err != nil {
		t.Fatal(err)
	}
	needs("whole", "the story can be shipped")
	if _, err := s.ShipStory(s.ctx, "whole", app.ShipRequest{}); err != nil {
		t.Fatal(err)
	}
	m := needs("whole", "").Ship.MergeID
	must(c.Tree, work.LandConflict{Merge: m, Current: root, Files: []string{"a.go"}, Dir: "/there"})
	if got, err := s.Story(s.ctx, "whole"); err != nil || !got.Paused || !strings.HasPrefix(got.Needs, "the ship is paused: landing on main (merge "+string(m)+") conflicts in a.go") {
		t.Errorf("paused: %+v, %v", got, err)
	}
	must(c.Tree, work.ContinueMerge{Merge: m})
	if got := needs("whole", ""); got.Paused {
		t.Error("still paused")
	}
	must(c.Tree, work.Landed{Merge: m, Commit: "l"})
	must(c.Tree, work.Pushed{Task: root})
	needs("whole", "")
}

func TestAProjectWithAnOpenStoryStays(t *testing.T) {
	t.Parallel()
	s := house(t)
	draft := plan("draft", "")
	draft.Draft = true
	if _, err := s.ApprovePlan(s.ctx, draft); err != nil {
		t.Fatal(err)
	}
	if err := s.RemoveProject(s.ctx, "p"); reason(err) != "open_work" {
		t.Errorf("it was removed: %v", err)
	}
	if _, err := s.CancelStory(s.ctx, "draft"); err != nil {
		t.Fatal(err)
	}
	if err := s.RemoveProject(s.ctx, "p"); err != nil {
		t.Error(err)
	}
}

// TestABranchThatIsAFolder: where a story has the branch "story", others are named
// beside it.
func TestABranchThatIsAFolder(t *testing.T) {
	t.Parallel()
	s := house(t)
	if _, err := s.ApprovePlan(s.ctx, plan("first", "story")); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"story-second", "story-second-2"} {
		got, err := s.ApprovePlan(s.ctx, plan("second", ""))
		if err != nil || got.Story.BranchName != want {
			t.Fatalf("%+v, %v; want %s", got, err, want)
		}
	}
}

// TestWhatAPlannerReports: what is wrong with a plan is told in place, and kept until
// a plan is right.
func TestWhatAPlannerReports(t *testing.T) {
	t.Parallel()
	s := house(t)
	made, err := s.Elaborate(s.ctx, app.ElaborateInput{Goal: "learn"})
	if err != nil {
		t.Fatal(err)
	}
	c := s.running(t, made.TaskID)
	if err := s.Report(s.ctx, c, app.RunReport{Lessons: &[]string{"one"}}); reason(err) != "not_offered" {
		t.Errorf("a planner reports lessons: %v", err)
	}
	if err := s.Report(s.ctx, c, app.RunReport{Plan: &app.PlanInput{Name: "x", Policy: "checked"}}); reason(err) != "plan" {
		t.Errorf("a plan without tasks: %v", err)
	}
	story, err := s.Story(s.ctx, string(made.StoryID))
	if err != nil || story.PlanError == "" || story.Planner != made.TaskID {
		t.Errorf("what was wrong is not kept: %+v, %v", story, err)
	}
	if _, err := s.ApprovePlan(s.ctx, plan("other", "story/taken")); err != nil {
		t.Fatal(err)
	}
	for _, branch := range []string{"story/taken", "main", "story"} {
		if err := s.Report(s.ctx, c, app.RunReport{Plan: &app.PlanInput{Name: "x", BranchName: branch}}); reason(err) != "plan" {
			t.Errorf("a plan on branch %s: %v", branch, err)
		}
	}
	if err := s.Report(s.ctx, c, app.RunReport{Plan: &app.PlanInput{Name: "x"}}); err != nil {
		t.Error(err)
	}
	if story, err = s.Story(s.ctx, string(made.StoryID)); err != nil || story.PlanError != "" || story.Plan == nil {
		t.Errorf("the plan is not there: %+v, %v", story, err)
	}
}

// TestLessonsOfARetro replace what it reported before, and leave a person's alone.
func TestLessonsOfARetro(t *testing.T) {
	t.Parallel()
	s := house(t)
	if _, err := s.SetProject(s.ctx, "p", app.ProjectInput{Lessons: &[]string{"a person's"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.SetRole(s.ctx, "retro", app.RoleInput{Command: &[]string{"true"}}); err != nil {
		t.Fatal(err)
	}
	retro := s.running(t, s.deployed(t))
	for _, c := range []struct {
		says []string
		want []string
	}{
		{[]string{"one", " two\n lines ", "one", ""}, []string{"a person's", "one", "two lines"}},
		{[]string{"two lines", "three"}, []string{"a person's", "two lines", "three"}},
		{[]string{}, []string{"a person's"}},
	} {
		if err := s.Report(s.ctx, retro, app.RunReport{Lessons: &c.says}); err != nil {
			t.Fatal(err)
		}
		if p, err := s.Project(s.ctx, "p"); err != nil || !slices.Equal(p.Lessons, c.want) {
			t.Errorf("after %q the project has %q, want %q (%v)", c.says, p.Lessons, c.want, err)
		}
	}
	many := make([]string, 11)
	if err := s.Report(s.ctx, retro, app.RunReport{Lessons: &many}); reason(err) != "invalid" {
		t.Errorf("eleven lessons: %v", err)
	}
}

// deployed takes a story all the way, and gives its retro.
func (s *server) deployed(t *testing.T) (retro work.TaskID) {
	t.Helper()
	got, err := s.ApprovePlan(s.ctx, app.ApproveInput{PlanInput: app.PlanInput{Name: "whole"}})
	if err != nil {
		t.Fatal(err)
	}
	root := got.Story.RootTaskID
	c := s.running(t, root)
	must := func(command work.Command) {
		t.Helper()
		if err := s.Do(s.ctx, c.Tree, work.System(), command); err != nil {
			t.Fatal(err)
		}
	}
	must(work.End{Execution: c.Execution, Fence: 1, Outcome: work.Success, Base: "b", Head: "h", Result: &work.Result{Base: "b", Head: "h", Files: 1}})
	if _, err := s.AcceptStory(s.ctx, "whole"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.ShipStory(s.ctx, "whole", app.ShipRequest{}); err != nil {
		t.Fatal(err)
	}
	story, err := s.Story(s.ctx, "whole")
	if err != nil {
		t.Fatal(err)
	}
	must(work.Landed{Merge: story.Ship.MergeID, Commit: "l"})
	must(work.Pushed{Task: root})
	err = s.View(s.ctx, c.Tree, func(tree *work.Tree) error {
		for _, task := range tree.Tasks() {
			if task.Role() == work.Retro {
				retro = task.ID
			}
		}
		return nil
	})
	if err != nil || retro == "" {
		t.Fatalf("no retro: %v", err)
	}
	return retro
}

// running begins a task's waiting execution, as the engine would.
func (s *server) running(t *testing.T, id work.TaskID) app.RunCaller {
	t.Helper()
	runs, err := s.Executions(s.ctx, string(id))
	if err != nil || len(runs) == 0 {
		t.Fatalf("runs of %s: %v, %v", id, runs, err)
	}
	x := runs[len(runs)-1]
	if err := s.Do(s.ctx, x.TreeID, work.System(), work.Begin{Execution: x.ID, Node: "here", Spec: work.AgentSpec{Type: "command"}, TokenHash: app.HashSecret("secret")}); err != nil {
		t.Fatal(err)
	}
	return app.RunCaller{Execution: x.ID, Task: id, Tree: x.TreeID}
}

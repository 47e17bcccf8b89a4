package review_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/claudomator/claudomator/internal/review"
	"github.com/claudomator/claudomator/internal/work"
)

// The tests here are named after what section 7 says of a story until it is approved.

func TestPlan_AStoryBeginsAsADraftThatRunsNothing(t *testing.T) {
	s := newStage(t)
	story := s.write(work.StoryInput{Name: " ", Goal: "  people can log in\nand out "})
	s.status(story, work.Draft)
	s.is("R PENDING")
	if story.Name != "people can log in" || story.RootTaskID != "R" || s.task("R").StoryID != "S" || s.task("R").Role() != work.Builder {
		t.Errorf("the story is %+v, its root %+v", story, s.task("R"))
	}
	s.due()
	s.acts(work.ActEdit, work.ActCancel)
	s.remarks("the story has no plan")
	s.denied(work.ApproveStory{}, work.Illegal, "no_plan")
	s.denied(work.ShipStory{}, work.Illegal, "not_shippable")
	s.denied(work.StopDeploy{}, work.Illegal, "not_deploying")
}

func TestPlan_WhatAStoryIsMadeWithIsChecked(t *testing.T) {
	s := newStage(t)
	for name, c := range map[string]work.CreateStory{
		"nothing":              {},
		"no goal to elaborate": {Input: work.StoryInput{Name: "n"}, Elaborate: true},
		"unknown policy":       {Input: work.StoryInput{Name: "n", Policy: "human"}},
		"bad branch":           {Input: work.StoryInput{Name: "n", BranchName: "a b"}},
		"bad plan":             {Input: work.StoryInput{Plan: plan("", part(""))}},
		"checked, no tasks":    {Input: work.StoryInput{Policy: "checked", Plan: plan("")}},
	} {
		c.ID, c.Root = "S", "R"
		if _, err := s.draft(s.project, c); work.CodeOf(err) != work.Invalid {
			t.Errorf("%s: %v", name, err)
		}
		s.trees = nil
	}
	s.write(work.StoryInput{Name: "n", Policy: "checked"}) // its plan may still come
	if err := s.do(s.tree("R"), alice, work.CreateStory{ID: "S", Root: "R", Input: work.StoryInput{Name: "n"}}); work.CodeOf(err) != work.Conflict {
		t.Errorf("made twice: %v", err)
	}
}

func TestPlan_APlannerReportsIt(t *testing.T) {
	s := newStage(t)
	story := s.elaborate()
	s.tells("story.created R", "task.created "+planner)
	s.is("R PENDING", planner+" QUEUED(slot)")
	s.due("start_execution " + planner)
	if p := s.task(planner); p.Role() != work.Planner || p.Agent.Instructions != "people can log in" || p.ParentTaskID != "" || p.StoryID != "S" {
		t.Errorf("the planner is %+v", p)
	}
	s.acts(work.ActCancel)
	s.listed("R") // it is under way
	s.start(planner)
	if err := s.reports(plan("", part("one"))); err != nil {
		t.Fatal(err)
	}
	if err := s.reports(plan("", part("one"), part("two", "one"))); err != nil { // the last one counts
		t.Fatal(err)
	}
	s.denied(work.ApproveStory{}, work.Illegal, "planning")
	s.end(planner, success(""))
	s.is(planner+" COMPLETED", "R PENDING") // no review, whatever the project's policy
	s.status(story, work.Draft)
	if len(story.Plan.Tasks) != 2 || story.Name != "Log in" || story.PlannedBy != planner {
		t.Errorf("the story is %+v", story)
	}
	s.acts(work.ActEdit, work.ActApprove, work.ActCancel)
	s.remarks("the story's plan awaits approval")
}

func TestPlan_APlannerCanAskFirst(t *testing.T) {
	s := newStage(t)
	s.elaborate()
	s.start(planner)
	s.asks(planner, "which one?")
	s.listed("R", planner+" question")
	s.denied(work.EditStory{Plan: plan("")}, work.Illegal, "planning")
	s.ask(work.AnswerTask{Task: planner, Text: "that"})
	s.start(planner)
	if err := s.reports(plan("")); err != nil {
		t.Fatal(err)
	}
	s.end(planner, success(""))
	s.remarks("the story's plan awaits approval")
}

// TestPlan_ABrokenPlanIsReturnedOnce: to the planner with what is wrong, then to a person.
func TestPlan_ABrokenPlanIsReturnedOnce(t *testing.T) {
	s := newStage(t)
	story := s.elaborate()
	x := s.start(planner)
	bad := s.reports(plan("", part("one", "two")))
	e, _ := work.AsError(bad)
	if e == nil || e.Reason != "plan" || !strings.Contains(e.Message, `names no task of the plan: "two"`) || story.Plan != nil {
		t.Fatalf("told %v, the story has %+v", bad, story.Plan)
	}
	s.report(work.PlanRefused{Execution: x.ID, Problems: e.Message})
	s.end(planner, success(""))
	s.is(planner + " QUEUED(slot)")
	if !strings.Contains(story.PlanError, "names no task of the plan") {
		t.Errorf("it is told %q", story.PlanError)
	}
	s.listed("R")
	s.run(planner, success(""))
	s.is(planner + " FAILED")
	s.listed("R", " story")
	s.remarks("the story has no usable plan: " + e.Message + again)
	s.acts(work.ActEdit, work.ActCancel)

	// A person's retry is a new beginning: it is told once again.
	s.ask(work.RetryTask{Task: planner})
	s.run(planner, success(""))
	s.is(planner + " QUEUED(slot)")
	s.start(planner)
	if err := s.reports(plan("")); err != nil {
		t.Fatal(err)
	}
	s.end(planner, success(""))
	s.is(planner + " COMPLETED")
	s.remarks("the story's plan awaits approval")
	if story.PlanError != "" {
		t.Errorf("what was wrong is still said: %s", story.PlanError)
	}
}

func TestPlan_SilenceIsAMissingPlan(t *testing.T) {
	s := newStage(t)
	s.elaborate()
	s.run(planner, success(""))
	s.is(planner + " QUEUED(slot)")
	s.run(planner, success(""))
	s.is(planner + " FAILED")
	s.remarks("the story has no usable plan: the planner ended without reporting a plan" + again)
}

// again is what a person is told to do about a planner that has ended badly.
const again = "; retry its planner, task " + planner + ", or give it a plan"

// TestPlan_WhatTheStoryAsksForBindsThePlan: a checked story needs tasks, and its
// planner hears it.
func TestPlan_WhatTheStoryAsksForBindsThePlan(t *testing.T) {
	s := newStage(t)
	tree, err := s.draft(s.project, work.CreateStory{ID: "S", Root: "R", Input: work.StoryInput{Goal: "g", Policy: "checked"}, Elaborate: true})
	if err != nil {
		t.Fatal(err)
	}
	s.start(planner)
	if err := s.reports(plan("")); work.CodeOf(err) != work.Invalid || tree.Story.Plan != nil {
		t.Errorf("told %v, and the story has %+v", err, tree.Story.Plan)
	}
	if err := s.reports(plan("", part("one"))); err != nil || tree.Story.Policy != "checked" {
		t.Errorf("told %v, the policy is %s", err, tree.Story.Policy)
	}
}

func TestPlan_OnlyTheRunningPlannerOfADraftReports(t *testing.T) {
	s := newStage(t)
	s.approved(plan("", part("one")))
	x := s.start("child.R.one")
	err := s.do(s.tree("R"), work.System(), work.Report{Execution: x.ID, Plan: plan("")})
	if e, _ := work.AsError(err); e == nil || e.Reason != "not_a_planner" {
		t.Errorf("a builder's plan: %v", err)
	}
	s.late(work.PlanRefused{Execution: x.ID, Problems: "late"})

	d := newWorldStage(s)
	d.elaborate()
	run := d.start(planner)
	d.ask(work.CancelTask{Task: planner})
	d.late(work.Report{Execution: run.ID, Plan: plan("")})
	d.late(work.PlanRefused{Execution: run.ID, Problems: "late"})
	d.stops(planner)
	d.is(planner + " CANCELLED")
	d.listed("R", " story")
	d.acts(work.ActEdit, work.ActCancel)
}

// newWorldStage is another stage of the same test.
func newWorldStage(s *stage) *stage {
	return &stage{world: newWorld(), t: s.t, project: s.project}
}

func TestPlan_EditChangesADraftAndAfterwardsOnlyNameAndEpic(t *testing.T) {
	s := newStage(t)
	story := s.elaborate()
	name, spec, empty, epic := " Sign in ", "as said", "", work.EpicID("E")
	s.denied(work.EditStory{Spec: &spec}, work.Illegal, "planning")
	s.denied(work.EditStory{Plan: plan("")}, work.Illegal, "planning")
	s.tell(work.EditStory{Name: &name}) // that never hurts
	s.ask(work.CancelTask{Task: planner})
	policy, branch, criteria := "checked", "story/log-in", []string{"it works"}
	s.tell(work.EditStory{Spec: &spec, Policy: &policy, BranchName: &branch, AcceptanceCriteria: &criteria})
	s.denied(work.EditStory{Plan: plan("")}, work.Invalid, "plan") // checked needs tasks
	s.tell(work.EditStory{Plan: plan("", part("one")), EpicID: &epic})
	if story.Name != "Log in" || story.Spec != spec || story.Policy != "checked" || story.BranchName != branch || story.EpicID != epic || story.Goal != "people can log in" {
		t.Errorf("the story is %+v", story)
	}
	s.denied(work.EditStory{Name: &empty}, work.Invalid, "plan")
	s.denied(work.EditStory{BranchName: &name}, work.Invalid, "plan")
	s.tell(work.ApproveStory{})
	for _, c := range []work.EditStory{{Spec: &spec}, {Goal: &spec}, {Policy: &policy}, {AcceptanceCriteria: &criteria}, {Plan: plan("")}} {
		if e := s.denial(c, work.Illegal, "story_status"); e.Details["status"] != "IN_PROGRESS" {
			t.Errorf("it says %v", e.Details)
		}
	}
	s.tell(work.EditStory{Name: &name, EpicID: &epic})
	s.tell(work.EditStory{Name: &name, EpicID: &epic}) // the same again is no error
	if story.Name != "Sign in" {
		t.Errorf("named %q", story.Name)
	}
	other := "story/sign-in" // until it is shipped, it can be given another branch
	s.tell(work.EditStory{BranchName: &other})
	s.denied(work.ApproveStory{}, work.Illegal, "story_status")
	s.tell(work.CancelStory{})
	s.denied(work.EditStory{BranchName: &other}, work.Illegal, "story_status")
}

// TestPlan_ApprovalMakesTheTree: ids in the plan's order, dependencies on later
// tasks too, subtasks in order after the task's own run.
func TestPlan_ApprovalMakesTheTree(t *testing.T) {
	s := newStage(t)
	one := part("one", " two ")
	one.AcceptanceCriteria = []string{"it works"}
	one.Subtasks = []work.PlanSubtask{{Name: "first", Instructions: "f"}, {Name: "second", Instructions: "s"}}
	p := plan("", one, part("two"))
	p.BranchName, p.AcceptanceCriteria = "story/log-in", []string{"people log in"}
	story := s.write(work.StoryInput{Plan: p})
	s.news()
	s.tell(work.ApproveStory{})
	s.status(story, work.InProgress)
	s.tells("story.in_progress R", "task.created child.R.one", "task.created child.child.R.one.first", "task.created child.child.R.one.second",
		"task.created child.R.two", "task.blocked R", "task.queued child.R.one", "task.queued child.R.two")
	s.is("R BLOCKED(children)", "child.R.one QUEUED(dependencies)", "child.R.two QUEUED(slot)", "child.child.R.one.first PENDING")
	s.due("start_execution child.R.two")
	root, made := s.task("R"), s.task("child.R.one")
	if root.Agent.Instructions != "people can log in" || root.BranchName != "story/log-in" || !slices.Equal(root.AcceptanceCriteria, p.AcceptanceCriteria) || root.Name != "Log in" {
		t.Errorf("the root is %+v", root)
	}
	if made.Role() != work.Builder || made.Kind != work.Subtask || made.Origin != work.FromPlan || made.StoryID != "S" || !slices.Equal(made.AcceptanceCriteria, one.AcceptanceCriteria) {
		t.Errorf("the task is %+v", made)
	}
	if got := s.tree("R").Children("R"); !slices.Equal(got, []work.Position{"child.R.one", "child.R.two"}) {
		t.Errorf("children %v", got)
	}
	for _, id := range []work.TaskID{"child.child.R.one.first", "child.child.R.one.second"} {
		if sub := s.task(id); sub.Role() != work.NoRole || review.For(s.tree("R"), sub).Name != "none" {
			t.Errorf("the subtask is %+v", sub)
		}
	}
	s.run("child.R.two", success("t1"))
	s.approve("child.R.two")
	s.integrates("child.R.two")
	s.run("child.R.one", success("o1"))
	s.is("child.R.one BLOCKED(children)", "child.child.R.one.first QUEUED(slot)", "child.child.R.one.second QUEUED(dependencies)")
	s.run("child.child.R.one.first", success("f1"))
	s.integrates("child.child.R.one.first")
	s.is("child.child.R.one.second QUEUED(slot)")
	s.run("child.child.R.one.second", success("s1"))
	s.integrates("child.child.R.one.second")
	s.is("child.R.one READY(judges)")
	s.approve("child.R.one")
	s.integrates("child.R.one")
	s.is("R READY(judges)")
	if runs := s.tree("R").Runs("R", work.AgentRun); len(runs) != 0 {
		t.Errorf("the root has run: %+v", runs)
	}
}

func TestPlan_WithoutTasksTheRootRuns(t *testing.T) {
	s := newStage(t)
	story := s.approved(plan(""))
	s.status(story, work.InProgress)
	s.is("R QUEUED(slot)")
	s.run("R", success("r1"))
	s.is("R READY(judges)")
}

func TestPlan_TheRootsInstructionsAreGoalElseSpecElseName(t *testing.T) {
	for want, p := range map[string]work.Plan{
		"g": {Name: "n", Goal: " g ", Spec: "s"}, "s": {Name: "n", Spec: " s "}, "n": {Name: " n "},
	} {
		t.Run(want, func(t *testing.T) {
			s := newStage(t)
			s.write(work.StoryInput{Plan: &p})
			s.tell(work.ApproveStory{})
			if got := s.task("R").Agent.Instructions; got != want {
				t.Errorf("told %q", got)
			}
		})
	}
}

func TestPlan_CheckedWithoutTasksIsNotApproved(t *testing.T) {
	s := newStage(t)
	s.write(work.StoryInput{Plan: plan("")})
	policy := "checked"
	s.denied(work.EditStory{Policy: &policy}, work.Invalid, "plan")
	s.tree("R").Story.Policy = policy // however it came to be
	s.denied(work.ApproveStory{}, work.Invalid, "plan")
}

// TestPlan_BuildAndTestStepsAreGatesOfTheRootAlone: smoke steps never are.
func TestPlan_BuildAndTestStepsAreGatesOfTheRootAlone(t *testing.T) {
	s := newStage(t, gated)
	p := plan("", part("one"))
	p.Validation = append(smoke(), work.Validation{Type: work.TestValidation, Steps: []string{"t1", "t2"}}, work.Validation{Type: work.BuildValidation, Steps: []string{"b"}})
	s.approved(p)
	tree := s.tree("R")
	if got := tree.Commands(s.task("R"), work.GateRun); !slices.Equal(got, []string{"make test", "t1", "t2", "b"}) {
		t.Errorf("the root's gates are %q", got)
	}
	if got := tree.Commands(s.task("child.R.one"), work.GateRun); !slices.Equal(got, []string{"make test"}) {
		t.Errorf("the task's gates are %q", got)
	}
	if got := tree.Commands(s.task("R"), work.SmokeRun); !slices.Equal(got, []string{"curl -f http://localhost"}) {
		t.Errorf("the smoke steps are %q", got)
	}
}

// TestPlan_TheRootOfADraftIsTheStorysAlone: its task routes lead to the story.
func TestPlan_TheRootOfADraftIsTheStorysAlone(t *testing.T) {
	s := newStage(t)
	s.write(work.StoryInput{Plan: plan("")})
	text := "else"
	s.refused(work.StartTask{Task: "R"}, "story_draft")
	s.refused(work.PatchTask{Task: "R", Instructions: &text}, "story_draft")
	s.refused(work.CreateTask{ID: "x", Input: work.TaskInput{Name: "x", ParentTaskID: "R"}}, "story_draft")
	s.refused(work.CancelTask{Task: "R"}, "story_root")
	s.refused(work.RemoveTask{Task: "R"}, "story_root")
	s.refused(work.RetryTask{Task: "R"}, "wrong_state")
	s.refused(work.SubmitTask{Task: "R"}, "wrong_state")
	s.refused(work.MessageTask{Task: "R", Text: "hi"}, "wrong_state")
	s.refused(work.PostponeTask{Task: "R"}, "not_a_child")
	if got := s.tree("R").Actions(s.task("R")); len(got) != 0 {
		t.Errorf("it offers %v", got)
	}
}

// TestPlan_AFailedPlannerIsForgottenWithTheDraft: its plan came from someone else.
func TestPlan_AFailedPlannerIsForgottenWithTheDraft(t *testing.T) {
	s := newStage(t)
	s.elaborate()
	s.run(planner, ends(work.FailedRun, "no luck"))
	s.listed("R", " story")
	s.remarks("the story has no plan: its planner ended: no luck" + again)
	s.tell(work.EditStory{Plan: plan("")})
	s.tell(work.ApproveStory{})
	s.listed("R")
	s.refused(work.RetryTask{Task: planner}, "story_status")
	s.refused(work.CreateTask{ID: "x", Input: work.TaskInput{Name: "x", ParentTaskID: planner}}, "parent_ended")
}

func TestPlan_APlannerIsReviewedCountedAndLandedByNobody(t *testing.T) {
	s := newStage(t, gated)
	s.elaborate()
	s.start(planner)
	s.refused(work.CreateTask{ID: "x", Input: work.TaskInput{Name: "x", ParentTaskID: planner}}, "not_a_builder")
	if err := s.reports(plan("", part("one"))); err != nil {
		t.Fatal(err)
	}
	s.end(planner, success("p1"))
	s.is(planner + " COMPLETED")
	s.refused(work.StartMerge{Task: planner}, "not_top_level")
	s.refused(work.RejectTask{Task: planner, Comment: "no"}, "completed")
	s.tell(work.ApproveStory{})
	s.refused(work.PatchTask{Task: "child.R.one", DependsOn: &[]work.Position{planner}}, "cross_tree")
	s.ask(work.RemoveTask{Task: planner})
	s.is("R BLOCKED(children)")
}

package review_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claudomator/claudomator/internal/work"
)

// family is P with children a, b after a, and c after b, all waiting to start.
func family(t *testing.T, policy string) *stage {
	t.Helper()
	s := newStage(t)
	s.create("P", "none")
	add := func(id work.TaskID, after ...work.Position) {
		s.ask(work.CreateTask{ID: id, Input: work.TaskInput{Name: string(id), ParentTaskID: "P", Review: policy, DependsOn: after}})
	}
	add("a")
	add("b", "a")
	add("c", "b")
	s.run("P", success("p1"))
	s.is("P BLOCKED(children)", "a QUEUED(slot)", "b QUEUED(dependencies)", "c QUEUED(dependencies)")
	return s
}

func TestRule7_CascadeAndRevival(t *testing.T) {
	s := family(t, "none")
	s.run("a", ends(work.FailedRun, "no luck"))
	s.is("a FAILED", "b CANCELLED", "c CANCELLED", "P BLOCKED(children)")
	for _, id := range []work.TaskID{"b", "c"} {
		if got := s.task(id).Reason; got != "dependency a ended: no luck" {
			t.Errorf("%s says %q", id, got)
		}
	}
	s.listed("P", "P child")
	s.ask(work.RetryTask{Task: "a"})
	s.is("a QUEUED(slot)", "b QUEUED(dependencies)", "c QUEUED(dependencies)")
}

func TestRule7_RevivalSparesWhatHasAnotherBadDependency(t *testing.T) {
	s := family(t, "none")
	s.ask(work.CreateTask{ID: "x", Input: work.TaskInput{Name: "x", ParentTaskID: "P"}})
	both := []work.Position{"a", "x"}
	s.ask(work.PatchTask{Task: "b", DependsOn: &both})
	s.run("a", ends(work.FailedRun, ""))
	s.run("x", ends(work.FailedRun, ""))
	s.ask(work.RetryTask{Task: "a"})
	s.is("b CANCELLED", "c CANCELLED")
	s.refused(work.RetryTask{Task: "b"}, "bad_dependency")
	s.ask(work.RetryTask{Task: "x"})
	s.is("b QUEUED(dependencies)", "c QUEUED(dependencies)")
}

func TestRule7_WhatAPersonCancelledIsNeverRevived(t *testing.T) {
	s := family(t, "none")
	s.ask(work.CancelTask{Task: "b"})
	s.is("b CANCELLED", "c CANCELLED")
	s.run("a", ends(work.FailedRun, ""))
	s.ask(work.RetryTask{Task: "a"})
	s.is("b CANCELLED", "c CANCELLED")
	s.ask(work.RetryTask{Task: "b"}) // but by a person
	s.is("b QUEUED(dependencies)", "c QUEUED(dependencies)")
}

func TestRule7_RetryWhileADependencyIsBadNamesIt(t *testing.T) {
	s := family(t, "none")
	s.run("a", ends(work.FailedRun, ""))
	if e := s.refused(work.RetryTask{Task: "b"}, "bad_dependency"); e.Details["dependency"] != "a" {
		t.Errorf("it names %v", e.Details)
	}
}

func TestRule7_TheWaysOutOfABadChild(t *testing.T) {
	s := family(t, "none")
	s.run("a", ends(work.FailedRun, "no luck"))
	if item := s.inbox("P")[0]; item.TaskID != "P" || !strings.Contains(item.Text, "no luck") || !slices.Contains(item.Actions, work.DoCancel) {
		t.Errorf("the item is %+v", item)
	}
	for _, want := range []work.Action{work.DoRetry, work.DoDrop} {
		if !slices.Contains(s.tree("P").Actions(s.task("a")), want) {
			t.Errorf("a cannot be asked to %s", want)
		}
	}
	s.ask(work.CancelTask{Task: "P"})
	s.is("P CANCELLED", "a FAILED", "b CANCELLED", "c CANCELLED")
	s.listed("P") // what a person cancelled needs nobody
}

func TestRule7_DropIsFinalAndTakesItsCancelledDependantsAlong(t *testing.T) {
	s := family(t, "none")
	s.refused(work.DropTask{Task: "a"}, "wrong_state")
	s.run("a", ends(work.FailedRun, ""))
	s.news()
	s.ask(work.DropTask{Task: "a"})
	s.is("a FAILED dropped", "b CANCELLED dropped", "c CANCELLED dropped", "P COMPLETED")
	s.tells("task.dropped a", "task.dropped b", "task.dropped c", "task.ready P", "task.completed P")
	for _, id := range []work.TaskID{"a", "b"} {
		s.refused(work.DropTask{Task: id}, "dropped")
		s.refused(work.RetryTask{Task: id}, "dropped")
		s.refused(work.MessageTask{Task: id, Text: "hi"}, "dropped")
		s.refused(work.SubmitTask{Task: id}, "dropped")
	}
}

func TestRule7_DropSparesDependantsWhoseDependenciesWereEdited(t *testing.T) {
	s := family(t, "none")
	s.run("a", ends(work.FailedRun, ""))
	none := []work.Position{}
	s.ask(work.PatchTask{Task: "b", DependsOn: &none})
	s.is("b QUEUED(slot)", "c QUEUED(dependencies)")
	s.ask(work.DropTask{Task: "a"})
	s.is("a FAILED dropped", "b QUEUED(slot)", "c QUEUED(dependencies)", "P BLOCKED(children)")
}

func TestRule7_ChildrenOfABadlyEndedParentWaitAsPending(t *testing.T) {
	s := newStage(t)
	s.create("P", "none")
	s.start("P")
	one := s.spawn("P", "one")
	s.end("P", ends(work.FailedRun, "no luck"))
	s.is("P FAILED", string(one)+" PENDING")
	s.listed("P", "P ended")
	s.ask(work.RetryTask{Task: "P"})
	s.is("P QUEUED(slot)", string(one)+" PENDING") // the run failed: it runs again
	s.run("P", success("p1"))
	s.is("P BLOCKED(children)", string(one)+" QUEUED(slot)")
}

func TestRule7_CancelTakesPendingChildrenAlong(t *testing.T) {
	s := newStage(t)
	s.create("P", "none")
	s.start("P")
	one := s.spawn("P", "one")
	s.ask(work.CancelTask{Task: "P"})
	s.is("P CANCELLED", string(one)+" CANCELLED")
	s.ask(work.RetryTask{Task: "P"})
	s.is("P QUEUED(slot)", string(one)+" PENDING")
}

func TestRule7_RetryOfACancelledParentRestoresWhatTheCascadeTook(t *testing.T) {
	s := family(t, "human")
	s.ask(work.CreateTask{ID: "q", Input: work.TaskInput{Name: "q", ParentTaskID: "P"}})
	s.ask(work.CreateTask{ID: "r", Input: work.TaskInput{Name: "r", ParentTaskID: "P"}})
	s.ask(work.CreateTask{ID: "mine", Input: work.TaskInput{Name: "mine", ParentTaskID: "P"}})
	s.run("a", success("a1"))
	s.start("q")
	s.asks("q", "which?")
	s.start("r")
	s.ask(work.CancelTask{Task: "mine"})
	s.is("a READY(person)", "q BLOCKED(question)", "r RUNNING", "b QUEUED(dependencies)")
	s.ask(work.CancelTask{Task: "P"})
	s.is("P CANCELLED", "a CANCELLED", "b CANCELLED", "c CANCELLED", "q CANCELLED", "r CANCELLED")
	s.stops("r")
	runs := s.task("P").Book.Executions
	s.ask(work.RetryTask{Task: "P"})
	s.is("P BLOCKED(children)", "a READY(person)", "b QUEUED(dependencies)", "c QUEUED(dependencies)", "q BLOCKED(question)", "r QUEUED(slot)", "mine CANCELLED")
	if s.task("P").Book.Executions != runs {
		t.Error("the parent's own run, which had succeeded, runs again")
	}
	if got := s.task("q").Reason; got != "which?" {
		t.Errorf("the question is now %q", got)
	}
}

func TestRule7_AParentWhoseLaterRunFailedRunsAgain(t *testing.T) {
	s := newStage(t)
	s.create("P", "human")
	s.start("P")
	one := s.suggest("P", "one")
	s.end("P", success("p1"))
	s.run(one, success("o1"))
	s.ask(work.MessageTask{Task: "P", Text: "also that"})
	s.run("P", ends(work.FailedRun, ""))
	s.ask(work.RetryTask{Task: "P"})
	s.is("P QUEUED(slot)")
}

func TestRule7_RetryOfAChildNeedsItsParentWaiting(t *testing.T) {
	s := newStage(t)
	s.create("P", "human")
	s.start("P")
	one, extra := s.spawn("P", "one"), s.suggest("P", "extra")
	s.end("P", success("p1"))
	s.run(one, ends(work.FailedRun, ""))
	s.run(extra, ends(work.FailedRun, ""))
	s.ask(work.DropTask{Task: one})
	s.is("P READY(person)")
	s.ask(work.RetryTask{Task: extra}) // an improvement sends its READY parent back
	s.is("P BLOCKED(children)", string(extra)+" QUEUED(slot)")
	s.ask(work.CancelTask{Task: "P"})
	s.refused(work.RetryTask{Task: extra}, "parent_ended")
}

func TestRule7_RetryOfACompletedTaskIsRefused(t *testing.T) {
	s := newStage(t)
	s.create("a", "none")
	s.run("a", success("a1"))
	s.refused(work.RetryTask{Task: "a"}, "completed")
}

func TestRule8_CompletedOnlyWhenIntegrated(t *testing.T) {
	s := family(t, "human")
	s.run("a", success("a1"))
	s.ask(work.AcceptTask{Task: "a"})
	s.is("a READY(integration)")
	if got := s.task("a").Accepted; got == nil || got.By != alice || got.Commit != "a1" || got.At.IsZero() {
		t.Errorf("accepted %+v", got)
	}
	for _, c := range []work.Command{
		work.AcceptTask{Task: "a"}, work.RejectTask{Task: "a", Comment: "no"}, work.CancelTask{Task: "a"}, work.RetryTask{Task: "a"},
		work.MessageTask{Task: "a", Text: "hi"}, work.SubmitTask{Task: "a"}, work.DropTask{Task: "a"}, work.PostponeTask{Task: "a"},
		work.RemoveTask{Task: "a"}, work.PatchTask{Task: "a"},
	} {
		s.refused(c, "integrating")
	}
	s.integrates("a")
	s.is("a COMPLETED")
}

func TestRule8_IntegratingAContainedCommitIsASuccess(t *testing.T) {
	s := family(t, "none")
	s.run("a", success("a1"))
	e, _ := s.take(work.Integrate, "a")
	s.git.branches["P"] = s.git.merge("p1", "a1") // the server died between the reference and the report
	for range 2 {
		if err := s.integrate(e, true); err != nil && work.CodeOf(err) != work.Conflict {
			t.Fatal(err)
		}
	}
	s.is("a COMPLETED")
}

func TestRule8_ACascadeCancelWaitsForTheIntegration(t *testing.T) {
	for name, conflict := range map[string]bool{"integrated": false, "conflict": true} {
		t.Run(name, func(t *testing.T) {
			s := family(t, "none")
			s.run("a", success("a1"))
			s.ask(work.CancelTask{Task: "P"})
			s.is("P CANCELLED", "a READY(integration)", "b CANCELLED")
			if conflict {
				s.conflicts("a")
				s.is("a READY superseded", "fix.a.2 CANCELLED")
			} else {
				s.integrates("a")
				s.is("a COMPLETED")
			}
			s.ask(work.RetryTask{Task: "P"})
			if conflict {
				s.is("fix.a.2 QUEUED(slot)", "b QUEUED(dependencies)")
			} else {
				s.is("b QUEUED(slot)")
			}
		})
	}
}

func TestRule8_AConflictIsFixedUnderEveryPolicyUpToTheCap(t *testing.T) {
	s := family(t, "none")
	id := work.TaskID("a")
	s.git.branches["P"] = s.git.commit("other", "p1")
	for n := 2; n <= 4; n++ {
		s.run(id, success("a"+string(id)))
		s.conflicts(id)
		id = work.TaskID("fix.a." + string(rune('0'+n)))
		s.is(string(id) + " QUEUED(slot)")
	}
	s.run(id, success("last"))
	s.conflicts(id)
	s.is(string(id)+" BLOCKED(conflict)", "P BLOCKED(children)")
	s.listed("P", string(id)+" conflict")
	for _, want := range []work.Action{work.DoSubmit, work.DoDrop, work.DoCancel} {
		if !slices.Contains(s.tree("P").Actions(s.task(id)), want) {
			t.Errorf("it cannot be asked to %s", want)
		}
	}
	s.ask(work.SubmitTask{Task: id})
	s.run(id, success("resolved"))
	s.integrates(id)
	s.is(string(id)+" COMPLETED", "b QUEUED(slot)")
}

func TestRule8_ADroppedConflictLetsTheParentGoOn(t *testing.T) {
	s := family(t, "none")
	s.git.branches["P"] = s.git.commit("other", "p1")
	for _, id := range []work.TaskID{"a", "fix.a.2", "fix.a.3", "fix.a.4"} {
		s.run(id, success("x"+string(id)))
		s.conflicts(id)
	}
	s.ask(work.DropTask{Task: "fix.a.4"})
	s.is("fix.a.4 CANCELLED dropped", "b CANCELLED dropped", "c CANCELLED dropped", "P COMPLETED")
}

func TestRule8_UnresolvedPathsAreAFailedRound(t *testing.T) {
	s := family(t, "none")
	s.git.branches["P"] = s.git.commit("other", "p1")
	s.run("a", success("a1"))
	s.conflicts("a")
	s.run("fix.a.2", unresolved("a2", "", "f"))
	s.is("fix.a.2 READY superseded", "fix.a.3 QUEUED(slot)")
	if got := s.task("fix.a.3").Book.MergeIn; got != "other" {
		t.Errorf("the next round is to merge %q", got)
	}
	s.run("fix.a.3", unresolved("a3", "", "f"))
	s.run("fix.a.4", unresolved("a4", "", "f"))
	s.is("fix.a.4 BLOCKED(conflict)")
}

func TestRule9_APersonsDecisionWinsOverJudges(t *testing.T) {
	for name, c := range map[string]work.Command{"accept": work.AcceptTask{Task: "a"}, "reject": work.RejectTask{Task: "a", Comment: "no"}} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.create("a", "checked")
			s.run("a", success("a1"))
			j := s.judge("a", work.Checker)
			x := s.start(j.ID)
			s.ask(c)
			s.is(string(j.ID) + " CANCELLED")
			if j.Reason != "decided by a person" {
				t.Errorf("the judge says %q", j.Reason)
			}
			s.news()
			// A late verdict is recorded without effect.
			if err := s.do(s.tree("a"), work.System(), work.Report{Execution: x.ID, Verdict: rejection("late")}); err != nil {
				t.Fatal(err)
			}
			s.stops(j.ID)
			s.tells("verdict.late "+string(j.ID), "execution.ended "+string(j.ID))
			if j.Verdict != nil || x.Reported == nil {
				t.Errorf("the judge has %v, its run %v", j.Verdict, x.Reported)
			}
			if name == "accept" {
				s.is("a COMPLETED")
			} else {
				s.is("a READY superseded", "fix.a.2 QUEUED(slot)")
			}
		})
	}
}

func TestRule9_MessagesGoToReadyQuestionAndBadlyEnded(t *testing.T) {
	s := newStage(t)
	s.create("a", "human")
	message := work.MessageTask{Task: "a", Text: "mind this"}
	s.refused(message, "wrong_state")
	s.start("a")
	s.asks("a", "which?")
	s.ask(message)
	s.is("a QUEUED(slot)")
	if got := s.task("a").Interactions; len(got) != 1 || got[0].Question != "which?" || got[0].Answer != "mind this" {
		t.Errorf("interactions %+v", got)
	}
	s.run("a", success("a1"))
	s.ask(message)
	s.run("a", ends(work.FailedRun, ""))
	s.ask(message)
	s.is("a QUEUED(slot)")
	if s.task("a").Book.Message != "mind this" {
		t.Error("the next run is not told")
	}
}

func TestRule9_NewWorkOnAReadyTaskStartsTheReviewAgain(t *testing.T) {
	for name, c := range map[string]work.Command{
		"message": work.MessageTask{Task: "a", Text: "hi"}, "retry": work.RetryTask{Task: "a"}, "submit": work.SubmitTask{Task: "a"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.create("a", "checked")
			s.run("a", success("a1"))
			s.says("a", work.Checker, rejection("wrong"))
			s.holds("a", work.HoldFlagged)
			s.ask(c)
			s.is("a QUEUED(slot)")
			if s.task("a").CheckerReport != "" {
				t.Error("the report of the old review is still shown")
			}
			s.run("a", success("")) // the same commit: it is judged again all the same
			s.is("a READY(judges)")
			if got := len(s.tree("a").JudgesOf("a")); got != 2 {
				t.Errorf("%d judges", got)
			}
			s.says("a", work.Checker, approval(s.task("a")))
			s.is("a COMPLETED")
		})
	}
}

func TestRule9_NewWorkCancelsRunningJudges(t *testing.T) {
	s := newStage(t)
	s.create("a", "checked")
	s.run("a", success("a1"))
	j := s.judge("a", work.Checker)
	s.ask(work.RetryTask{Task: "a"})
	s.is(string(j.ID)+" CANCELLED", "a QUEUED(slot)")
}

func TestRule9_SubmitFromReadyOrABadEnd(t *testing.T) {
	s := newStage(t)
	s.create("a", "human")
	s.refused(work.SubmitTask{Task: "a"}, "wrong_state")
	s.run("a", ends(work.FailedRun, ""))
	s.ask(work.SubmitTask{Task: "a"})
	x := s.start("a")
	if x.Kind != work.SubmitRun {
		t.Errorf("a %s run", x.Kind)
	}
	s.end("a", success("a1"))
	s.is("a READY(person)")
	s.ask(work.SubmitTask{Task: "a"})
	s.run("a", ends(work.CancelledRun, "")) // the server stopped: collected again, by no agent
	if x := s.start("a"); x.Kind != work.SubmitRun {
		t.Errorf("a %s run", x.Kind)
	}
	s.end("a", ends(work.FailedRun, "cannot be read"))
	s.is("a FAILED")
}

func TestRule9_PostponeMakesATopLevelTask(t *testing.T) {
	s := family(t, "none")
	s.refused(work.PostponeTask{Task: "a"}, "needed")
	s.refused(work.PostponeTask{Task: "c"}, "has_dependencies")
	s.ask(work.CreateTask{ID: "x", Input: work.TaskInput{Name: "x", ParentTaskID: "P"}})
	s.run("a", success("a1"))
	s.integrates("a")
	s.run("b", success("b1"))
	s.integrates("b")
	s.run("c", success("c1"))
	s.integrates("c")
	s.is("P BLOCKED(children)")
	s.ask(work.PostponeTask{Task: "x"})
	if e, _ := s.take(work.StartExecution, "x"); s.beginRun(s.treeOf("x"), e.Execution) == nil {
		t.Error("the effect of its former life starts it")
	}
	s.is("x PENDING", "P COMPLETED")
	x := s.task("x")
	if x.TreeID != "x" || x.ParentTaskID != "" || x.Kind != work.TopLevel {
		t.Errorf("it is %+v", x)
	}
	s.ask(work.StartTask{Task: "x"})
	s.run("x", success("x1"))
}

func TestRule9_RemovingWhatOthersDependOnIsRefused(t *testing.T) {
	s := family(t, "none")
	s.run("a", ends(work.FailedRun, ""))
	s.refused(work.RemoveTask{Task: "a"}, "needed")
	s.ask(work.RemoveTask{Task: "c"})
	s.ask(work.RemoveTask{Task: "b"})
	s.ask(work.RemoveTask{Task: "a"})
	s.is("P COMPLETED")
}

func TestRule10_NoChangesGoesToAPersonWithTheReason(t *testing.T) {
	for _, policy := range []string{"human", "checked", "arbitrated"} {
		t.Run(policy, func(t *testing.T) {
			s := newStage(t, gated)
			s.create("a", policy)
			x := s.start("a")
			if err := s.do(s.tree("a"), work.System(), work.Report{Execution: x.ID, Summary: "it was done already"}); err != nil {
				t.Fatal(err)
			}
			s.end("a", nothing())
			s.holds("a", work.HoldNoChanges)
			if !strings.Contains(s.task("a").Reason, "it was done already") || !s.task("a").Result.NoChanges {
				t.Errorf("it says %q", s.task("a").Reason)
			}
			s.due() // no judge, no gate
		})
	}
}

func TestRule10_IsDecidedOnTheIntegratedHead(t *testing.T) {
	s := newStage(t)
	s.create("P", "human")
	s.start("P")
	one := s.spawn("P", "one")
	s.end("P", nothing()) // it only decomposed
	s.run(one, success("o1"))
	s.integrates(one)
	s.holds("P", work.HoldHuman)
}

func TestRule10_UnderNoneItCompletesWithTheFlagCountedOnItsParent(t *testing.T) {
	s := newStage(t)
	s.create("P", "human")
	s.start("P")
	one := s.spawn("P", "one")
	s.end("P", success("p1"))
	s.run(one, nothing())
	s.integrates(one)
	s.is(string(one)+" COMPLETED", "P READY(person)")
	if !s.task(one).Result.NoChanges || !strings.Contains(s.task("P").Summary, "1 without changes") {
		t.Errorf("the parent says %q", s.task("P").Summary)
	}
}

func TestRule10_ProjectsWithoutRepositoryAreExempt(t *testing.T) {
	s := newStage(t, noRepo)
	s.create("a", "human")
	s.run("a", nothing())
	s.holds("a", work.HoldHuman)
}

func TestRule11_TheInboxNamesEverythingThatNeedsAPerson(t *testing.T) {
	s := newStage(t)
	s.create("q", "none")
	s.start("q")
	s.asks("q", "which?")
	s.listed("q", "q question")

	s.create("f", "none")
	s.run("f", ends(work.TimedOutRun, ""))
	s.listed("f", "f ended")

	s.create("l", "none")
	s.run("l", ends(work.Limited, "until tomorrow"))
	s.is("l QUEUED(limit)")
	s.listed("l", "l parked")

	s.create("m", "human")
	s.run("m", success("m1"))
	s.ask(work.AcceptTask{Task: "m"})
	s.ask(work.StartMerge{Task: "m"})
	s.lands("m", landConflict)
	s.listed("m", "m conflict")

	if _, err := s.begin(s.project, nil, "later", work.TaskInput{Name: "later"}, false); err != nil {
		t.Fatal(err)
	}
	s.create("w", "none", on("later"))
	s.is("w QUEUED(dependencies)", "later PENDING")
	s.listed("w", "w parked")
	s.ask(work.StartTask{Task: "later"})
	s.recheck()
	s.listed("w")
}

func TestRule11_ParkedWorkSaysWhyAndStartsWhenDue(t *testing.T) {
	s := newStage(t)
	s.create("a", "none")
	e, _ := s.take(work.StartExecution, "a")
	until := s.now.Add(time.Hour)
	if err := s.do(s.tree("a"), work.System(), work.Park{Execution: e.Execution, On: work.OnBudget, Until: until, Reason: "the day's budget is spent"}); err != nil {
		t.Fatal(err)
	}
	s.is("a QUEUED(budget)")
	s.listed("a", "a parked")
	if sum := s.outer["a"]; !sum.WakeAt.Equal(until) {
		t.Errorf("due at %s", sum.WakeAt)
	}
	s.now = until
	if err := s.do(s.tree("a"), work.System(), work.Wake{}); err != nil {
		t.Fatal(err)
	}
	s.is("a QUEUED(slot)")
	s.listed("a")
	s.due("start_execution a")
}

func TestRule11_FiveLostExecutionsInARowAskAPerson(t *testing.T) {
	s := newStage(t)
	s.create("a", "none")
	for n := range 5 {
		s.is("a QUEUED(slot)")
		x := s.start("a")
		if err := s.do(s.tree("a"), work.System(), work.Lose{Execution: x.ID, Fence: x.Fence}); err != nil {
			t.Fatal(n, err)
		}
	}
	s.is("a FAILED")
	s.listed("a", "a ended")
}

// TestExecution_AttemptsCountFailuresOnly: not answers, messages, limits, losses.
func TestExecution_AttemptsCountFailuresOnly(t *testing.T) {
	s := newStage(t)
	s.create("a", "none", func(in *work.TaskInput) { in.Retry = work.Retry{MaxAttempts: 2} })
	wake := func() {
		t.Helper()
		s.now = s.now.Add(time.Hour)
		if err := s.do(s.tree("a"), work.System(), work.Wake{}); err != nil {
			t.Fatal(err)
		}
	}
	s.run("a", ends(work.Overloaded, "529"))
	s.is("a QUEUED(retry)")
	wake()
	s.run("a", ends(work.Limited, "until tomorrow"))
	s.is("a QUEUED(limit)")
	wake()
	x := s.start("a")
	if err := s.do(s.tree("a"), work.System(), work.Lose{Execution: x.ID, Fence: x.Fence}); err != nil {
		t.Fatal(err)
	}
	s.start("a")
	s.asks("a", "which?")
	s.ask(work.AnswerTask{Task: "a", Text: "that"})
	s.run("a", ends(work.FailedRun, "exit 1"))
	s.is("a QUEUED(retry)") // the first that counts
	wake()
	s.run("a", ends(work.FailedRun, "exit 1"))
	s.is("a FAILED")
}

// TestExecution_OneAtATime: a task that was cancelled and started again waits until
// its former run is certainly over.
func TestExecution_OneAtATime(t *testing.T) {
	s := newStage(t)
	s.create("a", "none")
	s.start("a")
	s.ask(work.CancelTask{Task: "a"})
	s.ask(work.RetryTask{Task: "a"})
	e, _ := s.take(work.StartExecution, "a")
	if err := s.beginRun(s.tree("a"), e.Execution); work.CodeOf(err) != work.Conflict {
		t.Fatalf("the second began: %v", err)
	}
	s.stops("a")
	s.run("a", success("a1"))
	s.is("a COMPLETED")
}

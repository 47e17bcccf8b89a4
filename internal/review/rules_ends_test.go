package review_test

import (
	"slices"
	"strings"
	"testing"

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

// What nobody had started waits for nothing: it is neither cancelled nor queued.
func TestRule7_WhatNobodyStartedIsLeftAlone(t *testing.T) {
	s := newStage(t)
	s.create("X", "human")
	for id, start := range map[work.TaskID]bool{"D": true, "E": false} {
		if _, err := s.begin(s.project, nil, id, work.TaskInput{Name: string(id), DependsOn: []work.Position{"X"}}, start); err != nil {
			t.Fatal(err)
		}
	}
	s.is("D QUEUED(dependencies)", "E PENDING")
	s.run("X", ends(work.FailedRun, "no luck"))
	s.recheck()
	s.is("D CANCELLED", "E PENDING")
	s.ask(work.RetryTask{Task: "X"})
	s.recheck()
	s.is("D QUEUED(dependencies)", "E PENDING")
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
	if e := s.refusal(work.RetryTask{Task: "b"}, "bad_dependency"); e.Details["dependency"] != "a" {
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

func TestRule7_WhatTheCascadeTookWaitsForTheParentsNewRun(t *testing.T) {
	s := family(t, "none")
	s.ask(work.CancelTask{Task: "P"})
	s.ask(work.MessageTask{Task: "P", Text: "otherwise"}) // P runs again: its children start from that head
	s.is("P QUEUED(slot)", "a CANCELLED", "b CANCELLED")
	s.run("P", success("p2"))
	s.is("P BLOCKED(children)", "a QUEUED(slot)", "b QUEUED(dependencies)")
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
		work.RemoveTask{Task: "a"}, work.PatchTask{Task: "a"}, work.StartTask{Task: "a"}, work.AnswerTask{Task: "a", Text: "that"},
		work.StartMerge{Task: "a"}, work.CreateTask{ID: "late", Input: work.TaskInput{Name: "late", ParentTaskID: "a"}},
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

func TestRule8_AConflictBelowAParentThatRunsAgainWaitsForThatRun(t *testing.T) {
	s := family(t, "none")
	s.run("a", success("a1"))
	s.ask(work.CancelTask{Task: "P"})
	s.ask(work.MessageTask{Task: "P", Text: "otherwise"})
	s.start("P")
	s.conflicts("a")
	s.is("fix.a.2 PENDING")
	s.end("P", success("p2"))
	s.is("fix.a.2 QUEUED(slot)")
}

// accepts lets a policy, or a person where it asks one, accept what is READY.
func (s *stage) accepts(id work.TaskID, policy string) {
	s.t.Helper()
	switch policy {
	case "human":
		s.ask(work.AcceptTask{Task: id})
	case "checked":
		s.says(id, work.Checker, approval(s.task(id)))
	case "arbitrated":
		s.approve(id)
	}
	s.is(string(id) + " READY(integration)")
}

func TestRule8_AConflictIsFixedUnderEveryPolicyUpToTheCap(t *testing.T) {
	for _, policy := range []string{"none", "human", "checked", "arbitrated"} {
		t.Run(policy, func(t *testing.T) { conflictsToTheCap(t, policy) })
	}
}

func conflictsToTheCap(t *testing.T, policy string) {
	s := family(t, policy)
	id := work.TaskID("a")
	s.git.branches["P"] = s.git.commit("other", "p1")
	for n := 2; n <= 4; n++ {
		s.run(id, success("a"+string(id)))
		s.accepts(id, policy)
		s.conflicts(id)
		s.is(string(id) + " READY superseded")
		id = work.TaskID("fix.a." + string(rune('0'+n)))
		s.is(string(id) + " QUEUED(slot)")
	}
	s.run(id, success("last"))
	s.accepts(id, policy)
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
	s.accepts(id, policy)
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

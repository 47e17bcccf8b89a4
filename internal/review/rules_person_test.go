package review_test

import (
	"strings"
	"testing"
	"time"

	"github.com/claudomator/claudomator/internal/work"
)

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

// What the children took away again is no change either, although each of them
// made one.
func TestRule10_ChildrenThatUndoTheirParentLeaveNoChanges(t *testing.T) {
	s := newStage(t)
	s.create("P", "checked")
	s.start("P")
	one := s.spawn("P", "one")
	s.end("P", success("p1"))
	s.run(one, success("o1"))
	e, _ := s.take(work.Integrate, one)
	if err := s.do(s.tree("P"), work.System(), work.Integrated{
		Task: one, Into: "P", Commit: e.Commit, Head: "o1", Result: &work.Result{Base: base, Head: "o1", NoChanges: true},
	}); err != nil {
		t.Fatal(err)
	}
	s.is(string(one) + " COMPLETED")
	s.holds("P", work.HoldNoChanges)
	s.due()
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

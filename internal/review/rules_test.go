package review_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudomator/claudomator/internal/work"
)

// The tests here, in rules_ends_test.go and in rules_person_test.go are named after
// the sentences of section 3 of the specification.

func TestRule1_ChildrenWaitForTheParentsRun(t *testing.T) {
	s := newStage(t)
	s.create("P", "none")
	s.start("P")
	one := s.spawn("P", "one")
	s.is(string(one) + " PENDING")
	s.asks("P", "which?") // a question keeps them waiting
	s.is("P BLOCKED(question)", string(one)+" PENDING")
	s.ask(work.AnswerTask{Task: "P", Text: "that"})
	s.run("P", success("p1"))
	s.is("P BLOCKED(children)", string(one)+" QUEUED(slot)")
}

func TestRule1_WithoutChildrenThePolicyDecides(t *testing.T) {
	s := newStage(t)
	s.create("a", "none")
	s.run("a", success("a1"))
	s.create("b", "human")
	s.run("b", success("b1"))
	s.is("a COMPLETED", "b READY(person)")
}

func TestRule1_ChildrenAreNeverStartedByHand(t *testing.T) {
	s := newStage(t)
	s.create("P", "none")
	s.start("P")
	one := s.spawn("P", "one")
	s.refused(work.StartTask{Task: one}, "child")
}

func TestRule1_AChildAddedToABlockedParentIsQueuedAtOnce(t *testing.T) {
	s := newStage(t)
	s.create("P", "none")
	s.start("P")
	s.spawn("P", "one")
	s.end("P", success("p1"))
	s.ask(work.CreateTask{ID: "late", Input: work.TaskInput{Name: "late", ParentTaskID: "P"}})
	s.is("late QUEUED(slot)")
}

func TestRule1_DraftsCountAsOpenAndAreAnInboxItem(t *testing.T) {
	s := newStage(t)
	s.create("P", "none")
	s.ask(work.CreateTask{ID: "d", Input: work.TaskInput{Name: "d", ParentTaskID: "P", Draft: true}})
	s.run("P", success("p1"))
	s.is("P BLOCKED(children)", "d PENDING")
	s.listed("P", "P child")
	clear := false
	s.ask(work.PatchTask{Task: "d", Draft: &clear})
	s.is("d QUEUED(slot)")
	s.listed("P")
}

func TestRule1_NoChildIsAddedToAReadyOrEndedParent(t *testing.T) {
	s := newStage(t)
	s.create("P", "human")
	add := work.CreateTask{ID: "late", Input: work.TaskInput{Name: "late", ParentTaskID: "P"}}
	s.run("P", success("p1"))
	s.refused(add, "parent_ended")
	s.ask(work.AcceptTask{Task: "P"})
	s.refused(add, "parent_ended")
}

func TestRule2_AParentIsJudgedOnlyWhenEverySubtaskIsCompletedOrDropped(t *testing.T) {
	s := newStage(t)
	s.create("P", "human")
	s.start("P")
	one, two := s.spawn("P", "one"), s.spawn("P", "two")
	s.end("P", success("p1"))
	s.run(one, success("o1"))
	s.integrates(one)
	s.is(string(one)+" COMPLETED", "P BLOCKED(children)")
	s.run(two, ends(work.FailedRun, "no luck"))
	s.is("P BLOCKED(children)")
	s.ask(work.DropTask{Task: two})
	s.is("P READY(person)")
}

func TestRule2_AnyEndSettlesAnImprovement(t *testing.T) {
	s := newStage(t)
	s.create("P", "human")
	s.start("P")
	bad := []work.Outcome{work.FailedRun, work.TimedOutRun, work.Silent, work.BudgetRun}
	extra := []work.TaskID{s.suggest("P", "done"), s.suggest("P", "cancelled")}
	for _, how := range bad {
		extra = append(extra, s.suggest("P", string(how)))
	}
	s.end("P", success("p1"))
	s.run(extra[0], success("o1"))
	s.is(string(extra[0])+" COMPLETED", "P BLOCKED(children)")
	for i, how := range bad {
		s.is("P BLOCKED(children)")
		s.run(extra[2+i], ends(how, "no luck"))
	}
	s.is("P BLOCKED(children)")
	s.ask(work.CancelTask{Task: extra[1]})
	s.is("P READY(person)")
}

func TestRule2_FixesKeepTheKind(t *testing.T) {
	s := newStage(t)
	s.create("P", "none")
	s.start("P")
	one := s.spawn("P", "one")
	s.ask(work.CreateTask{ID: "h", Input: work.TaskInput{Name: "h", ParentTaskID: "P", Review: "human"}})
	s.end("P", success("p1"))
	s.run(one, success("o1"))
	s.run("h", success("h1"))
	s.ask(work.RejectTask{Task: "h", Comment: "no"})
	if fix := s.task("fix.h.2"); fix.Kind != work.Subtask || fix.ParentTaskID != "P" || fix.Review != "human" {
		t.Errorf("the fix is a %s below %q under %q", fix.Kind, fix.ParentTaskID, fix.Review)
	}
}

func TestRule2_JudgesHaveNoParentAndCountInNoRollUp(t *testing.T) {
	s := newStage(t)
	s.create("P", "checked")
	s.run("P", success("p1"))
	j := s.judge("P", work.Checker)
	if j.ParentTaskID != "" || j.TreeID != "P" || j.Review != "none" || !j.Apart() || len(s.tree("P").Children("P")) != 0 {
		t.Errorf("the judge is %+v", j)
	}
	s.says("P", work.Checker, approval(s.task("P")))
	s.is(string(j.ID)+" COMPLETED", "P COMPLETED")
	s.due()
}

func TestRule3_TheCascadeStopsAtAParentThatOnlyBecameReady(t *testing.T) {
	s := newStage(t)
	s.create("G", "none")
	s.start("G")
	s.ask(work.CreateTask{ID: "P", Input: work.TaskInput{Name: "P", ParentTaskID: "G", Review: "human"}})
	s.end("G", success("g1"))
	s.start("P")
	c := s.spawn("P", "c")
	s.end("P", success("p1"))
	s.run(c, success("c1"))
	s.integrates(c)
	s.is(string(c)+" COMPLETED", "P READY(person)", "G BLOCKED(children)")
	s.ask(work.AcceptTask{Task: "P"})
	s.integrates("P")
	s.is("P COMPLETED", "G COMPLETED")
}

func TestRule3_AFixedChildCountsThroughItsFix(t *testing.T) {
	s := newStage(t)
	s.create("P", "none")
	s.ask(work.CreateTask{ID: "c", Input: work.TaskInput{Name: "c", ParentTaskID: "P", Review: "human"}})
	s.run("P", success("p1"))
	s.run("c", success("c1"))
	s.ask(work.RejectTask{Task: "c", Comment: "no"})
	s.is("c READY superseded", "P BLOCKED(children)")
	s.run("fix.c.2", success("c2"))
	s.ask(work.AcceptTask{Task: "fix.c.2"})
	s.integrates("fix.c.2")
	s.is("fix.c.2 COMPLETED", "P COMPLETED")
}

func TestRule3_TheSameRunsAtStartUp(t *testing.T) {
	s := newStage(t)
	s.create("P", "none")
	s.start("P")
	one := s.spawn("P", "one")
	s.end("P", success("p1"))
	s.run(one, success("o1"))
	s.is(string(one) + " READY(integration)")
	s.effects = nil // all deliveries are lost with the server
	s.trees[0] = reload(s.trees[0])
	if err := s.do(s.trees[0], work.System(), work.Settle{Redeliver: true}); err != nil {
		t.Fatal(err)
	}
	s.due("integrate " + string(one))
	s.integrates(one)
	s.is("P COMPLETED")
}

func TestRule4_AFixCopiesItsPlaceAndCarriesTheReasons(t *testing.T) {
	s := newStage(t)
	s.create("a", "human", builder, named("it works"), func(in *work.TaskInput) {
		in.Agent.Instructions, in.Timeout, in.Gates, in.Tags, in.CommitType = "do", work.Duration(time.Hour), []string{"make"}, []string{"x"}, "fix"
		in.Priority, in.Retry, in.Description = work.High, work.Retry{MaxAttempts: 3, Backoff: work.Linear}, "why"
		in.Agent.Type, in.Agent.Model, in.Agent.Command = "scripted", "large", []string{"sh", "-e"}
		in.Agent.AllowedTools, in.Agent.MaxBudgetUSD, in.Agent.MaxTurns = []string{"Read"}, 1.5, 7
	})
	s.run("a", success("a1"))
	s.gates("a", true)
	s.ask(work.RejectTask{Task: "a", Comment: "no", Findings: work.Findings{{Kind: "bug", Text: "b"}}})
	a, fix := s.task("a"), s.task("fix.a.2")
	if fix.AttemptOf != "a" || fix.AttemptNo != 2 || a.SupersededBy != fix.ID || fix.Role() != a.Role() || fix.Agent.Instructions != "do" ||
		!slices.Equal(fix.AcceptanceCriteria, a.AcceptanceCriteria) || fix.Timeout != a.Timeout || !slices.Equal(fix.Gates, a.Gates) ||
		!slices.Equal(fix.Tags, a.Tags) || fix.CommitType != "fix" || fix.Priority != work.High || fix.Review != "human" ||
		fix.Retry != a.Retry || fix.Retry.MaxAttempts != 3 || fix.Description != "why" || fix.Name != "a" || fix.ProjectID != a.ProjectID {
		t.Errorf("the fix is %+v", fix)
	}
	if diff := cmp.Diff(a.Agent, fix.Agent); diff != "" || fix.Agent.MaxTurns != 7 {
		t.Errorf("its agent differs (-rejected +fix):\n%s", diff)
	}
	if fix.RejectionComment != "no" || len(fix.RejectionFindings) != 1 || slices.Contains(fix.DependsOn, "a") {
		t.Errorf("it carries %q %v and depends on %v", fix.RejectionComment, fix.RejectionFindings, fix.DependsOn)
	}
}

func TestRule4_TheRejectedAttemptStepsAside(t *testing.T) {
	s := newStage(t)
	s.create("a", "human")
	s.run("a", success("a1"))
	s.ask(work.RejectTask{Task: "a", Comment: "no"})
	s.is("a READY superseded", "fix.a.2 QUEUED(slot)")
	s.listed("a")
	for _, c := range []work.Command{
		work.AcceptTask{Task: "a"}, work.RejectTask{Task: "a", Comment: "no"}, work.RetryTask{Task: "a"}, work.CancelTask{Task: "a"},
		work.MessageTask{Task: "a", Text: "hi"}, work.SubmitTask{Task: "a"}, work.RemoveTask{Task: "a"}, work.PatchTask{Task: "a"},
		work.StartTask{Task: "a"}, work.AnswerTask{Task: "a", Text: "that"}, work.DropTask{Task: "a"}, work.PostponeTask{Task: "a"}, work.StartMerge{Task: "a"},
		work.CreateTask{ID: "x", Input: work.TaskInput{Name: "x", ParentTaskID: "a"}},
	} {
		if e := s.refusal(c, "superseded"); e.Details["current"] != "fix.a.2" {
			t.Errorf("%T names %v", c, e.Details)
		}
	}
}

func TestRule4_RemovingOneAttemptOfAChainIsRefused(t *testing.T) {
	s := newStage(t)
	s.create("P", "none")
	s.ask(work.CreateTask{ID: "c", Input: work.TaskInput{Name: "c", ParentTaskID: "P", Review: "human"}})
	s.run("P", success("p1"))
	s.run("c", success("c1"))
	s.ask(work.RejectTask{Task: "c", Comment: "no"})
	s.ask(work.CancelTask{Task: "fix.c.2"})
	s.refused(work.RemoveTask{Task: "fix.c.2"}, "has_attempts")
	s.refused(work.PostponeTask{Task: "fix.c.2"}, "has_attempts")
}

func TestRule4_DependenciesFollowTheCurrentAttempt(t *testing.T) {
	s := newStage(t)
	s.create("P", "none")
	s.ask(work.CreateTask{ID: "a", Input: work.TaskInput{Name: "a", ParentTaskID: "P", Review: "human"}})
	s.ask(work.CreateTask{ID: "b", Input: work.TaskInput{Name: "b", ParentTaskID: "P", DependsOn: []work.Position{"a"}}})
	s.run("P", success("p1"))
	s.run("a", success("a1"))
	s.ask(work.RejectTask{Task: "a", Comment: "no"})
	s.run("fix.a.2", success("a2"))
	s.is("b QUEUED(dependencies)")
	s.ask(work.AcceptTask{Task: "fix.a.2"})
	s.is("b QUEUED(dependencies)") // accepted is not integrated
	s.integrates("fix.a.2")
	s.is("b QUEUED(slot)")
}

func TestRule5_AFixStartsFromTheRejectedIntegratedHead(t *testing.T) {
	s := newStage(t)
	s.create("P", "human")
	s.start("P")
	one := s.spawn("P", "one")
	s.end("P", success("p1"))
	s.run(one, success("o1"))
	s.integrates(one)
	s.is("P READY(person)")
	head := s.task("P").Book.Head
	s.ask(work.RejectTask{Task: "P", Comment: "no"})
	if fix := s.task("fix.P.2"); fix.Book.Base != head || !s.git.contains(head, "o1") {
		t.Errorf("the fix starts from %s, the integrated head is %s", fix.Book.Base, head)
	}
}

func TestRule5_FreshIsRefusedWithChildren(t *testing.T) {
	s := newStage(t)
	s.create("P", "human")
	s.start("P")
	one := s.suggest("P", "one")
	s.end("P", success("p1"))
	s.run(one, success("o1"))
	s.refused(work.RetryTask{Task: "P", Fresh: true}, "has_children")
	s.ask(work.RetryTask{Task: "P"})
	s.is("P QUEUED(slot)")
}

func TestRule5_FreshStartsFromTheBaseOnce(t *testing.T) {
	s := newStage(t)
	s.create("a", "human")
	s.run("a", success("a1"))
	s.ask(work.RetryTask{Task: "a", Fresh: true})
	if b := s.task("a").Book; !b.Fresh || b.Base != "" {
		t.Errorf("the next run starts from %q, fresh %v", b.Base, b.Fresh)
	}
	s.run("a", success("a2"))
	if b := s.task("a").Book; b.Fresh || b.Head != "a2" || s.git.contains("a2", "a1") {
		t.Errorf("after it: fresh %v, head %s", b.Fresh, b.Head)
	}
}

func TestRule5_AConflictWithTheBranchsHeadIsARejection(t *testing.T) {
	s := newStage(t)
	s.create("a", "human")
	s.run("a", unresolved("a1", "theirs", "f"))
	s.is("a READY superseded", "fix.a.2 QUEUED(slot)")
	if b := s.task("fix.a.2").Book; b.Base != "a1" || b.MergeIn != "theirs" || !slices.Equal(b.Conflicts, []string{"f"}) {
		t.Errorf("the fix is to merge %+v", b)
	}
}

func TestRule6_SiblingsWaitForCompletedAndIntegrated(t *testing.T) {
	s := newStage(t)
	s.create("P", "none")
	s.start("P")
	one, two := s.spawn("P", "one"), s.spawn("P", "two", "one")
	s.end("P", success("p1"))
	s.is(string(two) + " QUEUED(dependencies)")
	s.run(one, success("o1"))
	s.is(string(one)+" READY(integration)", string(two)+" QUEUED(dependencies)")
	s.integrates(one)
	s.is(string(two) + " QUEUED(slot)")
}

// built is D on X: X is READY at x1, D has run and is approved at d1.
func built(t *testing.T, policy string) *stage {
	t.Helper()
	s := newStage(t)
	s.create("X", "human")
	s.create("D", policy, on("X"))
	s.is("D QUEUED(dependencies)")
	s.run("X", success("x1"))
	s.recheck()
	s.is("X READY(person)", "D QUEUED(slot)")
	s.run("D", success("d1"))
	if b := s.task("D").BuiltOn; len(b) != 1 || b[0].TaskID != "X" || b[0].Commit != "x1" {
		t.Fatalf("built on %+v", b)
	}
	if policy == "checked" {
		s.says("D", work.Checker, approval(s.task("D")))
	}
	return s
}

func TestRule6_BetweenTopLevelTasksReadyIsEnough(t *testing.T) {
	for _, policy := range []string{"none", "checked"} {
		t.Run(policy, func(t *testing.T) {
			s := built(t, policy)
			s.holds("D", work.HoldBuiltOn) // under every policy, none too
			if !strings.Contains(s.task("D").Reason, "X") {
				t.Errorf("it says %q", s.task("D").Reason)
			}
			s.refused(work.AcceptTask{Task: "D"}, "built_on")
			s.ask(work.AcceptTask{Task: "X"})
			s.recheck()
			s.is("X COMPLETED", "D COMPLETED")
		})
	}
}

// A fix of D stands on what D stood on: it has no other way to know of X.
func TestRule6_AFixIsBuiltOnWhatTheRejectedAttemptWas(t *testing.T) {
	s := built(t, "human")
	s.ask(work.RejectTask{Task: "D", Comment: "no"})
	fix := s.task("fix.D.2")
	if len(fix.BuiltOn) != 1 || fix.BuiltOn[0].TaskID != "X" || fix.BuiltOn[0].Commit != "x1" || !slices.Equal(fix.DependsOn, []work.Position{"X"}) {
		t.Errorf("the fix is built on %+v and depends on %v", fix.BuiltOn, fix.DependsOn)
	}
	s.run("fix.D.2", success("d2"))
	s.refused(work.AcceptTask{Task: "fix.D.2"}, "built_on")
	s.ask(work.AcceptTask{Task: "X"})
	s.recheck()
	s.ask(work.AcceptTask{Task: "fix.D.2"})
	s.is("fix.D.2 COMPLETED")
}

func TestRule6_XCompletedAtAnotherCommitIsMergedInAndDJudgedAgain(t *testing.T) {
	s := built(t, "checked")
	s.ask(work.RejectTask{Task: "X", Comment: "no"})
	s.recheck()
	s.refused(work.AcceptTask{Task: "D"}, "built_on")
	s.run("fix.X.2", success("x2"))
	s.recheck()
	s.holds("D", work.HoldBuiltOn)
	s.ask(work.AcceptTask{Task: "fix.X.2"})
	s.recheck()
	s.is("D READY(integration)")
	s.refused(work.AcceptTask{Task: "D"}, "integrating")
	s.integrates("fix.X.2")
	s.is("D READY(judges)")
	d := s.task("D")
	if !s.git.contains(d.Book.Head, "x2") || !s.git.contains(d.Book.Head, "d1") || d.BuiltOn[0].Commit != "x2" {
		t.Errorf("D is %s on %+v", d.Book.Head, d.BuiltOn)
	}
	s.says("D", work.Checker, approval(d))
	s.is("D COMPLETED")
}

func TestRule6_XCompletedWithoutBuiltOnAsksAPerson(t *testing.T) {
	s := built(t, "checked")
	s.ask(work.RetryTask{Task: "X", Fresh: true})
	s.run("X", success("x9"))
	s.ask(work.AcceptTask{Task: "X"})
	s.recheck()
	s.integrates("X")
	s.holds("D", work.HoldBuiltOn)
	s.refused(work.AcceptTask{Task: "D"}, "built_on")
	s.ask(work.RetryTask{Task: "D", Fresh: true}) // the way out
	s.run("D", success("d9"))
	s.says("D", work.Checker, approval(s.task("D")))
	s.is("D COMPLETED")
}

func TestRule6_XsConflictWithDIsARejectionOfD(t *testing.T) {
	s := built(t, "checked")
	s.ask(work.RejectTask{Task: "X", Comment: "no"})
	s.run("fix.X.2", success("x2"))
	s.ask(work.AcceptTask{Task: "fix.X.2"})
	s.recheck()
	s.conflicts("fix.X.2")
	s.is("D READY superseded", "fix.D.2 QUEUED(slot)")
	if fix := s.task("fix.D.2"); fix.Book.MergeIn != "x2" || fix.Book.Base != "d1" || fix.BuiltOn[0].Commit != "x2" {
		t.Errorf("the fix is to merge %+v, on %+v", fix.Book, fix.BuiltOn)
	}
	if s.task("D").Book.Absorb != nil {
		t.Error("the rejected attempt still waits for a merge")
	}
}

func TestRule6_XEndedBadlyIsAnItemOnD(t *testing.T) {
	s := built(t, "human")
	s.ask(work.CancelTask{Task: "X"})
	s.recheck()
	s.holds("D", work.HoldBuiltOn)
	s.refused(work.AcceptTask{Task: "D"}, "built_on")
	s.refused(work.RetryTask{Task: "D"}, "bad_dependency")
	s.ask(work.RetryTask{Task: "X"})
	s.recheck()
	s.holds("D", work.HoldHuman)
}

func TestRule6_ABadEndCancelsWhatWaitsInOtherTrees(t *testing.T) {
	s := newStage(t)
	s.create("X", "human")
	s.create("D", "human", on("X"))
	s.ask(work.CancelTask{Task: "X"})
	s.recheck()
	s.is("D CANCELLED")
	s.listed("D", "D ended")
	s.ask(work.RetryTask{Task: "X"})
	s.recheck()
	s.is("D QUEUED(dependencies)")
}

func TestRule6_AStorysRootMustBeLanded(t *testing.T) {
	s := newStage(t)
	s.story("X", "arbitrated")
	s.run("X", success("x1"))
	s.create("D", "none", on("X"))
	s.run("D", success("d1"))
	s.approve("X")
	s.recheck()
	s.is("X COMPLETED")
	s.holds("D", work.HoldBuiltOn)
	sum := s.outer["X"]
	sum.Landed = true // by Ship
	s.task("X").Landed = &work.Landing{Branch: "main", Commit: "l1"}
	s.summarise(sum)
	s.recheck()
	s.is("D COMPLETED")
}

package review_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudomator/claudomator/internal/work"
)

// The tests here are named after what section 7 says of checked stories, of
// rejections below the root, and of cancelled stories.

func TestStory_ANestedRejectionLeavesItsStatusAlone(t *testing.T) {
	s := newStage(t)
	story := s.approved(plan("", part("one"), part("two")))
	s.run(planOne, success("o1"))
	s.run(planTwo, success("t1"))
	s.is(planOne+" READY(judges)", planTwo+" READY(judges)") // siblings, in one step each
	s.news()
	s.reject(planOne, "no")
	s.status(story, work.InProgress)
	for _, e := range s.news() {
		if strings.HasPrefix(e, "story.") {
			t.Errorf("it tells %s", e)
		}
	}
	fix := work.TaskID("fix." + planOne + ".2")
	s.is("R BLOCKED(children)", planOne+" READY superseded", fix2+" QUEUED(slot)")
	s.approve(planTwo)
	s.integrates(planTwo)
	s.is("R BLOCKED(children)") // it waits for the fix
	s.run(fix, success("o2"))
	s.approve(fix)
	s.integrates(fix)
	s.status(story, work.Validating)
	s.approve("R")
	s.status(story, work.ReviewReady)
	if story.RootTaskID != "R" {
		t.Errorf("the root is now %s", story.RootTaskID)
	}
}

const fix2 = "fix." + planOne + ".2"

func TestStory_ABuildersOwnChildrenAreJudgedToo(t *testing.T) {
	s := newStage(t)
	s.approved(plan("", part("one")))
	s.start(planOne)
	deep := s.spawn(planOne, "deep")
	s.end(planOne, success("o1"))
	s.run(deep, success("d1"))
	s.is(string(deep)+" READY(judges)", planOne+" BLOCKED(children)", "R BLOCKED(children)")
	s.approve(deep)
	s.integrates(deep)
	s.is(planOne + " READY(judges)")
}

// TestStory_WhatAConflictedRunDecomposedIsBuiltAllTheSame: below the fix, in whose
// run the agent may name it again.
func TestStory_WhatAConflictedRunDecomposedIsBuiltAllTheSame(t *testing.T) {
	s := newStage(t)
	s.approved(plan("", part("one")))
	s.start(planOne)
	deep, deeper := s.spawn(planOne, "deep"), s.spawn(planOne, "deeper", "deep")
	s.end(planOne, unresolved("o1", "x", "a"))
	s.is(planOne+" READY superseded", fix2+" QUEUED(slot)", string(deep)+" PENDING", string(deeper)+" PENDING")
	s.start(fix2)
	if again := s.spawn(fix2, "deep"); again != deep {
		t.Errorf("it was made again: %s", again)
	}
	s.end(fix2, success("o2"))
	s.is(fix2+" BLOCKED(children)", string(deep)+" QUEUED(slot)", string(deeper)+" QUEUED(dependencies)")
	for _, id := range []work.TaskID{deep, deeper} {
		s.run(id, success("x"+string(id)))
		s.approve(id)
		s.integrates(id)
	}
	s.is(fix2 + " READY(judges)")
}

func TestStory_TheCapCountsAcrossPersonsAndReviewers(t *testing.T) {
	s := newStage(t, capped(2))
	story := s.approved(plan(""))
	s.run("R", success("r1"))
	s.reject("R", "no", finding(1))
	s.run("fix.R.2", success("r2"))
	s.ask(work.RejectTask{Task: "fix.R.2", Comment: "no"})
	s.run("fix.R.3", success("r3"))
	s.reject("fix.R.3", "no", finding(3))
	s.holds("fix.R.3", work.HoldCap)
	s.status(story, work.NeedsFix)
	s.acts(work.ActAccept, work.ActReject, work.ActCancel)
	s.refused(work.RejectTask{Task: "fix.R.3", Comment: "no"}, "cap_reached")
	s.ask(work.RejectTask{Task: "fix.R.3", Comment: "no", Extra: 1})
	s.status(story, work.NeedsFix)
	s.start("fix.R.4")
	s.status(story, work.InProgress)
}

func finding(line int) work.Finding {
	return work.Finding{Kind: "bug", File: "a", Line: line, Text: "wrong"}
}

// flagged is a checked story whose first task is completed and whose second was
// flagged by its checker.
func flagged(t *testing.T, p *work.Plan, change ...func(*work.Project)) (*stage, *work.Story) {
	t.Helper()
	s := newStage(t, change...)
	story := s.approved(p)
	s.run(planOne, success("o1"))
	s.says(planOne, work.Checker, approval(s.task(planOne)))
	s.integrates(planOne)
	s.status(story, work.InProgress)
	s.denied(work.ShipStory{}, work.Illegal, "not_shippable")
	s.run(planTwo, success("t1"))
	s.status(story, work.InProgress)
	s.says(planTwo, work.Checker, rejection("too slow\nin detail"))
	s.is(planTwo+" READY(person)", "R BLOCKED(children)")
	s.status(story, work.Shippable)
	s.effects = nil
	return s, story
}

func checkedPlan() *work.Plan { return plan("checked", part("one"), part("two")) }

// validated is a checked plan with build and test steps.
func validated() *work.Plan {
	p := checkedPlan()
	p.Validation = work.Validations{{Type: work.BuildValidation, Steps: []string{"make"}}, {Type: work.TestValidation, Steps: []string{"make test"}}}
	return p
}

// TestStory_CheckedShipAcceptsWhatWasFlagged: by the person who ships, with the
// open reports listed, and integrates it first.
func TestStory_CheckedShipAcceptsWhatWasFlagged(t *testing.T) {
	s, story := flagged(t, checkedPlan())
	s.acts(work.ActShip, work.ActCancel)
	s.tell(work.ShipStory{})
	s.step(work.ShipAccept)
	if got := story.Ship.Reports; !slices.Equal(got, []string{"two: too slow"}) {
		t.Errorf("reports %q", got)
	}
	if got := s.body("ship.started")["reports"]; !cmp.Equal(got, []string{"two: too slow"}) {
		t.Errorf("it tells of the reports %q", got)
	}
	if a := s.task(planTwo).Accepted; a == nil || a.By != alice || a.Commit != "t1" {
		t.Errorf("accepted %+v", a)
	}
	s.due("integrate " + planTwo)
	s.acts(work.ActCancel)
	s.integrates(planTwo)
	s.is("R COMPLETED")
	s.step(work.ShipLand)
	if m := s.tree("R").Merge(story.Ship.MergeID); len(m.Queue) != 1 || m.Queue[0].Commit != s.task("R").Book.Head {
		t.Errorf("it lands %+v", m.Queue)
	}
}

// TestStory_CheckedShipMeetsAConflict: back to IN_PROGRESS, with a fix under way.
func TestStory_CheckedShipMeetsAConflict(t *testing.T) {
	s, story := flagged(t, checkedPlan())
	s.tell(work.ShipStory{})
	s.conflicts(planTwo)
	s.status(story, work.InProgress)
	fix := work.TaskID("fix." + planTwo + ".2")
	s.is(planTwo+" READY superseded", string(fix)+" QUEUED(slot)")
	s.run(fix, success("t2"))
	s.says(fix, work.Checker, approval(s.task(fix)))
	s.integrates(fix)
	s.status(story, work.Shippable)
	if !strings.Contains(s.item(), "is not integrated") {
		t.Errorf("the inbox says %q", s.item())
	}
	s.tell(work.ShipStory{})
	s.step(work.ShipLand)
}

// TestStory_CheckedShipMeetsAConflictTooOften: a person settles it.
func TestStory_CheckedShipMeetsAConflictTooOften(t *testing.T) {
	s, story := flagged(t, checkedPlan())
	id := work.TaskID(planTwo)
	for n := range 4 {
		s.tell(work.ShipStory{})
		s.conflicts(id)
		s.status(story, work.InProgress)
		if n == 3 {
			break
		}
		id = work.TaskID("fix." + planTwo + "." + string(rune('2'+n)))
		s.run(id, success("t"+string(rune('2'+n))))
		s.says(id, work.Checker, rejection("too slow"))
		s.status(story, work.Shippable)
	}
	s.is(string(id) + " BLOCKED(conflict)")
	s.listed("R", string(id)+" conflict")
}

func TestStory_CheckedIsValidatedBeforeTheTargetMoves(t *testing.T) {
	s, story := flagged(t, validated())
	s.tell(work.ShipStory{})
	s.integrates(planTwo)
	s.step(work.ShipValidate)
	x := s.start("R")
	if x.Kind != work.GateRun || x.Commit != s.task("R").Book.Head {
		t.Errorf("it runs %+v", x)
	}
	s.end("R", gates(true))
	s.step(work.ShipLand)
	if v := story.ValidationResult; v == nil || !v.Passed || v.Commit != s.task("R").Book.Head {
		t.Errorf("the validation says %+v", v)
	}
}

// TestStory_CheckedValidationFails: IN_PROGRESS with an item; to reject it is the
// way on, and what is built then is not held against the old result.
func TestStory_CheckedValidationFails(t *testing.T) {
	s, story := flagged(t, validated())
	s.tell(work.ShipStory{})
	s.integrates(planTwo)
	s.run("R", gates(false))
	s.status(story, work.InProgress)
	s.remarks("the ship was stopped: the validation failed: make test ended with exit code 2")
	s.acts(work.ActAccept, work.ActReject, work.ActCancel)
	s.denied(work.ShipStory{}, work.Illegal, "not_shippable")
	s.report(work.Settle{Redeliver: true})
	s.status(story, work.InProgress)
	s.now = s.now.Add(time.Minute)
	s.ask(work.RejectTask{Task: "R", Comment: "it does not build"})
	s.status(story, work.NeedsFix)
	s.remarks("")
	s.start("fix.R.2")
	s.status(story, work.InProgress)
	s.remarks("")
	s.end("fix.R.2", success("r2"))
	s.is("fix.R.2 COMPLETED")
	s.status(story, work.Shippable)
	s.remarks("the story can be shipped")
	s.tell(work.ShipStory{})
	s.step(work.ShipValidate)
	s.gates("fix.R.2", true)
	s.step(work.ShipLand)
}

// TestStory_CheckedValidationFixThatChangesNothing is where it was.
func TestStory_CheckedValidationFixThatChangesNothing(t *testing.T) {
	s, story := flagged(t, validated())
	s.tell(work.ShipStory{})
	s.integrates(planTwo)
	s.run("R", gates(false))
	s.ask(work.RejectTask{Task: "R", Comment: "it does not build"})
	s.run("fix.R.2", nothing())
	s.status(story, work.InProgress)
	if !strings.HasPrefix(s.item(), "the ship was stopped") {
		t.Errorf("the inbox says %q", s.item())
	}
	s.acts(work.ActAccept, work.ActReject, work.ActCancel)
}

// TestStory_CheckedValidationOfNoMeaning: a person who knows better accepts the story
// as it is; Ship validates it again.
func TestStory_CheckedValidationOfNoMeaning(t *testing.T) {
	s, story := flagged(t, validated())
	s.tell(work.ShipStory{})
	s.integrates(planTwo)
	s.run("R", gates(false))
	s.status(story, work.InProgress)
	s.ask(work.AcceptTask{Task: "R"})
	s.status(story, work.Shippable)
	s.tell(work.ShipStory{})
	s.step(work.ShipValidate)
	s.run("R", gates(true))
	s.step(work.ShipLand)
	s.lands("R", landRefused)
	s.status(story, work.Shippable)
	s.tell(work.ShipStory{}) // what has passed is not run again
	s.step(work.ShipLand)
}

func TestStory_CheckedValidationThatCannotBeRun(t *testing.T) {
	s, story := flagged(t, validated())
	s.tell(work.ShipStory{})
	s.integrates(planTwo)
	s.run("R", ends(work.CancelledRun, "")) // the server stops: not counted
	for n := range work.MaxGateFaults {
		s.step(work.ShipValidate)
		if n == 0 {
			x := s.start("R")
			s.report(work.Lose{Execution: x.ID, Fence: x.Fence}) // nor is this
		}
		s.run("R", ends(work.FailedRun, "no workspace"))
	}
	s.status(story, work.Shippable)
	s.remarks("the ship was stopped: the validation could not be run; see its log")
	s.tell(work.ShipStory{})
	s.step(work.ShipValidate)
	s.gates("R", true)
	s.step(work.ShipLand)
}

// TestStory_CheckedWithNothingLeftAsksAPerson: it is never SHIPPABLE without a task.
func TestStory_CheckedWithNothingLeftAsksAPerson(t *testing.T) {
	for name, give := range map[string]func(s *stage){
		"dropped": func(s *stage) {
			s.run(planOne, ends(work.FailedRun, ""))
			s.ask(work.DropTask{Task: planOne})
		},
		"postponed": func(s *stage) { s.ask(work.PostponeTask{Task: planOne}) },
		"removed": func(s *stage) {
			s.run(planOne, success("o1"))
			s.ask(work.AcceptTask{Task: planOne})
			s.integrates(planOne)
			s.ask(work.RemoveTask{Task: planOne})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			story := s.approved(plan("checked", part("one")))
			give(s)
			s.status(story, work.InProgress)
			s.is("R COMPLETED")
			s.remarks("nothing is left of the story's plan to be shipped: reject it to have it built, or cancel it")
			s.acts(work.ActReject, work.ActCancel)
			s.ask(work.RejectTask{Task: "R", Comment: "build it"})
			s.status(story, work.NeedsFix)
			s.start("fix.R.2")
			s.remarks("")
		})
	}
}

// TestStory_CancelInEveryStatus: planner, root and all below are stopped.
func TestStory_CancelInEveryStatus(t *testing.T) {
	over := func(s *stage, story *work.Story) {
		s.t.Helper()
		s.tell(work.CancelStory{})
		s.status(story, work.StoryCancelled)
		s.acts()
		s.listed("R")
		s.denied(work.CancelStory{}, work.Illegal, "story_status")
		s.denied(work.ShipStory{}, work.Illegal, "not_shippable")
		s.denied(work.ApproveStory{}, work.Illegal, "story_status")
		for _, task := range s.tree("R").Tasks() {
			if !task.State.Ended() && task.SupersededBy == "" {
				s.t.Errorf("%s is %s", task.ID, task.State)
			}
			if slices.Contains(s.tree("R").Actions(task), work.DoRetry) {
				s.t.Errorf("%s (%s) can be retried", task.ID, task.State)
			}
		}
		for _, x := range s.tree("R").Tasks() {
			for _, kind := range work.ExecutionKinds() {
				for _, run := range s.tree("R").Runs(x.ID, kind) {
					if run.Live() && run.Stopping == "" {
						s.t.Errorf("%s (%s) goes on", run.ID, kind)
					}
				}
			}
		}
	}
	t.Run("DRAFT, planning", func(t *testing.T) {
		s := newStage(t)
		story := s.elaborate()
		s.start(planner)
		over(s, story)
		s.stops(planner)
		s.is(planner+" CANCELLED", "R CANCELLED")
		if s.task("R").Reason != "its story was cancelled" {
			t.Errorf("the root says %q", s.task("R").Reason)
		}
	})
	t.Run("DRAFT, the planner failed", func(t *testing.T) {
		s := newStage(t)
		story := s.elaborate()
		s.run(planner, ends(work.FailedRun, ""))
		over(s, story)
	})
	t.Run("IN_PROGRESS", func(t *testing.T) {
		s := newStage(t)
		story := s.approved(plan("", part("one"), part("two", "one")))
		s.start(planOne)
		over(s, story)
		s.is("R CANCELLED", planOne+" CANCELLED", planTwo+" CANCELLED")
		s.refused(work.RetryTask{Task: "R"}, "story_status")
		s.refused(work.MessageTask{Task: "R", Text: "go on"}, "story_status")
		s.refused(work.SubmitTask{Task: planOne}, "story_status")
	})
	t.Run("IN_PROGRESS, one is being integrated", func(t *testing.T) {
		s := newStage(t)
		story := s.approved(plan("checked", part("one"), part("two")))
		s.run(planOne, success("o1"))
		s.ask(work.AcceptTask{Task: planOne})
		s.tell(work.CancelStory{})
		s.status(story, work.StoryCancelled)
		s.is(planOne+" READY(integration)", planTwo+" CANCELLED")
		s.conflicts(planOne)
		s.is(fix2+" CANCELLED", "R CANCELLED")
	})
	t.Run("IN_PROGRESS, below what ended badly", func(t *testing.T) {
		s := newStage(t)
		story := s.approved(plan("", part("one")))
		s.start(planOne)
		deep := s.spawn(planOne, "deep")
		s.end(planOne, ends(work.FailedRun, ""))
		s.is(string(deep)+" PENDING", planOne+" FAILED")
		over(s, story)
	})
	t.Run("IN_PROGRESS, its root ended badly", func(t *testing.T) {
		s := newStage(t)
		story := s.approved(plan(""))
		s.start("R")
		child := s.spawn("R", "child")
		s.end("R", ends(work.FailedRun, ""))
		s.listed("R", "R ended")
		over(s, story)
		s.is("R FAILED", string(child)+" CANCELLED")
		s.refused(work.RetryTask{Task: "R"}, "story_status")
	})
	t.Run("VALIDATING", func(t *testing.T) {
		s := newStage(t)
		story := s.approved(plan(""))
		s.run("R", success("r1"))
		s.start(s.judge("R", work.EvaluatorTests).ID)
		over(s, story)
	})
	t.Run("NEEDS_FIX", func(t *testing.T) {
		s := newStage(t)
		story := s.approved(plan(""))
		s.run("R", success("r1"))
		s.reject("R", "no")
		over(s, story)
		s.is("R READY superseded", "fix.R.2 CANCELLED")
	})
	t.Run("REVIEW_READY", func(t *testing.T) {
		s := newStage(t)
		story := s.approved(plan(""))
		s.run("R", success("r1"))
		s.approve("R")
		over(s, story)
		s.refused(work.AcceptTask{Task: "R"}, "wrong_state")
		s.refused(work.RejectTask{Task: "R", Comment: "no"}, "story_status")
	})
	t.Run("SHIPPABLE", func(t *testing.T) {
		s, story := shippable(t)
		over(s, story)
	})
	t.Run("SHIPPING, integrating", func(t *testing.T) {
		s, story := flagged(t, checkedPlan())
		s.tell(work.ShipStory{})
		s.tell(work.CancelStory{})
		s.status(story, work.StoryCancelled)
		s.integrates(planTwo)
		s.is("R CANCELLED", planTwo+" COMPLETED")
		s.due()
	})
	t.Run("SHIPPING, validating", func(t *testing.T) {
		s, story := flagged(t, validated())
		s.tell(work.ShipStory{})
		s.integrates(planTwo)
		s.start("R")
		over(s, story)
		s.stops("R")
		s.status(story, work.StoryCancelled)
		s.due("branch R")
	})
}

func TestStory_CancelIsRefusedOnceTheTargetMayMove(t *testing.T) {
	for step, hint := range map[work.ShipStep]string{
		work.ShipLand: "abort its merge", work.ShipPush: "stop-deploy", work.ShipDeploy: "stop-deploy", work.ShipSmoke: "stop-deploy",
	} {
		t.Run(string(step), func(t *testing.T) {
			s, _ := shippable(t, whole)
			s.shipTo(step)
			if e := s.denial(work.CancelStory{}, work.Illegal, "shipping"); !strings.Contains(e.Hint, hint) {
				t.Errorf("it hints %q", e.Hint)
			}
			s.refused(work.CancelTask{Task: "R"}, "wrong_state")
		})
	}
}

package review_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudomator/claudomator/internal/work"
)

// The tests here are named after the rows SHIPPABLE to DEPLOY_FAILED of section 7.

func TestShip_OnlyWhenShippable(t *testing.T) {
	s := newStage(t, whole)
	story := s.write(work.StoryInput{Plan: plan("")})
	early := func(want ...work.Act) {
		t.Helper()
		e := s.denial(work.ShipStory{}, work.Illegal, "not_shippable")
		if e.Details["status"] != string(story.Status) || !strings.HasPrefix(e.Hint, "possible now: ") {
			t.Errorf("it says %v, %q", e.Details, e.Hint)
		}
		s.acts(want...)
	}
	early(work.ActEdit, work.ActApprove, work.ActCancel)
	s.tell(work.ApproveStory{})
	early(work.ActCancel) // IN_PROGRESS
	s.run("R", success("r1"))
	s.status(story, work.Validating)
	early(work.ActAccept, work.ActReject, work.ActCancel)
	s.reject("R", "no")
	s.status(story, work.NeedsFix)
	early(work.ActCancel)
	s.run("fix.R.2", success("r2"))
	s.approve("fix.R.2")
	s.status(story, work.ReviewReady)
	early(work.ActAccept, work.ActReject, work.ActCancel)
	s.ask(work.AcceptTask{Task: "fix.R.2"})
	s.status(story, work.Shippable)
	s.acts(work.ActReject, work.ActShip, work.ActCancel)
	s.remarks("the story can be shipped")
	s.due("branch fix.R.2") // nothing is deployed by itself
}

// TestShip_StepByStep: land, push, deploy, smoke; the second press names the ship,
// then the commit.
func TestShip_StepByStep(t *testing.T) {
	s, story := shippable(t, whole)
	s.news()
	s.tell(work.ShipStory{})
	s.tells("story.shipping R", "ship.started R", "ship.step R", "ship.step R", "merge.started R")
	if diff := cmp.Diff(map[string]any{"step": work.ShipAccept}, s.body("ship.started")); diff != "" {
		t.Errorf("without reports it tells (-want +got):\n%s", diff)
	}
	s.step(work.ShipLand)
	s.listed("R")
	if e := s.denial(work.ShipStory{}, work.Illegal, "shipping"); e.Details["ship"] != story.Ship {
		t.Errorf("the second press says %v", e.Details)
	}
	merge := story.Ship.MergeID
	if m := s.tree("R").Merge(merge); m == nil || m.Target != "main" || len(m.Queue) != 1 || m.Queue[0].Commit != "r1" {
		t.Fatalf("the merge is %+v", m)
	}
	s.due("land R")
	s.lands("R", landed)
	s.step(work.ShipPush)
	s.late(work.Landed{Merge: merge, Commit: "l2"})
	if e := s.pushEffect(); e.Commit != "l1" {
		t.Errorf("it pushes %+v", e)
	}
	s.pushed("R", "")
	s.step(work.ShipDeploy)
	s.late(work.Pushed{Task: "R", Failure: "late"})
	s.due("start_execution R")
	x := s.start("R")
	if x.Kind != work.DeployRun || x.Commit != "l1" {
		t.Errorf("it runs %+v", x)
	}
	s.acts(work.ActStopDeploy)
	s.end("R", gates(true))
	s.late(work.End{Execution: x.ID, Fence: x.Fence, Outcome: work.FailedRun})
	s.step(work.ShipSmoke)
	x = s.start("R")
	if x.Kind != work.SmokeRun || x.Commit != "l1" {
		t.Errorf("it runs %+v", x)
	}
	s.end("R", gates(true))
	s.status(story, work.Deployed)
	if story.Shipped == nil || story.Shipped.Commit != "l1" || s.task("R").Landed.Commit != "l1" || story.Ship.By != alice {
		t.Errorf("shipped %+v by %v", story.Shipped, story.Ship.By)
	}
	if e := s.denial(work.ShipStory{}, work.Illegal, "already_shipped"); e.Details["commit"] != "l1" || !strings.Contains(e.Message, "l1") {
		t.Errorf("shipped again: %v %v", e, e.Details)
	}
	s.refused(work.RejectTask{Task: "R", Comment: "no"}, "story_status")
	s.denied(work.CancelStory{}, work.Illegal, "story_status")
	s.acts()
}

// pushEffect is the push on its way.
func (s *stage) pushEffect() work.Effect {
	for _, e := range s.effects {
		if e.Kind == work.Push {
			return e
		}
	}
	return work.Effect{}
}

// TestShip_SkipsWhatThereIsNot: without deploy command deployed after the landing
// and the smoke steps, without those too at once.
func TestShip_SkipsWhatThereIsNot(t *testing.T) {
	s, story := shippable(t)
	s.shipTo(work.ShipSmoke)
	s.gates("R", true)
	s.status(story, work.Deployed)
	if len(s.tree("R").Runs("R", work.DeployRun)) != 0 {
		t.Error("something was deployed")
	}

	bare := newWorldStage(s)
	other := bare.approved(plan(""))
	bare.run("R", success("r1"))
	bare.ask(work.AcceptTask{Task: "R"})
	bare.tell(work.ShipStory{})
	bare.lands("R", landed)
	bare.report(work.Pushed{Task: "R"}) // there is no remote
	bare.status(other, work.Deployed)
}

// TestShip_NothingToLand: the target holds the accepted commit already; whether it was
// pushed is another question.
func TestShip_NothingToLand(t *testing.T) {
	s, story := shippable(t, whole)
	s.shipTo(work.ShipLand)
	s.lands("R", func(id work.MergeID) work.Command { return work.Landed{Merge: id} })
	s.step(work.ShipPush)
	s.report(work.Pushed{Task: "R"})
	s.step(work.ShipDeploy)
	if story.Ship.Commit != "r1" || s.task("R").Landed == nil || s.task("R").Landed.Commit != "r1" {
		t.Errorf("it deploys %q, landed %+v", story.Ship.Commit, s.task("R").Landed)
	}
}

// TestShip_WhatChangedNothingIsNotShipped: all parts were dropped.
func TestShip_WhatChangedNothingIsNotShipped(t *testing.T) {
	s := newStage(t, whole)
	story := s.approved(plan("", part("one")))
	s.run("child.R.one", ends(work.FailedRun, ""))
	s.ask(work.DropTask{Task: "child.R.one"})
	s.holds("R", work.HoldNoChanges)
	s.ask(work.AcceptTask{Task: "R"})
	s.tell(work.ShipStory{})
	s.lands("R", func(id work.MergeID) work.Command { return work.Landed{Merge: id} })
	s.status(story, work.Shippable)
	s.remarks("the ship was stopped: nothing to land: no part of the story has changed anything")
}

func TestShip_ARefusedLandingLeavesItShippable(t *testing.T) {
	s, story := shippable(t, whole)
	s.shipTo(work.ShipLand)
	s.lands("R", landRefused)
	s.status(story, work.Shippable)
	s.remarks("the ship was stopped: the target has uncommitted changes")
	first := story.Ship.MergeID
	s.shipTo(work.ShipLand)
	if story.Ship.MergeID == first || story.Ship.Error != "" {
		t.Errorf("the second ship is %+v", story.Ship)
	}
	s.late(work.Landed{Merge: first, Commit: "l9"})
	s.lands("R", landed)
	s.step(work.ShipPush)
}

func TestShip_ALandingConflictWaitsForAPerson(t *testing.T) {
	begin := func(t *testing.T) (*stage, *work.Story, work.MergeID) {
		s, story := shippable(t, whole)
		s.shipTo(work.ShipLand)
		s.lands("R", landConflict)
		s.step(work.ShipLand)
		s.listed("R", "R conflict")
		s.denied(work.CancelStory{}, work.Illegal, "shipping")
		s.denied(work.ShipStory{}, work.Illegal, "shipping")
		return s, story, story.Ship.MergeID
	}
	t.Run("continue goes on", func(t *testing.T) {
		s, _, m := begin(t)
		s.ask(work.ContinueMerge{Merge: m})
		s.listed("R")
		s.lands("R", landed)
		s.step(work.ShipPush)
	})
	t.Run("abort", func(t *testing.T) {
		s, story, m := begin(t)
		s.ask(work.AbortMerge{Merge: m})
		s.status(story, work.Shippable)
		s.remarks("the ship was stopped: the landing was aborted")
		s.refused(work.AbortMerge{Merge: m}, "merge_over")
		s.acts(work.ActReject, work.ActShip, work.ActCancel)
	})
}

// TestShip_ResumesWhereItFailed: what went before is not done again.
func TestShip_ResumesWhereItFailed(t *testing.T) {
	t.Run("push", func(t *testing.T) {
		s, story := shippable(t, whole)
		s.shipTo(work.ShipPush)
		s.pushed("R", "no credentials")
		s.status(story, work.DeployFailed)
		s.remarks("the ship failed after the landing: landed, but not pushed: no credentials")
		s.acts(work.ActReject, work.ActShip)
		s.denied(work.CancelStory{}, work.Illegal, "story_status")
		s.due()
		s.tell(work.ShipStory{})
		s.step(work.ShipPush)
		s.due("push R")
		if story.Ship.Error != "" || story.Ship.Commit != "l1" {
			t.Errorf("the ship is %+v", story.Ship)
		}
	})
	for name, how := range map[string]outcome{
		"the deployment failed: make test ended with exit code 2": gates(false),
		"no disk": ends(work.FailedRun, "no disk"),
		"the deployment was cut off by the end of the server; see its log, then ship again": ends(work.CancelledRun, ""),
	} {
		t.Run(name, func(t *testing.T) {
			s, story := shippable(t, whole)
			s.shipTo(work.ShipDeploy)
			s.run("R", how)
			s.status(story, work.DeployFailed)
			s.remarks("the ship failed after the landing: " + name)
			s.due()
			s.tell(work.ShipStory{})
			s.found("R")
			s.step(work.ShipDeploy)
			s.gates("R", true)
			s.step(work.ShipSmoke)
		})
	}
}

// TestShip_WhatWasTakenBackIsLandedAnew: a ship that goes on looks for its landing first.
func TestShip_WhatWasTakenBackIsLandedAnew(t *testing.T) {
	s, story := shippable(t, whole)
	s.shipTo(work.ShipDeploy)
	s.run("R", gates(false))
	s.tell(work.ShipStory{})
	s.step(work.ShipPush)
	s.report(work.Pushed{Task: "R", Gone: true})
	s.status(story, work.Shippable)
	s.remarks("the ship was stopped: main does not contain the landing l1 any more; ship again to land it anew")
	if s.task("R").Landed != nil {
		t.Error("it is landed still")
	}
	s.shipTo(work.ShipLand)
	s.lands("R", func(id work.MergeID) work.Command { return work.Landed{Merge: id, Commit: "l2"} })
	s.step(work.ShipPush)
	if story.Ship.Commit != "l2" || s.task("R").Landed.Commit != "l2" {
		t.Errorf("the ship is %+v", story.Ship)
	}
}

// TestShip_TheTargetIsTheOneOfThePress, whatever the project's branch is later.
func TestShip_TheTargetIsTheOneOfThePress(t *testing.T) {
	s, story := shippable(t, whole)
	s.shipTo(work.ShipPush)
	s.tree("R").Project.Branch = "release"
	s.pushed("R", "no")
	s.tell(work.ShipStory{})
	if story.Ship.Target != "main" {
		t.Errorf("the target is %s", story.Ship.Target)
	}
}

// TestShip_ADeploymentIsNeverRepeatedByItself: one cut off by a restart has failed.
func TestShip_ADeploymentIsNeverRepeatedByItself(t *testing.T) {
	s, story := shippable(t, whole)
	s.shipTo(work.ShipDeploy)
	x := s.start("R")
	s.report(work.Lose{Execution: x.ID, Fence: x.Fence})
	s.status(story, work.DeployFailed)
	s.remarks("the ship failed after the landing: the deploy was cut off when the server ended; see its log, then ship again")
	s.report(work.Settle{Redeliver: true})
	if runs := s.tree("R").Runs("R", work.DeployRun); len(runs) != 1 || runs[0].Live() {
		t.Errorf("deployments %+v", runs)
	}
}

func TestShip_AQueuedDeploymentSurvivesARestart(t *testing.T) {
	s, _ := shippable(t, whole)
	s.shipTo(work.ShipDeploy)
	s.effects = nil
	s.report(work.Settle{Redeliver: true})
	s.due("branch R", "start_execution R")
}

func TestShip_PushAndPullRequestAreDeliveredAgain(t *testing.T) {
	s, _ := shippable(t, whole)
	s.shipTo(work.ShipPush)
	s.effects = nil
	s.report(work.Settle{Redeliver: true})
	s.due("branch R", "push R")
	p, _ := shippableIn(newWorldStage(s), pulls)
	p.shipTo(work.ShipPull)
	p.effects = nil
	p.report(work.Settle{Redeliver: true})
	p.due("branch R", "pull_request R")
}

// shippableIn is shippable on a stage that is there.
func shippableIn(s *stage, change ...func(*work.Project)) (*stage, *work.Story) {
	for _, c := range change {
		c(&s.project)
	}
	story := s.approved(plan(""))
	s.run("R", success("r1"))
	s.ask(work.AcceptTask{Task: "R"})
	return s, story
}

// TestShip_ASmokeRunIsRepeatedAFewTimes, whatever the gates have had of faults.
func TestShip_ASmokeRunIsRepeatedAFewTimes(t *testing.T) {
	s, story := shippable(t, whole)
	s.task("R").Book.GateFaults = work.MaxGateFaults // of its review
	s.shipTo(work.ShipSmoke)
	for range work.MaxGateFaults {
		x := s.start("R")
		s.report(work.Lose{Execution: x.ID, Fence: x.Fence})
		s.step(work.ShipSmoke)
	}
	s.run("R", ends(work.CancelledRun, "")) // the server stops: that is no fault
	s.step(work.ShipSmoke)
	x := s.start("R")
	s.report(work.Lose{Execution: x.ID, Fence: x.Fence})
	s.status(story, work.DeployFailed)
	s.tell(work.ShipStory{})
	s.found("R")
	s.step(work.ShipSmoke)
	x = s.start("R")
	s.report(work.Lose{Execution: x.ID, Fence: x.Fence})
	s.step(work.ShipSmoke)
	s.gates("R", true)
	s.status(story, work.Deployed)
}

// TestShip_AFailedSmokeIsFixedFromTheLandedCommit: the fix is judged, accepted and
// shipped as the first attempt was.
func TestShip_AFailedSmokeIsFixedFromTheLandedCommit(t *testing.T) {
	s, story := shippable(t, whole)
	s.shipTo(work.ShipSmoke)
	s.git.commit("l1", "r1", base) // the merge on the target
	s.now = s.now.Add(time.Minute)
	s.gates("R", false)
	s.status(story, work.NeedsFix)
	s.remarks("")
	fix := s.task("fix.R.2")
	if fix.Book.Base != "l1" || !strings.Contains(fix.RejectionComment, "smoke validation failed") || !strings.Contains(fix.RejectionComment, "1 test failed") {
		t.Errorf("the fix starts from %s, told %q", fix.Book.Base, fix.RejectionComment)
	}
	s.is("R COMPLETED superseded", "fix.R.2 QUEUED(slot)")
	s.run("fix.R.2", success("r2"))
	s.approve("fix.R.2")
	s.status(story, work.ReviewReady)
	s.ask(work.AcceptTask{Task: "fix.R.2"})
	s.remarks("the story can be shipped") // what stopped the ship before is mended
	s.shipTo(work.ShipLand)
	m := s.tree("R").Merge(story.Ship.MergeID)
	if m == nil || m.TaskID != "fix.R.2" || len(m.Queue) != 1 || m.Queue[0].Commit != "r2" {
		t.Fatalf("it lands %+v", m)
	}
	s.lands("fix.R.2", func(id work.MergeID) work.Command { return work.Landed{Merge: id, Commit: "l2"} })
	s.late(work.Pushed{Task: "R"}) // of the first ship
	s.pushed("fix.R.2", "")
	s.gates("fix.R.2", true)
	s.gates("fix.R.2", true)
	s.status(story, work.Deployed)
	if story.Shipped.Commit != "l2" || s.task("R").Landed.Commit != "l1" || s.task("fix.R.2").Landed.Commit != "l2" || story.RootTaskID != "R" {
		t.Errorf("shipped %+v", story.Shipped)
	}
}

// TestShip_AtTheCapAFailedSmokeIsAPersons, also where nothing was left to land.
func TestShip_AtTheCapAFailedSmokeIsAPersons(t *testing.T) {
	for name, land := range map[string]func(work.MergeID) work.Command{
		"landed": landed, "nothing to land": func(id work.MergeID) work.Command { return work.Landed{Merge: id} },
	} {
		t.Run(name, func(t *testing.T) {
			s, story := shippable(t, capped(0))
			s.shipTo(work.ShipLand)
			s.lands("R", land)
			if story.Ship.Step == work.ShipPush {
				s.pushed("R", "")
			}
			s.gates("R", false)
			s.status(story, work.DeployFailed)
			if !strings.Contains(s.item(), "the fix attempts are used up") {
				t.Errorf("the inbox says %q", s.item())
			}
			s.refused(work.RejectTask{Task: "R", Comment: "no"}, "cap_reached")
			s.ask(work.RejectTask{Task: "R", Comment: "no", Extra: 1})
			s.status(story, work.NeedsFix)
			s.denied(work.ShipStory{}, work.Illegal, "not_shippable")
			s.start("fix.R.2")
			s.status(story, work.InProgress)
		})
	}
}

func TestShip_AFailedDeploymentCanBeRejected(t *testing.T) {
	s, story := shippable(t, whole)
	s.shipTo(work.ShipDeploy)
	s.gates("R", false)
	s.status(story, work.DeployFailed)
	s.ask(work.RejectTask{Task: "R", Comment: "the script is wrong"})
	s.status(story, work.NeedsFix)
	if fix := s.task("fix.R.2"); fix.Book.Base != "l1" {
		t.Errorf("the fix starts from %s", fix.Book.Base)
	}
	s.listed("R")
}

func TestShip_StopDeploy(t *testing.T) {
	t.Run("running", func(t *testing.T) {
		s, story := shippable(t, whole)
		s.shipTo(work.ShipDeploy)
		s.start("R")
		s.tell(work.StopDeploy{})
		s.tell(work.StopDeploy{}) // pressed twice
		s.step(work.ShipDeploy)   // until its processes are gone
		s.stops("R")
		s.status(story, work.DeployFailed)
		s.remarks("the ship failed after the landing: the deployment was stopped by a person")
		s.denied(work.StopDeploy{}, work.Illegal, "not_deploying")
		s.tell(work.ShipStory{})
		s.found("R")
		s.step(work.ShipDeploy)
	})
	t.Run("not begun", func(t *testing.T) {
		s, story := shippable(t, whole)
		s.shipTo(work.ShipDeploy)
		e, _ := s.take(work.StartExecution, "R")
		s.tell(work.StopDeploy{})
		s.status(story, work.DeployFailed)
		s.late(work.Begin{Execution: e.Execution})
	})
	t.Run("lost while it is stopped", func(t *testing.T) {
		s, story := shippable(t, whole)
		s.shipTo(work.ShipDeploy)
		x := s.start("R")
		s.tell(work.StopDeploy{})
		s.report(work.Lose{Execution: x.ID, Fence: x.Fence})
		s.status(story, work.DeployFailed)
	})
	t.Run("at another step", func(t *testing.T) {
		s, _ := shippable(t, whole)
		s.shipTo(work.ShipPush)
		s.denied(work.StopDeploy{}, work.Illegal, "not_deploying")
	})
}

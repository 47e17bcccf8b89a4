package review_test

import (
	"strings"
	"testing"
	"time"

	"github.com/claudomator/claudomator/internal/work"
)

// More of Ship: pull requests, what goes out along with a story, what is built on
// one, and the look back.

func (s *stage) seen(root work.TaskID, state work.PullState, checks, red string) {
	s.t.Helper()
	s.report(work.PullSeen{Task: root, Pull: work.Pull{Number: 7, URL: "http://forge/7", Head: "r1", State: state, Checks: checks}, Commit: "f1", Red: red})
}

func TestShip_APullRequest(t *testing.T) {
	begin := func(t *testing.T, change ...func(*work.Project)) (*stage, *work.Story) {
		s, story := shippable(t, append(change, whole, pulls)...)
		s.shipTo(work.ShipPull)
		if e, ok := s.take(work.PullRequest, "R"); !ok || e.Commit != "r1" {
			t.Errorf("it opens %+v", e)
		}
		s.seen("R", "open", "pending", "")
		s.step(work.ShipPull)
		if story.Ship.Pull == nil || story.Ship.Pull.URL != "http://forge/7" {
			t.Errorf("the pull request is %+v", story.Ship.Pull)
		}
		version := s.tree("R").Version
		s.seen("R", "open", "pending", "") // seen again: nothing new
		if s.tree("R").Version != version {
			t.Error("the same is told twice")
		}
		return s, story
	}
	t.Run("merged", func(t *testing.T) {
		s, story := begin(t)
		s.remarks("") // its checks run
		s.seen("R", "open", "passed", "")
		s.remarks("pull request http://forge/7 waits to be merged")
		s.seen("R", "merged", "passed", "")
		s.step(work.ShipDeploy)
		if got := s.task("R").Landed; got == nil || got.Commit != "f1" || story.Ship.Commit != "f1" {
			t.Errorf("landed %+v", got)
		}
		s.late(work.PullSeen{Task: "R", Pull: work.Pull{State: "closed"}})
		if x := s.start("R"); x.Kind != work.DeployRun || x.Commit != "f1" {
			t.Errorf("it runs %+v", x)
		}
	})
	// A ship that goes on looks for the merge first: somebody may have taken it back.
	again := func(t *testing.T) (*stage, *work.Story) {
		s, story := begin(t)
		s.seen("R", "merged", "passed", "")
		s.run("R", gates(false))
		s.status(story, work.DeployFailed)
		s.tell(work.ShipStory{})
		s.step(work.ShipPull)
		return s, story
	}
	t.Run("merged, and there still", func(t *testing.T) {
		s, _ := again(t)
		s.seen("R", "merged", "passed", "")
		s.step(work.ShipDeploy)
	})
	t.Run("merged, and taken back", func(t *testing.T) {
		s, story := again(t)
		s.report(work.PullSeen{Task: "R", Failure: "it is not on branch main", Gone: true})
		s.status(story, work.Shippable)
		if s.task("R").Landed != nil || !strings.Contains(s.item(), "does not contain the landing f1") {
			t.Errorf("landed %+v, the inbox says %q", s.task("R").Landed, s.item())
		}
	})
	t.Run("merged, and not to be asked", func(t *testing.T) {
		s, story := again(t)
		s.report(work.PullSeen{Task: "R", Failure: "no answer"})
		s.status(story, work.DeployFailed)
		if s.task("R").Landed == nil {
			t.Error("what was landed is forgotten")
		}
	})
	t.Run("red", func(t *testing.T) {
		s, story := begin(t)
		s.seen("R", "open", "failed", "lint: line 3")
		s.status(story, work.NeedsFix)
		fix := s.task("fix.R.2")
		if !strings.Contains(fix.RejectionComment, "lint: line 3") || fix.Book.Base != "r1" {
			t.Errorf("the fix starts from %s, told %q", fix.Book.Base, fix.RejectionComment)
		}
		s.late(work.PullSeen{Task: "R", Pull: work.Pull{State: "merged"}})
		s.run("fix.R.2", success("r2"))
		s.ask(work.AcceptTask{Task: "fix.R.2"})
		s.shipTo(work.ShipPull)
		if e, ok := s.take(work.PullRequest, "fix.R.2"); !ok || e.Commit != "r2" {
			t.Errorf("it opens %+v", e)
		}
	})
	t.Run("red at the cap", func(t *testing.T) {
		s, story := begin(t, capped(0))
		s.seen("R", "open", "failed", "lint: line 3")
		s.status(story, work.Shippable)
		if !strings.Contains(s.item(), "lint: line 3") {
			t.Errorf("the inbox says %q", s.item())
		}
	})
	t.Run("closed", func(t *testing.T) {
		s, story := begin(t)
		s.seen("R", "closed", "", "")
		s.status(story, work.Shippable)
		s.remarks("the ship was stopped: the pull request was closed without being merged: http://forge/7")
	})
	t.Run("not opened", func(t *testing.T) {
		s, story := begin(t)
		s.report(work.PullSeen{Task: "R", Failure: "401"})
		s.status(story, work.Shippable)
		s.remarks("the ship was stopped: pull request: 401")
	})
	t.Run("without a repository it is landed", func(t *testing.T) {
		s, _ := shippable(t, pulls, noRepo)
		s.shipTo(work.ShipLand)
	})
}

// TestShip_ImprovementsOfTheRootAreLandedWithIt, after it; none of them is removed
// while it is.
func TestShip_ImprovementsOfTheRootAreLandedWithIt(t *testing.T) {
	s := newStage(t)
	story := s.approved(plan(""))
	s.start("R")
	one, two := s.suggest("R", "one"), s.suggest("R", "two")
	s.end("R", success("r1"))
	s.run(one, success("o1"))
	s.run(two, ends(work.FailedRun, ""))
	s.approve("R")
	s.status(story, work.ReviewReady) // the story's accept is the person they need
	s.ask(work.AcceptTask{Task: "R"})
	s.shipTo(work.ShipLand)
	m := s.tree("R").Merge(story.Ship.MergeID)
	if len(m.Queue) != 2 || m.Queue[0] != (work.MergePart{TaskID: "R", Commit: "r1"}) || m.Queue[1] != (work.MergePart{TaskID: one, Commit: "o1"}) {
		t.Errorf("it lands %+v", m.Queue)
	}
	s.refused(work.RemoveTask{Task: one}, "landing")
	s.ask(work.RemoveTask{Task: two})
	s.lands("R", landed)
	if got := s.task(one).Landed; got == nil || got.Commit != "l1" {
		t.Errorf("the improvement is landed %+v", got)
	}
}

// TestShip_APullRequestIsWithoutImprovements, and says so.
func TestShip_APullRequestIsWithoutImprovements(t *testing.T) {
	s := newStage(t, func(p *work.Project) { p.ShipMode = work.ShipPullRequest })
	story := s.approved(plan(""))
	s.start("R")
	one := s.suggest("R", "one")
	s.end("R", success("r1"))
	s.run(one, success("o1"))
	s.approve("R")
	s.ask(work.AcceptTask{Task: "R"})
	s.shipTo(work.ShipPull)
	if len(story.Ship.Reports) != 1 || !strings.HasPrefix(story.Ship.Reports[0], "one: ") {
		t.Errorf("it says %q", story.Ship.Reports)
	}
}

// TestShip_WhatIsBuiltOnAStoryWaitsUntilItIsLanded, also when nothing was left to be.
func TestShip_WhatIsBuiltOnAStoryWaitsUntilItIsLanded(t *testing.T) {
	s, _ := shippable(t)
	s.create("D", "human", on("R"))
	s.run("D", success("d1"))
	s.refused(work.AcceptTask{Task: "D"}, "built_on")
	s.shipTo(work.ShipLand)
	s.lands("R", func(id work.MergeID) work.Command { return work.Landed{Merge: id} })
	s.recheck()
	s.ask(work.AcceptTask{Task: "D"})
	s.is("D COMPLETED")
}

// TestShip_WhatIsBuiltOnACancelledStoryAsksAPerson: it will never be landed.
func TestShip_WhatIsBuiltOnACancelledStoryAsksAPerson(t *testing.T) {
	s, _ := shippable(t)
	s.create("D", "human", on("R"))
	s.run("D", success("d1"))
	s.create("E", "human", on("R"))
	s.tell(work.CancelStory{})
	s.recheck()
	s.is("E CANCELLED")
	if !strings.Contains(s.task("D").Reason, "which it is built on, ended: CANCELLED") {
		t.Errorf("D says %q", s.task("D").Reason)
	}
	s.holds("D", work.HoldBuiltOn)
}

// TestShip_ForeignReportsChangeNothing: of other tasks, other steps, other runs.
func TestShip_ForeignReportsChangeNothing(t *testing.T) {
	s, _ := shippable(t, whole)
	foreign := func() {
		t.Helper()
		for _, c := range []work.Command{
			work.Pushed{Task: "R"}, work.Pushed{Task: "x", Failure: "no"}, work.PullSeen{Task: "R", Pull: work.Pull{State: "merged"}},
			work.Landed{Merge: "x", Commit: "x"}, work.LandRefused{Merge: "x"}, work.End{Execution: "x", Outcome: work.Success}, work.Lose{Execution: "x"},
		} {
			s.late(c)
		}
	}
	foreign()
	s.shipTo(work.ShipLand)
	foreign()
	s.lands("R", landed)
	s.late(work.Pushed{Task: "x"})
	s.late(work.PullSeen{Task: "R", Pull: work.Pull{State: "closed"}})
	s.pushed("R", "")
	foreign()
}

// TestShip_LooksBackOnce: a retro after DEPLOYED, none before, none twice.
func TestShip_LooksBackOnce(t *testing.T) {
	const retro = "retro.R.1"
	s, story := shippable(t)
	s.shipTo(work.ShipSmoke)
	if s.tree("R").Task(retro) != nil {
		t.Error("it looks back before the end")
	}
	s.gates("R", true)
	s.is(retro + " QUEUED(slot)")
	if r := s.task(retro); r.Role() != work.Retro || r.StoryID != "S" || r.ParentTaskID != "" {
		t.Errorf("the retro is %+v", r)
	}
	s.start(retro)
	lessons := []string{"test first"}
	x := live(s.tree("R"), retro, work.AgentRun)
	s.report(work.Report{Execution: x.ID, Lessons: &lessons})
	s.end(retro, success(""))
	s.is(retro + " COMPLETED")
	s.status(story, work.Deployed)
	if got := s.task(retro).Lessons; len(got) != 1 {
		t.Errorf("lessons %q", got)
	}
	s.ask(work.RemoveTask{Task: retro})
	s.report(work.Settle{})
	if s.tree("R").Task(retro) != nil {
		t.Error("it looks back again")
	}
}

func TestShip_WithoutAnAgentNobodyLooksBack(t *testing.T) {
	s, story := shippable(t)
	s.shipTo(work.ShipSmoke)
	s.without()
	s.gates("R", true)
	s.status(story, work.Deployed)
	if s.tree("R").Task("retro.R.1") != nil {
		t.Error("a retro waits for an agent that is not there")
	}
	s.now = s.now.Add(time.Hour)
	s.listed("R")
}

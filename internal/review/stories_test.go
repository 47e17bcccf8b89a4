package review_test

import (
	"testing"

	"github.com/claudomator/claudomator/internal/work"
)

// The tests here are named after the sentences of section 7, and of "Landing work".

func (s *stage) status(story *work.Story, want work.StoryStatus) {
	s.t.Helper()
	if story.Status != want {
		s.t.Errorf("the story is %s, want %s", story.Status, want)
	}
}

func TestStory_OnlyTheRootMovesItsStatus(t *testing.T) {
	s := newStage(t)
	story := s.story("R", "arbitrated")
	s.start("R")
	one := s.spawn("R", "one")
	s.end("R", success("r1"))
	s.status(story, work.InProgress)
	s.run(one, success("o1"))
	s.is(string(one) + " READY(judges)") // nested nodes are judged while the root is BLOCKED
	s.status(story, work.InProgress)
	s.approve(one)
	s.integrates(one)
	s.is("R READY(judges)")
	s.status(story, work.Validating)
	s.approve("R")
	s.status(story, work.ReviewReady)
	s.listed("R", " story")
	s.ask(work.AcceptTask{Task: "R"})
	s.status(story, work.Shippable)
}

func TestStory_APersonsAcceptOfAReadyRootMakesItShippable(t *testing.T) {
	s := newStage(t)
	story := s.story("R", "arbitrated")
	s.run("R", success("r1"))
	s.status(story, work.Validating)
	s.ask(work.AcceptTask{Task: "R"})
	s.status(story, work.Shippable)
}

func TestStory_NeedsFixUntilTheFixStarts(t *testing.T) {
	for name, play := range map[string]func(s *stage){
		"by arbitration":            func(s *stage) { s.reject("R", "no") },
		"by a person, VALIDATING":   func(s *stage) { s.ask(work.RejectTask{Task: "R", Comment: "no"}) },
		"by a person, REVIEW_READY": func(s *stage) { s.approve("R"); s.ask(work.RejectTask{Task: "R", Comment: "no"}) },
		"by a person, SHIPPABLE": func(s *stage) {
			s.ask(work.AcceptTask{Task: "R"})
			s.ask(work.RejectTask{Task: "R", Comment: "no"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			story := s.story("R", "arbitrated")
			s.run("R", success("r1"))
			play(s)
			s.status(story, work.NeedsFix)
			s.start("fix.R.2")
			s.status(story, work.InProgress)
			if story.RootTaskID != "R" {
				t.Errorf("the root is now %s", story.RootTaskID)
			}
		})
	}
}

func TestStory_AtTheCapItAsksAPerson(t *testing.T) {
	none := 0
	s := newStage(t, func(p *work.Project) { p.MaxFixes = &none })
	story := s.story("R", "arbitrated")
	s.run("R", success("r1"))
	s.reject("R", "no")
	s.status(story, work.NeedsFix)
	s.holds("R", work.HoldCap)
	s.ask(work.RejectTask{Task: "R", Comment: "no", Extra: 1})
	s.status(story, work.NeedsFix)
	s.run("fix.R.2", success("r2"))
	s.ask(work.AcceptTask{Task: "fix.R.2"})
	s.status(story, work.Shippable)
}

func TestStory_ABadlyEndedRootKeepsItInProgress(t *testing.T) {
	s := newStage(t)
	story := s.story("R", "arbitrated")
	s.run("R", ends(work.FailedRun, "no luck"))
	s.status(story, work.InProgress)
	s.listed("R", "R ended")
}

func TestStory_ItsRootIsCancelledAndRemovedByTheStoryAlone(t *testing.T) {
	s := newStage(t)
	s.story("R", "arbitrated")
	s.refused(work.CancelTask{Task: "R"}, "story_root")
	s.run("R", ends(work.FailedRun, ""))
	s.refused(work.RemoveTask{Task: "R"}, "story_root")
}

func TestStory_WhatWasShippedIsNotRejected(t *testing.T) {
	s := newStage(t)
	story := s.story("R", "arbitrated")
	s.run("R", success("r1"))
	s.ask(work.AcceptTask{Task: "R"})
	story.Status = work.Deployed
	s.refused(work.RejectTask{Task: "R", Comment: "no"}, "story_status")
	s.refused(work.StartMerge{Task: "R"}, "story_node")
}

// checkedStory has two plan tasks below its root.
func checkedStory(t *testing.T) (*stage, *work.Story) {
	t.Helper()
	s := newStage(t)
	story := s.story("R", "checked")
	s.start("R")
	s.spawn("R", "one")
	s.spawn("R", "two")
	s.end("R", success("r1"))
	return s, story
}

const planOne, planTwo = "child.R.one", "child.R.two"

func TestStory_CheckedIsShippableWhenEachCheckIsOver(t *testing.T) {
	s, story := checkedStory(t)
	s.run(planOne, success("o1"))
	s.says(planOne, work.Checker, approval(s.task(planOne)))
	s.integrates(planOne)
	s.status(story, work.InProgress)
	s.run(planTwo, success("t1"))
	s.status(story, work.InProgress)
	s.says(planTwo, work.Checker, rejection("wrong"))
	s.is(planTwo+" READY(person)", "R BLOCKED(children)")
	s.status(story, work.Shippable)
	s.ask(work.RejectTask{Task: planTwo, Comment: "no"})
	s.status(story, work.InProgress)
	fix := work.TaskID("fix." + planTwo + ".2")
	s.run(fix, success("t2"))
	s.says(fix, work.Checker, approval(s.task(fix)))
	s.integrates(fix)
	s.is("R COMPLETED")
	s.status(story, work.Shippable)
	s.ask(work.RejectTask{Task: "R", Comment: "no"})
	s.status(story, work.NeedsFix)
}

func TestStory_CheckedWithoutACheckIsNotShippable(t *testing.T) {
	s, story := checkedStory(t)
	s.without()
	for _, id := range []work.TaskID{planOne, planTwo} {
		s.run(id, success("x"+string(id)))
		s.holds(id, work.HoldNoJudge)
	}
	s.status(story, work.InProgress)
}

func TestLanding_OnlyAcceptedTopLevelWork(t *testing.T) {
	s := family(t, "human")
	s.run("a", success("a1"))
	s.refused(work.StartMerge{Task: "a"}, "not_top_level")
	s.refused(work.StartMerge{Task: "P"}, "not_accepted")
	s.refused(work.AcceptTask{Task: "a", Land: new(true), Target: "bad..name"}, "")
}

func TestLanding_StartsOnceAndSaysWhere(t *testing.T) {
	s := newStage(t)
	s.create("a", "none")
	s.run("a", success("a1"))
	s.refused(work.StartMerge{Task: "a", Target: "-x"}, "")
	s.ask(work.StartMerge{Task: "a", Target: "dev"})
	s.refused(work.StartMerge{Task: "a"}, "merge_running")
	s.refused(work.RemoveTask{Task: "a"}, "landing")
	m := s.tree("a").OpenMerge("a")
	s.lands("a", landed)
	if got := s.task("a").Landed; got == nil || got.Branch != "dev" || got.Commit != "l1" {
		t.Errorf("landed %+v", got)
	}
	s.refused(work.StartMerge{Task: "a"}, "already_landed")
	if err := s.do(s.tree("a"), work.System(), work.Landed{Merge: m.ID, Commit: "l2"}); work.CodeOf(err) != work.Conflict {
		t.Errorf("a second report: %v", err)
	}
}

func TestLanding_NothingToLand(t *testing.T) {
	s := newStage(t)
	s.create("a", "none")
	s.run("a", nothing())
	s.ask(work.StartMerge{Task: "a"})
	m := s.tree("a").OpenMerge("a")
	s.lands("a", func(id work.MergeID) work.Command { return work.Landed{Merge: id} })
	if m.Status != work.MergeNothing || s.task("a").Landed != nil {
		t.Errorf("it ended %s", m.Status)
	}
}

// TestLanding_AcceptWithLanding: COMPLETED only when the target has moved.
func TestLanding_AcceptWithLanding(t *testing.T) {
	begin := func(t *testing.T) *stage {
		s := newStage(t)
		s.create("a", "human")
		s.run("a", success("a1"))
		s.ask(work.AcceptTask{Task: "a", Land: new(true)})
		s.is("a READY(landing)")
		s.refused(work.CancelTask{Task: "a"}, "landing")
		return s
	}
	t.Run("lands", func(t *testing.T) {
		s := begin(t)
		s.lands("a", landed)
		s.is("a COMPLETED")
	})
	t.Run("is refused", func(t *testing.T) {
		s := begin(t)
		s.lands("a", landRefused)
		s.holds("a", work.HoldLanding)
		if s.task("a").Accepted != nil {
			t.Error("it is still accepted")
		}
	})
	t.Run("conflicts", func(t *testing.T) {
		s := begin(t)
		m := s.tree("a").OpenMerge("a")
		s.refused(work.ContinueMerge{Merge: m.ID}, "merge_running")
		s.lands("a", landConflict)
		s.is("a BLOCKED(conflict)")
		s.listed("a", "a conflict")
		s.refused(work.SubmitTask{Task: "a"}, "landing")
		s.refused(work.CancelTask{Task: "a"}, "landing")
		s.ask(work.ContinueMerge{Merge: m.ID})
		s.is("a READY(landing)")
		s.listed("a")
		s.lands("a", landConflict) // markers remained
		s.is("a BLOCKED(conflict)")
		s.ask(work.ContinueMerge{Merge: m.ID})
		s.lands("a", landed)
		s.is("a COMPLETED")
		s.refused(work.AbortMerge{Merge: m.ID}, "merge_over")
	})
	t.Run("is aborted", func(t *testing.T) {
		s := begin(t)
		m := s.tree("a").OpenMerge("a")
		s.refused(work.AbortMerge{Merge: m.ID}, "merge_running")
		s.lands("a", landConflict)
		s.ask(work.AbortMerge{Merge: m.ID})
		s.holds("a", work.HoldLanding)
		if s.task("a").Accepted != nil {
			t.Error("it is still accepted")
		}
		s.due()
		s.refused(work.ContinueMerge{Merge: m.ID}, "merge_over")
	})
}

// TestLanding_TakesImprovementsOfAllAttemptsInOrder: what ended badly is skipped,
// what is landed already too.
func TestLanding_TakesImprovementsOfAllAttemptsInOrder(t *testing.T) {
	s := newStage(t)
	s.create("P", "human")
	s.start("P")
	one, two := s.suggest("P", "one"), s.suggest("P", "two")
	s.end("P", success("p1"))
	s.run(one, success("o1"))
	s.run(two, ends(work.FailedRun, ""))
	s.ask(work.RejectTask{Task: "P", Comment: "no"})
	s.start("fix.P.2")
	three := s.suggest("fix.P.2", "three")
	s.end("fix.P.2", success("p2"))
	s.run(three, success("t1"))
	s.ask(work.AcceptTask{Task: "fix.P.2", Land: new(true)})
	m := s.tree("P").OpenMerge("fix.P.2")
	want := []work.MergePart{{TaskID: "fix.P.2", Commit: "p2"}, {TaskID: one, Commit: "o1"}, {TaskID: three, Commit: "t1"}}
	if len(m.Queue) != 3 || m.Queue[0] != want[0] || m.Queue[1] != want[1] || m.Queue[2] != want[2] {
		t.Errorf("it lands %+v", m.Queue)
	}
	s.news()
	s.lands("fix.P.2", landed)
	s.tells("task.landed fix.P.2", "task.landed "+string(one), "task.landed "+string(three), "merge.landed fix.P.2", "task.completed fix.P.2")
	if got := s.task("fix.P.2").Summary; got != "" {
		t.Errorf("the fix has no failed improvements, and says %q", got)
	}
	if got := s.task("P").Summary; got != "children: 1 failed, 0 cancelled" {
		t.Errorf("P says %q", got)
	}
}

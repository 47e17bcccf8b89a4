package review_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/claudomator/claudomator/internal/work"
)

// What becomes of the pull request of a story that is cancelled.

// closePull closes a cancelled story's pull request, or finds that it cannot.
func (s *sim) closePull(tree *work.Tree, e work.Effect) {
	c := work.PullEnded{Task: e.Task, Pull: work.Pull{Number: 1, URL: "u", Head: "h", State: work.PullClosed}}
	switch s.choose(5) {
	case 0:
	case 1:
		c.Pull.State, c.Commit = work.PullMerged, "merged.h"
	case 2:
		c.Pull, c.Failure, c.Again = work.Pull{}, "away", true
		s.effects = append(s.effects, e)
	case 3:
		c.Pull, c.Failure = work.Pull{}, "401"
	case 4:
		c.Pull = work.Pull{} // there is none
	}
	err := s.do(tree, work.System(), c)
	s.say("close the pull request of %s: %s %q %v", e.Task, c.Pull.State, c.Failure, err)
	s.stale(err)
}

func ended(state work.PullState) work.PullEnded {
	return work.PullEnded{Task: "R", Pull: work.Pull{Number: 7, URL: "http://forge/7", Head: "r1", State: state}}
}

// pulled is a story that is shipped by pull request, which is open.
func pulled(t *testing.T) (*stage, *work.Story) {
	t.Helper()
	s, story := shippable(t, whole, pulls)
	s.shipTo(work.ShipPull)
	s.seen("R", "open", "pending", "")
	s.effects = nil
	return s, story
}

// TestShip_CancelClosesThePullRequest: nothing has moved the target yet.
func TestShip_CancelClosesThePullRequest(t *testing.T) {
	for name, test := range map[string]struct {
		report work.PullEnded
		state  work.PullState
		error  string
	}{
		"closed":            {ended("closed"), "closed", ""},
		"merged meanwhile":  {work.PullEnded{Task: "R", Pull: ended("merged").Pull, Commit: "f1"}, "merged", "the pull request was merged before it could be closed; nothing of it was deployed"},
		"tried again":       {work.PullEnded{Task: "R", Failure: "away", Again: true}, "open", "the pull request is not closed yet, and that is tried again: away"},
		"not possible":      {work.PullEnded{Task: "R", Failure: "401"}, "open", "the pull request could not be closed, close it at the forge: 401"},
		"without a comment": {work.PullEnded{Task: "R", Pull: ended("closed").Pull, Failure: "locked"}, "closed", "the pull request is closed, but without a word of why: locked"},
	} {
		t.Run(name, func(t *testing.T) {
			s, story := pulled(t)
			if !strings.Contains(fmt.Sprint(s.tree("R").StoryActions()), "cancel") {
				t.Errorf("it offers %v", s.tree("R").StoryActions())
			}
			s.tell(work.CancelStory{})
			s.status(story, work.StoryCancelled)
			s.due("close_pull R")
			s.late(work.PullSeen{Task: "R", Pull: work.Pull{State: "merged"}})
			s.report(test.report)
			if story.Ship.Pull.State != test.state || story.Ship.Error != test.error || story.Ship.Commit != test.report.Commit || story.Status != work.StoryCancelled {
				t.Errorf("%s, %+v, pull request %+v", story.Status, story.Ship, story.Ship.Pull)
			}
			version := s.tree("R").Version
			s.report(test.report) // delivered twice
			if s.tree("R").Version != version {
				t.Error("the same is told twice")
			}
			s.report(ended("closed"))
			if story.Ship.Pull.State != "closed" || story.Ship.Error != "" {
				t.Errorf("closed in the end: %+v", story.Ship)
			}
			if s.task("R").Landed != nil || s.item() != "" {
				t.Errorf("landed %+v, inbox %q", s.task("R").Landed, s.item())
			}
		})
	}
}

// TestShip_CancelLooksForAPullRequestWhereOneMayBe: its opening may be under way, or
// its answer lost; where none can be open, no forge is asked.
func TestShip_CancelLooksForAPullRequestWhereOneMayBe(t *testing.T) {
	for name, test := range map[string]struct {
		play func(s *stage)
		due  bool
	}{
		"while it is opened":      {func(s *stage) { s.shipTo(work.ShipPull) }, true},
		"its opening failed":      {func(s *stage) { s.shipTo(work.ShipPull); s.report(work.PullSeen{Task: "R", Failure: "no answer"}) }, true},
		"in a fix of its checks":  {func(s *stage) { s.shipTo(work.ShipPull); s.seen("R", "open", "failed", "lint") }, true},
		"closed by a person":      {func(s *stage) { s.shipTo(work.ShipPull); s.seen("R", "closed", "", "") }, false},
		"while another is opened": {func(s *stage) { s.shipTo(work.ShipPull); s.seen("R", "closed", "", ""); s.shipTo(work.ShipPull) }, true},
		"never shipped":           {func(*stage) {}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, story := shippable(t, whole, pulls)
			test.play(s)
			s.effects = nil
			s.tell(work.CancelStory{})
			s.status(story, work.StoryCancelled)
			if _, due := s.takeAny(work.ClosePull); due != test.due {
				t.Errorf("a pull request is looked for: %t", due)
			}
		})
	}
}

// takeAny is the first effect of a kind, whatever its task.
func (s *stage) takeAny(kind work.EffectKind) (work.Effect, bool) {
	for _, e := range s.effects {
		if e.Kind == kind {
			return e, true
		}
	}
	return work.Effect{}, false
}

// TestShip_AMergedPullRequestIsNotCancelled, also not while it is looked for again.
func TestShip_AMergedPullRequestIsNotCancelled(t *testing.T) {
	s, story := pulled(t)
	s.seen("R", "merged", "", "")
	s.denied(work.CancelStory{}, work.Illegal, "shipping")
	s.run("R", gates(false))
	s.status(story, work.DeployFailed)
	s.denied(work.CancelStory{}, work.Illegal, "story_status")
	s.tell(work.ShipStory{})
	s.step(work.ShipPull)
	s.denied(work.CancelStory{}, work.Illegal, "shipping")
	s.late(ended("closed"))
}

// TestShip_AForgeThatIsAskedLaterIsNamed until it has answered; one that has only just
// opened the pull request asks nobody to merge it.
func TestShip_AForgeThatIsAskedLaterIsNamed(t *testing.T) {
	s, _ := shippable(t, whole, pulls)
	s.shipTo(work.ShipPull)
	e, ok := s.take(work.PullRequest, "R")
	if !ok {
		t.Fatal("nothing is opened")
	}
	inbox := func() (texts []string) {
		for _, i := range work.Inbox(s.tree("R")) {
			texts = append(texts, string(i.Kind)+": "+i.Text)
		}
		return texts
	}
	s.report(work.Stuck{Effect: e, Error: "too many requests"})
	if got := inbox(); len(got) != 1 || !strings.HasPrefix(got[0], "stuck: ") || !strings.HasSuffix(got[0], "too many requests") {
		t.Errorf("the inbox has %q", got)
	}
	for _, checks := range []string{"", "pending"} {
		s.seen("R", "open", checks, "")
		if got := inbox(); len(got) != 0 {
			t.Errorf("with checks %q the inbox has %q", checks, got)
		}
	}
	for _, checks := range []string{"none", "passed", "unknown: 403"} {
		s.seen("R", "open", checks, "")
		if got := inbox(); len(got) != 1 || got[0] != "story: pull request http://forge/7 waits to be merged" {
			t.Errorf("with checks %q the inbox has %q", checks, got)
		}
	}
}

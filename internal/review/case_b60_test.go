package review_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/claudomator/claudomator/internal/work"
)

// TestB60_AReviewCycleEnds: case B60 of the catalogue, a review that never approves.
// Automatic and human rounds have one hard bound, rounds that bring nothing new end
// before it, and all ends with a person, with the findings, and never accepted.
func TestB60_AReviewCycleEnds(t *testing.T) {
	for name, c := range map[string]struct {
		play func(s *b60)
		hold work.Hold
		at   int // the attempt that a person gets
	}{
		"a reviewer that always finds something else": {func(s *b60) {
			for n := range 4 {
				s.round(finding(n))
			}
		}, work.HoldCap, 4},
		"a reviewer that finds the same again": {func(s *b60) {
			s.round(finding(1))
			s.round(finding(1))
		}, work.HoldStalemate, 2},
		"a reviewer that finds more and more": {func(s *b60) {
			s.round(finding(1))
			s.round(finding(2), finding(3))
		}, work.HoldStalemate, 2},
		"a reviewer without a reason": {func(s *b60) {
			for range 4 {
				s.round()
			}
		}, work.HoldCap, 4},
		"a worker that changes nothing": {func(s *b60) {
			s.round(finding(1))
			s.run(s.current(), nothing())
		}, work.HoldNoChanges, 2},
		"a worker that undoes its work": {func(s *b60) {
			s.round(finding(1))
			s.run(s.current(), undone)
		}, work.HoldNoChanges, 2},
		"a worker that undoes part of it, and does it again": {func(s *b60) {
			s.round(finding(1))
			s.round(finding(2))
			s.round(finding(1))
		}, work.HoldStalemate, 3},
		"a message in round 2 is no way around the bound": {func(s *b60) {
			s.round(finding(1))
			s.run(s.current(), success("m1"))
			s.ask(work.MessageTask{Task: s.current(), Text: "mind this"})
			s.round(finding(2))
			s.round(finding(3))
			s.round(finding(4))
		}, work.HoldCap, 4},
		"a person's rejections count too": {func(s *b60) {
			s.round(finding(1))
			s.run(s.current(), success("p1"))
			s.ask(work.RejectTask{Task: s.current(), Comment: "and this"})
			s.round(finding(2))
			s.round(finding(3))
		}, work.HoldCap, 4},
	} {
		for place, id := range map[string]work.TaskID{"the root": "R", "a nested node": planOne} {
			t.Run(name+", at "+place, func(t *testing.T) {
				s := &b60{stage: newStage(t), id: id}
				parts := []work.PlanTask{}
				if id == planOne {
					parts = append(parts, part("one"))
				}
				story := s.approved(plan("", parts...))
				c.play(s)
				last := s.task(s.current())
				if last.AttemptNo != c.at {
					t.Errorf("it ended with attempt %d, want %d", last.AttemptNo, c.at)
				}
				s.holds(last.ID, c.hold)
				for _, attempt := range s.tree("R").Chain(last.Position()) {
					if attempt.Accepted != nil {
						t.Errorf("%s was accepted", attempt.ID)
					}
					if attempt.AttemptNo > 1 && attempt.RejectionComment == "" {
						t.Errorf("%s does not know why", attempt.ID)
					}
				}
				if last.Hold != work.HoldNoChanges && last.CheckerReport == "" {
					t.Error("a person does not see the findings")
				}
				for _, e := range s.events {
					if e.Kind == "story.review_ready" || e.Kind == "story.shippable" {
						t.Errorf("it tells %s", e.Kind)
					}
				}
				if nested := story.Status == work.InProgress; nested != (id == planOne) {
					t.Errorf("the story is %s", story.Status)
				}
				s.effects = nil
				s.report(work.Settle{Redeliver: true}) // a restart does not begin it again
				if due := slices.DeleteFunc(s.pending(), func(e string) bool { return !strings.HasPrefix(e, "start_execution") }); len(due) > 0 {
					t.Errorf("it goes on: %q", due)
				}
			})
		}
	}
}

// b60 plays rounds at one place.
type b60 struct {
	*stage
	id work.TaskID
	n  int
}

// current is the attempt that stands there now.
func (s *b60) current() work.TaskID { return s.tree("R").Current(work.Position(s.id)).ID }

// round lets the worker change something, and the reviewer reject it.
func (s *b60) round(findings ...work.Finding) {
	s.t.Helper()
	s.n++
	id := s.current()
	s.run(id, success("r"+string(rune('0'+s.n))))
	s.reject(id, "no", findings...)
}

// undone ends a run whose commits add up to nothing.
func undone(w *world, tree *work.Tree, t *work.Task, end *work.End) {
	success("u1")(w, tree, t, end)
	end.Result = &work.Result{Base: end.Base, Head: end.Head, NoChanges: true}
}

package review_test

import (
	"testing"

	"github.com/claudomator/claudomator/internal/work"
)

// The tests here hold what nobody has accepted, and what nobody has judged, off the
// ways by which it could slip in.

// TestUnaccepted_APostponedTaskStartsOver: it began from a parent's work that nobody
// has accepted.
func TestUnaccepted_APostponedTaskStartsOver(t *testing.T) {
	s := newStage(t)
	s.create("P", "human")
	s.ask(work.CreateTask{ID: "b", Input: work.TaskInput{Name: "b", ParentTaskID: "P", Review: "human"}})
	s.run("P", success("p1"))
	s.run("b", ends(work.FailedRun, "no"))
	s.ask(work.PostponeTask{Task: "b"})
	b := s.task("b")
	if b.Book.Base != "" || b.Book.Head != "" || !b.Book.Fresh || b.Result != nil {
		t.Errorf("it goes on from %+v, %+v", b.Book, b.Result)
	}
	s.ask(work.CancelTask{Task: "b"})
	s.refused(work.SubmitTask{Task: "b"}, "starts_over")
	s.ask(work.RetryTask{Task: "b"})
	s.run("b", ends(work.FailedRun, "not even prepared"))
	if !b.Book.Fresh {
		t.Error("a run that never began has made do with what lies there")
	}
	s.ask(work.RetryTask{Task: "b"})
	s.run("b", success("b1"))
	if b.Book.Fresh || b.Book.Head != "b1" {
		t.Errorf("it goes on from %+v", b.Book)
	}
}

// TestUnaccepted_WhatIsAskedAnewIsJudgedAnew: gates, criteria and instructions that
// were changed under judges.
func TestUnaccepted_WhatIsAskedAnewIsJudgedAnew(t *testing.T) {
	gates, criteria, instructions, name := []string{"exit 1"}, []string{"the moon is blue"}, "otherwise", "other"
	for what, c := range map[string]struct {
		patch work.PatchTask
		anew  bool
	}{
		"gates":        {work.PatchTask{Gates: &gates}, true},
		"criteria":     {work.PatchTask{AcceptanceCriteria: &criteria}, true},
		"instructions": {work.PatchTask{Instructions: &instructions}, true},
		"name":         {work.PatchTask{Name: &name}, false},
	} {
		t.Run(what, func(t *testing.T) {
			s := newStage(t)
			s.create("a", "arbitrated")
			s.run("a", success("a1"))
			first := s.judge("a", work.EvaluatorTests)
			c.patch.Task = "a"
			s.ask(c.patch)
			if got := first.State == work.Cancelled; got != c.anew {
				t.Errorf("the first judge is %s", first.State)
			}
			if what == "gates" {
				s.is("a READY(gates)")
			} else if j := s.judge("a", work.EvaluatorTests); (j.ID != first.ID) != c.anew {
				t.Errorf("it is judged by %s", j.ID)
			}
		})
	}
}

// TestUnaccepted_ACheckedStoryBuiltByItsRoot: all of its tasks were dropped, and the
// root, sent back, has built it.
func TestUnaccepted_ACheckedStoryBuiltByItsRoot(t *testing.T) {
	s := newStage(t)
	story := s.approved(checkedPlan())
	for _, id := range []work.TaskID{planOne, planTwo} {
		s.run(id, ends(work.FailedRun, "no"))
		s.ask(work.DropTask{Task: id})
	}
	s.status(story, work.InProgress)
	s.ask(work.RejectTask{Task: "R", Comment: "build it yourself"})
	s.run("fix.R.2", success("r2"))
	s.status(story, work.Shippable)
}

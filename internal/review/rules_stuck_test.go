package review_test

import (
	"testing"

	"github.com/claudomator/claudomator/internal/work"
)

// TestStuck_IsTakenBackByTheAnswer: what kept failing is over once there is an answer,
// also when the same is waited for again.
func TestStuck_IsTakenBackByTheAnswer(t *testing.T) {
	s := newStage(t)
	s.create("m", "human")
	s.run("m", success("m1"))
	s.ask(work.AcceptTask{Task: "m"})
	s.ask(work.StartMerge{Task: "m"})
	e, ok := s.take(work.Land, "m")
	if !ok {
		t.Fatal("nothing lands")
	}
	fails := func() error {
		return s.do(s.treeOf("m"), work.System(), work.Stuck{Effect: e, Error: "the disk is full"})
	}
	if err := fails(); err != nil {
		t.Fatal(err)
	}
	s.listed("m", "m stuck")
	if err := s.do(s.treeOf("m"), work.System(), landConflict(e.Merge)); err != nil {
		t.Fatal(err)
	}
	s.listed("m", "m conflict")
	if err := fails(); err == nil {
		t.Error("what nothing waits for is told")
	}
	s.ask(work.ContinueMerge{Merge: e.Merge})
	s.listed("m")
	if err := fails(); err != nil { // once more
		t.Fatal(err)
	}
	s.listed("m", "m stuck")
	s.lands("m", landed)
	s.listed("m")
}

// TestStuck_OfAnotherPriority: what a job is to do stays the same when its task is
// given another priority meanwhile.
func TestStuck_OfAnotherPriority(t *testing.T) {
	s := newStage(t)
	s.create("q", "none")
	e, ok := s.take(work.StartExecution, "q")
	if !ok {
		t.Fatal("nothing starts")
	}
	high := work.High
	for range 2 {
		if err := s.do(s.treeOf("q"), work.System(), work.Stuck{Effect: e, Error: "the disk is full"}); err != nil {
			t.Fatal(err)
		}
		s.listed("q", "q stuck")
		s.ask(work.PatchTask{Task: "q", Priority: &high})
		s.listed("q", "q stuck")
	}
}

package engine

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudomator/claudomator/internal/work"
)

// TestPickTakesNoMoreThanFits: of two started for one slot the less urgent could
// be first.
func TestPickTakesNoMoreThanFits(t *testing.T) {
	t.Parallel()
	s := newSlots(3, map[string]int{"codex": 1})
	small := work.Project{ID: "small", Limits: work.Limits{Slots: 1}}
	if !s.take(small, "claude") || s.take(small, "claude") {
		t.Fatal("a project of one slot must get exactly one")
	}
	waiting := func(project work.ProjectID, agent, id string) work.Waiting {
		return work.Waiting{Project: project, Agent: agent, Execution: work.ExecutionID(id)}
	}
	list := []work.Waiting{
		waiting("small", "claude", "held back by its project"),
		waiting("large", "codex", "first"),
		waiting("large", "codex", "held back by its agent"),
		waiting("large", "claude", "second"),
		waiting("large", "claude", "no slot left"),
	}
	var got []work.ExecutionID
	for _, w := range s.pick(list, false) {
		got = append(got, w.Execution)
	}
	if diff := cmp.Diff([]work.ExecutionID{"first", "second"}, got); diff != "" {
		t.Errorf("picked (-want +got):\n%s", diff)
	}
	if !s.give("small", "claude") {
		t.Error("those left over are forgotten")
	}
	s.answer()
	s.pick(nil, false)
	if s.give("small", "claude") {
		t.Error("nothing waits, and yet it is looked for")
	}
	// As many slots have been freed since as there are in the list: it is all
	// chosen, and what is not in it must not be forgotten.
	s.answer()
	if s.pick(list[1:2], true); !s.give("small", "claude") {
		t.Error("what was not looked at is forgotten")
	}
}

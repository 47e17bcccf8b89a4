package engine

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/claudomator/claudomator/internal/work"
)

// slots counts what runs here against the limits.
type slots struct {
	most     int
	perAgent map[string]int

	mu        sync.Mutex
	taken     int
	byAgent   map[string]int
	byProject map[work.ProjectID]int
	limits    map[work.ProjectID]int // as last seen
	refused   bool                   // something waits for a slot
}

func newSlots(most int, perAgent map[string]int) slots {
	return slots{
		most: most, perAgent: perAgent,
		byAgent: map[string]int{}, byProject: map[work.ProjectID]int{}, limits: map[work.ProjectID]int{},
	}
}

// take gives a slot, or remembers that someone was refused.
func (s *slots) take(project work.Project, agent string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limits[project.ID] = project.Limits.Slots
	if !s.free(project.ID, project.Limits.Slots, agent) {
		s.refused = true
		return false
	}
	s.taken++
	s.byAgent[agent]++
	s.byProject[project.ID]++
	return true
}

func (s *slots) free(project work.ProjectID, limit int, agent string) bool {
	return s.taken < s.most && (limit == 0 || s.byProject[project] < limit) &&
		(s.perAgent[agent] == 0 || s.byAgent[agent] < s.perAgent[agent])
}

// give returns a slot; true when something may have waited for it.
func (s *slots) give(project work.ProjectID, agent string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken--
	s.byAgent[agent]--
	s.byProject[project]--
	return s.refused
}

// answer says that the refusals so far are being answered: what waits is looked
// up after this.
func (s *slots) answer() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = false
}

// pick chooses, in the order of the list, what there are slots for now. It must
// not be more: jobs run side by side, and of two that want the last slot either
// may be first. Those left over, and more that are not in the list, are
// remembered as refused.
func (s *slots) pick(list []work.Waiting, more bool) []work.Waiting {
	s.mu.Lock()
	defer s.mu.Unlock()
	then := slots{
		most: s.most, perAgent: s.perAgent, taken: s.taken,
		byAgent: maps.Clone(s.byAgent), byProject: maps.Clone(s.byProject),
	}
	var chosen []work.Waiting
	for _, w := range list {
		if then.free(w.Project, s.limits[w.Project], w.Agent) {
			chosen = append(chosen, w)
			then.taken++
			then.byAgent[w.Agent]++
			then.byProject[w.Project]++
		}
	}
	s.refused = s.refused || more || len(chosen) < len(list)
	return chosen
}

// room is how many slots are free.
func (s *slots) room() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.most - s.taken
}

// none is true, and remembered as a refusal, when no slot at all is free.
func (s *slots) none() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = s.refused || s.taken >= s.most
	return s.taken >= s.most
}

func (s *slots) wait() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = true
}

// hungry is true while something may wait for a slot, and one is free.
func (s *slots) hungry() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused && s.taken < s.most
}

const waitingMost = 50_000

// pump starts what waits, as far as there is room, in the order of priority and
// age. It is called when a slot was freed and something was refused, and by the
// beat when that has failed. It looks further when those in front are held back
// by limits of their own.
func (e *Engine) pump(ctx context.Context) error {
	e.slots.answer()
	var chosen []work.Waiting
	for page := 2*e.slots.room() + 1; page <= waitingMost; page *= 8 {
		list, err := e.o.Schedule.Waiting(ctx, page)
		if err != nil {
			e.slots.wait()
			return err
		}
		if chosen = e.slots.pick(list, len(list) == page); len(list) < page || len(chosen) == len(list) || len(chosen) >= e.slots.room() {
			break
		}
	}
	var effects []work.Effect
	for _, w := range chosen {
		effects = append(effects, work.Effect{Kind: work.StartExecution, Tree: w.Tree, Task: w.Task, Execution: w.Execution, Priority: w.Priority})
	}
	if err := e.o.Queue.nudge(ctx, effects...); err != nil {
		e.slots.wait()
		return err
	}
	return nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

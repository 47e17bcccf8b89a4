package engine

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/claudomator/claudomator/internal/app"
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
	refused   bool // something waits for a slot
}

// take gives a slot, or remembers that someone was refused.
func (s *slots) take(project work.Project, agent string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
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

// room is how many slots are free; the refusals so far are answered by whoever
// asked.
func (s *slots) room() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = false
	return s.most - s.taken
}

func (s *slots) wait() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = true
}

// ages is how long a task of a priority waits until a new one of the highest
// no longer passes it: nothing starves.
func ages() map[work.Priority]time.Duration {
	return map[work.Priority]time.Duration{work.Urgent: 0, work.High: 5 * time.Minute, work.Normal: 20 * time.Minute, work.Low: time.Hour}
}

const waitingPage = 500

// pump starts what waits, as far as there is room: the most urgent first, age
// counted in. It is called when a slot was freed and something was refused.
func (e *Engine) pump(ctx context.Context) error {
	room := e.slots.room()
	if room <= 0 {
		e.slots.wait()
		return nil
	}
	list, err := e.o.Schedule.Waiting(ctx, waitingPage)
	if err != nil {
		e.slots.wait()
		return err
	}
	age := ages()
	due := func(w app.Waiting) time.Time { return w.Since.Add(age[w.Priority]) }
	slices.SortStableFunc(list, func(a, b app.Waiting) int { return due(a).Compare(due(b)) })
	// More than there is room for: some are held back by limits of their own,
	// and those that find no slot go back to waiting.
	if len(list) > 2*room {
		list = list[:2*room]
		e.slots.wait()
	}
	effects := make([]work.Effect, len(list))
	for i, w := range list {
		effects[i] = work.Effect{Kind: work.StartExecution, Tree: w.Tree, Task: w.Task, Execution: w.Execution, Priority: w.Priority}
	}
	return e.o.Queue.nudge(ctx, effects...)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

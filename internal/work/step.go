package work

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Step is one decision in the making: a tree, the instant, and what has been
// changed so far. Commands and the review interpreter change the tree through
// its verbs alone.
type Step struct {
	Tree  *Tree
	Now   time.Time
	IDs   IDs
	Actor Actor
	// MaxFixes is the policy's cap of fix attempts for a task (package review).
	MaxFixes func(*Task) int

	tasks     map[TaskID]bool
	removed   []TaskID
	moved     []*Task // rows that left for a tree of their own, with their runs
	movedRuns []*Execution
	runs      map[ExecutionID]bool
	merges    map[MergeID]bool
	story     bool
	events    []Event
	effects   []Effect
	edges     *int64
	touched   []TaskID
	queued    map[TaskID]bool
}

// NewStep begins a decision.
func NewStep(tree *Tree, now time.Time, ids IDs, actor Actor) *Step {
	return &Step{
		Tree: tree, Now: now.UTC().Truncate(time.Microsecond), IDs: ids, Actor: actor,
		tasks: map[TaskID]bool{}, runs: map[ExecutionID]bool{}, merges: map[MergeID]bool{}, queued: map[TaskID]bool{},
	}
}

// Dirty is true once the tree has been changed.
func (s *Step) Dirty() bool {
	return len(s.tasks)+len(s.runs)+len(s.merges)+len(s.removed)+len(s.moved)+len(s.events)+len(s.effects) > 0 || s.story
}

// edit marks a task changed and touches all that may follow from it.
func (s *Step) edit(t *Task) {
	s.tasks[t.ID] = true
	t.UpdatedAt = s.Now
	s.Touch(t.ID)
	if t.ParentTaskID != "" {
		s.Touch(t.ParentTaskID)
	}
	if t.Judges != nil {
		s.Touch(t.Judges.TaskID)
	}
}

// stateChanged touches what waits for a task's state: its dependants and its children.
func (s *Step) stateChanged(t *Task) {
	for _, d := range s.Tree.dependants[t.Position()] {
		s.Touch(d)
	}
	for _, c := range s.Tree.children[t.ID] {
		if c.State != Completed {
			s.Touch(c.ID)
		}
	}
}

// Touch asks the interpreter to look at a task; for a superseded one, at what
// stands at its place now.
func (s *Step) Touch(id TaskID) {
	if t := s.Tree.tasks[id]; t != nil && t.SupersededBy != "" {
		id = s.Tree.Current(t.Position()).ID
	}
	if !s.queued[id] {
		s.queued[id] = true
		s.touched = append(s.touched, id)
	}
}

// TouchAll asks the interpreter to look at every task of the tree.
func (s *Step) TouchAll() {
	for _, t := range s.Tree.order {
		s.Touch(t.ID)
	}
}

// Touched takes the next task to look at; false when nothing is left.
func (s *Step) Touched() (*Task, bool) {
	for len(s.touched) > 0 {
		id := s.touched[0]
		s.touched = s.touched[1:]
		delete(s.queued, id)
		if t := s.Tree.tasks[id]; t != nil {
			return t, true
		}
	}
	return nil, false
}

// move takes a row of the task table; a missing row is a bug or an illegal
// command, and refused either way.
func (s *Step) move(t *Task, trigger Trigger) error {
	to, ok := s.Tree.machines.task.Next(t.State, trigger)
	if !ok {
		return Errorf(Illegal, "task %s is %s: %s is not possible", t.ID, t.State, trigger)
	}
	t.State = to
	s.edit(t)
	s.stateChanged(t)
	return nil
}

// moveRun takes a row of the execution table.
func (s *Step) moveRun(x *Execution, trigger ExecutionTrigger) error {
	to, ok := s.Tree.machines.execution.Next(x.State, trigger)
	if !ok {
		return Errorf(Illegal, "execution %s is %s: %s is not possible", x.ID, x.State, trigger)
	}
	x.State = to
	s.runs[x.ID] = true
	return nil
}

// add puts a new task into the tree.
func (s *Step) add(t *Task) {
	t.TreeID = s.Tree.ID
	t.CreatedAt = s.Tree.after(s.Now)
	if t.AttemptNo == 0 {
		t.AttemptNo = 1
	}
	s.Tree.insert(t)
	s.edit(t)
}

// event records what happened, once.
func (s *Step) event(kind string, t *Task, body map[string]any) {
	e := Event{At: s.Now, Actor: s.Actor, Tree: s.Tree.ID, Kind: kind, Body: body}
	if t != nil {
		e.Task = t.ID
	}
	s.events = append(s.events, e)
}

func (s *Step) effect(e Effect) {
	e.Tree = s.Tree.ID
	if !slices.Contains(s.effects, e) {
		s.effects = append(s.effects, e)
	}
}

// derive gives the identifier of what is derived from a place and a number.
func (s *Step) derive(kind string, place string, number int, more ...string) string {
	return s.IDs.Derive(append([]string{kind, place, fmt.Sprint(number)}, more...)...)
}

// ChangeSet is all that the step has changed, ready to be committed.
func (s *Step) ChangeSet() ChangeSet {
	t := s.Tree
	cs := ChangeSet{
		Tree: t.ID, Version: t.Version, Summary: t.Summary(), Removed: s.removed,
		Events: s.events, Effects: s.effects, Edges: s.edges,
	}
	for _, id := range slices.Sorted(maps.Keys(s.tasks)) {
		if row := t.tasks[id]; row != nil {
			cs.Tasks = append(cs.Tasks, row)
		}
	}
	if len(s.moved) > 0 {
		cs.Tasks = append(cs.Tasks, s.moved...)
		alone := NewTree(s.moved[0].TreeID, slices.Clone(s.moved), nil, nil)
		alone.Project = t.Project
		cs.NewTrees = []Summary{alone.Summary()}
	}
	for _, id := range slices.Sorted(maps.Keys(s.runs)) {
		if x := t.executions[id]; x != nil {
			cs.Executions = append(cs.Executions, x)
		}
	}
	cs.Executions = append(cs.Executions, s.movedRuns...)
	for _, id := range slices.Sorted(maps.Keys(s.merges)) {
		cs.Merges = append(cs.Merges, t.merges[id])
	}
	if s.story {
		cs.Story = t.Story
	}
	return cs
}

// Committed tells the tree that its changes are stored under version. Rows that
// no later decision reads are let go, so that a step does not grow with history.
func (s *Step) Committed(version int64) {
	t := s.Tree
	t.Version = version
	for id := range s.merges {
		if !t.merges[id].Status.Open() {
			delete(t.merges, id)
		}
	}
	for id := range s.runs {
		x := t.executions[id]
		if x == nil || x.Live() {
			continue
		}
		// Keep the newest of each kind; older ended ones are history.
		runs := t.Runs(x.TaskID, x.Kind)
		for _, other := range runs {
			if !other.Live() && other.ID != newest(runs).ID {
				delete(t.executions, other.ID)
				t.runs[x.TaskID] = without(t.runs[x.TaskID], other.ID)
			}
		}
	}
}

func newest(runs []*Execution) *Execution {
	return slices.MaxFunc(runs, func(a, b *Execution) int { return cmp.Compare(a.Number, b.Number) })
}

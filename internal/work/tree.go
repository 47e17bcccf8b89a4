package work

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"time"
)

// Tree is a top-level task and all below it, the attempts of each position, and
// the judging tasks that belong to it: the unit of consistency. Its rows are
// shared with the Step that edits them; after a failed decision throw it away.
type Tree struct {
	ID      TreeID
	Version int64 // 0: not stored yet
	Project Project
	Story   *Story
	Outer   map[Position]Outer // by position: the trees its root depends on
	// Reach is the cross-tree dependency graph seen from what a command wants
	// to depend on; only loaded when such an edge is added.
	Reach map[Position][]Position
	Edges int64 // version of that graph

	machines   machines
	tasks      map[TaskID]*Task
	order      []*Task // oldest first
	executions map[ExecutionID]*Execution
	merges     map[MergeID]*Merge

	children   map[TaskID][]*Task       // in creation order, anchors and attempts
	attempts   map[Position][]TaskID    // fixes only, in order of number
	judges     map[TaskID][]TaskID      // by judged task, in order of creation
	dependants map[Position][]TaskID    // inside the tree
	runs       map[TaskID][]ExecutionID // what is loaded of a task's executions
	last       time.Time                // when the newest task was created
}

// machines are the tables, which never change: built once, not for every step.
type machines struct {
	task      Table[State, Trigger]
	execution Table[ExecutionState, ExecutionTrigger]
	story     Table[StoryStatus, Act]
	guards    []guard
}

// NewTree makes a tree from rows, in any order.
func NewTree(id TreeID, tasks []*Task, executions []*Execution, merges []*Merge) *Tree {
	t := &Tree{
		ID: id, Outer: map[Position]Outer{}, machines: machines{TaskMachine(), ExecutionMachine(), StoryMachine(), guards()},
		tasks: map[TaskID]*Task{}, executions: map[ExecutionID]*Execution{}, merges: map[MergeID]*Merge{},
		children: map[TaskID][]*Task{}, attempts: map[Position][]TaskID{}, judges: map[TaskID][]TaskID{},
		dependants: map[Position][]TaskID{}, runs: map[TaskID][]ExecutionID{},
	}
	slices.SortFunc(tasks, func(a, b *Task) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.AttemptNo, b.AttemptNo), cmp.Compare(a.ID, b.ID))
	})
	for _, task := range tasks {
		t.insert(task)
	}
	slices.SortFunc(executions, func(a, b *Execution) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.ID, b.ID))
	})
	for _, x := range executions {
		t.insertExecution(x)
	}
	for _, m := range merges {
		t.merges[m.ID] = m
	}
	return t
}

// after is an instant for a new task: now, or just after the newest task, so that
// the order of creation is the order of created_at, and survives a reload.
func (t *Tree) after(now time.Time) time.Time {
	if !now.After(t.last) {
		return t.last.Add(time.Microsecond)
	}
	return now
}

func (t *Tree) insert(task *Task) {
	t.tasks[task.ID] = task
	t.order = append(t.order, task)
	if task.CreatedAt.After(t.last) {
		t.last = task.CreatedAt
	}
	if task.ParentTaskID != "" {
		t.children[task.ParentTaskID] = append(t.children[task.ParentTaskID], task)
	}
	if task.AttemptOf != "" {
		t.attempts[task.AttemptOf] = append(t.attempts[task.AttemptOf], task.ID)
	}
	if task.Judges != nil {
		t.judges[task.Judges.TaskID] = append(t.judges[task.Judges.TaskID], task.ID)
	}
	t.linkDependencies(task, nil)
}

func (t *Tree) insertExecution(x *Execution) {
	if _, known := t.executions[x.ID]; !known {
		t.runs[x.TaskID] = append(t.runs[x.TaskID], x.ID)
	}
	t.executions[x.ID] = x
}

func (t *Tree) remove(task *Task) {
	delete(t.tasks, task.ID)
	t.order = without(t.order, task)
	t.children[task.ParentTaskID] = without(t.children[task.ParentTaskID], task)
	if task.AttemptOf != "" {
		t.attempts[task.AttemptOf] = without(t.attempts[task.AttemptOf], task.ID)
	}
	if task.Judges != nil {
		t.judges[task.Judges.TaskID] = without(t.judges[task.Judges.TaskID], task.ID)
	}
	for _, d := range task.DependsOn {
		t.dependants[d] = without(t.dependants[d], task.ID)
	}
}

// runsOf lists the loaded executions of a task, of every kind.
func (t *Tree) runsOf(id TaskID) []*Execution {
	out := make([]*Execution, len(t.runs[id]))
	for i, x := range t.runs[id] {
		out[i] = t.executions[x]
	}
	return out
}

func (t *Tree) forgetRuns(id TaskID) {
	for _, x := range t.runs[id] {
		delete(t.executions, x)
	}
	delete(t.runs, id)
}

// linkDependencies replaces the edges before by those of task.
func (t *Tree) linkDependencies(task *Task, before []Position) {
	for _, d := range before {
		t.dependants[d] = without(t.dependants[d], task.ID)
	}
	for _, d := range task.DependsOn {
		t.dependants[d] = append(t.dependants[d], task.ID)
	}
}

func without[T comparable](list []T, gone T) []T {
	return slices.DeleteFunc(slices.Clone(list), func(x T) bool { return x == gone })
}

// Task is a row by its id, nil when the tree has none.
func (t *Tree) Task(id TaskID) *Task { return t.tasks[id] }

// Execution is a loaded execution by its id, nil when unknown or long over.
func (t *Tree) Execution(id ExecutionID) *Execution { return t.executions[id] }

// Merge is an open merge by its id, nil when unknown or over.
func (t *Tree) Merge(id MergeID) *Merge { return t.merges[id] }

// Tasks lists every task, oldest first.
func (t *Tree) Tasks() []*Task { return slices.Clone(t.order) }

// Size is how many tasks the tree has.
func (t *Tree) Size() int { return len(t.tasks) }

// Root is the position of the whole tree.
func (t *Tree) Root() Position { return Position(t.ID) }

// Current is the task that stands at pos now: the one place where that is
// decided. Nil when the tree has no such position.
func (t *Tree) Current(pos Position) *Task {
	current := t.tasks[TaskID(pos)]
	for _, id := range t.attempts[pos] {
		// A fork cannot be made (ids are derived); should one be found, the
		// newest wins and Violations reports it.
		if a := t.tasks[id]; current == nil || a.AttemptNo >= current.AttemptNo {
			current = a
		}
	}
	return current
}

// Chain lists the attempts of pos, oldest first.
func (t *Tree) Chain(pos Position) []*Task {
	var out []*Task
	if anchor := t.tasks[TaskID(pos)]; anchor != nil {
		out = append(out, anchor)
	}
	for _, id := range t.attempts[pos] {
		out = append(out, t.tasks[id])
	}
	slices.SortStableFunc(out, func(a, b *Task) int { return cmp.Compare(a.AttemptNo, b.AttemptNo) })
	return out
}

// Children lists the positions below a task (one attempt), in creation order.
func (t *Tree) Children(id TaskID) []Position {
	var out []Position
	for _, child := range t.children[id] {
		if child.AttemptOf == "" {
			out = append(out, Position(child.ID))
		}
	}
	return out
}

// Dependants lists the tasks of this tree that wait for pos.
func (t *Tree) Dependants(pos Position) []*Task {
	var out []*Task
	for _, id := range t.dependants[pos] {
		if d := t.tasks[id]; d != nil {
			out = append(out, d)
		}
	}
	return out
}

// JudgesOf lists the judging tasks of an attempt, oldest first.
func (t *Tree) JudgesOf(id TaskID) []*Task {
	out := make([]*Task, 0, len(t.judges[id]))
	for _, j := range t.judges[id] {
		out = append(out, t.tasks[j])
	}
	return out
}

// Runs lists the loaded executions of a task of one kind, oldest first. Live
// ones and the newest of each kind are always loaded.
func (t *Tree) Runs(id TaskID, kind ExecutionKind) []*Execution {
	var out []*Execution
	for _, x := range t.runs[id] {
		if run := t.executions[x]; run.Kind == kind {
			out = append(out, run)
		}
	}
	return out
}

// running is a task's running execution in the same place as one of kind: the
// task's workspace for its own runs, a fresh one for gates. Nil when it is free.
func (t *Tree) running(id TaskID, kind ExecutionKind) *Execution {
	for _, x := range t.runs[id] {
		if run := t.executions[x]; run.State == ExecutionRunning && run.Kind.Own() == kind.Own() {
			return run
		}
	}
	return nil
}

// OpenMerge is the task's running or conflicted landing, nil when there is none.
func (t *Tree) OpenMerge(id TaskID) *Merge {
	for _, m := range t.merges {
		if m.TaskID == id && m.Status.Open() {
			return m
		}
	}
	return nil
}

// Depth is how far a task is from the root: 0 for top-level tasks.
func (t *Tree) Depth(task *Task) int {
	depth := 0
	for task != nil && task.ParentTaskID != "" {
		task = t.tasks[task.ParentTaskID]
		depth++
	}
	return depth
}

// Settled is true when nothing more is awaited from a child position: an
// improvement that ended in any way, a subtask completed or dropped.
func (t *Tree) Settled(pos Position) bool {
	c := t.Current(pos)
	return c == nil || c.settled()
}

func (t *Task) settled() bool {
	if t.Kind == Improvement {
		return t.State.Ended()
	}
	return t.State == Completed || t.Dropped
}

// unsettled walks the current attempts that a task still waits for.
func (t *Tree) unsettled(id TaskID) iter.Seq[*Task] {
	return func(yield func(*Task) bool) {
		for _, child := range t.children[id] {
			if child.SupersededBy == "" && !child.settled() && !yield(child) {
				return
			}
		}
	}
}

// waits is true while a child position of a task is unsettled.
func (t *Tree) waits(id TaskID) bool {
	for range t.unsettled(id) {
		return true
	}
	return false
}

// Unsettled lists the child positions a task still waits for.
func (t *Tree) Unsettled(id TaskID) []Position {
	var out []Position
	for child := range t.unsettled(id) {
		out = append(out, child.Position())
	}
	return out
}

// Summary is what other trees, lists and the inbox need to know of the tree.
func (t *Tree) Summary() Summary {
	root := t.Current(t.Root())
	if root == nil {
		return Summary{ID: t.ID}
	}
	sum := Summary{
		ID: t.ID, ProjectID: root.ProjectID, StoryID: root.StoryID, Current: root.ID, State: root.State,
		Head: root.Book.Head, Landed: root.Landed != nil, Inbox: Inbox(t),
	}
	if root.Accepted != nil && root.State == Completed {
		sum.Accepted = root.Accepted.Commit
	}
	if t.cancelled() {
		sum.State = Cancelled // it will never be landed, whatever its root came to
	}
	for _, task := range t.order {
		if task.SupersededBy != "" && task.State.Ended() {
			continue
		}
		sum.Open = sum.Open || (!task.State.Ended() && task.SupersededBy == "")
		if task.State == Queued && !task.WakeAt.IsZero() && (sum.WakeAt.IsZero() || task.WakeAt.Before(sum.WakeAt)) {
			sum.WakeAt = task.WakeAt
		}
	}
	sum.Open = sum.Open || (t.Story != nil && !t.Story.Status.Over())
	for _, x := range t.executions {
		sum.Open = sum.Open || x.Live()
	}
	for _, m := range t.merges {
		sum.Open = sum.Open || m.Status.Open()
	}
	return sum
}

// Violations lists what must never be: for tests.
func (t *Tree) Violations() []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	for _, task := range t.order {
		if task.AttemptOf == "" {
			t.checkChain(Position(task.ID), say)
		} else if anchor := t.tasks[TaskID(task.AttemptOf)]; anchor == nil || anchor.AttemptOf != "" {
			say("%s is an attempt of %s, which is no anchor", task.ID, task.AttemptOf)
		}
		if task.State == Completed && task.SupersededBy == "" {
			for _, pos := range t.Unsettled(task.ID) {
				if c := t.Current(pos); c.Kind == Subtask {
					say("%s is COMPLETED over subtask position %s, which is %s", task.ID, pos, c.State)
				}
			}
		}
		running := 0
		for _, x := range t.runs[task.ID] {
			if run := t.executions[x]; run.State == ExecutionRunning && run.Kind.Own() {
				running++
			}
		}
		if running > 1 {
			say("%s has %d executions running at once", task.ID, running)
		}
	}
	return out
}

// checkChain: the attempts of a place are numbered from 1, each once, and each but
// the last names its successor.
func (t *Tree) checkChain(pos Position, say func(string, ...any)) {
	chain := t.Chain(pos)
	for i, a := range chain {
		if a.AttemptNo != i+1 {
			say("position %s has attempt %d (%s) in place %d", pos, a.AttemptNo, a.ID, i+1)
		}
		next := TaskID("")
		if i+1 < len(chain) {
			next = chain[i+1].ID
		}
		if a.SupersededBy != next {
			say("attempt %s says it is superseded by %q, and %q is next", a.ID, a.SupersededBy, next)
		}
	}
}

package work

import (
	"cmp"
	"iter"
	"slices"
)

// StartMerge lands a COMPLETED task, and its completed improvements, on a
// target branch of the project's repository.
type StartMerge struct {
	Task   TaskID
	Target string // empty: the project's default branch
}

func (c StartMerge) apply(s *Step) error {
	t, err := s.ask(c.Task, DoMerge)
	if err != nil {
		return err
	}
	if c.Target != "" && !ValidBranch(c.Target) {
		return Errorf(Invalid, "%q is not a branch name", c.Target)
	}
	s.startMerge(t, c.Target, false)
	return nil
}

func (s *Step) startMerge(t *Task, target string, accepting bool) MergeID {
	t.Book.Merges++
	m := &Merge{
		ID: MergeID(s.derive("merge", string(t.ID), t.Book.Merges)), TaskID: t.ID, TreeID: s.Tree.ID,
		Target: cmp.Or(target, s.Tree.Project.Branch), Status: MergeRunning, CreatedAt: s.Now, UpdatedAt: s.Now,
		Accepting: accepting, By: s.Actor, Queue: s.Tree.landing(t),
	}
	s.Tree.merges[m.ID] = m
	s.merges[m.ID] = true
	s.edit(t)
	s.event("merge.started", t, map[string]any{"merge": m.ID, "target": m.Target})
	s.effect(Effect{Kind: Land, Task: t.ID, Merge: m.ID})
	return m.ID
}

// landing is what a tree merge takes, in order: what was accepted of the task
// itself, then of the completed improvements of every attempt of its place; what
// is landed already is left out.
func (t *Tree) landing(task *Task) []MergePart {
	var out []MergePart
	if task.Landed == nil && task.accepted() != "" {
		out = append(out, MergePart{task.ID, task.accepted()})
	}
	return append(out, t.unlanded(task)...)
}

// queued is true while a task's commit is part of a landing that is not over.
func (t *Tree) queued(id TaskID) bool {
	for _, m := range t.merges {
		if m.Status.Open() && slices.ContainsFunc(m.Queue, func(p MergePart) bool { return p.TaskID == id }) {
			return true
		}
	}
	return false
}

func (t *Tree) unlanded(task *Task) []MergePart {
	var out []MergePart
	for c := range t.improvements(task) {
		if c.State == Completed && c.Landed == nil && c.accepted() != "" {
			out = append(out, MergePart{c.ID, c.accepted()})
		}
	}
	return out
}

// accepted is the commit that was accepted: nothing else is ever landed.
func (t *Task) accepted() string {
	if t.Accepted == nil {
		return ""
	}
	return t.Accepted.Commit
}

// improvements walks the current improvements of every attempt of a task's place.
func (t *Tree) improvements(task *Task) iter.Seq[*Task] {
	return func(yield func(*Task) bool) {
		for _, attempt := range t.Chain(task.Position()) {
			for _, pos := range t.Children(attempt.ID) {
				if c := t.Current(pos); c.Kind == Improvement && !yield(c) {
					return
				}
			}
		}
	}
}

// Improved is true when any attempt of the task's place has improvements that
// were not dropped: a person then accepts the tree, and lands all of it.
func (t *Tree) Improved(task *Task) bool {
	for c := range t.improvements(task) {
		if !c.Dropped {
			return true
		}
	}
	return false
}

// runningMerge is the merge a report speaks about, while it runs.
func (s *Step) runningMerge(id MergeID) (*Merge, *Task, error) {
	m := s.Tree.Merge(id)
	if m == nil || m.Status != MergeRunning {
		return nil, nil, Errorf(Conflict, "merge %s does not run", id).WithReason("stale")
	}
	return m, s.Tree.Task(m.TaskID), nil
}

// conflictedMerge is the merge a person speaks about, while it is paused.
func (s *Step) conflictedMerge(id MergeID) (*Merge, *Task, error) {
	m := s.Tree.Merge(id)
	switch {
	case m == nil || !m.Status.Open():
		return nil, nil, Errorf(Illegal, "merge %s is over", id).WithReason("merge_over").WithHint("see `merge status`; start a new one if needed")
	case m.Status != MergeConflicted:
		return nil, nil, Errorf(Illegal, "merge %s is %s", m.ID, m.Status).WithReason("merge_running").WithHint("wait for it to end")
	}
	return m, s.Tree.Task(m.TaskID), nil
}

func (s *Step) closeMerge(m *Merge, status MergeStatus) {
	if m.Current != "" { // its conflict had a workspace
		s.reclaim(m.TaskID, m.ID)
	}
	m.Status, m.UpdatedAt, m.Current, m.Dir = status, s.Now, "", ""
	s.merges[m.ID] = true
}

// Landed reports that a merge is on its target, in reference and checkout; an
// empty Commit says that there was nothing to land.
type Landed struct {
	Merge  MergeID
	Commit string
}

func (c Landed) apply(s *Step) error {
	m, t, err := s.runningMerge(c.Merge)
	if err != nil {
		return err
	}
	m.Commit, m.Conflicts = c.Commit, nil
	status := MergeLanded
	if c.Commit == "" {
		status = MergeNothing
	}
	s.closeMerge(m, status)
	for _, part := range m.Queue {
		if landed := s.Tree.Task(part.TaskID); landed != nil && c.Commit != "" {
			landed.Landed = &Landing{Branch: m.Target, Commit: c.Commit, At: s.Now}
			s.edit(landed)
			s.event("task.landed", landed, map[string]any{"merge": m.ID, "branch": m.Target, "commit": c.Commit})
		}
	}
	s.event("merge."+string(status), t, map[string]any{"merge": m.ID, "target": m.Target, "commit": c.Commit})
	s.edit(t)
	if m.Accepting {
		return s.complete(t)
	}
	return s.shipLanded(m)
}

// LandConflict pauses a merge: nothing the user can see has changed.
type LandConflict struct {
	Merge   MergeID
	Current TaskID
	Files   []string
	Dir     string // the workspace to resolve it in
}

func (c LandConflict) apply(s *Step) error {
	m, t, err := s.runningMerge(c.Merge)
	if err != nil {
		return err
	}
	m.Status, m.Current, m.Conflicts, m.UpdatedAt = MergeConflicted, c.Current, c.Files, s.Now
	m.Dir, m.Hint = c.Dir, "resolve it in "+c.Dir+", then continue; or abort, and nothing has changed"
	s.merges[m.ID] = true
	s.answered(t, Land)
	s.event("merge.conflicted", t, map[string]any{"merge": m.ID, "files": c.Files})
	if m.Accepting {
		if err := s.move(t, OnBlock); err != nil {
			return err
		}
		t.BlockedOn, t.Reason = OnConflict, "landing conflicts; resolve and continue the merge, or abort it"
	}
	s.edit(t)
	return nil
}

// LandRefused ends a merge that could not begin, by a named reason; the target
// is as it was, and nothing lands by itself afterwards.
type LandRefused struct {
	Merge                 MergeID
	Reason, Message, Hint string
}

func (c LandRefused) apply(s *Step) error {
	m, t, err := s.runningMerge(c.Merge)
	if err != nil {
		return err
	}
	m.Reason, m.Message, m.Hint = c.Reason, c.Message, c.Hint
	s.closeMerge(m, MergeRefused)
	s.event("merge.refused", t, map[string]any{"merge": m.ID, "reason": c.Reason, "message": c.Message})
	why := c.Message
	if c.Hint != "" {
		why += "; " + c.Hint
	}
	return s.unland(m, t, why)
}

// reclaim frees what a removed task or an ended merge holds on the disk.
func (s *Step) reclaim(task TaskID, merge MergeID) {
	p := s.Tree.Project
	e := Effect{Kind: Reclaim, Task: task, Merge: merge, Project: p.ID, Repository: p.Repository}
	if m := s.Tree.Merge(merge); m != nil {
		e.Target = m.Target
	}
	s.effect(e)
}

// unland returns a task whose accepting landing did not happen to a person.
func (s *Step) unland(m *Merge, t *Task, why string) error {
	s.edit(t)
	if !m.Accepting {
		return s.shipStopped(m, why)
	}
	if t.State == Blocked {
		if err := s.move(t, OnFinish); err != nil {
			return err
		}
	}
	t.Accepted, t.Hold, t.BlockedOn, t.Reason = nil, HoldLanding, OnPerson, why
	return nil
}

// ContinueMerge goes on with a conflicted merge after it was resolved.
type ContinueMerge struct{ Merge MergeID }

func (c ContinueMerge) apply(s *Step) error {
	m, t, err := s.conflictedMerge(c.Merge)
	if err != nil {
		return err
	}
	if m.Accepting {
		if err := s.move(t, OnFinish); err != nil {
			return err
		}
		t.BlockedOn, t.Reason = OnLanding, ""
	}
	// Current stays: it says that there is a resolution to take over.
	m.Status, m.UpdatedAt, m.Conflicts, m.Dir, m.Hint = MergeRunning, s.Now, nil, "", ""
	s.merges[m.ID] = true
	s.event("merge.continued", t, map[string]any{"merge": m.ID})
	s.effect(Effect{Kind: Land, Task: t.ID, Merge: m.ID})
	return nil
}

// AbortMerge ends a conflicted merge with nothing changed.
type AbortMerge struct{ Merge MergeID }

func (c AbortMerge) apply(s *Step) error {
	m, t, err := s.conflictedMerge(c.Merge)
	if err != nil {
		return err
	}
	m.Hint = ""
	s.closeMerge(m, MergeAborted)
	s.event("merge.aborted", t, map[string]any{"merge": m.ID})
	return s.unland(m, t, "the landing was aborted")
}

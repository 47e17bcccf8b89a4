package work

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Absorb asks for what was accepted at the place b names to be merged into a
// READY task that was built on an earlier commit of it; its review then starts
// on the merged work.
func (s *Step) Absorb(t *Task, b BuiltOn) error {
	o := s.Tree.Outer[b.Position()]
	if err := s.stopReview(t, "what it is built on has changed"); err != nil {
		return err
	}
	t.Book.Absorb = &Absorb{At: b.Position(), TaskID: o.Current, Commit: o.Accepted}
	t.BlockedOn, t.Hold, t.Reason = OnIntegration, NoHold, ""
	s.edit(t)
	s.effect(integration(t))
	return nil
}

// integration is the effect a task in integration waits for.
func integration(t *Task) Effect {
	if a := t.Book.Absorb; a != nil {
		e := Effect{Kind: Integrate, Task: a.TaskID, Into: t.ID, Commit: a.Commit}
		for _, b := range t.BuiltOn {
			if b.Position() == a.At {
				e.Contains = b.Commit
			}
		}
		return e
	}
	return Effect{Kind: Integrate, Task: t.ID, Into: t.ParentTaskID, Commit: t.Accepted.Commit}
}

// Moved finds what a task was built on and was accepted at another commit since.
func (t *Tree) Moved(task *Task) (BuiltOn, bool) {
	for _, b := range task.BuiltOn {
		o := t.Outer[b.Position()]
		if o.State == Completed && o.Accepted != "" && o.Accepted != b.Commit && o.Accepted != b.Lacks {
			return b, true
		}
	}
	return BuiltOn{}, false
}

// Lost says why a task is built on something that a person must settle: it ended
// badly, is gone, or was accepted without the commit the task was built on.
func (t *Tree) Lost(task *Task) (reason string, lost bool) {
	for _, b := range task.BuiltOn {
		o, known := t.Outer[b.Position()]
		switch {
		case !known:
			return fmt.Sprintf("it is built on task %s, which it does not depend on any more; retry it with --fresh, or cancel it", b.TaskID), true
		case o.State.EndedBadly():
			return fmt.Sprintf("task %s, which it is built on, ended: %s; retry that, edit the dependencies and retry with --fresh, or cancel", o.Current, o.State), true
		case o.State == Completed && b.Lacks != "" && o.Accepted == b.Lacks:
			return fmt.Sprintf("task %s was accepted without the commit this one is built on; retry with --fresh, or cancel", o.Current), true
		}
	}
	return "", false
}

// Unbuilt names a task that t is built on and that is not settled, "" if none.
func (t *Tree) Unbuilt(task *Task) TaskID {
	for _, b := range task.BuiltOn {
		if !t.built(b) {
			return cmp.Or(t.Outer[b.Position()].Current, b.TaskID)
		}
	}
	return ""
}

// built is true for a commit that has been accepted as it is, and landed where a
// story lands it.
func (t *Tree) built(b BuiltOn) bool {
	o, known := t.Outer[b.Position()]
	return known && o.State == Completed && (o.StoryID == "" || o.Landed) && o.Accepted == b.Commit
}

// Integrating is true while an integration of commit (of task) into a branch is
// awaited.
func (t *Tree) Integrating(task, into TaskID, commit string) bool {
	waiting, err := t.integrating(task, into, commit)
	return err == nil && waiting != nil
}

// integrating finds the task that waits for a report about commit: the child
// whose work goes into its parent's branch, or the top-level task that absorbs.
func (t *Tree) integrating(task, into TaskID, commit string) (*Task, error) {
	if child := t.Task(task); child != nil {
		if child.Waiting(Ready, OnIntegration) && child.ParentTaskID == into && child.Accepted != nil && child.Accepted.Commit == commit {
			return child, nil
		}
	} else if parent := t.Task(into); parent != nil && parent.Waiting(Ready, OnIntegration) && parent.Book.Absorb != nil {
		if a := parent.Book.Absorb; a.TaskID == task && a.Commit == commit {
			return parent, nil
		}
	}
	return nil, Errorf(Conflict, "task %s does not wait for an integration of %s", task, commit).WithReason("stale")
}

// Integrated reports that a commit (of Task) is contained in the branch of Into:
// its parent's, or that of a task in another tree that is built on it.
type Integrated struct {
	Task   TaskID
	Into   TaskID
	Commit string
	Head   string // the branch's head now
	Result *Result
}

func (c Integrated) apply(s *Step) error {
	t, err := s.Tree.integrating(c.Task, c.Into, c.Commit)
	if err != nil {
		return err
	}
	into := s.Tree.Task(c.Into)
	into.Book.Head = cmp.Or(c.Head, into.Book.Head)
	if c.Result != nil {
		into.Result = c.Result
		into.Book.Base = cmp.Or(into.Book.Base, c.Result.Base)
	}
	s.edit(into)
	s.event("task.integrated", t, map[string]any{"from": c.Task, "into": c.Into, "head": c.Head})
	if t == into {
		s.absorbed(t, BuiltOn{TaskID: c.Task, Commit: c.Commit, At: t.Book.Absorb.At})
		return nil
	}
	return s.complete(t)
}

// absorbed ends a task's wait for another tree's work.
func (s *Step) absorbed(t *Task, now BuiltOn) {
	t.BuiltOn = slices.Clone(t.BuiltOn) // the list may be a superseded attempt's too
	for i, b := range t.BuiltOn {
		if b.Position() == now.At {
			t.BuiltOn[i] = now
		}
	}
	t.Book.Absorb, t.BlockedOn, t.CheckerReport = nil, NotBlocked, ""
	s.edit(t)
}

// IntegrateLacks reports that a commit does not contain the one that Into was
// built on: a person must decide.
type IntegrateLacks struct {
	Task   TaskID
	Into   TaskID
	Commit string
}

func (c IntegrateLacks) apply(s *Step) error {
	t, err := s.Tree.integrating(c.Task, c.Into, c.Commit)
	if err != nil {
		return err
	}
	if t.Book.Absorb == nil {
		return Errorf(Conflict, "task %s is integrated whatever its parent contains", c.Task).WithReason("stale")
	}
	for _, b := range t.BuiltOn {
		if b.Position() == t.Book.Absorb.At {
			b.Lacks, b.At = c.Commit, b.Position()
			s.absorbed(t, b)
			break
		}
	}
	s.event("integrate.lacks", t, map[string]any{"from": c.Task, "commit": c.Commit})
	return nil
}

// IntegrateConflict reports that a commit conflicts with the branch of Into: a
// rejection under every policy, whose fix starts with that merge.
type IntegrateConflict struct {
	Task   TaskID
	Into   TaskID
	Commit string
	Head   string // the branch's head it conflicts with
	Files  []string
}

func (c IntegrateConflict) apply(s *Step) error {
	t, err := s.Tree.integrating(c.Task, c.Into, c.Commit)
	if err != nil {
		return err
	}
	s.event("integrate.conflict", t, map[string]any{"from": c.Task, "into": c.Into, "files": c.Files})
	mergeIn := c.Head
	if t.Book.Absorb != nil {
		mergeIn = c.Commit
		s.absorbed(t, BuiltOn{TaskID: c.Task, Commit: c.Commit, At: t.Book.Absorb.At})
	}
	return s.conflicted(t, c.Files, mergeIn)
}

const conflictCap = 3

// conflicted answers a conflict with a fix attempt that begins with the merge;
// when those are used up, a person settles it.
func (s *Step) conflicted(t *Task, files []string, mergeIn string) error {
	t.Accepted = nil
	list := strings.Join(files, ", ")
	if t.AttemptNo-1 < conflictCap+t.ExtraFixes {
		if t.State == Running {
			if err := s.move(t, OnFinish); err != nil {
				return err
			}
		}
		return s.SpawnFix(t, Fix{
			Comment: "The work conflicts with what was integrated meanwhile. Resolve the conflict in: " + list,
			MergeIn: mergeIn, Conflicts: files,
		})
	}
	t.Book.MergeIn, t.Book.Conflicts = mergeIn, files
	return s.block(t, OnConflict, "its work conflicts in "+list+"; resolve it in the workspace and submit, drop it, or cancel")
}

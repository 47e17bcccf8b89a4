package work

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Follow does what the structure of the tree demands of one touched task: it
// starts what may start, cancels and revives what depends on it, and wakes a
// parent whose children are settled. Judging is package review's.
func (s *Step) Follow(t *Task) error {
	if t.SupersededBy != "" {
		return nil
	}
	switch t.State {
	case Pending:
		return s.followPending(t)
	case Queued:
		return s.followQueued(t)
	case Blocked:
		if ok, err := s.underEndedParent(t); ok || err != nil {
			return err
		}
		if t.BlockedOn == OnChildren && !s.Tree.waits(t.ID) {
			return s.becomeReady(t)
		}
	case Ready, Running:
		_, err := s.underEndedParent(t)
		return err
	case Cancelled:
		return s.revive(t)
	case Completed, Failed, TimedOut, BudgetExceeded:
	}
	return nil
}

// followPending queues a child whose parent has done its own run, or cancels
// one whose dependency ended badly.
func (s *Step) followPending(t *Task) error {
	parent := s.Tree.Task(t.ParentTaskID)
	if parent == nil {
		return nil // started by a person
	}
	if parent.State == Cancelled { // other bad ends leave what has not begun as it is
		return s.cascade(t, parent.Position(), "its parent was cancelled")
	}
	if s.Tree.cancelled() {
		return s.cascade(t, parent.Position(), "its story was cancelled")
	}
	if bad := s.Tree.badDependency(t); bad != nil {
		return s.cascade(t, bad.pos, bad.reason)
	}
	if t.Draft {
		return nil // finalised by a person
	}
	if parent.Waiting(Blocked, OnChildren) {
		return s.queue(t)
	}
	return nil
}

// followQueued decides what a queued task waits for.
func (s *Step) followQueued(t *Task) error {
	if ok, err := s.underEndedParent(t); ok || err != nil {
		return err
	}
	if bad := s.Tree.badDependency(t); bad != nil {
		return s.cascade(t, bad.pos, bad.reason)
	}
	if !t.WakeAt.IsZero() && t.WakeAt.After(s.Now) {
		return nil
	}
	on := OnSlot
	if !s.Tree.dependenciesMet(t) {
		on = OnDependencies
	}
	if t.BlockedOn == on && t.WakeAt.IsZero() {
		return nil
	}
	if t.BlockedOn.parks() {
		t.Reason = ""
	}
	t.BlockedOn, t.WakeAt = on, time.Time{}
	s.edit(t)
	if on == OnSlot {
		s.effect(start(t, t.Book.Current))
	}
	return nil
}

// queue submits a task: an execution waits from this commit on.
func (s *Step) queue(t *Task) error {
	if err := s.move(t, OnQueue); err != nil {
		return err
	}
	t.Reason, t.BlockedOn, t.Hold, t.WakeAt = "", NotBlocked, NoHold, time.Time{}
	s.addRun(t, AgentRun)
	s.event("task.queued", t, nil)
	return nil
}

// dependenciesMet: siblings must be integrated; another tree's root must at
// least be READY.
func (t *Tree) dependenciesMet(task *Task) bool {
	for _, d := range task.DependsOn {
		if o, outer := t.Outer[d]; outer {
			if o.State != Ready && o.State != Completed {
				return false
			}
		} else if c := t.Current(d); c == nil || c.State != Completed {
			return false
		}
	}
	return true
}

type badEnd struct {
	pos    Position
	reason string
	drop   bool // dropped: what waits for it goes along
}

// badDependency finds a dependency of a task that ended badly.
func (t *Tree) badDependency(task *Task) *badEnd {
	for _, d := range task.DependsOn {
		if o, outer := t.Outer[d]; outer {
			if o.State.EndedBadly() {
				return &badEnd{d, fmt.Sprintf("dependency %s ended: %s", d, o.State), false}
			}
			continue
		}
		c := t.Current(d)
		if c == nil {
			return &badEnd{d, fmt.Sprintf("dependency %s is gone", d), false}
		}
		if c.State.EndedBadly() {
			if c.Book.Cascade != "" && c.Reason != "" { // name what began it, not every link
				return &badEnd{d, c.Reason, c.Dropped}
			}
			return &badEnd{d, fmt.Sprintf("dependency %s ended: %s", c.Name, cmp.Or(c.Reason, string(c.State))), c.Dropped}
		}
	}
	return nil
}

// cascade cancels a task because of pos, and remembers from what, so that it
// can be revived exactly as it was.
func (s *Step) cascade(t *Task, pos Position, reason string) error {
	was, on := t.State, t.BlockedOn
	if err := s.cancel(t, reason); err != nil {
		return err
	}
	t.Book.Cascade, t.Book.Was, t.Book.WasOn = pos, was, on
	return nil
}

// underEndedParent cancels what still lives below a cancelled parent. A task
// whose integration is under way is left to end by itself.
func (s *Step) underEndedParent(t *Task) (bool, error) {
	parent := s.Tree.Task(t.ParentTaskID)
	if parent == nil || !parent.State.EndedBadly() || t.BlockedOn == OnIntegration {
		return false, nil
	}
	return true, s.cascade(t, parent.Position(), "its parent ended: "+string(parent.State))
}

// revive brings back what a cascade cancelled, once nothing holds it any more.
func (s *Step) revive(t *Task) error {
	if t.Book.Cascade == "" || t.Dropped || s.Tree.cancelled() {
		return nil
	}
	if bad := s.Tree.badDependency(t); bad != nil {
		s.dropAlong(t, bad)
		return nil
	}
	was, on := t.Book.Was, t.Book.WasOn
	if parent := s.Tree.Task(t.ParentTaskID); parent != nil {
		pending := was == Pending && !parent.State.Ended()
		if !pending && !parent.Waiting(Blocked, OnChildren) {
			return nil // the parent runs again first: a child starts from its head
		}
	}
	t.Book.Cascade, t.Book.Was, t.Book.WasOn = "", "", ""
	switch {
	case was == Pending:
		if err := s.move(t, OnShelve); err != nil {
			return err
		}
		t.Reason, t.BlockedOn = "", NotBlocked
	case was == Blocked:
		if err := s.move(t, OnBlock); err != nil {
			return err
		}
		t.Reason, t.BlockedOn = "", on
		if on == OnQuestion {
			t.Reason = t.Question.Text
		}
	case was == Ready:
		if err := s.move(t, OnFinish); err != nil {
			return err
		}
		t.Reason, t.BlockedOn, t.Hold = "", NotBlocked, NoHold
	default:
		return s.queue(t)
	}
	s.event("task.revived", t, map[string]any{"state": t.State})
	return nil
}

// dropAlong drops what a cascade cancelled because of a dropped position.
func (s *Step) dropAlong(t *Task, bad *badEnd) {
	if bad.drop {
		t.Dropped = true
		s.edit(t)
		s.stateChanged(t)
		s.event("task.dropped", t, map[string]any{"along": bad.pos})
	}
}

// cancel ends a task and all that runs or judges for it.
func (s *Step) cancel(t *Task, reason string) error {
	if err := s.stopWork(t, reason); err != nil {
		return err
	}
	t.Hold = NoHold
	return s.ended(t, OnCancel, reason)
}

// stopWork stops a task's own runs, its gates and its judges.
func (s *Step) stopWork(t *Task, reason string) error {
	if err := s.stopRuns(t, AgentRun, SubmitRun); err != nil {
		return err
	}
	return s.stopReview(t, reason)
}

// stopReview cancels the gates and judges of a task.
func (s *Step) stopReview(t *Task, reason string) error {
	if err := s.stopRuns(t, GateRun); err != nil {
		return err
	}
	for _, j := range s.Tree.JudgesOf(t.ID) {
		if !j.State.Ended() {
			if err := s.cancel(j, reason); err != nil {
				return err
			}
		}
	}
	return nil
}

// afterRun is rule 1: what follows a task's own successful run.
func (s *Step) afterRun(t *Task) error {
	if again, err := s.planMissing(t); again || err != nil {
		return err
	}
	t.Book.Ran = true
	t.Question, t.Reason = nil, ""
	if !s.Tree.waits(t.ID) {
		return s.becomeReady(t)
	}
	return s.block(t, OnChildren, "")
}

// block lets a task wait for its children, or for a person to settle a conflict.
func (s *Step) block(t *Task, on BlockedOn, reason string) error {
	if err := s.move(t, OnBlock); err != nil {
		return err
	}
	t.BlockedOn, t.Hold, t.Reason = on, NoHold, reason
	s.event("task.blocked", t, map[string]any{"on": on})
	return nil
}

// becomeReady puts finished work up for acceptance.
func (s *Step) becomeReady(t *Task) error {
	if err := s.move(t, OnFinish); err != nil {
		return err
	}
	t.BlockedOn, t.Reason, t.Hold, t.Book.GateFaults = NotBlocked, "", NoHold, 0
	s.rollUp(t)
	s.event("task.ready", t, map[string]any{"commit": t.Book.Head})
	return nil
}

const rollUpPrefix = "children: "

// rollUp tells a parent what became of its children: blockers and bad ends of its
// improvements, and how many changed nothing.
func (s *Step) rollUp(t *Task) {
	failed, cancelled, unchanged := 0, 0, 0
	for _, pos := range s.Tree.Children(t.ID) {
		c := s.Tree.Current(pos)
		if c.State == Completed && c.Result != nil && c.Result.NoChanges {
			unchanged++
		}
		if c.Kind != Improvement {
			continue
		}
		for _, b := range c.Blockers {
			if line := c.Name + ": " + b; !slices.Contains(t.Blockers, line) {
				t.Blockers = append(t.Blockers, line)
			}
		}
		switch {
		case c.State == Cancelled:
			cancelled++
		case c.State.EndedBadly():
			failed++
		}
	}
	lines := slices.DeleteFunc(strings.Split(t.Summary, "\n"), func(line string) bool { return strings.HasPrefix(line, rollUpPrefix) })
	if failed+cancelled > 0 {
		lines = append(lines, fmt.Sprintf("%s%d failed, %d cancelled", rollUpPrefix, failed, cancelled))
	}
	if unchanged > 0 {
		lines = append(lines, fmt.Sprintf("%s%d without changes", rollUpPrefix, unchanged))
	}
	t.Summary = strings.Trim(strings.Join(lines, "\n"), "\n")
}

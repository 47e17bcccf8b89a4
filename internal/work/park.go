package work

import "time"

// Park says why an execution that could start does not, and when to look again:
// a usage limit, a spent budget, a paused agent, or missing disk or memory.
type Park struct {
	Execution ExecutionID
	On        BlockedOn
	Until     time.Time
	Reason    string
}

func (c Park) apply(s *Step) error {
	x := s.Tree.Execution(c.Execution)
	if x == nil || x.State != ExecutionQueued || !x.Kind.Own() {
		return Errorf(Conflict, "execution %s is not waiting any more", c.Execution).WithReason("stale")
	}
	t := s.Tree.Task(x.TaskID)
	if !t.Waiting(Queued, OnSlot) || t.Book.Current != x.ID {
		return Errorf(Conflict, "task %s does not wait for a slot", t.ID).WithReason("stale")
	}
	if !c.On.parks() || !c.Until.After(s.Now) {
		return Errorf(Internal, "task %s cannot be parked on %q until %s", t.ID, c.On, c.Until)
	}
	t.BlockedOn, t.WakeAt, t.Reason = c.On, c.Until.UTC().Truncate(time.Microsecond), c.Reason
	s.edit(t)
	s.event("task.parked", t, map[string]any{"on": c.On, "until": t.WakeAt})
	return nil
}

// parks is true for what lies outside a tree and keeps its tasks from starting.
func (b BlockedOn) parks() bool {
	return b == OnLimit || b == OnBudget || b == OnPaused || b == OnResources
}

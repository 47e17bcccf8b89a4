package work

import "slices"

// Stuck reports that an effect has failed again and again. It is tried on, since
// what keeps it from happening (a full disk, a repository that was moved) mostly
// lies outside and is mended there; but someone must be told.
type Stuck struct {
	Effect Effect
	Error  string
}

func (c Stuck) apply(s *Step) error {
	t := s.Tree.Task(c.Effect.Task)
	if t == nil {
		t = s.Tree.Task(c.Effect.Into) // another tree's work goes into this one
	}
	if t == nil || !s.Tree.awaits(t, c.Effect) {
		return Errorf(Conflict, "nothing waits for this %s", c.Effect.Kind).WithReason("stale")
	}
	if t.Book.Stuck != nil && *t.Book.Stuck == c {
		return nil
	}
	t.Book.Stuck = &c
	s.edit(t)
	s.event("task.stuck", t, map[string]any{"effect": c.Effect.Kind, "error": c.Error})
	return nil
}

// stuck is what keeps failing for a task, while the task waits for it.
func (t *Tree) stuck(task *Task) (Stuck, bool) {
	c := task.Book.Stuck
	if c == nil || !t.awaits(task, c.Effect) {
		return Stuck{}, false
	}
	return *c, true
}

// answered takes back what was told of an effect: it has been carried out.
func (s *Step) answered(t *Task, kind EffectKind) {
	if stuck := t.Book.Stuck; stuck != nil && stuck.Effect.Kind == kind {
		t.Book.Stuck = nil
		s.edit(t)
	}
}

// awaits says whether a task waits for an effect. Its priority may have changed since.
func (t *Tree) awaits(task *Task, e Effect) bool {
	if e.Kind == StartExecution {
		e.Priority = task.Priority
	}
	return slices.Contains(t.awaited(task), e)
}

// awaited gives the effects that a task waits for: what a lost delivery would leave
// it waiting for in vain.
func (t *Tree) awaited(task *Task) []Effect {
	var out []Effect
	for _, id := range t.runs[task.ID] {
		x := t.executions[id]
		switch {
		case x.State == ExecutionRunning && x.Stopping != "":
			out = append(out, stop(x))
		case x.State == ExecutionQueued && (!x.Kind.Own() || task.Waiting(Queued, OnSlot)):
			out = append(out, start(task, x.ID))
		}
	}
	if task.Waiting(Ready, OnIntegration) {
		out = append(out, integration(task))
	}
	if m := t.OpenMerge(task.ID); m != nil && m.Status == MergeRunning {
		out = append(out, Effect{Kind: Land, Task: task.ID, Merge: m.ID})
	}
	switch {
	case t.Ships(task.ID, ShipPull):
		out = append(out, t.pullEffect(task))
	case t.Ships(task.ID, ShipPush):
		out = append(out, t.pushEffect(task))
	}
	for i := range out {
		out[i].Tree = t.ID
	}
	return out
}

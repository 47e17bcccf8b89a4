package work

import "slices"

// Elsewhere is a place in another tree that a task waits for: for its work, or until
// it is accepted, and landed where a story lands it.
type Elsewhere struct {
	At       Position
	Accepted bool
}

// Rests says whether nothing automatic is left to happen to the place of a task: it
// has ended, or all of it waits for a person. Where that hangs on places in other
// trees as well, it names them: it rests if each of them Holds.
func (t *Tree) Rests(task *Task) (rests bool, on []Elsewhere) {
	current := t.Current(task.Position())
	switch {
	case current.State == Pending && current.ParentTaskID != "" && !current.Draft:
		return t.Rests(t.Task(current.ParentTaskID)) // whose run it waits for
	case current.Waiting(Queued, OnDependencies):
		return t.dependenciesRest(current)
	case current.Waiting(Ready, OnPerson) && current.Hold == HoldBuiltOn:
		return t.foundationsRest(current)
	}
	return !t.moves(current), nil
}

// Holds says whether a place holds back who waits for it in another tree: it rests,
// and has not come to what is waited for. What is gone or ended badly lets go, too:
// its end is told there in a moment.
func (t *Tree) Holds(e Elsewhere) (holds bool, on []Elsewhere) {
	current := t.Current(e.At)
	switch {
	case current == nil, current.State.EndedBadly(), !e.Accepted && (current.State == Ready || current.State == Completed):
		return false, nil
	case current.State == Completed && t.Story == nil:
		return false, nil
	case current.State == Completed:
		return t.StoryRests()
	}
	return t.Rests(current)
}

// moves is true while something automatic goes on at a task or below. What waits
// for siblings moves only if they do.
func (t *Tree) moves(task *Task) bool {
	switch task.State {
	case Running:
		return true
	case Queued:
		return task.BlockedOn != OnDependencies // a limit or a pause ends by itself
	case Ready:
		return task.BlockedOn != OnPerson && (task.BlockedOn != OnJudges || t.judgesMove(task))
	case Blocked:
		if m := t.OpenMerge(task.ID); m != nil && m.Status == MergeRunning {
			return true // its conflict has been settled
		}
		for child := range t.unsettled(task.ID) {
			if t.moves(child) {
				return true
			}
		}
	case Pending, Completed, Failed, TimedOut, BudgetExceeded, Cancelled:
	}
	return false
}

// judgesMove is false when one of the judges has asked something and no other one
// moves: the next are not asked before.
func (t *Tree) judgesMove(task *Task) bool {
	judges := t.JudgesOf(task.ID)
	return slices.ContainsFunc(judges, t.moves) ||
		!slices.ContainsFunc(judges, func(j *Task) bool { return j.Waiting(Blocked, OnQuestion) })
}

// dependenciesRest: what waits for others rests when all those do that it still
// waits for.
func (t *Tree) dependenciesRest(task *Task) (rests bool, on []Elsewhere) {
	for _, d := range task.DependsOn {
		if o, outer := t.Outer[d]; outer {
			if o.State != Ready && o.State != Completed {
				on = append(on, Elsewhere{At: d})
			}
			continue
		}
		c := t.Current(d)
		if c == nil || c.State == Completed {
			continue
		}
		holds, more := t.Rests(c)
		if !holds {
			return false, nil
		}
		rests, on = true, append(on, more...)
	}
	return rests || len(on) > 0, on
}

// foundationsRest: approved work waits until what it is built on is settled, and for
// a person only where that cannot be.
func (t *Tree) foundationsRest(task *Task) (rests bool, on []Elsewhere) {
	if _, lost := t.Lost(task); lost {
		return true, nil
	}
	for _, b := range task.BuiltOn {
		if !t.built(b) {
			on = append(on, Elsewhere{At: b.Position(), Accepted: true})
		}
	}
	return len(on) > 0, on
}

// ShipPaused is true while a ship waits until somebody has resolved the conflict of
// its landing.
func (t *Tree) ShipPaused() bool {
	if t.Story == nil || t.Story.Status != Shipping || t.Story.Ship.Step != ShipLand {
		return false
	}
	m := t.Merge(t.Story.Ship.MergeID)
	return m != nil && m.Status == MergeConflicted
}

// StoryRests says the same as Rests of the tree's story.
func (t *Tree) StoryRests() (rests bool, on []Elsewhere) {
	about := t.Current(t.Root())
	switch t.Story.Status {
	case ReviewReady, Shippable, Deployed, DeployFailed, StoryCancelled:
		return true, nil
	case Shipping:
		return t.ShipPaused(), nil
	case Draft:
		if about = t.Planning(); about == nil {
			return true, nil
		}
	case InProgress, Validating, NeedsFix:
	}
	return t.Rests(about)
}

package work

import (
	"slices"
	"strings"
)

// Action is what a person can ask of a task; the legal ones are offered by
// every surface and named by an Illegal error under "allowed".
type Action string

// The actions.
const (
	DoStart    Action = "start"
	DoAccept   Action = "accept"
	DoReject   Action = "reject"
	DoAnswer   Action = "answer"
	DoMessage  Action = "message"
	DoRetry    Action = "retry"
	DoCancel   Action = "cancel"
	DoSubmit   Action = "submit"
	DoDrop     Action = "drop"
	DoPostpone Action = "postpone"
	DoMerge    Action = "merge"
	DoRemove   Action = "remove"
)

// guard says whether a task's state allows an action; nil is yes.
type guard struct {
	Action Action
	States []State // those in which it can be allowed at all
	May    func(*Tree, *Task) *Error
}

// guards has one row for each action: it serves the commands, the offers and the
// hints.
func guards() []guard {
	bad := []State{Failed, TimedOut, BudgetExceeded, Cancelled}
	more := []State{Ready, Blocked, Failed, TimedOut, BudgetExceeded, Cancelled}
	return []guard{
		{DoStart, []State{Pending}, mayStart},
		{DoAccept, []State{Ready, Completed}, mayAccept},
		{DoReject, []State{Ready, Completed}, mayReject},
		{DoAnswer, []State{Blocked}, mayAnswer},
		{DoMessage, more, mayMessage},
		{DoRetry, more, mayRetry},
		{DoCancel, []State{Pending, Queued, Running, Blocked, Ready}, mayCancel},
		{DoSubmit, more, maySubmit},
		{DoDrop, append([]State{Blocked}, bad...), mayDrop},
		{DoPostpone, append([]State{Pending, Queued}, bad...), mayPostpone},
		{DoMerge, []State{Completed}, mayMerge},
		{DoRemove, append([]State{Pending, Completed}, bad...), mayRemove},
	}
}

// Actions lists what a person can ask of the task now.
func (t *Tree) Actions(task *Task) []Action {
	out := []Action{}
	if t.busy(task) != nil {
		return out
	}
	for _, g := range t.machines.guards {
		if slices.Contains(g.States, task.State) && g.May(t, task) == nil {
			out = append(out, g.Action)
		}
	}
	return out
}

// busy refuses every action on a task that another stands in for, or whose
// accepted work is being integrated or landed.
func (t *Tree) busy(task *Task) *Error {
	switch {
	case task.SupersededBy != "":
		current := t.Current(task.Position())
		return Errorf(Illegal, "task %s was rejected and superseded: attempt %d (%s) stands at its place now", task.ID, current.AttemptNo, current.ID).
			WithReason("superseded").With("current", string(current.ID)).WithHint("act on %s", current.ID)
	case task.BlockedOn == OnIntegration && task.Book.Absorb != nil:
		return Errorf(Illegal, "task %s takes in what task %s was accepted with", task.ID, task.Book.Absorb.TaskID).WithReason("integrating").WithHint("wait a moment")
	case task.BlockedOn == OnIntegration:
		return Errorf(Illegal, "task %s is accepted and being integrated", task.ID).WithReason("integrating").WithHint("wait until it is COMPLETED")
	case task.BlockedOn == OnLanding:
		return Errorf(Illegal, "task %s is accepted and being landed", task.ID).WithReason("landing").WithHint("wait for the merge, or abort it")
	}
	return nil
}

// ask finds the task an action is meant for, or refuses the action with what
// is allowed instead.
func (s *Step) ask(id TaskID, action Action) (*Task, error) {
	t := s.Tree.Task(id)
	if t == nil {
		return nil, Errorf(NotFound, "there is no task %s", id)
	}
	if err := s.Tree.busy(t); err != nil {
		return nil, err
	}
	for _, g := range s.Tree.machines.guards {
		if g.Action != action {
			continue
		}
		if err := g.May(s.Tree, t); err != nil {
			return nil, instead(err, s.Tree.Actions(t))
		}
	}
	return t, nil
}

// instead lets a refusal name what can be asked instead; a better hint stays.
func instead[A Action | Act](err *Error, allowed []A) *Error {
	if err.Hint == "" && len(allowed) > 0 {
		words := make([]string, len(allowed))
		for i, a := range allowed {
			words[i] = string(a)
		}
		err.Hint = "possible now: " + strings.Join(words, ", ")
	}
	return err.With("allowed", allowed)
}

func illegal(t *Task, action Action) *Error {
	on := ""
	if t.BlockedOn != NotBlocked {
		on = " (" + string(t.BlockedOn) + ")"
	}
	return Errorf(Illegal, "task %s is %s%s: it cannot be asked to %s", t.ID, t.State, on, action).WithReason("wrong_state")
}

func mayStart(tree *Tree, t *Task) *Error {
	switch {
	case t.State == Queued || t.State == Running:
		return Errorf(Illegal, "task %s is started already (%s)", t.ID, t.State).WithReason("already_started").With("execution", string(t.Book.Current))
	case t.State != Pending:
		return illegal(t, DoStart)
	case t.ParentTaskID != "" && !t.Draft:
		return Errorf(Illegal, "task %s is a child: it starts by itself when its parent's run has ended", t.ID).WithReason("child")
	case tree.drafted(t):
		return storyDraft(tree)
	case t.Draft && t.ParentTaskID != "":
		return Errorf(Illegal, "task %s is a draft of a planning session: finalise the session", t.ID).WithReason("draft")
	case t.Draft:
		return Errorf(Illegal, "task %s is a draft", t.ID).WithReason("draft").WithHint("clear its draft flag first")
	}
	return badDependencyError(tree, t)
}

// drafted is true for the root of a story that nobody has approved yet.
func (t *Tree) drafted(task *Task) bool { return t.storyRoot(task) && t.Story.Status == Draft }

func storyDraft(tree *Tree) *Error {
	return Errorf(Illegal, "story %s is a draft: its approval starts its tasks", tree.Story.ID).WithReason("story_draft").WithHint("approve the story, or edit its plan")
}

func badDependencyError(tree *Tree, t *Task) *Error {
	if bad := tree.badDependency(t); bad != nil {
		return Errorf(Illegal, "task %s cannot run: %s", t.ID, bad.reason).WithReason("bad_dependency").With("dependency", string(bad.pos)).
			WithHint("retry %s first, or edit the dependencies", bad.pos)
	}
	return nil
}

func mayAccept(tree *Tree, t *Task) *Error {
	if t.State == Completed && tree.storyRoot(t) && tree.acceptable() {
		return nil // a person's word makes the story shippable
	}
	if t.State != Ready {
		return illegal(t, DoAccept)
	}
	if b := tree.Unbuilt(t); b != "" {
		return Errorf(Illegal, "task %s is built on %s, which is not COMPLETED yet", t.ID, b).WithReason("built_on").WithHint("accept %s first", b)
	}
	return nil
}

// acceptable is true where a person's word is missing for what is COMPLETED at the
// root: its review has approved it, or its validation at Ship has failed.
func (t *Tree) acceptable() bool {
	_, ok := t.machines.story.Next(t.Story.Status, ActAccept)
	return ok && (t.Story.Status != InProgress || t.Invalid())
}

// storyRoot is true for the task that stands at the root of a loaded story.
func (t *Tree) storyRoot(task *Task) bool {
	return t.Story != nil && task.Position() == t.Root()
}

func mayReject(tree *Tree, t *Task) *Error {
	root := tree.storyRoot(t)
	if root && (t.State == Completed || t.State == Ready) {
		if _, ok := tree.machines.story.Next(tree.Story.Status, ActReject); !ok {
			return Errorf(Illegal, "story %s is %s: its root is not rejected", t.StoryID, tree.Story.Status).WithReason("story_status")
		}
	}
	if t.State == Completed && !root {
		return Errorf(Illegal, "task %s is COMPLETED: accepted work is not rejected", t.ID).WithReason("completed").WithHint("make a new task that corrects it")
	}
	if (t.State != Ready && t.State != Completed) || t.Unreviewed() {
		return illegal(t, DoReject)
	}
	return nil
}

func mayAnswer(_ *Tree, t *Task) *Error {
	if !t.Waiting(Blocked, OnQuestion) {
		return Errorf(Illegal, "task %s has no open question", t.ID).WithReason("no_question")
	}
	return nil
}

func mayMessage(tree *Tree, t *Task) *Error {
	if t.State == Ready || t.State.EndedBadly() {
		return mayRetry(tree, t)
	}
	if t.Waiting(Blocked, OnQuestion) {
		return nil
	}
	return illegal(t, DoMessage)
}

func mayRetry(tree *Tree, t *Task) *Error {
	switch {
	case t.State == Completed:
		return Errorf(Illegal, "task %s is COMPLETED: there is nothing to retry", t.ID).WithReason("completed")
	case t.Dropped:
		return Errorf(Illegal, "task %s was dropped, which is final", t.ID).WithReason("dropped")
	case t.State != Ready && !t.State.EndedBadly():
		return illegal(t, DoRetry)
	case tree.Story != nil && (tree.Story.Status == StoryCancelled || (t.Role() == Planner && tree.Story.Status != Draft)):
		return Errorf(Illegal, "story %s is %s: task %s has no more to do", tree.Story.ID, tree.Story.Status, t.ID).WithReason("story_status")
	}
	if parent := tree.Task(t.ParentTaskID); parent != nil {
		open := parent.Waiting(Blocked, OnChildren) || (t.Kind == Improvement && parent.State == Ready && parent.SupersededBy == "" && tree.busy(parent) == nil)
		if !open {
			return Errorf(Illegal, "task %s cannot run again: its parent %s is %s", t.ID, parent.ID, parent.State).WithReason("parent_ended").WithHint("retry %s first", parent.ID)
		}
	}
	if t.Judges != nil {
		judged := tree.Task(t.Judges.TaskID)
		if judged == nil || judged.State != Ready || tree.busy(judged) != nil || judged.Book.Head != t.Judges.Commit || judged.Book.Round != t.Book.ForRound {
			return Errorf(Illegal, "task %s judged work that is not up for review any more", t.ID).WithReason("stale_judge")
		}
		for _, other := range tree.JudgesOf(judged.ID) {
			if other.Role() == t.Role() && !other.State.Ended() {
				return Errorf(Illegal, "task %s judges that work already", other.ID).WithReason("stale_judge")
			}
		}
	}
	return badDependencyError(tree, t)
}

func mayCancel(tree *Tree, t *Task) *Error {
	switch {
	case t.State.Ended():
		return illegal(t, DoCancel)
	case t.StoryID != "" && t.Position() == tree.Root():
		return Errorf(Illegal, "task %s is the root of story %s", t.ID, t.StoryID).WithReason("story_root").WithHint("cancel the story")
	case tree.OpenMerge(t.ID) != nil:
		return Errorf(Illegal, "task %s is being landed", t.ID).WithReason("landing").WithHint("abort the merge first")
	}
	return nil
}

func maySubmit(tree *Tree, t *Task) *Error {
	if t.Apart() {
		return illegal(t, DoSubmit)
	}
	if t.Book.Fresh {
		return Errorf(Illegal, "task %s starts over: what lies in its workspace is not its own work", t.ID).WithReason("starts_over").WithHint("retry it, and work in the fresh workspace")
	}
	if t.Waiting(Blocked, OnConflict) {
		if tree.OpenMerge(t.ID) != nil {
			return Errorf(Illegal, "task %s is being landed", t.ID).WithReason("landing").WithHint("resolve the conflict and continue the merge, or abort it")
		}
		return nil
	}
	return mayRetry(tree, t)
}

func mayDrop(_ *Tree, t *Task) *Error {
	switch {
	case t.ParentTaskID == "":
		return Errorf(Illegal, "task %s is no child: only a child position can be dropped", t.ID).WithReason("not_a_child").WithHint("cancel or remove it")
	case t.Dropped:
		return Errorf(Illegal, "task %s is dropped already", t.ID).WithReason("dropped")
	case !t.State.EndedBadly() && !t.Waiting(Blocked, OnConflict):
		return illegal(t, DoDrop)
	}
	return nil
}

func mayPostpone(tree *Tree, t *Task) *Error {
	switch {
	case t.ParentTaskID == "":
		return Errorf(Illegal, "task %s has no parent to be taken from", t.ID).WithReason("not_a_child")
	case t.State != Pending && t.State != Queued && !t.State.EndedBadly():
		return illegal(t, DoPostpone)
	case t.AttemptOf != "" || len(tree.Chain(t.Position())) > 1:
		return Errorf(Illegal, "task %s has fix attempts: its place cannot be given up", t.ID).WithReason("has_attempts")
	case len(tree.children[t.ID]) > 0:
		return Errorf(Illegal, "task %s has children", t.ID).WithReason("has_children")
	case len(t.DependsOn) > 0:
		return Errorf(Illegal, "task %s depends on its siblings", t.ID).WithReason("has_dependencies").WithHint("edit its dependencies first")
	case t.Dropped:
		return Errorf(Illegal, "task %s was dropped, which is final", t.ID).WithReason("dropped")
	case tree.busyWith(t):
		return stillRunning()
	}
	return neededBy(tree, t)
}

// busyWith is true while an execution of the task or of a judge of it has not
// ended, if only because it is still being stopped.
func (t *Tree) busyWith(task *Task) bool {
	for _, x := range t.executions {
		if x.State == ExecutionRunning && (x.TaskID == task.ID || slices.ContainsFunc(t.JudgesOf(task.ID), func(j *Task) bool { return j.ID == x.TaskID })) {
			return true
		}
	}
	return false
}

func stillRunning() *Error {
	return Errorf(Illegal, "an execution of the task has not ended yet").WithReason("still_running").WithHint("try again in a moment")
}

// mayLand refuses what is not landed by itself; see [Task.Lands].
func mayLand(tree *Tree, t *Task) *Error {
	switch {
	case t.ParentTaskID != "" || t.Apart():
		return Errorf(Illegal, "task %s is part of a tree: its work is landed with the tree's root", t.ID).WithReason("not_top_level").WithHint("merge %s", tree.Current(tree.Root()).ID)
	case t.StoryID != "":
		return Errorf(Illegal, "task %s belongs to story %s: it is landed by Ship", t.ID, t.StoryID).WithReason("story_node").WithHint("ship the story")
	}
	return nil
}

func mayMerge(tree *Tree, t *Task) *Error {
	if refusal := mayLand(tree, t); refusal != nil {
		return refusal
	}
	switch {
	case t.State != Completed:
		return Errorf(Illegal, "task %s is %s: only accepted work is landed", t.ID, t.State).WithReason("not_accepted").WithHint("accept it first")
	case tree.OpenMerge(t.ID) != nil:
		m := tree.OpenMerge(t.ID)
		return Errorf(Illegal, "merge %s of task %s is %s", m.ID, t.ID, m.Status).WithReason("merge_running").With("merge", string(m.ID)).WithHint("continue or abort it")
	case t.Landed != nil && tree.unlanded(t) == nil:
		return Errorf(Illegal, "task %s is landed already, on %s as %s", t.ID, t.Landed.Branch, t.Landed.Commit).WithReason("already_landed").With("commit", t.Landed.Commit)
	}
	return nil
}

func mayRemove(tree *Tree, t *Task) *Error {
	switch {
	case !t.State.Ended() && t.State != Pending:
		return Errorf(Illegal, "task %s is %s", t.ID, t.State).WithReason("wrong_state").WithHint("cancel it first")
	case t.Judges != nil:
		return Errorf(Illegal, "task %s judged task %s: it is removed with that tree", t.ID, t.Judges.TaskID).WithReason("judge")
	case t.StoryID != "" && t.Position() == tree.Root():
		return Errorf(Illegal, "task %s is the root of story %s", t.ID, t.StoryID).WithReason("story_root").WithHint("a story's tree stays with it")
	case tree.OpenMerge(t.ID) != nil || tree.queued(t.ID):
		return Errorf(Illegal, "task %s is being landed", t.ID).WithReason("landing").WithHint("abort the merge first")
	case t.Position() != tree.Root() && (t.AttemptOf != "" || len(tree.Chain(t.Position())) > 1):
		return Errorf(Illegal, "task %s has other attempts at its place: a chain is removed with its tree", t.ID).WithReason("has_attempts")
	case t.Position() != tree.Root() && len(tree.children[t.ID]) > 0:
		return Errorf(Illegal, "task %s has children", t.ID).WithReason("has_children").WithHint("remove them first")
	}
	if tree.busyWith(t) {
		return stillRunning()
	}
	if t.Position() == tree.Root() {
		for _, other := range tree.order {
			if tree.busyWith(other) {
				return stillRunning()
			}
			if !other.State.Ended() && other.State != Pending && other.SupersededBy == "" {
				return Errorf(Illegal, "task %s of its tree is %s", other.ID, other.State).WithReason("wrong_state").WithHint("cancel it first")
			}
		}
	}
	return neededBy(tree, t)
}

func neededBy(tree *Tree, t *Task) *Error {
	deps := slices.DeleteFunc(tree.Dependants(t.Position()), func(d *Task) bool { return d.SupersededBy != "" })
	if len(deps) == 0 {
		return nil
	}
	return Errorf(Illegal, "task %s depends on task %s", deps[0].ID, t.ID).WithReason("needed").WithHint("edit the dependencies of %s first", deps[0].ID)
}

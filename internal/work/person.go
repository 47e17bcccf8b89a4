package work

import (
	"cmp"
	"maps"
	"strings"
	"time"
)

// StartTask submits a PENDING task.
type StartTask struct{ Task TaskID }

func (c StartTask) apply(s *Step) error {
	t, err := s.ask(c.Task, DoStart)
	if err != nil {
		return err
	}
	return s.queue(t)
}

// AcceptTask is a person's acceptance: it wins over judges that still run. Work that
// is landed is completed only then; whether it is, a Target, the project or the
// task's improvements say where Land does not.
type AcceptTask struct {
	Task   TaskID
	Land   *bool
	Target string // "": the project's branch
}

func (c AcceptTask) lands(t *Tree, task *Task) bool {
	asked := c.Target != "" || t.Project.AutoLand || t.Improved(task)
	if c.Land != nil {
		asked = *c.Land
	}
	return asked && task.Lands()
}

func (c AcceptTask) apply(s *Step) error {
	t, err := s.ask(c.Task, DoAccept)
	if err != nil {
		return err
	}
	if c.Target != "" && !ValidBranch(c.Target) {
		return Errorf(Invalid, "%q is not a branch name", c.Target)
	}
	if c.Target != "" || c.Land != nil && *c.Land {
		if refusal := mayLand(s.Tree, t); refusal != nil {
			return refusal
		}
	}
	if err := s.stopReview(t, "decided by a person"); err != nil {
		return err
	}
	s.event("task.accepted", t, map[string]any{"commit": t.Book.Head})
	switch {
	case t.State == Completed: // a story's root: the review's acceptance becomes a person's
		t.Accepted = &Acceptance{By: s.Actor, Commit: t.Accepted.Commit, At: s.Now}
		s.edit(t)
		s.Tree.Story.ValidationResult = nil
	case c.lands(s.Tree, t):
		return s.AcceptLanding(t, c.Target)
	default:
		if err := s.Accept(t); err != nil {
			return err
		}
	}
	if s.Tree.storyRoot(t) {
		return s.act(ActAccept)
	}
	return nil
}

// RejectTask is a person's rejection: a fix attempt with the comment.
type RejectTask struct {
	Task     TaskID
	Comment  string
	Findings Findings
	Extra    int // raises the cap of fix attempts
}

func (c RejectTask) apply(s *Step) error {
	t, err := s.ask(c.Task, DoReject)
	if err != nil {
		return err
	}
	if strings.TrimSpace(c.Comment) == "" && len(c.Findings) == 0 {
		return Errorf(Invalid, "a rejection needs a comment: it is what the fix attempt works on").WithHint("say what is wrong")
	}
	if c.Extra < 0 {
		return Errorf(Invalid, "extra must not be negative")
	}
	if t.AttemptNo-1 >= s.MaxFixes(t)+t.ExtraFixes+c.Extra {
		refused := Errorf(Illegal, "the %d fix attempts of this place are used up", t.AttemptNo-1).WithReason("cap_reached")
		return instead(refused.WithHint("accept it, cancel it, or reject with more attempts (extra)"), s.Tree.Actions(t))
	}
	if s.Tree.storyRoot(t) {
		if err := s.act(ActReject); err != nil {
			return err
		}
	}
	if err := s.stopReview(t, "decided by a person"); err != nil {
		return err
	}
	s.Decided(t, false, c.Comment)
	return s.SpawnFix(t, Fix{Comment: c.Comment, Findings: c.Findings, Extra: c.Extra})
}

// AnswerTask gives a person's answer to a task's question.
type AnswerTask struct {
	Task TaskID
	Text string
}

func (c AnswerTask) apply(s *Step) error {
	t, err := s.ask(c.Task, DoAnswer)
	if err != nil {
		return err
	}
	if strings.TrimSpace(c.Text) == "" {
		return Errorf(Invalid, "the answer is empty")
	}
	return s.answer(t, c.Text)
}

func (s *Step) answer(t *Task, text string) error {
	t.Interactions = append(t.Interactions, Interaction{Question: t.Question.Text, Answer: text, At: s.Now})
	t.Question = nil
	s.event("question.answered", t, map[string]any{"answer": text})
	return s.queue(t)
}

// MessageTask sends a person's words to a task, which then works on.
type MessageTask struct {
	Task TaskID
	Text string
}

func (c MessageTask) apply(s *Step) error {
	t, err := s.ask(c.Task, DoMessage)
	if err != nil {
		return err
	}
	if strings.TrimSpace(c.Text) == "" {
		return Errorf(Invalid, "the message is empty")
	}
	if t.Waiting(Blocked, OnQuestion) {
		return s.answer(t, c.Text)
	}
	s.event("task.messaged", t, map[string]any{"text": c.Text})
	t.Book.Message = c.Text
	t.Interactions = append(t.Interactions, Interaction{Answer: c.Text, At: s.Now})
	return s.again(t, AgentRun)
}

// RetryTask runs a task again: from its workspace, or from its base with Fresh.
type RetryTask struct {
	Task  TaskID
	Fresh bool
}

func (c RetryTask) apply(s *Step) error {
	t, err := s.ask(c.Task, DoRetry)
	if err != nil {
		return err
	}
	if c.Fresh && len(s.Tree.children[t.ID]) > 0 {
		return Errorf(Illegal, "task %s has children: a fresh start would throw their work away", t.ID).WithReason("has_children").WithHint("retry without --fresh")
	}
	s.event("task.retried", t, map[string]any{"fresh": c.Fresh})
	if c.Fresh {
		t.Book.Fresh, t.Book.Talk = true, Talk{}
		if t.AttemptOf == "" { // a fix starts from the rejected work, and what that was built on
			t.Book.Base, t.BuiltOn = "", nil
		}
	}
	if t.State.EndedBadly() && t.Book.Ran && len(s.Tree.children[t.ID]) > 0 {
		return s.waitAgain(t)
	}
	return s.again(t, AgentRun)
}

// waitAgain returns a badly ended parent, whose own run had succeeded, to waiting
// for its children; what was cancelled below it is revived by the interpreter.
func (s *Step) waitAgain(t *Task) error {
	t.Book.Cascade, t.Book.Was, t.Book.WasOn = "", "", ""
	t.Accepted = nil
	return s.block(t, OnChildren, "")
}

// SubmitTask takes work that a person did by hand in the task's workspace.
type SubmitTask struct{ Task TaskID }

func (c SubmitTask) apply(s *Step) error {
	t, err := s.ask(c.Task, DoSubmit)
	if err != nil {
		return err
	}
	s.event("task.submitted", t, nil)
	return s.again(t, SubmitRun)
}

// again is new work on a READY or ended task: the review starts over.
func (s *Step) again(t *Task, kind ExecutionKind) error {
	if err := s.stopReview(t, "the task works on"); err != nil {
		return err
	}
	if parent := s.Tree.Task(t.ParentTaskID); parent != nil && parent.State == Ready {
		if err := s.sendBack(parent); err != nil {
			return err
		}
	}
	if err := s.move(t, OnQueue); err != nil {
		return err
	}
	t.Book.Round++
	t.Book.Failures, t.Book.Losses, t.Book.Overloads, t.Book.Ran, t.Book.SentBack = 0, 0, 0, false, false
	t.Book.Cascade, t.Book.Was, t.Book.WasOn = "", "", ""
	t.CheckerReport, t.Accepted, t.Verdict, t.Reason, t.Hold, t.BlockedOn = "", nil, nil, "", NoHold, NotBlocked
	t.WakeAt = time.Time{}
	s.addRun(t, kind)
	s.event("task.queued", t, nil)
	return nil
}

// sendBack returns a READY parent to waiting, since an improvement runs again.
func (s *Step) sendBack(parent *Task) error {
	if err := s.stopReview(parent, "an improvement runs again"); err != nil {
		return err
	}
	return s.block(parent, OnChildren, "")
}

// CancelTask ends a task; what waits for it and what lives below it is cancelled
// by the interpreter.
type CancelTask struct {
	Task   TaskID
	Reason string
}

func (c CancelTask) apply(s *Step) error {
	t, err := s.ask(c.Task, DoCancel)
	if err != nil {
		return err
	}
	t.Book.Cascade = "" // a person's: never revived by itself
	return s.cancel(t, cmp.Or(c.Reason, "cancelled by a person"))
}

// DropTask gives up a badly ended child position for good.
type DropTask struct{ Task TaskID }

func (c DropTask) apply(s *Step) error {
	t, err := s.ask(c.Task, DoDrop)
	if err != nil {
		return err
	}
	if t.Waiting(Blocked, OnConflict) {
		if err := s.cancel(t, "dropped"); err != nil {
			return err
		}
	}
	t.Dropped = true
	s.edit(t)
	s.stateChanged(t)
	s.event("task.dropped", t, nil)
	return nil
}

// PostponeTask takes a child out of its tree: it becomes a PENDING task of its own.
type PostponeTask struct{ Task TaskID }

func (c PostponeTask) apply(s *Step) error {
	t, err := s.ask(c.Task, DoPostpone)
	if err != nil {
		return err
	}
	if t.State != Pending {
		if err := s.stopRuns(t, AgentRun, SubmitRun); err != nil {
			return err
		}
		if err := s.move(t, OnShelve); err != nil {
			return err
		}
	}
	s.event("task.postponed", t, map[string]any{"parent": t.ParentTaskID})
	s.edit(t)
	s.takeAway(t)
	alone := TreeID(t.ID)
	s.leave(t, alone)
	for _, j := range s.Tree.JudgesOf(t.ID) { // what judged it goes along
		s.takeAway(j)
		s.leave(j, alone)
	}
	t.ParentTaskID, t.Kind, t.StoryID = "", TopLevel, ""
	t.Book = Book{
		Executions: t.Book.Executions, Current: t.Book.Current, Round: t.Book.Round + 1, Gone: t.Book.Gone,
		// It began in the middle of a tree whose work nobody has accepted.
		Fresh: t.Book.Began,
	}
	t.Result = nil
	t.BlockedOn, t.Reason, t.WakeAt, t.Draft, t.Question = NotBlocked, "", time.Time{}, false, nil
	return nil
}

// leave gives a task that was taken away to another tree, with its executions.
func (s *Step) leave(t *Task, to TreeID) {
	t.TreeID = to
	s.moved = append(s.moved, t)
	for _, x := range s.Tree.runsOf(t.ID) {
		x.TreeID = to
		delete(s.runs, x.ID)
		s.movedRuns = append(s.movedRuns, x)
	}
	s.Tree.forgetRuns(t.ID)
}

// RemoveTask deletes a task; a root takes its whole tree along.
type RemoveTask struct{ Task TaskID }

func (c RemoveTask) apply(s *Step) error {
	t, err := s.ask(c.Task, DoRemove)
	if err != nil {
		return err
	}
	gone := append([]*Task{t}, s.Tree.JudgesOf(t.ID)...)
	if t.Position() == s.Tree.Root() {
		gone = s.Tree.Tasks()
	}
	s.event("task.removed", t, map[string]any{"name": t.Name, "tasks": len(gone)})
	for _, g := range gone {
		s.reclaim(g.ID, "")
		s.edit(g)
		s.takeAway(g)
		s.Tree.forgetRuns(g.ID)
		s.removed = append(s.removed, g.ID)
	}
	return nil
}

// takeAway removes a task from the tree; its parent remembers its name, the root
// that of what stood beside it.
func (s *Step) takeAway(t *Task) {
	parent := s.Tree.Task(t.ParentTaskID)
	if t.Apart() && t.Judges == nil {
		parent = s.Tree.Task(TaskID(s.Tree.Root()))
	}
	if parent != nil {
		gone := maps.Clone(parent.Book.Gone)
		if gone == nil {
			gone = map[string]TaskID{}
		}
		gone[t.Name] = t.ID
		parent.Book.Gone = gone
		s.edit(parent)
	}
	s.Tree.remove(t)
	delete(s.tasks, t.ID)
}

// PatchTask changes what a task is asked to do, while it does not run. Nil fields
// stay as they are, and so does what Retry leaves empty.
type PatchTask struct {
	Task               TaskID
	Name               *string
	Description        *string
	Instructions       *string
	AcceptanceCriteria *[]string
	Gates              *[]string
	Tags               *[]string
	Priority           *Priority
	Timeout            *Duration
	MaxBudgetUSD       *float64
	Retry              *Retry
	Draft              *bool
	DependsOn          *[]Position
}

func (c PatchTask) apply(s *Step) error {
	t := s.Tree.Task(c.Task)
	if t == nil {
		return Errorf(NotFound, "there is no task %s", c.Task)
	}
	if err := s.Tree.busy(t); err != nil {
		return err
	}
	if s.Tree.drafted(t) {
		return storyDraft(s.Tree)
	}
	if t.State == Running || t.State == Completed {
		return Errorf(Illegal, "task %s is %s: it cannot be changed", t.ID, t.State).WithReason("wrong_state")
	}
	if c.Draft != nil && *c.Draft && t.State != Pending {
		return Errorf(Illegal, "task %s is %s: only what was never started is a draft", t.ID, t.State).WithReason("wrong_state")
	}
	patched := *t // a refusal must leave the task as it is
	c.patch(&patched)
	patched.defaults()
	if err := patched.check(); err != nil {
		return err
	}
	if c.DependsOn != nil {
		patched.DependsOn = *c.DependsOn
		if err := s.checkDependencies(&patched); err != nil {
			return err
		}
		s.Tree.linkDependencies(&patched, t.DependsOn)
	}
	asks := c.Instructions != nil || c.AcceptanceCriteria != nil || c.Gates != nil
	*t = patched
	s.edit(t)
	s.event("task.updated", t, nil)
	if asks && t.State == Ready {
		return s.reviewAgain(t)
	}
	return nil
}

// reviewAgain starts the review of READY work anew: something else is asked of it.
func (s *Step) reviewAgain(t *Task) error {
	if err := s.stopReview(t, "what is asked has changed"); err != nil {
		return err
	}
	t.Book.Round++
	t.Book.GateFaults = 0
	t.BlockedOn, t.Hold, t.Reason, t.CheckerReport = NotBlocked, NoHold, "", ""
	return nil
}

func (c PatchTask) patch(t *Task) {
	Assign(&t.Name, c.Name)
	Assign(&t.Description, c.Description)
	Assign(&t.Agent.Instructions, c.Instructions)
	Assign(&t.AcceptanceCriteria, c.AcceptanceCriteria)
	Assign(&t.Gates, c.Gates)
	Assign(&t.Tags, c.Tags)
	Assign(&t.Priority, c.Priority)
	Assign(&t.Timeout, c.Timeout)
	Assign(&t.Agent.MaxBudgetUSD, c.MaxBudgetUSD)
	if c.Retry != nil {
		t.Retry.MaxAttempts = cmp.Or(c.Retry.MaxAttempts, t.Retry.MaxAttempts)
		t.Retry.Backoff = cmp.Or(c.Retry.Backoff, t.Retry.Backoff)
	}
	Assign(&t.Draft, c.Draft)
	t.Name = strings.TrimSpace(t.Name)
}

// Assign gives a field the value of an edit, where the edit names one.
func Assign[T any](field *T, value *T) {
	if value != nil {
		*field = *value
	}
}

package work

import (
	"fmt"
	"slices"
	"strings"
)

// Accept records who accepted the task's work and starts what completes it: the
// integration into the parent's branch for a subtask, nothing more for others.
func (s *Step) Accept(t *Task) error {
	if err := s.stopReview(t, "decided"); err != nil {
		return err
	}
	t.Accepted = &Acceptance{By: s.Actor, Commit: t.Book.Head, At: s.Now}
	t.Hold, t.Reason = NoHold, ""
	s.edit(t)
	if t.Kind != Subtask || t.ParentTaskID == "" || t.Book.Head == "" {
		return s.complete(t)
	}
	t.BlockedOn = OnIntegration
	s.effect(integration(t))
	return nil
}

// AcceptLanding accepts a top-level task whose work is COMPLETED only once it is
// landed on target.
func (s *Step) AcceptLanding(t *Task, target string) error {
	if err := s.stopReview(t, "decided"); err != nil {
		return err
	}
	t.Accepted = &Acceptance{By: s.Actor, Commit: t.Book.Head, At: s.Now}
	t.BlockedOn, t.Hold, t.Reason = OnLanding, NoHold, ""
	s.startMerge(t, target, true)
	return nil
}

// complete is the end of an accepted and integrated task.
func (s *Step) complete(t *Task) error {
	if err := s.move(t, OnComplete); err != nil {
		return err
	}
	t.BlockedOn, t.Hold, t.Reason = NotBlocked, NoHold, ""
	s.event("task.completed", t, map[string]any{"commit": t.Book.Head})
	s.branch(t)
	return nil
}

// WaitForPerson holds a READY task until a person decides.
func (s *Step) WaitForPerson(t *Task, hold Hold, reason string) {
	if t.Hold != hold || t.BlockedOn != OnPerson {
		t.Hold, t.BlockedOn, t.Reason = hold, OnPerson, reason
		s.edit(t)
	}
}

// Report shows a checker's objections on the task; it decides nothing.
func (s *Step) Report(t *Task, report string) {
	if t.CheckerReport != report {
		t.CheckerReport = report
		s.edit(t)
	}
}

// Decided records the decision of a review, once per round and commit; dissent are
// the roles whose verdict it does not follow.
func (s *Step) Decided(t *Task, approved bool, reason string, dissent ...Role) {
	key := fmt.Sprint(s.Actor.Kind, t.Book.Round, t.Book.Head, approved)
	if t.Book.Decided == key {
		return
	}
	t.Book.Decided = key
	s.edit(t)
	kind := "decision.rejected"
	if approved {
		kind = "decision.approved"
	}
	body := map[string]any{"commit": t.Book.Head}
	if reason != "" {
		body["reason"] = reason
	}
	if len(dissent) > 0 {
		body["dissent"] = dissent
	}
	s.event(kind, t, body)
}

// AwaitReview says that gates or judges are at work.
func (s *Step) AwaitReview(t *Task, on BlockedOn) {
	if t.BlockedOn != on {
		t.BlockedOn, t.Hold, t.Reason = on, NoHold, ""
		s.edit(t)
	}
}

// StartGates queues a run of the task's gates on its present head.
func (s *Step) StartGates(t *Task) {
	x := s.addRun(t, GateRun)
	x.Commit, x.Round = t.Book.Head, t.Book.Round
	if t.BlockedOn != OnGates {
		t.BlockedOn, t.Hold, t.Reason = OnGates, NoHold, ""
		s.event("gates.started", t, map[string]any{"commit": x.Commit})
	}
	s.effect(start(t, x.ID))
}

// MaxGateFaults is how many faults in a round are the last: gates that could not
// be run so often are not tried again.
const MaxGateFaults = 3

// gatesEnded records what the gates said.
func (s *Step) gatesEnded(t *Task, x *Execution) error {
	s.edit(t)
	if x.Stopping != "" || x.Outcome == CancelledRun {
		return nil // stopped: by a decision, or with the server
	}
	if x.Outcome != Success {
		t.Book.GateFaults++ // they could not be run: the interpreter tries again, or asks
		return nil
	}
	kind := "gates.passed"
	if !GatesPassed(x.Gates) {
		kind = "gates.failed"
	}
	s.event(kind, t, map[string]any{"commit": x.Commit, "execution": x.ID})
	return nil
}

// GatesPassed is true when every command passed.
func GatesPassed(gates []GateResult) bool {
	return !slices.ContainsFunc(gates, func(g GateResult) bool { return !g.Passed() })
}

// SpawnJudge adds the judging task number n of a role for the task's present
// head. Its id is derived, so that it cannot be spawned twice.
func (s *Step) SpawnJudge(t *Task, role Role, n int, name string, spec AgentSpec, timeout Duration) *Task {
	spec.Role = role
	j := &Task{
		ID:   TaskID(s.derive("judge", string(t.ID), n, t.Book.Head, string(role))),
		Kind: TopLevel, Name: name, ProjectID: t.ProjectID, StoryID: t.StoryID, RepositoryURL: t.RepositoryURL,
		Agent: spec, Timeout: timeout, Retry: Retry{MaxAttempts: 1, Backoff: Exponential}, Priority: t.Priority,
		AcceptanceCriteria: t.AcceptanceCriteria, Review: "none", Origin: FromSystem,
		Judges: &Judged{TaskID: t.ID, Commit: t.Book.Head}, State: Queued,
		Book: Book{Base: t.Book.Head, Head: t.Book.Head, Number: n, ForRound: t.Book.Round},
	}
	s.add(j)
	s.addRun(j, AgentRun)
	s.event("judge.spawned", j, map[string]any{"judges": t.ID, "commit": t.Book.Head, "role": role, "number": n})
	return j
}

// judged ends a judging task with what it said, nil for nothing usable.
func (s *Step) judged(t *Task, v *Verdict) error {
	t.Verdict = v
	if v != nil {
		s.event("verdict.reported", t, map[string]any{"judges": t.Judges.TaskID, "role": t.Agent.Role, "approved": v.Approved})
	}
	return s.afterRun(t)
}

// speaks is true of a command judge that has ended by itself: its exit code is
// what it says.
func speaks(t *Task, x *Execution, c End) bool {
	return t.Judges != nil && x.Kind.Own() && x.Spec.Type == CommandAgent && c.ExitCode != nil && !c.Signalled &&
		(c.Outcome == Success || c.Outcome == FailedRun)
}

// commandVerdict reads a command judge: exit 0 approves, another exit code
// rejects, a signal or timeout is a failed run. A report that disagrees with
// the exit code is a contradiction, that is no verdict.
func commandVerdict(t *Task, x *Execution, c End) (*Verdict, bool) {
	if !speaks(t, x, c) {
		return nil, false
	}
	approved := *c.ExitCode == 0
	if x.Reported != nil {
		if x.Reported.Approved != approved {
			t.Summary = fmt.Sprintf("it reported approved: %t, but ended with exit code %d; its reasoning: %s", x.Reported.Approved, *c.ExitCode, x.Reported.Reasoning)
			return nil, true
		}
		if len(x.Reported.Criteria) > 0 || len(t.AcceptanceCriteria) == 0 {
			return x.Reported, true
		}
	}
	argv := strings.Join(x.Spec.Command, " ")
	v := &Verdict{Approved: approved, Reasoning: c.Tail, Evidence: []Evidence{{Command: argv, ExitCode: *c.ExitCode, Output: c.Tail}}}
	if x.Reported != nil {
		v.Reasoning, v.Findings = x.Reported.Reasoning, x.Reported.Findings
	}
	for _, criterion := range t.AcceptanceCriteria {
		v.Criteria = append(v.Criteria, Criterion{criterion, approved, fmt.Sprintf("%s: exit %d", argv, *c.ExitCode)})
	}
	return v, true
}

// Fix is what a fix attempt is told.
type Fix struct {
	Comment   string
	Findings  Findings
	Extra     int      // fix attempts a person adds to the cap
	MergeIn   string   // commit to merge in first (after a conflict)
	Conflicts []string // files of that conflict
}

// SpawnFix answers a rejection: a new task at the same place carries the
// reasons; the rejected attempt keeps its state and steps aside.
func (s *Step) SpawnFix(t *Task, f Fix) error {
	if err := s.stopReview(t, "decided"); err != nil {
		return err
	}
	n, head := t.AttemptNo+1, t.Book.Head
	if t.Landed != nil {
		head = t.Landed.Commit // what is wrong with it is wrong with what was landed
	}
	fix := &Task{
		ID:           TaskID(s.derive("fix", string(t.Position()), n)),
		ParentTaskID: t.ParentTaskID, Kind: t.Kind, Name: t.Name, Description: t.Description,
		ProjectID: t.ProjectID, StoryID: t.StoryID, RepositoryURL: t.RepositoryURL, BranchName: t.BranchName,
		Agent: t.Agent, Timeout: t.Timeout, Retry: t.Retry, Priority: t.Priority, Tags: t.Tags, DependsOn: t.DependsOn,
		AcceptanceCriteria: t.AcceptanceCriteria, Gates: t.Gates, Review: t.Review, CommitType: t.CommitType,
		Origin: FromSystem, CreatedBy: t.CreatedBy, AttemptOf: t.Position(), AttemptNo: n, BuiltOn: t.BuiltOn,
		ExtraFixes: t.ExtraFixes + f.Extra, RejectionComment: f.Comment, RejectionFindings: f.Findings,
		Interactions: slices.Clone(t.Interactions), State: Pending,
		Book: Book{Base: head, Head: head, MergeIn: f.MergeIn, Conflicts: f.Conflicts},
	}
	t.SupersededBy, t.BlockedOn, t.Hold, t.Reason = fix.ID, NotBlocked, NoHold, ""
	s.edit(t)
	s.stateChanged(t)
	s.add(fix)
	s.inherit(fix, t)
	// Below a parent that runs again (it was cancelled while this was integrated)
	// it waits for that run, as any child does.
	if parent := s.Tree.Task(t.ParentTaskID); parent == nil || parent.Waiting(Blocked, OnChildren) {
		fix.State = Queued
		s.addRun(fix, AgentRun)
	}
	s.event("fix.spawned", fix, map[string]any{"rejected": t.ID, "attempt": n})
	return nil
}

// inherit gives a fix the children that its predecessor still waits for: it was
// rejected, for a conflict, before they could run, or while one was integrated.
func (s *Step) inherit(fix, t *Task) {
	for _, child := range slices.Clone(s.Tree.children[t.ID]) {
		if !s.Tree.Settled(child.Position()) {
			s.Tree.children[t.ID] = without(s.Tree.children[t.ID], child)
			s.Tree.children[fix.ID] = append(s.Tree.children[fix.ID], child)
			child.ParentTaskID = fix.ID
			s.edit(child)
			if child.Waiting(Ready, OnIntegration) { // into the branch of its parent now
				s.effect(integration(child))
			}
		}
	}
}

// SetStory moves a story's status: as somebody's act says, or as the tree does.
func (s *Step) SetStory(status StoryStatus) {
	s.Tree.Story.Status, s.Tree.Story.UpdatedAt = status, s.Now
	s.story = true
	s.event("story."+strings.ToLower(string(status)), s.Tree.Current(s.Tree.Root()), nil)
}

// Wake asks a tree to look at what is due by now.
type Wake struct{}

func (Wake) apply(s *Step) error { //nolint:unparam // a Command may refuse; this one never does
	for _, t := range s.Tree.order {
		if t.State == Queued && !t.WakeAt.IsZero() && !t.WakeAt.After(s.Now) {
			s.Touch(t.ID)
		}
	}
	return nil
}

package work

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Command is one request to change a tree: from a person, an agent or the
// engine. Decide applies it.
type Command interface{ apply(*Step) error }

// Decide applies a command to the step's tree, or refuses it with an *Error.
// After an error the step and its tree must be thrown away if Dirty.
func Decide(s *Step, c Command) error { return c.apply(s) }

// Settle is the command that asks nothing: only the interpreter looks again.
type Settle struct {
	// Redeliver gives every effect again that something in the tree waits for, as
	// at a start of the server, when deliveries may have been lost.
	Redeliver bool
}

func (c Settle) apply(s *Step) error { //nolint:unparam // a Command may refuse; this one never does
	s.TouchAll()
	if c.Redeliver {
		s.redeliver()
	}
	return nil
}

func (s *Step) redeliver() {
	for _, t := range s.Tree.Tasks() {
		for _, e := range s.Tree.awaited(t) {
			s.effect(e)
		}
	}
	if root := s.Tree.Current(s.Tree.Root()); root != nil {
		s.branch(root)
	}
}

func start(t *Task, id ExecutionID) Effect {
	return Effect{Kind: StartExecution, Task: t.ID, Execution: id, Priority: t.Priority}
}

func stop(x *Execution) Effect {
	return Effect{Kind: StopExecution, Task: x.TaskID, Execution: x.ID, Job: x.JobID}
}

// Begin takes a queued execution for a node, once: the compare-and-set of the
// tree's version makes sure that two nodes cannot both succeed.
type Begin struct {
	Execution ExecutionID
	Node      string
	JobID     int64
	Lease     time.Time
	TokenHash string
	Spec      AgentSpec // resolved: what will really run
	Isolation string
}

func (c Begin) apply(s *Step) error {
	x := s.Tree.Execution(c.Execution)
	if x == nil || x.State != ExecutionQueued {
		return Errorf(Conflict, "execution %s is not waiting any more", c.Execution).WithReason("stale")
	}
	t := s.Tree.Task(x.TaskID)
	if other := s.Tree.running(t.ID, x.Kind); other != nil {
		return Errorf(Conflict, "execution %s of task %s has not ended yet", other.ID, t.ID).WithReason("still_running")
	}
	if x.Kind.Own() {
		// What it depends on in other trees may have moved since it was released; a
		// refusal here could be the last that is heard of it, and what it is built on
		// is settled before it is accepted anyway.
		if !t.Waiting(Queued, OnSlot) || t.Book.Current != x.ID {
			return Errorf(Conflict, "task %s does not wait for a slot (%s, %s)", t.ID, t.State, t.BlockedOn).WithReason("stale")
		}
		if err := s.move(t, OnBegin); err != nil {
			return err
		}
		t.BlockedOn, t.Book.Began = NotBlocked, true
		s.recordBuiltOn(t)
	}
	if err := s.moveRun(x, ExecutionBegin); err != nil {
		return err
	}
	x.Fence++
	x.Node, x.JobID, x.LeaseUntil, x.TokenHash = c.Node, c.JobID, c.Lease, c.TokenHash
	x.Spec, x.Agent, x.Model, x.Isolation, x.StartedAt = c.Spec, c.Spec.Type, c.Spec.Model, c.Isolation, s.Now
	if x.Kind.Own() {
		s.event("execution.started", t, map[string]any{"execution": x.ID, "number": x.Number, "agent": x.Agent})
	}
	return nil
}

// recordBuiltOn fixes which commits of which other trees the task starts from.
func (s *Step) recordBuiltOn(t *Task) {
	if t.ParentTaskID != "" || t.AttemptOf != "" || t.BuiltOn != nil {
		return
	}
	for _, d := range t.DependsOn {
		if o := s.Tree.Outer[d]; o.Head != "" {
			t.BuiltOn = append(t.BuiltOn, BuiltOn{TaskID: o.Current, Commit: o.Head, At: d})
		}
	}
}

// End reports how an execution ended. Fence must be the one Begin gave: a
// report from a former life is refused.
type End struct {
	Execution ExecutionID
	Fence     int64
	Outcome   Outcome
	Error     string
	ExitCode  *int
	Signalled bool // ended by a signal: an exit code then says nothing
	Tail      string
	Usage     Usage
	CostUSD   float64
	Estimated bool
	Handle    string
	NoResume  bool      // the conversation known before is gone
	ResumeAt  time.Time // of Limited: when the limit resets, zero if unknown
	LogBytes  int64
	Base      string
	Head      string
	Result    *Result // nil when nothing could be collected
	Gates     []GateResult
	Blockers  []string
	Conflicts []string // files that collecting found in conflict: with the branch's head, or unresolved
	MergeIn   string   // the commit whose merge met them; empty: the one the run was told to merge in
}

func (c End) apply(s *Step) error {
	x, t, err := s.running(c.Execution, c.Fence)
	if err != nil {
		return err
	}
	if !slices.Contains(Outcomes(), c.Outcome) {
		return Errorf(Internal, "outcome %q is unknown", c.Outcome)
	}
	if err := s.moveRun(x, ExecutionEnd); err != nil {
		return err
	}
	if speaks(t, x, c) { // whatever it says: the run itself has succeeded
		c.Outcome, c.Error = Success, ""
	}
	x.Outcome, x.EndedAt = c.Outcome, s.Now
	if x.Stopping != "" {
		x.Outcome = x.Stopping
	}
	x.Error, x.ExitCode, x.Usage, x.CostUSD, x.CostEstimated = c.Error, c.ExitCode, c.Usage, c.CostUSD, c.Estimated
	x.SessionHandle, x.LogBytes, x.Base, x.Head, x.Gates, x.TokenHash = c.Handle, c.LogBytes, c.Base, c.Head, c.Gates, ""
	s.effect(Effect{Kind: FinishJob, Task: t.ID, Execution: x.ID, Job: x.JobID})
	if !x.Kind.Own() {
		s.startWaiting(t, x.Kind)
		if x.Kind != GateRun {
			return s.shipRunEnded(t, x)
		}
		return s.gatesEnded(t, x)
	}
	s.event("execution.ended", t, map[string]any{"execution": x.ID, "outcome": x.Outcome})
	s.keepWork(t, c)
	t.Book.SpentUSD += c.CostUSD
	t.Book.Talk = t.Book.Talk.after(x, c)
	if t.State != Running || t.Book.Current != x.ID {
		s.startWaiting(t, x.Kind) // cancelled or retried meanwhile
		return nil
	}
	t.Book.Losses = 0
	t.Blockers = append(t.Blockers, c.Blockers...)
	return s.follow(t, x, c)
}

// after is the conversation that a later run can go on with once x has ended.
func (t Talk) after(x *Execution, c End) Talk {
	if c.Handle == "" {
		if c.NoResume {
			return Talk{}
		}
		return t
	}
	t = Talk{Handle: c.Handle, Agent: x.Agent, Since: x.StartedAt}
	if c.Outcome != Success && c.Outcome != Asked {
		t.Ended = cmp.Or(c.Error, string(c.Outcome))
	}
	return t
}

// running is the execution a report speaks about, if it may still speak.
func (s *Step) running(id ExecutionID, fence int64) (*Execution, *Task, error) {
	x := s.Tree.Execution(id)
	if x == nil || x.State != ExecutionRunning || x.Fence != fence || s.Tree.Task(x.TaskID) == nil {
		return nil, nil, Errorf(Conflict, "execution %s is over, or another run of it has begun", id).WithReason("stale")
	}
	return x, s.Tree.Task(x.TaskID), nil
}

// keepWork records what a run left behind, however it ended.
func (s *Step) keepWork(t *Task, c End) {
	s.edit(t)
	if t.Judges != nil {
		return // what a judge writes is discarded
	}
	if c.Base != "" && (t.Book.Base == "" || t.Book.Fresh) {
		t.Book.Base = c.Base
	}
	if c.Head != "" {
		t.Book.Head, t.Book.Fresh = c.Head, false
	}
	if c.Result != nil {
		t.Result = c.Result
	}
}

// startWaiting starts what waits for the place that a run has left only now: two
// runs of one task never overlap.
func (s *Step) startWaiting(t *Task, kind ExecutionKind) {
	for _, id := range s.Tree.runs[t.ID] {
		x := s.Tree.executions[id]
		if x.State == ExecutionQueued && x.Kind.Own() == kind.Own() && (!x.Kind.Own() || t.Waiting(Queued, OnSlot)) {
			s.effect(start(t, x.ID))
		}
	}
}

// follow turns an execution's outcome into what becomes of the task.
func (s *Step) follow(t *Task, x *Execution, c End) error {
	if x.Asked != nil { // however the run then ended, the server stopping included, a command judge's too
		return s.asked(t, x)
	}
	if verdict, decided := commandVerdict(t, x, c); decided {
		return s.judged(t, verdict)
	}
	switch c.Outcome {
	case Success:
		if len(c.Conflicts) > 0 && t.Judges == nil {
			s.event("integrate.conflict", t, map[string]any{"into": t.ID, "files": c.Conflicts})
			return s.conflicted(t, c.Conflicts, cmp.Or(c.MergeIn, t.Book.MergeIn))
		}
		t.Book.Failures, t.Book.Overloads, t.Book.MergeIn, t.Book.Conflicts, t.Book.Message = 0, 0, "", nil, ""
		if t.Judges != nil {
			return s.judged(t, x.Reported)
		}
		return s.afterRun(t)
	case Asked:
		return s.asked(t, x)
	case FailedRun:
		return s.failedRun(t, x, cmp.Or(c.Error, "the agent failed"), OnFail)
	case TimedOutRun:
		return s.failedRun(t, x, cmp.Or(c.Error, "the agent ran too long"), OnTimeout)
	case Silent:
		return s.failedRun(t, x, cmp.Or(c.Error, "the agent was silent too long"), OnTimeout)
	case BudgetRun:
		return s.ended(t, OnExceed, cmp.Or(c.Error, "the budget is spent"))
	case Overloaded:
		t.Book.Overloads++
		return s.waitUntil(t, x, OnRetry, s.Now.Add(backoff(Exponential, t.Book.Overloads, string(x.ID))), cmp.Or(c.Error, "the provider is overloaded"))
	case Limited:
		return s.waitUntil(t, x, OnLimit, s.limitEnds(c.ResumeAt), cmp.Or(c.Error, "the account's usage limit is reached"))
	case CancelledRun: // the server is stopping: as if lost, and not counted
		return s.requeue(t, x, "interrupted")
	}
	return Errorf(Internal, "outcome %q is unknown", c.Outcome)
}

// asked parks the task until a person answers.
func (s *Step) asked(t *Task, x *Execution) error {
	if x.Asked == nil {
		return s.failedRun(t, x, "the agent ended with a question but asked none", OnFail)
	}
	t.Question = x.Asked
	if err := s.move(t, OnBlock); err != nil {
		return err
	}
	t.BlockedOn, t.Reason = OnQuestion, x.Asked.Text
	s.event("question.asked", t, map[string]any{"question": x.Asked.Text})
	return nil
}

// Ask records a question during a run; the run then ends with outcome question.
type Ask struct {
	Execution ExecutionID
	Question  Question
}

func (c Ask) apply(s *Step) error {
	x := s.Tree.Execution(c.Execution)
	if x == nil || x.State != ExecutionRunning || x.Stopping != "" || x.Kind != AgentRun {
		return Errorf(Conflict, "execution %s is over", c.Execution).WithReason("stale")
	}
	if strings.TrimSpace(c.Question.Text) == "" {
		return Errorf(Invalid, "the question is empty")
	}
	if x.Asked != nil {
		return Errorf(Illegal, "this run has asked already").WithReason("already_asked")
	}
	if err := c.Question.check(); err != nil {
		return err
	}
	q := c.Question
	q.AskedAt = s.Now
	x.Asked = &q
	s.runs[x.ID] = true
	return nil
}

// Report records what a running agent says about its own task. A verdict is
// taken only from a judging run, for the commit it was asked about.
type Report struct {
	Execution ExecutionID
	Summary   string
	Blocker   string
	Verdict   *Verdict
	Plan      *Plan     // of a planner
	Lessons   *[]string // of a retro: they replace what it reported before
}

func (c Report) apply(s *Step) error {
	x := s.Tree.Execution(c.Execution)
	if x == nil || x.State != ExecutionRunning || x.Kind != AgentRun || (x.Stopping != "" && c.Verdict == nil) {
		return Errorf(Conflict, "execution %s is over", c.Execution).WithReason("stale")
	}
	t := s.Tree.Task(x.TaskID)
	if err := c.check(t); err != nil {
		return err
	}
	if c.Verdict != nil {
		if t.Judges == nil {
			return Errorf(Forbidden, "only a judging role may report a verdict").WithReason("not_a_judge")
		}
		if x.Reported != nil {
			return Errorf(Illegal, "this run has reported its verdict already").WithReason("already_reported")
		}
		x.Reported = c.Verdict
		s.runs[x.ID] = true
		if x.Stopping != "" { // a person was quicker: kept, without effect
			s.event("verdict.late", t, map[string]any{"judges": t.Judges.TaskID, "role": t.Role(), "approved": c.Verdict.Approved})
			return nil
		}
	}
	if c.Plan != nil {
		if err := s.reportPlan(t, c.Plan); err != nil {
			return err
		}
	}
	if c.Lessons != nil {
		if t.Role() != Retro {
			return Errorf(Forbidden, "only a retro may report lessons").WithReason("not_a_retro")
		}
		t.Lessons = *c.Lessons
	}
	if c.Summary != "" {
		t.Summary = c.Summary
	}
	if c.Blocker != "" {
		t.Blockers = append(t.Blockers, c.Blocker)
	}
	s.edit(t)
	return nil
}

// addRun queues an execution of a kind for a task.
func (s *Step) addRun(t *Task, kind ExecutionKind) *Execution {
	t.Book.Executions++
	x := &Execution{
		ID:     ExecutionID(s.derive("execution", string(t.ID), t.Book.Executions)),
		TaskID: t.ID, TreeID: s.Tree.ID, Kind: kind, Number: t.Book.Executions, State: ExecutionQueued, CreatedAt: s.Now,
	}
	s.Tree.insertExecution(x)
	s.runs[x.ID] = true
	if kind.Own() {
		t.Book.Current = x.ID
	}
	s.edit(t)
	return x
}

// stopRuns ends what runs or waits for a task: waiting executions at once,
// running ones when their processes are gone.
func (s *Step) stopRuns(t *Task, kinds ...ExecutionKind) error {
	for _, kind := range kinds {
		for _, x := range s.Tree.Runs(t.ID, kind) {
			switch {
			case x.State == ExecutionQueued:
				if err := s.moveRun(x, ExecutionEnd); err != nil {
					return err
				}
				x.Outcome, x.EndedAt = CancelledRun, s.Now
			case x.State == ExecutionRunning && x.Stopping == "":
				x.Stopping = CancelledRun
				s.runs[x.ID] = true
				s.effect(stop(x))
			}
		}
	}
	return nil
}

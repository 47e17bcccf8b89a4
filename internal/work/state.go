package work

// State is a task's state.
type State string

// The states of a task (specification, section 3).
const (
	Pending        State = "PENDING"
	Queued         State = "QUEUED"
	Running        State = "RUNNING"
	Blocked        State = "BLOCKED"
	Ready          State = "READY"
	Completed      State = "COMPLETED"
	Failed         State = "FAILED"
	TimedOut       State = "TIMED_OUT"
	BudgetExceeded State = "BUDGET_EXCEEDED"
	Cancelled      State = "CANCELLED"
)

// States lists every task state, in the order of the specification.
func States() []State {
	return []State{Pending, Queued, Running, Blocked, Ready, Completed, Failed, TimedOut, BudgetExceeded, Cancelled}
}

// EndedBadly is true for the states that end a task without its work accepted.
func (s State) EndedBadly() bool {
	return s == Failed || s == TimedOut || s == BudgetExceeded || s == Cancelled
}

// Ended is true when nothing will happen to the task unless someone asks.
func (s State) Ended() bool { return s == Completed || s.EndedBadly() }

// Trigger is what moves a task from one state to another.
type Trigger string

// The triggers of the task table.
const (
	OnQueue    Trigger = "queue"    // submitted, answered, messaged or retried: an execution waits
	OnBegin    Trigger = "begin"    // its execution was taken by a node
	OnRequeue  Trigger = "requeue"  // the run was lost, limited, or is tried again
	OnBlock    Trigger = "block"    // waits for children, an answer, or a settled conflict
	OnFinish   Trigger = "finish"   // its work is done and awaits acceptance
	OnComplete Trigger = "complete" // accepted and integrated
	OnFail     Trigger = "fail"
	OnTimeout  Trigger = "time_out"
	OnExceed   Trigger = "exceed"
	OnCancel   Trigger = "cancel"
	OnShelve   Trigger = "shelve" // back to PENDING: postponed, or revived to it
)

// TaskMachine is the task's table.
func TaskMachine() Table[State, Trigger] {
	var rows []Row[State, Trigger]
	add := func(trigger Trigger, to State, from ...State) {
		for _, f := range from {
			rows = append(rows, Row[State, Trigger]{f, trigger, to})
		}
	}
	add(OnQueue, Queued, Pending, Blocked, Ready, Failed, TimedOut, BudgetExceeded, Cancelled)
	add(OnBegin, Running, Queued)
	add(OnRequeue, Queued, Running)
	add(OnBlock, Blocked, Pending, Running, Ready, Cancelled)
	add(OnFinish, Ready, Running, Blocked, Cancelled)
	add(OnComplete, Completed, Ready)
	add(OnFail, Failed, Running)
	add(OnTimeout, TimedOut, Running)
	add(OnExceed, BudgetExceeded, Running)
	add(OnCancel, Cancelled, Pending, Queued, Running, Blocked, Ready)
	add(OnShelve, Pending, Queued, Failed, TimedOut, BudgetExceeded, Cancelled)
	return Table[State, Trigger]{"task", States(), rows}
}

// BlockedOn says what a task waits for.
type BlockedOn string

// What QUEUED, BLOCKED and READY tasks wait for.
const (
	NotBlocked     BlockedOn = ""
	OnDependencies BlockedOn = "dependencies" // QUEUED from here …
	OnSlot         BlockedOn = "slot"
	OnRetry        BlockedOn = "retry"
	OnLimit        BlockedOn = "limit"
	OnBudget       BlockedOn = "budget"
	OnPaused       BlockedOn = "paused"
	OnResources    BlockedOn = "resources"
	OnChildren     BlockedOn = "children" // BLOCKED from here …
	OnQuestion     BlockedOn = "question"
	OnConflict     BlockedOn = "conflict"
	OnGates        BlockedOn = "gates" // READY from here …
	OnJudges       BlockedOn = "judges"
	OnIntegration  BlockedOn = "integration"
	OnLanding      BlockedOn = "landing"
	OnPerson       BlockedOn = "person"
)

// ExecutionState is an execution's state.
type ExecutionState string

// The states of an execution.
const (
	ExecutionQueued  ExecutionState = "queued"
	ExecutionRunning ExecutionState = "running"
	ExecutionEnded   ExecutionState = "ended"
	ExecutionLost    ExecutionState = "lost"
)

// ExecutionStates lists every execution state.
func ExecutionStates() []ExecutionState {
	return []ExecutionState{ExecutionQueued, ExecutionRunning, ExecutionEnded, ExecutionLost}
}

// ExecutionTrigger moves an execution.
type ExecutionTrigger string

// The triggers of the execution table.
const (
	ExecutionBegin ExecutionTrigger = "begin"
	ExecutionEnd   ExecutionTrigger = "end"
	ExecutionLose  ExecutionTrigger = "lose"
)

// ExecutionMachine is the execution's table.
func ExecutionMachine() Table[ExecutionState, ExecutionTrigger] {
	return Table[ExecutionState, ExecutionTrigger]{"execution", ExecutionStates(), []Row[ExecutionState, ExecutionTrigger]{
		{ExecutionQueued, ExecutionBegin, ExecutionRunning},
		{ExecutionQueued, ExecutionEnd, ExecutionEnded}, // cancelled before it began
		{ExecutionRunning, ExecutionEnd, ExecutionEnded},
		{ExecutionRunning, ExecutionLose, ExecutionLost},
	}}
}

// Outcome is how an execution ended.
type Outcome string

// The outcomes of an execution (specification, section 3).
const (
	Success      Outcome = "success"
	Asked        Outcome = "question"
	FailedRun    Outcome = "failed"
	Overloaded   Outcome = "overloaded"
	Limited      Outcome = "limited"
	TimedOutRun  Outcome = "timed_out"
	Silent       Outcome = "silent"
	BudgetRun    Outcome = "budget_exceeded"
	CancelledRun Outcome = "cancelled"
)

// Outcomes lists every outcome.
func Outcomes() []Outcome {
	return []Outcome{Success, Asked, FailedRun, Overloaded, Limited, TimedOutRun, Silent, BudgetRun, CancelledRun}
}

// StoryStatus is a story's status. DRAFT, SHIPPING, DEPLOYED, DEPLOY_FAILED and
// CANCELLED are moved by acts alone; the others are derived from the tree, and stored
// only for queries.
type StoryStatus string

// The statuses of a story (specification, section 7).
const (
	Draft          StoryStatus = "DRAFT"
	InProgress     StoryStatus = "IN_PROGRESS"
	Validating     StoryStatus = "VALIDATING"
	NeedsFix       StoryStatus = "NEEDS_FIX"
	ReviewReady    StoryStatus = "REVIEW_READY"
	Shippable      StoryStatus = "SHIPPABLE"
	Shipping       StoryStatus = "SHIPPING"
	Deployed       StoryStatus = "DEPLOYED"
	DeployFailed   StoryStatus = "DEPLOY_FAILED"
	StoryCancelled StoryStatus = "CANCELLED"
)

// StoryStatuses lists every story status.
func StoryStatuses() []StoryStatus {
	return []StoryStatus{Draft, InProgress, Validating, NeedsFix, ReviewReady, Shippable, Shipping, Deployed, DeployFailed, StoryCancelled}
}

// Act is a recorded human or shipping step of a story.
type Act string

// The acts of a story.
const (
	ActApprove Act = "approve"
	ActAccept  Act = "accept"
	ActReject  Act = "reject"
	ActShip    Act = "ship"
	ActRefuse  Act = "refuse" // the landing was refused or aborted
	ActDeploy  Act = "deploy" // landed, pushed and deployed
	ActFail    Act = "fail"   // landed, but push or deploy failed
	ActBreak   Act = "break"  // smoke validation or the pull request's checks failed
	ActCancel  Act = "cancel"

	ActEdit       Act = "edit"        // moves no status
	ActStopDeploy Act = "stop-deploy" // ends a running deploy, which then has failed
)

// Acts lists every act.
func Acts() []Act {
	return []Act{ActEdit, ActApprove, ActAccept, ActReject, ActShip, ActStopDeploy, ActCancel, ActRefuse, ActDeploy, ActFail, ActBreak}
}

// StoryMachine is the table of a story's human steps; the rest of its status
// follows from its tree.
func StoryMachine() Table[StoryStatus, Act] {
	return Table[StoryStatus, Act]{"story", StoryStatuses(), []Row[StoryStatus, Act]{
		{Draft, ActApprove, InProgress},
		{InProgress, ActAccept, Shippable},
		{Validating, ActAccept, Shippable},
		{NeedsFix, ActAccept, Shippable},
		{ReviewReady, ActAccept, Shippable},
		{InProgress, ActReject, NeedsFix},
		{Validating, ActReject, NeedsFix},
		{ReviewReady, ActReject, NeedsFix},
		{Shippable, ActReject, NeedsFix},
		{NeedsFix, ActReject, NeedsFix}, // at the cap, with more attempts
		{DeployFailed, ActReject, NeedsFix},
		{Shippable, ActShip, Shipping},
		{DeployFailed, ActShip, Shipping},
		{Shipping, ActRefuse, Shippable},
		{Shipping, ActDeploy, Deployed},
		{Shipping, ActFail, DeployFailed},
		{Shipping, ActBreak, NeedsFix},
		{Draft, ActCancel, StoryCancelled},
		{InProgress, ActCancel, StoryCancelled},
		{Validating, ActCancel, StoryCancelled},
		{NeedsFix, ActCancel, StoryCancelled},
		{ReviewReady, ActCancel, StoryCancelled},
		{Shippable, ActCancel, StoryCancelled},
		{Shipping, ActCancel, StoryCancelled},
	}}
}

// Over is true when nothing will happen to the story any more.
func (s StoryStatus) Over() bool { return s == Deployed || s == StoryCancelled }

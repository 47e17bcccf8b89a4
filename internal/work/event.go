package work

import "time"

// Event is one thing that happened to a tree; append-only, written by the
// commit that made it happen. Seq is given by the store, in commit order.
type Event struct {
	Seq   int64          `json:"seq"`
	At    time.Time      `json:"at"`
	Actor Actor          `json:"actor"`
	Tree  TreeID         `json:"tree"`
	Task  TaskID         `json:"task,omitempty"`
	Kind  string         `json:"kind"`
	Body  map[string]any `json:"body,omitempty"`
}

// EffectKind is what must be done outside.
type EffectKind string

// The effects. Each is delivered at least once, possibly late or doubled; its
// handler finds the rows already past that point and then does nothing.
const (
	StartExecution EffectKind = "start_execution" // runs of every kind
	StopExecution  EffectKind = "stop_execution"
	FinishJob      EffectKind = "finish_job" // the job that carried an execution is over
	Integrate      EffectKind = "integrate"  // Commit (of Task) into the branch of Into
	Land           EffectKind = "land"
	Branch         EffectKind = "branch"       // the story's branch is to stand at Commit
	Push           EffectKind = "push"         // Commit, landed, to the remote
	PullRequest    EffectKind = "pull_request" // for Commit, to be opened and followed
	ClosePull      EffectKind = "close_pull"   // the cancelled story's pull request, if one is open
	Reclaim        EffectKind = "reclaim_workspace"
	Recheck        EffectKind = "recheck" // settle Tree again: something it waits for has changed
)

// Effect is one thing to do outside, durable until delivered.
type Effect struct {
	Kind      EffectKind  `json:"kind"`
	Tree      TreeID      `json:"tree"`
	Task      TaskID      `json:"task,omitempty"`
	Execution ExecutionID `json:"execution,omitempty"`
	Merge     MergeID     `json:"merge,omitempty"`
	Into      TaskID      `json:"into,omitempty"`
	Commit    string      `json:"commit,omitempty"`
	Contains  string      `json:"contains,omitempty"` // Commit must contain this one
	Job       int64       `json:"job,omitempty"`      // of StopExecution and FinishJob: the job that carries the run
	Priority  Priority    `json:"priority,omitempty"` // of StartExecution
	// Of Reclaim, whose task may be gone when it is delivered.
	Project    ProjectID `json:"project,omitempty"`
	Repository string    `json:"repository,omitempty"`
	Target     string    `json:"target,omitempty"` // branch that the merge was for
}

// ChangeSet is everything one decision writes, in one transaction.
type ChangeSet struct {
	Tree       TreeID
	Version    int64 // the version the decision was made on; 0: the tree is new
	Summary    Summary
	Tasks      []*Task
	Removed    []TaskID
	Executions []*Execution
	Merges     []*Merge
	Story      *Story
	NewTrees   []Summary // trees split off by postponing a child
	Events     []Event
	Effects    []Effect
	// Edges is the version of the cross-tree dependency graph the decision was
	// made on, when it adds such an edge; the commit bumps it.
	Edges *int64
	// Idempotency, when set, is stored with the result of the command that
	// created something.
	Idempotency *Idempotency
}

// Idempotency is a client's key for one creating request.
type Idempotency struct {
	Key      string // scoped by the credential that sent it
	Request  string // digest of the request, hex
	Response string // the id of what was made
	At       time.Time
}

// Summary is what is stored about a tree as a whole: for lists, for other trees
// that depend on it, and for the inbox.
type Summary struct {
	ID        TreeID
	ProjectID ProjectID
	StoryID   StoryID
	Current   TaskID // the current attempt of the root
	State     State
	Head      string
	Accepted  string // commit
	Landed    bool
	Open      bool      // something may still happen in it: it is settled at every start
	WakeAt    time.Time // the earliest instant something in it is due; zero: none
	Inbox     []Item
}

// Outer is what a tree knows of another tree its root depends on: the other's
// summary, read afresh before every decision.
type Outer = Summary

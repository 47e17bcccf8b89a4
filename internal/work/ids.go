package work

// TaskID names one task, that is one attempt at a position.
type TaskID string

// Position names a place in the tree by its anchor, the first task put there.
// It is not a TaskID: ask Tree.Current which task stands there now.
type Position string

// TreeID is the id of a tree: the anchor of its root.
type TreeID string

// ExecutionID names one run of one agent (or of gates) on one task.
type ExecutionID string

// ProjectID names a project.
type ProjectID string

// StoryID names a story.
type StoryID string

// EpicID names an epic.
type EpicID string

// MergeID names one landing.
type MergeID string

// IDs is the source of identifiers; it is an input, so that decisions can be
// replayed.
type IDs interface {
	// New gives a fresh identifier: lower-case letters and digits, legal in a
	// git ref and a file name.
	New() string
	// Derive gives the identifier that belongs to parts, always the same.
	Derive(parts ...string) string
}

// Role is what a task is for.
type Role string

// The roles with a meaning of their own. Any other name is a plain work role.
const (
	NoRole               Role = ""
	Builder              Role = "builder"
	Checker              Role = "checker"
	EvaluatorCorrectness Role = "evaluator-correctness"
	EvaluatorTests       Role = "evaluator-tests"
	EvaluatorSecurity    Role = "evaluator-security"
	EvaluatorQuality     Role = "evaluator-quality"
	Arbitration          Role = "arbitration"
	Retro                Role = "retro"
	Planner              Role = "planner"
)

// Roles lists the roles with a meaning of their own.
func Roles() []Role {
	return []Role{Builder, Checker, EvaluatorCorrectness, EvaluatorTests, EvaluatorSecurity, EvaluatorQuality, Arbitration, Retro, Planner}
}

// Kind is a task's relation to its parent.
type Kind string

// The kinds of task.
const (
	TopLevel    Kind = "task"        // has no parent
	Subtask     Kind = "subtask"     // part of its parent's work
	Improvement Kind = "improvement" // extra: any end settles it
)

// Kinds lists the kinds.
func Kinds() []Kind { return []Kind{TopLevel, Subtask, Improvement} }

// Priority orders waiting work.
type Priority string

// The priorities.
const (
	Low    Priority = "low"
	Normal Priority = "normal"
	High   Priority = "high"
	Urgent Priority = "urgent"
)

// Priorities lists the priorities, most urgent first.
func Priorities() []Priority { return []Priority{Urgent, High, Normal, Low} }

// Origin says who filed a task.
type Origin string

// The origins of a task.
const (
	FromPerson Origin = "person"
	FromAgent  Origin = "agent"
	FromPlan   Origin = "plan"
	FromSystem Origin = "system"
)

// ActorKind is the kind of who acts.
type ActorKind string

// Who can act.
const (
	PersonActor ActorKind = "person"
	AgentActor  ActorKind = "agent"
	SystemActor ActorKind = "system"
)

// Actor is who did something. ID is the token's name for a person, the
// execution's id for an agent.
type Actor struct {
	Kind ActorKind `json:"kind"`
	ID   string    `json:"id,omitempty"`
}

// System is the server itself.
func System() Actor { return Actor{Kind: SystemActor} }

// Person is a person, by the name of the credential.
func Person(name string) Actor { return Actor{Kind: PersonActor, ID: name} }

package work

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Task is a unit of work: one attempt at a position of a tree. The JSON names
// are those of the specification (section 3), the same on every surface.
type Task struct {
	ID            TaskID    `json:"id"`
	TreeID        TreeID    `json:"tree_id"`
	ParentTaskID  TaskID    `json:"parent_task_id,omitempty"`
	Kind          Kind      `json:"kind"`
	Name          string    `json:"name"`
	Description   string    `json:"description,omitempty"`
	ProjectID     ProjectID `json:"project_id"`
	StoryID       StoryID   `json:"story_id,omitempty"`
	RepositoryURL string    `json:"repository_url,omitempty"`
	BranchName    string    `json:"branch_name,omitempty"`

	Agent              AgentSpec  `json:"agent"`
	Timeout            Duration   `json:"timeout,omitzero"`
	Retry              Retry      `json:"retry"`
	Priority           Priority   `json:"priority"`
	Tags               []string   `json:"tags,omitempty"`
	DependsOn          []Position `json:"depends_on,omitempty"`
	AcceptanceCriteria []string   `json:"acceptance_criteria,omitempty"`
	Gates              []string   `json:"gates,omitempty"`
	Review             string     `json:"review,omitempty"`
	Draft              bool       `json:"draft,omitempty"`
	CommitType         string     `json:"commit_type,omitempty"`
	Origin             Origin     `json:"origin"`
	CreatedBy          TaskID     `json:"created_by,omitempty"`

	AttemptOf    Position    `json:"attempt_of,omitempty"`
	AttemptNo    int         `json:"attempt_no"`
	SupersededBy TaskID      `json:"superseded_by,omitempty"`
	Accepted     *Acceptance `json:"accepted,omitempty"`
	BuiltOn      []BuiltOn   `json:"built_on,omitempty"`
	Dropped      bool        `json:"dropped,omitempty"`
	ExtraFixes   int         `json:"extra_fixes,omitempty"`

	Judges            *Judged  `json:"judges,omitempty"`
	Verdict           *Verdict `json:"verdict,omitempty"`
	CheckerForTaskID  TaskID   `json:"checker_for_task_id,omitempty"`
	CheckerReport     string   `json:"checker_report,omitempty"`
	RejectionComment  string   `json:"rejection_comment,omitempty"`
	RejectionFindings Findings `json:"rejection_findings,omitempty"`

	Question     *Question     `json:"question,omitempty"`
	Interactions []Interaction `json:"interactions,omitempty"`
	Blockers     []string      `json:"blockers,omitempty"`
	Summary      string        `json:"summary,omitempty"`
	Lessons      []string      `json:"lessons,omitempty"` // what a retro proposes

	State     State     `json:"state"`
	Reason    string    `json:"reason,omitempty"`
	BlockedOn BlockedOn `json:"blocked_on,omitempty"`
	Hold      Hold      `json:"hold,omitempty"`
	WakeAt    time.Time `json:"wake_at,omitzero"`
	Result    *Result   `json:"result,omitempty"`
	Landed    *Landing  `json:"landed,omitempty"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`

	Book Book `json:"-"`
}

// Book is what the server itself keeps about a task; no surface shows it.
type Book struct {
	Executions int         `json:"executions,omitempty"`  // how many were queued, for their numbers
	Current    ExecutionID `json:"current,omitempty"`     // the newest agent execution
	Failures   int         `json:"failures,omitempty"`    // failed executions since the last submission
	Losses     int         `json:"losses,omitempty"`      // lost executions in a row
	Overloads  int         `json:"overloads,omitempty"`   // overloaded executions in a row
	Ran        bool        `json:"ran,omitempty"`         // its own latest run has succeeded
	Fresh      bool        `json:"fresh,omitempty"`       // the next execution starts from the base
	Base       string      `json:"base,omitempty"`        // commit its branch started from
	Head       string      `json:"head,omitempty"`        // head of its branch in the vault
	MergeIn    string      `json:"merge_in,omitempty"`    // commit to merge in before the next run (after a conflict)
	Conflicts  []string    `json:"conflicts,omitempty"`   // files of that conflict
	Talk       Talk        `json:"talk,omitzero"`         // the agent's latest conversation
	SpentUSD   float64     `json:"spent_usd,omitempty"`   // what its executions have cost
	Message    string      `json:"message,omitempty"`     // a person's message for the next run
	Round      int         `json:"round,omitempty"`       // review round; new work begins a new one
	GateFaults int         `json:"gate_faults,omitempty"` // gate executions that could not be run, this round
	Number     int         `json:"number,omitempty"`      // of a judging task: its number for (attempt, commit, role)
	ForRound   int         `json:"for_round,omitempty"`   // of a judging task: the round it belongs to
	Cascade    Position    `json:"cascade,omitempty"`     // cancelled because this position ended badly
	Was        State       `json:"was,omitempty"`         // the state a cascade took it from …
	WasOn      BlockedOn   `json:"was_on,omitempty"`      // … and what it waited for
	Began      bool        `json:"began,omitempty"`       // an execution of it has started once
	Merges     int         `json:"merges,omitempty"`      // how many landings were started
	SentBack   bool        `json:"sent_back,omitempty"`   // of a planner: it was told once that its plan is missing or wrong
	// Gone are children that a person took away, by name: an agent that spawns
	// them again gets the old id, and nothing is made.
	Gone map[string]TaskID `json:"gone,omitempty"`

	Decided string  `json:"decided,omitempty"` // the last recorded decision: who, round, commit, which
	Absorb  *Absorb `json:"absorb,omitempty"`  // another tree's work is being merged in
	Stuck   *Stuck  `json:"stuck,omitempty"`   // what has kept failing for it; of no meaning once it waits for something else
}

// Talk is a conversation with an agent that a later run can go on with.
type Talk struct {
	Handle string    `json:"handle"`
	Agent  string    `json:"agent"`           // the type that knows it
	Since  time.Time `json:"since"`           // when its last run began
	Ended  string    `json:"ended,omitempty"` // why that ended badly
}

// Hold says why a READY task waits for a person.
type Hold string

// The holds.
const (
	NoHold           Hold = ""
	HoldHuman        Hold = "human"        // its policy asks a person
	HoldFlagged      Hold = "flagged"      // a checker or gate reported against it
	HoldNoChanges    Hold = "no_changes"   // it changed nothing
	HoldNoJudge      Hold = "no_judge"     // no usable judge
	HoldNoVerdict    Hold = "no_verdict"   // judges ended without a verdict, twice
	HoldImprovements Hold = "improvements" // approved, but with improvement children
	HoldBuiltOn      Hold = "built_on"     // built on something unsettled
	HoldCap          Hold = "cap"          // fix attempts are used up
	HoldStalemate    Hold = "stalemate"    // rounds bring nothing new
	HoldGates        Hold = "gates"        // the gates could not be run
	HoldLanding      Hold = "landing"      // the landing was refused or aborted
)

// CommandAgent is the agent type that is any program: it gets its instructions as
// they stand, and judges with its exit code.
const CommandAgent = "command"

// AgentSpec says who does the work and how.
type AgentSpec struct {
	Type         string   `json:"type,omitempty"`
	Role         Role     `json:"role,omitempty"`
	Model        string   `json:"model,omitempty"`
	Instructions string   `json:"instructions,omitempty"`
	Command      []string `json:"command,omitempty"`
	AllowedTools []string `json:"allowed_tools,omitempty"`
	MaxBudgetUSD float64  `json:"max_budget_usd,omitempty"`
	MaxTurns     int      `json:"max_turns,omitempty"`
}

// Typed gives an agent that only a command stands for its type.
func (a AgentSpec) Typed() AgentSpec {
	if a.Type == "" && len(a.Command) > 0 {
		a.Type = CommandAgent
	}
	return a
}

// Retry bounds how often a failed execution is repeated.
type Retry struct {
	MaxAttempts int     `json:"max_attempts"`
	Backoff     Backoff `json:"backoff"`
}

// Backoff is how waits between repeats grow.
type Backoff string

// The backoffs.
const (
	Linear      Backoff = "linear"
	Exponential Backoff = "exponential"
)

// Acceptance records who accepted which commit.
type Acceptance struct {
	By     Actor     `json:"by"`
	Commit string    `json:"commit"`
	At     time.Time `json:"at"`
}

// BuiltOn records which commit of which task of another tree is part of a task.
type BuiltOn struct {
	TaskID TaskID   `json:"task_id"`
	Commit string   `json:"commit"`
	At     Position `json:"at,omitempty"`    // the place that task stood at
	Lacks  string   `json:"lacks,omitempty"` // what was accepted there and does not contain Commit
}

// Position is the place of the task that was built on.
func (b BuiltOn) Position() Position {
	if b.At != "" {
		return b.At
	}
	return Position(b.TaskID)
}

// Outside lists the places in other trees that a root waits for or is built on.
func (t *Task) Outside() []Position {
	out := slices.Clone(t.DependsOn)
	for _, b := range t.BuiltOn {
		if !slices.Contains(out, b.Position()) {
			out = append(out, b.Position())
		}
	}
	return out
}

// Absorb is a commit of another tree that is being merged into a task, since
// what the task was built on was accepted at another commit.
type Absorb struct {
	At     Position `json:"at"`
	TaskID TaskID   `json:"task_id"`
	Commit string   `json:"commit"`
}

// Judged names the attempt and commit a judging task speaks about.
type Judged struct {
	TaskID TaskID `json:"task_id"`
	Commit string `json:"commit"`
}

// Question is what an agent asked a person.
type Question struct {
	Text    string    `json:"text"`
	Options []string  `json:"options,omitempty"`
	AskedAt time.Time `json:"asked_at"`
}

// Interaction is a question and its answer.
type Interaction struct {
	Question string    `json:"question"`
	Answer   string    `json:"answer"`
	At       time.Time `json:"at"`
}

// Result is what a task changed, base against integrated head.
type Result struct {
	Base       string   `json:"base"`
	Head       string   `json:"head"`
	NoChanges  bool     `json:"no_changes"`
	Files      int      `json:"files"`
	Insertions int      `json:"insertions"`
	Deletions  int      `json:"deletions"`
	HeldBack   []string `json:"held_back,omitempty"`
	Warnings   []string `json:"warnings,omitempty"`
}

// Landing records where a task's work was landed.
type Landing struct {
	Branch string    `json:"branch"`
	Commit string    `json:"commit"`
	At     time.Time `json:"at"`
}

// Duration is a time.Duration spelled "30m" in JSON and YAML.
type Duration time.Duration

// MarshalText spells it as time.Duration does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads what time.ParseDuration reads.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil && wellFormed(string(text)) {
		return Errorf(Invalid, "duration %q is too long: at most 8760h, a year", string(text))
	}
	if err != nil {
		return Errorf(Invalid, "duration %q is not one: write 30m or 1h30m", string(text))
	}
	*d = Duration(v)
	return nil
}

// wellFormed is true of a duration that is one but for the size of its numbers.
func wellFormed(text string) bool {
	digit := false
	_, err := time.ParseDuration(strings.Map(func(r rune) rune {
		first := !digit
		if digit = '0' <= r && r <= '9'; !digit {
			return r
		}
		if first {
			return '1'
		}
		return -1
	}, text))
	return err == nil
}

// Position is the place the task stands at.
func (t *Task) Position() Position {
	if t.AttemptOf != "" {
		return t.AttemptOf
	}
	return Position(t.ID)
}

// Role is what the task is for.
func (t *Task) Role() Role { return t.Agent.Role }

// Apart is true for judging, planner and retro tasks: they have no parent,
// count in no roll-up, and their own work is never reviewed.
func (t *Task) Apart() bool {
	return t.Judges != nil || t.Agent.Role == Planner || t.Agent.Role == Retro
}

// Unreviewed is true for tasks whose work nobody judges, whatever the policy.
func (t *Task) Unreviewed() bool { return t.Apart() || t.Kind == Improvement }

// Waiting is true when the task stands in state and waits for on.
func (t *Task) Waiting(state State, on BlockedOn) bool { return t.State == state && t.BlockedOn == on }

// Lands is true for what can be landed by itself: top-level work outside stories,
// which are landed by Ship.
func (t *Task) Lands() bool { return t.ParentTaskID == "" && t.StoryID == "" && !t.Apart() }

// String names the task as people know it.
func (t *Task) String() string { return fmt.Sprintf("%s %q", t.ID, t.Name) }

// Ref is the branch in the vault that holds the task's work.
func (t *Task) Ref() string { return "claudomator/" + string(t.ID) }

// Subject is the first line of commits made for the task.
func (t *Task) Subject() string {
	name := strings.Join(strings.Fields(t.Name), " ")
	if t.CommitType != "" {
		return t.CommitType + ": " + name
	}
	return name
}

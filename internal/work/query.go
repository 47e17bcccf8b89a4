package work

import "time"

// The types here are what is asked of a store beyond single trees.

// Waiting is an execution that waits for a slot.
type Waiting struct {
	Execution ExecutionID
	Task      TaskID
	Tree      TreeID
	Project   ProjectID
	Agent     string // agent type; empty when resolved later, and for what no agent does
	Priority  Priority
	Since     time.Time
}

// Patience is how much older a task of a priority must be to go before an urgent
// one: waiting work is taken in the order of its age less its patience, so that
// priority counts and nothing starves.
func (p Priority) Patience() time.Duration {
	switch p {
	case Urgent:
		return 0
	case High:
		return 5 * time.Minute
	case Low:
		return time.Hour
	case Normal:
	}
	return 20 * time.Minute
}

// Token is a person's credential.
type Token struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Scope     Scope     `json:"scope"`
	Hash      string    `json:"-"` // SHA-256, hex
	CreatedAt time.Time `json:"created_at"`
	RevokedAt time.Time `json:"revoked_at,omitzero"`
}

// Scope is what a token may do.
type Scope string

// The scopes.
const (
	ScopeAdmin Scope = "admin" // everything
	ScopeRead  Scope = "read"  // no changes
)

// TaskFilter chooses tasks for a list. Zero fields do not filter.
type TaskFilter struct {
	Project  ProjectID
	Tree     TreeID
	Parent   TaskID
	Story    StoryID
	States   []State
	Tag      string
	Text     string // in name or description
	TopLevel bool   // only tasks without parent that do not stand apart
	All      bool   // superseded ones too, and those apart: judges, planners, retros
	After    string // cursor of the page before
	Limit    int    // 1 to 500, default 50
}

// StoryFilter chooses stories for a list. Zero fields do not filter.
type StoryFilter struct {
	Project  ProjectID
	Epic     EpicID
	Statuses []StoryStatus
	Text     string // in name or goal
	After    string // cursor of the page before
	Limit    int    // 1 to 500, default 50
}

// EpicProgress is an epic, and how many of its stories have which status.
type EpicProgress struct {
	Epic
	Stories map[StoryStatus]int `json:"stories"`
}

// Page is one page of a list, newest first, and the cursor of the next.
type Page[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty"`
}

// Stats are counts for the health page and the metrics.
type Stats struct {
	Tasks      map[State]int          `json:"tasks"`
	Executions map[ExecutionState]int `json:"executions"`
	CostUSD    float64                `json:"cost_usd"`
}

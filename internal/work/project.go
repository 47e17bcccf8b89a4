package work

import (
	"cmp"
	"time"
)

// Project is a repository with its commands, limits and review policy.
type Project struct {
	ID          ProjectID         `json:"id"`
	Name        string            `json:"name"`
	Repository  string            `json:"repository"` // absolute path or URL; empty: a private vault
	Branch      string            `json:"branch"`
	Setup       string            `json:"setup,omitempty"`
	Validate    []string          `json:"validate,omitempty"`
	Deploy      string            `json:"deploy,omitempty"`
	ShipMode    ShipMode          `json:"ship_mode,omitempty"`
	Forge       Forge             `json:"forge,omitzero"`
	Policy      string            `json:"policy,omitempty"`
	Policies    map[string]string `json:"policies,omitempty"` // "ROLE/DEPTH", either may be "*" → policy
	MaxFixes    *int              `json:"max_fix_attempts,omitempty"`
	Evaluators  []Role            `json:"evaluators,omitempty"` // the panel of arbitrated reviews; empty: all four
	Agent       string            `json:"agent,omitempty"`
	Isolation   string            `json:"isolation,omitempty"`
	Limits      Limits            `json:"limits"`
	Environment map[string]string `json:"environment,omitempty"`
	AutoLand    bool              `json:"auto_land,omitempty"`
	Lessons     []string          `json:"lessons,omitempty"`
	Removed     bool              `json:"removed,omitempty"`
	CreatedAt   time.Time         `json:"created_at"`
	UpdatedAt   time.Time         `json:"updated_at"`
	Version     int64             `json:"-"`
}

// Limits bound a project's executions; zero means no limit of its own.
type Limits struct {
	Slots   int      `json:"slots,omitempty" doc:"How many runs at the same time; 0: no limit"`
	Timeout Duration `json:"timeout,omitzero" doc:"How long one run may take, such as 30m"`
	Silence Duration `json:"silence,omitzero" doc:"How long a run may print nothing, such as 15m"`
}

// RoleConfig gives a role its prompt, agent and limits; every change is a new
// version. One of a project says only what differs there.
type RoleConfig struct {
	ProjectID    ProjectID `json:"project_id,omitempty"` // empty: for all projects
	Name         Role      `json:"name"`
	Version      int       `json:"version"`
	Active       bool      `json:"active"`
	Agent        string    `json:"agent,omitempty"`
	Model        string    `json:"model,omitempty"`
	Command      []string  `json:"command,omitempty"`
	Prompt       string    `json:"prompt,omitempty"`
	AllowedTools []string  `json:"allowed_tools,omitempty"`
	MaxBudgetUSD float64   `json:"max_budget_usd,omitempty"`
	Timeout      Duration  `json:"timeout,omitzero"`
	CreatedAt    time.Time `json:"created_at"`
}

// Over is the configuration of a project, r, on top of the one for all: what r
// leaves open is taken from there. Model and program belong to the agent.
func (r RoleConfig) Over(all RoleConfig) RoleConfig {
	if r.Agent == "" || r.Agent == all.Agent {
		r.Agent, r.Model = all.Agent, cmp.Or(r.Model, all.Model)
		if r.Command == nil {
			r.Command = all.Command
		}
	}
	if r.AllowedTools == nil {
		r.AllowedTools = all.AllowedTools
	}
	r.Prompt = cmp.Or(r.Prompt, all.Prompt)
	r.MaxBudgetUSD, r.Timeout = cmp.Or(r.MaxBudgetUSD, all.MaxBudgetUSD), cmp.Or(r.Timeout, all.Timeout)
	return r
}

// MergeStatus is where a landing stands.
type MergeStatus string

// The statuses of a merge.
const (
	MergeRunning    MergeStatus = "running"
	MergeConflicted MergeStatus = "conflicted"
	MergeLanded     MergeStatus = "landed"
	MergeNothing    MergeStatus = "nothing_to_land"
	MergeRefused    MergeStatus = "refused"
	MergeAborted    MergeStatus = "aborted"
)

// MergeStatuses lists the statuses.
func MergeStatuses() []MergeStatus {
	return []MergeStatus{MergeRunning, MergeConflicted, MergeLanded, MergeNothing, MergeRefused, MergeAborted}
}

// Open is true while the merge is not over.
func (s MergeStatus) Open() bool { return s == MergeRunning || s == MergeConflicted }

// Merge is one landing of a task (and its completed improvements) on a target
// branch of the project's repository.
type Merge struct {
	ID        MergeID     `json:"id"`
	TaskID    TaskID      `json:"task_id"`
	Target    string      `json:"target"`
	Status    MergeStatus `json:"status"`
	Queue     []MergePart `json:"queue"`
	Current   TaskID      `json:"current,omitempty"`
	Conflicts []string    `json:"conflicts,omitempty"`
	Dir       string      `json:"dir,omitempty"` // on the server's machine: where the conflict is to be resolved
	Commit    string      `json:"commit,omitempty"`
	Reason    string      `json:"reason,omitempty"` // a stable word when refused
	Message   string      `json:"message,omitempty"`
	Hint      string      `json:"hint,omitempty"`
	CreatedAt time.Time   `json:"created_at"`
	UpdatedAt time.Time   `json:"updated_at"`

	TreeID    TreeID `json:"-"`
	Accepting bool   `json:"-"` // landing is part of accepting the task
	By        Actor  `json:"-"`
}

// MergePart is one task's commit in a landing, in the order it is merged.
type MergePart struct {
	TaskID TaskID `json:"task_id"`
	Commit string `json:"commit"`
}

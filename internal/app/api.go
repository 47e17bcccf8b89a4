package app

import (
	"context"
	"io"
	"iter"

	"github.com/claudomator/claudomator/internal/work"
)

// API is the list of use cases. *Service implements it, and client over HTTP;
// the command line takes one. A ref is an id, an unambiguous prefix of one, or
// a name.
type API interface {
	AddProject(ctx context.Context, in ProjectInput) (*work.Project, error)
	Projects(ctx context.Context) ([]*work.Project, error)
	Project(ctx context.Context, ref string) (*work.Project, error)
	SetProject(ctx context.Context, ref string, in ProjectInput) (*work.Project, error)
	RemoveProject(ctx context.Context, ref string) error

	CreateTask(ctx context.Context, in TaskRequest) (*TaskView, error)
	Tasks(ctx context.Context, filter TaskQuery) (Page[*work.Task], error)
	Task(ctx context.Context, ref string) (*TaskView, error)
	PatchTask(ctx context.Context, ref string, in TaskPatch) (*TaskView, error)
	StartTask(ctx context.Context, ref string) (*TaskView, error)
	AcceptTask(ctx context.Context, ref string, in AcceptInput) (*TaskView, error)
	RejectTask(ctx context.Context, ref string, in RejectInput) (*TaskView, error)
	AnswerTask(ctx context.Context, ref string, text string) (*TaskView, error)
	MessageTask(ctx context.Context, ref string, text string) (*TaskView, error)
	RetryTask(ctx context.Context, ref string, fresh bool) (*TaskView, error)
	CancelTask(ctx context.Context, ref string) (*TaskView, error)
	SubmitTask(ctx context.Context, ref string) (*TaskView, error)
	DropTask(ctx context.Context, ref string) (*TaskView, error)
	PostponeTask(ctx context.Context, ref string) (*TaskView, error)
	RemoveTask(ctx context.Context, ref string) error

	Subtasks(ctx context.Context, ref string) ([]*work.Task, error)
	TaskTree(ctx context.Context, ref string) (*TreeNode, error)
	TaskDiff(ctx context.Context, ref string, w io.Writer) error
	TaskEvents(ctx context.Context, ref string) ([]work.Event, error)
	Executions(ctx context.Context, ref string) ([]*work.Execution, error)
	Execution(ctx context.Context, ref string) (*work.Execution, error)
	// Transcript opens what an execution printed (JSONL) at a byte offset.
	Transcript(ctx context.Context, ref string, offset int64) (io.ReadCloser, error)

	StartMerge(ctx context.Context, taskRef, into string) (*work.Merge, error)
	Merges(ctx context.Context, taskRef string) ([]*work.Merge, error)
	Merge(ctx context.Context, ref string) (*work.Merge, error)
	ContinueMerge(ctx context.Context, ref string) (*work.Merge, error)
	AbortMerge(ctx context.Context, ref string) (*work.Merge, error)

	Roles(ctx context.Context) ([]work.RoleConfig, error) // active ones
	Role(ctx context.Context, name string) ([]work.RoleConfig, error)
	SetRole(ctx context.Context, name string, in RoleInput) (*work.RoleConfig, error)

	Tokens(ctx context.Context) ([]Token, error)
	CreateToken(ctx context.Context, name string, scope Scope) (*NewToken, error)
	RevokeToken(ctx context.Context, ref string) error

	Attention(ctx context.Context) ([]work.Item, error)
	Agents(ctx context.Context) ([]AgentInfo, error)
	Stats(ctx context.Context) (*Stats, error)
	// Events streams events after a sequence number (negative: from now on),
	// first what is stored, then what comes, until ctx ends.
	Events(ctx context.Context, after int64) iter.Seq2[work.Event, error]
}

// ProjectInput is what a project is made or changed with; nil fields stay.
type ProjectInput struct {
	Name        *string            `json:"name,omitempty"`
	Repository  *string            `json:"repository,omitempty"`
	Branch      *string            `json:"branch,omitempty"`
	Setup       *string            `json:"setup,omitempty"`
	Validate    *[]string          `json:"validate,omitempty"`
	Deploy      *string            `json:"deploy,omitempty"`
	Policy      *string            `json:"policy,omitempty"`
	Policies    *map[string]string `json:"policies,omitempty"`
	MaxFixes    *int               `json:"max_fix_attempts,omitempty"`
	Agent       *string            `json:"agent,omitempty"`
	Isolation   *string            `json:"isolation,omitempty"`
	Limits      *work.Limits       `json:"limits,omitempty"`
	Environment *map[string]string `json:"environment,omitempty"`
	AutoLand    *bool              `json:"auto_land,omitempty"`
	Lessons     *[]string          `json:"lessons,omitempty"`
}

// TaskRequest is what a person or a file gives to make a task. The names are
// those of the task itself.
type TaskRequest struct {
	Project            string        `json:"project,omitempty" yaml:"project"`       // name or id
	ProjectID          string        `json:"project_id,omitempty" yaml:"project_id"` // the same
	ParentTaskID       string        `json:"parent_task_id,omitempty" yaml:"parent_task_id"`
	Name               string        `json:"name" yaml:"name"`
	Description        string        `json:"description,omitempty" yaml:"description"`
	RepositoryURL      string        `json:"repository_url,omitempty" yaml:"repository_url"`
	BranchName         string        `json:"branch_name,omitempty" yaml:"branch_name"`
	Agent              AgentInput    `json:"agent,omitzero" yaml:"agent"`
	Timeout            work.Duration `json:"timeout,omitzero" yaml:"timeout"`
	Retry              RetryInput    `json:"retry,omitzero" yaml:"retry"`
	Priority           string        `json:"priority,omitempty" yaml:"priority"`
	Tags               []string      `json:"tags,omitempty" yaml:"tags"`
	DependsOn          []string      `json:"depends_on,omitempty" yaml:"depends_on"`
	AcceptanceCriteria StringList    `json:"acceptance_criteria,omitempty" yaml:"acceptance_criteria"`
	Gates              []string      `json:"gates,omitempty" yaml:"gates"`
	Review             string        `json:"review,omitempty" yaml:"review"`
	Draft              bool          `json:"draft,omitempty" yaml:"draft"`
	CommitType         string        `json:"commit_type,omitempty" yaml:"commit_type"`
	Start              bool          `json:"start,omitempty" yaml:"start"`
	IdempotencyKey     string        `json:"-" yaml:"-"`
}

// AgentInput is the agent part of a task request.
type AgentInput struct {
	Type         string   `json:"type,omitempty" yaml:"type"`
	Role         string   `json:"role,omitempty" yaml:"role"`
	Model        string   `json:"model,omitempty" yaml:"model"`
	Instructions string   `json:"instructions,omitempty" yaml:"instructions"`
	Command      []string `json:"command,omitempty" yaml:"command"`
	AllowedTools []string `json:"allowed_tools,omitempty" yaml:"allowed_tools"`
	MaxBudgetUSD float64  `json:"max_budget_usd,omitempty" yaml:"max_budget_usd"`
	MaxTurns     int      `json:"max_turns,omitempty" yaml:"max_turns"`
}

// RetryInput is the retry part of a task request.
type RetryInput struct {
	MaxAttempts int    `json:"max_attempts,omitempty" yaml:"max_attempts"`
	Backoff     string `json:"backoff,omitempty" yaml:"backoff"`
}

// TaskPatch changes a task while it does not run; nil fields stay.
type TaskPatch struct {
	Name               *string        `json:"name,omitempty"`
	Description        *string        `json:"description,omitempty"`
	Instructions       *string        `json:"instructions,omitempty"`
	AcceptanceCriteria *StringList    `json:"acceptance_criteria,omitempty"`
	Gates              *[]string      `json:"gates,omitempty"`
	Tags               *[]string      `json:"tags,omitempty"`
	Priority           *string        `json:"priority,omitempty"`
	Timeout            *work.Duration `json:"timeout,omitempty"`
	MaxBudgetUSD       *float64       `json:"max_budget_usd,omitempty"`
	Retry              *RetryInput    `json:"retry,omitempty"`
	Draft              *bool          `json:"draft,omitempty"`
	DependsOn          *[]string      `json:"depends_on,omitempty"`
}

// TaskQuery chooses tasks for a list.
type TaskQuery struct {
	Project  string // ref
	Parent   string // ref
	States   []work.State
	Tag      string
	Text     string
	TopLevel bool
	All      bool
	After    string
	Limit    int
}

// AcceptInput says how accepted work goes on. Land nil: with improvement
// children, or when the project says auto_land.
type AcceptInput struct {
	Land *bool  `json:"land,omitempty"`
	Into string `json:"into,omitempty"`
}

// RejectInput is a person's rejection.
type RejectInput struct {
	Comment  string        `json:"comment"`
	Findings work.Findings `json:"findings,omitempty"`
	Extra    int           `json:"extra,omitempty"`
}

// RoleInput changes a role's configuration; nil fields keep the active
// version's value.
type RoleInput struct {
	Agent        *string        `json:"agent,omitempty"`
	Model        *string        `json:"model,omitempty"`
	Command      *[]string      `json:"command,omitempty"`
	Prompt       *string        `json:"prompt,omitempty"`
	AllowedTools *[]string      `json:"allowed_tools,omitempty"`
	MaxBudgetUSD *float64       `json:"max_budget_usd,omitempty"`
	Timeout      *work.Duration `json:"timeout,omitempty"`
	Active       *bool          `json:"active,omitempty"`
}

// NewToken is a token with its secret, shown once.
type NewToken struct {
	Token
	Secret string `json:"secret"`
}

// TaskView is a task and what can be asked of it now.
type TaskView struct {
	work.Task
	Actions   []work.Action `json:"actions"`
	CurrentID work.TaskID   `json:"current_id"` // the attempt that stands at its place
	MergeID   work.MergeID  `json:"merge_id,omitempty"`
}

// TreeNode is a position of a tree: its attempts, its judges, its children.
type TreeNode struct {
	Task     *work.Task   `json:"task"` // the current attempt
	Attempts []*work.Task `json:"attempts,omitempty"`
	Judges   []*work.Task `json:"judges,omitempty"` // of the current attempt
	Children []*TreeNode  `json:"children,omitempty"`
}

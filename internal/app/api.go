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
	// Templates lists the templates in a project's repository, stories first.
	Templates(ctx context.Context, project string) ([]Template, error)

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

	// Elaborate begins a story: a planner makes its plan.
	Elaborate(ctx context.Context, in ElaborateInput) (*Elaborated, error)
	// ApprovePlan begins a story with a whole plan, which is approved at once.
	ApprovePlan(ctx context.Context, in ApproveInput) (*Approved, error)
	Stories(ctx context.Context, q StoryQuery) (Page[*work.Story], error)
	Story(ctx context.Context, ref string) (*StoryView, error)
	EditStory(ctx context.Context, ref string, in StoryPatch) (*StoryView, error)
	ApproveStory(ctx context.Context, ref string) (*Approved, error)
	AcceptStory(ctx context.Context, ref string) (*StoryView, error)
	RejectStory(ctx context.Context, ref string, in RejectInput) (*StoryView, error)
	ShipStory(ctx context.Context, ref string, in ShipRequest) (*Shipment, error)
	StopDeploy(ctx context.Context, ref string) (*StoryView, error)
	CancelStory(ctx context.Context, ref string) (*StoryView, error)
	StoryTree(ctx context.Context, ref string) (*TreeNode, error)
	Epics(ctx context.Context) ([]work.EpicProgress, error)
	AddEpic(ctx context.Context, in EpicInput) (*work.EpicProgress, error)

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

	Disk(ctx context.Context) (*DiskUse, error)
	ReclaimDisk(ctx context.Context, in ReclaimRequest) (*Reclaimed, error)
	// Snapshots lists what the vaults keep of a task, or of all tasks (empty).
	Snapshots(ctx context.Context, taskRef string) ([]Snapshot, error)
	RestoreSnapshot(ctx context.Context, in RestoreRequest) (*Restored, error)

	Attention(ctx context.Context) ([]work.Item, error)
	Agents(ctx context.Context) ([]AgentInfo, error)
	Stats(ctx context.Context) (*Stats, error)
	// Events streams events after a sequence number (negative: from now on),
	// first what is stored, then what comes, until ctx ends.
	Events(ctx context.Context, after int64) iter.Seq2[work.Event, error]
}

// ProjectInput is what a project is made or changed with; nil fields stay.
type ProjectInput struct {
	Name        *string            `json:"name,omitempty" doc:"Short name: lower-case letters, digits, dash, dot, underscore"`
	Repository  *string            `json:"repository,omitempty" doc:"Path or URL of a git repository; none: a private empty one"`
	Branch      *string            `json:"branch,omitempty" doc:"Default branch; the repository's own when left out"`
	Setup       *string            `json:"setup,omitempty" doc:"Shell command that prepares a fresh workspace"`
	Validate    *[]string          `json:"validate,omitempty" doc:"Shell commands that check a result"`
	Deploy      *string            `json:"deploy,omitempty" doc:"Shell command that deploys what was landed"`
	Policy      *string            `json:"policy,omitempty" doc:"Review policy: none, human, checked or arbitrated"`
	Policies    *map[string]string `json:"policies,omitempty" doc:"Review policy by ROLE/DEPTH, such as builder/*"`
	MaxFixes    *int               `json:"max_fix_attempts,omitempty" doc:"How often rejected work is fixed before a person decides, 0 to 100"`
	Agent       *string            `json:"agent,omitempty" doc:"Agent type of tasks that name none"`
	Isolation   *string            `json:"isolation,omitempty" doc:"How runs are kept apart: none"`
	Limits      *LimitsInput       `json:"limits,omitempty" doc:"Limits of its tasks"`
	Environment *map[string]string `json:"environment,omitempty" doc:"Environment variables of its runs"`
	AutoLand    *bool              `json:"auto_land,omitempty" doc:"Land accepted work at once"`
	Evaluators  *[]work.Role       `json:"evaluators,omitempty" doc:"Roles that judge in an arbitrated review; the four evaluators when empty"`
	ShipMode    *work.ShipMode     `json:"ship_mode,omitempty" doc:"pull_request: ship by a pull request at the forge; else the branch is moved"`
	Forge       *ForgeInput        `json:"forge,omitempty" doc:"Where pull requests are opened"`
	Lessons     *[]string          `json:"lessons,omitempty" doc:"What later agents should know"`
}

// LimitsInput changes the limits of a project; nil fields stay.
type LimitsInput struct {
	Slots   *int           `json:"slots,omitempty" doc:"How many runs at the same time; 0: no limit"`
	Timeout *work.Duration `json:"timeout,omitempty" doc:"How long one run may take, such as 30m"`
	Silence *work.Duration `json:"silence,omitempty" doc:"How long a run may print nothing, such as 15m"`
}

// ForgeInput changes where a project's pull requests are opened; nil fields stay.
type ForgeInput struct {
	Kind     *string `json:"kind,omitempty" doc:"github or gitea (Forgejo too); by the remote's host when empty"`
	API      *string `json:"api,omitempty" doc:"Base address of its API, where it is not the host's usual one"`
	TokenEnv *string `json:"token_env,omitempty" doc:"Name of the server's environment variable that holds the token"`
}

// TaskRequest is what a person or a file gives to make a task. The names are
// those of the task itself.
type TaskRequest struct {
	Project            string        `json:"project,omitempty" yaml:"project" doc:"Name or id of the project; the only one there is when left out"`
	ProjectID          string        `json:"project_id,omitempty" yaml:"project_id" doc:"The same as project"`
	ParentTaskID       string        `json:"parent_task_id,omitempty" yaml:"parent_task_id" doc:"The task it becomes a child of"`
	Name               string        `json:"name" yaml:"name" doc:"Short title"`
	Description        string        `json:"description,omitempty" yaml:"description" doc:"What it is about, for people"`
	RepositoryURL      string        `json:"repository_url,omitempty" yaml:"repository_url" doc:"The project's repository, to make sure that it is the one meant"`
	BranchName         string        `json:"branch_name,omitempty" yaml:"branch_name" doc:"A branch name for its result, which is only noted: branches are made of stories"`
	Agent              AgentInput    `json:"agent,omitzero" yaml:"agent" doc:"Who does it, and what it is told"`
	Timeout            work.Duration `json:"timeout,omitzero" yaml:"timeout" doc:"How long one run may take, such as 30m"`
	Retry              RetryInput    `json:"retry,omitzero" yaml:"retry" doc:"What follows a failed run"`
	Priority           string        `json:"priority,omitempty" yaml:"priority" doc:"low, normal, high or urgent"`
	Tags               []string      `json:"tags,omitempty" yaml:"tags" doc:"Words to find it by"`
	DependsOn          []string      `json:"depends_on,omitempty" yaml:"depends_on" doc:"Tasks that must be done before: ids, prefixes or names"`
	AcceptanceCriteria StringList    `json:"acceptance_criteria,omitempty" yaml:"acceptance_criteria" doc:"What must be true of the result, each checkable by a reviewer"`
	Gates              []string      `json:"gates,omitempty" yaml:"gates" doc:"Shell commands that must pass before it is judged"`
	Review             string        `json:"review,omitempty" yaml:"review" doc:"Review policy: none, human, checked or arbitrated"`
	Draft              bool          `json:"draft,omitempty" yaml:"draft" doc:"Not to be started yet"`
	CommitType         string        `json:"commit_type,omitempty" yaml:"commit_type" doc:"Prefix of the commit subject, such as feat"`
	Start              bool          `json:"start,omitempty" yaml:"start" doc:"Submit it at once"`
	IdempotencyKey     string        `json:"-" yaml:"-"`
}

// AgentInput is the agent part of a task request.
type AgentInput struct {
	Type         string   `json:"type,omitempty" yaml:"type" doc:"Agent program, such as claude, codex or command"`
	Role         string   `json:"role,omitempty" yaml:"role" doc:"What the task is for, such as builder"`
	Model        string   `json:"model,omitempty" yaml:"model" doc:"Model of that program"`
	Instructions string   `json:"instructions,omitempty" yaml:"instructions" doc:"The prompt of the agent"`
	Command      []string `json:"command,omitempty" yaml:"command" doc:"Program and arguments; without a type: of agent type command"`
	AllowedTools []string `json:"allowed_tools,omitempty" yaml:"allowed_tools" doc:"Tools the agent may use"`
	MaxBudgetUSD float64  `json:"max_budget_usd,omitempty" yaml:"max_budget_usd" doc:"What it may cost, in US dollars; 0: no limit"`
	MaxTurns     int      `json:"max_turns,omitempty" yaml:"max_turns" doc:"How many turns it may take; 0: no limit"`
}

// RetryInput is the retry part of a task request.
type RetryInput struct {
	MaxAttempts int    `json:"max_attempts,omitempty" yaml:"max_attempts" doc:"How many runs may fail"`
	Backoff     string `json:"backoff,omitempty" yaml:"backoff" doc:"linear or exponential"`
}

// TaskPatch changes a task while it does not run; nil fields stay, and so does what Retry
// leaves empty.
type TaskPatch struct {
	Name               *string        `json:"name,omitempty" doc:"Short title"`
	Description        *string        `json:"description,omitempty" doc:"What it is about, for people"`
	Instructions       *string        `json:"instructions,omitempty" doc:"The prompt of the agent"`
	AcceptanceCriteria *StringList    `json:"acceptance_criteria,omitempty" doc:"What must be true of the result"`
	Gates              *[]string      `json:"gates,omitempty" doc:"Shell commands that must pass before it is judged"`
	Tags               *[]string      `json:"tags,omitempty" doc:"Words to find it by"`
	Priority           *string        `json:"priority,omitempty" doc:"low, normal, high or urgent"`
	Timeout            *work.Duration `json:"timeout,omitempty" doc:"How long one run may take, such as 30m"`
	MaxBudgetUSD       *float64       `json:"max_budget_usd,omitempty" doc:"What it may cost, in US dollars; 0: no limit"`
	Retry              *RetryInput    `json:"retry,omitempty" doc:"What follows a failed run"`
	Draft              *bool          `json:"draft,omitempty" doc:"Not to be started yet"`
	DependsOn          *[]string      `json:"depends_on,omitempty" doc:"Tasks that must be done before: ids, prefixes or names"`
}

// TaskQuery chooses tasks for a list.
type TaskQuery struct {
	Project  string       `query:"project" json:"project,omitempty" doc:"Only of this project"`
	Parent   string       `query:"parent" json:"parent,omitempty" doc:"Only children of this task"`
	States   []work.State `query:"state,explode" json:"state,omitempty" doc:"Only in one of these states; may be repeated"`
	Tag      string       `query:"tag" json:"tag,omitempty" doc:"Only with this tag"`
	Text     string       `query:"text" json:"text,omitempty" doc:"Only with this text in name or description"`
	TopLevel bool         `query:"top_level" json:"top_level,omitempty" doc:"Only tasks without parent that judge nothing"`
	All      bool         `query:"all" json:"all,omitempty" doc:"Superseded attempts and judging tasks too"`
	After    string       `query:"after" json:"after,omitempty" doc:"The next of the page before"`
	Limit    int          `query:"limit" minimum:"0" json:"limit,omitempty" doc:"Tasks a page, at most 500; 50 when left out"`
}

// AcceptInput says how accepted work goes on. Land nil: with improvement
// children, or when the project says auto_land.
type AcceptInput struct {
	Land *bool  `json:"land,omitempty" doc:"Land it on the target branch; by improvements and the project's auto_land when left out"`
	Into string `json:"into,omitempty" doc:"Branch to land on; the project's when left out"`
}

// RejectInput is a person's rejection.
type RejectInput struct {
	Comment  string        `json:"comment" doc:"Why, and what would be right"`
	Findings work.Findings `json:"findings,omitempty" doc:"Objections one by one"`
	Extra    int           `json:"extra,omitempty" doc:"Further fix attempts beyond the limit"`
}

// Words is what a person says to a task.
type Words struct {
	Text string `json:"text" doc:"What to say"`
}

// RetryRequest says how a task is run again.
type RetryRequest struct {
	Fresh bool `json:"fresh,omitempty" doc:"Start again from the base; what is there is kept as a snapshot"`
}

// MergeRequest says where work is landed.
type MergeRequest struct {
	Into string `json:"into,omitempty" doc:"The branch; the project's when left out"`
}

// TokenRequest is what a credential is made with.
type TokenRequest struct {
	Name  string `json:"name" doc:"Who or what it is for"`
	Scope Scope  `json:"scope" doc:"admin: everything; read: no changes"`
}

// RoleInput changes a role's configuration; nil fields keep the active
// version's value.
type RoleInput struct {
	Project      string         `json:"project,omitempty" doc:"Project, by name or id, in which this holds on top of the general configuration; all projects when left out"`
	Agent        *string        `json:"agent,omitempty" doc:"Agent type"`
	Model        *string        `json:"model,omitempty" doc:"Model of that agent"`
	Command      *[]string      `json:"command,omitempty" doc:"Program and arguments; without a type: of agent type command"`
	Prompt       *string        `json:"prompt,omitempty" doc:"What every agent of this role is told first"`
	AllowedTools *[]string      `json:"allowed_tools,omitempty" doc:"Tools the agent may use"`
	MaxBudgetUSD *float64       `json:"max_budget_usd,omitempty" doc:"What a run may cost, in US dollars; 0: no limit"`
	Timeout      *work.Duration `json:"timeout,omitempty" doc:"How long a run may take, such as 30m"`
	Active       *bool          `json:"active,omitempty" doc:"Whether the role is in use"`
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
	Rests     bool          `json:"rests" doc:"Nothing automatic is left to happen at its place: it has ended, or waits for a person"`
	MergeID   work.MergeID  `json:"merge_id,omitempty"`
}

// TreeNode is a position of a tree: its attempts, its judges, its children.
type TreeNode struct {
	Task     *work.Task   `json:"task"` // the current attempt
	Attempts []*work.Task `json:"attempts,omitempty"`
	Judges   []*work.Task `json:"judges,omitempty"` // of the current attempt
	Children []*TreeNode  `json:"children,omitempty"`
}

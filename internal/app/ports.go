package app

import (
	"context"
	"io"
	"time"

	"github.com/claudomator/claudomator/internal/work"
)

// Trees is how decisions are loaded and kept. Commit is the only method in the
// whole program that writes a state.
type Trees interface {
	// LoadTree reads a tree with all its tasks, its live executions and the
	// newest ended one of each task and kind, its open merges, its story, its
	// project and the summaries of the trees its root depends on (Outer, keyed
	// by position). NotFound when there is none.
	LoadTree(ctx context.Context, id work.TreeID) (*work.Tree, error)
	// Refresh reads again what others decide: the project, and Outer.
	Refresh(ctx context.Context, tree *work.Tree) error
	// Commit writes a change set in one transaction: rows, events (seq from the
	// counter), effects (handed to the engine), summary. Conflict with reason
	// "version" when the tree has changed since, "edges" when the dependency
	// graph has. It gives the tree's new version.
	Commit(ctx context.Context, changes work.ChangeSet) (version int64, err error)
	// Reach reads the cross-tree dependency graph from some positions on, and
	// its version.
	Reach(ctx context.Context, from []work.Position) (map[work.Position][]work.Position, int64, error)
	// Outer reads the summaries of other trees, by position; missing ones are
	// left out.
	Outer(ctx context.Context, positions []work.Position) (map[work.Position]work.Outer, error)
}

// Schedule is what the clock and the engine ask of the store.
type Schedule interface {
	OpenTrees(ctx context.Context) ([]work.TreeID, error)
	// DueTrees lists the trees in which something is due by now, and the next
	// later instant at which something will be (zero: none).
	DueTrees(ctx context.Context, now time.Time) (due []work.TreeID, next time.Time, err error)
	// Waiting lists executions that could start now (task QUEUED on slot, or a
	// queued run that is not the task's own: gates, deploy, smoke), in the order
	// of their age and their priority's patience.
	Waiting(ctx context.Context, limit int) ([]Waiting, error)
	// Held lists running executions of a node, or of any node whose lease has
	// expired by now (node empty).
	Held(ctx context.Context, node string, now time.Time) ([]work.Execution, error)
	// RenewLeases moves the lease of every running execution of a node.
	RenewLeases(ctx context.Context, node string, until time.Time) error
}

// Lookup reads single rows. A ref is an id, an unambiguous prefix of one (three
// characters or more), or a name; ambiguous ones are Invalid and list matches.
type Lookup interface {
	ResolveTask(ctx context.Context, ref string) (work.TaskID, error)
	TreeOf(ctx context.Context, id work.TaskID) (work.TreeID, error)
	Task(ctx context.Context, id work.TaskID) (*work.Task, error)
	Execution(ctx context.Context, ref string) (*work.Execution, error)
	ExecutionByToken(ctx context.Context, hash string) (*work.Execution, error)
	Merge(ctx context.Context, ref string) (*work.Merge, error)
	Idempotent(ctx context.Context, key string) (*work.Idempotency, error) // nil when unknown
}

// Lists reads pages.
type Lists interface {
	Tasks(ctx context.Context, filter TaskFilter) (Page[*work.Task], error)
	Executions(ctx context.Context, task work.TaskID) ([]*work.Execution, error)
	Merges(ctx context.Context, task work.TaskID) ([]*work.Merge, error)
	// Events lists events after seq in commit order, of one tree or task when
	// set; at most limit.
	Events(ctx context.Context, after int64, tree work.TreeID, task work.TaskID, limit int) ([]work.Event, error)
	LastSeq(ctx context.Context) (int64, error)
	Inbox(ctx context.Context) ([]work.Item, error)
	Stats(ctx context.Context) (Stats, error)
}

// Stories reads stories, which only Trees writes, and keeps the epics that
// group them.
type Stories interface {
	// Story reads one by id, unambiguous prefix (three characters or more) or
	// name; NotFound, or Invalid with the matches.
	Story(ctx context.Context, ref string) (*work.Story, error)
	// Stories is a page, newest first.
	Stories(ctx context.Context, filter StoryFilter) (Page[*work.Story], error)
	// Branches lists the branch names of a project's stories that are not
	// CANCELLED or DEPLOYED (so that a new story takes none of them), with their
	// ids; of two stories with one branch the older.
	Branches(ctx context.Context, project work.ProjectID) (map[string]work.StoryID, error)
	// Epics lists all by name, each with its stories counted by status.
	Epics(ctx context.Context) ([]work.EpicProgress, error)
	// Epic reads one by id, prefix or name, as Story does.
	Epic(ctx context.Context, ref string) (*work.EpicProgress, error)
	// SaveEpic adds an epic, or renames it; Conflict with reason "name_taken"
	// when another has its name.
	SaveEpic(ctx context.Context, e work.Epic) error
}

// Settings keeps what is not part of a tree.
type Settings interface {
	Projects(ctx context.Context) ([]*work.Project, error)
	Project(ctx context.Context, ref string) (*work.Project, error) // id, prefix or name
	SaveProject(ctx context.Context, p *work.Project) error         // Version 0: new; Conflict when changed or the name is taken
	Roles(ctx context.Context) ([]work.RoleConfig, error)           // all versions, by name and version
	SaveRole(ctx context.Context, r work.RoleConfig) (work.RoleConfig, error)
}

// Tokens keeps the credentials of people; only hashes are stored.
type Tokens interface {
	Tokens(ctx context.Context) ([]Token, error)
	SaveToken(ctx context.Context, t Token) error
	TokenByHash(ctx context.Context, hash string) (*Token, error) // NotFound when unknown or revoked
}

// What the store answers with is plain data of the domain.
type (
	// Waiting is an execution that waits for a slot.
	Waiting = work.Waiting
	// TaskFilter chooses tasks for a list.
	TaskFilter = work.TaskFilter
	// StoryFilter chooses stories for a list.
	StoryFilter = work.StoryFilter
	// Page is one page of a list.
	Page[T any] = work.Page[T]
	// Stats are counts for the health page and the metrics.
	Stats = work.Stats
	// Token is a person's credential.
	Token = work.Token
	// Scope is what a token may do.
	Scope = work.Scope
)

// The scopes.
const (
	ScopeAdmin = work.ScopeAdmin
	ScopeRead  = work.ScopeRead
)

// Diffs reads what a task changed, from the vault.
type Diffs interface {
	// Diff writes the patch from base to head, at most limit bytes (0: all).
	Diff(ctx context.Context, project work.Project, base, head string, w io.Writer, limit int64) error
}

// Transcripts reads what an execution printed.
type Transcripts interface {
	// Transcript opens the JSONL of an execution at a byte offset; it ends at
	// what is written so far. NotFound when there is none.
	Transcript(ctx context.Context, id work.ExecutionID, offset int64) (io.ReadCloser, error)
}

// AgentCatalog knows the agent programs of this machine.
type AgentCatalog interface {
	// Agents describes every type; the first call may ask each program for its
	// version.
	Agents(ctx context.Context) ([]AgentInfo, error)
	// Usable says whether the program is there. It is asked often.
	Usable(agent string) bool
	// Types are the names there are, installed or not, sorted.
	Types() []string
}

// AgentInfo describes one agent program.
type AgentInfo struct {
	Type      string `json:"type"`
	Installed bool   `json:"installed"`
	Version   string `json:"version,omitempty"`
	Path      string `json:"path,omitempty"`
	Note      string `json:"note,omitempty"`
	Default   bool   `json:"default,omitempty" doc:"The server's setting agent names it: it works where neither task, role, parent nor project names one"`
}

// Repositories checks and prepares a project's repository.
type Repositories interface {
	// Inspect checks that a path or URL can be worked with; it gives the real
	// path (or the URL) and the default branch.
	Inspect(ctx context.Context, repository, branch string) (realPath, defaultBranch string, err error)
}

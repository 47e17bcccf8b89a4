package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

func get(path string) request { return request{method: http.MethodGet, path: path} }
func post(path string, body any) request {
	return request{method: http.MethodPost, path: path, body: body}
}
func remove(path string) request                { return request{method: http.MethodDelete, path: path} }
func change(how, path string, body any) request { return request{method: how, path: path, body: body} }

// list asks for one page of a list; what is empty is not asked for.
func list(path string, limit int, texts map[string]string) request {
	r := get(path)
	r.query = url.Values{}
	for name, value := range texts {
		if value != "" {
			r.query.Set(name, value)
		}
	}
	if limit != 0 {
		r.query.Set("limit", strconv.Itoa(limit))
	}
	return r
}

// keyed is a request with the caller's own idempotency key, where it has one.
func keyed(r request, key string) request {
	r.key = key
	return r
}

// AddProject registers a repository.
func (c *Client) AddProject(ctx context.Context, in app.ProjectInput) (*work.Project, error) {
	return call[*work.Project](ctx, c, post(path("projects"), in))
}

// Projects lists the projects by name.
func (c *Client) Projects(ctx context.Context) ([]*work.Project, error) {
	return call[[]*work.Project](ctx, c, get(path("projects")))
}

// Project is one project.
func (c *Client) Project(ctx context.Context, ref string) (*work.Project, error) {
	return call[*work.Project](ctx, c, get(path("projects", ref)))
}

// SetProject changes a project.
func (c *Client) SetProject(ctx context.Context, ref string, in app.ProjectInput) (*work.Project, error) {
	return call[*work.Project](ctx, c, change(http.MethodPatch, path("projects", ref), in))
}

// RemoveProject removes a project whose work is over.
func (c *Client) RemoveProject(ctx context.Context, ref string) error {
	_, err := c.bytes(ctx, remove(path("projects", ref)))
	return err
}

// Templates lists the templates in a project's repository, stories first.
func (c *Client) Templates(ctx context.Context, project string) ([]app.Template, error) {
	return call[[]app.Template](ctx, c, get(path("projects", project, "templates")))
}

// CreateTask makes a task, and starts it when asked.
func (c *Client) CreateTask(ctx context.Context, in app.TaskRequest) (*app.TaskView, error) {
	return call[*app.TaskView](ctx, c, keyed(post(path("tasks"), in), in.IdempotencyKey))
}

// Tasks is one page of tasks, newest first.
func (c *Client) Tasks(ctx context.Context, q app.TaskQuery) (app.Page[*work.Task], error) {
	r := list(path("tasks"), q.Limit, map[string]string{"project": q.Project, "parent": q.Parent, "tag": q.Tag, "text": q.Text, "after": q.After})
	for _, state := range q.States {
		r.query.Add("state", string(state))
	}
	for name, value := range map[string]bool{"top_level": q.TopLevel, "all": q.All} {
		if value {
			r.query.Set(name, "true")
		}
	}
	return call[app.Page[*work.Task]](ctx, c, r)
}

// Task is one task and what can be asked of it.
func (c *Client) Task(ctx context.Context, ref string) (*app.TaskView, error) {
	return call[*app.TaskView](ctx, c, get(path("tasks", ref)))
}

// PatchTask changes what a task is asked to do, while it does not run.
func (c *Client) PatchTask(ctx context.Context, ref string, in app.TaskPatch) (*app.TaskView, error) {
	return call[*app.TaskView](ctx, c, change(http.MethodPatch, path("tasks", ref), in))
}

func (c *Client) act(ctx context.Context, ref, verb string, body any) (*app.TaskView, error) {
	return call[*app.TaskView](ctx, c, post(path("tasks", ref, verb), body))
}

// StartTask submits a task.
func (c *Client) StartTask(ctx context.Context, ref string) (*app.TaskView, error) {
	return c.act(ctx, ref, "start", nil)
}

// AcceptTask accepts READY work.
func (c *Client) AcceptTask(ctx context.Context, ref string, in app.AcceptInput) (*app.TaskView, error) {
	return c.act(ctx, ref, "accept", in)
}

// RejectTask sends READY work back with a comment.
func (c *Client) RejectTask(ctx context.Context, ref string, in app.RejectInput) (*app.TaskView, error) {
	return c.act(ctx, ref, "reject", in)
}

// AnswerTask answers the task's open question.
func (c *Client) AnswerTask(ctx context.Context, ref, text string) (*app.TaskView, error) {
	return c.act(ctx, ref, "answer", map[string]string{"text": text})
}

// MessageTask sends words to a task.
func (c *Client) MessageTask(ctx context.Context, ref, text string) (*app.TaskView, error) {
	return c.act(ctx, ref, "message", map[string]string{"text": text})
}

// RetryTask runs a task again.
func (c *Client) RetryTask(ctx context.Context, ref string, fresh bool) (*app.TaskView, error) {
	return c.act(ctx, ref, "retry", map[string]bool{"fresh": fresh})
}

// CancelTask ends a task.
func (c *Client) CancelTask(ctx context.Context, ref string) (*app.TaskView, error) {
	return c.act(ctx, ref, "cancel", nil)
}

// SubmitTask takes work done by hand.
func (c *Client) SubmitTask(ctx context.Context, ref string) (*app.TaskView, error) {
	return c.act(ctx, ref, "submit", nil)
}

// DropTask gives up a badly ended child position.
func (c *Client) DropTask(ctx context.Context, ref string) (*app.TaskView, error) {
	return c.act(ctx, ref, "drop", nil)
}

// PostponeTask makes a child a task of its own.
func (c *Client) PostponeTask(ctx context.Context, ref string) (*app.TaskView, error) {
	return c.act(ctx, ref, "postpone", nil)
}

// RemoveTask removes a task; a root takes its tree along.
func (c *Client) RemoveTask(ctx context.Context, ref string) error {
	_, err := c.bytes(ctx, remove(path("tasks", ref)))
	return err
}

// Subtasks lists the current attempts of the positions below a task.
func (c *Client) Subtasks(ctx context.Context, ref string) ([]*work.Task, error) {
	return call[[]*work.Task](ctx, c, get(path("tasks", ref, "subtasks")))
}

// TaskTree is the tree a task belongs to.
func (c *Client) TaskTree(ctx context.Context, ref string) (*app.TreeNode, error) {
	return call[*app.TreeNode](ctx, c, get(path("tasks", ref, "tree")))
}

// TaskEvents lists what happened to a task, oldest first.
func (c *Client) TaskEvents(ctx context.Context, ref string) ([]work.Event, error) {
	return call[[]work.Event](ctx, c, get(path("tasks", ref, "events")))
}

// Executions lists a task's executions, oldest first.
func (c *Client) Executions(ctx context.Context, ref string) ([]*work.Execution, error) {
	return call[[]*work.Execution](ctx, c, get(path("tasks", ref, "executions")))
}

// Execution is one execution.
func (c *Client) Execution(ctx context.Context, ref string) (*work.Execution, error) {
	return call[*work.Execution](ctx, c, get(path("executions", ref)))
}

// StartMerge begins to land a COMPLETED task.
func (c *Client) StartMerge(ctx context.Context, taskRef, into string) (*work.Merge, error) {
	return call[*work.Merge](ctx, c, post(path("tasks", taskRef, "merge"), map[string]string{"into": into}))
}

// Merges lists the landings of a task, or all, newest first.
func (c *Client) Merges(ctx context.Context, taskRef string) ([]*work.Merge, error) {
	r := get(path("merges"))
	if taskRef != "" {
		r.query = url.Values{"task": {taskRef}}
	}
	return call[[]*work.Merge](ctx, c, r)
}

// Merge is one landing.
func (c *Client) Merge(ctx context.Context, ref string) (*work.Merge, error) {
	return call[*work.Merge](ctx, c, get(path("merges", ref)))
}

// ContinueMerge goes on with a landing whose conflict is resolved.
func (c *Client) ContinueMerge(ctx context.Context, ref string) (*work.Merge, error) {
	return call[*work.Merge](ctx, c, post(path("merges", ref, "continue"), nil))
}

// AbortMerge ends a conflicted landing with nothing changed.
func (c *Client) AbortMerge(ctx context.Context, ref string) (*work.Merge, error) {
	return call[*work.Merge](ctx, c, post(path("merges", ref, "abort"), nil))
}

// Roles lists the active role configurations.
func (c *Client) Roles(ctx context.Context) ([]work.RoleConfig, error) {
	return call[[]work.RoleConfig](ctx, c, get(path("roles")))
}

// Role lists the versions of one role, oldest first.
func (c *Client) Role(ctx context.Context, name string) ([]work.RoleConfig, error) {
	return call[[]work.RoleConfig](ctx, c, get(path("roles", name)))
}

// SetRole makes a new version of a role's configuration.
func (c *Client) SetRole(ctx context.Context, name string, in app.RoleInput) (*work.RoleConfig, error) {
	return call[*work.RoleConfig](ctx, c, change(http.MethodPut, path("roles", name), in))
}

// Tokens lists the credentials, without secrets.
func (c *Client) Tokens(ctx context.Context) ([]app.Token, error) {
	return call[[]app.Token](ctx, c, get(path("tokens")))
}

// CreateToken makes a credential; its secret is shown once.
func (c *Client) CreateToken(ctx context.Context, name string, scope app.Scope) (*app.NewToken, error) {
	return call[*app.NewToken](ctx, c, post(path("tokens"), map[string]string{"name": name, "scope": string(scope)}))
}

// RevokeToken ends a credential.
func (c *Client) RevokeToken(ctx context.Context, ref string) error {
	_, err := c.bytes(ctx, remove(path("tokens", ref)))
	return err
}

// Disk is what the server's data uses.
func (c *Client) Disk(ctx context.Context) (*app.DiskUse, error) {
	return call[*app.DiskUse](ctx, c, get(path("disk")))
}

// ReclaimDisk frees what tasks that are over use.
func (c *Client) ReclaimDisk(ctx context.Context, in app.ReclaimRequest) (*app.Reclaimed, error) {
	return call[*app.Reclaimed](ctx, c, post(path("disk", "reclaim"), in))
}

// Snapshots lists what is kept of a task, or of all tasks.
func (c *Client) Snapshots(ctx context.Context, taskRef string) ([]app.Snapshot, error) {
	if taskRef == "" {
		return call[[]app.Snapshot](ctx, c, get(path("rescue")))
	}
	return call[[]app.Snapshot](ctx, c, get(path("tasks", taskRef, "rescue")))
}

// RestoreSnapshot restores one to a folder or a branch.
func (c *Client) RestoreSnapshot(ctx context.Context, in app.RestoreRequest) (*app.Restored, error) {
	return call[*app.Restored](ctx, c, post(path("rescue"), in))
}

// Attention lists all that needs a person.
func (c *Client) Attention(ctx context.Context) ([]work.Item, error) {
	return call[[]work.Item](ctx, c, get(path("attention")))
}

// Agents lists the agent programs of the server's machine.
func (c *Client) Agents(ctx context.Context) ([]app.AgentInfo, error) {
	return call[[]app.AgentInfo](ctx, c, get(path("agents")))
}

// Stats are counts over everything.
func (c *Client) Stats(ctx context.Context) (*app.Stats, error) {
	return call[*app.Stats](ctx, c, get(path("stats")))
}

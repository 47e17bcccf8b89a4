package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

func (s *server) tasks(h huma.API) {
	api := s.o.API
	add(s, h, endpoint{method: http.MethodGet, path: "/api/tasks", id: "Tasks", summary: "List tasks, newest first, in pages",
		about: "Superseded attempts and judging tasks are left out unless all is true. The next page is asked for with the next of this one as after."},
		func(ctx context.Context, in *app.TaskQuery) (app.Page[*work.Task], error) {
			page, err := api.Tasks(ctx, *in)
			page.Items, err = list(page.Items, err)
			return page, err
		})
	add(s, h, endpoint{method: http.MethodPost, path: "/api/tasks", id: "CreateTask", summary: "Make a task, and start it where asked", status: http.StatusCreated,
		about: "With start it is submitted at once. With parent_task_id it becomes a child, which starts when its parent has run."},
		func(ctx context.Context, in *struct {
			Key  string `header:"Idempotency-Key" hidden:"true"`
			Body app.TaskRequest
		},
		) (*app.TaskView, error) {
			in.Body.IdempotencyKey = in.Key
			return api.CreateTask(ctx, in.Body)
		})
	add(s, h, endpoint{method: http.MethodGet, path: "/api/tasks/{id}", id: "Task", summary: "Show a task and what can be asked of it",
		about: "Where it was superseded, current_id names the attempt that stands in its place."},
		func(ctx context.Context, in *Ref) (*app.TaskView, error) { return api.Task(ctx, in.ID) })
	add(s, h, endpoint{method: http.MethodPatch, path: "/api/tasks/{id}", id: "PatchTask", summary: "Change a task that does not run; what is left out stays",
		about: "A list that is given replaces the old one. Dependencies that would make a circle are refused with its path."},
		func(ctx context.Context, in *struct {
			Ref
			Body app.TaskPatch
		},
		) (*app.TaskView, error) {
			return api.PatchTask(ctx, in.ID, in.Body)
		})
	addQuiet(s, h, endpoint{method: http.MethodDelete, path: "/api/tasks/{id}", id: "RemoveTask", summary: "Remove a task; a root takes its tree along",
		about: "Of all that goes nothing may run. It is refused where others depend on it, and for one attempt of several."},
		func(ctx context.Context, in *Ref) error { return api.RemoveTask(ctx, in.ID) })
	add(s, h, endpoint{method: http.MethodGet, path: "/api/tasks/{id}/subtasks", id: "Subtasks", summary: "List what stands at the places below a task",
		about: "At each place it is the current attempt."},
		func(ctx context.Context, in *Ref) ([]*work.Task, error) { return list(api.Subtasks(ctx, in.ID)) })
	add(s, h, endpoint{method: http.MethodGet, path: "/api/tasks/{id}/tree", id: "TaskTree", summary: "Show the tree a task belongs to, from its root on",
		about: "Each place has its current attempt, those before it, the tasks that judged it, and the places below."},
		func(ctx context.Context, in *Ref) (*app.TreeNode, error) { return api.TaskTree(ctx, in.ID) })
	add(s, h, endpoint{method: http.MethodGet, path: "/api/tasks/{id}/events", id: "TaskEvents", summary: "List what happened to a task, oldest first",
		about: "Submissions, runs, verdicts and decisions, each once."},
		func(ctx context.Context, in *Ref) ([]work.Event, error) { return list(api.TaskEvents(ctx, in.ID)) })
	add(s, h, endpoint{method: http.MethodGet, path: "/api/tasks/{id}/executions", id: "Executions", summary: "List a task's executions, oldest first",
		about: "Runs of its agent and of its gates."},
		func(ctx context.Context, in *Ref) ([]*work.Execution, error) {
			return list(api.Executions(ctx, in.ID))
		})
}

// words is what a person says to a task.
type words struct {
	Ref
	Body app.Words
}

type rejection struct {
	Ref
	Body app.RejectInput
}

type acceptance struct {
	Ref
	Body *app.AcceptInput
}

type retrial struct {
	Ref
	Body *app.RetryRequest
}

func (s *server) taskActions(h huma.API) {
	api := s.o.API
	action := func(verb, id, summary, about string) endpoint {
		return endpoint{method: http.MethodPost, path: "/api/tasks/{id}/" + verb, id: id, summary: summary, about: about}
	}
	plain := func(e endpoint, call func(context.Context, string) (*app.TaskView, error)) {
		add(s, h, e, func(ctx context.Context, in *Ref) (*app.TaskView, error) { return call(ctx, in.ID) })
	}
	plain(action("start", "StartTask", "Submit a task",
		"It is queued and runs when what it waits for is done. Children and drafts cannot be started."), api.StartTask)
	plain(action("cancel", "CancelTask", "End a task and all below it",
		"Agents are stopped, what they did is kept, and what waited for it is cancelled, too."), api.CancelTask)
	plain(action("submit", "SubmitTask", "Take work done by hand in the task's workspace",
		"From READY, a bad end or a conflict; then it goes on as after a successful run."), api.SubmitTask)
	plain(action("drop", "DropTask", "Give up a badly ended child",
		"The parent goes on without it. This is final, and takes along the cancelled tasks that depended on it."), api.DropTask)
	plain(action("postpone", "PostponeTask", "Make a child a task of its own",
		"The parent goes on without it."), api.PostponeTask)
	add(s, h, action("accept", "AcceptTask", "Accept work that is READY, and land it where asked",
		"A child's work goes into its parent's branch. Other work is landed where land says so, or the project does."),
		func(ctx context.Context, in *acceptance) (*app.TaskView, error) {
			return api.AcceptTask(ctx, in.ID, value(in.Body))
		})
	add(s, h, action("reject", "RejectTask", "Send work that is READY back; superseded_by names the fix",
		"A fix attempt starts in its place with the comment and the findings. At the limit of attempts extra allows more."),
		func(ctx context.Context, in *rejection) (*app.TaskView, error) {
			return api.RejectTask(ctx, in.ID, in.Body)
		})
	add(s, h, action("answer", "AnswerTask", "Answer the task's open question",
		"Its agent is started again with the answer, in the workspace as it was."),
		func(ctx context.Context, in *words) (*app.TaskView, error) {
			return api.AnswerTask(ctx, in.ID, in.Body.Text)
		})
	add(s, h, action("message", "MessageTask", "Send words to a task, which then works on",
		"From READY, a bad end or an open question. Judges of the old work are cancelled."),
		func(ctx context.Context, in *words) (*app.TaskView, error) {
			return api.MessageTask(ctx, in.ID, in.Body.Text)
		})
	add(s, h, action("retry", "RetryTask", "Run a task again",
		"From READY or a bad end, in the workspace as it was left, or with fresh from the base."),
		func(ctx context.Context, in *retrial) (*app.TaskView, error) {
			return api.RetryTask(ctx, in.ID, value(in.Body).Fresh)
		})
}

// value is what a pointer points at, or nothing.
func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

package apptest

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

// World is a service and what it stands on.
type World struct {
	testing.TB
	Service *app.Service
	Logger  *slog.Logger // writes to Log
	Log     *Buffer
	lists   app.Lists
}

// New makes a world on the stores in o; whatever else o leaves out stands in.
func New(t testing.TB, o app.Options) *World {
	w := &World{TB: t, Log: &Buffer{}, lists: o.Lists}
	w.Logger = slog.New(slog.NewTextHandler(w.Log, nil))
	clock := &Clock{at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	o.Diffs, o.Transcripts, o.Agents, o.Repositories = Parts{}, Parts{}, Parts{}, Parts{}
	o.Templates = Parts{}
	o.Disk, o.Reclaim, o.Vaults = Parts{}, Parts{}.Reclaim, vaults{o.Settings}
	o.Now, o.Log = clock.Now, w.Logger
	o.Defaults = app.Defaults{Agent: "command", Timeout: time.Hour, Silence: time.Minute}
	if o.IDs == nil {
		o.IDs = app.RandomIDs{}
	}
	w.Service = app.New(o)
	return w
}

// Owner is a context in which the owner asks.
func (w *World) Owner() context.Context {
	return app.WithCaller(w.Context(), app.Caller{Name: "owner", Scope: app.ScopeAdmin})
}

// Project makes a project without repository.
func (w *World) Project(name string) *work.Project {
	w.Helper()
	p, err := w.Service.AddProject(w.Owner(), app.ProjectInput{Name: &name})
	if err != nil {
		w.Fatal(err)
	}
	return p
}

// Task makes a task.
func (w *World) Task(in app.TaskRequest) *app.TaskView {
	w.Helper()
	t, err := w.Service.CreateTask(w.Owner(), in)
	if err != nil {
		w.Fatal(err)
	}
	return t
}

// Begin takes a task's waiting execution, as the engine would; token is that of
// its run.
func (w *World) Begin(id work.TaskID, token string) work.Execution {
	w.Helper()
	list, err := w.lists.Executions(w.Context(), id)
	if err != nil || len(list) == 0 {
		w.Fatalf("executions of %s: %v, %v", id, list, err)
	}
	x := *list[len(list)-1]
	w.Do(x.TreeID, work.Begin{Execution: x.ID, Node: "here", Spec: work.AgentSpec{Type: "command"}, TokenHash: app.HashSecret(token)})
	w.View(x.TreeID, func(tree *work.Tree) { x = *tree.Execution(x.ID) })
	return x
}

// Run carries out a task's waiting execution, which ends as end says.
func (w *World) Run(id work.TaskID, end work.End) {
	w.Helper()
	x := w.Begin(id, "token-of-"+string(id))
	end.Execution, end.Fence = x.ID, x.Fence
	w.Do(x.TreeID, end)
}

// Changed is the end of a run that has changed a file.
func Changed() work.End {
	return work.End{Outcome: work.Success, Base: "b0", Head: "h1", Result: &work.Result{Base: "b0", Head: "h1", Files: 1, Insertions: 2}}
}

// Do carries out a command of the system.
func (w *World) Do(tree work.TreeID, c work.Command) {
	w.Helper()
	if err := w.Service.Do(w.Context(), tree, work.System(), c); err != nil {
		w.Fatalf("%T: %v", c, err)
	}
}

// View looks at a tree.
func (w *World) View(tree work.TreeID, f func(*work.Tree)) {
	w.Helper()
	if err := w.Service.View(w.Context(), tree, func(tree *work.Tree) error { f(tree); return nil }); err != nil {
		w.Fatal(err)
	}
}

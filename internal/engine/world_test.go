package engine_test

import (
	"context"
	"database/sql"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/claudomator/claudomator/internal/agent"
	"github.com/claudomator/claudomator/internal/agent/command"
	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/engine"
	"github.com/claudomator/claudomator/internal/git"
	"github.com/claudomator/claudomator/internal/sandbox"
	"github.com/claudomator/claudomator/internal/store"
	"github.com/claudomator/claudomator/internal/work"
)

// world is a whole server without surfaces: real SQLite, git and processes.
type world struct {
	*testing.T
	dir      string
	repo     string
	ctx      context.Context
	service  *app.Service
	store    *store.Store
	slots    int
	agents   engine.Catalog        // besides the command agent
	patience time.Duration         // for what is awaited; 0: some minutes, or a virtual day
	crashed  bool                  // the server is being killed: its last words do not count
	wrap     func(*engine.Options) // what the next start puts between engine and server
	program  string                // git of the next start; empty: the real one
	stop     func()

	queue     *engine.Queue
	forgetful atomic.Bool // jobs are lost
}

// patient is how long a busy machine may take for what is awaited; it is spent only
// where that never comes.
const patient = 3 * time.Minute

// noMask masks nothing.
type noMask struct{}

func (noMask) Add(string) func() { return func() {} }

func newWorld(t *testing.T, slots int) *world {
	t.Helper()
	t.Parallel()
	return makeWorld(t, slots, nil)
}

func makeWorld(t *testing.T, slots int, agents engine.Catalog) *world {
	t.Helper()
	w := &world{T: t, dir: t.TempDir(), slots: slots, agents: agents}
	w.repo = filepath.Join(t.TempDir(), "repo")
	w.git("init", "-q", "-b", "main", w.repo)
	w.write("a", "one\n")
	w.git("-C", w.repo, "add", ".")
	w.git("-C", w.repo, "-c", "user.name=u", "-c", "user.email=u@x", "commit", "-q", "-m", "first")
	w.start()
	t.Cleanup(func() { w.stop() })
	return w
}

func (w *world) git(args ...string) string {
	w.Helper()
	out, err := exec.Command("git", args...).CombinedOutput()
	if err != nil {
		w.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// tryGit is git's answer, "" when it fails.
func (w *world) tryGit(args ...string) string {
	out, err := exec.Command("git", args...).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

func (w *world) write(name, text string) {
	w.Helper()
	if err := os.WriteFile(filepath.Join(w.repo, name), []byte(text), 0o600); err != nil {
		w.Fatal(err)
	}
}

// start builds a server on the world's data directory and runs it.
func (w *world) start() {
	w.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	out := io.Discard
	if os.Getenv("CLAUDOMATOR_TEST_LOG") != "" {
		out = os.Stderr
	}
	log := slog.New(slog.NewTextHandler(out, nil))
	must := func(err error) {
		w.Helper()
		if err != nil {
			w.Fatal(err)
		}
	}
	host, err := sandbox.Open(sandbox.Options{StateDir: filepath.Join(w.dir, "runs")})
	must(err)
	g, err := git.New(w.Context(), git.Options{Program: w.program, Environ: os.Environ()})
	must(err)
	vaults := engine.NewVaults(g, w.dir)
	queue := engine.NewQueue()
	w.queue = queue
	enqueue := func(ctx context.Context, tx *sql.Tx, effects []work.Effect) error {
		if w.forgetful.Load() {
			return nil
		}
		return queue.Enqueue(ctx, tx, effects)
	}
	w.store, err = store.Open(ctx, store.Config{URL: filepath.Join(w.dir, "test.db"), ConnectionHook: queue.Hook}, enqueue)
	must(err)
	must(queue.Open(ctx, w.store.DB(), w.store.Pool(), "node-1", log))
	agents := engine.Catalog{}
	maps.Copy(agents, w.agents)
	agents["command"] = command.New(agent.NewRunner(agent.RunnerOptions{Host: host, Environ: os.Environ(), Now: time.Now}))
	var e *engine.Engine
	w.service = app.New(app.Options{
		Trees: w.store, Lookup: w.store, Lists: w.store, Settings: w.store, Stories: w.store, Tokens: w.store, Diffs: vaults,
		Transcripts: engine.Transcripts{DataDir: w.dir}, Agents: agents, Repositories: vaults, IDs: app.RandomIDs{},
		Disk:   engine.Disk{DataDir: w.dir, Database: filepath.Join(w.dir, "test.db"), Retention: engine.Retention{Workspaces: time.Hour, Bin: time.Hour}},
		Vaults: vaults, Reclaim: func(ctx context.Context, bin bool) (*app.Reclaimed, error) { return e.Reclaim(ctx, bin) },
		Now: time.Now, Log: log,
		Defaults:  app.Defaults{Timeout: 10 * time.Minute, Silence: 10 * time.Minute, JudgeTimeout: 10 * time.Minute, GateTimeout: 10 * time.Minute},
		Committed: func(c work.ChangeSet) { e.Committed(c) },
	})
	options := engine.Options{
		Core: w.service, Schedule: w.store, Tasks: w.store, Queue: queue, Vaults: vaults, Host: host, Agents: agents,
		DataDir: w.dir, Node: "node-1", Slots: w.slots, Mask: noMask{}, Hide: func(text []byte) []byte { return text }, Now: time.Now, Log: log,
		Retention: engine.Retention{Workspaces: time.Hour, Bin: time.Hour, Transcripts: time.Hour},
	}
	if w.wrap != nil {
		w.wrap(&options)
	}
	e = engine.New(options)
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- e.Run(ctx, func() { close(ready) }) }()
	<-ready
	w.ctx = app.WithCaller(ctx, app.Caller{Name: "tester", Scope: app.ScopeAdmin})
	w.stop = func() {
		cancel()
		if err := <-done; err != nil && !w.crashed {
			w.Errorf("engine: %v", err)
		}
		vaults.Close()
		if err := w.store.Close(); err != nil && !w.crashed {
			w.Errorf("store: %v", err)
		}
		w.stop = func() {}
	}
}

func (w *world) project(in app.ProjectInput) {
	w.Helper()
	name, agent := "p", "command"
	in.Name, in.Repository = &name, &w.repo
	if in.Agent == nil {
		in.Agent = &agent
	}
	if _, err := w.service.AddProject(w.ctx, in); err != nil {
		w.Fatal(err)
	}
}

func (w *world) checker(script string) {
	w.Helper()
	argv := []string{"sh", "-c", "cat >/dev/null; " + script}
	if _, err := w.service.SetRole(w.ctx, "checker", app.RoleInput{Command: &argv}); err != nil {
		w.Fatal(err)
	}
}

func (w *world) task(in app.TaskRequest) *app.TaskView {
	w.Helper()
	in.Project, in.Start = "p", true
	if in.Name == "" {
		in.Name = "a task"
	}
	t, err := w.service.CreateTask(w.ctx, in)
	if err != nil {
		w.Fatal(err)
	}
	return t
}

// until waits for a task to satisfy ok, which events tell of.
func (w *world) until(id work.TaskID, ok func(*app.TaskView) bool) *app.TaskView {
	w.Helper()
	patience := w.patience
	switch {
	case patience > 0:
	case w.agents != nil: // the clock is virtual
		patience = 24 * time.Hour
	default:
		patience = patient
	}
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	for {
		seq, err := w.store.LastSeq(ctx)
		if err != nil {
			w.Fatal(err)
		}
		t, err := w.service.Task(ctx, string(id))
		if err != nil {
			w.Fatal(err)
		}
		if ok(t) {
			return t
		}
		for _, err := range w.service.Events(ctx, seq) {
			if err != nil {
				w.Fatal(err)
			}
			break
		}
		if ctx.Err() != nil {
			runs, _ := w.service.Executions(w.ctx, string(id))
			for _, x := range runs {
				w.Logf("execution %d: %s %s %s", x.Number, x.State, x.Outcome, x.Error)
			}
			w.Fatalf("task %s stays %s (%s): %s", t.ID, t.State, t.BlockedOn, t.Reason)
		}
	}
}

func (w *world) state(id work.TaskID, state work.State) *app.TaskView {
	w.Helper()
	return w.until(id, func(t *app.TaskView) bool {
		return t.State == state && (state != work.Ready || t.BlockedOn == work.OnPerson)
	})
}

func (w *world) landed(m *work.Merge) *work.Merge {
	w.Helper()
	var got *work.Merge
	w.eventually("the end of the merge", func() bool {
		var err error
		if got, err = w.service.Merge(w.ctx, string(m.ID)); err != nil {
			w.Fatal(err)
		}
		return got.Status != work.MergeRunning
	})
	return got
}

// eventually waits for what no event tells of.
func (w *world) eventually(what string, ok func() bool) {
	w.Helper()
	for end := time.Now().Add(patient); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			w.Fatalf("not seen: %s", what)
		}
	}
}

// children waits until a task has n of them.
func (w *world) children(id work.TaskID, n int) []*work.Task {
	w.Helper()
	var list []*work.Task
	w.until(id, func(*app.TaskView) bool {
		var err error
		if list, err = w.service.Subtasks(w.ctx, string(id)); err != nil {
			w.Fatal(err)
		}
		return len(list) >= n
	})
	return list
}

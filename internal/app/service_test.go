package app_test

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/store"
	"github.com/claudomator/claudomator/internal/work"
)

// fixed is a machine on which only the command agent is there, and every
// repository is fine.
type fixed struct{}

func (fixed) Agents(context.Context) ([]app.AgentInfo, error) {
	return []app.AgentInfo{{Type: "command", Installed: true}}, nil
}
func (fixed) Types() []string { return []string{"command", "model", "other"} }

func (fixed) Usable(string) bool { return true }
func (fixed) Inspect(_ context.Context, repository, branch string) (string, string, error) {
	return repository, cmp.Or(branch, "main"), nil
}
func (fixed) Diff(context.Context, work.Project, string, string, io.Writer, int64) error { return nil }
func (fixed) Transcript(context.Context, work.ExecutionID, int64) (io.ReadCloser, error) {
	return nil, errors.New("none")
}

// server is a service on a database, without an engine: effects are collected.
type server struct {
	*app.Service
	store *store.Store
	ctx   context.Context

	mu      sync.Mutex
	effects []work.Effect
}

func open(t *testing.T, path string, change ...func(*app.Options)) *server {
	t.Helper()
	s := &server{ctx: app.WithCaller(t.Context(), app.Caller{Name: "tester", Scope: app.ScopeAdmin})}
	var err error
	s.store, err = store.Open(t.Context(), store.Config{URL: path}, func(_ context.Context, _ *sql.Tx, effects []work.Effect) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.effects = append(s.effects, effects...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.store.Close(); err != nil {
			t.Error(err)
		}
	})
	o := app.Options{
		Trees: s.store, Lookup: s.store, Lists: s.store, Settings: s.store, Stories: s.store, Tokens: s.store,
		Diffs: fixed{}, Transcripts: fixed{}, Agents: fixed{}, Repositories: fixed{},
		IDs: app.RandomIDs{}, Now: time.Now, Log: slog.New(slog.DiscardHandler), Defaults: app.Defaults{Agent: "command", Timeout: 30 * time.Minute, Wall: time.Hour, JudgeTimeout: 10 * time.Minute},
	}
	for _, f := range change {
		f(&o)
	}
	s.Service = app.New(o)
	return s
}

func (s *server) project(t *testing.T) {
	t.Helper()
	name, repo := "p", "/repo"
	if _, err := s.AddProject(s.ctx, app.ProjectInput{Name: &name, Repository: &repo}); err != nil {
		t.Fatal(err)
	}
}

func (s *server) create(t *testing.T, in app.TaskRequest) *app.TaskView {
	t.Helper()
	in.Name = cmp.Or(in.Name, "a task")
	v, err := s.CreateTask(s.ctx, in)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func reason(err error) string {
	if e, ok := work.AsError(err); ok {
		return cmp.Or(e.Reason, string(e.Code))
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

func TestFiftyStartsAreOneExecution(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "a.db"))
	s.project(t)
	task := s.create(t, app.TaskRequest{})
	var wait sync.WaitGroup
	answers := make([]string, 50)
	for i := range answers {
		wait.Go(func() {
			_, err := s.StartTask(s.ctx, string(task.ID))
			answers[i] = reason(err)
		})
	}
	wait.Wait()
	slices.Sort(answers)
	if got := slices.Compact(answers); !slices.Equal(got, []string{"", "already_started"}) {
		t.Errorf("answers %q, want one success and already_started", got)
	}
	runs, err := s.Executions(s.ctx, string(task.ID))
	if err != nil || len(runs) != 1 {
		t.Errorf("%d executions, %v; want 1", len(runs), err)
	}
}

// Two services on one database are two processes: their caches do not know of
// each other, and the tree's version decides.
func TestTwoServersOnOneTree(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db")
	a, b := open(t, path), open(t, path)
	a.project(t)
	task := a.create(t, app.TaskRequest{})
	var wait sync.WaitGroup
	for i := range 20 {
		s := []*server{a, b}[i%2]
		wait.Go(func() {
			tags := []string{fmt.Sprintf("tag-%d", i)}
			if _, err := s.PatchTask(s.ctx, string(task.ID), app.TaskPatch{Tags: &tags}); err != nil && reason(err) != "busy" {
				t.Errorf("patch %d: %v", i, err)
			}
		})
	}
	wait.Wait()
	// A stale cache may be looked at, but never decided on.
	if _, err := a.StartTask(a.ctx, string(task.ID)); err != nil {
		t.Fatal(err)
	}
	if _, err := b.StartTask(b.ctx, string(task.ID)); reason(err) != "already_started" {
		t.Errorf("second start: %v", err)
	}
}

func TestRepeatedRequestIsAnsweredOnce(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "a.db"))
	s.project(t)
	ids := make([]work.TaskID, 20)
	var wait sync.WaitGroup
	for i := range ids {
		wait.Go(func() {
			v, err := s.CreateTask(s.ctx, app.TaskRequest{Name: "once", IdempotencyKey: "k"})
			if err != nil {
				t.Error(err)
				return
			}
			ids[i] = v.ID
		})
	}
	wait.Wait()
	if got := slices.Compact(ids); len(got) != 1 {
		t.Errorf("one key made %d tasks", len(got))
	}
	if _, err := s.CreateTask(s.ctx, app.TaskRequest{Name: "other", IdempotencyKey: "k"}); reason(err) != "key_reused" {
		t.Errorf("another request with the key: %v", err)
	}
}

func TestCirclesAcrossTreesAreRefused(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "a.db"))
	s.project(t)
	a := s.create(t, app.TaskRequest{Name: "a"})
	b := s.create(t, app.TaskRequest{Name: "b", DependsOn: []string{"a"}})
	c := s.create(t, app.TaskRequest{Name: "c", DependsOn: []string{"b"}})
	on := []string{string(c.ID)}
	_, err := s.PatchTask(s.ctx, string(a.ID), app.TaskPatch{DependsOn: &on})
	if reason(err) != "cycle" {
		t.Fatalf("a → c → b → a: %v", err)
	}
	e, _ := work.AsError(err)
	want := []string{string(a.ID), string(c.ID), string(b.ID), string(a.ID)}
	if got, _ := e.Details["path"].([]string); !slices.Equal(got, want) {
		t.Errorf("path %v, want %v", got, want)
	}
	if v, err := s.Task(s.ctx, string(a.ID)); err != nil || len(v.DependsOn) != 0 {
		t.Errorf("after the refusal a depends on %v, %v", v.DependsOn, err)
	}
}

// A child that names a task of another tree is told so, made or changed.
func TestChildrenDependOnSiblingsAlone(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "a.db"))
	s.project(t)
	a, on := s.create(t, app.TaskRequest{Name: "a"}), []string{string(s.create(t, app.TaskRequest{Name: "b"}).ID)}
	_, err := s.CreateTask(s.ctx, app.TaskRequest{Name: "child", ParentTaskID: string(a.ID), DependsOn: on})
	if work.CodeOf(err) != work.Invalid || reason(err) != "cross_tree" {
		t.Errorf("made: %v", err)
	}
	child := s.create(t, app.TaskRequest{Name: "child", ParentTaskID: string(a.ID)})
	_, err = s.PatchTask(s.ctx, string(child.ID), app.TaskPatch{DependsOn: &on})
	if work.CodeOf(err) != work.Invalid || reason(err) != "cross_tree" {
		t.Errorf("changed: %v", err)
	}
}

// Each of two edges is legal alone; together they close a circle.
func TestTwoEdgesAtOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db")
	first, second := open(t, path), open(t, path)
	first.project(t)
	for i := range 10 {
		a := first.create(t, app.TaskRequest{Name: fmt.Sprintf("a%d", i)})
		b := first.create(t, app.TaskRequest{Name: fmt.Sprintf("b%d", i)})
		var wait sync.WaitGroup
		errs := make([]error, 2)
		for j, edge := range [][2]work.TaskID{{a.ID, b.ID}, {b.ID, a.ID}} {
			s := []*server{first, second}[j]
			wait.Go(func() {
				on := []string{string(edge[1])}
				_, errs[j] = s.PatchTask(s.ctx, string(edge[0]), app.TaskPatch{DependsOn: &on})
			})
		}
		wait.Wait()
		if (errs[0] == nil) == (errs[1] == nil) {
			t.Fatalf("round %d: %v and %v; want exactly one to be taken", i, errs[0], errs[1])
		}
	}
}

// A crowd that adds edges at once is served, each in its turn.
func TestManyEdgesAtOnce(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "a.db"))
	s.project(t)
	ids := make([]string, 50)
	for i := range ids {
		ids[i] = string(s.create(t, app.TaskRequest{Name: fmt.Sprint("t", i)}).ID)
	}
	var wait sync.WaitGroup
	errs := make([]error, len(ids)-1)
	for i := range errs {
		wait.Go(func() {
			on := ids[i+1 : i+2]
			_, errs[i] = s.PatchTask(s.ctx, ids[i], app.TaskPatch{DependsOn: &on})
		})
	}
	wait.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}

func TestDependantWaitsForAnotherTree(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "a.db"))
	s.project(t)
	a := s.create(t, app.TaskRequest{Name: "a", Start: true})
	b := s.create(t, app.TaskRequest{Name: "b", Start: true, DependsOn: []string{"a"}})
	if b.BlockedOn != work.OnDependencies {
		t.Fatalf("b waits for %q", b.BlockedOn)
	}
	if _, err := s.CancelTask(s.ctx, string(a.ID)); err != nil {
		t.Fatal(err)
	}
	recheck := work.Effect{Kind: work.Recheck, Tree: b.TreeID}
	if !slices.ContainsFunc(s.effects, func(e work.Effect) bool { return e.Kind == recheck.Kind && e.Tree == recheck.Tree }) {
		t.Fatalf("no recheck of b among %v", s.effects)
	}
	if err := s.Do(s.ctx, b.TreeID, work.System(), work.Settle{}); err != nil {
		t.Fatal(err)
	}
	if v, _ := s.Task(s.ctx, "b"); v.State != work.Cancelled {
		t.Errorf("b is %s (%s), want CANCELLED with its dependency", v.State, v.Reason)
	}
}

func TestCallersAreAuthorised(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "a.db"))
	s.project(t)
	made, err := s.CreateToken(s.ctx, "reader", app.ScopeRead)
	if err != nil {
		t.Fatal(err)
	}
	caller, err := s.Authenticate(t.Context(), made.Secret)
	if err != nil {
		t.Fatal(err)
	}
	reader := app.WithCaller(t.Context(), caller)
	if _, err := s.Tasks(reader, app.TaskQuery{}); err != nil {
		t.Errorf("a reader reads: %v", err)
	}
	if _, err := s.CreateTask(reader, app.TaskRequest{Name: "x"}); work.CodeOf(err) != work.Forbidden {
		t.Errorf("a reader writes: %v", err)
	}
	if _, err := s.Tasks(t.Context(), app.TaskQuery{}); work.CodeOf(err) != work.Unauthenticated {
		t.Errorf("nobody reads: %v", err)
	}
	if err := s.RevokeToken(s.ctx, "reader"); err != nil {
		t.Fatal(err)
	}
	for name, secret := range map[string]string{"revoked": made.Secret, "wrong": "x", "none": ""} {
		if _, err := s.Authenticate(t.Context(), secret); work.CodeOf(err) != work.Unauthenticated {
			t.Errorf("%s token: %v", name, err)
		}
	}
}

// A stream begins in the past, goes on in memory, and loses and repeats nothing
// while trees commit side by side.
func TestStreamHasNoGaps(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "a.db"))
	s.project(t)
	for range 30 {
		s.create(t, app.TaskRequest{})
	}
	ctx, cancel := context.WithTimeout(s.ctx, 5*time.Minute)
	defer cancel()
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for range 50 {
				if _, err := s.CreateTask(s.ctx, app.TaskRequest{Name: "x"}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	want := int64(1)
	for e, err := range s.Events(ctx, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Seq != want {
			t.Fatalf("event %d after %d", e.Seq, want-1)
		}
		if want++; want > 230 {
			break
		}
	}
	wait.Wait()
}

// What a commit could not store is not remembered either.
func TestFailedCommitIsForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		full := true
		path := filepath.Join(t.TempDir(), "a.db")
		s := &server{ctx: app.WithCaller(t.Context(), app.Caller{Name: "tester", Scope: app.ScopeAdmin})}
		var err error
		s.store, err = store.Open(t.Context(), store.Config{URL: path, BeforeStatement: func(string) error {
			if full {
				return errors.New("the disk is full")
			}
			return nil
		}}, func(context.Context, *sql.Tx, []work.Effect) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.store.Close() }()
		s.Service = app.New(app.Options{
			Trees: s.store, Lookup: s.store, Lists: s.store, Settings: s.store, Stories: s.store, Tokens: s.store, Agents: fixed{}, Repositories: fixed{},
			IDs: app.RandomIDs{}, Now: time.Now, Log: slog.New(slog.DiscardHandler), Defaults: app.Defaults{Agent: "command", Timeout: 30 * time.Minute, Wall: time.Hour, JudgeTimeout: 10 * time.Minute},
		})
		full = false
		s.project(t)
		task := s.create(t, app.TaskRequest{})
		full = true
		if _, err := s.StartTask(s.ctx, string(task.ID)); err == nil {
			t.Fatal("a start that was not stored was taken")
		}
		full = false
		if v, err := s.Task(s.ctx, string(task.ID)); err != nil || v.State != work.Pending {
			t.Errorf("after the failed commit the task is %s, %v", v.State, err)
		}
		if v, err := s.StartTask(s.ctx, string(task.ID)); err != nil || v.State != work.Queued {
			t.Errorf("start again: %v", err)
		}
	})
}

package api

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/client"
	"github.com/claudomator/claudomator/internal/store"
	"github.com/claudomator/claudomator/internal/work"
)

// world is a server over the real service on a real database; what stands in
// for agents, their transcripts and git's output are the parts below.
type world struct {
	t       testing.TB
	service *app.Service
	store   *store.Store
	handler *server
	http    *httptest.Server
	token   string
	log     *lockedBuffer
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, token: "the-owner's-secret", log: &lockedBuffer{}}
	drop := func(context.Context, *sql.Tx, []work.Effect) error { return nil } // nothing runs by itself
	db, err := store.Open(t.Context(), store.Config{URL: filepath.Join(t.TempDir(), "db.sqlite")}, drop)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	log := slog.New(slog.NewTextHandler(w.log, nil))
	clock := &ticking{at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	w.store = db
	w.service = app.New(app.Options{
		Trees: db, Lookup: db, Lists: db, Settings: db, Tokens: db,
		Diffs: parts{}, Transcripts: parts{}, Agents: parts{}, Repositories: parts{},
		IDs: &counted{}, Now: clock.Now, Log: log,
		Defaults: app.Defaults{Agent: "command", Timeout: time.Hour, Silence: time.Minute},
	})
	if err := w.service.EnsureToken(t.Context(), "owner", w.token); err != nil {
		t.Fatal(err)
	}
	w.handler = newServer(Options{
		API: w.service, Auth: w.service.Authenticate, LastSeq: db.LastSeq, Version: "dev", Log: log,
		Ready:        func(context.Context) error { return nil },
		Metrics:      http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "up 1\n") }),
		AllowedHosts: []string{"claudomator.example"},
	})
	w.http = httptest.NewServer(w.handler)
	t.Cleanup(w.http.Close)
	t.Cleanup(w.http.CloseClientConnections) // streams first
	return w
}

// owner is a context in which the owner asks.
func (w *world) owner() context.Context {
	return app.WithCaller(w.t.Context(), app.Caller{Name: "owner", Scope: app.ScopeAdmin})
}

func (w *world) client() *client.Client { return client.New(w.http.URL, w.token, w.http.Client()) }

func (w *world) project(name string) *work.Project {
	w.t.Helper()
	p, err := w.service.AddProject(w.owner(), app.ProjectInput{Name: &name})
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

func (w *world) task(in app.TaskRequest) *app.TaskView {
	w.t.Helper()
	t, err := w.service.CreateTask(w.owner(), in)
	if err != nil {
		w.t.Fatal(err)
	}
	return t
}

// run carries out a task's waiting execution, as the engine would.
func (w *world) run(id work.TaskID, end work.End) {
	w.t.Helper()
	x := w.begin(id)
	end.Execution, end.Fence = x.ID, x.Fence
	w.do(x.TreeID, end)
}

func (w *world) begin(id work.TaskID) work.Execution {
	w.t.Helper()
	list, err := w.store.Executions(w.t.Context(), id)
	if err != nil || len(list) == 0 {
		w.t.Fatalf("executions of %s: %v, %v", id, list, err)
	}
	x := *list[len(list)-1]
	w.do(x.TreeID, work.Begin{Execution: x.ID, Node: "here", Spec: work.AgentSpec{Type: "command"}})
	if err := w.service.View(w.t.Context(), x.TreeID, func(tree *work.Tree) error { x = *tree.Execution(x.ID); return nil }); err != nil {
		w.t.Fatal(err)
	}
	return x
}

func (w *world) do(tree work.TreeID, c work.Command) {
	w.t.Helper()
	if err := w.service.Do(w.t.Context(), tree, work.System(), c); err != nil {
		w.t.Fatalf("%T: %v", c, err)
	}
}

// changed is a run that has changed a file.
func changed() work.End {
	return work.End{Outcome: work.Success, Base: "b0", Head: "h1", Result: &work.Result{Base: "b0", Head: "h1", Files: 1, Insertions: 2}}
}

// received is what the server answered.
type received struct {
	status int
	header http.Header
	body   []byte
	Problem
}

// ask makes a request; edits change it before it is sent.
func (w *world) ask(method, path, body string, edits ...func(*http.Request)) received {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.http.URL+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+w.token)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, edit := range edits {
		edit(req)
	}
	resp, err := w.http.Client().Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	a := received{status: resp.StatusCode, header: resp.Header, body: data}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "application/problem+json") {
		if err := json.Unmarshal(data, &a.Problem); err != nil {
			w.t.Fatalf("%s %s: %v in %s", method, path, err, data)
		}
	}
	return a
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) {
		if value == "" {
			r.Header.Del(name)
			return
		}
		r.Header.Set(name, value)
	}
}

// parts stand in for what other packages do with programs and files.
type parts struct{}

func (parts) Agents(context.Context) ([]app.AgentInfo, error) {
	return []app.AgentInfo{{Type: "command", Installed: true, Version: "1"}, {Type: "claude", Note: "not installed"}}, nil
}
func (parts) Types() []string { return []string{"command"} }

func (parts) Usable(agent string) bool { return agent == "command" }

func (parts) Diff(_ context.Context, p work.Project, base, head string, w io.Writer, _ int64) error {
	if p.Name == "torn" { // the vault breaks in the middle
		_, _ = io.WriteString(w, strings.Repeat("+line\n", 10_000))
		return fmt.Errorf("read the vault: torn")
	}
	_, err := fmt.Fprintf(w, "diff of %s: %s..%s\n", p.Name, base, head)
	return err
}

func (parts) Transcript(_ context.Context, id work.ExecutionID, offset int64) (io.ReadCloser, error) {
	text := fmt.Sprintf("{\"execution\":%q}\n", id)
	return io.NopCloser(strings.NewReader(text[min(offset, int64(len(text))):])), nil
}

func (parts) Inspect(_ context.Context, repository, branch string) (string, string, error) {
	if !filepath.IsAbs(repository) {
		return "", "", work.Errorf(work.Invalid, "%q is no repository", repository).WithReason("no_repository")
	}
	if branch == "" {
		branch = "main"
	}
	return repository, branch, nil
}

// ticking is a clock that moves a second whenever it is read.
type ticking struct {
	mu sync.Mutex
	at time.Time
}

func (c *ticking) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(time.Second)
	return c.at
}

// counted makes ids that sort as they were made.
type counted struct {
	app.RandomIDs
	n atomic.Int64
}

func (c *counted) New() string { return fmt.Sprintf("x%015d", c.n.Add(1)) }

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

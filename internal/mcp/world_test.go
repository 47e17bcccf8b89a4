package mcp_test

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
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/mcp"
	"github.com/claudomator/claudomator/internal/store"
	"github.com/claudomator/claudomator/internal/work"
)

// world is the endpoint over the real service on a real database; the test
// plays the engine.
type world struct {
	*testing.T
	file    string
	store   *store.Store
	service *app.Service
	http    *httptest.Server
	url     string
	log     *lockedBuffer
	parked  chan work.ExecutionID
	ends    func()
}

func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	w := &world{T: t, file: filepath.Join(t.TempDir(), "db.sqlite"), log: &lockedBuffer{}, parked: make(chan work.ExecutionID, 10)}
	w.start(nil)
	t.Cleanup(func() { w.ends() })
	name := "p"
	if _, err := w.service.AddProject(w.owner(), app.ProjectInput{Name: &name}); err != nil {
		t.Fatal(err)
	}
	argv := []string{"true"}
	if _, err := w.service.SetRole(w.owner(), "checker", app.RoleInput{Command: &argv}); err != nil {
		t.Fatal(err)
	}
	return w
}

// start builds a server on the world's database; wrap may stand between the
// endpoint and the service.
func (w *world) start(wrap func(app.RunTools) app.RunTools) {
	w.Helper()
	drop := func(context.Context, *sql.Tx, []work.Effect) error { return nil } // nothing runs by itself
	db, err := store.Open(w.Context(), store.Config{URL: w.file}, drop)
	if err != nil {
		w.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(w.log, nil))
	clock := &ticking{at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	w.store = db
	w.service = app.New(app.Options{
		Trees: db, Lookup: db, Lists: db, Settings: db, Tokens: db,
		Diffs: parts{}, Transcripts: parts{}, Agents: parts{}, Repositories: parts{},
		IDs: app.RandomIDs{}, Now: clock.Now, Log: log, Parked: func(x work.ExecutionID) { w.parked <- x },
		Defaults: app.Defaults{Agent: "command", Timeout: time.Hour, Silence: time.Minute},
	})
	var run app.RunTools = w.service
	if wrap != nil {
		run = wrap(run)
	}
	w.http = httptest.NewServer(mcp.New(mcp.Options{Tools: run, Version: "1.2.3", Log: log, AllowedHosts: []string{"claudomator.example"}}))
	w.url = w.http.URL + "/mcp"
	w.ends = func() {
		w.http.Close()
		if err := db.Close(); err != nil {
			w.Errorf("close the database: %v", err)
		}
		w.ends = func() {}
	}
}

// restart ends the server and starts another on the same database.
func (w *world) restart(wrap func(app.RunTools) app.RunTools) {
	w.Helper()
	w.ends()
	w.start(wrap)
}

func (w *world) owner() context.Context {
	return app.WithCaller(w.Context(), app.Caller{Name: "owner", Scope: app.ScopeAdmin})
}

// run is a running execution with its token.
type run struct {
	work.Execution
	token string
}

// task makes a task and lets it run.
func (w *world) task(in app.TaskRequest) run {
	w.Helper()
	in.Project, in.Start = "p", true
	if in.Name == "" {
		in.Name = "a task"
	}
	t, err := w.service.CreateTask(w.owner(), in)
	if err != nil {
		w.Fatal(err)
	}
	return w.begin(t.ID)
}

// begin takes a task's waiting execution, as the engine would.
func (w *world) begin(id work.TaskID) run {
	w.Helper()
	list, err := w.store.Executions(w.Context(), id)
	if err != nil || len(list) == 0 {
		w.Fatalf("executions of %s: %v, %v", id, list, err)
	}
	x := list[len(list)-1]
	r := run{token: "token-of-" + string(x.ID)}
	w.do(x.TreeID, work.Begin{Execution: x.ID, Node: "here", Spec: work.AgentSpec{Type: "scripted"}, TokenHash: app.HashSecret(r.token)})
	w.view(x.TreeID, func(tree *work.Tree) { r.Execution = *tree.Execution(x.ID) })
	return r
}

// end reports that a run has succeeded and changed a file.
func (w *world) end(r run) {
	w.Helper()
	w.do(r.TreeID, work.End{
		Execution: r.ID, Fence: r.Fence, Outcome: work.Success, Base: "b0", Head: "h1",
		Result: &work.Result{Base: "b0", Head: "h1", Files: 1, Insertions: 2},
	})
}

// judge is the running checker of a task that is done.
func (w *world) judge(criteria ...string) run {
	w.Helper()
	r := w.task(app.TaskRequest{Name: "judged", AcceptanceCriteria: criteria, Review: "checked"})
	w.end(r)
	var judges []*work.Task
	w.view(r.TreeID, func(tree *work.Tree) { judges = tree.JudgesOf(r.TaskID) })
	if len(judges) != 1 {
		w.Fatalf("%d judges", len(judges))
	}
	return w.begin(judges[0].ID)
}

func (w *world) do(tree work.TreeID, c work.Command) {
	w.Helper()
	if err := w.service.Do(w.Context(), tree, work.System(), c); err != nil {
		w.Fatalf("%T: %v", c, err)
	}
}

func (w *world) view(tree work.TreeID, f func(*work.Tree)) {
	w.Helper()
	if err := w.service.View(w.Context(), tree, func(tree *work.Tree) error { f(tree); return nil }); err != nil {
		w.Fatal(err)
	}
}

func (w *world) get(id work.TaskID) *app.TaskView {
	w.Helper()
	t, err := w.service.Task(w.owner(), string(id))
	if err != nil {
		w.Fatal(err)
	}
	return t
}

// call uses a tool with our own client, and must succeed.
func (w *world) call(r run, tool, arguments string) string {
	w.Helper()
	out, err := mcp.Call(w.Context(), w.url, r.token, tool, json.RawMessage(arguments))
	if err != nil {
		w.Fatalf("%s %.200s: %v", tool, arguments, err)
	}
	return string(out)
}

func (w *world) spawn(r run, arguments string) work.TaskID {
	w.Helper()
	return w.made(w.call(r, "spawn_subtask", arguments))
}

// made is the task an answer names.
func (w *world) made(answer string) work.TaskID {
	w.Helper()
	var made struct {
		TaskID work.TaskID `json:"task_id"`
	}
	if err := json.Unmarshal([]byte(answer), &made); err != nil || made.TaskID == "" {
		w.Fatalf("no task in %s (%v)", answer, err)
	}
	return made.TaskID
}

// refused uses a tool, and must be refused.
func (w *world) refused(r run, tool, arguments string) *work.Error {
	w.Helper()
	out, err := mcp.Call(w.Context(), w.url, r.token, tool, json.RawMessage(arguments))
	e, ok := work.AsError(err)
	if !ok {
		w.Fatalf("%s %.200s: %s, %v; want a refusal", tool, arguments, out, err)
	}
	return e
}

// connect is a foreign client: the library's own.
func (w *world) connect(token string) *sdk.ClientSession {
	w.Helper()
	c := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	s, err := c.Connect(w.Context(), &sdk.StreamableClientTransport{
		Endpoint: w.url, HTTPClient: &http.Client{Transport: bearer(token)}, MaxRetries: -1, DisableStandaloneSSE: true,
	}, nil)
	if err != nil {
		w.Fatalf("connect: %v", err)
	}
	w.Cleanup(func() { _ = s.Close() })
	return s
}

func (w *world) names(s *sdk.ClientSession) []string {
	w.Helper()
	list, err := s.ListTools(w.Context(), nil)
	if err != nil {
		w.Fatal(err)
	}
	var names []string
	for _, t := range list.Tools {
		names = append(names, t.Name)
	}
	slices.Sort(names)
	return names
}

// bearer adds a token to every request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// received is what the endpoint answered.
type received struct {
	status int
	header http.Header
	body   string
}

// post sends bytes as a client would; edits change the request.
func (w *world) post(token, body string, edits ...func(*http.Request)) received {
	w.Helper()
	req, err := http.NewRequestWithContext(w.Context(), http.MethodPost, w.url, strings.NewReader(body))
	if err != nil {
		w.Fatal(err)
	}
	for name, value := range map[string]string{
		"Authorization": "Bearer " + token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
	} {
		req.Header.Set(name, value)
	}
	for _, edit := range edits {
		edit(req)
	}
	resp, err := w.http.Client().Do(req)
	if err != nil {
		w.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		w.Fatal(err)
	}
	return received{resp.StatusCode, resp.Header, string(data)}
}

// set sets a header; an empty value removes it.
func set(name, value string) func(*http.Request) {
	return func(r *http.Request) {
		r.Header.Del(name)
		if value != "" {
			r.Header.Set(name, value)
		}
	}
}

func request(method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":%q,"params":%s}`, method, params)
}

func initialize(version string) string {
	return request("initialize", fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"c","version":"1"}}`, version))
}

// parts stand in for what other packages do with programs and files.
type parts struct{}

func (parts) Agents(context.Context) ([]app.AgentInfo, error) {
	return []app.AgentInfo{{Type: "command", Installed: true}}, nil
}
func (parts) Types() []string { return []string{"command"} }

func (parts) Usable(agent string) bool { return agent == "command" }

func (parts) Diff(context.Context, work.Project, string, string, io.Writer, int64) error { return nil }

func (parts) Transcript(context.Context, work.ExecutionID, int64) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader("")), nil
}

func (parts) Inspect(_ context.Context, repository, branch string) (string, string, error) {
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

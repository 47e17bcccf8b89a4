package mcp_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/claudomator/claudomator/internal/api"
	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/app/apptest"
	"github.com/claudomator/claudomator/internal/mcp"
	"github.com/claudomator/claudomator/internal/store"
	"github.com/claudomator/claudomator/internal/work"
)

// world is both endpoints over the real service on a real database; the test
// plays the engine.
type world struct {
	*apptest.World
	file   string
	http   *httptest.Server
	url    string
	parked chan work.ExecutionID
	ends   func()
}

// ownerToken is the credential of a person.
const ownerToken = "the-owner's-secret"

func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	w := &world{file: filepath.Join(t.TempDir(), "db.sqlite"), parked: make(chan work.ExecutionID, 10)}
	w.start(t, nil)
	t.Cleanup(func() { w.ends() })
	w.Project("p")
	argv := []string{"true"}
	for _, role := range []string{"checker", "retro"} {
		if _, err := w.Service.SetRole(w.Owner(), role, app.RoleInput{Command: &argv}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Service.EnsureToken(t.Context(), "owner", ownerToken); err != nil {
		t.Fatal(err)
	}
	return w
}

// start builds a server on the world's database; wrap may stand between the
// endpoint and the service.
func (w *world) start(t testing.TB, wrap func(app.RunTools) app.RunTools) {
	t.Helper()
	drop := func(context.Context, *sql.Tx, []work.Effect) error { return nil } // nothing runs by itself
	db, err := store.Open(t.Context(), store.Config{URL: w.file}, drop)
	if err != nil {
		t.Fatal(err)
	}
	w.World = apptest.New(t, app.Options{
		Trees: db, Lookup: db, Lists: db, Stories: db, Settings: db, Tokens: db, Parked: func(x work.ExecutionID) { w.parked <- x },
	})
	var run app.RunTools = w.Service
	if wrap != nil {
		run = wrap(run)
	}
	door, mux := app.NewDoor([]string{"claudomator.example"}), http.NewServeMux()
	mux.Handle("/mcp", mcp.New(mcp.Options{Tools: run, Version: "1.2.3", Log: w.Logger, Door: door}))
	mux.Handle("/", api.New(api.Options{
		API: w.Service, Auth: w.Service.Authenticate, LastSeq: db.LastSeq, Log: w.Logger, Door: door,
		Ready: func(context.Context) error { return nil },
		Admin: mcp.NewAdmin(mcp.AdminOptions{API: w.Service, Version: "1.2.3", Log: w.Logger}),
	}))
	w.http = httptest.NewServer(mux)
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
	w.start(w.TB, wrap)
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
	return w.begin(w.Task(in).ID)
}

// begin takes a task's waiting execution, as the engine would.
func (w *world) begin(id work.TaskID) run {
	w.Helper()
	token := "token-of-" + string(id)
	return run{w.Begin(id, token), token}
}

// end reports that a run has succeeded and changed a file.
func (w *world) end(r run) {
	w.Helper()
	end := apptest.Changed()
	end.Execution, end.Fence = r.ID, r.Fence
	w.Do(r.TreeID, end)
}

// judge is the running checker of a task that is done.
func (w *world) judge(criteria ...string) run {
	w.Helper()
	r := w.task(app.TaskRequest{Name: "judged", AcceptanceCriteria: criteria, Review: "checked"})
	w.end(r)
	var judges []*work.Task
	w.View(r.TreeID, func(tree *work.Tree) { judges = tree.JudgesOf(r.TaskID) })
	if len(judges) != 1 {
		w.Fatalf("%d judges", len(judges))
	}
	return w.begin(judges[0].ID)
}

// planner is the running planner of a new story.
func (w *world) planner() run {
	w.Helper()
	begun, err := w.Service.Elaborate(w.Owner(), app.ElaborateInput{Project: "p", Goal: "sell gift cards"})
	if err != nil {
		w.Fatal(err)
	}
	return w.begin(begun.TaskID)
}

// retro is the running retro of a story that was shipped.
func (w *world) retro() run {
	w.Helper()
	made, err := w.Service.ApprovePlan(w.Owner(), app.ApproveInput{PlanInput: app.PlanInput{Name: "shipped"}, Project: "p"})
	if err != nil {
		w.Fatal(err)
	}
	id := string(made.Story.ID)
	w.Run(made.Story.RootID, apptest.Changed())
	if _, err := w.Service.AcceptStory(w.Owner(), id); err != nil {
		w.Fatal(err)
	}
	if _, err := w.Service.ShipStory(w.Owner(), id, app.ShipRequest{}); err != nil {
		w.Fatal(err)
	}
	w.land(id)
	var retro work.TaskID
	w.View(work.TreeID(made.Story.RootTaskID), func(tree *work.Tree) {
		for _, t := range tree.Tasks() {
			if t.Role() == work.Retro {
				retro = t.ID
			}
		}
	})
	return w.begin(retro)
}

// land plays the engine: what a story ships is landed and pushed.
func (w *world) land(id string) {
	w.Helper()
	story := w.story(id)
	tree := work.TreeID(story.RootTaskID)
	w.Do(tree, work.Landed{Merge: story.Ship.MergeID, Commit: "c1"})
	w.Do(tree, work.Pushed{Task: story.RootID})
}

func (w *world) story(ref string) *app.StoryView {
	w.Helper()
	story, err := w.Service.Story(w.Owner(), ref)
	if err != nil {
		w.Fatal(err)
	}
	return story
}

func (w *world) get(id work.TaskID) *app.TaskView {
	w.Helper()
	t, err := w.Service.Task(w.Owner(), string(id))
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
	status, header, data := w.Ask(w.http.Client(), req, edits...)
	return received{status, header, string(data)}
}

func request(method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":%q,"params":%s}`, method, params)
}

func initialize(version string) string {
	return request("initialize", fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"c","version":"1"}}`, version))
}

package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/app/apptest"
	"github.com/claudomator/claudomator/internal/mcp"
	"github.com/claudomator/claudomator/internal/work"
)

// Clients of every age are served, also one of tomorrow.
func TestProtocolVersions(t *testing.T) {
	w := newWorld(t)
	r := w.task(app.TaskRequest{})
	for asked, want := range map[string]string{
		"2025-03-26": "2025-03-26", "2025-06-18": "2025-06-18", "2025-11-25": "2025-11-25", "2099-01-01": "2025-11-25",
	} {
		got := w.post(r.token, initialize(asked))
		var answer struct {
			Result struct {
				ProtocolVersion string
				Instructions    string
				ServerInfo      struct{ Name, Version string }
				Capabilities    map[string]any
			}
		}
		if err := json.Unmarshal([]byte(got.body), &answer); err != nil || got.status != http.StatusOK {
			t.Fatalf("%s: %d %s", asked, got.status, got.body)
		}
		if res := answer.Result; res.ProtocolVersion != want || res.ServerInfo.Name != "claudomator" || res.ServerInfo.Version != "1.2.3" ||
			!strings.HasPrefix(res.Instructions, "Claudomator has started you") || len(res.Capabilities) != 1 {
			t.Errorf("%s: %s", asked, got.body)
		}
		if id := got.header.Get("Mcp-Session-Id"); id != "" {
			t.Errorf("%s: session %s, want none", asked, id)
		}
		if note := w.post(r.token, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, apptest.Header("Mcp-Protocol-Version", want)); note.status != http.StatusAccepted {
			t.Errorf("%s: initialized: %d %s", asked, note.status, note.body)
		}
		list := w.post(r.token, request("tools/list", `{}`), apptest.Header("Mcp-Protocol-Version", want))
		if list.status != http.StatusOK || !strings.HasPrefix(list.header.Get("Content-Type"), "application/json") || !strings.Contains(list.body, `"get_context"`) {
			t.Errorf("%s: list: %d %s", asked, list.status, list.body)
		}
	}
	// The protocol without a handshake: its client probes first, and reads in the
	// refusal what it may speak.
	meta := func(version string) string {
		return fmt.Sprintf(`{"_meta":{"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}`, version)
	}
	next := w.post(r.token, request("server/discover", meta("2026-07-28")), apptest.Header("Mcp-Protocol-Version", "2026-07-28"), apptest.Header("Mcp-Method", "server/discover"))
	if next.status != http.StatusOK || !strings.Contains(next.body, `"2025-11-25"`) || !strings.Contains(next.body, `"cacheScope":"private"`) {
		t.Errorf("discover: %d %s", next.status, next.body)
	}
	listen := w.post(r.token, request("subscriptions/listen", strings.TrimSuffix(meta("2026-07-28"), "}")+`,"notifications":{"toolsListChanged":true}}`),
		apptest.Header("Mcp-Protocol-Version", "2026-07-28"), apptest.Header("Mcp-Method", "subscriptions/listen"))
	if listen.status != http.StatusNotFound || !strings.Contains(listen.body, "-32601") {
		t.Errorf("listen: %d %s", listen.status, listen.body)
	}
	far := w.post(r.token, request("server/discover", meta("2099-01-01")), apptest.Header("Mcp-Protocol-Version", "2099-01-01"), apptest.Header("Mcp-Method", "server/discover"))
	if far.status != http.StatusBadRequest || !strings.Contains(far.body, `"supported":[`) {
		t.Errorf("unknown version: %d %s", far.status, far.body)
	}
}

// B59: no token is never more than a bad one, whatever is asked for.
func TestCredentials(t *testing.T) {
	w := newWorld(t)
	if err := w.Service.EnsureToken(t.Context(), "owner", "the-owner's-secret"); err != nil {
		t.Fatal(err)
	}
	over, stopping, lost, alive := w.task(app.TaskRequest{}), w.task(app.TaskRequest{}), w.task(app.TaskRequest{}), w.task(app.TaskRequest{})
	w.end(over)
	w.Do(lost.TreeID, work.Lose{Execution: lost.ID, Fence: lost.Fence})
	if _, err := w.Service.CancelTask(w.Owner(), string(stopping.TaskID)); err != nil {
		t.Fatal(err)
	}
	bodies := map[string]string{
		"initialize": initialize("2025-06-18"), "list": request("tools/list", `{}`), "ping": request("ping", `{}`),
		"call": request("tools/call", `{"name":"report_summary","arguments":{"text":"mine"}}`),
		"none": "", "nonsense": "{{{", "unknown": request("no/such", `{}`),
	}
	want := ""
	for name, header := range map[string]string{
		"none": "", "empty": "Bearer ", "wrong": "Bearer wrong", "another scheme": "Basic " + alive.token, "bare": alive.token,
		"over": "Bearer " + over.token, "being stopped": "Bearer " + stopping.token, "lost": "Bearer " + lost.token,
		"a user's": "Bearer the-owner's-secret", "hash": "Bearer " + app.HashSecret(alive.token),
	} {
		for what, body := range bodies {
			for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
				got := w.post("", body, apptest.Header("Authorization", header), func(r *http.Request) { r.Method = method })
				if want == "" {
					want = got.body
				}
				if got.status != http.StatusUnauthorized || got.body != want || got.header.Get("WWW-Authenticate") == "" {
					t.Errorf("token %s, %s %s: %d %s", name, method, what, got.status, got.body)
				}
			}
		}
	}
	if e := w.refused(over, "report_summary", `{"text":"late"}`); e.Code != work.Unauthenticated || e.Hint == "" {
		t.Errorf("late report: %s %s", e.Code, e)
	}
	for _, r := range []run{over, stopping, lost, alive} {
		if got := w.get(r.TaskID).Summary; got != "" {
			t.Errorf("summary %q was recorded", got)
		}
	}
	if got := w.post("", bodies["list"], apptest.Header("Authorization", "bearer   "+alive.token)); got.status != http.StatusOK {
		t.Errorf("the scheme in lower case: %d %s", got.status, got.body)
	}
	if got := w.post(alive.token, "", func(r *http.Request) { r.Method = http.MethodGet }); got.status != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d %s", got.status, got.body)
	}
}

// B59: a session of the server's former life does no harm, and neither does
// beginning again with it.
func TestRestart(t *testing.T) {
	w := newWorld(t)
	r := w.task(app.TaskRequest{})
	w.post(r.token, initialize("2025-06-18"))
	a := w.spawn(r, `{"name":"A","instructions":"do a"}`)
	w.restart(nil)
	stale := apptest.Header("Mcp-Session-Id", "a-session-of-before")
	got := w.post(r.token, request("tools/call", `{"name":"spawn_subtask","arguments":{"name":"A","instructions":"do a"}}`), stale)
	if got.status != http.StatusOK || !strings.Contains(got.body, string(a)) {
		t.Errorf("call: %d %s", got.status, got.body)
	}
	if got := w.post(r.token, initialize("2025-06-18"), stale); got.status != http.StatusOK || !strings.Contains(got.body, `"serverInfo"`) {
		t.Errorf("initialise again: %d %s", got.status, got.body)
	}
	if got := w.post("wrong", initialize("2025-06-18"), stale); got.status != http.StatusUnauthorized {
		t.Errorf("session without a token: %d %s", got.status, got.body)
	}
}

// Two runs at once speak each for itself, and what one run says twice at once
// is done once.
func TestTwoClients(t *testing.T) {
	w := newWorld(t)
	runs := []run{w.task(app.TaskRequest{Name: "one"}), w.task(app.TaskRequest{Name: "two"})}
	ids := make([][]string, len(runs))
	var wg sync.WaitGroup
	for i, r := range runs {
		ids[i] = make([]string, 4)
		for n := range ids[i] {
			s := w.connect(r.token)
			wg.Go(func() {
				res, err := s.CallTool(w.Context(), &sdk.CallToolParams{
					Name: "spawn_subtask", Arguments: map[string]string{"name": "A", "instructions": "do a"},
				})
				if err != nil || res.IsError {
					t.Errorf("spawn: %v %+v", err, res)
					return
				}
				ids[i][n] = fmt.Sprint(res.StructuredContent)
			})
		}
	}
	wg.Wait()
	for i, r := range runs {
		for _, id := range ids[i] {
			if id != ids[i][0] {
				t.Errorf("run %d made %v", i, ids[i])
			}
		}
		w.View(r.TreeID, func(tree *work.Tree) {
			if n := len(tree.Children(r.TaskID)); n != 1 {
				t.Errorf("run %d has %d children", i, n)
			}
		})
	}
	if ids[0][0] == ids[1][0] {
		t.Errorf("both runs made %s", ids[0][0])
	}
}

// held is a service whose Spawn waits.
type held struct {
	app.RunTools
	begun, release chan struct{}
}

func (h held) Spawn(ctx context.Context, c app.RunCaller, in app.SpawnInput) (work.TaskID, error) {
	close(h.begun)
	<-h.release
	return h.RunTools.Spawn(ctx, c, in)
}

// B59: a caller that hangs up loses the answer and not the work, and its request
// ends only when that is done.
func TestHungUp(t *testing.T) {
	w := newWorld(t)
	r := w.task(app.TaskRequest{})
	h := held{begun: make(chan struct{}), release: make(chan struct{})}
	w.restart(func(run app.RunTools) app.RunTools { h.RunTools = run; return h })
	ctx, cancel := context.WithCancel(t.Context())
	called := make(chan error, 1)
	go func() {
		_, err := mcp.Call(ctx, w.url, r.token, "spawn_subtask", json.RawMessage(`{"name":"A","instructions":"do a"}`))
		called <- err
	}()
	<-h.begun
	cancel()
	if err := <-called; work.CodeOf(err) != work.Unavailable || !errors.Is(err, context.Canceled) {
		t.Errorf("the caller that hung up: %v", err)
	}
	close(h.release)
	w.http.Close() // waits for the request
	w.View(r.TreeID, func(tree *work.Tree) {
		if n := len(tree.Children(r.TaskID)); n != 1 {
			t.Errorf("%d children, want the one of the lost call", n)
		}
	})
}

// What is no message of the protocol is refused, and harms nothing.
func TestBrokenRequests(t *testing.T) {
	w := newWorld(t)
	r := w.task(app.TaskRequest{})
	call := request("tools/call", `{"name":"report_summary","arguments":{"text":"x"}}`)
	for name, c := range map[string]struct {
		body   string
		edit   func(*http.Request)
		status int
		says   string
	}{
		"empty":             {"", apptest.Header("X", ""), 400, "non-empty"},
		"cut off":           {call[:40], apptest.Header("X", ""), 400, "malformed"},
		"not JSON":          {"hello", apptest.Header("X", ""), 400, "malformed"},
		"no message":        {`{"jsonrpc":"1.0","id":1}`, apptest.Header("X", ""), 400, "malformed"},
		"unknown method":    {request("tools/destroy", `{}`), apptest.Header("X", ""), 400, "tools/destroy"},
		"parameters a list": {request("tools/call", `[1]`), apptest.Header("X", ""), 200, "-32602"},
		"arguments no JSON": {request("tools/call", `{"name":"report_summary","arguments":{"text":}}`), apptest.Header("X", ""), 400, "malformed"},
		"no content type":   {call, apptest.Header("Content-Type", ""), 415, "application/json"},
		"accepts nothing":   {call, apptest.Header("Accept", "text/html"), 400, "Accept"},
		"an old version":    {call, apptest.Header("Mcp-Protocol-Version", "2020-01-01"), 400, "Unsupported"},
		"huge":              {call + strings.Repeat(" ", 17<<20), apptest.Header("X", ""), 413, "exceeds"},
		"another's name":    {call, func(r *http.Request) { r.Host = "evil.example" }, 421, "evil.example"},
		"another's page":    {call, apptest.Header("Sec-Fetch-Site", "cross-site"), 403, "another site"},
	} {
		if got := w.post(r.token, c.body, c.edit); got.status != c.status || !strings.Contains(got.body, c.says) {
			t.Errorf("%s: %d %.300s, want %d %q", name, got.status, got.body, c.status, c.says)
		}
	}
	if got := w.get(r.TaskID).Summary; got != "" {
		t.Errorf("summary %q was recorded", got)
	}
	_, port, _ := strings.Cut(strings.TrimPrefix(w.http.URL, "http://"), ":")
	for _, host := range []string{"localhost:" + port, "[::1]:" + port, "claudomator.example", "Claudomator.Example:" + port} {
		if got := w.post(r.token, request("ping", `{}`), func(r *http.Request) { r.Host = host }); got.status != http.StatusOK {
			t.Errorf("host %s: %d %s", host, got.status, got.body)
		}
	}
}

// faulty is a service in which every use case fails with err, or panics.
type faulty struct {
	app.RunTools
	err error
}

func (f faulty) Report(context.Context, app.RunCaller, app.RunReport) error {
	if f.err == nil {
		panic("the secret cause")
	}
	return f.err
}

// A bug ends its call and no other, and shows nothing but an id.
func TestBugs(t *testing.T) {
	w := newWorld(t)
	r := w.task(app.TaskRequest{})
	for name, err := range map[string]error{
		"panic": nil, "foreign": errors.New("the secret cause"), "ours": work.Errorf(work.Internal, "the secret cause"),
	} {
		w.restart(func(run app.RunTools) app.RunTools { return faulty{run, err} })
		e := w.refused(r, "report_summary", `{"text":"x"}`)
		id, found := strings.CutPrefix(e.Message, "internal error ")
		if !found || e.Code != work.Internal {
			t.Errorf("%s: %s %s", name, e.Code, e)
		}
		if log := w.Log.String(); !strings.Contains(log, id) || !strings.Contains(log, "the secret cause") || !strings.Contains(log, string(r.ID)) {
			t.Errorf("%s: the log says %s", name, log)
		}
		w.call(r, "get_context", "") // still served
	}
}

// Every class of error reaches the client as the error it was.
func TestErrorsTravel(t *testing.T) {
	w := newWorld(t)
	r := w.task(app.TaskRequest{})
	for _, code := range work.Codes() {
		if code == work.Internal {
			continue // see TestBugs
		}
		want := work.Errorf(code, "that is %s", code).WithReason("some_reason").WithHint("do %s", "this").With("path", []any{"a", "b"})
		w.restart(func(run app.RunTools) app.RunTools { return faulty{run, want} })
		got := w.refused(r, "report_summary", `{"text":"x"}`)
		if got.Code != want.Code || got.Reason != want.Reason || got.Message != want.Message || got.Hint != want.Hint || !cmp.Equal(got.Details, want.Details) {
			t.Errorf("%s: %+v, want %+v", code, got, want)
		}
	}
}

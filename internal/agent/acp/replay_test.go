package acp_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudomator/claudomator/internal/agent"
	"github.com/claudomator/claudomator/internal/agent/acp"
	"github.com/claudomator/claudomator/internal/sandbox"
)

var update = flag.Bool("update", false, "write the golden files")

// step is a line of a recorded conversation, the program's side of it: something
// that it says, with To what it answers to a request of that method, and with On
// only that the request has come.
type step struct {
	On     string          `json:"on,omitempty"`
	To     string          `json:"to,omitempty"`
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  json.RawMessage `json:"error,omitempty"`
}

type request struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
}

// replay is the program: it says what was recorded, at the point in the
// conversation where it was said, and takes every request that was not recorded.
func replay(args []string) int {
	file, err := os.Open(args[0])
	if err != nil {
		return 3
	}
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	came := map[string]json.RawMessage{}
	for lines.Scan() {
		var s step
		if json.Unmarshal(lines.Bytes(), &s) != nil {
			return 3
		}
		for awaited := s.On + s.To; awaited != ""; {
			if _, ok := came[awaited]; ok {
				break
			}
			var r request
			if in.Decode(&r) != nil {
				return 4
			}
			came[r.Method] = r.ID
			if r.Method != awaited {
				_ = out.Encode(map[string]any{"jsonrpc": "2.0", "id": r.ID, "result": map[string]any{}})
			}
		}
		if id := came[s.To]; id != nil {
			_ = out.Encode(map[string]any{"jsonrpc": "2.0", "id": id, answer(s): first(s.Error, s.Result)})
		}
		if s.Method != "" {
			_ = out.Encode(map[string]any{"jsonrpc": "2.0", "method": s.Method, "params": s.Params})
		}
	}
	var r request
	_ = in.Decode(&r) // the end of the input is the request to leave
	return 0
}

func answer(s step) string {
	if s.Error != nil {
		return "error"
	}
	return "result"
}

func first(a, b json.RawMessage) json.RawMessage {
	if a != nil {
		return a
	}
	return b
}

// TestRecorded replays what real programs said, and holds events and result to
// golden files.
func TestRecorded(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.jsonl")
	if err != nil || len(files) < 18 {
		t.Fatalf("recorded conversations: %d, %v", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".jsonl")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := recorded(t, file, strings.HasSuffix(name, "-load"))
			golden := filepath.Join("testdata", name+".golden")
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// recorded is what becomes of one conversation, one line for each event. A recorded
// cancel is the person's, while the first tool call is under way.
func recorded(t *testing.T, file string, resume bool) []byte {
	t.Helper()
	path, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	host, err := sandbox.Open(sandbox.Options{StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	job := agent.Job{
		ID: "recorded-" + filepath.Base(file) + "-" + rand.Text(), Dir: t.TempDir(), Prompt: "do it",
		Command: []string{self(t), "replay", path}, MCP: agent.Endpoint{URL: "http://127.0.0.1:1/mcp", Token: "t"},
		Limits: agent.Limits{Wall: 8 * time.Minute, Silence: 8 * time.Minute, StopGrace: time.Minute, Linger: time.Minute},
	}
	job.ID = strings.ReplaceAll(job.ID, ".", "-")
	if resume {
		job.Resume = "session-1"
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var b bytes.Buffer
	line := func(v any) {
		data, err := json.Marshal(v)
		if err != nil {
			t.Error(err)
		}
		b.Write(append(data, '\n'))
	}
	runner := agent.NewRunner(agent.RunnerOptions{Host: host, Environ: os.Environ(), Now: time.Now})
	result, err := acp.New(runner, "acp", nil).Run(ctx, job, agent.SinkFunc(func(e agent.Event) {
		e.At = time.Time{}
		line(e)
		if e.Kind == agent.KindTool && strings.HasSuffix(file, "-cancel.jsonl") {
			cancel(agent.ErrCancelled)
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	result.Tail, result.Level, result.OutputBytes = "", "", 0
	line(result)
	return bytes.ReplaceAll(b.Bytes(), []byte(`"at":"0001-01-01T00:00:00Z",`), nil)
}

// TestRecordedOutcomes says in one table what the golden files must not drift from.
func TestRecordedOutcomes(t *testing.T) {
	t.Parallel()
	want := map[string]struct {
		outcome  agent.Outcome
		noResume bool
		words    string
	}{
		"claude": {outcome: agent.Success}, "codex": {outcome: agent.Success}, "gemini": {outcome: agent.Success},
		"opencode": {outcome: agent.Success}, "pi": {outcome: agent.Success}, "claude-load": {outcome: agent.Success},
		"claude-oauth-limit-warning": {outcome: agent.Success},
		"claude-cancel":              {outcome: agent.Cancelled}, "codex-cancel": {outcome: agent.Cancelled}, "gemini-cancel": {outcome: agent.Cancelled},
		"claude-e500":            {outcome: agent.Overloaded, words: "500"},
		"codex-e500":             {outcome: agent.Overloaded, words: "high demand"},
		"claude-limit":           {outcome: agent.Overloaded, words: "429"},
		"claude-oauth-limit-hit": {outcome: agent.Limited, words: "5-hour limit"},
		"codex-limit":            {outcome: agent.Limited, words: "usage limit"},
		"gemini-limit":           {outcome: agent.Limited, words: "daily quota"},
		"gemini-load":            {outcome: agent.Failed, noResume: true, words: "Invalid session identifier"},
		"copilot":                {outcome: agent.Failed, words: "copilot login"},
	}
	files, err := filepath.Glob("testdata/*.golden")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".golden")
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines := slices.Collect(bytes.Lines(data))
		var r agent.Result
		if err := json.Unmarshal(lines[len(lines)-1], &r); err != nil {
			t.Fatal(err)
		}
		w, ok := want[name]
		if !ok || r.Outcome != w.outcome || r.NoResume != w.noResume || !strings.Contains(r.Error, w.words) {
			t.Errorf("%s: %s, no resume %v, %q; want %+v", name, r.Outcome, r.NoResume, r.Error, w)
		}
		delete(want, name)
	}
	if len(want) > 0 {
		t.Errorf("not recorded: %v", want)
	}
}

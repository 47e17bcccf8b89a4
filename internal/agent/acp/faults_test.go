package acp_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claudomator/claudomator/internal/agent"
)

// texts joins what events of a kind say.
func texts(events []agent.Event, kind agent.Kind) string {
	var all []string
	for _, e := range events {
		if e.Kind == kind {
			all = append(all, e.Text)
		}
	}
	return strings.Join(all, "|")
}

// TestEnds is the outcome of each way in which a program can end a run.
func TestEnds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		script  string
		outcome agent.Outcome
		words   string // of the error
		fault   bool   // of the agent program
	}{
		{"end_turn", "steps: [{say: x}]", agent.Success, "", false},
		{"status after success", "exit_code: 3\nsteps: [{say: x}]", agent.Success, "", false},
		{"success, and stays", "stay: true\nsteps: [{say: x}]", agent.Success, "", false},
		{"error", "steps: [{fail: it broke}]", agent.Failed, "it broke", false},
		{"error with a kind", "steps: [{fail: it broke, kind: authentication_failed}]", agent.Failed, "it broke", false},
		{"refusal", "steps: [{stop: refusal}]", agent.Failed, "refused", false},
		{"tokens", "steps: [{stop: max_tokens}]", agent.Failed, "tokens", false},
		{"turns", "steps: [{stop: max_turn_requests}]", agent.Failed, "requests", false},
		{"cancelled by nobody", "steps: [{stop: cancelled}]", agent.Failed, "nobody had asked", false},
		{"usage limit", "steps: [{limit: all used, reset: 1h}]", agent.Limited, "all used", false},
		{"quota, by a sign of our own", "steps: [{fail: daily quota exhausted, kind: rate_limit}]", agent.Limited, "quota", false},
		{"rate limit of a minute", "steps: [{fail: too many requests, kind: rate_limit}]", agent.Overloaded, "too many", false},
		{"overload", "steps: [{overload: busy}]", agent.Overloaded, "busy", false},
		{"server error", "steps: [{fail: 'API Error: 500', kind: server_error}]", agent.Overloaded, "500", false},
		{"killed", "steps: [{die: KILL}]", agent.Failed, "killed", false},
		{"half a message", "steps: [{die: KILL, half_line: true}]", agent.Failed, "killed", false},
		{"half a message, status 0", "steps: [{die: '0', half_line: true}]", agent.Failed, "without a report", true},
		{"status 0 without an answer", "steps: [{die: '0'}]", agent.Failed, "without a report", true},
		{"status 7 without an answer", "steps: [{die: '7'}]", agent.Failed, "exit status 7", false},
		{"permission", "steps: [{permission: may I}]", agent.Success, "", false},
		{"a script that is none", "steps: [{shout: x}]", agent.Failed, "line 2", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			job := agent.Job{Limits: patient()}
			if strings.HasPrefix(tt.script, "stay: true") {
				job.Limits.Linger = time.Second
			}
			r, _ := run(t, "forget: true\n"+tt.script, job)
			if r.Outcome != tt.outcome || !strings.Contains(r.Error, tt.words) || r.AgentFault != tt.fault {
				t.Errorf("%s (%s): %q, fault %v", r.Outcome, r.Rule, r.Error, r.AgentFault)
			}
			if tt.name == "usage limit" && (r.Limit == nil || time.Until(r.Limit.ResetAt) < 50*time.Minute) {
				t.Errorf("limit %+v", r.Limit)
			}
		})
	}
}

// TestNoAgent is programs that do not speak the protocol.
func TestNoAgent(t *testing.T) {
	t.Parallel()
	answer := func(version string) string {
		return `read x; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":` + version + `}}'; `
	}
	for _, tt := range []struct {
		name    string
		shell   string
		silence time.Duration
		outcome agent.Outcome
		words   string
	}{
		{"ends at once", "echo hello", 8 * time.Minute, agent.Failed, "hello"},
		{"says nothing", "sleep 3600", 300 * time.Millisecond, agent.Silenced, "no output"},
		{"echoes", "exec cat", 8 * time.Minute, agent.Failed, "initialize"},
		{"another version", answer("2") + "read x", 8 * time.Minute, agent.Failed, `version "2"`},
		{"no session", answer("1") + `read x; echo '{"jsonrpc":"2.0","id":2,"result":{}}'; read x`, 8 * time.Minute, agent.Failed, "identifier"},
		{"closes its streams", answer("1") + "exec >&- 2>&- <&-; sleep 3600", 300 * time.Millisecond, agent.Silenced, "no output"},
		// It asks without end and reads nothing: its answers are bounded.
		{"asks and does not read", answer("1") + `exec yes '{"jsonrpc":"2.0","id":7,"method":"fs/read_text_file","params":{}}'`, 8 * time.Minute, agent.Failed, "does not read"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			job := agent.Job{Command: []string{"sh", "-c", tt.shell}}
			job.Limits = agent.Limits{Wall: 8 * time.Minute, Silence: tt.silence, StopGrace: 200 * time.Millisecond, Linger: 200 * time.Millisecond, Transcript: 1 << 20}
			r, _ := run(t, "", job)
			if r.Outcome != tt.outcome || !strings.Contains(r.Error, tt.words) {
				t.Errorf("%s (%s): %q", r.Outcome, r.Rule, r.Error)
			}
		})
	}
}

// TestBetweenMessages is what programs print beside the protocol: it is output, and
// the messages around it count.
func TestBetweenMessages(t *testing.T) {
	t.Parallel()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	job := agent.Job{Limits: patient()}
	job.Limits.Transcript = 4 << 20
	r, events := run(t, `
forget: true
steps:
  - print: "no end"
  - say: one
  - print: !!binary //4KG1szMW0AbnVsCg==
  - print: '{"half": '
  - say: two
  - print: "{\"level\":\"info\"}\n[1,2]\n\"text\"\n42\nnull\n{}\n"
  - flood: 50000000
    as: message
  - flood: 50000000
    as: line
  - say: three
  - run: printf 'last'
    raw: true
`, job)
	runtime.ReadMemStats(&after)
	if r.Outcome != agent.Success {
		t.Fatalf("%s: %s", r.Outcome, r.Error)
	}
	if got := texts(events, agent.KindText); got != "one|two|three" {
		t.Errorf("said %q", got)
	}
	log := texts(events, agent.KindLog)
	for _, want := range []string{"no end", "nul", `{"half": `, `{"level":"info"}`, "[1,2]", "last", "bytes of it were left out"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log has no %q", want)
		}
	}
	if grown := int64(after.HeapInuse) - int64(before.HeapInuse); grown > 100<<20 {
		t.Errorf("heap grew by %d bytes", grown)
	}
}

// TestDeeds is what a working agent does, as events.
func TestDeeds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r, events := run(t, `
forget: true
steps:
  - think: hm
  - say: I begin.
  - edit: a/b.txt
    content: "1\n2\n3\n"
  - edit: a/b.txt
    replace: "2\n"
    with: "two\n"
  - run: echo out; exit 3
    may_fail: true
  - usage: 10
    output: 5
    cache_read: 3
    cost: 0.5
  - say: |-
      First.

      Second.
`, agent.Job{Dir: dir, Model: "some", AllowedTools: []string{"x"}, MaxTurns: 3, Prompt: "\xffdo"})
	if r.Outcome != agent.Success || r.Usage != (agent.Usage{Input: 10, Output: 5, CacheRead: 3}) || r.CostUSD != 0.5 || r.Handle == "" {
		t.Errorf("%+v", r)
	}
	if got := texts(events, agent.KindText); got != "I begin.|First.\n\nSecond." && got != "I begin.|First.|Second." {
		t.Errorf("said %q", got)
	}
	if got := texts(events, agent.KindThought); got != "hm" {
		t.Errorf("thought %q", got)
	}
	var edits, tools []string
	for _, e := range events {
		if e.Edit != nil {
			edits = append(edits, e.Edit.Path+"\n"+e.Edit.Diff)
		}
		if e.Tool != nil && e.Tool.Done {
			tools = append(tools, e.Tool.Name)
			if e.Tool.Name == "shell" && (!e.Tool.Failed || e.Tool.Output != "out\n\nexit status 3" || e.Tool.Input != `{"command":"echo out; exit 3"}`) {
				t.Errorf("%+v", e.Tool)
			}
		}
	}
	if want := []string{"a/b.txt\n@@ -0,0 +1,3 @@\n+1\n+2\n+3\n", "a/b.txt\n@@ -2,1 +2,1 @@\n-2\n+two\n"}; !slices.Equal(edits, want) {
		t.Errorf("edits %q", edits)
	}
	if !slices.Equal(tools, []string{"edit", "edit", "shell"}) {
		t.Errorf("tools %q", tools)
	}
	if got, _ := os.ReadFile(filepath.Join(dir, "a/b.txt")); string(got) != "1\ntwo\n3\n" {
		t.Errorf("file %q", got)
	}
	warnings := strings.Join(r.Warnings, "|")
	for _, want := range []string{"list of allowed tools", "limit of turns", "no UTF-8"} {
		if !strings.Contains(warnings, want) {
			t.Errorf("no warning %q in %q", want, warnings)
		}
	}
}

// TestPermission: what is asked for is given, once, and the call that it is for is
// told once as it begins and once as it ends.
func TestPermission(t *testing.T) {
	t.Parallel()
	r, events := run(t, "forget: true\nsteps: [{permission: wipe}, {say: done}]", agent.Job{})
	if r.Outcome != agent.Success || len(r.Warnings) > 0 || !strings.Contains(texts(events, agent.KindLog), "permission given: wipe") {
		t.Errorf("%+v, %q", r, texts(events, agent.KindLog))
	}
	var calls []agent.Tool
	for _, e := range events {
		if e.Tool != nil {
			calls = append(calls, *e.Tool)
		}
	}
	want := agent.Tool{ID: "permission-1-1", Name: "wipe", Input: `{"of":"wipe"}`}
	ended := want
	ended.Done = true
	if !slices.Equal(calls, []agent.Tool{want, ended}) {
		t.Errorf("calls %+v", calls)
	}
}

// TestResume: a conversation goes on behind the step that ended it; one that is not
// known, or has grown too long, is told apart from a failure.
func TestResume(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	job := agent.Job{Dir: t.TempDir(), Env: []string{"XDG_STATE_HOME=" + home}}
	script := "steps: [{say: one}, {fail: later}, {say: two}]\nagain: [{fail: prompt is too long}]"
	r, _ := run(t, script, job)
	if r.Outcome != agent.Failed || r.Handle == "" || r.NoResume {
		t.Fatalf("%+v", r)
	}
	job.Resume = r.Handle
	again, events := run(t, script, job)
	if again.Outcome != agent.Success || texts(events, agent.KindText) != "two" || again.Handle != r.Handle {
		t.Errorf("%+v, said %q", again, texts(events, agent.KindText))
	}
	if r, _ := run(t, script, job); r.Outcome != agent.Failed || !r.NoResume {
		t.Errorf("too long: %+v", r)
	}
	for _, id := range []string{"UNKNOWNUNKNOWN", "../../etc/passwd", "x"} {
		job.Resume = id
		if r, _ := run(t, script, job); r.Outcome != agent.Failed || !r.NoResume || !strings.Contains(r.Error, "cannot be resumed") {
			t.Errorf("%s: %+v", id, r)
		}
	}
	job.Resume = "x"
	job.Command = []string{"sh", "-c", `read x; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}'; read x`}
	if r, _ := run(t, "", job); r.Outcome != agent.Failed || !r.NoResume || !strings.Contains(r.Error, "resumes no conversations") {
		t.Errorf("not offered: %+v", r)
	}
}

// TestCancel: a program that follows the protocol's cancel leaves by itself; one
// that ignores everything is killed.
func TestCancel(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, script, exit string
	}{
		{"follows", "forget: true\nsteps: [{say: x}, {run: touch ready}, {sleep: 1h}]", "zero"},
		{"ignores", "forget: true\nsteps: [{say: x}, {ignore_term: true}, {daemon: daemon}, {run: touch ready}, {sleep: 1h}]", "signal"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			var group sync.WaitGroup
			group.Go(func() {
				for ctx.Err() == nil {
					if _, err := os.Stat(filepath.Join(dir, "ready")); err == nil {
						cancel(agent.ErrCancelled)
					}
					time.Sleep(5 * time.Millisecond)
				}
			})
			job := agent.Job{Dir: dir, Limits: patient()}
			if job.Limits.StopGrace = time.Minute; tt.exit == "signal" {
				job.Limits.StopGrace = 200 * time.Millisecond
			}
			r, _ := runIn(ctx, t, tt.script, job)
			group.Wait()
			if r.Outcome != agent.Cancelled || string(r.Facts.Exit) != tt.exit {
				t.Errorf("%+v", r)
			}
			if tt.exit == "signal" && r.Killed < 2 {
				t.Errorf("killed %d: the program and its daemon are two", r.Killed)
			}
		})
	}
}

// TestBackground is B35: what is still at work when the agent says that it is done is
// ended, and told to whoever reviews.
func TestBackground(t *testing.T) {
	t.Parallel()
	r, _ := run(t, "forget: true\nsteps: [{daemon: daemon}, {say: I will report.}]", agent.Job{})
	if r.Outcome != agent.Success || r.Killed == 0 || !strings.Contains(strings.Join(r.Warnings, "|"), "still running") {
		t.Errorf("%+v", r)
	}
}

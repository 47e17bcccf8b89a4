package codex

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/claudomator/claudomator/internal/agent"
)

// reading runs a function with the reader of a run whose program never starts.
func reading(t *testing.T, job agent.Job, home string, do func(*reader)) []agent.Event {
	t.Helper()
	var events []agent.Event
	job.Dir = "/workspace"
	runner := agent.NewRunner(agent.RunnerOptions{Now: time.Now})
	stop := errors.New("not started")
	_, err := runner.Run(t.Context(), job, agent.SinkFunc(func(e agent.Event) { events = append(events, e) }), func(s *agent.Session) (agent.Program, error) {
		do(newReader(s, job, home))
		return agent.Program{}, stop
	})
	if !errors.Is(err, stop) {
		t.Fatal(err)
	}
	return events
}

// Whatever is printed and whatever lies in the conversation's file: the events
// are sound, and the next line is understood.
func FuzzReader(f *testing.F) {
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) == 0 {
		f.Fatal(err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, data)
	}
	f.Fuzz(func(t *testing.T, stdout, file []byte) {
		const thread = "01a22c9f-0000-7000-8000-000000000001"
		home := t.TempDir()
		day := filepath.Join(home, "sessions/2026/11/30")
		if os.MkdirAll(day, 0o755) != nil || os.WriteFile(filepath.Join(day, "rollout-x-"+thread+".jsonl"), file, 0o644) != nil {
			t.Fatal("no file")
		}
		events := reading(t, agent.Job{Resume: thread}, home, func(r *reader) {
			lines := agent.NewLines(agent.MaxLine, func(l agent.Line) { r.line(agent.Stdout, l) })
			_, _ = lines.Write(stdout)
			_ = lines.Close()
			r.line(agent.Stdout, agent.Line{Text: []byte(`{"type":"item.completed","item":{"id":"z","type":"agent_message","text":"LAST"}}`)})
			r.after()
		})
		last := -1
		for i, e := range events {
			if data, err := json.Marshal(e); err != nil || !utf8.Valid(data) || bytes.ContainsAny(data, "\x00\x1b\n") {
				t.Errorf("event %d: %q, %v", i, data, err)
			}
			if u := e.Usage; u != nil && min(u.Input, u.Output, u.CacheRead, u.CacheWrite) < 0 {
				t.Errorf("event %d: usage %+v", i, u)
			}
			if e.Kind == agent.KindText && e.Text == "LAST" {
				last = i
			}
		}
		if last < 0 {
			t.Error("the last line was not understood")
		}
	})
}

// The file grows while it is read, and a line may be half written.
func TestFileIsReadAsItGrows(t *testing.T) {
	t.Parallel()
	const thread = "01a22c9f-0000-7000-8000-000000000001"
	day := filepath.Join(t.TempDir(), "we[i]rd", "sessions/2026/11/30")
	if err := os.MkdirAll(day, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(day, "rollout-x-"+thread+".jsonl")
	count := func(n string) string {
		return `{"type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":` + n + `,"cached_input_tokens":10,"output_tokens":5}},"rate_limits":null}}` + "\n"
	}
	write := func(text string) {
		file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err == nil {
			_, err = file.WriteString(text)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
	}
	write(count("1000"))
	step := agent.Line{Text: []byte(`{"type":"item.completed","item":{"id":"z","type":"agent_message","text":"x"}}`)}
	events := reading(t, agent.Job{Resume: thread}, strings.TrimSuffix(day, "/sessions/2026/11/30"), func(r *reader) {
		r.line(agent.Stdout, step)
		write(count("1500")[:40])
		r.line(agent.Stdout, step)
		write(count("1500")[40:])
		r.line(agent.Stdout, step)
		write(`{"type":"response_item","payload":{"type":"message","text":"\"token_count\" 7000"}}` + "\n" + count("1700"))
		r.after()
	})
	var got []int64
	for _, e := range events {
		if e.Usage != nil {
			got = append(got, e.Usage.Input)
		}
	}
	if diff := cmp.Diff([]int64{500, 700}, got); diff != "" {
		t.Errorf("usage of the run (-want +got):\n%s", diff)
	}
}

// The file may come late, but is not looked for again and again.
func TestFileIsSoughtSomeTimes(t *testing.T) {
	t.Parallel()
	const thread = "01a22c9f-0000-7000-8000-000000000001"
	for polls, want := range map[int]bool{0: true, maxSearches - 1: true, maxSearches: false} {
		home := t.TempDir()
		r := newRollout(home, thread)
		for range polls {
			r.poll()
		}
		day := filepath.Join(home, "sessions/2026/11/30")
		count := `{"type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":7}}}}` + "\n"
		if err := errors.Join(os.MkdirAll(day, 0o755), os.WriteFile(filepath.Join(day, "rollout-x-"+thread+".jsonl"), []byte(count), 0o644)); err != nil {
			t.Fatal(err)
		}
		if r.poll(); r.counted != want {
			t.Errorf("after %d polls the file is read: %v", polls, r.counted)
		}
	}
}

// What an agent puts in the file's place is neither waited for nor followed.
func TestFileMayBeAnything(t *testing.T) {
	t.Parallel()
	const thread = "01a22c9f-0000-7000-8000-000000000001"
	for name, put := range map[string]func(path string) error{
		"a pipe":            func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a device":          func(path string) error { return os.Symlink("/dev/zero", path) },
		"a folder":          func(path string) error { return os.Mkdir(path, 0o700) },
		"a huge hole":       func(path string) error { return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 1<<24)) },
		"a link to nowhere": func(path string) error { return os.Symlink("nowhere", path) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			day := filepath.Join(t.TempDir(), "sessions/2026/11/30")
			if err := errors.Join(os.MkdirAll(day, 0o755), put(filepath.Join(day, "rollout-x-"+thread+".jsonl"))); err != nil {
				t.Fatal(err)
			}
			reading(t, agent.Job{Resume: thread}, strings.TrimSuffix(day, "/sessions/2026/11/30"), func(r *reader) {
				r.follow()
				if r.rollout.counted {
					t.Error("it said something")
				}
			})
		})
	}
}

func TestFailuresByKindAndWords(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ kind, message, want string }{
		{`"usage_limit_exceeded"`, "", "usage limit"},
		{`"server_overloaded"`, "", "provider busy"},
		{`{"http_connection_failed":{"http_status_code":401}}`, "Connection failed", "other"},
		{`{"http_connection_failed":{"http_status_code":503}}`, "", "provider does not answer"},
		{`{"http_connection_failed":{"http_status_code":null}}`, "", "provider does not answer"},
		{`{"response_too_many_failed_attempts":{"http_status_code":429}}`, "", "provider does not answer"},
		{`{"response_too_many_failed_attempts":{"http_status_code":404}}`, "", "other"},
		{`"context_window_exceeded"`, "", "conversation too long"},
		{`"cyber_policy"`, "You've hit your usage limit", "other"},
		{`{"a":{},"b":{}}`, "You’ve hit your usage limit.", "usage limit"},
		{``, "You've hit your usage limit.", "usage limit"},
		{`null`, "unexpected status 502 Bad Gateway", "provider does not answer"},
		{`null`, "unexpected status 404 Not Found", "other"},
		{`null`, "exceeded retry limit, last status: 408 Request Timeout", "provider does not answer"},
		{``, "", "other"},
	} {
		if got := explain(json.RawMessage(tt.kind), tt.message).Name; got != tt.want {
			t.Errorf("%s %q: %s, want %s", tt.kind, tt.message, got, tt.want)
		}
	}
}

func TestLimitsInWords(t *testing.T) {
	t.Parallel()
	for minutes, want := range map[float64]string{300: "usage limit of 5 hours", 10080: "usage limit of 7 days", 90: "usage limit of 90 minutes", 0: "usage limit", -5: "usage limit", 1e300: "usage limit"} {
		if got := (&window{Minutes: minutes}).String(); got != want {
			t.Errorf("%v minutes: %q, want %q", minutes, got, want)
		}
	}
	at := float64(1796051408)
	for _, tt := range []struct {
		limits limits
		want   float64
	}{
		{limits{Primary: &window{Used: 100, ResetsAt: at}, Secondary: &window{Used: 50, ResetsAt: at + 1000}}, at},
		{limits{Primary: &window{Used: 100, ResetsAt: at}, Secondary: &window{Used: 100, ResetsAt: at + 1000}}, at + 1000},
		{limits{Primary: &window{Used: 99.9, ResetsAt: at}}, 0},
		{limits{Primary: &window{Used: 100, ResetsAt: 1e300}}, 0},
	} {
		got := tt.limits.reset()
		if tt.want == 0 && !got.IsZero() || tt.want != 0 && float64(got.Unix()) != tt.want {
			t.Errorf("%+v: %v, want %v", tt.limits, got, tt.want)
		}
	}
}

// What is remembered of calls and sub-agents is little of each, and of so many.
func TestWhatIsRememberedIsBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 4*maxName)
	var stdout []string
	for i := range maxRunning + 100 {
		stdout = append(stdout,
			fmt.Sprintf(`{"type":"item.started","item":{"id":"i%d","type":"command_execution","command":"%s"}}`, i, long),
			fmt.Sprintf(`{"type":"item.completed","item":{"id":"a%d","type":"collab_tool_call","tool":"spawn_agent","prompt":"%s","status":"completed","agents_states":{"t%d":{"status":"running"},"%s%d":{"status":"running"}}}}`, i, long, i, long, i))
	}
	var r *reader
	reading(t, agent.Job{}, "", func(reading *reader) {
		r = reading
		for _, line := range stdout {
			r.line(agent.Stdout, agent.Line{Text: []byte(line)})
		}
	})
	held := 0
	for _, tool := range r.running {
		held += len(tool.ID) + len(tool.Name) + len(tool.Input)
	}
	for _, a := range r.agents {
		held += len(a.id) + len(a.prompt)
	}
	if len(r.running) != maxRunning || len(r.agents) != maxRunning || held > 2*maxRunning*(2*maxName) {
		t.Errorf("%d calls, %d sub-agents, %d bytes", len(r.running), len(r.agents), held)
	}
}

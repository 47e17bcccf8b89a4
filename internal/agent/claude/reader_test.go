package claude

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/claudomator/claudomator/internal/agent"
)

//go:generate go test -run TestTranscripts -update .

var update = flag.Bool("update", false, "write the golden files")

// recorded says how the recorded runs ended and what they were asked for.
// testdata/NAME.jsonl is what the program printed.
func recorded() map[string]struct {
	end    string // of the process, in shell
	resume string
} {
	type run = struct{ end, resume string }
	return map[string]run{
		"edit": {}, "files": {}, "background": {}, "limit-warning": {}, "denied-tool": {},
		"resume":               {resume: "92f475a9-d225-406c-b227-962aaef523b1"},
		"401":                  {end: "exit 1"},
		"429":                  {end: "exit 1"},
		"500":                  {end: "exit 1"},
		"529":                  {end: "exit 1"},
		"limit-api-key":        {end: "exit 1"},
		"limit-subscription":   {end: "exit 1"},
		"unreachable":          {end: "exit 1"},
		"max-turns":            {end: "exit 1"},
		"too-long":             {end: "exit 1", resume: "204a8ab3-e6db-48aa-a7e1-aea12c7cf041"},
		"unknown-conversation": {end: "exit 1", resume: "11111111-2222-4333-8444-555555555555"},
		"sigint":               {}, // it exits with 0 then
		"sigterm":              {end: "exit 143"},
		"hang":                 {end: stays},
		"background-stopped":   {},
	}
}

// TestTranscripts replays recorded runs through a process and compares events and
// result with NAME.golden.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.jsonl")
	if err != nil || len(files) != len(recorded()) {
		t.Errorf("%d recordings, %d of them known: %v", len(files), len(recorded()), err)
	}
	for name, run := range recorded() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, err := filepath.Abs("testdata/" + name + ".jsonl")
			if err != nil {
				t.Fatal(err)
			}
			result, events := replay(t, name, "cat "+file+"\n"+run.end, run.resume)
			var got bytes.Buffer
			for _, e := range events {
				e.At = time.Time{}
				writeJSON(t, &got, e)
			}
			result.Tail, result.Level, result.OutputBytes, result.Killed = "", "", 0, 0
			writeJSON(t, &got, result)
			text := strings.ReplaceAll(got.String(), `"at":"0001-01-01T00:00:00Z",`, "")
			golden := strings.TrimSuffix(file, ".jsonl") + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), text); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// replay plays a recorded run. One that hangs is given longer where the program was
// ended before it had said what was recorded.
func replay(t *testing.T, name, text, resume string) (result agent.Result, events []agent.Event) {
	t.Helper()
	const recorded = 500 * time.Millisecond
	for silence := recorded; ; silence *= 3 {
		result, events = play(t, text, func(_ *Agent, job *agent.Job) {
			job.Dir, job.Resume = t.TempDir(), resume
			if name == "hang" {
				job.Limits.Silence = silence
			}
		})
		if name != "hang" || len(events) > 1 || silence > time.Minute {
			result.Error = strings.Replace(result.Error, silence.String(), recorded.String(), 1)
			return result, events
		}
	}
}

func writeJSON(t *testing.T, b *bytes.Buffer, v any) {
	t.Helper()
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
}

var errNoProcess = errors.New("no process is needed")

// reading gives lines to a reader of a run that starts no process.
func reading(t *testing.T, runner *agent.Runner, job agent.Job, feed func(*reader)) []agent.Event {
	t.Helper()
	job.ID = "reading"
	var events []agent.Event
	_, err := runner.Run(t.Context(), job, agent.SinkFunc(func(e agent.Event) { events = append(events, e) }), func(s *agent.Session) (agent.Program, error) {
		r := newReader(s, job, time.Hour)
		feed(r)
		r.after()
		return agent.Program{}, errNoProcess
	})
	if !errors.Is(err, errNoProcess) {
		t.Fatal(err)
	}
	return events
}

// Streams as they should not be (B38): what comes after is read all the same.
func TestMonsters(t *testing.T) {
	t.Parallel()
	const result = `echo '{"type":"result","subtype":"success","is_error":false,"result":"done"}'`
	for _, tt := range []struct {
		name, text string
		kind       agent.Kind
		say        string
	}{
		{"a line of 50 MB", `printf '{"type":"user","message":{"content":[{"type":"tool_result","content":"'; yes | tr -d '\n' | head -c 50000000; echo '"}]}}'`, agent.KindRaw, `{"type":"user"`},
		{"half a line", `echo '{"type":"assistant","message":{"content":[{"type":"text","te'`, agent.KindRaw, `{"type":"assistant"`},
		{"plain text", `echo 'npm warn something'`, agent.KindLog, "npm warn something"},
		{"not UTF-8", `printf '{"type":"assistant","message":{"content":[{"type":"text","text":"\377\376!"}]}}\n'`, agent.KindText, "\uFFFD\uFFFD!"},
		{"surrogates alone", `echo '{"type":"assistant","message":{"content":[{"type":"text","text":"\ud800x\udc00"}]}}'`, agent.KindText, "\uFFFDx\uFFFD"},
		{"NUL", `printf '%s\n' '{"type":"assistant","message":{"content":[{"type":"text","text":"a\u0000b"}]}}'`, agent.KindText, "ab"},
		{"terminal sequences", `printf '%s\n' '{"type":"assistant","message":{"content":[{"type":"text","text":"\u001b[31mred\u001b]0;title\u0007"}]}}'`, agent.KindText, "red"},
		{"a type of the future", `echo '{"type":"telepathy","text":"x"}'`, agent.KindRaw, `{"type":"telepathy","text":"x"}`},
		{"fields of other types", `echo '{"type":"assistant","message":7}'`, agent.KindRaw, `{"type":"assistant","message":7}`},
		{"content in one string", `echo '{"type":"user","message":{"content":"hello"}}'`, agent.KindLog, "hello"},
		{"thinking", `echo '{"type":"assistant","message":{"content":[{"type":"thinking","thinking":"hm","signature":"x"}]}}'`, agent.KindThought, "hm"},
		{"compacted", `echo '{"type":"system","subtype":"compact_boundary","compact_metadata":{"trigger":"auto","pre_tokens":21551,"post_tokens":2705}}'`, agent.KindLog, "the conversation was compacted from 21551 to 2705 tokens"},
		{"a subagent speaks", `echo '{"type":"assistant","parent_tool_use_id":"t","message":{"content":[{"type":"text","text":"found it"}]}}'`, agent.KindThought, "found it"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, events := play(t, tt.text+"\n"+result)
			if got.Outcome != agent.Success || len(events) != 2 {
				t.Fatalf("%s (%s), %d events", got.Outcome, got.Error, len(events))
			}
			if e := events[0]; e.Kind != tt.kind || !strings.HasPrefix(e.Text, tt.say) || len(e.Text) > rawLimit {
				t.Errorf("%s %.200q", e.Kind, e.Text)
			}
		})
	}
	last, events := play(t, `printf '{"type":"result","subtype":"success","is_error":false}'`) // no line end
	if last.Outcome != agent.Success || len(events) != 1 {
		t.Errorf("a last line without end: %+v", last)
	}
}

func TestEndingsReachEachRow(t *testing.T) {
	t.Parallel()
	reached := map[string]bool{}
	for _, tt := range []struct {
		line, want string
	}{
		{`{"subtype":"success","is_error":true,"api_error_status":429,"api_error":"usage_limit_reached"}`, "usage limit"},
		{`{"subtype":"success","is_error":true,"api_error_status":429}`, "too many requests"},
		{`{"subtype":"success","is_error":true,"api_error_status":529}`, "provider in trouble"},
		{`{"subtype":"success","is_error":true,"api_error_status":500}`, "provider in trouble"},
		{`{"subtype":"success","is_error":true,"api_error_status":null,"api_error":"connection_failed"}`, "provider not reached"},
		{`{"subtype":"error_during_execution","is_error":true,"errors":["No conversation found with session ID: x"]}`, "unknown conversation"},
		{`{"subtype":"success","is_error":true,"api_error_status":400,"terminal_reason":"prompt_too_long"}`, "prompt too long"},
		{`{"subtype":"error_during_execution","is_error":true,"terminal_reason":"aborted_tools"}`, "interrupted"},
		{`{"subtype":"error_during_execution","is_error":true,"terminal_reason":"aborted_streaming"}`, "interrupted"},
		{`{"subtype":"success","is_error":false,"terminal_reason":"completed","api_error_status":null}`, "completed"},
		{`{"subtype":"success","is_error":false}`, "completed"},
		{`{"subtype":"success","is_error":true,"api_error_status":401}`, "failed"},
		{`{"subtype":"success","is_error":true,"api_error_status":400}`, "failed"},
		{`{"subtype":"error_max_turns","is_error":true,"terminal_reason":"max_turns"}`, "failed"},
		{`{"subtype":"error_of_the_future","is_error":false}`, "failed"},
		{`{}`, "failed"},
	} {
		var r result
		if err := json.Unmarshal([]byte(tt.line), &r); err != nil {
			t.Fatal(err)
		}
		row := r.ending()
		reached[row.Name] = true
		if row.Name != tt.want {
			t.Errorf("%s: %s, want %s", tt.line, row.Name, tt.want)
		}
	}
	for _, row := range Endings() {
		if !reached[row.Name] {
			t.Errorf("no case for row %q", row.Name)
		}
	}
}

// A resumed conversation's totals hold what it had cost before.
func TestCostIsOfThisRun(t *testing.T) {
	t.Parallel()
	turn := func(total, since float64) []byte {
		return fmt.Appendf(nil, `{"type":"result","subtype":"success","is_error":false,"total_cost_usd":%v,"usage":{"input_tokens":7},"model_usage_since_last_result":{"a":{"costUSD":%v,"inputTokens":10},"b":{"costUSD":0.5,"outputTokens":2,"cacheReadInputTokens":3}}}`, total, since)
	}
	runner, _ := machine(t)
	events := reading(t, runner, agent.Job{}, func(r *reader) {
		r.line(agent.Stdout, agent.Line{Text: turn(11.5, 1)})
		r.line(agent.Stdout, agent.Line{Text: turn(14, 2)})
	})
	last := events[len(events)-1]
	if last.CostUSD != 4 || *last.Usage != (agent.Usage{Input: 20, Output: 4, CacheRead: 6}) {
		t.Errorf("%+v, %+v", last, last.Usage)
	}
	events = reading(t, runner, agent.Job{}, func(r *reader) {
		r.line(agent.Stdout, agent.Line{Text: []byte(`{"type":"result","subtype":"success","total_cost_usd":3,"usage":{"input_tokens":7}}`)})
	})
	if events[0].CostUSD != 3 || events[0].Usage.Input != 7 {
		t.Errorf("%+v", events[0])
	}
}

// What is remembered of calls and of work in the background is little of each, and
// of so many.
func TestWhatIsRememberedIsBounded(t *testing.T) {
	t.Parallel()
	runner, _ := machine(t)
	long := strings.Repeat("x", 3*nameLimit)
	reading(t, runner, agent.Job{}, func(r *reader) {
		for i := range 2 * openCalls {
			r.line(agent.Stdout, agent.Line{Text: fmt.Appendf(nil, `{"type":"assistant","message":{"content":[{"type":"tool_use","id":"c%d","name":"Bash","input":{"command":"%s","other":"%s"}},{"type":"tool_use","id":"%s%d","name":"Bash","input":{}}]}}`, i, long, long, long, i)})
		}
		held := 0
		for id, call := range r.calls {
			held += len(id) + len(call.Name) + len(call.Input)
		}
		if len(r.calls) != openCalls || held > 2*nameLimit*openCalls {
			t.Errorf("%d calls, %d bytes", len(r.calls), held)
		}
		for i := range 2 * openCalls {
			for _, task := range []string{fmt.Sprint("b", i), fmt.Sprint(long, i)} {
				r.line(agent.Stdout, agent.Line{Text: fmt.Appendf(nil, `{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"c%d","content":"ok"}]},"tool_use_result":{"backgroundTaskId":"%s"}}`, i, task)})
			}
		}
		held = 0
		for id, name := range r.work {
			held += len(id) + len(name)
		}
		if len(r.calls) != 0 || len(r.work) != openCalls || held > 2*nameLimit*openCalls {
			t.Errorf("%d calls, %d tasks, %d bytes", len(r.calls), len(r.work), held)
		}
		if !strings.HasPrefix(r.work["b0"], "xxx") || r.work["b1999"] != "" {
			t.Errorf("work %.20q, %.20q", r.work["b0"], r.work["b1999"])
		}
	})
}

// A refused request is the usage limit where that was told before.
func TestUsageLimitInOtherWords(t *testing.T) {
	t.Parallel()
	const (
		told  = `echo '{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1796032132,"rateLimitType":"five_hour"}}'; `
		says  = `echo '{"type":"assistant","error":"rate_limit","message":{"model":"<synthetic>","content":[{"type":"text","text":"limit"}]}}'; `
		goes  = `echo '{"type":"assistant","message":{"content":[{"type":"text","text":"on I go"}]}}'; `
		ended = `echo '{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"limit"}'; exit 1`
	)
	for text, want := range map[string]agent.Outcome{
		told + ended: agent.Limited, told + says + ended: agent.Limited, ended: agent.Overloaded, told + goes + ended: agent.Overloaded, told + `exit 1`: agent.Limited, told + goes + `exit 1`: agent.Failed,
	} {
		got, _ := play(t, text)
		if got.Outcome != want || (want == agent.Limited) != (got.Limit != nil && got.Limit.ResetAt.Unix() == 1796032132) && want != agent.Failed {
			t.Errorf("%s\n%s, limit %+v, want %s", text, got.Outcome, got.Limit, want)
		}
	}
}

func TestToolsOutOfReachAreAWarning(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]int{"connected": 0, "pending": 0, "failed": 1} {
		got, _ := play(t, `echo '{"type":"system","subtype":"init","mcp_servers":[{"name":"claudomator","status":"`+status+`"}]}'; echo '{"type":"result","subtype":"success","is_error":false}'`)
		if len(got.Warnings) != want {
			t.Errorf("%s: %q", status, got.Warnings)
		}
	}
}

func TestOldVersionsAreAWarning(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]int{"2.1.332": 0, "": 0, "nightly": 0, "2.1.0": 1} {
		got, _ := play(t, `echo '{"type":"system","subtype":"init","claude_code_version":"`+version+`"}'; echo '{"type":"result","subtype":"success","is_error":false}'`)
		if len(got.Warnings) != want {
			t.Errorf("%q: %q", version, got.Warnings)
		}
	}
}

func TestLongDiffsAreCut(t *testing.T) {
	t.Parallel()
	edits := (&toolAnswer{File: "/w/a", Kind: "create", Content: strings.Repeat("line\n", 100_000)}).edits(agent.Tool{Name: "Write"}, "/w")
	if len(edits) != 1 || edits[0].Path != "a" || len(edits[0].Diff) > diffLimit+20 || !strings.HasSuffix(edits[0].Diff, "… (cut)\n") {
		t.Errorf("%d edits, %.100q", len(edits), edits[0].Diff)
	}
	outside := (&toolAnswer{}).edits(agent.Tool{Name: "Edit", Input: `{"file_path":"/etc/hosts"}`}, "/w")
	if len(outside) != 1 || outside[0].Path != "/etc/hosts" {
		t.Errorf("%+v", outside)
	}
}

func FuzzLine(f *testing.F) {
	files, err := filepath.Glob("testdata/*.jsonl")
	if err != nil || len(files) == 0 {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, "")
		f.Add(data, "11111111-2222-4333-8444-555555555555")
	}
	runner, _ := machine(f)
	f.Fuzz(func(t *testing.T, stdout []byte, resume string) {
		events := reading(t, runner, agent.Job{Dir: "/w", Resume: resume}, func(r *reader) {
			lines := agent.NewLines(agent.MaxLine, func(l agent.Line) { r.line(agent.Stdout, l) })
			_, _ = lines.Write(stdout)
			_ = lines.Close()
			r.line(agent.Stdout, agent.Line{Text: []byte(`{"type":"assistant","message":{"content":[{"type":"text","text":"LAST"}]}}`)})
		})
		read := false
		for i, e := range events {
			if data, err := json.Marshal(e); err != nil || !utf8.Valid(data) || bytes.ContainsAny(data, "\x00\x1b\n") {
				t.Errorf("event %d: %q, %v", i, data, err)
			}
			read = read || e.Kind == agent.KindText && e.Text == "LAST"
		}
		if !read {
			t.Error("the last line was not understood")
		}
	})
}

package agent

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/claudomator/claudomator/internal/sandbox"
)

// protocol is an adapter whose program reports by lines of JSON, as most real
// ones do.
type protocol struct {
	End    End
	Error  string
	Usage  *Usage
	Cost   float64
	Ask    string
	Limit  *Limit
	Say    string
	Handle string
}

func readProtocol(s *Session) func(Stream, Line) {
	return func(stream Stream, line Line) {
		var p protocol
		if stream == Stderr || json.Unmarshal(line.Text, &p) != nil {
			s.LogLine(stream, line)
			return
		}
		if p.Say != "" {
			s.Emit(Event{Kind: KindText, Text: p.Say})
		}
		if p.Usage != nil {
			s.Emit(Event{Kind: KindUsage, Usage: p.Usage, CostUSD: p.Cost})
		}
		if p.Ask != "" {
			s.Emit(Event{Kind: KindQuestion, Question: &Question{Text: p.Ask, Options: []string{"yes", "no\x00"}}})
		}
		if p.Limit != nil {
			s.Emit(Event{Kind: KindLimit, Limit: p.Limit})
		}
		if p.Handle != "" {
			s.SetHandle(p.Handle)
		}
		if p.End != "" {
			s.End(p.End, p.Error)
		}
	}
}

// speak runs a shell text as a program of that protocol.
func speak(t *testing.T, limits Limits, text string) (Result, []Event) {
	t.Helper()
	return runProgram(t, limits, func(s *Session) (Program, error) {
		return Program{Argv: []string{"sh", "-c", text}, Line: readProtocol(s)}, nil
	})
}

func runProgram(t *testing.T, limits Limits, adapt func(*Session) (Program, error)) (Result, []Event) {
	t.Helper()
	var events []Event
	result, err := testRunner(t).Run(t.Context(), testJob(t, limits), SinkFunc(func(e Event) { events = append(events, e) }), adapt)
	if err != nil {
		t.Fatal(err)
	}
	return result, events
}

func testRunner(t *testing.T) *Runner {
	t.Helper()
	host, err := sandbox.Open(sandbox.Options{StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	return NewRunner(RunnerOptions{Host: host, Environ: os.Environ(), Now: time.Now})
}

func testJob(t *testing.T, limits Limits) Job {
	t.Helper()
	limits.StopGrace = cmp.Or(limits.StopGrace, 300*time.Millisecond)
	return Job{ID: strings.ReplaceAll(t.Name(), "/", "-") + "-" + rand.Text(), Dir: t.TempDir(), Limits: limits}
}

func TestReports(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text string
		limits     Limits
		want       Outcome
		rule       string
		err        string
	}{
		{"success", `echo '{"End":"success"}'`, Limits{}, Success, "reported success", ""},
		{"exit 0 says nothing", `echo hello`, Limits{}, Failed, "exit 0 without a report", "exit 0 without a report: hello"},
		{"half a report", `printf '{"End":"succ'`, Limits{}, Failed, "exit 0 without a report", ""},
		{"report without line end", `printf '{"End":"success"}'`, Limits{}, Success, "reported success", ""},
		{"failure and exit 0", `echo '{"End":"failure","Error":"not \u0000permitted"}'`, Limits{}, Failed, "reported failure", "not permitted"},
		{"success and exit 1", `echo '{"End":"success"}'; exit 1`, Limits{}, Success, "reported success", ""},
		{"success and killed", `echo '{"End":"success"}'; kill -9 $$`, Limits{}, Success, "reported success", ""},
		{"first report stands", `echo '{"End":"failure","Error":"e"}'; echo '{"End":"success"}'`, Limits{}, Failed, "reported failure", "e"},
		{"success and stays", `echo '{"End":"success"}'; sleep 3600`, Limits{Linger: 100 * time.Millisecond}, Success, "reported success", ""},
		{"monster before the report", `yes | tr -d '\n' | head -c 50000000; echo; echo '{"End":"success"}'`, Limits{}, Success, "reported success", ""},
		{"flood before the report", `yes | head -c 4000000; echo '{"End":"success"}'`, Limits{Transcript: 10_000}, Success, "reported success", ""},
		{"question", `echo '{"Ask":"which?"}'; sleep 3600`, Limits{Linger: 100 * time.Millisecond}, Asked, "asked", ""},
		{"usage limit", `echo '{"Limit":{"kind":"usage","text":"until noon"}}'; exit 1`, Limits{}, Limited, "usage limit", "until noon"},
		{"limit only near", `echo '{"Limit":{"kind":"warning"}}'; exit 1`, Limits{}, Failed, "exit status without a report", ""},
		{"overload overcome", `echo '{"Limit":{"kind":"overload"}}'; echo '{"Say":"on I go"}'; exit 1`, Limits{}, Failed, "exit status without a report", ""},
		{"budget", `echo '{"Usage":{"input":1},"Cost":2.5}'; sleep 3600`, Limits{BudgetUSD: 2}, BudgetExceeded, "budget spent", "reported cost of 2.50 USD, budget 2.00 USD"},
		{"budget told at the end", `echo '{"Usage":{"input":1},"Cost":2.5}'; echo '{"End":"failure"}'; exit 1`, Limits{BudgetUSD: 2}, BudgetExceeded, "budget spent", "reported cost of 2.50 USD, budget 2.00 USD"},
		{"budget kept", `echo '{"Usage":{"input":1},"Cost":2}{'; echo '{"Usage":{"input":1},"Cost":2}'; echo '{"End":"success"}'`, Limits{BudgetUSD: 2}, Success, "reported success", ""},
		{"silence", `sleep 3600`, Limits{Silence: 100 * time.Millisecond}, Silenced, "silence limit", "no output for 100ms"},
		{"time", `sleep 3600`, Limits{Wall: 100 * time.Millisecond}, TimedOut, "time limit", "not finished within 100ms"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			result, _ := speak(t, tt.limits, tt.text)
			if result.Outcome != tt.want || result.Rule != tt.rule || tt.err != "" && result.Error != tt.err {
				t.Errorf("%s by %q: %q; want %s by %q: %q", result.Outcome, result.Rule, result.Error, tt.want, tt.rule, tt.err)
			}
		})
	}
}

func TestOverloadForEver(t *testing.T) {
	t.Parallel()
	inTime(t, func(silence time.Duration) (reached bool) {
		result, events := speak(t, Limits{Silence: silence}, `echo '{"Limit":{"kind":"overload"}}'; sleep 3600`)
		if len(events) == 0 {
			return false
		}
		if result.Outcome != Overloaded || result.Rule != "overload" || result.Error != "overload" {
			t.Errorf("%s by %q: %q", result.Outcome, result.Rule, result.Error)
		}
		return true
	})
}

func TestResultHoldsWhatWasReported(t *testing.T) {
	t.Parallel()
	result, events := speak(t, Limits{}, `
echo '{"Usage":{"input":1,"output":2},"Cost":0.5,"Handle":"h1"}'
echo '{"Usage":{"input":10,"output":20,"cache_read":3,"cache_write":4},"Cost":0.75,"Handle":"h2"}'
echo '{"Limit":{"kind":"warning","reset_at":"2027-01-02T03:04:05Z","text":"80 %"}}'
echo '{"Ask":"which?"}'`)
	if result.Usage != (Usage{10, 20, 3, 4}) || result.CostUSD != 0.75 || result.Handle != "h2" {
		t.Errorf("usage %+v, cost %v, handle %q", result.Usage, result.CostUSD, result.Handle)
	}
	if result.Question == nil || result.Question.Text != "which?" || result.Question.Options[1] != "no" {
		t.Errorf("question %+v", result.Question)
	}
	if result.Limit == nil || result.Limit.ResetAt.Year() != 2027 || result.Outcome != Asked {
		t.Errorf("limit %+v, outcome %s", result.Limit, result.Outcome)
	}
	if len(events) != 4 {
		t.Errorf("%d events", len(events))
	}
}

// Numbers and times that a program makes up can be added up and stored.
func TestReportsThatCannotBe(t *testing.T) {
	t.Parallel()
	for name, report := range map[string]struct {
		line string
		cost float64
	}{
		"huge":     {`{"Usage":{"input":9223372036854775807,"output":-5},"Cost":1e308}`, maxCost},
		"negative": {`{"Usage":{"input":9223372036854775807,"cache_read":-1},"Cost":-100}`, 0},
		"usual":    {`{"Usage":{"input":9223372036854775807,"cache_write":-1},"Cost":0.0625}`, 0.0625},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result, events := speak(t, Limits{}, `
echo '{"Limit":{"kind":"usage","reset_at":"9999-12-31T23:59:59-10:00","text":"late"}}'
echo '`+report.line+`'
echo '{"End":"success"}'`)
			if result.CostUSD != report.cost || result.Usage != (Usage{Input: maxTokens}) {
				t.Errorf("cost %v, usage %+v", result.CostUSD, result.Usage)
			}
			if result.Limit == nil || !result.Limit.ResetAt.IsZero() {
				t.Errorf("limit %+v", result.Limit)
			}
			if _, err := json.Marshal(events); err != nil || len(events) != 2 {
				t.Errorf("%d events: %v", len(events), err)
			}
		})
	}
	s := newSession(time.Now, Limits{Transcript: 1 << 20}, SinkFunc(func(e Event) {
		if _, err := json.Marshal(e); err != nil {
			t.Error(err)
		}
	}))
	for _, e := range []Event{
		{Kind: KindUsage, CostUSD: math.NaN()}, {Kind: KindUsage, CostUSD: math.Inf(1)}, {Kind: KindUsage, CostUSD: math.Inf(-1)},
		{Kind: KindLimit, Limit: &Limit{ResetAt: time.Unix(1<<40, 0)}}, {Kind: KindLimit, Limit: &Limit{ResetAt: time.Unix(-1<<40, 0)}},
	} {
		s.Emit(e)
	}
}

// A text without end is not stored with the task as why it failed.
func TestWordsOfAFailureAreCut(t *testing.T) {
	t.Parallel()
	result, _ := speak(t, Limits{}, `printf '{"End":"failure","Error":"'; yes é | tr -d '\n' | head -c 500000; echo '"}'`)
	if n := len(result.Error); result.Outcome != Failed || n < maxError/2 || n > maxError+len("…") || !utf8.ValidString(result.Error) {
		t.Errorf("%s, %d bytes", result.Outcome, n)
	}
}

func TestTranscriptLimitSparesWhatCounts(t *testing.T) {
	t.Parallel()
	result, events := speak(t, Limits{Transcript: 5000}, `
yes | head -n 1000
echo '{"Usage":{"input":7},"Cost":1}'
yes | head -n 1000
echo '{"Say":"not recorded"}'
echo '{"End":"success"}'`)
	notices, usage := 0, 0
	for _, e := range events {
		switch {
		case e.Stream == Notice:
			notices++
		case e.Kind == KindUsage:
			usage++
		case e.Text == "not recorded":
			t.Error("an event slipped in behind the gap")
		}
	}
	if notices != 2 || usage != 1 || result.Usage.Input != 7 || len(events) > 60 {
		t.Errorf("%d events, %d notices, %d usage; %+v", len(events), notices, usage, result.Usage)
	}
	if last := events[len(events)-1].Text; int64(len(events)-3)+result.Dropped != 2001 || !strings.Contains(last, fmt.Sprint(result.Dropped)) {
		t.Errorf("%d events, %d left out, notice %.80q", len(events), result.Dropped, last)
	}
}

func TestAdapterThatCannotPrepare(t *testing.T) {
	t.Parallel()
	broken := errors.New("no config")
	result, err := testRunner(t).Run(t.Context(), testJob(t, Limits{}), SinkFunc(func(Event) {}),
		func(*Session) (Program, error) { return Program{}, broken })
	if !errors.Is(err, broken) || result.Outcome != Failed || result.Facts.Exit != ExitNever || result.AgentFault {
		t.Errorf("err %v, result %+v", err, result)
	}
}

func TestProgramOfItsOwnProtocol(t *testing.T) {
	t.Parallel()
	var got bytes.Buffer
	more, w := io.Pipe()
	result, events := runProgram(t, Limits{}, func(s *Session) (Program, error) {
		return Program{
			Argv: []string{"sh", "-c", `read a; echo "got $a"; echo log >&2; cat >/dev/null`},
			In:   io.MultiReader(strings.NewReader("hello\n"), more),
			Stdout: writerFunc(func(p []byte) (int, error) {
				s.End(EndSuccess, "")
				_ = w.Close()
				return got.Write(p)
			}),
		}, nil
	})
	if got.String() != "got hello\n" || result.Outcome != Success || len(events) != 1 || events[0].Text != "log" {
		t.Errorf("stdout %q, events %+v, result %+v", got.String(), events, result)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestStopStepsInOrder(t *testing.T) {
	t.Parallel()
	inTime(t, func(wall time.Duration) (reached bool) {
		ready := filepath.Join(t.TempDir(), "ready")
		result, events := runProgram(t, Limits{Wall: wall}, func(*Session) (Program, error) {
			return Program{
				Argv: []string{"sh", "-c", `trap 'echo int' INT; trap 'echo term; exit 0' TERM; echo >"$READY"; while :; do sleep 0.05; done`},
				Env:  []string{"READY=" + ready},
				Stop: []sandbox.StopStep{{Signal: syscall.SIGINT}, {Signal: syscall.SIGTERM, Grace: time.Minute}},
			}, nil
		})
		if _, err := os.Stat(ready); err != nil {
			return false
		}
		if result.Outcome != TimedOut || result.Facts.Exit != ExitZero || len(events) != 2 || events[0].Text != "int" || events[1].Text != "term" {
			t.Errorf("result %+v, events %+v", result, events)
		}
		return true
	})
}

// inTime tries with a time limit, and with a longer one where the program did not even
// reach in it what the test is about.
func inTime(t *testing.T, try func(limit time.Duration) (reached bool)) {
	t.Helper()
	for limit := 200 * time.Millisecond; !try(limit); limit *= 3 {
		if limit > time.Minute {
			t.Fatalf("the program does not get that far in %s", limit)
		}
	}
}

func TestDeadlineOfTheCallerIsATimeout(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	result, err := testRunner(t).Run(ctx, testJob(t, Limits{}), SinkFunc(func(Event) {}),
		func(*Session) (Program, error) { return Program{Argv: []string{"sleep", "3600"}}, nil })
	if err != nil || result.Outcome != TimedOut {
		t.Errorf("%v, %+v", err, result)
	}
}

func TestEventIsOneLine(t *testing.T) {
	t.Parallel()
	e := Event{Kind: KindTool, Text: "a\nb\u2028", Tool: &Tool{Name: "n", Input: `{"x":1}`}, Limit: &Limit{Kind: LimitUsage}}
	line, err := json.Marshal(e)
	if err != nil || bytes.ContainsAny(line, "\n") || bytes.Contains(line, []byte("reset_at")) {
		t.Errorf("%s, %v", line, err)
	}
	var back Event
	if err := json.Unmarshal(line, &back); err != nil || back.Tool.Input != e.Tool.Input || back.Text != e.Text {
		t.Errorf("%+v, %v", back, err)
	}
}

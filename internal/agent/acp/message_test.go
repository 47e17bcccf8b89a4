package acp

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/claudomator/claudomator/internal/agent"
)

func TestRead(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		line   string
		cut    int64
		method string
		id     string
		result string
		rest   string
	}{
		{line: ` {"jsonrpc":"2.0","id":4,"result":{"stopReason":"end_turn"}} `, id: "4", result: `{"stopReason":"end_turn"}`},
		{line: `{"id":"a","method":"m","params":{}}`, id: `"a"`, method: "m"},
		{line: `noise {"jsonrpc":"2.0","method":"m"}`, method: "m", rest: "noise "},
		{line: `{"half": {"jsonrpc":"2.0","method":"m"}`, method: "m", rest: `{"half": `},
		{line: `{"jsonrpc":"2.0","id":4,"result":{"stopReason":"end_turn"`, rest: `{"jsonrpc":"2.0","id":4,"result":{"stopReason":"end_turn"`},
		{line: `{"jsonrpc":"2.0","id":null,"result":1}`, rest: `{"jsonrpc":"2.0","id":null,"result":1}`},
		{line: `{"jsonrpc":"2.0","id":4}`, rest: `{"jsonrpc":"2.0","id":4}`},
		{line: `[]`, rest: `[]`},
		{line: ``},
		// Cut to size: what was whole before the cut is known.
		{line: `{"jsonrpc":"2.0","id":4,"result":{"stopReason":"end_turn","text":"xxxx`, cut: 9, id: "4", result: `{"stopReason":"end_turn"}`},
		{line: `{"jsonrpc":"2.0","id":9,"method":"session/request_permission","params":{"options":[{"optionId":"y"}],"x":"`, cut: 9, id: "9", method: "session/request_permission"},
		{line: `{"jsonrpc":"2.0","id":4,"result":{"text":"xxxx`, cut: 9, id: "4", result: `{}`},
		{line: strings.Repeat("[", 5000), cut: 9, rest: strings.Repeat("[", 5000)},
		{line: `{"a":` + strings.Repeat(`{"a":`, 5000), cut: 9, rest: `{"a":` + strings.Repeat(`{"a":`, 5000)},
	} {
		m, rest := read(agent.Line{Text: []byte(tt.line), Cut: tt.cut})
		if m == nil {
			m = &message{}
		}
		if m.Method != tt.method || string(m.ID) != tt.id || string(m.Result) != tt.result || string(rest) != tt.rest {
			t.Errorf("%.80s: %q %s %s, rest %.40q", tt.line, m.Method, m.ID, m.Result, rest)
		}
	}
}

func TestFailure(t *testing.T) {
	t.Parallel()
	reset := time.Date(2026, 11, 30, 9, 11, 27, 0, time.UTC)
	for _, tt := range []struct {
		err   string
		limit agent.LimitKind
		text  string
		reset time.Time
	}{
		{err: `{"code":-32603,"message":"Internal error: API Error: 500","data":{"errorKind":"server_error"}}`, limit: agent.LimitLoad, text: "API Error: 500"},
		{err: `{"code":-32603,"message":"Internal error","data":{"codexErrorInfo":"usageLimitExceeded","message":"used up"}}`, limit: agent.LimitUsage, text: "used up"},
		{err: `{"code":-32603,"message":"Internal error","data":{"codexErrorInfo":{"httpConnectionFailed":{"httpStatusCode":503}}}}`, limit: agent.LimitLoad, text: "httpConnectionFailed"},
		{err: `{"code":429,"message":"You have exhausted your daily quota."}`, limit: agent.LimitUsage, text: "You have exhausted your daily quota. (code 429)"},
		{err: `{"code":"429","message":"slow down"}`, limit: agent.LimitLoad, text: "slow down (code 429)"},
		{err: `{"code":-32603,"message":"x","data":{"errorKind":"rate_limit","resetsAt":1796029887}}`, limit: agent.LimitUsage, text: "x", reset: reset},
		{err: `{"code":-32000,"message":"Authentication required"}`, text: "Authentication required (code -32000)"},
		{err: `{"code":-32602,"message":"Invalid params","data":"no such mode"}`, text: "Invalid params: no such mode (code -32602)"},
		{err: `{"message":7,"data":[1]}`, text: "the agent reports an error without a word"},
		{err: `"broken"`, text: "the agent reports an error without a word"},
	} {
		f := (&message{Error: json.RawMessage(tt.err)}).failure()
		if f == nil || f.limit() != tt.limit || f.text() != tt.text || !f.resetAt.Equal(tt.reset) {
			t.Errorf("%s: %+v, %q, %q", tt.err, f, f.limit(), f.text())
		}
	}
	if (&message{Error: json.RawMessage("null")}).failure() != nil {
		t.Error("null is an error")
	}
}

// TestOutbox: a reader waits for what is sent, gets all of it, and is let go.
func TestOutbox(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOutbox()
		got, done := "", make(chan struct{})
		go func() {
			defer close(done)
			p := make([]byte, 3)
			for {
				n, err := o.Read(p)
				if got += string(p[:n]); err != nil {
					return
				}
			}
		}()
		synctest.Wait()
		o.send([]byte("hello\n"), false)
		synctest.Wait()
		if got != "hello\n" {
			t.Errorf("got %q", got)
		}
		o.finish()
		o.send([]byte("late"), false)
		<-done
		if got != "hello\n" {
			t.Errorf("got %q", got)
		}
	})
	o := newOutbox()
	if !o.send(make([]byte, 3<<20), false) || o.send([]byte("answer"), true) {
		t.Error("a long prompt is sent, and answers behind it are bounded")
	}
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	if n, err := o.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("read %d, %v after the end", n, err)
	}
}

// FuzzLine holds the reader of foreign lines to its promises: it never panics, what
// it sends is JSON, one message a line, and it takes nothing for a success but the
// answer to the prompt.
func FuzzLine(f *testing.F) {
	files, err := filepath.Glob("testdata/*.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			f.Add(line, int64(0))
		}
	}
	f.Add(`{"jsonrpc":"2.0","id":9,"method":"session/request_permission","params":{"options":[{"optionId":"y","kind":"allow_once"}]}}`, int64(7))
	f.Add(`{"jsonrpc":"2.0","id":4,"result":{"stopReason":"end_turn"}}`, int64(0))
	f.Add("\xff{\"jsonrpc\"", int64(1))
	f.Fuzz(func(t *testing.T, line string, cut int64) {
		var talk *talk
		sink := agent.SinkFunc(func(e agent.Event) {
			if !utf8.ValidString(e.Text) {
				t.Errorf("text %q", e.Text)
			}
		})
		runner := agent.NewRunner(agent.RunnerOptions{Now: time.Now})
		job := agent.Job{Dir: "/w", Model: "m", Prompt: "p"}
		result, err := runner.Run(t.Context(), job, sink, func(s *agent.Session) (agent.Program, error) {
			talk = newTalk(s, job)
			talk.start()
			for _, answer := range []string{
				`{"id":1,"result":{"protocolVersion":1,"agentCapabilities":{"mcpCapabilities":{"http":true}}}}`, line, `{"id":2,"result":{"sessionId":"s"}}`, line, line,
			} {
				talk.line(agent.Line{Text: []byte(answer), Cut: max(0, cut)})
			}
			talk.over()
			return agent.Program{}, errors.New("nothing is run")
		})
		if err == nil || result.Facts.End == agent.EndSuccess && !strings.Contains(line, "end_turn") && !strings.Contains(line, `\u`) {
			t.Errorf("%v, %q from %q", err, result.Facts.End, line)
		}
		for sent := range strings.Lines(string(talk.out.waiting)) {
			if !json.Valid([]byte(sent)) {
				t.Errorf("sent %q", sent)
			}
		}
	})
}

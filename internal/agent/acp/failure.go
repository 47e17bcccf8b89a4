package acp

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claudomator/claudomator/internal/agent"
)

// The codes of errors that mean something here.
const (
	codeNoMethod = "-32601"
	codeInternal = "-32603"
	codeAuth     = "-32000"
	codeBusy     = "429" // as in HTTP
)

// failure is an error as the program reports it: as the answer to a request, or
// in an update on the way.
type failure struct {
	code    string
	message string
	kind    string // as the program names it
	detail  string
	resetAt time.Time
}

// failure reads an error answer; nil when it is none.
func (m *message) failure() *failure {
	if !given(m.Error) {
		return nil
	}
	var r struct {
		Code    json.RawMessage `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	}
	if lenient(m.Error, &r) != nil {
		return &failure{}
	}
	f := &failure{code: strings.Trim(string(r.Code), `"`), message: r.Message}
	var data errorData
	if given(r.Data) && lenient(r.Data, &data) == nil {
		f.kind, f.resetAt = data.kindName(), agent.Unix(data.ResetsAt)
		f.detail = cmp.Or(data.Message, data.Details, data.Error)
	}
	var text string
	if given(r.Data) && json.Unmarshal(r.Data, &text) == nil {
		f.detail = text
	}
	return f
}

// errorData is where programs say more: errorKind and resetsAt are those of
// claude-agent-acp and of our own agent, codexErrorInfo is that of codex-acp.
type errorData struct {
	ErrorKind string          `json:"errorKind"`
	CodexInfo json.RawMessage `json:"codexErrorInfo"`
	ResetsAt  float64         `json:"resetsAt"` // seconds since 1970
	Message   string          `json:"message"`
	Details   string          `json:"details"`
	Error     string          `json:"error"`
}

func (d *errorData) kindName() string {
	if d.ErrorKind != "" || !given(d.CodexInfo) {
		return d.ErrorKind
	}
	var name string
	var object map[string]json.RawMessage
	if json.Unmarshal(d.CodexInfo, &name) != nil && json.Unmarshal(d.CodexInfo, &object) == nil {
		for key := range object {
			name = key // there is one
		}
	}
	return name
}

// text is the error for people.
func (f *failure) text() string {
	message := strings.TrimPrefix(f.message, "Internal error: ")
	if message == "" || message == "Internal error" {
		message = cmp.Or(f.detail, f.kind, f.message, "the agent reports an error without a word")
	} else if f.detail != "" && !strings.Contains(message, f.detail) {
		message += ": " + f.detail
	}
	message = clipped(message, 2000)
	if f.code != "" && f.code != codeInternal && f.kind == "" {
		return fmt.Sprintf("%s (code %s)", message, f.code)
	}
	return message
}

// limit is the limit that the error stands for; empty for none.
func (f *failure) limit() agent.LimitKind {
	switch f.kind {
	case "usage_limit", "usage_limit_reached", "usageLimitExceeded":
		return agent.LimitUsage
	case "overloaded", "server_error", "serverOverloaded", "internalServerError", "httpConnectionFailed",
		"responseStreamConnectionFailed", "responseStreamDisconnected", "responseTooManyFailedAttempts":
		return agent.LimitLoad
	}
	if f.kind != "rate_limit" && f.code != codeBusy {
		return ""
	}
	// One sign for two limits: that of a minute, and that of the account. A reset
	// time, or the program's words, tell the second.
	text := strings.ToLower(f.message + " " + f.detail)
	if !f.resetAt.IsZero() || slices.ContainsFunc([]string{"quota", "usage limit", "hit your"}, func(sign string) bool { return strings.Contains(text, sign) }) {
		return agent.LimitUsage
	}
	return agent.LimitLoad
}

// tooLong says whether the conversation has outgrown the model.
func (f *failure) tooLong() bool {
	text := strings.ToLower(f.message + " " + f.detail)
	return f.kind == "contextWindowExceeded" || strings.Contains(text, "prompt is too long") || strings.Contains(text, "prompt too long")
}

// trouble is what went wrong on the way and was not got over yet.
type trouble struct {
	last   *failure // the last error that was told
	broken bool     // the program is out of order because of it
	reset  time.Time
}

// standing is the error that a turn ended with, nil for none.
func (t *trouble) standing() *failure {
	if !t.broken {
		return nil
	}
	if t.last == nil {
		return &failure{message: "the agent's own state is an error that it does not explain"}
	}
	f := *t.last
	f.message, f.detail = cmp.Or(f.detail, f.message), "" // the last retry's text says only that it was one
	return &f
}

// met reports the limit that an error stands for, after all that was said.
func (t *trouble) met(s *agent.Session, f *failure) {
	kind, reset := f.limit(), f.resetAt
	if kind != "" && !t.reset.IsZero() {
		kind, reset = agent.LimitUsage, t.reset // the account's limit was told before
	}
	if kind != "" {
		s.Emit(agent.Event{Kind: agent.KindLimit, Limit: &agent.Limit{Kind: kind, ResetAt: reset, Text: f.text()}})
	}
}

package acp

import (
	"encoding/json"
	"fmt"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/claudomator/claudomator/internal/agent"
)

// update is what a session/update says; each kind has some of the fields.
type update struct {
	Kind      string          `json:"sessionUpdate"`
	MessageID string          `json:"messageId"`
	Content   json.RawMessage `json:"content"` // of a message: a block; of a tool call: a list
	Entries   []struct {
		Content string `json:"content"`
		Status  string `json:"status"`
	} `json:"entries"`
	Cost *struct {
		Amount   float64 `json:"amount"`
		Currency string  `json:"currency"`
	} `json:"cost"`
	callUpdate
	Meta meta `json:"_meta"`
}

// meta is what known programs say beside the protocol.
type meta struct {
	Codex struct {
		Error *struct {
			errorData
			AdditionalDetails string `json:"additionalDetails"`
			WillRetry         bool   `json:"willRetry"`
		} `json:"error"`
		Thread struct {
			Type string `json:"type"`
		} `json:"threadStatus"`
	} `json:"codex"`
	RateLimit *struct {
		Status   string  `json:"status"`
		Type     string  `json:"rateLimitType"`
		ResetsAt float64 `json:"resetsAt"`
		Used     float64 `json:"utilization"`
	} `json:"_claude/rateLimit"`
	Claude struct {
		ToolName string `json:"toolName"`
	} `json:"claudeCode"`
	Output      terminal `json:"terminal_output"`
	OutputDelta terminal `json:"terminal_output_delta"`
}

type terminal struct {
	Data string `json:"data"`
}

type block struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	URI      string `json:"uri"`
	Resource struct {
		URI  string `json:"uri"`
		Text string `json:"text"`
	} `json:"resource"`
}

func (b *block) String() string {
	switch b.Type {
	case "text", "":
		return b.Text
	case "resource_link":
		return b.URI
	case "resource":
		return b.Resource.Text
	}
	return "[" + b.Type + "]"
}

// notified takes a notification.
func (t *talk) notified(m *message) {
	if m.Method != sdk.ClientMethodSessionUpdate {
		if !strings.HasPrefix(m.Method, "_") && !strings.HasPrefix(m.Method, "$/") {
			t.raw(m)
		}
		return
	}
	var params struct {
		Update update `json:"update"`
	}
	if lenient(m.Params, &params) != nil {
		t.raw(m)
		return
	}
	if u := &params.Update; !t.replaying && !t.take(u) {
		t.raw(m)
	}
}

// take records an update; false when its kind is not known.
func (t *talk) take(u *update) bool {
	t.told(&u.Meta)
	switch u.Kind {
	case "agent_message_chunk":
		t.said(agent.KindText, u)
	case "agent_thought_chunk":
		t.said(agent.KindThought, u)
	case "tool_call", "tool_call_update":
		t.text.flush()
		t.worked = true
		t.tools.take(u)
	case "plan":
		t.text.flush()
		var b strings.Builder
		for _, e := range u.Entries {
			fmt.Fprintf(&b, "%s: %s\n", e.Status, e.Content)
		}
		t.s.Emit(agent.Event{Kind: agent.KindLog, Stream: agent.Stdout, Text: "plan\n" + b.String()})
	case "usage_update":
		if u.Cost != nil && (u.Cost.Currency == "USD" || u.Cost.Currency == "") && u.Cost.Amount != t.cost {
			t.cost = u.Cost.Amount
			t.text.flush()
			t.emitUsage()
		}
	case "user_message_chunk", "available_commands_update", "current_mode_update", "config_option_update", "session_info_update":
	default:
		return false
	}
	return true
}

// said is a piece of text. Before the prompt it is a banner of the program's.
func (t *talk) said(kind agent.Kind, u *update) {
	var b block
	if !given(u.Content) || lenient(u.Content, &b) != nil {
		return
	}
	if t.session.Load() == nil {
		kind = agent.KindLog
	}
	text := b.String()
	t.spoke = t.spoke || strings.TrimSpace(text) != ""
	t.text.say(kind, u.MessageID, text)
}

// told takes what known programs say of errors and limits beside the protocol.
func (t *talk) told(m *meta) {
	if e := m.Codex.Error; e != nil {
		t.errors.last = &failure{kind: e.kindName(), message: e.Message, detail: e.AdditionalDetails, resetAt: agent.Unix(e.ResetsAt)}
		t.errors.broken = t.errors.broken || !e.WillRetry
		if e.WillRetry {
			t.text.flush()
			t.errors.met(t.s, t.errors.last)
		}
	}
	switch m.Codex.Thread.Type {
	case "systemError":
		t.errors.broken = true
	case "active":
		t.errors = trouble{reset: t.errors.reset}
	}
	if l := m.RateLimit; l != nil && l.Status != "allowed" {
		limit := agent.Limit{Kind: agent.LimitWarning, ResetAt: agent.Unix(l.ResetsAt), Text: fmt.Sprintf("%s limit: %s, %.0f%% used", l.Type, l.Status, 100*l.Used)}
		if l.Status == "rejected" {
			limit.Kind, t.errors.reset = agent.LimitUsage, limit.ResetAt
		}
		t.text.flush()
		t.s.Emit(agent.Event{Kind: agent.KindLimit, Limit: &limit})
	}
}

// promptResult is the answer to the prompt, with the places where programs count
// tokens.
type promptResult struct {
	StopReason string `json:"stopReason"`
	Usage      *struct {
		Input      int64 `json:"inputTokens"`
		Output     int64 `json:"outputTokens"`
		Thought    int64 `json:"thoughtTokens"`
		CacheRead  int64 `json:"cachedReadTokens"`
		CacheWrite int64 `json:"cachedWriteTokens"`
		Total      int64 `json:"totalTokens"`
	} `json:"usage"`
	Meta struct {
		Quota struct {
			Tokens *struct {
				Input  int64 `json:"input_tokens"`
				Output int64 `json:"output_tokens"`
			} `json:"token_count"`
		} `json:"quota"`
	} `json:"_meta"`
}

// spent records the tokens of the turn.
func (t *talk) spent(r promptResult) {
	switch {
	case r.Usage != nil:
		u := r.Usage
		t.usage = agent.Usage{Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite}
		if rest := u.Total - u.Input - u.Output - u.CacheRead - u.CacheWrite; rest > 0 && rest == u.Thought {
			t.usage.Output += u.Thought // some programs count it apart
		}
	case r.Meta.Quota.Tokens != nil:
		t.usage = agent.Usage{Input: r.Meta.Quota.Tokens.Input, Output: r.Meta.Quota.Tokens.Output}
	default:
		return
	}
	t.emitUsage()
}

func (t *talk) emitUsage() {
	usage := t.usage
	t.s.Emit(agent.Event{Kind: agent.KindUsage, Usage: &usage, CostUSD: t.cost})
}

// answer answers a request of the program.
func (t *talk) answer(m *message) {
	reply := map[string]any{"id": m.ID}
	if m.Method == sdk.ClientMethodSessionRequestPermission {
		t.permit(m, reply)
	} else {
		reply["error"] = map[string]any{"code": json.Number(codeNoMethod), "message": "not offered: " + clipped(m.Method, 100)}
	}
	t.post(reply, true)
}

// permit gives a permission, once: what is remembered could land in a file.
func (t *talk) permit(m *message, reply map[string]any) {
	var params struct {
		Options []struct {
			ID   string `json:"optionId"`
			Kind string `json:"kind"`
		} `json:"options"`
		Call update `json:"toolCall"`
	}
	_ = lenient(m.Params, &params) // without options it is answered as such
	t.text.flush()
	if params.Call.CallID != "" && !t.replaying { // some programs tell of a call only here
		params.Call.Kind = "tool_call"
		t.take(&params.Call)
	}
	title := clipped(params.Call.Title, 200)
	for _, kind := range []string{"allow_once", "allow_always"} {
		for _, o := range params.Options {
			if o.Kind == kind {
				t.note("permission given: " + title)
				reply["result"] = sdk.RequestPermissionResponse{Outcome: sdk.NewRequestPermissionOutcomeSelected(sdk.PermissionOptionId(o.ID))}
				return
			}
		}
	}
	t.s.Warn("the agent asked for a permission in a way that cannot be given: " + title)
	reply["result"] = sdk.RequestPermissionResponse{Outcome: sdk.NewRequestPermissionOutcomeCancelled()}
}

package fakellm

import (
	"encoding/json"
	"net/http"
	"strings"
)

// anthropic is the Messages API.
type anthropic struct{}

func (anthropic) parse(body []byte) (*conversation, error) {
	var q struct {
		Model    string   `json:"model"`
		Stream   bool     `json:"stream"`
		Messages []object `json:"messages"`
		Tools    []object `json:"tools"`
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return nil, err
	}
	c := &conversation{model: q.Model, stream: q.Stream, size: len(body)}
	for _, t := range q.Tools {
		c.tools = append(c.tools, tool{name: str(t["name"]), kind: str(t["type"]), schema: dict(t["input_schema"])})
	}
	for _, m := range q.Messages {
		if m["role"] != "user" {
			continue
		}
		for _, block := range list(m["content"]) {
			if d := dict(block); d["type"] == "tool_result" {
				c.answered(text(d["content"]))
			}
		}
		c.user(text(m["content"]))
	}
	return c, nil
}

func (anthropic) write(w http.ResponseWriter, c *conversation, r reply) {
	var blocks []object
	if r.text != "" || len(r.calls) == 0 {
		blocks = append(blocks, object{"type": "text", "text": r.text})
	}
	stop := "end_turn"
	for _, k := range r.calls {
		stop = "tool_use"
		blocks = append(blocks, object{"type": "tool_use", "id": strings.Replace(k.id, "call_", "toolu_", 1), "name": k.tool.name, "input": k.args})
	}
	usage := object{"input_tokens": r.usage.Input, "cache_read_input_tokens": r.usage.CacheRead, "cache_creation_input_tokens": 0, "output_tokens": r.usage.Output}
	message := func(content, stop any) object {
		return object{"id": "msg_scripted", "type": "message", "role": "assistant", "model": c.model,
			"content": content, "stop_reason": stop, "stop_sequence": nil, "usage": usage}
	}
	if !c.stream {
		writeJSON(w, http.StatusOK, message(blocks, stop))
		return
	}
	e := newStream(w)
	e.send("message_start", object{"message": message([]any{}, nil)})
	for i, b := range blocks {
		start, kind, field, value := object{"type": "text", "text": ""}, "text_delta", "text", str(b["text"])
		if b["type"] == "tool_use" {
			data, _ := json.Marshal(b["input"])
			start = object{"type": "tool_use", "id": b["id"], "name": b["name"], "input": object{}}
			kind, field, value = "input_json_delta", "partial_json", string(data)
		}
		e.send("content_block_start", object{"index": i, "content_block": start})
		for _, half := range halves(value) {
			e.send("content_block_delta", object{"index": i, "delta": object{"type": kind, field: half}})
		}
		e.send("content_block_stop", object{"index": i})
	}
	e.send("message_delta", object{"delta": object{"stop_reason": stop, "stop_sequence": nil}, "usage": usage})
	e.send("message_stop", object{})
}

func (anthropic) fault(w http.ResponseWriter, f *Fault) {
	status, kind, message := http.StatusInternalServerError, "api_error", "Internal server error (scripted)"
	switch f.Kind {
	case RateLimit:
		status, kind, message = http.StatusTooManyRequests, "rate_limit_error", "This request would exceed the rate limit (scripted)"
	case UsageLimit:
		status, kind, message = http.StatusTooManyRequests, "rate_limit_error", "This request would exceed your account's rate limit. Please try again later."
		for name, value := range map[string]string{
			"Status": "rejected", "Reset": inSeconds(f.ResetsIn), "Representative-Claim": "five_hour",
			"5h-Status": "rejected", "5h-Reset": inSeconds(f.ResetsIn), "5h-Utilization": "1.0",
			"Overage-Status": "rejected", "Overage-Disabled-Reason": "org_level_disabled",
		} {
			w.Header().Set("Anthropic-Ratelimit-Unified-"+name, value)
		}
	case Overloaded:
		status, kind, message = 529, "overloaded_error", "Overloaded"
	case Denied:
		status, kind, message = http.StatusUnauthorized, "authentication_error", "invalid x-api-key"
	case TooLong:
		status, kind, message = http.StatusBadRequest, "invalid_request_error", "prompt is too long: 250000 tokens > 200000 maximum"
	case Broken, Hang:
	}
	writeJSON(w, status, object{"type": "error", "error": object{"type": kind, "message": message}, "request_id": "req_scripted"})
}

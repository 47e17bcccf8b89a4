package fakellm

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// responses is OpenAI's Responses API, as Codex speaks it.
type responses struct{}

func (responses) parse(body []byte) (*conversation, error) {
	var q struct {
		Model  string `json:"model"`
		Stream bool   `json:"stream"`
		Input  any    `json:"input"`
		Tools  []any  `json:"tools"`
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return nil, err
	}
	c := &conversation{model: q.Model, stream: q.Stream, size: len(body)}
	c.offer(q.Tools, "")
	c.user(text(q.Input))
	for _, item := range list(q.Input) {
		m := dict(item)
		switch kind := str(m["type"]); {
		case strings.HasSuffix(kind, "_call_output"):
			output := text(m["output"])
			if output == "" {
				data, _ := json.Marshal(m["output"])
				output = string(data)
			}
			c.answered(output)
		case (kind == "message" || kind == "") && m["role"] == "user":
			c.user(text(m["content"]))
		}
	}
	return c, nil
}

// offer lists tools; those of an MCP server are in a namespace.
func (c *conversation) offer(tools []any, namespace string) {
	for _, item := range tools {
		t := dict(item)
		if t["type"] == "namespace" {
			c.offer(list(t["tools"]), str(t["name"]))
			continue
		}
		name := str(t["name"])
		if name == "" {
			name = str(t["type"]) // local_shell, web_search …
		}
		c.tools = append(c.tools, tool{name: name, namespace: namespace, kind: str(t["type"]), schema: dict(t["parameters"])})
	}
}

func (k toolCall) item() object {
	item := object{"id": "fc_" + k.id, "call_id": k.id, "status": "completed"}
	switch k.tool.kind {
	case "local_shell":
		item["type"] = "local_shell_call"
		item["action"] = object{"type": "exec", "command": []string{"bash", "-lc", str(k.args["command"])}, "env": object{}}
	case "custom":
		item["type"], item["name"], item["input"] = "custom_tool_call", k.tool.name, str(k.args["input"])
	default:
		item["type"], item["name"], item["arguments"] = "function_call", k.tool.name, k.json()
		if k.tool.namespace != "" {
			item["namespace"] = k.tool.namespace
		}
	}
	return item
}

func (responses) write(w http.ResponseWriter, c *conversation, r reply) {
	var items []object
	if r.text != "" || len(r.calls) == 0 {
		items = append(items, object{"type": "message", "id": "msg_scripted", "role": "assistant", "status": "completed",
			"content": []any{object{"type": "output_text", "text": r.text, "annotations": []any{}}}})
	}
	for _, k := range r.calls {
		items = append(items, k.item())
	}
	response := func(status string, output, usage any) object {
		return object{"id": "resp_scripted", "object": "response", "created_at": time.Now().Unix(), "status": status, "model": c.model,
			"output": output, "usage": usage, "error": nil, "incomplete_details": nil, "parallel_tool_calls": true, "tools": []any{}}
	}
	usage := object{"input_tokens": r.usage.Input + r.usage.CacheRead, "input_tokens_details": object{"cached_tokens": r.usage.CacheRead},
		"output_tokens": r.usage.Output, "output_tokens_details": object{"reasoning_tokens": 0},
		"total_tokens": r.usage.Input + r.usage.CacheRead + r.usage.Output}
	if !c.stream {
		writeJSON(w, http.StatusOK, response("completed", items, usage))
		return
	}
	e, number := newStream(w), 0
	send := func(event string, v object) {
		v["sequence_number"] = number
		number++
		e.send(event, v)
	}
	send("response.created", object{"response": response("in_progress", []any{}, nil)})
	for i, item := range items {
		streamItem(i, item, send)
	}
	send("response.completed", object{"response": response("completed", items, usage)})
}

// streamItem sends one item in the pieces that the API sends it in.
func streamItem(i int, item object, send func(string, object)) {
	begun := object{}
	for name, value := range item {
		begun[name] = value
	}
	begun["status"] = "in_progress"
	at := func(more object) object {
		more["output_index"], more["item_id"] = i, item["id"]
		return more
	}
	switch item["type"] {
	case "message":
		part := dict(list(item["content"])[0])
		begun["content"] = []any{}
		send("response.output_item.added", object{"output_index": i, "item": begun})
		send("response.content_part.added", at(object{"content_index": 0, "part": object{"type": "output_text", "text": "", "annotations": []any{}}}))
		for _, half := range halves(str(part["text"])) {
			send("response.output_text.delta", at(object{"content_index": 0, "delta": half}))
		}
		send("response.output_text.done", at(object{"content_index": 0, "text": part["text"]}))
		send("response.content_part.done", at(object{"content_index": 0, "part": part}))
	case "function_call":
		begun["arguments"] = ""
		send("response.output_item.added", object{"output_index": i, "item": begun})
		for _, half := range halves(str(item["arguments"])) {
			send("response.function_call_arguments.delta", at(object{"delta": half}))
		}
		send("response.function_call_arguments.done", at(object{"arguments": item["arguments"]}))
	default:
		send("response.output_item.added", object{"output_index": i, "item": begun})
	}
	send("response.output_item.done", object{"output_index": i, "item": item})
}

func (responses) fault(w http.ResponseWriter, f *Fault) {
	status := http.StatusInternalServerError
	e := object{"type": "server_error", "code": "server_error", "message": "The server had an error (scripted)", "param": nil}
	switch f.Kind {
	case RateLimit:
		status = http.StatusTooManyRequests
		e = object{"type": "requests", "code": "rate_limit_exceeded", "message": "Rate limit reached (scripted). Please try again in 1s.", "param": nil}
	case UsageLimit: // as a ChatGPT subscription answers
		status = http.StatusTooManyRequests
		e = object{"type": "usage_limit_reached", "message": "The usage limit has been reached", "plan_type": "plus",
			"resets_at": time.Now().Unix() + int64(f.ResetsIn), "resets_in_seconds": f.ResetsIn}
		w.Header().Set("X-Codex-Primary-Used-Percent", "100")
		w.Header().Set("X-Codex-Primary-Window-Minutes", "300")
		w.Header().Set("X-Codex-Primary-Reset-At", inSeconds(f.ResetsIn))
	case Overloaded:
		status = http.StatusServiceUnavailable
		e = object{"type": "server_error", "code": "server_is_overloaded", "message": "Our servers are currently overloaded", "param": nil}
	case Denied:
		status = http.StatusUnauthorized
		e = object{"type": "invalid_request_error", "code": "invalid_api_key", "message": "Incorrect API key provided", "param": nil}
	case TooLong:
		status = http.StatusBadRequest
		e = object{"type": "invalid_request_error", "code": "context_length_exceeded", "message": "Your input exceeds the context window of this model.", "param": nil}
	case Broken, Hang:
	}
	writeJSON(w, status, object{"error": e})
}

package codex

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/claudomator/claudomator/internal/agent"
)

// Row says what one kind of line becomes. It is the whole mapping: a line
// without a row becomes a raw event.
type Row struct {
	Event   string // type of the line
	Item    string // type of the item it is about; empty where it has none
	Becomes string // in words
	read    func(*reader, *line)
}

// Rows is the table.
func Rows() []Row {
	return []Row{
		{"thread.started", "", "the handle; on resuming, another one than was asked for is NoResume and a failure", (*reader).started},
		{"turn.started", "", "nothing", nothing},
		{"turn.completed", "", "usage, success; a warning about calls and sub-agents that are still running", (*reader).completed},
		{"turn.failed", "", "failure; at the end of the run a limit, if Failures knows one", (*reader).turnFailed},
		{"error", "", "overload if Failures says so, else log; never an end", (*reader).trouble},
		{"item.completed", "agent_message", "text", (*reader).said},
		{"item.completed", "reasoning", "thought", (*reader).thought},
		{"item.started", "command_execution", "tool_call", (*reader).begun},
		{"item.completed", "command_execution", "tool_call, done", (*reader).ended},
		{"item.started", "mcp_tool_call", "tool_call", (*reader).begun},
		{"item.completed", "mcp_tool_call", "tool_call, done", (*reader).ended},
		{"item.started", "collab_tool_call", "tool_call", (*reader).begun},
		{"item.completed", "collab_tool_call", "tool_call, done; remembers sub-agents until they are seen to have ended", (*reader).delegated},
		{"item.started", "web_search", "tool_call", (*reader).begun},
		{"item.completed", "web_search", "tool_call, done", (*reader).ended},
		{"item.started", "file_change", "nothing", nothing},
		{"item.completed", "file_change", "file_edit for each file; a failed one is a tool_call, done", (*reader).changed},
		{"item.started", "todo_list", "log", (*reader).planned},
		{"item.updated", "todo_list", "log", (*reader).planned},
		{"item.completed", "todo_list", "log", (*reader).planned},
		{"item.completed", "error", "log", (*reader).noted},
		{"item.updated", "command_execution", "nothing", nothing},
		{"item.updated", "mcp_tool_call", "nothing", nothing},
		{"item.updated", "collab_tool_call", "nothing", nothing},
		{"item.updated", "agent_message", "nothing", nothing},
		{"item.updated", "reasoning", "nothing", nothing},
	}
}

// line is one line of Codex. Parts whose form differs between versions are
// decoded by those who read them, so that one that changed costs no other.
type line struct {
	Type     string          `json:"type"`
	ThreadID string          `json:"thread_id"`
	Message  string          `json:"message"`
	Error    json.RawMessage `json:"error"`
	Usage    json.RawMessage `json:"usage"`
	Item     json.RawMessage `json:"item"`

	item item
}

// head is what every item has.
type head struct {
	ID   string `json:"id"`
	Type string `json:"type"`
}

type item struct {
	head
	Text      string          `json:"text"`
	Message   string          `json:"message"`
	Status    string          `json:"status"`
	Command   string          `json:"command"`
	Output    string          `json:"aggregated_output"`
	Exit      *int            `json:"exit_code"`
	Server    string          `json:"server"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	Result    json.RawMessage `json:"result"`
	Error     json.RawMessage `json:"error"`
	Prompt    string          `json:"prompt"`
	Agents    json.RawMessage `json:"agents_states"`
	Query     string          `json:"query"`
	Changes   []struct {
		Path string `json:"path"`
		Kind string `json:"kind"`
	} `json:"changes"`
	Todo []struct {
		Text string `json:"text"`
		Done bool   `json:"completed"`
	} `json:"items"`
}

type agentState struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

func nothing(*reader, *line) {}

func (r *reader) started(l *line) {
	if !isThread(l.ThreadID) {
		return
	}
	r.s.SetHandle(l.ThreadID)
	if !strings.EqualFold(l.ThreadID, r.rollout.thread) {
		r.rollout, r.base = newRollout(r.rollout.home, l.ThreadID), tokens{}
	}
	if r.job.Resume != "" && !strings.EqualFold(l.ThreadID, r.job.Resume) {
		r.s.NoResume()
		r.s.End(agent.EndFailure, "Codex began a new conversation in place of the one to be resumed, "+r.job.Resume)
	}
}

func (r *reader) completed(l *line) {
	var total tokens
	if json.Unmarshal(l.Usage, &total) == nil && total.Input > 0 {
		r.use(total)
	}
	for _, a := range r.agents {
		r.s.Warn("Codex ended without waiting for a sub-agent: " + shorten(a.prompt))
	}
	if len(r.running) > 0 {
		var names []string
		for _, tool := range r.running {
			names = append(names, shorten(tool.Name+": "+tool.Input))
		}
		r.s.Warn("still running when Codex ended, and ended with it: " + strings.Join(names, "; "))
	}
	r.s.End(agent.EndSuccess, "")
	r.over = true
}

func (r *reader) turnFailed(l *line) {
	r.failed = true
	var object struct {
		Message string `json:"message"`
	}
	switch {
	case json.Unmarshal(l.Error, &object) == nil && object.Message != "":
		r.failure = object.Message
	case json.Unmarshal(l.Error, &r.failure) == nil && r.failure != "":
	default:
		r.failure = "the turn failed: " + string(l.Error)
	}
	r.s.End(agent.EndFailure, r.failure)
}

func (r *reader) trouble(l *line) {
	if f := explain(nil, l.Message); f.Met == agent.LimitLoad {
		r.s.Emit(agent.Event{Kind: agent.KindLimit, Limit: &agent.Limit{Kind: f.Met, Text: l.Message}})
		return
	}
	r.s.Emit(agent.Event{Kind: agent.KindLog, Stream: agent.Stdout, Text: l.Message})
}

func (r *reader) said(l *line) {
	r.s.Emit(agent.Event{Kind: agent.KindText, Text: l.item.Text})
}

func (r *reader) thought(l *line) {
	r.s.Emit(agent.Event{Kind: agent.KindThought, Text: l.item.Text})
}

func (r *reader) begun(l *line) {
	tool := l.item.call()
	if len(r.running) < maxRunning && len(tool.ID)+len(tool.Name) <= maxName {
		kept := tool
		kept.Input = strings.ToValidUTF8(strings.Clone(tool.Input[:min(len(tool.Input), maxName)]), "")
		r.running = append(r.running, kept)
	}
	r.s.Emit(agent.Event{Kind: agent.KindTool, Tool: &tool})
}

func (r *reader) ended(l *line) {
	r.finished(l.item.ID)
	tool := l.item.call()
	tool.Done = true
	tool.Output = l.item.answer()
	tool.Failed = l.item.Status == "failed" || l.item.Status == "declined" || l.item.Exit != nil && *l.item.Exit != 0
	r.s.Emit(agent.Event{Kind: agent.KindTool, Tool: &tool})
}

// delegated keeps the list of sub-agents that were begun and not seen to end.
func (r *reader) delegated(l *line) {
	r.ended(l)
	states := l.item.agents()
	for _, id := range slices.Sorted(maps.Keys(states)) {
		state, known := states[id], func(a subagent) bool { return a.id == id }
		switch live := state.Status == "pending_init" || state.Status == "running"; {
		case !live:
			r.agents = slices.DeleteFunc(r.agents, known)
		case !slices.ContainsFunc(r.agents, known) && len(r.agents) < maxRunning && len(id) <= maxName:
			r.agents = append(r.agents, subagent{id, strings.Clone(shorten(l.item.Prompt))})
		}
	}
}

func (r *reader) changed(l *line) {
	if l.item.Status != "completed" {
		tool := agent.Tool{ID: l.item.ID, Name: "apply_patch", Done: true, Failed: true}
		for _, c := range l.item.Changes {
			tool.Input += c.Kind + " " + agent.Within(r.dir, c.Path) + "\n"
		}
		r.s.Emit(agent.Event{Kind: agent.KindTool, Tool: &tool})
		return
	}
	for _, c := range l.item.Changes {
		r.s.Emit(agent.Event{Kind: agent.KindEdit, Text: c.Kind, Edit: &agent.Edit{Path: agent.Within(r.dir, c.Path)}})
	}
}

func (r *reader) planned(l *line) {
	text := "plan:"
	for _, step := range l.item.Todo {
		mark := "[ ]"
		if step.Done {
			mark = "[x]"
		}
		text += "\n" + mark + " " + step.Text
	}
	r.s.Emit(agent.Event{Kind: agent.KindLog, Stream: agent.Stdout, Text: text})
}

func (r *reader) noted(l *line) {
	r.s.Emit(agent.Event{Kind: agent.KindLog, Stream: agent.Stdout, Text: l.item.Message})
}

// call is what is called with what.
func (i *item) call() agent.Tool {
	tool := agent.Tool{ID: i.ID, Name: i.Type}
	switch i.Type {
	case "command_execution":
		tool.Name, tool.Input = "shell", i.Command
	case "mcp_tool_call":
		tool.Name, tool.Input = "mcp__"+i.Server+"__"+i.Tool, string(i.Arguments)
	case "collab_tool_call":
		tool.Name, tool.Input = i.Tool, i.Prompt
	case "web_search":
		tool.Input = i.Query
	}
	return tool
}

// agents are the sub-agents that a call was about, by their id.
func (i *item) agents() map[string]agentState {
	var states map[string]agentState
	_ = json.Unmarshal(i.Agents, &states) // another form than known: none
	return states
}

// answer is what a call brought: a command's output, the texts of a tool's
// result, the last words of sub-agents, or why there is none.
func (i *item) answer() string {
	if i.Output != "" {
		return i.Output
	}
	var result struct {
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
	}
	var texts []string
	if json.Unmarshal(i.Result, &result) == nil {
		for _, c := range result.Content {
			texts = append(texts, c.Text)
		}
	}
	states := i.agents()
	for _, id := range slices.Sorted(maps.Keys(states)) {
		if said := states[id].Message; said != "" {
			texts = append(texts, said)
		}
	}
	var failed struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(i.Error, &failed) == nil && failed.Message != "" {
		texts = append(texts, failed.Message)
	}
	return strings.Join(texts, "\n")
}

package acp

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/claudomator/claudomator/internal/agent"
)

const serverName = "claudomator" // of the run's tools, as the program knows them

// talk is one conversation with a program, from the first request to the answer
// to the prompt. All of it but cancel runs in the goroutine that reads the
// program's output: nothing is done but in answer to it.
type talk struct {
	s       *agent.Session
	job     agent.Job
	out     *outbox
	last    int // number of the last request
	pending map[int]func(*message)

	auth      []authMethod
	session   atomic.Pointer[string] // while the prompt is under way; cancel reads it
	cancelled atomic.Bool
	replaying bool // an earlier conversation
	spoke     bool // something was said for the prompt
	worked    bool // a tool was called for it

	text   speech
	tools  tools
	errors trouble
	usage  agent.Usage
	cost   float64
}

type authMethod struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

func newTalk(s *agent.Session, job agent.Job) *talk {
	t := &talk{s: s, job: job, out: newOutbox(), pending: make(map[int]func(*message))}
	t.text.emit = s.Emit
	t.tools = tools{emit: s.Emit, dir: job.Dir, calls: make(map[string]*call)}
	return t
}

// start sends the first request. It is called before the program runs.
func (t *talk) start() {
	t.s.Unenforced(t.job, "the Agent Client Protocol")
	t.request(sdk.AgentMethodInitialize, sdk.InitializeRequest{
		ProtocolVersion: sdk.ProtocolVersionNumber,
		ClientInfo:      &sdk.Implementation{Name: serverName, Version: "1"},
	}, t.initialized)
}

// line takes a line of the program's standard output.
func (t *talk) line(line agent.Line) {
	m, rest := read(line)
	if len(strings.TrimSpace(string(rest))) > 0 {
		rest := agent.Line{Text: rest}
		if m == nil {
			rest.Cut = line.Cut
		}
		if over := len(rest.Text) - agent.MaxLine; over > 0 {
			rest.Text, rest.Cut = rest.Text[:agent.MaxLine], rest.Cut+int64(over)
		}
		t.s.LogLine(agent.Stdout, rest)
	}
	if m == nil {
		return
	}
	if line.Cut > 0 {
		t.note(fmt.Sprintf("a message was too long: %d bytes of it were left out", line.Cut))
	}
	switch {
	case m.request():
		t.answer(m)
	case m.Method != "":
		t.notified(m)
	default:
		then := t.pending[m.number()]
		if then == nil {
			t.raw(m)
			return
		}
		delete(t.pending, m.number())
		then(m)
	}
}

func (t *talk) note(text string) {
	t.s.Emit(agent.Event{Kind: agent.KindLog, Stream: agent.Notice, Text: text})
}

// raw keeps what was not understood.
func (t *talk) raw(m *message) {
	data, err := json.Marshal(m)
	if err != nil {
		return // it was decoded from JSON
	}
	text, cut := clip(string(data), maxText)
	t.s.Emit(agent.Event{Kind: agent.KindRaw, Stream: agent.Stdout, Text: text, Cut: cut})
}

// request sends a request; then gets the answer, unless an error ended the run.
func (t *talk) request(method string, params any, then func(*message)) {
	t.last++
	t.pending[t.last] = then
	t.post(map[string]any{"id": t.last, "method": method, "params": params}, false)
}

// post sends a message. One of ours always has its place; answers to a program
// that reads nothing have not.
func (t *talk) post(m map[string]any, bounded bool) {
	m["jsonrpc"] = "2.0"
	data, err := json.Marshal(m)
	if err != nil {
		t.fail(fmt.Sprintf("cannot write %v: %v", m["method"], err))
		return
	}
	if !t.out.send(append(data, '\n'), bounded) {
		t.fail("the agent asks and does not read the answers")
	}
}

// initialized knows what the program can, and opens the conversation.
func (t *talk) initialized(m *message) {
	var r struct {
		ProtocolVersion json.Number `json:"protocolVersion"`
		Capabilities    struct {
			Load bool `json:"loadSession"`
			MCP  struct {
				HTTP bool `json:"http"`
			} `json:"mcpCapabilities"`
			Session struct {
				Resume json.RawMessage `json:"resume"`
			} `json:"sessionCapabilities"`
		} `json:"agentCapabilities"`
		Auth []authMethod `json:"authMethods"`
	}
	if !t.result(m, "initialize", &r) {
		return
	}
	if version := fmt.Sprint(sdk.ProtocolVersionNumber); r.ProtocolVersion.String() != version {
		t.fail(fmt.Sprintf("the agent speaks version %q of the protocol, not %s", r.ProtocolVersion, version))
		return
	}
	t.auth = r.Auth
	servers := []sdk.McpServer{}
	switch {
	case t.job.MCP.URL == "":
	case r.Capabilities.MCP.HTTP:
		servers = append(servers, sdk.McpServer{Http: &sdk.McpServerHttpInline{
			Type: "http", Name: serverName, Url: t.job.MCP.URL,
			Headers: []sdk.HttpHeader{{Name: "Authorization", Value: "Bearer " + t.job.MCP.Token}},
		}})
	default:
		t.s.Warn(`the agent takes no tools over HTTP: only the command "claudomator tool" reaches the tools of the run`)
	}
	id, dir := sdk.SessionId(t.job.Resume), t.job.Dir
	resumable := r.Capabilities.Load || given(r.Capabilities.Session.Resume)
	opened := func(m *message) { t.opened(m, resumable) }
	switch {
	case t.job.Resume == "":
		t.request(sdk.AgentMethodSessionNew, sdk.NewSessionRequest{Cwd: dir, McpServers: servers}, opened)
	case given(r.Capabilities.Session.Resume):
		t.replaying = true
		t.request(sdk.AgentMethodSessionResume, sdk.ResumeSessionRequest{SessionId: id, Cwd: dir, McpServers: servers}, opened)
	case r.Capabilities.Load:
		t.replaying = true
		t.request(sdk.AgentMethodSessionLoad, sdk.LoadSessionRequest{SessionId: id, Cwd: dir, McpServers: servers}, opened)
	default:
		t.notResumed("the agent resumes no conversations")
	}
}

// opened has a conversation, and settles its mode and model.
func (t *talk) opened(m *message, resumable bool) {
	t.replaying = false
	if e := m.failure(); e != nil && t.job.Resume != "" && e.code != codeAuth {
		t.notResumed(e.text())
		return
	}
	var r settings
	if !t.result(m, "begin a conversation", &r) {
		return
	}
	id := r.SessionID
	switch {
	case t.job.Resume != "" && id != "" && id != t.job.Resume:
		t.notResumed("the agent began another one")
		return
	case id == "":
		id = t.job.Resume
	}
	if id == "" {
		t.fail("the agent began a conversation without an identifier")
		return
	}
	if resumable {
		t.s.SetHandle(id)
	}
	t.settle(id, r.requests(id, t.job.Model, t.s.Warn))
}

// settle sends the settings one by one, then the prompt.
func (t *talk) settle(id string, list []setting) {
	if len(list) == 0 {
		t.prompt(id)
		return
	}
	t.request(list[0].method, list[0].params, func(m *message) {
		if e := m.failure(); e != nil {
			if list[0].must {
				t.fail(fmt.Sprintf("cannot set the %s: %s", list[0].what, e.text()))
				return
			}
			t.s.Warn(fmt.Sprintf("the agent refused the %s: %s", list[0].what, e.text()))
		}
		t.settle(id, list[1:])
	})
}

func (t *talk) prompt(id string) {
	text := t.job.Prompt
	if !utf8.ValidString(text) {
		t.s.Warn("the prompt holds bytes that are no UTF-8: the agent gets U+FFFD in their place")
		text = string([]rune(text))
	}
	t.text.flush()
	t.session.Store(&id)
	t.request(sdk.AgentMethodSessionPrompt, sdk.PromptRequest{
		SessionId: sdk.SessionId(id), Prompt: []sdk.ContentBlock{sdk.TextBlock(text)},
	}, t.answered)
}

// cancel asks the program to break the prompt off; false when there is none.
func (t *talk) cancel() bool {
	id := t.session.Load()
	if id == nil || t.cancelled.Swap(true) {
		return false
	}
	data, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "method": sdk.AgentMethodSessionCancel, "params": sdk.CancelNotification{SessionId: sdk.SessionId(*id)},
	})
	return err == nil && t.out.send(append(data, '\n'), true)
}

// answered is the end of the program's work.
func (t *talk) answered(m *message) {
	t.text.flush()
	t.session.Store(nil)
	var r promptResult
	if e := m.failure(); e != nil {
		if t.cancelled.Load() {
			t.leave() // the outcome is that of the cancel
			return
		}
		t.errors.met(t.s, e)
		if t.job.Resume != "" && !t.worked && e.tooLong() {
			t.s.NoResume()
		}
		t.fail(e.text())
		return
	}
	if given(m.Result) && lenient(m.Result, &r) != nil {
		r.StopReason = ""
	}
	t.spent(r)
	switch stop := r.StopReason; stop {
	case string(sdk.StopReasonEndTurn):
		t.finished()
	case string(sdk.StopReasonCancelled):
		if t.cancelled.Load() {
			t.leave()
			return
		}
		t.fail("the agent broke the work off as cancelled, which nobody had asked for")
	case string(sdk.StopReasonRefusal):
		t.fail("the model refused to go on")
	case string(sdk.StopReasonMaxTokens):
		t.fail("the model's limit of tokens is reached, before the work was done")
	case string(sdk.StopReasonMaxTurnRequests):
		t.fail("the agent's limit of requests for one turn is reached, before the work was done")
	case "":
		t.fail("the agent's answer to the prompt says not how the work ended")
	default:
		t.fail(fmt.Sprintf("the agent ended the work for the reason %q", stop))
	}
}

// finished is a turn that came to its end, which is success if no error did it.
func (t *talk) finished() {
	if e := t.errors.standing(); e != nil {
		t.errors.met(t.s, e)
		t.fail(e.text())
		return
	}
	if open := t.tools.open(); len(open) > 0 {
		t.s.Warn("the agent ended while tool calls of its own had not ended: " + strings.Join(open, ", "))
	}
	if !t.spoke && !t.worked {
		t.s.Warn("the agent ended without having said or done anything")
	}
	t.end(agent.EndSuccess, "")
}

func (t *talk) notResumed(why string) {
	t.s.NoResume()
	t.fail("the conversation cannot be resumed: " + why)
}

func (t *talk) fail(why string) { t.end(agent.EndFailure, why) }

func (t *talk) end(how agent.End, why string) {
	t.s.End(how, why)
	t.leave()
}

// leave asks the program to leave.
func (t *talk) leave() { t.out.finish() }

// over is called when no process of the run is left.
func (t *talk) over() { t.text.flush() }

// result reads an answer; false when it is none to go on with.
func (t *talk) result(m *message, what string, into any) bool {
	e := m.failure()
	if e == nil {
		if given(m.Result) {
			if err := lenient(m.Result, into); err != nil {
				t.fail(fmt.Sprintf("cannot read the agent's answer to %s: %v", what, err))
				return false
			}
		}
		return true
	}
	why := fmt.Sprintf("cannot %s: %s", what, e.text())
	if e.code == codeAuth {
		for _, method := range t.auth {
			why += fmt.Sprintf("; %s: %s", method.Name, method.Description)
		}
	}
	t.errors.met(t.s, e)
	t.fail(why)
	return false
}

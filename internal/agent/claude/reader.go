package claude

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claudomator/claudomator/internal/agent"
)

const (
	rawLimit  = 4 << 10 // bytes recorded of what was not understood
	openCalls = 1000    // tool calls remembered until they answer, and tasks in the background
	nameLimit = 4 << 10 // bytes of each text that is remembered of them
)

// reader turns one run's lines into events. Both streams and the timer of
// background work come to it at once.
type reader struct {
	session *agent.Session
	dir     string // the run's workspace
	resume  string // conversation to go on with

	mu       sync.Mutex
	handle   string
	calls    map[string]agent.Tool // open ones, by id
	resetAt  time.Time             // of the usage limit that was met
	spent    agent.Usage           // of the turns so far
	cost     float64
	work     background
	wait     time.Duration
	waiting  *time.Timer // runs while a reported success waits for background work
	finished bool        // a success was reported; background work is still under way
}

func newReader(s *agent.Session, job agent.Job, wait time.Duration) *reader {
	return &reader{session: s, dir: job.Dir, resume: job.Resume, calls: make(map[string]agent.Tool), work: background{}, wait: wait}
}

// line is one line as the program prints it: the fields that are read, of all
// kinds of lines.
type line struct {
	Type      string          `json:"type"`
	Subtype   string          `json:"subtype"`
	SessionID string          `json:"session_id"`
	Parent    string          `json:"parent_tool_use_id"` // of what a subagent does
	Message   json.RawMessage `json:"message"`
	// Of a message that the program made itself, because a request failed.
	Error string `json:"error"`
	// What the tool itself says, beside what the model is told.
	ToolResult json.RawMessage `json:"tool_use_result"`
}

// line reads one line of either stream.
func (r *reader) line(stream agent.Stream, l agent.Line) {
	r.mu.Lock()
	defer r.mu.Unlock()
	text := bytes.TrimSpace(l.Text)
	if stream == agent.Stderr || len(text) == 0 || text[0] != '{' {
		r.session.LogLine(stream, l)
		if r.resume != "" && stream == agent.Stderr && bytes.Contains(text, []byte("No conversation found")) {
			r.session.NoResume()
		}
		return
	}
	var head line
	if l.Cut > 0 || json.Unmarshal(text, &head) != nil || !r.known(head, text) {
		kept := text[:min(len(text), rawLimit)]
		r.session.Emit(agent.Event{Kind: agent.KindRaw, Stream: stream, Text: string(kept), Cut: l.Cut + int64(len(text)-len(kept))})
	}
}

// known reads a line of a known type; false where it is of another one.
func (r *reader) known(head line, text []byte) bool {
	if head.SessionID != "" {
		r.converse(head.SessionID)
	}
	switch head.Type {
	case "assistant":
		return r.assistant(head)
	case "user":
		return r.user(head)
	case "result":
		var res result
		return json.Unmarshal(text, &res) == nil && r.result(res)
	case "rate_limit_event":
		var e rateLimit
		return json.Unmarshal(text, &e) == nil && r.rateLimit(e)
	case "system":
		var e system
		return json.Unmarshal(text, &e) == nil && r.system(e)
	}
	return false
}

// converse notes which conversation this is. Another one than the one to be
// resumed knows nothing of what was agreed: it is not worth going on.
func (r *reader) converse(id string) {
	if r.resume != "" && id != r.resume && r.handle == "" {
		r.session.NoResume()
		r.session.End(agent.EndFailure, fmt.Sprintf("conversation %s could not be resumed: the program began %s", r.resume, id))
	}
	r.handle = id
	r.session.SetHandle(id)
}

// message is what the model and the tools say.
type message struct {
	Content blocks `json:"content"`
}

type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	IsError   bool            `json:"is_error"`
	Content   blocks          `json:"content"`
}

// blocks are a list, or a text alone.
type blocks []block

// UnmarshalJSON takes both forms.
func (b *blocks) UnmarshalJSON(data []byte) error {
	if data[0] == '[' {
		return json.Unmarshal(data, (*[]block)(b))
	}
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	*b = blocks{{Type: "text", Text: text}}
	return nil
}

// text joins what is said; other content is named.
func (b blocks) text() string {
	var parts []string
	for _, block := range b {
		switch {
		case block.Text != "":
			parts = append(parts, block.Text)
		case block.Type != "text":
			parts = append(parts, "["+block.Type+"]")
		}
	}
	return strings.Join(parts, "\n")
}

func (r *reader) assistant(head line) bool {
	var m message
	if json.Unmarshal(head.Message, &m) != nil {
		return false
	}
	if head.Error != "" { // no progress: the result says it again
		r.session.Emit(agent.Event{Kind: agent.KindLog, Stream: agent.Stdout, Text: m.Content.text()})
		return true
	}
	r.resumeTurn()
	r.resetAt = time.Time{} // overcome
	for _, b := range m.Content {
		switch {
		case b.Type == "text" && head.Parent == "":
			r.session.Emit(agent.Event{Kind: agent.KindText, Text: b.Text})
		case b.Type == "text": // said by a subagent, not to us
			r.session.Emit(agent.Event{Kind: agent.KindThought, Text: b.Text})
		case b.Type == "thinking":
			r.session.Emit(agent.Event{Kind: agent.KindThought, Text: b.Thinking})
		case b.Type == "tool_use":
			tool := agent.Tool{ID: b.ID, Name: b.Name, Input: string(b.Input)}
			if len(r.calls) < openCalls && len(b.ID)+len(b.Name) <= nameLimit {
				r.calls[b.ID] = remembered(tool)
			}
			r.session.Emit(agent.Event{Kind: agent.KindTool, Tool: &tool})
		}
	}
	return true
}

func (r *reader) user(head line) bool {
	var m message
	if json.Unmarshal(head.Message, &m) != nil {
		return false
	}
	for _, b := range m.Content {
		switch b.Type {
		case "tool_result":
			r.answer(b, head.ToolResult)
		case "text": // the program's own words to the model, such as an interruption
			r.session.Emit(agent.Event{Kind: agent.KindLog, Stream: agent.Stdout, Text: b.Text})
		}
	}
	return true
}

// remembered is a call with what of its input is asked for later.
func remembered(call agent.Tool) agent.Tool {
	var input callInput
	_ = json.Unmarshal([]byte(call.Input), &input) // of another form: there is nothing to ask for
	for _, text := range []*string{&input.File, &input.Description, &input.Command} {
		*text = strings.ToValidUTF8((*text)[:min(len(*text), nameLimit)], "")
	}
	kept, _ := json.Marshal(input) // texts alone
	call.Input = string(kept)
	return call
}

// callInput are the fields read of what a tool is called with.
type callInput struct {
	File        string `json:"file_path"`
	Description string `json:"description"`
	Command     string `json:"command"`
}

// answer is a tool's answer to a call.
func (r *reader) answer(b block, raw json.RawMessage) {
	call := r.calls[b.ToolUseID]
	delete(r.calls, b.ToolUseID)
	r.session.Emit(agent.Event{Kind: agent.KindTool, Tool: &agent.Tool{
		ID: b.ToolUseID, Name: call.Name, Output: b.Content.text(), Done: true, Failed: b.IsError,
	}})
	if b.IsError {
		return
	}
	var answer toolAnswer
	_ = json.Unmarshal(raw, &answer) // of no form that is known: nothing to learn
	for _, edit := range answer.edits(call, r.dir) {
		r.session.Emit(agent.Event{Kind: agent.KindEdit, Edit: &edit})
	}
	if answer.Background != "" {
		r.work.begin(answer.Background, call)
	}
}

// result reads the end of a turn: what it cost, and how it went.
func (r *reader) result(res result) bool {
	row := res.ending()
	if row.Met == agent.LimitLoad && res.Status == 429 && !r.resetAt.IsZero() {
		row.Met = agent.LimitUsage // told before; older versions do not say so here
	}
	r.count(res)
	if row.Met != "" {
		r.session.Emit(agent.Event{Kind: agent.KindLimit, Limit: &agent.Limit{Kind: row.Met, ResetAt: r.resetAt, Text: res.why()}})
	}
	if row.NoResume && r.resume != "" {
		r.session.NoResume()
	}
	switch {
	case row.End == agent.EndNone:
	case row.End == agent.EndSuccess && len(r.work) > 0:
		r.waitForWork()
	case row.End == agent.EndSuccess:
		r.session.End(agent.EndSuccess, "")
	default:
		r.session.End(row.End, res.why())
	}
	return true
}

// count adds what a turn has used. The totals that the program prints include
// what the conversation had cost before this run.
func (r *reader) count(res result) {
	if res.Since == nil {
		r.cost = res.TotalCost
		r.use(res.Usage.Input, res.Usage.Output, res.Usage.CacheRead, res.Usage.CacheWrite)
	}
	for _, model := range res.Since {
		r.cost += model.Cost
		r.use(model.Input, model.Output, model.CacheRead, model.CacheWrite)
	}
	spent := r.spent
	r.session.Emit(agent.Event{Kind: agent.KindUsage, Usage: &spent, CostUSD: r.cost})
}

func (r *reader) use(input, output, cacheRead, cacheWrite int64) {
	r.spent.Input += input
	r.spent.Output += output
	r.spent.CacheRead += cacheRead
	r.spent.CacheWrite += cacheWrite
}

// waitForWork lets work in the background go on for a while after the agent has
// said that it is done. When it ends, the program begins another turn with it.
func (r *reader) waitForWork() {
	r.resumeTurn()
	r.finished = true
	r.session.Emit(agent.Event{Kind: agent.KindLog, Stream: agent.Notice, Text: fmt.Sprintf(
		"the agent has ended its turn while work of its own goes on in the background, which is given %s: %s", r.wait, r.work)})
	r.waiting = time.AfterFunc(r.wait, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.abandon()
	})
}

// resumeTurn: the agent goes on, so its last result was not the last.
func (r *reader) resumeTurn() {
	if r.finished {
		r.finished = false
		r.waiting.Stop()
	}
}

// abandon takes the reported success, and says what was not waited for.
func (r *reader) abandon() {
	if !r.finished {
		return
	}
	r.finished = false
	r.session.End(agent.EndSuccess, "")
	if len(r.work) > 0 {
		r.session.Warn("the agent said that it was done while this was still under way in the background, and it was ended unfinished: " + r.work.String())
	}
}

// after is when the program and all it has started are gone.
func (r *reader) after() {
	r.stopWaiting()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.abandon()
}

func (r *reader) stopWaiting() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting != nil {
		r.waiting.Stop()
	}
}

// background is work that the agent has left running, by id, with its name.
type background map[string]string

func (b background) begin(id string, call agent.Tool) {
	if b[id] != "" || len(b) >= openCalls || len(id) > nameLimit {
		return
	}
	var input callInput
	_ = json.Unmarshal([]byte(call.Input), &input) // then the id has to do
	for _, name := range []string{input.Description, input.Command, id} {
		if name != "" {
			b[id] = name
			return
		}
	}
}

// String lists it for people.
func (b background) String() string {
	var names []string
	for _, name := range b {
		names = append(names, name)
	}
	slices.Sort(names)
	if len(names) > 10 {
		names = append(names[:10], fmt.Sprintf("and %d more", len(b)-10))
	}
	return strings.Join(names, ", ")
}

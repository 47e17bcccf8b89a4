package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claudomator/claudomator/internal/work"
)

// teller tells a transcript to people, the same for task logs and run: what the
// agent says as it is, each call of a tool on one line when it is over, each
// change of a file as its lines, what it thinks shortened.
type teller struct {
	task work.TaskID // whose workspace's path is left out of what is shown

	open []call  // called and not answered yet
	held *answer // not printed yet: if the change of its file comes next, that says it all
	cost float64 // US dollars of the run so far
}

// call is a call of a tool that is under way.
type call struct {
	id, name, input string
	at              time.Time
	onFile          bool // its input is a path
}

// answer is a call that is over, and the entry that says so.
type answer struct {
	call
	entry
}

// entry is one line of a transcript, as package agent writes it.
type entry struct {
	At       time.Time `json:"at"`
	Kind     string    `json:"kind"`
	Stream   string    `json:"stream"`
	Text     string    `json:"text"`
	Cut      int64     `json:"cut"`
	CostUSD  float64   `json:"cost_usd"`
	Tool     *toolCall `json:"tool"`
	Edit     *fileEdit `json:"edit"`
	Question *struct {
		Text    string   `json:"text"`
		Options []string `json:"options"`
	} `json:"question"`
	Limit *struct {
		Kind    string    `json:"kind"`
		ResetAt time.Time `json:"reset_at"`
		Text    string    `json:"text"`
	} `json:"limit"`
}

type toolCall struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Input  string `json:"input"`
	Output string `json:"output"`
	Done   bool   `json:"done"`
	Failed bool   `json:"failed"`
}

type fileEdit struct {
	Path string `json:"path"`
	Diff string `json:"diff"`
}

// tell prints one line of a transcript; one that is none is shown as it is
// rather than left out.
func (t *teller) tell(p *page, line []byte) {
	var e entry
	if err := json.Unmarshal(line, &e); err != nil {
		e = entry{Kind: "raw", Text: string(line)}
	}
	if e.CostUSD > 0 {
		t.cost = e.CostUSD
	}
	if t.held != nil && e.Edit != nil && strings.HasSuffix("/"+t.held.input, "/"+t.short(e.Edit.Path)) {
		t.held = nil
	}
	t.release(p)
	text := e.Text
	if e.Cut > 0 {
		text = fmt.Sprintf("%s … (%d bytes left out)", strings.TrimSuffix(text, "\n"), e.Cut)
	}
	switch {
	case e.Kind == "usage":
		// Totals so far: the summary has them.
	case e.Tool != nil && !e.Tool.Done:
		t.begin(e)
	case e.Tool != nil:
		if t.held = (&answer{t.end(e), e}); !t.held.onFile || e.Tool.Failed {
			t.release(p)
		}
	case e.Edit != nil:
		p.edit(t.short(e.Edit.Path), e.Edit.Diff)
	case e.Question != nil:
		p.question(e.Question.Text, e.Question.Options)
	case e.Limit != nil:
		p.limit(e)
	case e.Kind == "blocker":
		p.paragraph(yellow, "  ", "! blocked: "+text)
	case e.Kind == "thought":
		p.thought(text)
	case e.Kind == "raw":
		p.paragraph(dim, "", text)
	case e.Stream == "notice":
		p.paragraph(dim, "", "· "+text)
	case e.Stream == "stderr":
		p.paragraph(red, "", text)
	default:
		p.paragraph("", "", text)
	}
}

// price takes from a line only what the run has cost.
func (t *teller) price(line []byte) {
	var e struct {
		CostUSD float64 `json:"cost_usd"`
	}
	if json.Unmarshal(line, &e) == nil && e.CostUSD > 0 {
		t.cost = e.CostUSD
	}
}

func (t *teller) begin(e entry) {
	t.open = append(t.open, t.call(e))
	t.open[len(t.open)-1].at = e.At
}

func (t *teller) call(e entry) call {
	input, onFile := toolInput(e.Tool.Input)
	return call{id: e.Tool.ID, name: toolName(e.Tool.Name), input: t.short(input), onFile: onFile}
}

// end finds the call that is answered: by its id, else the oldest of the name.
func (t *teller) end(e entry) call {
	i := slices.IndexFunc(t.open, func(c call) bool {
		if e.Tool.ID != "" {
			return c.id == e.Tool.ID
		}
		return c.name == toolName(e.Tool.Name)
	})
	if i < 0 {
		return t.call(e)
	}
	found := t.open[i]
	t.open = slices.Delete(t.open, i, i+1)
	return found
}

// release prints the call that was held back, if one is.
func (t *teller) release(p *page) {
	if t.held != nil {
		p.call(t.held.call, t.held.entry)
		t.held = nil
	}
}

// finish prints what the end of the run has cut off.
func (t *teller) finish(p *page) {
	t.release(p)
	for _, c := range t.open {
		p.callLine(c, "not finished", yellow)
	}
	t.open, t.cost = nil, 0
}

// busy is the call that is under way, for a line that changes; "" if none is.
func (t *teller) busy() string {
	if len(t.open) == 0 {
		return ""
	}
	c := t.open[len(t.open)-1]
	return strings.TrimSpace(c.name + " " + c.input)
}

var workspacePattern = regexp.MustCompile(`/[^\s"':=]*/workspaces/([0-9A-Za-z]+)(/?)`)

// short leaves the path of the task's workspace out of a text.
func (t *teller) short(text string) string {
	if t.task == "" {
		return text
	}
	return strings.TrimPrefix(workspacePattern.ReplaceAllStringFunc(text, func(path string) string {
		switch {
		case strings.HasSuffix(path, "/"+string(t.task)+"/"):
			return ""
		case strings.HasSuffix(path, "/"+string(t.task)):
			return "."
		}
		return path
	}), "cd . && ")
}

// toolName is a tool's name as people know it: that of a server's tool without
// the spelling of the protocol.
func toolName(name string) string {
	if rest, found := strings.CutPrefix(name, "mcp__"); found {
		return strings.Replace(rest, "__", " ", 1)
	}
	return name
}

// toolInput is what matters of a call's input, on one line: of a JSON object the
// member that says what is done, else all of it; and whether that is a file.
func toolInput(input string) (text string, onFile bool) {
	oneLine := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	var members map[string]any
	if err := json.Unmarshal([]byte(input), &members); err != nil {
		return oneLine(input), false
	}
	for _, key := range []string{"command", "cmd", "file_path", "filePath", "path", "notebook_path", "pattern", "query", "url", "question", "name", "text", "message", "description", "prompt"} {
		if text := memberText(members[key]); text != "" {
			return oneLine(text), strings.HasSuffix(strings.ToLower(key), "path")
		}
	}
	if len(members) == 0 {
		return "", false
	}
	return oneLine(input), false
}

// memberText is a text, or a list of texts as a command line: of a shell's the
// script alone.
func memberText(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case []any:
		words := make([]string, len(v))
		for i, word := range v {
			text, ok := word.(string)
			if !ok {
				return ""
			}
			words[i] = text
		}
		if len(words) == 3 && strings.HasSuffix(words[0], "sh") && (words[1] == "-c" || words[1] == "-lc") {
			return words[2]
		}
		return strings.Join(words, " ")
	}
	return ""
}

// call prints a call that is over, on one line; of one that has failed also the
// end of what it said.
func (p *page) call(c call, e entry) {
	const most = 3
	how, color := "ok", green
	if e.Tool.Failed {
		how, color = "failed", red
	}
	if !c.at.IsZero() && e.At.Sub(c.at) >= 100*time.Millisecond {
		how += " " + took(e.At.Sub(c.at))
	}
	p.callLine(c, how, color)
	if !e.Tool.Failed {
		return
	}
	lines := strings.Split(strings.TrimSpace(e.Tool.Output), "\n")
	for _, line := range lines[max(len(lines)-most, 0):] {
		if line = inertLine(line); line != "" {
			p.line("    %s", p.style(dim, p.clip(line, 4)))
		}
	}
}

func (p *page) callLine(c call, how, color string) {
	name, input := inert(c.name), inert(c.input)
	const indent, gap = 2, 2
	most := 120
	if p.width > 0 {
		most = p.width
	}
	name = cut(name, max(most/3, 10))
	input = cut(input, max(most-indent-columns(name)-1-gap-columns(how), 0))
	line := "  " + p.style(cyan, name)
	if input != "" {
		line += " " + input
	}
	p.line("%s  %s", line, p.style(color, how))
}

// clip cuts a text to what is left of the terminal behind an indent.
func (p *page) clip(text string, indent int) string {
	if p.width == 0 {
		return text
	}
	return cut(text, max(p.width-indent, 10))
}

// edit prints a change of a file: how many lines, and the first of them.
func (p *page) edit(path, diff string) {
	const most = 8
	var changed []string
	more, less := 0, 0
	for line := range strings.Lines(diff) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case strings.HasPrefix(line, "+++ ") || strings.HasPrefix(line, "--- "):
			continue
		case strings.HasPrefix(line, "+"):
			more++
		case strings.HasPrefix(line, "-"):
			less++
		default:
			continue
		}
		changed = append(changed, line)
	}
	counts := ""
	if len(changed) > 0 {
		counts = p.counts(more, less)
	}
	path = inert(path)
	if p.width > 0 {
		const rest = 20 // of the line
		path = cutFront(path, max(p.width-rest, 10))
	}
	p.line("  %s %s%s", p.style(cyan, "edit"), path, counts)
	for i, line := range changed {
		if i == most {
			p.line("    %s", p.style(dim, "… "+count(len(changed)-most, "more line")))
			return
		}
		color := green
		if line[0] == '-' {
			color = red
		}
		p.line("    %s", p.style(color, p.clip(inertLine(strings.ToValidUTF8(line, "\uFFFD")), 4)))
	}
}

// thought prints the beginning of what the agent thinks.
func (p *page) thought(text string) {
	const most = 3
	lines := strings.Split(strings.TrimSpace(text), "\n")
	p.paragraph(dim, "  ", strings.Join(lines[:min(most, len(lines))], "\n"))
	if len(lines) > most {
		p.line("  %s", p.style(dim, "… "+count(len(lines)-most, "more line")))
	}
}

// question prints a question with what can be chosen.
func (p *page) question(text string, options []string) {
	p.paragraph(yellow, "", "? "+strings.ReplaceAll(text, "\n", "\n  "))
	for i, option := range options {
		p.paragraph(yellow, "    ", strconv.Itoa(i+1)+". "+option)
	}
}

func (p *page) limit(e entry) {
	words := map[string]string{"warning": "close to the usage limit", "usage": "the usage limit is reached", "overload": "the provider is overloaded"}
	text := "! " + cmp.Or(words[e.Limit.Kind], e.Limit.Kind)
	if !e.Limit.ResetAt.IsZero() {
		text += ", until " + e.Limit.ResetAt.UTC().Format(time.RFC3339)
	}
	if e.Limit.Text != "" {
		text += ": " + e.Limit.Text
	}
	p.paragraph(yellow, "  ", text)
}

// took is how long something took, with a decimal where it is short.
func took(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}

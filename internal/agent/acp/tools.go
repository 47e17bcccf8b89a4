package acp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/claudomator/claudomator/internal/agent"
)

const (
	maxCalls = 256      // tool calls under way at once that are followed
	maxID    = 200      // bytes of a call's id that tell it from others
	maxEdits = 16 << 20 // bytes of changes of files that all of them may hold
)

// callUpdate is what an update says of a tool call.
type callUpdate struct {
	CallID string          `json:"toolCallId"`
	Name   string          `json:"name"`
	Title  string          `json:"title"`
	Of     string          `json:"kind"`
	Status string          `json:"status"`
	Input  json.RawMessage `json:"rawInput"`
	Output json.RawMessage `json:"rawOutput"`
}

// call is a tool call under way.
type call struct {
	tool     agent.Tool
	begun    bool // its event is out
	terminal string
	edits    []agent.Edit
}

// tools are the tool calls of a turn. Each becomes two events, however many
// updates there are: one as soon as it is known what is called with, one at its end.
type tools struct {
	emit  func(agent.Event)
	dir   string
	calls map[string]*call
	held  int // bytes of their edits
}

func (t *tools) take(u *update) {
	id := clipped(u.CallID, maxID)
	c := t.calls[id]
	if c == nil {
		c = &call{tool: agent.Tool{ID: id}}
		if len(t.calls) < maxCalls {
			t.calls[id] = c
		}
	}
	content := u.contents()
	c.name(u)
	ended := u.Status == "completed" || u.Status == "failed"
	if !ended || c.tool.Input == "" {
		c.input(u, content)
	}
	c.terminal = clipped(cmp.Or(u.Meta.Output.Data, c.terminal+u.Meta.OutputDelta.Data), maxText)
	for _, part := range content {
		t.change(c, part)
	}
	switch {
	case ended:
		c.tool.Done, c.tool.Failed = true, u.Status == "failed"
		c.tool.Output = c.output(u, content)
		delete(t.calls, id)
		t.out(c)
		for _, edit := range c.edits {
			if !c.tool.Failed {
				t.emit(agent.Event{Kind: agent.KindEdit, Edit: &edit})
			}
		}
	case !c.begun && (c.tool.Input != "" || u.Status == "in_progress"):
		c.begun = true
		t.out(c)
	}
	if t.calls[id] != c { // nothing more is heard of it
		for _, edit := range c.edits {
			t.held -= size(edit)
		}
	}
}

func size(e agent.Edit) int { return len(e.Path) + len(e.Diff) }

func (t *tools) out(c *call) {
	tool := c.tool
	t.emit(agent.Event{Kind: agent.KindTool, Tool: &tool})
}

// open names the calls that have not ended.
func (t *tools) open() []string {
	names := make([]string, 0, len(t.calls))
	for _, c := range t.calls {
		names = append(names, c.tool.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// name is the tool's name, where the program tells one; else the title, unless it
// is a sentence or a command line; else the kind of tool. It stays.
func (c *call) name(u *update) {
	if c.tool.Name != "" {
		return
	}
	name := cmp.Or(u.Name, u.Meta.Claude.ToolName)
	if name == "" && u.Title != "" && (!strings.ContainsAny(u.Title, " \t\n") || u.Of == "" || u.Of == "other") {
		name = u.Title
	}
	c.tool.Name = clipped(cmp.Or(name, u.Of, u.Title, "tool"), 200)
}

// input is what the tool is called with: as such, or the title of a call that names
// no tool, or the text that the call begins with.
func (c *call) input(u *update, content []part) {
	text := jsonText(u.Input)
	if text == "{}" {
		text = ""
	}
	if text == "" && u.Title != "" && clipped(u.Title, 200) != c.tool.Name && strings.ContainsAny(u.Title, " \t\n") {
		text = u.Title
	}
	if text == "" && c.tool.Input == "" && u.Kind == "tool_call" {
		text = texts(content)
	}
	c.tool.Input = cmp.Or(clipped(text, maxText), c.tool.Input)
}

func (c *call) output(u *update, content []part) string {
	raw := jsonText(u.Output)
	if strings.HasPrefix(string(bytes.TrimSpace(u.Output)), `"`) {
		return clipped(raw, maxText)
	}
	return clipped(cmp.Or(texts(content), c.terminal, raw), maxText)
}

// change notes what a part says of a file: less of it, or nothing, where the calls
// under way hold much already.
func (t *tools) change(c *call, p part) {
	if p.Type != "diff" || p.Path == "" || len(c.edits) >= maxCalls {
		return
	}
	edit := agent.Edit{Path: clipped(agent.Within(t.dir, p.Path), 4096), Diff: clipped(diff(p.Old, p.New), maxText)}
	at := slices.IndexFunc(c.edits, func(e agent.Edit) bool { return e.Path == edit.Path })
	if at >= 0 { // programs repeat it as it becomes clear
		t.held -= size(c.edits[at])
		c.edits = slices.Delete(c.edits, at, at+1)
	} else {
		at = len(c.edits)
	}
	if t.held+size(edit) > maxEdits {
		edit.Diff = ""
	}
	if t.held+size(edit) <= maxEdits {
		t.held += size(edit)
		c.edits = slices.Insert(c.edits, at, edit)
	}
}

// part is one piece of a tool call's content: a block, a diff, or a terminal.
type part struct {
	Type    string `json:"type"`
	Content block  `json:"content"`
	Path    string `json:"path"`
	Old     string `json:"oldText"`
	New     string `json:"newText"`
}

func (u *update) contents() []part {
	var list []part
	if given(u.Content) {
		_ = lenient(u.Content, &list) // what is no list has nothing of it
	}
	return list
}

func texts(content []part) string {
	var list []string
	for _, p := range content {
		if text := p.Content.String(); p.Type == "content" && text != "" {
			list = append(list, text)
		}
	}
	return strings.Join(list, "\n")
}

// jsonText is a string's text, and any other value as it is written.
func jsonText(raw json.RawMessage) string {
	var text string
	if !given(raw) || json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

// diff is the lines that differ between two texts, between what is equal at their
// beginning and at their end.
func diff(before, after string) string {
	a, b := slices.Collect(strings.Lines(before)), slices.Collect(strings.Lines(after))
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	removed, added := a[head:len(a)-tail], b[head:len(b)-tail]
	if len(removed)+len(added) == 0 {
		return ""
	}
	var out strings.Builder
	fmt.Fprintf(&out, "@@ -%d,%d +%d,%d @@\n", head+min(1, len(removed)), len(removed), head+min(1, len(added)), len(added))
	write := func(sign string, lines []string) {
		for _, line := range lines {
			out.WriteString(sign + strings.TrimSuffix(line, "\n") + "\n")
		}
	}
	write("-", removed)
	write("+", added)
	return out.String()
}

package codex

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/claudomator/claudomator/internal/agent"
)

const (
	maxRunning  = 1000    // tool calls, and sub-agents, that are remembered as running
	maxName     = 4 << 10 // bytes of each text that is remembered of them
	nearlySpent = 90      // percent of a limit used, from which people are warned
)

// reader is one run of Codex as it is read. Its methods may be called at once.
type reader struct {
	s    *agent.Session
	job  agent.Job
	dir  string // the workspace, without links
	rows map[[2]string]Row

	mu      sync.Mutex
	rollout *rollout
	base    tokens // of the conversation before this run
	used    tokens // of the conversation, as last reported
	warned  []window
	running []agent.Tool
	agents  []subagent
	failed  bool
	failure string
	over    bool // completed: its own count is the last word
}

// subagent is one that Codex has given work to.
type subagent struct{ id, prompt string }

func newReader(s *agent.Session, job agent.Job, home string) *reader {
	r := &reader{s: s, job: job, dir: job.Dir, rows: make(map[[2]string]Row), rollout: newRollout(home, job.Resume)}
	if dir, err := filepath.EvalSymlinks(job.Dir); err == nil {
		r.dir = dir
	}
	for _, row := range Rows() {
		r.rows[[2]string{row.Event, row.Item}] = row
	}
	if job.Resume != "" {
		r.rollout.poll()
		r.base, r.used = r.rollout.total, r.rollout.total
		r.rollout.limits, r.rollout.kind = limits{}, nil // of earlier runs
	}
	return r
}

// line takes one line of output.
func (r *reader) line(stream agent.Stream, text agent.Line) {
	if stream == agent.Stderr || !bytes.HasPrefix(text.Text, []byte("{")) {
		r.s.LogLine(stream, text)
		if stream == agent.Stderr && r.job.Resume != "" && bytes.HasPrefix(text.Text, []byte("Error: thread/resume")) {
			r.s.NoResume()
		}
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var l line
	if text.Cut > 0 || json.Unmarshal(text.Text, &l) != nil {
		r.raw(text)
		return
	}
	key := [2]string{l.Type, ""}
	if len(l.Item) > 0 {
		var h head
		_ = json.Unmarshal(l.Item, &h)
		key[1] = h.Type
	}
	row, known := r.rows[key]
	if !known || key[1] != "" && json.Unmarshal(l.Item, &l.item) != nil {
		r.raw(text)
		return
	}
	row.read(r, &l)
	if key[1] != "" || l.Type == "error" {
		r.follow()
	}
}

// raw records a line that is not understood, and takes from it what can be
// known: that a call has ended whose output made the line too long.
func (r *reader) raw(text agent.Line) {
	r.s.Emit(agent.Event{Kind: agent.KindRaw, Stream: agent.Stdout, Text: string(text.Text), Cut: text.Cut})
	begin := text.Text[:min(len(text.Text), 300)]
	if m := regexp.MustCompile(`^\{"type":"item\.completed","item":\{"id":"([^"]*)"`).FindSubmatch(begin); m != nil {
		id := string(m[1])
		if i := slices.IndexFunc(r.running, func(t agent.Tool) bool { return t.ID == id }); i >= 0 {
			tool := r.running[i]
			tool.Done, tool.Output = true, fmt.Sprintf("[the line was too long; its beginning is recorded, %d bytes were left out]", text.Cut)
			r.s.Emit(agent.Event{Kind: agent.KindTool, Tool: &tool})
			r.finished(id)
		}
	}
}

func (r *reader) finished(id string) {
	r.running = slices.DeleteFunc(r.running, func(t agent.Tool) bool { return t.ID == id })
}

// follow takes what the conversation's file says by now.
func (r *reader) follow() {
	r.rollout.poll()
	if r.rollout.counted && !r.over {
		r.use(r.rollout.total)
	}
	for _, w := range r.rollout.limits.windows() {
		if w.Used < nearlySpent || slices.ContainsFunc(r.warned, func(o window) bool { return o.Minutes == w.Minutes && o.ResetsAt == w.ResetsAt }) {
			continue
		}
		if len(r.warned) < maxRunning {
			r.warned = append(r.warned, *w)
		}
		r.s.Emit(agent.Event{Kind: agent.KindLimit, Limit: &agent.Limit{
			Kind: agent.LimitWarning, ResetAt: w.reset(), Text: fmt.Sprintf("%.0f %% of the %s is used", w.Used, w),
		}})
	}
}

// use reports what the run used so far, from the conversation's count.
func (r *reader) use(total tokens) {
	if total != r.used {
		r.used = total
		usage := total.since(r.base)
		r.s.Emit(agent.Event{Kind: agent.KindUsage, Usage: &usage})
	}
}

// after looks at the conversation's file for the last time and says why the
// turn failed.
func (r *reader) after() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.follow()
	if !r.failed {
		return
	}
	f := explain(r.rollout.kind, r.failure)
	if f.NoResume && r.job.Resume != "" {
		r.s.NoResume()
	}
	if f.Met == "" {
		return
	}
	limit := &agent.Limit{Kind: f.Met, Text: r.failure}
	if f.Met == agent.LimitUsage {
		limit.ResetAt = r.rollout.limits.reset()
	}
	r.s.Emit(agent.Event{Kind: agent.KindLimit, Limit: limit})
}

// shorten keeps a warning to one short line.
func shorten(text string) string {
	text, _, more := strings.Cut(strings.TrimSpace(text), "\n")
	if runes := []rune(text); len(runes) > 120 {
		text, more = string(runes[:120]), true
	}
	if more {
		text += "…"
	}
	return text
}

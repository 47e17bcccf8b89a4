package codex

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"github.com/claudomator/claudomator/internal/agent"
)

const (
	rolloutLimit = 1 << 30 // bytes of a conversation's file that are read in one run
	maxSearches  = 20      // for the file, among all conversations of the user
)

// rollout reads the file of a conversation as it grows. Anything may be wrong
// with that file: then it says nothing. Not safe for concurrent use.
type rollout struct {
	home   string
	thread string
	path   string
	sought int // how often the file was looked for
	offset int64
	lines  *agent.Lines

	counted bool   // total was said
	total   tokens // of the conversation so far
	limits  limits // the last ones said
	kind    json.RawMessage
}

// tokens are counted over a whole conversation. Input includes what was cached.
type tokens struct {
	Input      int64 `json:"input_tokens"`
	Output     int64 `json:"output_tokens"`
	CacheRead  int64 `json:"cached_input_tokens"`
	CacheWrite int64 `json:"cache_write_input_tokens"`
}

// since is what was used after base.
func (t tokens) since(base tokens) agent.Usage {
	u := agent.Usage{
		Output:     max(0, t.Output-base.Output),
		CacheRead:  max(0, t.CacheRead-base.CacheRead),
		CacheWrite: max(0, t.CacheWrite-base.CacheWrite),
	}
	u.Input = max(0, t.Input-base.Input-u.CacheRead-u.CacheWrite)
	return u
}

// limits are the account's, as the provider last told them.
type limits struct {
	Primary   *window `json:"primary"`
	Secondary *window `json:"secondary"`
}

type window struct {
	Used     float64 `json:"used_percent"`
	Minutes  float64 `json:"window_minutes"`
	ResetsAt float64 `json:"resets_at"` // seconds since 1970; 0: unknown
}

func (w *window) reset() time.Time { return agent.Unix(w.ResetsAt) }

func (w *window) String() string {
	length := time.Duration(w.Minutes) * time.Minute
	switch {
	case length <= 0 || length > 400*24*time.Hour:
		return "usage limit"
	case length%(24*time.Hour) == 0:
		return fmt.Sprintf("usage limit of %d days", length/(24*time.Hour))
	case length%time.Hour == 0:
		return fmt.Sprintf("usage limit of %d hours", length/time.Hour)
	}
	return fmt.Sprintf("usage limit of %d minutes", length/time.Minute)
}

func (l limits) windows() []*window {
	var list []*window
	for _, w := range []*window{l.Primary, l.Secondary} {
		if w != nil {
			list = append(list, w)
		}
	}
	return list
}

// reset is when the account can be used again: the last reset of a window that
// is used up; zero: unknown.
func (l limits) reset() time.Time {
	var at time.Time
	for _, w := range l.windows() {
		if reset := w.reset(); w.Used >= 100 && reset.After(at) {
			at = reset
		}
	}
	return at
}

func newRollout(home, thread string) *rollout {
	r := &rollout{home: home, thread: thread}
	r.lines = agent.NewLines(agent.MaxLine, r.record)
	return r
}

// isThread says whether an id has the form of Codex's: it becomes part of a
// file name.
func isThread(id string) bool {
	return regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`).MatchString(id)
}

// poll reads what was added.
func (r *rollout) poll() {
	if r.path == "" && !r.find() {
		return
	}
	// The file lies where the agent can put another one: a link or a pipe in
	// its place is not followed or waited for.
	file, err := os.OpenFile(r.path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() <= r.offset {
		return
	}
	n, _ := io.Copy(r.lines, io.NewSectionReader(file, r.offset, min(info.Size(), rolloutLimit)-r.offset))
	r.offset += n
}

func (r *rollout) find() bool {
	if r.home == "" || !isThread(r.thread) || r.sought >= maxSearches {
		return false
	}
	r.sought++
	root := filepath.Join(r.home, "sessions") // no part of the pattern: its name may hold anything
	found, err := fs.Glob(os.DirFS(root), "*/*/*/rollout-*-"+r.thread+".jsonl")
	if err != nil || len(found) == 0 {
		return false
	}
	r.path = filepath.Join(root, found[len(found)-1])
	return true
}

// record takes one line.
func (r *rollout) record(line agent.Line) {
	if line.Cut > 0 || !bytes.Contains(line.Text, []byte(`"token_count"`)) && !bytes.Contains(line.Text, []byte(`"task_complete"`)) {
		return
	}
	var record struct {
		Type    string `json:"type"`
		Payload struct {
			Type string `json:"type"`
			Info *struct {
				Total *tokens `json:"total_token_usage"`
			} `json:"info"`
			Limits *limits         `json:"rate_limits"`
			Error  json.RawMessage `json:"error"`
		} `json:"payload"`
	}
	if json.Unmarshal(line.Text, &record) != nil || record.Type != "event_msg" {
		return
	}
	switch p := record.Payload; p.Type {
	case "token_count":
		if p.Info != nil && p.Info.Total != nil && p.Info.Total.Input > 0 {
			r.total, r.counted = *p.Info.Total, true
		}
		if p.Limits != nil && len(p.Limits.windows()) > 0 {
			r.limits = *p.Limits
		}
	case "task_complete":
		var failed struct {
			Kind json.RawMessage `json:"codex_error_info"`
		}
		if json.Unmarshal(p.Error, &failed) == nil {
			r.kind = failed.Kind
		}
	}
}

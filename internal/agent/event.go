package agent

import (
	"path/filepath"
	"time"
)

// Kind is what an event is about. The set is closed.
type Kind string

const (
	KindText     Kind = "text"      // the agent speaks
	KindThought  Kind = "thought"   // the agent thinks
	KindTool     Kind = "tool_call" // a tool is called, or has answered
	KindEdit     Kind = "file_edit" // a file was changed
	KindUsage    Kind = "usage"     // tokens and cost of the run so far
	KindQuestion Kind = "question"  // the agent asks a person
	KindLimit    Kind = "limit"     // a usage limit, an overload or a retry
	KindBlocker  Kind = "blocker"   // a roadblock reported by a printed line
	KindLog      Kind = "log"       // a line of output, or a notice
	KindRaw      Kind = "raw"       // protocol output that was not understood
)

// Kinds returns all of them.
func Kinds() []Kind {
	return []Kind{KindText, KindThought, KindTool, KindEdit, KindUsage, KindQuestion, KindLimit, KindBlocker, KindLog, KindRaw}
}

// Stream names where a line came from.
type Stream string

const (
	Stdout Stream = "stdout"
	Stderr Stream = "stderr"
	Notice Stream = "notice" // said by this package, not by the agent
)

// Event is one thing that happened in a run. Marshalled it is one line of the
// transcript.
type Event struct {
	At     time.Time `json:"at"`
	Kind   Kind      `json:"kind"`
	Stream Stream    `json:"stream,omitempty"`
	Text   string    `json:"text,omitempty"`
	Cut    int64     `json:"cut,omitempty"` // bytes left out of Text
	Tool   *Tool     `json:"tool,omitempty"`
	Edit   *Edit     `json:"edit,omitempty"`
	// Usage and CostUSD are totals of the run so far: a later event replaces
	// an earlier one.
	Usage    *Usage    `json:"usage,omitempty"`
	CostUSD  float64   `json:"cost_usd,omitempty"`
	Question *Question `json:"question,omitempty"`
	Limit    *Limit    `json:"limit,omitempty"`
}

// Tool is a call of a tool, reported when it begins and again when it ends.
type Tool struct {
	ID     string `json:"id,omitempty"`
	Name   string `json:"name"`
	Input  string `json:"input,omitempty"`  // as the program prints it, usually JSON
	Output string `json:"output,omitempty"` // when it has ended
	Done   bool   `json:"done,omitempty"`
	Failed bool   `json:"failed,omitempty"`
}

// Edit is a change of one file.
type Edit struct {
	Path string `json:"path"`
	Diff string `json:"diff,omitempty"`
}

// Usage counts tokens.
type Usage struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cache_read"`
	CacheWrite int64 `json:"cache_write"`
}

// Question is what the agent wants to know.
type Question struct {
	Text    string   `json:"text"`
	Options []string `json:"options,omitempty"`
}

// LimitKind says which limit was met.
type LimitKind string

const (
	LimitWarning LimitKind = "warning"  // close to the usage limit; the run goes on
	LimitUsage   LimitKind = "usage"    // usage limit of the account reached
	LimitLoad    LimitKind = "overload" // the provider is overloaded
)

// Limit is a limit as the agent program reported it, from structured signals
// or its own error channel only, never from what the model said.
type Limit struct {
	Kind    LimitKind `json:"kind"`
	ResetAt time.Time `json:"reset_at,omitzero"` // zero: unknown
	Text    string    `json:"text,omitempty"`
}

// Within is a path as seen from the workspace dir, where it lies in it.
func Within(dir, path string) string {
	if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// Unix is the instant that a program gives in seconds since 1970; zero where it
// cannot be one: before 1970, or after the year 9999, which a transcript cannot say.
func Unix(seconds float64) time.Time {
	const end = 253402300800 // of the year 9999
	if !(seconds >= 1 && seconds < end) {
		return time.Time{}
	}
	return time.UnixMilli(int64(seconds * 1000)).UTC()
}

// Sink receives the events of a run, one at a time, in order. Emit may block:
// the agent then waits. It must not be called after Agent.Run has returned,
// and never is by a Session.
type Sink interface{ Emit(Event) }

// SinkFunc makes a Sink of a function.
type SinkFunc func(Event)

// Emit calls the function.
func (f SinkFunc) Emit(e Event) { f(e) }

package agent

import (
	"context"
	"errors"
	"time"

	"github.com/claudomator/claudomator/internal/sandbox"
)

// Agent is one kind of agent program. Implementations are safe for concurrent
// use and hold no state between runs.
type Agent interface {
	// Installed is nil when the program is there, at the cost of a few file
	// look-ups.
	Installed() error
	// Describe says what is installed; it may start the program to ask for its
	// version. An error means the agent is not usable on this machine, and why.
	Describe(ctx context.Context) (Description, error)
	// Run does one job to its end; see the package's invariants. The job's ID
	// must be unique among all runs of this machine.
	Run(ctx context.Context, job Job, sink Sink) (Result, error)
}

// Description is what an agent program is.
type Description struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"` // empty where it has none
	Path    string `json:"path,omitempty"`    // the program's file; empty where the job names it
}

// Job is one run to be done.
type Job struct {
	ID     string        // execution id; also names the run on the machine
	TaskID string        // for the agent's environment
	Dir    string        // workspace, absolute
	Level  sandbox.Level // empty: none
	// Command is the program of a command agent; other adapters take it as
	// their program's path and first arguments, where given.
	Command      []string
	Prompt       string // delivered byte for byte
	Model        string
	AllowedTools []string // empty: all
	MaxTurns     int      // 0: the program's own
	// Env is added to the allow-listed environment, as NAME=value.
	Env    []string
	Facts  []string // NAME=value that the server itself adds, CLAUDOMATOR_… among them
	MCP    Endpoint
	Bin    string // path of this server's binary, for "claudomator tool"
	Resume string // Handle of an earlier run; empty: a new conversation
	Limits Limits
}

// Endpoint is where the run's tools are offered.
type Endpoint struct{ URL, Token string }

// Limits bound a run. Zero takes the default; nothing is unlimited.
type Limits struct {
	Wall       time.Duration // whole run; 1 h
	Silence    time.Duration // without any output; 15 min
	BudgetUSD  float64       // stops the run when reported cost exceeds it; 0: no budget
	StopGrace  time.Duration // between the polite request to stop and the kill; 5 s
	Linger     time.Duration // between the reported end and the program's; 5 s
	Transcript int64         // bytes of recorded output; 32 MiB
}

func (l Limits) withDefaults() Limits {
	for _, d := range []struct {
		value *time.Duration
		or    time.Duration
	}{
		{&l.Wall, time.Hour},
		{&l.Silence, 15 * time.Minute},
		{&l.StopGrace, 5 * time.Second},
		{&l.Linger, 5 * time.Second},
	} {
		if *d.value <= 0 {
			*d.value = d.or
		}
	}
	if l.Transcript <= 0 {
		l.Transcript = 32 << 20
	}
	return l
}

// Causes for ending a run from outside: cancel the context with one of them,
// or with an error that wraps one. Any other cause counts as ErrCancelled, a
// context's own deadline as ErrTimeout.
var (
	ErrCancelled = errors.New("run cancelled")
	ErrStopping  = errors.New("server is stopping")
	ErrTimeout   = errors.New("time limit reached")
	ErrBudget    = errors.New("budget spent")
	ErrParked    = errors.New("run ended to wait for an answer")
)

// Outcome is how a run ended.
type Outcome string

const (
	Success        Outcome = "success"
	Asked          Outcome = "question" // waits for an answer
	Failed         Outcome = "failed"
	Overloaded     Outcome = "overloaded" // the model's provider; no failure of the agent
	Limited        Outcome = "limited"    // usage limit of the account; no failure of the agent
	TimedOut       Outcome = "timed_out"
	Silenced       Outcome = "silent" // no output for too long
	BudgetExceeded Outcome = "budget_exceeded"
	Cancelled      Outcome = "cancelled"
)

// Outcomes returns all of them.
func Outcomes() []Outcome {
	return []Outcome{Success, Asked, Failed, Overloaded, Limited, TimedOut, Silenced, BudgetExceeded, Cancelled}
}

// Result is what a run left. Its raw facts are kept beside the outcome drawn
// from them.
type Result struct {
	Outcome Outcome `json:"outcome"`
	Rule    string  `json:"rule"`            // the row of Rules that decided
	Error   string  `json:"error,omitempty"` // for people; empty on success and question
	// AgentFault: the program could not be started or broke its protocol, so
	// the next run will likely fare no better.
	AgentFault bool `json:"agent_fault,omitempty"`
	// NoResume: the conversation to be resumed is not there any more, or cannot
	// go on; nothing was done. A new one can be begun.
	NoResume bool      `json:"no_resume,omitempty"`
	Question *Question `json:"question,omitempty"` // when the agent asked in its stream
	// Warnings are for whoever reviews the work, such as work that was still
	// under way in the background when the agent ended.
	Warnings []string `json:"warnings,omitempty"`
	Limit    *Limit   `json:"limit,omitempty"` // the last one reported
	Usage    Usage    `json:"usage"`
	CostUSD  float64  `json:"cost_usd"`
	Handle   string   `json:"handle,omitempty"` // resumes the conversation
	Facts    Facts    `json:"facts"`
	// Level is the isolation really used; empty when nothing was started.
	Level sandbox.Level `json:"level,omitempty"`
	// Tail is the last 4 KB of both output streams, sanitised.
	Tail        string `json:"tail,omitempty"`
	OutputBytes int64  `json:"output_bytes"`
	Dropped     int64  `json:"dropped,omitempty"` // events left out of the transcript
	Killed      int    `json:"killed,omitempty"`  // processes that had to be killed at the end
}

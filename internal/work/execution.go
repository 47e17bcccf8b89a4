package work

import (
	"fmt"
	"maps"
	"strings"
	"time"
)

// ExecutionKind is what an execution runs.
type ExecutionKind string

// The kinds of execution.
const (
	AgentRun  ExecutionKind = "agent"
	SubmitRun ExecutionKind = "submit" // collects work done by hand; no agent runs
	GateRun   ExecutionKind = "gates"
	DeployRun ExecutionKind = "deploy"
	SmokeRun  ExecutionKind = "smoke"
)

// ExecutionKinds lists the kinds.
func ExecutionKinds() []ExecutionKind {
	return []ExecutionKind{AgentRun, SubmitRun, GateRun, DeployRun, SmokeRun}
}

// Own is true for runs in the task's own workspace, which decide what becomes of
// the task; the others look at its work elsewhere.
func (k ExecutionKind) Own() bool { return k == AgentRun || k == SubmitRun }

// Execution is one run of one agent (or of a task's gates) on one task.
type Execution struct {
	ID            ExecutionID    `json:"id"`
	TaskID        TaskID         `json:"task_id"`
	Kind          ExecutionKind  `json:"kind"`
	Number        int            `json:"number"`
	State         ExecutionState `json:"state"`
	Outcome       Outcome        `json:"outcome,omitempty"`
	Agent         string         `json:"agent,omitempty"`
	Model         string         `json:"model,omitempty"`
	Isolation     string         `json:"isolation,omitempty"`
	Node          string         `json:"node,omitempty"`
	SessionHandle string         `json:"session_handle,omitempty"`
	ExitCode      *int           `json:"exit_code,omitempty"`
	Error         string         `json:"error,omitempty"`
	Usage         Usage          `json:"usage"`
	CostUSD       float64        `json:"cost_usd"`
	CostEstimated bool           `json:"cost_estimated"`
	Base          string         `json:"base,omitempty"`
	Head          string         `json:"head,omitempty"`
	Gates         []GateResult   `json:"gates,omitempty"`
	LogBytes      int64          `json:"log_bytes"`
	CreatedAt     time.Time      `json:"created_at"`
	StartedAt     time.Time      `json:"started_at,omitzero"`
	EndedAt       time.Time      `json:"ended_at,omitzero"`

	TreeID     TreeID    `json:"-"`
	Fence      int64     `json:"-"` // raised at every begin; a writer with another fence is refused
	LeaseUntil time.Time `json:"-"`
	JobID      int64     `json:"-"` // the job that carries it, for cancelling
	Stopping   Outcome   `json:"-"` // it was told to stop; what it will then be recorded as
	Round      int       `json:"-"` // the review round a gate run belongs to
	Commit     string    `json:"-"` // the commit a gate run judges
	Reported   *Verdict  `json:"-"` // what a judging agent reported during this run
	Asked      *Question `json:"-"` // what the agent asked during this run
	TokenHash  string    `json:"-"` // of the run token, hex SHA-256
	Spec       AgentSpec `json:"-"` // resolved when it began
}

// Live is true while the execution is not over.
func (x *Execution) Live() bool { return x.State == ExecutionQueued || x.State == ExecutionRunning }

// Usage counts tokens.
type Usage struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cache_read"`
	CacheWrite int64 `json:"cache_write"`
}

// Plus adds what two runs have used.
func (u Usage) Plus(v Usage) Usage {
	return Usage{u.Input + v.Input, u.Output + v.Output, u.CacheRead + v.CacheRead, u.CacheWrite + v.CacheWrite}
}

// GateResult is one gate command and what came of it.
type GateResult struct {
	Command  string `json:"command"`
	ExitCode int    `json:"exit_code"`
	Output   string `json:"output,omitempty"` // the last part, at most 16 KiB
	TimedOut bool   `json:"timed_out,omitempty"`
}

// Passed is true when the command ended with exit code 0.
func (g GateResult) Passed() bool { return g.ExitCode == 0 && !g.TimedOut }

// Verdict is what a judging role says about one attempt and commit.
type Verdict struct {
	Approved  bool        `json:"approved"`
	Reasoning string      `json:"reasoning,omitempty"`
	Criteria  []Criterion `json:"criteria,omitempty"`
	Findings  Findings    `json:"findings,omitempty"`
	Evidence  []Evidence  `json:"evidence,omitempty"`
}

// Criterion says whether one acceptance criterion is met, and how that was
// verified.
type Criterion struct {
	Criterion string `json:"criterion"`
	Met       bool   `json:"met"`
	How       string `json:"how"`
}

// Finding is one objection. Its identity across rounds is (role, file, line,
// kind), and its text where it names no file.
type Finding struct {
	Role     Role   `json:"role,omitempty" doc:"The dimension that found it"`
	Kind     string `json:"kind" doc:"One or two words for the kind of problem, such as missing-test"`
	Severity string `json:"severity,omitempty" doc:"high, medium or low"`
	File     string `json:"file,omitempty" doc:"Path in the repository"`
	Line     int    `json:"line,omitempty" doc:"Line in the file, from 1"`
	Text     string `json:"text" doc:"What is wrong and what would be right"`
}

// Findings is a list of objections.
type Findings []Finding

// String is the finding as a person reads it.
func (f Finding) String() string {
	at := f.File
	if f.Line > 0 {
		at += fmt.Sprintf(":%d", f.Line)
	}
	return strings.TrimSpace(strings.Join(strings.Fields(string(f.Role)+" "+f.Severity+" "+at), " ") + " " + f.Text)
}

// Same is true when both lists hold the same findings.
func (f Findings) Same(other Findings) bool {
	type key struct {
		role Role
		kind string
		file string
		line int
		text string
	}
	ids := func(list Findings) map[key]bool {
		out := map[key]bool{}
		for _, x := range list {
			k := key{role: x.Role, kind: x.Kind, file: x.File, line: x.Line}
			if x.File == "" {
				k.text = x.Text
			}
			out[k] = true
		}
		return out
	}
	return maps.Equal(ids(f), ids(other))
}

// Evidence is a command someone ran and what it printed.
type Evidence struct {
	Command  string `json:"command"`
	ExitCode int    `json:"exit_code"`
	Output   string `json:"output,omitempty"`
}

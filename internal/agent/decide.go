package agent

import (
	"context"
	"errors"
	"slices"
)

// Stop is why the run was ended by us; empty when it ended by itself.
type Stop string

const (
	StopNone     Stop = ""
	StopCancel   Stop = "cancelled"
	StopShutdown Stop = "stopping"
	StopTimeout  Stop = "timeout"
	StopSilence  Stop = "silence"
	StopBudget   Stop = "budget"
	StopParked   Stop = "parked"
	StopLinger   Stop = "linger" // it had reported its end and did not leave
)

// End is what the agent reported as its end; empty when it reported none. An
// adapter whose program reports by its exit status alone says so in Program.
type End string

const (
	EndNone     End = ""
	EndSuccess  End = "success"
	EndFailure  End = "failure"
	EndQuestion End = "question"
)

// Exit is the kind of the main process's end.
type Exit string

const (
	ExitNever  Exit = "not_started"
	ExitZero   Exit = "zero"
	ExitStatus Exit = "status"
	ExitSignal Exit = "signal"
	// ExitUnknown: the main process could not be ended.
	ExitUnknown Exit = ""
)

// Facts are what a run's outcome is decided from.
type Facts struct {
	Stop Stop      `json:"stop,omitempty"`
	End  End       `json:"end,omitempty"`
	Met  LimitKind `json:"met,omitempty"` // limit met and not overcome since; never a warning
	Exit Exit      `json:"exit"`
	// Code and Signal are the exact end of the main process; -1 and a name
	// for a signal.
	Code   int    `json:"code"`
	Signal string `json:"signal,omitempty"`
}

// Rule is one row of the decision table: facts that must be among those
// listed, and the outcome. A nil list takes anything.
type Rule struct {
	Name       string
	Stop       []Stop
	End        []End
	Met        []LimitKind
	Exit       []Exit
	Outcome    Outcome
	AgentFault bool
}

// Rules is the decision table; the first row that fits decides. In words:
// people and budgets come first; a question is a question; a reported success
// stands, whatever became of the process afterwards; then our own limits, but
// a provider that held the agent up is not the agent's silence; then reported
// failure; then the exit. The last rows fit only programs that owe a report:
// for them exit 0 without one proves nothing.
func Rules() []Rule {
	return []Rule{
		{Name: "cancelled", Stop: []Stop{StopCancel}, Outcome: Cancelled},
		{Name: "server stopping", Stop: []Stop{StopShutdown}, Outcome: Cancelled},
		{Name: "budget spent", Stop: []Stop{StopBudget}, Outcome: BudgetExceeded},
		{Name: "parked for an answer", Stop: []Stop{StopParked}, Outcome: Asked},
		{Name: "asked", End: []End{EndQuestion}, Outcome: Asked},
		{Name: "not started", Exit: []Exit{ExitNever}, Outcome: Failed, AgentFault: true},
		{Name: "reported success", End: []End{EndSuccess}, Outcome: Success},
		{Name: "usage limit", Met: []LimitKind{LimitUsage}, Outcome: Limited},
		{Name: "overload", Met: []LimitKind{LimitLoad}, Outcome: Overloaded},
		{Name: "reported failure", End: []End{EndFailure}, Outcome: Failed},
		{Name: "time limit", Stop: []Stop{StopTimeout}, Outcome: TimedOut},
		{Name: "silence limit", Stop: []Stop{StopSilence}, Outcome: Silenced},
		{Name: "exit status without a report", Exit: []Exit{ExitStatus}, Outcome: Failed},
		{Name: "signal without a report", Exit: []Exit{ExitSignal}, Outcome: Failed},
		{Name: "exit 0 without a report", Exit: []Exit{ExitZero}, Outcome: Failed, AgentFault: true},
		{Name: "not ended", Outcome: Failed},
	}
}

// Decide applies Rules. The last row takes anything, so one always fits.
func Decide(f Facts) Rule {
	rules := Rules()
	return rules[slices.IndexFunc(rules, func(r Rule) bool {
		return fits(r.Stop, f.Stop) && fits(r.End, f.End) && fits(r.Met, f.Met) && fits(r.Exit, f.Exit)
	})]
}

func fits[T comparable](wanted []T, fact T) bool {
	return wanted == nil || slices.Contains(wanted, fact)
}

// stopOf reads the cause of a cancelled context.
func stopOf(cause error) Stop {
	switch {
	case errors.Is(cause, ErrStopping):
		return StopShutdown
	case errors.Is(cause, ErrBudget):
		return StopBudget
	case errors.Is(cause, ErrParked):
		return StopParked
	case errors.Is(cause, ErrTimeout), errors.Is(cause, context.DeadlineExceeded):
		return StopTimeout
	}
	return StopCancel
}

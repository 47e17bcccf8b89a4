package agent

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

// Each row of Rules decides at least one of these; none is decided by a row
// that the table does not name.
func TestDecide(t *testing.T) {
	t.Parallel()
	reached := make(map[string]bool)
	for _, tt := range []struct {
		facts   Facts
		outcome Outcome
		rule    string
	}{
		{Facts{Stop: StopCancel, Exit: ExitSignal}, Cancelled, "cancelled"},
		{Facts{Stop: StopCancel, End: EndSuccess, Exit: ExitZero}, Cancelled, "cancelled"},
		{Facts{Stop: StopCancel, Exit: ExitNever}, Cancelled, "cancelled"},
		{Facts{Stop: StopShutdown, Exit: ExitZero}, Cancelled, "server stopping"},
		{Facts{Stop: StopBudget, End: EndSuccess, Exit: ExitSignal}, BudgetExceeded, "budget spent"},
		{Facts{Stop: StopParked, Exit: ExitSignal}, Asked, "parked for an answer"},
		{Facts{Stop: StopParked, End: EndFailure, Exit: ExitStatus}, Asked, "parked for an answer"},
		{Facts{End: EndQuestion, Exit: ExitZero}, Asked, "asked"},
		{Facts{Stop: StopLinger, End: EndQuestion, Exit: ExitSignal}, Asked, "asked"},
		{Facts{Exit: ExitNever}, Failed, "not started"},
		{Facts{End: EndSuccess, Exit: ExitZero}, Success, "reported success"},
		{Facts{End: EndSuccess, Exit: ExitStatus}, Success, "reported success"}, // exit 1 after a complete result
		{Facts{End: EndSuccess, Exit: ExitSignal}, Success, "reported success"}, // killed after the result
		{Facts{Stop: StopLinger, End: EndSuccess, Exit: ExitSignal}, Success, "reported success"},
		{Facts{Stop: StopTimeout, End: EndSuccess, Exit: ExitSignal}, Success, "reported success"},
		{Facts{End: EndSuccess, Met: LimitLoad, Exit: ExitZero}, Success, "reported success"},
		{Facts{End: EndFailure, Met: LimitUsage, Exit: ExitStatus}, Limited, "usage limit"},
		{Facts{Met: LimitUsage, Exit: ExitZero}, Limited, "usage limit"},
		{Facts{End: EndFailure, Met: LimitLoad, Exit: ExitStatus}, Overloaded, "overload"},
		{Facts{Stop: StopSilence, Met: LimitLoad, Exit: ExitSignal}, Overloaded, "overload"}, // retries for ever, silently
		{Facts{End: EndFailure, Exit: ExitZero}, Failed, "reported failure"},                 // exit 0 with a result marked error
		{Facts{Stop: StopLinger, End: EndFailure, Exit: ExitSignal}, Failed, "reported failure"},
		{Facts{Stop: StopTimeout, Exit: ExitZero}, TimedOut, "time limit"}, // obeyed our request and exited 0
		{Facts{Stop: StopTimeout, Exit: ExitSignal}, TimedOut, "time limit"},
		{Facts{Stop: StopSilence, Exit: ExitSignal}, Silenced, "silence limit"},
		{Facts{Exit: ExitStatus}, Failed, "exit status without a report"},
		{Facts{Exit: ExitSignal}, Failed, "signal without a report"},
		{Facts{Exit: ExitZero}, Failed, "exit 0 without a report"},
		{Facts{Exit: ExitUnknown}, Failed, "not ended"},
	} {
		rule := Decide(tt.facts)
		reached[rule.Name] = true
		if rule.Outcome != tt.outcome || rule.Name != tt.rule {
			t.Errorf("%+v: %s by %q, want %s by %q", tt.facts, rule.Outcome, rule.Name, tt.outcome, tt.rule)
		}
	}
	names := make(map[string]bool)
	for _, rule := range Rules() {
		if !reached[rule.Name] {
			t.Errorf("no case is decided by %q", rule.Name)
		}
		if names[rule.Name] {
			t.Errorf("two rows are called %q", rule.Name)
		}
		names[rule.Name] = true
	}
}

// Whatever comes together, success needs a report of it.
func TestNoSuccessWithoutAReport(t *testing.T) {
	t.Parallel()
	for _, stop := range []Stop{StopNone, StopCancel, StopShutdown, StopTimeout, StopSilence, StopBudget, StopParked, StopLinger} {
		for _, end := range []End{EndNone, EndSuccess, EndFailure, EndQuestion} {
			for _, met := range []LimitKind{"", LimitUsage, LimitLoad} {
				for _, exit := range []Exit{ExitNever, ExitZero, ExitStatus, ExitSignal, ExitUnknown} {
					facts := Facts{Stop: stop, End: end, Met: met, Exit: exit}
					if got := Decide(facts).Outcome; got == "" || got == Success && end != EndSuccess {
						t.Errorf("%+v: %q", facts, got)
					}
				}
			}
		}
	}
}

func TestStopOf(t *testing.T) {
	t.Parallel()
	for cause, want := range map[error]Stop{
		ErrCancelled:                        StopCancel,
		context.Canceled:                    StopCancel,
		errors.New("a caller's own"):        StopCancel,
		fmt.Errorf("node: %w", ErrStopping): StopShutdown,
		ErrTimeout:                          StopTimeout,
		context.DeadlineExceeded:            StopTimeout,
		ErrBudget:                           StopBudget,
		ErrParked:                           StopParked,
	} {
		if got := stopOf(cause); got != want {
			t.Errorf("%v: %q, want %q", cause, got, want)
		}
	}
}

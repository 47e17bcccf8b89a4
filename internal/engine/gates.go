package engine

import (
	"context"
	"fmt"
	"strconv"

	"github.com/claudomator/claudomator/internal/agent"
	"github.com/claudomator/claudomator/internal/work"
)

// gates runs the gate commands one after the other in a fresh workspace of the
// commit, all within one time limit. A command that fails or runs too long is a
// failing gate; one that could not be run at all is a failed execution.
func (r *run) gates(ctx context.Context) work.End {
	deadline := r.e.o.Now().Add(r.plan.Timeout)
	end := work.End{Outcome: work.Success}
	for i, command := range r.plan.Gates {
		r.log.notice("gate: %s", command)
		left := max(deadline.Sub(r.e.o.Now()), 1)
		res := r.shell(ctx, "gate"+strconv.Itoa(i+1), command, left)
		switch res.Outcome {
		case agent.Success, agent.Failed, agent.TimedOut, agent.Silenced:
		case agent.Asked, agent.Overloaded, agent.Limited, agent.BudgetExceeded, agent.Cancelled:
			return ending(res)
		}
		if res.Facts.Exit == agent.ExitNever || res.Facts.Exit == agent.ExitUnknown {
			return failed("gate %q could not be run: %s", command, res.Error) // its exit code says nothing
		}
		end.Gates = append(end.Gates, work.GateResult{
			Command: command, ExitCode: res.Facts.Code, Output: res.Tail,
			TimedOut: res.Outcome == agent.TimedOut || res.Outcome == agent.Silenced,
		})
		r.log.notice("gate ended: %s", fmt.Sprint(res.Outcome))
	}
	return end
}

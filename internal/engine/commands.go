package engine

import (
	"context"
	"fmt"
	"strconv"

	"github.com/claudomator/claudomator/internal/agent"
	"github.com/claudomator/claudomator/internal/work"
)

// commands runs what the server itself runs (gates, a deployment, the validation of
// what was deployed) one after the other in a fresh workspace of the commit, all
// within one time limit. A command that fails or runs too long is a failing one;
// one that could not be run at all is a failed execution.
func (r *run) commands(ctx context.Context) work.End {
	what := r.what()
	deadline := r.e.o.Now().Add(r.plan.Timeout)
	end := work.End{Outcome: work.Success}
	for i, command := range r.plan.Commands {
		r.log.notice("%s: %s", what, command)
		left := max(deadline.Sub(r.e.o.Now()), 1)
		res := r.shell(ctx, what+strconv.Itoa(i+1), command, left)
		switch res.Outcome {
		case agent.Success, agent.Failed, agent.TimedOut, agent.Silenced:
		case agent.Asked, agent.Overloaded, agent.Limited, agent.BudgetExceeded, agent.Cancelled:
			return ending(res)
		}
		if res.Facts.Exit == agent.ExitNever || res.Facts.Exit == agent.ExitUnknown {
			return failed("%s %q could not be run: %s", what, command, res.Error) // its exit code says nothing
		}
		end.Gates = append(end.Gates, work.GateResult{
			Command: command, ExitCode: res.Facts.Code, Output: res.Tail,
			TimedOut: res.Outcome == agent.TimedOut || res.Outcome == agent.Silenced,
		})
		r.log.notice("%s ended: %s", what, fmt.Sprint(res.Outcome))
	}
	return end
}

// what is one command of the execution, in a word.
func (r *run) what() string {
	if r.plan.Execution.Kind == work.GateRun {
		return "gate"
	}
	return string(r.plan.Execution.Kind)
}

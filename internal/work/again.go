package work

import (
	"fmt"
	"time"
)

// What follows a run that did not succeed: an end, or another run, now or later.

// failedRun counts a failed execution and repeats it while the task allows.
func (s *Step) failedRun(t *Task, x *Execution, reason string, trigger Trigger) error {
	t.Book.Failures++
	if t.Book.Failures < max(t.Retry.MaxAttempts, 1) && x.Kind == AgentRun {
		return s.waitUntil(t, x, OnRetry, s.Now.Add(backoff(t.Retry.Backoff, t.Book.Failures, string(x.ID))), reason)
	}
	return s.ended(t, trigger, reason)
}

// ended ends the task badly; its reason is what a person can act on.
func (s *Step) ended(t *Task, trigger Trigger, reason string) error {
	if err := s.move(t, trigger); err != nil {
		return err
	}
	t.BlockedOn, t.Reason, t.WakeAt = NotBlocked, reason, time.Time{}
	s.event(endEvent(t.State), t, map[string]any{"reason": reason})
	return nil
}

func endEvent(state State) string {
	switch state {
	case TimedOut:
		return "task.timed_out"
	case BudgetExceeded:
		return "task.budget_exceeded"
	case Cancelled:
		return "task.cancelled"
	case Pending, Queued, Running, Blocked, Ready, Completed, Failed:
	}
	return "task.failed"
}

// waitUntil queues another execution for a later instant.
func (s *Step) waitUntil(t *Task, x *Execution, on BlockedOn, at time.Time, reason string) error {
	if err := s.requeue(t, x, reason); err != nil {
		return err
	}
	t.BlockedOn, t.WakeAt = on, at.UTC().Truncate(time.Microsecond)
	return nil
}

// requeue gives a running task a new execution of the same kind as x, which is over.
func (s *Step) requeue(t *Task, x *Execution, reason string) error {
	if err := s.move(t, OnRequeue); err != nil {
		return err
	}
	t.Reason = reason
	s.addRun(t, x.Kind)
	return nil
}

const (
	backoffFirst = 5 * time.Second
	backoffMost  = 5 * time.Minute
	limitRetry   = 15 * time.Minute // when a limit does not say until when
	limitLeast   = 30 * time.Second
	limitMost    = 8 * 24 * time.Hour // after which a limit is tried again, whatever was said: the longest known is a week
	maxLosses    = 5                  // lost executions in a row before a person is asked
)

// backoff is the wait before repeat n (1 for the first), with a jitter of up to
// a quarter that is derived from the execution, so that decisions replay.
func backoff(kind Backoff, n int, seed string) time.Duration {
	d := backoffFirst * time.Duration(n)
	if kind != Linear {
		d = backoffFirst << min(n-1, 10)
	}
	d = min(d, backoffMost)
	var hash uint32 = 2166136261 // FNV-1a
	for i := range len(seed) {
		hash = (hash ^ uint32(seed[i])) * 16777619
	}
	return d + time.Duration(float64(d)/4*float64(hash%1024)/1024)
}

// Lose reports that an execution's node is gone and its processes are ended for
// certain. It is not counted as an attempt.
type Lose struct {
	Execution ExecutionID
	Fence     int64
}

func (c Lose) apply(s *Step) error {
	x, t, err := s.running(c.Execution, c.Fence)
	if err != nil {
		return err
	}
	if err := s.moveRun(x, ExecutionLose); err != nil {
		return err
	}
	x.EndedAt, x.TokenHash = s.Now, ""
	s.event("execution.lost", t, map[string]any{"execution": x.ID})
	s.effect(stop(x))
	if !x.Kind.Own() {
		s.edit(t) // the interpreter starts another
		s.startWaiting(t, x.Kind)
		if x.Kind != GateRun {
			return s.shipRunLost(t, x)
		}
		if x.Stopping == "" {
			if t.Book.Losses++; t.Book.Losses >= maxLosses {
				t.Book.Losses, t.Book.GateFaults = 0, MaxGateFaults // not again without a person
			}
		}
		return nil
	}
	if t.State != Running || t.Book.Current != x.ID {
		s.startWaiting(t, x.Kind)
		return nil
	}
	if x.Asked != nil { // the question survives the server, and so does the workspace for the answer
		t.Book.Losses = 0
		return s.asked(t, x)
	}
	t.Book.Losses++
	if t.Book.Losses >= maxLosses {
		return s.ended(t, OnFail, fmt.Sprintf("%d executions in a row were lost with the server; see its log, then retry", t.Book.Losses))
	}
	return s.requeue(t, x, "the execution was lost with its server")
}

// limitEnds is when a limit is tried again that was said to end at said: the
// provider's word, and by its clock.
func (s *Step) limitEnds(said time.Time) time.Time {
	switch {
	case said.IsZero():
		return s.Now.Add(limitRetry)
	case said.Before(s.Now.Add(limitLeast)):
		return s.Now.Add(limitLeast)
	case said.After(s.Now.Add(limitMost)):
		return s.Now.Add(limitMost)
	}
	return said
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/claudomator/claudomator/internal/work"
)

// How the demo tells of events as they happen.

// demoPatience is how long nothing at all may happen: then something is wrong that
// waiting does not mend. A run's question takes the longest, two seconds.
const demoPatience = 2 * time.Minute

// follow tells what happens until an event of which until is true.
func (s *show) follow(until func(work.Event) bool) error {
	ctx, stop := context.WithCancelCause(s.ctx)
	defer stop(nil)
	patience := time.AfterFunc(demoPatience, func() { stop(errors.New("nothing happens any more")) })
	defer patience.Stop()
	for event, err := range s.api.Events(ctx, s.seq) {
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		if err != nil {
			return err
		}
		patience.Reset(demoPatience)
		s.seq = event.Seq
		if err := s.told(event); err != nil {
			return err
		}
		if until(event) {
			return nil
		}
	}
	return context.Cause(ctx)
}

// told tells of one event. What does not belong into the demo ends it.
func (s *show) told(e work.Event) error {
	if s.json {
		if err := json.NewEncoder(s.out).Encode(e); err != nil {
			return fmt.Errorf("print: %w", err)
		}
	}
	if e.Task == "" {
		return nil
	}
	view, err := s.api.Task(s.ctx, string(e.Task))
	if err != nil {
		return err
	}
	t := &view.Task
	s.tasks[t.ID], s.split[t.ParentTaskID] = t, true
	switch e.Kind {
	case "task.failed", "task.timed_out", "task.cancelled", "plan.refused", "plan.missing", "integrate.conflict",
		"ship.failed", "ship.refused", "ship.broken", "merge.conflicted", "merge.refused", "merge.aborted":
		if t.Judges == nil { // a judge that gives no verdict has a second one behind it
			return fmt.Errorf("%s of %s: %v", e.Kind, t.Name, e.Body)
		}
	}
	return s.tell(e, t)
}

// role is the role of a task that was told of.
func (s *show) role(id work.TaskID) work.Role {
	if t := s.tasks[id]; t != nil {
		return t.Agent.Role
	}
	return work.NoRole
}

// tell says in a line what an event means, if it is worth one.
func (s *show) tell(e work.Event, t *work.Task) error {
	switch role := t.Agent.Role; {
	case e.Kind == "plan.reported":
		s.line("planner", "has read the repository, and reports a plan")
	case e.Kind == "task.blocked" && t.BlockedOn == work.OnChildren && t.ParentTaskID != "":
		children, err := s.api.Subtasks(s.ctx, string(t.ID))
		if err != nil {
			return err
		}
		var names []string
		for _, child := range children {
			names = append(names, child.Name)
		}
		s.line(t.Name, "its builder splits it: %s", strings.Join(names, ", "))
	case e.Kind == "question.asked":
		s.asking = t.ID
		s.line(t.Name, "its builder asks you something")
	case e.Kind == "task.created" && t.Kind == work.Improvement:
		s.line(t.Name, "suggested as an improvement: outside of the builder's task")
	case e.Kind == "task.ready" && (role == work.Builder || t.Kind == work.Improvement):
		s.line(t.Name, "%s", s.readyText(t))
	case e.Kind == "verdict.reported":
		s.verdicts[t.Judges.TaskID] = append(s.verdicts[t.Judges.TaskID], t)
	case (e.Kind == "decision.approved" || e.Kind == "decision.rejected") && e.Actor.Kind != work.PersonActor:
		s.decided(t)
	case e.Kind == "ship.step", e.Kind == "ship.done":
		s.shipped(e)
	}
	return nil
}

// shipped tells of the step of a ship that has ended now; one that was over when it
// began had nothing to do.
func (s *show) shipped(e work.Event) {
	words := map[work.ShipStep]string{
		work.ShipLand: "main is moved, once for all of it", work.ShipDeploy: "the deploy command is run", work.ShipSmoke: "the smoke step passes",
	}
	if text := words[s.step]; text != "" && e.At.After(s.stepped) {
		s.line("ship", "%s", text)
	}
	s.step, s.stepped = work.ShipStep(fmt.Sprint(e.Body["step"])), e.At
}

// line tells of something that happened to something.
func (s *show) line(what, format string, args ...any) {
	s.say("%6.1fs  %-10s  %s", time.Since(s.began).Seconds(), what, fmt.Sprintf(format, args...))
}

// readyText is what is ready to be judged.
func (s *show) readyText(t *work.Task) string {
	what := "built"
	switch {
	case t.AttemptNo > 1:
		what = fmt.Sprintf("mended in attempt %d", t.AttemptNo)
	case s.split[t.ID]:
		what = "its parts are put together"
	}
	if r := t.Result; r != nil && r.Files > 0 {
		files := "files"
		if r.Files == 1 {
			files = "file"
		}
		what += fmt.Sprintf(": %d %s, +%d −%d", r.Files, files, r.Insertions, r.Deletions)
	}
	return what
}

// decided tells how a panel and its arbiter judged, and what they found.
func (s *show) decided(t *work.Task) {
	s.line(t.Name, "%s", marks(s.verdicts[t.ID]))
	if last := s.verdicts[t.ID]; len(last) > 0 {
		for _, f := range last[len(last)-1].Verdict.Findings { // the arbiter's: what the fix is to mend
			s.say("         %s:%d %s", f.File, f.Line, f.Text)
		}
	}
}

// marks are the judges of an attempt with what each said.
func marks(judges []*work.Task) string {
	var out []string
	for _, role := range []work.Role{work.EvaluatorCorrectness, work.EvaluatorTests, work.EvaluatorSecurity, work.EvaluatorQuality, work.Arbitration} {
		for _, j := range judges {
			if j.Agent.Role == role && j.Verdict != nil {
				out = append(out, mark(j)+" "+dimension(role))
			}
		}
	}
	return strings.Join(out, "  ")
}

func mark(judge *work.Task) string {
	if judge.Verdict.Approved {
		return "✓"
	}
	return "✗"
}

// dimension is what a judge looks at, in one word.
func dimension(role work.Role) string {
	if role == work.Arbitration {
		return "arbiter"
	}
	return strings.TrimPrefix(string(role), "evaluator-")
}

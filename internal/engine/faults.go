package engine

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/claudomator/claudomator/internal/agent"
	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

// faults knows which agent programs cannot work. One that could not be started, or
// broke its protocol, several times in a row is left alone for a while, so that it
// does not use up one task after the other; then a single run tries it again.
type faults struct {
	mu     sync.Mutex
	agents map[string]*faulty
}

// faulty is an agent program whose last run was a fault of its own.
type faulty struct {
	row   int // faults in a row
	last  string
	until time.Time
	tried bool // a run tries it, for all
}

const (
	faultsMost = 3
	pauseLeast = time.Minute // doubles with each further fault
	pauseMost  = 5 * time.Minute
)

func newFaults() faults { return faults{agents: map[string]*faulty{}} }

// admit lets an agent's run begin, until done; nil when its program is paused, and the
// execution was parked.
func (e *Engine) admit(ctx context.Context, f work.Effect, plan *app.RunPlan) (done func(), err error) {
	name := program(plan.Project, plan.Spec)
	trial, until, why := e.faults.admit(name, e.o.Now())
	switch {
	case why == "" && trial:
		return func() { e.faults.done(name) }, nil
	case why == "":
		return func() {}, nil
	case plan.Task.Judges != nil:
		why += "; when its role has been given another agent, cancel this judge, and that one is asked"
	}
	return nil, e.o.Core.Do(ctx, f.Tree, work.System(), work.Park{Execution: f.Execution, On: work.OnPaused, Until: until, Reason: why})
}

// program tells agent programs apart: by type, by what is run where the type does not
// say that, and by what a project changes of how that is found. It is "" for commands,
// which are a person's own and say nothing of each other.
func program(project work.Project, spec work.AgentSpec) string {
	if spec.Type == work.CommandAgent {
		return ""
	}
	name := strings.Join(append([]string{spec.Type}, spec.Command...), " ")
	if path, changed := project.Environment["PATH"]; changed {
		name += " on PATH " + path
	}
	if len(spec.Command) > 0 && strings.Contains(spec.Command[0], "/") && !filepath.IsAbs(spec.Command[0]) {
		name += " of project " + project.Name
	}
	return name
}

// speaking tells when an agent program says its first word: it can be started then,
// whatever becomes of the run.
type speaking struct {
	agent.Sink
	first func()
}

// Emit implements agent.Sink.
func (s *speaking) Emit(event agent.Event) {
	switch event.Kind {
	case agent.KindText, agent.KindThought, agent.KindTool, agent.KindEdit, agent.KindUsage, agent.KindQuestion:
		s.first()
	case agent.KindLimit, agent.KindBlocker, agent.KindLog, agent.KindRaw:
	}
	s.Sink.Emit(event)
}

// admit lets a run of a program begin, or says why it must not, and until when. A
// run that is the one to try it again is ended by done.
func (f *faults) admit(program string, now time.Time) (trial bool, until time.Time, why string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a := f.agents[program]
	if a == nil || a.row < faultsMost {
		return false, time.Time{}, ""
	}
	if until = a.until; !until.After(now) {
		if !a.tried {
			a.tried = true
			return true, time.Time{}, ""
		}
		until = now.Add(pauseLeast)
	}
	return false, until, fmt.Sprintf("agent %s could not be started, or broke its protocol, %d times in a row, the last time with: %s; one task will try it again by itself, claudomator doctor tells what is missing", program, a.row, a.last)
}

// ran takes in how a run of a program went: fault is what was wrong with the program
// itself, "" for nothing.
func (f *faults) ran(program, fault string, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if fault == "" || program == "" {
		delete(f.agents, program)
		return
	}
	a := f.agents[program]
	if a == nil {
		a = &faulty{}
		f.agents[program] = a
	}
	a.row, a.last = a.row+1, fault
	if over := a.row - faultsMost; over >= 0 {
		a.until = now.Add(min(pauseMost, pauseLeast<<min(over, 10)))
	}
}

// speaks ends a trial before its run ends: a program that has said something can be
// started, and nobody needs to wait for it. Another fault is one in a row still.
func (f *faults) speaks(program string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if a := f.agents[program]; a != nil {
		a.row = min(a.row, faultsMost-1)
	}
}

// done lets the next run try a program.
func (f *faults) done(program string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if a := f.agents[program]; a != nil {
		a.tried = false
	}
}

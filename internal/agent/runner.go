package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/claudomator/claudomator/internal/sandbox"
)

// Program is what an adapter knows of its agent for one job: how to start it
// and how to read it.
type Program struct {
	Argv []string
	Env  []string  // added to the inherited environment; Job.Env wins over it
	In   io.Reader // see sandbox.Spec.Stdin; nil: at its end
	// Stop asks the program to end; nil is SIGTERM to its process group. A
	// step without grace gets the job's.
	Stop []sandbox.StopStep
	// Line gets every line of both streams, from one goroutine each; nil
	// records them as log events.
	Line func(Stream, Line)
	// Stdout takes standard output in place of Line, for programs that speak
	// a protocol of their own over it.
	Stdout io.Writer
	// After is called when no process of the run is left and all lines were
	// handed over: a last look at what the program leaves in files.
	After func()
	// Ask asks the program, over its own protocol, to break off; true when it was
	// asked, and then gets the job's grace before Stop.
	Ask func() bool
	// ExitReports: exit 0 is this program's report of success and any other
	// status its report of failure.
	ExitReports bool
}

// RunnerOptions configure a Runner.
type RunnerOptions struct {
	Host *sandbox.Host
	// Environ is the server's environment, as os.Environ gives it.
	Environ []string
	// Inherit names variables that agents get besides the usual ones; "*" at
	// the end stands for any rest.
	Inherit []string
	// Private is a directory for what belongs to single runs, such as files that
	// hold a run's token; see Session.Private.
	Private string
	Now     func() time.Time // the clock; it must follow the real one
}

// Runner runs programs for adapters. Safe for concurrent use.
type Runner struct {
	env      []string
	opts     RunnerOptions
	versions *versions
}

// NewRunner returns a Runner on a host.
func NewRunner(opts RunnerOptions) *Runner {
	return &Runner{env: Environment(opts.Environ, opts.Inherit), opts: opts, versions: &versions{known: make(map[string]string)}}
}

// Inheriting is the same runner for programs that get further variables of the
// server's environment, by name.
func (r *Runner) Inheriting(names ...string) *Runner {
	opts := r.opts
	opts.Inherit = slices.Concat(opts.Inherit, names)
	return &Runner{env: Environment(opts.Environ, opts.Inherit), opts: opts, versions: r.versions}
}

// run is one run under way.
type run struct {
	job     Job
	program Program
	session *Session
	process *sandbox.Process
	begun   time.Time
	now     func() time.Time
	bytes   atomic.Int64 // of output
	last    atomic.Int64 // time of the last output, in nanoseconds since begun
	lines   []*Lines
}

// Run does one job with the program that adapt describes. It is the body of
// every adapter's Agent.Run.
func (r *Runner) Run(ctx context.Context, job Job, sink Sink, adapt func(*Session) (Program, error)) (Result, error) {
	job.Limits = job.Limits.withDefaults()
	u := &run{job: job, session: newSession(r.opts.Now, job.Limits, sink), begun: r.opts.Now(), now: r.opts.Now}
	u.session.private = private{root: r.opts.Private, name: job.ID}
	defer u.session.private.remove()
	facts := Facts{Exit: ExitNever}
	if ctx.Err() != nil {
		facts.Stop = stopOf(context.Cause(ctx))
		return u.result(facts), nil // being stopped is a result
	}
	var err error
	if u.program, err = adapt(u.session); err == nil {
		u.process, err = r.opts.Host.Start(ctx, u.spec(r.env))
	}
	if err != nil {
		if ctx.Err() != nil {
			facts.Stop = stopOf(context.Cause(ctx))
			return u.result(facts), nil // being stopped is a result
		}
		result := u.result(facts)
		result.Error = err.Error()
		result.AgentFault = errors.Is(err, sandbox.ErrNoProgram) || errors.Is(err, sandbox.ErrNotExecutable)
		return result, fmt.Errorf("run agent: %w", err)
	}
	facts.Stop = u.supervise(ctx)
	if facts.Stop != StopNone {
		u.session.stop()
		u.process.Stop(u.stopSteps()...)
	} else {
		_, _ = u.process.Wait(ctx) // for the orphans' output; a cancel shortens it
	}
	ended, err := u.process.End(ctx)
	facts.readExit(u.process)
	for _, lines := range u.lines {
		_ = lines.Close()
	}
	if u.program.After != nil {
		u.program.After()
	}
	if facts.Stop == StopNone && u.session.overspent() {
		facts.Stop = StopBudget // told with its last words, perhaps before the end was seen, perhaps after
	}
	if facts.Stop == StopNone && ended.Killed > 0 {
		u.session.Warn(fmt.Sprintf("%d processes that the agent had started were still running when it ended; they were ended with it", ended.Killed))
	}
	result := u.result(facts)
	result.Killed = ended.Killed
	if err != nil {
		result.Error = err.Error()
		return result, fmt.Errorf("run agent: %w", err)
	}
	return result, nil
}

// spec connects the program's streams: every byte counts as activity and goes
// into the tail, then to the adapter.
func (u *run) spec(inherited []string) sandbox.Spec {
	line := u.program.Line
	if line == nil {
		line = u.session.LogLine
	}
	split := func(stream Stream) io.Writer {
		lines := NewLines(MaxLine, func(l Line) { line(stream, l) })
		u.lines = append(u.lines, lines)
		return lines
	}
	stdout := u.program.Stdout
	if stdout == nil {
		stdout = split(Stdout)
	}
	return sandbox.Spec{
		ID:     u.job.ID,
		Level:  u.job.Level,
		Dir:    u.job.Dir,
		Argv:   u.program.Argv,
		Env:    merge(inherited, u.program.Env, u.job.own(), u.job.environ()),
		Stdin:  u.program.In,
		Stdout: io.MultiWriter(u, u.session.tail, stdout),
		Stderr: io.MultiWriter(u, u.session.tail, split(Stderr)),
		// The session bounds what is recorded and the splitter what is held;
		// a cap on the bytes could cut off the report at the end.
		OutputLimit: -1,
		Gather:      u.program.Stdout == nil, // lines are only read; a protocol is answered
	}
}

// Write notes activity.
func (u *run) Write(p []byte) (int, error) {
	u.bytes.Add(int64(len(p)))
	u.last.Store(int64(u.now().Sub(u.begun)))
	return len(p), nil
}

// supervise waits for the end of the main process or for a reason to end it.
func (u *run) supervise(ctx context.Context) Stop {
	limits := u.job.Limits
	wall := time.NewTimer(limits.Wall)
	defer wall.Stop()
	silence := time.NewTimer(limits.Silence)
	defer silence.Stop()
	var linger <-chan time.Time
	reported := u.session.reported
	for {
		select {
		case <-u.process.Exited():
			return StopNone
		case <-ctx.Done():
			return stopOf(context.Cause(ctx))
		case <-u.session.broke:
			return StopBudget
		case <-wall.C:
			return StopTimeout
		case <-silence.C:
			quiet := u.now().Sub(u.begun) - time.Duration(u.last.Load())
			if quiet >= limits.Silence {
				return StopSilence
			}
			silence.Reset(limits.Silence - quiet)
		case <-reported:
			timer := time.NewTimer(limits.Linger)
			defer timer.Stop()
			reported, linger = nil, timer.C
		case <-linger:
			return StopLinger
		}
	}
}

func (u *run) stopSteps() []sandbox.StopStep {
	steps := u.program.Stop
	if steps == nil {
		steps = []sandbox.StopStep{{Signal: syscall.SIGTERM, Group: true}}
	}
	steps = append([]sandbox.StopStep(nil), steps...)
	if u.program.Ask != nil && u.program.Ask() {
		steps = append([]sandbox.StopStep{{}}, steps...) // no signal: only the time
	}
	for i := range steps {
		if steps[i].Grace == 0 {
			steps[i].Grace = u.job.Limits.StopGrace
		}
	}
	return steps
}

func (f *Facts) readExit(p *sandbox.Process) {
	exit, ok := p.Exit()
	f.Code = exit.Code
	switch {
	case !ok:
		f.Exit = ExitUnknown
	case exit.Signal != 0:
		f.Exit, f.Signal = ExitSignal, exit.Signal.String()
	case exit.Code == 0:
		f.Exit = ExitZero
	default:
		f.Exit = ExitStatus
	}
}

// result closes the session and puts together what the run left.
func (u *run) result(facts Facts) Result {
	s := u.session
	kept, _ := s.tail.Bytes()
	for len(kept) > 0 && !utf8.RuneStart(kept[0]) {
		kept = kept[1:] // the rest of a character cut in two
	}
	tail := Sanitize(string(kept))
	s.close(tail)
	s.mu.Lock()
	defer s.mu.Unlock()
	facts.End, facts.Met = s.end, s.met
	if u.program.ExitReports && s.end == EndNone && facts.Stop == StopNone {
		switch facts.Exit {
		case ExitZero:
			facts.End = EndSuccess
		case ExitStatus:
			facts.End = EndFailure
		case ExitSignal, ExitNever, ExitUnknown:
		}
	}
	rule := Decide(facts)
	result := Result{
		Outcome: rule.Outcome, Rule: rule.Name, AgentFault: rule.AgentFault,
		NoResume: s.noResume && s.end != EndSuccess, Warnings: s.warnings, Question: s.question, Limit: s.limit, Usage: s.usage, CostUSD: s.cost, Handle: s.handle,
		Facts: facts, Tail: tail, OutputBytes: u.bytes.Load(), Dropped: s.dropped,
	}
	if u.process != nil {
		result.Level = u.process.Level()
	}
	result.Error = u.explain(result)
	return result
}

// explain says in words why a run did not succeed.
func (u *run) explain(r Result) string {
	limits := u.job.Limits
	switch r.Outcome {
	case Success, Asked:
		return ""
	case TimedOut:
		return fmt.Sprintf("not finished within %v", limits.Wall)
	case Silenced:
		return fmt.Sprintf("no output for %v", limits.Silence)
	case BudgetExceeded:
		return fmt.Sprintf("reported cost of %.2f USD, budget %.2f USD", r.CostUSD, limits.BudgetUSD)
	case Cancelled:
		return r.Rule
	case Limited, Overloaded:
		if r.Limit != nil && r.Limit.Text != "" {
			return r.Limit.Text
		}
		return r.Rule
	case Failed:
	}
	if u.session.errText != "" {
		return u.session.errText
	}
	text := r.Rule
	switch r.Facts.Exit {
	case ExitStatus:
		text = fmt.Sprintf("exit status %d", r.Facts.Code)
	case ExitSignal:
		text = "ended by signal: " + r.Facts.Signal
	case ExitZero, ExitNever, ExitUnknown:
	}
	if last := lastLine(r.Tail); last != "" {
		text += ": " + last
	}
	return text
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return cut(text[strings.LastIndexByte(text, '\n')+1:], 300)
}

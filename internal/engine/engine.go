package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/claudomator/claudomator/internal/agent"
	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/sandbox"
	"github.com/claudomator/claudomator/internal/work"
)

// Core is what the engine needs of the application service.
type Core interface {
	Do(ctx context.Context, tree work.TreeID, by work.Actor, c work.Command) error
	View(ctx context.Context, tree work.TreeID, f func(*work.Tree) error) error
	PlanRun(ctx context.Context, tree work.TreeID, id work.ExecutionID) (*app.RunPlan, error)
}

// Tasks is what the janitor needs to know of tasks and of their executions.
type Tasks interface {
	Task(ctx context.Context, id work.TaskID) (*work.Task, error)
	Execution(ctx context.Context, ref string) (*work.Execution, error)
}

// Options is what an engine stands on.
type Options struct {
	Core      Core
	Schedule  app.Schedule
	Tasks     Tasks
	Queue     *Queue
	Vaults    *Vaults
	Host      *sandbox.Host
	Agents    map[string]agent.Agent
	DataDir   string
	Node      string // stable name of this server
	Slots     int
	PerAgent  map[string]int // slots by agent type; 0 or missing: no limit of its own
	Bin       string         // this program, for `claudomator tool`
	MCPURL    string
	Mask      Mask                // learns the run tokens, for the server's log
	Hide      func([]byte) []byte // takes the server's own secrets out of a transcript
	Retention Retention
	Forge     Forge         // nil: pull requests are refused
	PullPoll  time.Duration // between two looks at a pull request; 30 s
	PullLimit time.Duration // without an answer of the forge, after which a ship is undone; 1 h
	PushPause time.Duration // before a push that failed is tried again, doubling; 2 s
	Now       func() time.Time
	Log       *slog.Logger
}

// Mask hides secrets in the server's log.
type Mask interface {
	Add(secret string) (remove func())
}

// Retention says how long finished things stay on the disk.
type Retention = app.Retention

// Engine carries out effects. Make one with New, then Run it.
type Engine struct {
	o       Options
	vaults  *Vaults
	slots   slots
	faults  faults
	timer   alarm
	mu      sync.Mutex
	parking map[work.ExecutionID]*time.Timer // of runs here: what ends one that has asked
	held    map[work.ExecutionID]int         // begun here, and not reported yet, by deliveries
	claims  claims                           // landings under way, and workspaces in use
	pulls   map[work.TaskID]pull             // pull requests that are followed
	stop    context.Context                  // ends when the server stops
}

// New makes an engine and joins it to its queue; it starts nothing.
func New(o Options) *Engine {
	e := &Engine{o: o, parking: map[work.ExecutionID]*time.Timer{}, held: map[work.ExecutionID]int{}, pulls: map[work.TaskID]pull{}}
	e.vaults = o.Vaults
	e.slots, e.faults = newSlots(o.Slots, o.PerAgent), newFaults()
	e.timer = newAlarm()
	e.o.PullPoll, e.o.PullLimit, e.o.PushPause = cmp.Or(o.PullPoll, 30*time.Second), cmp.Or(o.PullLimit, time.Hour), cmp.Or(o.PushPause, 2*time.Second)
	o.Queue.deliver = e.deliver
	return e
}

const (
	lease     = 30 * time.Second
	leaseBeat = 10 * time.Second
	stopLimit = 45 * time.Second // for runs to end and report when the server stops
)

// Run recovers what a former life left, then works until ctx ends; it returns
// when every run has ended and reported.
func (e *Engine) Run(ctx context.Context, ready func()) error {
	stop, stopped := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stopped(agent.ErrStopping)
	e.stop = stop
	if err := e.recover(ctx); err != nil {
		return fmt.Errorf("recover: %w", err)
	}
	if err := e.o.Queue.start(ctx); err != nil {
		return err
	}
	var loops sync.WaitGroup
	loopsCtx, endLoops := context.WithCancel(ctx)
	defer endLoops()
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		e.o.Queue.keep(loopsCtx, e.o.Log)
	}()
	for _, loop := range []func(context.Context){e.beat, e.ring, e.janitor} {
		loops.Go(func() { loop(loopsCtx) })
	}
	ready()
	loops.Go(func() { e.redeliver(loopsCtx) })
	<-ctx.Done()
	stopped(agent.ErrStopping)
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopLimit)
	defer cancel()
	err := e.o.Queue.stop(limit, kept)
	loops.Wait()
	return err
}

// Committed is told of every commit: an earlier timer may be due, and jobs may be new.
func (e *Engine) Committed(c work.ChangeSet) {
	e.timer.set(c.Summary.WakeAt)
	if len(c.Effects) > 0 {
		e.o.Queue.tell()
	}
}

// deliver does one effect, after so many deliveries of it that failed. A nil answer
// ends its job: also for what is stale.
func (e *Engine) deliver(ctx context.Context, job int64, f work.Effect, failures int) error {
	err := e.do(ctx, job, f)
	if stale(err) {
		return nil
	}
	if _, waits := errors.AsType[againError](err); err == nil || ctx.Err() != nil || waits || errors.Is(err, errTurn) {
		return err
	}
	e.o.Log.Warn("deliver effect", "effect", f.Kind, "task", f.Task, "error", err)
	if failures >= patience {
		if told := e.o.Core.Do(ctx, f.Tree, work.System(), work.Stuck{Effect: f, Error: explain(err)}); told != nil && !stale(told) {
			e.o.Log.Error("tell what keeps failing", "effect", f.Kind, "task", f.Task, "error", told)
		}
	}
	return err
}

// patience is how many deliveries of an effect may fail before a person is told of
// one more: a quarter of a minute's worth.
const patience = 2

func (e *Engine) do(ctx context.Context, job int64, f work.Effect) error {
	switch f.Kind {
	case work.StartExecution:
		return e.start(ctx, job, f)
	case work.Integrate:
		return e.integrate(ctx, f)
	case work.Land:
		return e.land(ctx, f)
	case work.Branch:
		return e.branch(ctx, f)
	case work.Push:
		return e.push(ctx, f)
	case work.PullRequest:
		return e.pullRequest(ctx, job, f)
	case work.ClosePull:
		return e.closePull(ctx, f)
	case work.Reclaim:
		return e.reclaim(ctx, f)
	case work.Recheck:
		return e.o.Core.Do(ctx, f.Tree, work.System(), work.Settle{})
	case work.StopExecution, work.FinishJob:
	}
	return fmt.Errorf("effect %q is never a job", f.Kind)
}

// stale is true for what says only that an effect came too late, or twice.
func stale(err error) bool {
	e, ok := work.AsError(err)
	return ok && (e.Code == work.NotFound || (e.Code == work.Conflict && (e.Reason == "stale" || e.Reason == "still_running")))
}

// patiently repeats a report until it is stored, it is stale, or the server
// stops: what a run did must not be forgotten because a disk was full for a
// minute.
func (e *Engine) patiently(ctx context.Context, what string, report func(context.Context) error) error {
	wait := 100 * time.Millisecond
	for {
		err := report(context.WithoutCancel(ctx))
		if err == nil || stale(err) {
			return nil
		}
		e.o.Log.Error("report again", "report", what, "error", err, "again_in", wait)
		if !pause(e.stop.Done(), wait) {
			return fmt.Errorf("%s: %w", what, err)
		}
		wait = min(wait*2, 10*time.Second)
	}
}

// pause waits for a while; false when done is closed before that.
func pause(done <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-done:
		return false
	}
}

// Catalog is the agent programs of this machine.
type Catalog map[string]agent.Agent

// Usable is true when the program is there.
func (c Catalog) Usable(name string) bool {
	a, ok := c[name]
	return ok && a.Installed() == nil
}

// Types are the names of all programs, sorted.
func (c Catalog) Types() []string { return sortedKeys(c) }

// Agents describes every program, by name.
func (c Catalog) Agents(ctx context.Context) ([]app.AgentInfo, error) {
	var out []app.AgentInfo
	for _, name := range sortedKeys(c) {
		info := app.AgentInfo{Type: name}
		d, err := c[name].Describe(ctx)
		if err != nil {
			info.Note = err.Error()
		} else {
			info.Installed, info.Version, info.Path = true, d.Version, d.Path
		}
		out = append(out, info)
	}
	return out, nil
}

var errNoAgent = errors.New("agent type is not known")

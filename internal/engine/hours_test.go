package engine_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claudomator/claudomator/internal/agent"
	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/engine"
	"github.com/claudomator/claudomator/internal/work"
)

// Hours of a server in virtual time: real database, git and queue; only the
// agent and the clock are fakes.

// puppet is an agent that does what the test tells it, run by run; the last act
// is repeated.
type puppet struct {
	acts   []func(ctx context.Context, job agent.Job) agent.Result
	speaks bool // each run says something first

	mu   sync.Mutex
	runs []time.Time
}

func (*puppet) Installed() error { return nil }

func (*puppet) Describe(context.Context) (agent.Description, error) {
	return agent.Description{Name: "puppet"}, nil
}

func (p *puppet) Run(ctx context.Context, job agent.Job, sink agent.Sink) (agent.Result, error) {
	p.mu.Lock()
	act := p.acts[min(len(p.runs), len(p.acts)-1)]
	p.runs = append(p.runs, time.Now())
	p.mu.Unlock()
	if p.speaks {
		sink.Emit(agent.Event{At: time.Now(), Kind: agent.KindText, Text: "hello"})
	}
	return act(ctx, job), nil
}

func ends(outcome agent.Outcome, text string) func(context.Context, agent.Job) agent.Result {
	return func(context.Context, agent.Job) agent.Result { return agent.Result{Outcome: outcome, Error: text} }
}

func writes(name string) func(context.Context, agent.Job) agent.Result {
	return func(_ context.Context, job agent.Job) agent.Result {
		if err := os.WriteFile(filepath.Join(job.Dir, name), []byte("x\n"), 0o600); err != nil {
			return agent.Result{Outcome: agent.Failed, Error: err.Error()}
		}
		return agent.Result{Outcome: agent.Success}
	}
}

// inHours runs a test in virtual time on a server whose agent is the puppet.
func inHours(t *testing.T, p *puppet, f func(w *world, task func(app.TaskRequest) *app.TaskView)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := makeWorld(t, 2, engine.Catalog{"puppet": p})
		defer func() { w.stop() }()
		name := "puppet"
		w.project(app.ProjectInput{Agent: &name})
		f(w, func(in app.TaskRequest) *app.TaskView {
			in.Review = "none"
			return w.task(in)
		})
	})
}

func TestFailureIsRepeatedWithBackoff(t *testing.T) {
	p := &puppet{acts: []func(context.Context, agent.Job) agent.Result{ends(agent.Failed, "no"), ends(agent.Failed, "no"), writes("x")}}
	inHours(t, p, func(w *world, task func(app.TaskRequest) *app.TaskView) {
		id := task(app.TaskRequest{Retry: app.RetryInput{MaxAttempts: 3}}).ID
		waits := w.until(id, func(v *app.TaskView) bool { return v.BlockedOn == work.OnRetry })
		if waits.WakeAt.IsZero() || waits.Reason == "" {
			t.Errorf("while it waits: until %v, because %q", waits.WakeAt, waits.Reason)
		}
		w.state(id, work.Completed)
		if len(p.runs) != 3 {
			t.Fatalf("%d runs, want 3", len(p.runs))
		}
		for i, least := range []time.Duration{5 * time.Second, 10 * time.Second} {
			if gap := p.runs[i+1].Sub(p.runs[i]); gap < least || gap > least*2 {
				t.Errorf("wait %d took %s, want about %s", i+1, gap, least)
			}
		}
	})
}

func TestFailureIsNotRepeatedByDefault(t *testing.T) {
	p := &puppet{acts: []func(context.Context, agent.Job) agent.Result{ends(agent.Failed, "exit code 3")}}
	inHours(t, p, func(w *world, task func(app.TaskRequest) *app.TaskView) {
		v := w.state(task(app.TaskRequest{}).ID, work.Failed)
		if len(p.runs) != 1 || v.Reason != "exit code 3" {
			t.Errorf("%d runs, reason %q", len(p.runs), v.Reason)
		}
	})
}

func TestLimitWaitsForItsReset(t *testing.T) {
	var reset time.Time
	p := &puppet{acts: []func(context.Context, agent.Job) agent.Result{
		func(context.Context, agent.Job) agent.Result {
			reset = time.Now().Add(20 * time.Minute)
			return agent.Result{Outcome: agent.Limited, Error: "usage limit", Limit: &agent.Limit{Kind: agent.LimitUsage, ResetAt: reset}}
		},
		writes("x"),
	}}
	inHours(t, p, func(w *world, task func(app.TaskRequest) *app.TaskView) {
		id := task(app.TaskRequest{}).ID
		v := w.until(id, func(v *app.TaskView) bool { return v.BlockedOn == work.OnLimit })
		if v.State != work.Queued || !v.WakeAt.Equal(reset.Truncate(time.Microsecond)) {
			t.Errorf("%s until %s, want QUEUED until %s", v.State, v.WakeAt, reset)
		}
		w.state(id, work.Completed)
		if late := p.runs[1].Sub(reset); late < 0 || late > time.Second {
			t.Errorf("it ran %s after the reset", late)
		}
	})
}

// A reset that is over is tried soon, and one that nobody will live to see is not
// waited for.
func TestLimitWithAnOddReset(t *testing.T) {
	for name, c := range map[string]struct{ reset, least, most time.Duration }{
		"over":   {-time.Second, 20 * time.Second, time.Minute},
		"absurd": {200 * 365 * 24 * time.Hour, 7 * 24 * time.Hour, 8 * 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			p := &puppet{acts: []func(context.Context, agent.Job) agent.Result{
				func(context.Context, agent.Job) agent.Result {
					return agent.Result{Outcome: agent.Limited, Limit: &agent.Limit{Kind: agent.LimitUsage, ResetAt: time.Now().Add(c.reset)}}
				},
				writes("x"),
			}}
			inHours(t, p, func(w *world, task func(app.TaskRequest) *app.TaskView) {
				id := task(app.TaskRequest{}).ID
				v := w.until(id, func(v *app.TaskView) bool { return v.BlockedOn == work.OnLimit })
				if wait := time.Until(v.WakeAt); wait < c.least || wait > c.most {
					t.Errorf("it waits for %s", wait)
				}
			})
		})
	}
}

func TestOverloadIsNotAFailure(t *testing.T) {
	overloaded := ends(agent.Overloaded, "529")
	p := &puppet{acts: []func(context.Context, agent.Job) agent.Result{overloaded, overloaded, overloaded, overloaded, overloaded, writes("x")}}
	inHours(t, p, func(w *world, task func(app.TaskRequest) *app.TaskView) {
		w.state(task(app.TaskRequest{}).ID, work.Completed)
		if len(p.runs) != 6 {
			t.Errorf("%d runs, want 6", len(p.runs))
		}
	})
}

// The wait survives a restart, and its end is not forgotten meanwhile.
func TestWaitSurvivesARestart(t *testing.T) {
	p := &puppet{acts: []func(context.Context, agent.Job) agent.Result{ends(agent.Limited, "usage limit"), writes("x")}}
	inHours(t, p, func(w *world, task func(app.TaskRequest) *app.TaskView) {
		id := task(app.TaskRequest{}).ID
		w.until(id, func(v *app.TaskView) bool { return v.BlockedOn == work.OnLimit })
		w.stop()
		time.Sleep(time.Hour) // virtual
		w.start()
		w.state(id, work.Completed)
	})
}

func TestCancelDuringAWait(t *testing.T) {
	p := &puppet{acts: []func(context.Context, agent.Job) agent.Result{ends(agent.Limited, "usage limit"), writes("x")}}
	inHours(t, p, func(w *world, task func(app.TaskRequest) *app.TaskView) {
		id := task(app.TaskRequest{}).ID
		w.until(id, func(v *app.TaskView) bool { return v.BlockedOn == work.OnLimit })
		if _, err := w.service.CancelTask(w.ctx, string(id)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Minute) // virtual
		if v := w.state(id, work.Cancelled); len(p.runs) != 1 {
			t.Errorf("%d runs of a cancelled task (%s)", len(p.runs), v.State)
		}
	})
}

// What River loses while it has trouble is delivered again when that is over, not
// only by the next start.
func TestLostJobsAreDeliveredAgain(t *testing.T) {
	p := &puppet{acts: []func(context.Context, agent.Job) agent.Result{writes("x")}}
	inHours(t, p, func(w *world, task func(app.TaskRequest) *app.TaskView) {
		time.Sleep(time.Minute) // virtual: the start has delivered all there was
		w.forgetful.Store(true)
		id := task(app.TaskRequest{}).ID
		time.Sleep(time.Minute) // virtual
		if v := w.state(id, work.Queued); len(p.runs) != 0 {
			t.Fatalf("%s, %d runs: its job was not lost", v.State, len(p.runs))
		}
		w.forgetful.Store(false)
		w.queue.MeetTrouble()
		began := time.Now()
		w.state(id, work.Completed)
		if late := p.runs[0].Sub(began); late > 15*time.Second {
			t.Errorf("it ran %s after the trouble", late)
		}
	})
}

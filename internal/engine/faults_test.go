package engine_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claudomator/claudomator/internal/agent"
	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/engine"
	"github.com/claudomator/claudomator/internal/work"
)

func breaks(context.Context, agent.Job) agent.Result {
	return agent.Result{Outcome: agent.Failed, Error: "no such program", AgentFault: true}
}

// TestBrokenAgentIsPaused: after three faults in a row an agent program is left
// alone, and whoever waits for it says so; then one run tries it for all.
func TestBrokenAgentIsPaused(t *testing.T) {
	p := &puppet{acts: []func(context.Context, agent.Job) agent.Result{breaks, breaks, breaks, breaks, writes("x")}}
	inHours(t, p, func(w *world, task func(app.TaskRequest) *app.TaskView) {
		for range 3 {
			w.state(task(app.TaskRequest{}).ID, work.Failed)
		}
		waiting := []work.TaskID{task(app.TaskRequest{}).ID, task(app.TaskRequest{}).ID}
		for _, id := range waiting {
			v := w.until(id, func(v *app.TaskView) bool { return v.BlockedOn == work.OnPaused })
			if wait := time.Until(v.WakeAt); wait <= 0 || wait > time.Minute || !strings.Contains(v.Reason, "3 times in a row, the last time with: no such program") || v.Rests {
				t.Errorf("it waits %s because %q, rests: %t", wait, v.Reason, v.Rests)
			}
		}
		items, err := w.service.Attention(w.ctx)
		if parked := slices.DeleteFunc(items, func(i work.Item) bool { return i.Kind != work.ItemParked }); err != nil || len(parked) != 2 {
			t.Errorf("inbox %+v, %v", items, err)
		}
		if len(p.runs) != 3 {
			t.Fatalf("%d runs before the pause is over, want 3", len(p.runs))
		}
		third := p.runs[2]
		w.until(waiting[0], func(v *app.TaskView) bool { return v.State == work.Failed || v.State == work.Completed })
		for _, id := range waiting {
			w.until(id, func(v *app.TaskView) bool { return v.State == work.Failed || v.State == work.Completed })
		}
		if len(p.runs) != 5 {
			t.Fatalf("%d runs, want 5", len(p.runs))
		}
		if first, second := p.runs[3].Sub(third), p.runs[4].Sub(p.runs[3]); first < time.Minute || second < 2*time.Minute || second > 4*time.Minute {
			t.Errorf("tried again after %s, and after %s more", first, second)
		}
		w.state(task(app.TaskRequest{}).ID, work.Completed) // it works: nothing is held against it
		if len(p.runs) != 6 || p.runs[5].Sub(p.runs[4]) > 30*time.Second {
			t.Errorf("%d runs, the last after %s", len(p.runs), p.runs[5].Sub(p.runs[4]))
		}
	})
}

// TestFaultsInARow: one run that works, or a failure that is not the program's own,
// begins the count anew; and commands say nothing of each other.
func TestFaultsInARow(t *testing.T) {
	fails := ends(agent.Failed, "tests do not pass")
	p := &puppet{acts: []func(context.Context, agent.Job) agent.Result{breaks, breaks, fails, breaks, breaks, writes("x"), breaks, breaks, writes("y")}}
	inHours(t, p, func(w *world, task func(app.TaskRequest) *app.TaskView) {
		atOnce := func(state work.State, in app.TaskRequest) {
			w.Helper()
			began := time.Now()
			w.state(task(in).ID, state)
			if took := time.Since(began); took > 30*time.Second {
				t.Errorf("a task was %s after %s: it has waited for its agent", state, took)
			}
		}
		for i := range p.acts {
			state := work.Failed
			if i == 5 || i == 8 {
				state = work.Completed
			}
			atOnce(state, app.TaskRequest{})
		}
		for range 4 {
			atOnce(work.Failed, app.TaskRequest{Agent: app.AgentInput{Type: "command", Command: []string{"/no/such/program"}}})
		}
	})
}

// TestTrialEndsWithTheFirstWord: once the program that is tried again has said
// something, nobody waits for the end of that run.
func TestTrialEndsWithTheFirstWord(t *testing.T) {
	p := &puppet{acts: []func(context.Context, agent.Job) agent.Result{breaks, breaks, breaks, func(ctx context.Context, _ agent.Job) agent.Result {
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Minute):
		}
		return agent.Result{Outcome: agent.Failed, Error: "no"}
	}, writes("x")}, speaks: true}
	inHours(t, p, func(w *world, task func(app.TaskRequest) *app.TaskView) {
		for range 3 {
			w.state(task(app.TaskRequest{}).ID, work.Failed)
		}
		first, second := task(app.TaskRequest{}).ID, task(app.TaskRequest{}).ID
		began := time.Now()
		ended := func(v *app.TaskView) bool { return v.State.Ended() }
		w.until(first, func(v *app.TaskView) bool { return v.State == work.Running || ended(v) })
		w.until(second, func(v *app.TaskView) bool { return v.State == work.Running || ended(v) })
		if took := time.Since(began); took > 5*time.Minute {
			t.Errorf("the second task waited %s", took)
		}
	})
}

// TestProgramsAreToldApart: by what finds them, so that what one project does to a
// program's place is not held against another project.
func TestProgramsAreToldApart(t *testing.T) {
	t.Parallel()
	shop := work.Project{Name: "shop"}
	bare := work.Project{Name: "bare", Environment: map[string]string{"PATH": "/bin"}}
	claude, acp, own := work.AgentSpec{Type: "claude"}, work.AgentSpec{Type: "acp", Command: []string{"x", "y"}}, work.AgentSpec{Type: "acp", Command: []string{"./x"}}
	other := work.Project{Name: "other"}
	for _, tt := range []struct {
		a, b work.Project
		x, y work.AgentSpec
		same bool
	}{
		{shop, other, claude, claude, true},
		{shop, bare, claude, claude, false},
		{shop, other, acp, acp, true},
		{shop, other, claude, acp, false},
		{shop, other, own, own, false},
		{shop, shop, own, own, true},
	} {
		if got := engine.Program(tt.a, tt.x) == engine.Program(tt.b, tt.y); got != tt.same {
			t.Errorf("%s in %s and %s in %s are the same: %t, want %t", tt.x.Type, tt.a.Name, tt.y.Type, tt.b.Name, got, tt.same)
		}
	}
	if name := engine.Program(shop, work.AgentSpec{Type: "command", Command: []string{"x"}}); name != "" {
		t.Errorf("a command is %q", name)
	}
}

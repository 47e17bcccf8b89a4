package engine_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/claudomator/claudomator/internal/agent"
	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

// noting is an act that keeps the job it was given and writes a file.
func noting(jobs *[]agent.Job, file string, result agent.Result) func(context.Context, agent.Job) agent.Result {
	return func(ctx context.Context, job agent.Job) agent.Result {
		*jobs = append(*jobs, job)
		if wrote := writes(file)(ctx, job); file != "" && wrote.Outcome != agent.Success {
			return wrote
		}
		return result
	}
}

// A conversation goes on with what is new; one that is gone is begun again once,
// with everything that was agreed, in the same execution.
func TestConversations(t *testing.T) {
	var jobs []agent.Job
	p := &puppet{acts: []func(context.Context, agent.Job) agent.Result{
		noting(&jobs, "a", agent.Result{Outcome: agent.Success, Handle: "c1", CostUSD: 0.25, Usage: agent.Usage{Input: 1}}),
		noting(&jobs, "b", agent.Result{Outcome: agent.Success, Handle: "c1"}),
		noting(&jobs, "", agent.Result{Outcome: agent.Failed, NoResume: true, Error: "no conversation c1", CostUSD: 0.5, Usage: agent.Usage{Input: 2}}),
		noting(&jobs, "c", agent.Result{Outcome: agent.Success, Handle: "c2", CostUSD: 0.25, Usage: agent.Usage{Input: 3}}),
		noting(&jobs, "", agent.Result{Outcome: agent.Failed, NoResume: true, Error: "no conversation c2"}),
		noting(&jobs, "", agent.Result{Outcome: agent.Failed, Error: "broken"}),
		noting(&jobs, "d", agent.Result{Outcome: agent.Success}),
	}}
	inHours(t, p, func(w *world, _ func(app.TaskRequest) *app.TaskView) {
		id := w.task(app.TaskRequest{Agent: app.AgentInput{Instructions: "build the bridge"}, Review: "human"}).ID
		w.state(id, work.Ready)
		for i, say := range []string{"in blue", "in green", "in red"} {
			if _, err := w.service.MessageTask(w.ctx, string(id), say); err != nil {
				t.Fatal(err)
			}
			w.until(id, func(v *app.TaskView) bool {
				return v.State == work.Ready && len(p.runs) > i+1 || v.State == work.Failed
			})
		}
		if v := w.state(id, work.Failed); v.Reason != "broken" {
			t.Errorf("reason %q", v.Reason)
		}
		if _, err := w.service.RetryTask(w.ctx, string(id), false); err != nil {
			t.Fatal(err)
		}
		w.state(id, work.Ready)
		for i, want := range []struct{ resume, with, without string }{
			{"", "build the bridge", "blue"},
			{"c1", "A person says: in blue", "bridge"},
			{"c1", "A person says: in green", "blue"},
			{"", "build the bridge", "\x00"},
			{"c2", "A person says: in red", "green"},
			{"", "A person says: in red", "\x00"},
			{"", "build the bridge", "\x00"},
		} {
			if job := jobs[i]; job.Resume != want.resume || !strings.Contains(job.Prompt, want.with) || strings.Contains(job.Prompt, want.without) {
				t.Errorf("run %d resumes %q with prompt %q", i+1, job.Resume, job.Prompt)
			}
		}
		if all := jobs[3].Prompt; !strings.Contains(all, "in blue") || !strings.Contains(all, "in green") {
			t.Errorf("the new conversation is not told what was agreed: %q", all)
		}
		runs, err := w.service.Executions(w.ctx, string(id))
		if err != nil || len(runs) != 5 {
			t.Fatalf("%d executions, %v", len(runs), err)
		}
		if x := runs[2]; x.CostUSD != 0.75 || x.Usage.Input != 5 || x.SessionHandle != "c2" {
			t.Errorf("the execution that began again: %v USD, %+v, handle %q", x.CostUSD, x.Usage, x.SessionHandle)
		}
	})
}

// A task's budget is for all of its runs together.
func TestBudgetOfATask(t *testing.T) {
	var jobs []agent.Job
	p := &puppet{acts: []func(context.Context, agent.Job) agent.Result{
		noting(&jobs, "", agent.Result{Outcome: agent.Failed, Error: "no", CostUSD: 0.6}),
		noting(&jobs, "", agent.Result{Outcome: agent.Failed, Error: "no", CostUSD: 0.5}),
	}}
	inHours(t, p, func(w *world, task func(app.TaskRequest) *app.TaskView) {
		id := task(app.TaskRequest{Agent: app.AgentInput{MaxBudgetUSD: 1}}).ID
		w.state(id, work.Failed)
		for _, state := range []work.State{work.Failed, work.BudgetExceeded} {
			if _, err := w.service.RetryTask(w.ctx, string(id), false); err != nil {
				t.Fatal(err)
			}
			w.until(id, func(v *app.TaskView) bool { return v.State == state && (state != work.Failed || len(p.runs) == 2) })
		}
		if len(jobs) != 2 || jobs[0].Limits.BudgetUSD != 1 || math.Abs(jobs[1].Limits.BudgetUSD-0.4) > 1e-9 {
			t.Errorf("%d runs, budgets %v and %v", len(jobs), jobs[0].Limits.BudgetUSD, jobs[len(jobs)-1].Limits.BudgetUSD)
		}
		if v := w.state(id, work.BudgetExceeded); !strings.Contains(v.Reason, "1.10 of 1.00 USD are spent") {
			t.Errorf("reason %q", v.Reason)
		}
	})
}

// A conversation that is gone has cost something, too: the new one may spend what is
// left, and is not begun where nothing is.
func TestBudgetOfAConversationBegunAgain(t *testing.T) {
	for name, test := range map[string]struct {
		budget, cost, left float64
		runs               int
	}{
		"no budget":   {0, 5, 0, 3},
		"some left":   {1, 0.25, 0.25, 3},
		"nothing":     {1, 0.5, 0, 2},
		"overdrawn":   {1, 7, 0, 2},
		"cost no sum": {1, 0, 0.5, 3},
	} {
		t.Run(name, func(t *testing.T) {
			var jobs []agent.Job
			p := &puppet{acts: []func(context.Context, agent.Job) agent.Result{
				noting(&jobs, "a", agent.Result{Outcome: agent.Success, Handle: "c1", CostUSD: 0.5}),
				noting(&jobs, "", agent.Result{Outcome: agent.Failed, NoResume: true, Error: "no conversation c1", CostUSD: test.cost}),
				noting(&jobs, "b", agent.Result{Outcome: agent.Success, Handle: "c2"}),
			}}
			inHours(t, p, func(w *world, _ func(app.TaskRequest) *app.TaskView) {
				id := w.task(app.TaskRequest{Agent: app.AgentInput{Instructions: "build", MaxBudgetUSD: test.budget}, Review: "human"}).ID
				w.state(id, work.Ready)
				if _, err := w.service.MessageTask(w.ctx, string(id), "more"); err != nil {
					t.Fatal(err)
				}
				w.until(id, func(v *app.TaskView) bool {
					return v.State == work.Ready && len(jobs) == 3 || v.State.EndedBadly()
				})
				if len(jobs) != test.runs {
					t.Fatalf("%d runs", len(jobs))
				}
				last := jobs[len(jobs)-1]
				if test.runs == 3 && (last.Resume != "" || math.Abs(last.Limits.BudgetUSD-test.left) > 1e-9) {
					t.Errorf("the new conversation resumes %q with %v USD", last.Resume, last.Limits.BudgetUSD)
				}
			})
		})
	}
}

// What an agent warns of reaches the reviewer.
func TestWarningsOfAnAgent(t *testing.T) {
	p := &puppet{acts: []func(context.Context, agent.Job) agent.Result{
		noting(new([]agent.Job), "a", agent.Result{Outcome: agent.Success, Warnings: []string{"a server was left running"}}),
	}}
	inHours(t, p, func(w *world, task func(app.TaskRequest) *app.TaskView) {
		v := w.state(task(app.TaskRequest{}).ID, work.Completed)
		if v.Result == nil || len(v.Result.Warnings) != 1 || v.Result.Warnings[0] != "a server was left running" {
			t.Errorf("result %+v", v.Result)
		}
	})
}

package engine

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/claudomator/claudomator/internal/agent"
	"github.com/claudomator/claudomator/internal/sandbox"
	"github.com/claudomator/claudomator/internal/work"
)

// agent runs the agent program: in its earlier conversation where there is one,
// and once more in a new one when that turns out to be gone.
func (r *run) agent(ctx context.Context) work.End {
	p := r.plan
	a, ok := r.e.o.Agents[p.Spec.Type]
	if !ok {
		return failed("%v: %s", errNoAgent, p.Spec.Type)
	}
	job := r.job(string(p.Execution.ID), p.Timeout)
	job.Command, job.Prompt, job.Model = p.Spec.Command, p.Prompt, p.Spec.Model
	job.AllowedTools, job.MaxTurns = p.Spec.AllowedTools, p.Spec.MaxTurns
	job.MCP = agent.Endpoint{URL: r.e.o.MCPURL, Token: r.secret}
	job.Limits.BudgetUSD = p.Budget
	if p.Resume == "" {
		return r.agentEnded(r.drive(ctx, a, job))
	}
	begun := r.e.o.Now()
	job.Prompt, job.Resume = p.News, p.Resume
	res, err := r.drive(ctx, a, job)
	left := job.Limits.Wall - r.e.o.Now().Sub(begun)
	if !res.NoResume || ctx.Err() != nil || left <= 0 || r.alive {
		return r.agentEnded(res, err)
	}
	if job.Limits.BudgetUSD -= res.CostUSD; p.Budget > 0 && job.Limits.BudgetUSD <= 0 {
		end := r.agentEnded(res, err)
		end.NoResume = true // a later run, with a new budget, begins anew
		return end
	}
	job.Limits.BudgetUSD = max(0, job.Limits.BudgetUSD) // 0: none was set
	r.log.notice("the earlier conversation cannot be resumed (%s); a new one is begun and told what was agreed", res.Error)
	job.ID, job.Prompt, job.Resume, job.Limits.Wall = job.ID+".new", p.Prompt, "", left
	end := r.agentEnded(r.drive(ctx, a, job))
	end.NoResume = true
	end.CostUSD += res.CostUSD
	end.Usage = end.Usage.Plus(work.Usage(res.Usage))
	return end
}

// drive runs an agent and returns when no process of the job is left: nothing may
// be taken over or removed, and no other run begun, beside one that still works.
// When the server stops before that, the run stays alive, for the next life to end.
func (r *run) drive(ctx context.Context, a agent.Agent, job agent.Job) (agent.Result, error) {
	res, err := a.Run(ctx, job, &speaking{Sink: r.log, first: sync.OnceFunc(func() { r.e.faults.speaks(program(r.plan.Project, r.plan.Spec)) })})
	for gone, wait := err, time.Second; errors.Is(gone, sandbox.ErrNotEnded); wait = min(2*wait, time.Minute) {
		r.log.notice("waiting for processes that cannot be ended: %v", gone)
		r.e.o.Log.Error("end a run's processes", "execution", r.plan.Execution.ID, "error", gone, "again_in", wait)
		if !pause(r.e.stop.Done(), wait) {
			r.alive = true
			return res, err
		}
		_, gone = r.e.o.Host.Sweep(ctx, job.ID)
	}
	return res, err
}

func (r *run) agentEnded(res agent.Result, err error) work.End {
	if err != nil && res.Error == "" {
		res.Error = err.Error()
	}
	r.warned = append(r.warned, res.Warnings...)
	if res.Outcome != agent.Cancelled { // which says nothing of the program
		fault := ""
		if res.AgentFault {
			fault = cmp.Or(res.Error, string(res.Outcome))
		}
		r.e.faults.ran(program(r.plan.Project, r.plan.Spec), fault, r.e.o.Now())
	}
	return ending(res)
}

func (r *run) job(id string, wall time.Duration) agent.Job {
	job := agent.Job{ID: id, TaskID: string(r.plan.Task.ID), Dir: r.dir, Bin: r.e.o.Bin, Facts: r.plan.Facts, Level: sandbox.Level(r.plan.Isolation)}
	for _, name := range sortedKeys(r.plan.Project.Environment) {
		job.Env = append(job.Env, name+"="+r.plan.Project.Environment[name])
	}
	job.Limits.Wall, job.Limits.Silence = wall, r.plan.Silence
	return job
}

// shell runs one shell command in the workspace, as a command agent does.
func (r *run) shell(ctx context.Context, name, command string, wall time.Duration) agent.Result {
	job := r.job(string(r.plan.Execution.ID)+"."+name, wall)
	job.Command = []string{"sh", "-c", command}
	res, err := r.drive(ctx, r.e.o.Agents["command"], job)
	if err != nil && res.Error == "" {
		res.Error = err.Error()
	}
	return res
}

// ending is an agent's result in the words of the domain.
func ending(res agent.Result) work.End {
	end := work.End{
		Outcome: work.Outcome(res.Outcome), Error: res.Error, Tail: res.Tail, CostUSD: res.CostUSD, Handle: res.Handle,
		Usage:     work.Usage(res.Usage),
		Signalled: res.Facts.Exit == agent.ExitSignal,
	}
	if res.Facts.Exit == agent.ExitZero || res.Facts.Exit == agent.ExitStatus {
		code := res.Facts.Code
		end.ExitCode = &code
	}
	if res.Limit != nil {
		end.ResumeAt = res.Limit.ResetAt
	}
	return end
}

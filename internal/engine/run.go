package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/claudomator/claudomator/internal/agent"
	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/git"
	"github.com/claudomator/claudomator/internal/sandbox"
	"github.com/claudomator/claudomator/internal/work"
)

// start takes a slot and begins a queued execution, or leaves it waiting.
func (e *Engine) start(ctx context.Context, job int64, f work.Effect) error {
	if e.stop.Err() != nil || e.slots.none() {
		return nil // found again at the next start, or when a slot is given back
	}
	plan, err := e.o.Core.PlanRun(ctx, f.Tree, f.Execution)
	if err != nil {
		return err
	}
	if !e.slots.take(plan.Project, plan.Spec.Type) {
		return nil
	}
	defer func() {
		if !e.slots.give(plan.Project.ID, plan.Spec.Type) || e.stop.Err() != nil {
			return
		}
		if err := e.pump(context.WithoutCancel(ctx)); err != nil {
			e.o.Log.Error("start waiting executions", "error", err)
		}
	}()
	if plan.Execution.Kind == work.AgentRun {
		done, err := e.admit(ctx, f, plan)
		if done == nil {
			return err
		}
		defer done()
	}
	secret := app.NewSecret()
	e.hold(f.Execution)
	defer e.release(f.Execution)
	if err := e.o.Core.Do(ctx, f.Tree, work.System(), work.Begin{
		Execution: f.Execution, Node: e.o.Node, JobID: job, Lease: e.o.Now().Add(lease),
		TokenHash: app.HashSecret(secret), Spec: plan.Spec, Isolation: plan.Isolation,
	}); err != nil {
		return err
	}
	fence := plan.Execution.Fence + 1 // Begin has raised it
	// From here on the execution runs, and nobody else ends it: whatever happens,
	// a cancel at this very moment included, its end is reported.
	var end work.End
	if plan, err := e.o.Core.PlanRun(context.WithoutCancel(ctx), f.Tree, f.Execution); err != nil {
		end = failed("read what is to be done: %v", err)
	} else if plan.Refusal != nil {
		end = failed("%s", explain(plan.Refusal))
		if work.CodeOf(plan.Refusal) == work.Exhausted {
			end.Outcome = work.BudgetRun
		}
	} else {
		r := &run{e: e, plan: plan, secret: secret}
		if end = r.carryOut(ctx); r.alive {
			return fmt.Errorf("execution %s: %w", f.Execution, sandbox.ErrNotEnded)
		}
	}
	end.Execution, end.Fence = f.Execution, fence
	return e.patiently(ctx, "report an execution's end", func(ctx context.Context) error {
		return e.o.Core.Do(ctx, f.Tree, work.System(), end)
	})
}

// run is one execution being carried out: prepare, set up, work, collect.
type run struct {
	e      *Engine
	plan   *app.RunPlan
	secret string
	vault  *git.Vault
	dir    string
	base   string // commit the task's branch started from
	log    *transcript
	warned []string // by the agent, for whoever reviews the work
	alive  bool     // processes of it could not be ended
}

// carryOut does one execution to its end, whatever happens on the way; it
// always answers how it ended.
func (r *run) carryOut(ctx context.Context) (end work.End) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(r.e.stop, func() { cancel(agent.ErrStopping) })() //nolint:contextcheck // the server's end, not the caller's
	defer r.e.parkable(r.plan.Execution.ID, func() { cancel(agent.ErrParked) })()

	log, err := r.e.openTranscript(r.plan.Execution.ID, r.secret)
	if err != nil {
		return failed("open the transcript: %v", err)
	}
	r.log = log
	defer func() { end.LogBytes = log.close() }()
	r.dir = r.e.workspace(app.Workspace{Task: r.plan.Task.ID})
	if r.plan.Detached {
		r.dir = r.e.workspace(app.Workspace{Execution: r.plan.Execution.ID})
	}
	release, err := r.e.claims.take(ctx, r.dir) // nobody reclaims it until this is over
	if err != nil {
		return r.notStarted(ctx, err)
	}
	defer release()
	if r.plan.Detached {
		defer r.discard(ctx) // also what was prepared only in part
	}
	if err := r.prepare(ctx); err != nil {
		return r.notStarted(ctx, err)
	}
	if end, ok := r.setUp(ctx); !ok {
		return r.collect(ctx, end)
	}
	switch r.plan.Execution.Kind {
	case work.GateRun, work.DeployRun, work.SmokeRun:
		return r.commands(ctx)
	case work.SubmitRun:
		return r.collect(ctx, work.End{Outcome: work.Success})
	case work.AgentRun:
	}
	return r.collect(ctx, r.agent(ctx))
}

func failed(format string, args ...any) work.End {
	return work.End{Outcome: work.FailedRun, Error: fmt.Sprintf(format, args...)}
}

// notStarted says why nothing ran.
func (r *run) notStarted(ctx context.Context, err error) work.End {
	if cause := context.Cause(ctx); cause != nil {
		return work.End{Outcome: work.CancelledRun, Error: cause.Error()}
	}
	r.log.notice("not started: %s", explain(err))
	return failed("%s", explain(err))
}

// explain is an error as a person can act on it.
func explain(err error) string {
	if w, ok := work.AsError(err); ok && w.Hint != "" {
		return w.Message + "; " + w.Hint
	}
	g, ok := errors.AsType[*git.Error](err)
	if !ok {
		return err.Error()
	}
	text := fmt.Sprintf("%s (%s)", g.Message, g.Kind)
	if len(g.Paths) > 0 {
		text += ": " + strings.Join(g.Paths[:min(len(g.Paths), 20)], ", ")
	}
	if g.Hint != "" {
		text += "; " + g.Hint
	}
	return text
}

// prepare opens the vault and brings the workspace to where the run starts.
func (r *run) prepare(ctx context.Context) (err error) {
	p := r.plan
	if r.vault, err = r.e.vaults.get(ctx, p.Project); err != nil {
		return err
	}
	// What a lost run has left was not reported: it is kept, and not mixed in.
	ws := git.Workspace{Dir: r.dir, Branch: p.Task.Ref(), Merge: p.Task.Book.MergeIn, Clean: p.Task.Book.Losses > 0}
	if p.Detached {
		ws = git.Workspace{Dir: r.dir, Base: p.Base}
		if p.Base == "" { // what there is now
			if ws.Base, err = r.vault.BranchHead(ctx, p.Project.Branch); err != nil {
				return err
			}
		}
	}
	switch p.Execution.Kind {
	case work.SubmitRun:
		return r.byHand(ctx)
	case work.DeployRun, work.SmokeRun: // it may have been merged elsewhere
		if err := bring(ctx, r.vault, p.Target, p.Base); err != nil {
			return err
		}
	case work.AgentRun, work.GateRun:
	}
	if p.Fresh {
		if err := r.startOver(ctx); err != nil {
			return err
		}
	}
	if !p.Detached {
		if r.base, err = r.startingPoint(ctx); err != nil {
			return err
		}
		ws.Base = r.base
		if ws.Clean {
			if err := r.setBack(ctx); err != nil {
				return err
			}
		}
	}
	got, err := r.vault.Prepare(ctx, ws)
	if err != nil {
		return err
	}
	r.log.notice("workspace at %s", got.Head)
	if got.Snapshot != "" {
		r.log.notice("what lay there before is kept: %s", got.Snapshot)
	}
	r.log.warnings(got.Warnings)
	return nil
}

// byHand checks that the workspace a person worked in is there; it is taken as
// it stands.
func (r *run) byHand(ctx context.Context) (err error) {
	if _, err := os.Stat(r.dir); err != nil {
		return fmt.Errorf("there is no workspace to submit at %s: retry the task first", r.dir)
	}
	r.base, err = r.startingPoint(ctx)
	return err
}

// baseRef remembers in the vault where a task's branch started, so that a run
// that was lost before its report starts from the same commit again.
func baseRef(id work.TaskID) string { return "refs/claudomator/base/" + string(id) }

// startingPoint is the commit the task's branch starts from: decided once.
func (r *run) startingPoint(ctx context.Context) (string, error) {
	p := r.plan
	known, err := refOf(ctx, r.vault, baseRef(p.Task.ID))
	if err != nil || known != "" {
		return known, err
	}
	base := p.Base
	if base == "" && p.Parent != "" {
		// A roll-up parent that never ran itself: its branch starts here.
		if base, err = branchOf(ctx, r.vault, p.Project, p.Parent); err != nil {
			return "", err
		}
	}
	if base == "" {
		if base, err = r.vault.BranchHead(ctx, p.Project.Branch); err != nil {
			return "", err
		}
		heads := []string{base}
		for _, b := range p.On {
			heads = append(heads, b.Commit)
		}
		merged, err := r.vault.Merge(ctx, heads, "Merge what "+string(p.Task.ID)+" builds on")
		if err != nil {
			return "", err
		}
		if merged.Commit == "" {
			return "", fmt.Errorf("what it depends on conflicts: %s", paths(merged.Conflicts))
		}
		base = merged.Commit
	}
	return base, r.vault.SetRef(ctx, baseRef(p.Task.ID), base, "")
}

func paths(conflicts []git.Conflict) string { return strings.Join(pathList(conflicts), ", ") }

func pathList(conflicts []git.Conflict) []string {
	var out []string
	for _, c := range conflicts {
		out = append(out, git.Display(c.Path))
	}
	return out
}

// setBack takes out of a task's branch what a lost run had handed over before its
// report; it is kept. An integration that moved the branch, and was not reported
// either, is delivered again.
func (r *run) setBack(ctx context.Context) error {
	p := r.plan
	release, err := r.e.claims.take(ctx, integration(p.Task.ID))
	if err != nil {
		return err
	}
	defer release()
	known := ""
	err = r.e.o.Core.View(ctx, p.Task.TreeID, func(tree *work.Tree) error {
		if t := tree.Task(p.Task.ID); t != nil {
			known = t.Book.Head
		}
		return nil
	})
	if err != nil {
		return err
	}
	branch := "refs/heads/" + p.Task.Ref()
	head, err := refOf(ctx, r.vault, branch)
	if known = cmp.Or(known, r.base); err != nil || head == "" || head == known {
		return err
	}
	if err := r.vault.SetRef(ctx, r.keep(beforeBack), head, ""); err != nil {
		return err
	}
	r.log.notice("the lost run had handed over %s: it is kept, and not mixed in", head)
	return r.vault.SetRef(ctx, branch, known, head)
}

// keep is where what a task's branch has before this run is kept, and why.
func (r *run) keep(why string) string {
	return git.SnapshotPrefix + string(r.plan.Task.ID) + "/" + why + string(r.plan.Execution.ID)
}

// startOver throws a task's workspace and branch away, after keeping both.
func (r *run) startOver(ctx context.Context) error {
	if err := discard(ctx, r.vault, r.dir, r.e.binDir()); err != nil {
		return err
	}
	branch := "refs/heads/" + r.plan.Task.Ref()
	head, err := refOf(ctx, r.vault, branch)
	if err != nil {
		return err
	}
	if head != "" {
		if err := r.vault.SetRef(ctx, r.keep(beforeFresh), head, ""); err != nil {
			return err
		}
		if err := r.vault.DeleteRef(ctx, branch, head); err != nil {
			return err
		}
	}
	return r.vault.DeleteRef(ctx, baseRef(r.plan.Task.ID), "")
}

// setUp runs the project's setup command; false when the run ends here.
func (r *run) setUp(ctx context.Context) (work.End, bool) {
	if r.plan.Project.Setup == "" || r.plan.Execution.Kind == work.SubmitRun {
		return work.End{}, true
	}
	r.log.notice("setup: %s", r.plan.Project.Setup)
	res := r.shell(ctx, "setup", r.plan.Project.Setup, r.plan.Timeout)
	if res.Outcome == agent.Success {
		return work.End{}, true
	}
	end := ending(res)
	end.Error = "the project's setup command failed: " + end.Error
	if res.Facts.Exit == agent.ExitStatus {
		end.Error = fmt.Sprintf("the project's setup command failed with exit code %d", res.Facts.Code)
	}
	end.ExitCode = nil // a judge's verdict is never read from a failed setup
	return end, false
}

// collect takes the work over, however the run ended.
func (r *run) collect(ctx context.Context, end work.End) work.End {
	end.Blockers = r.log.blockers()
	if r.alive {
		return end // something still works there
	}
	p := r.plan
	ctx = context.WithoutCancel(ctx) // what was done is kept also when the run was cancelled
	spec := git.CollectSpec{Dir: r.dir}
	if !p.Detached {
		spec.Branch, spec.Base, spec.Message = p.Task.Ref(), r.base, r.e.message(p.Task, p.Execution.ID)
	}
	got, err := r.vault.Collect(ctx, spec)
	if err != nil {
		r.log.notice("the work could not be taken over: %s", explain(err))
		if end.Outcome == work.Success {
			end.Outcome = work.FailedRun
		}
		end.Error = fmt.Sprintf("the work could not be taken over: %s; the workspace stays at %s", explain(err), r.dir)
		return end
	}
	r.log.warnings(got.Warnings)
	if p.Detached {
		return end
	}
	if got.Missing && end.Outcome == work.Success { // its branch may hold earlier work, which is not this run's
		end.Outcome, end.Error = work.FailedRun, "the workspace is gone, and with it whatever the run has done"
	}
	if len(got.Unfinished) > 0 && end.Outcome == work.Success {
		end.Outcome, end.Error = work.FailedRun, fmt.Sprintf("the agent ended in the middle of a %s; what it had is kept: retry to let it go on, or retry --fresh to start over",
			strings.Join(got.Unfinished, " and a "))
	}
	end.Base, end.Head = r.base, got.Head
	end.Result = result(got)
	end.Result.Warnings = append(end.Result.Warnings, r.warned...)
	switch {
	case len(got.Unresolved) > 0:
		end.Conflicts = pathList(got.Unresolved)
	case len(got.Conflicts) > 0:
		// The fix begins at the branch's head, which holds what was integrated: it is
		// the run's own work that is to be merged in there.
		end.Conflicts, end.MergeIn = pathList(got.Conflicts), got.Kept
	}
	return end
}

func result(got git.Collected) *work.Result {
	res := &work.Result{
		Base: got.Base, Head: got.Head, NoChanges: got.NoChanges,
		Files: got.Files, Insertions: got.Insertions, Deletions: got.Deletions,
	}
	for _, h := range got.HeldBack {
		res.HeldBack = append(res.HeldBack, fmt.Sprintf("%s (%s)", git.Display(h.Path), h.Reason))
	}
	for _, w := range got.Warnings {
		res.Warnings = append(res.Warnings, w.Message)
	}
	return res
}

// message is what commits made for a task say.
func (e *Engine) message(t work.Task, x work.ExecutionID) string {
	text := fmt.Sprintf("%s\n\nClaudomator-Task: %s\n", t.Subject(), t.ID)
	if x != "" { // the root of a plan runs no agent
		text += fmt.Sprintf("Claudomator-Execution: %s\n", x)
	}
	return text
}

// discard removes a throw-away workspace.
func (r *run) discard(ctx context.Context) {
	if r.vault == nil {
		return // nothing was prepared
	}
	if err := discard(context.WithoutCancel(ctx), r.vault, r.dir, r.e.binDir()); err != nil {
		r.e.o.Log.Warn("discard a workspace", "dir", r.dir, "error", err)
	}
}

// Park ends a run that has asked a person, after a grace in which it can end by
// itself.
func (e *Engine) Park(id work.ExecutionID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if timer := e.parking[id]; timer != nil {
		timer.Reset(parkGrace)
	}
}

const parkGrace = 2 * time.Second

// parkable lets Park end a run until over is called. The timer may be ringing just
// then, and nobody waits for it: end does nothing but cancel the run's context.
func (e *Engine) parkable(id work.ExecutionID, end func()) (over func()) {
	const never = 1 << 62
	timer := time.AfterFunc(never, end)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.parking[id] = timer
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.parking, id)
		timer.Stop()
	}
}

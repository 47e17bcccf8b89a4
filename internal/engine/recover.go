package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

// recover ends for certain what a former life of this server left running, then
// reports those executions lost.
func (e *Engine) recover(ctx context.Context) error {
	leftovers, err := e.o.Host.Leftovers(ctx)
	if err != nil {
		return err
	}
	for _, r := range leftovers {
		ended, err := e.o.Host.Sweep(ctx, r.ID)
		if err != nil {
			return fmt.Errorf("end what is left of run %s: %w", r.ID, err)
		}
		e.o.Log.Info("ended what was left of a run", "run", r.ID, "processes", ended.Killed)
	}
	held, err := e.o.Schedule.Held(ctx, e.o.Node, e.o.Now())
	if err != nil {
		return err
	}
	for _, x := range held {
		if _, err := e.o.Host.Sweep(ctx, string(x.ID)); err != nil {
			return fmt.Errorf("end what is left of execution %s: %w", x.ID, err)
		}
		if err := e.lose(ctx, x); err != nil {
			return err
		}
		if err := e.throwAway(ctx, x.TreeID, x.ID); err != nil {
			e.o.Log.Warn("discard the workspace of a lost execution", "execution", x.ID, "error", err)
		}
	}
	return e.o.Queue.revive(ctx, e.o.Node)
}

// throwAway discards the workspace of a run that is not its task's own work: of
// judges, planners and retros, gates, deployments and smoke runs. A run that ends does
// it itself; this is for one that was killed with its server.
func (e *Engine) throwAway(ctx context.Context, tree work.TreeID, x work.ExecutionID) error {
	dir := e.workspace(app.Workspace{Execution: x})
	if _, err := os.Lstat(dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	var project work.Project
	err := e.o.Core.View(ctx, tree, func(t *work.Tree) error {
		project = t.Project
		return nil
	})
	if err != nil {
		return err
	}
	v, err := e.vaults.get(ctx, project)
	if err != nil {
		return err
	}
	return discard(ctx, v, dir, e.binDir())
}

func (e *Engine) lose(ctx context.Context, x work.Execution) error {
	err := e.o.Core.Do(ctx, x.TreeID, work.System(), work.Lose{Execution: x.ID, Fence: x.Fence})
	if stale(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("report execution %s lost: %w", x.ID, err)
	}
	return nil
}

// redeliver resumes what is open: at the start, and whenever River had trouble.
// After a time without a database it may take jobs for running that ended long
// ago, and nobody would work on them until they are rescued.
func (e *Engine) redeliver(ctx context.Context) {
	e.resume(ctx)
	ticker := time.NewTicker(leaseBeat)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if e.o.Queue.trouble() {
			e.resume(ctx)
		}
	}
}

// resume settles every open tree and delivers again what it waits for: a job
// may have been lost, or be held by a life that is over. What fails is tried
// again, with growing waits.
func (e *Engine) resume(ctx context.Context) {
	var left []work.TreeID // nil: not listed yet
	for wait := time.Second; ; wait = min(2*wait, time.Minute) {
		var err error
		if left, err = e.resumeOnce(ctx, left); err == nil || ctx.Err() != nil {
			return
		}
		e.o.Log.Error("resume open work", "error", err, "again_in", wait)
		if !pause(ctx.Done(), wait) {
			return
		}
	}
}

// resumeOnce gives back the trees that it failed for: one broken tree must not
// stop the others.
func (e *Engine) resumeOnce(ctx context.Context, trees []work.TreeID) (left []work.TreeID, err error) {
	if trees == nil {
		if trees, err = e.o.Schedule.OpenTrees(ctx); err != nil {
			return nil, err
		}
	}
	left = []work.TreeID{}
	for _, id := range trees {
		if failure := e.o.Core.Do(ctx, id, work.System(), work.Settle{Redeliver: true}); failure != nil && !stale(failure) {
			left = append(left, id)
			err = errors.Join(err, fmt.Errorf("settle tree %s: %w", id, failure))
		}
	}
	return left, errors.Join(err, e.wakeDue(ctx))
}

func (e *Engine) hold(id work.ExecutionID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.held[id]++
}

// release takes one delivery's hold back: one that came twice must not end the
// hold of the one that carries the run.
func (e *Engine) release(id work.ExecutionID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.held[id]--; e.held[id] == 0 {
		delete(e.held, id)
	}
}

// carries is true from before an execution begins here until its end is reported.
func (e *Engine) carries(id work.ExecutionID) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.held[id] > 0
}

// abandoned takes back executions of this server that it does not carry: they
// were begun by a commit whose answer was lost.
func (e *Engine) abandoned(ctx context.Context, now time.Time) error {
	rows, err := e.o.Schedule.Held(ctx, e.o.Node, now)
	if err != nil {
		return err
	}
	for _, x := range rows {
		if e.carries(x.ID) || now.Sub(x.StartedAt) < lease {
			continue
		}
		if _, err := e.o.Host.Sweep(ctx, string(x.ID)); err != nil {
			return fmt.Errorf("end what is left of execution %s: %w", x.ID, err)
		}
		if err := e.lose(ctx, x); err != nil {
			return err
		}
	}
	return nil
}

// beat renews this server's leases, takes back what others let expire, and starts
// what waits for a slot that is free.
func (e *Engine) beat(ctx context.Context) {
	ticker := time.NewTicker(leaseBeat)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if e.slots.hungry() { // a freed slot could not look: perhaps nothing runs that frees another
			if err := e.pump(ctx); err != nil {
				e.o.Log.Error("start waiting executions", "error", err)
			}
		}
		now := e.o.Now()
		if err := e.o.Schedule.RenewLeases(ctx, e.o.Node, now.Add(lease)); err != nil {
			e.o.Log.Error("renew leases", "error", err)
			continue
		}
		if err := e.abandoned(ctx, now); err != nil {
			e.o.Log.Error("look for executions that nobody carries", "error", err)
		}
		expired, err := e.o.Schedule.Held(ctx, "", now)
		if err != nil {
			e.o.Log.Error("look for expired leases", "error", err)
			continue
		}
		for _, x := range expired {
			if err := e.lose(ctx, x); err != nil {
				e.o.Log.Error("take back an execution", "error", err)
			}
		}
	}
}

// alarm rings at the earliest of the instants it was set to.
type alarm struct {
	at chan time.Time // holds the earliest one not yet taken
}

func newAlarm() alarm { return alarm{make(chan time.Time, 1)} }

// set asks to be rung at an instant; zero asks nothing.
func (a alarm) set(at time.Time) {
	for !at.IsZero() {
		select {
		case a.at <- at:
			return
		case earlier := <-a.at:
			if earlier.Before(at) {
				at = earlier
			}
		}
	}
}

// ring wakes the trees in which something is due. What is due is in their rows;
// the alarm only says when to look.
func (e *Engine) ring(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	next := e.o.Now().Add(time.Hour)
	for {
		select {
		case <-ctx.Done():
			return
		case at := <-e.timer.at:
			if at.Before(next) {
				next = at
				timer.Reset(max(0, at.Sub(e.o.Now())))
			}
			continue
		case <-timer.C:
		}
		next = e.o.Now().Add(time.Hour)
		timer.Reset(time.Hour)
		if err := e.wakeDue(ctx); err != nil && ctx.Err() == nil {
			e.o.Log.Error("wake what is due", "error", err)
			e.timer.set(e.o.Now().Add(5 * time.Second))
		}
	}
}

func (e *Engine) wakeDue(ctx context.Context) error {
	due, next, err := e.o.Schedule.DueTrees(ctx, e.o.Now())
	if err != nil {
		return err
	}
	var all error
	for _, id := range due {
		all = errors.Join(all, e.o.Core.Do(ctx, id, work.System(), work.Wake{}))
	}
	e.timer.set(next)
	return all
}

// janitor reclaims what has been over for long enough: workspaces (their work
// is in the vault, and they go to the bin first), the bin, old transcripts; and packs
// what stays: transcripts and vaults.
func (e *Engine) janitor(ctx context.Context) {
	timer := time.NewTimer(time.Minute)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if err := e.cleanUp(ctx); err != nil && ctx.Err() == nil {
			e.o.Log.Error("clean up", "error", err)
		}
		timer.Reset(time.Hour)
	}
}

func (e *Engine) cleanUp(ctx context.Context) error {
	now := e.o.Now()
	_, err := e.vaults.git.EmptyBin(ctx, e.binDir(), now.Add(-e.o.Retention.Bin))
	entries, readErr := os.ReadDir(filepath.Join(e.o.DataDir, "workspaces"))
	if readErr != nil && !errors.Is(readErr, os.ErrNotExist) {
		err = errors.Join(err, readErr)
	}
	for _, entry := range entries {
		_, _, expireErr := e.expire(ctx, entry.Name(), now.Add(-e.o.Retention.Workspaces))
		err = errors.Join(err, expireErr)
	}
	return errors.Join(err, e.tidyTranscripts(ctx, now), e.vaults.maintain(ctx))
}

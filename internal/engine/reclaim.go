package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

// Reclaim moves the workspaces of all tasks that are over to the bin now, not
// after their retention, and empties the bin when asked to. One that cannot be
// reclaimed stays as it is, and the answer says why.
func (e *Engine) Reclaim(ctx context.Context, emptyBin bool) (*app.Reclaimed, error) {
	out := &app.Reclaimed{Binned: []app.ReclaimedWorkspace{}, Kept: []app.KeptWorkspace{}}
	entries, err := os.ReadDir(filepath.Join(e.o.DataDir, "workspaces"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, work.Errorf(work.Internal, "look for workspaces: %w", err)
	}
	for _, entry := range entries {
		task, bytes, err := e.expire(ctx, entry.Name(), e.o.Now())
		switch {
		case ctx.Err() != nil:
			return nil, work.Errorf(work.Timeout, "reclaim: %w", context.Cause(ctx))
		case err != nil:
			e.o.Log.Warn("reclaim a workspace", "workspace", entry.Name(), "error", err)
			out.Kept = append(out.Kept, app.KeptWorkspace{Workspace: entry.Name(), Why: explain(err)})
		case task != "":
			out.Binned = append(out.Binned, app.ReclaimedWorkspace{TaskID: task, Bytes: bytes})
		}
	}
	if out.Bin, err = sizeOf(ctx, e.binDir()); err != nil {
		return nil, err
	}
	if emptyBin {
		before := out.Bin
		// A second more than now: what went there just now goes, too.
		gone, err := e.vaults.git.EmptyBin(ctx, e.binDir(), e.o.Now().Add(time.Second))
		if err != nil {
			return nil, named(err)
		}
		if out.Bin, err = sizeOf(ctx, e.binDir()); err != nil {
			return nil, err
		}
		out.BinEmptied, out.BinFreed = gone, max(before-out.Bin, 0)
	}
	out.Free, _, err = space(e.o.DataDir)
	return out, err
}

// expire reclaims the workspace of a task that is over since before an instant,
// and of an execution that is over. It gives the task whose workspace went to the
// bin, and the size. What is in use stays: a run holds its workspace, and one that
// begins waits until this is over; what is unknown is not ours to remove.
func (e *Engine) expire(ctx context.Context, name string, before time.Time) (task work.TaskID, bytes int64, err error) {
	w, ok := workspaceOf(name)
	if !ok || w.Merge != "" {
		return "", 0, nil // set aside for a person; or of a merge: removed with it
	}
	dir := e.workspace(w)
	release, _ := e.claims.try(dir)
	if release == nil {
		return "", 0, nil
	}
	defer release()
	if w.Execution != "" {
		x, err := e.o.Tasks.Execution(ctx, string(w.Execution))
		if err != nil || x.Live() {
			return "", 0, work.UnlessMissing(err)
		}
		return "", 0, e.throwAway(ctx, x.TreeID, x.ID)
	}
	t, err := e.o.Tasks.Task(ctx, w.Task)
	if err != nil || t.UpdatedAt.After(before) {
		return "", 0, work.UnlessMissing(err)
	}
	project, err := e.over(ctx, t)
	if err != nil || project == nil {
		return "", 0, err
	}
	v, err := e.vaults.get(ctx, *project)
	if err != nil {
		return "", 0, err
	}
	if bytes, err = sizeOf(ctx, dir); err != nil {
		return "", 0, err
	}
	return t.ID, bytes, discard(ctx, v, dir, e.binDir())
}

// over gives the project of a task that is over and of which nothing runs, nil
// when it is not. The caller holds the task's workspace: whatever is asked of the
// task from now on, no run begins in it before that is released. A row that was
// read before that would not do.
func (e *Engine) over(ctx context.Context, row *work.Task) (project *work.Project, err error) {
	err = e.o.Core.View(ctx, row.TreeID, func(tree *work.Tree) error {
		t := tree.Task(row.ID)
		if t == nil || !app.Over(t) {
			return nil
		}
		for _, kind := range work.ExecutionKinds() {
			for _, x := range tree.Runs(t.ID, kind) {
				if x.Live() {
					return nil
				}
			}
		}
		p := tree.Project
		project = &p
		return nil
	})
	return project, work.UnlessMissing(err)
}

package engine

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/git"
	"github.com/claudomator/claudomator/internal/work"
)

// integrate merges a commit into a task's branch: an accepted child's into its
// parent's, or what another tree has accepted into the branch of a task that is
// built on an earlier commit of it (Contains).
func (e *Engine) integrate(ctx context.Context, f work.Effect) error {
	// Reports come in the order in which the branch has moved: an older head after a
	// newer one would lose what a sibling has brought in between.
	release, err := e.claims.take(ctx, integration(f.Into))
	if err != nil {
		return err
	}
	defer release()
	var project work.Project
	var from, into work.Task
	err = e.o.Core.View(ctx, f.Tree, func(tree *work.Tree) error {
		target := tree.Task(f.Into)
		if target == nil || !tree.Integrating(f.Task, f.Into, f.Commit) {
			return work.Errorf(work.Conflict, "task %s does not wait for an integration", f.Task).WithReason("stale")
		}
		project, from, into = tree.Project, *target, *target
		if t := tree.Task(f.Task); t != nil {
			from = *t
		}
		return nil
	})
	if err != nil {
		return err
	}
	v, err := e.vaults.get(ctx, project)
	if err != nil {
		return err
	}
	if f.Contains != "" {
		if ok, err := v.Contains(ctx, f.Contains, f.Commit); err != nil || !ok {
			if err != nil {
				return err
			}
			return e.o.Core.Do(ctx, f.Tree, work.System(), work.IntegrateLacks{Task: f.Task, Into: f.Into, Commit: f.Commit})
		}
	}
	if _, err := branchOf(ctx, v, project, into.ID); err != nil { // makes it where it is missing
		return err
	}
	got, err := v.Integrate(ctx, git.IntegrateSpec{
		Ref: "refs/heads/" + into.Ref(), Commit: f.Commit, Message: e.message(from, from.Book.Current),
	})
	if err != nil {
		return err
	}
	if len(got.Conflicts) > 0 {
		return e.o.Core.Do(ctx, f.Tree, work.System(), work.IntegrateConflict{
			Task: f.Task, Into: f.Into, Commit: f.Commit, Head: got.Before, Files: pathList(got.Conflicts),
		})
	}
	result, err := e.difference(ctx, v, into, got.Commit)
	if err != nil {
		return err
	}
	return e.o.Core.Do(ctx, f.Tree, work.System(), work.Integrated{
		Task: f.Task, Into: f.Into, Commit: f.Commit, Head: got.Commit, Result: result,
	})
}

// integration is the claim on a task's branch, of integrations and of a repeat that
// sets it back.
func integration(into work.TaskID) string { return "integrate " + string(into) }

// difference is what a task's branch changed since it began.
func (e *Engine) difference(ctx context.Context, v *git.Vault, t work.Task, head string) (*work.Result, error) {
	base, err := refOf(ctx, v, baseRef(t.ID))
	if err != nil {
		return nil, err
	}
	if base == "" {
		base = t.Book.Base
	}
	stat, err := v.Diff(ctx, base, head)
	if err != nil {
		return nil, err
	}
	return &work.Result{
		Base: base, Head: head, NoChanges: len(stat.Files) == 0,
		Files: len(stat.Files), Insertions: stat.Insertions, Deletions: stat.Deletions,
	}, nil
}

// landing is what a merge is to do, read from its row.
type landing struct {
	merge   work.Merge
	project work.Project
	spec    git.LandSpec
}

func (e *Engine) landing(ctx context.Context, f work.Effect) (*landing, error) {
	var l landing
	err := e.o.Core.View(ctx, f.Tree, func(tree *work.Tree) error {
		m := tree.Merge(f.Merge)
		if m == nil || m.Status != work.MergeRunning {
			return work.Errorf(work.Conflict, "merge %s does not run", f.Merge).WithReason("stale")
		}
		l.merge, l.project = *m, tree.Project
		l.spec = git.LandSpec{Target: m.Target, PrivateRef: landingRef(m.ID)}
		for _, part := range m.Queue {
			t := tree.Task(part.TaskID)
			l.spec.Parts = append(l.spec.Parts, git.Part{Commit: part.Commit, Message: e.message(*t, t.Book.Current)})
		}
		return nil
	})
	return &l, err
}

func landingRef(id work.MergeID) string { return "refs/claudomator/landing/" + string(id) }

var errTurn = errors.New("other landings of the project are before it")

// land builds all merges aside and moves the target once. Whatever prevents it
// is a named refusal, and the target is as it was.
func (e *Engine) land(ctx context.Context, f work.Effect) error {
	// A second delivery would find the target busy, and report the landing refused
	// that the first one completes. After it, it finds that nothing is left to do.
	release, err := e.claims.take(ctx, "landing "+string(f.Merge))
	if err != nil {
		return err
	}
	defer release()
	l, err := e.landing(ctx, f)
	if err != nil {
		return err
	}
	done, ok := e.vaults.turn(ctx, l.project.ID)
	if !ok {
		return errTurn
	}
	defer done()
	if l, err = e.landing(ctx, f); err != nil {
		return err // done while this waited: it was delivered twice
	}
	if l.project.Repository == "" {
		return e.landed(ctx, f, "")
	}
	v, err := e.vaults.get(ctx, l.project)
	if err != nil {
		return e.refuse(ctx, f, err)
	}
	var got git.Landed
	if l.merge.Current != "" {
		got, err = v.ContinueLand(ctx, l.spec, e.mergeDir(l.merge.ID))
	} else if err = e.unopened(ctx, v, l.merge.ID); err == nil {
		got, err = v.Land(ctx, l.spec)
	}
	switch {
	case git.KindOf(err) == git.KindMergeRunning:
		return err // delivered again
	case err != nil:
		return e.refuse(ctx, f, err)
	case len(got.Unresolved) > 0:
		return e.conflict(ctx, f, l.merge.Current, got.Unresolved)
	case len(got.Conflicts) > 0:
		if _, err := v.OpenConflict(ctx, l.spec, got.Part, got.Onto, e.mergeDir(l.merge.ID)); err != nil {
			return e.refuse(ctx, f, errors.Join(err, e.unopened(ctx, v, l.merge.ID)))
		}
		return e.conflict(ctx, f, l.merge.Queue[got.Part].TaskID, got.Conflicts)
	case got.Nothing:
		return e.landed(ctx, f, "")
	}
	got = e.followed(ctx, v, l.spec, got)
	for _, w := range got.Warnings {
		e.o.Log.Warn("landing", "merge", f.Merge, "warning", w.Message, "paths", w.Paths)
	}
	return e.landed(ctx, f, got.Commit)
}

// followed tries again where the target has moved and its checkout could not follow:
// one left behind looks like a person's edits, and every later landing is refused.
func (e *Engine) followed(ctx context.Context, v *git.Vault, spec git.LandSpec, got git.Landed) git.Landed {
	behind := func(w git.Warning) bool { return w.Kind == git.WarnCheckoutStale }
	for wait := followPause; slices.ContainsFunc(got.Warnings, behind) && wait <= 32*followPause; wait *= 2 {
		if !pause(e.stop.Done(), wait) {
			return got // the next start finds it
		}
		again, err := v.Land(ctx, spec) // finds that it has landed, and brings the checkout along
		if err != nil {
			e.o.Log.Warn("bring the checkout along", "target", spec.Target, "error", err)
			continue
		}
		got = again
	}
	return got
}

const followPause = 100 * time.Millisecond

// unopened removes the workspace of a conflict that was opened, perhaps in part,
// and not reported: nobody was told of it, and next time there may be no conflict.
func (e *Engine) unopened(ctx context.Context, v *git.Vault, id work.MergeID) error {
	dir := e.mergeDir(id)
	if err := os.Remove(dir); err == nil || errors.Is(err, os.ErrNotExist) {
		return nil // mostly there is none; this one was killed before anything was in it
	}
	return discard(ctx, v, dir, e.binDir())
}

// landed reports that the target has moved. It is repeated until it is stored:
// what is landed must not be forgotten.
func (e *Engine) landed(ctx context.Context, f work.Effect, commit string) error {
	return e.patiently(ctx, "report a landing", func(ctx context.Context) error {
		return e.o.Core.Do(ctx, f.Tree, work.System(), work.Landed{Merge: f.Merge, Commit: commit})
	})
}

func (e *Engine) conflict(ctx context.Context, f work.Effect, current work.TaskID, files []git.Conflict) error {
	return e.o.Core.Do(ctx, f.Tree, work.System(), work.LandConflict{
		Merge: f.Merge, Current: current, Files: pathList(files), Dir: e.mergeDir(f.Merge),
	})
}

func (e *Engine) refuse(ctx context.Context, f work.Effect, err error) error {
	if ctx.Err() != nil {
		return err // the server stops: delivered again
	}
	g, ok := errors.AsType[*git.Error](err)
	if !ok {
		return err
	}
	message := g.Message
	if len(g.Paths) > 0 {
		message += ": " + strings.Join(g.Paths[:min(len(g.Paths), 20)], ", ")
	}
	return e.o.Core.Do(ctx, f.Tree, work.System(), work.LandRefused{Merge: f.Merge, Reason: string(g.Kind), Message: message, Hint: g.Hint})
}

// reclaim removes what belongs to a removed task or an ended merge.
func (e *Engine) reclaim(ctx context.Context, f work.Effect) error {
	var project work.Project
	err := e.o.Core.View(ctx, f.Tree, func(tree *work.Tree) error {
		project = tree.Project
		return nil
	})
	if stale(err) && f.Project != "" {
		project.ID, project.Repository, err = f.Project, f.Repository, nil
	}
	if err != nil {
		return err
	}
	v, err := e.vaults.get(ctx, project)
	if err != nil {
		return err
	}
	if f.Merge != "" {
		done, ok := e.vaults.turn(ctx, project.ID)
		if !ok {
			return errTurn
		}
		defer done()
		if err := v.AbortLand(ctx, git.LandSpec{Target: f.Target, PrivateRef: landingRef(f.Merge)}); err != nil && git.KindOf(err) != git.KindAlreadyLanded {
			return err
		}
		return discard(ctx, v, e.mergeDir(f.Merge), e.binDir())
	}
	dir := e.workspace(app.Workspace{Task: f.Task})
	release, err := e.claims.take(ctx, dir)
	if err != nil {
		return err
	}
	defer release()
	return discard(ctx, v, dir, e.binDir())
}

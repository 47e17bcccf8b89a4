package engine

import (
	"context"
	"slices"

	"github.com/claudomator/claudomator/internal/git"
	"github.com/claudomator/claudomator/internal/work"
)

// branch moves a story's branch in the vault to what was accepted at its root.
func (e *Engine) branch(ctx context.Context, f work.Effect) error {
	// Of two deliveries the later one looks only when the earlier has moved the
	// branch: an older commit never comes after a newer one.
	release, err := e.claims.take(ctx, "branch "+string(f.Tree))
	if err != nil {
		return err
	}
	defer release()
	var project work.Project
	var name string
	err = e.o.Core.View(ctx, f.Tree, func(tree *work.Tree) error {
		root := tree.Current(tree.Root())
		if tree.Story == nil || root == nil || root.ID != f.Task || root.State != work.Completed || root.Accepted == nil || root.Accepted.Commit != f.Commit {
			return work.Errorf(work.Conflict, "commit %s is not what was accepted of the story", f.Commit).WithReason("stale")
		}
		project, name = tree.Project, tree.Story.BranchName
		return nil
	})
	if err != nil || name == "" {
		return err
	}
	v, err := e.vaults.get(ctx, project)
	if err != nil {
		return err
	}
	old, err := v.StoryBranch(ctx, name)
	if git.KindOf(err) == git.KindBranchMissing {
		old, err = "", nil
	}
	if err == nil {
		err = v.SetStoryBranch(ctx, name, f.Commit, old)
	}
	if kind := git.KindOf(err); kind == git.KindInvalidRef || kind == git.KindRefConflict {
		e.o.Log.Warn("a story's branch cannot have its name", "story_branch", name, "error", explain(err))
		return nil // not by trying again; its root's branch holds the work
	}
	return err
}

// push brings what was landed to the remote. It may be repeated: what is there
// already is not pushed again.
func (e *Engine) push(ctx context.Context, f work.Effect) error {
	release, err := e.claims.take(ctx, "push "+string(f.Tree))
	if err != nil {
		return err
	}
	defer release()
	var project work.Project
	var target string
	err = e.o.Core.View(ctx, f.Tree, func(tree *work.Tree) error {
		if !tree.Ships(f.Task, work.ShipPush) || tree.Story.Ship.Commit != f.Commit {
			return work.Errorf(work.Conflict, "task %s has nothing to push", f.Task).WithReason("stale")
		}
		project, target = tree.Project, tree.Story.Ship.Target
		return nil
	})
	if err != nil {
		return err
	}
	var report work.Pushed
	err = e.paced(ctx, func() (err error) {
		report, err = e.pushTarget(ctx, project, target, f.Commit)
		return err
	})
	report.Task = f.Task
	if ctx.Err() != nil {
		return context.Cause(ctx) // the server stops: delivered again
	}
	if err != nil {
		report.Failure = explain(err)
	}
	return e.patiently(ctx, "report a push", func(ctx context.Context) error {
		return e.o.Core.Do(ctx, f.Tree, work.System(), report)
	})
}

// pushTarget pushes a landed commit to its branch at the remote, once it is seen that
// the project's repository has it there still. Where the remote has gone on, and the
// repository has taken that in since the landing, its branch is pushed instead, with
// the commit in it.
func (e *Engine) pushTarget(ctx context.Context, p work.Project, target, commit string) (work.Pushed, error) {
	if p.Repository == "" {
		return work.Pushed{}, nil
	}
	v, err := e.vaults.get(ctx, p)
	if err != nil {
		return work.Pushed{}, err
	}
	head, err := v.BranchHead(ctx, target)
	if kind := git.KindOf(err); kind == git.KindBranchMissing || kind == git.KindNoCommits {
		return work.Pushed{Gone: true}, nil
	}
	if err != nil {
		return work.Pushed{}, err
	}
	if in, err := v.Contains(ctx, commit, head); err != nil || !in {
		return work.Pushed{Gone: err == nil}, err
	}
	got, err := v.Push(ctx, git.PushSpec{Branch: target, Commit: commit})
	if git.KindOf(err) != git.KindNotFastForward {
		return work.Pushed{Remote: got.Remote}, err
	}
	refused := err
	there, err := v.FetchRemote(ctx, target)
	if err != nil {
		return work.Pushed{}, err
	}
	in, err := v.Contains(ctx, commit, there)
	switch {
	case err != nil:
		return work.Pushed{}, err
	case in: // an earlier push has brought it there, and others have gone on
		url, err := v.Remote(ctx)
		return work.Pushed{Remote: git.DisplayURL(url)}, err
	case head == commit:
		return work.Pushed{}, refused
	}
	got, err = v.Push(ctx, git.PushSpec{Branch: target, Commit: head})
	return work.Pushed{Remote: got.Remote}, err
}

const pushTries = 4

// paced tries what may fail for a moment a few times, with growing pauses.
func (e *Engine) paced(ctx context.Context, try func() error) error {
	wait := e.o.PushPause
	for n := 1; ; n++ {
		err := try()
		if err == nil || n == pushTries || !passes(err) {
			return err
		}
		if !pause(ctx.Done(), wait) {
			return context.Cause(ctx)
		}
		wait *= 2
	}
}

// passes is true for what may be over by itself soon.
func passes(err error) bool {
	moment := []git.Kind{git.KindUnreachable, git.KindTimeout, git.KindRefMoved, git.KindLocked}
	code := work.CodeOf(err)
	return slices.Contains(moment, git.KindOf(err)) || code == work.Unavailable || code == work.Timeout
}

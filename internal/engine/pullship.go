package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/claudomator/claudomator/internal/git"
	"github.com/claudomator/claudomator/internal/work"
)

// shipment is what a pull request is made of, read from the tree.
type shipment struct {
	project work.Project
	story   work.StoryID
	ship    string     // names it among the story's
	known   *work.Pull // the story's latest, of this ship or an earlier one; nil: none yet
	request PullRequest
}

func (e *Engine) shipment(ctx context.Context, f work.Effect) (*shipment, error) {
	var s shipment
	err := e.o.Core.View(ctx, f.Tree, func(tree *work.Tree) error {
		if !tree.Ships(f.Task, work.ShipPull) {
			return work.Errorf(work.Conflict, "task %s has no pull request to follow", f.Task).WithReason("stale")
		}
		root, story := tree.Task(f.Task), tree.Story
		if root.Accepted == nil || root.Accepted.Commit != f.Commit {
			return work.Errorf(work.Conflict, "commit %s is not what was accepted", f.Commit).WithReason("stale")
		}
		s = shipment{project: tree.Project, story: story.ID, ship: fmt.Sprintf("ship-%d", story.Ship.StartedAt.UnixMilli())}
		if p := story.Ship.Pull; p != nil {
			known := *p
			s.known = &known
		}
		s.request = PullRequest{
			Forge: tree.Project.Forge, Branch: story.BranchName, Target: story.Ship.Target, Commit: f.Commit,
			Title: story.Name, Body: pullBody(tree, root),
		}
		return nil
	})
	return &s, err
}

// ref is where the vault notes something of one of the story's pull requests.
func (s *shipment) ref(number int, what string) string {
	return fmt.Sprintf("refs/claudomator/pull/%s/%d/%s", s.story, number, what)
}

// refBefore holds where the target was before a pull request was opened.
const refBefore = "before"

// seePull opens the pull request, or looks at the one that this ship has opened.
func (e *Engine) seePull(ctx context.Context, s *shipment) (work.PullSeen, error) {
	v, err := e.vaults.get(ctx, s.project)
	if err != nil {
		return work.PullSeen{}, err
	}
	if s.request.Branch == s.request.Target { // the project's branch has changed since
		return work.PullSeen{}, work.Errorf(work.Invalid, "branch %q is the one that it is to be merged into", s.request.Branch).WithReason("branch_taken").
			WithHint("give the story another one: claudomator story set %s --branch BRANCH", s.story)
	}
	if err := e.atForge(ctx, v, &s.request); err != nil {
		return work.PullSeen{}, err
	}
	if s.known != nil {
		opened, err := refOf(ctx, v, s.ref(s.known.Number, s.ship))
		if err != nil {
			return work.PullSeen{}, err
		}
		if opened != "" {
			return e.followPull(ctx, v, s)
		}
	}
	var seen work.PullSeen
	err = e.paced(ctx, func() (err error) {
		seen, err = e.openPull(ctx, v, s)
		return err
	})
	return seen, err
}

// openPull pushes the story's branch and opens its pull request, or finds the one that
// is open. One of an earlier ship may have been merged while nobody followed it.
func (e *Engine) openPull(ctx context.Context, v *git.Vault, s *shipment) (work.PullSeen, error) {
	before, err := v.FetchRemote(ctx, s.request.Target)
	if err != nil {
		return work.PullSeen{}, err
	}
	if s.known != nil {
		look, err := e.o.Forge.Look(ctx, s.request, s.known.Number)
		if err != nil && look.Pull.State == "" && work.CodeOf(err) != work.NotFound {
			return work.PullSeen{}, err
		}
		if look.Pull.State == work.PullMerged {
			seen, err := e.merged(ctx, v, s, look)
			if w, ok := work.AsError(err); !ok || w.Reason != notMerged {
				return seen, err
			}
			e.o.Log.Info("an earlier pull request has not brought the story to its target", "story", s.story, "error", err)
		}
	}
	if err := e.pushStory(ctx, v, s); err != nil {
		return work.PullSeen{}, err
	}
	opened, err := e.o.Forge.Open(ctx, s.request)
	if err != nil {
		return work.PullSeen{}, err
	}
	if err := note(ctx, v, s.ref(opened.Number, refBefore), before); err != nil {
		return work.PullSeen{}, err
	}
	if err := note(ctx, v, s.ref(opened.Number, s.ship), s.request.Commit); err != nil {
		return work.PullSeen{}, err
	}
	opened.Head, opened.State = s.request.Commit, work.PullOpen // a forge may need a moment to see the push
	return work.PullSeen{Pull: opened}, nil
}

// note sets a reference of the vault that is not there yet.
func note(ctx context.Context, v *git.Vault, ref, commit string) error {
	old, err := refOf(ctx, v, ref)
	if err != nil || old != "" {
		return err
	}
	return v.SetRef(ctx, ref, commit, "")
}

// pushStory brings the story's branch at the remote to what was accepted. It replaces
// only what an earlier ship has put there: what others have pushed since, or a branch
// of theirs that has the name, is not overwritten.
func (e *Engine) pushStory(ctx context.Context, v *git.Vault, s *shipment) error {
	ours := pushedRef(s.story)
	old, err := refOf(ctx, v, ours)
	if err != nil {
		return err
	}
	spec := git.PushSpec{Branch: s.request.Branch, Commit: s.request.Commit, Old: old, New: old == "", Replace: old != ""}
	_, err = v.Push(ctx, spec)
	if git.KindOf(err) == git.KindRefMoved && old != "" {
		if spec, err = pushOnto(ctx, v, spec); err == nil {
			_, err = v.Push(ctx, spec)
		}
	}
	if kind := git.KindOf(err); kind == git.KindNotFastForward || kind == git.KindRefMoved && spec.New {
		return work.Errorf(work.Conflict, "the remote's branch %q is not the story's, or has commits that are not the story's", s.request.Branch).WithReason("foreign_branch").
			WithHint("take it, or them, away from the remote, or give the story another branch: claudomator story set %s --branch BRANCH", s.story)
	}
	if err != nil || old == s.request.Commit {
		return err
	}
	return v.SetRef(ctx, ours, s.request.Commit, old)
}

// pushOnto says how to push to a branch that is not where the story has pushed it to:
// it was removed, or others have gone on with it, or it is another one of that name.
func pushOnto(ctx context.Context, v *git.Vault, s git.PushSpec) (git.PushSpec, error) {
	there, err := v.FetchRemote(ctx, s.Branch)
	if git.KindOf(err) == git.KindBranchMissing {
		return git.PushSpec{Branch: s.Branch, Commit: s.Commit, New: true}, nil
	}
	if err != nil {
		return s, err
	}
	in, err := v.Contains(ctx, s.Old, there)
	return git.PushSpec{Branch: s.Branch, Commit: s.Commit, Old: there, New: !in}, err
}

// followPull looks at the pull request that this ship has opened.
func (e *Engine) followPull(ctx context.Context, v *git.Vault, s *shipment) (work.PullSeen, error) {
	look, err := e.o.Forge.Look(ctx, s.request, s.known.Number)
	_, limited := errors.AsType[*LaterError](err)
	switch {
	case look.Pull.State == work.PullMerged:
		return e.merged(ctx, v, s, look)
	case err != nil && (look.Pull.State == "" || limited || passes(err)):
		return work.PullSeen{}, err
	case err != nil: // it can be followed without its checks
		look.Pull.Checks = "unknown: " + explain(err)
	}
	seen := work.PullSeen{Pull: look.Pull, Red: look.Red}
	if look.Pull.Head != s.request.Commit {
		seen.Red = "" // checks of another commit say nothing of what was accepted
	}
	return seen, nil
}

// notMerged is the reason of an error about a merge that a forge tells of.
const notMerged = "not_merged"

// merged makes sure of what a forge says was merged: that the remote's target has it,
// and that it is what was accepted. What the target got is in the vault then.
func (e *Engine) merged(ctx context.Context, v *git.Vault, s *shipment, look PullLook) (work.PullSeen, error) {
	at, err := v.FetchRemote(ctx, s.request.Target)
	if err != nil {
		return work.PullSeen{}, err
	}
	seen := work.PullSeen{Pull: look.Pull, Commit: look.Commit}
	if seen.Commit == "" { // the forge does not name it
		seen.Commit = s.request.Commit
	}
	not := func(format string, args ...any) (work.PullSeen, error) {
		return work.PullSeen{}, work.Errorf(work.Conflict, "the forge says that %s is merged, but %s", look.Pull.URL, fmt.Sprintf(format, args...)).WithReason(notMerged).
			WithHint("see what has become of it at the forge; when the story is shipped again, a new one is opened")
	}
	on, err := contains(ctx, v, seen.Commit, at)
	if err != nil {
		return work.PullSeen{}, err
	}
	if !on {
		return not("%s is not on branch %q of the remote", seen.Commit, s.request.Target)
	}
	whole, err := v.Contains(ctx, s.request.Commit, seen.Commit)
	if err != nil || whole {
		return seen, err
	}
	if look.Pull.Head != s.request.Commit { // a squash or a rebase of something else
		return not("with %s, not with %s, which was accepted", look.Pull.Head, s.request.Commit)
	}
	before, err := refOf(ctx, v, s.ref(look.Pull.Number, refBefore))
	if err != nil {
		return work.PullSeen{}, err
	}
	for _, older := range []string{before, s.request.Commit} {
		if old, err := contains(ctx, v, seen.Commit, older); err != nil {
			return work.PullSeen{}, err
		} else if old {
			return not("%s, which it is said to have become, was on branch %q before it", seen.Commit, s.request.Target)
		}
	}
	return seen, nil
}

// contains is true when both commits are in the vault, and the second one is the
// first or has it among its ancestors.
func contains(ctx context.Context, v *git.Vault, ancestor, commit string) (bool, error) {
	for _, c := range []string{ancestor, commit} {
		if _, err := v.Resolve(ctx, c); c == "" || git.KindOf(err) == git.KindBranchMissing {
			return false, nil
		} else if err != nil {
			return false, err
		}
	}
	return v.Contains(ctx, ancestor, commit)
}

// bring makes sure that what a forge has merged is in the vault. The source may be a
// repository on this machine that knows nothing of it yet.
func bring(ctx context.Context, v *git.Vault, branch, commit string) error {
	if _, err := v.Resolve(ctx, commit); git.KindOf(err) != git.KindBranchMissing {
		return err
	}
	if err := v.Fetch(ctx); err != nil {
		return err
	}
	if _, err := v.Resolve(ctx, commit); git.KindOf(err) != git.KindBranchMissing {
		return err
	}
	if _, err := v.FetchRemote(ctx, branch); err != nil {
		return err
	}
	_, err := v.Resolve(ctx, commit)
	return err
}

package engine

import (
	"context"
	"errors"
	"time"

	"github.com/claudomator/claudomator/internal/git"
	"github.com/claudomator/claudomator/internal/work"
)

// Forge is where pull requests are opened, and followed until they are merged. An
// error that can pass is work.Unavailable or work.Timeout, one that passes at a known
// instant a *LaterError; every other stays until a person does something.
type Forge interface {
	// Open opens the pull request of a branch, or finds the one that is open.
	Open(ctx context.Context, r PullRequest) (work.Pull, error)
	// Look says how a pull request stands. When its checks cannot be read, the rest
	// comes beside the error.
	Look(ctx context.Context, r PullRequest, number int) (PullLook, error)
}

// PullRequest is a story's, as it is to be opened.
type PullRequest struct {
	Forge  work.Forge // as the project says
	Remote string     // URL of the project's remote, where the branch is; may hold credentials
	Branch string     // of the story, pushed
	Target string     // it is to be merged into
	Commit string     // that was accepted
	Title  string
	Body   string // Markdown
}

// PullLook is how a pull request stands.
type PullLook struct {
	Pull   work.Pull
	Commit string // what the target got, once it is merged
	Red    string // the failed checks of Pull.Head with their logs, "" while none has failed
}

// LaterError says that a forge answers again only from an instant on.
type LaterError struct {
	At  time.Time
	Err error
}

func (e *LaterError) Error() string { return e.Err.Error() }
func (e *LaterError) Unwrap() error { return e.Err }

// pull is a pull request that is followed here.
type pull struct {
	job   int64     // that follows it
	blind time.Time // since when no look has met the forge; zero: the last one has
}

// pullRequest opens a story's pull request, or looks at it, and again after a while
// until it is merged, closed or red.
func (e *Engine) pullRequest(ctx context.Context, job int64, f work.Effect) error {
	release, err := e.claims.take(ctx, "pull request "+string(f.Tree))
	if err != nil {
		return err
	}
	defer release()
	s, err := e.shipment(ctx, f)
	if err != nil {
		e.unfollow(f.Task)
		return err
	}
	if !e.follows(f.Task, job) {
		return nil // it was delivered again, and the later job goes on
	}
	report, err := e.seePull(ctx, s)
	var again time.Duration
	later, limited := errors.AsType[*LaterError](err)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx) // the server stops: delivered again
	case limited:
		e.o.Log.Warn("the forge is asked again later", "task", f.Task, "at", later.At, "error", err)
		return againError{max(later.At.Sub(e.o.Now()), e.o.PullPoll)}
	case err != nil && passes(err) && s.known != nil && e.blind(f.Task) < e.o.PullLimit:
		e.o.Log.Warn("look at a pull request", "task", f.Task, "error", err)
		return againError{e.o.PullPoll}
	case err != nil:
		report = work.PullSeen{Failure: explain(err)}
	default:
		e.seen(f.Task)
		again = e.o.PullPoll
	}
	report.Task = f.Task
	err = e.patiently(ctx, "report a pull request", func(ctx context.Context) error {
		return e.o.Core.Do(ctx, f.Tree, work.System(), report)
	})
	if err != nil {
		return err
	}
	if again == 0 || report.Pull.State != work.PullOpen || report.Red != "" {
		e.unfollow(f.Task)
		return nil
	}
	return againError{again}
}

// follows makes a job the one that follows a pull request; false when a later one
// does already. Each start of the server gives the effect again, and the job of the
// life before is still waiting in the queue.
func (e *Engine) follows(task work.TaskID, job int64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := e.pulls[task]
	if p.job > job {
		return false
	}
	p.job = job
	e.pulls[task] = p
	return true
}

func (e *Engine) unfollow(task work.TaskID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.pulls, task)
}

// blind is told that a look has met no forge, and answers for how long none has.
func (e *Engine) blind(task work.TaskID) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := e.pulls[task]
	if p.blind.IsZero() {
		p.blind = e.o.Now()
	}
	e.pulls[task] = p
	return e.o.Now().Sub(p.blind)
}

func (e *Engine) seen(task work.TaskID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := e.pulls[task]
	p.blind = time.Time{}
	e.pulls[task] = p
}

// shipment is what a pull request is made of, read from the tree.
type shipment struct {
	project work.Project
	story   work.StoryID
	known   *work.Pull // opened by this ship; nil: not yet
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
		s = shipment{project: tree.Project, story: story.ID}
		if p := story.Ship.Pull; p != nil {
			known := *p
			s.known = &known
		}
		s.request = PullRequest{
			Forge: tree.Project.Forge, Branch: story.BranchName, Target: tree.Project.Branch, Commit: f.Commit,
			Title: story.Name, Body: pullBody(tree, root),
		}
		return nil
	})
	return &s, err
}

// seePull opens the pull request, or looks at the one that this ship has opened.
func (e *Engine) seePull(ctx context.Context, s *shipment) (work.PullSeen, error) {
	v, err := e.vaults.get(ctx, s.project)
	if err != nil {
		return work.PullSeen{}, err
	}
	if s.request.Remote, err = v.Remote(ctx); err != nil {
		return work.PullSeen{}, err
	}
	switch {
	case s.request.Branch == s.request.Target: // the project's branch has changed since
		return work.PullSeen{}, work.Errorf(work.Invalid, "branch %q is the one that it is to be merged into", s.request.Branch).WithReason("branch_taken").
			WithHint("give the story another one: claudomator story set %s --branch BRANCH", s.story)
	case s.request.Remote == "":
		return work.PullSeen{}, work.Errorf(work.Invalid, "the repository has no remote to open it at").WithReason("no_remote").
			WithHint("add one called origin, or ship directly: claudomator project set NAME --ship-mode \"\"")
	case e.o.Forge == nil:
		return work.PullSeen{}, work.Errorf(work.Invalid, "no forge is set up").WithReason("no_forge").
			WithHint("ship directly: claudomator project set NAME --ship-mode \"\"")
	case s.known == nil:
		var seen work.PullSeen
		err := e.paced(ctx, func() (err error) {
			seen, err = e.openPull(ctx, v, s)
			return err
		})
		return seen, err
	}
	look, err := e.o.Forge.Look(ctx, s.request, s.known.Number)
	_, limited := errors.AsType[*LaterError](err)
	if err != nil && (look.Pull.State == "" || limited || passes(err)) {
		return work.PullSeen{}, err
	}
	if err != nil { // it can be followed without its checks
		look.Pull.Checks = "unknown: " + explain(err)
	}
	seen := work.PullSeen{Pull: look.Pull, Commit: look.Commit, Red: look.Red}
	if look.Pull.State == work.PullOpen && look.Pull.Head != s.request.Commit {
		seen.Red = "" // checks of another commit say nothing of what was accepted
	}
	if look.Pull.State == work.PullMerged {
		// Merged it is, whatever comes of this: the deployment looks for it again.
		if err := e.paced(ctx, func() error { return bring(ctx, v, s.request.Target, look.Commit) }); err != nil {
			e.o.Log.Warn("fetch what was merged", "story", s.story, "commit", look.Commit, "error", err)
		}
	}
	return seen, nil
}

// openPull pushes the story's branch and opens its pull request.
func (e *Engine) openPull(ctx context.Context, v *git.Vault, s *shipment) (work.PullSeen, error) {
	if err := e.pushStory(ctx, v, s); err != nil {
		return work.PullSeen{}, err
	}
	opened, err := e.o.Forge.Open(ctx, s.request)
	if err != nil {
		return work.PullSeen{}, err
	}
	opened.Head, opened.State = s.request.Commit, work.PullOpen // a forge may need a moment to see the push
	return work.PullSeen{Pull: opened}, nil
}

// pushStory brings the story's branch at the remote to what was accepted. It replaces
// only what an earlier ship has put there: what others have pushed since, or a branch
// of theirs that has the name, is not overwritten.
func (e *Engine) pushStory(ctx context.Context, v *git.Vault, s *shipment) error {
	ours := "refs/claudomator/pushed/" + string(s.story)
	old, err := refOf(ctx, v, ours)
	if err != nil {
		return err
	}
	_, err = v.Push(ctx, git.PushSpec{Branch: s.request.Branch, Commit: s.request.Commit, Old: old, Replace: old != ""})
	if git.KindOf(err) == git.KindRefMoved && old != "" { // removed, or gone on with
		_, err = v.Push(ctx, git.PushSpec{Branch: s.request.Branch, Commit: s.request.Commit})
	}
	if git.KindOf(err) == git.KindNotFastForward {
		return work.Errorf(work.Conflict, "the remote's branch %q has commits that are not the story's", s.request.Branch).WithReason("foreign_branch").
			WithHint("take them away from it, or give the story another branch")
	}
	if err != nil || old == s.request.Commit {
		return err
	}
	return v.SetRef(ctx, ours, s.request.Commit, old)
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

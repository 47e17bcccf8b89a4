package engine

import (
	"context"
	"fmt"

	"github.com/claudomator/claudomator/internal/git"
	"github.com/claudomator/claudomator/internal/work"
)

// closing is a cancelled story's pull request.
type closing struct {
	project work.Project
	story   work.StoryID
	known   *work.Pull // the latest that was seen; nil: none
	request PullRequest
}

// closePull closes the pull request of a story that was cancelled, with a comment that
// says why. The story is cancelled already: whatever goes wrong is only said.
func (e *Engine) closePull(ctx context.Context, f work.Effect) error {
	// One that is being opened is waited for: it is the one to be closed.
	release, err := e.claims.take(ctx, "pull request "+string(f.Tree))
	if err != nil {
		return err
	}
	defer release()
	c, err := e.closing(ctx, f)
	if err != nil {
		return err
	}
	report, err := e.endPull(ctx, c)
	if ctx.Err() != nil {
		return context.Cause(ctx) // the server stops: delivered again
	}
	wait := e.pullWait(f.Task, true, err)
	if err != nil {
		report.Failure, report.Again = explain(err), wait > 0
	}
	report.Task = f.Task
	err = e.patiently(ctx, "report the end of a pull request", func(ctx context.Context) error {
		return e.o.Core.Do(ctx, f.Tree, work.System(), report)
	})
	if err != nil {
		return err
	}
	if wait > 0 {
		return againError{wait}
	}
	e.unfollow(f.Task)
	return nil
}

func (e *Engine) closing(ctx context.Context, f work.Effect) (*closing, error) {
	var c closing
	err := e.o.Core.View(ctx, f.Tree, func(tree *work.Tree) error {
		story := tree.Story
		if story == nil || story.Status != work.StoryCancelled || story.Ship == nil {
			return work.Errorf(work.Conflict, "task %s has no pull request to close", f.Task).WithReason("stale")
		}
		c = closing{project: tree.Project, story: story.ID}
		if p := story.Ship.Pull; p != nil {
			known := *p
			c.known = &known
		}
		c.request = PullRequest{Forge: tree.Project.Forge, Branch: story.BranchName, Target: story.Ship.Target}
		return nil
	})
	return &c, err
}

// endPull closes the pull request that is known, and one of the story's branch whose
// opening was not reported. A story whose branch was never pushed has none.
func (e *Engine) endPull(ctx context.Context, c *closing) (work.PullEnded, error) {
	v, err := e.vaults.get(ctx, c.project)
	if err != nil {
		return work.PullEnded{}, err
	}
	pushed, err := refOf(ctx, v, pushedRef(c.story))
	if err != nil || pushed == "" {
		return work.PullEnded{}, err
	}
	if err := e.atForge(ctx, v, &c.request); err != nil {
		return work.PullEnded{}, err
	}
	comment := fmt.Sprintf("Closed by Claudomator: the story that this was for was cancelled. Its branch %s is left as it is.\n\nClaudomator-Story: %s\n", code(c.request.Branch), c.story)
	var look PullLook
	if c.known != nil {
		if look, err = e.o.Forge.Close(ctx, c.request, c.known.Number, comment); err != nil || look.Pull.State == work.PullMerged {
			return work.PullEnded{Pull: look.Pull, Commit: look.Commit}, err
		}
	}
	other, err := e.o.Forge.Close(ctx, c.request, 0, comment)
	if other.Pull.Number != 0 {
		look = other
	}
	return work.PullEnded{Pull: look.Pull, Commit: look.Commit}, err
}

// atForge fills in where the project's pull requests are.
func (e *Engine) atForge(ctx context.Context, v *git.Vault, r *PullRequest) (err error) {
	if r.Remote, err = v.Remote(ctx); err != nil {
		return err
	}
	switch {
	case r.Remote == "":
		return work.Errorf(work.Invalid, "the repository has no remote, where its pull requests are").WithReason("no_remote").
			WithHint("add one called origin, or ship directly: claudomator project set NAME --ship-mode \"\"")
	case e.o.Forge == nil:
		return work.Errorf(work.Invalid, "no forge is set up").WithReason("no_forge").
			WithHint("ship directly: claudomator project set NAME --ship-mode \"\"")
	}
	return nil
}

// pushedRef is where the vault notes which commit of a story is at the remote.
func pushedRef(story work.StoryID) string { return "refs/claudomator/pushed/" + string(story) }

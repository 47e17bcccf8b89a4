package engine

import (
	"context"
	"errors"
	"time"

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
	// Close closes a pull request, of number 0 the one that is open for the branch, and
	// says why below it, once; what is merged or closed already is left as it is. Without
	// one of the branch the answer is empty. When only the comment is refused, the closed
	// one comes beside the error.
	Close(ctx context.Context, r PullRequest, number int, comment string) (PullLook, error)
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
	if ctx.Err() != nil {
		return context.Cause(ctx) // the server stops: delivered again
	}
	if wait := e.pullWait(f.Task, s.known != nil, err); wait > 0 {
		e.o.Log.Warn("the forge is asked again later", "task", f.Task, "in", wait, "error", err)
		e.tellWait(ctx, f, wait, err)
		return againError{wait}
	}
	var again time.Duration
	if err != nil {
		w, known := work.AsError(err)
		report = work.PullSeen{Failure: explain(err), Gone: known && w.Reason == notMerged}
	} else {
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

// tellWait tells a person that a forge wants to be left alone for a while, or that it
// has not answered more than once. The next answer takes it back.
func (e *Engine) tellWait(ctx context.Context, f work.Effect, wait time.Duration, err error) {
	why := explain(err)
	if _, limited := errors.AsType[*LaterError](err); limited {
		why += "; it is asked again at " + e.o.Now().Add(wait).UTC().Format(time.RFC3339)
	} else if e.blind(f.Task) < e.o.PullPoll {
		return
	}
	if told := e.o.Core.Do(ctx, f.Tree, work.System(), work.Stuck{Effect: f, Error: why}); told != nil && !stale(told) {
		e.o.Log.Error("tell that the forge is asked again later", "task", f.Task, "error", told)
	}
}

// mostLimited is the longest time that a forge can ask for to be left alone.
const mostLimited = time.Hour

// pullWait is the time after which a forge that could not be asked is asked again; 0
// when it is not: it has been away for too long, or waiting does not help.
func (e *Engine) pullWait(task work.TaskID, opened bool, err error) time.Duration {
	later, limited := errors.AsType[*LaterError](err)
	if err == nil || !limited && (!opened || !passes(err)) {
		return 0
	}
	left := e.o.PullLimit - e.blind(task)
	switch {
	case left <= 0:
		return 0
	case !limited:
		return e.o.PullPoll
	}
	return max(e.o.PullPoll, min(later.At.Sub(e.o.Now()), left, mostLimited))
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

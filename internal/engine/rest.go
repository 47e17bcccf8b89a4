package engine

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
)

// River's client looks about twenty times a second whether jobs have ended, and
// nothing can tell it to stop: on a server that has nothing to do that is nearly all
// that is done. So the client works in shifts, while there are jobs. What is still to
// be done is in the table of jobs, whether the client works or rests.

const (
	restAfter = 2 * time.Second  // between two looks, of a client at work, whether there is nothing to do
	restLook  = 10 * time.Second // between two looks, of one at rest, for jobs that nobody told of
	restAgain = time.Second      // the same, of one that could not be started
)

// shift is what decides whether the client works.
type shift struct {
	told chan struct{} // holds a word while jobs were inserted that nobody has looked for

	mu      sync.Mutex
	at      int  // deliveries under way
	closing bool // the client is being stopped, and would wait for the end of what begins now
}

// tell says that jobs were inserted: the client has work. A word that is lost costs
// no more than restLook.
func (q *Queue) tell() {
	select {
	case q.shift.told <- struct{}{}:
	default:
	}
}

// start begins to work on jobs.
func (q *Queue) start(ctx context.Context) error {
	if err := q.client.Start(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("start the queue: %w", err)
	}
	return nil
}

// stop ends all jobs, and waits for that, when keep has returned.
func (q *Queue) stop(ctx context.Context, kept <-chan struct{}) error {
	select {
	case <-kept:
	case <-ctx.Done():
		return fmt.Errorf("stop the queue: %w", ctx.Err())
	}
	if err := q.client.StopAndCancel(ctx); err != nil {
		return fmt.Errorf("stop the queue: %w", err)
	}
	return nil
}

// keep lets a client that was started rest and work by turns until ctx ends.
func (q *Queue) keep(ctx context.Context, log *slog.Logger) {
	for q.work(ctx, log) && q.rest(ctx, log) {
	}
}

// work returns when the client was stopped because there was nothing to do; false
// when ctx has ended before.
func (q *Queue) work(ctx context.Context, log *slog.Logger) bool {
	look := time.NewTicker(restAfter)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-look.C:
		}
		select {
		case <-q.shift.told:
			continue
		default:
		}
		if live, err := q.live(ctx); err != nil || live || !q.shift.close() {
			continue // an error here is met by the client too, which says it
		}
		// No delivery is under way and none begins: nothing is waited for.
		err := q.client.Stop(context.WithoutCancel(ctx))
		q.shift.open()
		if err != nil {
			log.Error("let the queue rest", "error", err)
			continue
		}
		return true
	}
}

// rest returns when the client works again; false when ctx has ended before.
func (q *Queue) rest(ctx context.Context, log *slog.Logger) bool {
	look := time.NewTicker(restLook)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-q.shift.told:
		case <-look.C:
			if live, err := q.live(ctx); err == nil && !live {
				look.Reset(restLook)
				continue
			}
		}
		err := q.start(ctx)
		if err == nil {
			return true
		}
		log.Error("wake the queue", "error", err)
		look.Reset(restAgain) // what it was told of is found in the table
	}
}

// live says whether any job is not over: one that runs, or is to run at once or later.
func (q *Queue) live(ctx context.Context) (bool, error) {
	jobs, err := q.client.JobList(ctx, river.NewJobListParams().Queues(runsQueue, deedsQueue).First(1).States(
		rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRetryable, rivertype.JobStateRunning, rivertype.JobStateScheduled))
	return err != nil || len(jobs.Jobs) > 0, err
}

// enter begins a delivery; false while the client is being stopped.
func (s *shift) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return false
	}
	s.at++
	return true
}

func (s *shift) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at--
}

// close lets no delivery begin; false when one is under way, or may be soon.
func (s *shift) close() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing = s.at == 0 && len(s.told) == 0
	return s.closing
}

func (s *shift) open() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing = false
}

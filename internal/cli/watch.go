package cli

import (
	"context"
	"errors"
	"time"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

var errQuiet = errors.New("nothing has happened for a while")

// watch looks at something until it is over, and in between sleeps until an
// event concerns it. No wake-up is lost: since gives a sequence number from
// before the first look, and the stream begins after it.
type watch struct {
	api      app.API
	since    func(ctx context.Context) (int64, error)
	look     func(ctx context.Context) (over bool, err error)
	concerns func(e work.Event) bool
	heard    func(e work.Event) error // is told every event that concerns it; may be nil
	pace     func() time.Duration     // at most one look in this time; nil or 0: one for every event

	begun bool
	seq   int64       // the last event that was seen
	rest  *time.Timer // until the next look may be
}

// How long a server may be gone, and the pauses until it is asked again. After
// quiet without any event the server is looked at: a stream may go on trying to
// reach one that is gone for good.
const (
	quiet      = 10 * time.Second
	patience   = 30 * time.Second
	firstPause = 100 * time.Millisecond
	lastPause  = 2 * time.Second
)

// run returns when look says it is over, or fails. A lost connection is taken
// up again after the last event seen.
func (w *watch) run(ctx context.Context) error {
	var gone time.Duration
	pause := firstPause
	for {
		before := w.seq
		err := w.once(ctx)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, errQuiet):
			gone, pause = 0, firstPause
			continue
		case w.seq != before: // it had been there
			gone, pause = 0, firstPause
		}
		if work.CodeOf(err) != work.Unavailable || gone >= patience {
			return err
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
		gone += pause
		pause = min(2*pause, lastPause)
	}
}

func (w *watch) once(ctx context.Context) error {
	if !w.begun {
		seq, err := w.since(ctx)
		if err != nil {
			return err
		}
		w.seq, w.begun = seq, true
	}
	if over, err := w.lookNow(ctx); err != nil || over {
		return err
	}
	stream, cancel := context.WithCancel(ctx)
	defer cancel()
	timer := time.AfterFunc(quiet, cancel)
	defer timer.Stop()
	owed := false // a look, when its time has come
	for e, err := range w.api.Events(stream, w.seq) {
		if stream.Err() != nil {
			break
		}
		if err != nil {
			return err
		}
		if !owed {
			timer.Reset(quiet)
		}
		w.seq = e.Seq
		if !w.concerns(e) {
			continue
		}
		if w.heard != nil {
			if err := w.heard(e); err != nil {
				return err
			}
		}
		if w.early() {
			if !owed {
				owed = true
				timer.Reset(w.pace()) // ends the stream, and the look follows
			}
			continue
		}
		if over, err := w.lookNow(ctx); err != nil || over {
			return err
		}
		owed = false
		timer.Reset(quiet)
	}
	if stream.Err() != nil {
		return errQuiet
	}
	return work.Errorf(work.Unavailable, "the event stream has ended")
}

func (w *watch) lookNow(ctx context.Context) (bool, error) {
	over, err := w.look(ctx)
	w.rest = nil
	if err != nil || w.pace == nil {
		return over, err
	}
	if pace := w.pace(); pace > 0 {
		w.rest = time.NewTimer(pace)
	}
	return over, err
}

// early is true while the last look was a moment ago.
func (w *watch) early() bool {
	if w.rest == nil {
		return false
	}
	select {
	case <-w.rest.C:
		return false
	default:
		return true
	}
}

// sleep waits on a timer that ends early with the context.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// lastEvent is the newest event of a task that is told: what happens to it
// later has a higher number.
func lastEvent(ctx context.Context, api app.API, task string) (int64, error) {
	events, err := api.TaskEvents(ctx, task)
	if err != nil || len(events) == 0 {
		return 0, err
	}
	return events[len(events)-1].Seq, nil
}

package engine

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riverqueue/river/rivertype"

	"github.com/claudomator/claudomator/internal/store"
	"github.com/claudomator/claudomator/internal/store/storetest"
	"github.com/claudomator/claudomator/internal/work"
)

// resting is a queue in virtual time that rests when there is nothing to do.
type resting struct {
	*testing.T
	*Queue
	store *store.Store
	got   chan work.Effect // what was delivered, at its end
	over  chan struct{}    // closed: runs end
}

// inShifts runs a test with a queue whose deliveries do what is said, and nothing
// when that is nil.
func inShifts(t *testing.T, deliver func(q *resting, e work.Effect) error, f func(q *resting)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &resting{T: t, got: make(chan work.Effect, 2), over: make(chan struct{})}
		r.Queue, r.store = openQueueAt(t, filepath.Join(t.TempDir(), "q.db"), func(_ context.Context, _ int64, e work.Effect) (err error) {
			if deliver != nil {
				err = deliver(r, e)
			}
			r.got <- e
			return err
		})
		ctx, end := context.WithCancel(t.Context())
		kept := make(chan struct{})
		go func() {
			defer close(kept)
			r.keep(ctx, slog.New(slog.DiscardHandler))
		}()
		defer func() { end(); <-kept }()
		f(r)
	})
}

// rests waits until the client is at rest.
func (q *resting) rests() {
	q.Helper()
	select {
	case <-q.client.Stopped():
	case <-time.After(5 * time.Second):
		q.Fatal("the client does not rest")
	}
	synctest.Wait()
}

func (q *resting) commitAndTell(e work.Effect) {
	q.Helper()
	q.commit(q.T, q.store.DB(), e)
	q.tell()
}

func TestIdleQueueRestsAndWakes(t *testing.T) {
	inShifts(t, nil, func(q *resting) {
		for range 3 {
			q.rests()
			q.commitAndTell(work.Effect{Kind: work.Recheck, Task: "told"})
			within(q.T, "delivery", q.got)
			q.rests()
			if err := q.nudge(q.Context(), work.Effect{Kind: work.Recheck, Task: "nudged"}); err != nil {
				q.Fatal(err)
			}
			within(q.T, "delivery", q.got)
		}
	})
}

// The answer of a commit may be lost, and with it the word that wakes the client.
func TestRestingQueueFindsWhatNobodyToldOf(t *testing.T) {
	inShifts(t, nil, func(q *resting) {
		q.rests()
		began := time.Now()
		q.commit(q.T, q.store.DB(), work.Effect{Kind: work.Recheck, Task: "lost"})
		<-q.got
		if took := time.Since(began); took > restLook+prompt {
			q.Errorf("found after %s, want %s", took, restLook)
		}
	})
}

// To stop waits for what runs, and nothing else would begin meanwhile.
func TestQueueDoesNotRestBesideARun(t *testing.T) {
	deliver := func(q *resting, e work.Effect) error {
		if e.Kind == work.StartExecution {
			<-q.over
		}
		return nil
	}
	inShifts(t, deliver, func(q *resting) {
		q.commitAndTell(work.Effect{Kind: work.StartExecution, Task: "long", Execution: "x"})
		for range 3 {
			time.Sleep(10 * restAfter)
			q.commit(q.T, q.store.DB(), work.Effect{Kind: work.Recheck, Task: "short"})
			if e := within(q.T, "delivery beside the run", q.got); e.Task != "short" {
				q.Fatalf("delivered %+v", e)
			}
		}
		close(q.over)
		if e := within(q.T, "the end of the run", q.got); e.Task != "long" {
			q.Fatalf("delivered %+v", e)
		}
		q.rests()
	})
}

// What has failed waits in the table for its next delivery, which a client at rest
// would not make.
func TestQueueDoesNotRestBeforeARetry(t *testing.T) {
	deliver := func(*resting, work.Effect) error { return errors.New("fails") }
	inShifts(t, deliver, func(q *resting) {
		q.commitAndTell(work.Effect{Kind: work.Recheck})
		within(q.T, "first delivery", q.got)
		select {
		case <-q.client.Stopped():
			q.Error("the client rests")
		case <-time.After(10 * restAfter):
		}
	})
}

// A job that is fetched while the client is being stopped is neither begun, which
// would hold up the stop for as long as it takes, nor lost.
func TestJobThatComesAsTheClientGoesToRest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		got := make(chan int64, 2)
		deliver := func(_ context.Context, job int64, _ work.Effect) error { got <- job; return nil }
		q, s := openQueueAt(t, filepath.Join(t.TempDir(), "q.db"), deliver)
		if !q.shift.close() {
			t.Fatal("an idle client may not rest")
		}
		q.commit(t, s.DB(), work.Effect{Kind: work.StartExecution, Execution: "x"})
		<-q.shift.told // by the delivery that was put back
		q.tell()
		if err := q.client.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(got) > 0 {
			t.Fatal("delivered to a client that is being stopped")
		}
		q.shift.open()
		if q.shift.close() {
			t.Error("a client with a job to look for may rest")
		}
		if !q.rest(t.Context(), slog.New(slog.DiscardHandler)) {
			t.Fatal("the client did not wake")
		}
		job, err := q.client.JobGet(t.Context(), within(t, "delivery", got))
		if err != nil {
			t.Fatal(err)
		}
		if len(job.Errors) > 0 || job.State == rivertype.JobStateDiscarded {
			t.Errorf("the job has failed: %v", job.Errors)
		}
	})
}

func TestLiveJobs(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]func(testing.TB) store.Config{"sqlite": storetest.SQLite, "postgres": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := NewQueue()
			cfg := config(t)
			cfg.ConnectionHook = q.Hook
			s := storetest.OpenWith(t, cfg, q.Enqueue)
			if err := q.Open(t.Context(), s.DB(), s.Pool(), "node", slog.New(slog.DiscardHandler)); err != nil {
				t.Fatal(err)
			}
			if live, err := q.live(t.Context()); live || err != nil {
				t.Errorf("without jobs: %t, %v", live, err)
			}
			q.commit(t, s.DB(), work.Effect{Kind: work.Recheck})
			if live, err := q.live(t.Context()); !live || err != nil {
				t.Errorf("with a job: %t, %v", live, err)
			}
		})
	}
}

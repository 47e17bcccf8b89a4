package engine

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/claudomator/claudomator/internal/store"
	"github.com/claudomator/claudomator/internal/work"
)

// The tests below watch the facts of River that bus rests on. With its poll at 5 s
// a lost notification shows as a job that starts late: in virtual time, so that a busy
// machine is never late.

const prompt = time.Second // far below the poll

func openQueue(t *testing.T, deliver func(context.Context, int64, work.Effect) error) (*Queue, *store.Store) {
	t.Helper()
	return openQueueAt(t, filepath.Join(t.TempDir(), "q.db"), deliver)
}

func openQueueAt(t *testing.T, path string, deliver func(context.Context, int64, work.Effect) error) (*Queue, *store.Store) {
	t.Helper()
	q := NewQueue()
	s, err := store.Open(t.Context(), store.Config{URL: path, ConnectionHook: q.Hook}, q.Enqueue)
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Open(t.Context(), s.DB(), s.Pool(), "node", slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	q.deliver = func(ctx context.Context, job int64, f work.Effect, _ int) error { return deliver(ctx, job, f) }
	ctx := context.WithoutCancel(t.Context()) // the cleanup comes after its end
	if err := q.client.Start(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := q.client.StopAndCancel(ctx); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return q, s
}

func (q *Queue) commit(t *testing.T, db *sql.DB, effects ...work.Effect) {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Enqueue(t.Context(), tx, effects); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
}

func within[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(prompt):
		t.Fatalf("%s: not within %s", what, prompt)
		panic("unreachable")
	}
}

func TestCommittedEffectStartsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		got := make(chan work.Effect, 1)
		q, s := openQueue(t, func(_ context.Context, _ int64, e work.Effect) error { got <- e; return nil })
		want := work.Effect{Kind: work.Recheck, Tree: "t1", Task: "a"}
		q.commit(t, s.DB(), want)
		if e := within(t, "delivery", got); e != want {
			t.Errorf("delivered %+v, want %+v", e, want)
		}
	})
}

func TestSecondOfTwoCommitsStartsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		got := make(chan work.TaskID, 2)
		q, s := openQueue(t, func(_ context.Context, _ int64, e work.Effect) error { got <- e.Task; return nil })
		for range 20 {
			q.commit(t, s.DB(), work.Effect{Kind: work.Recheck, Task: "a"})
			within(t, "first delivery", got)
			q.commit(t, s.DB(), work.Effect{Kind: work.Recheck, Task: "b"})
			within(t, "second delivery", got)
		}
	})
}

func TestCancelledJobEndsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		started, ended := make(chan int64, 1), make(chan error, 1)
		q, s := openQueue(t, func(ctx context.Context, job int64, _ work.Effect) error {
			started <- job
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return ctx.Err()
		})
		q.commit(t, s.DB(), work.Effect{Kind: work.StartExecution, Execution: "x"})
		job := within(t, "start", started)
		q.commit(t, s.DB(), work.Effect{Kind: work.StopExecution, Job: job})
		if cause := within(t, "cancel", ended); !errors.Is(cause, rivertype.ErrJobCancelledRemotely) {
			t.Errorf("ended because of %v", cause)
		}
	})
}

func TestRolledBackEffectIsForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		got := make(chan work.TaskID, 2)
		q, s := openQueue(t, func(_ context.Context, _ int64, e work.Effect) error { got <- e.Task; return nil })
		tx, err := s.DB().BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Enqueue(t.Context(), tx, []work.Effect{{Kind: work.Recheck, Task: "never"}}); err != nil {
			t.Fatal(err)
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		q.commit(t, s.DB(), work.Effect{Kind: work.Recheck, Task: "after"})
		if id := within(t, "delivery", got); id != "after" {
			t.Errorf("delivered %s", id)
		}
	})
}

var _ river.JobArgs = effectArgs{}

// A server that was killed in the middle of an effect gives it again at its next
// start, and not when River's own patience ends.
func TestInterruptedEffectIsGivenAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "q.db")
		got, killed := make(chan work.Effect, 2), make(chan struct{})
		defer close(killed)
		first, s := openQueueAt(t, path, func(_ context.Context, _ int64, e work.Effect) error {
			got <- e // once more where it is quicker than the second: it is not really dead
			<-killed // no answer ever comes
			return nil
		})
		want := work.Effect{Kind: work.Reclaim, Task: "a"}
		first.commit(t, s.DB(), want)
		within(t, "first delivery", got)
		second, _ := openQueueAt(t, path, func(_ context.Context, _ int64, e work.Effect) error { got <- e; return nil })
		if err := second.revive(t.Context(), "node"); err != nil {
			t.Fatal(err)
		}
		if e := within(t, "second delivery", got); e != want {
			t.Errorf("delivered %+v, want %+v", e, want)
		}
	})
}

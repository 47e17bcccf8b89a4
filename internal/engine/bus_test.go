package engine

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivertype"

	"github.com/claudomator/claudomator/internal/store"
	"github.com/claudomator/claudomator/internal/work"
)

// The three tests below watch the facts of River that bus rests on. With its
// poll at 5 s a lost notification shows as a job that starts late.

const prompt = time.Second // far below the poll, far above a busy machine's hiccup

func openQueue(t *testing.T, deliver func(context.Context, int64, work.Effect) error) (*Queue, *store.Store) {
	t.Helper()
	t.Parallel()
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
	got := make(chan work.Effect, 1)
	q, s := openQueue(t, func(_ context.Context, _ int64, e work.Effect) error { got <- e; return nil })
	want := work.Effect{Kind: work.Recheck, Tree: "t1", Task: "a"}
	q.commit(t, s.DB(), want)
	if e := within(t, "delivery", got); e != want {
		t.Errorf("delivered %+v, want %+v", e, want)
	}
}

func TestSecondOfTwoCommitsStartsAtOnce(t *testing.T) {
	got := make(chan work.TaskID, 2)
	q, s := openQueue(t, func(_ context.Context, _ int64, e work.Effect) error { got <- e.Task; return nil })
	for range 20 {
		q.commit(t, s.DB(), work.Effect{Kind: work.Recheck, Task: "a"})
		within(t, "first delivery", got)
		q.commit(t, s.DB(), work.Effect{Kind: work.Recheck, Task: "b"})
		within(t, "second delivery", got)
	}
}

func TestCancelledJobEndsAtOnce(t *testing.T) {
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
}

func TestRolledBackEffectIsForgotten(t *testing.T) {
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
}

// A job that its report completes is not written again when its worker returns; one
// whose report was rolled back is completed by River.
func TestEndOfJobIsWrittenOnce(t *testing.T) {
	var q *Queue
	var s *store.Store
	ready, reported := make(chan struct{}), make(chan int64, 1)
	q, s = openQueue(t, func(ctx context.Context, job int64, e work.Effect) error {
		<-ready
		tx, err := s.DB().BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		end := tx.Commit
		if e.Task == "rolled back" {
			end = tx.Rollback
		}
		err = errors.Join(q.Enqueue(ctx, tx, []work.Effect{{Kind: work.FinishJob, Job: job}}), end())
		reported <- job
		return err
	})
	close(ready)
	for _, task := range []work.TaskID{"kept", "rolled back"} {
		q.commit(t, s.DB(), work.Effect{Kind: work.StartExecution, Task: task})
		job := within(t, "report", reported)
		if noted := q.bus.noted(job); task == "rolled back" && noted {
			t.Errorf("a job is taken for completed by what was rolled back")
		}
		for deadline := time.Now().Add(prompt); ; time.Sleep(time.Millisecond) {
			row, err := q.client.JobGet(t.Context(), job)
			if err != nil {
				t.Fatal(err)
			}
			if row.State == rivertype.JobStateCompleted && !q.bus.noted(job) {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: the job is %s, noted: %v", task, row.State, q.bus.noted(job))
			}
		}
	}
	var rows int
	if err := s.DB().QueryRowContext(t.Context(), `SELECT count(*) FROM river_notification`).Scan(&rows); err != nil {
		t.Fatal(err)
	}
	if rows != 0 {
		t.Errorf("%d rows were written to tell of jobs", rows)
	}
}

func (b *bus) noted(job int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ended[job]
}

// What River is asked for a job that its report has completed: nothing, but for a commit
// that failed after all, or a worker that failed.
func TestRiverIsAskedForTheRest(t *testing.T) {
	t.Parallel()
	b := newBus(runsQueue)
	b.end(1)
	b.end(2)
	b.take(true)
	b.end(3)
	b.take(true)
	b.take(false) // that commit has failed
	b.end(4)
	b.take(false)
	asked := &askedExecutor{}
	params := &riverdriver.JobSetStateIfRunningManyParams{}
	for id, state := range []rivertype.JobState{0: rivertype.JobStateCompleted, 1: rivertype.JobStateCompleted, 2: rivertype.JobStateRetryable, 3: rivertype.JobStateCompleted, 4: rivertype.JobStateCompleted} {
		params.ID, params.State = append(params.ID, int64(id)), append(params.State, state)
		params.Attempt, params.ErrData, params.MetadataUpdates = append(params.Attempt, nil), append(params.ErrData, nil), append(params.MetadataUpdates, nil)
		params.FinalizedAt, params.MetadataDoMerge, params.ScheduledAt = append(params.FinalizedAt, nil), append(params.MetadataDoMerge, false), append(params.ScheduledAt, nil)
	}
	for _, want := range [][]int64{{0, 2, 3, 4}, {0, 1, 2, 3, 4}} { // each is spared once
		if _, err := (busExecutor{asked, b}).JobSetStateIfRunningMany(t.Context(), params); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(asked.ids, want) {
			t.Errorf("asked for %v, want %v", asked.ids, want)
		}
	}
}

// askedExecutor remembers which jobs it was asked for.
type askedExecutor struct {
	riverdriver.Executor
	ids []int64
}

func (e *askedExecutor) JobSetStateIfRunningMany(_ context.Context, p *riverdriver.JobSetStateIfRunningManyParams) ([]*rivertype.JobRow, error) {
	e.ids = p.ID
	return nil, nil
}

var _ river.JobArgs = effectArgs{}

// A server that was killed in the middle of an effect gives it again at its next
// start, and not when River's own patience ends.
func TestInterruptedEffectIsGivenAgain(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "q.db")
	got, killed := make(chan work.Effect, 2), make(chan struct{})
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
	close(killed)
}

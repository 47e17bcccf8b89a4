package engine

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"
	"modernc.org/sqlite"

	"github.com/claudomator/claudomator/internal/work"
)

// Queue is the River client and all that is known of it. The store gets its
// Enqueue (and, on SQLite, its Hook) before the database is open; Open then
// joins both.
type Queue struct {
	bus     *bus
	client  *river.Client[*sql.Tx]
	deliver func(ctx context.Context, job int64, e work.Effect, failures int) error

	shift    shift
	troubled atomic.Bool // River met an error; see trouble
}

const (
	runsQueue   = "runs"  // agent and gate runs: as many as there are slots, and stale nudges
	deedsQueue  = "deeds" // short effects
	runsAtOnce  = 1000    // slots are ours to count; River only must not be the limit
	deedsAtOnce = 16
	deedLimit   = 30 * time.Minute // a landing may fetch and push
)

// NewQueue makes a queue that is not open yet.
func NewQueue() *Queue {
	return &Queue{bus: newBus(runsQueue, deedsQueue), shift: shift{told: make(chan struct{}, 1)}}
}

// Hook is what SQLite's connections register; see store.Config.
func (q *Queue) Hook(conn sqlite.ExecQuerierContext, dsn string) error { return q.bus.hook(conn, dsn) }

// effectArgs is the one kind of job: an effect.
type effectArgs struct{ work.Effect }

// Kind names the job in River's table.
func (effectArgs) Kind() string { return "effect" }

// InsertOpts chooses queue and priority.
func (a effectArgs) InsertOpts() river.InsertOpts {
	o := river.InsertOpts{Queue: deedsQueue, MaxAttempts: maxDeliveries}
	if a.Effect.Kind == work.StartExecution {
		o.Queue = runsQueue
		o.Priority = riverPriority(a.Priority)
	}
	return o
}

// maxDeliveries is far above what a lasting fault reaches between two starts of
// the server, each of which delivers anew.
const maxDeliveries = 1000

func riverPriority(p work.Priority) int {
	switch p {
	case work.Urgent:
		return 1
	case work.High:
		return 2
	case work.Low:
		return 4
	case work.Normal:
	}
	return 3
}

// Open migrates River's tables and makes the client. pool is nil on SQLite.
func (q *Queue) Open(ctx context.Context, db *sql.DB, pool *pgxpool.Pool, node string, log *slog.Logger) error {
	var driver riverdriver.Driver[*sql.Tx]
	// Every change is noticed in this process; a poll finds what a failed fetch left.
	poll, cooldown := 5*time.Second, 5*time.Millisecond
	if pool != nil {
		driver = riverdatabasesql.NewWithPgxListener(db, pool)
		poll, cooldown = time.Second, time.Millisecond // River swallows a second notification within the cooldown
	} else {
		q.bus.Driver = riversqlite.New(db)
		driver = q.bus
	}
	logger := slog.New(riverLog{log.Handler(), &q.troubled})
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: logger})
	if err != nil {
		return fmt.Errorf("prepare the queue's tables: %w", err)
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return fmt.Errorf("migrate the queue's tables: %w", err)
	}
	workers := river.NewWorkers()
	if err := river.AddWorkerSafely(workers, &worker{q: q}); err != nil {
		return fmt.Errorf("register the effects' worker: %w", err)
	}
	q.client, err = river.NewClient(driver, &river.Config{
		ID: node, Workers: workers, Logger: logger,
		Queues:        map[string]river.QueueConfig{runsQueue: {MaxWorkers: runsAtOnce}, deedsQueue: {MaxWorkers: deedsAtOnce}},
		FetchCooldown: cooldown, FetchPollInterval: poll,
		JobTimeout: deedLimit, RescueStuckJobsAfter: deedLimit + 5*time.Minute,
		CompletedJobRetentionPeriod: time.Hour, CancelledJobRetentionPeriod: time.Hour,
		RetryPolicy: retryPolicy{},
	})
	if err != nil {
		return fmt.Errorf("make the queue: %w", err)
	}
	return nil
}

// riverLog keeps River's own words to errors (it warns of each job that is
// cancelled), and takes each as a sign of trouble: River tells of a failed job
// in the job's row, and here of what it could not do itself.
type riverLog struct {
	slog.Handler
	troubled *atomic.Bool
}

// Enabled implements slog.Handler.
func (h riverLog) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelError && h.Handler.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (h riverLog) Handle(ctx context.Context, r slog.Record) error {
	h.troubled.Store(true)
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h riverLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return riverLog{h.Handler.WithAttrs(attrs), h.troubled}
}

// WithGroup implements slog.Handler.
func (h riverLog) WithGroup(name string) slog.Handler {
	return riverLog{h.Handler.WithGroup(name), h.troubled}
}

// trouble says whether River met an error since it was asked last.
func (q *Queue) trouble() bool { return q.troubled.Swap(false) }

// retryPolicy repeats a failed delivery after 5 s, growing to a minute.
type retryPolicy struct{}

// NextRetry implements River's policy.
func (retryPolicy) NextRetry(job *rivertype.JobRow) time.Time {
	return job.ScheduledAt.Add(min(time.Duration(len(job.Errors)+1)*5*time.Second, time.Minute))
}

// Enqueue turns the effects of a commit into jobs, in its transaction.
func (q *Queue) Enqueue(ctx context.Context, tx *sql.Tx, effects []work.Effect) error {
	var jobs []river.InsertManyParams
	for _, e := range effects {
		switch e.Kind {
		case work.FinishJob:
			if err := q.finish(ctx, tx, e.Job); err != nil {
				return err
			}
		case work.StopExecution:
			if _, err := q.client.JobCancelTx(ctx, tx, e.Job); err != nil && !errors.Is(err, rivertype.ErrNotFound) {
				return fmt.Errorf("cancel job %d: %w", e.Job, err)
			}
		case work.StartExecution, work.Integrate, work.Land, work.Branch, work.Push, work.PullRequest, work.ClosePull, work.Reclaim, work.Recheck:
			jobs = append(jobs, river.InsertManyParams{Args: effectArgs{e}})
		}
	}
	if len(jobs) == 0 {
		return nil
	}
	if _, err := q.client.InsertManyFastTx(ctx, tx, jobs); err != nil {
		return fmt.Errorf("insert %d effects: %w", len(jobs), err)
	}
	return nil
}

// finish completes the job that carried a run, together with the run's report:
// a crash between the two would leave a job that runs for ever.
func (q *Queue) finish(ctx context.Context, tx *sql.Tx, job int64) error {
	if client, _ := river.ClientFromContextSafely[*sql.Tx](ctx); client == nil || job == 0 {
		return nil // not reported from within its job
	}
	row := &river.Job[effectArgs]{JobRow: &rivertype.JobRow{ID: job, State: rivertype.JobStateRunning}}
	_, err := river.JobCompleteTx[riverdriver.Driver[*sql.Tx]](ctx, tx, row)
	if err != nil && !errors.Is(err, rivertype.ErrNotFound) {
		return fmt.Errorf("complete job %d: %w", job, err)
	}
	return nil
}

// nudge inserts effects outside a commit: at recovery, and for a freed slot.
func (q *Queue) nudge(ctx context.Context, effects ...work.Effect) error {
	jobs := make([]river.InsertManyParams, len(effects))
	for i, e := range effects {
		jobs[i] = river.InsertManyParams{Args: effectArgs{e}}
	}
	if len(jobs) == 0 {
		return nil
	}
	if _, err := q.client.InsertManyFast(ctx, jobs); err != nil {
		return fmt.Errorf("insert %d effects: %w", len(jobs), err)
	}
	q.tell()
	return nil
}

// revive gives again what a former life of this node was killed in the middle of:
// River would wait until the job's own time is over. Runs are not among it: their
// executions are lost, and queued anew.
func (q *Queue) revive(ctx context.Context, node string) error {
	jobs, err := q.client.JobList(ctx, river.NewJobListParams().States(rivertype.JobStateRunning).Queues(deedsQueue).First(10_000))
	if err != nil {
		return fmt.Errorf("list interrupted effects: %w", err)
	}
	for _, job := range jobs.Jobs {
		by := job.AttemptedBy
		if len(by) == 0 || by[len(by)-1] != node || strings.Contains(string(job.Metadata), cancelAttempted) {
			continue
		}
		var args effectArgs
		if err := json.Unmarshal(job.EncodedArgs, &args); err != nil {
			return fmt.Errorf("read effect %d: %w", job.ID, err)
		}
		if err := q.nudge(ctx, args.Effect); err != nil {
			return err
		}
		if _, err := q.client.JobCancel(ctx, job.ID); err != nil && !errors.Is(err, rivertype.ErrNotFound) {
			return fmt.Errorf("cancel interrupted effect %d: %w", job.ID, err)
		}
	}
	return nil
}

// cancelAttempted is River's mark of a job that was told to stop; one whose server
// is dead bears it until the rescuer removes it.
const cancelAttempted = "cancel_attempted_at"

// worker hands jobs to the engine.
type worker struct {
	river.WorkerDefaults[effectArgs]
	q *Queue
}

// Timeout: a run has its own limits, and River must never rescue it.
func (*worker) Timeout(job *river.Job[effectArgs]) time.Duration {
	if job.Args.Effect.Kind == work.StartExecution {
		return -1
	}
	return deedLimit
}

// Work delivers one effect. One that is not over yet waits in the queue, however
// often: that is no failure.
func (w *worker) Work(ctx context.Context, job *river.Job[effectArgs]) error {
	if !w.q.shift.enter() { // it came at the moment in which the client is stopped to rest
		w.q.tell()
		return river.JobSnooze(0)
	}
	defer w.q.shift.leave()
	err := w.q.deliver(ctx, job.ID, job.Args.Effect, len(job.Errors))
	if wait, ok := errors.AsType[againError](err); ok {
		return river.JobSnooze(max(0, wait.in))
	}
	return err
}

// againError asks for an effect to be delivered again after a while.
type againError struct{ in time.Duration }

func (e againError) Error() string { return "not over yet, again in " + e.in.String() }

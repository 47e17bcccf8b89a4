package engine

import (
	"context"
	"database/sql"

	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivertype"
)

// GetExecutor gives what River works with outside of our transactions.
func (b *bus) GetExecutor() riverdriver.Executor { return busExecutor{b.Driver.GetExecutor(), b} }

// UnwrapExecutor gives what River works with inside of one.
func (b *bus) UnwrapExecutor(tx *sql.Tx) riverdriver.ExecutorTx {
	return busTx{b.Driver.UnwrapExecutor(tx), b}
}

// UnwrapTx is the way back.
func (b *bus) UnwrapTx(tx riverdriver.ExecutorTx) *sql.Tx {
	if ours, ok := tx.(busTx); ok {
		tx = ours.ExecutorTx
	}
	return b.Driver.UnwrapTx(tx)
}

// busExecutor lets the bus see the transactions that River begins.
type busExecutor struct {
	riverdriver.Executor
	b *bus
}

// Begin begins a transaction.
func (e busExecutor) Begin(ctx context.Context) (riverdriver.ExecutorTx, error) {
	tx, err := e.Executor.Begin(ctx)
	if err != nil {
		return nil, err
	}
	return busTx{tx, e.b}, nil
}

// JobSetStateIfRunningMany sets the states of jobs whose workers have returned, as far
// as they still run. A job that was completed with its run's report does not: to find
// that out takes two statements of a kilobyte each, which write the row once more.
func (e busExecutor) JobSetStateIfRunningMany(ctx context.Context, all *riverdriver.JobSetStateIfRunningManyParams) ([]*rivertype.JobRow, error) {
	rest := riverdriver.JobSetStateIfRunningManyParams{Now: all.Now, Schema: all.Schema}
	for i, id := range all.ID {
		if e.b.forget(id) && all.State[i] == rivertype.JobStateCompleted {
			continue
		}
		rest.ID = append(rest.ID, id)
		rest.Attempt = append(rest.Attempt, all.Attempt[i])
		rest.ErrData = append(rest.ErrData, all.ErrData[i])
		rest.FinalizedAt = append(rest.FinalizedAt, all.FinalizedAt[i])
		rest.MetadataDoMerge = append(rest.MetadataDoMerge, all.MetadataDoMerge[i])
		rest.MetadataUpdates = append(rest.MetadataUpdates, all.MetadataUpdates[i])
		rest.ScheduledAt = append(rest.ScheduledAt, all.ScheduledAt[i])
		rest.State = append(rest.State, all.State[i])
	}
	if len(rest.ID) == 0 {
		return nil, nil
	}
	return e.Executor.JobSetStateIfRunningMany(ctx, &rest)
}

// busTx tells of the jobs of a transaction without rows that nobody reads.
type busTx struct {
	riverdriver.ExecutorTx
	b *bus
}

// NotifyMany tells the queues at once when the transaction is committed; any other word
// goes River's own way, through its table.
func (t busTx) NotifyMany(ctx context.Context, words *riverdriver.NotifyManyParams) error {
	if words.Topic != topicInsert {
		return t.ExecutorTx.NotifyMany(ctx, words)
	}
	for _, payload := range words.Payload {
		t.b.tell(words.Topic, payload)
	}
	return nil
}

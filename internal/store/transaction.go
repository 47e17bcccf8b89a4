package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"
)

// transaction is one write transaction.
type transaction struct {
	ctx   context.Context
	tx    *sql.Tx
	store *Store
}

// change runs f in a write transaction: all of it is kept, or nothing. With
// SQLite the caller's context ends only the wait for the connection: what has
// begun takes less than a millisecond, and watching a context costs a
// goroutine for each statement.
func (s *Store) change(ctx context.Context, doing string, f func(*transaction) error) error {
	conn, err := s.write.Conn(ctx)
	if err != nil {
		return mapped(doing, err)
	}
	defer func() { _ = conn.Close() }() // back to the pool; it fails only when it is there already
	if s.pool == nil {
		ctx = context.WithoutCancel(ctx)
	}
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return mapped(doing, err)
	}
	defer func() { _ = tx.Rollback() }() // does nothing after Commit
	t := &transaction{ctx: ctx, tx: tx, store: s}
	if err := f(t); err != nil {
		return mapped(doing, err)
	}
	if err := t.check("COMMIT"); err != nil {
		return mapped(doing, err)
	}
	return mapped(doing, tx.Commit())
}

func (t *transaction) check(statement string) error {
	if t.store.before == nil {
		return nil
	}
	return t.store.before(statement)
}

// exec runs a statement and tells how many rows it changed.
func (t *transaction) exec(statement string, args ...any) (int64, error) {
	if err := t.check(statement); err != nil {
		return 0, err
	}
	var result sql.Result
	var err error
	if prepared := t.prepared(statement); prepared != nil { //nolint:sqlclosecheck // it ends with the transaction
		result, err = prepared.ExecContext(t.ctx, args...)
	} else {
		result, err = t.tx.ExecContext(t.ctx, statement, args...)
	}
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// query reads rows; they must be closed before the next statement.
func (t *transaction) query(statement string, args ...any) (*sql.Rows, error) {
	if err := t.check(statement); err != nil {
		return nil, err
	}
	if prepared := t.prepared(statement); prepared != nil { //nolint:sqlclosecheck // it ends with the transaction
		return prepared.QueryContext(t.ctx, args...)
	}
	return t.tx.QueryContext(t.ctx, statement, args...)
}

// prepared is a statement that is ready to run, nil for others. It ends with
// the transaction.
func (t *transaction) prepared(statement string) *sql.Stmt {
	if ready := t.store.prepared[statement]; ready != nil {
		return t.tx.StmtContext(t.ctx, ready)
	}
	return nil
}

// scanner is a row that is being read.
type scanner interface{ Scan(dest ...any) error }

// collect reads all rows.
func collect[T any](rows *sql.Rows, err error, scan func(scanner) (T, error)) ([]T, error) {
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // its error is rows.Err's
	var out []T
	for rows.Next() {
		item, err := scan(rows)
		if err != nil {
			return nil, err
		}
		out = append(out, item)
	}
	return out, rows.Err()
}

// text reads a column of text.
func text[T ~string](row scanner) (T, error) {
	var value T
	err := row.Scan(&value)
	return value, err
}

// first is the first of the rows that were read; false when there is none.
func first[T any](items []T, err error) (item T, found bool, _ error) {
	if err != nil || len(items) == 0 {
		return item, false, err
	}
	return items[0], true, nil
}

// holders lists n placeholders, from $from on.
func holders(from, n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "$%d", from+i)
	}
	return b.String()
}

// anys makes arguments of a list.
func anys[T any](list []T) []any {
	out := make([]any, len(list))
	for i, item := range list {
		out[i] = item
	}
	return out
}

// micros is how an instant is stored: 0 is none.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func instant(micros int64) time.Time {
	if micros == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micros).UTC()
}

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

package store

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
)

// statements is how many a connection keeps ready. The queue and the store have
// fewer; lists with filters come in more forms.
const statements = 64

// conn keeps the statements that it has run ready to run again. To parse a small
// statement costs more than to run it, and most of them are those of the queue,
// which prepares none. It is used by one goroutine at a time, as every connection.
type conn struct {
	driver.Conn
	sqliteSession
	runs  sqliteRunner
	ready map[string]*statement // by their text
	turn  int64
}

// sqliteRunner and sqliteSession are what a connection of the SQLite driver can do
// besides.
type sqliteRunner interface {
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
}

type sqliteSession interface {
	driver.ConnBeginTx
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// sqliteStmt is what a statement of the SQLite driver can do.
type sqliteStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// statement is one that is ready, or at work, or was run once.
type statement struct {
	sqliteStmt // nil: it was run once
	text       string
	busy       bool
	used       int64 // the turn of the connection
}

func (s *statement) end() error {
	if s.sqliteStmt == nil {
		return nil
	}
	return s.Close()
}

func keepStatements(made driver.Conn) (driver.Conn, error) {
	runs, runner := made.(sqliteRunner)
	session, able := made.(sqliteSession)
	if !runner || !able {
		return nil, errors.Join(fmt.Errorf("a connection is a %T, which cannot do what is needed", made), made.Close())
	}
	return &conn{Conn: made, sqliteSession: session, runs: runs, ready: map[string]*statement{}}, nil
}

// PrepareContext parses a statement for a caller that keeps it.
func (c *conn) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	return c.runs.PrepareContext(ctx, text)
}

// ExecContext runs a statement that gives no rows.
func (c *conn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	s, err := c.take(ctx, text)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return c.runs.ExecContext(ctx, text, args)
	}
	result, err := s.ExecContext(ctx, args)
	return result, c.give(s, err)
}

// QueryContext runs a statement that gives rows; it is at work until they are closed.
func (c *conn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	s, err := c.take(ctx, text)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return c.runs.QueryContext(ctx, text, args)
	}
	rows, err := s.QueryContext(ctx, args)
	if err != nil {
		return nil, c.give(s, err)
	}
	return &statementRows{Rows: rows, conn: c, of: s}, nil
}

// take gives a statement that is ready; nil for one that is at work already, or is
// run for the first time: most of those are never run again.
func (c *conn) take(ctx context.Context, text string) (*statement, error) {
	c.turn++
	s := c.ready[text]
	switch {
	case s == nil:
		err := c.makeRoom()
		c.ready[text] = &statement{text: text, used: c.turn}
		return nil, err
	case s.busy:
		return nil, nil //nolint:nilnil // it is run on its own, then
	case s.sqliteStmt == nil:
		made, err := c.runs.PrepareContext(ctx, steady(text))
		if err != nil {
			return nil, err
		}
		able, ok := made.(sqliteStmt)
		if !ok {
			return nil, errors.Join(fmt.Errorf("a statement is a %T, which cannot do what is needed", made), made.Close())
		}
		s.sqliteStmt = able
	}
	s.busy, s.used = true, c.turn
	return s, nil
}

// steady makes an expression of each LIMIT that is a bare parameter. SQLite looks at
// such a parameter's value when it plans, and so parses the statement anew at each run;
// that of the queue's fetch, at every job. No list of ours has one: its page is in its
// text.
func steady(text string) string {
	parts := strings.Split(text, "LIMIT ")
	for i, part := range parts[1:] {
		if !strings.HasPrefix(part, "?") && !strings.HasPrefix(part, "$") {
			continue
		}
		end := len(part) - len(strings.TrimLeft(part[1:], "0123456789"))
		parts[i+1] = part[:end] + " + 0" + part[end:]
	}
	return strings.Join(parts, "LIMIT ")
}

// makeRoom closes the statement that was not used for longest, where there are too many.
func (c *conn) makeRoom() error {
	if len(c.ready) < statements {
		return nil
	}
	var oldest *statement
	for _, s := range c.ready {
		if !s.busy && (oldest == nil || s.used < oldest.used) {
			oldest = s
		}
	}
	if oldest == nil {
		return nil
	}
	delete(c.ready, oldest.text)
	return oldest.end()
}

// give takes a statement back; one that has failed is not used again, nor is one
// whose connection is closed.
func (c *conn) give(s *statement, err error) error {
	s.busy = false
	if err == nil && c.ready != nil {
		return nil
	}
	delete(c.ready, s.text)
	if failed := s.end(); failed != nil {
		return errors.Join(err, failed)
	}
	return err
}

// Close closes the connection and its statements; one that is at work closes when
// its rows do.
func (c *conn) Close() error {
	var errs []error
	for _, s := range c.ready {
		if !s.busy {
			errs = append(errs, s.end())
		}
	}
	c.ready = nil
	return errors.Join(append(errs, c.Conn.Close())...)
}

// statementRows gives its statement back when it is closed.
type statementRows struct {
	driver.Rows
	conn *conn
	of   *statement
}

func (r *statementRows) Close() error {
	return r.conn.give(r.of, r.Rows.Close())
}

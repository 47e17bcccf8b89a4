package store

import (
	"context"
	"database/sql/driver"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/claudomator/claudomator/internal/work"
)

// mapped turns what a database says into one of the domain's errors; doing is
// the verb phrase of what failed. A domain error passes as it is.
func mapped(doing string, err error) error {
	if err == nil {
		return nil
	}
	if _, ours := work.AsError(err); ours {
		return err
	}
	if lite, ok := errors.AsType[*sqlite.Error](err); ok {
		return ofSQLite(doing, lite.Code(), err)
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return ofPostgres(doing, pg.Code, err)
	}
	_, unreachable := errors.AsType[*pgconn.ConnectError](err)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return work.Errorf(work.Timeout, "%s: %w", doing, err)
	case errors.Is(err, context.Canceled):
		return work.Errorf(work.Unavailable, "%s: %w", doing, err).WithReason("cancelled")
	case unreachable, errors.Is(err, driver.ErrBadConn), pgconn.SafeToRetry(err):
		return unreachableDatabase(doing, err)
	}
	return work.Errorf(work.Internal, "%s: %w", doing, err)
}

func ofSQLite(doing string, code int, err error) error {
	switch code { // extended codes first
	case sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_ROWID:
		return exists(doing, err)
	}
	switch code & 0xff {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return work.Errorf(work.Unavailable, "%s: %w", doing, err).WithReason("busy").WithHint("another program holds the database; try again")
	case sqlite3.SQLITE_FULL:
		return storageFull(doing, err)
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN:
		return work.Errorf(work.Unavailable, "%s: %w", doing, err).WithReason("storage").WithHint("check the disk of the data directory")
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
		return work.Errorf(work.Unavailable, "%s: %w", doing, err).WithReason("read_only").WithHint("the server must be able to write to its data directory")
	}
	return work.Errorf(work.Internal, "%s: %w", doing, err)
}

func ofPostgres(doing, code string, err error) error {
	switch {
	case code == "23505": // unique_violation
		return exists(doing, err)
	case code == "40001" || code == "40P01": // serialization_failure, deadlock_detected
		return work.Errorf(work.Conflict, "%s: %w", doing, err).WithReason("version")
	case code == "53100": // disk_full
		return storageFull(doing, err)
	case code == "55P03": // lock_not_available
		return work.Errorf(work.Unavailable, "%s: %w", doing, err).WithReason("busy").WithHint("try again")
	case strings.HasPrefix(code, "08"), strings.HasPrefix(code, "53"), strings.HasPrefix(code, "57P"):
		return unreachableDatabase(doing, err)
	}
	return work.Errorf(work.Internal, "%s: %w", doing, err)
}

func exists(doing string, err error) error {
	return work.Errorf(work.Conflict, "%s: it exists already: %w", doing, err).WithReason("exists")
}

func storageFull(doing string, err error) error {
	return work.Errorf(work.Unavailable, "%s: storage full: %w", doing, err).WithReason("storage_full").WithHint("free space on the disk of the data directory")
}

func unreachableDatabase(doing string, err error) error {
	return work.Errorf(work.Unavailable, "%s: the database does not answer: %w", doing, err).WithReason("database").WithHint("try again")
}

// unknown is the error of a row that is not there.
func unknown(what, ref string) error {
	return work.Errorf(work.NotFound, "there is no %s %q", what, ref)
}

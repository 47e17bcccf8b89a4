package script_test

import (
	"context"
	"database/sql"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/rogpeppe/go-internal/testscript"
	_ "modernc.org/sqlite" // the driver that the server uses
)

// hold keeps every write to the database waiting for a while, as another program
// that writes would.
func hold(ts *testscript.TestScript, args []string) {
	long, err := time.ParseDuration(args[0])
	ts.Check(err)
	ctx, cancel := context.WithTimeout(context.Background(), limit+long)
	db, lock, err := openDatabase(ctx, ts)
	ts.Check(err)
	conn, err := db.Conn(ctx)
	ts.Check(err)
	for _, statement := range lock {
		_, err = conn.ExecContext(ctx, statement)
		ts.Check(err)
	}
	released := make(chan error, 1)
	held, release := context.WithTimeout(ctx, long)
	worldOf(ts).release = func() {
		release()
		released <- <-released // when it is
	}
	go func() {
		defer cancel()
		<-held.Done()
		_, err := conn.ExecContext(ctx, "ROLLBACK")
		released <- err
	}()
	ts.Defer(func() {
		if err := <-released; err != nil {
			ts.Fatalf("release the database: %v", err)
		}
		_ = conn.Close()
		_ = db.Close()
	})
}

// release ends a hold before its time.
func release(ts *testscript.TestScript, _ []string) {
	end := worldOf(ts).release
	if end == nil {
		ts.Fatalf("nothing is held")
	}
	end()
}

// openDatabase opens the server's database, and says how to lock it.
func openDatabase(ctx context.Context, ts *testscript.TestScript) (db *sql.DB, lock []string, err error) {
	url := ts.Getenv("CLAUDOMATOR_DATABASE")
	if url == "" {
		db, err = sql.Open("sqlite", worldOf(ts).path("data/claudomator.db"))
		return db, []string{"PRAGMA busy_timeout = 10000", "BEGIN IMMEDIATE"}, err
	}
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return nil, nil, err
	}
	ts.Defer(pool.Close)
	return stdlib.OpenDBFromPool(pool), []string{"BEGIN", "LOCK TABLE counters IN EXCLUSIVE MODE"}, nil
}

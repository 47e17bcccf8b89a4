package script_test

import (
	"context"
	"database/sql"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the drivers that the server uses
	"github.com/rogpeppe/go-internal/testscript"
	_ "modernc.org/sqlite"
)

// hold keeps every write to the database waiting for a while, as another program
// that writes would.
func hold(ts *testscript.TestScript, args []string) {
	long, err := time.ParseDuration(args[0])
	ts.Check(err)
	driver, address, begin := "sqlite", worldOf(ts).path("data/claudomator.db"), "BEGIN IMMEDIATE"
	if url := ts.Getenv("CLAUDOMATOR_DATABASE"); url != "" {
		driver, address, begin = "pgx", url, "BEGIN; LOCK TABLE counters IN EXCLUSIVE MODE"
	}
	db, err := sql.Open(driver, address)
	ts.Check(err)
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	conn, err := db.Conn(ctx)
	ts.Check(err)
	if driver == "sqlite" {
		_, err = conn.ExecContext(ctx, "PRAGMA busy_timeout = 10000")
		ts.Check(err)
	}
	_, err = conn.ExecContext(ctx, begin)
	ts.Check(err)
	released := make(chan error, 1)
	go func() {
		defer cancel()
		time.Sleep(long)
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

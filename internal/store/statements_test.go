package store_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"testing"

	"modernc.org/sqlite"

	"github.com/claudomator/claudomator/internal/store"
)

// counting opens connections that keep their statements, and counts how many were
// parsed, and how many of them are open.
type counting struct {
	driver       *sqlite.Driver
	parsed, open int
	text         string // of the last one
}

func (c *counting) Driver() driver.Driver { return c.driver }

func (c *counting) Connect(context.Context) (driver.Conn, error) {
	made, err := c.driver.Open(":memory:")
	if err != nil {
		return nil, err
	}
	return store.KeepStatements(countingConn{made, made.(store.SQLiteRunner), made.(store.SQLiteSession), c})
}

type countingConn struct {
	driver.Conn
	store.SQLiteRunner
	store.SQLiteSession
	of *counting
}

func (c countingConn) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	s, err := c.SQLiteRunner.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	c.of.parsed++
	c.of.open++
	c.of.text = text
	return countingStmt{s, s.(driver.StmtExecContext), s.(driver.StmtQueryContext), c.of}, nil
}

type countingStmt struct {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
	of *counting
}

func (s countingStmt) Close() error {
	s.of.open--
	return s.Stmt.Close()
}

func keeping(t *testing.T) (*sql.DB, *counting) {
	t.Helper()
	c := &counting{driver: &sqlite.Driver{}}
	db := sql.OpenDB(c)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
		if c.open != 0 {
			t.Errorf("%d statements are open after the end", c.open)
		}
	})
	must(t, db, `CREATE TABLE a (n INTEGER PRIMARY KEY, v TEXT NOT NULL)`)
	return db, c
}

func must(t *testing.T, db *sql.DB, text string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), text, args...); err != nil {
		t.Fatal(err)
	}
}

// TestStatementsAreParsedOnce: what is run again is not parsed again, and gives
// what it would give then.
func TestStatementsAreParsedOnce(t *testing.T) {
	t.Parallel()
	db, c := keeping(t)
	before := c.parsed
	for i := range 20 {
		must(t, db, `INSERT INTO a (n, v) VALUES ($1, $2)`, i, fmt.Sprint("v", i))
		var v string
		if err := db.QueryRowContext(t.Context(), `SELECT v FROM a WHERE n = $1`, i).Scan(&v); err != nil || v != fmt.Sprint("v", i) {
			t.Fatalf("row %d is %q, %v", i, v, err)
		}
	}
	if c.parsed != before+2 {
		t.Errorf("two statements were parsed %d times", c.parsed-before)
	}
}

// TestStatementWithinItself: a statement whose rows are still being read can be run
// once more in between.
func TestStatementWithinItself(t *testing.T) {
	t.Parallel()
	db, _ := keeping(t)
	must(t, db, `INSERT INTO a (n, v) VALUES (1, 'one'), (2, 'two'), (3, 'three')`)
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	const from = `SELECT n FROM a WHERE n >= $1 ORDER BY n`
	read := func(first int, each func(n int)) {
		rows, err := tx.QueryContext(t.Context(), from, first)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			var n int
			if err := rows.Scan(&n); err != nil {
				t.Fatal(err)
			}
			each(n)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
	}
	read(9, func(int) {}) // from now on it is kept
	var got []string
	read(1, func(outer int) {
		read(outer, func(inner int) { got = append(got, fmt.Sprint(outer, inner)) })
	})
	if want := "[1 1 1 2 1 3 2 2 2 3 3 3]"; fmt.Sprint(got) != want {
		t.Errorf("read %v, want %s", got, want)
	}
}

// TestStatementThatFails can be run again, and fails or succeeds on its own merits.
func TestStatementThatFails(t *testing.T) {
	t.Parallel()
	db, _ := keeping(t)
	const insert = `INSERT INTO a (n, v) VALUES ($1, $2)`
	must(t, db, insert, 1, "one")
	for range 3 {
		if _, err := db.ExecContext(t.Context(), insert, 1, "again"); err == nil {
			t.Fatal("a key was taken twice")
		}
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := db.ExecContext(ended, insert, 2, "two"); err == nil {
		t.Fatal("what has ended was carried out")
	}
	must(t, db, insert, 2, "two")
	if _, err := db.ExecContext(t.Context(), `INSERT INTO nowhere VALUES (1)`); err == nil {
		t.Fatal("a table that is not there was written")
	}
}

// TestStatementsAreFew: of many different ones that are run twice the last are kept.
func TestStatementsAreFew(t *testing.T) {
	t.Parallel()
	db, c := keeping(t)
	for times, kept := range []int{0, store.MostStatements} { // what is run once is not kept
		for i := range 6 * store.MostStatements {
			var n int
			if i = i / (times + 1); times == 0 {
				i = -i
			}
			if err := db.QueryRowContext(t.Context(), fmt.Sprintf(`SELECT %d`, i)).Scan(&n); err != nil || n != i {
				t.Fatalf("%d was read as %d, %v", i, n, err)
			}
		}
		if c.open != kept {
			t.Errorf("%d statements are kept, not %d", c.open, kept)
		}
	}
}

// TestStatementsSeeTheSchema: one that was parsed before a table changed gives its
// new columns.
func TestStatementsSeeTheSchema(t *testing.T) {
	t.Parallel()
	db, _ := keeping(t)
	columns := func() int {
		rows, err := db.QueryContext(t.Context(), `SELECT * FROM a`)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = rows.Close() }()
		names, err := rows.Columns()
		if err != nil || rows.Err() != nil {
			t.Fatal(err, rows.Err())
		}
		return len(names)
	}
	must(t, db, `INSERT INTO a (n, v) VALUES (1, 'one')`)
	before := columns()
	must(t, db, `ALTER TABLE a ADD COLUMN w TEXT`)
	if after := columns(); before != 2 || after != 3 {
		t.Errorf("%d columns before, %d after", before, after)
	}
}

// A LIMIT that is a bare parameter would be parsed at each run, whoever keeps the
// statement.
func TestKeptLimitIsNoBareParameter(t *testing.T) {
	t.Parallel()
	db, c := keeping(t)
	for n := range 20 {
		must(t, db, `INSERT INTO a (n, v) VALUES ($1, 'x')`, n)
	}
	for text, want := range map[string]string{
		`SELECT count(*) FROM (SELECT n FROM a LIMIT ?1)`:                             `SELECT count(*) FROM (SELECT n FROM a LIMIT ?1 + 0)`,
		`SELECT count(*) FROM (SELECT * FROM (SELECT n FROM a LIMIT $1) LIMIT $1)`:    `SELECT count(*) FROM (SELECT * FROM (SELECT n FROM a LIMIT $1 + 0) LIMIT $1 + 0)`,
		`SELECT count(*) FROM (SELECT n FROM a WHERE n < 100 + ?1 LIMIT ?1 OFFSET 0)`: `SELECT count(*) FROM (SELECT n FROM a WHERE n < 100 + ?1 LIMIT ?1 + 0 OFFSET 0)`,
		`SELECT count(*) FROM (SELECT n FROM a WHERE ?1 > 0 LIMIT 12)`:                `SELECT count(*) FROM (SELECT n FROM a WHERE ?1 > 0 LIMIT 12)`,
	} {
		for range 3 {
			var n int
			if err := db.QueryRowContext(t.Context(), text, 12).Scan(&n); err != nil || n != 12 {
				t.Errorf("%s: %d rows, %v", text, n, err)
			}
		}
		if c.text != want {
			t.Errorf("kept %s, want %s", c.text, want)
		}
	}
}

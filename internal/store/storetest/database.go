package storetest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/claudomator/claudomator/internal/store"
	"github.com/claudomator/claudomator/internal/work"
)

// SQLite is a database in a file of its own, which is not there yet.
func SQLite(t testing.TB) store.Config {
	t.Helper()
	return store.Config{URL: filepath.Join(t.TempDir(), "claudomator.db")}
}

// Postgres is an empty schema of its own on the server of
// CLAUDOMATOR_TEST_POSTGRES, dropped with the test. Without that variable the
// test is skipped; in CI it fails.
func Postgres(t testing.TB) store.Config {
	t.Helper()
	address := os.Getenv("CLAUDOMATOR_TEST_POSTGRES")
	if address == "" {
		if os.Getenv("CLAUDOMATOR_CI") != "" {
			t.Fatal("CLAUDOMATOR_TEST_POSTGRES is not set, and in CI nothing may be skipped")
		}
		t.Skip("CLAUDOMATOR_TEST_POSTGRES is not set: see CONTRIBUTING.md")
	}
	schema := "test_" + strings.ToLower(rand.Text())
	run := func(ctx context.Context, statement string) {
		conn, err := pgx.Connect(ctx, address)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close(ctx) }()
		if _, err := conn.Exec(ctx, statement); err != nil {
			t.Fatal(err)
		}
	}
	run(t.Context(), "CREATE SCHEMA "+schema)
	t.Cleanup(func() { run(context.WithoutCancel(t.Context()), "DROP SCHEMA "+schema+" CASCADE") })
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	query.Set("search_path", schema)
	query.Set("pool_max_conns", "8") // many tests at once share the server's connections
	u.RawQuery = query.Encode()
	return store.Config{URL: u.String()}
}

// Open opens a store that drops its effects and is closed with the test.
func Open(t testing.TB, cfg store.Config) *store.Store {
	t.Helper()
	return OpenWith(t, cfg, func(context.Context, *sql.Tx, []work.Effect) error { return nil })
}

// OpenWith opens a store that is closed with the test.
func OpenWith(t testing.TB, cfg store.Config, enqueue store.Enqueue) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), cfg, enqueue)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

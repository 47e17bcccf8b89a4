package binary

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Postgres is the address of the PostgreSQL server in CLAUDOMATOR_TEST_POSTGRES.
// Without that variable the test is skipped; in CI it fails.
func Postgres(t testing.TB) string {
	t.Helper()
	address := os.Getenv("CLAUDOMATOR_TEST_POSTGRES")
	if address == "" && os.Getenv("CLAUDOMATOR_CI") != "" {
		t.Fatal("CLAUDOMATOR_TEST_POSTGRES is not set, and in CI nothing may be skipped")
	}
	if address == "" {
		t.Skip("CLAUDOMATOR_TEST_POSTGRES is not set: see CONTRIBUTING.md")
	}
	return address
}

// Database makes a database of its own on a PostgreSQL server. Drop removes it,
// also from under connections that a killed server has left.
func Database(address string) (database string, drop func() error, err error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", nil, fmt.Errorf("read CLAUDOMATOR_TEST_POSTGRES: %w", err)
	}
	name := "test_" + strings.ToLower(rand.Text())
	if err := execute(address, "CREATE DATABASE "+name); err != nil {
		return "", nil, err
	}
	query := u.Query()
	query.Set("pool_max_conns", "8") // many tests at once share the server's connections
	u.Path, u.RawQuery = "/"+name, query.Encode()
	return u.String(), func() error { return execute(address, "DROP DATABASE "+name+" WITH (FORCE)") }, nil
}

func execute(address, statement string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, statement); err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}
	return nil
}

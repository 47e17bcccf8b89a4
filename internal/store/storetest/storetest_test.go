package storetest_test

import (
	"testing"

	"github.com/claudomator/claudomator/internal/store/storetest"
)

func TestSQLite(t *testing.T) {
	t.Parallel()
	storetest.Run(t, storetest.SQLite)
}

func TestPostgres(t *testing.T) {
	t.Parallel()
	storetest.Run(t, storetest.Postgres)
}

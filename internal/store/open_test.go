package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"modernc.org/sqlite"

	"github.com/claudomator/claudomator/internal/store"
	"github.com/claudomator/claudomator/internal/store/storetest"
	"github.com/claudomator/claudomator/internal/work"
)

func nowhere(context.Context, *sql.Tx, []work.Effect) error { return nil }

// tree is a change set with one task of some size.
func tree(id string, version int64, size int) work.ChangeSet {
	task := &work.Task{ID: work.TaskID(id), TreeID: work.TreeID(id), State: work.Pending, Description: strings.Repeat("x", size)}
	return work.ChangeSet{
		Tree: work.TreeID(id), Version: version, Tasks: []*work.Task{task},
		Summary: work.Summary{ID: work.TreeID(id), Current: task.ID, State: task.State},
		Events:  []work.Event{{Tree: work.TreeID(id), Kind: "test"}},
	}
}

func want(t *testing.T, err error, code work.Code, reason string) {
	t.Helper()
	if e, ok := work.AsError(err); !ok || e.Code != code || e.Reason != reason {
		t.Errorf("error is %v, want %s %q", err, code, reason)
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open := func(address string, enqueue store.Enqueue) error {
		_, err := store.Open(t.Context(), store.Config{URL: address}, enqueue)
		return err
	}
	if open(filepath.Join(dir, "a.db"), nil) == nil {
		t.Error("a store without a place for effects was opened")
	}
	if open("", nowhere) == nil {
		t.Error("a store without a name was opened")
	}
	want(t, open(filepath.Join(dir, "missing", "a.db"), nowhere), work.Unavailable, "storage")
	want(t, open("postgres://nobody@/none?host="+dir, nowhere), work.Unavailable, "database")
	garbage := filepath.Join(dir, "garbage.db")
	if err := os.WriteFile(garbage, []byte(strings.Repeat("not a database. ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	want(t, open(garbage, nowhere), work.Internal, "")
}

func TestOddPaths(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a b?c=d#e%41&ü.db")
	s := storetest.Open(t, store.Config{URL: path})
	if _, err := s.Commit(t.Context(), tree("a", 0, 0)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.LoadTree(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}

// TestHookHearsOneWriter: the hook is for the connection that writes to this
// database, not for readers and not for other databases.
func TestHookHearsOneWriter(t *testing.T) {
	t.Parallel()
	var connections, commits atomic.Int64
	cfg := storetest.SQLite(t)
	cfg.ConnectionHook = func(conn sqlite.ExecQuerierContext, _ string) error {
		connections.Add(1)
		conn.(sqlite.HookRegisterer).RegisterCommitHook(func() int32 { commits.Add(1); return 0 })
		return nil
	}
	s, other := storetest.Open(t, cfg), storetest.Open(t, storetest.SQLite(t))
	before := commits.Load()
	for _, each := range []*store.Store{s, other} {
		if _, err := each.Commit(t.Context(), tree("a", 0, 0)); err != nil {
			t.Fatal(err)
		}
		if _, err := each.LoadTree(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
	}
	if connections.Load() != 1 || commits.Load() != before+1 {
		t.Errorf("the hook heard %d connections and %d commits, want one of each", connections.Load(), commits.Load()-before)
	}
}

func TestStorageFull(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.SQLite(t))
	if _, err := s.Commit(t.Context(), tree("a", 0, 0)); err != nil {
		t.Fatal(err)
	}
	limit := func(pages int) {
		if _, err := s.DB().ExecContext(t.Context(), fmt.Sprintf(`PRAGMA max_page_count = %d`, pages)); err != nil {
			t.Fatal(err)
		}
	}
	limit(100)
	_, err := s.Commit(t.Context(), tree("a", 1, 1<<20))
	want(t, err, work.Unavailable, "storage_full")
	loaded, err := s.LoadTree(t.Context(), "a")
	if err != nil || loaded.Version != 1 || loaded.Task("a").Description != "" {
		t.Errorf("a commit without room left %+v (%v)", loaded, err)
	}
	limit(1 << 20)
	if _, err := s.Commit(t.Context(), tree("a", 1, 1<<20)); err != nil {
		t.Errorf("with room again: %v", err)
	}
}

// TestBusy: another program holds the database's write lock.
func TestBusy(t *testing.T) {
	t.Parallel()
	cfg := storetest.SQLite(t)
	s, other := storetest.Open(t, cfg), storetest.Open(t, cfg)
	if _, err := s.DB().ExecContext(t.Context(), `PRAGMA busy_timeout = 1`); err != nil {
		t.Fatal(err)
	}
	tx, err := other.DB().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Commit(t.Context(), tree("a", 0, 0))
	want(t, err, work.Unavailable, "busy")
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Commit(t.Context(), tree("a", 0, 0)); err != nil {
		t.Errorf("when it is free again: %v", err)
	}
}

// TestCancelledWait: the caller gives up while another commit is under way.
func TestCancelledWait(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.SQLite(t))
	tx, err := s.DB().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.Commit(ctx, tree("a", 0, 0))
	want(t, err, work.Unavailable, "cancelled")
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if last, err := s.LastSeq(t.Context()); last != 0 || err != nil {
		t.Errorf("a commit nobody waited for wrote event %d (%v)", last, err)
	}
}

func TestEnqueueFails(t *testing.T) {
	t.Parallel()
	broken := errors.New("no queue")
	s := storetest.OpenWith(t, storetest.SQLite(t), func(context.Context, *sql.Tx, []work.Effect) error { return broken })
	cs := tree("a", 0, 0)
	cs.Effects = []work.Effect{{Kind: work.Recheck, Tree: "a"}}
	_, err := s.Commit(t.Context(), cs)
	if !errors.Is(err, broken) {
		t.Errorf("error is %v, want the queue's", err)
	}
	_, err = s.LoadTree(t.Context(), "a")
	want(t, err, work.NotFound, "")
}

// TestEnqueuePanics: a bug of the engine does not keep the one connection.
func TestEnqueuePanics(t *testing.T) {
	t.Parallel()
	s := storetest.OpenWith(t, storetest.SQLite(t), func(context.Context, *sql.Tx, []work.Effect) error { panic("a bug") })
	cs := tree("a", 0, 0)
	cs.Effects = []work.Effect{{Kind: work.Recheck, Tree: "a"}}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		_, _ = s.Commit(t.Context(), cs)
	}()
	if _, err := s.Commit(t.Context(), tree("a", 0, 0)); err != nil {
		t.Errorf("commit after a panic: %v", err)
	}
}

// TestVirtualTime: the store runs in a bubble of testing/synctest, so that the
// engine's hours can be tested with it.
func TestVirtualTime(t *testing.T) {
	t.Parallel()
	cfg := storetest.SQLite(t)
	synctest.Test(t, func(t *testing.T) {
		s, err := store.Open(t.Context(), cfg, nowhere)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Commit(t.Context(), tree("a", 0, 0)); err != nil {
			t.Error(err)
		}
		if _, err := s.LoadTree(t.Context(), "a"); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

package storetest_test

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/claudomator/claudomator/internal/store"
	"github.com/claudomator/claudomator/internal/store/storetest"
	"github.com/claudomator/claudomator/internal/work"
)

// writerURL names the database to a copy of this test binary that commits
// until it is killed.
const writerURL = "STORETEST_WRITER_URL"

func TestMain(m *testing.M) {
	if address := os.Getenv(writerURL); address != "" {
		fmt.Fprintln(os.Stderr, writeForEver(context.Background(), address))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// writeForEver says the version of each commit that was acknowledged. The
// commit after that one may have been kept as well.
func writeForEver(ctx context.Context, address string) error {
	s, err := store.Open(ctx, store.Config{URL: address}, func(context.Context, *sql.Tx, []work.Effect) error { return nil })
	if err != nil {
		return err
	}
	version := int64(0)
	if tree, err := s.LoadTree(ctx, "tree"); err == nil {
		version = tree.Version
	}
	for {
		if version, err = s.Commit(ctx, numbered(version)); err != nil {
			return err
		}
		fmt.Println(version)
	}
}

// numbered is a commit whose every row says which version it makes.
func numbered(version int64) work.ChangeSet {
	next := int(version + 1)
	at := time.UnixMicro(int64(next)).UTC()
	task := &work.Task{ID: "tree", TreeID: "tree", Name: strconv.Itoa(next), State: work.Ready, CreatedAt: at, UpdatedAt: at}
	x := &work.Execution{ID: work.ExecutionID(fmt.Sprintf("x%d", next)), TaskID: "tree", Kind: work.AgentRun, State: work.ExecutionEnded, Number: next, CreatedAt: at}
	event := work.Event{At: at, Tree: "tree", Kind: "one", Body: map[string]any{"version": next}}
	return work.ChangeSet{
		Tree: "tree", Version: version, Tasks: []*work.Task{task}, Executions: []*work.Execution{x}, Events: []work.Event{event, event},
		Summary: work.Summary{ID: "tree", Current: "tree", State: work.Ready, Head: strconv.Itoa(next)},
	}
}

func TestKilledWriter(t *testing.T) {
	t.Parallel()
	for name, fresh := range map[string]func(testing.TB) store.Config{"sqlite": storetest.SQLite, "postgres": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := fresh(t)
			total := 0
			for round := range 8 {
				acknowledged := killWriter(t, cfg.URL, 1+round*17)
				total += acknowledged
				checkWhole(t, cfg, acknowledged)
			}
			if total == 0 {
				t.Error("no writer ever wrote")
			}
		})
	}
}

// killWriter kills a writer when it has acknowledged some commits, and gives
// the version of the last it spoke of.
func killWriter(t *testing.T, address string, commits int) int {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), writerURL+"="+address, "PGAPPNAME="+writerName(t))
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	last, seen := 0, 0
	for lines.Scan() {
		if last, err = strconv.Atoi(lines.Text()); err != nil {
			t.Errorf("the writer said %q", lines.Text())
		}
		if seen++; seen == commits {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	_, _ = io.Copy(io.Discard, out)
	if err := cmd.Wait(); err == nil || seen < commits {
		t.Fatalf("the writer ended by itself after %d commits: %v %s", seen, err, complaint.String())
	}
	return last
}

// writerName is what the database knows the writers of a test by.
func writerName(t *testing.T) string { return fmt.Sprintf("%s-%d", t.Name(), os.Getpid()) }

// checkWhole: every row is of one and the same version, not below the last
// that was acknowledged, and at most one above.
func checkWhole(t *testing.T, cfg store.Config, acknowledged int) {
	t.Helper()
	s, err := store.Open(t.Context(), cfg, func(context.Context, *sql.Tx, []work.Effect) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	// A commit that was sent is carried out to its end, though its writer is dead.
	for at := 1; s.Pool() != nil && at > 0; {
		const query = `SELECT count(*) FROM pg_stat_activity WHERE application_name = $1`
		if err := s.DB().QueryRowContext(t.Context(), query, writerName(t)).Scan(&at); err != nil {
			t.Fatal(err)
		}
	}
	tree, err := s.LoadTree(t.Context(), "tree")
	if err != nil {
		t.Fatal(err)
	}
	version := int(tree.Version)
	if version < acknowledged || version > acknowledged+1 {
		t.Errorf("version %d is stored, %d was acknowledged last", version, acknowledged)
	}
	if name := tree.Task("tree").Name; name != strconv.Itoa(version) {
		t.Errorf("the task is of version %s, the tree of %d", name, version)
	}
	executions, err := s.Executions(t.Context(), "tree")
	if err != nil || len(executions) != version {
		t.Errorf("%d executions are stored (%v), want %d", len(executions), err, version)
	}
	events, err := s.Events(t.Context(), 0, "", "", 1<<20)
	if err != nil || len(events) != 2*version {
		t.Errorf("%d events are stored (%v), want %d", len(events), err, 2*version)
	}
	for i, e := range events {
		if e.Seq != int64(i+1) || e.Body["version"] != float64(i/2+1) {
			t.Fatalf("event %d has seq %d and is of version %v", i+1, e.Seq, e.Body["version"])
		}
	}
	if s.Pool() == nil {
		var answer string
		if err := s.DB().QueryRowContext(t.Context(), `PRAGMA integrity_check`).Scan(&answer); err != nil || answer != "ok" {
			t.Errorf("integrity_check says %s (%v)", answer, err)
		}
	}
}

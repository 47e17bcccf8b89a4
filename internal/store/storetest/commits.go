package storetest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/claudomator/claudomator/internal/store"
	"github.com/claudomator/claudomator/internal/work"
)

func testStale(t *testing.T, fresh func(testing.TB) store.Config) {
	s := Open(t, fresh(t))
	root := newTask("root", 0)
	commit(t, s, changes(0, root))
	commit(t, s, changes(1, root))
	root.Name = "too late"
	for _, version := range []int64{0, 1, 3} {
		_, err := s.Commit(t.Context(), changes(version, root))
		wantError(t, err, work.Conflict, "version")
	}
	_, err := s.Commit(t.Context(), changes(1, newTask("unknown", 0)))
	wantError(t, err, work.Conflict, "version")
	if tree := load(t, s, "root"); tree.Version != 2 || tree.Task("root").Name != "task root" {
		t.Errorf("the tree has version %d and a root %q, want 2 and the name it had", tree.Version, tree.Task("root").Name)
	}
}

func testRace(t *testing.T, fresh func(testing.TB) store.Config) {
	s := Open(t, fresh(t))
	commit(t, s, changes(0, newTask("root", 0)))
	const rounds, writers = 5, 8
	for round := range rounds {
		var kept atomic.Int64
		together(writers, func(i int) {
			root := newTask("root", 0)
			root.Name = fmt.Sprintf("round %d writer %d", round, i)
			_, err := s.Commit(t.Context(), changes(int64(round+1), root))
			if err == nil {
				kept.Add(1)
				return
			}
			wantError(t, err, work.Conflict, "version")
		})
		if kept.Load() != 1 {
			t.Fatalf("%d of %d commits on version %d were kept", kept.Load(), writers, round+1)
		}
	}
	if last := must[int64](t)(s.LastSeq(t.Context())); last != rounds+1 {
		t.Errorf("%d events were written, want one for each commit: %d", last, rounds+1)
	}
}

var errBroken = errors.New("broken on purpose")

// testFailures breaks a commit that does all a commit can do before its first,
// its second, … statement, until nothing is left to break.
func testFailures(t *testing.T, fresh func(testing.TB) store.Config) {
	var armed atomic.Bool
	var left atomic.Int64
	cfg := fresh(t)
	cfg.BeforeStatement = func(string) error {
		if armed.Load() && left.Add(-1) < 0 {
			return errBroken
		}
		return nil
	}
	s := OpenWith(t, cfg, func(ctx context.Context, tx *sql.Tx, effects []work.Effect) error {
		for _, e := range effects {
			if _, err := tx.ExecContext(ctx, `INSERT INTO jobs (kind) VALUES ($1)`, string(e.Kind)); err != nil {
				return err
			}
		}
		return nil
	})
	if _, err := s.DB().ExecContext(t.Context(), `CREATE TABLE jobs (kind TEXT NOT NULL)`); err != nil {
		t.Fatal(err)
	}
	cs := everything(t, s)
	before := dump(t, s)
	armed.Store(true)
	for n := int64(0); ; n++ {
		left.Store(n)
		_, err := s.Commit(t.Context(), cs)
		if err == nil {
			if n < 20 {
				t.Errorf("the commit had only %d statements to break", n)
			}
			break
		}
		if !errors.Is(err, errBroken) || work.CodeOf(err) != work.Internal {
			t.Fatalf("broken at statement %d: %v", n, err)
		}
		if after := dump(t, s); after != before {
			t.Fatalf("broken at statement %d, the commit left something behind:\n%s\nwas:\n%s", n, after, before)
		}
	}
	if dump(t, s) == before {
		t.Error("the commit that was not broken changed nothing")
	}
}

// everything is a change set with all that a commit can hold, on a tree that
// it stores first.
func everything(t *testing.T, s *store.Store) work.ChangeSet {
	other, former := newTask("other", 0), newTask("former", 0)
	commit(t, s, changes(0, other))
	commit(t, s, changes(0, former))
	root := newTask("root", 1)
	root.DependsOn = []work.Position{"former"}
	leaves, goes := childOf(root, "leaves", 2), childOf(root, "goes", 3)
	first := changes(0, root, leaves, goes)
	first.Edges = new(int64)
	commit(t, s, first)
	waits := newTask("waits", 4) // sees the root change
	waits.DependsOn = []work.Position{"root"}
	second := changes(0, waits)
	one := int64(1)
	second.Edges = &one
	commit(t, s, second)

	root.DependsOn, root.State = []work.Position{"other"}, work.Ready
	leaves.TreeID, leaves.ParentTaskID, leaves.Kind = "leaves", "", work.TopLevel
	comes := childOf(root, "comes", 5)
	cs := changes(1, root, leaves, comes)
	two := int64(2)
	cs.Edges, cs.Removed = &two, []work.TaskID{"goes"}
	cs.NewTrees = []work.Summary{{ID: "leaves", Current: "leaves", State: work.Pending}}
	cs.Executions = []*work.Execution{newRun(root, work.AgentRun, 1), newRun(comes, work.AgentRun, 1)}
	cs.Merges = []*work.Merge{{ID: "merge", TaskID: "root", Status: work.MergeRunning}}
	cs.Story = &work.Story{ID: "story", Status: work.Draft}
	cs.Effects = []work.Effect{{Kind: work.Reclaim, Tree: "root", Task: "goes"}}
	cs.Events = append(cs.Events, cs.Events...)
	cs.Idempotency = &work.Idempotency{Key: "key"}
	return cs
}

// dump spells all tables, row by row.
func dump(t *testing.T, s *store.Store) string {
	var b strings.Builder
	for _, table := range Tables(t, s) {
		fmt.Fprintf(&b, "%s\n", table)
		for _, row := range rows(t, s, `SELECT * FROM `+table+` ORDER BY 1, 2`) {
			fmt.Fprintf(&b, "  %v\n", row)
		}
	}
	return b.String()
}

// Tables lists the store's own tables and what else lies beside them, by name,
// but for those of the migrations.
func Tables(t testing.TB, s *store.Store) []string {
	query := `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name`
	if s.Pool() != nil {
		query = `SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema() ORDER BY table_name COLLATE "C"`
	}
	var tables []string
	for _, row := range rows(t, s, query) {
		if name := fmt.Sprint(row[0]); name != "goose_db_version" && name != "jobs" {
			tables = append(tables, name)
		}
	}
	return tables
}

// rows reads all that a query gives.
func rows(t testing.TB, s *store.Store, query string) [][]any {
	t.Helper()
	result, err := s.DB().QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = result.Close() }()
	columns := must[[]string](t)(result.Columns())
	var all [][]any
	for result.Next() {
		values, targets := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			targets[i] = &values[i]
		}
		if err := result.Scan(targets...); err != nil {
			t.Fatal(err)
		}
		all = append(all, values)
	}
	if err := result.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

func testForeignRows(t *testing.T, fresh func(testing.TB) store.Config) {
	s := Open(t, fresh(t))
	a, b := newTask("a", 0), newTask("b", 0)
	run := newRun(a, work.AgentRun, 1)
	first := changes(0, a)
	first.Executions, first.Merges = []*work.Execution{run}, []*work.Merge{{ID: "merge", TaskID: "a", Status: work.MergeRunning}}
	commit(t, s, first)
	commit(t, s, changes(0, b))

	stray := childOf(b, "a", 1)
	_, err := s.Commit(t.Context(), changes(1, b, stray))
	wantError(t, err, work.Conflict, "exists")

	theirs := newRun(b, work.AgentRun, 1)
	theirs.ID = run.ID
	cs := changes(1, b)
	cs.Executions = []*work.Execution{theirs}
	_, err = s.Commit(t.Context(), cs)
	wantError(t, err, work.Conflict, "exists")

	cs = changes(1, b)
	cs.Merges = []*work.Merge{{ID: "merge", TaskID: "b", Status: work.MergeRunning}}
	_, err = s.Commit(t.Context(), cs)
	wantError(t, err, work.Conflict, "exists")

	cs = changes(1, b)
	cs.NewTrees = []work.Summary{{ID: "a", Current: "a", State: work.Pending}}
	_, err = s.Commit(t.Context(), cs)
	wantError(t, err, work.Conflict, "exists")

	cs = changes(1, b)
	cs.Tasks[0].State = "BOGUS"
	_, err = s.Commit(t.Context(), cs)
	wantError(t, err, work.Internal, "")
	same(t, "execution", run, must[*work.Execution](t)(s.Execution(t.Context(), string(run.ID))))
}

func testIdempotency(t *testing.T, fresh func(testing.TB) store.Config) {
	s := Open(t, fresh(t))
	if known, err := s.Idempotent(t.Context(), "key"); known != nil || err != nil {
		t.Errorf("an unknown key gives %v, %v", known, err)
	}
	const writers = 8
	var kept atomic.Int64
	together(writers, func(i int) {
		id := fmt.Sprintf("task%d", i)
		cs := changes(0, newTask(id, i))
		cs.Idempotency = &work.Idempotency{Key: "key", Request: "digest", Response: id, At: at(i)}
		_, err := s.Commit(t.Context(), cs)
		if err == nil {
			kept.Add(1)
			return
		}
		wantError(t, err, work.Conflict, "idempotent")
	})
	tasks := must[work.Page[*work.Task]](t)(s.Tasks(t.Context(), work.TaskFilter{}))
	known := must[*work.Idempotency](t)(s.Idempotent(t.Context(), "key"))
	if kept.Load() != 1 || len(tasks.Items) != 1 || known.Response != string(tasks.Items[0].ID) {
		t.Errorf("%d commits were kept, %d tasks made; the key names %+v", kept.Load(), len(tasks.Items), known)
	}
}

func testMove(t *testing.T, fresh func(testing.TB) store.Config) {
	s := Open(t, fresh(t))
	root := newTask("root", 0)
	child := childOf(root, "child", 1)
	run := newRun(child, work.AgentRun, 1)
	cs := changes(0, root, child)
	cs.Executions = []*work.Execution{run}
	commit(t, s, cs)

	child.TreeID, child.ParentTaskID, child.Kind = "child", "", work.TopLevel
	run.State, run.Outcome = work.ExecutionEnded, work.CancelledRun
	cs = changes(1, root, child)
	cs.Executions = []*work.Execution{run}
	cs.NewTrees = []work.Summary{{ID: "child", Current: "child", State: work.Pending, Open: true}}
	commit(t, s, cs)

	if tree := load(t, s, "root"); tree.Size() != 1 {
		t.Errorf("the old tree still has %d tasks", tree.Size())
	}
	tree := load(t, s, "child")
	run.TreeID = "child"
	same(t, "moved task", child, tree.Task("child"))
	same(t, "moved execution", run, tree.Execution(run.ID))
	if id := must[work.TreeID](t)(s.TreeOf(t.Context(), "child")); id != "child" || tree.Version != 1 {
		t.Errorf("the moved task is in tree %s, version %d", id, tree.Version)
	}
	top := must[work.Page[*work.Task]](t)(s.Tasks(t.Context(), work.TaskFilter{TopLevel: true}))
	if len(top.Items) != 2 {
		t.Errorf("%d top-level tasks are listed, want 2", len(top.Items))
	}
	below := must[work.Page[*work.Task]](t)(s.Tasks(t.Context(), work.TaskFilter{Parent: "root"}))
	if len(below.Items) != 0 {
		t.Errorf("%d tasks are still listed below the old parent", len(below.Items))
	}
}

func testRemove(t *testing.T, fresh func(testing.TB) store.Config) {
	s := Open(t, fresh(t))
	root := newTask("root", 0)
	child := childOf(root, "child", 1)
	run := newRun(child, work.AgentRun, 1)
	cs := changes(0, root, child)
	cs.Executions, cs.Merges = []*work.Execution{run}, []*work.Merge{{ID: "merge", TaskID: "child", Status: work.MergeLanded}}
	commit(t, s, cs)

	cs = changes(1, root)
	cs.Removed = []work.TaskID{"child"}
	cs.Events[0].Task = "child"
	commit(t, s, cs)
	for what, err := range map[string]error{
		"task":      second(s.Task(t.Context(), "child")),
		"execution": second(s.Execution(t.Context(), string(run.ID))),
		"merge":     second(s.Merge(t.Context(), "merge")),
	} {
		if work.CodeOf(err) != work.NotFound {
			t.Errorf("the removed %s gives %v", what, err)
		}
	}
	if events := must[[]work.Event](t)(s.Events(t.Context(), 0, "", "child", 10)); len(events) != 1 {
		t.Errorf("%d events of the removed task are left, want 1", len(events))
	}

	gone := work.ChangeSet{Tree: "root", Version: 2, Summary: work.Summary{ID: "root"}, Removed: []work.TaskID{"root"}}
	commit(t, s, gone)
	_, err := s.LoadTree(t.Context(), "root")
	wantError(t, err, work.NotFound, "")
	if open := must[[]work.TreeID](t)(s.OpenTrees(t.Context())); len(open) != 0 {
		t.Errorf("the removed tree is open: %v", open)
	}
}

func second[T any](_ T, err error) error { return err }

func testReopen(t *testing.T, fresh func(testing.TB) store.Config) {
	cfg := fresh(t)
	s := Open(t, cfg)
	root := newTask("root", 0)
	commit(t, s, changes(0, root))
	again := Open(t, cfg) // while the first is open: two servers of one fleet
	same(t, "task", root, load(t, again, "root").Task("root"))
	commit(t, again, changes(1, root))
	if tree := load(t, s, "root"); tree.Version != 2 {
		t.Errorf("the first store sees version %d, want 2", tree.Version)
	}
}

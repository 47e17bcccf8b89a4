package storetest

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/claudomator/claudomator/internal/store"
	"github.com/claudomator/claudomator/internal/work"
)

// Run holds a database to everything the program relies on. fresh gives an
// empty database for one test.
func Run(t *testing.T, fresh func(testing.TB) store.Config) {
	suites := []struct {
		name string
		test func(*testing.T, func(testing.TB) store.Config)
	}{
		{"every field of every row comes back", testRoundTrip},
		{"a filled row has no empty field", testFilled},
		{"a stale version is refused", testStale},
		{"of many commits on one version one is kept", testRace},
		{"a failure at any statement leaves nothing behind", testFailures},
		{"rows of other trees are not overwritten", testForeignRows},
		{"an idempotency key is taken once", testIdempotency},
		{"a moved task takes its executions along", testMove},
		{"removed tasks are gone and their events stay", testRemove},
		{"events have no gap and come in commit order", testEventOrder},
		{"events are read by tree and by task", testEventFilters},
		{"two edges cannot be added on one version", testEdgeRace},
		{"dependants are looked at again", testRecheck},
		{"a change beside a new edge is not missed", testRecheckRace},
		{"a tree that is depended on is not removed", testNeeded},
		{"reach follows edges", testReach},
		{"a tree is loaded with what decisions read", testLoad},
		{"a tree is loaded at one instant", testSnapshot},
		{"refresh reads what others decide", testRefresh},
		{"tasks are filtered", testFilters},
		{"pages are complete while tasks are added", testPages},
		{"bad cursors and limits are refused", testBadPages},
		{"refs are ids, names and prefixes", testRefs},
		{"landings are listed newest first", testMerges},
		{"foreign text does no harm", testForeignText},
		{"what waits for a slot is listed in order", testWaiting},
		{"leases are held, renewed and never moved back", testLeases},
		{"trees are due and open", testDue},
		{"inbox and stats", testInboxAndStats},
		{"stories are filtered and paged", testStoryFilters},
		{"stories are found by id, name and prefix", testStoryRefs},
		{"a story changes with its tree alone", testStoryChanges},
		{"branches are those of stories that are not over", testBranches},
		{"epics count their stories", testEpics},
		{"a story is a tree from its first commit", testStoryTree},
		{"a thousand stories that are over are in nobody's way", testManyStories},
		{"projects have versions and names", testProjects},
		{"roles have versions", testRoles},
		{"tokens are revoked", testTokens},
		{"opening twice keeps what is there", testReopen},
	}
	for _, suite := range suites {
		t.Run(suite.name, func(t *testing.T) {
			t.Parallel()
			suite.test(t, fresh)
		})
	}
}

// at is an instant of the tests' world, n seconds after its beginning.
func at(n int) time.Time {
	return time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(n) * time.Second)
}

// newTask is a small top-level task, made n seconds after the beginning.
func newTask(id string, n int) *work.Task {
	return &work.Task{
		ID: work.TaskID(id), TreeID: work.TreeID(id), Kind: work.TopLevel, Name: "task " + id, ProjectID: "project", Priority: work.Normal,
		AttemptNo: 1, State: work.Pending, CreatedAt: at(n), UpdatedAt: at(n),
	}
}

// childOf is a small subtask.
func childOf(parent *work.Task, id string, n int) *work.Task {
	t := newTask(id, n)
	t.TreeID, t.ParentTaskID, t.Kind = parent.TreeID, parent.ID, work.Subtask
	return t
}

// newRun is a queued execution of a task.
func newRun(t *work.Task, kind work.ExecutionKind, number int) *work.Execution {
	return &work.Execution{
		ID: work.ExecutionID(fmt.Sprintf("%s-%s-%d", t.ID, kind, number)), TaskID: t.ID, TreeID: t.TreeID,
		Kind: kind, Number: number, State: work.ExecutionQueued, CreatedAt: at(number),
	}
}

// changes is a change set of the tree whose root's current attempt is root.
func changes(version int64, root *work.Task, others ...*work.Task) work.ChangeSet {
	return work.ChangeSet{
		Tree: root.TreeID, Version: version, Tasks: append([]*work.Task{root}, others...),
		Summary: work.Summary{
			ID: root.TreeID, ProjectID: root.ProjectID, StoryID: root.StoryID, Current: root.ID, State: root.State,
			Head: root.Book.Head, Open: !root.State.Ended(),
		},
		Events: []work.Event{{At: root.UpdatedAt, Actor: work.System(), Tree: root.TreeID, Task: root.ID, Kind: "task.test"}},
	}
}

// commit keeps a change set, or ends the test.
func commit(t testing.TB, s *store.Store, cs work.ChangeSet) int64 {
	t.Helper()
	version, err := s.Commit(t.Context(), cs)
	if err != nil {
		t.Fatalf("commit tree %s: %v", cs.Tree, err)
	}
	return version
}

// load reads a tree, or ends the test.
func load(t testing.TB, s *store.Store, id work.TreeID) *work.Tree {
	t.Helper()
	tree, err := s.LoadTree(t.Context(), id)
	if err != nil {
		t.Fatalf("load tree %s: %v", id, err)
	}
	return tree
}

// must unwraps a result, or ends the test.
func must[T any](t testing.TB) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// wantError checks the class and the reason of an error.
func wantError(t testing.TB, err error, code work.Code, reason string) {
	t.Helper()
	e, ok := work.AsError(err)
	if !ok || e.Code != code || e.Reason != reason {
		t.Errorf("error is %v, want %s %q", err, code, reason)
	}
}

// recorder keeps the effects of commits that may still be rolled back.
type recorder struct {
	mu      sync.Mutex
	effects []work.Effect
}

func (r *recorder) enqueue(_ context.Context, _ *sql.Tx, effects []work.Effect) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.effects = append(r.effects, effects...)
	return nil
}

func (r *recorder) take() []work.Effect {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.effects
	r.effects = nil
	return taken
}

// together runs f n times at once and waits for all.
func together(n int, f func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { f(i) })
	}
	all.Wait()
}

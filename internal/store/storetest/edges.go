package storetest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/claudomator/claudomator/internal/store"
	"github.com/claudomator/claudomator/internal/work"
)

// depend is a change set by which a stored task comes to depend on others.
func depend(version, edges int64, root *work.Task, on ...work.Position) work.ChangeSet {
	root.DependsOn = on
	cs := changes(version, root)
	cs.Edges = &edges
	return cs
}

func edgeVersion(t *testing.T, s *store.Store) int64 {
	t.Helper()
	_, version, err := s.Reach(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return version
}

func testEdgeRace(t *testing.T, fresh func(testing.TB) store.Config) {
	s := Open(t, fresh(t))
	const pairs = 10
	for pair := range pairs {
		a, b := newTask(fmt.Sprintf("a%d", pair), 0), newTask(fmt.Sprintf("b%d", pair), 0)
		commit(t, s, changes(0, a))
		commit(t, s, changes(0, b))
		version := edgeVersion(t, s)
		var errs [2]error
		together(2, func(i int) {
			from, to := a, b
			if i == 1 {
				from, to = b, a
			}
			_, errs[i] = s.Commit(t.Context(), depend(1, version, from, work.Position(to.ID)))
		})
		refused := slices.IndexFunc(errs[:], func(err error) bool { return err != nil })
		if refused < 0 || errs[1-refused] != nil {
			t.Fatalf("two edges that make a circle gave %v", errs)
		}
		wantError(t, errs[refused], work.Conflict, "edges")
		if now := edgeVersion(t, s); now != version+1 {
			t.Errorf("the edges went from version %d to %d", version, now)
		}
	}
}

func testRecheck(t *testing.T, fresh func(testing.TB) store.Config) {
	effects := &recorder{}
	s := OpenWith(t, fresh(t), effects.enqueue)
	root, one, two := newTask("root", 0), newTask("one", 1), newTask("two", 2)
	commit(t, s, changes(0, root))
	commit(t, s, depend(0, 0, one, "root"))
	commit(t, s, depend(0, 1, two, "root", "one"))
	want := []work.Effect{{Kind: work.Recheck, Tree: "one"}, {Kind: work.Recheck, Tree: "two"}}
	same(t, "effects of new edges", want, effects.take())

	version := int64(1)
	step := func(what string, want []work.Effect, change func(*work.ChangeSet)) {
		cs := changes(version, root)
		change(&cs)
		version = commit(t, s, cs)
		same(t, "effects of "+what, want, effects.take())
	}
	step("nothing", nil, func(*work.ChangeSet) {})
	step("an inbox item", nil, func(cs *work.ChangeSet) { cs.Summary.Inbox = []work.Item{{Kind: work.ItemEnded}} })
	root.State = work.Ready
	step("a state", want, func(*work.ChangeSet) {})
	root.Book.Head = "head"
	step("a head", want, func(*work.ChangeSet) {})
	step("an acceptance", want, func(cs *work.ChangeSet) { cs.Summary.Accepted = "head" })
	own := work.Effect{Kind: work.Land, Tree: "root"}
	step("a landing", append([]work.Effect{own}, want...), func(cs *work.ChangeSet) {
		cs.Summary.Accepted, cs.Summary.Landed, cs.Effects = "head", true, []work.Effect{own}
	})

	commit(t, s, depend(1, 2, two, "one"))
	effects.take()
	step("a state, with one edge gone", want[:1], func(cs *work.ChangeSet) { cs.Summary.State = work.Completed })
}

// testRecheckRace: one tree comes to depend on another at the moment the other
// changes. Either the newcomer sees the change when it is looked at again, or
// the change lets it be looked at again.
func testRecheckRace(t *testing.T, fresh func(testing.TB) store.Config) {
	effects := &recorder{}
	s := OpenWith(t, fresh(t), effects.enqueue)
	for round := range 25 {
		x, d := newTask(fmt.Sprintf("x%d", round), 0), newTask(fmt.Sprintf("d%d", round), 0)
		commit(t, s, changes(0, x))
		commit(t, s, changes(0, d))
		position := work.Position(x.ID)
		var sawReady, told bool
		together(2, func(i int) {
			if i == 0 {
				if _, err := s.Commit(t.Context(), depend(1, int64(round), d, position)); err != nil {
					t.Errorf("add edge: %v", err)
				}
				outer, err := s.Outer(t.Context(), []work.Position{position})
				if err != nil {
					t.Error(err)
				}
				sawReady = outer[position].State == work.Ready
				return
			}
			x.State = work.Ready
			if _, err := s.Commit(t.Context(), changes(1, x)); err != nil {
				t.Errorf("change: %v", err)
			}
		})
		rechecks := 0
		for _, e := range effects.take() {
			if e.Kind == work.Recheck && e.Tree == d.TreeID {
				rechecks++
			}
		}
		told = rechecks == 2 // by its own commit, and by the other's
		if rechecks == 0 || (!sawReady && !told) {
			t.Fatalf("round %d: the change was missed (seen: %v, rechecks: %d)", round, sawReady, rechecks)
		}
	}
}

func testNeeded(t *testing.T, fresh func(testing.TB) store.Config) {
	s := Open(t, fresh(t))
	commit(t, s, changes(0, newTask("root", 0)))
	waits := newTask("waits", 1)
	commit(t, s, depend(0, 0, waits, "root"))
	gone := work.ChangeSet{Tree: "root", Version: 1, Summary: work.Summary{ID: "root"}, Removed: []work.TaskID{"root"}}
	_, err := s.Commit(t.Context(), gone)
	wantError(t, err, work.Illegal, "needed")
	load(t, s, "root")

	_, err = s.Commit(t.Context(), depend(1, edgeVersion(t, s), waits, "root", "nowhere"))
	wantError(t, err, work.Conflict, "edges")
	unversioned := depend(1, 0, newTask("waits", 1), "root", "other")
	unversioned.Edges = nil
	commit(t, s, changes(0, newTask("other", 2)))
	_, err = s.Commit(t.Context(), unversioned)
	wantError(t, err, work.Internal, "")

	commit(t, s, depend(1, edgeVersion(t, s), waits))
	before := edgeVersion(t, s)
	commit(t, s, gone)
	_, err = s.Commit(t.Context(), depend(2, before, waits, "root")) // decided before it was gone
	wantError(t, err, work.Conflict, "edges")
}

func testReach(t *testing.T, fresh func(testing.TB) store.Config) {
	s := Open(t, fresh(t))
	for i, id := range []string{"a", "b", "c", "d", "e"} {
		commit(t, s, changes(0, newTask(id, i)))
	}
	edges := map[work.Position][]work.Position{"a": {"b", "c"}, "b": {"d"}, "c": {"d"}, "e": {"a"}}
	for i, from := range []string{"a", "b", "c", "e"} {
		commit(t, s, depend(1, int64(i), newTask(from, 0), edges[work.Position(from)]...))
	}
	reach, version, err := s.Reach(t.Context(), []work.Position{"a", "nowhere"})
	if err != nil || version != 4 {
		t.Errorf("the edges have version %d (%v), want 4", version, err)
	}
	delete(edges, "e")
	same(t, "reach of a", edges, reach)
}

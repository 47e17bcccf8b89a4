package work

import (
	"fmt"
	"strings"
	"testing"
)

// outerTree is a root that stands alone, and knows other trees.
func outerTree(reach map[Position][]Position, change ...func(*Task)) *Tree {
	tree := grow(row("root", change...))
	tree.Reach, tree.Edges = reach, 7
	for pos := range reach {
		tree.Outer[pos] = Outer{ID: TreeID(pos), State: Queued}
	}
	return tree
}

// TestCirclesAreRefusedWithTheirPath: over depends_on, parent → child and child →
// its ancestors' dependencies, within a tree and across trees.
func TestCirclesAreRefusedWithTheirPath(t *testing.T) {
	t.Parallel()
	siblings := func() *Tree {
		return grow(row("root", in(Blocked, OnChildren)), row("a", below("root")), row("b", below("root"), after("a")), row("c", below("root"), after("b")))
	}
	for _, c := range []struct {
		name string
		tree *Tree
		task TaskID
		on   []Position
		path string // empty: allowed
	}{
		{"A → A", grow(row("root")), "root", []Position{"root"}, "root root"},
		{"sibling on itself", siblings(), "a", []Position{"a"}, "a a"},
		{"A → B → C → A", siblings(), "a", []Position{"c"}, "a c b a"},
		{"the same edges the other way", siblings(), "c", []Position{"a", "b"}, ""},
		{"B is a child of A, A needs B", grow(row("root"), row("a", below("root")), row("b", below("a"))), "a", []Position{"b"}, "b b"},
		{"B is a child of A, B needs A", grow(row("root"), row("a", below("root")), row("b", below("a"))), "b", []Position{"a"}, "b a b"},
		{"a child waits for what its parent waits for", grow(
			row("root"), row("a", below("root")), row("b", below("root")), row("under-b", below("b"), after("twin")), row("twin", below("b")),
		), "b", []Position{"a"}, ""},
		{"a → b, whose child's ancestor needs a", grow(
			row("root"), row("a", below("root"), after("b")), row("b", below("root")), row("under-b", below("b")),
		), "b", []Position{"a"}, "b a b"},
		{"a diamond", grow(row("root"), row("a", below("root")), row("b", below("root"), after("a")), row("c", below("root"), after("a")), row("d", below("root"))),
			"d", []Position{"b", "c"}, ""},
		{"a diamond, closed", grow(row("root"), row("a", below("root")), row("b", below("root"), after("a")), row("c", below("root"), after("a")), row("d", below("root"), after("b", "c"))),
			"a", []Position{"d"}, "a d b a"},
		{"across trees", outerTree(map[Position][]Position{"x": {"y"}, "y": {"root"}}), "root", []Position{"x"}, "root x y root"},
		{"across trees, no way back", outerTree(map[Position][]Position{"x": {"y"}, "y": nil}), "root", []Position{"x"}, ""},
		{"a fix attempt's id names its place", grow(
			row("root"), row("a", below("root"), after("b")), row("b", below("root"), func(t *Task) { t.SupersededBy = "b2" }), row("b2", below("root"), attempt("b", 2)),
		), "b2", []Position{"a"}, "b a b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			before := fmt.Sprint(c.tree.Task(c.task).DependsOn)
			patch := PatchTask{Task: c.task, DependsOn: &c.on}
			if c.path == "" {
				done(t, c.tree, patch)
				return
			}
			err := refusal(t, c.tree, patch, Invalid, "cycle")
			if path := strings.Join(err.Details["path"].([]string), " "); path != c.path {
				t.Errorf("path %q, want %q", path, c.path)
			}
			if got := fmt.Sprint(c.tree.Task(c.task).DependsOn); got != before {
				t.Errorf("the refused edit left %s", got)
			}
		})
	}
}

// TestDeepChain: a thousand tasks one after the other, and the circle through all.
func TestDeepChain(t *testing.T) {
	t.Parallel()
	rows := []*Task{row("root", in(Blocked, OnChildren)), row("t0", below("root"))}
	for i := range 999 {
		rows = append(rows, row(TaskID(fmt.Sprintf("t%d", i+1)), below("root"), after(Position(fmt.Sprintf("t%d", i)))))
	}
	tree := grow(rows...)
	last := []Position{"t999"}
	err := refusal(t, tree, PatchTask{Task: "t0", DependsOn: &last}, Invalid, "cycle")
	if n := len(err.Details["path"].([]string)); n != 1001 {
		t.Errorf("the path has %d steps", n)
	}
	s := done(t, tree, CancelTask{Task: "t0"})
	follow(t, s)
	end := tree.Task("t999")
	if end.State != Cancelled || len(end.Reason) > 200 {
		t.Errorf("the end of the chain is %s, and its reason %d bytes long", end.State, len(end.Reason))
	}
	s = done(t, tree, RetryTask{Task: "t0"})
	follow(t, s)
	if end.State != Queued || end.BlockedOn != OnDependencies {
		t.Errorf("after a retry the end of the chain is %s(%s)", end.State, end.BlockedOn)
	}
}

// TestEdges: which tasks may depend on which.
func TestEdges(t *testing.T) {
	t.Parallel()
	judge := func(t *Task) { t.Judges = &Judged{TaskID: "a", Commit: "c"} }
	family := func() *Tree {
		tree := grow(row("root", in(Blocked, OnChildren)), row("a", below("root")), row("b", below("root")), row("under-b", below("b")),
			row("judge", judge), row("gone", below("root"), in(Failed, NotBlocked), func(t *Task) { t.Dropped = true }))
		tree.Outer["x"] = Outer{ID: "x", State: Queued}
		return tree
	}
	for _, c := range []struct {
		name   string
		task   TaskID
		on     Position
		code   Code
		reason string
	}{
		{"siblings", "a", "b", "", ""},
		{"nobody", "a", "nobody", NotFound, ""},
		{"a cousin", "under-b", "a", Invalid, "cross_tree"},
		{"a child on another tree", "a", "x", Invalid, "cross_tree"},
		{"top-level on another tree", "root", "x", "", ""},
		{"on a judge", "root", "judge", Invalid, "cross_tree"},
		{"on what was dropped", "a", "gone", Invalid, "dropped"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tree, on := family(), []Position{c.on}
			if c.code != "" {
				refused(t, tree, PatchTask{Task: c.task, DependsOn: &on}, c.code, c.reason)
				return
			}
			s := done(t, tree, PatchTask{Task: c.task, DependsOn: &on})
			if edges := s.ChangeSet().Edges; (edges != nil) != (c.on == "x") {
				t.Errorf("edge version %v: only an edge across trees bumps it", edges)
			}
		})
	}
	many := make([]Position, maxItems+1)
	refused(t, family(), PatchTask{Task: "a", DependsOn: &many}, Invalid, "")
	twice := []Position{"b", "b"}
	tree := family()
	done(t, tree, PatchTask{Task: "a", DependsOn: &twice})
	if got := tree.Task("a").DependsOn; len(got) != 1 || len(tree.Dependants("b")) != 1 {
		t.Errorf("an edge given twice is kept as %v", got)
	}
}

package work

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func ids[T any](list []T, id func(T) string) string {
	out := make([]string, len(list))
	for i, x := range list {
		out[i] = id(x)
	}
	return strings.Join(out, " ")
}

func taskIDs(list []*Task) string { return ids(list, func(t *Task) string { return string(t.ID) }) }

// chained is a tree whose child position has three attempts.
func chained() *Tree {
	a, b, c := row("a", below("root"), in(Ready, NotBlocked)), row("b", below("root"), attempt("a", 2), in(Ready, NotBlocked)), row("c", below("root"), attempt("a", 3))
	a.SupersededBy, b.SupersededBy = "b", "c"
	return grow(row("root", in(Blocked, OnChildren)), a, row("x", below("root")), b, c, row("under-b", below("b")))
}

func TestCurrentAndChain(t *testing.T) {
	t.Parallel()
	tree := chained()
	if got := tree.Current("a").ID; got != "c" {
		t.Errorf("at a stands %s, want c", got)
	}
	if got := taskIDs(tree.Chain("a")); got != "a b c" {
		t.Errorf("chain %s", got)
	}
	if got := tree.Current("x").ID; got != "x" {
		t.Errorf("a chain of length zero: %s", got)
	}
	if tree.Current("nobody") != nil {
		t.Error("a position that is not there has a task")
	}
	if got := tree.Current(tree.Root()).ID; got != "root" {
		t.Errorf("root: %s", got)
	}
	for id, pos := range map[TaskID]Position{"a": "a", "b": "a", "c": "a", "x": "x"} {
		if got := tree.Task(id).Position(); got != pos {
			t.Errorf("%s stands at %s, want %s", id, got, pos)
		}
	}
}

func TestChildrenArePositionsInOrderOfCreation(t *testing.T) {
	t.Parallel()
	tree := chained()
	name := func(p Position) string { return string(p) }
	if got := ids(tree.Children("root"), name); got != "a x" {
		t.Errorf("children of root: %s", got)
	}
	if got := ids(tree.Children("b"), name); got != "under-b" {
		t.Errorf("children of b: %s", got)
	}
	if got := tree.Depth(tree.Task("under-b")); got != 2 {
		t.Errorf("depth %d", got)
	}
}

func TestOrderSurvivesAReload(t *testing.T) {
	t.Parallel()
	tree := grow(row("root", in(Running, NotBlocked)))
	s := step(tree)
	for i := range 12 { // all at one instant, with names that sort otherwise
		s.add(row(TaskID(fmt.Sprintf("c%d", 12-i)), below("root")))
	}
	again := NewTree(tree.ID, slices.Clone(tree.order), nil, nil)
	if want, got := taskIDs(tree.Tasks()), taskIDs(again.Tasks()); got != want {
		t.Errorf("after a reload %s, before %s", got, want)
	}
	if got := tree.Task("c12").CreatedAt; !got.Equal(s.Now) {
		t.Errorf("the first was created at %s, want now (%s)", got, s.Now)
	}
}

func TestRemoveForgetsEveryTrace(t *testing.T) {
	t.Parallel()
	judge := row("j", in(Completed, NotBlocked))
	judge.Judges = &Judged{TaskID: "x", Commit: "c"}
	tree := grow(row("root", in(Blocked, OnChildren)), row("x", below("root"), in(Failed, NotBlocked), after("a")), row("a", below("root")), judge)
	s := done(t, tree, RemoveTask{Task: "x"})
	if got := taskIDs(tree.Tasks()); got != "root a" {
		t.Errorf("left: %s", got)
	}
	if len(tree.Dependants("a")) != 0 || len(tree.JudgesOf("x")) != 0 || len(tree.Children("root")) != 1 {
		t.Error("an index still names what was removed")
	}
	if got := ids(s.ChangeSet().Removed, func(id TaskID) string { return string(id) }); got != "x j" {
		t.Errorf("removed %s", got)
	}
}

func TestViolations(t *testing.T) {
	t.Parallel()
	fork := chained()
	fork.insert(row("d", below("root"), attempt("a", 3)))
	orphan := grow(row("root"), row("b", attempt("nobody", 2)))
	nested := chained()
	nested.insert(row("e", below("root"), attempt("b", 2)))
	over := grow(row("root", in(Completed, NotBlocked)), row("a", below("root"), in(Failed, NotBlocked)))
	twice := grow(row("root", in(Running, NotBlocked)))
	for i := range 2 {
		twice.insertExecution(&Execution{ID: ExecutionID(fmt.Sprint(i)), TaskID: "root", Kind: []ExecutionKind{AgentRun, SubmitRun}[i], State: ExecutionRunning})
	}
	for name, c := range map[string]struct {
		tree *Tree
		want string
	}{
		"none":                            {chained(), ""},
		"a fork, the newest wins":         {fork, "attempt 3"},
		"an attempt of nothing":           {orphan, "no anchor"},
		"an attempt of an attempt":        {nested, "no anchor"},
		"COMPLETED over a failed subtask": {over, "COMPLETED over"},
		"two runs in one workspace":       {twice, "2 executions"},
	} {
		got := strings.Join(c.tree.Violations(), "; ")
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := fork.Current("a").ID; got != "d" {
		t.Errorf("in a fork %s stands, want the newest", got)
	}
}

func TestSettled(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind    Kind
		state   State
		dropped bool
		want    bool
	}{
		{Subtask, Completed, false, true}, {Subtask, Failed, false, false}, {Subtask, Cancelled, true, true},
		{Subtask, Ready, false, false}, {Subtask, Pending, false, false}, {Improvement, Completed, false, true},
		{Improvement, Failed, false, true}, {Improvement, Cancelled, false, true}, {Improvement, Blocked, false, false},
	} {
		child := row("a", below("root"), in(c.state, NotBlocked))
		child.Kind, child.Dropped = c.kind, c.dropped
		tree := grow(row("root", in(Blocked, OnChildren)), child)
		if got := tree.Settled("a"); got != c.want {
			t.Errorf("%s %s dropped=%v: settled %v", c.kind, c.state, c.dropped, got)
		}
		if got := len(tree.Unsettled("root")) == 0; got != c.want {
			t.Errorf("%s %s: the parent waits %v", c.kind, c.state, !got)
		}
	}
}

func TestCommittedLetsOldExecutionsGo(t *testing.T) {
	t.Parallel()
	tree := grow(row("root"))
	done(t, tree, StartTask{Task: "root"})
	for i := range 5 {
		s := step(tree)
		follow(t, s)
		s.TouchAll()
		follow(t, s)
		x := tree.Execution(tree.Task("root").Book.Current)
		if err := Decide(s, Begin{Execution: x.ID}); err != nil {
			t.Fatal(err)
		}
		if err := Decide(s, End{Execution: x.ID, Fence: x.Fence, Outcome: CancelledRun}); err != nil {
			t.Fatal(err)
		}
		s.Committed(int64(i))
		if n := len(tree.Runs("root", AgentRun)); n > 2 {
			t.Fatalf("%d executions are kept after %d runs", n, i+1)
		}
	}
}

func TestSummary(t *testing.T) {
	t.Parallel()
	sleeping := row("b", below("root"), in(Queued, OnRetry))
	sleeping.WakeAt = noon.Add(2 * time.Hour)
	sooner := row("c", below("root"), in(Queued, OnLimit))
	sooner.WakeAt = noon.Add(time.Hour)
	sum := grow(row("root", in(Blocked, OnChildren)), sleeping, sooner).Summary()
	if !sum.WakeAt.Equal(sooner.WakeAt) || !sum.Open || sum.Current != "root" {
		t.Errorf("%+v", sum)
	}
	if len(sum.Inbox) != 1 || sum.Inbox[0].Kind != ItemParked {
		t.Errorf("inbox %+v", sum.Inbox)
	}
	over := row("root", in(Completed, NotBlocked))
	over.Accepted = &Acceptance{Commit: "c"}
	if sum := grow(over).Summary(); sum.Open || sum.Accepted != "c" {
		t.Errorf("%+v", sum)
	}
	if sum := NewTree("gone", nil, nil, nil).Summary(); sum.Open || sum.Current != "" {
		t.Errorf("%+v", sum)
	}
}

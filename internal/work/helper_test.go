package work

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// names gives identifiers that can be read.
type names struct{ n int }

func (i *names) New() string {
	i.n++
	return fmt.Sprintf("n%d", i.n)
}

func (i *names) Derive(parts ...string) string { return strings.Join(parts, ".") }

// row makes a task by its id and changes what matters to the test.
func row(id TaskID, change ...func(*Task)) *Task {
	t := &Task{
		ID: id, TreeID: "root", Kind: TopLevel, Name: string(id), State: Pending, Priority: Normal,
		Retry: Retry{MaxAttempts: 1, Backoff: Exponential}, AttemptNo: 1, CreatedAt: noon, UpdatedAt: noon,
	}
	for _, c := range change {
		c(t)
	}
	return t
}

func in(state State, on BlockedOn) func(*Task) {
	return func(t *Task) { t.State, t.BlockedOn = state, on }
}

func below(parent TaskID) func(*Task) {
	return func(t *Task) { t.ParentTaskID, t.Kind = parent, Subtask }
}

func after(on ...Position) func(*Task) { return func(t *Task) { t.DependsOn = on } }

// attempt makes the task a fix of pos, and number n.
func attempt(pos Position, n int) func(*Task) {
	return func(t *Task) { t.AttemptOf, t.AttemptNo = pos, n }
}

// grow makes a tree of rows, created one after the other.
func grow(rows ...*Task) *Tree {
	for i, t := range rows {
		t.CreatedAt = noon.Add(time.Duration(i) * time.Second)
	}
	tree := NewTree("root", rows, nil, nil)
	tree.Project = Project{ID: "p", Branch: "main", Repository: "/r"}
	return tree
}

func step(tree *Tree) *Step {
	s := NewStep(tree, noon.Add(time.Hour), &names{}, Person("alice"))
	s.MaxFixes = func(*Task) int { return 3 }
	return s
}

// follow lets the structure follow until nothing more does.
func follow(t *testing.T, s *Step) {
	t.Helper()
	for range 10_000 {
		task, ok := s.Touched()
		if !ok {
			return
		}
		if err := s.Follow(task); err != nil {
			t.Fatalf("follow %s: %v", task, err)
		}
	}
	t.Fatal("the tree does not settle")
}

// refused asserts that a command is refused, for that reason, and changes nothing.
func refused(t *testing.T, tree *Tree, c Command, code Code, reason string) {
	t.Helper()
	_ = refusal(t, tree, c, code, reason)
}

// refusal is refused for those who look closer.
func refusal(t *testing.T, tree *Tree, c Command, code Code, reason string) *Error {
	t.Helper()
	s := step(tree)
	err := Decide(s, c)
	e, ok := AsError(err)
	if !ok || e.Code != code || e.Reason != reason {
		t.Fatalf("%T: got %v, want %s %q", c, err, code, reason)
	}
	if s.Dirty() {
		t.Errorf("%T was refused and has changed the tree", c)
	}
	return e
}

func done(t *testing.T, tree *Tree, c Command) *Step {
	t.Helper()
	s := step(tree)
	if err := Decide(s, c); err != nil {
		t.Fatalf("%T: %v", c, err)
	}
	return s
}

package work

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestInputIsChecked(t *testing.T) {
	t.Parallel()
	many := make([]string, maxItems+1)
	for i := range many {
		many[i] = "x"
	}
	for _, c := range []struct {
		name string
		in   TaskInput
		want string // part of the message; empty: taken
	}{
		{"a name is enough", TaskInput{}, ""},
		{"everything", TaskInput{
			Description: "lines\nand\ttabs", BranchName: "feature/x", Timeout: Duration(time.Minute), Tags: []string{"a"}, Gates: []string{"make"},
			AcceptanceCriteria: []string{"it\nworks"}, Priority: Urgent, Retry: Retry{MaxAttempts: 3, Backoff: Linear}, CommitType: "fix",
			Agent: AgentSpec{Type: "command", Role: "docs-writer", Command: []string{"sh", "-c", ""}, MaxBudgetUSD: 1, MaxTurns: 9},
		}, ""},
		{"no name", TaskInput{Name: " \n "}, "needs a name"},
		{"long name", TaskInput{Name: strings.Repeat("x", maxName+1)}, "at most 1000"},
		{"name of two lines", TaskInput{Name: "a\nb"}, "control character at byte 1"},
		{"name with an escape", TaskInput{Name: "a\x1b[1m"}, "control character"},
		{"name that is not UTF-8", TaskInput{Name: "\xff"}, "not valid UTF-8"},
		{"RTL and emoji are letters", TaskInput{Name: "שלום 🎉"}, ""},
		{"description with NUL", TaskInput{Description: "a\x00"}, "control character"},
		{"instructions are bytes", TaskInput{Agent: AgentSpec{Instructions: "\x00\xff"}}, ""},
		{"instructions too long", TaskInput{Agent: AgentSpec{Instructions: strings.Repeat("x", maxText+1)}}, "instructions are"},
		{"empty criterion", TaskInput{AcceptanceCriteria: []string{"a", " "}}, "acceptance_criteria entry 2 is empty"},
		{"empty gate", TaskInput{Gates: []string{""}}, "gates entry 1 is empty"},
		{"empty tag", TaskInput{Tags: []string{""}}, "tags entry 1"},
		{"too many tags", TaskInput{Tags: many}, "tags has 1001 entries"},
		{"long criterion", TaskInput{AcceptanceCriteria: []string{strings.Repeat("x", maxItem+1)}}, "entry 1 is"},
		{"no program", TaskInput{Agent: AgentSpec{Command: []string{""}}}, "names no program"},
		{"short timeout", TaskInput{Timeout: Duration(time.Millisecond)}, "too short"},
		{"negative timeout", TaskInput{Timeout: -1}, "too short"},
		{"negative retries", TaskInput{Retry: Retry{MaxAttempts: -1}}, "max_attempts"},
		{"many retries", TaskInput{Retry: Retry{MaxAttempts: 101}}, "max_attempts"},
		{"backoff", TaskInput{Retry: Retry{Backoff: "random"}}, "backoff"},
		{"priority", TaskInput{Priority: "asap"}, "priority"},
		{"budget", TaskInput{Agent: AgentSpec{MaxBudgetUSD: -1}}, "negative"},
		{"turns", TaskInput{Agent: AgentSpec{MaxTurns: -1}}, "negative"},
		{"role", TaskInput{Agent: AgentSpec{Role: "Über Builder"}}, "not a name"},
		{"commit type", TaskInput{CommitType: "a\nb"}, "commit_type"},
		{"branch", TaskInput{BranchName: "a..b"}, "branch_name"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			in := c.in
			if in.Name == "" {
				in.Name = "task"
			}
			tree := NewTree("root", nil, nil, nil)
			if c.want == "" {
				done(t, tree, CreateTask{ID: "root", Input: in})
				return
			}
			if err := refusal(t, tree, CreateTask{ID: "root", Input: in}, Invalid, ""); !strings.Contains(err.Message, c.want) {
				t.Errorf("%q does not say %q", err.Message, c.want)
			}
			if tree.Size() != 0 {
				t.Error("a refused task is in the tree")
			}
		})
	}
}

func TestValidBranch(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"main", "story/kebab-case", "a.b", "Aufträge", "a/b/c", "@a", "a@", "v1.0", "x-"} {
		if !ValidBranch(name) {
			t.Errorf("%q is refused", name)
		}
	}
	for _, name := range []string{
		"", "/", "/a", "a/", "a//b", "..", "a..b", ".a", "a/.b", "a.", "a.lock", "a.lock/b", "@", "@{", "a@{b", "HEAD", "-a",
		"a b", "a~b", "a^b", "a:b", "a?b", "a*b", "a[b", `a\b`, "a\nb", "a\x7f", "\xff", strings.Repeat("x", 201),
	} {
		if ValidBranch(name) {
			t.Errorf("%q is taken", name)
		}
	}
}

func TestValidName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"a": true, "my-app_2.0": true, "": false, "A": false, "a b": false, "-a": false, ".a": false, "a/b": false, strings.Repeat("x", 101): false,
	} {
		if ValidName(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
}

// TestRootsAndChildren: where a new task can be put.
func TestRootsAndChildren(t *testing.T) {
	t.Parallel()
	create := func(id, parent TaskID, kind Kind) CreateTask {
		return CreateTask{ID: id, Input: TaskInput{Name: "new", ParentTaskID: parent, Kind: kind}}
	}
	superseded := row("old", below("root"), in(Ready, NotBlocked))
	superseded.SupersededBy = "new"
	tree := func() *Tree {
		old := *superseded
		return grow(row("root", in(Blocked, OnChildren)), row("ready", below("root"), in(Ready, OnPerson)), row("failed", below("root"), in(Failed, NotBlocked)),
			row("conflict", below("root"), in(Blocked, OnConflict)), &old, row("fix", below("root"), attempt("old", 2), in(Running, NotBlocked)),
			row("planner", func(t *Task) { t.Agent.Role = Planner }))
	}
	for _, c := range []struct {
		name   string
		c      CreateTask
		code   Code
		reason string
	}{
		{"an id that is taken", create("root", "", ""), Conflict, "exists"},
		{"a second root", create("other", "", ""), Internal, ""},
		{"below nobody", create("x", "nobody", ""), NotFound, ""},
		{"below READY", create("x", "ready", ""), Illegal, "parent_ended"},
		{"below FAILED", create("x", "failed", ""), Illegal, "parent_ended"},
		{"below BLOCKED(conflict)", create("x", "conflict", ""), Illegal, "parent_ended"},
		{"below a superseded attempt", create("x", "old", ""), Illegal, "superseded"},
		{"below a planner", create("x", "planner", ""), Illegal, "not_a_builder"},
		{"an improvement of a child", create("x", "fix", Improvement), Illegal, "too_deep"},
		{"a child that is a task", create("x", "root", TopLevel), Invalid, ""},
		{"a child started by hand", CreateTask{ID: "x", Input: TaskInput{Name: "new", ParentTaskID: "root"}, Start: true}, Illegal, "child"},
		{"a draft started", CreateTask{ID: "x", Input: TaskInput{Name: "new", ParentTaskID: "root", Draft: true}, Start: true}, Illegal, "draft"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			refused(t, tree(), c.c, c.code, c.reason)
		})
	}
	got := tree()
	done(t, got, create("x", "fix", ""))
	done(t, got, create("y", "root", Improvement))
	if x, y := got.Task("x"), got.Task("y"); x.Kind != Subtask || y.Kind != Improvement || x.TreeID != "root" {
		t.Errorf("made %s and %s", x.Kind, y.Kind)
	}
}

// TestSpawn: names are unique per position, repeating one makes nothing.
func TestSpawn(t *testing.T) {
	t.Parallel()
	parent := row("root", in(Running, NotBlocked))
	parent.Agent.Role = Builder
	tree := grow(parent)
	tree.insertExecution(&Execution{ID: "x", TaskID: "root", Kind: AgentRun, State: ExecutionRunning})
	spawn := func(name, text string, on ...string) Spawn {
		return Spawn{Execution: "x", Input: TaskInput{Name: name, Agent: AgentSpec{Instructions: text}}, Siblings: on}
	}
	ids := &names{}
	done(t, tree, spawn("one", "do"))
	one := tree.Task(tree.SpawnedID(ids, parent, "one"))
	if one == nil || one.State != Pending || one.Role() != Builder || one.Origin != FromAgent || one.CreatedBy != "root" || one.Kind != Subtask {
		t.Fatalf("spawned %+v", one)
	}
	if s := done(t, tree, spawn(" one ", "do")); s.Dirty() {
		t.Error("a repeated spawn made something")
	}
	refused(t, tree, spawn("one", "do otherwise"), Conflict, "name_taken")
	refused(t, tree, spawn("two", "do", "nobody"), Invalid, "")
	refused(t, tree, Spawn{Execution: "foreign", Input: TaskInput{Name: "x"}}, Conflict, "stale")
	done(t, tree, spawn("two", "do", "one"))
	done(t, tree, spawn("three", "do", string(one.ID)))
	for _, name := range []string{"two", "three"} {
		if got := tree.Task(tree.SpawnedID(ids, parent, name)).DependsOn; fmt.Sprint(got) != fmt.Sprint([]Position{one.Position()}) {
			t.Errorf("%s depends on %v", name, got)
		}
	}
	// A fix of the parent repeats its script: the children of the first attempt stand.
	parent.SupersededBy, parent.State = "fix", Ready
	tree.insert(row("fix", attempt("root", 2), in(Running, NotBlocked), func(t *Task) { t.Agent.Role = Builder }))
	tree.insertExecution(&Execution{ID: "y", TaskID: "fix", Kind: AgentRun, State: ExecutionRunning})
	again := spawn("one", "do")
	again.Execution = "y"
	if s := done(t, tree, again); s.Dirty() {
		t.Error("a fix attempt made an earlier attempt's child again")
	}
}

// TestTakenAwayStaysAway: what a person removed or postponed is not made again by
// an agent that repeats itself.
func TestTakenAwayStaysAway(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]Command{"postpone": PostponeTask{Task: "child.root.one"}, "remove": RemoveTask{Task: "child.root.one"}} {
		parent := row("root", in(Running, NotBlocked))
		tree := grow(parent)
		tree.insertExecution(&Execution{ID: "x", TaskID: "root", Kind: AgentRun, State: ExecutionRunning})
		spawn := Spawn{Execution: "x", Input: TaskInput{Name: "one"}}
		done(t, tree, spawn)
		done(t, tree, c)
		if s := done(t, tree, spawn); s.Dirty() || tree.Size() != 1 {
			t.Errorf("after %s the agent made it again", name)
		}
		if got := tree.SpawnedID(&names{}, parent, "one"); got != "child.root.one" {
			t.Errorf("after %s the agent gets %s", name, got)
		}
	}
}

package work

import (
	"slices"
	"testing"
)

func judging(id TaskID) func(*Task) {
	return func(t *Task) { t.Judges, t.Agent.Role = &Judged{TaskID: id}, Checker }
}

func drafted(t *Task) { t.Draft = true }

// TestRests: nothing automatic is left to happen to what has ended or waits for a
// person, at any depth. Asked is always "a".
func TestRests(t *testing.T) {
	t.Parallel()
	root := func(change ...func(*Task)) *Task { return row("root", change...) }
	parent := root(in(Blocked, OnChildren))
	tests := []struct {
		name  string
		rows  []*Task
		rests bool
	}{
		{"pending", []*Task{row("a")}, true},
		{"draft child", []*Task{root(in(Running, NotBlocked)), row("a", below("root"), drafted)}, true},
		{"pending child of a running parent", []*Task{root(in(Running, NotBlocked)), row("a", below("root"))}, false},
		{"pending child of a parent that asks", []*Task{root(in(Blocked, OnQuestion)), row("a", below("root"))}, true},
		{"pending child of a failed parent", []*Task{root(in(Failed, NotBlocked)), row("a", below("root"))}, true},
		{"queued", []*Task{row("a", in(Queued, OnSlot))}, false},
		{"queued for a retry", []*Task{row("a", in(Queued, OnRetry))}, false},
		{"parked until a limit ends", []*Task{row("a", in(Queued, OnLimit))}, false},
		{"paused with its agent", []*Task{row("a", in(Queued, OnPaused))}, false},
		{"behind a running one", []*Task{parent, row("b", below("root"), in(Running, NotBlocked)), row("a", below("root"), in(Queued, OnDependencies), after("b"))}, false},
		{"behind one that asks", []*Task{parent, row("b", below("root"), in(Blocked, OnQuestion)), row("a", below("root"), in(Queued, OnDependencies), after("b"))}, true},
		{"behind one that is ready", []*Task{parent, row("b", below("root"), in(Ready, OnPerson)), row("a", below("root"), in(Queued, OnDependencies), after("b"))}, true},
		{"behind one that asks and one that runs", []*Task{
			parent, row("b", below("root"), in(Blocked, OnQuestion)), row("c", below("root"), in(Running, NotBlocked)),
			row("a", below("root"), in(Queued, OnDependencies), after("b", "c")),
		}, false},
		{"behind one that is over and one that asks", []*Task{
			parent, row("b", below("root"), in(Completed, NotBlocked)), row("c", below("root"), in(Blocked, OnQuestion)),
			row("a", below("root"), in(Queued, OnDependencies), after("b", "c")),
		}, true},
		{"running", []*Task{row("a", in(Running, NotBlocked))}, false},
		{"question", []*Task{row("a", in(Blocked, OnQuestion))}, true},
		{"conflict", []*Task{row("a", in(Blocked, OnConflict))}, true},
		{"children at work", []*Task{row("a", in(Blocked, OnChildren)), row("b", below("a"), in(Ready, OnPerson)), row("c", below("a"), in(Running, NotBlocked))}, false},
		{"children under review", []*Task{row("a", in(Blocked, OnChildren)), row("b", below("a"), in(Ready, OnJudges))}, false},
		{"children that need a person", []*Task{
			row("a", in(Blocked, OnChildren)), row("b", below("a"), in(Ready, OnPerson)),
			row("c", below("a"), in(Queued, OnDependencies), after("b")), row("d", below("a"), in(Completed, NotBlocked)),
		}, true},
		{"a failed child", []*Task{row("a", in(Blocked, OnChildren)), row("b", below("a"), in(Failed, NotBlocked))}, true},
		{"grandchildren at work", []*Task{row("a", in(Blocked, OnChildren)), row("b", below("a"), in(Blocked, OnChildren)), row("c", below("b"), in(Running, NotBlocked))}, false},
		{"gates", []*Task{row("a", in(Ready, OnGates))}, false},
		{"judges", []*Task{row("a", in(Ready, OnJudges))}, false},
		{"a judge at work", []*Task{row("a", in(Ready, OnJudges)), row("j", judging("a"), in(Blocked, OnQuestion)), row("k", judging("a"), in(Running, NotBlocked))}, false},
		{"a judge that asks", []*Task{row("a", in(Ready, OnJudges)), row("j", judging("a"), in(Blocked, OnQuestion)), row("k", judging("a"), in(Completed, NotBlocked))}, true},
		{"judges that have just spoken", []*Task{row("a", in(Ready, OnJudges)), row("j", judging("a"), in(Completed, NotBlocked))}, false},
		{"a child whose judge asks", []*Task{row("a", in(Blocked, OnChildren)), row("b", below("a"), in(Ready, OnJudges)), row("j", judging("b"), in(Blocked, OnQuestion))}, true},
		{"integration", []*Task{row("a", in(Ready, OnIntegration))}, false},
		{"landing", []*Task{row("a", in(Ready, OnLanding))}, false},
		{"person", []*Task{row("a", in(Ready, OnPerson))}, true},
		{"completed", []*Task{row("a", in(Completed, NotBlocked))}, true},
		{"failed", []*Task{row("a", in(Failed, NotBlocked))}, true},
		{"a place whose fix is at work", []*Task{row("a", in(Ready, NotBlocked), func(t *Task) { t.SupersededBy = "f" }), row("f", attempt("a", 2), in(Running, NotBlocked))}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tree := grow(tt.rows...)
			if rests, on := tree.Rests(tree.Task("a")); rests != tt.rests || len(on) != 0 {
				t.Errorf("rests: %t on %v, want %t", rests, on, tt.rests)
			}
		})
	}
}

// TestRestsOnOtherTrees: what waits for other trees rests when those rest that it
// still waits for; and one of them that is done, or over, lets it go on.
func TestRestsOnOtherTrees(t *testing.T) {
	t.Parallel()
	tree := grow(row("root", in(Queued, OnDependencies), after("x", "y")), row("child", below("root")))
	for _, outer := range []struct {
		x, y  State
		rests bool
		on    []Elsewhere
	}{
		{Running, Queued, true, []Elsewhere{{At: "x"}, {At: "y"}}},
		{Ready, Blocked, true, []Elsewhere{{At: "y"}}},
		{Completed, Ready, false, nil}, // it goes on in a moment
	} {
		tree.Outer["x"], tree.Outer["y"] = Outer{State: outer.x}, Outer{State: outer.y}
		for _, id := range []TaskID{"root", "child"} { // a child begins after its parent's run
			if rests, on := tree.Rests(tree.Task(id)); rests != outer.rests || !slices.Equal(on, outer.on) {
				t.Errorf("%s behind %s and %s: rests %t on %v, want %t on %v", id, outer.x, outer.y, rests, on, outer.rests, outer.on)
			}
		}
	}
	for state, holds := range map[State]bool{Pending: true, Running: false, Blocked: true, Ready: false, Completed: false, Failed: false} {
		on := NotBlocked
		if state == Blocked {
			on = OnQuestion
		}
		if got, _ := grow(row("root", in(state, on))).Holds(Elsewhere{At: "root"}); got != holds {
			t.Errorf("a tree that is %s holds what waits for it: %t, want %t", state, got, holds)
		}
	}
	if holds, _ := tree.Holds(Elsewhere{At: "gone"}); holds {
		t.Error("a place that is gone holds what waits for it")
	}
}

// TestRestsOnFoundations: approved work goes on by itself once what it is built on is
// settled, and rests while that does; where it cannot be settled, a person decides.
func TestRestsOnFoundations(t *testing.T) {
	t.Parallel()
	built := func(t *Task) { t.Hold, t.BuiltOn = HoldBuiltOn, []BuiltOn{{TaskID: "x", Commit: "c"}} }
	tree := grow(row("root", in(Ready, OnPerson), built))
	for _, tt := range []struct {
		name  string
		outer Outer
		rests bool
		on    []Elsewhere
	}{
		{"under review", Outer{State: Ready}, true, []Elsewhere{{At: "x", Accepted: true}}},
		{"accepted, and not landed by its story", Outer{State: Completed, Accepted: "c", StoryID: "s"}, true, []Elsewhere{{At: "x", Accepted: true}}},
		{"accepted", Outer{State: Completed, Accepted: "c"}, false, nil},
		{"failed", Outer{State: Failed}, true, nil},
	} {
		tree.Outer["x"] = tt.outer
		if rests, on := tree.Rests(tree.Task("root")); rests != tt.rests || !slices.Equal(on, tt.on) {
			t.Errorf("%s: rests %t on %v, want %t on %v", tt.name, rests, on, tt.rests, tt.on)
		}
	}
	for _, tt := range []struct {
		name  string
		state State
		on    BlockedOn
		story StoryStatus
		holds bool
	}{
		{"at work", Running, NotBlocked, "", false},
		{"judged", Ready, OnJudges, "", false},
		{"waits for a person", Ready, OnPerson, "", true},
		{"accepted", Completed, NotBlocked, "", false},
		{"failed", Failed, NotBlocked, "", false},
		{"its story can be shipped", Completed, NotBlocked, Shippable, true},
		{"its story is being shipped", Completed, NotBlocked, Shipping, false},
	} {
		other := grow(row("root", in(tt.state, tt.on)))
		if tt.story != "" {
			other.Story = &Story{Status: tt.story, Ship: &Ship{Step: ShipDeploy}}
		}
		if holds, _ := other.Holds(Elsewhere{At: "root", Accepted: true}); holds != tt.holds {
			t.Errorf("what is built on one that %s is held: %t, want %t", tt.name, holds, tt.holds)
		}
	}
}

// TestRestsInALanding: a conflict waits for a person until its landing goes on.
func TestRestsInALanding(t *testing.T) {
	t.Parallel()
	for status, rests := range map[MergeStatus]bool{MergeConflicted: true, MergeRunning: false} {
		root := row("root", in(Blocked, OnConflict))
		tree := NewTree("root", []*Task{root}, nil, []*Merge{{ID: "m", TaskID: "root", Status: status}})
		tree.Story = &Story{Status: Shipping, Ship: &Ship{Step: ShipLand, MergeID: "m"}}
		if got, _ := tree.Rests(root); got != rests {
			t.Errorf("a landing that is %s: rests %t, want %t", status, got, rests)
		}
		if got := tree.ShipPaused(); got != rests {
			t.Errorf("a ship whose landing is %s: paused %t, want %t", status, got, rests)
		}
		if got, _ := tree.StoryRests(); got != rests {
			t.Errorf("a ship whose landing is %s: rests %t, want %t", status, got, rests)
		}
	}
}

// TestStoryRests: by its status, and by the task that its status hangs on.
func TestStoryRests(t *testing.T) {
	t.Parallel()
	planner := func(change ...func(*Task)) *Task {
		return row("planner", append(change, func(t *Task) { t.Agent.Role = Planner })...)
	}
	tests := []struct {
		name   string
		status StoryStatus
		rows   []*Task
		rests  bool
	}{
		{"planner at work", Draft, []*Task{row("root"), planner(in(Running, NotBlocked))}, false},
		{"planner that asks", Draft, []*Task{row("root"), planner(in(Blocked, OnQuestion))}, true},
		{"planned", Draft, []*Task{row("root"), planner(in(Completed, NotBlocked))}, true},
		{"written by hand", Draft, []*Task{row("root")}, true},
		{"at work", InProgress, []*Task{row("root", in(Running, NotBlocked))}, false},
		{"root that asks", InProgress, []*Task{row("root", in(Blocked, OnQuestion))}, true},
		{"root that failed", InProgress, []*Task{row("root", in(Failed, NotBlocked))}, true},
		{"under review", Validating, []*Task{row("root", in(Ready, OnGates))}, false},
		{"held for a person", Validating, []*Task{row("root", in(Ready, OnPerson))}, true},
		{"to be fixed", NeedsFix, []*Task{row("root", in(Queued, OnSlot))}, false},
		{"review ready", ReviewReady, []*Task{row("root", in(Ready, OnPerson))}, true},
		{"shippable", Shippable, []*Task{row("root", in(Completed, NotBlocked))}, true},
		{"shipping", Shipping, []*Task{row("root", in(Completed, NotBlocked))}, false},
		{"deployed, with its retro at work", Deployed, []*Task{row("root", in(Completed, NotBlocked)), row("retro", in(Running, NotBlocked))}, true},
		{"deploy failed", DeployFailed, []*Task{row("root", in(Completed, NotBlocked))}, true},
		{"cancelled", StoryCancelled, []*Task{row("root", in(Cancelled, NotBlocked))}, true},
	}
	for _, tt := range tests {
		tree := grow(tt.rows...)
		tree.Story = &Story{Status: tt.status, Ship: &Ship{Step: ShipDeploy}}
		if got, on := tree.StoryRests(); got != tt.rests || len(on) != 0 {
			t.Errorf("%s: rests %t, want %t", tt.name, got, tt.rests)
		}
	}
}

package work

import (
	"cmp"
	"slices"
	"testing"
)

// TestContinuedMergeKeepsItsPlace: what was resolved lies in the workspace of
// that place. Without it the landing would begin again and meet the conflict.
func TestContinuedMergeKeepsItsPlace(t *testing.T) {
	t.Parallel()
	task := row("root", in(Completed, NotBlocked))
	task.Book.Head = "c1"
	tree := grow(task)
	done(t, tree, StartMerge{Task: "root"})
	m := tree.OpenMerge("root")
	done(t, tree, LandConflict{Merge: m.ID, Current: "root", Files: []string{"a"}, Dir: "/w"})
	done(t, tree, ContinueMerge{Merge: m.ID})
	if m.Status != MergeRunning || m.Current != "root" || len(m.Conflicts) != 0 || m.Hint != "" {
		t.Errorf("continued: %+v", m)
	}
	s := done(t, tree, Landed{Merge: m.ID, Commit: "c2"})
	for _, e := range s.effects {
		if e.Kind == Reclaim && e.Merge == m.ID && e.Target == "main" {
			return
		}
	}
	t.Errorf("the conflict's workspace is not reclaimed: %+v", s.effects)
}

// TestRemovedTaskIsReclaimed: when the effect is delivered its tree is gone, and
// the effect must say by itself what lies where.
func TestRemovedTaskIsReclaimed(t *testing.T) {
	t.Parallel()
	tree := grow(row("root"))
	s := done(t, tree, RemoveTask{Task: "root"})
	want := Effect{Kind: Reclaim, Tree: "root", Task: "root", Project: "p", Repository: "/r"}
	if len(s.effects) != 1 || s.effects[0] != want {
		t.Errorf("effects %+v, want %+v", s.effects, want)
	}
}

// TestLandingTakesWhatWasAccepted: the head of a branch may be another commit.
func TestLandingTakesWhatWasAccepted(t *testing.T) {
	t.Parallel()
	task := row("root", in(Completed, NotBlocked))
	task.Book.Head, task.Accepted = "later", &Acceptance{Commit: "accepted"}
	tree := grow(task)
	done(t, tree, StartMerge{Task: "root"})
	if q := tree.OpenMerge("root").Queue; len(q) != 1 || q[0].Commit != "accepted" {
		t.Errorf("it lands %+v", q)
	}
}

// TestFixIsImprovedByTheAttemptBefore: accepting the fix lands the improvements of
// every attempt of its place, unless they were dropped.
func TestFixIsImprovedByTheAttemptBefore(t *testing.T) {
	t.Parallel()
	extra := row("extra", in(Completed, NotBlocked), below("root"))
	extra.Kind = Improvement
	tree := grow(row("root", in(Ready, NotBlocked)), extra, row("fix", in(Ready, OnPerson), attempt("root", 2)))
	if fix := tree.Task("fix"); !tree.Improved(fix) {
		t.Error("the fix is not improved")
	}
	if extra.Dropped = true; tree.Improved(tree.Task("fix")) {
		t.Error("a dropped improvement counts")
	}
}

// TestAcceptanceLands: what a person leaves open, the target, the project and the
// improvements say; a child and a story's work are never landed alone.
func TestAcceptanceLands(t *testing.T) {
	t.Parallel()
	plain := func() []*Task { return []*Task{row("root", in(Ready, OnPerson))} }
	improved := func() []*Task {
		return append(plain(), row("extra", in(Completed, NotBlocked), below("root"), func(t *Task) { t.Kind = Improvement }))
	}
	child := func() []*Task {
		return []*Task{row("p", in(Blocked, OnChildren)), row("root", below("p"), in(Ready, OnPerson))}
	}
	tests := []struct {
		name   string
		rows   []*Task
		auto   bool
		accept AcceptTask
		lands  bool
	}{
		{"left open", plain(), false, AcceptTask{}, false},
		{"asked for", plain(), false, AcceptTask{Land: new(true)}, true},
		{"with a target", plain(), false, AcceptTask{Target: "next"}, true},
		{"by the project", plain(), true, AcceptTask{}, true},
		{"with improvements", improved(), false, AcceptTask{}, true},
		{"with improvements, and not wanted", improved(), true, AcceptTask{Target: "next", Land: new(false)}, false},
		{"a child", child(), true, AcceptTask{}, false},
	}
	for _, tt := range tests {
		tree := grow(tt.rows...)
		tree.Project.AutoLand = tt.auto
		tt.accept.Task = "root"
		done(t, tree, tt.accept)
		m := tree.OpenMerge("root")
		if (m != nil) != tt.lands {
			t.Errorf("%s: merge %+v, want one: %t", tt.name, m, tt.lands)
		}
		if want := cmp.Or(tt.accept.Target, "main"); m != nil && m.Target != want {
			t.Errorf("%s: it lands on %q, want %q", tt.name, m.Target, want)
		}
	}
}

// TestAcceptanceOfAPartIsNotLanded: who asks for it is told, and nothing is accepted.
func TestAcceptanceOfAPartIsNotLanded(t *testing.T) {
	t.Parallel()
	for _, c := range []AcceptTask{{Task: "root", Land: new(true)}, {Task: "root", Target: "next"}} {
		refused(t, grow(row("p", in(Blocked, OnChildren)), row("root", below("p"), in(Ready, OnPerson))), c, Illegal, "not_top_level")
		story := grow(row("root", in(Ready, OnPerson), func(t *Task) { t.StoryID = "s" }))
		refused(t, story, c, Illegal, "story_node")
	}
}

// TestInheritedChildIsIntegratedAnew: what is under way goes into the branch of the
// attempt that stepped aside, and is refused there.
func TestInheritedChildIsIntegratedAnew(t *testing.T) {
	t.Parallel()
	child := row("child", below("root"), in(Ready, OnIntegration))
	child.Accepted, child.Book.Head = &Acceptance{Commit: "c1"}, "c1"
	tree := grow(row("root", in(Ready, NotBlocked)), child)
	s := step(tree)
	if err := s.SpawnFix(tree.Task("root"), Fix{Comment: "conflict", Conflicts: []string{"a"}}); err != nil {
		t.Fatal(err)
	}
	fix := tree.Current("root")
	if child.ParentTaskID != fix.ID || !slices.ContainsFunc(s.effects, func(e Effect) bool {
		return e.Kind == Integrate && e.Task == "child" && e.Into == fix.ID && e.Commit == "c1"
	}) {
		t.Errorf("below %s, effects %+v", child.ParentTaskID, s.effects)
	}
}

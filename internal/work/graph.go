package work

import (
	"slices"
	"strings"
)

// checkDependencies refuses edges that are not allowed or that close a circle,
// over depends_on, parent → child and child → its ancestors' dependencies.
func (s *Step) checkDependencies(t *Task) error {
	if len(t.DependsOn) > maxItems {
		return Errorf(Invalid, "%d dependencies, at most %d are taken", len(t.DependsOn), maxItems)
	}
	seen := map[Position]bool{}
	var edges []Position
	for _, d := range t.DependsOn {
		if c := s.Tree.Task(TaskID(d)); c != nil {
			d = c.Position() // a fix attempt's id names its place
		}
		if !seen[d] {
			seen[d] = true
			edges = append(edges, d)
		}
	}
	t.DependsOn = edges
	if path := s.Tree.circle(t); path != nil {
		return Errorf(Invalid, "the dependencies go in a circle: %s", strings.Join(path, " → ")).WithReason("cycle").With("path", path).
			WithHint("remove one of these dependencies")
	}
	for _, d := range edges {
		if err := s.checkEdge(t, d); err != nil {
			return err
		}
	}
	return nil
}

func (s *Step) checkEdge(t *Task, d Position) error {
	dep := s.Tree.Task(TaskID(d))
	_, outer := s.Tree.Outer[d]
	switch {
	case dep == nil && !outer:
		return Errorf(NotFound, "there is no task %s to depend on", d)
	case outer && (t.ParentTaskID != "" || t.Apart()):
		return Errorf(Invalid, "task %s is in another tree: only top-level tasks depend on each other across trees", d).WithReason("cross_tree")
	case outer:
		s.edges = &s.Tree.Edges
		return nil
	case dep.Apart():
		return Errorf(Invalid, "task %s judges or plans: nothing can depend on it", d).WithReason("cross_tree")
	}
	mine, its := s.Tree.Task(t.ParentTaskID), s.Tree.Task(dep.ParentTaskID)
	if mine == nil || its == nil || mine.Position() != its.Position() {
		return Errorf(Invalid, "task %s is not a sibling: inside a tree only siblings depend on each other", d).WithReason("cross_tree")
	}
	return nil
}

// circle finds a way from t back to itself, named task by task; nil if none.
func (t *Tree) circle(from *Task) []string {
	start := from.Position()
	done := map[Position]bool{}
	var walk func(pos Position) []Position
	walk = func(pos Position) []Position {
		if pos == start {
			return []Position{pos}
		}
		if done[pos] {
			return nil
		}
		done[pos] = true
		for _, next := range t.waitsFor(pos, from) {
			if path := walk(next); path != nil {
				return append(path, pos)
			}
		}
		return nil
	}
	for _, d := range append(slices.Clone(from.DependsOn), t.inherited(from)...) {
		if path := walk(d); path != nil {
			path = append(path, start)
			slices.Reverse(path)
			return t.names(path)
		}
	}
	return nil
}

// waitsFor lists the positions that must end before pos can: what it depends
// on, its children, and what its ancestors depend on.
func (t *Tree) waitsFor(pos Position, from *Task) []Position {
	task := t.Current(pos)
	if task == nil {
		return t.Reach[pos]
	}
	out := slices.Clone(task.DependsOn)
	for _, attempt := range t.Chain(pos) {
		out = append(out, t.Children(attempt.ID)...)
	}
	// The task in question may not be in the tree yet.
	if from.ParentTaskID == task.ID {
		out = append(out, from.Position())
	}
	return append(out, t.inherited(task)...)
}

func (t *Tree) inherited(task *Task) []Position {
	var out []Position
	for p := t.Task(task.ParentTaskID); p != nil; p = t.Task(p.ParentTaskID) {
		out = append(out, p.DependsOn...)
	}
	return out
}

func (t *Tree) names(path []Position) []string {
	out := make([]string, len(path))
	for i, pos := range path {
		out[i] = string(pos)
	}
	return out
}

package work

import (
	"fmt"
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
		return Errorf(Invalid, "the dependencies go in a circle: %s", strings.Join(shorten(path), " → ")).WithReason("cycle").With("path", path).
			WithHint("remove one of these dependencies")
	}
	for _, d := range edges {
		if err := s.checkEdge(t, d); err != nil {
			return err
		}
	}
	return nil
}

// shorten keeps a long way readable; the whole of it is in the details.
func shorten(path []string) []string {
	if len(path) > 10 {
		return slices.Concat(path[:5], []string{fmt.Sprintf("%d more", len(path)-8)}, path[len(path)-3:])
	}
	return path
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
	case dep.Dropped || s.Tree.Current(d).Dropped:
		return Errorf(Invalid, "task %s was dropped: nothing can wait for it", d).WithReason("dropped")
	case dep.Apart():
		return Errorf(Invalid, "task %s judges or plans: nothing can depend on it", d).WithReason("cross_tree")
	}
	mine, its := s.Tree.Task(t.ParentTaskID), s.Tree.Task(dep.ParentTaskID)
	if mine == nil || its == nil || mine.Position() != its.Position() {
		return Errorf(Invalid, "task %s is not a sibling: inside a tree only siblings depend on each other", d).WithReason("cross_tree")
	}
	return nil
}

// circle finds a way from a position that t waits for back to itself, named step
// by step; nil if there is none. t may not be in the tree yet, or as it was.
func (t *Tree) circle(from *Task) []string {
	const (
		open = 1 // on the way being walked
		done = 2
	)
	seen := map[Position]int{}
	var way []Position
	var walk func(pos Position) bool
	walk = func(pos Position) bool {
		way = append(way, pos)
		seen[pos] = open
		for _, next := range t.waitsFor(pos, from) {
			if seen[next] == open {
				way = append(way[slices.Index(way, next):], next)
				return true
			}
			if seen[next] != done && walk(next) {
				return true
			}
		}
		seen[pos] = done
		way = way[:len(way)-1]
		return false
	}
	if !walk(from.Position()) {
		return nil
	}
	out := make([]string, len(way))
	for i, pos := range way {
		out[i] = string(pos)
	}
	return out
}

// waitsFor lists the positions that must end before pos can: what it and its
// ancestors depend on, and its children.
func (t *Tree) waitsFor(pos Position, from *Task) []Position {
	task := t.Current(pos)
	if pos == from.Position() {
		task = from
	}
	if task == nil {
		return t.Reach[pos]
	}
	out := slices.Clone(task.DependsOn)
	for _, attempt := range t.Chain(pos) {
		out = append(out, t.Children(attempt.ID)...)
	}
	if parent := t.Task(from.ParentTaskID); parent != nil && parent.Position() == pos {
		out = append(out, from.Position())
	}
	for p := t.Task(task.ParentTaskID); p != nil; p = t.Task(p.ParentTaskID) {
		if p.Position() == from.Position() {
			p = from
		}
		out = append(out, p.DependsOn...)
	}
	return out
}

package app

import (
	"context"
	"io"
	"iter"
	"slices"

	"github.com/claudomator/claudomator/internal/work"
)

// Subtasks lists the current attempts of the positions below a task.
func (s *Service) Subtasks(ctx context.Context, ref string) ([]*work.Task, error) {
	var out []*work.Task
	err := s.look(ctx, ref, func(tree *work.Tree, t *work.Task) error {
		for _, pos := range tree.Children(t.ID) {
			out = append(out, copied(tree.Current(pos)))
		}
		return nil
	})
	return out, err
}

// TaskTree is the tree a task belongs to, from its root on.
func (s *Service) TaskTree(ctx context.Context, ref string) (*TreeNode, error) {
	var root *TreeNode
	err := s.look(ctx, ref, func(tree *work.Tree, _ *work.Task) error {
		root = node(tree, tree.Root())
		return nil
	})
	return root, err
}

func node(tree *work.Tree, pos work.Position) *TreeNode {
	current := tree.Current(pos)
	n := &TreeNode{Task: copied(current)}
	for _, j := range tree.JudgesOf(current.ID) {
		n.Judges = append(n.Judges, copied(j))
	}
	if chain := tree.Chain(pos); len(chain) > 1 {
		for _, attempt := range chain {
			n.Attempts = append(n.Attempts, copied(attempt))
		}
	}
	for _, attempt := range tree.Chain(pos) {
		for _, child := range tree.Children(attempt.ID) {
			n.Children = append(n.Children, node(tree, child))
		}
	}
	return n
}

// look lets f see a task in its tree.
func (s *Service) look(ctx context.Context, ref string, f func(*work.Tree, *work.Task) error) error {
	if _, err := may(ctx, false); err != nil {
		return err
	}
	id, treeID, err := s.find(ctx, ref)
	if err != nil {
		return err
	}
	return s.View(ctx, treeID, func(tree *work.Tree) error {
		t := tree.Task(id)
		if t == nil {
			return work.Errorf(work.NotFound, "there is no task %s", id)
		}
		return f(tree, t)
	})
}

// TaskDiff writes what a task changed as a patch, base against integrated head.
func (s *Service) TaskDiff(ctx context.Context, ref string, w io.Writer) error {
	var base, head string
	var project work.Project
	err := s.look(ctx, ref, func(tree *work.Tree, t *work.Task) error {
		project, base, head = tree.Project, t.Book.Base, t.Book.Head
		if t.Judges != nil {
			return work.Errorf(work.Invalid, "task %s judges: it changes nothing", t.ID)
		}
		return nil
	})
	if err != nil || base == "" || head == "" || base == head {
		return err
	}
	return s.o.Diffs.Diff(ctx, project, base, head, w, 0)
}

// TaskEvents lists what happened to a task, oldest first.
func (s *Service) TaskEvents(ctx context.Context, ref string) ([]work.Event, error) {
	if _, err := may(ctx, false); err != nil {
		return nil, err
	}
	id, err := s.o.Lookup.ResolveTask(ctx, ref)
	if err != nil {
		return nil, err
	}
	return s.o.Lists.Events(ctx, 0, "", id, 10_000)
}

// Executions lists a task's executions, oldest first.
func (s *Service) Executions(ctx context.Context, ref string) ([]*work.Execution, error) {
	if _, err := may(ctx, false); err != nil {
		return nil, err
	}
	id, err := s.o.Lookup.ResolveTask(ctx, ref)
	if err != nil {
		return nil, err
	}
	return s.o.Lists.Executions(ctx, id)
}

// Execution is one execution.
func (s *Service) Execution(ctx context.Context, ref string) (*work.Execution, error) {
	if _, err := may(ctx, false); err != nil {
		return nil, err
	}
	return s.o.Lookup.Execution(ctx, ref)
}

// Transcript opens what an execution printed (JSONL) at a byte offset.
func (s *Service) Transcript(ctx context.Context, ref string, offset int64) (io.ReadCloser, error) {
	x, err := s.Execution(ctx, ref)
	if err != nil {
		return nil, err
	}
	if offset < 0 {
		return nil, work.Errorf(work.Invalid, "the offset is negative")
	}
	return s.o.Transcripts.Transcript(ctx, x.ID, offset)
}

// Attention lists all that needs a person, in every open tree.
func (s *Service) Attention(ctx context.Context) ([]work.Item, error) {
	if _, err := may(ctx, false); err != nil {
		return nil, err
	}
	return s.o.Lists.Inbox(ctx)
}

// Agents lists the agent programs of this machine, and which one is the default.
func (s *Service) Agents(ctx context.Context) ([]AgentInfo, error) {
	if _, err := may(ctx, false); err != nil {
		return nil, err
	}
	found, err := s.o.Agents.Agents(ctx)
	all := slices.Clone(found)
	for i := range all {
		all[i].Default = all[i].Type == s.o.Defaults.Agent
	}
	return all, err
}

// Stats are counts over everything.
func (s *Service) Stats(ctx context.Context) (*Stats, error) {
	if _, err := may(ctx, false); err != nil {
		return nil, err
	}
	stats, err := s.o.Lists.Stats(ctx)
	return &stats, err
}

// Events streams events after a sequence number; negative: from now on.
func (s *Service) Events(ctx context.Context, after int64) iter.Seq2[work.Event, error] {
	return func(yield func(work.Event, error) bool) {
		_, err := may(ctx, false)
		if err == nil && after < 0 {
			after, err = s.o.Lists.LastSeq(ctx)
		}
		if err != nil {
			yield(work.Event{}, err)
			return
		}
		s.hub.Stream(ctx, after)(yield)
	}
}

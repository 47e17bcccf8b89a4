package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

const stepGoal = 10 * time.Millisecond // own CPU per execution, beyond agent and git

// tree measures what a step costs in a large tree: a task with many children,
// all of which run; and the same number of tasks that are trees of their own.
func (b *bench) tree(ctx context.Context) (rows []row, err error) {
	dir, err := folder(b.fast(), "tree")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s, err := b.serve(ctx, filepath.Join(dir, "data"), 4)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	n := b.pick(1000, 10)
	root, children, added, err := s.plant(ctx, n)
	if err != nil {
		return nil, err
	}
	tenth := n / 10
	rows = append(rows, row{
		what:     fmt.Sprintf("adding a child: the first and the last %d of %d", tenth, n),
		measured: fmt.Sprintf("%s, then %s", added[:tenth], added[n-tenth:]), ratio: digits(float64(added[n-tenth:].p50())/float64(added[:tenth].p50())) + " of the first",
	})
	small, err := s.CreateTask(ctx, app.TaskRequest{Project: "none", Name: "small"})
	if err != nil {
		return rows, fmt.Errorf("make a task: %w", err)
	}
	large, alone, err := s.edits(ctx, children[n/2], small.ID, b.pick(200, 5))
	if err != nil {
		return rows, err
	}
	rows = append(rows, row{
		what: fmt.Sprintf("a step (edit a task) in a tree of %d tasks", n+1), measured: large.String() + "; in a tree of one " + alone.String(),
		ratio: digits(float64(large.p50())/float64(alone.p50())) + " of the small one's",
	})
	ran, used, err := s.growAll(ctx, root, children)
	if err != nil {
		return rows, err
	}
	rows = append(rows, row{
		fmt.Sprintf("own CPU per execution, %d children of one task, agent does nothing", n), "≤ 10 ms beyond agent and git",
		fmt.Sprintf("%s ms (its git and agent %s); %s executions/s", millis(used.own), millis(used.reaped), digits(float64(n)/ran.Seconds())), "", within(used.own, stepGoal),
	})
	rate, each, err := s.many(ctx, n)
	return append(rows, row{
		what:     fmt.Sprintf("the same, %d tasks that are trees of their own", n),
		measured: fmt.Sprintf("%s ms (its git and agent %s); %s executions/s", millis(each.own), millis(each.reaped), digits(rate)),
		ratio:    digits(float64(used.own)/float64(max(1, each.own))) + " (one tree to many)",
	}), err
}

// plant makes a task with n children that waits to be started.
func (s *server) plant(ctx context.Context, n int) (root work.TaskID, children []work.TaskID, added samples, err error) {
	in := request("none", nothing)
	in.Start = false
	t, err := s.CreateTask(ctx, in)
	if err != nil {
		return "", nil, nil, fmt.Errorf("make a task: %w", err)
	}
	for range n {
		in := request("none", nothing)
		in.Start, in.ParentTaskID = false, string(t.ID)
		began := time.Now()
		child, err := s.CreateTask(ctx, in)
		if err != nil {
			return "", nil, nil, fmt.Errorf("make a child: %w", err)
		}
		children, added = append(children, child.ID), append(added, time.Since(began))
	}
	return t.ID, children, added, nil
}

// edits changes a task of a large tree and one of a small tree in turns.
func (s *server) edits(ctx context.Context, large, small work.TaskID, n int) (inLarge, inSmall samples, err error) {
	for i := range n {
		text := fmt.Sprint("edit ", i)
		for id, into := range map[work.TaskID]*samples{large: &inLarge, small: &inSmall} {
			began := time.Now()
			if _, err := s.PatchTask(ctx, string(id), app.TaskPatch{Description: &text}); err != nil {
				return nil, nil, fmt.Errorf("edit a task: %w", err)
			}
			*into = append(*into, time.Since(began))
		}
	}
	return inLarge, inSmall, nil
}

// growAll runs a task and then all its children.
func (s *server) growAll(ctx context.Context, root work.TaskID, children []work.TaskID) (took time.Duration, used cpu, err error) {
	before, err := s.cpu()
	if err != nil {
		return 0, used, err
	}
	began := time.Now()
	if _, err := s.StartTask(ctx, string(root)); err != nil {
		return 0, used, fmt.Errorf("start a task: %w", err)
	}
	for _, id := range children {
		if _, err := s.events.await(ctx, id, "execution.ended"); err != nil {
			return 0, used, err
		}
	}
	if _, err := s.events.await(ctx, root, "task.completed"); err != nil {
		return 0, used, err
	}
	took = time.Since(began)
	after, err := s.cpu()
	return took, after.minus(before).by(len(children)), err
}

// many runs tasks that have nothing to do with each other.
func (s *server) many(ctx context.Context, n int) (rate float64, used cpu, err error) {
	before, err := s.cpu()
	if err != nil {
		return 0, used, err
	}
	began := time.Now()
	ids := make([]work.TaskID, n)
	for i := range ids {
		t, err := s.CreateTask(ctx, request("none", nothing))
		if err != nil {
			return 0, used, fmt.Errorf("make a task: %w", err)
		}
		ids[i] = t.ID
	}
	for _, id := range ids {
		if _, err := s.events.await(ctx, id, "task.completed"); err != nil {
			return 0, used, err
		}
	}
	rate = float64(n) / time.Since(began).Seconds()
	after, err := s.cpu()
	return rate, after.minus(before).by(n), err
}

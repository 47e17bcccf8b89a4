package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/engine"
	"github.com/claudomator/claudomator/internal/store"
	"github.com/claudomator/claudomator/internal/work"
)

const pageGoal = 10 * time.Millisecond

// database measures reads and a whole cycle beside many finished tasks, and
// the same without them.
func (b *bench) database(ctx context.Context) (rows []row, err error) {
	dir, err := folder(b.fast(), "database")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	repo := filepath.Join(dir, "repo")
	if err := os.Mkdir(repo, 0o755); err != nil { //nolint:gosec // as git makes them
		return nil, err
	}
	if err := repository(ctx, repo, 20); err != nil {
		return nil, err
	}
	many := b.pick(100_000, 500)
	data := filepath.Join(dir, "full")
	began := time.Now()
	last, err := fill(ctx, data, many)
	if err != nil {
		return nil, err
	}
	_, _ = fmt.Fprintf(b.progress, "    (%d tasks stored in %.0f s)\n", many, time.Since(began).Seconds())
	started, err := b.startsFull(ctx, data, last, b.pick(5, 2))
	if err != nil {
		return nil, err
	}
	rows = append(rows, row{fmt.Sprintf("start to serving, %d tasks", many), "≤ 300 ms", started.String(), "", within(started.p50(), fullStart)})
	empty, err := b.serve(ctx, filepath.Join(dir, "empty"), 4)
	if err != nil {
		return rows, err
	}
	defer func() { err = errors.Join(err, empty.close()) }()
	full, err := b.start(ctx, data, 4, last)
	if err != nil {
		return rows, err
	}
	defer func() { err = errors.Join(err, full.close()) }()
	for _, s := range []*server{empty, full} {
		if err := s.ready(ctx, repo); err != nil {
			return rows, err
		}
	}
	found, err := b.pages(ctx, empty, full, many)
	if err != nil {
		return append(rows, found...), err
	}
	rows = append(rows, found...)
	beside, err := b.beside(ctx, empty, full, many)
	return append(rows, beside...), err
}

// startsFull measures the start on a filled data folder.
func (b *bench) startsFull(ctx context.Context, data string, last int64, n int) (samples, error) {
	var out samples
	for i := range n + 1 {
		s, err := b.start(ctx, data, 4, last)
		if err != nil {
			return nil, err
		}
		if i > 0 { // the first one makes the queue's tables
			out = append(out, s.serving)
		}
		if err := s.close(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// fill stores finished tasks, each a tree of its own with one execution and the
// events of its life, as a server would have left them. It gives the last seq.
func fill(ctx context.Context, data string, n int) (last int64, err error) {
	if err := os.MkdirAll(data, 0o700); err != nil {
		return 0, fmt.Errorf("make a data folder: %w", err)
	}
	// What is finished has no effects: the queue is never asked.
	s, err := store.Open(ctx, store.Config{URL: filepath.Join(data, "claudomator.db")}, engine.NewQueue().Enqueue)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	ids := app.RandomIDs{}
	project := &work.Project{ID: work.ProjectID(ids.New()), Name: "finished", Branch: "main"}
	if err := s.SaveProject(ctx, project); err != nil {
		return 0, fmt.Errorf("store a project: %w", err)
	}
	begin := time.Now().Add(-time.Duration(n) * time.Second).UTC()
	for i := range n {
		if _, err := s.Commit(ctx, finished(ids, project.ID, i, begin.Add(time.Duration(i)*time.Second))); err != nil {
			return 0, fmt.Errorf("store a task: %w", err)
		}
	}
	return s.LastSeq(ctx)
}

// finished is a task as it is stored in the end.
func finished(ids app.RandomIDs, project work.ProjectID, i int, at time.Time) work.ChangeSet {
	id, run, head := work.TaskID(ids.New()), work.ExecutionID(ids.New()), fmt.Sprintf("%040x", i)
	base := fmt.Sprintf("%040x", 7)
	t := &work.Task{
		ID: id, TreeID: work.TreeID(id), Kind: work.TopLevel, Name: fmt.Sprintf("finished task %d", i), ProjectID: project,
		Agent:    work.AgentSpec{Type: "command", Instructions: "Make the parser accept trailing commas in lists and maps, with tests for both."},
		Priority: work.Normal, Origin: work.FromPerson, AttemptNo: 1, State: work.Completed,
		Accepted:  &work.Acceptance{By: work.System(), Commit: head, At: at},
		Result:    &work.Result{Base: base, Head: head, Files: 2, Insertions: 31, Deletions: 4},
		CreatedAt: at, UpdatedAt: at.Add(time.Second),
		Book: work.Book{Executions: 1, Current: run, Ran: true, Base: base, Head: head, Began: true},
	}
	x := &work.Execution{
		ID: run, TaskID: id, TreeID: t.TreeID, Kind: work.AgentRun, Number: 1, State: work.ExecutionEnded, Outcome: work.Success,
		Agent: "command", Base: base, Head: head, CreatedAt: at, StartedAt: at, EndedAt: at.Add(time.Second),
	}
	c := work.ChangeSet{
		Tree: t.TreeID, Tasks: []*work.Task{t}, Executions: []*work.Execution{x},
		Summary: work.Summary{ID: t.TreeID, ProjectID: project, Current: id, State: t.State, Head: head, Accepted: head},
	}
	for _, kind := range []string{"task.created", "task.queued", "execution.started", "execution.ended", "task.ready", "task.completed"} {
		c.Events = append(c.Events, work.Event{At: at, Actor: work.System(), Tree: t.TreeID, Task: id, Kind: kind, Body: map[string]any{"execution": run}})
	}
	return c
}

// pages measures requests on both servers in turns.
func (b *bench) pages(ctx context.Context, empty, full *server, many int) (rows []row, err error) {
	page, err := full.Tasks(ctx, app.TaskQuery{Limit: 50})
	if err != nil {
		return nil, fmt.Errorf("list tasks: %w", err)
	}
	middle, err := full.Tasks(ctx, app.TaskQuery{Limit: 50, After: page.Next, Project: "finished"})
	if err != nil {
		return nil, fmt.Errorf("list tasks: %w", err)
	}
	one := middle.Items[len(middle.Items)-1].ID
	for _, p := range []struct{ what, path string }{
		{"first page of 50 tasks", "/api/tasks?limit=50"},
		{"next page", "/api/tasks?limit=50&after=" + page.Next},
		{"first page of top-level COMPLETED tasks of a project", "/api/tasks?limit=50&top_level=true&state=COMPLETED&project=finished"},
		{"first page of open tasks", "/api/tasks?limit=50&state=QUEUED&state=RUNNING&state=BLOCKED&state=READY"},
		{"a task", "/api/tasks/" + string(one)},
		{"a task's executions", "/api/tasks/" + string(one) + "/executions"},
		{"what needs a person", "/api/attention"},
		{"counts of tasks by state", "/api/stats"},
	} {
		took, size, err := full.fetches(ctx, p.path, b.pick(500, 10))
		if err != nil {
			return rows, err
		}
		rows = append(rows, row{fmt.Sprintf("%s, %d tasks", p.what, many), "p99 ≤ 10 ms", fmt.Sprintf("%s, %.1f kB", took, float64(size)/1000), "", within(took.p99(), pageGoal)})
	}
	without, _, err := empty.fetches(ctx, "/api/attention", b.pick(500, 10))
	return append(rows, row{what: "what needs a person, empty database", measured: without.String()}), err
}

// fetches asks n times; a sample is the whole exchange on one connection.
func (s *server) fetches(ctx context.Context, path string, n int) (took samples, size int, err error) {
	for range n {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)
		if err != nil {
			return nil, 0, fmt.Errorf("ask for %s: %w", path, err)
		}
		req.Header.Set("Authorization", "Bearer "+s.token)
		began := time.Now()
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return nil, 0, fmt.Errorf("ask for %s: %w", path, err)
		}
		body, err := io.ReadAll(resp.Body)
		took = append(took, time.Since(began))
		if err := errors.Join(err, resp.Body.Close()); err != nil {
			return nil, 0, fmt.Errorf("ask for %s: %w", path, err)
		}
		if resp.StatusCode != http.StatusOK {
			return nil, 0, fmt.Errorf("ask for %s: %s: %.200s", path, resp.Status, body)
		}
		size = len(body)
	}
	return took, size, nil
}

// beside measures the whole cycle in turns on both servers.
func (b *bench) beside(ctx context.Context, empty, full *server, many int) ([]row, error) {
	without, with := empty.contest(ctx, "none"), full.contest(ctx, "none")
	for range b.pick(6, 1) {
		for _, c := range []*contest{without, with} {
			if err := c.block(b.pick(10, 2)); err != nil {
				return nil, err
			}
		}
	}
	return []row{
		{what: "whole cycle, empty database: wall", measured: without.wall.String()},
		{what: fmt.Sprintf("whole cycle, %d tasks: wall", many), measured: with.wall.String(), ratio: digits(float64(with.wall.p50())/float64(without.wall.p50())) + " of the empty one's"},
		{
			what: fmt.Sprintf("whole cycle, %d tasks: own CPU", many), measured: millis(with.each().own) + " ms, empty " + millis(without.each().own),
			ratio: digits(float64(with.each().own)/float64(max(1, without.each().own))) + " of the empty one's",
		},
	}, nil
}

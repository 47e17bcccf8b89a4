package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

const (
	startP50  = 2 * time.Millisecond
	startP99  = 10 * time.Millisecond
	cancelMax = 5 * time.Millisecond
	nothing   = ":" // a task whose agent does nothing
)

// latency measures on an idle server how soon what was decided begins.
func (b *bench) latency(ctx context.Context) (rows []row, err error) {
	dir, err := folder(b.fast(), "latency")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s, err := b.serve(ctx, filepath.Join(dir, "data"), 4)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if _, err := s.finish(ctx, request("none", nothing)); err != nil {
		return nil, err
	}
	alone, err := s.starts(ctx, b.pick(300, 10))
	if err != nil {
		return nil, err
	}
	rows = append(rows, row{
		"task queued → its execution started", "p50 ≤ 2, p99 ≤ 10 ms", alone.String(), "",
		both(within(alone.p50(), startP50), within(alone.p99(), startP99)),
	})
	pair, err := s.pairs(ctx, b.pick(150, 5))
	if err != nil {
		return rows, err
	}
	rows = append(rows, row{"the same, second of two at once", "p99 ≤ 10 ms", pair.String(), "", within(pair.p99(), startP99)})
	chain, err := s.chains(ctx, b.pick(100, 5))
	if err != nil {
		return rows, err
	}
	rows = append(rows, row{
		"a task's end → the task that depends on it started", "p50 ≤ 2, p99 ≤ 10 ms", chain.String(), "",
		both(within(chain.p50(), startP50), within(chain.p99(), startP99)),
	})
	signalled, gone, err := s.cancels(ctx, dir, b.pick(50, 3))
	if err != nil {
		return rows, err
	}
	return append(rows,
		row{"cancel asked → the agent has its signal and has said so", "begins ≤ 5 ms", signalled.String(), "", within(signalled.p50(), cancelMax)},
		row{"cancel asked → no process of it is left", "", gone.String(), "", noGoal}), nil
}

// starts runs tasks one after the other.
func (s *server) starts(ctx context.Context, n int) (out samples, err error) {
	for range n {
		t, err := s.CreateTask(ctx, request("none", nothing))
		if err != nil {
			return nil, fmt.Errorf("make a task: %w", err)
		}
		queued, started, err := s.span(ctx, t.ID)
		if err != nil {
			return nil, err
		}
		out = append(out, started.at.Sub(queued.at))
		time.Sleep(breath)
	}
	return out, nil
}

// span waits for a task's end, and tells when it was queued and when it began.
func (s *server) span(ctx context.Context, id work.TaskID) (queued, started stamp, err error) {
	if _, err = s.events.await(ctx, id, "task.completed"); err != nil {
		return queued, started, err
	}
	if queued, err = s.events.await(ctx, id, "task.queued"); err != nil {
		return queued, started, err
	}
	started, err = s.events.await(ctx, id, "execution.started")
	return queued, started, err
}

// pairs makes two tasks at once: River tells of the second no more.
func (s *server) pairs(ctx context.Context, n int) (out samples, err error) {
	for range n {
		ids := make(chan work.TaskID, 2)
		errs := make(chan error, 2)
		for range 2 {
			go func() {
				t, err := s.CreateTask(ctx, request("none", nothing))
				if err == nil {
					ids <- t.ID
				}
				errs <- err
			}()
		}
		if err := errors.Join(<-errs, <-errs); err != nil {
			return nil, fmt.Errorf("make two tasks: %w", err)
		}
		var second time.Duration
		var latest time.Time
		for range 2 {
			queued, started, err := s.span(ctx, <-ids)
			if err != nil {
				return nil, err
			}
			if queued.at.After(latest) {
				latest, second = queued.at, started.at.Sub(queued.at)
			}
		}
		out = append(out, second)
		time.Sleep(breath)
	}
	return out, nil
}

// chains lets one task wait for another.
func (s *server) chains(ctx context.Context, n int) (out samples, err error) {
	for range n {
		in := request("none", nothing)
		in.Start = false
		first, err := s.CreateTask(ctx, in)
		if err != nil {
			return nil, fmt.Errorf("make a task: %w", err)
		}
		in = request("none", nothing)
		in.DependsOn = []string{string(first.ID)}
		second, err := s.CreateTask(ctx, in)
		if err != nil {
			return nil, fmt.Errorf("make a task: %w", err)
		}
		time.Sleep(breath)
		if _, err := s.StartTask(ctx, string(first.ID)); err != nil {
			return nil, fmt.Errorf("start a task: %w", err)
		}
		ended, err := s.events.await(ctx, first.ID, "task.completed")
		if err != nil {
			return nil, err
		}
		_, started, err := s.span(ctx, second.ID)
		if err != nil {
			return nil, err
		}
		out = append(out, started.at.Sub(ended.at))
		time.Sleep(breath)
	}
	return out, nil
}

// cancels stops running agents. Each holds a pipe open: a line in it says that
// the agent has its signal, its end that every process is gone.
func (s *server) cancels(ctx context.Context, dir string, n int) (signalled, gone samples, err error) {
	for i := range n {
		pipe := filepath.Join(dir, fmt.Sprint("pipe", i))
		if err := syscall.Mkfifo(pipe, 0o600); err != nil {
			return nil, nil, fmt.Errorf("make a pipe: %w", err)
		}
		a, b, err := s.cancel(ctx, pipe)
		if err != nil {
			return nil, nil, err
		}
		signalled, gone = append(signalled, a), append(gone, b)
	}
	return signalled, gone, nil
}

func (s *server) cancel(ctx context.Context, pipe string) (signalled, gone time.Duration, err error) {
	script := fmt.Sprintf("exec 9>'%s'; trap 'echo signalled >&9; exit' TERM; echo here >&9; sleep 60 & wait", pipe)
	t, err := s.CreateTask(ctx, app.TaskRequest{Project: "none", Name: "measured", Start: true, Agent: app.AgentInput{Command: []string{"sh", "-c", script}}})
	if err != nil {
		return 0, 0, fmt.Errorf("make a task: %w", err)
	}
	defer context.AfterFunc(ctx, func() { // at the limit: open it ourselves, and close it
		if w, err := os.OpenFile(pipe, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
			_ = w.Close()
		}
	})()
	file, err := os.OpenFile(pipe, os.O_RDONLY, 0) // waits for the agent
	if err != nil {
		return 0, 0, fmt.Errorf("open a pipe: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if limit, ok := ctx.Deadline(); ok {
		_ = file.SetReadDeadline(limit)
	}
	lines := bufio.NewReader(file)
	if _, err := lines.ReadString('\n'); err != nil {
		return 0, 0, fmt.Errorf("read a pipe: %w", err)
	}
	time.Sleep(breath)
	began := time.Now()
	cancelled := make(chan error, 1)
	go func() {
		_, err := s.CancelTask(ctx, string(t.ID))
		cancelled <- err
	}()
	_, err = lines.ReadString('\n')
	signalled = time.Since(began)
	if err == nil {
		_, err = io.Copy(io.Discard, lines)
	}
	gone = time.Since(began)
	if err := errors.Join(err, <-cancelled); err != nil {
		return 0, 0, fmt.Errorf("cancel a task: %w", err)
	}
	_, err = s.events.await(ctx, t.ID, "task.cancelled")
	return signalled, gone, err
}

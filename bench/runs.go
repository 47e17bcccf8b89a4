package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

// clock is a program that says when it ran, in nanoseconds since 1970.
func clock() []string { return []string{"date", "+%s%N"} }

const scriptedClock = "#!scripted\nsteps:\n  - run: date +%s%N\n"

// runs measures what a run costs beside the agent itself, for a program that is
// just started and for one that is spoken with; and what many of them cost the
// server while they wait for their models.
func (b *bench) runs(ctx context.Context) (rows []row, err error) {
	dir, err := folder(b.fast(), "runs")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	n := b.pick(100, 3)
	bare, err := bareRuns(ctx, n)
	if err != nil {
		return nil, err
	}
	rows = append(rows,
		row{what: "floor: a program, from its start until it runs", measured: bare.before.String()},
		row{what: "floor: from then until its end is noticed", measured: bare.after.String()})
	s, err := b.serve(ctx, filepath.Join(dir, "data"), 4)
	if err != nil {
		return rows, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	for _, kind := range []struct {
		name  string
		agent app.AgentInput
	}{
		{"command", app.AgentInput{Command: clock()}},
		{"scripted, over ACP", app.AgentInput{Type: "scripted", Instructions: scriptedClock}},
	} {
		found, err := s.timed(ctx, kind.agent, n)
		if err != nil {
			return rows, err
		}
		rows = append(rows,
			row{"execution started → its program runs, " + kind.name, "", found.before.String(), beside(found.before, bare.before), noGoal},
			row{"from then → execution ended, " + kind.name, "", found.after.String(), beside(found.after, bare.after), noGoal},
			row{"CPU of such a run, " + kind.name, "", fmt.Sprintf("own %s ms, its program %s", millis(found.used.own), millis(found.used.reaped)), "", noGoal})
	}
	for _, kind := range []struct {
		name  string
		agent app.AgentInput
	}{
		{"command", app.AgentInput{Command: []string{"sleep", "600"}}},
		{"scripted, over ACP", app.AgentInput{Type: "scripted", Instructions: "#!scripted\nsteps:\n  - say: I am thinking.\n  - sleep: 10m\n"}},
	} {
		found, err := b.waiting(ctx, filepath.Join(dir, fmt.Sprint("waiting", len(rows))), kind.name, kind.agent)
		if err != nil {
			return rows, err
		}
		rows = append(rows, found...)
	}
	return rows, nil
}

// around is what surrounds the instant at which a program says it runs.
type around struct {
	before, after samples
	used          cpu // by one
}

func beside(ours, bare samples) string {
	return "+" + millis(ours.p50()-bare.p50()) + " ms to the floor"
}

// bareRuns starts the program without a server.
func bareRuns(ctx context.Context, n int) (a around, err error) {
	for range n {
		argv := clock()
		began := time.Now()
		text, err := exec.CommandContext(ctx, argv[0], argv[1:]...).Output()
		ended := time.Now()
		if err != nil {
			return a, fmt.Errorf("run a program: %w", err)
		}
		at, err := instantIn(text)
		if err != nil {
			return a, err
		}
		a.before, a.after = append(a.before, at.Sub(began)), append(a.after, ended.Sub(at))
	}
	return a, nil
}

// timed runs an agent that says when it ran, one after the other.
func (s *server) timed(ctx context.Context, agent app.AgentInput, n int) (a around, err error) {
	if _, err = s.around(ctx, agent); err != nil { // the first finds the program
		return a, err
	}
	before, err := s.cpu()
	if err != nil {
		return a, err
	}
	for range n {
		one, err := s.around(ctx, agent)
		if err != nil {
			return a, err
		}
		a.before, a.after = append(a.before, one.before...), append(a.after, one.after...)
	}
	after, err := s.cpu()
	a.used = after.minus(before).by(n)
	return a, err
}

func (s *server) around(ctx context.Context, agent app.AgentInput) (a around, err error) {
	t, err := s.CreateTask(ctx, app.TaskRequest{Project: "none", Name: "timed", Start: true, Agent: agent})
	if err != nil {
		return a, fmt.Errorf("make a task: %w", err)
	}
	ended, err := s.events.await(ctx, t.ID, "execution.ended")
	if err != nil {
		return a, err
	}
	started, err := s.events.await(ctx, t.ID, "execution.started")
	if err != nil {
		return a, err
	}
	runs, err := s.Executions(ctx, string(t.ID))
	if err != nil {
		return a, fmt.Errorf("list executions: %w", err)
	}
	log, err := s.Transcript(ctx, string(runs[0].ID), 0)
	if err != nil {
		return a, fmt.Errorf("read a transcript: %w", err)
	}
	text, err := io.ReadAll(log)
	if err := errors.Join(err, log.Close()); err != nil {
		return a, fmt.Errorf("read a transcript: %w", err)
	}
	at, err := instantIn(text)
	if err != nil {
		return a, err
	}
	return around{before: samples{at.Sub(started.at)}, after: samples{ended.at.Sub(at)}}, nil
}

// instantIn finds the time that a program said.
func instantIn(text []byte) (time.Time, error) {
	found := regexp.MustCompile(`\b1[0-9]{18}\b`).Find(text)
	n, err := strconv.ParseInt(string(found), 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("find the time in %.300q: %w", text, err)
	}
	return time.Unix(0, n), nil
}

// waiting looks at a server whose agents all run and say nothing.
func (b *bench) waiting(ctx context.Context, dir, name string, agent app.AgentInput) (rows []row, err error) {
	n := b.pick(50, 3)
	s, err := b.serve(ctx, dir, n)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }() // which ends the agents
	pid := s.cmd.Process.Pid
	idle, err := anonymous(pid)
	if err != nil {
		return nil, err
	}
	ids := make([]work.TaskID, n)
	for i := range ids {
		t, err := s.CreateTask(ctx, app.TaskRequest{Project: "none", Name: "waits", Start: true, Agent: agent})
		if err != nil {
			return nil, fmt.Errorf("make a task: %w", err)
		}
		ids[i] = t.ID
	}
	for _, id := range ids {
		if _, err := s.events.await(ctx, id, "execution.started"); err != nil {
			return nil, err
		}
	}
	time.Sleep(time.Duration(b.pick(5000, 1000)) * time.Millisecond) // all programs are up
	before, err := exactCPU(pid)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	time.Sleep(time.Duration(b.pick(10000, 500)) * time.Millisecond)
	after, err := exactCPU(pid)
	if err != nil {
		return nil, err
	}
	share := 100 * float64(after-before) / float64(time.Since(began))
	memory, err := anonymous(pid)
	if err != nil {
		return nil, err
	}
	running, err := childrenOf(pid)
	if err != nil {
		return nil, err
	}
	if running < n {
		return nil, fmt.Errorf("%d of %d agents run", running, n)
	}
	what := fmt.Sprintf("%d running agents that say nothing, %s: ", n, name)
	return []row{
		{what + "anonymous memory of the server", "", megabytes(memory) + ", without them " + megabytes(idle), digits(float64(memory-idle)/float64(n)/1e3) + " kB each", noGoal},
		{what + "CPU of the server", "", fmt.Sprintf("%.2f %% of a core", share), "", noGoal},
	}, nil
}

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

const (
	ingestGoal = 15.0 // % of a core
	openGoal   = 50 * time.Millisecond
	tail       = 64 << 10
)

// logs measures what many talking agents cost, and how long it takes to see the
// end of a long transcript.
func (b *bench) logs(ctx context.Context) (rows []row, err error) {
	dir, err := folder(b.fast(), "logs")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	agents := b.pick(100, 4)
	s, err := b.serve(ctx, filepath.Join(dir, "data"), agents)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	talk, err := b.talk(ctx, s, agents, 50)
	if err != nil {
		return nil, err
	}
	rows = append(rows, talk)
	last, err := b.lastPart(ctx, s)
	return append(rows, last), err
}

// talk runs agents that print lines, and looks at the server while all do.
func (b *bench) talk(ctx context.Context, s *server, agents, rate int) (row, error) {
	self, err := os.Executable()
	if err != nil {
		return row{}, fmt.Errorf("find this program: %w", err)
	}
	span := time.Duration(b.pick(10, 1)) * time.Second
	argv := []string{self, "-as-agent", fmt.Sprint(rate), "-for", (span + 6*time.Second).String()}
	if b.quick {
		argv[len(argv)-1] = (span + 2*time.Second).String()
	}
	ids := make([]work.TaskID, agents)
	for i := range ids {
		t, err := s.CreateTask(ctx, app.TaskRequest{Project: "none", Name: "talks", Start: true, Agent: app.AgentInput{Command: argv}})
		if err != nil {
			return row{}, fmt.Errorf("make a task: %w", err)
		}
		ids[i] = t.ID
	}
	for _, id := range ids {
		if _, err := s.events.await(ctx, id, "execution.started"); err != nil {
			return row{}, err
		}
	}
	time.Sleep(time.Second) // they start; then all of them print
	pid := s.cmd.Process.Pid
	before, err := exactCPU(pid)
	if err != nil {
		return row{}, err
	}
	began := time.Now()
	time.Sleep(span)
	after, err := exactCPU(pid)
	if err != nil {
		return row{}, err
	}
	share := 100 * float64(after-before) / float64(time.Since(began))
	var bytes int64
	for _, id := range ids {
		if _, err := s.events.await(ctx, id, "execution.ended"); err != nil {
			return row{}, err
		}
		runs, err := s.Executions(ctx, string(id))
		if err != nil {
			return row{}, fmt.Errorf("list executions: %w", err)
		}
		bytes += runs[0].LogBytes
	}
	return row{
		fmt.Sprintf("log ingest: %d agents × %d lines/s", agents, rate), "≤ 15 % of a core",
		fmt.Sprintf("%.1f %% over %.0f s; %s stored", share, span.Seconds(), megabytes(bytes)), "", within(share, ingestGoal),
	}, nil
}

// printLines is the agent: lines of about 100 bytes at a rate, one at a time.
func printLines(ctx context.Context, out io.Writer, rate int, span time.Duration) {
	beat := time.NewTicker(time.Second / time.Duration(rate))
	defer beat.Stop()
	end := time.NewTimer(span)
	defer end.Stop()
	for i := 0; ; i++ {
		select {
		case <-beat.C:
			_, _ = fmt.Fprintf(out, "line %06d: reading internal/parser/list.go, then the tests beside it; nothing surprising so far.\n", i)
		case <-end.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// lastPart reads the end of a long transcript, as a page that shows it does.
func (b *bench) lastPart(ctx context.Context, s *server) (row, error) {
	size := int64(b.pick(100, 2)) * 1_000_000
	t, err := s.CreateTask(ctx, request("none", nothing))
	if err != nil {
		return row{}, fmt.Errorf("make a task: %w", err)
	}
	if _, err := s.events.await(ctx, t.ID, "task.completed"); err != nil {
		return row{}, err
	}
	runs, err := s.Executions(ctx, string(t.ID))
	if err != nil {
		return row{}, fmt.Errorf("list executions: %w", err)
	}
	file := filepath.Join(s.dir, "transcripts", string(runs[0].ID)+".jsonl")
	if err := lengthen(file, size); err != nil {
		return row{}, err
	}
	took, got, err := s.fetches(ctx, fmt.Sprintf("/api/executions/%s/log?offset=%d", runs[0].ID, size-tail), b.pick(200, 5))
	if err != nil {
		return row{}, err
	}
	if got < tail {
		return row{}, fmt.Errorf("the end of the transcript has %d bytes", got)
	}
	return row{
		fmt.Sprintf("open a transcript of %s at its end", megabytes(size)), "≤ 50 ms",
		fmt.Sprintf("%s, %d kB", took, got>>10), "", within(took.p99(), openGoal),
	}, nil
}

// lengthen makes a transcript long.
func lengthen(name string, size int64) (err error) {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0o600) //nolint:gosec // the server's own
	if err != nil {
		return fmt.Errorf("lengthen a transcript: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	out := bufio.NewWriterSize(file, 1<<20)
	line := []byte(`{"at":"2026-01-02T03:04:05.678901Z","kind":"log","stream":"stdout","text":"reading internal/parser/list.go, then the tests beside it"}` + "\n")
	block := bytes.Repeat(line, 100)
	for written := int64(0); written < size; written += int64(len(block)) {
		if _, err := out.Write(block); err != nil {
			return fmt.Errorf("lengthen a transcript: %w", err)
		}
	}
	return out.Flush()
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

const (
	idleGoal   = 0.4        // % of a core
	memoryGoal = 25_000_000 // bytes
	sizeGoal   = 45_000_000 // bytes
	emptyStart = 100 * time.Millisecond
	fullStart  = 300 * time.Millisecond
)

// binarySize measures the stripped binary.
func (b *bench) binarySize(context.Context) ([]row, error) {
	info, err := os.Stat(b.binary)
	if err != nil {
		return nil, fmt.Errorf("look at the binary: %w", err)
	}
	return []row{{"binary, static and stripped", "≤ 45 MB", megabytes(info.Size()), "", within(info.Size(), int64(sizeGoal))}}, nil
}

func megabytes(n int64) string { return digits(float64(n)/1e6) + " MB" }

// idle measures what a server costs that has nothing to do: a new one, and one
// that has worked. Both are looked at in the same span.
func (b *bench) idle(ctx context.Context) (rows []row, err error) {
	dir, err := folder(b.fast(), "idle")
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
	starts, err := b.starts(ctx, dir, b.pick(10, 2))
	if err != nil {
		return nil, err
	}
	rows = append(rows, starts...)
	fresh, err := b.serve(ctx, filepath.Join(dir, "fresh"), 4)
	if err != nil {
		return rows, err
	}
	defer func() { err = errors.Join(err, fresh.close()) }()
	used, err := b.serve(ctx, filepath.Join(dir, "used"), 4)
	if err != nil {
		return rows, err
	}
	defer func() { err = errors.Join(err, used.close()) }()
	n := b.pick(200, 4)
	if _, _, err := used.race(ctx, []string{repo}, n); err != nil {
		return rows, err
	}
	time.Sleep(time.Duration(b.pick(5000, 2500)) * time.Millisecond) // helper processes end after two seconds
	span := time.Duration(b.pick(20, 1)) * time.Second
	found, err := rest(span, []*server{fresh, used}, []string{"a new server", fmt.Sprintf("a server that has done %d tasks", n)})
	return append(rows, found...), err
}

// starts measures how long a server takes until it serves.
func (b *bench) starts(ctx context.Context, dir string, n int) ([]row, error) {
	var first, again samples
	for i := range n {
		data := filepath.Join(dir, fmt.Sprint("start", i))
		for _, into := range []*samples{&first, &again} {
			s, err := b.start(ctx, data, 4, 0)
			if err != nil {
				return nil, err
			}
			*into = append(*into, s.serving)
			if err := s.close(); err != nil {
				return nil, err
			}
		}
	}
	return []row{
		{"start to serving, no data folder yet", "≤ 100 ms", first.String(), "", within(first.p50(), emptyStart)},
		{"start to serving, empty", "≤ 100 ms", again.String(), "", within(again.p50(), emptyStart)},
	}, nil
}

// rest looks at servers that do nothing.
func rest(span time.Duration, servers []*server, names []string) (rows []row, err error) {
	before := make([]time.Duration, len(servers))
	for i, s := range servers {
		if before[i], err = exactCPU(s.cmd.Process.Pid); err != nil {
			return nil, err
		}
	}
	began := time.Now()
	time.Sleep(span)
	for i, s := range servers {
		pid := s.cmd.Process.Pid
		after, err := exactCPU(pid)
		if err != nil {
			return rows, err
		}
		share := 100 * float64(after-before[i]) / float64(time.Since(began))
		memory, err := anonymous(pid)
		if err != nil {
			return rows, err
		}
		children, err := childrenOf(pid)
		if err != nil {
			return rows, err
		}
		rows = append(rows,
			row{"idle, " + names[i] + ": CPU", "≤ 0.4 % of a core", fmt.Sprintf("%.2f %% over %.0f s", share, span.Seconds()), "", within(share, idleGoal)},
			row{"idle, " + names[i] + ": anonymous memory", "≤ 25 MB", megabytes(memory), "", within(memory, memoryGoal)},
			row{"idle, " + names[i] + ": child processes", "0", fmt.Sprint(children), "", within(int64(children), 0)})
	}
	return rows, nil
}

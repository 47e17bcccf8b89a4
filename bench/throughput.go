package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/claudomator/claudomator/internal/work"
)

const throughputGoal = 40.0 // tasks a second, on two cores

// throughput measures how many trivial tasks are done in a second, with four
// slots: all on one repository, and spread over four.
func (b *bench) throughput(ctx context.Context) (rows []row, err error) {
	n := b.pick(400, 12)
	for _, repos := range []int{1, 4} {
		bare, ours, used, err := b.race(ctx, repos, n)
		if err != nil {
			return rows, err
		}
		where := fmt.Sprintf("4 slots, %d repositories, tmpfs", repos)
		if repos == 1 {
			where = "4 slots, one repository, tmpfs"
		}
		if b.memory == "" {
			where += " (disk)"
		}
		rows = append(rows,
			row{what: "floor, four loops at once, " + where, measured: fmt.Sprintf("%s /s (n=%d)", digits(bare), n)},
			row{
				"throughput, " + where, "≥ 40 /s",
				fmt.Sprintf("%s /s (n=%d); CPU per task %s ms: own %s, git and agent %s", digits(ours), n, millis(used.total()), millis(used.own), millis(used.reaped)),
				digits(ours/bare) + " of the floor's", within(throughputGoal, ours),
			})
	}
	return rows, nil
}

// race does n pieces of work as four bare loops, then as tasks of one server.
func (b *bench) race(ctx context.Context, repos, n int) (bare, ours float64, used cpu, err error) {
	dir, err := folder(b.fast(), "race")
	if err != nil {
		return 0, 0, used, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	var floors, repositories []string
	for i := range repos {
		floors = append(floors, filepath.Join(dir, fmt.Sprintf("floor%d", i)))
		repositories = append(repositories, filepath.Join(dir, fmt.Sprintf("repo%d", i)))
	}
	for _, repo := range append(append([]string{}, floors...), repositories...) {
		if err := os.Mkdir(repo, 0o755); err != nil { //nolint:gosec // as git makes them
			return 0, 0, used, err
		}
		if err := repository(ctx, repo, 20); err != nil {
			return 0, 0, used, err
		}
	}
	if bare, err = raceFloors(floors, n); err != nil {
		return 0, 0, used, err
	}
	s, err := b.serve(ctx, filepath.Join(dir, "data"), 4)
	if err != nil {
		return 0, 0, used, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	ours, used, err = s.race(ctx, repositories, n)
	return bare, ours, used, err
}

// raceFloors runs four loops at once; it gives iterations a second.
func raceFloors(repos []string, n int) (float64, error) {
	const loops = 4
	var all sync.WaitGroup
	errs := make([]error, loops)
	began := time.Now()
	for i := range loops {
		all.Go(func() {
			f, err := startFloor(repos[i%len(repos)], fmt.Sprint("w", i))
			if err != nil {
				errs[i] = err
				return
			}
			for range n / loops {
				if err = f.once(); err != nil {
					break
				}
			}
			errs[i] = errors.Join(err, f.close())
		})
	}
	all.Wait()
	return float64(n/loops*loops) / time.Since(began).Seconds(), errors.Join(errs...)
}

// race gives the server n tasks as fast as it takes them, and waits for all.
func (s *server) race(ctx context.Context, repos []string, n int) (rate float64, used cpu, err error) {
	for i, repo := range repos {
		name := fmt.Sprint("p", i)
		if err := s.project(ctx, name, repo); err != nil {
			return 0, used, err
		}
		if _, err := s.finish(ctx, request(name, commitOne)); err != nil {
			return 0, used, err
		}
	}
	before, err := s.cpu()
	if err != nil {
		return 0, used, err
	}
	began := time.Now()
	ids := make([]work.TaskID, n)
	for i := range ids {
		t, err := s.CreateTask(ctx, request(fmt.Sprint("p", i%len(repos)), commitOne))
		if err != nil {
			return 0, used, fmt.Errorf("make a task: %w", err)
		}
		ids[i] = t.ID
	}
	last := began
	for _, id := range ids {
		done, err := s.events.await(ctx, id, "task.completed")
		if err != nil {
			return 0, used, err
		}
		if done.arrived.After(last) {
			last = done.arrived
		}
	}
	after, err := s.cpu()
	return float64(n) / last.Sub(began).Seconds(), after.minus(before).by(n), err
}

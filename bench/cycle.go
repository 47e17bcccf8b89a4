package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/claudomator/claudomator/internal/app"
)

const (
	cycleGoal = 1.5 // times the floor
	breath    = 10 * time.Millisecond
)

// cycles measures a trivial task from the request to its acceptance on an idle
// server, in turns with the floor: on tmpfs and on the working disk.
func (b *bench) cycles(ctx context.Context) (rows []row, err error) {
	for _, p := range b.places() {
		found, err := b.cycle(ctx, p, 20, b.pick(10, 1), b.pick(10, 2))
		rows = append(rows, found...)
		if err != nil {
			return rows, err
		}
	}
	return rows, nil
}

// contest is one way to do the work, measured in blocks.
type contest struct {
	name string
	once func() (time.Duration, error)
	cpu  func() (cpu, error)
	wall samples
	used cpu
}

// block does the work n times.
func (c *contest) block(n int) error {
	before, err := c.cpu()
	if err != nil {
		return err
	}
	for range n {
		took, err := c.once()
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		c.wall = append(c.wall, took)
		time.Sleep(breath) // what a run leaves to be done must not fall into the next one's time
	}
	after, err := c.cpu()
	c.used = c.used.plus(after.minus(before))
	return err
}

func (c *contest) each() cpu { return c.used.by(len(c.wall)) }

// cycle measures in blocks of so many of each, all on one repository's copies.
func (b *bench) cycle(ctx context.Context, p place, files, blocks, each int) (rows []row, err error) {
	dir, err := folder(p.dir, "cycle")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for _, name := range []string{"floor", "repo"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil { //nolint:gosec // as git makes them
			return nil, err
		}
		if err := repository(ctx, filepath.Join(dir, name), files); err != nil {
			return nil, err
		}
	}
	s, err := b.serve(ctx, filepath.Join(dir, "data"), 4)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.ready(ctx, filepath.Join(dir, "repo")); err != nil {
		return nil, err
	}
	f, err := startFloor(filepath.Join(dir, "floor"), "w")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	bare := &contest{name: "floor", cpu: f.cpu, once: func() (time.Duration, error) {
		err := f.once()
		return f.wall[max(0, len(f.wall)-1)], err
	}}
	none, checked := s.contest(ctx, "none"), s.contest(ctx, "checked")
	for range blocks {
		for _, c := range []*contest{bare, none, checked} {
			if err := c.block(each); err != nil {
				return nil, err
			}
		}
	}
	agent, err := agentAlone(ctx, filepath.Join(dir, "floor"), len(none.wall))
	if err != nil {
		return nil, err
	}
	return cycleRows(fmt.Sprintf("%d files, %s", files, p.name), bare, []*contest{none, checked}, agent), nil
}

// ready adds the project and the checker, and does each kind of task once: a
// vault is made at its first use.
func (s *server) ready(ctx context.Context, repo string) error {
	if err := s.project(ctx, "p", repo); err != nil {
		return err
	}
	argv := []string{"true"}
	if _, err := s.SetRole(ctx, "checker", app.RoleInput{Command: &argv}); err != nil {
		return fmt.Errorf("set the checker: %w", err)
	}
	for _, policy := range []string{"none", "checked"} {
		if _, err := s.contest(ctx, policy).once(); err != nil {
			return err
		}
	}
	return nil
}

func (s *server) contest(ctx context.Context, policy string) *contest {
	return &contest{name: "policy " + policy, cpu: s.cpu, once: func() (time.Duration, error) {
		in := request("p", commitOne)
		in.Review = policy
		return s.finish(ctx, in)
	}}
}

// agentAlone is the processor time of what the agent does, with nothing around.
func agentAlone(ctx context.Context, repo string, n int) (time.Duration, error) {
	var sum time.Duration
	for i := range n {
		cmd := exec.CommandContext(ctx, "sh", "-c", fmt.Sprintf("echo %d >f; git add f; git commit -qm x", i))
		cmd.Dir, cmd.Env = repo, gitEnviron()
		if text, err := cmd.CombinedOutput(); err != nil {
			return 0, fmt.Errorf("run the agent alone: %w: %s", err, text)
		}
		sum += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	return sum / time.Duration(n), nil
}

func cycleRows(where string, bare *contest, tasks []*contest, agent time.Duration) []row {
	rows := []row{
		{what: "floor, " + where + ": wall", measured: bare.wall.String()},
		{what: "floor, " + where + ": CPU", measured: fmt.Sprintf("%s ms, of which the commit alone %s", millis(bare.each().total()), millis(agent))},
	}
	for _, c := range tasks {
		wall := float64(c.wall.p50()) / float64(bare.wall.p50())
		used := c.each()
		ratio := float64(used.total()) / float64(bare.each().total())
		rows = append(rows,
			row{
				"whole cycle, " + c.name + ", " + where + ": wall", goalTimes(c), c.wall.String(), digits(wall), c.verdict(wall),
			},
			row{
				"whole cycle, " + c.name + ", " + where + ": CPU", goalTimes(c),
				fmt.Sprintf("%s ms: own %s, git %s, agent %s", millis(used.total()), millis(used.own), millis(used.reaped-agent), millis(agent)),
				digits(ratio), c.verdict(ratio),
			})
	}
	return rows
}

// goalTimes: the goal speaks of one task and its run; a checked one has two
// runs in two workspaces, and is there to compare.
func goalTimes(c *contest) string {
	if c.name != "policy none" {
		return ""
	}
	return "≤ 1.5 × floor"
}

func (c *contest) verdict(ratio float64) verdict {
	if goalTimes(c) == "" {
		return noGoal
	}
	return within(ratio, cycleGoal)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/claudomator/claudomator/internal/git"
)

const (
	coldGoal    = 250 * time.Millisecond
	warmGoal    = 90 * time.Millisecond
	collectGoal = 15 * time.Millisecond
)

// large measures a large repository: the git part alone, then whole tasks
// against the bare loop.
func (b *bench) large(ctx context.Context) (rows []row, err error) {
	files := b.pick(20_000, 200)
	p := b.places()[0]
	dir, err := folder(p.dir, "large")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	repo := filepath.Join(dir, "repo")
	if err := os.Mkdir(repo, 0o755); err != nil { //nolint:gosec // as git makes them
		return nil, err
	}
	if err := repository(ctx, repo, files); err != nil {
		return nil, err
	}
	g, err := git.New(ctx, git.Options{Environ: os.Environ()})
	if err != nil {
		return nil, fmt.Errorf("find git: %w", err)
	}
	vault, err := g.OpenVault(ctx, filepath.Join(dir, "vault.git"), repo)
	if err != nil {
		return nil, fmt.Errorf("open a vault: %w", err)
	}
	defer vault.Close()
	part := &gitPart{vault: vault, dir: dir}
	for i := range b.pick(15, 2) {
		if err := part.task(ctx, fmt.Sprint("t", i)); err != nil {
			return nil, err
		}
	}
	where := fmt.Sprintf("%d files, %s", files, p.name)
	rows = []row{
		{"start of work, cold: prepare a workspace, " + where, "≤ 250 ms", part.cold.String(), "", within(part.cold.p50(), coldGoal)},
		{"start of work, again in the same workspace, " + where, "≤ 90 ms", part.warm.String(), "", within(part.warm.p50(), warmGoal)},
		{"collect and merge, " + where, "≤ 15 ms", part.collect.String(), "", within(part.collect.p50(), collectGoal)},
	}
	found, err := b.cycle(ctx, p, files, b.pick(5, 1), b.pick(2, 1))
	return append(rows, found...), err
}

// gitPart is what the git package does for a task, without a server.
type gitPart struct {
	vault               *git.Vault
	dir                 string
	cold, warm, collect samples
}

// task prepares, works, collects, merges, and begins once more in the same
// workspace. The agent pauses before its commit: within the second of the
// checkout, git would read every file again.
func (p *gitPart) task(ctx context.Context, name string) error {
	head, err := p.vault.BranchHead(ctx, "main")
	if err != nil {
		return fmt.Errorf("read the branch: %w", err)
	}
	ws := git.Workspace{Dir: filepath.Join(p.dir, name), Branch: "claudomator/" + name, Base: head}
	prepare := func(into *samples) error {
		began := time.Now()
		_, err := p.vault.Prepare(ctx, ws)
		*into = append(*into, time.Since(began))
		return err
	}
	if err := prepare(&p.cold); err != nil {
		return fmt.Errorf("prepare a workspace: %w", err)
	}
	time.Sleep(1100 * time.Millisecond)
	agent := exec.CommandContext(ctx, "sh", "-c", commitOne)
	agent.Dir, agent.Env = ws.Dir, gitEnviron()
	if text, err := agent.CombinedOutput(); err != nil {
		return fmt.Errorf("run the agent: %w: %s", err, text)
	}
	began := time.Now()
	got, err := p.vault.Collect(ctx, git.CollectSpec{Dir: ws.Dir, Branch: ws.Branch, Base: head, Message: "left over"})
	if err != nil {
		return fmt.Errorf("collect: %w", err)
	}
	merged, err := p.vault.Merge(ctx, []string{head, got.Head}, "merge")
	if err != nil {
		return fmt.Errorf("merge: %w", err)
	}
	p.collect = append(p.collect, time.Since(began))
	if merged.Commit == "" || got.NoChanges {
		return errors.New("the work was not collected and merged")
	}
	if err := prepare(&p.warm); err != nil {
		return fmt.Errorf("prepare a workspace again: %w", err)
	}
	_, err = p.vault.Discard(ctx, ws.Dir, filepath.Join(p.dir, "bin"))
	return err
}

package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// checkout is a working tree of the user's repository that has the target
// checked out. It is only written when it is clean, and under git's own index
// lock.
type checkout struct {
	git    *Git
	dir    string
	gitDir string
	config []string // environment that disarms the repository's filters
	held   *os.File // the index lock while it is ours, locked itself: the system lets go of it when we die
	left   string   // private ref of the landing whose lock a crash has left, taken over
}

// findCheckout looks through the repository's working trees. It refuses when
// the user is in the middle of something that a moving branch would hurt.
func (g *Git) findCheckout(ctx context.Context, loc location, branch string) (*checkout, error) {
	out, err := g.run(ctx, command{args: []opt{"worktree", "list", "--porcelain", "-z"}, env: []string{"GIT_DIR=" + loc.common}})
	if err != nil {
		return nil, err
	}
	var found *checkout
	for i, tree := range parseWorktrees(out) {
		if i == 0 && loc.top != "" && loc.gitDir == loc.common {
			tree.dir = loc.top // core.worktree may say otherwise
		}
		if tree.bare || !exists(tree.dir) {
			continue
		}
		at, err := locate(tree.dir)
		if err != nil {
			continue // moved or pruned: there is nothing to update
		}
		if err := midOperation(at, branch, i == 0 || tree.branch == "refs/heads/"+branch); err != nil {
			return nil, err
		}
		if tree.branch == "refs/heads/"+branch && found == nil {
			found = &checkout{git: g, dir: at.top, gitDir: at.gitDir}
		}
	}
	if found != nil {
		found.config, err = g.disarmFilters(ctx, found.gitDir)
	}
	return found, err
}

type worktree struct {
	dir, branch string
	bare        bool
}

func parseWorktrees(out []byte) (trees []worktree) {
	for line := range strings.SplitSeq(string(out), "\x00") {
		key, value, _ := strings.Cut(line, " ")
		if key == "worktree" {
			trees = append(trees, worktree{dir: value})
		}
		if len(trees) == 0 {
			continue
		}
		switch last := &trees[len(trees)-1]; key {
		case "branch":
			last.branch = value
		case "bare":
			last.bare = true
		}
	}
	return trees
}

// midOperation refuses for the main working tree and the target's own; in any
// other only a rebase or bisect that will come back to the target counts.
func midOperation(at location, branch string, matters bool) error {
	for _, file := range []string{"rebase-merge/head-name", "rebase-apply/head-name", "BISECT_START"} {
		data, err := os.ReadFile(filepath.Join(at.gitDir, file))
		name := strings.TrimSpace(string(data))
		if err == nil && (name == "refs/heads/"+branch || name == branch) {
			return fail(KindBranchHeld, "%q is being rebased or bisected in %s", branch, at.top).hint("finish or abort that first")
		}
	}
	if !matters {
		return nil
	}
	for _, op := range operationFiles() {
		if exists(filepath.Join(at.gitDir, op.file)) {
			return fail(KindMidOperation, "a %s is in progress in %s", op.name, at.top).hint("finish or abort it, then land again")
		}
	}
	return nil
}

// disarmFilters overrides every filter driver that the repository configures.
func (g *Git) disarmFilters(ctx context.Context, gitDir string) ([]string, error) {
	out, err := g.run(ctx, command{args: []opt{"config", "-z", "--name-only", "--get-regexp", `^filter\.`}, env: []string{"GIT_DIR=" + gitDir}})
	if e := (*Error)(nil); err != nil && (!asExit(err, &e) || e.Exit != 1) {
		return nil, err
	}
	drivers := map[string]bool{}
	for key := range strings.SplitSeq(string(out), "\x00") {
		if dot := strings.LastIndexByte(key, '.'); dot > 0 {
			drivers[key[:dot]] = true
		}
	}
	var env []string
	n := 0
	for _, d := range sortedKeys(drivers) {
		for _, kv := range [][2]string{{".clean", ""}, {".smudge", ""}, {".process", ""}, {".required", "false"}} {
			env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", n, d+kv[0]), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", n, kv[1]))
			n++
		}
	}
	return append(env, fmt.Sprintf("GIT_CONFIG_COUNT=%d", n)), nil
}

func asExit(err error, e **Error) bool { return errors.As(err, e) }

func (c *checkout) run(ctx context.Context, cmd command) ([]byte, error) {
	cmd.dir = c.dir
	cmd.env = append([]string{"GIT_DIR=" + c.gitDir, "GIT_WORK_TREE=" + c.dir}, c.config...)
	if exists(c.scratch()) {
		cmd.env = append(cmd.env, "GIT_INDEX_FILE="+c.scratch())
	}
	return c.git.run(ctx, cmd)
}

func (c *checkout) lockFile() string { return filepath.Join(c.gitDir, "index.lock") }

// scratch is the index under construction; it replaces the user's at the end.
func (c *checkout) scratch() string { return filepath.Join(c.gitDir, "claudomator-index") }

// refuse names whatever the landing would overwrite or mix with.
func (c *checkout) refuse(ctx context.Context, t *target) error {
	dirty, err := c.changes(ctx)
	if err != nil {
		return err
	}
	if len(dirty) > 0 {
		return fail(KindDirtyCheckout, "%q is checked out in %s with uncommitted changes", t.branch, c.dir).
			about(dirty).hint("commit or stash them, or check out another branch, then land again")
	}
	changes, err := t.vault.rawDiff(ctx, t.old, t.new)
	if err != nil {
		return err
	}
	inTheWay, err := c.inTheWay(changes)
	if err != nil {
		return err
	}
	if len(inTheWay) > 0 {
		return fail(KindDirtyCheckout, "untracked files in %s would be overwritten", c.dir).about(inTheWay).hint("move or commit them, then land again")
	}
	return c.rehearse(ctx, t)
}

// rehearse lets git itself say whether the update would work, before anything
// moves. The new objects are still the vault's.
func (c *checkout) rehearse(ctx context.Context, t *target) error {
	lent := *c
	lent.config = append([]string{alternates(filepath.Join(t.vault.dir, "objects"))}, c.config...)
	if err := c.beginIndex(); err != nil {
		return err
	}
	_, err := lent.run(ctx, command{args: []opt{"read-tree", "-m", "-u", "--dry-run"}, values: []string{t.old, t.new}})
	if e := (*Error)(nil); asExit(err, &e) && e.Kind == KindFailed {
		return fail(KindDirtyCheckout, "the checkout in %s could not be updated", c.dir).because(err).hint("move the named files away, then land again")
	}
	return err
}

// changes lists staged, edited and unmerged paths; untracked files do not count.
func (c *checkout) changes(ctx context.Context) ([]string, error) {
	out, err := c.run(ctx, command{args: []opt{"status", "--porcelain=v2", "-z", "--untracked-files=no", "--ignore-submodules=all", "--no-renames"}})
	if err != nil {
		return nil, err
	}
	return parseStatus(out)
}

// parseStatus reads the paths out of porcelain v2 records: "1 " has eight
// fields before its path, "u " ten.
func parseStatus(out []byte) (paths []string, err error) {
	for record := range strings.SplitSeq(string(out), "\x00") {
		var fields int
		switch {
		case record == "" || strings.HasPrefix(record, "# "):
			continue
		case strings.HasPrefix(record, "1 "):
			fields = 8
		case strings.HasPrefix(record, "u "):
			fields = 10
		default:
			return nil, fail(KindFailed, "status wrote something unexpected")
		}
		parts := strings.SplitN(record, " ", fields+1)
		if len(parts) != fields+1 || parts[fields] == "" {
			return nil, fail(KindFailed, "status wrote something unexpected")
		}
		paths = append(paths, parts[fields])
	}
	return paths, nil
}

func (c *checkout) beginIndex() error {
	if exists(c.scratch()) {
		return nil
	}
	if err := copyFile(filepath.Join(c.gitDir, "index"), c.scratch()); err != nil {
		return storageError("copy the index of "+c.dir, err)
	}
	return nil
}

// update brings files and index from old to commit. git refuses, file by file,
// to overwrite what is neither.
func (c *checkout) update(ctx context.Context, old, commit string) error {
	if err := c.beginIndex(); err != nil {
		return err
	}
	if _, err := c.run(ctx, command{args: []opt{"read-tree", "-m", "-u"}, values: []string{old, commit}}); err != nil {
		return err
	}
	if err := os.Rename(c.scratch(), filepath.Join(c.gitDir, "index")); err != nil {
		return storageError("replace the index of "+c.dir, err)
	}
	return nil
}

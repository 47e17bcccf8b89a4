package git

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// CollectSpec says how to take the work out of a workspace.
type CollectSpec struct {
	Dir     string
	Branch  string   // as prepared; "" takes nothing in and only reports (judges, gates)
	Base    string   // where counting starts; "" = the head the workspace was prepared at
	Message string   // subject, blank line, trailers: for commits that the server makes
	Author  Identity // of those commits; default the server
}

// Collected is what a run left. The branch is moved to Head before it returns.
type Collected struct {
	Head, Base string
	Commits    int // new commits on the way from Base, at most countLimit
	Files      int
	Insertions int
	Deletions  int
	NoChanges  bool       // Head's files are Base's
	Own        string     // the commit the server made of uncommitted work, "" when none
	HeldBack   []HeldBack // not in Head; kept in Snapshot
	Snapshot   string     // private ref, "" when nothing was held back or unresolved
	Conflicts  []Conflict // with the branch's head in the vault: the branch did not move
	Kept       string     // with Conflicts: the commit that has them, which is to be merged in; "" where it shares no history
	// Unfinished are the operations that the agent has begun and left half-way:
	// what HEAD stands at is not what it wanted.
	Unfinished []string
	Unresolved []Conflict // of the merge that was the work: the branch did not move
	Missing    bool       // the workspace is gone; Head is the branch as it was
	Warnings   []Warning
}

// Names of warnings.
const (
	WarnWorkspaceGone = "workspace_gone"
	WarnGitDirGone    = "git_dir_gone"
	WarnOperation     = "operation_in_progress"
	WarnStaleLock     = "stale_lock"
	WarnHeadMoved     = "head_elsewhere"
	WarnExtraCommits  = "extra_commits_kept"
	WarnLostCommits   = "extra_commits_lost"
	WarnMerged        = "branch_merged_in"
	WarnSuspicious    = "suspicious_committed"
	WarnSpecial       = "special_files_skipped"
	WarnNested        = "nested_repository"
	WarnSubmodule     = "submodule_moved"
	WarnOmitted       = "omitted_from_snapshot"
	WarnUnreadable    = "unreadable_skipped"
	WarnDiscarded     = "changes_not_taken"
)

// collection is one Collect under way.
type collection struct {
	spec CollectSpec
	ws   *workspace
	root *os.Root // the workspace's .git; nil when it is gone
	head string   // commit of the vault that the work amounts to so far
	out  Collected
}

// Collect takes a run's work into the vault: commits first, then what was not
// committed. All processes of the run must be dead. An error means that the
// inspection failed: the workspace stays as it is and nothing was decided.
func (v *Vault) Collect(ctx context.Context, spec CollectSpec) (Collected, error) {
	dir, w, unlock, err := v.lockWorkspace(ctx, spec.Dir)
	if err != nil {
		return Collected{}, err
	}
	defer unlock()
	if w == nil {
		return v.collectAbsent(ctx, spec, spec.Base)
	}
	if spec.Base == "" {
		spec.Base = w.Base
	}
	switch who, err := w.presence(); {
	case err != nil:
		return Collected{}, err
	case who == absent:
		return v.collectAbsent(ctx, spec, w.Base)
	case who == foreign:
		return Collected{}, unsafe(dir, "is not the directory that was prepared")
	case !w.Ready:
		return Collected{}, fail(KindCorruptWorkspace, "workspace %s was never completed", dir)
	}
	c := &collection{spec: spec, ws: w, head: w.Base, out: Collected{Base: spec.Base}}
	if c.root, err = w.openGit(); err != nil {
		return Collected{}, err
	}
	if c.root != nil {
		defer c.root.Close()
	}
	if err := c.collect(ctx); err != nil {
		return Collected{}, fmt.Errorf("collect workspace %s: %w", dir, err)
	}
	return c.out, nil
}

// collectAbsent reports the branch as the vault has it.
func (v *Vault) collectAbsent(ctx context.Context, spec CollectSpec, base string) (Collected, error) {
	out := Collected{Missing: true, Base: spec.Base, Head: base, NoChanges: true}
	if out.Base == "" {
		out.Base = base
	}
	out.warn(WarnWorkspaceGone, "the workspace is gone; the branch in the vault is as it was")
	if spec.Branch != "" {
		head, err := v.Ref(ctx, "refs/heads/"+spec.Branch)
		if err != nil && KindOf(err) != KindBranchMissing {
			return Collected{}, err
		}
		if err == nil {
			out.Head = head
		}
	}
	if out.Base == "" || out.Head == "" {
		return out, nil
	}
	_, err := v.newWorkspace(spec.Dir).count(ctx, &out)
	return out, err
}

func (c *collection) collect(ctx context.Context) error {
	if err := c.commits(ctx); err != nil {
		return err
	}
	scan, err := c.ws.scanTree(ctx, c.head, false)
	if err != nil {
		return err
	}
	c.noteScan(scan)
	if c.spec.Branch == "" {
		return c.judgeOnly(ctx, scan)
	}
	if err := c.unresolved(ctx, scan); err != nil {
		return err
	}
	if len(c.out.Unresolved) > 0 || len(c.out.HeldBack) > 0 {
		if err := c.snapshot(ctx); err != nil {
			return err
		}
	}
	branchHead, err := c.ws.vault.Ref(ctx, "refs/heads/"+c.spec.Branch)
	if err != nil {
		return err
	}
	if len(c.out.Unresolved) > 0 {
		c.out.Head = branchHead
		_, err := c.ws.count(ctx, &c.out)
		return err
	}
	if err := c.commitDirt(ctx, scan); err != nil {
		return err
	}
	return c.advance(ctx, branchHead)
}

// commits brings the run's commits into the vault and finds its head.
func (c *collection) commits(ctx context.Context) error {
	if c.root == nil {
		c.out.warn(WarnGitDirGone, "the workspace's .git is gone; files were compared with the commit it was prepared at")
		return nil
	}
	for _, op := range operations(c.root) {
		c.out.warn(WarnOperation, op+" in progress")
		if op != "merge" || c.ws.Merge == "" { // the merge that the run was given is settled below
			c.out.Unfinished = append(c.out.Unfinished, op)
		}
	}
	if locks := staleLocks(c.root); len(locks) > 0 {
		c.out.warn(WarnStaleLock, "lock files were left behind; they are ignored", locks...)
	}
	head, err := readRef(c.root, "HEAD")
	if err != nil {
		return err
	}
	own := ""
	if c.ws.Branch != "" {
		if own, err = readRef(c.root, "refs/heads/"+c.ws.Branch); err != nil {
			return err
		}
		if at := headBranch(c.root); at != "refs/heads/"+c.ws.Branch {
			c.out.warn(WarnHeadMoved, "HEAD was left "+describeHead(at)+"; its commits were taken")
		}
	}
	if head == "" { // an unborn branch (git checkout --orphan)
		head = own
	}
	if head == "" {
		return nil
	}
	if err := c.take(ctx, head); err != nil {
		return err
	}
	c.head = head
	if own != "" && own != head {
		if err := c.ownBranch(ctx, own); err != nil {
			return err
		}
	}
	if c.ws.Taken != "" { // collected before: what was made of it then still counts
		in, err := c.ws.vault.Contains(ctx, c.head, c.ws.Taken)
		if err != nil {
			return err
		}
		if in {
			c.head = c.ws.Taken
		}
	}
	return c.extras(ctx)
}

func describeHead(ref string) string {
	if ref == "" {
		return "detached"
	}
	return "on " + Display(strings.TrimPrefix(ref, "refs/heads/"))
}

// ownBranch decides between HEAD and the task's branch: the one that contains
// the other is the head; when they part, HEAD is what the agent left, and the
// branch is kept among the extras.
func (c *collection) ownBranch(ctx context.Context, own string) error {
	if err := c.take(ctx, own); err != nil {
		return err
	}
	ahead, err := c.ws.vault.Contains(ctx, c.head, own)
	if err == nil && ahead {
		c.head = own
		c.out.warn(WarnHeadMoved, "HEAD was left behind the task's branch; the branch was taken")
	}
	return err
}

// take moves the commits that lead to a head from the workspace's objects into
// the vault, every object and link checked.
func (c *collection) take(ctx context.Context, heads ...string) error {
	v := c.ws.vault
	var want []string
	for _, h := range heads {
		kind, err := v.kind(ctx, h)
		if err != nil {
			return err
		}
		if kind != "" && kind != "commit" {
			return unsafe(h, "is not a commit")
		}
		if kind == "" {
			want = append(want, h)
		}
	}
	if len(want) == 0 {
		return nil
	}
	have := []string{c.ws.Base}
	if c.ws.Merge != "" {
		have = append(have, c.ws.Merge)
	}
	transferred := func() error {
		return v.git.transfer(ctx, transfer{
			from: append(v.env(), alternates(filepath.Join(c.ws.gitDir(), "objects"))), to: v.env(),
			want: want, have: have, strict: true,
		})
	}
	err := transferred()
	if err != nil && ctx.Err() == nil {
		err = transferred() // a git that was killed is not a workspace that is damaged
	}
	if err != nil {
		if KindOf(err) == KindFailed || KindOf(err) == KindBranchMissing {
			return fail(KindUnsafeWorkspace, "the workspace's commits do not hold together").because(err).
				hint("objects are damaged, forged or illegal; the workspace was left as it is")
		}
		return err
	}
	for _, h := range want {
		if kind, err := v.kind(ctx, h); err != nil || kind != "commit" {
			return unsafe(h, "did not arrive as a commit")
		}
	}
	return nil
}

// extras keeps what the agent committed, stashed or reset away outside of the
// head, under private refs, and says so.
func (c *collection) extras(ctx context.Context) error {
	v := c.ws.vault
	var kept, lost, names []string
	found := traces(c.root)
	within, err := v.recent(ctx, c.head, c.ws.Base)
	if err != nil {
		return err
	}
	for _, hash := range sortedKeys(found) {
		switch kind, err := v.kind(ctx, hash); {
		case err != nil:
			return err
		case within[hash] || kind != "" && hash == c.ws.Base:
			continue
		}
		if err := c.take(ctx, hash); err != nil {
			lost = append(lost, found[hash]+" "+hash)
			continue
		}
		if in, err := v.Contains(ctx, hash, c.head); err != nil || in {
			if err != nil {
				return err
			}
			continue
		}
		ref := KeptPrefix + c.ws.name() + "/" + hash
		if err := v.putRef(ctx, ref, hash); err != nil {
			return err
		}
		kept, names = append(kept, ref), append(names, strings.TrimPrefix(found[hash], "refs/"))
	}
	if len(kept) > 0 {
		slices.Sort(names)
		c.out.warn(WarnExtraCommits, "commits outside the result were kept, from "+joinSome(displayPaths(slices.Compact(names)), 5), kept...)
	}
	if len(lost) > 0 {
		c.out.warn(WarnLostCommits, "commits outside the result could not be read", lost...)
	}
	return nil
}

// name is the workspace's part in private refs.
func (w *workspace) name() string {
	if n := strings.TrimPrefix(w.Branch, "claudomator/"); n != "" && ValidBranch(n) == nil {
		return n
	}
	return "detached-" + w.key
}

func (o *Collected) warn(kind, message string, paths ...string) {
	o.Warnings = append(o.Warnings, Warning{kind, message, displayPaths(paths)})
}

func (c *collection) noteScan(s *scan) {
	c.out.HeldBack = s.held
	if len(s.special) > 0 {
		c.out.warn(WarnSpecial, "pipes, sockets and devices cannot be kept", s.special...)
	}
	if len(s.nested) > 0 {
		c.out.warn(WarnNested, "a repository was made inside a folder of this one; its own history is not taken", s.nested...)
	}
}

// judgeOnly reports what a judge or gate left; it is not taken.
func (c *collection) judgeOnly(_ context.Context, s *scan) error {
	c.out.Head, c.out.Base, c.out.NoChanges = c.ws.Base, c.ws.Base, true
	if !s.clean() || c.head != c.ws.Base {
		c.out.warn(WarnDiscarded, "what was written here is not taken", sortedKeys(s.edits)...)
	}
	return nil
}

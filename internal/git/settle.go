package git

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
)

// The second half of Collect: uncommitted work, unfinished merges, and moving
// the branch.

// unresolved finds out whether the merge that was this run's work is done.
func (c *collection) unresolved(ctx context.Context, s *scan) error {
	w := c.ws
	if w.Merge == "" {
		return nil
	}
	marked := map[string]bool{}
	for _, p := range w.Conflicts {
		marked[p.Path] = c.hasMarkers(p.Path)
	}
	committed, err := w.vault.Contains(ctx, w.Merge, c.head)
	if err != nil {
		return err
	}
	unmerged := map[string]bool{}
	abandoned := false
	if !committed {
		if abandoned = c.root == nil; !abandoned {
			theirs, err := readPlain(c.root, "MERGE_HEAD", maxSmall)
			abandoned = err != nil || strings.TrimSpace(string(theirs)) != w.Merge
		}
		if !abandoned {
			if unmerged, err = unmergedPaths(c.root); err != nil && !missing(err) {
				return err
			}
		}
	}
	for _, p := range w.Conflicts {
		// Removed markers settle a text; every other conflict needs a word to git.
		open := marked[p.Path] || abandoned || unmerged[p.Path] && (p.Kind != "content" && p.Kind != "add/add" || !changed(s, p.Path))
		if open {
			c.out.Unresolved = append(c.out.Unresolved, p)
		}
	}
	if abandoned && len(c.out.Unresolved) > 0 {
		c.out.warn(WarnOperation, "the merge was abandoned without a result")
	}
	return nil
}

func changed(s *scan, path string) bool { _, ok := s.edits[path]; return ok }

// hasMarkers looks for a conflict's opening and closing line in a work file.
func (c *collection) hasMarkers(p string) bool {
	root, err := os.OpenRoot(c.ws.Dir)
	if err != nil || !safePath(p) {
		return true
	}
	defer root.Close()
	data, err := readPlain(root, p, 64<<20)
	if err != nil {
		return false // deleted, a folder, a link: not a text with markers
	}
	return markers(data)
}

func markers(data []byte) bool {
	opened, closed := false, false
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		opened = opened || bytes.HasPrefix(lines.Bytes(), []byte("<<<<<<< "))
		closed = closed || bytes.HasPrefix(lines.Bytes(), []byte(">>>>>>> "))
	}
	return opened && closed
}

// commitDirt commits uncommitted work under the server's own identity. A merge
// that was resolved but not committed gets its second parent.
func (c *collection) commitDirt(ctx context.Context, s *scan) error {
	v, parents := c.ws.vault, []string{c.head}
	if c.ws.Merge != "" {
		in, err := v.Contains(ctx, c.ws.Merge, c.head)
		if err != nil {
			return err
		}
		if !in {
			parents = append(parents, c.ws.Merge)
		}
	}
	if len(s.edits) == 0 && len(parents) == 1 {
		return nil
	}
	tree, err := v.treeOf(ctx, c.head)
	if err != nil {
		return err
	}
	after, err := v.editTree(ctx, tree, s.edits)
	if err != nil {
		return err
	}
	if after == tree && len(parents) == 1 {
		return nil
	}
	message := c.spec.Message
	if message == "" {
		message = "Keep uncommitted work"
	}
	c.head, err = v.writeCommit(after, parents, c.spec.Author, v.git.opts.Now(), message)
	c.out.Own = c.head
	return err
}

// advance moves the branch. A head that lacks the branch's own is merged into
// it first, so that nothing which was integrated meanwhile is undone.
func (c *collection) advance(ctx context.Context, branchHead string) error {
	v, ref := c.ws.vault, "refs/heads/"+c.spec.Branch
	for range 5 {
		in, err := v.Contains(ctx, branchHead, c.head)
		if err != nil {
			return err
		}
		head := c.head
		if !in {
			commit, conflicts, err := v.mergeCommit(ctx, branchHead, c.head, c.head, c.spec.Message, c.spec.Author)
			if err != nil && KindOf(err) != KindUnrelated {
				return err
			}
			if KindOf(err) == KindUnrelated {
				conflicts = []Conflict{{Path: ".", Kind: "other", Detail: "the work has no common history with the branch"}}
			} else if len(conflicts) > 0 {
				c.out.Kept = c.head
			}
			if len(conflicts) > 0 {
				c.out.Head, c.out.Conflicts = branchHead, conflicts
				kept := KeptPrefix + c.ws.name() + "/" + c.head
				c.out.warn(WarnExtraCommits, "the work conflicts with the branch's head and was kept", kept)
				if err := v.putRef(ctx, kept, c.head); err != nil {
					return err
				}
				_, err := c.ws.count(ctx, &c.out)
				return err
			}
			c.out.warn(WarnMerged, "the branch had moved on; the work was merged into it")
			head = commit
		}
		if head != branchHead {
			err = v.SetRef(ctx, ref, head, branchHead)
			if KindOf(err) == KindRefMoved {
				if branchHead, err = v.Ref(ctx, ref); err == nil {
					continue
				}
			}
			if err != nil {
				return err
			}
		}
		c.out.Head = head
		return c.finish(ctx)
	}
	return fail(KindTargetMoved, "%s kept moving", ref)
}

// finish counts, and points at what a person should look at in the commits.
func (c *collection) finish(ctx context.Context) error {
	stat, err := c.ws.count(ctx, &c.out)
	if err != nil {
		return err
	}
	c.ws.Taken = c.head
	if err := c.ws.save(); err != nil {
		return err
	}
	var secrets, modules []string
	for _, f := range stat.Files {
		if f.NewMode == modeGitlink {
			modules = append(modules, f.Path)
		}
		if f.Status == "A" && (secretName(f.Path) || inBuildTree(f.Path)) {
			secrets = append(secrets, f.Path)
		}
	}
	if len(secrets) > 0 {
		c.out.warn(WarnSuspicious, "the agent itself committed files that look like secrets or build output", secrets...)
	}
	if len(modules) > 0 {
		c.out.warn(WarnSubmodule, "a submodule points at another commit; commits inside submodules are not collected: push them, or they stay in the workspace", modules...)
	}
	return nil
}

func inBuildTree(p string) bool {
	for part := range strings.SplitSeq(filepath.Dir(p), "/") {
		if isBuildTree(part) {
			return true
		}
	}
	return false
}

// countLimit bounds the walk that counts commits.
const countLimit = 1000

// count fills in the numbers between Base and Head.
func (w *workspace) count(ctx context.Context, o *Collected) (Stat, error) {
	if o.Head == o.Base {
		o.NoChanges = true
		return Stat{}, nil
	}
	from, err := w.vault.treeOf(ctx, o.Base)
	if err != nil {
		return Stat{}, err
	}
	to, err := w.vault.treeOf(ctx, o.Head)
	if err != nil {
		return Stat{}, err
	}
	var stat Stat
	if from != to {
		if stat, err = w.diff(ctx, from, to); err != nil {
			return Stat{}, err
		}
	}
	o.Files, o.Insertions, o.Deletions = len(stat.Files), stat.Insertions, stat.Deletions
	o.NoChanges = len(stat.Files) == 0
	o.Commits, err = w.vault.countCommits(ctx, o.Base, o.Head)
	return stat, err
}

// recent returns the commits from head down to base, at most countLimit.
func (v *Vault) recent(ctx context.Context, head, base string) (map[string]bool, error) {
	seen := map[string]bool{head: true}
	for queue := []string{head}; len(queue) > 0 && len(seen) < countLimit; queue = queue[1:] {
		if queue[0] == base {
			continue
		}
		c, err := v.commit(ctx, queue[0])
		if err != nil {
			if v.shallow() && queue[0] != head {
				continue // history ends here
			}
			return nil, err
		}
		for _, p := range c.parents {
			if !seen[p] {
				seen[p] = true
				queue = append(queue, p)
			}
		}
	}
	return seen, nil
}

// countCommits counts first parents down to base; side branches count through
// their merge.
func (v *Vault) countCommits(ctx context.Context, base, head string) (n int, err error) {
	for at := head; at != base && n < countLimit; n++ {
		c, err := v.commit(ctx, at)
		if err != nil {
			return n, err
		}
		if len(c.parents) == 0 {
			return n + 1, nil
		}
		at = c.parents[0]
	}
	return n, nil
}

package git

import (
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"
)

// SnapshotPrefix is where snapshots made by this package on its own are kept:
// refs/claudomator/snapshots/<task>/<time>.
const SnapshotPrefix = "refs/claudomator/snapshots/"

// KeptPrefix is where commits are kept that no result holds:
// refs/claudomator/kept/<task>/<commit>.
const KeptPrefix = "refs/claudomator/kept/"

// SnapshotInfo describes one snapshot.
type SnapshotInfo struct {
	Ref, Commit string
	Parent      string // "" when it stands on nothing
	At          time.Time
	Message     string
	Omitted     []string // left out for size or because they were unreadable; only right after Snapshot
}

// Snapshot stores a whole work tree under a private ref: tracked, untracked and
// ignored files, links as links. Left out and listed: ignored files above
// 10 MiB each or 64 MiB together, build trees above 64 MiB, special files. The
// .git of a nested repository is stored as "%2egit". dir need not be a
// workspace of ours; its own .git is not read.
func (v *Vault) Snapshot(ctx context.Context, dir, ref, message string) (SnapshotInfo, error) {
	dir, w, unlock, err := v.lockWorkspace(ctx, dir)
	if err != nil {
		return SnapshotInfo{}, err
	}
	defer unlock()
	if w != nil {
		if who, err := w.presence(); err != nil || who != ours {
			return SnapshotInfo{}, unsafe(dir, "is not the directory that was prepared")
		}
	}
	return v.snapshot(ctx, w, dir, ref, message)
}

// snapshot is Snapshot under the workspace's lock; w may be nil.
func (v *Vault) snapshot(ctx context.Context, w *workspace, dir, ref, message string) (SnapshotInfo, error) {
	var parents []string
	if w == nil {
		if _, real, err := identify(dir); err != nil || !real {
			return SnapshotInfo{}, unsafe(dir, "is not a folder")
		}
		w = v.newWorkspace(dir)
		root, err := v.emptyCommit()
		if err != nil {
			return SnapshotInfo{}, err
		}
		w.Base = root
	} else {
		parents = []string{w.Base}
	}
	s, err := w.scanTree(ctx, w.Base, true)
	if err != nil {
		return SnapshotInfo{}, err
	}
	base, err := v.treeOf(ctx, w.Base)
	if err != nil {
		return SnapshotInfo{}, err
	}
	tree, err := v.editTree(ctx, base, s.edits)
	if err != nil {
		return SnapshotInfo{}, err
	}
	commit, err := v.writeCommit(tree, parents, Identity{}, v.git.opts.Now(), message)
	if err != nil {
		return SnapshotInfo{}, err
	}
	omitted := displayPaths(slices.Concat(s.omitted, s.unreadable, s.special))
	return SnapshotInfo{Ref: ref, Commit: commit, Message: message, Omitted: omitted}, v.putRef(ctx, ref, commit)
}

func (v *Vault) emptyCommit() (string, error) {
	tree, err := v.writeTree(nil)
	if err != nil {
		return "", err
	}
	return v.writeCommit(tree, nil, Identity{}, time.Unix(0, 0), "Nothing")
}

// snapshotRef names a new snapshot of a workspace.
func (w *workspace) snapshotRef() string {
	return fmt.Sprintf("%s%s/%d", SnapshotPrefix, w.name(), w.vault.git.opts.Now().UnixNano())
}

// snapshot keeps what Collect does not commit.
func (c *collection) snapshot(ctx context.Context) error {
	info, err := c.ws.vault.snapshot(ctx, c.ws, c.ws.Dir, c.ws.snapshotRef(), "Held back or unresolved after a run\n")
	if err != nil {
		return err
	}
	c.out.Snapshot = info.Ref
	if len(info.Omitted) > 0 {
		c.out.Warnings = append(c.out.Warnings, Warning{WarnOmitted, "too large, unreadable or special: not in the snapshot", info.Omitted})
	}
	return nil
}

// clear keeps whatever a workspace holds that the vault does not, before the
// workspace is reset or discarded. Work that a finished Collect took in needs
// no snapshot.
func (v *Vault) clear(ctx context.Context, w *workspace) (ref string, warnings []Warning, err error) {
	c, err := w.gather(ctx)
	for range 2 { // what is damaged fails always; a git that was killed, or found no memory, does not
		if err == nil || ctx.Err() != nil {
			break
		}
		c, err = w.gather(ctx)
	}
	if err != nil {
		if ctx.Err() != nil {
			return "", nil, err
		}
		// Its .git cannot be trusted: the files are kept, and .git itself stays
		// where a person finds it.
		c = &collection{ws: w, head: w.Base}
		aside, moveErr := w.setGitAside()
		if moveErr != nil {
			return "", nil, moveErr
		}
		c.out.warn(WarnUnreadable, "the workspace's .git could not be read and was set aside: "+err.Error(), aside)
	}
	s, err := w.scanTree(ctx, c.head, false)
	if err != nil {
		return "", nil, err
	}
	w.special = s.special
	if s.clean() && len(s.nested) == 0 {
		return "", c.out.Warnings, c.keepHead(ctx)
	}
	info, err := v.snapshot(ctx, w, w.Dir, w.snapshotRef(), "Before the workspace was reset or discarded\n")
	if err == nil {
		err = c.keepHead(ctx)
	}
	return info.Ref, c.out.Warnings, err
}

// gather brings the commits of a workspace into the vault.
func (w *workspace) gather(ctx context.Context) (*collection, error) {
	c := &collection{ws: w, head: w.Base}
	root, err := w.openGit()
	if err != nil || root == nil {
		return c, err
	}
	defer root.Close()
	c.root = root
	err = c.commits(ctx)
	c.root = nil
	return c, err
}

// keepHead keeps commits that no ref of the vault reaches yet.
func (c *collection) keepHead(ctx context.Context) error {
	v, ws := c.ws.vault, c.ws
	if c.head == ws.Base {
		return nil
	}
	if ws.Branch != "" {
		branch, err := v.Ref(ctx, "refs/heads/"+ws.Branch)
		if err == nil {
			if in, err := v.Contains(ctx, c.head, branch); err != nil || in {
				return err
			}
		}
	}
	return v.putRef(ctx, KeptPrefix+ws.name()+"/"+c.head, c.head)
}

// setGitAside moves an unreadable .git out of the work tree without deleting it.
func (w *workspace) setGitAside() (string, error) {
	if !exists(w.gitDir()) {
		return "", nil
	}
	aside := fmt.Sprintf("%s/.%s.unreadable-git-%d", filepath.Dir(w.Dir), filepath.Base(w.Dir), w.vault.git.opts.Now().UnixNano())
	if err := os.Rename(w.gitDir(), aside); err != nil {
		return "", storageError("set .git aside", err)
	}
	return aside, nil
}

// Snapshots lists refs below a prefix, oldest first for those of this package.
func (v *Vault) Snapshots(ctx context.Context, prefix string) ([]SnapshotInfo, error) {
	refs, err := v.Refs(ctx, prefix)
	if err != nil {
		return nil, err
	}
	var all []SnapshotInfo
	for _, ref := range sortedKeys(refs) {
		c, err := v.commit(ctx, refs[ref])
		if err != nil {
			return nil, err
		}
		info := SnapshotInfo{Ref: ref, Commit: refs[ref], At: c.at, Message: c.message}
		if len(c.parents) > 0 {
			info.Parent = c.parents[0]
		}
		all = append(all, info)
	}
	return all, nil
}

// Restore writes the files of a ref into a new or empty directory: contents,
// executable bits, links as links. To restore to a branch, use NewBranch.
func (v *Vault) Restore(ctx context.Context, ref, dir string) error {
	commit, err := v.Resolve(ctx, ref)
	if err != nil {
		return err
	}
	tree, err := v.treeOf(ctx, commit)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return storageError("make "+dir, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		return fail(KindPathOccupied, "%s is not an empty folder", dir).because(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return storageError("open "+dir, err)
	}
	defer root.Close()
	return v.restore(ctx, root, tree, "")
}

func (v *Vault) restore(ctx context.Context, root *os.Root, tree, dir string) error {
	entries, err := v.tree(ctx, tree)
	if err != nil {
		return err
	}
	for _, e := range entries {
		p := path.Join(dir, e.name)
		if !safePath(p) {
			return unsafe(Display(p), "is not a path to restore to")
		}
		if e.mode == modeTree {
			if err := root.Mkdir(p, 0o755); err != nil {
				return storageError("restore "+Display(p), err)
			}
			if err := v.restore(ctx, root, e.hash, p); err != nil {
				return err
			}
			continue
		}
		if err := v.restoreFile(ctx, root, e, p); err != nil {
			return err
		}
	}
	return nil
}

func (v *Vault) restoreFile(ctx context.Context, root *os.Root, e treeEntry, p string) error {
	if e.mode == modeGitlink {
		return nil
	}
	if e.mode == modeLink {
		_, data, err := v.reader.contents(ctx, e.hash)
		if err == nil {
			err = root.Symlink(string(data), p)
		}
		return err
	}
	perm := os.FileMode(0o644)
	if e.mode == modeExec {
		perm = 0o755
	}
	f, err := root.OpenFile(p, os.O_CREATE|os.O_EXCL|os.O_WRONLY, perm)
	if err != nil {
		return storageError("restore "+Display(p), err)
	}
	err = v.copyBlob(ctx, e.hash, f)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}

// copyBlob writes a blob of any size.
func (v *Vault) copyBlob(ctx context.Context, hash string, to io.Writer) error {
	p, err := v.git.start(ctx, command{args: []opt{"cat-file", "blob"}, values: []string{hash}, env: v.env()}, nil, to)
	if err != nil {
		return err
	}
	return p.wait()
}

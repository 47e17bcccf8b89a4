package git

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Vault is the server's own bare copy of one repository, and everything the
// server knows about the workspaces made from it.
type Vault struct {
	git    *Git
	dir    string // real, absolute
	source source
	reader *reader
	opened time.Time

	commits commits

	// Under the vault's fetch lock:
	fetched time.Time // start of the last successful fetch
	print   string    // fingerprint of a local source at that fetch
}

// vaultFile marks a complete vault. It is written before the rename that
// brings the vault into being.
const vaultFile = "claudomator.json"

type vaultMark struct {
	Version    int    `json:"version"`
	Repository string `json:"repository"`
}

// vaultConfig holds no remote: sources are named by the server, never by files.
const vaultConfig = `[core]
	repositoryformatversion = 0
	filemode = true
	bare = true
	logallrefupdates = false
[gc]
	auto = 0
[maintenance]
	auto = false
`

// OpenVault opens the vault in dir, or makes it: aside first, then by one
// rename, so that a crash leaves a whole vault or none. repository is a local
// path or a URL; "" makes a private vault with one root commit on main.
// Nothing is fetched yet.
func (g *Git) OpenVault(ctx context.Context, dir, repository string) (*Vault, error) {
	src, err := parseSource(repository)
	if err != nil {
		return nil, err
	}
	parent, err := realDir(filepath.Dir(dir))
	if err != nil {
		return nil, err
	}
	dir = filepath.Join(parent, filepath.Base(dir))
	if strings.ContainsAny(dir, "\n\x00") {
		return nil, fail(KindUnsupported, "a vault's path must not hold a line break")
	}
	unlock, err := g.locks.lock(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer unlock()
	v := &Vault{git: g, dir: dir, source: src, opened: time.Now()}
	v.reader = &reader{git: g, env: v.env()}
	if !exists(dir) {
		if err := v.build(); err != nil {
			return nil, err
		}
	}
	var mark vaultMark
	data, err := os.ReadFile(filepath.Join(dir, vaultFile))
	if err == nil {
		err = json.Unmarshal(data, &mark)
	}
	if err != nil {
		return nil, fail(KindPathOccupied, "%s is not a vault", dir).because(err).hint("move it away; it was not touched")
	}
	if mark.Repository != repository {
		return nil, fail(KindPathOccupied, "the vault %s belongs to %q", dir, DisplayURL(mark.Repository))
	}
	v.breakLocks()
	return v, nil
}

// breakLocks removes what a killed life has locked, its git commands' and our own.
func (v *Vault) breakLocks() {
	locks, _ := filepath.Glob(filepath.Join(escapeGlob(v.dir), "*.lock"))
	_ = filepath.WalkDir(filepath.Join(v.dir, "refs"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(path, ".lock") {
			locks = append(locks, path)
		}
		return nil // what cannot be read is met again where it matters
	})
	for _, path := range locks {
		breakLock(path, v.opened)
	}
}

// realDir makes the folder and returns its path without links.
func realDir(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", storageError("make "+dir, err)
	}
	abs, err := filepath.Abs(dir)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return "", fail(KindFailed, "resolve %s", dir).because(err)
	}
	return abs, nil
}

// build makes a whole vault beside its place and moves it there.
func (v *Vault) build() error {
	leftovers, _ := filepath.Glob(filepath.Join(filepath.Dir(v.dir), "."+filepath.Base(v.dir)+".making-*"))
	for _, l := range leftovers { // ours by name, and never completed
		_ = os.RemoveAll(l)
	}
	tmp, err := os.MkdirTemp(filepath.Dir(v.dir), "."+filepath.Base(v.dir)+".making-")
	if err != nil {
		return storageError("make a vault", err)
	}
	defer func() { _ = os.RemoveAll(tmp) }() // gone after the rename; then this does nothing
	mark, err := json.Marshal(vaultMark{Version: 1, Repository: v.source.text})
	if err != nil {
		return err
	}
	for _, d := range []string{"objects/info", "objects/pack", "refs/heads", "claudomator/workspaces"} {
		err = errors.Join(err, os.MkdirAll(filepath.Join(tmp, d), 0o755))
	}
	for name, text := range map[string]string{"HEAD": "ref: refs/heads/main\n", "config": vaultConfig, vaultFile: string(mark)} {
		err = errors.Join(err, os.WriteFile(filepath.Join(tmp, name), []byte(text), 0o644))
	}
	if err != nil {
		return storageError("make a vault", err)
	}
	if v.source.kind == sourceNone {
		whole := &Vault{git: v.git, dir: tmp}
		tree, err := whole.writeTree(nil)
		if err != nil {
			return err
		}
		root, err := whole.writeCommit(tree, nil, Identity{}, v.git.opts.Now(), "Begin")
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(tmp, "refs/heads/main"), []byte(root+"\n"), 0o644); err != nil {
			return storageError("make a vault", err)
		}
	}
	if err := os.Rename(tmp, v.dir); err != nil {
		return storageError("put the vault in place", err)
	}
	return nil
}

// Close ends the vault's helper process. The files stay.
func (v *Vault) Close() { v.reader.close() }

// Dir is the vault's real path: agents need its objects readable there.
func (v *Vault) Dir() string { return v.dir }

func (v *Vault) env() []string { return []string{"GIT_DIR=" + v.dir} }

// Resolve returns the commit that a full ref or a full hash names.
func (v *Vault) Resolve(ctx context.Context, ref string) (string, error) {
	if !isHash(ref) {
		return v.Ref(ctx, ref)
	}
	kind, err := v.reader.kind(ctx, ref)
	if err == nil && kind != "commit" {
		err = fail(KindBranchMissing, "commit %s is not in the vault", ref)
	}
	if err != nil {
		return "", err
	}
	return ref, nil
}

// BranchHead fetches and returns the source's head of a branch: its own branch
// of that name, else what it knows of its remotes' (origin first).
func (v *Vault) BranchHead(ctx context.Context, branch string) (string, error) {
	if err := ValidBranch(branch); err != nil {
		return "", err
	}
	if v.source.kind == sourceNone {
		return v.Ref(ctx, "refs/heads/"+branch)
	}
	if err := v.Fetch(ctx); err != nil {
		return "", err
	}
	return v.fetchedHead(ctx, branch)
}

func (v *Vault) fetchedHead(ctx context.Context, branch string) (string, error) {
	hash, err := v.Ref(ctx, originPrefix+branch)
	if KindOf(err) != KindBranchMissing {
		return hash, err
	}
	if hash, ok := v.remoteOnly(ctx, branch); ok {
		return hash, nil
	}
	refs, err := v.Refs(ctx, originPrefix)
	if err != nil {
		return "", err
	}
	if len(refs) == 0 {
		return "", noCommits(DisplayURL(v.source.text))
	}
	return "", fail(KindBranchMissing, "%s has no branch %q", DisplayURL(v.source.text), branch).hint("choose another branch or create it")
}

func (v *Vault) remoteOnly(ctx context.Context, branch string) (string, bool) {
	if hash, err := v.Ref(ctx, sourcePrefix+"origin/"+branch); err == nil {
		return hash, true
	}
	refs, err := v.Refs(ctx, sourcePrefix)
	if err != nil {
		return "", false
	}
	for _, ref := range sortedKeys(refs) {
		if _, name, _ := strings.Cut(strings.TrimPrefix(ref, sourcePrefix), "/"); name == branch {
			return refs[ref], true
		}
	}
	return "", false
}

func noCommits(where string) *Error {
	return fail(KindNoCommits, "repository %s has no commits", where).hint("make a first commit, then try again")
}

// Contains reports whether ancestor is commit or one of its ancestors.
func (v *Vault) Contains(ctx context.Context, ancestor, commit string) (bool, error) {
	if ancestor == commit {
		return true, nil
	}
	if found, whole, err := v.near(ctx, ancestor, commit); err != nil || found || whole {
		return found, err
	}
	_, err := v.git.run(ctx, command{args: []opt{"merge-base", "--is-ancestor"}, values: []string{ancestor, commit}, env: v.env()})
	var e *Error
	if errors.As(err, &e) && e.Exit == 1 {
		return false, nil
	}
	return err == nil, err
}

// near looks for an ancestor among the closest commits without a process.
// whole reports that all of history was seen.
func (v *Vault) near(ctx context.Context, ancestor, commit string) (found, whole bool, err error) {
	seen := map[string]bool{commit: true}
	for queue := []string{commit}; len(queue) > 0; queue = queue[1:] {
		if len(seen) > 64 {
			return false, false, nil
		}
		c, err := v.commit(ctx, queue[0])
		if err != nil {
			if v.shallow() && KindOf(err) == KindBranchMissing && queue[0] != commit {
				continue // history ends here
			}
			return false, false, err
		}
		for _, p := range c.parents {
			if p == ancestor {
				return true, false, nil
			}
			if !seen[p] {
				seen[p] = true
				queue = append(queue, p)
			}
		}
	}
	return false, true, nil
}

func (v *Vault) shallow() bool { return exists(filepath.Join(v.dir, "shallow")) }

// Maintain packs loose objects and references, where there are about so many loose
// objects or more. It removes nothing that is not in a pack, so running workspaces are
// not disturbed.
func (v *Vault) Maintain(ctx context.Context, loose int) error {
	sample, err := os.ReadDir(filepath.Join(v.dir, "objects", "17")) // objects spread evenly over 256 folders
	if err != nil && !missing(err) {
		return storageError("look at the vault's objects", err)
	}
	if 256*len(sample) < loose {
		return nil
	}
	_, err = v.git.run(ctx, command{args: []opt{"repack", "-d", "-q", "--no-write-bitmap-index"}, env: v.env()})
	if err != nil {
		return err
	}
	_, err = v.git.run(ctx, command{args: []opt{"pack-refs", "--all"}, env: v.env()})
	return err
}

// writeFile replaces a file of ours at once.
func writeFile(path string, data []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".tmp-")
	if err != nil {
		return storageError("write "+path, err)
	}
	_, err = tmp.Write(data)
	if err = errors.Join(err, tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		_ = os.Remove(tmp.Name()) // what stays is met by nobody
		return storageError("write "+path, err)
	}
	return nil
}

func missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }

package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Workspace asks for a private checkout.
type Workspace struct {
	Dir    string   // absolute; its parent is made
	Branch string   // "claudomator/<task>"; "" checks Base out detached (judges, gates)
	Base   string   // commit where the branch begins if the vault has none yet
	Merge  string   // commit to merge in; a conflict becomes the work
	Agent  Identity // for plain `git commit`, default "Claudomator agent"
	Clean  bool     // what is neither tracked nor ignored goes too; it is in the snapshot
}

// Prepared says what Prepare found and made.
type Prepared struct {
	Head      string     // commit that is checked out
	Created   bool       // false: an existing workspace was brought to Head
	Conflicts []Conflict // of Merge; files hold markers, the index is unmerged
	Snapshot  string     // private ref holding what lay there before, "" when nothing would have been lost
	Warnings  []Warning
}

// Warning is something a person should know although the call succeeded.
type Warning struct {
	Kind    string // stable name
	Message string
	Paths   []string
}

// Prepare makes a workspace, or brings an existing one to its branch's head.
// What would be lost is snapshotted first. Foreign files at the path are
// refused, never touched. A half-made workspace is finished. The caller makes
// sure that no process of an earlier run is alive.
func (v *Vault) Prepare(ctx context.Context, ws Workspace) (Prepared, error) {
	parent, err := realDir(filepath.Dir(ws.Dir))
	if err != nil {
		return Prepared{}, err
	}
	ws.Dir = filepath.Join(parent, filepath.Base(ws.Dir))
	unlock, err := v.git.locks.lock(ctx, ws.Dir)
	if err != nil {
		return Prepared{}, err
	}
	defer unlock()
	head, err := v.startBranch(ctx, ws)
	if err != nil {
		return Prepared{}, err
	}
	p := Prepared{Head: head}
	tree, err := v.treeOf(ctx, head)
	if err != nil {
		return Prepared{}, err
	}
	w, err := v.claim(ws.Dir, registration{Branch: ws.Branch, Base: head, Tree: tree})
	if err != nil {
		return Prepared{}, err
	}
	if p.Created = !w.Ready; !p.Created {
		if p.Snapshot, p.Warnings, err = v.clear(ctx, w); err != nil {
			return Prepared{}, err
		}
		w.removeSpecial()
	}
	w.Ready, w.Branch, w.Base, w.Taken, w.Merge, w.Conflicts = false, ws.Branch, head, "", "", nil
	if !p.Created { // all is kept: a .git that a crash leaves half made holds nothing
		if err := w.save(); err != nil {
			return Prepared{}, err
		}
	}
	var m merged
	if ws.Merge != "" {
		if head, m, err = v.startMerge(ctx, ws, head); err != nil {
			return Prepared{}, err
		}
		p.Head, w.Base, p.Conflicts = head, head, m.conflicts
	}
	if err := w.fill(ctx, ws, m); err != nil {
		return Prepared{}, fmt.Errorf("prepare workspace %s: %w", ws.Dir, err)
	}
	w.Ready = true
	return p, w.save()
}

// startBranch returns the commit to check out and makes the branch if needed.
func (v *Vault) startBranch(ctx context.Context, ws Workspace) (string, error) {
	if ws.Branch == "" {
		return v.Resolve(ctx, ws.Base)
	}
	if err := ValidBranch(ws.Branch); err != nil {
		return "", err
	}
	ref := "refs/heads/" + ws.Branch
	head, err := v.Ref(ctx, ref)
	if KindOf(err) != KindBranchMissing {
		return head, err
	}
	if !isHash(ws.Base) {
		return "", fail(KindInvalidRef, "%q is not a commit to start from", ws.Base)
	}
	if err := v.SetRef(ctx, ref, ws.Base, ""); err != nil && KindOf(err) != KindRefMoved {
		return "", err
	}
	return v.Ref(ctx, ref)
}

// startMerge merges ws.Merge into head. A clean merge moves the branch.
func (v *Vault) startMerge(ctx context.Context, ws Workspace, head string) (string, merged, error) {
	got, err := v.Merge(ctx, []string{head, ws.Merge}, "Merge work that came in meanwhile\n")
	if err != nil {
		return "", merged{}, err
	}
	if len(got.Conflicts) > 0 {
		m, err := v.mergeTree(ctx, head, ws.Merge)
		return head, m, err
	}
	if ws.Branch != "" && got.Commit != head {
		err = v.SetRef(ctx, "refs/heads/"+ws.Branch, got.Commit, head)
	}
	return got.Commit, merged{}, err
}

// claim returns the registered workspace of a path, made new when nothing of
// ours is there: then with what it is to hold. Ready says whether an agent may have
// worked in it.
func (v *Vault) claim(dir string, made registration) (*workspace, error) {
	w, err := v.lookup(dir)
	if err != nil {
		return nil, err
	}
	if w != nil {
		switch who, err := w.presence(); {
		case err != nil:
			return nil, err
		case who == ours:
			return w, nil
		}
		w.forget()
	}
	w = v.newWorkspace(dir)
	made.Dir = dir
	w.registration = made
	if err := os.Mkdir(dir, 0o755); err != nil {
		entries, readErr := os.ReadDir(dir)
		info, statErr := os.Lstat(dir)
		if !errors.Is(err, os.ErrExist) {
			return nil, storageError("make workspace "+dir, err)
		}
		if readErr != nil || statErr != nil || !info.IsDir() || len(entries) > 0 {
			return nil, fail(KindPathOccupied, "%s holds files that are not ours", dir).hint("move them away; they were not touched")
		}
	}
	if w.identity, _, err = identify(dir); err != nil {
		return nil, storageError("make workspace "+dir, err)
	}
	return w, w.save()
}

// fill writes .git by hand and checks the files out. No agent runs meanwhile.
func (w *workspace) fill(ctx context.Context, ws Workspace, m merged) error {
	if err := w.retireGit(); err != nil {
		return err
	}
	if err := w.writeGit(ws, m); err != nil {
		return storageError("write the workspace's .git", err)
	}
	tree := m.tree
	if tree == "" {
		var err error
		if tree, err = w.vault.treeOf(ctx, w.Base); err != nil {
			return err
		}
	}
	_ = os.Remove(w.index() + ".lock")                        // left by a crash: we hold the workspace's lock
	if w.Tree != "" && w.Tree != tree && !exists(w.index()) { // tells read-tree which files it may remove
		if _, err := w.vault.git.run(ctx, command{args: []opt{"read-tree"}, values: []string{w.Tree}, env: w.env(w.index())}); err != nil {
			return err
		}
	}
	w.Tree, w.Merge, w.Conflicts = tree, "", m.conflicts
	if len(m.conflicts) > 0 {
		w.Merge = m.theirs
	}
	if err := w.save(); err != nil {
		return err
	}
	_, err := w.vault.git.run(ctx, command{
		args: []opt{"-c", "core.checkStat=default", "read-tree", "--reset", "-u"}, values: []string{tree}, env: w.env(w.index()), dir: w.Dir,
	})
	if err == nil && ws.Clean {
		_, err = w.vault.git.run(ctx, command{args: []opt{"clean", "-d", "-f", "-q"}, env: w.env(w.index()), dir: w.Dir})
	}
	if err != nil {
		return err
	}
	if err := copyFile(w.index(), filepath.Join(w.gitDir(), "index")); err != nil {
		return storageError("write the workspace's index", err)
	}
	return w.unmerge(ctx, m)
}

// removeSpecial deletes pipes, sockets and devices: they hold no work, and one
// named .gitignore would hang the next run's git.
func (w *workspace) removeSpecial() {
	root, err := os.OpenRoot(w.Dir)
	if err != nil {
		return
	}
	defer root.Close()
	for _, p := range w.special {
		if info, err := root.Lstat(p); err == nil && !info.IsDir() && !info.Mode().IsRegular() {
			_ = root.Remove(p) // what cannot be removed is met again by the next scan
		}
	}
}

// unmerge gives the agent's index the conflict's stages.
func (w *workspace) unmerge(ctx context.Context, m merged) error {
	if len(m.stages) == 0 {
		return nil
	}
	var in bytes.Buffer
	for _, s := range m.stages {
		fmt.Fprintf(&in, "0 %s\t%s\x00", zeroHash, s.path)
	}
	for _, s := range m.stages {
		fmt.Fprintf(&in, "%s %s %d\t%s\x00", s.mode, s.hash, s.stage, s.path)
	}
	_, err := w.vault.git.run(ctx, command{
		args: []opt{"update-index", "-z", "--index-info"}, stdin: &in,
		env: w.env(filepath.Join(w.gitDir(), "index")), dir: w.Dir,
	})
	return err
}

// retireGit moves the former .git out of the work tree and deletes it. What it
// held that the vault lacks was kept by clear.
func (w *workspace) retireGit() error {
	old := w.oldGit()
	_ = removeAll(old)
	if !exists(w.gitDir()) {
		return nil
	}
	if err := os.Rename(w.gitDir(), old); err != nil {
		return storageError("move the former .git away", err)
	}
	_ = removeAll(old) // a leftover is removed by the next Prepare
	return nil
}

func (w *workspace) writeGit(ws Workspace, m merged) error {
	head := w.Base + "\n"
	if ws.Branch != "" {
		head = "ref: refs/heads/" + ws.Branch + "\n"
	}
	agent := ws.Agent
	if agent.Name == "" {
		agent.Name = "Claudomator agent"
	}
	if agent.Email == "" {
		agent.Email = "agent@localhost"
	}
	files := map[string]string{
		"HEAD":                    head,
		"config":                  workspaceConfig(agent),
		"objects/info/alternates": w.alternates(),
	}
	if ws.Branch != "" {
		files["refs/heads/"+ws.Branch] = w.Base + "\n"
	}
	if len(m.conflicts) > 0 {
		files["MERGE_HEAD"] = m.theirs + "\n"
		files["MERGE_MSG"] = "Merge work that came in meanwhile\n"
	}
	if data, err := os.ReadFile(filepath.Join(w.vault.dir, "shallow")); err == nil {
		files["shallow"] = string(data)
	}
	git := w.gitDir()
	var err error
	for _, d := range []string{"objects/pack", "refs/heads", "info"} {
		err = errors.Join(err, os.MkdirAll(filepath.Join(git, d), 0o755))
	}
	for name, text := range files {
		path := filepath.Join(git, name)
		err = errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644))
	}
	return err
}

// alternates is the exact content of the workspace's objects/info/alternates.
func (w *workspace) alternates() string { return filepath.Join(w.vault.dir, "objects") + "\n" }

func workspaceConfig(agent Identity) string {
	quote := func(s string) string {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", " ", "\x00", "").Replace(s) + `"`
	}
	return `[core]
	repositoryformatversion = 0
	filemode = true
	bare = false
	logallrefupdates = true
[user]
	name = ` + quote(agent.Name) + `
	email = ` + quote(agent.Email) + `
[commit]
	gpgsign = false
[tag]
	gpgsign = false
[gc]
	auto = 0
[maintenance]
	auto = false
`
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // only read
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// removeAll deletes a folder of ours, also where an agent took the write
// permission away. It follows no link.
func removeAll(dir string) error {
	if err := os.RemoveAll(dir); err == nil || missing(err) {
		return nil
	}
	_ = filepath.WalkDir(dir, func(p string, d os.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(p, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}

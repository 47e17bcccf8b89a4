package git

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"syscall"
)

// registration is the vault's record of one workspace: the positive proof that
// a directory is ours, and the state the server left it in before an agent ran.
type registration struct {
	Dir       string     `json:"dir"`
	identity             // of the directory
	Ready     bool       `json:"ready"` // false: being made
	Branch    string     `json:"branch,omitempty"`
	Base      string     `json:"base"`            // HEAD as we set it
	Taken     string     `json:"taken,omitempty"` // what the last Collect made of the workspace
	Tree      string     `json:"tree"`            // what our index and the files held
	Merge     string     `json:"merge,omitempty"` // commit whose merge is the work
	Conflicts []Conflict `json:"conflicts,omitempty"`
}

// workspace is a registered directory, locked by the caller.
type workspace struct {
	registration
	vault *Vault
	key   string

	saved    []byte   // the record as it lies on the disk
	special  []string // pipes and the like that clear found
	diffed   Stat     // the last difference asked for: collecting needs one twice
	from, to string
}

// diff compares two trees and remembers the answer.
func (w *workspace) diff(ctx context.Context, from, to string) (Stat, error) {
	if w.from == from && w.to == to {
		return w.diffed, nil
	}
	stat, err := w.vault.Diff(ctx, from, to)
	if err == nil {
		w.diffed, w.from, w.to = stat, from, to
	}
	return stat, err
}

// resolveDir returns the directory's path with its parent's links resolved.
// The last element may not exist, and may be a link: it is judged later.
func resolveDir(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fail(KindFailed, "resolve %s", dir).because(err)
	}
	parent, err := filepath.EvalSymlinks(filepath.Dir(abs))
	if missing(err) {
		return abs, nil
	}
	if err != nil {
		return "", fail(KindFailed, "resolve %s", dir).because(err)
	}
	return filepath.Join(parent, filepath.Base(abs)), nil
}

// lookup returns the registration of a resolved directory, nil when there is
// none.
func (v *Vault) lookup(dir string) (*workspace, error) {
	sum := sha256.Sum256([]byte(dir))
	w := &workspace{vault: v, key: hex.EncodeToString(sum[:12])}
	data, err := os.ReadFile(w.file(".json"))
	if missing(err) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &w.registration)
	}
	if err != nil {
		return nil, fail(KindCorruptWorkspace, "read the record of workspace %s", dir).because(err)
	}
	if w.Dir != dir {
		return nil, fail(KindCorruptWorkspace, "the record of workspace %s names %s", dir, w.Dir)
	}
	w.saved = data
	return w, nil
}

// lockWorkspace locks a path and returns the workspace that is registered there,
// nil when none is. The caller unlocks.
func (v *Vault) lockWorkspace(ctx context.Context, dir string) (path string, w *workspace, unlock func(), err error) {
	if path, err = resolveDir(dir); err != nil {
		return "", nil, nil, err
	}
	if unlock, err = v.git.locks.lock(ctx, path); err != nil {
		return "", nil, nil, err
	}
	if w, err = v.lookup(path); err != nil {
		unlock()
		return "", nil, nil, err
	}
	return path, w, unlock, nil
}

func (v *Vault) newWorkspace(dir string) *workspace {
	sum := sha256.Sum256([]byte(dir))
	return &workspace{vault: v, key: hex.EncodeToString(sum[:12]), registration: registration{Dir: dir}}
}

func (w *workspace) file(suffix string) string {
	return filepath.Join(w.vault.dir, "claudomator", "workspaces", w.key+suffix)
}

func (w *workspace) index() string  { return w.file(".index") }
func (w *workspace) gitDir() string { return filepath.Join(w.Dir, ".git") }

// oldGit is where a former .git lies until it is deleted.
func (w *workspace) oldGit() string {
	return filepath.Join(filepath.Dir(w.Dir), "."+filepath.Base(w.Dir)+".old-git")
}

// save writes the record where it has changed.
func (w *workspace) save() error {
	data, err := json.Marshal(w.registration)
	if err != nil || bytes.Equal(data, w.saved) {
		return err
	}
	w.saved = nil
	if err = writeFile(w.file(".json"), data); err == nil {
		w.saved = data
	}
	return err
}

func (w *workspace) forget() {
	_ = os.Remove(w.index())
	_ = os.Remove(w.index() + ".lock") // left by a crash
	_ = os.Remove(w.file(".json"))
	w.saved = nil
}

type presence int

const (
	absent  presence = iota
	ours             // the very directory we made
	foreign          // something else stands there
)

// presence proves whose directory stands at the path now.
func (w *workspace) presence() (presence, error) {
	id, real, err := identify(w.Dir)
	switch {
	case missing(err):
		return absent, nil
	case err != nil:
		return foreign, fail(KindCorruptWorkspace, "look at workspace %s", w.Dir).because(err)
	case real && id == w.identity:
		return ours, nil
	}
	return foreign, nil
}

// identity tells one directory from another that stands at its path later.
type identity struct {
	Dev  uint64 `json:"dev"`
	Ino  uint64 `json:"ino"`
	Born int64  `json:"born"` // inode numbers are used again; 0 where the file system does not know
}

// identify looks at a path; real says that it is a directory and no link.
func identify(path string) (id identity, real bool, err error) {
	info, err := os.Lstat(path)
	if err != nil {
		return identity{}, false, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return identity{}, false, nil
	}
	return identity{uint64(st.Dev), st.Ino, born(path, st)}, info.IsDir(), nil //nolint:gosec,unconvert // signed on macOS
}

// env runs git over the work tree with the vault's directory and our index:
// the workspace's own .git plays no part.
func (w *workspace) env(index string) []string {
	return append(w.vault.env(), "GIT_WORK_TREE="+w.Dir, "GIT_INDEX_FILE="+index)
}

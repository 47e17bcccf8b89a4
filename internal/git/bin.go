package git

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Discarded says where a workspace went.
type Discarded struct {
	Gone     bool   // there was nothing to remove
	Binned   string // path in the bin
	Snapshot string // private ref, "" when the vault held everything already
	Warnings []Warning
}

// binMark lies beside each entry of the bin and proves that it is ours.
type binMark struct {
	From string    `json:"from"`
	At   time.Time `json:"at"`
}

const binSuffix = ".claudomator.json"

// Discard removes a workspace: what the vault lacks is snapshotted, then the
// directory moves to the bin. Only the very directory that Prepare made is
// moved; anything else at the path is left alone with an error. The caller has
// ended the agent's processes.
func (v *Vault) Discard(ctx context.Context, dir, bin string) (Discarded, error) {
	dir, w, unlock, err := v.lockWorkspace(ctx, dir)
	if err != nil {
		return Discarded{}, err
	}
	defer unlock()
	if w == nil {
		_ = syscall.Rmdir(dir) // killed before anything was in it
		if exists(dir) {
			return Discarded{}, unsafe(dir, "is not a workspace of this vault")
		}
		return Discarded{Gone: true}, nil
	}
	switch who, err := w.presence(); {
	case err != nil:
		return Discarded{}, err
	case who == absent:
		w.forget()
		return Discarded{Gone: true}, nil
	case who == foreign:
		return Discarded{}, unsafe(dir, "is not the directory that was prepared")
	}
	var d Discarded
	if w.Ready {
		if d.Snapshot, d.Warnings, err = v.clear(ctx, w); err != nil {
			return Discarded{}, fmt.Errorf("keep the work of %s: %w", dir, err)
		}
	}
	_ = removeAll(w.oldGit()) // first: nobody looks for it once the workspace is gone
	if d.Binned, err = v.git.toBin(dir, bin); err != nil {
		return Discarded{}, err
	}
	w.forget()
	return d, nil
}

// SetAside moves what is at a workspace's path to the bin unread: for one that an
// agent has made unsafe to look at, or replaced by something else. A link is moved
// as a link. Only a path where Prepare has made a workspace is touched.
func (v *Vault) SetAside(ctx context.Context, dir, bin string) (Discarded, error) {
	dir, w, unlock, err := v.lockWorkspace(ctx, dir)
	if err != nil {
		return Discarded{}, err
	}
	defer unlock()
	if w == nil {
		return Discarded{}, unsafe(dir, "is not a workspace of this vault")
	}
	var d Discarded
	if _, err := os.Lstat(dir); errors.Is(err, os.ErrNotExist) {
		d.Gone = true
	} else if d.Binned, err = v.git.toBin(dir, bin); err != nil {
		return Discarded{}, err
	}
	w.forget()
	return d, nil
}

func (g *Git) toBin(dir, bin string) (string, error) {
	bin, err := realDir(bin)
	if err != nil {
		return "", err
	}
	now := g.opts.Now()
	mark, err := json.Marshal(binMark{From: dir, At: now})
	if err != nil {
		return "", err
	}
	to := filepath.Join(bin, fmt.Sprintf("%s-%d", strings.TrimLeft(filepath.Base(dir), "."), now.UnixNano()))
	for exists(to) || exists(to+binSuffix) {
		to += "x"
	}
	if err := writeFile(to+binSuffix, mark); err != nil {
		return "", err
	}
	if err := os.Rename(dir, to); err != nil {
		_ = os.Remove(to + binSuffix)
		if errors.Is(err, syscall.EXDEV) {
			return "", fail(KindFailed, "the bin %s is on another file system than %s", bin, dir).because(err)
		}
		return "", storageError("move "+dir+" to the bin", err)
	}
	return to, nil
}

// EmptyBin deletes what was put into a bin before the given time, and nothing
// that did not come there through Discard. It returns how many entries went.
func (g *Git) EmptyBin(ctx context.Context, bin string, before time.Time) (int, error) {
	marks, err := filepath.Glob(filepath.Join(escapeGlob(bin), "*"+binSuffix))
	if err != nil {
		return 0, fail(KindFailed, "read the bin %s", bin).because(err)
	}
	gone := 0
	for _, file := range marks {
		if ctx.Err() != nil {
			return gone, context.Cause(ctx)
		}
		var mark binMark
		data, err := os.ReadFile(file)
		if err != nil || json.Unmarshal(data, &mark) != nil || mark.From == "" || !mark.At.Before(before) {
			continue
		}
		entry := strings.TrimSuffix(file, binSuffix)
		switch info, err := os.Lstat(entry); {
		case err == nil && !info.IsDir():
			continue // not what was put there
		case missing(err) && g.opts.Now().Sub(mark.At) < time.Minute:
			continue // it is just being put there
		}
		if err := removeAll(entry); err != nil {
			return gone, storageError("delete "+entry, err)
		}
		if err := os.Remove(file); err != nil {
			return gone, storageError("delete "+file, err)
		}
		gone++
	}
	return gone, nil
}

func escapeGlob(p string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(p)
}

package git

import (
	"context"
	"strings"
)

// FileEntry is a regular file of a commit.
type FileEntry struct {
	Name string // within its folder
	Size int64  // bytes
}

// maxListed bounds how many files of one folder are listed.
const maxListed = 1000

// Files lists the regular files directly below a folder of a commit, by name; ""
// is the top. Links, submodules and folders are left out, and no link on the way
// is followed. A folder that is not there is empty.
func (v *Vault) Files(ctx context.Context, commit, dir string) ([]FileEntry, error) {
	at, err := v.entryAt(ctx, commit, dir)
	if err != nil || at.mode != modeTree {
		return nil, err
	}
	entries, err := v.tree(ctx, at.hash)
	if err != nil {
		return nil, err
	}
	var files []FileEntry
	for _, e := range entries {
		if !e.regular() || !safePath(e.name) || strings.Contains(e.name, "/") {
			continue
		}
		if len(files) == maxListed {
			return nil, fail(KindTooLarge, "%s has more than %d files", Display(dir), maxListed)
		}
		size, err := v.blobSize(ctx, e)
		if err != nil {
			return nil, err
		}
		files = append(files, FileEntry{Name: e.name, Size: size})
	}
	return files, nil
}

// File returns a regular file of a commit. One that is not there, or is something
// else, is KindFileMissing; one of more than limit bytes KindTooLarge, unread.
func (v *Vault) File(ctx context.Context, commit, path string, limit int64) ([]byte, error) {
	at, err := v.entryAt(ctx, commit, path)
	if err != nil {
		return nil, err
	}
	if !at.regular() {
		return nil, fail(KindFileMissing, "there is no file %s in %s", Display(path), commit)
	}
	size, err := v.blobSize(ctx, at)
	if err != nil {
		return nil, err
	}
	if size > min(limit, maxObject) {
		return nil, fail(KindTooLarge, "%s has %d bytes; at most %d are read", Display(path), size, min(limit, maxObject))
	}
	_, data, err := v.reader.contents(ctx, at.hash)
	return data, err
}

// entryAt finds what a commit has at a path, the zero entry when nothing is there.
func (v *Vault) entryAt(ctx context.Context, commit, path string) (treeEntry, error) {
	if path != "" && !safePath(path) {
		return treeEntry{}, fail(KindInvalidRef, "%q is not a path inside of a repository", path)
	}
	tree, err := v.treeOf(ctx, commit)
	if err != nil {
		return treeEntry{}, err
	}
	at := treeEntry{mode: modeTree, hash: tree}
	for path != "" && at.mode == modeTree {
		var name string
		name, path, _ = strings.Cut(path, "/")
		entries, err := v.tree(ctx, at.hash)
		if err != nil {
			return treeEntry{}, err
		}
		at = treeEntry{}
		for _, e := range entries {
			if e.name == name {
				at = e
			}
		}
	}
	if path != "" {
		return treeEntry{}, nil // a file or a link where a folder would have to be
	}
	return at, nil
}

func (e treeEntry) regular() bool { return strings.HasPrefix(e.mode, "100") }

func (v *Vault) blobSize(ctx context.Context, e treeEntry) (int64, error) {
	kind, size, err := v.reader.size(ctx, e.hash)
	if err == nil && kind != "blob" {
		err = fail(KindFailed, "object %s of %s is not in the vault", e.hash, Display(e.name))
	}
	return size, err
}

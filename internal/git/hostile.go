package git

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// Reading a workspace's .git after an agent had it. Nothing here runs git.
// Files are opened below an os.Root, never through a link, never blocking, and
// never without a bound.

// maxSmall bounds HEAD, refs and the like; maxIndex the index; maxReflog a log.
const (
	maxSmall  = 64 << 10
	maxIndex  = 256 << 20
	maxReflog = 4 << 20
)

// readPlain reads a regular file below root. Every part of its path must be a
// real folder.
func readPlain(root *os.Root, name string, limit int64) ([]byte, error) {
	for i := range len(name) { // from the top, so that no link is ever passed
		if name[i] != '/' {
			continue
		}
		info, err := root.Lstat(name[:i])
		if err != nil {
			return nil, err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			return nil, unsafe(".git/"+name[:i], "is a link")
		}
		if !info.IsDir() {
			return nil, fmt.Errorf(".git/%s: %w", name[:i], syscall.ENOTDIR)
		}
	}
	info, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, unsafe(".git/"+name, "is not a regular file")
	}
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = unsafe(".git/"+name, "is too large")
	}
	return data, err
}

func unsafe(what, why string) *Error {
	return fail(KindUnsafeWorkspace, "%s %s", what, why).hint("the workspace was left as it is; look at it before discarding it")
}

// openGit opens the workspace's .git and proves that its objects may be read:
// the alternates are what we wrote, and nothing below objects is a link or a
// special file. nil without error: there is no .git any more.
func (w *workspace) openGit() (*os.Root, error) {
	ws, err := os.OpenRoot(w.Dir)
	if err != nil {
		return nil, fail(KindCorruptWorkspace, "open workspace %s", w.Dir).because(err)
	}
	defer ws.Close()
	info, err := ws.Lstat(".git")
	if missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fail(KindCorruptWorkspace, "look at .git of %s", w.Dir).because(err)
	}
	if !info.IsDir() {
		return nil, unsafe(".git", "was replaced by something that is not a folder")
	}
	root, err := ws.OpenRoot(".git")
	if err != nil {
		return nil, fail(KindCorruptWorkspace, "open .git of %s", w.Dir).because(err)
	}
	if err := w.checkObjects(root); err != nil {
		root.Close()
		return nil, err
	}
	return root, nil
}

func (w *workspace) checkObjects(root *os.Root) error {
	text, err := readPlain(root, "objects/info/alternates", maxSmall)
	if err != nil && !missing(err) {
		return err
	}
	if err != nil || string(text) != w.alternates() {
		return unsafe(".git/objects/info/alternates", "was changed")
	}
	if exists := func(name string) bool { _, err := root.Lstat(name); return err == nil }; exists("objects/info/http-alternates") {
		return unsafe(".git/objects/info/http-alternates", "was added")
	}
	return fs.WalkDir(root.FS(), "objects", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return fail(KindCorruptWorkspace, "look at .git/%s", p).because(err)
		}
		if !d.IsDir() && !d.Type().IsRegular() {
			return unsafe(".git/"+p, "is a link or a special file")
		}
		return nil
	})
}

// readRef resolves a ref of the workspace; "" when it is not there.
func readRef(root *os.Root, ref string) (hash string, err error) {
	for range 5 {
		if ref != "HEAD" && checkRef(ref) != nil {
			return "", unsafe("HEAD", "names something that is not a ref")
		}
		data, err := readPlain(root, ref, maxSmall)
		if missing(err) || errors.Is(err, syscall.ENOTDIR) {
			packed, err := readPlain(root, "packed-refs", maxIndex)
			if err != nil && !missing(err) {
				return "", err
			}
			return parsePackedRefs(packed)[ref], nil
		}
		if err != nil {
			return "", err
		}
		text := strings.TrimSpace(string(data))
		if target, ok := strings.CutPrefix(text, "ref: "); ok {
			ref = target
			continue
		}
		if !isHash(text) {
			return "", unsafe(ref, "holds neither a commit nor a ref")
		}
		return text, nil
	}
	return "", unsafe(ref, "is a chain of refs")
}

// headBranch returns the full ref HEAD points at, "" when it is detached.
func headBranch(root *os.Root) string {
	data, err := readPlain(root, "HEAD", maxSmall)
	if err != nil {
		return ""
	}
	target, _ := strings.CutPrefix(strings.TrimSpace(string(data)), "ref: ")
	if checkRef(target) != nil {
		return ""
	}
	return target
}

// traces returns every commit that the agent's refs and logs name: what it
// stashed, branched, detached or reset away. Unreadable parts are skipped,
// because this is a search for extras and not an inspection.
func traces(root *os.Root) map[string]string {
	found := map[string]string{}
	if data, err := readPlain(root, "packed-refs", maxIndex); err == nil {
		for ref, hash := range parsePackedRefs(data) {
			found[hash] = ref
		}
	}
	_ = fs.WalkDir(root.FS(), "refs", func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && len(found) <= maxTraces {
			if hash := hashIn(root, p); hash != "" {
				found[hash] = p
			}
		}
		return nil
	})
	for _, log := range []string{"logs/HEAD", "logs/refs/stash"} {
		data, err := readPlain(root, log, maxReflog)
		if err != nil {
			continue
		}
		for _, hash := range parseReflog(data) {
			if _, known := found[hash]; !known && len(found) <= maxTraces {
				found[hash] = log
			}
		}
	}
	return found
}

const maxTraces = 500

// hashIn is the object name that a ref's file holds, "" when it holds none.
func hashIn(root *os.Root, name string) string {
	data, err := readPlain(root, name, maxSmall)
	if hash := strings.TrimSpace(string(data)); err == nil && isHash(hash) {
		return hash
	}
	return ""
}

// parseReflog returns the new hashes of a reflog.
func parseReflog(data []byte) (hashes []string) {
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		text := lines.Text()
		if len(text) > 81 && isHash(text[:40]) && text[40] == ' ' && isHash(text[41:81]) && text[41:81] != zeroHash {
			hashes = append(hashes, text[41:81])
		}
	}
	return hashes
}

// operations names what the agent left half done.
func operations(root *os.Root) (under []string) {
	for _, op := range operationFiles() {
		if _, err := root.Lstat(op.file); err == nil {
			under = append(under, op.name)
		}
	}
	return under
}

type operationFile struct{ file, name string }

// operationFiles lists the files that git keeps while an operation is under way.
func operationFiles() []operationFile {
	return []operationFile{
		{"rebase-merge", "rebase"}, {"rebase-apply", "rebase or am"}, {"MERGE_HEAD", "merge"},
		{"CHERRY_PICK_HEAD", "cherry-pick"}, {"REVERT_HEAD", "revert"}, {"BISECT_LOG", "bisect"}, {"sequencer", "sequence of picks"},
	}
}

// staleLocks lists lock files; no process of the run is alive any more.
func staleLocks(root *os.Root) (locks []string) {
	_ = fs.WalkDir(root.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // a warning and no inspection: what cannot be read is left out
		}
		if d.IsDir() && (p == "objects" || p == "modules" || p == "logs") {
			return fs.SkipDir
		}
		if strings.HasSuffix(p, ".lock") && len(locks) < 20 {
			locks = append(locks, p)
		}
		return nil
	})
	return locks
}

// unmergedPaths reads the agent's index for paths it did not settle.
func unmergedPaths(root *os.Root) (paths map[string]bool, err error) {
	data, err := readPlain(root, "index", maxIndex)
	if err != nil {
		return nil, err
	}
	entries, err := parseIndex(data)
	paths = map[string]bool{}
	for _, e := range entries {
		if e.stage > 0 {
			paths[e.path] = true
		}
	}
	return paths, err
}

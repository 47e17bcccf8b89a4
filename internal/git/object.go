package git

import (
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha1" //nolint:gosec // git's object names
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Commits, trees and blobs of our own are written as loose objects from Go:
// a process per object would cost four times as much.

const (
	modeTree    = "40000"
	modeFile    = "100644"
	modeExec    = "100755"
	modeLink    = "120000"
	modeGitlink = "160000"
)

// treeEntry is one line of a tree object, without leading zeros in the mode.
type treeEntry struct {
	mode, name, hash string
}

type commitInfo struct {
	tree    string
	parents []string
	at      time.Time // of its committer; zero when that cannot be read
	message string
}

// Identity signs commits.
type Identity struct {
	Name, Email string
}

func objectName(kind string, data []byte) string {
	h := sha1.New() //nolint:gosec // git's object names
	fmt.Fprintf(h, "%s %d\x00", kind, len(data))
	h.Write(data)
	return hex.EncodeToString(h.Sum(nil))
}

// writeObject stores an object that fits in memory.
func (v *Vault) writeObject(kind string, data []byte) (string, error) {
	hash := objectName(kind, data)
	if _, err := os.Stat(v.loosePath(hash)); err == nil {
		return hash, nil
	}
	got, err := v.writeLoose(kind, int64(len(data)), bytes.NewReader(data))
	if err == nil && got != hash {
		err = fail(KindFailed, "object changed while it was written")
	}
	return hash, err
}

// writeLoose streams an object of known size into the vault.
func (v *Vault) writeLoose(kind string, size int64, from io.Reader) (string, error) {
	tmp, err := os.CreateTemp(filepath.Join(v.dir, "objects"), "tmp_obj_")
	if err != nil {
		return "", storageError("write an object", err)
	}
	defer func() { _ = os.Remove(tmp.Name()) }() // gone after the rename; then this does nothing
	defer func() { _ = tmp.Close() }()           // closed and checked before the rename; this is for what fails earlier
	z, err := zlib.NewWriterLevel(tmp, zlib.BestSpeed)
	if err != nil {
		return "", err
	}
	h := sha1.New() //nolint:gosec // git's object names
	w := io.MultiWriter(z, h)
	_, headErr := fmt.Fprintf(w, "%s %d\x00", kind, size)
	n, err := io.Copy(w, io.LimitReader(from, size+1))
	if err == nil && n != size {
		err = errors.New("the file changed while it was read")
	}
	if err = errors.Join(headErr, err, z.Close(), tmp.Chmod(0o444), tmp.Close()); err != nil {
		return "", storageError("write an object", err)
	}
	hash := hex.EncodeToString(h.Sum(nil))
	path := v.loosePath(hash)
	if err := os.Rename(tmp.Name(), path); err == nil {
		return hash, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return "", storageError("write an object", err)
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return "", storageError("write an object", err)
	}
	return hash, nil
}

func (v *Vault) loosePath(hash string) string {
	return filepath.Join(v.dir, "objects", hash[:2], hash[2:])
}

// writeCommit makes a commit under the server's committer identity.
func (v *Vault) writeCommit(tree string, parents []string, author Identity, at time.Time, message string) (string, error) {
	committer := Identity{v.git.opts.Name, v.git.opts.Email}
	if author.Name == "" {
		author = committer
	}
	var b strings.Builder
	fmt.Fprintf(&b, "tree %s\n", tree)
	for _, p := range parents {
		fmt.Fprintf(&b, "parent %s\n", p)
	}
	fmt.Fprintf(&b, "author %s %d +0000\ncommitter %s %d +0000\n\n", author.line(), at.Unix(), committer.line(), at.Unix())
	b.WriteString(strings.TrimRight(strings.ReplaceAll(message, "\x00", ""), "\n") + "\n")
	return v.writeObject("commit", []byte(b.String()))
}

// line formats an identity as git does, without the characters that would
// break the header.
func (i Identity) line() string {
	clean := func(s, fallback string) string {
		s = strings.Map(func(r rune) rune {
			if r < 0x20 || r == '<' || r == '>' {
				return -1
			}
			return r
		}, s)
		if s = strings.Trim(s, " .,:;\"'\\"); s == "" {
			return fallback
		}
		return s
	}
	return clean(i.Name, "unknown") + " <" + clean(i.Email, "unknown@localhost") + ">"
}

// commits remembers the commits that were read last: they never change, and the vault
// never loses one. Its zero value is ready.
type commits struct {
	mu    sync.Mutex
	known map[string]commitInfo
}

const (
	knownCommits = 256
	knownSize    = 4 << 10 // bytes of one that is remembered, at most
)

func (c *commits) find(hash string) (commitInfo, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	info, ok := c.known[hash]
	return info, ok
}

func (c *commits) keep(hash string, info commitInfo, size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if size > knownSize {
		return
	}
	if c.known == nil || len(c.known) >= knownCommits {
		c.known = map[string]commitInfo{}
	}
	c.known[hash] = info
}

// kind returns an object's type, "" when it is not there.
func (v *Vault) kind(ctx context.Context, hash string) (string, error) {
	if _, ok := v.commits.find(hash); ok {
		return "commit", nil
	}
	return v.reader.kind(ctx, hash)
}

// commit reads a commit; what it holds is not to be changed.
func (v *Vault) commit(ctx context.Context, hash string) (commitInfo, error) {
	if info, ok := v.commits.find(hash); ok {
		return info, context.Cause(ctx)
	}
	kind, data, err := v.reader.contents(ctx, hash)
	if err != nil {
		return commitInfo{}, err
	}
	if kind != "commit" {
		return commitInfo{}, fail(KindBranchMissing, "%s is not a commit of the vault", hash)
	}
	info, err := parseCommit(data)
	if err == nil {
		v.commits.keep(hash, info, len(data))
	}
	return info, err
}

func parseCommit(data []byte) (c commitInfo, err error) {
	head, message, _ := strings.Cut(string(data), "\n\n")
	c.message = message
	for line := range strings.SplitSeq(head, "\n") {
		key, value, _ := strings.Cut(line, " ")
		switch {
		case key == "tree" && isHash(value):
			c.tree = value
		case key == "parent" && isHash(value):
			c.parents = append(c.parents, value)
		case key == "committer":
			c.at = signedAt(value)
		}
	}
	if c.tree == "" {
		return c, fail(KindFailed, "a commit without a tree")
	}
	return c, nil
}

// signedAt reads the time of "NAME <MAIL> SECONDS ZONE".
func signedAt(line string) time.Time {
	fields := strings.Fields(line)
	if len(fields) < 2 {
		return time.Time{}
	}
	seconds, err := strconv.ParseInt(fields[len(fields)-2], 10, 64)
	if err != nil || seconds < 0 || seconds > lastSecond {
		return time.Time{}
	}
	return time.Unix(seconds, 0).UTC()
}

// lastSecond is the end of the year 9999: later times are not written in JSON.
const lastSecond = 253402300799

func (v *Vault) treeOf(ctx context.Context, commit string) (string, error) {
	c, err := v.commit(ctx, commit)
	return c.tree, err
}

func (v *Vault) tree(ctx context.Context, hash string) ([]treeEntry, error) {
	kind, data, err := v.reader.contents(ctx, hash)
	if err != nil {
		return nil, err
	}
	if kind == "" && hash == emptyTree {
		return nil, nil // git knows it without an object
	}
	if kind != "tree" {
		return nil, fail(KindFailed, "%s is not a tree of the vault", hash)
	}
	return parseTree(data)
}

const emptyTree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

func parseTree(data []byte) (entries []treeEntry, err error) {
	for len(data) > 0 {
		head, rest, ok := bytes.Cut(data, []byte{0})
		mode, name, ok2 := strings.Cut(string(head), " ")
		if !ok || !ok2 || len(rest) < 20 || name == "" {
			return nil, fail(KindFailed, "a malformed tree")
		}
		entries = append(entries, treeEntry{strings.TrimLeft(mode, "0"), name, hex.EncodeToString(rest[:20])})
		data = rest[20:]
	}
	return entries, nil
}

func (v *Vault) writeTree(entries []treeEntry) (string, error) {
	// git sorts folders as if their names ended in a slash.
	key := func(e treeEntry) string {
		if e.mode == modeTree {
			return e.name + "/"
		}
		return e.name
	}
	slices.SortFunc(entries, func(a, b treeEntry) int { return strings.Compare(key(a), key(b)) })
	var b bytes.Buffer
	for _, e := range entries {
		raw, err := hex.DecodeString(e.hash)
		if err != nil || len(raw) != 20 {
			return "", fail(KindFailed, "a tree entry without an object")
		}
		b.WriteString(e.mode + " " + e.name + "\x00")
		b.Write(raw)
	}
	return v.writeObject("tree", b.Bytes())
}

// edit is a change to one path: an entry to put there, or deletion.
type edit struct {
	mode, hash string // both "" deletes
}

// editTree applies edits to a tree and returns the new tree. Folders that
// become empty vanish, as git wants it.
func (v *Vault) editTree(ctx context.Context, tree string, edits map[string]edit) (string, error) {
	if len(edits) == 0 {
		return tree, nil
	}
	hash, err := v.editLevel(ctx, tree, edits, 0)
	if err == nil && hash == "" {
		return v.writeTree(nil)
	}
	return hash, err
}

func (v *Vault) editLevel(ctx context.Context, tree string, edits map[string]edit, depth int) (string, error) {
	if depth > 200 {
		return "", fail(KindUnsafeWorkspace, "folders are nested more than 200 deep")
	}
	var old []treeEntry
	var err error
	if tree != "" {
		if old, err = v.tree(ctx, tree); err != nil {
			return "", err
		}
	}
	at := map[string]treeEntry{}
	for _, e := range old {
		at[e.name] = e
	}
	below := map[string]map[string]edit{}
	for path, e := range edits {
		name, rest, deeper := strings.Cut(path, "/")
		switch {
		case deeper:
			if below[name] == nil {
				below[name] = map[string]edit{}
			}
			below[name][rest] = e
		case e.hash == "":
			if at[name].mode != modeTree {
				delete(at, name)
			}
		default:
			at[name] = treeEntry{e.mode, name, e.hash}
		}
	}
	for name, sub := range below {
		from := ""
		if e, ok := at[name]; ok && e.mode == modeTree {
			from = e.hash
		}
		hash, err := v.editLevel(ctx, from, sub, depth+1)
		if err != nil {
			return "", err
		}
		switch {
		case hash != "":
			at[name] = treeEntry{modeTree, name, hash}
		case from != "":
			delete(at, name)
		}
	}
	if len(at) == 0 {
		return "", nil
	}
	entries := make([]treeEntry, 0, len(at))
	for _, e := range at {
		entries = append(entries, e)
	}
	return v.writeTree(entries)
}

// exists reports whether something is at the path, a dangling link included.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR)
}

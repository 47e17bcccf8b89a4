package git

import (
	"bytes"
	"context"
	"encoding/hex"
)

// Most runs change a few files, each in one place or as a whole. Such a difference is
// counted here, for the reader holds all that it takes; a process that does it costs
// more than all else of Collect. Whatever git could see in another way is left to git:
// what may be a rename, lines that changed both ways, rules for some of the files.

// Bounds of a difference that is counted here; beyond them a process is cheaper.
const (
	plainFiles = 8
	plainTrees = 24
	plainText  = 256 << 10 // bytes of a file
)

// plainDiff is one such difference under way.
type plainDiff struct {
	vault *Vault
	files []FileStat
	trees int // read so far
}

// plainDiff compares two commits or trees as Diff does; false where git has to.
func (v *Vault) plainDiff(ctx context.Context, base, head string) (Stat, bool) {
	d := &plainDiff{vault: v}
	from, ok := d.top(ctx, base)
	if !ok {
		return Stat{}, false
	}
	to, ok := d.top(ctx, head)
	if !ok || !d.compare(ctx, "", from, to) || d.renames() {
		return Stat{}, false
	}
	s := Stat{Files: d.files}
	for i := range s.Files {
		f := &s.Files[i]
		if !d.count(ctx, f) {
			return Stat{}, false
		}
		s.Insertions += f.Insertions
		s.Deletions += f.Deletions
	}
	return s, true
}

// top reads the tree of a commit, or a tree.
func (d *plainDiff) top(ctx context.Context, name string) ([]byte, bool) {
	if name == emptyTree { // git knows it without an object
		return nil, true
	}
	if !isHash(name) {
		return nil, false
	}
	kind, data, err := d.vault.reader.contents(ctx, name)
	if err != nil || kind != "commit" {
		return data, err == nil && kind == "tree"
	}
	c, err := parseCommit(data)
	if err != nil || c.tree == emptyTree {
		return nil, err == nil
	}
	return d.tree(ctx, c.tree)
}

func (d *plainDiff) tree(ctx context.Context, hash string) ([]byte, bool) {
	if d.trees++; d.trees > plainTrees {
		return nil, false
	}
	kind, data, err := d.vault.reader.contents(ctx, hash)
	return data, err == nil && kind == "tree"
}

// rawEntry is one entry of a tree as it is stored.
type rawEntry struct {
	raw, mode, name, hash []byte
}

func (e rawEntry) tree() bool { return string(e.mode) == modeTree }

// cutEntry splits the first entry off; false where there is none, or no whole one.
func cutEntry(data []byte) (e rawEntry, rest []byte, ok bool) {
	head, after, ok := bytes.Cut(data, []byte{0})
	if !ok || len(after) < 20 {
		return rawEntry{}, nil, false
	}
	if e.mode, e.name, ok = bytes.Cut(head, []byte{' '}); !ok {
		return rawEntry{}, nil, false
	}
	e.hash, rest = after[:20], after[20:]
	e.raw = data[:len(head)+1+20]
	return e, rest, true
}

// order is that of entries in a tree: a folder's name ends in a slash.
func (e rawEntry) order(o rawEntry) int {
	n := min(len(e.name), len(o.name))
	if c := bytes.Compare(e.name[:n], o.name[:n]); c != 0 {
		return c
	}
	return int(e.byteAt(n)) - int(o.byteAt(n))
}

func (e rawEntry) byteAt(n int) byte {
	switch {
	case n < len(e.name):
		return e.name[n]
	case e.tree():
		return '/'
	}
	return 0
}

// compare lists what differs below dir, which is empty or ends in a slash.
func (d *plainDiff) compare(ctx context.Context, dir string, from, to []byte) bool {
	for len(from) > 0 || len(to) > 0 {
		var old, new rawEntry
		oldRest, newRest := from, to
		ok, ok2 := true, true
		if len(from) > 0 {
			old, oldRest, ok = cutEntry(from)
		}
		if len(to) > 0 {
			new, newRest, ok2 = cutEntry(to)
		}
		if !ok || !ok2 || string(old.name) == ".gitattributes" || string(new.name) == ".gitattributes" {
			return false
		}
		if len(from) > 0 && len(to) > 0 {
			switch c := old.order(new); {
			case c < 0:
				new, newRest = rawEntry{}, to
			case c > 0:
				old, oldRest = rawEntry{}, from
			}
		}
		if !bytes.Equal(old.raw, new.raw) && !d.differs(ctx, dir, old, new) {
			return false
		}
		from, to = oldRest, newRest
	}
	return true
}

// differs notes one entry that is not the same on both sides; on one of them it may
// be missing.
func (d *plainDiff) differs(ctx context.Context, dir string, old, new rawEntry) bool {
	path := dir + string(old.name)
	if old.raw == nil {
		path = dir + string(new.name)
	}
	if old.tree() || new.tree() { // of one name and order, both or one and nothing
		from, ok := d.below(ctx, old)
		if !ok {
			return false
		}
		to, ok := d.below(ctx, new)
		return ok && d.compare(ctx, path+"/", from, to)
	}
	f := FileStat{Path: path, Status: "M", OldMode: string(old.mode), NewMode: string(new.mode), oldHash: hex.EncodeToString(old.hash), newHash: hex.EncodeToString(new.hash)}
	switch {
	case old.raw == nil:
		f.Status, f.OldMode, f.oldHash = "A", "000000", zeroHash
	case new.raw == nil:
		f.Status, f.NewMode, f.newHash = "D", "000000", zeroHash
	case (f.OldMode == modeLink) != (f.NewMode == modeLink):
		return false
	}
	for _, mode := range []string{f.OldMode, f.NewMode} {
		switch mode {
		case modeFile, modeExec, modeLink, "000000":
		default:
			return false
		}
	}
	d.files = append(d.files, f)
	return len(d.files) <= plainFiles
}

func (d *plainDiff) below(ctx context.Context, e rawEntry) ([]byte, bool) {
	if e.raw == nil {
		return nil, true
	}
	return d.tree(ctx, hex.EncodeToString(e.hash))
}

// renames says whether git may find that a file was renamed: one is gone and one is new.
func (d *plainDiff) renames() bool {
	added, gone := false, false
	for _, f := range d.files {
		added, gone = added || f.Status == "A", gone || f.Status == "D"
	}
	return added && gone
}

// count counts the lines of a file; false where it takes an algorithm to tell which of
// them are new.
func (d *plainDiff) count(ctx context.Context, f *FileStat) bool {
	if f.oldHash == f.newHash { // another mode
		return true
	}
	old, ok := d.text(ctx, f.oldHash)
	if !ok {
		return false
	}
	new, ok := d.text(ctx, f.newHash)
	if !ok {
		return false
	}
	if f.Binary = isBinary(old) || isBinary(new); f.Binary {
		return true
	}
	old, new = trimLines(old, new)
	f.Deletions, f.Insertions = lines(old), lines(new)
	return len(old) == 0 || len(new) == 0
}

func (d *plainDiff) text(ctx context.Context, hash string) ([]byte, bool) {
	if hash == zeroHash {
		return nil, true
	}
	kind, size, err := d.vault.reader.size(ctx, hash)
	if err != nil || kind != "blob" || size > plainText {
		return nil, false
	}
	_, data, err := d.vault.reader.contents(ctx, hash)
	return data, err == nil
}

// isBinary is git's own test.
func isBinary(data []byte) bool { return bytes.IndexByte(data[:min(len(data), 8000)], 0) >= 0 }

// trimLines removes the whole lines that both begin with, and then those that both end
// with.
func trimLines(a, b []byte) (x, y []byte) {
	for len(a) > 0 && len(b) > 0 {
		n := firstLine(a)
		if m := firstLine(b); n != m || !bytes.Equal(a[:n], b[:m]) {
			break
		}
		a, b = a[n:], b[n:]
	}
	for len(a) > 0 && len(b) > 0 {
		n := lastLine(a)
		if m := lastLine(b); n != m || !bytes.Equal(a[len(a)-n:], b[len(b)-m:]) {
			break
		}
		a, b = a[:len(a)-n], b[:len(b)-n]
	}
	return a, b
}

// firstLine is the length of the first line, with its end.
func firstLine(data []byte) int {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1
	}
	return len(data)
}

func lastLine(data []byte) int {
	return len(data) - 1 - bytes.LastIndexByte(data[:len(data)-1], '\n')
}

// lines counts lines, the last one also where it does not end.
func lines(data []byte) int {
	n := bytes.Count(data, []byte{'\n'})
	if len(data) > 0 && data[len(data)-1] != '\n' {
		n++
	}
	return n
}

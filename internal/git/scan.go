package git

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// want is what a tracked path should look like.
type want struct {
	mode, hash string
	stamp      stamp
	stamped    bool // the stamp is from our own checkout
}

// scan is the difference between a commit and a work tree.
type scan struct {
	edits      map[string]edit // path -> what a commit should hold; blobs are in the vault
	held       []HeldBack
	special    []string // pipes, sockets, devices: never opened
	nested     []string // folders of tracked files in which somebody ran git init
	unreadable []string // snapshots go on without them
	omitted    []string // left out of a snapshot for their size
}

func (s *scan) clean() bool { return len(s.edits) == 0 && len(s.held) == 0 }

// racy is how much older than our index a file must be for its stamp to prove
// anything: the kernel's clock ticks in steps of some milliseconds.
const racy = 50 * time.Millisecond

// expected builds what the files of commit head should look like. Our own index
// gives the stamps; without it every file is compared by content.
func (w *workspace) expected(ctx context.Context, head string) (map[string]want, error) {
	tree, err := w.vault.treeOf(ctx, head)
	if err != nil {
		return nil, err
	}
	wants := map[string]want{}
	entries, since := w.ownIndex()
	from := emptyTree
	if entries != nil {
		from = w.Tree
	}
	for _, e := range entries {
		trusted := e.stamp.ctime < since && e.stamp.mtime < since
		wants[e.path] = want{e.mode, e.hash, e.stamp, trusted}
	}
	if from == tree {
		return wants, nil
	}
	changes, err := w.diff(ctx, from, tree)
	if err != nil {
		return nil, err
	}
	for _, c := range changes.Files {
		if c.OldPath != "" {
			delete(wants, c.OldPath)
		}
		if c.Status == "D" {
			delete(wants, c.Path)
		} else {
			wants[c.Path] = want{mode: c.NewMode, hash: c.newHash}
		}
	}
	return wants, nil
}

// ownIndex returns the entries of our index and the time before which stamps
// can be trusted; nil when the index is not usable.
func (w *workspace) ownIndex() ([]indexEntry, int64) {
	st, err := lstat(w.index())
	if err != nil {
		return nil, 0
	}
	data, err := os.ReadFile(w.index())
	if err != nil {
		return nil, 0
	}
	entries, err := parseIndex(data)
	if err != nil || entries == nil {
		return nil, 0
	}
	return entries, st.mtime - int64(racy)
}

// scanner walks one work tree.
type scanner struct {
	scan
	ctx        context.Context
	ws         *workspace
	root       *os.Root
	wants      map[string]want
	folders    map[string]bool // folders that hold tracked paths
	everything bool            // for snapshots: hold nothing back, look into nested repositories
	seen       map[string]bool
	suspects   []string // tracked, stamp differs
	untracked  []string // files
	unknown    []string // folders without tracked files, "/" at the end
	ignores    bool     // a .gitignore is in play
	deep       bool     // below a folder that is not ignored: walk on
	attributes bool     // a .gitattributes is in play
}

// scanTree compares the work tree with a commit. all also takes what would be
// held back, ignored or nested: that is for snapshots.
func (w *workspace) scanTree(ctx context.Context, head string, all bool) (*scan, error) {
	wants, err := w.expected(ctx, head)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(w.Dir)
	if err != nil {
		return nil, fail(KindCorruptWorkspace, "open workspace %s", w.Dir).because(err)
	}
	defer root.Close()
	s := &scanner{
		scan: scan{edits: map[string]edit{}}, ctx: ctx, ws: w, root: root, wants: wants,
		folders: map[string]bool{}, everything: all, seen: make(map[string]bool, len(wants)),
	}
	for p := range wants {
		base := path.Base(p)
		s.ignores = s.ignores || base == ".gitignore"
		s.attributes = s.attributes || base == ".gitattributes"
		for d := path.Dir(p); d != "." && !s.folders[d]; d = path.Dir(d) {
			s.folders[d] = true
		}
	}
	if err := s.walk("", 0); err != nil {
		return nil, err
	}
	for p, e := range wants {
		if !s.seen[p] && e.mode != modeGitlink {
			s.edits[p] = edit{}
		}
	}
	if err := s.sift(); err != nil {
		return nil, err
	}
	return &s.scan, s.hash()
}

const maxDepth = 200

// walk visits a folder whose path holds no link. Folders without tracked files
// are only noted when .gitignore rules may apply to them.
func (s *scanner) walk(dir string, depth int) error {
	if depth > maxDepth {
		return unsafe(Display(dir), "is nested too deep")
	}
	entries, err := os.ReadDir(filepath.Join(s.ws.Dir, dir))
	if err != nil {
		if s.everything {
			s.unreadable = append(s.unreadable, dir)
			return nil
		}
		return fail(KindCorruptWorkspace, "read folder %s", Display(dir)).because(err)
	}
	for _, e := range entries {
		p := path.Join(dir, e.Name())
		if e.Name() == ".git" {
			if dir != "" && !s.everything {
				s.nested = append(s.nested, dir)
			}
			if dir == "" || !s.everything {
				continue
			}
		}
		if err := s.visit(p, depth); err != nil {
			return err
		}
	}
	return s.ctx.Err()
}

func (s *scanner) visit(p string, depth int) error {
	st, err := lstat(filepath.Join(s.ws.Dir, p))
	if err != nil {
		return fail(KindCorruptWorkspace, "look at %s", Display(p)).because(err)
	}
	tracked, known := s.wants[p]
	switch {
	case st.dir && known && tracked.mode == modeGitlink:
		if s.everything {
			s.seen[p] = true
			return s.walk(p, depth+1)
		}
		s.seen[p] = true
	case st.dir && s.everything && !s.folders[p] && isBuildTree(path.Base(p)) && s.tooBig(p):
		s.omitted = append(s.omitted, p+"/")
	case st.dir && (s.folders[p] || s.everything):
		return s.walk(p, depth+1)
	case st.dir:
		return s.enter(p, depth)
	case !st.regular && !st.link:
		s.special = append(s.special, p)
	case known:
		s.seen[p] = true
		if !tracked.stamped || !st.same(tracked.stamp) || fileMode(st) != tracked.mode {
			s.suspects = append(s.suspects, p)
		}
	default:
		s.ignores = s.ignores || path.Base(p) == ".gitignore"
		s.attributes = s.attributes || path.Base(p) == ".gitattributes"
		s.untracked = append(s.untracked, p)
	}
	return nil
}

// enter judges a folder without tracked files.
func (s *scanner) enter(p string, depth int) error {
	full := filepath.Join(s.ws.Dir, p)
	switch {
	case exists(filepath.Join(full, ".git")):
		s.hold(p+"/", heldNested, 0)
	case isBuildTree(path.Base(p)):
		s.unknown = append(s.unknown, p+"/") // ignored ones are not even listed
	case s.ignores && !s.deep:
		s.unknown = append(s.unknown, p+"/")
	default:
		return s.walk(p, depth+1)
	}
	return nil
}

func (s *scanner) hold(p, reason string, size int64) {
	s.held = append(s.held, HeldBack{p, reason, size})
}

// sift drops what .gitignore excludes. Folders without tracked files are asked
// about as a whole first, so that an ignored one is never walked.
func (s *scanner) sift() error {
	if s.everything {
		return s.economise()
	}
	checked := 0
	for range 2 { // the second round is for what the first one opened
		files, folders := s.untracked[checked:], s.unknown
		ignored, err := s.ignored(append(slices.Clone(files), folders...))
		if err != nil {
			return err
		}
		s.untracked = slices.DeleteFunc(s.untracked, func(p string) bool { return ignored[p] })
		checked, s.unknown, s.deep = len(s.untracked), nil, true
		for _, p := range folders {
			name := strings.TrimSuffix(p, "/")
			switch {
			case ignored[p]:
			case isBuildTree(path.Base(name)):
				s.hold(p, heldTree, 0)
			default:
				if err := s.walk(name, strings.Count(p, "/")); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// Snapshots take ignored files only within these bounds.
const (
	snapshotFile  = 10 << 20
	snapshotTotal = 64 << 20
)

// economise leaves out of a snapshot what is ignored and big. What was left
// out is reported.
func (s *scanner) economise() error {
	ignored, err := s.ignored(slices.DeleteFunc(slices.Clone(s.untracked), func(p string) bool {
		return strings.Contains(p, ".git/") // inside a nested repository there are no rules
	}))
	if err != nil {
		return err
	}
	var total int64
	s.untracked = slices.DeleteFunc(s.untracked, func(p string) bool {
		if !ignored[p] {
			return false
		}
		info, err := s.root.Lstat(p)
		if err == nil && info.Size() <= snapshotFile && total+info.Size() <= snapshotTotal {
			total += info.Size()
			return false
		}
		s.omitted = append(s.omitted, p)
		return true
	})
	return nil
}

// tooBig measures a build tree until it exceeds what a snapshot takes.
func (s *scanner) tooBig(p string) bool {
	var total int64
	_ = filepath.WalkDir(filepath.Join(s.ws.Dir, p), func(_ string, d fs.DirEntry, err error) error {
		if err == nil { // what cannot be read counts nothing: the snapshot will say so
			if info, err := d.Info(); err == nil {
				total += info.Size()
			}
		}
		if total > snapshotTotal {
			return filepath.SkipAll
		}
		return nil
	})
	return total > snapshotTotal
}

// ignored asks git which candidates its ignore rules exclude. Rules come from
// the work tree's files only.
func (s *scanner) ignored(candidates []string) (map[string]bool, error) {
	ignored := map[string]bool{}
	if !s.ignores || len(candidates) == 0 || slices.ContainsFunc(s.special, isRules) {
		return ignored, nil
	}
	out, err := s.ws.vault.git.run(s.ctx, command{
		args: []opt{"check-ignore", "--no-index", "-z", "--stdin"}, env: s.ws.env(s.ws.index()), dir: s.ws.Dir, magic: true,
		stdin: strings.NewReader("./" + strings.Join(candidates, "\x00./") + "\x00"),
	})
	var e *Error
	if err != nil && (!errors.As(err, &e) || e.Exit != 1) {
		return nil, err
	}
	for p := range strings.SplitSeq(string(out), "\x00") {
		ignored[strings.TrimPrefix(p, "./")] = true
	}
	return ignored, nil
}

// isRules reports files that git would open by itself; a pipe of that name
// would hang it.
func isRules(p string) bool {
	base := path.Base(p)
	return base == ".gitignore" || base == ".gitattributes"
}

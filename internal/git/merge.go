package git

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"strings"
)

// Conflict is one path that a merge could not settle.
type Conflict struct {
	Path   string `json:"path"`
	Kind   string `json:"kind"` // content, modify/delete, rename, add/add, binary, file/directory, submodule, other
	Detail string `json:"detail"`
}

// Merged is the outcome of Merge.
type Merged struct {
	Commit    string // "" after a conflict
	Conflicts []Conflict
	With      int // index of the head that conflicted
}

// IntegrateSpec asks to merge a commit into a ref of the vault.
type IntegrateSpec struct {
	Ref     string // full name
	Commit  string
	Message string // subject and trailers
	Author  Identity
}

// Integrated is the outcome of Integrate.
type Integrated struct {
	Commit    string // the ref's head afterwards, also when nothing was to do
	Before    string // the ref's head that was merged into
	Already   bool   // the commit was contained
	Conflicts []Conflict
}

// merged is what merge-tree answers.
type merged struct {
	tree      string // holds conflict markers when there are conflicts
	theirs    string
	conflicts []Conflict
	stages    []stage
}

type stage struct {
	mode, hash, path string
	stage            int
}

// Integrate merges a commit into a ref without a working tree and moves the ref
// by compare-and-swap. A contained commit is a success, so it may be repeated.
func (v *Vault) Integrate(ctx context.Context, s IntegrateSpec) (Integrated, error) {
	unlock, err := v.git.locks.lock(ctx, v.dir+"\x00"+s.Ref)
	if err != nil {
		return Integrated{}, err
	}
	defer unlock()
	for range 5 {
		head, err := v.Ref(ctx, s.Ref)
		if err != nil {
			return Integrated{}, err
		}
		in, err := v.Contains(ctx, s.Commit, head)
		if err != nil || in {
			return Integrated{Commit: head, Before: head, Already: in}, err
		}
		commit, conflicts, err := v.mergeCommit(ctx, head, s.Commit, s.Commit, s.Message, s.Author)
		if err != nil || len(conflicts) > 0 {
			return Integrated{Commit: head, Before: head, Conflicts: conflicts}, err
		}
		err = v.SetRef(ctx, s.Ref, commit, head)
		if KindOf(err) != KindRefMoved {
			return Integrated{Commit: commit, Before: head}, err
		}
	}
	return Integrated{}, fail(KindTargetMoved, "%s kept moving", s.Ref)
}

// Merge merges several heads in order, without moving any ref: the base of a
// task with dependencies. Heads that are contained are skipped.
func (v *Vault) Merge(ctx context.Context, heads []string, message string) (Merged, error) {
	if len(heads) == 0 {
		return Merged{}, fail(KindInvalidRef, "nothing to merge")
	}
	head, err := v.Resolve(ctx, heads[0])
	if err != nil {
		return Merged{}, err
	}
	for i, other := range heads[1:] {
		in, err := v.Contains(ctx, other, head)
		if err != nil {
			return Merged{}, err
		}
		if in {
			continue
		}
		if ahead, err := v.Contains(ctx, head, other); err != nil {
			return Merged{}, err
		} else if ahead {
			head = other
			continue
		}
		commit, conflicts, err := v.mergeCommit(ctx, head, other, other, message, Identity{})
		if err != nil || len(conflicts) > 0 {
			return Merged{Conflicts: conflicts, With: i + 1}, err
		}
		head = commit
	}
	return Merged{Commit: head}, nil
}

// mergeCommit always makes a merge commit of ours and parent; the content comes
// from merging theirs, which for a resolved conflict is another commit.
func (v *Vault) mergeCommit(ctx context.Context, ours, theirs, parent, message string, author Identity) (string, []Conflict, error) {
	var tree string
	ahead, err := v.Contains(ctx, ours, theirs)
	if err != nil {
		return "", nil, err
	}
	if ahead {
		tree, err = v.treeOf(ctx, theirs)
	} else {
		var m merged
		m, err = v.mergeTree(ctx, ours, theirs)
		if len(m.conflicts) > 0 {
			return "", m.conflicts, err
		}
		tree = m.tree
	}
	if err != nil {
		return "", nil, err
	}
	commit, err := v.writeCommit(tree, []string{ours, parent}, author, v.git.opts.Now(), message)
	return commit, nil, err
}

func (v *Vault) mergeTree(ctx context.Context, ours, theirs string) (merged, error) {
	out, err := v.git.run(ctx, command{
		args: []opt{"merge-tree", "--write-tree", "-z", "--messages"}, values: []string{ours, theirs}, env: v.env(),
	})
	var e *Error
	if errors.As(err, &e) && e.Kind == KindUnrelated && v.shallow() {
		e.Kind, e.Message = KindShallowNoMergeBase, "the history is cut off before the two sides meet"
		e.Hint = "deepen the repository (git fetch --unshallow)"
	}
	if err != nil && (e == nil || e.Exit != 1) {
		return merged{}, err
	}
	m, perr := parseMergeTree(out)
	if perr != nil {
		return merged{}, perr
	}
	m.theirs = theirs
	if (err != nil) != (len(m.conflicts) > 0) {
		return merged{}, fail(KindFailed, "merge-tree said one thing and its exit code another").because(err)
	}
	return m, nil
}

// parseMergeTree reads: tree NUL {mode SP hash SP stage TAB path NUL}… NUL
// {count NUL path… NUL type NUL message NUL}….
func parseMergeTree(out []byte) (merged, error) {
	bad := fail(KindFailed, "merge-tree wrote something unexpected")
	fields := strings.Split(string(bytes.TrimSuffix(out, []byte{0})), "\x00")
	m := merged{tree: fields[0]}
	if !isHash(m.tree) {
		return merged{}, bad
	}
	fields = fields[1:]
	for len(fields) > 0 && fields[0] != "" {
		head, path, ok := strings.Cut(fields[0], "\t")
		part := strings.Fields(head)
		if !ok || len(part) != 3 || !isHash(part[1]) || len(part[2]) != 1 || part[2][0] < '1' || part[2][0] > '3' {
			return merged{}, bad
		}
		m.stages = append(m.stages, stage{part[0], part[1], path, int(part[2][0] - '0')})
		fields = fields[1:]
	}
	if len(fields) > 0 {
		fields = fields[1:]
	}
	said := map[string]Conflict{}
	for len(fields) > 0 && fields[0] != "" {
		n, err := strconv.Atoi(fields[0])
		if err != nil || n < 0 || n > len(fields)-3 {
			return merged{}, bad
		}
		paths, kind, text := fields[1:1+n], fields[1+n], strings.TrimSpace(fields[2+n])
		fields = fields[3+n:]
		if !strings.HasPrefix(kind, "CONFLICT") {
			continue
		}
		for _, p := range paths {
			if _, ok := said[p]; !ok {
				said[p] = Conflict{p, conflictKind(kind, text), text}
			}
		}
	}
	seen := map[string]bool{}
	for _, s := range m.stages {
		if seen[s.path] {
			continue
		}
		seen[s.path] = true
		c, ok := said[s.path]
		if !ok {
			c = Conflict{s.path, "other", "both sides changed it"}
		}
		m.conflicts = append(m.conflicts, c)
	}
	if len(m.stages) == 0 { // conflicts of folders leave no stages
		for _, p := range sortedKeys(said) {
			m.conflicts = append(m.conflicts, said[p])
		}
	}
	return m, nil
}

func conflictKind(kind, text string) string {
	if strings.HasPrefix(text, "CONFLICT (") { // the text tells add/add from contents
		kind, _, _ = strings.Cut(text, ":")
	}
	inner := strings.TrimSuffix(strings.TrimPrefix(kind, "CONFLICT ("), ")")
	switch {
	case inner == "binary" || strings.Contains(text, "Cannot merge binary"):
		return "binary"
	case inner == "contents" || inner == "content":
		return "content"
	case inner == "add/add" || inner == "modify/delete" || inner == "file/directory":
		return inner
	case strings.Contains(inner, "rename") || strings.Contains(inner, "directory"):
		return "rename"
	case strings.Contains(inner, "submodule"):
		return "submodule"
	}
	return "other"
}

package git

import (
	"bytes"
	"context"
	"strings"
)

// Change is what lies between two commits; From "" is nothing at all.
type Change struct{ From, To string }

// ChangedFiles counts the files of each change, in one git process. A renamed
// file is two.
func (v *Vault) ChangedFiles(ctx context.Context, changes []Change) ([]int, error) {
	count := changeCounter{counts: make([]int, len(changes)), at: -1}
	if len(changes) == 0 {
		return count.counts, nil
	}
	var in bytes.Buffer
	for _, c := range changes {
		from, err := emptyTree, error(nil)
		if c.From != "" {
			from, err = v.treeOf(ctx, c.From)
		}
		if err != nil {
			return nil, err
		}
		to, err := v.treeOf(ctx, c.To)
		if err != nil {
			return nil, err
		}
		in.WriteString(from + " " + to + "\n")
	}
	p, err := v.git.start(ctx, command{args: []opt{"diff-tree", "--stdin", "-r", "-z", "--raw", "--no-renames"}, env: v.env()}, &in, &count)
	if err != nil {
		return nil, err
	}
	if err := p.wait(); err != nil {
		return nil, err
	}
	if count.at != len(changes)-1 {
		return nil, errDiff()
	}
	return count.counts, nil
}

// changeCounter counts what diff-tree --stdin writes, whatever its size: for each
// pair of trees a line, then records ":… STATUS", NUL, path, NUL.
type changeCounter struct {
	counts []int
	at     int
	within part
}

type part int

const (
	atRecord part = iota
	inLine
	inFacts
	inPath
)

// Write implements io.Writer.
func (c *changeCounter) Write(p []byte) (int, error) {
	for _, b := range p {
		switch {
		case c.within == atRecord && b == ':':
			c.within = inFacts
		case c.within == atRecord:
			c.within = inLine
			c.at++
		case c.within == inLine && b == '\n':
			c.within = atRecord
		case c.within == inFacts && b == 0:
			c.within = inPath
		case c.within == inPath && b == 0:
			c.within = atRecord
			if c.at < 0 || c.at >= len(c.counts) {
				return 0, errDiff()
			}
			c.counts[c.at]++
		}
	}
	return len(p), nil
}

// NewBranch makes a branch at a commit of the vault in the repository that the
// vault is of; where there is none, in the vault itself. A name that is taken,
// there or in a working tree that has no commit yet, is refused (KindRefConflict).
// Nothing else of the repository changes.
func (v *Vault) NewBranch(ctx context.Context, name, commit string) error {
	if err := ValidBranch(name); err != nil {
		return err
	}
	if strings.HasPrefix(name, ownBranches) {
		return fail(KindInvalidRef, "branches below %s are the server's own", ownBranches).hint("choose another name")
	}
	if _, err := v.commit(ctx, commit); err != nil {
		return err
	}
	var err error
	switch v.source.kind {
	case sourceNone:
		err = v.SetRef(ctx, "refs/heads/"+name, commit, "")
	case sourceURL:
		err = v.pushNew(ctx, name, commit)
	case sourcePath:
		err = v.branchAt(ctx, name, commit)
	}
	if KindOf(err) == KindRefMoved {
		return taken(name).because(err)
	}
	return err
}

// ownBranches is where the vault keeps the branches of tasks.
const ownBranches = "claudomator/"

func taken(name string) *Error {
	return fail(KindRefConflict, "there is a branch %q already", name).hint("choose another name")
}

// pushNew is NewBranch for a remote repository. The push alone would not refuse a
// branch that is at this very commit.
func (v *Vault) pushNew(ctx context.Context, name, commit string) error {
	if err := v.Fetch(ctx); err != nil {
		return err
	}
	switch _, err := v.fetchedHead(ctx, name); {
	case err == nil:
		return taken(name)
	case KindOf(err) != KindBranchMissing:
		return err
	}
	return v.pushTo(ctx, v.source.text, name, commit, "")
}

// branchAt is NewBranch for a repository on this machine.
func (v *Vault) branchAt(ctx context.Context, name, commit string) error {
	loc, err := locate(v.source.text)
	if err != nil {
		return err
	}
	refs, err := v.git.refsAt(ctx, loc)
	if err != nil {
		return err
	}
	ref := "refs/heads/" + name
	if refs[ref] != "" {
		return taken(name)
	}
	there := []string{"GIT_DIR=" + loc.common}
	trees, err := v.git.run(ctx, command{args: []opt{"worktree", "list", "--porcelain", "-z"}, env: there})
	if err != nil {
		return err
	}
	for _, tree := range parseWorktrees(trees) {
		if tree.branch == ref {
			return fail(KindRefConflict, "%q is checked out in %s, without a commit yet", name, Display(tree.dir)).hint("choose another name")
		}
	}
	have, err := v.shared(ctx, refs)
	if err != nil {
		return err
	}
	if err := v.git.transfer(ctx, transfer{from: v.env(), to: there, want: []string{commit}, have: have}); err != nil {
		return err
	}
	if err := v.freeTarget(ctx, loc, &checkout{}, name, commit); err != nil {
		return err
	}
	_, err = v.git.run(ctx, command{
		args: []opt{"update-ref", "--no-deref", "-m", "claudomator: rescue", "-z", "--stdin"}, finishes: true,
		env: there, stdin: strings.NewReader("create " + ref + "\x00" + commit + "\x00"),
	})
	if err == nil {
		return nil
	}
	now, readErr := v.git.refsAt(ctx, loc)
	if readErr == nil && now[ref] != "" {
		return taken(name).because(err)
	}
	for other := range now {
		if strings.HasPrefix(other, ref+"/") || strings.HasPrefix(ref, other+"/") {
			return fail(KindRefConflict, "%s cannot exist beside %s", ref, other).hint("choose another name").because(err)
		}
	}
	return err
}

// shared are commits that both the vault and a repository with these refs have.
func (v *Vault) shared(ctx context.Context, refs map[string]string) ([]string, error) {
	const enough = 200 // they only spare bytes: what is there already is not sent
	var have []string
	seen := map[string]bool{}
	for _, ref := range sortedKeys(refs) {
		hash := refs[ref]
		if seen[hash] || len(seen) == enough {
			continue
		}
		seen[hash] = true
		kind, err := v.reader.kind(ctx, hash)
		if err != nil {
			return nil, err
		}
		if kind == "commit" {
			have = append(have, hash)
		}
	}
	return have, nil
}

package git

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A source is where a project's code really lives.

type sourceKind int

const (
	sourceNone sourceKind = iota // a private vault
	sourcePath                   // a local repository, read as files
	sourceURL                    // anything git's transports reach
)

type source struct {
	kind sourceKind
	text string
}

var urlPattern = regexp.MustCompile(`^(?:(?:https?|ssh|git|file)://[^-]|(?:[A-Za-z0-9_.][A-Za-z0-9_.-]*@)?[A-Za-z0-9][A-Za-z0-9.-]*:(?:[^-:/]|/[^/]))`)

func parseSource(text string) (source, error) {
	switch {
	case text == "":
		return source{}, nil
	case strings.ContainsAny(text, "\x00\n\r"):
		return source{}, fail(KindNotARepository, "%q is not a path or URL", text)
	case strings.HasPrefix(text, "/"), strings.HasPrefix(text, "."):
		return source{sourcePath, text}, nil
	case urlPattern.MatchString(text):
		return source{sourceURL, text}, nil
	case strings.Contains(text, "::") || strings.Contains(text, "://") || strings.HasPrefix(text, "-"):
		return source{}, fail(KindNotARepository, "%q is not a path or URL that can be used", text).
			hint("only file, https, http, ssh and git URLs are used")
	}
	return source{sourcePath, text}, nil
}

// location is a local repository taken apart.
type location struct {
	top    string // work tree, "" when bare
	gitDir string // of this work tree
	common string // where refs and objects are
}

// locate finds the repository at exactly that path: no search upward, no
// configuration read, no process.
func locate(path string) (location, error) {
	abs, err := filepath.Abs(path)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return location{}, fail(KindUnreachable, "open repository %s", path).because(err).hint("check the path")
	}
	loc := location{top: abs, gitDir: filepath.Join(abs, ".git")}
	info, err := os.Stat(loc.gitDir)
	switch {
	case err == nil && info.Mode().IsRegular():
		data, err := os.ReadFile(loc.gitDir)
		target, ok := strings.CutPrefix(strings.TrimSpace(string(data)), "gitdir: ")
		if err != nil || !ok {
			return location{}, notARepository(abs)
		}
		loc.gitDir = resolveIn(abs, target)
	case err == nil:
	default:
		loc.top, loc.gitDir = "", abs
	}
	loc.common = loc.gitDir
	if data, err := os.ReadFile(filepath.Join(loc.gitDir, "commondir")); err == nil {
		loc.common = resolveIn(loc.gitDir, strings.TrimSpace(string(data)))
	}
	for _, need := range []string{filepath.Join(loc.gitDir, "HEAD"), filepath.Join(loc.common, "objects"), filepath.Join(loc.common, "config")} {
		if !exists(need) {
			return location{}, notARepository(abs)
		}
	}
	return loc, nil
}

func notARepository(path string) *Error {
	return fail(KindNotARepository, "%s is not the top level of a git repository", path).
		hint("give the folder that holds .git, or a bare repository")
}

func resolveIn(base, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(base, path)
}

func (l location) reftable() bool { return exists(filepath.Join(l.common, "reftable")) }

// refs reads every ref of a local source. With the files backend it starts no
// process.
func (g *Git) refsAt(ctx context.Context, loc location) (map[string]string, error) {
	if !loc.reftable() {
		refs, err := listRefs(loc.common)
		if err != nil {
			return nil, fail(KindUnreachable, "read the refs of %s", loc.common).because(err)
		}
		return refs, nil
	}
	out, err := g.run(ctx, command{args: []opt{"for-each-ref", "--format=%(objectname) %(refname)"}, env: []string{"GIT_DIR=" + loc.common}})
	if err != nil {
		return nil, err
	}
	return parsePackedRefs(out), nil
}

// fingerprint changes whenever a ref does.
func fingerprint(refs map[string]string) string {
	h := sha256.New()
	for _, name := range sortedKeys(refs) {
		fmt.Fprintf(h, "%s %s\n", refs[name], name)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// RepoInfo describes a repository for `project add`.
type RepoInfo struct {
	Path    string // real absolute path of a local one, else the URL as given
	Local   bool
	Bare    bool
	Branch  string // current branch of its HEAD
	Head    string // commit of that branch
	Shallow bool
}

// Inspect looks at a local path or URL. Unborn, detached, unreadable and
// foreign-format repositories are errors of their own kind. With a branch that
// one counts, and it does not matter which is checked out; it may be one that
// the repository knows only of a remote of its own.
func (g *Git) Inspect(ctx context.Context, pathOrURL, branch string) (RepoInfo, error) {
	src, err := parseSource(pathOrURL)
	if err != nil {
		return RepoInfo{}, err
	}
	switch src.kind {
	case sourcePath:
		return g.inspectPath(ctx, src.text, branch)
	case sourceURL:
		return g.inspectURL(ctx, src.text, branch)
	case sourceNone:
	}
	return RepoInfo{}, fail(KindUnreachable, "no repository was named")
}

func (g *Git) inspectPath(ctx context.Context, path, branch string) (RepoInfo, error) {
	loc, err := locate(path)
	if errors.Is(err, fs.ErrNotExist) {
		return RepoInfo{}, fail(KindNotARepository, "there is nothing at %s", path).because(err).hint("check the path")
	}
	if err != nil {
		return RepoInfo{}, err
	}
	config, err := os.ReadFile(filepath.Join(loc.common, "config"))
	if err != nil {
		return RepoInfo{}, fail(KindUnreachable, "read %s", loc.common).because(err)
	}
	if strings.Contains(strings.ToLower(string(config)), "objectformat = sha256") {
		return RepoInfo{}, fail(KindUnsupported, "%s uses SHA-256 object names", path)
	}
	info := RepoInfo{Path: loc.top, Local: true, Bare: loc.top == "", Shallow: exists(filepath.Join(loc.common, "shallow"))}
	if info.Bare {
		info.Path = loc.common
	}
	refs, err := g.refsAt(ctx, loc)
	if err != nil {
		return RepoInfo{}, err
	}
	if branch != "" && len(refs) > 0 {
		return info.on(branch, branchOf(refs, branch), path)
	}
	current, onBranch, err := g.currentBranch(ctx, loc)
	if err != nil {
		return RepoInfo{}, fail(KindUnreachable, "read HEAD of %s", path).because(err)
	}
	switch {
	case len(refs) == 0:
		info.Branch = current
		return info, noCommits(path)
	case !onBranch:
		return info, detached(path)
	case refs["refs/heads/"+current] != "":
		return info.on(current, refs["refs/heads/"+current], path)
	}
	info.Branch = current
	return info, fail(KindNoCommits, "branch %q of %s has no commits", current, path).
		hint("name another branch, or make a first commit on it")
}

// currentBranch is the branch that HEAD names, which may have no commit yet;
// false when HEAD is on none.
func (g *Git) currentBranch(ctx context.Context, loc location) (string, bool, error) {
	if loc.reftable() { // its HEAD file is a dummy
		out, err := g.run(ctx, command{args: []opt{"symbolic-ref", "-q", "HEAD"}, env: []string{"GIT_DIR=" + loc.gitDir}})
		if e, ok := errors.AsType[*Error](err); ok && e.Exit == 1 { // git's word for a detached HEAD
			return "", false, nil
		}
		branch, on := strings.CutPrefix(strings.TrimSpace(string(out)), "refs/heads/")
		return branch, on, err
	}
	head, err := os.ReadFile(filepath.Join(loc.gitDir, "HEAD"))
	branch, on := strings.CutPrefix(strings.TrimSpace(string(head)), "ref: refs/heads/")
	return branch, on, err
}

// on is the repository seen from one of its branches.
func (i RepoInfo) on(branch, head, where string) (RepoInfo, error) {
	i.Branch, i.Head = branch, head
	if head == "" {
		return i, fail(KindBranchMissing, "there is no branch %q in %s", branch, where).hint("name another branch, or make this one")
	}
	return i, nil
}

// branchOf finds a branch among a repository's refs, else among what it knows
// of its remotes.
func branchOf(refs map[string]string, branch string) string {
	if hash := refs["refs/heads/"+branch]; hash != "" {
		return hash
	}
	for _, ref := range sortedKeys(refs) {
		if name, ok := strings.CutPrefix(ref, "refs/remotes/"); ok {
			if _, name, _ = strings.Cut(name, "/"); name == branch {
				return refs[ref]
			}
		}
	}
	return ""
}

func detached(where string) *Error {
	return fail(KindDetached, "HEAD of %s is on no branch", where).hint("name the branch to work on")
}

func (g *Git) inspectURL(ctx context.Context, url, branch string) (RepoInfo, error) {
	out, err := g.run(ctx, command{args: []opt{"ls-remote", "--symref"}, values: []string{url}, network: true})
	if err != nil {
		return RepoInfo{}, unreachable(url, err)
	}
	info := RepoInfo{Path: url}
	heads := map[string]string{}
	for line := range strings.SplitSeq(string(out), "\n") {
		value, name, _ := strings.Cut(line, "\t")
		if target, ok := strings.CutPrefix(value, "ref: refs/heads/"); ok && name == "HEAD" {
			info.Branch = target
		} else if branch, ok := strings.CutPrefix(name, "refs/heads/"); ok && isHash(value) {
			heads[branch] = value
		}
	}
	info.Head = heads[info.Branch]
	switch {
	case len(heads) == 0:
		return info, noCommits(DisplayURL(url))
	case branch != "":
		return info.on(branch, heads[branch], DisplayURL(url))
	case info.Branch == "":
		return info, detached(DisplayURL(url))
	case info.Head == "":
		return info, fail(KindNoCommits, "branch %q of %s has no commits", info.Branch, DisplayURL(url)).hint("name another branch")
	}
	return info, nil
}

// unreachable names the place, and keeps a kind that says more than "git failed".
func unreachable(where string, err error) error {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		e = &Error{}
	}
	if e.Kind == KindAuthentication {
		return fail(KindAuthentication, "%s does not let the server in", DisplayURL(where)).because(err).hint(e.Hint)
	}
	if !slices.Contains([]Kind{"", KindFailed, KindNotARepository, KindUnreachable}, e.Kind) {
		return err
	}
	return fail(KindUnreachable, "reach %s", DisplayURL(where)).because(err).
		hint(cmp.Or(e.Hint, "check the address, the network and the credentials"))
}

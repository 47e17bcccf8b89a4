package git

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"regexp"
	"strings"
)

// The remote is where the work of a project is shared: the source itself when
// that is a URL, else what the user's repository calls "origin". It is reached
// from the vault, so that no hook and no program of the user's repository has a
// part in it. The hooks of the remote are the remote's own; they run where it is.

// PushSpec asks for a branch of the remote to be at a commit.
type PushSpec struct {
	Branch  string // on the remote
	Commit  string // of the vault
	Old     string // where the branch must be now (full hash); "" expects nothing
	New     bool   // the branch must not be there, unless it is at the commit already
	Replace bool   // the commit need not follow what is there: for a branch that is ours, such as a story's
}

// Pushed is the outcome of Push.
type Pushed struct {
	Remote  string // its URL, fit to be shown; "" when there is none and nothing was to do
	Before  string // where the branch was, "" when it is new
	Already bool   // it was at the commit
}

// Remote is the URL of the remote, an absolute path when it is on this machine,
// or "" when there is none. It may hold credentials: show it with [DisplayURL].
// Of several URLs to push to it is the first.
func (v *Vault) Remote(ctx context.Context) (string, error) {
	switch v.source.kind {
	case sourceNone:
		return "", nil
	case sourceURL:
		return v.source.text, nil
	case sourcePath:
	}
	loc, err := locate(v.source.text)
	if err != nil {
		return "", err
	}
	const name = "origin"
	// git itself, because of url.*.insteadOf, includes and per-tree configuration.
	out, err := v.git.run(ctx, command{args: []opt{"remote", "get-url", "--push"}, values: []string{name}, env: []string{"GIT_DIR=" + loc.gitDir}})
	if e := (*Error)(nil); asExit(err, &e) && e.Exit == 2 {
		return "", nil // git's word for a remote that is not there
	}
	if err != nil {
		return "", err
	}
	url, _, _ := strings.Cut(string(out), "\n")
	if url == name || url == "" {
		return "", nil // it has a section in the configuration, and no URL
	}
	src, err := parseSource(url)
	if err != nil {
		return "", fail(KindUnreachable, "the remote %q of %s is %q", name, v.source.text, DisplayURL(url)).
			hint("only paths and file, https, http, ssh and git URLs are used")
	}
	if src.kind == sourcePath {
		url = resolveIn(cmp.Or(loc.top, loc.gitDir), filepath.FromSlash(url))
	}
	return url, nil
}

// Push brings a commit of the vault to a branch of the remote, by
// compare-and-swap with what it sees there. Unless Replace is set, the commit has
// to follow what is there (KindNotFastForward). KindRefMoved: the branch is not at
// Old, is there although it has to be New, or moved while we pushed. Other kinds:
// KindPushRejected with the remote's words, KindAuthentication, KindUnreachable,
// KindTimeout. It may be repeated.
func (v *Vault) Push(ctx context.Context, s PushSpec) (Pushed, error) {
	if err := ValidBranch(s.Branch); err != nil {
		return Pushed{}, err
	}
	if s.Old != "" && !isHash(s.Old) {
		return Pushed{}, fail(KindInvalidRef, "%q is not a commit", s.Old)
	}
	if _, err := v.commit(ctx, s.Commit); err != nil {
		return Pushed{}, err
	}
	url, err := v.Remote(ctx)
	if err != nil || url == "" {
		return Pushed{}, err
	}
	unlock, err := v.git.locks.lock(ctx, "push\x00"+url+"\x00"+s.Branch)
	if err != nil {
		return Pushed{}, err
	}
	defer unlock()
	out := Pushed{Remote: DisplayURL(url)}
	if out.Before, err = v.git.headAt(ctx, url, s.Branch); err != nil {
		return Pushed{}, err
	}
	switch {
	case out.Before == s.Commit:
		out.Already = true
		return out, nil
	case s.New && out.Before != "":
		return Pushed{}, fail(KindRefMoved, "%q of %s is there already, at %s", s.Branch, out.Remote, out.Before)
	case s.Old != "" && out.Before != s.Old:
		return Pushed{}, fail(KindRefMoved, "%q of %s is at %s, not at %s", s.Branch, out.Remote, orNone(out.Before), s.Old)
	case out.Before != "" && !s.Replace:
		if err := v.follows(ctx, s, out); err != nil {
			return Pushed{}, err
		}
	}
	if err := v.pushTo(ctx, url, s.Branch, s.Commit, out.Before); err != nil {
		return Pushed{}, err
	}
	return out, nil
}

// follows refuses a push that would take commits away from the remote. What it is
// at and the vault does not know cannot be followed by a commit of the vault.
func (v *Vault) follows(ctx context.Context, s PushSpec, at Pushed) error {
	kind, err := v.reader.kind(ctx, at.Before)
	if err != nil {
		return err
	}
	if kind == "commit" {
		if in, err := v.Contains(ctx, at.Before, s.Commit); err != nil || in {
			return err
		}
	}
	return fail(KindNotFastForward, "%q of %s has commits that are not in %s", s.Branch, at.Remote, s.Commit).
		hint("bring them into the project's repository (git pull), then try again")
}

// headAt is where a branch of a remote is, "" when it has none of that name.
func (g *Git) headAt(ctx context.Context, url, branch string) (string, error) {
	ref := "refs/heads/" + branch
	out, err := g.run(ctx, command{args: []opt{"ls-remote", "--heads"}, values: []string{url, ref}, network: true})
	if err != nil {
		return "", unreachable(url, err)
	}
	for line := range strings.SplitSeq(string(out), "\n") { // git matches the ends of names, too
		if hash, name, _ := strings.Cut(line, "\t"); name == ref && isHash(hash) {
			return hash, nil
		}
	}
	return "", nil
}

// pushTo moves a branch of a remote from old ("" makes it) to a commit of the
// vault; the lease makes it a compare-and-swap. It is the only push there is.
func (v *Vault) pushTo(ctx context.Context, url, branch, commit, old string) error {
	ref := "refs/heads/" + branch
	lease, err := leaseOpt(ref, old)
	if err != nil {
		return err
	}
	out, err := v.git.run(ctx, command{
		args:   []opt{"push", "--porcelain", "--atomic", "--no-verify", lease},
		values: []string{url, commit + ":" + ref}, env: v.env(), network: true,
	})
	if err == nil {
		return nil
	}
	return pushError(url, branch, string(out), err)
}

// pushError names why a push did not happen. Only what git itself says decides: a
// hook can print anything.
func pushError(url, branch, out string, err error) error {
	verdict := pushVerdict(out)
	e, ok := errors.AsType[*Error](err)
	if !ok || verdict == "" || e.Kind == KindTimeout {
		return unreachable(url, err)
	}
	refused := fail(KindPushRejected, "the remote refused %q %s", branch, verdict).
		because(err).hint("see what the remote said, and change the branch or the remote's rules")
	if said := remoteWords(e.Stderr); said != "" {
		refused.Message += ": " + said
	}
	if strings.Contains(verdict, "hook declined") {
		return refused
	}
	if strings.Contains(e.Stderr, "exists; cannot create") {
		return fail(KindRefConflict, "%q cannot exist beside another branch of the remote", branch).because(err).hint("choose another name")
	}
	if strings.Contains(e.Stderr, ".lock': File exists") {
		return fail(KindLocked, "%q of the remote is locked", branch).because(err).hint("when no git is at work there, one has crashed: delete its lock at the remote")
	}
	for _, moved := range []string{"stale info", "fetch first", "non-fast-forward", "cannot lock ref", "failed to update ref", "incorrect old value"} {
		if strings.Contains(verdict+e.Stderr, moved) {
			return fail(KindRefMoved, "%q moved meanwhile", branch).because(err)
		}
	}
	if strings.Contains(verdict, "[remote ") {
		return refused
	}
	return unreachable(url, err)
}

// pushVerdict is what `push --porcelain` says of the ref that was not pushed, such
// as "[remote rejected] (pre-receive hook declined)"; "" when it got no such word.
func pushVerdict(out string) string {
	for line := range strings.SplitSeq(out, "\n") {
		if fields := strings.SplitN(line, "\t", 3); len(fields) == 3 && fields[0] == "!" {
			return fields[2]
		}
	}
	return ""
}

// maxRemoteWords bounds how much of a remote's talk an error repeats, in bytes.
const maxRemoteWords = 2000

// remoteWords is what the remote and its hooks printed, on one line.
func remoteWords(stderr string) string {
	var said []string
	for line := range strings.SplitSeq(stderr, "\n") {
		if words, ok := strings.CutPrefix(line, "remote:"); ok {
			if words = strings.TrimSpace(words); words != "" {
				said = append(said, Display(words))
			}
		}
	}
	text := strings.Join(said, " / ")
	if len(text) > maxRemoteWords {
		text = strings.ToValidUTF8(text[:maxRemoteWords], "") + " …"
	}
	return text
}

var credentialsPattern = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^/\s'"]*@`)

// DisplayURL makes a URL, or a text with URLs in it, fit to be shown: without the
// credentials. The user of an SSH address, which is no secret, stays.
func DisplayURL(text string) string {
	return credentialsPattern.ReplaceAllStringFunc(text, func(found string) string {
		scheme, user, _ := strings.Cut(strings.TrimSuffix(found, "@"), "://")
		name, _, secret := strings.Cut(user, ":")
		switch {
		case strings.EqualFold(scheme, "ssh") && !secret:
			return found
		case strings.EqualFold(scheme, "ssh"):
			return scheme + "://" + name + ":***@"
		}
		return scheme + "://***@"
	})
}

package git

import (
	"cmp"
	"context"
	"fmt"
	"strings"
)

// Part is one piece of work to land, in order.
type Part struct {
	Commit   string
	Message  string // of its merge commit, trailers included
	Author   Identity
	Resolved string // content to use instead, after a conflict was resolved; normally left to ContinueLand
}

// LandSpec describes a landing on a branch of the vault's source.
type LandSpec struct {
	Target     string // branch
	Parts      []Part
	PrivateRef string // identifies this landing across calls and crashes, such as refs/claudomator/landing/<id>
}

// Landed is the outcome of Land.
type Landed struct {
	Commit     string     // head that the target got; "" while there are conflicts
	Before     string     // head it had
	Merges     []string   // merge commit of each part, "" for one that was contained already
	Nothing    bool       // every part was on the target already
	Already    bool       // an earlier call with this PrivateRef moved the target
	Conflicts  []Conflict // of part Part merged onto commit Onto: nothing has changed
	Part       int
	Onto       string
	Unresolved []Conflict // ContinueLand: paths that still need a decision
	Checkout   string     // working tree that was updated together with the target
	Warnings   []Warning
}

// WarnCheckoutStale: the target moved, but its checkout could not follow.
const WarnCheckoutStale = "checkout_not_updated"

// landAttempts bounds how often a target that keeps moving is chased.
const landAttempts = 5

// Land merges all parts onto the freshly fetched target, on a private ref of
// the vault, then moves the target once by compare-and-swap. Called again with
// the same PrivateRef after a crash it finishes what was begun and reports the
// same commit.
func (v *Vault) Land(ctx context.Context, s LandSpec) (Landed, error) {
	if err := s.check(); err != nil {
		return Landed{}, err
	}
	if v.source.kind == sourceNone {
		return Landed{Nothing: true}, nil
	}
	unlock, ok := v.git.locks.tryLock("land\x00" + v.source.text + "\x00" + s.Target)
	if !ok {
		return Landed{}, fail(KindMergeRunning, "a landing on %q is running", s.Target).hint("wait for it to end")
	}
	defer unlock()
	for range landAttempts {
		out, err := v.land(ctx, s)
		if KindOf(err) == KindRefMoved {
			continue
		}
		if err != nil {
			return out, fmt.Errorf("land on %s: %w", s.Target, err)
		}
		return out, nil
	}
	return Landed{}, fail(KindTargetMoved, "%q moved %d times while it was being landed on", s.Target, landAttempts).hint("try again")
}

func (s LandSpec) check() error {
	if err := ValidBranch(s.Target); err != nil {
		return err
	}
	if err := checkRef(s.PrivateRef); err != nil {
		return err
	}
	if !strings.HasPrefix(s.PrivateRef, "refs/claudomator/") {
		return fail(KindInvalidRef, "%s is not a private ref", s.PrivateRef)
	}
	for _, p := range s.Parts {
		if !isHash(p.Commit) || p.Resolved != "" && !isHash(p.Resolved) {
			return fail(KindInvalidRef, "%q is not a commit", p.Commit)
		}
	}
	return nil
}

// Refs beside the private one: where the target was, and resolutions.
func (s LandSpec) baseRef() string              { return s.PrivateRef + "-base" }
func (s LandSpec) resolvedRef(of string) string { return s.PrivateRef + "-resolved/" + of }

// land is one attempt.
func (v *Vault) land(ctx context.Context, s LandSpec) (Landed, error) {
	if err := v.Fetch(ctx); err != nil {
		return Landed{}, err
	}
	old, err := v.fetchedHead(ctx, s.Target)
	if err != nil {
		return Landed{}, err
	}
	if out, done, err := v.resume(ctx, s, old); done || err != nil {
		return out, err
	}
	out, err := v.builtLanding(ctx, s, old)
	if err != nil || len(out.Conflicts) > 0 || out.Nothing {
		return out, err
	}
	to, err := v.openTarget(ctx, s, old, out.Commit)
	if err != nil {
		return Landed{}, err
	}
	defer to.release()
	// The order of these matters for resume: the private ref says that a
	// complete landing exists, so its base must be known before.
	if err := v.putRef(ctx, s.baseRef(), old); err != nil {
		return Landed{}, err
	}
	if err := v.putRef(ctx, s.PrivateRef, out.Commit); err != nil {
		return Landed{}, err
	}
	if err := to.move(ctx); err != nil {
		return Landed{}, err
	}
	out.Checkout, out.Warnings = to.follow(ctx)
	return out, nil
}

// resume recognises a landing that an earlier call completed.
func (v *Vault) resume(ctx context.Context, s LandSpec, now string) (Landed, bool, error) {
	landed, err := readRefFile(v.dir, s.PrivateRef)
	if err != nil || landed == "" {
		return Landed{}, false, err
	}
	in, err := v.Contains(ctx, landed, now)
	if err != nil || !in {
		return Landed{}, false, err
	}
	old, err := v.Ref(ctx, s.baseRef())
	if err != nil {
		return Landed{}, false, err
	}
	out := Landed{Commit: landed, Before: old, Already: true}
	if out.Merges, err = v.mergesBetween(ctx, s, old, landed); err != nil {
		return Landed{}, false, err
	}
	if now == landed {
		out.Checkout, out.Warnings = v.finishCheckout(ctx, s, old, landed)
	}
	return out, true, nil
}

// mergesBetween assigns the merge commits of a built landing to its parts.
func (v *Vault) mergesBetween(ctx context.Context, s LandSpec, old, landed string) ([]string, error) {
	merges := make([]string, len(s.Parts))
	for at := landed; at != old; {
		c, err := v.commit(ctx, at)
		if err != nil {
			return nil, err
		}
		if len(c.parents) != 2 {
			break
		}
		for i, p := range s.Parts {
			if p.Commit == c.parents[1] {
				merges[i] = at
			}
		}
		at = c.parents[0]
	}
	return merges, nil
}

// builtLanding is what an earlier call has built on the same head, if one has, else
// it is built now. A git of a killed server may be moving the target at this very
// moment: only to the same commit, or resume would not know it as this landing.
func (v *Vault) builtLanding(ctx context.Context, s LandSpec, old string) (Landed, error) {
	landed, err := readRefFile(v.dir, s.PrivateRef)
	if err != nil {
		return Landed{}, err
	}
	base, err := readRefFile(v.dir, s.baseRef())
	if err != nil {
		return Landed{}, err
	}
	if landed == "" || base != old {
		return v.buildLanding(ctx, s, old)
	}
	out := Landed{Commit: landed, Before: old}
	out.Merges, err = v.mergesBetween(ctx, s, old, landed)
	return out, err
}

func (v *Vault) buildLanding(ctx context.Context, s LandSpec, old string) (Landed, error) {
	out := Landed{Before: old, Merges: make([]string, len(s.Parts))}
	head := old
	for i, p := range s.Parts {
		in, err := v.Contains(ctx, p.Commit, head)
		if err != nil {
			return Landed{}, err
		}
		if in {
			continue
		}
		content, _, err := v.resolution(s, p, "")
		if err != nil {
			return Landed{}, err
		}
		commit, conflicts, err := v.mergeCommit(ctx, head, content, p.Commit, p.Message, p.Author)
		if KindOf(err) == KindUnrelated {
			err = fail(KindUnrelated, "%q and the work have no commit in common", s.Target).because(err).
				hint("the target's history was rewritten: bring the old one back, or do the work anew")
		}
		if err != nil {
			return Landed{}, err
		}
		if len(conflicts) > 0 {
			return Landed{Before: old, Conflicts: conflicts, Part: i, Onto: head}, nil
		}
		head, out.Merges[i] = commit, commit
	}
	out.Commit, out.Nothing = head, head == old
	return out, nil
}

// resolution is what is merged of a part: its commit; or what its conflict was resolved
// to, again and again where the target had moved on meanwhile. And whether a commit is
// one of these.
func (v *Vault) resolution(s LandSpec, p Part, commit string) (content string, among bool, err error) {
	content = cmp.Or(p.Resolved, p.Commit)
	for {
		among = among || content == commit
		next, err := readRefFile(v.dir, s.resolvedRef(content))
		if err != nil || next == "" || next == content {
			return content, among, err
		}
		content = next
	}
}

// OpenConflict prepares a workspace in which part of a landing, as Land
// reported it, can be resolved: files with markers, unmerged index. A part that was
// resolved before comes as that has left it. A workspace that is already open for this
// conflict is left as it is.
func (v *Vault) OpenConflict(ctx context.Context, s LandSpec, part int, onto, dir string) (Prepared, error) {
	if err := s.check(); err != nil {
		return Prepared{}, err
	}
	if part < 0 || part >= len(s.Parts) || !isHash(onto) {
		return Prepared{}, fail(KindInvalidRef, "no part %d onto %q", part, onto)
	}
	theirs, _, err := v.resolution(s, s.Parts[part], "")
	if err != nil {
		return Prepared{}, err
	}
	if real, err := resolveDir(dir); err == nil {
		w, err := v.lookup(real)
		if err == nil && w != nil && w.Ready && w.Base == onto && w.Merge == theirs {
			if who, err := w.presence(); err == nil && who == ours {
				return Prepared{Head: onto, Conflicts: w.Conflicts}, nil
			}
		}
	}
	name := s.PrivateRef[strings.LastIndexByte(s.PrivateRef, '/')+1:]
	return v.Prepare(ctx, Workspace{Dir: dir, Branch: "claudomator/landing-" + name + "-" + onto[:12], Base: onto, Merge: theirs})
}

// ContinueLand takes the resolution out of the conflict's workspace and lands.
// While paths are undecided it changes nothing and says which.
func (v *Vault) ContinueLand(ctx context.Context, s LandSpec, dir string) (Landed, error) {
	real, err := resolveDir(dir)
	if err != nil {
		return Landed{}, err
	}
	w, err := v.lookup(real)
	if err != nil {
		return Landed{}, err
	}
	if w != nil && w.Merge != "" && w.Ready { // else a kill met it while it was being opened anew: it holds nothing
		got, err := v.Collect(ctx, CollectSpec{Dir: real, Branch: w.Branch, Message: "Resolve conflicts\n"})
		if err != nil {
			return Landed{}, err
		}
		open := append(got.Unresolved, got.Conflicts...)
		if got.Missing {
			return v.Land(ctx, s) // somebody has deleted it: the same conflict, in a new one
		}
		if len(open) > 0 {
			if in, err := v.mergedByHand(ctx, s, w.Merge); err != nil || !in {
				return Landed{Unresolved: open, Warnings: got.Warnings}, err
			}
		} else if err := v.putRef(ctx, s.resolvedRef(w.Merge), got.Head); err != nil {
			return Landed{}, err
		}
	}
	return v.Land(ctx, s)
}

// mergedByHand tells whether somebody has merged a part in the source meanwhile,
// which leaves nothing to resolve. The part is named by what was merged of it.
func (v *Vault) mergedByHand(ctx context.Context, s LandSpec, merged string) (bool, error) {
	head, err := v.BranchHead(ctx, s.Target)
	if err != nil {
		return false, err
	}
	for _, p := range s.Parts {
		_, is, err := v.resolution(s, p, merged)
		if err != nil {
			return false, err
		}
		if is {
			return v.Contains(ctx, p.Commit, head)
		}
	}
	return false, nil
}

// AbortLand forgets a landing that did not happen. A landed one cannot be
// aborted; aborting twice is harmless. The workspace of a conflict is the
// caller's to discard.
func (v *Vault) AbortLand(ctx context.Context, s LandSpec) error {
	if err := s.check(); err != nil || v.source.kind == sourceNone {
		return err
	}
	unlock, ok := v.git.locks.tryLock("land\x00" + v.source.text + "\x00" + s.Target)
	if !ok {
		return fail(KindMergeRunning, "a landing on %q is running", s.Target)
	}
	defer unlock()
	if landed, err := readRefFile(v.dir, s.PrivateRef); err != nil {
		return err
	} else if landed != "" {
		now, err := v.BranchHead(ctx, s.Target)
		if err != nil && KindOf(err) != KindBranchMissing {
			return err
		}
		if err == nil {
			if in, err := v.Contains(ctx, landed, now); err != nil {
				return err
			} else if in {
				return fail(KindAlreadyLanded, "%s is on %q already", landed, s.Target)
			}
		}
	}
	refs, err := v.Refs(ctx, s.PrivateRef)
	if err != nil {
		return err
	}
	for ref := range refs {
		if ref == s.PrivateRef || ref == s.baseRef() || strings.HasPrefix(ref, s.resolvedRef("")) {
			if err := v.DeleteRef(ctx, ref, ""); err != nil {
				return err
			}
		}
	}
	return nil
}

package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// target is the branch that a landing moves, local or remote.
type target struct {
	vault    *Vault
	branch   string
	old, new string
	loc      location  // local
	fresh    bool      // local: the branch exists only as a remote's so far
	checkout *checkout // local: the working tree that has it checked out, locked; may be nil
}

// openTarget refuses whatever a person has to settle first, and locks the
// checkout so that the answer still holds when the target moves.
func (v *Vault) openTarget(ctx context.Context, s LandSpec, old, commit string) (*target, error) {
	t := &target{vault: v, branch: s.Target, old: old, new: commit}
	if v.source.kind == sourceURL {
		return t, nil
	}
	var err error
	if t.loc, err = locate(v.source.text); err != nil {
		return nil, err
	}
	_, err = v.Ref(ctx, originPrefix+s.Target)
	if t.fresh = KindOf(err) == KindBranchMissing; err != nil && !t.fresh {
		return nil, err
	}
	if t.checkout, err = v.git.findCheckout(ctx, t.loc, s.Target); err != nil {
		return nil, err
	}
	if t.checkout == nil {
		return t, v.freeTarget(ctx, t.loc, &checkout{}, t.branch, commit)
	}
	if err := t.checkout.lock(ctx, s.PrivateRef); err != nil {
		return nil, err
	}
	err = v.freeTarget(ctx, t.loc, t.checkout, t.branch, commit)
	if err == nil {
		err = v.finishLeft(ctx, t.checkout, s, old)
	}
	if err == nil {
		err = t.checkout.refuse(ctx, t)
	}
	if err != nil {
		if t.moved(ctx) { // before the lock: it is another target that was refused
			err = fail(KindRefMoved, "%q moved meanwhile", t.branch).because(err)
		}
		t.release()
		return nil, err
	}
	return t, nil
}

// moved is true when the target is known not to be where the landing begins.
func (t *target) moved(ctx context.Context) bool {
	old := t.old
	if t.fresh {
		old = ""
	}
	now, err := t.vault.git.refsAt(ctx, t.loc)
	return err == nil && now["refs/heads/"+t.branch] != old
}

// finishLeft completes the checkout of another landing, which had moved the target
// when a crash cut it off: now, or this one would be refused for the user's edits that
// are none. What it cannot complete the user has to look at, and refuse says so.
func (v *Vault) finishLeft(ctx context.Context, c *checkout, s LandSpec, now string) error {
	if c.left == "" || c.left == s.PrivateRef || checkRef(c.left) != nil {
		return nil //nolint:nilerr // it was not left by a landing
	}
	other := LandSpec{PrivateRef: c.left}
	landed, err := readRefFile(v.dir, other.PrivateRef)
	if err != nil {
		return err
	}
	if landed == now {
		old, err := v.Ref(ctx, other.baseRef())
		if err != nil {
			return err
		}
		if err := c.complete(ctx, v, old, now); err != nil {
			return ctx.Err()
		}
	}
	return c.relabel(s.PrivateRef)
}

// freeTarget removes the locks that a git of ours has left on its way to move the
// target, killed together with its server: nobody else would, and the user could not
// commit any more. A lock is ours where it holds what a landing has built; or nothing
// yet, and the checkout's lock was left with it. A git that outlived its server has
// time to end.
func (v *Vault) freeTarget(ctx context.Context, loc location, c *checkout, branch, commit string) error {
	ours := map[string]bool{commit: true}
	if c.left != "" {
		ours[""] = true
		if checkRef(c.left) == nil {
			built, err := readRefFile(v.dir, c.left)
			if err != nil {
				return err
			}
			ours[built] = true
		}
	}
	locks := []string{"refs/heads/" + branch}
	if head, err := os.ReadFile(filepath.Join(loc.common, "HEAD")); err == nil && strings.TrimSpace(string(head)) == "ref: "+locks[0] {
		locks = append(locks, "HEAD") // git locks it too, but only where it stands at the branch
	}
	for _, ref := range locks {
		path := filepath.Join(loc.common, filepath.FromSlash(ref)+".lock")
		for wait := 25 * time.Millisecond; ; wait *= 2 {
			text, err := os.ReadFile(path)
			if err != nil || !ours[strings.TrimSpace(string(text))] {
				break // gone; or the user's, and git says so
			}
			if wait > 200*time.Millisecond {
				breakLock(path, v.opened)
				break
			}
			if err := pause(ctx, wait); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *target) release() {
	if t.checkout != nil {
		t.checkout.unlock()
	}
}

// move brings the objects over and moves the ref, all or nothing.
func (t *target) move(ctx context.Context) error {
	if t.vault.source.kind == sourceURL {
		return t.vault.pushTo(ctx, t.vault.source.text, t.branch, t.new, t.old)
	}
	git := t.vault.git
	there := []string{"GIT_DIR=" + t.loc.common}
	err := git.transfer(ctx, transfer{from: t.vault.env(), to: there, want: []string{t.new}, have: []string{t.old}, strict: false})
	if err != nil {
		return err
	}
	old := t.old
	if t.fresh {
		old = zeroHash
	}
	_, err = git.run(ctx, command{
		args: []opt{"update-ref", "--no-deref", "-m", "claudomator: land", "-z", "--stdin"}, finishes: true,
		env: there, stdin: strings.NewReader("update refs/heads/" + t.branch + "\x00" + t.new + "\x00" + old + "\x00"),
	})
	if err == nil {
		return nil
	}
	if t.moved(ctx) {
		return fail(KindRefMoved, "%q moved meanwhile", t.branch).because(err)
	}
	return err
}

// follow updates the locked checkout after the ref moved.
func (t *target) follow(ctx context.Context) (string, []Warning) {
	if t.checkout == nil {
		return "", nil
	}
	// The target has moved: giving up now would leave the checkout behind.
	ctx = context.WithoutCancel(ctx)
	if err := t.checkout.bring(ctx, t.vault, t.old, t.new); err != nil {
		return "", []Warning{staleCheckout(t.checkout.dir, err)}
	}
	return t.checkout.dir, nil
}

func staleCheckout(dir string, err error) Warning {
	return Warning{WarnCheckoutStale, fmt.Sprintf("the branch moved, but its checkout could not follow: %v", err), []string{Display(dir)}}
}

// finishCheckout completes the checkout of a landing that a crash cut off.
func (v *Vault) finishCheckout(ctx context.Context, s LandSpec, old, commit string) (string, []Warning) {
	if v.source.kind != sourcePath {
		return "", nil
	}
	loc, err := locate(v.source.text)
	if err != nil {
		return "", []Warning{staleCheckout(v.source.text, err)}
	}
	c, err := v.git.findCheckout(ctx, loc, s.Target)
	if err == nil && c == nil {
		return "", nil
	}
	if err == nil {
		err = c.lock(ctx, s.PrivateRef)
	}
	if err != nil {
		return "", []Warning{staleCheckout(v.source.text, err)}
	}
	defer c.unlock()
	if err = v.freeTarget(ctx, loc, c, s.Target, commit); err == nil {
		err = c.complete(ctx, v, old, commit)
	}
	if err != nil {
		return "", []Warning{staleCheckout(c.dir, err)}
	}
	return c.dir, nil
}

// complete brings a checkout along that was cut off on its way, or had not begun.
func (c *checkout) complete(ctx context.Context, v *Vault, old, commit string) error {
	dirty, err := c.changes(ctx)
	if err != nil || len(dirty) == 0 {
		return err
	}
	if err := c.heal(ctx, v, old, commit); err != nil {
		return err
	}
	return c.bring(ctx, v, old, commit)
}

// bring is update, tried again where git itself broke down: the branch has moved,
// and a checkout left behind looks to the next landing like the user's edits.
func (c *checkout) bring(ctx context.Context, v *Vault, old, commit string) error {
	err := c.update(ctx, old, commit)
	for range 2 {
		if err == nil {
			return nil
		}
		if err = errors.Join(removeFile(c.scratch()), removeFile(c.scratch()+".lock")); err == nil {
			err = c.heal(ctx, v, old, commit)
		}
		if err == nil {
			err = c.update(ctx, old, commit)
		}
	}
	return err
}

// heal tells the index about files that the interrupted update had written
// already, so that they do not look like the user's edits.
func (c *checkout) heal(ctx context.Context, v *Vault, old, commit string) error {
	changes, err := v.rawDiff(ctx, old, commit)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(c.dir)
	if err != nil {
		return storageError("open "+c.dir, err)
	}
	defer root.Close()
	if err := c.beginIndex(); err != nil {
		return err
	}
	reader := &scanner{root: root}
	var in bytes.Buffer
	for _, f := range changes {
		if f.Status == "D" || !safePath(f.Path) || !exists(filepath.Join(c.dir, f.Path)) {
			continue
		}
		mode, data, _, err := reader.load(f.Path)
		if err != nil || data == nil || mode != f.NewMode {
			continue
		}
		switch objectName("blob", data) {
		case f.newHash:
			fmt.Fprintf(&in, "%s %s\t%s\x00", f.NewMode, f.newHash, f.Path)
		case f.oldHash:
		default:
			if err := v.removeCutOff(ctx, root, f, data); err != nil {
				return err
			}
		}
	}
	if in.Len() == 0 {
		return nil
	}
	if _, err := c.run(ctx, command{args: []opt{"update-index", "--add", "-z", "--index-info"}, stdin: &in}); err != nil {
		return err
	}
	_, err = c.run(ctx, command{args: []opt{"update-index", "-q", "--refresh"}})
	if e := (*Error)(nil); asExit(err, &e) && e.Exit == 1 {
		err = nil // some entries are not up to date: the merge decides about them
	}
	return err
}

// removeCutOff removes a file that a killed git had only begun to write: all that
// it holds is the beginning of what is to come, so nothing is lost with it.
func (v *Vault) removeCutOff(ctx context.Context, root *os.Root, f FileStat, data []byte) error {
	_, whole, err := v.reader.contents(ctx, f.newHash)
	if err != nil || !bytes.HasPrefix(whole, data) {
		return err
	}
	if err := root.Remove(f.Path); err != nil {
		return storageError("remove what was cut off of "+Display(f.Path), err)
	}
	return nil
}

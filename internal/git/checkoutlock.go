package git

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const lockMark = "claudomator " // in a lock of ours, before the private ref of its landing

// lock takes git's index lock, and takes over one that a crash of ours left: it says
// so inside, and nobody holds it. A landing of another server, which has the same
// repository, holds its own. The mark stays: it tells whose landing is unfinished.
func (c *checkout) lock(ctx context.Context, owner string) error {
	for wait := 5 * time.Millisecond; ; wait *= 2 {
		err := c.placeLock(owner)
		if errors.Is(err, os.ErrExist) {
			err = c.takeOver()
		}
		if err == nil {
			return c.tidy()
		}
		if !errors.Is(err, os.ErrExist) {
			return storageError("lock the index of "+c.dir, err)
		}
		if wait > time.Second {
			return fail(KindLocked, "another git process is at work in %s", c.dir).hint("if none is, delete " + c.lockFile())
		}
		if err := pause(ctx, wait); err != nil {
			return err
		}
	}
}

// placeLock makes the lock file with its mark in it and held, at once: one that a kill
// has left empty would be nobody's.
func (c *checkout) placeLock(owner string) error {
	draft, err := c.draft(owner)
	if err != nil {
		return err
	}
	err = os.Link(draft.Name(), c.lockFile())
	if missing(err) {
		err = os.ErrExist // another landing has tidied up meanwhile
	} else if err != nil && !errors.Is(err, os.ErrExist) { // a file system without links
		return errors.Join(c.writeLock(owner), removeFile(draft.Name()), draft.Close())
	}
	if err = errors.Join(err, removeFile(draft.Name())); err != nil {
		return errors.Join(err, draft.Close())
	}
	c.held = draft
	return nil
}

// writeLock makes the lock file where it cannot be put there whole.
func (c *checkout) writeLock(owner string) error {
	f, err := os.OpenFile(c.lockFile(), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_ = hold(f)
	if _, err = f.WriteString(lockMark + owner + "\n"); err != nil {
		return errors.Join(err, removeFile(c.lockFile()), f.Close())
	}
	c.held = f
	return nil
}

// takeOver takes a lock of ours that nobody holds any more; os.ErrExist when it is
// somebody's.
func (c *checkout) takeOver() error {
	f, err := os.Open(c.lockFile())
	if err != nil {
		return os.ErrExist // gone just now; or it cannot be ours
	}
	text, err := os.ReadFile(c.lockFile())
	if err != nil || !strings.HasPrefix(string(text), lockMark) || !hold(f) || !stands(f, c.lockFile()) {
		_ = f.Close()
		return os.ErrExist
	}
	c.held, c.left = f, strings.TrimSpace(strings.TrimPrefix(string(text), lockMark))
	return nil
}

// draft is a lock that is not in its place yet, but held.
func (c *checkout) draft(owner string) (*os.File, error) {
	f, err := os.CreateTemp(c.gitDir, draftPrefix+"*")
	if err != nil {
		return nil, err
	}
	err = os.ErrExist // another landing tidies it up
	if hold(f) {
		_, err = f.WriteString(lockMark + owner + "\n")
	}
	if err != nil {
		return nil, errors.Join(err, removeFile(f.Name()), f.Close())
	}
	return f, nil
}

const draftPrefix = "claudomator-lock-"

// relabel says in the lock, which is held, that another landing holds it now.
func (c *checkout) relabel(owner string) error {
	draft, err := c.draft(owner)
	if err == nil {
		err = os.Rename(draft.Name(), c.lockFile())
	}
	if err != nil {
		return storageError("lock the index of "+c.dir, err)
	}
	_ = c.held.Close()
	c.held = draft
	return nil
}

// tidy removes what a crash has left beside the lock, which is held.
func (c *checkout) tidy() error {
	drafts, _ := filepath.Glob(filepath.Join(escapeGlob(c.gitDir), draftPrefix+"*"))
	for _, name := range drafts {
		if f, err := os.Open(name); err == nil {
			if hold(f) {
				_ = os.Remove(name)
			}
			_ = f.Close()
		}
	}
	return errors.Join(removeFile(c.scratch()), removeFile(c.scratch()+".lock"))
}

func (c *checkout) unlock() {
	if c.held != nil {
		_ = os.Remove(c.scratch())
		_ = os.Remove(c.lockFile())
		_ = c.held.Close()
		c.held = nil
	}
}

// hold locks a file for as long as it is open; false when somebody holds it. Where the
// file system knows no such locks it cannot be told, and nobody does.
func hold(f *os.File) bool {
	return !errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}

// stands is true while a file is the one that has its name.
func stands(f *os.File, path string) bool {
	mine, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(path)
	return err == nil && os.SameFile(mine, there)
}

func removeFile(p string) error {
	if err := os.Remove(p); !missing(err) {
		return err
	}
	return nil
}

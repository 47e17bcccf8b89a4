package git

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// breakOnce makes the next command that names a word end as how says ("exit 128",
// "kill -9 $$"): a git that was killed, or found no memory.
func (l *lab) breakOnce(word, how string) {
	l.t.Helper()
	at := l.t.TempDir()
	text := fmt.Sprintf("#!/bin/sh\ncase \" $* \" in *' %s '*) mkdir %s/once 2>/dev/null && %s ;; esac\nexec %s \"$@\"\n", word, at, how, l.git.opts.Program)
	l.git.opts.Program = filepath.Join(at, "git")
	if err := os.WriteFile(l.git.opts.Program, []byte(text), 0o700); err != nil { //nolint:gosec // a program
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() {
		if !exists(filepath.Join(at, "once")) {
			l.t.Errorf("no command named %s: the test did not test", word)
		}
	})
}

// A git that breaks down is no damaged workspace: its commits are kept, and it is
// not set aside.
func TestCommitsOfALostRunSurviveABrokenGit(t *testing.T) {
	t.Parallel()
	for _, word := range []string{"pack-objects", "unpack-objects"} {
		for name, how := range map[string]string{"fails": "exit 128", "is killed": "kill -9 $$"} {
			t.Run(word+" "+name, func(t *testing.T) {
				t.Parallel()
				l := newLab(t, "")
				l.prepare("t")
				head := sh(t, l.ws("t"), "echo c >c; git add c; git commit -qm c; git rev-parse HEAD")
				l.breakOnce(word, how)
				l.prepare("t")
				kept, err := l.vault.Refs(l.ctx(), "refs/claudomator/kept/t/")
				if err != nil || kept["refs/claudomator/kept/t/"+head] != head {
					t.Errorf("kept %v, %v, not %s", kept, err, head)
				}
				if aside, _ := filepath.Glob(filepath.Join(l.dir, ".t.unreadable-git-*")); len(aside) > 0 {
					t.Errorf("set aside: %s", aside)
				}
			})
		}
	}
}

// The branch has moved: a git that breaks down then must not leave the checkout
// behind, where it would look like the user's edits.
func TestCheckoutFollowsAlthoughGitBreaks(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]string{"fails": "exit 128", "is killed": "kill -9 $$", "works and fails": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, "echo g >gone; git add .; git commit -qm more")
			got := l.run("t", "echo two >>a; rm gone; echo new >new; git add -A; git commit -qm t")
			// The rehearsal has --dry-run behind -u.
			if how == "" {
				how = `{ ` + l.git.opts.Program + ` "$@"; exit 128; }`
			}
			l.breakOnce("-m -u "+got.Base, how)
			landed := l.land("t", got.Head)
			if len(landed.Warnings) > 0 {
				t.Errorf("warned: %+v", landed.Warnings)
			}
			if s := sh(t, l.repo, "git status --porcelain; cat a new; ls"); s != "one\ntwo\nnew\na\nnew" {
				t.Errorf("the checkout shows %q", s)
			}
		})
	}
}

// A reader that was killed between two questions is replaced; one that hangs does
// not hold the vault up for ever.
func TestReaderThatIsKilledOrHangs(t *testing.T) {
	t.Parallel()
	l := newLab(t, "")
	head := l.head("main")
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP} {
		// The one that replaces it has as long, which a busy machine may need.
		for limit := 200 * time.Millisecond; ; limit *= 3 {
			l.signalReader(signal, head)
			l.git.opts.Timeout = limit
			kind, err := l.vault.reader.kind(l.ctx(), head)
			l.git.opts.Timeout = patient
			if err == nil && kind == "commit" {
				break
			}
			if limit > time.Minute {
				t.Fatalf("after %s: %q, %v", signal, kind, err)
			}
		}
	}
}

// Nor does it when it is to rest.
func TestReaderThatHangsWhenItIsToRest(t *testing.T) {
	t.Parallel()
	l := newLab(t, "")
	head := l.head("main")
	l.signalReader(syscall.SIGSTOP, head)
	l.vault.reader.rest()
	if kind, err := l.vault.reader.kind(l.ctx(), head); err != nil || kind != "commit" {
		t.Errorf("%q, %v", kind, err)
	}
}

// signalReader sends a signal to the vault's reader, which has answered before.
func (l *lab) signalReader(signal syscall.Signal, head string) {
	l.t.Helper()
	r := l.vault.reader
	for sent := false; !sent; {
		if kind, err := r.kind(l.ctx(), head); err != nil || kind != "commit" {
			l.t.Fatalf("%q, %v", kind, err)
		}
		func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.live == nil {
				return // it rests already
			}
			if err := r.live.proc.cmd.Process.Signal(signal); err != nil {
				l.t.Fatal(err)
			}
			sent = true
		}()
	}
}

// A workspace whose making was cut off before anything was in it can be discarded;
// what somebody put there cannot.
func TestDiscardOfWhatWasHardlyBegun(t *testing.T) {
	t.Parallel()
	l := newLab(t, "")
	bin := filepath.Join(filepath.Dir(l.dir), "bin")
	for name, foreign := range map[string]bool{"empty": false, "foreign": true} {
		if err := os.MkdirAll(l.ws(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if foreign {
			sh(t, l.ws(name), "echo x >x")
		}
		_, err := l.vault.Discard(l.ctx(), l.ws(name), bin)
		if refused := KindOf(err) == KindUnsafeWorkspace; refused != foreign || exists(l.ws(name)) != foreign {
			t.Errorf("%s: %v; still there: %v", name, err, exists(l.ws(name)))
		}
	}
}

// A landing that was built and not moved is landed as it was built: a git of the
// killed server may yet move the target to it, also between two looks.
func TestLandingIsBuiltOnce(t *testing.T) {
	t.Parallel()
	for name, moved := range map[string]bool{"not moved": false, "moved meanwhile": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, "")
			got := l.run("t", "echo two >>a; echo new >new; git add -A; git commit -qm t")
			spec := l.landSpec("t", got.Head)
			old := l.head("main")
			built, err := l.vault.buildLanding(l.ctx(), spec, old)
			if err != nil {
				t.Fatal(err)
			}
			for ref, at := range map[string]string{spec.baseRef(): old, spec.PrivateRef: built.Commit} {
				if err := l.vault.putRef(l.ctx(), ref, at); err != nil {
					t.Fatal(err)
				}
			}
			l.git.opts.Now = func() time.Time { return time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC) }
			if moved { // by the old server's git, when this one is about to
				l.moveBefore("update-ref --no-deref -m claudomator: land", "main", built.Commit)
			}
			landed := l.land("t", got.Head)
			if landed.Commit != built.Commit || landed.Nothing {
				t.Errorf("landed %+v, not %s", landed, built.Commit)
			}
			if s := sh(t, l.repo, "git status --porcelain; git rev-parse HEAD; ls"); s != built.Commit+"\na\nnew" {
				t.Errorf("the checkout shows %q", s)
			}
		})
	}
}

// moveBefore lets the next command that names some words find a branch of the
// repository moved already.
func (l *lab) moveBefore(words, branch, commit string) {
	l.t.Helper()
	l.breakOnce(words, fmt.Sprintf("GIT_DIR=%s/.git %s update-ref refs/heads/%s %s || exit 99", l.repo, l.git.opts.Program, branch, commit))
}

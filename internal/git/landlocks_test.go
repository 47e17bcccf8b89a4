package git

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// A git that is killed with its server while it moves the target leaves locks in the
// user's repository. The next landing removes what is ours of them, and nothing else.
func TestLocksOfAKilledGit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		moved bool
		bare  bool
		locks string // a shell text; $C is the commit that is landed
		want  Kind
	}{
		{name: "empty", locks: ": >refs/heads/main.lock"},
		{name: "about to move", locks: "echo $C >refs/heads/main.lock; : >HEAD.lock"},
		{name: "moved", moved: true, locks: ": >HEAD.lock"},
		{name: "of a bare repository", bare: true, locks: "echo $C >refs/heads/main.lock"},
		{name: "the user's", locks: "git rev-parse main >refs/heads/main.lock", want: KindLocked},
		{name: "the user's in a bare repository", bare: true, locks: ": >refs/heads/main.lock", want: KindLocked},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, "")
			there := filepath.Join(l.repo, ".git")
			if c.bare {
				sh(t, l.repo, "git clone -q --bare . ../B.git")
				there = filepath.Join(filepath.Dir(l.repo), "B.git")
				l.repo = there
				l.vault = l.openAt("b.git", there)
			}
			got := l.run("t", "echo two >>a; git commit -qam t")
			spec, old := l.landSpec("t", got.Head), l.head("main")
			built, err := l.vault.buildLanding(l.ctx(), spec, old)
			if err != nil {
				t.Fatal(err)
			}
			for ref, at := range map[string]string{spec.baseRef(): old, spec.PrivateRef: built.Commit} {
				if err := l.vault.putRef(l.ctx(), ref, at); err != nil {
					t.Fatal(err)
				}
			}
			to, err := l.vault.openTarget(l.ctx(), spec, old, built.Commit) // holds the checkout's lock
			if err == nil && c.moved {
				err = to.move(l.ctx())
			}
			if err != nil {
				t.Fatal(err)
			}
			sh(t, there, "C="+built.Commit+"; "+c.locks)
			l.dies(to)
			l.vault = l.openAt(filepath.Base(l.vault.Dir()), l.repo) // the next life
			out, err := l.vault.Land(l.ctx(), spec)
			if KindOf(err) != c.want || c.want == "" && err != nil {
				t.Fatal(err)
			}
			if c.want != "" {
				if _, err := os.Lstat(filepath.Join(there, "refs/heads/main.lock")); err != nil || l.head("main") != old {
					t.Errorf("it went past the lock: %v", err)
				}
				return
			}
			if out.Commit != built.Commit || l.head("main") != built.Commit || len(out.Warnings) > 0 {
				t.Errorf("landed %+v", out)
			}
			if !c.bare {
				l.sound()
			}
		})
	}
}

// HEAD is locked together with the branch that it stands at. Where that is another one,
// its lock is the user's, also while the checkout's lock of a cut off landing is there.
func TestLockOfAHeadThatIsElsewhere(t *testing.T) {
	t.Parallel()
	l := newLab(t, "git checkout -q -b other; git worktree add -q ../W main")
	got := l.run("t", "echo two >>a; git commit -qam t")
	spec, old := l.landSpec("t", got.Head), l.head("main")
	to, err := l.vault.openTarget(l.ctx(), spec, old, got.Head)
	if err != nil {
		t.Fatal(err)
	}
	users := filepath.Join(l.repo, ".git", "HEAD.lock")
	write(t, users, "")
	l.dies(to)
	l.vault = l.openAt(filepath.Base(l.vault.Dir()), l.repo)
	if out, err := l.vault.Land(l.ctx(), spec); err != nil || out.Checkout == "" || len(out.Warnings) > 0 {
		t.Fatalf("landed %+v, %v", out, err)
	}
	if !exists(users) {
		t.Error("the user's lock was removed")
	}
}

// What a killed life has locked in the vault itself goes when it is opened again, also
// where nobody needs that reference any more; and what is locked now stays.
func TestLocksOfAKilledLife(t *testing.T) {
	t.Parallel()
	l := newLab(t, "")
	got := l.run("t", "echo two >>a; git commit -qam t")
	dir := l.vault.Dir()
	locks := []string{"refs/heads/claudomator/t.lock", "refs/claudomator/snapshots/t/branch-x.lock", "packed-refs.lock"}
	for _, name := range locks {
		write(t, filepath.Join(dir, name), "")
	}
	l.vault = l.openAt(filepath.Base(dir), l.repo)
	for _, name := range locks {
		if exists(filepath.Join(dir, name)) {
			t.Errorf("%s is there still", name)
		}
	}
	if err := l.vault.DeleteRef(l.ctx(), "refs/heads/claudomator/t", got.Head); err != nil {
		t.Error(err)
	}
	write(t, filepath.Join(dir, "refs/heads/claudomator/u.lock"), "")
	wantKind(t, l.vault.SetRef(l.ctx(), "refs/heads/claudomator/u", got.Head, ""), KindLocked)
}

// So does a branch that is made once more.
func TestLockOfAKilledRescue(t *testing.T) {
	t.Parallel()
	l := newLab(t, "")
	got := l.run("t", "echo two >>a; git commit -qam t")
	sh(t, l.repo, "mkdir -p .git/refs/heads/x; echo "+got.Head+" >.git/refs/heads/x/y.lock; git rev-parse main >.git/refs/heads/x/z.lock")
	l.vault = l.openAt(filepath.Base(l.vault.Dir()), l.repo)
	if err := l.vault.NewBranch(l.ctx(), "x/y", got.Head); err != nil {
		t.Error(err)
	}
	wantKind(t, l.vault.NewBranch(l.ctx(), "x/z", got.Head), KindLocked)
}

// Two servers may have the same repository: a landing of the one waits for that of the
// other, whose lock looks like one that a crash has left, and begins where that ends.
func TestLandingBesideAnotherServers(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"ends in time", "takes too long", "is killed"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, "")
			first := l.run("t", "echo two >>a; git commit -qam t")
			spec, old := l.landSpec("t", first.Head), l.head("main")
			built, err := l.vault.buildLanding(l.ctx(), spec, old)
			if err != nil {
				t.Fatal(err)
			}
			to, err := l.vault.openTarget(l.ctx(), spec, old, built.Commit)
			if err != nil {
				t.Fatal(err)
			}
			placed := make(chan struct{})
			second := l.run("u", "echo other >other; git add -A; git commit -qm u")
			other := l.landSpec("u", second.Head)
			c := &checkout{dir: l.repo, gitDir: filepath.Join(l.repo, ".git")}
			if err := c.takeOver(); !errors.Is(err, os.ErrExist) {
				t.Fatal("a lock that is held was taken over: ", err)
			}
			switch name {
			case "takes too long":
				_, err := l.vault.openTarget(l.ctx(), other, old, second.Head)
				wantKind(t, err, KindLocked)
				to.release()
				return
			case "is killed":
				l.dies(to)
			default:
				go func() {
					defer close(placed)
					defer to.release()
					if err := to.move(l.ctx()); err != nil {
						t.Error(err)
					} else if _, warnings := to.follow(l.ctx()); len(warnings) > 0 {
						t.Error(warnings)
					}
				}()
				defer func() { <-placed }()
			}
			out, err := l.vault.Land(l.ctx(), other)
			for over := name == "is killed"; KindOf(err) == KindLocked && !over; { // on a busy machine the first one is not that quick
				select {
				case <-placed:
					over = true // this try begins after its end
				default:
				}
				out, err = l.vault.Land(l.ctx(), other)
			}
			if err != nil || out.Checkout != l.repo || len(out.Warnings) > 0 {
				t.Fatalf("landed %+v, %v", out, err)
			}
			l.sound()
		})
	}
}

// A target that has moved since the landing was built is landed on anew, whatever the
// checkout would say of the old one.
func TestTargetMovesBeforeItsCheckoutIsLocked(t *testing.T) {
	t.Parallel()
	l := newLab(t, "")
	got := l.run("t", "echo two >>a; echo mine >new; git add -A; git commit -qm t")
	spec, old := l.landSpec("t", got.Head), l.head("main")
	built, err := l.vault.buildLanding(l.ctx(), spec, old)
	if err != nil {
		t.Fatal(err)
	}
	sh(t, l.repo, "echo theirs >new; git add -A; git commit -qm theirs")
	_, err = l.vault.openTarget(l.ctx(), spec, old, built.Commit)
	wantKind(t, err, KindRefMoved)
	if exists(filepath.Join(l.repo, ".git", "index.lock")) {
		t.Error("the checkout is locked still")
	}
}

// dies lets go of what the system takes from a server that is killed.
func (l *lab) dies(to *target) {
	l.t.Helper()
	if to.checkout != nil {
		if err := to.checkout.held.Close(); err != nil {
			l.t.Fatal(err)
		}
	}
}

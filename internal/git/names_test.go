package git

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestInspect(t *testing.T) {
	t.Parallel()
	l := newLab(t, "mkdir sub; git branch -m trunk; git worktree add -q ../linked -b side; git clone -q --bare . ../B.git; git init -q ../detached; ln -s R ../link")
	top := filepath.Dir(l.repo)
	for path, want := range map[string]RepoInfo{
		"R":      {Path: l.repo, Local: true, Branch: "trunk"},
		"link":   {Path: l.repo, Local: true, Branch: "trunk"},
		"linked": {Path: filepath.Join(top, "linked"), Local: true, Branch: "side"},
		"B.git":  {Path: filepath.Join(top, "B.git"), Local: true, Branch: "trunk", Bare: true},
	} {
		got, err := l.git.Inspect(l.ctx(), filepath.Join(top, path), "")
		if want.Head = sh(t, l.repo, "git rev-parse trunk"); err != nil || got != want {
			t.Errorf("%s: %+v, %v", path, got, err)
		}
	}
	for path, kind := range map[string]Kind{
		"R/sub": KindNotARepository, "R/a": KindNotARepository, "nowhere": KindNotARepository, "detached": KindNoCommits,
	} {
		_, err := l.git.Inspect(l.ctx(), filepath.Join(top, path), "")
		wantKind(t, err, kind)
	}
	sh(t, l.repo, "git checkout -q --detach")
	_, err := l.git.Inspect(l.ctx(), l.repo, "")
	wantKind(t, err, KindDetached)
	sh(t, l.repo, "git update-ref refs/remotes/origin/far/away HEAD")
	for _, branch := range []string{"side", "far/away"} { // one that is named does not need HEAD
		if got, err := l.git.Inspect(l.ctx(), l.repo, branch); err != nil || got.Branch != branch || got.Head == "" {
			t.Errorf("on %s: %+v, %v", branch, got, err)
		}
	}
	_, err = l.git.Inspect(l.ctx(), l.repo, "away")
	wantKind(t, err, KindBranchMissing)
	_, err = l.git.Inspect(l.ctx(), "file://"+filepath.Join(top, "B.git"), "nowhere")
	wantKind(t, err, KindBranchMissing)
	for _, bad := range []string{"ext::sh -c 'touch x'", "-x", "ftp://x/y", "", "a\nb"} {
		if _, err := l.git.Inspect(l.ctx(), bad, ""); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestB03Names(t *testing.T) {
	t.Parallel()
	l := newLab(t, "git branch story; git branch release/1; git branch Story/x")
	base := l.head("main")
	for _, bad := range []string{"/", "..", "@{", ".lock", "x.lock", "a..b", "-x", "HEAD", "a b", "a\\b", "a\x00b", "a//b", "x/", ".x", "a~1", "a^", "a:b", "a?", "a*", "a[", "x.", strings.Repeat("x", 400), "\xff"} {
		wantKind(t, ValidBranch(bad), KindInvalidRef)
	}
	for _, good := range []string{"story/x", "release", "Story", "😀", "שלום", "#1", "a'b\"c", "$(id)"} {
		p, err := l.vault.Prepare(l.ctx(), Workspace{Dir: filepath.Join(l.dir, good), Branch: "claudomator/" + good, Base: base})
		if err != nil || p.Head != base {
			t.Errorf("%s: %+v, %v", good, p, err)
			continue
		}
		if b := sh(t, filepath.Join(l.dir, good), "git branch --show-current"); b != "claudomator/"+good {
			t.Errorf("%s: on branch %q", good, b)
		}
	}
	for ref, beside := range map[string]string{"refs/heads/plan": "refs/heads/plan/1", "refs/heads/deep/a/b": "refs/heads/deep/a"} {
		if err := l.vault.SetRef(l.ctx(), beside, base, ""); err != nil {
			t.Fatal(err)
		}
		wantKind(t, l.vault.SetRef(l.ctx(), ref, base, ""), KindRefConflict)
		if err := l.vault.Maintain(l.ctx(), 0); err != nil { // the same from packed refs
			t.Fatal(err)
		}
		wantKind(t, l.vault.SetRef(l.ctx(), ref, base, ""), KindRefConflict)
		if err := l.vault.DeleteRef(l.ctx(), beside, base); err != nil {
			t.Fatal(err)
		}
		if err := l.vault.SetRef(l.ctx(), ref, base, ""); err != nil {
			t.Errorf("after deletion: %v", err)
		}
	}
	// The source turns a branch into a folder of branches.
	sh(t, l.repo, "git branch -D story; git branch story/x main")
	if h := l.head("story/x"); h != base {
		t.Errorf("story/x at %q", h)
	}
	_, err := l.vault.BranchHead(l.ctx(), "story")
	wantKind(t, err, KindBranchMissing)
}

func TestRefsAreSwapped(t *testing.T) {
	t.Parallel()
	l := newLab(t, "echo two >>a; git commit -qam two")
	ctx, v := l.ctx(), l.vault
	two := l.head("main")
	one := sh(t, l.repo, "git rev-parse main~1")
	const ref = "refs/heads/claudomator/x"
	for i, step := range []struct {
		commit, old string
		kind        Kind
	}{
		{one, two, KindRefMoved}, {one, "", ""}, {one, "", KindRefMoved}, {two, one, ""}, {one, one, KindRefMoved},
		{strings.Repeat("1", 40), two, KindBranchMissing}, {"x", two, KindInvalidRef},
	} {
		if err := v.SetRef(ctx, ref, step.commit, step.old); KindOf(err) != step.kind {
			t.Errorf("step %d: %v, want kind %q", i, err, step.kind)
		}
	}
	wantKind(t, v.DeleteRef(ctx, ref, one), KindRefMoved)
	for range 2 {
		if err := v.DeleteRef(ctx, ref, ""); err != nil {
			t.Error(err)
		}
	}
	_, err := v.Ref(ctx, ref)
	wantKind(t, err, KindBranchMissing)
	for _, c := range []struct {
		a, b string
		want bool
	}{{one, two, true}, {two, one, false}, {one, one, true}} {
		if got, err := v.Contains(ctx, c.a, c.b); err != nil || got != c.want {
			t.Errorf("Contains(%s, %s) = %v, %v", c.a, c.b, got, err)
		}
	}
}

// TestLocksOfAKilledServer: they stop nobody after the next start; those of this
// life, and of the user's git, are respected.
func TestLocksOfAKilledServer(t *testing.T) {
	t.Parallel()
	l := newLab(t, "")
	base := l.head("main")
	old := time.Now().Add(-time.Minute)
	lock := func(path string, at time.Time) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o600), os.Chtimes(path, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	lock(filepath.Join(l.vault.dir, "refs/heads/claudomator/x.lock"), old)
	lock(filepath.Join(l.vault.dir, "packed-refs.lock"), old)
	lock(filepath.Join(l.vault.dir, "refs/remotes/origin/main.lock"), old)
	v, err := l.git.OpenVault(l.ctx(), l.vault.dir, l.repo)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	for _, gone := range []string{"packed-refs.lock", "refs/remotes/origin/main.lock"} {
		if exists(filepath.Join(v.dir, gone)) {
			t.Errorf("%s is still there", gone)
		}
	}
	if err := v.SetRef(l.ctx(), "refs/heads/claudomator/x", base, ""); err != nil {
		t.Error(err)
	}
	lock(filepath.Join(v.dir, "refs/heads/claudomator/y.lock"), time.Now().Add(time.Minute))
	wantKind(t, v.SetRef(l.ctx(), "refs/heads/claudomator/y", base, ""), KindLocked)
}

// TestCheckoutLockIsNeverEmpty: whoever looks at the lock of a landing sees whose
// it is, at any moment.
func TestCheckoutLockIsNeverEmpty(t *testing.T) {
	t.Parallel()
	c := &checkout{dir: t.TempDir()}
	c.gitDir = c.dir
	over := make(chan struct{})
	go func() {
		defer close(over)
		for range 500 {
			if err := c.lock(t.Context(), "refs/claudomator/landing/x"); err != nil {
				t.Error(err)
			}
			c.unlock()
		}
	}()
	for {
		select {
		case <-over:
			return
		default:
		}
		if text, err := os.ReadFile(c.lockFile()); err == nil && !strings.HasPrefix(string(text), "claudomator refs/") {
			t.Fatalf("the lock holds %q", text)
		}
	}
}

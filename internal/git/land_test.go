package git

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// B26: a dirty checkout of the target is refused with its paths, and untouched.
func TestB26DirtyTargetIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ user, path string }{
		"edited":                  {"echo mine >>a", "a"},
		"staged":                  {"echo mine >s; git add s", "s"},
		"untracked":               {"echo mine >b", "b"},
		"ignored":                 {"echo b >.git/info/exclude; echo mine >b", "b"},
		"deleted":                 {"rm a", "a"},
		"file for folder":         {"echo mine >d", "d"},
		"ignored file for folder": {"echo d >.git/info/exclude; echo mine >d", "d"},
		"ignored link for folder": {"echo d >.git/info/exclude; ln -s nowhere d", "d"},
		"folder for file":         {"mkdir b; echo mine >b/mine", "b/mine"},
		"ignored folder for file": {"echo b >.git/info/exclude; mkdir b; echo mine >b/mine", "b/mine"},
		"name with newline":       {"printf x >\"$(printf 'n\\nl')\"; git add .", `n\012l`},
		"linked working tree":     {"git checkout -q -b other; git worktree add -q ../linked main; echo mine >>../linked/a", "a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, "")
			got := l.run("t", "echo two >>a; echo b >b; mkdir d; echo d >d/d; git add .; git commit -qm t")
			sh(t, l.repo, c.user)
			before := sh(t, l.repo, "git status --porcelain; cat a b d b/mine 2>/dev/null || true; readlink d || true")
			_, err := l.vault.Land(l.ctx(), l.landSpec("t", got.Head))
			e := wantError(t, err, KindDirtyCheckout)
			if !strings.Contains(e.Error(), c.path) {
				t.Errorf("error does not name %q: %v", c.path, e)
			}
			if after := sh(t, l.repo, "git status --porcelain; cat a b d b/mine 2>/dev/null || true; readlink d || true"); after != before {
				t.Errorf("changed:\n%s\n%s", before, after)
			}
			if sh(t, l.repo, "git rev-parse main") != got.Base {
				t.Error("main moved")
			}
			sh(t, l.repo, "test ! -e .git/index.lock; git stash -q -u -a; git -C ../linked stash -q 2>/dev/null || true; cd ../linked 2>/dev/null || true; rm -rf b")
			if out := l.land("t", got.Head); out.Checkout == "" {
				t.Errorf("landed %+v", out)
			}
		})
	}
}

func TestLandLeavesOtherBranchAlone(t *testing.T) {
	t.Parallel()
	l := newLab(t, "")
	got := l.run("t", "echo two >>a; git commit -qam t")
	sh(t, l.repo, "git checkout -q -b mine; echo mine >>a; echo s >s; git add s; echo u >u")
	before := sh(t, l.repo, "git status --porcelain=v2 --branch; git stash list; git config -l --local")
	out := l.land("t", got.Head)
	if out.Checkout != "" || sh(t, l.repo, "git rev-parse main") != out.Commit {
		t.Fatalf("landed %+v", out)
	}
	if after := sh(t, l.repo, "git status --porcelain=v2 --branch; git stash list; git config -l --local"); after != before {
		t.Fatalf("changed:\n%s\n%s", before, after)
	}
	sh(t, l.repo, "git reset -q --hard; rm u")
	l.sound()
}

func TestLandUpdatesLinkedWorkingTreeAndBareRepository(t *testing.T) {
	t.Parallel()
	l := newLab(t, "git checkout -q -b mine; git worktree add -q ../linked main")
	got := l.run("t", "rm a; echo x >x; chmod +x x; git add -A; git commit -qm t")
	out := l.land("t", got.Head)
	linked := filepath.Join(filepath.Dir(l.repo), "linked")
	if out.Checkout != linked || sh(t, linked, "git status --porcelain; ls") != "x" {
		t.Fatalf("landed %+v", out)
	}
	l.sound()

	bare := newLab(t, "cd ..; git clone -q --bare R B.git")
	v, err := bare.git.OpenVault(bare.ctx(), filepath.Join(bare.dir, "b.git"), filepath.Join(filepath.Dir(bare.repo), "B.git"))
	if err != nil {
		t.Fatal(err)
	}
	bare.vault.Close()
	bare.vault = v
	t.Cleanup(v.Close)
	got = bare.run("t", "echo x >x")
	out = bare.land("t", got.Head)
	if sh(t, bare.repo, "git -C ../B.git rev-parse main") != out.Commit {
		t.Fatalf("landed %+v", out)
	}
}

// B28: the user's own operation is refused by name and survives.
func TestB28MidOperation(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		user string
		kind Kind
	}{
		"rebase":           {"git rebase other || true", KindBranchHeld},
		"merge":            {"git merge other || true", KindMidOperation},
		"cherry-pick":      {"git cherry-pick other || true", KindMidOperation},
		"bisect":           {"git bisect start; git bisect bad", KindBranchHeld},
		"linked rebase":    {"git checkout -q other~1; git worktree add -q ../linked main; cd ../linked; git rebase other || true", KindBranchHeld},
		"merge on another": {"git checkout -q other; git merge main || true", KindMidOperation},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, "git checkout -q -b other; echo other >a; git commit -qam other; git checkout -q main; echo main >a; git commit -qam main")
			got := l.run("t", "echo x >x")
			sh(t, l.repo, c.user)
			before := sh(t, l.repo, "git status; find .git -type f | grep -v logs | sort")
			spec := l.landSpec("t", got.Head)
			_, err := l.vault.Land(l.ctx(), spec)
			wantKind(t, err, c.kind)
			for range 2 {
				if err := l.vault.AbortLand(l.ctx(), spec); err != nil {
					t.Error(err)
				}
			}
			if after := sh(t, l.repo, "git status; find .git -type f | grep -v logs | sort"); after != before {
				t.Errorf("changed:\n%s\n%s", before, after)
			}
		})
	}
}

func TestConflictIsResolvedAndContinued(t *testing.T) {
	t.Parallel()
	l := newLab(t, "echo keep >keep; echo bin >bin; git add .; git commit -qm more")
	one := l.run("t1", "echo theirs >a; git rm -q keep; git commit -qam one")
	two := l.run("t2", "echo x >x")
	sh(t, l.repo, "echo ours >a; echo changed >keep; git commit -qam ours")
	spec := l.landSpec("m", one.Head, two.Head)
	out, err := l.vault.Land(l.ctx(), spec)
	if err != nil || len(out.Conflicts) != 2 || out.Commit != "" || out.Part != 0 {
		t.Fatalf("landed %+v, %v", out, err)
	}
	if out.Conflicts[0].Path != "a" || out.Conflicts[0].Kind != "content" || out.Conflicts[1].Kind != "modify/delete" {
		t.Fatalf("conflicts %+v", out.Conflicts)
	}
	if sh(t, l.repo, "git rev-parse main") != out.Onto {
		t.Fatal("main moved")
	}
	dir := l.ws("conflict")
	if p, err := l.vault.OpenConflict(l.ctx(), spec, out.Part, out.Onto, dir); err != nil || len(p.Conflicts) != 2 {
		t.Fatalf("opened %+v, %v", p, err)
	}
	if s := sh(t, dir, "git status --porcelain"); s != "UU a\nUD keep" {
		t.Fatalf("workspace shows %q", s)
	}
	still := func(want int) {
		t.Helper()
		out, err := l.vault.ContinueLand(l.ctx(), spec, dir)
		if err != nil || len(out.Unresolved) != want || out.Commit != "" {
			t.Fatalf("continued %+v, %v", out, err)
		}
	}
	still(2)
	sh(t, dir, "echo both >a")
	still(1)
	if p, err := l.vault.OpenConflict(l.ctx(), spec, out.Part, out.Onto, dir); err != nil || p.Created || sh(t, dir, "cat a") != "both" {
		t.Fatalf("opening again lost work: %+v, %v", p, err)
	}
	sh(t, dir, "git rm -q keep")
	done, err := l.vault.ContinueLand(l.ctx(), spec, dir)
	if err != nil || done.Commit == "" || done.Checkout != l.repo {
		t.Fatalf("continued %+v, %v", done, err)
	}
	if s := sh(t, l.repo, "cat a; ls; git log --first-parent --format=%s -3"); s != "both\na\nbin\nx\nLand m\nLand m\nours" {
		t.Fatalf("got %q", s)
	}
	if p := sh(t, l.repo, "git log -1 --format=%P main~1"); p != out.Onto+" "+one.Head {
		t.Fatalf("parents %q", p)
	}
	again, err := l.vault.ContinueLand(l.ctx(), spec, dir)
	if err != nil || !again.Already || again.Commit != done.Commit {
		t.Fatalf("continued twice %+v, %v", again, err)
	}
	wantKind(t, l.vault.AbortLand(l.ctx(), spec), KindAlreadyLanded)
	l.sound()
}

func TestAbandonedMergeIsNotAResolution(t *testing.T) {
	t.Parallel()
	l := newLab(t, "")
	one := l.run("t1", "echo theirs >a; git commit -qam one")
	sh(t, l.repo, "echo ours >a; git commit -qam ours")
	spec := l.landSpec("m", one.Head)
	out := l.land("m", one.Head)
	for i, script := range []string{"git merge --abort", "git reset -q --hard", "rm -r .git", "git checkout -q --ours a; git add a; echo '<<<<<<< x' >a; echo '>>>>>>> y' >>a"} {
		dir := l.ws("conflict")
		if _, err := l.vault.Prepare(l.ctx(), Workspace{Dir: dir, Branch: "claudomator/landing-m", Base: out.Onto, Merge: one.Head}); err != nil {
			t.Fatal(err)
		}
		sh(t, dir, script)
		got, err := l.vault.ContinueLand(l.ctx(), spec, dir)
		if err != nil || len(got.Unresolved) != 1 {
			t.Fatalf("%d: continued %+v, %v", i, got, err)
		}
	}
	if err := l.vault.AbortLand(l.ctx(), spec); err != nil {
		t.Fatal(err)
	}
	l.sound()
}

// B29, B31: what moves meanwhile is merged onto, never folded in unseen.
func TestTargetThatMovesIsChased(t *testing.T) {
	t.Parallel()
	l := newLab(t, "")
	got := l.run("t", "echo x >x")
	sh(t, l.repo, "git checkout -q -b elsewhere")
	moves := 0
	l.git.opts.Trace = func(args []string) {
		if strings.Contains(strings.Join(args, " "), "update-ref --no-deref -m") && moves < 2 {
			moves++
			_, _ = trySh(l.repo, "git update-ref refs/heads/main $(git commit-tree -p main -m moved main^{tree})")
		}
	}
	out := l.land("t", got.Head)
	if moves != 2 || sh(t, l.repo, "git rev-parse main") != out.Commit {
		t.Fatalf("landed %+v after %d moves", out, moves)
	}
	if n := sh(t, l.repo, "git rev-list --count --merges main; git rev-list --count main"); n != "1\n5" {
		t.Fatalf("history %q", n)
	}
	l.git.opts.Trace = func(args []string) {
		if strings.Contains(strings.Join(args, " "), "update-ref --no-deref -m") {
			_, _ = trySh(l.repo, "git update-ref refs/heads/main $(git commit-tree -p main -m moved main^{tree})")
		}
	}
	more := l.run("t2", "echo y >y")
	_, err := l.vault.Land(l.ctx(), l.landSpec("t2", more.Head))
	wantKind(t, err, KindTargetMoved)
}

func TestB31OneLandingAtATime(t *testing.T) {
	t.Parallel()
	l := newLab(t, "")
	got := l.run("t", "echo x >x")
	var wg sync.WaitGroup
	results := make([]Landed, 8)
	errs := make([]error, 8)
	for i := range results {
		wg.Go(func() { results[i], errs[i] = l.vault.Land(l.ctx(), l.landSpec("t", got.Head)) })
	}
	wg.Wait()
	landed := 0
	for i, err := range errs {
		switch {
		case err != nil:
			wantKind(t, err, KindMergeRunning)
		default:
			landed++
			if results[i].Commit != sh(t, l.repo, "git rev-parse main") {
				t.Errorf("landed %+v", results[i])
			}
		}
	}
	if n := sh(t, l.repo, "git rev-list --count --merges main"); n != "1" || landed == 0 {
		t.Fatalf("%s merges, %d answers", n, landed)
	}
	l.sound()
}

// B30: whatever instant a landing is cut off at, calling it again leaves one
// merge commit and a clean checkout.
func TestB30CutOffLandings(t *testing.T) {
	t.Parallel()
	const task = "echo two >>a; rm gone; echo new >new; mkdir d; echo d >d/d; git add -A; git commit -qm t"
	for _, c := range []struct{ name, user string }{
		{"before the checkout", ""},
		{"files half written", "echo two >>a; rm gone; mkdir d; echo d >d/d"},
		{"files all written", "echo two >>a; rm gone; echo new >new; mkdir d; echo d >d/d"},
		{"a file cut off", "printf 'one\ntw' >a; : >new"},
		{"scratch index left", "cp .git/index .git/claudomator-index; touch .git/claudomator-index.lock; echo new >new"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, "echo g >gone; git add .; git commit -qm more")
			got := l.run("t", task)
			spec := l.landSpec("t", got.Head)
			to := l.cutOff(spec)
			sh(t, l.repo, c.user) // the lock file stays, as after kill -9
			out := l.land("t", got.Head)
			if !out.Already || out.Commit != to.new || out.Checkout != l.repo || len(out.Warnings) > 0 {
				t.Fatalf("landed %+v", out)
			}
			if s := sh(t, l.repo, "git status --porcelain; ls; git rev-list --count --merges main"); s != "a\nd\nnew\n1" {
				t.Fatalf("got %q", s)
			}
			l.sound()
		})
	}
}

// A landing that a kill has cut off is finished by the next one on its target, also
// when that is another: what it left of the checkout are no edits of the user's.
func TestCutOffLandingBeforeAnother(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, user string }{
		{"before the checkout", ""},
		{"files half written", "echo two >>a; printf ne >new"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, "")
			first := l.run("t", "echo two >>a; echo new >new; git add -A; git commit -qm t")
			second := l.run("u", "echo other >other; git add -A; git commit -qm u")
			spec, old := l.landSpec("t", first.Head), l.head("main")
			to := l.cutOff(spec)
			sh(t, l.repo, c.user)
			out := l.land("u", second.Head)
			if out.Checkout != l.repo || len(out.Warnings) > 0 || out.Before != to.new {
				t.Fatalf("landed %+v", out)
			}
			l.sound()
			again := l.land("t", first.Head)
			if !again.Already || again.Commit != to.new || again.Before != old {
				t.Fatalf("landed again %+v", again)
			}
			if s := sh(t, l.repo, "git status --porcelain; ls; git rev-list --count --merges main"); s != "a\nnew\nother\n2" {
				t.Fatalf("got %q", s)
			}
			l.sound()
		})
	}
}

// cutOff does the same steps as Land, and stops where kill -9 would stop it: after
// the ref has moved, with the checkout's lock held.
func (l *lab) cutOff(spec LandSpec) *target {
	l.t.Helper()
	old := l.head("main")
	built, err := l.vault.buildLanding(l.ctx(), spec, old)
	if err != nil {
		l.t.Fatal(err)
	}
	to, err := l.vault.openTarget(l.ctx(), spec, old, built.Commit)
	if err != nil {
		l.t.Fatal(err)
	}
	for ref, at := range map[string]string{spec.baseRef(): old, spec.PrivateRef: built.Commit} {
		if err := l.vault.putRef(l.ctx(), ref, at); err != nil {
			l.t.Fatal(err)
		}
	}
	if err := to.move(l.ctx()); err != nil {
		l.t.Fatal(err)
	}
	if _, err := os.ReadFile(filepath.Join(l.repo, ".git", "index.lock")); err != nil {
		l.t.Fatal("the lock is not held: ", err)
	}
	l.dies(to)
	return to
}

func TestCutOffLandingKeepsTheUsersEdits(t *testing.T) {
	t.Parallel()
	l := newLab(t, "")
	got := l.run("t", "echo two >>a; git commit -qam t")
	spec := l.landSpec("t", got.Head)
	out := l.land("t", got.Head)
	sh(t, l.repo, "git read-tree main~1; echo edited >a") // as if the update had never come, and the user typed
	again, err := l.vault.Land(l.ctx(), spec)
	if err != nil || again.Commit != out.Commit || !warned(again.Warnings, WarnCheckoutStale) {
		t.Fatalf("landed %+v, %v", again, err)
	}
	if a := sh(t, l.repo, "cat a; test ! -e .git/index.lock"); a != "edited" {
		t.Fatalf("a holds %q", a)
	}
}

func TestLandOnURL(t *testing.T) {
	t.Parallel()
	l := newLab(t, "cd ..; git clone -q --bare R remote.git; git init -q --bare empty.git")
	url := "file://" + filepath.Join(filepath.Dir(l.repo), "remote.git")
	info, err := l.git.Inspect(l.ctx(), url, "")
	if err != nil || info.Branch != "main" || info.Local || info.Head == "" {
		t.Fatalf("inspected %+v, %v", info, err)
	}
	_, err = l.git.Inspect(l.ctx(), "file://"+filepath.Join(filepath.Dir(l.repo), "empty.git"), "")
	wantKind(t, err, KindNoCommits)
	_, err = l.git.Inspect(l.ctx(), "file:///nonexistent/x.git", "")
	wantKind(t, err, KindUnreachable)
	l.vault.Close()
	v, err := l.git.OpenVault(l.ctx(), filepath.Join(l.dir, "v.git"), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Close)
	l.vault = v
	got := l.run("t", "echo x >x")
	// It moves between fetch and push.
	moved := false
	l.git.opts.Trace = func(args []string) {
		if args[0] == "push" && !moved {
			moved = true
			_, _ = trySh(l.repo, "echo other >other; git add other; git commit -qm other; git push -q ../remote.git main")
		}
	}
	out := l.land("t", got.Head)
	remote := filepath.Join(filepath.Dir(l.repo), "remote.git")
	if !moved || sh(t, remote, "git rev-parse main; git ls-tree --name-only main") != out.Commit+"\na\nother\nx" {
		t.Fatalf("landed %+v", out)
	}
	if again := l.land("t", got.Head); !again.Already || again.Commit != out.Commit {
		t.Fatalf("landed again %+v", again)
	}
	sh(t, remote, `printf '#!/bin/sh\necho no such luck; exit 1\n' >hooks/pre-receive; chmod +x hooks/pre-receive`)
	more := l.run("t2", "echo y >y")
	_, err = l.vault.Land(l.ctx(), l.landSpec("t2", more.Head))
	if e := wantError(t, err, KindPushRejected); !strings.Contains(e.Error(), "no such luck") {
		t.Errorf("the remote's words are missing: %v", e)
	}
}

// B08: no hard-coded main, remote-only branches, a deleted target by name.
func TestB08Targets(t *testing.T) {
	t.Parallel()
	l := newLab(t, "git branch -m trunk; git tag dev; git tag main; git checkout -q --detach; git clone -q --bare . ../o.git; git remote add origin ../o.git; git -C ../o.git branch only/here trunk; git fetch -q; git branch 'we!rd#näme'")
	for _, b := range []string{"trunk", "only/here", "we!rd#näme"} {
		if l.head(b) == "" {
			t.Errorf("no head of %s", b)
		}
	}
	_, err := l.vault.BranchHead(l.ctx(), "main") // only a tag
	wantKind(t, err, KindBranchMissing)
	p, err := l.vault.Prepare(l.ctx(), Workspace{Dir: l.ws("t"), Branch: "claudomator/t", Base: l.head("trunk")})
	if err != nil {
		t.Fatal(err)
	}
	sh(t, l.ws("t"), "echo x >x")
	got := l.collect("t")
	spec := l.landSpec("t", got.Head)
	spec.Target = "only/here"
	out, err := l.vault.Land(l.ctx(), spec)
	if err != nil || sh(t, l.repo, "git rev-parse only/here") != out.Commit || out.Before != p.Head {
		t.Fatalf("landed %+v, %v", out, err)
	}
	spec = l.landSpec("t2", got.Head)
	spec.Target = "trunk"
	sh(t, l.repo, "git branch -D trunk; git update-ref -d refs/remotes/origin/trunk")
	_, err = l.vault.Land(l.ctx(), spec)
	wantKind(t, err, KindBranchMissing)
	if l.head("only/here") == "" { // one bad branch does not stop the rest
		t.Error("fetching stopped")
	}
}

// A target whose history was replaced by another is named as that.
func TestLandOnRewrittenHistory(t *testing.T) {
	t.Parallel()
	l := newLab(t, "")
	work := l.run("t", "echo x >x").Head
	sh(t, l.repo, "git checkout -q --orphan new; git -c user.name=o -c user.email=o@x commit -qm anew; git branch -M main")
	_, err := l.vault.Land(l.ctx(), l.landSpec("t", work))
	wantKind(t, err, KindUnrelated)
	if e, ok := errors.AsType[*Error](err); !ok || !strings.Contains(e.Hint, "history was rewritten") || strings.Contains(e.Message, "merge-tree") {
		t.Errorf("it says %+v", e)
	}
}

func TestB24ManyLandings(t *testing.T) {
	t.Parallel()
	l := newLab(t, "for h in pre-merge-commit commit-msg post-merge; do printf '#!/bin/sh\\nsleep 600\\n' >.git/hooks/$h; chmod +x .git/hooks/$h; done")
	a, b := l.run("t1", "echo x >x"), l.run("t2", "echo y >y")
	out := l.land("both", a.Head, b.Head)
	if s := sh(t, l.repo, "git rev-list --count --merges main; ls; git log --first-parent --format=%H -2"); s != "2\na\nx\ny\n"+out.Merges[1]+"\n"+out.Merges[0] {
		t.Fatalf("got %q", s)
	}
	l.sound()
}

func TestLandingStopsWhenCancelled(t *testing.T) {
	t.Parallel()
	l := newLab(t, "")
	got := l.run("t", "echo x >x")
	ctx, cancel := context.WithCancel(l.ctx())
	l.git.opts.Trace = func(args []string) {
		if args[0] == "worktree" {
			cancel()
		}
	}
	if _, err := l.vault.Land(ctx, l.landSpec("t", got.Head)); err == nil {
		t.Fatal("a cancelled landing succeeded")
	}
	if sh(t, l.repo, "git rev-parse main") != got.Base {
		t.Fatal("main moved")
	}
	l.git.opts.Trace = nil
	l.land("t", got.Head)
	l.sound()
}

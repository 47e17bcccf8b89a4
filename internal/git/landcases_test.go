package git

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// B24: whatever hook the user's repository has, and however it is configured, a
// landing asks none: two follow each other, and neither a merge nor a lock is left.
func TestB24HooksHaveNoSay(t *testing.T) {
	t.Parallel()
	const hooks = "pre-merge-commit commit-msg pre-commit prepare-commit-msg post-commit post-merge post-checkout post-rewrite post-index-change reference-transaction update pre-receive post-update pre-push"
	for name, setup := range map[string]string{
		"fail":  "for h in " + hooks + "; do printf '#!/bin/sh\\necho $0 >>../ran; exit 1\\n' >.git/hooks/$h; chmod +x .git/hooks/$h; done",
		"hang":  "for h in " + hooks + "; do printf '#!/bin/sh\\necho $0 >>../ran; exec sleep 3600\\n' >.git/hooks/$h; chmod +x .git/hooks/$h; done",
		"path":  "mkdir ../hooks; for h in " + hooks + "; do printf '#!/bin/sh\\necho $0 >>'$PWD'/../ran; exit 1\\n' >../hooks/$h; chmod +x ../hooks/$h; done; git config core.hooksPath $PWD/../hooks",
		"drops": "git config merge.ours.driver 'touch ../ran; false'; git config merge.default ours; git config commit.gpgSign true; git config gpg.program 'touch ../ran; false'; git config core.editor 'touch ../ran; sleep 3600'",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, setup)
			one, two := l.run("t", "echo x >x"), l.run("t2", "echo y >y; echo two >>a")
			before := sh(t, l.repo, "ls .git")
			began := time.Now()
			first, second := l.land("t", one.Head), l.land("t2", two.Head)
			if took := time.Since(began); took > patient {
				t.Errorf("two landings took %s", took)
			}
			if s := sh(t, l.repo, "ls; git log --first-parent --format=%H -3; ls .git"); s != "a\nx\ny\n"+second.Commit+"\n"+first.Commit+"\n"+one.Base+"\n"+before {
				t.Errorf("got %q", s)
			}
			if first.Checkout != l.repo || second.Before != first.Commit {
				t.Errorf("landed %+v, %+v", first, second)
			}
			if exists(filepath.Join(filepath.Dir(l.repo), "ran")) {
				t.Error("ran: ", sh(t, l.repo, "cat ../ran"))
			}
			sh(t, l.repo, "rm -rf .git/hooks ../hooks") // the user's own git would ask them
			l.sound()
		})
	}
}

// B26: a checkout that git itself never calls clean is refused by the path, as
// often as one likes, and nothing in it changes; when another branch is checked
// out, its state does not matter.
func TestB26LineEndings(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		attributes string
		dirty      bool
	}{"auto": {"* text=auto", false}, "text": {"* text", true}, "eol": {"* text=auto eol=crlf", false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, `printf 'one\r\ntwo\r\n' >crlf; git add crlf; git commit -qm crlf; printf '`+c.attributes+`\n' >.gitattributes; git add .gitattributes; git commit -qm rules; touch -d 2001-01-01 crlf; git update-index -q --refresh || true`)
			got := l.run("t", "echo two >>a; echo b >b; git add a b; git commit -qm t")
			const look = "git status --porcelain; cat -A crlf; git rev-parse main; git stash list"
			before := sh(t, l.repo, look)
			if dirty := strings.Contains(before, "M crlf"); dirty != c.dirty {
				t.Fatalf("the checkout shows %q", before)
			}
			if c.dirty {
				for range 2 {
					_, err := l.vault.Land(l.ctx(), l.landSpec("t", got.Head))
					if e := wantError(t, err, KindDirtyCheckout); !strings.Contains(e.Error(), "crlf") {
						t.Errorf("error does not name the file: %v", e)
					}
				}
				if after := sh(t, l.repo, look); after != before {
					t.Errorf("changed:\n%s\n%s", before, after)
				}
				sh(t, l.repo, "git symbolic-ref HEAD refs/heads/mine; git update-ref refs/heads/mine main")
			}
			out := l.land("t", got.Head)
			if (out.Checkout == "") != c.dirty || sh(t, l.repo, "git rev-parse main; cat -A crlf; git diff --stat main~1 main -- crlf; git merge-base --is-ancestor "+got.Head+" main") != out.Commit+"\none^M$\ntwo^M$" {
				t.Errorf("landed %+v: %s", out, sh(t, l.repo, "git status; cat -A crlf"))
			}
		})
	}
}

// B28: the user's rebase goes on to its end after landings were refused and
// aborted, and then the landing happens.
func TestB28RebaseGoesOn(t *testing.T) {
	t.Parallel()
	l := newLab(t, "git checkout -q -b other; echo other >a; git commit -qam other; git checkout -q main")
	got := l.run("t", "echo x >x")
	_, _ = trySh(l.repo, "echo main >a; git commit -qam main; git rebase other")
	spec := l.landSpec("t", got.Head)
	for range 2 {
		_, err := l.vault.Land(l.ctx(), spec)
		if e := wantError(t, err, KindBranchHeld); !strings.Contains(e.Message, "rebased") || e.Hint == "" {
			t.Errorf("%+v", e)
		}
		if err := l.vault.AbortLand(l.ctx(), spec); err != nil {
			t.Error(err)
		}
	}
	sh(t, l.repo, "echo both >a; git add a; GIT_EDITOR=true git rebase --continue; test ! -e .git/rebase-merge")
	if s := sh(t, l.repo, "git log --format=%s -2; git status --porcelain"); s != "main\nother" {
		t.Fatalf("the rebase became %q", s)
	}
	if out := l.land("t", got.Head); out.Checkout != l.repo || sh(t, l.repo, "cat a x") != "both\nx" {
		t.Errorf("landed %+v", out)
	}
	l.sound()
}

// conflicted is a landing that has paused, its workspace open.
func conflicted(t *testing.T) (*lab, LandSpec, string) {
	t.Helper()
	l := newLab(t, "")
	got := l.run("t", "echo theirs >a; git commit -qam theirs")
	sh(t, l.repo, "echo ours >a; git commit -qam ours")
	spec := l.landSpec("m", got.Head)
	out, err := l.vault.Land(l.ctx(), spec)
	if err != nil || len(out.Conflicts) != 1 {
		t.Fatalf("landed %+v, %v", out, err)
	}
	dir := l.ws("conflict")
	if _, err := l.vault.OpenConflict(l.ctx(), spec, out.Part, out.Onto, dir); err != nil {
		t.Fatal(err)
	}
	return l, spec, dir
}

// B28: a server that starts again knows a paused landing from git alone; the
// resolution may be left in the files or committed.
func TestB28ContinuedAfterRestart(t *testing.T) {
	t.Parallel()
	for name, resolve := range map[string]string{"in the files": "echo both >a", "committed": "echo both >a; git add a; git commit -qm mine"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, spec, dir := conflicted(t)
			l.vault.Close()
			l.git = newGit(t, l.calls)
			l.vault = l.open(l.repo)
			if out, err := l.vault.ContinueLand(l.ctx(), spec, dir); err != nil || len(out.Unresolved) != 1 {
				t.Fatalf("continued %+v, %v", out, err)
			}
			sh(t, dir, resolve)
			out, err := l.vault.ContinueLand(l.ctx(), spec, dir)
			if err != nil || out.Commit == "" || sh(t, l.repo, "cat a; git log -1 --format=%P") != "both\n"+out.Before+" "+spec.Parts[0].Commit {
				t.Fatalf("continued %+v, %v", out, err)
			}
			l.sound()
		})
	}
}

// B28: the user merges by hand in their own repository; continuing then is a
// no-op that says so, whatever lies in the conflict's workspace.
func TestB28MergedByHand(t *testing.T) {
	t.Parallel()
	l, spec, dir := conflicted(t)
	sh(t, l.repo, "git fetch -q "+l.vault.Dir()+" refs/heads/claudomator/t; git merge -q FETCH_HEAD || true; echo mine >a; git add a; git commit -qm mine")
	by := sh(t, l.repo, "git rev-parse main")
	for range 2 {
		out, err := l.vault.ContinueLand(l.ctx(), spec, dir)
		if err != nil || !out.Nothing || len(out.Unresolved) > 0 {
			t.Fatalf("continued %+v, %v", out, err)
		}
	}
	if at := sh(t, l.repo, "git rev-parse main; cat a"); at != by+"\nmine" {
		t.Errorf("main is %q", at)
	}
	l.sound()
}

// The target moves on while its conflict is resolved, again and again: the next conflict
// begins with what the last one was resolved to, however often it is delivered.
func TestConflictAfterAResolvedOne(t *testing.T) {
	t.Parallel()
	l, spec, dir := conflicted(t)
	var out Landed
	for _, round := range []string{"one", "two", "three"} {
		sh(t, dir, "printf 'mine\n"+round+"\n' >a")
		sh(t, l.repo, "echo "+round+" >>b; echo other "+round+" >a; git add -A; git commit -qm "+round)
		for range 2 {
			var err error
			if out, err = l.vault.ContinueLand(l.ctx(), spec, dir); err != nil || len(out.Conflicts) != 1 || out.Onto != l.head("main") {
				t.Fatalf("%s: continued %+v, %v", round, out, err)
			}
		}
		if _, err := l.vault.OpenConflict(l.ctx(), spec, out.Part, out.Onto, dir); err != nil {
			t.Fatal(err)
		}
		if a := sh(t, dir, "grep -v '>>>' a | grep -v '<<<'"); a != "other "+round+"\n=======\nmine\n"+round {
			t.Fatalf("%s: to be resolved is %q", round, a)
		}
		if again, err := l.vault.ContinueLand(l.ctx(), spec, dir); err != nil || len(again.Unresolved) != 1 {
			t.Fatalf("%s: continued %+v, %v", round, again, err)
		}
	}
	sh(t, dir, "echo all >a")
	done, err := l.vault.ContinueLand(l.ctx(), spec, dir)
	if err != nil || done.Commit == "" || sh(t, l.repo, "cat a b; git log -1 --format=%P") != "all\none\ntwo\nthree\n"+out.Onto+" "+spec.Parts[0].Commit {
		t.Fatalf("continued %+v, %v", done, err)
	}
	l.sound()
}

// A second conflict too is over when somebody has merged the part by hand.
func TestB28MergedByHandAfterAResolvedOne(t *testing.T) {
	t.Parallel()
	l, spec, dir := conflicted(t)
	sh(t, dir, "echo both >a")
	sh(t, l.repo, "echo again >a; git commit -qam again")
	out, err := l.vault.ContinueLand(l.ctx(), spec, dir)
	if err != nil || len(out.Conflicts) != 1 {
		t.Fatalf("continued %+v, %v", out, err)
	}
	if _, err := l.vault.OpenConflict(l.ctx(), spec, out.Part, out.Onto, dir); err != nil {
		t.Fatal(err)
	}
	sh(t, l.repo, "git fetch -q "+l.vault.Dir()+" refs/heads/claudomator/t; git merge -q FETCH_HEAD || true; echo mine >a; git add a; git commit -qm mine")
	if out, err := l.vault.ContinueLand(l.ctx(), spec, dir); err != nil || !out.Nothing {
		t.Fatalf("continued %+v, %v", out, err)
	}
	l.sound()
}

// Whoever deletes the workspace of a conflict gets it back, and not the answer that it is
// unresolved.
func TestConflictWhoseWorkspaceIsGone(t *testing.T) {
	t.Parallel()
	l, spec, dir := conflicted(t)
	sh(t, l.dir, "rm -r "+dir)
	out, err := l.vault.ContinueLand(l.ctx(), spec, dir)
	if err != nil || len(out.Conflicts) != 1 || len(out.Unresolved) > 0 {
		t.Fatalf("continued %+v, %v", out, err)
	}
	if _, err := l.vault.OpenConflict(l.ctx(), spec, out.Part, out.Onto, dir); err != nil {
		t.Fatal(err)
	}
	sh(t, dir, "grep '<<<' a; echo both >a")
	if out, err := l.vault.ContinueLand(l.ctx(), spec, dir); err != nil || out.Commit == "" {
		t.Fatalf("continued %+v, %v", out, err)
	}
	l.sound()
}

// So does one that a kill has left half made: what was resolved before is taken already.
func TestConflictWhoseWorkspaceIsHalfMade(t *testing.T) {
	t.Parallel()
	l, spec, dir := conflicted(t)
	sh(t, dir, "echo both >a")
	sh(t, l.repo, "echo again >a; git commit -qam again")
	for _, kill := range []bool{true, false} {
		out, err := l.vault.ContinueLand(l.ctx(), spec, dir)
		if err != nil || len(out.Conflicts) != 1 {
			t.Fatalf("continued %+v, %v", out, err)
		}
		if _, err := l.vault.OpenConflict(l.ctx(), spec, out.Part, out.Onto, dir); err != nil {
			t.Fatal(err)
		}
		if a := sh(t, dir, "grep -v '>>>' a | grep -v '<<<'"); a != "again\n=======\nboth" {
			t.Fatalf("to be resolved is %q", a)
		}
		w, err := l.vault.lookup(dir)
		if err != nil {
			t.Fatal(err)
		}
		if w.Ready = !kill; kill {
			sh(t, dir, "rm a .git/index")
		}
		if err := w.save(); err != nil {
			t.Fatal(err)
		}
	}
	sh(t, dir, "echo all >a")
	if out, err := l.vault.ContinueLand(l.ctx(), spec, dir); err != nil || out.Commit == "" || sh(t, l.repo, "cat a") != "all" {
		t.Fatalf("continued %+v, %v", out, err)
	}
	l.sound()
}

// B28: two people press continue and abort at once. One of them happens; the
// other is refused by name, or finds nothing to do.
func TestB28ContinueAndAbortAtOnce(t *testing.T) {
	t.Parallel()
	for range 4 {
		l, spec, dir := conflicted(t)
		before := sh(t, l.repo, "git rev-parse main")
		sh(t, dir, "echo both >a")
		var out Landed
		var landErr, abortErr error
		var wg sync.WaitGroup
		wg.Go(func() { out, landErr = l.vault.ContinueLand(l.ctx(), spec, dir) })
		wg.Go(func() { abortErr = l.vault.AbortLand(l.ctx(), spec) })
		wg.Wait()
		for _, err := range []error{landErr, abortErr} {
			if k := KindOf(err); err != nil && k != KindMergeRunning && k != KindAlreadyLanded {
				t.Errorf("%v", err)
			}
		}
		switch at := sh(t, l.repo, "git rev-parse main"); {
		case out.Commit != "" && (at != out.Commit || sh(t, l.repo, "cat a") != "both"):
			t.Errorf("landed %+v, main is at %s", out, at)
		case out.Commit == "" && at != before:
			t.Errorf("not landed (%+v, %v), and main moved to %s", out, landErr, at)
		}
		l.sound()
	}
}

// B29: what gets onto the target is the accepted commits and their merge, on top
// of whatever is there by then: nothing that came later on the task's branch, and
// nothing that only the remote has.
func TestB29ExactlyWhatWasAccepted(t *testing.T) {
	t.Parallel()
	l := newLab(t, withOrigin+"git clone -q ../o.git ../C; cd ../C; "+userConfig+" echo foreign >foreign; git add .; git commit -qm foreign; git push -q; cd ../R; git fetch -q")
	accepted := l.run("t", "echo x >x; git add x; git commit -qm one; echo y >y; git add y; git commit -qm two")
	later := l.run("t", "echo z >z; git add z; git commit -qm unread")
	old := sh(t, l.repo, "echo between >between; git add between; git commit -qm between; git rev-parse main")
	out := l.land("t", accepted.Head)
	if out.Before != old || out.Commit != sh(t, l.repo, "git rev-parse main") {
		t.Errorf("landed %+v onto %s", out, old)
	}
	came := sh(t, l.repo, "git rev-list --topo-order main ^"+old)
	if want := out.Commit + "\n" + sh(t, l.vault.Dir(), "git rev-list --topo-order "+accepted.Head+" ^"+accepted.Base); came != want {
		t.Errorf("came %q, want %q", came, want)
	}
	if s := sh(t, l.repo, "ls"); s != "a\nbetween\nx\ny" {
		t.Errorf("main holds %q", s)
	}
	if in, err := l.vault.Contains(l.ctx(), later.Head, out.Commit); err != nil || in {
		t.Errorf("what nobody read is on main, %v", err)
	}
	// The remote is ahead: it is neither folded in nor overwritten.
	_, err := l.vault.Push(l.ctx(), PushSpec{Branch: "main", Commit: out.Commit})
	wantKind(t, err, KindNotFastForward)
	if s := sh(t, l.origin(), "git log -1 --format=%s main"); s != "foreign" {
		t.Errorf("the remote is at %q", s)
	}
	sh(t, l.repo, "git pull -q --no-rebase --no-edit origin main")
	l.push(PushSpec{Branch: "main", Commit: l.head("main")})
	l.sound()
}

// B31: two landings that touch the same lines, at once: one is on the target, the
// other is refused by name and then meets its conflict; no commit is made twice.
func TestB31OverlappingLandings(t *testing.T) {
	t.Parallel()
	l := newLab(t, "")
	heads := []string{l.run("t1", "echo 1 >a; git commit -qam 1").Head, l.run("t2", "echo 2 >a; git commit -qam 2").Head}
	names := []string{"t1", "t2"}
	outs, errs := make([]Landed, 2), make([]error, 2)
	var wg sync.WaitGroup
	for i := range heads {
		wg.Go(func() { outs[i], errs[i] = l.vault.Land(l.ctx(), l.landSpec(names[i], heads[i])) })
	}
	wg.Wait()
	landed, paused := 0, 0
	for i := range heads {
		if errs[i] != nil {
			wantKind(t, errs[i], KindMergeRunning)
			if outs[i], errs[i] = l.vault.Land(l.ctx(), l.landSpec(names[i], heads[i])); errs[i] != nil {
				t.Fatal(errs[i])
			}
		}
		switch out := outs[i]; {
		case len(out.Conflicts) == 1 && out.Commit == "":
			paused++
		case out.Commit != "":
			landed++
			again := l.land(names[i], heads[i])
			if !again.Already || again.Commit != out.Commit {
				t.Errorf("a second answer: %+v", again)
			}
		}
	}
	if n := sh(t, l.repo, "git rev-list --count --merges main"); landed != 1 || paused != 1 || n != "1" {
		t.Errorf("%d landed, %d paused, %s merges", landed, paused, n)
	}
	l.sound()
}

// B31: landings on different targets do not wait for each other.
func TestB31TargetsApart(t *testing.T) {
	t.Parallel()
	l := newLab(t, "git branch release")
	one, two := l.run("t1", "echo x >x"), l.run("t2", "echo y >y")
	specs := []LandSpec{l.landSpec("t1", one.Head), l.landSpec("t2", two.Head)}
	specs[1].Target = "release"
	inside := make(chan struct{})
	var once sync.Once
	l.git.opts.Trace = func(args []string) {
		if strings.HasPrefix(strings.Join(args, " "), "update-ref --no-deref -m") { // the first waits for the second
			first := false
			once.Do(func() { first = true })
			if !first {
				close(inside)
				return
			}
			ctx, cancel := context.WithTimeout(l.ctx(), patient)
			defer cancel()
			select {
			case <-inside:
			case <-ctx.Done():
				t.Error("the second landing did not get there")
			}
		}
	}
	errs := make([]error, 2)
	var wg sync.WaitGroup
	for i := range specs {
		wg.Go(func() { _, errs[i] = l.vault.Land(l.ctx(), specs[i]) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
	if s := sh(t, l.repo, "git ls-tree --name-only main; git ls-tree --name-only release"); s != "a\nx\na\ny" {
		t.Errorf("got %q", s)
	}
}

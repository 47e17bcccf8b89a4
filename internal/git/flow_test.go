package git

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestOneTaskFromWorkspaceToMain(t *testing.T) {
	t.Parallel()
	l := newLab(t, "")
	base := l.head("main")
	before := sh(t, l.repo, "find .git -type f | sort | xargs sha1sum")
	got := l.run("t1", "echo x >x; git add x; git commit -qm x")
	if got.Head == base || got.Base != base || got.Commits != 1 || got.Files != 1 || got.Insertions != 1 || got.NoChanges || got.Own != "" || len(got.Warnings) > 0 {
		t.Fatalf("collected %+v", got)
	}
	if after := sh(t, l.repo, "find .git -type f | sort | xargs sha1sum"); after != before {
		t.Fatalf("the user's repository was written before landing:\n%s\n%s", before, after)
	}
	out := l.land("t1", got.Head)
	if out.Checkout != l.repo || out.Before != base || out.Merges[0] != out.Commit {
		t.Fatalf("landed %+v", out)
	}
	if now := sh(t, l.repo, "git rev-parse main"); now != out.Commit {
		t.Fatalf("main is at %s, not at %s", now, out.Commit)
	}
	if x := sh(t, l.repo, "cat x; git log -1 --format=%B; git branch --show-current"); x != "x\nLand t1\n\nClaudomator-Task: t1\n\nmain" {
		t.Fatalf("got %q", x)
	}
	again := l.land("t1", got.Head)
	if !again.Already || again.Commit != out.Commit || again.Merges[0] != out.Commit {
		t.Fatalf("second landing %+v", again)
	}
	other := l.land("t1-again", got.Head)
	if !other.Nothing || other.Commit != out.Commit {
		t.Fatalf("landing what is there: %+v", other)
	}
	if n := sh(t, l.repo, "git rev-list --count --merges main"); n != "1" {
		t.Fatalf("%s merges on main", n)
	}
	l.sound()
}

func TestTrivialTaskStartsFewProcesses(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"committed": "echo x >x; git add x; git commit -qm x",
		"dirty":     "echo x >x",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, "")
			base := l.head("main")
			if err := l.vault.SetRef(l.ctx(), "refs/heads/claudomator/parent", base, ""); err != nil {
				t.Fatal(err)
			}
			other := l.run("other", "echo y >y; git add y; git commit -qm y")
			if _, err := l.vault.Integrate(l.ctx(), IntegrateSpec{Ref: "refs/heads/claudomator/parent", Commit: other.Head, Message: "m"}); err != nil {
				t.Fatal(err)
			}
			l.calls.take()
			got := l.run("t1", script)
			in, err := l.vault.Integrate(l.ctx(), IntegrateSpec{Ref: "refs/heads/claudomator/parent", Commit: got.Head, Message: "m"})
			if err != nil || len(in.Conflicts) > 0 || in.Already {
				t.Fatalf("integrated %+v, %v", in, err)
			}
			if calls := l.calls.take(); len(calls) > 5 || len(calls) == 0 {
				t.Errorf("%d processes:\n%s", len(calls), strings.Join(calls, "\n"))
			}
			if f := l.files(in.Commit); f != "a\nx\ny" {
				t.Errorf("files %q", f)
			}
		})
	}
}

// B14: all kinds of work survive; no work is its own outcome.
func TestB14KindsOfWork(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, script, files string
		commits             int
		none                bool
	}{
		{"commit only", "echo b >b; git add b; git commit -qm b", "a\nb\ngone\nrun", 1, false},
		{"dirt only", "echo two >>a; echo n >new; rm gone; chmod +x run; ln -s a link", "a\nlink\nnew\nrun", 1, false},
		{"commit and dirt", "echo b >b; git add b; git commit -qm b; echo c >c; rm gone", "a\nb\nc\nrun", 2, false},
		{"nothing", "true", "a\ngone\nrun", 0, true},
		{"staged only", "echo s >s; git add s", "a\ngone\nrun\ns", 1, false},
		{"touched", "touch a; cp a b; mv b a", "a\ngone\nrun", 0, true},
		{"empty commit", "git commit -q --allow-empty -m nothing", "a\ngone\nrun", 1, true},
		{"folder for file", "rm a; mkdir a; echo x >a/x", "a/x\ngone\nrun", 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, "echo g >gone; echo r >run; git add .; git commit -qm more")
			got := l.run("t", c.script)
			if f := l.files(got.Head); f != c.files {
				t.Errorf("files %q, want %q", f, c.files)
			}
			if got.Commits != c.commits || got.NoChanges != c.none {
				t.Errorf("collected %+v", got)
			}
			if c.name == "dirt only" {
				modes := sh(t, l.vault.Dir(), "git ls-tree "+got.Head+" run link | cut -c1-6")
				if modes != "120000\n100755" {
					t.Errorf("modes %q", modes)
				}
				if m := sh(t, l.vault.Dir(), "git log -1 --format='%an %cn|%(trailers:key=Claudomator-Task,valueonly)' "+got.Head); m != "Claudomator Claudomator|t" {
					t.Errorf("commit by %q", m)
				}
			}
			again := l.collect("t")
			if again.Head != got.Head {
				t.Errorf("collecting twice moved %s to %s", got.Head, again.Head)
			}
		})
	}
}

func TestB14IgnoredFilesAreNoWork(t *testing.T) {
	t.Parallel()
	l := newLab(t, "printf '*.log\\nbuild/\\n!keep.log\\n' >.gitignore; git add .; git commit -qm i")
	got := l.run("t", "echo l >x.log; mkdir -p build/deep; echo b >build/deep/b; mkdir sub; echo 'q' >sub/.gitignore; echo q >sub/q")
	if f := l.files(got.Head); f != ".gitignore\na\nsub/.gitignore" {
		t.Fatalf("files %q", f)
	}
	l2 := newLab(t, "echo '*.log' >.gitignore; git add .; git commit -qm i")
	if got := l2.run("t", "echo l >x.log"); !got.NoChanges || len(got.HeldBack) > 0 {
		t.Fatalf("collected %+v", got)
	}
	// What was tracked and is ignored now must not come back.
	l3 := newLab(t, "echo s >s.log; git add .; git commit -qm i")
	got = l3.run("t", "git rm -q --cached s.log; echo '*.log' >.gitignore; git add .gitignore; git commit -qm ig")
	if f := l3.files(got.Head); f != ".gitignore\na" {
		t.Fatalf("files %q", f)
	}
}

func TestEditsWithinOneClockTickAreSeen(t *testing.T) {
	t.Parallel()
	l := newLab(t, "")
	for i := range 20 {
		task := fmt.Sprintf("t%d", i)
		l.prepare(task)
		// Same size, same inode, as soon as possible, old times put back.
		info, err := os.Stat(l.ws(task) + "/a")
		if err != nil {
			t.Fatal(err)
		}
		write(t, l.ws(task)+"/a", "eno\n")
		if err := os.Chtimes(l.ws(task)+"/a", info.ModTime(), info.ModTime()); err != nil {
			t.Fatal(err)
		}
		if got := l.collect(task); l.show(got.Head, "a") != "eno" {
			t.Fatal("an edit was taken for none")
		}
	}
}

func TestSecondRunStartsAtTheBranch(t *testing.T) {
	t.Parallel()
	l := newLab(t, "")
	first := l.run("t", "echo x >x; git add x; git commit -qm x; echo junk >junk")
	p := l.prepare("t")
	if p.Created || p.Head != first.Head || p.Snapshot != "" {
		t.Fatalf("prepared %+v", p)
	}
	if s := sh(t, l.ws("t"), "git status --porcelain; git log --format=%s -2; git branch --show-current"); s != "Keep t\nx\nclaudomator/t" {
		t.Fatalf("workspace shows %q", s)
	}
	second := l.run("t", "echo y >y; git add y; git commit -qm y")
	if f := l.files(second.Head); f != "a\njunk\nx\ny" {
		t.Fatalf("files %q", f)
	}
	if second.Base != first.Head || second.Commits != 1 {
		t.Fatalf("collected %+v", second)
	}
}

// What a lost run left uncollected is snapshotted before the next one.
func TestPrepareSnapshotsWhatWouldBeLost(t *testing.T) {
	t.Parallel()
	l := newLab(t, "")
	l.prepare("t")
	sh(t, l.ws("t"), "echo c >c; git add c; git commit -qm c; echo edit >a; echo new >new")
	p := l.prepare("t")
	if p.Snapshot == "" {
		t.Fatal("no snapshot")
	}
	if a := l.show(p.Snapshot, "a"); a != "edit" {
		t.Fatalf("snapshot holds %q", a)
	}
	if a := sh(t, l.ws("t"), "cat a"); a != "one" {
		t.Fatalf("the workspace was not reset: %q", a)
	}
	kept, err := l.vault.Refs(l.ctx(), "refs/claudomator/kept/t/")
	if err != nil || len(kept) != 1 {
		t.Fatalf("kept %v, %v", kept, err)
	}
	dir := t.TempDir() + "/restored"
	if err := l.vault.Restore(l.ctx(), p.Snapshot, dir); err != nil {
		t.Fatal(err)
	}
	if s := sh(t, dir, "cat a c new"); s != "edit\nc\nnew" {
		t.Fatalf("restored %q", s)
	}
}

// A clean workspace holds what is tracked, and what is ignored; the rest is in the
// snapshot.
func TestPrepareClean(t *testing.T) {
	t.Parallel()
	l := newLab(t, "echo built >.gitignore; git add .gitignore; git commit -qm ignore")
	l.prepare("t")
	sh(t, l.ws("t"), "echo edit >a; echo new >new; mkdir d built; echo new >d/new; echo o >built/o; ln -s /etc/passwd link")
	p, err := l.vault.Prepare(l.ctx(), Workspace{Dir: l.ws("t"), Branch: "claudomator/t", Base: l.head("main"), Clean: true})
	if err != nil {
		t.Fatal(err)
	}
	if files := sh(t, l.ws("t"), "find . -path ./.git -prune -o -type f -print -o -type l -print | sort; cat a; git status --porcelain"); files != "./.gitignore\n./a\n./built/o\none" {
		t.Errorf("in the workspace: %q", files)
	}
	dir := t.TempDir() + "/restored"
	if err := l.vault.Restore(l.ctx(), p.Snapshot, dir); err != nil {
		t.Fatal(err)
	}
	if s := sh(t, dir, "cat a new d/new; readlink link"); s != "edit\nnew\nnew\n/etc/passwd" {
		t.Errorf("restored %q", s)
	}
}

// B06: 20 at once on one vault, with a foreign lock on the user's config.
func TestB06ParallelStarts(t *testing.T) {
	t.Parallel()
	l := newLab(t, "touch .git/config.lock .git/index.lock")
	if err := l.vault.SetRef(l.ctx(), "refs/heads/claudomator/parent", l.head("main"), ""); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	errs := make([]error, 20)
	for i := range errs {
		wg.Go(func() {
			task := fmt.Sprintf("t%d", i)
			base, err := l.vault.BranchHead(l.ctx(), "main")
			if err == nil {
				_, err = l.vault.Prepare(l.ctx(), Workspace{Dir: l.ws(task), Branch: "claudomator/" + task, Base: base})
			}
			if err == nil {
				_, err = trySh(l.ws(task), fmt.Sprintf("echo %d >f%d; git add .; git commit -qm %d", i, i, i))
			}
			var got Collected
			if err == nil {
				got, err = l.tryCollect(task)
			}
			if err == nil && got.Commits != 1 {
				err = fmt.Errorf("collected %+v", got)
			}
			if err == nil {
				_, err = l.vault.Integrate(l.ctx(), IntegrateSpec{Ref: "refs/heads/claudomator/parent", Commit: got.Head, Message: "m"})
			}
			errs[i] = err
		})
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			t.Errorf("task %d: %v", i, err)
		}
	}
	sh(t, l.repo, "rm .git/config.lock .git/index.lock")
	l.sound()
}

func TestB06StaleLocksDoNotBlock(t *testing.T) {
	t.Parallel()
	l := newLab(t, "")
	got := l.run("t", "echo x >x; touch .git/index.lock .git/HEAD.lock")
	if !warned(got.Warnings, WarnStaleLock) || l.files(got.Head) != "a\nx" {
		t.Fatalf("collected %+v", got)
	}
	l.prepare("t")
	sh(t, l.ws("t"), "echo y >y; git add y; git commit -qm y")
}

// A former .git that a kill kept from being deleted goes before its workspace does:
// nobody would look for it any more.
func TestFormerGitGoesBeforeItsWorkspace(t *testing.T) {
	t.Parallel()
	l := newLab(t, "")
	l.prepare("t")
	left := filepath.Join(l.dir, ".t.old-git")
	write(t, filepath.Join(left, "objects", "x"), "x")
	bin := filepath.Join(filepath.Dir(l.dir), "bin")
	write(t, bin, "in the way")
	if _, err := l.vault.Discard(l.ctx(), l.ws("t"), bin); err == nil {
		t.Fatal("went to a bin that is a file")
	}
	if exists(left) || !exists(l.ws("t")) {
		t.Fatal("the former .git is there still, or the workspace is not")
	}
}

// TestHalfMadeAtAnotherCommit: a workspace that a crash left half made, without an index,
// loses what its branch has lost meanwhile, and what was written in part is whole.
func TestHalfMadeAtAnotherCommit(t *testing.T) {
	t.Parallel()
	l := newLab(t, "echo old >old; echo kept >kept; git add .; git commit -qm more")
	l.prepare("t")
	next := l.run("u", "git rm -q old; echo new >new; git add new; git commit -qm next")
	w, err := l.vault.lookup(l.ws("t"))
	if err != nil {
		t.Fatal(err)
	}
	w.Ready = false
	if err := w.save(); err != nil {
		t.Fatal(err)
	}
	sh(t, l.ws("t"), ": >kept; rm a")
	if err := os.Remove(w.index()); err != nil {
		t.Fatal(err)
	}
	if err := l.vault.SetRef(l.ctx(), "refs/heads/claudomator/t", next.Head, l.head("main")); err != nil {
		t.Fatal(err)
	}
	p := l.prepare("t")
	if got := sh(t, l.ws("t"), "ls; cat kept; git status --porcelain"); p.Head != next.Head || got != "a\nkept\nnew\nkept" {
		t.Errorf("prepared %+v with %q", p, got)
	}
	l.sound()
}

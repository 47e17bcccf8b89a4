package git

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestB01UnbornRepository(t *testing.T) {
	t.Parallel()
	l := newLab(t, "")
	e := filepath.Join(filepath.Dir(l.repo), "E")
	sh(t, filepath.Dir(l.repo), "git init -q -b main E; cd E; "+userConfig)
	_, err := l.git.Inspect(l.ctx(), e, "")
	if wantError(t, err, KindNoCommits).Hint == "" {
		t.Error("no hint")
	}
	v, err := l.git.OpenVault(l.ctx(), filepath.Join(l.dir, "e.git"), e)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	_, err = v.BranchHead(l.ctx(), "main")
	wantKind(t, err, KindNoCommits)
	sh(t, e, "echo x >x; git add x; git commit -qm x")
	if _, err := v.BranchHead(l.ctx(), "main"); err != nil {
		t.Fatal(err)
	}
	if info, err := l.git.Inspect(l.ctx(), e, ""); err != nil || info.Branch != "main" {
		t.Fatalf("inspected %+v, %v", info, err)
	}
}

func TestB04PathsInTheWay(t *testing.T) {
	t.Parallel()
	l := newLab(t, "")
	base := l.head("main")
	ws := Workspace{Dir: l.ws("t"), Branch: "claudomator/t", Base: base}
	write(t, l.ws("t")+"/foreign", "mine")
	_, err := l.vault.Prepare(l.ctx(), ws)
	wantKind(t, err, KindPathOccupied)
	if s := sh(t, l.ws("t"), "ls -A; cat foreign"); s != "foreign\nmine" {
		t.Fatalf("foreign files changed: %q", s)
	}
	sh(t, l.ws("t"), "rm foreign") // an empty folder is fine
	got := l.run("t", "echo x >x")
	sh(t, l.dir, "rm -rf t") // gone: made again at the branch
	if p := l.prepare("t"); !p.Created || p.Head != got.Head || sh(t, l.ws("t"), "cat x") != "x" {
		t.Fatalf("prepared %+v", p)
	}
	// Half made by a crash: finished, also with junk in it.
	w, err := l.vault.lookup(l.ws("t"))
	if err != nil {
		t.Fatal(err)
	}
	w.Ready = false
	if err := w.save(); err != nil {
		t.Fatal(err)
	}
	sh(t, l.ws("t"), "rm -r .git/refs a; : >x; touch .git/index.lock")
	_ = os.Remove(w.index())
	sh(t, l.dir, "touch '"+w.index()+".lock'")
	if p := l.prepare("t"); p.Head != got.Head || sh(t, l.ws("t"), "git status --porcelain; cat a x") != "one\nx" {
		t.Fatalf("prepared %+v", p)
	}
	// The same branch name checked out by the user does not matter.
	sh(t, l.repo, "git checkout -q -b claudomator/u")
	l.prepare("u")
	l.sound()
}

// B07: a source with hooks and required filters costs nothing and fails nothing.
func TestB07FiltersAndHooks(t *testing.T) {
	t.Parallel()
	l := newLab(t, `printf '#!/bin/sh\nsleep 600\n' >.git/hooks/post-checkout; chmod +x .git/hooks/post-checkout
		echo '*.bin filter=lfs' >.gitattributes; echo pointer >f.bin; git add .; git commit -qm lfs
		git config filter.lfs.smudge 'sleep 600; false'; git config filter.lfs.clean 'sleep 600; false'; git config filter.lfs.required true`)
	got := l.run("t", "cat f.bin; echo changed >f.bin; echo x >x")
	if l.show(got.Head, "f.bin") != "changed" {
		t.Fatalf("collected %+v", got)
	}
	l.land("t", got.Head)
	if s := sh(t, l.repo, "cat f.bin"); s != "changed" {
		t.Fatalf("checkout holds %q", s)
	}
}

func TestLineEndingRulesAreApplied(t *testing.T) {
	t.Parallel()
	l := newLab(t, `printf '* text=auto\n*.crlf text eol=crlf\n' >.gitattributes; printf 'x\n' >f.crlf; git add .; git commit -qm eol`)
	got := l.run("t", `printf 'y\r\n' >f.crlf; printf 'z\r\n' >new.txt; touch a; printf 'q\r\n' >"$(printf 'n\nl"')"`)
	sh(t, l.vault.Dir(), "! git cat-file -p "+got.Head+":f.crlf | grep -q '\r'; ! git cat-file -p "+got.Head+":new.txt | grep -q '\r'")
	if got.Files != 3 {
		t.Fatalf("collected %+v", got)
	}
	if again := l.run("t2", "cp f.crlf k; mv k f.crlf"); !again.NoChanges {
		t.Fatalf("a file as it was checked out counts as changed: %+v", again)
	}
}

func TestB09SubmodulesSparseShallow(t *testing.T) {
	t.Parallel()
	l := newLab(t, `git init -q -b main ../lib; cd ../lib; `+userConfig+` echo l >l; git add l; git commit -qm l; cd ../R
		git -c protocol.file.allow=always submodule --quiet add ../lib lib; git commit -qm lib; mkdir d1 d2; echo f >d1/f; echo g >d2/g; git add .; git commit -qm d`)
	lib := filepath.Join(filepath.Dir(l.repo), "lib")
	got := l.run("t", "git config user.name n; git -c protocol.file.allow=always clone -q "+lib+" lib; "+
		"echo x >x; cd lib; git config user.email l@l; git config user.name l; echo y >y; git add y; git commit -qm y; git config core.fsmonitor false; cd ..; git add -A; git commit -qm b; echo dirty >lib/z")
	if !warned(got.Warnings, WarnSubmodule) || got.Own != "" {
		t.Fatalf("collected %+v", got)
	}
	d, err := l.vault.Discard(l.ctx(), l.ws("t"), filepath.Join(filepath.Dir(l.dir), "bin"))
	if err != nil || !exists(d.Binned) {
		t.Fatalf("discarded %+v, %v", d, err)
	}
	// A sparse checkout of the user: nothing is recorded as deleted, nothing appears.
	sh(t, l.repo, "git sparse-checkout set d1")
	got = l.run("s", "echo more >>d1/f; echo more >>d2/g")
	if got.Files != 2 || got.Deletions != 0 {
		t.Fatalf("collected %+v", got)
	}
	l.land("s", got.Head)
	if s := sh(t, l.repo, "git status --porcelain; cat d1/f; ls d2 2>/dev/null || true"); !strings.HasPrefix(s, "f\nmore") {
		t.Fatalf("sparse checkout shows %q", s)
	}
}

func TestB09Shallow(t *testing.T) {
	t.Parallel()
	l := newLab(t, "for i in 1 2 3; do echo $i >>a; git commit -qam $i; done; git clone -q --depth 1 file://$PWD ../S; cd ../S; "+userConfig)
	shallow := filepath.Join(filepath.Dir(l.repo), "S")
	v, err := l.git.OpenVault(l.ctx(), filepath.Join(l.dir, "s.git"), shallow)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Close)
	full := l.vault
	old := sh(t, l.repo, "git rev-parse main~2")
	l.head("main")
	l.vault, l.repo = v, shallow
	got := l.run("t", "git log --oneline | wc -l; echo x >x; git add x; git commit -qm x")
	if got.Commits != 1 {
		t.Fatalf("collected %+v", got)
	}
	l.land("t", got.Head)
	sh(t, shallow, "git fsck; cat x")
	// A side that left before the cut has no merge base here.
	data := sh(t, full.Dir(), "git cat-file -p "+old+"^{tree} >/dev/null; git rev-list --max-parents=0 main 2>/dev/null || true")
	_ = data
	if err := l.git.transfer(l.ctx(), transfer{from: full.env(), to: v.env(), want: []string{old}}); err != nil {
		t.Fatal(err)
	}
	_, err = v.Merge(l.ctx(), []string{got.Head, old}, "m")
	wantKind(t, err, KindShallowNoMergeBase)
}

func TestB12StashesStayPrivate(t *testing.T) {
	t.Parallel()
	l := newLab(t, "echo user >>a; git stash -q")
	stash := sh(t, l.repo, "git rev-parse stash@{0}")
	l.prepare("t1")
	l.prepare("t2")
	sh(t, l.ws("t1"), "echo one >>a; git stash -q")
	sh(t, l.ws("t2"), "test -z \"$(git stash list)\"; echo two >>a; git stash -q; git stash pop -q")
	one, two := l.collect("t1"), l.collect("t2")
	if !one.NoChanges || !warned(one.Warnings, WarnExtraCommits) {
		t.Errorf("collected %+v", one)
	}
	if l.show(two.Head, "a") != "one\ntwo" {
		t.Errorf("a holds %q", l.show(two.Head, "a"))
	}
	kept, err := l.vault.Refs(l.ctx(), KeptPrefix+"t1/")
	if err != nil || len(kept) == 0 {
		t.Fatalf("kept %v, %v", kept, err)
	}
	found := false
	for ref := range kept {
		found = found || l.show(ref, "a") == "one\none"
	}
	if !found || sh(t, l.repo, "git rev-parse stash@{0}; git stash list | wc -l") != stash+"\n1" {
		t.Error("a stash was lost")
	}
}

func TestB16HalfFinishedOperations(t *testing.T) {
	t.Parallel()
	l := newLab(t, "")
	got := l.run("t", "git branch side; echo x >a; git commit -qam x; git checkout -q side; echo y >a; git commit -qam y; git rebase claudomator/t 2>/dev/null || true")
	if !warned(got.Warnings, WarnOperation) || !warned(got.Warnings, WarnHeadMoved) {
		t.Fatalf("collected %+v", got)
	}
	p := l.prepare("t")
	if s := sh(t, l.ws("t"), "git status"); strings.Contains(s, "rebase") || !strings.Contains(s, "clean") {
		t.Fatalf("prepared %+v, status %s", p, s)
	}
}

// HEAD elsewhere: the commits are found, kept and reported.
func TestHeadElsewhere(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script, files string
		warning       string
	}{
		"detached":    {"git checkout -q --detach; echo x >x; git add x; git commit -qm x", "a\nx", WarnHeadMoved},
		"renamed":     {"echo x >x; git add x; git commit -qm x; git branch -m other", "a\nx", WarnHeadMoved},
		"switched":    {"git checkout -q -b side; echo x >x; git add x; git commit -qm x", "a\nx", WarnHeadMoved},
		"left behind": {"echo x >x; git add x; git commit -qm x; git checkout -q HEAD~1; git checkout -q HEAD~0", "a\nx", WarnHeadMoved},
		"parted":      {"echo y >y; git add y; git commit -qm y; git checkout -q -b side HEAD~1; echo x >x; git add x; git commit -qm x", "a\nx", WarnExtraCommits},
		"reset":       {"echo y >y; git add y; git commit -qm y; git reset -q --hard HEAD~1; echo x >x; git add x; git commit -qm x", "a\nx", WarnExtraCommits},
		"amended":     {"echo y >x; git add x; git commit -qm y; echo z >x; git commit -qa --amend -m x", "a\nx", WarnExtraCommits},
		"orphan":      {"echo x >x; git add x; git commit -qm x; git checkout -q --orphan new", "a\nx", WarnHeadMoved},
		"packed":      {"echo x >x; git add x; git commit -qm x; git pack-refs --all; git checkout -q -b q; git pack-refs --all", "a\nx", WarnHeadMoved},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, "")
			script := c.script
			if name == "left behind" {
				script += "; echo x >x" // the files of the branch, so that leaving is no deletion
			}
			got := l.run("t", script)
			if f := l.files(got.Head); f != c.files || !warned(got.Warnings, c.warning) {
				t.Errorf("files %q, %+v", f, got)
			}
		})
	}
}

func TestB17WorkspaceRemoved(t *testing.T) {
	t.Parallel()
	l := newLab(t, "")
	first := l.run("t", "echo x >x")
	got := l.run("t", "echo y >y; git add y; git commit -qm y; cd ..; rm -rf \"$OLDPWD\"")
	if !got.Missing || got.Head != first.Head || !warned(got.Warnings, WarnWorkspaceGone) {
		t.Fatalf("collected %+v", got)
	}
	if p := l.prepare("t"); !p.Created || p.Head != first.Head || sh(t, l.ws("t"), "cat x") != "x" {
		t.Fatalf("prepared %+v", p)
	}
	got = l.run("t", "echo z >z; rm -rf .git")
	if l.files(got.Head) != "a\nx\nz" || !warned(got.Warnings, WarnGitDirGone) {
		t.Fatalf("collected %+v", got)
	}
	sh(t, l.dir, "rm -rf t; mkdir t; echo foreign >t/f")
	_, err := l.tryCollect("t")
	wantKind(t, err, KindUnsafeWorkspace)
	sh(t, l.dir, "rm -rf t")
	d, err := l.vault.Discard(l.ctx(), l.ws("t"), filepath.Join(filepath.Dir(l.dir), "bin"))
	if err != nil || !d.Gone {
		t.Fatalf("discarded %+v, %v", d, err)
	}
	l.sound()
}

func TestB19AgentCannotReachTheSource(t *testing.T) {
	t.Parallel()
	l := newLab(t, "git clone -q --bare . ../o.git; git remote add origin ../o.git; git branch other; git push -q origin other")
	before := sh(t, l.repo, "git for-each-ref; git -C ../o.git for-each-ref")
	l.prepare("t")
	if out, err := trySh(l.ws("t"), "echo x >x; git add x; git commit -qm x; git branch -f side HEAD; git update-ref refs/heads/main HEAD; git push origin HEAD:main"); err == nil {
		t.Fatalf("the push went through: %s", out)
	}
	got := l.collect("t")
	if l.files(got.Head) != "a\nx" || sh(t, l.repo, "git for-each-ref; git -C ../o.git for-each-ref") != before {
		t.Fatalf("collected %+v", got)
	}
}

func TestB20SafetyCommitNeedsNothingOfTheUsers(t *testing.T) {
	t.Parallel()
	l := newLab(t, `printf '#!/bin/sh\nexit 1\n' >.git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; git config commit.gpgsign true; git config gpg.program /nonexistent; git config user.useConfigOnly true; git config --unset user.email`)
	got := l.run("t", "echo x >x")
	if l.files(got.Head) != "a\nx" {
		t.Fatalf("collected %+v", got)
	}
	got = l.run("t2", `mkdir -p .git/hooks; printf '#!/bin/sh\nsleep 600\n' >.git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; git config commit.gpgsign true; git config gpg.program /bin/false; echo y >y`)
	if l.files(got.Head) != "a\ny" {
		t.Fatalf("collected %+v", got)
	}
	l.land("t", got.Head)
}

func TestB22SuspiciousFilesAreHeldBack(t *testing.T) {
	t.Parallel()
	l := newLab(t, "")
	const script = `echo KEY=s3cr3t >.env; echo t >t.pem; mkdir -p node_modules/m; echo m >node_modules/m/m; head -c 11000000 /dev/zero >big.bin
		printf -- '-----BEGIN OPENSSH PRIVATE KEY-----\n' >notes; mkdir -p p/__pycache__; echo c >p/__pycache__/c; echo k >p/k; echo e >.env.example
		git init -q nested; echo n >nested/n; echo x >x`
	got := l.run("t", script)
	if f := l.files(got.Head); f != ".env.example\na\np/k\nx" {
		t.Errorf("files %q", f)
	}
	held := map[string]string{}
	for _, h := range got.HeldBack {
		held[h.Path] = h.Reason
	}
	want := map[string]string{
		".env": heldSecret, "t.pem": heldSecret, "notes": heldSecret, "big.bin": heldLarge,
		"node_modules/": heldTree, "p/__pycache__/": heldTree, "nested/": heldNested,
	}
	if diff := cmp.Diff(want, held); diff != "" {
		t.Error(diff)
	}
	if s := l.show(got.Snapshot, ".env") + l.show(got.Snapshot, "node_modules/m/m") + l.show(got.Snapshot, "nested/n") + l.show(got.Snapshot, "nested/%2egit/HEAD"); s != "KEY=s3cr3tmnref: refs/heads/master" {
		t.Errorf("snapshot holds %q", s)
	}
	if size := sh(t, l.vault.Dir(), "git cat-file -s "+got.Snapshot+":big.bin"); size != "11000000" {
		t.Errorf("big.bin has %s bytes", size)
	}
	if out := l.land("t", got.Head); out.Commit == "" || sh(t, l.repo, "git ls-files") != ".env.example\na\np/k\nx" {
		t.Errorf("landed %+v", out)
	}
	committed := l.run("t2", "echo KEY=x >.env; git add .env; git commit -qm env")
	if !warned(committed.Warnings, WarnSuspicious) {
		t.Errorf("collected %+v", committed)
	}
	// .gitignore decides first: nothing is held back, nothing listed.
	ign := newLab(t, "printf '.env\\nnode_modules/\\n*.bin\\n' >.gitignore; git add .; git commit -qm i")
	if got := ign.run("t", "echo K >.env; mkdir node_modules; echo m >node_modules/m; echo b >b.bin; echo x >x"); len(got.HeldBack) != 0 || ign.files(got.Head) != ".gitignore\na\nx" {
		t.Errorf("collected %+v", got)
	}
}

func TestB61NamesGitQuotes(t *testing.T) {
	t.Parallel()
	l := newLab(t, "")
	names := []string{"Aufträge/B1 — E.md", "a b/c", "new\nline", "tab\there", `quo"te`, " b/x", "x -> y", "-lead", ":(x)", "\xff\xfe", "A", "back\\slash", "#x", "!y"}
	l.prepare("t")
	for _, n := range names {
		write(t, filepath.Join(l.ws("t"), n), "content of "+n+"\n")
	}
	write(t, filepath.Join(l.ws("t"), ".gitignore"), "nothing\n")
	got := l.collect("t")
	stat, err := l.vault.Diff(l.ctx(), got.Base, got.Head)
	if err != nil || len(stat.Files) != len(names)+1 || got.Files != len(stat.Files) || stat.Insertions != len(names)+2 {
		t.Fatalf("%d files, %d insertions, %v", len(stat.Files), stat.Insertions, err) // one name has a line break
	}
	seen := map[string]bool{}
	for _, f := range stat.Files {
		if seen[f.Path] {
			t.Errorf("%q twice", f.Path)
		}
		seen[f.Path] = true
		patch, cut, err := l.vault.Patch(l.ctx(), got.Base, got.Head, []string{f.Path}, 1<<20)
		if err != nil || cut || !strings.Contains(string(patch), "+") {
			t.Errorf("%q: patch %q, %v", f.Path, patch, err)
		}
		if strings.ContainsAny(Display(f.Path), "\n\t\ufffd") { // U+FFFD also stands for a byte that is no text
			t.Errorf("shown as %q", Display(f.Path))
		}
	}
	for _, n := range names {
		if !seen[n] {
			t.Errorf("%q is missing", n)
		}
	}
	second := l.run("t", "git mv 'a b/c' 'r -> s'; git commit -qm r")
	stat, err = l.vault.Diff(l.ctx(), second.Base, second.Head)
	if err != nil || len(stat.Files) != 1 || stat.Files[0].Status != "R" || stat.Files[0].OldPath != "a b/c" {
		t.Fatalf("renamed %+v, %v", stat, err)
	}
	l.land("t", second.Head)
	l.sound()
}

func TestPrivateVault(t *testing.T) {
	t.Parallel()
	g := newGit(t, nil)
	dir := t.TempDir()
	for range 2 { // idempotent
		v, err := g.OpenVault(t.Context(), dir+"/v.git", "")
		if err != nil {
			t.Fatal(err)
		}
		base, err := v.BranchHead(t.Context(), "main")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := v.Prepare(t.Context(), Workspace{Dir: dir + "/ws", Branch: "claudomator/t", Base: base}); err != nil {
			t.Fatal(err)
		}
		write(t, dir+"/ws/x", "x")
		got, err := v.Collect(t.Context(), CollectSpec{Dir: dir + "/ws", Branch: "claudomator/t"})
		if err != nil || got.Head == base {
			t.Fatalf("collected %+v, %v", got, err)
		}
		out, err := v.Land(t.Context(), LandSpec{Target: "main", PrivateRef: "refs/claudomator/landing/t", Parts: []Part{{Commit: got.Head, Message: "m"}}})
		if err != nil || !out.Nothing {
			t.Fatalf("landed %+v, %v", out, err)
		}
		v.Close()
		if _, err := v.Contains(t.Context(), base, strings.Repeat("1", 40)); err == nil {
			t.Error("a closed vault answered")
		}
	}
	write(t, dir+"/foreign/x", "x")
	_, err := g.OpenVault(t.Context(), dir+"/foreign", "")
	wantKind(t, err, KindPathOccupied)
	_, err = g.OpenVault(t.Context(), dir+"/v.git", "/elsewhere")
	wantKind(t, err, KindPathOccupied)
}

// Judges and gates: a detached checkout; what they write is reported, not taken.
func TestDetachedWorkspace(t *testing.T) {
	t.Parallel()
	l := newLab(t, "")
	got := l.run("t", "echo x >x")
	p, err := l.vault.Prepare(l.ctx(), Workspace{Dir: l.ws("judge"), Base: got.Head})
	if err != nil || p.Head != got.Head || sh(t, l.ws("judge"), "cat x; git status --porcelain; git rev-parse HEAD") != "x\n"+got.Head {
		t.Fatalf("prepared %+v, %v", p, err)
	}
	sh(t, l.ws("judge"), "echo j >j; echo y >x; git commit -qam y")
	judged, err := l.vault.Collect(l.ctx(), CollectSpec{Dir: l.ws("judge")})
	if err != nil || judged.Head != got.Head || !judged.NoChanges || !warned(judged.Warnings, WarnDiscarded) {
		t.Fatalf("collected %+v, %v", judged, err)
	}
}

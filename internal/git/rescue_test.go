package git

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// rescued is a lab whose vault keeps a snapshot of a work tree with a bit of
// everything.
func rescued(t *testing.T, setup string) (*lab, SnapshotInfo) {
	t.Helper()
	l := newLab(t, setup)
	dir := filepath.Join(l.dir, "t")
	if _, err := l.vault.Prepare(l.ctx(), Workspace{Dir: dir, Branch: "claudomator/t", Base: l.head("main")}); err != nil {
		t.Fatal(err)
	}
	sh(t, dir, `printf 'two\n' >a; mkdir -p d/e; printf x >d/e/deep; chmod 755 d/e/deep; ln -s ../../outside l; ln -s d/e in; printf '' >empty; printf b >'line
break'; printf ignored >.env; mkdir d/nested && cd d/nested && git init -q && printf n >n`)
	info, err := l.vault.Snapshot(l.ctx(), dir, SnapshotPrefix+"t/1", "Because\n")
	if err != nil {
		t.Fatal(err)
	}
	return l, info
}

// What is restored is what was there: contents, executable bits, links as links.
// Nothing is written outside, and nothing that was there is touched.
func TestRestoreIsExact(t *testing.T) {
	t.Parallel()
	l, info := rescued(t, "")
	top := t.TempDir()
	to := filepath.Join(top, "made", "now")
	if err := l.vault.Restore(l.ctx(), info.Ref, to); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a": "two\n", "d/e/deep": "x", "empty": "", "line\nbreak": "b", ".env": "ignored", "d/nested/n": "n"} {
		if text, err := os.ReadFile(filepath.Join(to, name)); err != nil || string(text) != want {
			t.Errorf("%q is %q, %v", name, text, err)
		}
	}
	for name, want := range map[string]string{"l": "../../outside", "in": "d/e"} {
		if text, err := os.Readlink(filepath.Join(to, name)); err != nil || text != want {
			t.Errorf("%s points at %q, %v", name, text, err)
		}
	}
	for name, exec := range map[string]bool{"d/e/deep": true, "a": false} {
		if st, err := os.Stat(filepath.Join(to, name)); err != nil || st.Mode()&0o100 != 0 != exec {
			t.Errorf("%s: %v, %v", name, st, err)
		}
	}
	if left, err := os.ReadDir(top); err != nil || len(left) != 1 {
		t.Errorf("beside it: %v, %v", left, err)
	}
	if err := l.vault.Restore(l.ctx(), info.Ref, to); KindOf(err) != KindPathOccupied {
		t.Errorf("a folder that holds something: %v", err)
	}
}

// A tree that nobody but an attacker makes leads nowhere.
func TestRestoreStaysInside(t *testing.T) {
	t.Parallel()
	l := newLab(t, "")
	v := l.vault
	blob, err := v.writeObject("blob", []byte("evil"))
	if err != nil {
		t.Fatal(err)
	}
	top := t.TempDir()
	link, err := v.writeObject("blob", []byte(top))
	if err != nil {
		t.Fatal(err)
	}
	inner, err := v.writeTree([]treeEntry{{mode: modeFile, name: "evil", hash: blob}})
	if err != nil {
		t.Fatal(err)
	}
	for name, entries := range map[string][]treeEntry{
		"up":             {{mode: modeTree, name: "..", hash: inner}},
		"git":            {{mode: modeTree, name: ".GIT", hash: inner}},
		"through a link": {{mode: modeLink, name: "d", hash: link}, {mode: modeTree, name: "d", hash: inner}},
		"slash":          {{mode: modeFile, name: "../evil", hash: blob}},
	} {
		var raw strings.Builder
		for _, e := range entries {
			raw.WriteString(e.mode + " " + e.name + "\x00" + unhex(t, e.hash))
		}
		tree, err := v.writeObject("tree", []byte(raw.String()))
		if err != nil {
			t.Fatal(err)
		}
		commit, err := v.writeCommit(tree, nil, Identity{}, time.Unix(0, 0), name)
		if err != nil {
			t.Fatal(err)
		}
		if err := v.putRef(l.ctx(), SnapshotPrefix+"t/2", commit); err != nil {
			t.Fatal(err)
		}
		if err := v.Restore(l.ctx(), commit, filepath.Join(t.TempDir(), "to")); err == nil {
			t.Errorf("%s: it was restored", name)
		}
		if _, err := os.Lstat(filepath.Join(top, "evil")); err == nil {
			t.Errorf("%s: it got out", name)
		}
	}
}

func unhex(t *testing.T, hash string) string {
	t.Helper()
	raw, err := hex.DecodeString(hash)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// A branch is made, and nothing else of the repository changes; a name that is
// taken in any way is refused.
func TestNewBranch(t *testing.T) {
	t.Parallel()
	l, info := rescued(t, "git branch taken; git branch deep/er; git pack-refs --all; git worktree add -q ../W; git -C ../W checkout -q --orphan unborn")
	before := sh(t, l.repo, "git status --porcelain; git log -1 --format=%H main; git branch --show-current")
	if err := l.vault.NewBranch(l.ctx(), "saved/it", info.Commit); err != nil {
		t.Fatal(err)
	}
	if got := sh(t, l.repo, "git rev-parse saved/it; git show saved/it:d/e/deep; git fsck --strict >/dev/null 2>&1 && echo , sound"); got != info.Commit+"\nx, sound" {
		t.Errorf("the branch: %q", got)
	}
	if after := sh(t, l.repo, "git status --porcelain; git log -1 --format=%H main; git branch --show-current"); after != before {
		t.Errorf("before %q, after %q", before, after)
	}
	for name, kind := range map[string]Kind{
		"saved/it": KindRefConflict, "taken": KindRefConflict, "main": KindRefConflict, "deep": KindRefConflict, "taken/x": KindRefConflict, "unborn": KindRefConflict,
		"claudomator/t": KindInvalidRef, "a..b": KindInvalidRef, "-x": KindInvalidRef, "HEAD": KindInvalidRef, "x\x00y": KindInvalidRef,
	} {
		if err := l.vault.NewBranch(l.ctx(), name, info.Commit); KindOf(err) != kind {
			t.Errorf("%q: %v, want %s", name, err, kind)
		}
	}
	if err := l.vault.NewBranch(l.ctx(), "none", zeroHash); KindOf(err) != KindBranchMissing {
		t.Errorf("no such commit: %v", err)
	}
}

// The same by way of a URL, and where there is no repository.
func TestNewBranchElsewhere(t *testing.T) {
	t.Parallel()
	l, info := rescued(t, "git branch taken")
	for name, repository := range map[string]string{"url": "file://" + l.repo, "none": ""} {
		v, err := l.git.OpenVault(l.ctx(), filepath.Join(t.TempDir(), name+".git"), repository)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(v.Close)
		commit := info.Commit
		if err := l.git.transfer(l.ctx(), transfer{from: l.vault.env(), to: v.env(), want: []string{commit}}); err != nil {
			t.Fatal(err)
		}
		if err := v.NewBranch(l.ctx(), "of-"+name, commit); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		where := l.repo
		if repository == "" {
			where = v.Dir()
		}
		if got := sh(t, where, "git rev-parse of-"+name); got != commit {
			t.Errorf("%s: the branch is at %s", name, got)
		}
		if err := v.NewBranch(l.ctx(), "of-"+name, commit); KindOf(err) != KindRefConflict {
			t.Errorf("%s: twice: %v", name, err)
		}
		if err := v.NewBranch(l.ctx(), "main", commit); KindOf(err) != KindRefConflict {
			t.Errorf("%s: main: %v", name, err)
		}
	}
}

func TestChangedFiles(t *testing.T) {
	t.Parallel()
	l, info := rescued(t, `printf ':x' >':colon'; printf y >'new
line'; git add -A; git commit -qm more`)
	list, err := l.vault.Snapshots(l.ctx(), SnapshotPrefix)
	if err != nil || len(list) != 1 || list[0].Parent != l.head("main") || list[0].At.IsZero() || list[0].Message != "Because\n" {
		t.Fatalf("%+v, %v", list, err)
	}
	main := l.head("main")
	got, err := l.vault.ChangedFiles(l.ctx(), []Change{{main, main}, {"", main}, {main, info.Commit}, {info.Commit, main}, {main + "^", main}})
	if err == nil {
		t.Errorf("a name that is no commit: %v", got)
	}
	first := sh(t, l.repo, "git rev-parse main^")
	got, err = l.vault.ChangedFiles(l.ctx(), []Change{{main, main}, {"", main}, {first, main}, {main, first}})
	if want := []int{0, 3, 2, 2}; err != nil || len(got) != 4 || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] || got[3] != want[3] {
		t.Errorf("%v, want %v, %v", got, want, err)
	}
	want := strings.Count(sh(t, l.vault.Dir(), "git diff --name-only -z --no-renames "+main+" "+info.Commit+" | tr -cd '\\0' | tr '\\0' '.'"), ".")
	if got, err = l.vault.ChangedFiles(l.ctx(), []Change{{main, info.Commit}}); err != nil || got[0] != want || want < 8 {
		t.Errorf("%v, want %d, %v", got, want, err)
	}
}

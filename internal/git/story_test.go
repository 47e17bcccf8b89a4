package git

import (
	"path/filepath"
	"strings"
	"testing"
)

// A story's branch in the vault and one of the same name in the source know
// nothing of each other, whatever a fetch brings or prunes.
func TestStoryBranchBesideFetchedOnes(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"path", "url"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, "git branch story/x; echo two >>a; git commit -qam two; git branch story/y")
			if kind == "url" {
				v, err := l.git.OpenVault(l.ctx(), filepath.Join(t.TempDir(), "v.git"), "file://"+l.repo)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(v.Close)
				l.vault = v
			}
			ctx, v := l.ctx(), l.vault
			one, two := l.head("story/x"), l.head("main")
			// Both places: the one for stories, and a branch of the vault itself.
			if err := v.SetStoryBranch(ctx, "story/x", two, ""); err != nil {
				t.Fatal(err)
			}
			if err := v.SetRef(ctx, "refs/heads/story/x", two, ""); err != nil {
				t.Fatal(err)
			}
			holds := func(when, theirs string) {
				t.Helper()
				head, err := v.BranchHead(ctx, "story/x") // fetches
				if head != theirs || (theirs == "" && KindOf(err) != KindBranchMissing) {
					t.Errorf("%s: the source's is %q, %v, want %q", when, head, err, theirs)
				}
				if ours, err := v.StoryBranch(ctx, "story/x"); ours != two || err != nil {
					t.Errorf("%s: the story's is %q, %v", when, ours, err)
				}
				if ours, err := v.Ref(ctx, "refs/heads/story/x"); ours != two || err != nil {
					t.Errorf("%s: the vault's is %q, %v", when, ours, err)
				}
			}
			holds("beside each other", one)
			sh(t, l.repo, "git branch -f story/x $(git commit-tree -p main -m moved main^{tree})")
			holds("moved there", sh(t, l.repo, "git rev-parse story/x"))
			sh(t, l.repo, "git branch -D story/x story/y")
			holds("deleted there", "")
			sh(t, l.repo, "git branch story")
			holds("a file where a folder was", "")
			if l.head("story") != two {
				t.Error("fetching stopped")
			}
			if err := v.Maintain(ctx, 0); err != nil { // the same from packed refs
				t.Fatal(err)
			}
			holds("packed", "")
			sh(t, v.Dir(), "git fsck --strict --connectivity-only")
		})
	}
}

func TestStoryBranchIsSwapped(t *testing.T) {
	t.Parallel()
	l := newLab(t, "echo two >>a; git commit -qam two")
	ctx, v := l.ctx(), l.vault
	two := l.head("main")
	one := sh(t, l.repo, "git rev-parse main~1")
	_, err := v.StoryBranch(ctx, "story/x")
	wantKind(t, err, KindBranchMissing)
	for i, step := range []struct {
		name, commit, old string
		kind              Kind
	}{
		{"story/x", two, one, KindRefMoved},
		{"story/x", one, "", ""},
		{"story/x", one, "", ""}, // repeated
		{"story/x", two, "", KindRefMoved},
		{"story/x", two, one, ""},
		{"story/x", two, one, ""}, // repeated
		{"story/x", one, one, KindRefMoved},
		{"story/x/y", one, "", KindRefConflict},
		{"story", one, "", KindRefConflict},
		{"main", one, "", ""},
		{"claudomator/t", one, "", ""},
		{"story/z", strings.Repeat("1", 40), "", KindBranchMissing},
		{"a..b", one, "", KindInvalidRef},
		{"../../heads/x", one, "", KindInvalidRef},
		{"", one, "", KindInvalidRef},
	} {
		if err := v.SetStoryBranch(ctx, step.name, step.commit, step.old); KindOf(err) != step.kind || (err == nil) != (step.kind == "") {
			t.Errorf("step %d: %v, want kind %q", i, err, step.kind)
		}
	}
	if at, err := v.StoryBranch(ctx, "story/x"); err != nil || at != two {
		t.Errorf("at %q, %v", at, err)
	}
	if l.head("main") != two || sh(t, l.repo, "git for-each-ref --format='%(refname)'") != "refs/heads/main" {
		t.Error("the source's branches changed")
	}
	for _, bad := range []string{"a..b", "", "../x"} {
		_, err := v.StoryBranch(ctx, bad)
		wantKind(t, err, KindInvalidRef)
	}
}

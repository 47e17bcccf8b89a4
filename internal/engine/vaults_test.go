package engine_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/claudomator/claudomator/internal/engine"
	"github.com/claudomator/claudomator/internal/git"
	"github.com/claudomator/claudomator/internal/work"
)

// Whichever of its writes is the last one of a life, a branch begun without a run is
// found with where it began, though the project's branch has moved on since.
func TestBranchBegunInTwoLives(t *testing.T) {
	w := newWorld(t, 1)
	g, err := git.New(t.Context(), git.Options{})
	if err != nil {
		t.Fatal(err)
	}
	vault, err := g.OpenVault(t.Context(), filepath.Join(t.TempDir(), "v.git"), w.repo)
	if err != nil {
		t.Fatal(err)
	}
	defer vault.Close()
	project := work.Project{Branch: "main"}
	for _, id := range []work.TaskID{"noted", "begun"} {
		branch, base := "refs/heads/"+(&work.Task{ID: id}).Ref(), engine.BaseRef(id)
		inTheWay := filepath.Join(vault.Dir(), filepath.FromSlash(map[work.TaskID]string{"noted": base, "begun": branch}[id]), "x")
		if err := os.MkdirAll(inTheWay, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(inTheWay, "y"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if head, err := engine.BranchOf(t.Context(), vault, project, id); err == nil {
			t.Fatalf("%s: begun at %s, with a folder in the way", id, head)
		}
		if err := os.RemoveAll(filepath.Dir(inTheWay)); err != nil {
			t.Fatal(err)
		}
		w.theirs(string(id), "meanwhile\n")
		head, err := engine.BranchOf(t.Context(), vault, project, id)
		if err != nil {
			t.Fatal(err)
		}
		if at, err := vault.Ref(t.Context(), base); err != nil || at != head {
			t.Errorf("%s: the branch is at %s, said to begin at %q, %v", id, head, at, err)
		}
		if at, err := vault.Ref(t.Context(), branch); err != nil || at != head {
			t.Errorf("%s: %s is said to be at %s, and is at %q, %v", id, branch, head, at, err)
		}
	}
}

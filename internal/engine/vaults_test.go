package engine_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/claudomator/claudomator/internal/agent"
	"github.com/claudomator/claudomator/internal/app"
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

// What many runs leave in a vault as files of its own is packed, and no work is lost.
func TestVaultIsPacked(t *testing.T) {
	inHours(t, &puppet{acts: []func(context.Context, agent.Job) agent.Result{writes("x")}}, func(w *world, task func(app.TaskRequest) *app.TaskView) {
		loose := func() int {
			n, err := strconv.Atoi(strings.Fields(w.git("-C", w.vaultDir(), "count-objects"))[0])
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		first := task(app.TaskRequest{}).ID
		w.state(first, work.Completed)
		time.Sleep(2 * time.Hour) // virtual
		if loose() == 0 {
			t.Error("few objects are packed")
		}
		var many strings.Builder
		many.WriteString("commit refs/heads/many\ncommitter u <u@x> 1 +0000\ndata 1\nm\n")
		for i := range 10_000 {
			fmt.Fprintf(&many, "M 644 inline f%d\ndata %d\n%d\n", i, len(strconv.Itoa(i)), i)
		}
		list := filepath.Join(t.TempDir(), "many")
		if err := os.WriteFile(list, []byte(many.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("sh", "-c", "git -C '"+w.vaultDir()+"' -c fastimport.unpackLimit=100000 fast-import --quiet <"+list).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if n := loose(); n < 10_000 {
			t.Fatalf("%d loose objects", n)
		}
		time.Sleep(2 * time.Hour) // virtual
		if n := loose(); n > 100 {
			t.Errorf("%d objects are still loose", n)
		}
		w.git("-C", w.vaultDir(), "fsck", "--strict")
		second := task(app.TaskRequest{DependsOn: []string{string(first)}}).ID
		w.state(second, work.Completed)
	})
}

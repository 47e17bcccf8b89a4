package git

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The floor is the bare loop of git commands; ours does the same work and
// collects and merges besides. Run on tmpfs (TMPDIR=/dev/shm): some file systems
// make creation after mass deletion many times dearer.

func benchLab(b *testing.B, files int) *lab {
	b.Helper()
	l := newLab(b, fmt.Sprintf("mkdir d; for i in $(seq %d); do echo $i >d/f$i; done; git add d; git commit -qm files", files))
	if err := l.vault.SetRef(l.ctx(), "refs/heads/claudomator/parent", l.head("main"), ""); err != nil {
		b.Fatal(err)
	}
	return l
}

func agent(b *testing.B, dir string) {
	b.Helper()
	cmd := exec.Command("sh", "-c", "date +%s.%N >f; git add f; git commit -qm x")
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1"}
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%s: %v", out, err)
	}
}

func BenchmarkWorktreeLoop(b *testing.B) {
	for _, files := range []int{20, 20000} {
		b.Run(fmt.Sprint(files), func(b *testing.B) {
			l := benchLab(b, files)
			git := func(args ...string) {
				cmd := exec.Command("git", append([]string{"-C", l.repo}, args...)...) //nolint:gosec // tests
				if out, err := cmd.CombinedOutput(); err != nil {
					b.Fatalf("%s: %v", out, err)
				}
			}
			i := 0
			for b.Loop() {
				i++
				ws := l.ws(fmt.Sprint(i))
				git("worktree", "add", "-q", "-b", fmt.Sprintf("b%d", i), ws, "main")
				agent(b, ws)
				git("worktree", "remove", "--force", ws)
			}
		})
	}
}

func BenchmarkTask(b *testing.B) {
	for _, files := range []int{20, 20000} {
		for _, withAgent := range []bool{true, false} {
			name := map[bool]string{true: "with-agent", false: "server-only"}[withAgent]
			b.Run(fmt.Sprintf("%d/%s", files, name), func(b *testing.B) {
				l := benchLab(b, files)
				bin := filepath.Join(filepath.Dir(l.dir), "bin")
				base, i := l.head("main"), 0
				for b.Loop() {
					i++
					task := fmt.Sprint(i)
					if _, err := l.vault.Prepare(l.ctx(), Workspace{Dir: l.ws(task), Branch: "claudomator/" + task, Base: base}); err != nil {
						b.Fatal(err)
					}
					if withAgent {
						agent(b, l.ws(task))
					} else {
						write(b, l.ws(task)+"/f", "x\n")
					}
					got := l.collect(task)
					if _, err := l.vault.Integrate(l.ctx(), IntegrateSpec{Ref: "refs/heads/claudomator/parent", Commit: got.Head, Message: "m"}); err != nil {
						b.Fatal(err)
					}
					if _, err := l.vault.Discard(l.ctx(), l.ws(task), bin); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkPrepare(b *testing.B) {
	for _, files := range []int{20, 20000} {
		l := benchLab(b, files)
		base := l.head("main")
		b.Run(fmt.Sprintf("%d/cold", files), func(b *testing.B) {
			i := 0
			for b.Loop() {
				i++
				if _, err := l.vault.Prepare(l.ctx(), Workspace{Dir: l.ws(fmt.Sprint("c", i)), Base: base}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("%d/again", files), func(b *testing.B) {
			for b.Loop() {
				if _, err := l.vault.Prepare(l.ctx(), Workspace{Dir: l.ws("same"), Base: base}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCollectAndIntegrate(b *testing.B) {
	for _, files := range []int{20, 20000} {
		l := benchLab(b, files)
		l.prepare("t")
		b.Run(fmt.Sprint(files), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				agent(b, l.ws("t"))
				b.StartTimer()
				got := l.collect("t")
				if _, err := l.vault.Integrate(l.ctx(), IntegrateSpec{Ref: "refs/heads/claudomator/parent", Commit: got.Head, Message: "m"}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

package sandbox

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A child of this program that nobody has waited for yet must not be reaped
// by the search for dead orphans; a real orphan must.
func TestReapingStealsNoWaits(t *testing.T) {
	t.Parallel()
	h := openHost(t, t.TempDir(), true)
	if !h.machine.handles {
		t.Skip("this kernel has no pidfds: nothing is reaped")
	}
	ours := exec.Command("sh", "-c", "exit 5")
	ours.SysProcAttr = ownSession()
	if err := ours.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "our child is dead", func() bool {
		p, err := h.machine.process(ours.Process.Pid)
		return err == nil && p.zombie
	})
	spec := shell(t, `(setsid sh -c 'echo $$ >orphan; exit 0' &) ; while ! test -s orphan; do sleep 0.01; done`)
	p := start(t, h, spec)
	wait(t, p)
	orphan, _ := os.ReadFile(filepath.Join(spec.Dir, "orphan"))
	stat := "/proc/" + strings.TrimSpace(string(orphan)) + "/stat"
	eventually(t, "the orphan is reaped", func() bool {
		h.machine.reap("")
		_, err := os.Stat(stat)
		return errors.Is(err, os.ErrNotExist)
	})
	end(t, p)
	_ = ours.Wait()
	if code := ours.ProcessState.ExitCode(); code != 5 {
		t.Errorf("exit status %d of our own child, want 5", code)
	}
}

func TestCgroupDir(t *testing.T) {
	t.Parallel()
	const hybrid = `31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw
37 31 0:34 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd
38 31 0:35 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
`
	for _, tt := range []struct{ name, mounts, own, want string }{
		{"hybrid, root", hybrid, "4:memory:/a\n0::/\n", "/sys/fs/cgroup/unified"},
		{"hybrid, nested", hybrid, "0::/user.slice/x.scope\n", "/sys/fs/cgroup/unified/user.slice/x.scope"},
		{"bind of a part", "1 2 0:3 /docker/abc /cg shared:1 - cgroup2 cgroup rw\n", "0::/docker/abc/inner\n", "/cg/inner"},
		{"space in the path", "1 2 0:3 / /c\\040g rw - cgroup2 none rw\n", "0::/\n", "/c g"},
		{"bind of another part", "1 2 0:3 /docker/abc /cg rw - cgroup2 cgroup rw\n", "0::/docker/abcd\n", ""},
		{"only v1", "1 2 0:3 / /cg rw - cgroup cgroup rw,pids\n", "1:pids:/\n", ""},
		{"outside the namespace", hybrid, "0::/../x\n", ""},
	} {
		got, err := cgroupDir(tt.mounts, tt.own)
		if got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%s: %q, %v; want %q", tt.name, got, err, tt.want)
		}
	}
}

// A process that executes a new program has no environment for a moment. It
// must be recognised at every moment all the same: this one does nothing else.
func TestMarkedWhileExecuting(t *testing.T) {
	t.Parallel()
	h := openHost(t, t.TempDir(), false)
	again := `N=$((N + 1)); export N; { test $N -lt 2000 || ! test -e enough; } && exec sh -c "$AGAIN"`
	spec := shell(t, again)
	spec.Env = append(spec.Env, "N=0", "AGAIN="+again)
	p := start(t, h, spec)
	missed, looks, dying := 0, 0, 0 // a process about to end has no environment either
	for {
		if h.machine.marked(p.PID(), spec.ID) {
			if missed, looks, dying = missed+dying, looks+1, 0; looks == 1000 {
				if err := os.WriteFile(filepath.Join(spec.Dir, "enough"), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		} else {
			dying++
		}
		if now, err := h.machine.process(p.PID()); err != nil || now.zombie {
			break
		}
	}
	wait(t, p)
	end(t, p)
	if missed > 0 || looks < 1000 {
		t.Errorf("%d of %d looks missed a process of the run", missed, looks)
	}
}

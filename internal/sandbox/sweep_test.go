package sandbox

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// serveAndHang is a server that starts a run and does not end.
func serveAndHang() int {
	h, err := Open(Options{StateDir: os.Getenv("STATE"), NoCgroup: os.Getenv("NO_CGROUP") != ""})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	_, err = h.Start(context.Background(), Spec{
		ID: os.Getenv("RUN_ID"), Dir: os.Getenv("DIR"), Env: []string{"PATH=" + os.Getenv("PATH")},
		Argv: []string{"sh", "-c", os.Getenv("TEXT")},
	})
	fmt.Println("started", err)
	select {}
}

func TestSweepAfterServerKilled(t *testing.T) {
	t.Parallel()
	modes(t, func(t *testing.T, h *Host) {
		noCgroup := h.machine.cgroup == ""
		spec := shell(t, daemon(!noCgroup)+"sleep 3600 & echo >ready; sleep 3600")
		server := exec.Command(os.Args[0])
		server.Env = append(os.Environ(), "SANDBOX_TEST_SERVER=1", "STATE="+h.dir, "RUN_ID="+spec.ID, "DIR="+spec.Dir, "TEXT="+spec.Argv[2])
		if noCgroup {
			server.Env = append(server.Env, "NO_CGROUP=1")
		}
		out, err := server.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		line, _ := bufio.NewReader(out).ReadString('\n')
		file := filepath.Join(spec.Dir, "daemon")
		eventually(t, "all run", func() bool { _, err := os.Stat(filepath.Join(spec.Dir, "ready")); return err == nil })
		_ = server.Process.Kill()
		_ = server.Wait()
		if line != "started <nil>\n" || !alive(t, file) {
			t.Fatalf("server said %q; daemon alive: %v", line, alive(t, file))
		}

		left, err := h.Leftovers(t.Context())
		if err != nil || len(left) != 1 || left[0].ID != spec.ID || left[0].PID == 0 || left[0].Started.IsZero() {
			t.Fatalf("left over %+v, %v", left, err)
		}
		members, err := h.machine.find(tree{id: spec.ID, pid: left[0].PID, start: left[0].StartTime})
		if err != nil || len(members) == 0 {
			t.Fatalf("members %v, %v", members, err)
		}
		ended, err := h.Sweep(t.Context(), spec.ID)
		if err != nil || ended.Killed < 3 {
			t.Errorf("swept %+v, %v; want at least the shell, its sleep and the daemon", ended, err)
		}
		if alive(t, file) {
			t.Error("daemon is alive")
		}
		if members, err = h.machine.find(tree{id: spec.ID, pid: left[0].PID, start: left[0].StartTime}); len(members) != 0 || err != nil {
			t.Errorf("still there: %+v, %v", members, err)
		}
		if left, err = h.Leftovers(t.Context()); len(left) != 0 || err != nil {
			t.Errorf("still recorded: %+v, %v", left, err)
		}
		if ended, err = h.Sweep(t.Context(), spec.ID); ended.Killed != 0 || err != nil {
			t.Errorf("second sweep %+v, %v", ended, err)
		}
	})
}

func TestSweepWithoutRecord(t *testing.T) {
	t.Parallel()
	modes(t, func(t *testing.T, h *Host) {
		for _, content := range []string{"", "{torn"} {
			spec := shell(t, "sleep 3600")
			p := start(t, h, spec)
			path := h.recordPath(spec.ID)
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			if content == "" {
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
			}
			ended, err := h.Sweep(t.Context(), spec.ID)
			if err != nil || ended.Killed < 1 {
				t.Errorf("%q: swept %+v, %v", content, ended, err)
			}
			<-p.Exited()
			end(t, p)
		}
	})
}

func TestSweepAfterReboot(t *testing.T) {
	t.Parallel()
	h := openHost(t, t.TempDir(), true)
	// The recorded process id now belongs to somebody else: this test.
	record := Record{ID: "before-reboot", Boot: "another", PID: os.Getpid()}
	if err := h.save(record); err != nil {
		t.Fatal(err)
	}
	ended, err := h.Sweep(t.Context(), record.ID)
	if err != nil || ended.Killed != 0 {
		t.Errorf("swept %+v, %v", ended, err)
	}
	if left, _ := h.Leftovers(t.Context()); len(left) != 0 {
		t.Errorf("still recorded: %v", left)
	}
}

func TestSweepRefusesForeignIDs(t *testing.T) {
	t.Parallel()
	h := openHost(t, t.TempDir(), true)
	for _, id := range []string{"", ".", "../x", "a/b", strings.Repeat("x", 129)} {
		if _, err := h.Sweep(t.Context(), id); !errors.Is(err, ErrInvalid) {
			t.Errorf("%q: %v", id, err)
		}
	}
}

func TestMembers(t *testing.T) {
	t.Parallel()
	self := os.Getpid()
	all := []proc{
		{pid: 1, start: 1},
		{pid: self, ppid: 1, start: 2, session: 9},
		{pid: 100, ppid: self, session: 100, start: 10},                  // main
		{pid: 101, ppid: 1, session: 100, start: 11},                     // same session
		{pid: 102, ppid: 1, session: 102, start: 12},                     // marked
		{pid: 103, ppid: 102, session: 103, start: 13},                   // below it
		{pid: 104, ppid: 103, session: 104, start: 14, zombie: true},     // dead
		{pid: 105, ppid: self, session: 105, start: 15},                  // another run
		{pid: 1 << 30, ppid: 105, session: 105, start: 16, zombie: true}, // and its dead
	}
	marked := func(pid int, id string) bool { return pid == 102 || pid == self || pid == 1 }
	pids := func(t tree) string {
		var list []string
		for _, p := range t.members(all, marked) {
			list = append(list, fmt.Sprint(p.pid))
		}
		return strings.Join(list, " ")
	}
	if got := pids(tree{id: "x", pid: 100, start: 10}); got != "100 101 102 103" {
		t.Errorf("members %s", got)
	}
	if got := pids(tree{id: "x", pid: 100, start: 9}); got != "102 103" {
		t.Errorf("members after the id was reused: %s", got)
	}
	if got := pids(tree{id: "x"}); got != "102 103" {
		t.Errorf("members by marker alone: %s", got)
	}
}

// A run that keeps forking daemons while it is being ended leaves none.
func TestEndDuringAStormOfForks(t *testing.T) {
	t.Parallel()
	modes(t, func(t *testing.T, h *Host) {
		spec := shell(t, `i=0; while [ $i -lt 2000 ]; do i=$((i+1)); (setsid sleep 3600 &); [ $i -eq 20 ] && echo >ready; done; sleep 3600`)
		p := start(t, h, spec)
		eventually(t, "the storm has begun", func() bool { _, err := os.Stat(filepath.Join(spec.Dir, "ready")); return err == nil })
		ended := end(t, p)
		left, err := h.machine.find(tree{id: spec.ID, pid: p.PID()})
		if err != nil || len(left) != 0 || ended.Killed < 20 {
			t.Errorf("killed %d, left %d, %v", ended.Killed, len(left), err)
		}
	})
}

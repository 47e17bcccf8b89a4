package sandbox

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestMain lets the test binary play the server that is killed (see
// TestSweepAfterServerKilled).
func TestMain(m *testing.M) {
	if os.Getenv("SANDBOX_TEST_SERVER") != "" {
		os.Exit(serveAndHang())
	}
	os.Exit(m.Run())
}

// daemon is a shell text that leaves a process which left the session twice,
// ignores polite signals and, where scrub is set, has no environment; its id
// is then in file "daemon".
func daemon(scrub bool) string {
	env := ""
	if scrub {
		env = "env -i PATH=$PATH "
	}
	return `(` + env + `setsid sh -c '(trap "" TERM INT HUP; setsid sh -c "trap \"\" TERM INT HUP; echo \$\$ >daemon.new; mv daemon.new daemon; while :; do sleep 1; done" &) ; exit 0' >/dev/null 2>&1 </dev/null &)
while ! test -e daemon; do sleep 0.01; done
`
}

// modes runs a test with cgroups, where this machine has them, and without.
func modes(t *testing.T, test func(t *testing.T, h *Host)) {
	t.Helper()
	for _, without := range []bool{false, true} {
		t.Run(fmt.Sprintf("cgroup=%v", !without), func(t *testing.T) {
			t.Parallel()
			test(t, openHost(t, t.TempDir(), without))
		})
	}
}

func openHost(t *testing.T, dir string, noCgroup bool) *Host {
	t.Helper()
	h, err := Open(Options{StateDir: dir, NoCgroup: noCgroup})
	if err != nil {
		t.Fatal(err)
	}
	if !noCgroup && h.machine.cgroup == "" {
		t.Skipf("no cgroup here: %v", h.machine.noCgroup)
	}
	return h
}

func shell(t *testing.T, text string) Spec {
	t.Helper()
	id := strings.Map(func(r rune) rune {
		if r == '/' || r == '=' || r == '#' {
			return '-'
		}
		return r
	}, t.Name())
	return Spec{
		ID:   id + "-" + rand.Text(),
		Dir:  t.TempDir(),
		Argv: []string{"sh", "-c", text},
		Env:  []string{"PATH=" + os.Getenv("PATH")},
	}
}

func start(t *testing.T, h *Host, spec Spec) *Process {
	t.Helper()
	p, err := h.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.WithoutCancel(t.Context()) // the cleanup comes after its end
	t.Cleanup(func() { _, _ = p.End(ctx) })
	return p
}

func wait(t *testing.T, p *Process) Exit {
	t.Helper()
	exit, err := p.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return exit
}

func end(t *testing.T, p *Process) Ended {
	t.Helper()
	ended, err := p.End(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return ended
}

// patient is how long a busy machine may take for what a process is to do.
const patient = 2 * time.Minute

// eventually waits for an outside process, with a limit.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patient); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("still not after %s: %s", patient, what)
		}
	}
}

// alive reads a process id from a file and says whether that process lives.
func alive(t *testing.T, file string) bool {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	p, err := (&machine{}).process(pid)
	return err == nil && !p.zombie
}

func TestRunPassesStreamsAndStatus(t *testing.T) {
	t.Parallel()
	modes(t, func(t *testing.T, h *Host) {
		spec := shell(t, `cat; echo err >&2; pwd; exit 7`)
		var out, errs bytes.Buffer
		spec.Stdin, spec.Stdout, spec.Stderr = strings.NewReader("in\x00put\r\n"), &out, &errs
		p := start(t, h, spec)
		exit := wait(t, p)
		end(t, p)
		if exit.Code != 7 || exit.Signal != 0 || exit.String() != "exit status 7" {
			t.Errorf("exit = %+v (%s), want status 7", exit, exit)
		}
		if want := "in\x00put\r\n" + spec.Dir + "\n"; out.String() != want || errs.String() != "err\n" {
			t.Errorf("stdout %q, want %q; stderr %q", out.String(), want, errs.String())
		}
		if left, err := h.Leftovers(t.Context()); err != nil || len(left) != 0 {
			t.Errorf("left over: %v, %v", left, err)
		}
		if _, err := os.Stat(h.machine.cgroupOf(spec.ID)); h.machine.cgroup != "" && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("cgroup is still there: %v", err)
		}
	})
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	h := openHost(t, t.TempDir(), true)
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	plain := write("plain", "x", 0o644)
	write("no-format", "\x01\x02", 0o755)
	write("no-interpreter", "#!/nowhere/sh\n", 0o755)
	for _, tt := range []struct {
		name   string
		change func(*Spec)
		want   error
	}{
		{"sandbox", func(s *Spec) { s.Level = LevelSandbox }, ErrLevelNotBuilt},
		{"container", func(s *Spec) { s.Level = LevelContainer }, ErrLevelNotBuilt},
		{"unknown level", func(s *Spec) { s.Level = "jail" }, ErrInvalid},
		{"no program", func(s *Spec) { s.Argv = nil }, ErrInvalid},
		{"NUL in argument", func(s *Spec) { s.Argv = []string{"sh", "a\x00b"} }, ErrInvalid},
		{"NUL in environment", func(s *Spec) { s.Env = append(s.Env, "A=\x00") }, ErrInvalid},
		{"bad environment", func(s *Spec) { s.Env = append(s.Env, "A") }, ErrInvalid},
		{"empty id", func(s *Spec) { s.ID = "" }, ErrInvalid},
		{"path as id", func(s *Spec) { s.ID = "../x" }, ErrInvalid},
		{"relative directory", func(s *Spec) { s.Dir = "x" }, ErrInvalid},
		{"missing directory", func(s *Spec) { s.Dir = filepath.Join(dir, "gone") }, ErrNoDirectory},
		{"file as directory", func(s *Spec) { s.Dir = plain }, ErrNoDirectory},
		{"missing program", func(s *Spec) { s.Argv = []string{"no-such-program-here"} }, ErrNoProgram},
		{"missing path", func(s *Spec) { s.Argv = []string{"./gone"} }, ErrNoProgram},
		{"no PATH", func(s *Spec) { s.Env = nil }, ErrNoProgram},
		{"program of the workspace by PATH", func(s *Spec) { s.Env = []string{"PATH=."}; s.Argv = []string{"no-interpreter"} }, ErrNoProgram},
		{"missing interpreter", func(s *Spec) { s.Argv = []string{"./no-interpreter"} }, ErrNoProgram},
		{"not executable", func(s *Spec) { s.Argv = []string{plain} }, ErrNotExecutable},
		{"directory as program", func(s *Spec) { s.Argv = []string{dir} }, ErrNotExecutable},
		{"no program format", func(s *Spec) { s.Argv = []string{"./no-format"} }, ErrNotExecutable},
		{"huge argument", func(s *Spec) { s.Argv = append(s.Argv, strings.Repeat("x", 200<<10)) }, ErrTooLarge},
		{"huge variable", func(s *Spec) { s.Env = append(s.Env, "BIG="+strings.Repeat("x", 200<<10)) }, ErrTooLarge},
	} {
		t.Run(tt.name, func(t *testing.T) {
			spec := shell(t, "exit 0")
			spec.Dir = dir
			tt.change(&spec)
			p, err := h.Start(t.Context(), spec)
			if err == nil {
				end(t, p)
			}
			if !errors.Is(err, tt.want) {
				t.Fatalf("err = %v, want %v", err, tt.want)
			}
			if left, err := h.Leftovers(t.Context()); err != nil || len(left) != 0 {
				t.Errorf("left over: %v, %v", left, err)
			}
		})
	}
}

func TestErrTooLargeNamesTheVariableNotItsValue(t *testing.T) {
	t.Parallel()
	spec := shell(t, "exit 0")
	spec.Env = append(spec.Env, "TOKEN="+strings.Repeat("s3cret", 40<<10))
	_, err := openHost(t, t.TempDir(), true).Start(t.Context(), spec)
	if err == nil || !strings.Contains(err.Error(), "TOKEN") || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("err = %.200v", err)
	}
}

func TestCancelledContextStartsNothing(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("no more")
	cancel(cause)
	if _, err := openHost(t, t.TempDir(), true).Start(ctx, shell(t, "exit 0")); !errors.Is(err, cause) {
		t.Errorf("err = %v, want the cause", err)
	}
}

func TestOneRunPerID(t *testing.T) {
	t.Parallel()
	modes(t, func(t *testing.T, h *Host) {
		spec := shell(t, "sleep 60")
		p := start(t, h, spec)
		if _, err := h.Start(t.Context(), spec); !errors.Is(err, ErrInvalid) {
			t.Errorf("second start: err = %v, want ErrInvalid", err)
		}
		if ended := end(t, p); ended.Killed < 1 {
			t.Errorf("killed %d, want the first run's processes", ended.Killed)
		}
	})
}

func TestNoTerminalAndInputAtEnd(t *testing.T) {
	t.Parallel()
	h := openHost(t, t.TempDir(), true)
	var out bytes.Buffer
	spec := shell(t, `cat; (echo x >/dev/tty) 2>/dev/null && echo terminal; ps -o sid= -p $$ | grep -qw $$ && echo leader`)
	spec.Stdout = &out
	p := start(t, h, spec)
	wait(t, p)
	end(t, p)
	if out.String() != "leader\n" {
		t.Errorf("output %q, want a session leader without terminal and with input at its end", out.String())
	}
}

func TestEnvironmentIsExactlyWhatWasGiven(t *testing.T) {
	t.Parallel()
	h := openHost(t, t.TempDir(), true)
	var out bytes.Buffer
	spec := shell(t, "")
	spec.Argv = []string{"env"}
	spec.Env = append(spec.Env, Marker+"=somebody-else", "A=1")
	spec.Stdout = &out
	p := start(t, h, spec)
	wait(t, p)
	end(t, p)
	want := fmt.Sprintf("PATH=%s\nA=1\n%s=%s\n", os.Getenv("PATH"), Marker, spec.ID)
	if out.String() != want {
		t.Errorf("environment %q, want %q", out.String(), want)
	}
}

func TestEndLeavesNoDaemon(t *testing.T) {
	t.Parallel()
	modes(t, func(t *testing.T, h *Host) {
		spec := shell(t, daemon(false)+"sleep 60")
		p := start(t, h, spec)
		file := filepath.Join(spec.Dir, "daemon")
		eventually(t, "daemon runs", func() bool { _, err := os.Stat(file); return err == nil })
		p.Stop(StopStep{Signal: syscall.SIGTERM, Group: true, Grace: patient})
		if !alive(t, file) {
			t.Fatal("the daemon did not survive the polite stop: the test proves nothing")
		}
		ended := end(t, p)
		if alive(t, file) || ended.Killed < 1 {
			t.Errorf("daemon alive: %v; killed %d", alive(t, file), ended.Killed)
		}
		if again := end(t, p); again != ended {
			t.Errorf("second End = %+v, first %+v", again, ended)
		}
	})
}

func TestEndLeavesNoDaemonWithoutEnvironment(t *testing.T) {
	t.Parallel()
	h := openHost(t, t.TempDir(), false)
	spec := shell(t, daemon(true))
	p := start(t, h, spec)
	wait(t, p)
	file := filepath.Join(spec.Dir, "daemon")
	if !alive(t, file) {
		t.Fatal("no daemon: the test proves nothing")
	}
	end(t, p)
	if alive(t, file) {
		t.Error("daemon is alive")
	}
}

func TestCgroupsTheRunMadeAreRemoved(t *testing.T) {
	t.Parallel()
	h := openHost(t, t.TempDir(), false)
	spec := shell(t, `mkdir -p "$GROUP/a/b" && echo $$ >"$GROUP/a/b/cgroup.procs" && sleep 60`)
	spec.Env = append(spec.Env, "GROUP="+h.machine.cgroupOf(spec.ID))
	p := start(t, h, spec)
	inner := filepath.Join(h.machine.cgroupOf(spec.ID), "a/b/cgroup.procs")
	eventually(t, "the run moved", func() bool { data, _ := os.ReadFile(inner); return len(data) > 0 })
	end(t, p)
	if _, err := os.Stat(h.machine.cgroupOf(spec.ID)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("cgroup is still there: %v", err)
	}
}

// An orphan outside the cgroup is what a container engine leaves.
func TestEndFindsAnOrphanOutsideTheCgroup(t *testing.T) {
	t.Parallel()
	h := openHost(t, t.TempDir(), false)
	spec := shell(t, `echo $$ >"$OUTSIDE/cgroup.procs"; `+daemon(false))
	spec.Env = append(spec.Env, "OUTSIDE="+h.machine.cgroup)
	p := start(t, h, spec)
	wait(t, p)
	end(t, p)
	if alive(t, filepath.Join(spec.Dir, "daemon")) {
		t.Error("daemon is alive")
	}
}

func TestOrphanHoldingThePipe(t *testing.T) {
	t.Parallel()
	modes(t, func(t *testing.T, h *Host) {
		var out bytes.Buffer
		spec := shell(t, `setsid sleep 3600 & sh -c 'echo $$ >late; sleep 0.1; echo late' & while ! test -s late; do sleep 0.01; done; echo done`)
		spec.Stdout = &out
		begun := time.Now()
		p := start(t, h, spec)
		exit := wait(t, p)
		if took := time.Since(begun); exit.Code != 0 || took > patient {
			t.Errorf("exit %v after %v", exit, took)
		}
		eventually(t, "the other child has ended", func() bool { return !alive(t, filepath.Join(spec.Dir, "late")) })
		ended := end(t, p)
		if said := strings.Fields(out.String()); !slices.Contains(said, "done") || !slices.Contains(said, "late") || len(said) != 2 || ended.Killed != 1 {
			t.Errorf("output %q, killed %d", out.String(), ended.Killed)
		}
	})
}

func TestProgramThatNeverReads(t *testing.T) {
	t.Parallel()
	h := openHost(t, t.TempDir(), true)
	for _, text := range []string{"exit 0", "exec <&-; sleep 0.1", "setsid sleep 3600 & exit 0"} {
		spec := shell(t, text)
		spec.Stdin = bytes.NewReader(make([]byte, 2<<20))
		p := start(t, h, spec)
		if exit := wait(t, p); exit.Code != 0 {
			t.Errorf("%s: exit %v", text, exit)
		}
		end(t, p)
	}
}

func TestEndClosesAReaderThatWaits(t *testing.T) {
	t.Parallel()
	h := openHost(t, t.TempDir(), true)
	spec := shell(t, "exit 0")
	r, w := io.Pipe()
	defer func() { _ = w.Close() }() // never fails
	spec.Stdin = r
	p := start(t, h, spec)
	wait(t, p)
	end(t, p) // would hang
}

func TestStopSteps(t *testing.T) {
	t.Parallel()
	h := openHost(t, t.TempDir(), true)
	var out bytes.Buffer
	spec := shell(t, `trap 'echo int' INT; trap 'echo term; exit 3' TERM; echo >ready; while :; do sleep 0.05; done`)
	spec.Stdout = &out
	p := start(t, h, spec)
	eventually(t, "traps are set", func() bool { _, err := os.Stat(filepath.Join(spec.Dir, "ready")); return err == nil })
	p.Stop(StopStep{Signal: syscall.SIGINT, Grace: 300 * time.Millisecond}, StopStep{Signal: syscall.SIGTERM, Grace: patient})
	exit := wait(t, p)
	end(t, p)
	if exit.Code != 3 || out.String() != "int\nterm\n" {
		t.Errorf("exit %v, output %q", exit, out.String())
	}
}

func TestSignalledExit(t *testing.T) {
	t.Parallel()
	h := openHost(t, t.TempDir(), true)
	p := start(t, h, shell(t, "kill -9 $$"))
	exit := wait(t, p)
	end(t, p)
	if exit.Code != -1 || exit.Signal != syscall.SIGKILL {
		t.Errorf("exit %+v", exit)
	}
}

func TestManyRunsAtOnce(t *testing.T) {
	t.Parallel()
	modes(t, func(t *testing.T, h *Host) {
		var group sync.WaitGroup
		for i := range 20 {
			spec := shell(t, `setsid sleep 3600 & echo $$; exit $(($N % 5))`)
			spec.ID = fmt.Sprintf("%s-%d", spec.ID, i)
			spec.Env = append(spec.Env, fmt.Sprintf("N=%d", i))
			var out bytes.Buffer
			spec.Stdout, spec.OutputGrace = &out, time.Millisecond
			p := start(t, h, spec)
			group.Go(func() {
				exit, err := p.Wait(t.Context())
				ended, endErr := p.End(t.Context())
				want := fmt.Sprintf("%d\n", p.PID())
				if err != nil || endErr != nil || exit.Code != i%5 || ended.Killed != 1 || out.String() != want {
					t.Errorf("run %d: %v %v %v %+v %q", i, err, endErr, exit, ended, out.String())
				}
			})
		}
		group.Wait()
	})
}

func TestProbeIsHonest(t *testing.T) {
	t.Parallel()
	reports := openHost(t, t.TempDir(), true).Probe(t.Context())
	if len(reports) != 3 || !reports[0].Usable || reports[1].Usable || reports[2].Usable {
		t.Fatalf("reports %+v", reports)
	}
	if gaps := strings.Join(reports[0].Gaps, "\n"); !strings.Contains(gaps, "may survive") {
		t.Errorf("without cgroups the gap is not named: %s", gaps)
	}
	if reports[1].Reason == "" || reports[2].Reason == "" {
		t.Error("unusable without a reason")
	}
}

// A program that is just being written is started when that is over.
func TestProgramBeingWritten(t *testing.T) {
	t.Parallel()
	modes(t, func(t *testing.T, h *Host) {
		path := filepath.Join(t.TempDir(), "program")
		file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o700) //nolint:gosec // a program
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.WriteString("#!/bin/sh\nexit 4\n"); err != nil {
			t.Fatal(err)
		}
		closed := time.AfterFunc(50*time.Millisecond, func() { _ = file.Close() })
		defer closed.Stop()
		spec := shell(t, "")
		spec.Argv = []string{path}
		p := start(t, h, spec)
		if exit := wait(t, p); exit.Code != 4 {
			t.Errorf("exit %v", exit)
		}
		end(t, p)
	})
}

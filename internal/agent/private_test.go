package agent

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claudomator/claudomator/internal/sandbox"
)

func machineRunner(t *testing.T, environ ...string) *Runner {
	t.Helper()
	host, err := sandbox.Open(sandbox.Options{StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	return NewRunner(RunnerOptions{Host: host, Environ: append(os.Environ(), environ...), Private: filepath.Join(t.TempDir(), "private"), Now: time.Now})
}

// What belongs to a run alone can be read by nobody else and is gone with the
// run, however it ends.
func TestPrivateFilesGoWithTheRun(t *testing.T) {
	t.Parallel()
	r := machineRunner(t)
	for _, tt := range []struct {
		name, text string
		limits     Limits
		fails      error
	}{
		{"success", `test "$(stat -c %a "$F")" = 600 && test "$(stat -c %a "${F%/*}")" = 700 && cat "$F"`, Limits{}, nil},
		{"killed", `kill -9 $$`, Limits{}, nil},
		{"late", `trap "" TERM; sleep 3600`, Limits{Wall: 100 * time.Millisecond}, nil},
		{"never started", ``, Limits{}, errors.New("no")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var file string
			result, err := r.Run(t.Context(), testJob(t, tt.limits), SinkFunc(func(Event) {}), func(s *Session) (Program, error) {
				dir, err := s.Private()
				if err != nil {
					t.Fatal(err)
				}
				file = filepath.Join(dir, "token")
				if err := os.WriteFile(file, []byte("secret\n"), 0o600); err != nil {
					t.Fatal(err)
				}
				return Program{Argv: []string{"sh", "-c", tt.text}, Env: []string{"F=" + file}, ExitReports: true}, tt.fails
			})
			if !errors.Is(err, tt.fails) || tt.name == "success" && (result.Outcome != Success || result.Tail != "secret\n") {
				t.Errorf("%+v, %v", result, err)
			}
			if _, err := os.Stat(filepath.Dir(file)); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the folder is still there: %v", err)
			}
		})
	}
}

func TestClearPrivate(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "private")
	if err := os.MkdirAll(filepath.Join(root, "x1"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "x1/token"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := ClearPrivate(root); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(root); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("still there: %v", err)
	}
}

// Work that goes on behind the agent's back is ended, and whoever reviews the
// result is told; as of a success that the agent itself takes back.
func TestBackgroundWorkIsAWarning(t *testing.T) {
	t.Parallel()
	leaves, stays := Limits{Linger: time.Minute}, Limits{Linger: 100 * time.Millisecond, StopGrace: time.Minute}
	for _, tt := range []struct {
		name, text string
		limits     Limits
		warnings   int
	}{
		{"alone", `echo '{"End":"success"}'`, leaves, 0},
		{"job left", `setsid sleep 3600 & echo '{"End":"success"}'`, leaves, 1},
		{"success then failure", `echo '{"End":"success"}'; echo '{"End":"failure","Error":"no"}'; exit 1`, leaves, 1},
		{"failure when stopped", `trap 'echo "{\"End\":\"failure\"}"; exit 1' TERM; echo '{"End":"success"}'; while :; do sleep 0.05; done`, stays, 0},
		{"stopped by us", `setsid sleep 3600 & echo '{"End":"success"}'; sleep 3600`, stays, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			result, events := speak(t, tt.limits, tt.text)
			if result.Outcome != Success || len(result.Warnings) != tt.warnings {
				t.Errorf("%s, %q", result.Outcome, result.Warnings)
			}
			said := 0
			for _, e := range events {
				if e.Stream == Notice && (strings.Contains(e.Text, "still running") || strings.Contains(e.Text, "after its success")) {
					said++
				}
			}
			if said != tt.warnings {
				t.Errorf("%d notices", said)
			}
		})
	}
}

// A conversation that is not there any more counts only when nothing came of
// the run.
func TestNoResume(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text string
		want bool
	}{{`exit 1`, true}, {`echo '{"End":"failure"}'`, true}, {`echo '{"End":"success"}'`, false}} {
		result, _ := runProgram(t, Limits{}, func(s *Session) (Program, error) {
			s.NoResume()
			return Program{Argv: []string{"sh", "-c", tt.text}, Line: readProtocol(s)}, nil
		})
		if result.NoResume != tt.want {
			t.Errorf("%s: %v", tt.text, result.NoResume)
		}
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	bin, calls := t.TempDir(), filepath.Join(t.TempDir(), "calls")
	r := machineRunner(t, "PATH="+bin+":"+os.Getenv("PATH"))
	program := func(text string, at time.Time) {
		path := filepath.Join(bin, "thing")
		if err := os.WriteFile(path, []byte("#!/bin/sh\necho called >>"+calls+"\n"+text), 0o700); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := r.Find(t.Context(), []string{"thing"}, "--version"); !errors.Is(err, sandbox.ErrNoProgram) {
		t.Errorf("missing: %v", err)
	}
	program(`echo "thing $1 1.0"; echo more`, time.Unix(1, 0))
	for range 2 {
		path, text, err := r.Inheriting("X").Find(t.Context(), []string{"thing"}, "--version")
		if path != filepath.Join(bin, "thing") || text != "thing --version 1.0" || err != nil {
			t.Errorf("%q %q %v", path, text, err)
		}
	}
	program(`echo broken >&2; exit 3`, time.Unix(2, 0))
	if _, _, err := r.Find(t.Context(), []string{"thing"}, "--version"); err == nil || !strings.Contains(err.Error(), "exit status 3: broken") {
		t.Errorf("broken: %v", err)
	}
	if path, text, err := r.Find(t.Context(), []string{"thing"}); path == "" || text != "" || err != nil {
		t.Errorf("not asked: %q %q %v", path, text, err)
	}
	if text, _ := os.ReadFile(calls); string(text) != "called\ncalled\n" {
		t.Errorf("calls: %q", text)
	}
}

// TestRunnersAskAtOnce: two runners of one machine ask the same program for its
// version at the same moment; both get the answer.
func TestRunnersAskAtOnce(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	// Neither answers before both run.
	text := "#!/bin/sh\ntouch " + bin + "/$$.runs\nuntil test $(ls " + bin + "/*.runs | wc -l) -ge 2; do sleep 0.01; done\necho 1.0\n"
	if err := os.WriteFile(filepath.Join(bin, "thing"), []byte(text), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	var asked sync.WaitGroup
	for range 2 {
		r := machineRunner(t, "PATH="+bin+":"+os.Getenv("PATH"))
		asked.Go(func() {
			if _, version, err := r.Find(t.Context(), []string{"thing"}, "--version"); version != "1.0" || err != nil {
				t.Errorf("%q %v", version, err)
			}
		})
	}
	asked.Wait()
}

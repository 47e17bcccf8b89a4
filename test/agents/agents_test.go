// The tests of this folder run the real agent programs, headless, against a
// scripted model: through the real binary, as tasks of a real repository. They
// show that what the adapters take for granted is so, for the pinned versions:
//
//   - work is done, reported with the run's tools, and lands
//   - a question parks the task, and the answer goes on in the same conversation
//   - what a provider does (429, 500, spent limits, silence, not being there) has
//     the outcome that docs/guides/agents.md promises
//   - a cancel leaves no process, a run leaves no file of its own, and its token
//     is in no command line, log or transcript
//
// ./install puts the programs into a cache; without them the tests are skipped,
// in CI they fail. Each test has a home, a server and a model server of its own:
// the user's own login is never touched. A program is a row of programs.
package agents_test

import (
	"flag"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claudomator/claudomator/test/binary"
)

// TestMain lets four run at once: they wait for processes much of the time.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "4"); err != nil { // the command line wins: it is parsed later
		panic(err)
	}
	os.Exit(m.Run())
}

// TestAgents is all of it, with one binary: every case with every program.
func TestAgents(t *testing.T) {
	t.Parallel()
	folder := installed(t)
	bin := binary.Build(t)
	for name, p := range programs() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(filepath.Join(folder, name)); err != nil {
				t.Fatal(err)
			}
			all := cases()
			maps.Copy(all, p.cases)
			for name, test := range all {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					test(newWorld(t, bin, folder, p))
				})
			}
		})
	}
}

// installed is the folder of the programs: as CLAUDOMATOR_AGENTS says, else where
// ./install puts them.
func installed(t *testing.T) string {
	t.Helper()
	folder := os.Getenv("CLAUDOMATOR_AGENTS")
	if folder == "" {
		cache := os.Getenv("XDG_CACHE_HOME")
		if cache == "" {
			home, err := os.UserHomeDir()
			if err != nil {
				t.Fatal(err)
			}
			cache = filepath.Join(home, ".cache")
		}
		folder = filepath.Join(cache, "claudomator-tools", "agents-"+lock(t), "node_modules", ".bin")
	}
	if _, err := os.Stat(folder); err != nil {
		if os.Getenv("CLAUDOMATOR_CI") != "" {
			t.Fatalf("the agent programs are not installed, and in CI nothing may be skipped: %v", err)
		}
		t.Skip("the agent programs are not installed: make test-agents installs them, with npm")
	}
	return folder
}

func (w *world) explain() {
	if !w.Failed() {
		return
	}
	log, _ := os.ReadFile(w.path("server.log"))
	w.Logf("the server's log ends with:\n%s", log[max(0, len(log)-3000):])
	for _, r := range w.model.Requests() {
		w.Logf("request %s: script %s turn %d, called %s, fault %q, miss %q, result %.200q", r.Path, strings.Join(r.Scripts, ">"), r.Turn, strings.Join(r.Called, " "), r.Fault, r.Miss, r.Result)
	}
	transcripts, _ := filepath.Glob(w.path("data/transcripts/*"))
	for _, path := range transcripts {
		text, _ := os.ReadFile(path)
		w.Logf("%s ends with:\n%s", filepath.Base(path), text[max(0, len(text)-4000):])
	}
}

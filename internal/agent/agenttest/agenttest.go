package agenttest

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/claudomator/claudomator/internal/agent"
	"github.com/claudomator/claudomator/internal/sandbox"
)

// Harness makes an agent do what the suite wants.
type Harness struct {
	Agent agent.Agent
	// Shell makes the job's program run a shell text in the job's directory.
	// The text reads the prompt from its standard input; what it prints is
	// output of the agent; status 0 is success and any other failure.
	Shell func(t *testing.T, job *agent.Job, text string)
	// Unicode: the prompt travels as Unicode text, so that bytes that are none arrive
	// as U+FFFD, each.
	Unicode bool
	// Missing makes the job's program one that is not installed.
	Missing func(t *testing.T, job *agent.Job)
}

// Factory makes a harness whose agent runs on the given runner.
type Factory func(t *testing.T, runner *agent.Runner) Harness

// Run holds an agent to the promises of package agent.
func Run(t *testing.T, factory Factory) {
	t.Helper()
	for _, test := range []struct {
		name string
		run  func(*testing.T, *fixture)
	}{
		{"Describe", describe},
		{"Success", success},
		{"Failure", failure},
		{"EndedBySignal", endedBySignal},
		{"MissingProgram", missingProgram},
		{"MissingDirectory", missingDirectory},
		{"AlreadyCancelled", alreadyCancelled},
		{"CancelCauses", cancelCauses},
		{"CancelLeavesNoDaemon", cancelLeavesNoDaemon},
		{"OrphanHoldsThePipe", orphanHoldsThePipe},
		{"WallLimit", wallLimit},
		{"SilenceLimit", silenceLimit},
		{"OutputIsNotSilence", outputIsNotSilence},
		{"PromptByteForByte", promptByteForByte},
		{"PromptNotRead", promptNotRead},
		{"NoTerminal", noTerminal},
		{"Environment", environment},
		{"HugeLine", hugeLine},
		{"BadText", badText},
		{"Flood", flood},
		{"FloodOnStderr", floodOnStderr},
		{"ManyAtOnce", manyAtOnce},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(t, newFixture(t, factory))
		})
	}
}

// fixture is one test's agent and place to work.
type fixture struct {
	Harness
	host *sandbox.Host
	id   string
	runs int
}

// poison is an environment as a server might have it.
func poison() []string {
	return append(os.Environ(),
		"CLAUDECODE=1", "CLAUDE_CODE_ENTRYPOINT=cli", "ANTHROPIC_API_KEY=sk-x", "CLAUDOMATOR_TOKEN=server-token",
		"DATABASE_URL=postgres://u:secret@h/d", "SSH_AUTH_SOCK=/tmp/agent", "GIT_DIR=/elsewhere",
		"LC_TIME=C", "LANG=C.UTF-8", "TERM=dumb")
}

func newFixture(t *testing.T, factory Factory) *fixture {
	t.Helper()
	host, err := sandbox.Open(sandbox.Options{StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if left, err := host.Leftovers(t.Context()); err != nil || len(left) > 0 {
			t.Errorf("runs not cleaned up: %v, %v", left, err)
		}
	})
	runner := agent.NewRunner(agent.RunnerOptions{
		Host: host, Environ: poison(), Inherit: []string{"CLAUDOMATOR_TOKEN"}, Private: filepath.Join(t.TempDir(), "private"), Now: time.Now,
	})
	id := strings.NewReplacer("/", "-", "#", "-").Replace(t.Name())
	return &fixture{Harness: factory(t, runner), host: host, id: id + "-" + rand.Text()}
}

// patient is how long a busy machine may take for what a program is to do.
const patient = 8 * time.Minute

// job prepares a run of a shell text.
func (f *fixture) job(t *testing.T, text string) agent.Job {
	t.Helper()
	f.runs++
	job := agent.Job{
		ID: fmt.Sprintf("%s-%d", f.id, f.runs), TaskID: "task-1", Dir: t.TempDir(),
		Prompt: "do it\n",
		Limits: agent.Limits{Wall: patient, Silence: patient, StopGrace: 200 * time.Millisecond, Linger: time.Minute}, // on a busy machine, too
	}
	if text != "" {
		f.Shell(t, &job, text)
	}
	return job
}

// transcript collects events as the lines they become, and holds the suite's
// view of each: valid, one line, never two at a time.
type transcript struct {
	t      *testing.T
	mu     sync.Mutex
	over   bool
	events []agent.Event
	bytes  int64
}

func (tr *transcript) Emit(e agent.Event) {
	if !tr.mu.TryLock() {
		tr.t.Error("two events at once")
		tr.mu.Lock()
	}
	defer tr.mu.Unlock()
	line, err := json.Marshal(e)
	if err != nil || !utf8.Valid(line) || strings.ContainsAny(string(line), "\n\x00\x1b") {
		tr.t.Errorf("event is no line of JSON: %.200q, %v", line, err)
	}
	if tr.over {
		tr.t.Errorf("event after the run: %.200s", line)
	}
	if e.At.IsZero() || e.Kind == "" {
		tr.t.Errorf("event without time or kind: %.200s", line)
	}
	if len(e.Text) > 2*agent.MaxLine {
		tr.t.Errorf("event of %d bytes", len(e.Text))
	}
	tr.bytes += int64(len(line))
	tr.events = append(tr.events, e)
}

// has says whether an event carries exactly this line of text.
func (tr *transcript) has(text string) bool {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	for _, e := range tr.events {
		for line := range strings.Lines(e.Text) {
			if strings.TrimSuffix(line, "\n") == text {
				return true
			}
		}
	}
	return false
}

func (tr *transcript) end() {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.over = true
}

// alive says whether the process whose id is in a file lives.
func alive(t *testing.T, file string) bool {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("the program did not get as far as it should: %v", err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil {
		return !strings.Contains(string(stat), ") Z ")
	}
	return syscall.Kill(pid, 0) == nil
}

// eventually waits for a file that a program of the run makes.
func eventually(t *testing.T, path string) {
	t.Helper()
	for deadline := time.Now().Add(patient / 4); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(path); err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("still not there after %s: %s", patient/4, filepath.Base(path))
			return
		}
	}
}

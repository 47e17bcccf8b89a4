package acp_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/claudomator/claudomator/internal/agent"
	"github.com/claudomator/claudomator/internal/agent/acp"
	"github.com/claudomator/claudomator/internal/agent/agenttest"
	"github.com/claudomator/claudomator/internal/agent/scripted"
	"github.com/claudomator/claudomator/internal/sandbox"
)

// TestMain lets the test's own binary be the programs that the tests run.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 {
		switch os.Args[1] {
		case "scripted-agent":
			os.Exit(scripted.Run(context.Background(), scripted.Options{
				Args: os.Args[2:], In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Environ: os.Environ(), Now: time.Now,
				Call: func(context.Context, string, string, string, json.RawMessage) (json.RawMessage, error) {
					return json.RawMessage(`{"task":{"attempt_no":1}}`), nil
				},
			}))
		case "replay":
			os.Exit(replay(os.Args[2:]))
		}
	}
	os.Exit(m.Run())
}

// promptly makes a program with the race detector leave at once, not after a second.
const promptly = "GORACE=atexit_sleep_ms=0"

func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestConformance(t *testing.T) {
	t.Parallel()
	agenttest.Run(t, func(t *testing.T, runner *agent.Runner) agenttest.Harness {
		return agenttest.Harness{
			Agent:   acp.New(runner, "acp", nil),
			Unicode: true,
			Shell: func(t *testing.T, job *agent.Job, text string) {
				command, err := json.Marshal(text)
				if err != nil {
					t.Fatal(err)
				}
				script := write(t, fmt.Sprintf("forget: true\nsteps: [{run: %s, raw: true}]", command))
				job.Command = []string{self(t), "scripted-agent", script}
				job.Env = append(job.Env, promptly)
			},
			Missing: func(_ *testing.T, job *agent.Job) { job.Command = []string{"no-such-program-here"} },
		}
	})
}

// patient is limits that a program which leaves by itself does not meet, on a busy
// machine neither.
func patient() agent.Limits {
	return agent.Limits{Wall: 8 * time.Minute, Silence: 8 * time.Minute, StopGrace: time.Second, Linger: time.Minute}
}

// run does a job with the scripted agent, or with job.Command.
func run(t *testing.T, script string, job agent.Job) (agent.Result, []agent.Event) {
	t.Helper()
	return runIn(t.Context(), t, script, job)
}

func runIn(ctx context.Context, t *testing.T, script string, job agent.Job) (agent.Result, []agent.Event) {
	t.Helper()
	host, err := sandbox.Open(sandbox.Options{StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	runner := agent.NewRunner(agent.RunnerOptions{Host: host, Environ: os.Environ(), Now: time.Now})
	if script != "" {
		job.Command = []string{self(t), "scripted-agent", write(t, script)}
	}
	job.ID = strings.NewReplacer("/", "-", "#", "-", ",", "", "_", "-").Replace(t.Name()) + "-" + rand.Text()
	job.Env = append(job.Env, promptly)
	if job.Dir == "" {
		job.Dir = t.TempDir()
	}
	if job.Limits.Wall == 0 {
		job.Limits = patient()
	}
	var events []agent.Event
	result, err := acp.New(runner, "acp", nil).Run(ctx, job, agent.SinkFunc(func(e agent.Event) { events = append(events, e) }))
	if err != nil {
		t.Fatal(err)
	}
	if left, err := host.Leftovers(context.WithoutCancel(ctx)); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	return result, events
}

package command_test

import (
	"crypto/rand"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudomator/claudomator/internal/agent"
	"github.com/claudomator/claudomator/internal/agent/agenttest"
	"github.com/claudomator/claudomator/internal/agent/command"
	"github.com/claudomator/claudomator/internal/sandbox"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	agenttest.Run(t, func(t *testing.T, runner *agent.Runner) agenttest.Harness {
		return agenttest.Harness{
			Agent: command.New(runner),
			Shell: func(_ *testing.T, job *agent.Job, text string) { job.Command = []string{"sh", "-c", text} },
			Missing: func(_ *testing.T, job *agent.Job) {
				job.Command = []string{"no-such-program-here"}
			},
		}
	})
}

func run(t *testing.T, job agent.Job) (agent.Result, []agent.Event) {
	t.Helper()
	host, err := sandbox.Open(sandbox.Options{StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	job.ID = strings.ReplaceAll(t.Name(), "/", "-") + "-" + rand.Text()
	job.Dir = t.TempDir()
	var events []agent.Event
	a := command.New(agent.NewRunner(agent.RunnerOptions{Host: host, Environ: os.Environ(), Now: time.Now}))
	result, err := a.Run(t.Context(), job, agent.SinkFunc(func(e agent.Event) { events = append(events, e) }))
	if err != nil {
		t.Fatal(err)
	}
	return result, events
}

func TestPromptIsTheScriptByDefault(t *testing.T) {
	t.Parallel()
	result, events := run(t, agent.Job{Prompt: "echo a\necho 'CLAUDOMATOR_BLOCKED:  no network'\nexit 4\n"})
	type line struct {
		Kind agent.Kind
		From agent.Stream
		Text string
	}
	var got []line
	for _, e := range events {
		got = append(got, line{e.Kind, e.Stream, e.Text})
	}
	want := []line{
		{agent.KindLog, agent.Stdout, "a"},
		{agent.KindLog, agent.Stdout, "CLAUDOMATOR_BLOCKED:  no network"},
		{agent.KindBlocker, agent.Stdout, "no network"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if result.Outcome != agent.Failed || result.Facts.Code != 4 || !strings.HasPrefix(result.Error, "exit status 4") || result.AgentFault {
		t.Errorf("result %+v", result)
	}
}

func TestTailIsTheLast4KB(t *testing.T) {
	t.Parallel()
	result, _ := run(t, agent.Job{Prompt: "yes € | head -c 100000; echo; echo because; exit 1"})
	if len(result.Tail) > 4<<10 || len(result.Tail) < 4<<10-8 || !strings.HasSuffix(result.Tail, "because\n") || strings.ContainsRune(result.Tail[:8], '\uFFFD') {
		t.Errorf("tail of %d bytes: %.10q … %q", len(result.Tail), result.Tail, result.Tail[max(0, len(result.Tail)-20):])
	}
}

package codex_test

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudomator/claudomator/internal/agent"
	"github.com/claudomator/claudomator/internal/agent/agenttest"
	"github.com/claudomator/claudomator/internal/agent/codex"
	"github.com/claudomator/claudomator/internal/sandbox"
)

// fake runs the shell text in its first argument as the model's work. As a
// model would, it opens the file that a long prompt is in. What the text prints
// is printed as it is, then Codex's report follows.
const fake = `#!/bin/sh
[ "$1" = --version ] && { echo codex-cli 0.0.1; exit; }
text=$1
told="Your instructions are too long for one message. They are in the file "
first=$(mktemp) # holds as much of the input as tells whether it names a file
head -c ${#told} >"$first"
if [ "$(tr -d '\0' <"$first")" = "${told% }" ] || [ "$(tr -d '\0' <"$first")" = "$told" ]; then
	rest=$(cat)
	rm -f "$first"
	sh -c "$text" <"${rest%% (*}"
else
	{ cat "$first" -; rm -f "$first"; } | sh -c "$text"
fi
status=$?
[ $status -gt 128 ] && kill -9 $$
echo
[ $status = 0 ] && { echo '{"type":"turn.completed","usage":{"input_tokens":1}}'; exit; }
echo '{"type":"turn.failed","error":{"message":"status '$status'"}}'
exit 1
`

func fakeCodex(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "codex")
	if err := os.WriteFile(path, []byte(fake), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestConformance(t *testing.T) {
	t.Parallel()
	agenttest.Run(t, func(t *testing.T, runner *agent.Runner) agenttest.Harness {
		program := fakeCodex(t)
		return agenttest.Harness{
			Agent: codex.New(runner, []string{program}),
			Shell: func(_ *testing.T, job *agent.Job, text string) { job.Command = []string{program, text} },
			Missing: func(_ *testing.T, job *agent.Job) {
				job.Command = []string{"no-such-codex-here"}
			},
		}
	})
}

// What Codex is started with: nothing secret, nothing of the task's words.
func TestCommandLine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := filepath.Join(dir, "codex")
	if err := os.WriteFile(program, []byte("#!/bin/sh\nfor a; do printf '%s\\n' \"$a\"; done >args\necho '"+strings.TrimSpace(completed)+"'\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	const asked = "01a22c9f-0000-7000-8000-000000000001"
	mcp := agent.Endpoint{URL: `http://127.0.0.1:1/mcp?"x"`, Token: "run-token"}
	settings := []string{"--json", "--dangerously-bypass-approvals-and-sandbox", "--skip-git-repo-check", "-c", "features.shell_snapshot=false"}
	tools := []string{"-c", `mcp_servers.claudomator.url="http://127.0.0.1:1/mcp?\"x\""`, "-c", `mcp_servers.claudomator.bearer_token_env_var="CLAUDOMATOR_MCP_TOKEN"`}
	for _, tt := range []struct {
		name     string
		job      agent.Job
		want     []string
		warnings int
	}{
		{"bare", agent.Job{}, slices.Concat([]string{"exec"}, settings, []string{"-"}), 0},
		{"tools", agent.Job{MCP: mcp}, slices.Concat([]string{"exec"}, settings, tools, []string{"-"}), 0},
		{"model", agent.Job{Model: "--help"}, slices.Concat([]string{"exec"}, settings, []string{"--model=--help", "-"}), 0},
		{"resumed", agent.Job{MCP: mcp, Model: "m", Resume: asked}, slices.Concat([]string{"exec", "resume"}, settings, tools, []string{"--model=m", "--", asked, "-"}), 0},
		{"not to be had", agent.Job{AllowedTools: []string{"Read"}, MaxTurns: 3}, slices.Concat([]string{"exec"}, settings, []string{"-"}), 2},
		{"program of the job", agent.Job{Command: []string{program, "--profile", "x"}}, slices.Concat([]string{"--profile", "x", "exec"}, settings, []string{"-"}), 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			job := tt.job
			job.ID = strings.ReplaceAll(t.Name(), "/", "-") + "-" + rand.Text()
			job.Dir, job.Prompt = t.TempDir(), "words of the task"
			result, err := codex.New(newRunner(t), []string{program}).Run(t.Context(), job, agent.SinkFunc(func(agent.Event) {}))
			if err != nil || result.Outcome != agent.Success || len(result.Warnings) != tt.warnings {
				t.Fatalf("%+v, %v", result, err)
			}
			got, err := os.ReadFile(filepath.Join(job.Dir, "args"))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.Join(tt.want, "\n")+"\n", string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	program := fakeCodex(t)
	a := codex.New(newRunner(t), []string{program})
	d, err := a.Describe(t.Context())
	want := agent.Description{Name: "codex", Version: "0.0.1", Path: program}
	if diff := cmp.Diff(want, d); diff != "" || err != nil || a.Installed() != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	a = codex.New(newRunner(t), []string{filepath.Join(t.TempDir(), "codex")})
	if _, err := a.Describe(t.Context()); !errors.Is(err, sandbox.ErrNoProgram) || !errors.Is(a.Installed(), sandbox.ErrNoProgram) {
		t.Errorf("%v, %v", err, a.Installed())
	}
}

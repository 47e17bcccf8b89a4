package codex

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/claudomator/claudomator/internal/agent"
	"github.com/claudomator/claudomator/internal/sandbox"
)

// promptLimit is how many characters Codex takes as one message.
const promptLimit = 1 << 20

// server names the run tools among Codex's MCP servers.
const server = "claudomator"

// Agent runs Codex.
type Agent struct {
	runner *agent.Runner
	argv   []string
}

var _ agent.Agent = (*Agent)(nil)

// New returns the agent. argv is the program and its first arguments; empty:
// the codex found in PATH.
func New(runner *agent.Runner, argv []string) *Agent {
	if len(argv) == 0 {
		argv = []string{"codex"}
	}
	return &Agent{runner: runner.Inheriting("CODEX_HOME"), argv: argv}
}

// Installed implements agent.Agent.
func (a *Agent) Installed() error {
	_, _, err := a.runner.Find(context.Background(), a.argv) //nolint:forbidigo // nothing is waited for
	return err                                               //nolint:wrapcheck // it says which program is missing
}

// Describe implements agent.Agent.
func (a *Agent) Describe(ctx context.Context) (agent.Description, error) {
	d := agent.Description{Name: "codex"}
	path, version, err := a.runner.Find(ctx, a.argv, "--version")
	if err != nil {
		return d, err
	}
	d.Path, d.Version = path, strings.TrimPrefix(version, "codex-cli ")
	return d, nil
}

// Run implements agent.Agent.
func (a *Agent) Run(ctx context.Context, job agent.Job, sink agent.Sink) (agent.Result, error) {
	return a.runner.Run(ctx, job, sink, func(s *agent.Session) (agent.Program, error) {
		prompt, err := deliver(s, job.Prompt)
		if err != nil {
			return agent.Program{}, err
		}
		s.Unenforced(job, "Codex")
		r := newReader(s, job, a.home(job))
		return agent.Program{
			Argv:  a.command(job),
			In:    strings.NewReader(prompt),
			Stop:  []sandbox.StopStep{{Signal: syscall.SIGINT, Group: true}},
			Line:  r.line,
			After: r.after,
		}, nil
	})
}

// command is the whole command line: no secret is in it.
func (a *Agent) command(job agent.Job) []string {
	argv := append([]string(nil), a.argv...)
	if len(job.Command) > 0 {
		argv = append([]string(nil), job.Command...)
	}
	argv = append(argv, "exec")
	if job.Resume != "" {
		argv = append(argv, "resume")
	}
	argv = append(argv,
		"--json", "--dangerously-bypass-approvals-and-sandbox", "--skip-git-repo-check",
		"-c", "features.shell_snapshot=false")
	if job.MCP.URL != "" {
		argv = append(argv,
			"-c", "mcp_servers."+server+".url="+quote(job.MCP.URL),
			"-c", "mcp_servers."+server+`.bearer_token_env_var="CLAUDOMATOR_MCP_TOKEN"`)
	}
	if job.Model != "" {
		argv = append(argv, "--model="+job.Model)
	}
	if job.Resume != "" {
		argv = append(argv, "--", job.Resume)
	}
	return append(argv, "-")
}

// quote writes a TOML string: JSON's escapes are among TOML's.
func quote(text string) string {
	data, _ := json.Marshal(text)
	return string(data)
}

// deliver is what goes to standard input: the prompt, or where it lies.
func deliver(s *agent.Session, prompt string) (string, error) {
	if utf8.ValidString(prompt) && (len(prompt) <= promptLimit || utf8.RuneCountInString(prompt) <= promptLimit) {
		return prompt, nil
	}
	dir, err := s.Private()
	if err != nil {
		return "", fmt.Errorf("deliver a prompt that Codex does not take on its input: %w", err)
	}
	file := filepath.Join(dir, "prompt.md")
	if err := os.WriteFile(file, []byte(prompt), 0o600); err != nil {
		return "", fmt.Errorf("deliver a prompt that Codex does not take on its input: %w", err)
	}
	return fmt.Sprintf("Your instructions are too long for one message. They are in the file %s (%d bytes). Read all of it, then do what it says.\n", file, len(prompt)), nil
}

// home is the folder that Codex keeps its conversations in, for this job;
// empty where there is none.
func (a *Agent) home(job agent.Job) string {
	if home := a.runner.Value(job, "CODEX_HOME"); home != "" {
		return home
	}
	if home := a.runner.Value(job, "HOME"); home != "" {
		return filepath.Join(home, ".codex")
	}
	return ""
}

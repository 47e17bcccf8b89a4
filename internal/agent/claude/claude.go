package claude

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/claudomator/claudomator/internal/agent"
	"github.com/claudomator/claudomator/internal/sandbox"
)

const (
	program = "claude"
	server  = "claudomator" // name of the run's tools, as "mcp__claudomator__ask_user"

	// oldest is the first version whose reports were seen to be understood. Version
	// 2.1.0 tells failures in words only, and obeys no list of allowed tools.
	oldest = "2.1.200"

	// retries of one request by the program itself. The server repeats whole
	// runs, visibly and with pauses; the program's own ten would multiply them.
	retries = 2
	// backgroundWait is how long work in the background may go on after the
	// program has said that it is done.
	backgroundWait = 5 * time.Minute
)

// Agent runs Claude Code.
type Agent struct {
	runner *agent.Runner
	argv   []string
	wait   time.Duration
}

var _ agent.Agent = (*Agent)(nil)

// New returns the agent. argv is the program and its first arguments; empty:
// "claude", as found in PATH.
func New(runner *agent.Runner, argv []string) *Agent {
	if len(argv) == 0 {
		argv = []string{program}
	}
	return &Agent{runner: runner.Inheriting("CLAUDE_CONFIG_DIR"), argv: argv, wait: backgroundWait}
}

// Installed implements agent.Agent.
func (a *Agent) Installed() error {
	_, _, err := a.runner.Find(context.Background(), a.argv) //nolint:forbidigo // nothing is waited for: file look-ups only
	return err
}

// Describe implements agent.Agent.
func (a *Agent) Describe(ctx context.Context) (agent.Description, error) {
	d := agent.Description{Name: "Claude Code"}
	path, text, err := a.runner.Find(ctx, a.argv, "--version")
	if err != nil {
		return d, err
	}
	version, name, _ := strings.Cut(text, " ")
	if !strings.Contains(name, "Claude Code") {
		return d, fmt.Errorf("%s is not Claude Code: asked for its version it says %q", path, text)
	}
	d.Path, d.Version = path, version
	if older(version, oldest) {
		return d, fmt.Errorf("%s is Claude Code %s: %s is the oldest that is understood; update it with \"claude update\"", path, version, oldest)
	}
	return d, nil
}

// Run implements agent.Agent.
func (a *Agent) Run(ctx context.Context, job agent.Job, sink agent.Sink) (agent.Result, error) {
	var r *reader
	defer func() { r.stopWaiting() }()
	return a.runner.Run(ctx, job, sink, func(s *agent.Session) (agent.Program, error) {
		r = newReader(s, job, a.wait)
		config, err := tools(s, job.MCP)
		if err != nil {
			return agent.Program{}, err
		}
		return agent.Program{
			Argv: a.arguments(job, config),
			Env:  environment(),
			In:   strings.NewReader(job.Prompt),
			// SIGINT makes it report what it has spent; SIGTERM does not.
			Stop:  []sandbox.StopStep{{Signal: syscall.SIGINT}},
			Line:  r.line,
			After: r.after,
		}, nil
	})
}

// arguments are the program with its options. A value that is not ours is given
// with "=", so that it is never taken for an option.
func (a *Agent) arguments(job agent.Job, config string) []string {
	argv := job.Command
	if len(argv) == 0 {
		argv = a.argv
	}
	argv = append(append([]string(nil), argv...), "-p", "--output-format", "stream-json", "--verbose", "--strict-mcp-config",
		// A repository's own settings could send requests and keys elsewhere, run
		// hooks, or forbid what the run needs. Its CLAUDE.md is read.
		"--setting-sources=user", "--add-dir="+job.Dir)
	if config != "" {
		argv = append(argv, "--mcp-config="+config)
	}
	if len(job.AllowedTools) == 0 {
		argv = append(argv, "--dangerously-skip-permissions")
	} else {
		argv = append(argv, "--permission-mode=dontAsk", "--allowedTools=mcp__"+server)
		for _, tool := range job.AllowedTools {
			argv = append(argv, "--allowedTools="+tool)
		}
	}
	if job.Model != "" {
		argv = append(argv, "--model="+job.Model)
	}
	if job.MaxTurns > 0 {
		argv = append(argv, "--max-turns="+strconv.Itoa(job.MaxTurns))
	}
	if job.Limits.BudgetUSD > 0 {
		// It stops between two requests; what it tells at the end would be too late.
		argv = append(argv, "--max-budget-usd="+strconv.FormatFloat(job.Limits.BudgetUSD, 'f', -1, 64))
	}
	if job.Resume != "" {
		argv = append(argv, "--resume="+job.Resume)
	}
	return argv
}

// older compares versions; one that is no list of numbers is not older.
func older(version, than string) bool {
	a, b := strings.Split(version, "."), strings.Split(than, ".")
	for i := range min(len(a), len(b)) {
		x, errX := strconv.Atoi(a[i])
		y, errY := strconv.Atoi(b[i])
		if errX != nil || errY != nil || x != y {
			return errX == nil && errY == nil && x < y
		}
	}
	return len(a) < len(b) && version != ""
}

// environment settles how the program behaves unattended.
func environment() []string {
	env := []string{
		"DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD=1",
		"CLAUDE_CODE_MAX_RETRIES=" + strconv.Itoa(retries),
		// Otherwise the run's tools are hidden until the model searches for them.
		"ENABLE_TOOL_SEARCH=false",
	}
	if os.Geteuid() == 0 {
		env = append(env, "IS_SANDBOX=1") // as root it refuses to allow everything without
	}
	return env
}

// tools writes the configuration of the run's tools into its private folder;
// empty where it has none. The token is not in it: the program fills it in from
// the run's environment.
func tools(s *agent.Session, mcp agent.Endpoint) (path string, err error) {
	if mcp.URL == "" {
		return "", nil
	}
	dir, err := s.Private()
	if err != nil {
		return "", err
	}
	config, err := json.Marshal(map[string]any{"mcpServers": map[string]any{server: map[string]any{
		"type": "http", "url": mcp.URL,
		"headers": map[string]string{"Authorization": "Bearer ${CLAUDOMATOR_MCP_TOKEN}"},
	}}})
	if err != nil {
		return "", fmt.Errorf("compose the configuration of the run's tools: %w", err)
	}
	path = filepath.Join(dir, "mcp.json")
	if err := os.WriteFile(path, config, 0o600); err != nil {
		return "", fmt.Errorf("write the configuration of the run's tools: %w", err)
	}
	return path, nil
}

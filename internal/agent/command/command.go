package command

import (
	"bytes"
	"context"
	"strings"

	"github.com/claudomator/claudomator/internal/agent"
)

// blockedPrefix begins a line with which an agent without tools reports a
// roadblock.
const blockedPrefix = "CLAUDOMATOR_BLOCKED:"

// Agent runs any program.
type Agent struct {
	runner *agent.Runner
	argv   []string
}

var _ agent.Agent = (*Agent)(nil)

// New returns the command agent; argv is what it runs where a job names no
// program, a shell if it is empty.
func New(runner *agent.Runner, argv ...string) *Agent {
	if len(argv) == 0 {
		argv = []string{"sh"}
	}
	return &Agent{runner: runner, argv: argv}
}

// Installed implements agent.Agent: the program is named by each job.
func (a *Agent) Installed() error { return nil }

// Describe knows nothing of the programs that will be named.
func (a *Agent) Describe(context.Context) (agent.Description, error) {
	return agent.Description{Name: "command"}, nil
}

// Run implements agent.Agent.
func (a *Agent) Run(ctx context.Context, job agent.Job, sink agent.Sink) (agent.Result, error) {
	return a.runner.Run(ctx, job, sink, func(s *agent.Session) (agent.Program, error) {
		argv := job.Command
		if len(argv) == 0 {
			argv = a.argv
		}
		return agent.Program{
			Argv:        argv,
			In:          strings.NewReader(job.Prompt),
			Line:        func(stream agent.Stream, line agent.Line) { read(s, stream, line) },
			ExitReports: true,
		}, nil
	})
}

func read(s *agent.Session, stream agent.Stream, line agent.Line) {
	s.LogLine(stream, line)
	if text, ok := bytes.CutPrefix(line.Text, []byte(blockedPrefix)); ok {
		s.Emit(agent.Event{Kind: agent.KindBlocker, Stream: stream, Text: strings.TrimSpace(string(text)), Cut: line.Cut})
	}
}

package acp

import (
	"context"
	"errors"
	"slices"

	"github.com/claudomator/claudomator/internal/agent"
)

var errNoProgram = errors.New("no program is given: set the command of this agent in the configuration, or of the task")

// Agent runs one ACP program.
type Agent struct {
	runner *agent.Runner
	name   string
	argv   []string
}

var _ agent.Agent = (*Agent)(nil)

// New returns an agent for the program argv; empty where each job names its own.
func New(runner *agent.Runner, name string, argv []string) *Agent {
	return &Agent{runner: runner, name: name, argv: slices.Clone(argv)}
}

// Installed implements agent.Agent.
func (a *Agent) Installed() error {
	_, err := a.Describe(context.Background()) //nolint:forbidigo // nothing is waited for: file look-ups only
	return err
}

// Describe says what every ACP program can, perhaps: only a conversation with it
// tells more.
func (a *Agent) Describe(ctx context.Context) (agent.Description, error) {
	d := agent.Description{Name: a.name}
	if len(a.argv) == 0 {
		return d, nil
	}
	var err error
	d.Path, _, err = a.runner.Find(ctx, a.argv)
	return d, err
}

// Run implements agent.Agent.
func (a *Agent) Run(ctx context.Context, job agent.Job, sink agent.Sink) (agent.Result, error) {
	return a.runner.Run(ctx, job, sink, func(s *agent.Session) (agent.Program, error) {
		argv := job.Command
		if len(argv) == 0 {
			argv = a.argv
		}
		if len(argv) == 0 {
			return agent.Program{}, errNoProgram
		}
		t := newTalk(s, job)
		lines := agent.NewLines(maxMessage, t.line)
		t.start()
		return agent.Program{
			Argv: argv, In: t.out, Stdout: lines, Ask: t.cancel,
			After: func() { _ = lines.Close(); t.over() },
		}, nil
	})
}

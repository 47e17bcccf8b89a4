package main

import (
	"fmt"
	"os"
	"time"

	"github.com/claudomator/claudomator/internal/agent"
	"github.com/claudomator/claudomator/internal/agent/acp"
	"github.com/claudomator/claudomator/internal/agent/claude"
	"github.com/claudomator/claudomator/internal/agent/codex"
	"github.com/claudomator/claudomator/internal/agent/command"
	"github.com/claudomator/claudomator/internal/config"
	"github.com/claudomator/claudomator/internal/engine"
	"github.com/claudomator/claudomator/internal/sandbox"
	"github.com/claudomator/claudomator/internal/work"
)

// protocols are the ways to talk with an agent program, each with its adapter.
// argv is the configured program, empty where none is.
func protocols() map[string]func(r *agent.Runner, argv []string) agent.Agent {
	return map[string]func(*agent.Runner, []string) agent.Agent{
		"acp":      func(r *agent.Runner, argv []string) agent.Agent { return acp.New(r, "acp", argv) },
		"scripted": scriptedType,
		"claude":   func(r *agent.Runner, argv []string) agent.Agent { return claude.New(r, argv) },
		"codex":    func(r *agent.Runner, argv []string) agent.Agent { return codex.New(r, argv) },
		"command":  func(r *agent.Runner, argv []string) agent.Agent { return command.New(r, argv...) },
	}
}

// types are the agent types that are there without a setting, and the protocol
// of each.
func types() map[string]string {
	return map[string]string{"acp": "acp", "scripted": "scripted", "claude": "claude", "codex": "codex", "command": "command"}
}

// catalog makes the agents: the known types, and what the configuration adds or
// changes.
func catalog(cfg *config.Config, host *sandbox.Host, private string) (engine.Catalog, error) {
	base := agent.NewRunner(agent.RunnerOptions{Host: host, Environ: os.Environ(), Private: private, Now: time.Now})
	known, all := types(), engine.Catalog{}
	for name, protocol := range known {
		all[name] = protocols()[protocol](base, nil)
	}
	for name, a := range cfg.Agents {
		protocol := a.Protocol
		if protocol == "" {
			protocol = known[name]
		}
		adapter := protocols()[protocol]
		if adapter == nil {
			return nil, work.Errorf(work.Invalid, "agents.%s: the server knows no agent of this name", name).
				WithReason("configuration").WithHint("say how to talk with it: agents.%s.protocol, and agents.%s.command for its program", name, name)
		}
		if known[name] == "" && len(a.Command) == 0 {
			return nil, work.Errorf(work.Invalid, "agents.%s: no program is given", name).
				WithReason("configuration").WithHint("set agents.%s.command", name)
		}
		all[name] = adapter(base.Inheriting(a.Inherit...), a.Command)
	}
	return all, nil
}

// openAgents forgets what runs of a former life left, and makes the catalog.
func (s *server) openAgents() (err error) {
	private := s.path("private")
	if err := agent.ClearPrivate(private); err != nil {
		return fmt.Errorf("open the agents: %w", err)
	}
	s.agents, err = catalog(s.cfg, s.host, private)
	return err
}

package main

import (
	"cmp"
	"fmt"
	"os"
	"strings"
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

// protocols are the ways to talk with an agent program, each with its adapter. An
// agent type of the same name is there without a setting. argv is the configured
// program, empty where none is.
func protocols() map[string]func(r *agent.Runner, argv []string) agent.Agent {
	return map[string]func(*agent.Runner, []string) agent.Agent{
		"acp":      func(r *agent.Runner, argv []string) agent.Agent { return acp.New(r, "acp", argv) },
		"scripted": scriptedType,
		"claude":   func(r *agent.Runner, argv []string) agent.Agent { return claude.New(r, argv) },
		"codex":    func(r *agent.Runner, argv []string) agent.Agent { return codex.New(r, argv) },
		"command":  func(r *agent.Runner, argv []string) agent.Agent { return command.New(r, argv...) },
	}
}

// catalog makes the agents: one for each protocol, and what the configuration adds
// or changes.
func catalog(cfg *config.Config, host *sandbox.Host, private string) (engine.Catalog, error) {
	base := agent.NewRunner(agent.RunnerOptions{Host: host, Environ: os.Environ(), Private: private, Now: time.Now})
	adapters, all := protocols(), engine.Catalog{}
	for name, adapter := range adapters {
		all[name] = adapter(base, nil)
	}
	for name, a := range cfg.Agents {
		adapter := adapters[cmp.Or(a.Protocol, name)]
		if adapter == nil {
			return nil, work.Errorf(work.Invalid, "agents.%s: the server knows no agent of this name", name).
				WithReason("configuration").WithHint("say how to talk with it: agents.%s.protocol, and agents.%s.command for its program", name, name)
		}
		if adapters[name] == nil && len(a.Command) == 0 {
			return nil, work.Errorf(work.Invalid, "agents.%s: no program is given", name).
				WithReason("configuration").WithHint("set agents.%s.command", name)
		}
		all[name] = adapter(base.Inheriting(a.Inherit...), a.Command)
	}
	if cfg.Agent != "" && all[cfg.Agent] == nil {
		return nil, work.Errorf(work.Invalid, "agent: the server knows no agent of the name %q", cfg.Agent).
			WithReason("configuration").WithHint("one of: %s; or add it below agents", strings.Join(all.Types(), ", "))
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

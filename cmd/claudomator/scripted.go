package main

import (
	"context"
	"os"
	"time"

	"github.com/claudomator/claudomator/internal/agent"
	"github.com/claudomator/claudomator/internal/agent/acp"
	"github.com/claudomator/claudomator/internal/agent/scripted"
	"github.com/claudomator/claudomator/internal/mcp"
)

// scriptedType is the agent type of this binary's own agent program.
func scriptedType(r *agent.Runner, argv []string) agent.Agent {
	if len(argv) == 0 {
		path, err := os.Executable()
		if err != nil {
			path = os.Args[0]
		}
		argv = []string{path, "scripted-agent"}
	}
	return acp.New(r, "scripted", argv)
}

// scriptedAgent is that program.
func scriptedAgent(ctx context.Context, args []string) int {
	return scripted.Run(ctx, scripted.Options{
		Args: args, In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Environ: os.Environ(), Now: time.Now, Call: mcp.Call,
	})
}

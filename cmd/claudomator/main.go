package main

import (
	"context"
	"net/http"
	"os"
	"runtime/debug"
	"time"

	"golang.org/x/term"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/cli"
	"github.com/claudomator/claudomator/internal/client"
	"github.com/claudomator/claudomator/internal/mcp"
)

func main() {
	ctx, keys := listen(context.Background())
	os.Exit(cli.Run(ctx, os.Args[1:], deps(keys)))
}

func deps(keys *keys) cli.Deps {
	out := int(os.Stdout.Fd())
	width := func() int {
		w, _, err := term.GetSize(out)
		if err != nil {
			return 0
		}
		return w
	}
	height := func() int {
		_, h, err := term.GetSize(out)
		if err != nil {
			return 0
		}
		return h
	}
	return cli.Deps{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Environ: os.Environ(),
		Terminal: term.IsTerminal(out), InTerminal: term.IsTerminal(int(os.Stdin.Fd())), Width: width, Height: height,
		Now: time.Now, Version: version(), Interrupts: keys.take, Discard: forgetTyped,
		Connect: func(_ context.Context, server, token string) (app.API, error) {
			return client.New(server, token, http.DefaultClient), nil
		},
		Serve: serve, Host: hostFor, Config: showConfig, Doctor: doctor, Tool: mcp.Call, Scripted: scriptedAgent, Demo: demo,
	}
}

// version is what the build knows of itself: the module's version, else the
// commit.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "devel-" + s.Value[:12]
		}
	}
	return "devel"
}

package main

import (
	"context"
	"net/http"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/cli"
	"github.com/claudomator/claudomator/internal/client"
	"github.com/claudomator/claudomator/internal/mcp"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := cli.Run(ctx, os.Args[1:], deps())
	stop()
	os.Exit(code)
}

func deps() cli.Deps {
	out := int(os.Stdout.Fd())
	width := 0
	if w, _, err := term.GetSize(out); err == nil {
		width = w
	}
	return cli.Deps{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Environ: os.Environ(),
		Terminal: term.IsTerminal(out), Width: width, Now: time.Now, Version: version(),
		Connect: func(_ context.Context, server, token string) (app.API, error) {
			return client.New(server, token, http.DefaultClient), nil
		},
		Serve: serve, Doctor: doctor, Tool: mcp.Call, Demo: demo,
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

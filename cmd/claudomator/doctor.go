package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/claudomator/claudomator/internal/cli"
	"github.com/claudomator/claudomator/internal/config"
	"github.com/claudomator/claudomator/internal/git"
	"github.com/claudomator/claudomator/internal/sandbox"
)

// doctor looks at what a server needs on this machine; it changes nothing but
// a folder of its own that it removes again.
func doctor(ctx context.Context, o cli.DoctorOptions) ([]cli.Check, error) {
	cfg, err := load(o.Settings)
	if err != nil {
		return nil, err
	}
	checks := []cli.Check{{Name: "configuration", Status: cli.CheckOK, Message: fmt.Sprintf("%d settings, none unknown", len(cfg.Origins()))}}
	if _, err := git.New(ctx, git.Options{Environ: os.Environ()}); err != nil {
		checks = append(checks, cli.Check{Name: "git", Status: cli.CheckFail, Message: err.Error(), Hint: "install git 2.38 or newer"})
	} else {
		checks = append(checks, cli.Check{Name: "git", Status: cli.CheckOK, Message: "found, new enough"})
	}
	checks = append(checks, dataDirCheck(cfg.DataDir))
	scratch, err := os.MkdirTemp("", "claudomator-doctor-")
	if err != nil {
		return append(checks, cli.Check{Name: "temporary files", Status: cli.CheckFail, Message: err.Error()}), nil
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	host, err := sandbox.Open(sandbox.Options{StateDir: scratch})
	if err != nil {
		return append(checks, cli.Check{Name: "processes", Status: cli.CheckFail, Message: err.Error()}), nil
	}
	for _, r := range host.Probe(ctx) {
		c := cli.Check{Name: "isolation " + string(r.Level), Status: cli.CheckOK, Message: "usable"}
		switch {
		case !r.Usable:
			c.Status, c.Message = cli.CheckWarn, "not usable: "+r.Reason
		case r.Ending != "":
			c.Message = "usable; a run's processes are ended by " + r.Ending
		}
		checks = append(checks, c)
	}
	return append(checks, agentChecks(ctx, cfg, host, scratch)...), nil
}

// agentChecks looks for the programs of the agent types, and asks for their versions.
func agentChecks(ctx context.Context, cfg *config.Config, host *sandbox.Host, scratch string) []cli.Check {
	agents, err := catalog(cfg, host, filepath.Join(scratch, "private"))
	if err != nil {
		return []cli.Check{{Name: "agents", Status: cli.CheckFail, Message: err.Error()}}
	}
	all, err := agents.Agents(ctx)
	if err != nil {
		return []cli.Check{{Name: "agents", Status: cli.CheckFail, Message: err.Error()}}
	}
	var checks []cli.Check
	for _, a := range all {
		c := cli.Check{Name: "agent " + a.Type, Status: cli.CheckOK, Message: "runs the program that the task names"}
		switch {
		case !a.Installed:
			c.Status, c.Message = cli.CheckWarn, a.Note
			c.Hint = fmt.Sprintf("install it, or name its program: agents.%s.command", a.Type)
		case a.Path != "":
			c.Message = strings.TrimSpace(a.Version + "  " + a.Path)
		}
		checks = append(checks, c)
	}
	return checks
}

func dataDirCheck(dir string) cli.Check {
	c := cli.Check{Name: "data directory", Status: cli.CheckOK, Message: dir}
	for at := dir; ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		switch {
		case os.IsNotExist(err) && at != filepath.Dir(at):
			continue
		case err != nil:
			c.Status, c.Message = cli.CheckFail, err.Error()
		case !info.IsDir():
			c.Status, c.Message, c.Hint = cli.CheckFail, at+" is no folder", "choose another with --data-dir"
		case at != dir:
			c.Message += " (will be made)"
		case info.Mode().Perm()&0o077 != 0:
			c.Status, c.Message = cli.CheckWarn, fmt.Sprintf("%s can be read by others (mode %s)", dir, strings.TrimPrefix(info.Mode().String(), "d"))
			c.Hint = "chmod 700 " + dir
		}
		return c
	}
}

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/cli"
	"github.com/claudomator/claudomator/internal/config"
	"github.com/claudomator/claudomator/internal/sandbox"
	"github.com/claudomator/claudomator/internal/work"
)

// demo shows one task's whole life on a sample repository, through a real
// server: a command agent builds, a checker runs the tests, the work is landed.
func demo(ctx context.Context, o cli.DemoOptions) (err error) {
	dir := o.Dir
	if dir == "" {
		if dir, err = os.MkdirTemp("", "claudomator-demo-"); err != nil {
			return fmt.Errorf("make a folder for the demo: %w", err)
		}
		defer func() { _ = os.RemoveAll(dir) }()
	} else if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the demo's folder: %w", err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return fmt.Errorf("find the demo's folder: %w", err)
	}
	show := &show{ctx: ctx, out: os.Stdout, dir: dir, repo: filepath.Join(dir, "greeter"), json: o.JSON, names: map[work.TaskID]string{}}
	if show.host, err = sandbox.Open(sandbox.Options{StateDir: filepath.Join(dir, "tools")}); err != nil {
		return err
	}
	if err := show.sample(); err != nil {
		return err
	}
	cfg := config.Default(os.Environ())
	cfg.Addr, cfg.DataDir, cfg.Log.Level = "127.0.0.1:0", filepath.Join(dir, "data"), "error"
	api, stop, err := host(ctx, &cfg, os.Stderr)
	if err != nil {
		return err
	}
	show.api = api
	return errors.Join(show.play(), stop())
}

// show is the demo as it is played.
type show struct {
	ctx  context.Context //nolint:containedctx // one demo is one call
	out  io.Writer
	dir  string
	repo string
	json bool
	host *sandbox.Host
	api  app.API
	step int
	runs int

	names map[work.TaskID]string
}

func (s *show) say(format string, args ...any) {
	if !s.json {
		_, _ = fmt.Fprintf(s.out, format+"\n", args...)
	}
}

func (s *show) chapter(title string) {
	s.step++
	s.say("\n%d. %s", s.step, title)
}

// sample makes the repository that the demo works on.
func (s *show) sample() error {
	s.chapter("A sample repository: a greeter in shell, with tests")
	out, err := s.shell(s.dir, `
git init -q -b main greeter && cd greeter
cat >greet.sh <<'EOF'
#!/bin/sh
echo "Hello, ${1:-world}!"
EOF
cat >test.sh <<'EOF'
#!/bin/sh
set -eu
test "$(sh greet.sh)" = "Hello, world!"
test "$(sh greet.sh --shout Ada)" = "HELLO, ADA!"
echo "2 tests passed"
EOF
git add . && git -c user.name=Demo -c user.email=demo@localhost commit -q -m "A greeter, and a test for what it cannot do yet"
git log --oneline; sh test.sh || echo "the test for --shout fails: that is the task"`)
	s.say("%s", indent(out))
	return err
}

const demoTask = `cat >greet.sh <<'EOF'
#!/bin/sh
shout=
if [ "${1:-}" = --shout ]; then shout=1; shift; fi
text="Hello, ${1:-world}!"
if [ -n "$shout" ]; then text=$(printf '%s' "$text" | tr '[:lower:]' '[:upper:]'); fi
echo "$text"
EOF
echo "greet.sh understands --shout now"`

func (s *show) play() error {
	s.chapter("A project, and a checker that runs the tests")
	name, agent := "greeter", "command"
	if _, err := s.api.AddProject(s.ctx, app.ProjectInput{Name: &name, Repository: &s.repo, Agent: &agent}); err != nil {
		return err
	}
	check := []string{"sh", "-c", "cat >/dev/null; sh test.sh"}
	if _, err := s.api.SetRole(s.ctx, string(work.Checker), app.RoleInput{Command: &check}); err != nil {
		return err
	}
	s.say("   project greeter; checker: sh test.sh")

	s.chapter("A task for an agent (here a shell script stands in for one)")
	seq := int64(0)
	task, err := s.api.CreateTask(s.ctx, app.TaskRequest{
		Project: name, Name: "Teach greet.sh to shout", Start: true, CommitType: "feat",
		AcceptanceCriteria: app.StringList{"greet.sh --shout Ada prints HELLO, ADA!"},
		Agent:              app.AgentInput{Instructions: demoTask},
	})
	if err != nil {
		return err
	}
	done, err := s.follow(task.ID, seq)
	if err != nil {
		return err
	}
	if done.State != work.Completed {
		return fmt.Errorf("the task is %s (%s): %s %s", done.State, done.BlockedOn, done.Reason, done.CheckerReport)
	}
	s.say("   accepted by the checker, on proof: %d file, +%d −%d lines", done.Result.Files, done.Result.Insertions, done.Result.Deletions)
	s.say("   the user's repository is untouched until now: %s", s.head())
	return s.landAndProve(done)
}

func (s *show) landAndProve(done *app.TaskView) error {
	s.chapter("Landing it: one command, one merge commit")
	m, err := s.api.StartMerge(s.ctx, string(done.ID), "")
	if err != nil {
		return err
	}
	for event, err := range s.api.Events(s.ctx, 0) {
		if err != nil {
			return err
		}
		if strings.HasPrefix(event.Kind, "merge.") && event.Kind != "merge.started" {
			break
		}
	}
	if m, err = s.api.Merge(s.ctx, string(m.ID)); err != nil {
		return err
	}
	if m.Status != work.MergeLanded {
		return fmt.Errorf("the landing is %s: %s %s", m.Status, m.Message, m.Hint)
	}
	out, err := s.shell(s.repo, `git log --graph --format='%h %s (%an)' -4 && git log -1 --format=%b | sed '/^$/d' && git status --short --branch && sh greet.sh --shout Ada && sh test.sh`)
	s.say("%s", indent(out))
	if err != nil {
		return err
	}
	s.say("\nIt was built in isolation, judged, and landed; your checkout was clean all the time.")
	s.say("Next: claudomator serve, then claudomator project add NAME --repo PATH")
	return nil
}

// follow tells what happens until the task ends or waits for a person.
func (s *show) follow(id work.TaskID, seq int64) (*app.TaskView, error) {
	began := time.Now()
	for event, err := range s.api.Events(s.ctx, seq) {
		if err != nil {
			return nil, err
		}
		s.say("   %6.2fs  %-18s %-30s %s", time.Since(began).Seconds(), event.Kind, s.name(event.Task), detail(event))
		if event.Task != id {
			continue
		}
		t, err := s.api.Task(s.ctx, string(id))
		if err != nil {
			return nil, err
		}
		if t.State.Ended() || t.BlockedOn == work.OnPerson {
			return t, nil
		}
	}
	return nil, context.Cause(s.ctx)
}

// name is a task's name, asked for once.
func (s *show) name(id work.TaskID) string {
	if s.names[id] == "" {
		t, err := s.api.Task(s.ctx, string(id))
		if err != nil {
			return string(id)
		}
		s.names[id] = t.Name
	}
	return s.names[id]
}

// detail is what of an event is worth a word.
func detail(e work.Event) string {
	for _, key := range []string{"outcome", "agent", "reason"} {
		if v, ok := e.Body[key]; ok {
			text := fmt.Sprint(v)
			return text[:min(len(text), 50)]
		}
	}
	if commit, ok := e.Body["commit"].(string); ok {
		return "commit " + commit[:min(len(commit), 12)]
	}
	return ""
}

func (s *show) head() string {
	out, err := s.shell(s.repo, "git log -1 --format='%h %s'")
	if err != nil {
		return err.Error()
	}
	return out
}

// shell runs a script of the demo's own.
func (s *show) shell(dir, script string) (string, error) {
	s.runs++
	var out bytes.Buffer
	p, err := s.host.Start(s.ctx, sandbox.Spec{
		ID: fmt.Sprintf("demo-%d", s.runs), Dir: dir, Argv: []string{"sh", "-c", script}, Env: os.Environ(), Stdout: &out, MergeOutput: true,
	})
	if err != nil {
		return "", err
	}
	exit, err := p.Wait(s.ctx)
	if _, endErr := p.End(s.ctx); err == nil {
		err = endErr
	}
	if err == nil && exit.Code != 0 {
		err = fmt.Errorf("a script of the demo ended with %s: %s", exit, out.String())
	}
	return strings.TrimSpace(out.String()), err
}

func indent(text string) string { return "   " + strings.ReplaceAll(text, "\n", "\n   ") }

package main

import (
	"bytes"
	"context"
	_ "embed" // the demo's texts
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

// demo shows one task's whole life on a sample repository, through a real server
// and the real protocol, with the scripted agent in the place of a model: a subtask,
// a question, a rejection and its fix, the landing.
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
	show := &show{ctx: ctx, out: os.Stdout, dir: dir, repo: filepath.Join(dir, "greeter"), json: o.JSON, began: time.Now(), names: map[work.TaskID]string{}}
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

	began time.Time
	seq   int64 // of the last event that was told

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

// What happens in the demo: the sample repository, and what its agents do.
var (
	//go:embed demo/sample.sh
	demoSample string
	//go:embed demo/task.yaml
	demoTask string
	//go:embed demo/checker.yaml
	demoChecker string
)

// sample makes the repository that the demo works on.
func (s *show) sample() error {
	s.chapter("A sample repository: a greeter in shell, and a test of what it cannot do yet")
	out, err := s.shell(s.dir, demoSample)
	s.say("%s", indent(out))
	return err
}

func (s *show) play() error {
	s.chapter("A project, and a checker for what its agents build")
	name, agent, prompt := "greeter", "scripted", demoChecker
	if _, err := s.api.AddProject(s.ctx, app.ProjectInput{
		Name: &name, Repository: &s.repo, Agent: &agent, Policies: &map[string]string{"*/0": "checked", "*/1": "none"},
	}); err != nil {
		return err
	}
	if _, err := s.api.SetRole(s.ctx, string(work.Checker), app.RoleInput{Agent: &agent, Prompt: &prompt}); err != nil {
		return err
	}
	s.say("   claudomator project add greeter --repo greeter --agent scripted --policy checked")
	s.say("   (the scripted agent stands in for a model: it needs no account, and speaks the same protocol)")

	s.chapter("A task: the agent hands a part of it on, and asks")
	task, err := s.api.CreateTask(s.ctx, app.TaskRequest{
		Project: name, Name: "Two new voices for greet.sh", Start: true, CommitType: "feat",
		AcceptanceCriteria: app.StringList{"sh check.sh passes"}, Agent: app.AgentInput{Instructions: demoTask},
	})
	if err != nil {
		return err
	}
	asked, err := s.follow(task.ID, work.Blocked)
	if err != nil {
		return err
	}
	s.say("   the agent asks:  %s %q", asked.Question.Text, asked.Question.Options)
	s.say("   you answer:      !!!    (claudomator task answer)")
	if _, err := s.api.AnswerTask(s.ctx, string(task.ID), "!!!"); err != nil {
		return err
	}
	return s.judge(task.ID)
}

// judge goes on from the answer: what was built is judged, sent back, and judged
// again.
func (s *show) judge(id work.TaskID) error {
	s.chapter("Both parts are built, put together and judged")
	flagged, err := s.follow(id, work.Ready)
	if err != nil {
		return err
	}
	s.say("   the checker's report: %s", indent(flagged.CheckerReport)[3:])
	s.chapter("Sent back: a new attempt at the same place, with the reasons")
	s.say("   you: claudomator task reject -m 'Ada has to be greeted'")
	fix, err := s.api.RejectTask(s.ctx, string(id), app.RejectInput{Comment: "Ada has to be greeted"})
	if err != nil {
		return err
	}
	done, err := s.follow(fix.CurrentID, work.Completed)
	if err != nil {
		return err
	}
	s.say("   accepted by the checker, on proof: %s, +%d −%d lines", plural(done.Result.Files, "file"), done.Result.Insertions, done.Result.Deletions)
	s.say("   your repository is untouched until now: %s", s.head())
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
	out, err := s.shell(s.repo, `git log --graph --format='%h %s (%an)' -7 && git log -1 --format=%b | sed '/^$/d' && git status --short --branch && sh check.sh && sh greet.sh --shout Ada && sh greet.sh --whisper Ada`)
	s.say("%s", indent(out))
	if err != nil {
		return err
	}
	s.say("\nIt was built in isolation, judged, and landed; your checkout was clean all the time.")
	s.say("Next: claudomator serve, then claudomator project add NAME --repo PATH")
	return nil
}

// follow tells what happens until the task stands in a state, waiting for a
// person where it is no end.
func (s *show) follow(id work.TaskID, state work.State) (*app.TaskView, error) {
	for event, err := range s.api.Events(s.ctx, s.seq) {
		if err != nil {
			return nil, err
		}
		s.seq = event.Seq
		line := fmt.Sprintf("   %6.2fs  %-19s %-34s %s", time.Since(s.began).Seconds(), event.Kind, s.name(event.Task), detail(event))
		s.say("%s", strings.TrimRight(line, " "))
		if event.Task != id {
			continue
		}
		t, err := s.api.Task(s.ctx, string(id))
		switch {
		case err != nil:
			return nil, err
		case t.State == state && (state.Ended() || t.BlockedOn == work.OnQuestion || t.BlockedOn == work.OnPerson):
			return t, nil
		case t.State.Ended():
			return nil, fmt.Errorf("the task is %s: %s %s", t.State, t.Reason, t.CheckerReport)
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

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
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

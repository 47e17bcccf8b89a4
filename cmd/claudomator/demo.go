package main

import (
	"bytes"
	"context"
	"crypto/rand"
	_ "embed" // the demo's texts
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/cli"
	"github.com/claudomator/claudomator/internal/config"
	"github.com/claudomator/claudomator/internal/sandbox"
	"github.com/claudomator/claudomator/internal/work"
)

// What the demo stands on: the sample repository, and what its agents do.
var (
	//go:embed demo/sample.sh
	demoSample string
	//go:embed demo/agents.yaml
	demoAgents []byte
)

// demo shows a story's whole life on a sample repository, through a real server and
// the real protocol, with the scripted agent in the place of a model: a plan, work
// that is handed out and judged at every level, a rejection and its fix, a question,
// the review, the ship.
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
	if dir, err = filepath.Abs(dir); err != nil {
		return fmt.Errorf("find the demo's folder: %w", err)
	}
	s := &show{
		ctx: ctx, out: os.Stdout, dir: dir, repo: filepath.Join(dir, "greeter"), site: filepath.Join(dir, "site"),
		name: "demo-" + strings.ToLower(rand.Text()), json: o.JSON, keeps: o.Dir != "", began: time.Now(), tasks: map[work.TaskID]*work.Task{}, split: map[work.TaskID]bool{}, verdicts: map[work.TaskID][]*work.Task{},
	}
	if _, err := os.Lstat(s.repo); err == nil {
		return work.Errorf(work.Invalid, "%s is there already", s.repo).WithHint("give --dir a new or an empty folder")
	}
	if s.host, err = sandbox.Open(sandbox.Options{StateDir: filepath.Join(dir, "tools")}); err != nil {
		return err
	}
	if err := s.sample(); err != nil {
		return err
	}
	cfg := config.Default(os.Environ())
	cfg.Addr, cfg.DataDir, cfg.Log.Level = "127.0.0.1:0", filepath.Join(dir, "data"), "error"
	api, stop, err := host(ctx, &cfg, os.Stderr)
	if err != nil {
		return err
	}
	s.api = api
	return errors.Join(s.play(), stop())
}

// show is the demo as it is played.
type show struct {
	ctx   context.Context //nolint:containedctx // one demo is one call
	out   io.Writer
	dir   string
	repo  string
	site  string // the folder that is deployed to
	name  string // no other demo of this machine has it
	json  bool
	keeps bool // the folder stays
	host  *sandbox.Host
	api   app.API

	chapters int
	scripts  int
	began    time.Time
	seq      int64 // of the last event that was told

	tasks    map[work.TaskID]*work.Task   // as they were when they were last asked for
	split    map[work.TaskID]bool         // those with parts of their own
	verdicts map[work.TaskID][]*work.Task // the judges that have spoken, by what they judge
	asking   work.TaskID                  // whose question awaits an answer
	step     work.ShipStep                // that the ship has begun …
	stepped  time.Time                    // … and when
}

// play is the story from the project to what is left of it in the end.
func (s *show) play() error {
	for _, chapter := range []func() error{s.project, s.plan, s.build, s.answer, s.review, s.ship, s.learn} {
		if err := chapter(); err != nil {
			if !s.keeps {
				err = fmt.Errorf("%w (claudomator demo --dir DIR leaves everything there to be looked at)", err)
			}
			return err
		}
	}
	return nil
}

func (s *show) say(format string, args ...any) {
	if !s.json {
		_, _ = fmt.Fprintf(s.out, format+"\n", args...)
	}
}

// paste shows what a program printed.
func (s *show) paste(text string) {
	for line := range strings.Lines(text) {
		s.say("%s", strings.TrimRight("   "+line, " \n"))
	}
}

// row shows a text beside its name.
func (s *show) row(name, text string) {
	const column = 14
	for _, line := range filled(strings.Fields(text), demoWidth-len("   ")-column) {
		s.say("   %-*s%s", column, name, line)
		name = ""
	}
}

func (s *show) chapter(title string) {
	s.chapters++
	s.say("\n%d. %s", s.chapters, title)
}

// types does what a person does who types a command, shows the command, and gives
// what it prints.
func (s *show) types(args ...string) (printed string, err error) {
	words := []string{"$ claudomator"}
	for i, arg := range args {
		word := quoted(strings.ReplaceAll(arg, s.dir+"/", ""))
		if i > 0 && strings.HasPrefix(args[i-1], "--") { // a flag's value stays beside it
			words[len(words)-1] += " " + word
		} else {
			words = append(words, word)
		}
	}
	s.say("   %s", strings.Join(filled(words, demoWidth-len("    \\")), " \\\n       "))
	var out, errs bytes.Buffer
	code := cli.Run(s.ctx, args, cli.Deps{
		In: strings.NewReader(""), Out: &out, Err: &errs, Now: time.Now, Width: func() int { return demoWidth - len("   ") },
		Environ: append(os.Environ(), "CLAUDOMATOR_SERVER=", "CLAUDOMATOR_TOKEN=", "CLAUDOMATOR_DATA_DIR="+filepath.Join(s.dir, "data")),
		Connect: func(context.Context, string, string) (app.API, error) { return s.api, nil },
	})
	if code != 0 {
		return "", fmt.Errorf("%s: exit code %d: %s", strings.Join(words[1:], " "), code, strings.TrimSpace(errs.String()))
	}
	return out.String(), nil
}

// demoWidth is the columns that the demo's texts have room in.
const demoWidth = 80

// quoted is an argument as it is typed in a shell.
func quoted(arg string) string {
	if arg != "" && !strings.ContainsAny(arg, " \t\n'\"!*?$&;|<>()`\\#~") {
		return arg
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}

// filled puts words into lines of so many columns.
func filled(words []string, width int) []string {
	var lines []string
	line := ""
	for _, word := range words {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return append(lines, line)
}

// shell runs a script of the demo's own in a folder.
func (s *show) shell(dir, script string) (string, error) {
	s.scripts++
	var out bytes.Buffer
	p, err := s.host.Start(s.ctx, sandbox.Spec{
		ID: fmt.Sprintf("%s-%d", s.name, s.scripts), Dir: dir, Argv: []string{"sh", "-c", script}, Env: os.Environ(), Stdout: &out, MergeOutput: true,
	})
	if err != nil {
		return "", err
	}
	exit, err := p.Wait(s.ctx)
	if _, endErr := p.End(s.ctx); err == nil {
		err = endErr
	}
	if err == nil && exit.Code != 0 {
		err = fmt.Errorf("a script of the demo ended with %s: %s", exit, strings.TrimSpace(out.String()))
	}
	return strings.TrimSpace(out.String()), err
}

// sees shows a command that a person types in the repository, and what it prints.
func (s *show) sees(command string) error {
	out, err := s.shell(s.repo, command)
	s.say("   $ %s", command)
	s.paste(out)
	return err
}

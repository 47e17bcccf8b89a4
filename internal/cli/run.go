package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

// runOptions are what run was given.
type runOptions struct {
	repo, project, agent, model, name, task string
	command, accept                         []string
	check, yes, json                        bool
	instructions                            string
}

const runHelp = `Do one task in the foreground: make it, watch it, and decide about its work.

A server that runs already is used, else one of its own in the same data folder,
for as long as the command runs. The project of the repository is found, or made.
On a terminal you see what the agent says and does, are asked what it asks, and at
the end accept, land or reject the work. Ctrl-C asks whether to stop the task.

Without a terminal nothing is asked: the work is left READY, or with --yes accepted
and landed where nothing speaks against it. --json prints one object a line, its
"type" first: "task", "state", "agent" (with the "event" of its transcript), "gate",
"question", "notice", "landed", and at last "result".

INSTRUCTIONS may be - for standard input. --task ID goes on with a task that is
there already. Exit codes beside the usual ones: 0 landed, accepted, or left for
you to decide; 4 with --yes: not landed; 8 it ended badly; 130 interrupted.`

func newRunCommand(s *shell) *cobra.Command {
	var o runOptions
	var command string
	c := &cobra.Command{
		Use: "run [INSTRUCTIONS]", Short: "Do one task in the foreground, from words to a landed commit", Long: runHelp,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usageError(c, "%s does not take %q beside %q", c.CommandPath(), args[1], args[0]).WithHint("quote the instructions: claudomator run %q", strings.Join(args, " "))
			}
			return takes("[INSTRUCTIONS]")(c, args)
		},
		Example: "  claudomator run --agent claude \"Prices must have two digits\"\n" +
			"  claudomator run --agent acp --command '[\"gemini\",\"--acp\"]' \"Prices must have two digits\"\n" +
			"  claudomator run --agent command \"sed -i s/%f/%.2f/ price.c\" --yes\n  claudomator run --check --accept \"go test ./... passes\" - <goal.md",
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.StringVar(&o.repo, "repo", ".", "path or URL of the repository")
	flags.StringVar(&o.project, "project", "", "name or id of the project (default: the one of the repository)")
	flags.StringVar(&o.agent, "agent", "", "agent type (default: the project's, else the server's, else one that is installed)")
	flags.StringVar(&command, "command", "", "argv of its program, as a JSON list (default: the one of the configuration)")
	flags.StringVar(&o.model, "model", "", "model")
	flags.StringVar(&o.name, "name", "", "what the task is called (default: the first words of the instructions)")
	flags.StringArrayVar(&o.accept, "accept", nil, "acceptance criterion (repeatable)")
	flags.BoolVar(&o.check, "check", false, "let a checker judge the work (policy checked)")
	flags.BoolVar(&o.yes, "yes", false, "accept and land what nothing speaks against, without asking")
	flags.BoolVar(&o.json, "json", false, "print events, one JSON object a line; nothing is asked")
	flags.StringVar(&o.task, "task", "", "go on with this task instead of a new one")
	_ = c.RegisterFlagCompletionFunc("project", s.completeProjects) // fails only for a flag that does not exist
	_ = c.RegisterFlagCompletionFunc("task", s.completeTasks)
	c.RunE = func(c *cobra.Command, args []string) error {
		if o.json {
			s.format = jsonFormat
		}
		var err error
		if o.command, err = commandLine(c, command); err != nil {
			return err
		}
		if err := o.complete(c, s, args); err != nil {
			return err
		}
		return s.runTask(c.Context(), o)
	}
	return c
}

// complete takes the instructions, and refuses what does not go together.
func (o *runOptions) complete(c *cobra.Command, s *shell, args []string) error {
	if o.task != "" {
		for _, flag := range givenFlags(c) {
			if !slices.Contains([]string{"task", "yes", "json"}, flag) {
				return usageError(c, "--%s does not go with --task", flag).WithHint("the task is there already; change it with `claudomator task set %s`", o.task)
			}
		}
		if len(args) > 0 {
			return usageError(c, "instructions do not go with --task").WithHint("tell the task more: claudomator task message %s -m TEXT", o.task)
		}
		return nil
	}
	if len(args) == 0 {
		return usageError(c, "%s needs instructions", c.CommandPath()).WithHint("say what is to be done: claudomator run \"Fix the rounding of prices\"")
	}
	o.instructions = args[0]
	if o.instructions == "-" {
		var err error
		if o.instructions, err = s.readText("-"); err != nil {
			return err
		}
	}
	if strings.TrimSpace(o.instructions) == "" {
		return usageError(c, "the instructions are empty")
	}
	if o.name == "" {
		o.name = nameOf(o.instructions)
	}
	return nil
}

// nameOf makes a task's name of its instructions: the first words.
func nameOf(instructions string) string {
	const most = 60
	first, _, _ := strings.Cut(strings.TrimSpace(instructions), "\n")
	return cut(strings.Join(strings.Fields(inert(first)), " "), most)
}

// foreground is one task as it is done in the terminal.
type foreground struct {
	shell   *shell
	api     app.API
	o       runOptions
	own     bool            // the server is ours, and ends with the command …
	stop    func() error    // … by this
	pressed <-chan struct{} // Ctrl-C
	input   *asker          // nil: there is nobody to ask
	screen  screen
	began   time.Time

	waiter  waiter
	log     *runLog
	told    string // the state that was told last
	stopped bool   // by a person, with Ctrl-C
	merge   *work.Merge
}

var errDetached = errors.New("detached")

// runTask is the whole of run.
func (s *shell) runTask(ctx context.Context, o runOptions) (err error) {
	f := &foreground{shell: s, o: o, began: s.Now(), screen: screen{shell: s, live: s.Terminal && s.format != jsonFormat && s.env("TERM") != "dumb"}}
	if err := f.reach(ctx); err != nil {
		return err
	}
	if err = f.begin(ctx); err == nil {
		err = f.attended(ctx)
	}
	if clear := f.screen.clear(); err == nil {
		err = clear
	}
	if f.own {
		err = cmp.Or(f.stop(), ownLog(err))
	}
	switch {
	case errors.Is(err, errDetached):
		return nil
	case errors.Is(err, errInterrupted) && f.waiter.view != nil:
		return errLeft // it was said already what becomes of the task
	}
	return err
}

// attended carries the task while Ctrl-C is ours.
func (f *foreground) attended(ctx context.Context) error {
	s := f.shell
	if s.Interrupts != nil {
		pressed, release := s.Interrupts()
		defer release()
		f.pressed = pressed
	}
	if s.Terminal && s.InTerminal && s.format != jsonFormat {
		f.input = &asker{shell: s, pressed: f.pressed}
	}
	return f.carry(ctx)
}

// ownLog says which log has the details of an error inside our own server.
func ownLog(err error) error {
	e, ok := work.AsError(err)
	if !ok || e.Code != work.Internal {
		return err
	}
	copied := *e
	return copied.WithHint("%s: the file run.log in the data folder", strings.TrimSuffix(e.Hint, "."))
}

// named is true when one certain server was asked for.
func (s *shell) named() bool { return s.server != "" || s.env("CLAUDOMATOR_SERVER") != "" }

// reach finds the server, or starts one of our own when none runs for the data
// folder.
func (f *foreground) reach(ctx context.Context) error {
	const tries, pause = 40, 250 * time.Millisecond
	s := f.shell
	for n := 0; ; n++ {
		api, err := s.connect(ctx)
		if err == nil {
			_, err = api.Projects(ctx)
		}
		if err == nil || s.named() || s.Host == nil || work.CodeOf(err) != work.Unavailable {
			f.api = api
			return err
		}
		settings := Settings{Flags: map[string]string{}}
		if s.dataDir != "" {
			settings.Flags["data_dir"] = s.dataDir
		}
		api, stop, err := s.Host(ctx, settings)
		if err == nil {
			f.api, f.stop, f.own = api, stop, true
			return nil
		}
		// One that is just starting or ending holds the folder, and cannot be spoken to.
		if reason(err) != "data_dir_in_use" || n == tries {
			return err
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
	}
}

var errServerGone = errors.New("the server has ended")

// serverGone is true when the server that was found has ended as it should: then
// nothing is gained by waiting for it.
func (f *foreground) serverGone() bool {
	_, _, err := f.shell.locate()
	return !f.own && !f.shell.named() && work.CodeOf(err) == work.Unavailable && err != nil
}

// rescue goes on after the server has ended, with another one that has come up or
// with our own: the one of another run ends with that.
func (f *foreground) rescue(ctx context.Context, why error) error {
	lost := errors.Is(why, errServerGone) || work.CodeOf(why) == work.Unavailable
	if !lost || f.own || f.shell.named() {
		return why
	}
	if err := f.reach(ctx); err != nil {
		return err
	}
	f.log.moved(f.api)
	if f.own {
		return f.notice("the server has ended; this command goes on with its own")
	}
	return nil
}

// begin makes and starts the task, or finds the one to go on with.
func (f *foreground) begin(ctx context.Context) error {
	api := f.api
	if f.o.task != "" {
		view, err := api.Task(ctx, f.o.task)
		if err == nil && slices.Contains(view.Actions, work.DoStart) {
			view, err = api.StartTask(ctx, string(view.ID))
		}
		if err != nil {
			return err
		}
		return f.introduce(ctx, view)
	}
	project, missing, err := f.project(ctx)
	if err != nil {
		return err
	}
	agent, err := f.agent(ctx, project)
	if err != nil {
		return err
	}
	policy, err := f.policy(ctx, project, agent)
	if err != nil {
		return err
	}
	if missing != nil { // only now: a mistake leaves nothing behind
		if project, err = api.AddProject(ctx, *missing); err != nil {
			return err
		}
		if err := f.notice("made project %s for %s", project.Name, project.Repository); err != nil {
			return err
		}
	}
	view, err := api.CreateTask(ctx, app.TaskRequest{
		Project: string(project.ID), Name: f.o.name, AcceptanceCriteria: f.o.accept, Review: policy, Start: true,
		Agent: app.AgentInput{Type: agent, Model: f.o.model, Instructions: f.o.instructions, Command: f.o.command},
	})
	if err != nil {
		return err
	}
	return f.introduce(ctx, view)
}

// introduce says which task it is.
func (f *foreground) introduce(ctx context.Context, view *app.TaskView) error {
	f.waiter = waiter{api: f.api, ref: string(view.ID), view: view}
	f.log = &runLog{f: f, task: view.ID}
	project, err := f.api.Project(ctx, string(view.ProjectID))
	if err != nil {
		return err
	}
	agent := view.Agent.Type
	if agent == "" && view.Agent.Role == "" && view.ParentTaskID == "" { // else these may say who works
		all, err := f.api.Agents(ctx)
		if err != nil {
			return err
		}
		agent = agentOf("", project, all)
	}
	return f.say("task", map[string]any{"task": view}, func(p *page) {
		p.line("%s", p.style(bold, p.clip(inert(view.Name), 0)))
		facts := []string{"task " + head(string(view.ID), 8), "project " + project.Name + " (" + project.Branch + ")"}
		if agent != "" {
			facts = append(facts, strings.TrimSpace("agent "+agent+" "+view.Agent.Model))
		}
		if f.own {
			facts = append(facts, "own server")
		}
		p.paragraph(dim, "", strings.Join(facts, " · "))
		p.line("")
	})
}

// say prints for people, or for programs one object of a kind; text nil: people
// are not told, value nil: programs are not.
func (f *foreground) say(kind string, value map[string]any, text func(*page)) error {
	if f.shell.format != jsonFormat {
		if text == nil {
			return nil
		}
		return f.screen.write(text)
	}
	if value == nil {
		return nil
	}
	return writeLine(f.shell.Out, kind, f.shell.Now().UTC(), value)
}

// notice prints a line that is not the agent's.
func (f *foreground) notice(format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	return f.say("notice", map[string]any{"text": text}, func(p *page) { p.paragraph(dim, "", "· "+text) })
}

// carry follows the task and settles what it comes to, until it is over or left.
func (f *foreground) carry(ctx context.Context) (err error) {
	defer func() {
		if result := f.result(context.WithoutCancel(ctx), err); err == nil || errors.Is(err, errDetached) {
			err = errors.Join(err, result)
		}
	}()
	const moves = 20 // of one that is refused by every server it goes to
	for n := 0; ; {
		err := f.follow(ctx)
		if err == nil {
			again, why := f.settle(ctx)
			if why == nil && !again {
				return nil
			}
			if err = why; err != nil {
				n++
			}
		}
		if err != nil && n <= moves {
			err = f.rescue(ctx, err)
		}
		if err != nil {
			return f.left(err)
		}
	}
}

// left says how to go on with a task that was left, when it was.
func (f *foreground) left(err error) error {
	detached := errors.Is(err, errDetached)
	if (!detached && !errors.Is(err, errInterrupted) && !errors.Is(err, context.Canceled)) || f.stopped || f.waiter.view == nil {
		return err
	}
	text := "the task goes on"
	switch {
	case f.waiter.view.State.Ended() || f.waiter.view.State == work.Ready:
		text = "the task stays as it is"
	case f.own:
		text = "its run ends with this server, and begins again with the next one"
	}
	command := "claudomator run --task " + head(string(f.waiter.view.ID), 8)
	say := f.say("notice", map[string]any{"text": text, "command": command}, func(p *page) {
		p.paragraph(dim, "", "· "+text+"; come back to it with:")
		p.line("  %s", command)
	})
	return cmp.Or(say, err)
}

// elapsed is how long the command has been at it.
func (f *foreground) elapsed() time.Duration { return f.shell.Now().Sub(f.began) }

// result ends the events of --json.
func (f *foreground) result(ctx context.Context, failed error) error {
	if f.shell.format != jsonFormat || f.waiter.view == nil {
		return nil
	}
	const patience = 5 * time.Second // the command may be ending because the server is gone
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	out := map[string]any{"task": f.waiter.view, "seconds": f.elapsed().Seconds(), "cost_usd": f.log.cost(), "exit_code": exitCode(failed)}
	if d, err := readDossier(ctx, f.api, f.waiter.view); err == nil {
		out["executions"], out["judges"] = list(d.executions), list(d.judges)
	}
	if stat, err := readStat(ctx, f.api, string(f.waiter.view.ID)); err == nil {
		out["diffstat"] = list(stat.files)
	}
	if f.merge != nil {
		out["merge"] = f.merge
	}
	return f.say("result", out, nil)
}

// writeLine prints one event on one line: its kind, its time, what it says.
func writeLine(w io.Writer, kind string, at time.Time, value map[string]any) error {
	head, err := marshal(struct {
		Type string    `json:"type"`
		At   time.Time `json:"at"`
	}{kind, at})
	if err != nil {
		return fmt.Errorf("print: %w", err)
	}
	rest, err := marshal(value)
	if err != nil {
		return fmt.Errorf("print: %w", err)
	}
	line := append(append(head[:len(head)-1], ','), rest[1:]...)
	if _, err := w.Write(append(escape(line), '\n')); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

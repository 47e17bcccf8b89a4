package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

// taskFlags are the flags that create and set share.
type taskFlags struct {
	name, description, instructions, instructionsFile string
	priority, backoff                                 string
	accept, dependsOn, gates, tags                    []string
	timeout                                           time.Duration
	retry                                             int
	budget                                            float64
	draft                                             bool
}

func (f *taskFlags) define(c *cobra.Command) {
	flags := c.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.name, "name", "", "what the task is called")
	flags.StringVar(&f.instructions, "instructions", "", "what the agent is told")
	flags.StringVar(&f.instructionsFile, "instructions-file", "", "the same from a file, or - for standard input, byte for byte")
	flags.StringVar(&f.description, "description", "", "what people are told")
	flags.StringArrayVar(&f.accept, "accept", nil, "acceptance criterion (repeatable)")
	flags.StringArrayVar(&f.dependsOn, "depends-on", nil, "task that must be done before (repeatable)")
	flags.StringArrayVar(&f.gates, "gate", nil, "gate command of this task (repeatable)")
	flags.StringArrayVar(&f.tags, "tag", nil, "tag (repeatable)")
	flags.StringVar(&f.priority, "priority", "", "low, normal, high or urgent")
	flags.DurationVar(&f.timeout, "timeout", 0, "how long an execution may run")
	flags.IntVar(&f.retry, "retry", 0, "executions before a failure is final")
	flags.StringVar(&f.backoff, "backoff", "", "linear or exponential")
	flags.Float64Var(&f.budget, "budget", 0, "most US dollars it may cost")
	flags.BoolVar(&f.draft, "draft", false, "not to be started yet")
}

// text is the instructions, from the flag or the file.
func (f *taskFlags) text(c *cobra.Command, s *shell) (string, error) {
	if err := atMostOne(c, "instructions", "instructions-file"); err != nil {
		return "", err
	}
	if !c.Flags().Changed("instructions-file") {
		return f.instructions, nil
	}
	return s.readText(f.instructionsFile)
}

// readText reads a text byte for byte from a file, or standard input for -.
func (s *shell) readText(file string) (string, error) {
	data, err := s.readFile(file)
	if err != nil {
		return "", err
	}
	if !utf8.Valid(data) {
		return "", work.Errorf(work.Invalid, "%s is not valid UTF-8", file).WithHint("put the material into a file of the repository, and name it")
	}
	return string(data), nil
}

func (s *shell) readFile(file string) ([]byte, error) {
	in, name := s.In, "standard input"
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, work.Errorf(work.Invalid, "read the file: %w", err)
		}
		defer func() { _ = f.Close() }()
		in, name = f, "the file"
	}
	data, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	switch {
	case err != nil:
		return nil, work.Errorf(work.Invalid, "read %s: %w", name, err)
	case len(data) > maxFile:
		return nil, work.Errorf(work.Invalid, "%s is larger than %d MiB", name, maxFile>>20).WithHint("put long material into a file of the repository")
	}
	return data, nil
}

// maxFile is what a file of tasks or instructions may hold; the server takes no more.
const maxFile = 16 << 20

// createFlags are those of create alone.
type createFlags struct {
	taskFlags
	file, template, project, parent, agent, role, model, command, policy, commitType, key string
	tools                                                                                 []string
	start                                                                                 bool
}

func newTaskCreateCommand(s *shell) *cobra.Command {
	var f createFlags
	c := &cobra.Command{
		Use: "create", Short: "Create a task from flags, or tasks from a file", Args: takes(),
		Long: "Create a task from flags, or tasks from a file: YAML or JSON with the names of the task's\n" +
			"fields, one task or a list. --template reads such a file from the project's repository. Beside\n" +
			"these two only --project (for tasks that name none), --start and --idempotency-key can be\n" +
			"given.",
		Example: "  claudomator task create --project shop --name \"Fix the basket\" --instructions \"…\" --accept \"tests pass\" --start\n" +
			"  claudomator task create --project shop --name fmt --agent command --instructions-file - --start <script.sh\n" +
			"  claudomator task create -f tasks.yaml --start\n  claudomator task create --template upgrade --project shop --start",
	}
	flags := c.Flags()
	flags.StringVarP(&f.file, "file", "f", "", "task file, or - for standard input")
	flags.StringVar(&f.template, "template", "", "task file in .claudomator/tasks of the project's repository, by its name")
	flags.StringVar(&f.project, "project", "", "name or id of the project")
	f.define(c)
	flags.StringVar(&f.agent, "agent", "", "agent type")
	flags.StringVar(&f.role, "role", "", "what the task is for")
	flags.StringVar(&f.model, "model", "", "model")
	flags.StringVar(&f.command, "command", "", "argv of the agent's program, as a JSON list; without --agent: of agent type command")
	flags.StringArrayVar(&f.tools, "allow-tool", nil, "tool the agent may use (repeatable)")
	flags.StringVar(&f.parent, "parent", "", "task it becomes a subtask of")
	flags.StringVar(&f.policy, "policy", "", "review policy: none, human, checked or arbitrated")
	flags.StringVar(&f.commitType, "commit-type", "", "prefix of the commit subject")
	flags.BoolVar(&f.start, "start", false, "start it at once")
	flags.StringVar(&f.key, "idempotency-key", "", "a repeated request with this key creates nothing")
	_ = c.RegisterFlagCompletionFunc("project", s.completeProjects) // fails only for a flag that does not exist
	_ = c.RegisterFlagCompletionFunc("depends-on", s.completeTasks)
	_ = c.RegisterFlagCompletionFunc("parent", s.completeTasks)
	_ = c.RegisterFlagCompletionFunc("template", s.completeTemplates(app.TaskTemplate, &f.project))
	c.RunE = func(c *cobra.Command, args []string) error {
		if c.Flags().Changed("template") {
			return f.fromTemplate(c, s, args)
		}
		requests, many, err := f.requests(c, s)
		if err != nil {
			return err // before anything is asked of the server
		}
		return s.call(func(ctx context.Context, api app.API, _ []string) error {
			return s.create(ctx, api, requests, many)
		})(c, args)
	}
	return c
}

// requests are what flags or file ask for, wholly checked for form.
func (f *createFlags) requests(c *cobra.Command, s *shell) (requests []app.TaskRequest, many bool, err error) {
	if c.Flags().Changed("file") {
		return f.fromFile(c, s)
	}
	if f.name == "" {
		return nil, false, usageError(c, "a task needs a name").WithHint("give --name, or -f with a task file")
	}
	instructions, err := f.text(c, s)
	if err != nil {
		return nil, false, err
	}
	argv, err := commandLine(c, f.command)
	if err != nil {
		return nil, false, err
	}
	return []app.TaskRequest{{
		Project: f.project, ParentTaskID: f.parent, Name: f.name, Description: f.description,
		Agent: app.AgentInput{
			Type: f.agent, Role: f.role, Model: f.model, Instructions: instructions, Command: argv,
			AllowedTools: f.tools, MaxBudgetUSD: f.budget,
		},
		Timeout: work.Duration(f.timeout), Retry: app.RetryInput{MaxAttempts: f.retry, Backoff: f.backoff},
		Priority: f.priority, Tags: f.tags, DependsOn: f.dependsOn, AcceptanceCriteria: f.accept, Gates: f.gates,
		Review: f.policy, Draft: f.draft, CommitType: f.commitType, Start: f.start, IdempotencyKey: f.key,
	}}, false, nil
}

func (f *createFlags) fromFile(c *cobra.Command, s *shell) (requests []app.TaskRequest, many bool, err error) {
	if err := f.alone(c); err != nil {
		return nil, false, err
	}
	data, err := s.readFile(f.file)
	if err != nil {
		return nil, false, err
	}
	name := f.file
	if name == "-" {
		name = "standard input"
	}
	return f.fill(name, data)
}

// alone refuses the flags that say what a file says.
func (f *createFlags) alone(c *cobra.Command) error {
	for _, flag := range givenFlags(c) {
		if !slices.Contains([]string{"file", "template", "project", "start", "idempotency-key"}, flag) {
			return usageError(c, "--%s does not go with a task file", flag).WithHint("write it into the file")
		}
	}
	return atMostOne(c, "file", "template")
}

// fromTemplate makes the tasks of a file in the project's repository.
func (f *createFlags) fromTemplate(c *cobra.Command, s *shell, args []string) error {
	if err := f.alone(c); err != nil {
		return err
	}
	return s.call(func(ctx context.Context, api app.API, _ []string) error {
		t, err := s.useTemplate(ctx, api, f.project, app.TaskTemplate, f.template)
		if err != nil {
			return err
		}
		requests, many, err := f.fill(t.Path, []byte(t.Text))
		if err != nil {
			return err
		}
		return s.create(ctx, api, requests, many)
	})(c, args)
}

// fill reads a task file, with what the flags add to it.
func (f *createFlags) fill(name string, data []byte) (requests []app.TaskRequest, many bool, err error) {
	requests, many, err = readTasks(name, data)
	for i := range requests {
		r := &requests[i]
		if r.Project == "" && r.ProjectID == "" && r.ParentTaskID == "" {
			r.Project = f.project
		}
		r.Start = r.Start || f.start
		if f.key != "" {
			r.IdempotencyKey = f.key + "/" + strconv.Itoa(i+1)
		}
	}
	return requests, many, err
}

// create makes the tasks in order, all or none, and starts them when all are
// there. With an idempotency key none is taken back, for it may be from an
// earlier request: those before the refused one are printed, and the same
// command goes on from there.
func (s *shell) create(ctx context.Context, api app.API, requests []app.TaskRequest, many bool) error {
	var made []*app.TaskView
	var failed error
	whole := many && requests[0].IdempotencyKey == ""
	for i, r := range requests {
		r.Start = r.Start && !whole
		view, err := api.CreateTask(ctx, r)
		if err != nil {
			failed = err
			if many {
				failed = fmt.Errorf("task %d of %d (%s): %w", i+1, len(requests), r.Name, err)
			}
			break
		}
		made = append(made, view)
	}
	if whole && failed != nil {
		return errors.Join(failed, takeBack(context.WithoutCancel(ctx), api, made))
	}
	if len(made) == 0 {
		return failed
	}
	for i := range made {
		if whole && requests[i].Start {
			view, err := api.StartTask(ctx, string(made[i].ID))
			if err != nil {
				return fmt.Errorf("start task %d of %d (%s): %w", i+1, len(requests), requests[i].Name, err)
			}
			made[i] = view
		}
	}
	var answer any = made
	if !many {
		answer = made[0]
	}
	err := s.show(answer, func(p *page) {
		for _, v := range made {
			p.taskLine(v)
		}
	})
	if failed != nil {
		return failed
	}
	return err
}

// takeBack removes what was made, the last first: a later one may depend on it.
func takeBack(ctx context.Context, api app.API, made []*app.TaskView) error {
	var all error
	for _, v := range slices.Backward(made) {
		all = errors.Join(all, api.RemoveTask(ctx, string(v.ID)))
	}
	return all
}

// commandLine reads argv from a flag.
func commandLine(c *cobra.Command, text string) ([]string, error) {
	argv := []string{}
	if text == "" {
		return argv, nil
	}
	if err := json.Unmarshal([]byte(text), &argv); err != nil {
		return nil, usageError(c, "--command takes a JSON list of texts, not %q", text).WithHint(`for example --command '["sh","-c","make test"]'`)
	}
	return argv, nil
}

func newTaskSetCommand(s *shell) *cobra.Command {
	var f taskFlags
	c := &cobra.Command{
		Use: "set ID", Short: "Change what a task is asked to do, while it does not run", Args: takes("ID"),
		Long:              "Change what a task is asked to do, while it does not run. What is not given stays; a list\nthat is given replaces the old one, and one empty text (--tag \"\") takes it away.",
		Example:           "  claudomator task set basket --priority high --accept \"tests pass\" --accept \"no new warnings\"",
		ValidArgsFunction: s.completeTasks,
	}
	f.define(c)
	c.RunE = s.call(func(ctx context.Context, api app.API, args []string) error {
		patch, err := f.patch(c, s)
		if err != nil {
			return err
		}
		view, err := api.PatchTask(ctx, args[0], patch)
		return s.acted(view, err)
	})
	return c
}

func (f *taskFlags) patch(c *cobra.Command, s *shell) (app.TaskPatch, error) {
	var in app.TaskPatch
	instructions, err := f.text(c, s)
	if err != nil {
		return in, err
	}
	given(c, "instructions", &in.Instructions, instructions)
	given(c, "instructions-file", &in.Instructions, instructions)
	given(c, "name", &in.Name, f.name)
	given(c, "description", &in.Description, f.description)
	given(c, "accept", &in.AcceptanceCriteria, app.StringList(emptied(f.accept)))
	given(c, "depends-on", &in.DependsOn, emptied(f.dependsOn))
	given(c, "gate", &in.Gates, emptied(f.gates))
	given(c, "tag", &in.Tags, emptied(f.tags))
	given(c, "priority", &in.Priority, f.priority)
	given(c, "timeout", &in.Timeout, work.Duration(f.timeout))
	given(c, "budget", &in.MaxBudgetUSD, f.budget)
	given(c, "draft", &in.Draft, f.draft)
	if c.Flags().Changed("retry") || c.Flags().Changed("backoff") {
		in.Retry = &app.RetryInput{MaxAttempts: f.retry, Backoff: f.backoff}
	}
	if len(givenFlags(c)) == 0 {
		return in, usageError(c, "nothing to change was given")
	}
	return in, nil
}

// texts is a text given as an argument, with -m, or from a file.
type texts struct{ message, file string }

func (t *texts) define(c *cobra.Command) {
	c.Flags().StringVarP(&t.message, "message", "m", "", "the text")
	c.Flags().StringVarP(&t.file, "file", "F", "", "the text from a file, or - for standard input")
}

// read gives the one text that was given.
func (t *texts) read(c *cobra.Command, s *shell, args []string) (string, error) {
	ways := len(args)
	for _, flag := range []string{"message", "file"} {
		if c.Flags().Changed(flag) {
			ways++
		}
	}
	switch {
	case ways == 0:
		return "", usageError(c, "%s needs a text", c.CommandPath()).WithHint("give it with -m TEXT, or -F FILE")
	case ways > 1:
		return "", usageError(c, "%s takes one text", c.CommandPath()).WithHint("quote it, and use one of TEXT, -m and -F")
	case len(args) == 1:
		return args[0], nil
	case t.file != "":
		text, err := s.readText(t.file)
		return strings.TrimRight(text, "\n"), err
	}
	return t.message, nil
}

package cli

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

// newTaskAct is a command that asks one thing of one task: a method of app.API.
func newTaskAct(s *shell, use, short string, act func(api app.API, ctx context.Context, ref string) (*app.TaskView, error)) *cobra.Command {
	return &cobra.Command{
		Use: use + " ID", Short: short, Args: takes("ID"), Example: "  claudomator task " + use + " basket",
		ValidArgsFunction: s.completeTasks,
		RunE: s.call(func(ctx context.Context, api app.API, args []string) error {
			return s.acted(act(api, ctx, args[0]))
		}),
	}
}

func newTaskStartCommand(s *shell) *cobra.Command {
	return newTaskAct(s, "start", "Submit a PENDING task", app.API.StartTask)
}

func newTaskCancelCommand(s *shell) *cobra.Command {
	return newTaskAct(s, "cancel", "End a task, with all below it", app.API.CancelTask)
}

func newTaskSubmitCommand(s *shell) *cobra.Command {
	return newTaskAct(s, "submit", "Take work that was done by hand in the task's workspace", app.API.SubmitTask)
}

func newTaskDropCommand(s *shell) *cobra.Command {
	return newTaskAct(s, "drop", "Give up a child that ended badly or is in conflict, for good", app.API.DropTask)
}

func newTaskPostponeCommand(s *shell) *cobra.Command {
	return newTaskAct(s, "postpone", "Make a child a PENDING task of its own", app.API.PostponeTask)
}

func newTaskRetryCommand(s *shell) *cobra.Command {
	var fresh bool
	c := newTaskAct(s, "retry", "Run a task again, in its workspace",
		func(api app.API, ctx context.Context, ref string) (*app.TaskView, error) {
			return api.RetryTask(ctx, ref, fresh)
		})
	c.Flags().BoolVar(&fresh, "fresh", false, "from the base, without the work so far")
	return c
}

func newTaskRemoveCommand(s *shell) *cobra.Command {
	return &cobra.Command{
		Use: "rm ID", Short: "Delete a task; the root of a tree takes all of it along", Args: takes("ID"),
		Example: "  claudomator task rm basket", ValidArgsFunction: s.completeTasks,
		RunE: s.call(func(ctx context.Context, api app.API, args []string) error {
			view, err := api.Task(ctx, args[0])
			if err != nil {
				return err
			}
			if err := api.RemoveTask(ctx, string(view.ID)); err != nil {
				return err
			}
			return s.removed(string(view.ID), "task "+string(view.ID)+" ("+view.Name+")")
		}),
	}
}

func newTaskAcceptCommand(s *shell) *cobra.Command {
	var land, noLand bool
	var in app.AcceptInput
	c := &cobra.Command{
		Use: "accept ID", Short: "Accept READY work, and land it where asked", Args: takes("ID"),
		Long: "Accept READY work. It is landed when asked (--land, --into), when the task has improvement\n" +
			"children, or when the project says auto_land; --no-land says no. Returns when branch and\n" +
			"checkout are done; a landing that conflicts or is refused is exit code 4.",
		Example: "  claudomator task accept basket --land", ValidArgsFunction: s.completeTasks,
	}
	c.Flags().BoolVar(&land, "land", false, "land it")
	c.Flags().BoolVar(&noLand, "no-land", false, "do not land it")
	c.Flags().StringVar(&in.Into, "into", "", "land it on this branch")
	c.RunE = s.call(func(ctx context.Context, api app.API, args []string) error {
		for _, flag := range []string{"land", "into"} {
			if err := atMostOne(c, flag, "no-land"); err != nil {
				return err
			}
		}
		if given := land || in.Into != ""; given || noLand {
			in.Land = &given
		}
		view, err := api.AcceptTask(ctx, args[0], in)
		if err != nil {
			return err
		}
		view, err = s.accepted(ctx, api, view)
		if err != nil {
			return err
		}
		if err := s.acted(view, nil); err != nil {
			return err
		}
		return notAccepted(ctx, api, view)
	})
	return c
}

func newTaskRejectCommand(s *shell) *cobra.Command {
	var f rejectFlags
	c := &cobra.Command{
		Use: "reject ID [TEXT]", Short: "Reject READY work: a fix attempt begins, with what you say", Args: takes("ID", "[TEXT]"),
		Example: "  claudomator task reject basket -m \"the total is wrong for empty baskets\"\n" +
			"  claudomator task reject basket -m \"see below\" --at basket.go:12=\"divides by zero\"",
		ValidArgsFunction: s.completeTasks,
	}
	f.define(c)
	c.RunE = s.call(func(ctx context.Context, api app.API, args []string) error {
		in, err := f.input(c, s, args[1:])
		if err != nil {
			return err
		}
		view, err := api.RejectTask(ctx, args[0], in)
		return s.acted(view, err)
	})
	return c
}

// rejectFlags are what a rejection is made of.
type rejectFlags struct {
	text  texts
	at    []string
	extra int
}

func (f *rejectFlags) define(c *cobra.Command) {
	f.text.define(c)
	c.Flags().StringArrayVar(&f.at, "at", nil, "FILE[:LINE]=TEXT about one place (repeatable)")
	c.Flags().IntVar(&f.extra, "extra", 0, "allow so many more fix attempts")
}

// input reads the comment, which places can stand for.
func (f *rejectFlags) input(c *cobra.Command, s *shell, args []string) (app.RejectInput, error) {
	in := app.RejectInput{Extra: f.extra}
	var err error
	if in.Findings, err = findings(c, f.at); err != nil {
		return in, err
	}
	if f.extra < 0 {
		return in, usageError(c, "--extra must not be negative")
	}
	if len(args) > 0 || c.Flags().Changed("message") || f.text.file != "" || len(f.at) == 0 {
		in.Comment, err = f.text.read(c, s, args)
	}
	return in, err
}

// findings reads FILE[:LINE]=TEXT.
func findings(c *cobra.Command, texts []string) (work.Findings, error) {
	var out work.Findings
	for _, text := range texts {
		place, what, ok := strings.Cut(text, "=")
		if !ok || place == "" || what == "" {
			return nil, usageError(c, "--at takes FILE[:LINE]=TEXT, not %q", text)
		}
		f := work.Finding{Kind: "comment", File: place, Text: what}
		if file, number, ok := strings.Cut(place, ":"); ok {
			n, err := strconv.Atoi(number)
			if err != nil || n < 1 {
				return nil, usageError(c, "--at names line %q, which is no number", number)
			}
			f.File, f.Line = file, n
		}
		out = append(out, f)
	}
	return out, nil
}

func newTaskAnswerCommand(s *shell) *cobra.Command {
	return newTaskTell(s, "answer", "Answer the question a task has asked", "\"use cents\"", app.API.AnswerTask)
}

func newTaskMessageCommand(s *shell) *cobra.Command {
	return newTaskTell(s, "message", "Tell a task that is READY, asks or ended badly to work on", "-m \"also handle refunds\"", app.API.MessageTask)
}

// newTaskTell is a command that tells one task something: a method of app.API.
func newTaskTell(s *shell, use, short, example string, tell func(api app.API, ctx context.Context, ref, text string) (*app.TaskView, error)) *cobra.Command {
	var text texts
	c := &cobra.Command{
		Use: use + " ID [TEXT]", Short: short, Args: takes("ID", "[TEXT]"),
		Example: "  claudomator task " + use + " basket " + example, ValidArgsFunction: s.completeTasks,
	}
	text.define(c)
	c.RunE = s.call(func(ctx context.Context, api app.API, args []string) error {
		told, err := text.read(c, s, args[1:])
		if err != nil {
			return err
		}
		return s.acted(tell(api, ctx, args[0], told))
	})
	return c
}

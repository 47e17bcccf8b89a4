package cli

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

func newTaskCommand(s *shell) *cobra.Command {
	return newGroup("task", "Units of work that agents do and people accept",
		newTaskCreateCommand(s), newTaskListCommand(s), newTaskShowCommand(s), newTaskTreeCommand(s), newTaskLogsCommand(s),
		newTaskDiffCommand(s), newTaskWaitCommand(s), newTaskSetCommand(s), newTaskStartCommand(s), newTaskAcceptCommand(s),
		newTaskRejectCommand(s), newTaskAnswerCommand(s), newTaskMessageCommand(s), newTaskRetryCommand(s), newTaskCancelCommand(s),
		newTaskSubmitCommand(s), newTaskDropCommand(s), newTaskPostponeCommand(s), newTaskRemoveCommand(s))
}

func newTaskListCommand(s *shell) *cobra.Command {
	var q app.TaskQuery
	var states []string
	c := &cobra.Command{
		Use: "list", Short: "List tasks, newest first", Args: takes(),
		Example: "  claudomator task list --project shop --state READY,BLOCKED",
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.StringVar(&q.Project, "project", "", "of one project")
	flags.StringSliceVar(&states, "state", nil, "in these states, separated by commas")
	flags.StringVar(&q.Parent, "parent", "", "below one task")
	flags.StringVar(&q.Tag, "tag", "", "with a tag")
	flags.StringVar(&q.Text, "text", "", "with a text in name or description")
	flags.BoolVar(&q.TopLevel, "top", false, "without subtasks")
	flags.BoolVar(&q.All, "all", false, "rejected attempts and judging tasks too")
	flags.IntVar(&q.Limit, "limit", 50, "at most so many; 0: all")
	_ = c.RegisterFlagCompletionFunc("project", s.completeProjects) // fails only for a flag that does not exist
	c.RunE = func(c *cobra.Command, args []string) error {
		var err error
		if q.States, err = parseStates(c, states); err != nil {
			return err
		}
		if q.Limit < 0 {
			return usageError(c, "--limit must not be negative")
		}
		return s.call(func(ctx context.Context, api app.API, _ []string) error { return s.listTasks(ctx, api, q) })(c, args)
	}
	return c
}

// listTasks goes through the pages, as far as it is asked to.
func (s *shell) listTasks(ctx context.Context, api app.API, q app.TaskQuery) error {
	all, more, err := pages(q.Limit, func(after string, limit int) (app.Page[*work.Task], error) {
		q.After, q.Limit = after, limit
		return api.Tasks(ctx, q)
	})
	if err != nil {
		return err
	}
	projects, err := projectNames(ctx, api, s.format)
	if err != nil {
		return err
	}
	return s.show(all, func(p *page) {
		p.tasks(all, projects)
		p.more(more)
	})
}

// pages reads a list page by page, at most so many of it (0: all), and tells
// whether there is more.
func pages[T any](most int, read func(after string, limit int) (app.Page[T], error)) (all []T, more bool, err error) {
	const page500 = 500 // the largest page
	all = []T{}
	for after := ""; ; {
		limit := page500
		if most > 0 {
			limit = min(page500, most-len(all))
		}
		got, err := read(after, limit)
		if err != nil {
			return nil, false, err
		}
		all = append(all, got.Items...)
		after = got.Next
		if after == "" || (most > 0 && len(all) >= most) {
			return all, after != "", nil
		}
	}
}

// more says that a list goes on.
func (p *page) more(more bool) {
	if more {
		p.line("%s", p.style(dim, "there are more: raise --limit, or set it to 0"))
	}
}

// projectNames maps ids to names; programs do not need it.
func projectNames(ctx context.Context, api app.API, f format) (map[work.ProjectID]string, error) {
	if f == jsonFormat {
		return nil, nil
	}
	all, err := api.Projects(ctx)
	names := map[work.ProjectID]string{}
	for _, x := range all {
		names[x.ID] = x.Name
	}
	return names, err
}

func (p *page) tasks(all []*work.Task, projects map[work.ProjectID]string) {
	if len(all) == 0 {
		p.line("no tasks")
		return
	}
	ids := make([]string, len(all))
	for i, t := range all {
		ids[i] = string(t.ID)
	}
	short := shorten(ids)
	var rows [][]string
	for _, t := range all {
		project := projects[t.ProjectID]
		if project == "" {
			project = string(t.ProjectID)
		}
		rows = append(rows, []string{short(string(t.ID)), string(t.State), waitsFor(t), p.ago(t.UpdatedAt), project, t.Name})
	}
	p.table("", []string{"ID", "STATE", "WAITS FOR", "CHANGED", "PROJECT", "NAME"}, rows)
}

// waitsFor is what a task waits for, in a word or two.
func waitsFor(t *work.Task) string {
	if t.BlockedOn == work.OnPerson && t.Hold != work.NoHold {
		return "person: " + string(t.Hold)
	}
	return string(t.BlockedOn)
}

// taskLine is the short answer to most commands.
func (p *page) taskLine(v *app.TaskView) {
	line := string(v.ID) + "  " + p.style(colorOf(string(v.State)), string(v.State))
	if on := waitsFor(&v.Task); on != "" {
		line += " (" + inert(on) + ")"
	}
	line += "  " + inert(v.Name)
	if v.Reason != "" {
		line += ": " + inert(v.Reason)
	}
	p.line("%s", line)
}

// acted answers with the task an action was done to.
func (s *shell) acted(view *app.TaskView, err error) error {
	if err != nil {
		return err
	}
	return s.show(view, func(p *page) { p.taskLine(view) })
}

// parseStates reads state names in any case.
func parseStates(c *cobra.Command, names []string) ([]work.State, error) {
	return parseAll(c, "state", work.States(), names)
}

// wordsOf are the words of a closed set as texts.
func wordsOf[T ~string](list []T) []string {
	words := make([]string, len(list))
	for i, word := range list {
		words[i] = string(word)
	}
	return words
}

// parseAll reads names of a closed set in any case.
func parseAll[T ~string](c *cobra.Command, what string, known []T, names []string) ([]T, error) {
	var out []T
	for _, name := range names {
		word := T(strings.ToUpper(strings.TrimSpace(name)))
		if !slices.Contains(known, word) {
			words := wordsOf(known)
			err := usageError(c, "there is no %s %q", what, name).WithHint("one of: %s", strings.Join(words, ", "))
			if meant := nearest(string(word), words); meant != "" {
				err = err.WithHint("did you mean %s?", meant)
			}
			return nil, err
		}
		out = append(out, word)
	}
	return out, nil
}

func newTaskDiffCommand(s *shell) *cobra.Command {
	return &cobra.Command{
		Use: "diff ID", Short: "Print what a task changed, as a patch", Args: takes("ID"),
		Example:           "  claudomator task diff basket\n  claudomator task diff basket | git apply",
		ValidArgsFunction: s.completeTasks,
		RunE: s.call(func(ctx context.Context, api app.API, args []string) error {
			switch {
			case s.format == jsonFormat:
				view, err := api.Task(ctx, args[0])
				if err != nil {
					return err
				}
				var patch strings.Builder
				if err := api.TaskDiff(ctx, string(view.ID), &patch); err != nil {
					return err
				}
				return encode(s.Out, map[string]any{"id": view.ID, "diff": patch.String()})
			case s.Terminal:
				patch := patchWriter{shell: s}
				if err := api.TaskDiff(ctx, args[0], &patch); err != nil {
					return err
				}
				return patch.end()
			}
			return api.TaskDiff(ctx, args[0], s.Out) // byte for byte: git apply reads it
		}),
	}
}

// patchWriter shows a patch on a terminal: coloured, and without effect on it.
type patchWriter struct {
	shell *shell
	rest  []byte // of a line that is not complete
}

// Write takes a piece of the patch.
func (w *patchWriter) Write(data []byte) (int, error) {
	w.rest = append(w.rest, data...)
	p := w.shell.page()
	for {
		i := slices.Index(w.rest, '\n')
		if i < 0 {
			return len(data), w.shell.flush(p)
		}
		p.patchLine(string(w.rest[:i]))
		w.rest = w.rest[i+1:]
	}
}

func (w *patchWriter) end() error {
	if len(w.rest) == 0 {
		return nil
	}
	p := w.shell.page()
	p.patchLine(string(w.rest))
	return w.shell.flush(p)
}

func (p *page) patchLine(text string) {
	color := ""
	switch {
	case strings.HasPrefix(text, "diff ") || strings.HasPrefix(text, "+++") || strings.HasPrefix(text, "---"):
		color = bold
	case strings.HasPrefix(text, "index "):
		text, color = p.clip(text, 0), dim
	case strings.HasPrefix(text, "@@"):
		color = cyan
	case strings.HasPrefix(text, "+"):
		color = green
	case strings.HasPrefix(text, "-"):
		color = red
	}
	p.line("%s", p.style(color, inertLine(strings.ToValidUTF8(text, "\uFFFD"))))
}

// completeTasks offers the ids of tasks with their names; a server that cannot
// be reached offers nothing.
func (s *shell) completeTasks(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return s.complete(c, args, func(ctx context.Context, api app.API) ([]string, error) {
		got, err := api.Tasks(ctx, app.TaskQuery{Limit: 200})
		var out []string
		for _, t := range got.Items {
			out = append(out, head(string(t.ID), 8)+"\t"+inert(t.Name)+" ("+string(t.State)+")")
		}
		return out, err
	})
}

func (s *shell) completeProjects(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return s.complete(c, args, func(ctx context.Context, api app.API) ([]string, error) {
		all, err := api.Projects(ctx)
		var out []string
		for _, x := range all {
			out = append(out, x.Name)
		}
		return out, err
	})
}

func (s *shell) complete(c *cobra.Command, args []string, ask func(context.Context, app.API) ([]string, error)) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 && len(c.ValidArgs) == 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	api, err := s.connect(c.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	out, err := ask(c.Context(), api)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// count is a number with its noun.
func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return strconv.Itoa(n) + " " + noun
}

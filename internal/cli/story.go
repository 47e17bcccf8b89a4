package cli

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

func newStoryCommand(s *shell) *cobra.Command {
	return newGroup("story", "Goals that become a plan, a reviewed branch, and a ship",
		newStoryElaborateCommand(s), newStoryApproveCommand(s), newStoryListCommand(s), newStoryShowCommand(s), newStoryPlanCommand(s),
		newStorySetCommand(s), newStoryTreeCommand(s), newStoryWatchCommand(s), newStoryWaitCommand(s), newStoryAcceptCommand(s),
		newStoryRejectCommand(s), newStoryShipCommand(s), newStoryStopDeployCommand(s), newStoryCancelCommand(s))
}

func newStoryElaborateCommand(s *shell) *cobra.Command {
	var in app.ElaborateInput
	var file string
	var wait bool
	c := &cobra.Command{
		Use: "elaborate [GOAL]", Short: "Begin a story: a planner reads the repository and makes a plan for a goal", Args: takes("[GOAL]"),
		Long: "Begin a story: a planner reads the repository and makes a plan for a goal. The story is a\n" +
			"DRAFT until the plan is approved. The goal is GOAL, or comes from a file or (-) standard\n" +
			"input. With --wait it returns when the plan is there, or the planner needs a person; exit\n" +
			"code 8 when the planner has failed.",
		Example: "  claudomator story elaborate --project shop \"Customers can pay with gift cards\"\n" +
			"  claudomator story elaborate --project shop --wait -f goal.md",
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.StringVar(&in.Project, "project", "", "name or id of the project")
	flags.StringVar(&in.Name, "name", "", "what the story is called (default: the first line of the goal)")
	flags.StringVar(&in.Policy, "policy", "", "review policy: arbitrated or checked")
	flags.StringVar(&in.Epic, "epic", "", "epic it belongs to")
	flags.StringVar(&in.Agent, "agent", "", "agent type of the planner")
	flags.StringVarP(&file, "file", "f", "", "the goal from a file, or - for standard input")
	flags.BoolVar(&wait, "wait", false, "return when the plan is there, or the planner needs a person")
	flags.StringVar(&in.IdempotencyKey, "idempotency-key", "", "a repeated request with the same key makes nothing new")
	s.completeStoryFlags(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		var err error
		if in.Goal, err = s.goal(c, args, file); err != nil {
			return err
		}
		return s.call(func(ctx context.Context, api app.API, _ []string) error {
			made, err := api.Elaborate(ctx, in)
			if err != nil {
				return err
			}
			if err := s.show(made, func(p *page) { p.elaborated(made) }); err != nil || !wait {
				return err
			}
			return s.planned(ctx, api, string(made.StoryID))
		})(c, args)
	}
	return c
}

// goal is the one text that was given.
func (s *shell) goal(c *cobra.Command, args []string, file string) (string, error) {
	switch {
	case len(args) > 0 && file != "":
		return "", usageError(c, "%s takes one goal", c.CommandPath()).WithHint("give GOAL or -f FILE")
	case len(args) > 0 && args[0] != "-":
		return args[0], nil
	case len(args) == 0 && file == "":
		return "", usageError(c, "%s needs a goal", c.CommandPath()).WithHint("say what is wanted: claudomator story elaborate \"Customers can pay with gift cards\"")
	}
	text, err := s.readText(cmp.Or(file, "-"))
	if err == nil && strings.TrimSpace(text) == "" {
		return "", usageError(c, "the goal is empty")
	}
	return text, err
}

func (p *page) elaborated(made *app.Elaborated) {
	p.field("story", string(made.StoryID))
	p.field("planner", string(made.TaskID))
	p.next(
		"story watch "+string(made.StoryID), "shows what the planner does",
		"task answer "+string(made.TaskID)+" TEXT", "answers it, when it asks something",
		"story show "+string(made.StoryID), "shows the plan, when it is there",
		"story approve "+string(made.StoryID), "begins the work",
	)
}

// next prints commands that can be copied, each with what it does.
func (p *page) next(pairs ...string) {
	widest := 0
	for i := 0; i < len(pairs); i += 2 {
		widest = max(widest, columns(pairs[i]))
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		p.line("  claudomator %s  %s", pad(pairs[i], widest), p.style(dim, "# "+pairs[i+1]))
	}
}

// planned waits for a story's plan, and says how far it came.
func (s *shell) planned(ctx context.Context, api app.API, story string) error {
	w := storyWaiter{api: api, ref: story, leaves: work.Draft}
	if err := w.watch().run(ctx); err != nil {
		return err
	}
	if s.format != jsonFormat {
		items, err := itemsOf(ctx, api, w.view.ID)
		if err != nil {
			return err
		}
		p := s.page()
		p.storyLine(w.view)
		p.attention(slices.DeleteFunc(items, func(i work.Item) bool { return i.Kind == work.ItemStory }), "")
		if err := s.flush(p); err != nil {
			return err
		}
	}
	return w.verdict()
}

func newStoryListCommand(s *shell) *cobra.Command {
	var q app.StoryQuery
	var statuses []string
	c := &cobra.Command{
		Use: "list", Short: "List stories, newest first", Args: takes(),
		Example: "  claudomator story list --project shop --status REVIEW_READY,SHIPPABLE",
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.StringVar(&q.Project, "project", "", "of one project")
	flags.StringVar(&q.Epic, "epic", "", "of one epic")
	flags.StringSliceVar(&statuses, "status", nil, "with these statuses, separated by commas")
	flags.StringVar(&q.Text, "text", "", "with a text in name or goal")
	flags.IntVar(&q.Limit, "limit", 50, "at most so many; 0: all")
	s.completeStoryFlags(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		var err error
		if q.Statuses, err = parseStatuses(c, statuses); err != nil {
			return err
		}
		if q.Limit < 0 {
			return usageError(c, "--limit must not be negative")
		}
		return s.call(func(ctx context.Context, api app.API, _ []string) error { return s.listStories(ctx, api, q) })(c, args)
	}
	return c
}

// listStories goes through the pages, as far as it is asked to.
func (s *shell) listStories(ctx context.Context, api app.API, q app.StoryQuery) error {
	all, more, err := pages(q.Limit, func(after string, limit int) (app.Page[*work.Story], error) {
		q.After, q.Limit = after, limit
		return api.Stories(ctx, q)
	})
	if err != nil {
		return err
	}
	projects, err := projectNames(ctx, api, s.format)
	if err != nil {
		return err
	}
	epics := map[work.EpicID]string{}
	if s.format != jsonFormat && slices.ContainsFunc(all, func(y *work.Story) bool { return y.EpicID != "" }) {
		known, err := api.Epics(ctx)
		if err != nil {
			return err
		}
		for _, e := range known {
			epics[e.ID] = e.Name
		}
	}
	return s.show(all, func(p *page) {
		p.stories(all, projects, epics)
		p.more(more)
	})
}

func (p *page) stories(all []*work.Story, projects map[work.ProjectID]string, epics map[work.EpicID]string) {
	if len(all) == 0 {
		p.line("no stories")
		return
	}
	ids := make([]string, len(all))
	for i, y := range all {
		ids[i] = string(y.ID)
	}
	short := shorten(ids)
	header := []string{"ID", "STATUS", "CHANGED", "PROJECT", "EPIC", "NAME"}
	const epic = 4
	var rows [][]string
	for _, y := range all {
		rows = append(rows, []string{short(string(y.ID)), string(y.Status), p.ago(y.UpdatedAt), cmp.Or(projects[y.ProjectID], string(y.ProjectID)), cmp.Or(epics[y.EpicID], string(y.EpicID)), y.Name})
	}
	if len(epics) == 0 {
		header = slices.Delete(header, epic, epic+1)
		for i := range rows {
			rows[i] = slices.Delete(rows[i], epic, epic+1)
		}
	}
	p.table("", header, rows)
}

// parseStatuses reads status names in any case.
func parseStatuses(c *cobra.Command, names []string) ([]work.StoryStatus, error) {
	return parseAll(c, "story status", work.StoryStatuses(), names)
}

// itemsOf lists what of a story needs a person.
func itemsOf(ctx context.Context, api app.API, story work.StoryID) ([]work.Item, error) {
	items, err := api.Attention(ctx)
	return slices.DeleteFunc(slices.Clone(items), func(i work.Item) bool { return i.StoryID != story }), err
}

// storyLine is the short answer to most commands about a story.
func (p *page) storyLine(v *app.StoryView) {
	name := inert(v.Name)
	if p.width > 0 {
		name = cut(name, max(p.width-columns(string(v.ID)+string(v.Status))-4, 1))
	}
	p.line("%s  %s  %s", v.ID, p.style(colorOf(string(v.Status)), string(v.Status)), name)
	p.paragraph("", "  ", storyState(p, v))
	p.possible(dim, "  ", actWords(v.Actions))
}

// storyState is what a story's status means now: what it needs, as the server says,
// or what goes on.
func storyState(p *page, v *app.StoryView) string {
	if v.Needs != "" {
		return v.Needs
	}
	switch v.Status {
	case work.Draft:
		return "its plan is being made by task " + string(v.Planner)
	case work.InProgress:
		return "its tasks are being worked on"
	case work.Validating:
		return "what stands at its root is being reviewed"
	case work.NeedsFix:
		return "what stood at its root was rejected, and is to be fixed"
	case work.Shipping:
		if v.Ship != nil {
			return "it is being shipped: " + stepText(v.Ship.Step)
		}
	case work.Deployed:
		if v.Shipped != nil {
			return "shipped as " + head(v.Shipped.Commit, 12) + ", " + p.ago(v.Shipped.At)
		}
	case work.ReviewReady, work.Shippable, work.DeployFailed, work.StoryCancelled:
		// The first three need somebody.
	}
	return ""
}

// actWords are the commands that can be given to a story now.
func actWords(acts []work.Act) []string {
	words := wordsOf(acts)
	for i, act := range acts {
		if act == work.ActEdit {
			words[i] = "set"
		}
		words[i] = "story " + words[i]
	}
	return words
}

// completeStories offers the ids of stories with their names.
func (s *shell) completeStories(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return s.complete(c, args, func(ctx context.Context, api app.API) ([]string, error) {
		got, err := api.Stories(ctx, app.StoryQuery{Limit: 200})
		var out []string
		for _, y := range got.Items {
			out = append(out, head(string(y.ID), 8)+"\t"+inert(y.Name)+" ("+string(y.Status)+")")
		}
		return out, err
	})
}

// completeStoryFlags completes those of --project, --epic, --status and --for that
// the command has.
func (s *shell) completeStoryFlags(c *cobra.Command) {
	for flag, complete := range map[string]cobra.CompletionFunc{
		"project": s.completeProjects, "epic": s.completeEpics, "status": completeStatuses, "for": completeStatuses,
	} {
		if c.Flags().Lookup(flag) != nil {
			_ = c.RegisterFlagCompletionFunc(flag, complete) // fails only for a flag that does not exist
		}
	}
}

func completeStatuses(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return wordsOf(work.StoryStatuses()), cobra.ShellCompDirectiveNoFileComp
}

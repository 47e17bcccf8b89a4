package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

func newStoryApproveCommand(s *shell) *cobra.Command {
	var file, template string
	var in app.ApproveInput
	c := &cobra.Command{
		Use: "approve [STORY]", Short: "Approve a plan, of a story or from a file: its tasks begin", Args: takes("[STORY]"),
		Long: "Approve the plan of a story that is a DRAFT, or make a story of the plan in a file and\n" +
			"approve it at once: YAML or JSON, with the names that \"story plan\" prints. The whole file is\n" +
			"checked before anything is made. --template reads the plan from the project's repository\n" +
			"instead. --project, --epic, --draft and --idempotency-key go with these two only.\n" +
			"-o json prints the story, and the ids of the plan's tasks in order.",
		Example: "  claudomator story approve gift-cards\n  claudomator story approve -f plan.yaml --project shop\n" +
			"  claudomator story approve -f - --project shop --draft -o json <plan.json\n  claudomator story approve --template release --project shop",
		ValidArgsFunction: s.completeStories,
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.StringVarP(&file, "file", "f", "", "plan file, or - for standard input")
	flags.StringVar(&template, "template", "", "plan in .claudomator/stories of the project's repository, by its name")
	flags.StringVar(&in.Project, "project", "", "name or id of the project, whatever the plan says")
	flags.StringVar(&in.Epic, "epic", "", "epic it belongs to")
	flags.BoolVar(&in.Draft, "draft", false, "only keep it as a DRAFT")
	flags.StringVar(&in.IdempotencyKey, "idempotency-key", "", "a repeated request with the same key makes nothing new")
	s.completeStoryFlags(c)
	_ = c.RegisterFlagCompletionFunc("template", s.completeTemplates(app.StoryTemplate, &in.Project))
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) > 0 {
			return s.approveStory(c, args)
		}
		if err := atMostOne(c, "file", "template"); err != nil {
			return err
		}
		if template != "" {
			return s.call(func(ctx context.Context, api app.API, _ []string) error {
				return s.approveTemplate(ctx, api, template, in)
			})(c, args)
		}
		if file == "" {
			return usageError(c, "%s needs STORY, or a plan with -f or --template", c.CommandPath())
		}
		var whole app.ApproveInput
		plan, err := s.readPlan(file, &whole)
		if err != nil {
			return err
		}
		overlay(&whole, in)
		return s.call(func(ctx context.Context, api app.API, _ []string) error {
			made, err := api.ApprovePlan(ctx, whole)
			return s.approved(made, plan.located(err))
		})(c, args)
	}
	return c
}

// overlay lets flags win over what a plan's file says.
func overlay(whole *app.ApproveInput, in app.ApproveInput) {
	whole.IdempotencyKey, whole.Draft, whole.Epic = in.IdempotencyKey, whole.Draft || in.Draft, cmp.Or(in.Epic, whole.Epic)
	if in.Project != "" {
		whole.Project, whole.ProjectID = in.Project, ""
	}
}

// approveTemplate makes a story of a plan in the project's repository.
func (s *shell) approveTemplate(ctx context.Context, api app.API, name string, in app.ApproveInput) error {
	t, err := s.useTemplate(ctx, api, in.Project, app.StoryTemplate, name)
	if err != nil {
		return err
	}
	var whole app.ApproveInput
	plan, err := parsePlan(t.Path, []byte(t.Text), &whole)
	if err != nil {
		return err
	}
	overlay(&whole, in)
	made, err := api.ApprovePlan(ctx, whole)
	return s.approved(made, plan.located(err))
}

func (s *shell) approveStory(c *cobra.Command, args []string) error {
	if flags := givenFlags(c); len(flags) > 0 {
		return usageError(c, "--%s does not go with STORY", flags[0]).WithHint("change the story with `claudomator story set %s`, then approve it", args[0])
	}
	return s.call(func(ctx context.Context, api app.API, args []string) error {
		return s.approved(api.ApproveStory(ctx, args[0]))
	})(c, args)
}

// approved answers with a story whose plan was taken.
func (s *shell) approved(made *app.Approved, err error) error {
	if err != nil {
		return err
	}
	made.TaskIDs = list(made.TaskIDs)
	return s.show(made, func(p *page) {
		v := made.Story
		p.storyLine(v)
		for i, id := range made.TaskIDs {
			name := ""
			if v.Plan != nil && i < len(v.Plan.Tasks) {
				name = v.Plan.Tasks[i].Name
			}
			p.line("  %s  %s", id, p.clip(inert(name), len(id)+4))
		}
		if v.Status == work.Draft {
			p.next("story approve "+string(v.ID), "begins the work")
			return
		}
		p.next("story watch "+string(v.ID), "shows how it goes", "story wait "+string(v.ID), "returns when it needs a person, or is over")
	})
}

func newStoryPlanCommand(s *shell) *cobra.Command {
	return &cobra.Command{
		Use: "plan STORY", Short: "Print a story's plan as YAML, to be edited and given again", Args: takes("STORY"),
		Long: "Print a story's plan as YAML, with what was edited since. \"story set --plan\" takes it back,\n" +
			"\"story approve -f\" makes another story of it.",
		Example:           "  claudomator story plan gift-cards >plan.yaml",
		ValidArgsFunction: s.completeStories,
		RunE: s.call(func(ctx context.Context, api app.API, args []string) error {
			view, err := api.Story(ctx, args[0])
			if err != nil {
				return err
			}
			if view.Plan == nil {
				err := work.Errorf(work.Illegal, "story %s has no plan", view.ID).WithReason("no_plan")
				if view.PlanError != "" {
					err = work.Errorf(work.Illegal, "story %s has no usable plan: %s", view.ID, view.PlanError).WithReason("no_plan")
				}
				return err.WithHint("write one, and give it with `claudomator story set %s --plan FILE`", view.ID)
			}
			project, err := api.Project(ctx, string(view.ProjectID))
			if err != nil {
				return err
			}
			plan := planOf(&view.Story, project.Name)
			if s.format == jsonFormat {
				return encode(s.Out, plan)
			}
			text, err := writePlan(plan)
			if err != nil {
				return err
			}
			if _, err := io.WriteString(s.Out, text); err != nil {
				return fmt.Errorf("print: %w", err)
			}
			return nil
		}),
	}
}

func newStorySetCommand(s *shell) *cobra.Command {
	var name, goal, spec, specFile, policy, branch, epic, plan string
	var accept []string
	c := &cobra.Command{
		Use: "set STORY", Short: "Change a story; its plan while it is a DRAFT", Args: takes("STORY"),
		Long: "Change a story. What is not given stays; after its approval only --name, --epic and, until\n" +
			"it is shipped, --branch can be changed. --plan replaces the whole plan by the one in a file,\n" +
			"as \"story plan\" prints it. A list that is given replaces the old one; one empty text\n(--accept \"\", --epic \"\") takes it away.",
		Example:           "  claudomator story set gift-cards --plan plan.yaml\n  claudomator story set gift-cards --epic Payment --accept \"a card cannot be used twice\"",
		ValidArgsFunction: s.completeStories,
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.StringVar(&name, "name", "", "what the story is called")
	flags.StringVar(&goal, "goal", "", "what is wanted")
	flags.StringVar(&spec, "spec", "", "what is to be built, precisely")
	flags.StringVar(&specFile, "spec-file", "", "the same from a file, or - for standard input")
	flags.StringVar(&policy, "policy", "", "review policy: arbitrated or checked")
	flags.StringVar(&branch, "branch", "", "branch of the result")
	flags.StringArrayVar(&accept, "accept", nil, "acceptance criterion of the whole (repeatable)")
	flags.StringVar(&epic, "epic", "", "epic it belongs to")
	flags.StringVar(&plan, "plan", "", "file of a whole plan, or - for standard input")
	s.completeStoryFlags(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(givenFlags(c)) == 0 {
			return usageError(c, "nothing to change was given")
		}
		if err := atMostOne(c, "spec", "spec-file"); err != nil {
			return err
		}
		var in app.StoryPatch
		given(c, "name", &in.Name, name)
		given(c, "goal", &in.Goal, goal)
		given(c, "spec", &in.Spec, spec)
		given(c, "policy", &in.Policy, policy)
		given(c, "branch", &in.BranchName, branch)
		given(c, "accept", &in.AcceptanceCriteria, app.StringList(emptied(accept)))
		given(c, "epic", &in.Epic, epic)
		if specFile != "" {
			text, err := s.readText(specFile)
			if err != nil {
				return err
			}
			in.Spec = &text
		}
		var file planFile
		if slices.Contains(givenFlags(c), "plan") {
			var err error
			in.Plan = new(app.PlanInput)
			if file, err = s.readPlan(plan, in.Plan); err != nil {
				return err
			}
		}
		return s.call(func(ctx context.Context, api app.API, args []string) error {
			view, err := api.EditStory(ctx, args[0], in)
			return s.storyActed(view, file.located(err))
		})(c, args)
	}
	return c
}

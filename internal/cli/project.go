package cli

import (
	"context"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

func newProjectCommand(s *shell) *cobra.Command {
	return newGroup("project", "Repositories with their commands, limits and review policy",
		newProjectAddCommand(s), newProjectListCommand(s), newProjectShowCommand(s), newProjectSetCommand(s), newProjectRemoveCommand(s))
}

func newProjectAddCommand(s *shell) *cobra.Command {
	var in projectFlags
	c := &cobra.Command{
		Use: "add NAME", Short: "Register a repository", Args: takes("NAME"),
		Long:    "Register a repository, by a path on the server's machine or a URL. Without --repo the\nproject gets an empty repository of its own.",
		Example: "  claudomator project add shop --repo ~/src/shop --validate \"go test ./...\" --policy checked",
	}
	in.define(c)
	c.RunE = s.call(func(ctx context.Context, api app.API, args []string) error {
		input, err := in.input(c)
		if err != nil {
			return err
		}
		input.Name = &args[0]
		p, err := api.AddProject(ctx, input)
		if err != nil {
			return err
		}
		return s.showProject(p)
	})
	return c
}

func newProjectListCommand(s *shell) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the projects", Args: takes(), Example: "  claudomator project list",
		RunE: s.call(func(ctx context.Context, api app.API, _ []string) error {
			all, err := api.Projects(ctx)
			if err != nil {
				return err
			}
			return s.show(list(all), func(p *page) {
				var rows [][]string
				for _, x := range all {
					rows = append(rows, []string{x.Name, x.Branch, x.Policy, x.Agent, x.Repository})
				}
				p.table("", []string{"NAME", "BRANCH", "POLICY", "AGENT", "REPOSITORY"}, rows)
			})
		}),
	}
}

func newProjectShowCommand(s *shell) *cobra.Command {
	return &cobra.Command{
		Use: "show NAME", Short: "Show a project", Args: takes("NAME"), Example: "  claudomator project show shop",
		ValidArgsFunction: s.completeProjects,
		RunE: s.call(func(ctx context.Context, api app.API, args []string) error {
			p, err := api.Project(ctx, args[0])
			if err != nil {
				return err
			}
			return s.showProject(p)
		}),
	}
}

func newProjectSetCommand(s *shell) *cobra.Command {
	var in projectFlags
	var name string
	c := &cobra.Command{
		Use: "set NAME", Short: "Change a project; what is not given stays", Args: takes("NAME"),
		Long: "Change a project. What is not given stays; a list that is given replaces the old one, and one\n" +
			"empty text (--validate \"\", --lesson \"\") takes it away.",
		Example: "  claudomator project set shop --policy human --max-fixes 2\n  claudomator project set shop --ship-mode pull_request --forge-token-env FORGE_TOKEN\n" +
			"  claudomator project set shop --drop-lesson 2,3 --add-lesson \"make test needs the database of make db\"",
		ValidArgsFunction: s.completeProjects,
	}
	in.define(c)
	c.Flags().StringVar(&name, "name", "", "a new name")
	c.Flags().StringArrayVar(&in.addLessons, "add-lesson", nil, "one more thing that agents should know (repeatable)")
	c.Flags().IntSliceVar(&in.dropLessons, "drop-lesson", nil, "numbers of lessons to take away, as project show has them")
	c.RunE = s.call(func(ctx context.Context, api app.API, args []string) error {
		input, err := in.input(c)
		if err != nil {
			return err
		}
		if c.Flags().Changed("name") {
			input.Name = &name
		}
		if len(in.addLessons) > 0 || len(in.dropLessons) > 0 {
			now, err := api.Project(ctx, args[0])
			if err != nil {
				return err
			}
			if err := in.editLessons(c, &input, now); err != nil {
				return err
			}
		}
		p, err := api.SetProject(ctx, args[0], input)
		if err != nil {
			return err
		}
		return s.showProject(p)
	})
	return c
}

func newProjectRemoveCommand(s *shell) *cobra.Command {
	return &cobra.Command{
		Use: "rm NAME", Short: "Remove a project whose work is over; its repository stays", Args: takes("NAME"),
		Example: "  claudomator project rm shop", ValidArgsFunction: s.completeProjects,
		RunE: s.call(func(ctx context.Context, api app.API, args []string) error {
			p, err := api.Project(ctx, args[0])
			if err != nil {
				return err
			}
			if err := api.RemoveProject(ctx, string(p.ID)); err != nil {
				return err
			}
			return s.removed(string(p.ID), "project "+p.Name)
		}),
	}
}

// removed answers that something is gone.
func (s *shell) removed(id, what string) error {
	return s.show(map[string]any{"id": id, "removed": true}, func(p *page) { p.line("removed %s", inert(what)) })
}

// projectFlags are the flags that add and set share.
type projectFlags struct {
	repo, branch, setup, deploy, policy, agent, isolation string
	shipMode, forgeKind, forgeAPI, forgeTokenEnv          string
	validate, policyFor, env, lessons, evaluators         []string
	addLessons                                            []string
	dropLessons                                           []int
	maxFixes, slots                                       int
	timeout, silence                                      time.Duration
	autoLand                                              bool
}

func (f *projectFlags) define(c *cobra.Command) {
	flags := c.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.repo, "repo", "", "path or URL of the repository")
	flags.StringVar(&f.branch, "branch", "", "branch that work starts from and lands on (default: the repository's own)")
	flags.StringVar(&f.setup, "setup", "", "command that prepares a fresh workspace")
	flags.StringArrayVar(&f.validate, "validate", nil, "gate command that checks the work (repeatable)")
	flags.StringVar(&f.deploy, "deploy", "", "command that deploys what was shipped")
	flags.StringVar(&f.shipMode, "ship-mode", "", "direct: the branch is moved; pull_request: it is merged at the forge")
	flags.StringVar(&f.forgeKind, "forge-kind", "", "github or gitea (Forgejo too); by the remote's host when left out")
	flags.StringVar(&f.forgeAPI, "forge-api", "", "base address of the forge's API, where it is not the host's usual one")
	flags.StringVar(&f.forgeTokenEnv, "forge-token-env", "", "environment variable of the server that holds the forge's token")
	flags.StringVar(&f.policy, "policy", "", "review policy: none, human, checked or arbitrated")
	flags.StringArrayVar(&f.policyFor, "policy-for", nil, "ROLE/DEPTH=POLICY, either may be * (repeatable)")
	flags.StringVar(&f.agent, "agent", "", "agent type that works where a task names none")
	flags.StringVar(&f.isolation, "isolation", "", "how runs are kept apart: none, which keeps nothing apart; no other is built yet")
	flags.IntVar(&f.maxFixes, "max-fixes", 0, "fix attempts before a person decides")
	flags.StringArrayVar(&f.evaluators, "evaluator", nil, "role that judges in an arbitrated review; all four when left out (repeatable)")
	flags.BoolVar(&f.autoLand, "auto-land", false, "land accepted work without being asked")
	flags.IntVar(&f.slots, "slots", 0, "executions that run at once; 0: no limit of its own")
	flags.DurationVar(&f.timeout, "timeout", 0, "how long an execution may run")
	flags.DurationVar(&f.silence, "silence", 0, "how long an execution may run without output")
	flags.StringArrayVar(&f.env, "env", nil, "NAME=VALUE for agents and commands (repeatable)")
	flags.StringArrayVar(&f.lessons, "lesson", nil, "what agents should know (repeatable)")
}

// input holds what was given; of a list or map that was given, the whole.
func (f *projectFlags) input(c *cobra.Command) (app.ProjectInput, error) {
	var in app.ProjectInput
	repo, err := absolute(f.repo)
	if err != nil {
		return in, err
	}
	given(c, "repo", &in.Repository, repo)
	given(c, "branch", &in.Branch, f.branch)
	given(c, "setup", &in.Setup, f.setup)
	given(c, "validate", &in.Validate, emptied(f.validate))
	given(c, "deploy", &in.Deploy, f.deploy)
	given(c, "policy", &in.Policy, f.policy)
	given(c, "agent", &in.Agent, f.agent)
	given(c, "isolation", &in.Isolation, f.isolation)
	given(c, "max-fixes", &in.MaxFixes, f.maxFixes)
	given(c, "auto-land", &in.AutoLand, f.autoLand)
	given(c, "lesson", &in.Lessons, emptied(f.lessons))
	roles := []work.Role{}
	for _, role := range emptied(f.evaluators) {
		roles = append(roles, work.Role(role))
	}
	given(c, "evaluator", &in.Evaluators, roles)
	mode := work.ShipMode(f.shipMode)
	if f.shipMode == "direct" {
		mode = work.ShipDirectly
	}
	given(c, "ship-mode", &in.ShipMode, mode)
	var forge app.ForgeInput
	given(c, "forge-kind", &forge.Kind, f.forgeKind)
	given(c, "forge-api", &forge.API, f.forgeAPI)
	given(c, "forge-token-env", &forge.TokenEnv, f.forgeTokenEnv)
	if forge != (app.ForgeInput{}) {
		in.Forge = &forge
	}
	policies, err := pairs(c, "policy-for", f.policyFor)
	if err != nil {
		return in, err
	}
	given(c, "policy-for", &in.Policies, policies)
	environment, err := pairs(c, "env", f.env)
	if err != nil {
		return in, err
	}
	given(c, "env", &in.Environment, environment)
	var limits app.LimitsInput
	given(c, "slots", &limits.Slots, f.slots)
	given(c, "timeout", &limits.Timeout, work.Duration(f.timeout))
	given(c, "silence", &limits.Silence, work.Duration(f.silence))
	if limits != (app.LimitsInput{}) {
		in.Limits = &limits
	}
	return in, nil
}

// editLessons adds single lessons, and takes others away.
func (f *projectFlags) editLessons(c *cobra.Command, in *app.ProjectInput, now *work.Project) error {
	if in.Lessons != nil {
		return usageError(c, "--lesson replaces all lessons: it does not go with --add-lesson and --drop-lesson")
	}
	lessons := []string{}
	for i, lesson := range now.Lessons {
		if !slices.Contains(f.dropLessons, i+1) {
			lessons = append(lessons, lesson)
		}
	}
	for _, n := range f.dropLessons {
		if n < 1 || n > len(now.Lessons) {
			return usageError(c, "there is no lesson %d: the project has %d", n, len(now.Lessons)).WithHint("claudomator project show %s numbers them", now.Name)
		}
	}
	lessons = append(lessons, f.addLessons...)
	in.Lessons = &lessons
	return nil
}

// given sets a field of an input to what a flag was given as.
func given[T any](c *cobra.Command, flag string, field **T, value T) {
	if c.Flags().Changed(flag) {
		*field = &value
	}
}

// emptied makes an empty list of one empty text: `--validate ""` takes all away.
func emptied(items []string) []string {
	if len(items) == 1 && items[0] == "" {
		return []string{}
	}
	return items
}

// pairs reads NAME=VALUE texts; `--env ""` takes all away.
func pairs(c *cobra.Command, flag string, texts []string) (map[string]string, error) {
	out := map[string]string{}
	for _, text := range emptied(texts) {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, usageError(c, "--%s takes NAME=VALUE, not %q", flag, text)
		}
		out[name] = value
	}
	return out, nil
}

var remotePattern = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]*://|[^/]*:)`)

// absolute makes a path mean the same to a server in another folder; a URL (or
// HOST:PATH) stays as it is.
func absolute(repository string) (string, error) {
	if repository == "" || remotePattern.MatchString(repository) {
		return repository, nil
	}
	path, err := filepath.Abs(repository)
	if err != nil {
		return "", work.Errorf(work.Invalid, "find the repository: %w", err)
	}
	return path, nil
}

func (s *shell) showProject(x *work.Project) error {
	return s.show(x, func(p *page) {
		p.line("%s", p.style(bold, inert(x.Name)))
		p.field("id", string(x.ID))
		p.field("repository", x.Repository)
		p.field("branch", x.Branch)
		p.field("setup", x.Setup)
		for _, command := range x.Validate {
			p.field("validate", command)
		}
		p.field("deploy", x.Deploy)
		p.field("policy", x.Policy)
		for _, key := range slices.Sorted(maps.Keys(x.Policies)) {
			p.field("  "+key, x.Policies[key])
		}
		if x.MaxFixes != nil {
			p.field("max fixes", strconv.Itoa(*x.MaxFixes))
		}
		p.field("agent", x.Agent)
		p.field("isolation", x.Isolation)
		p.field("limits", limitsText(x.Limits))
		p.field("environment", strings.Join(slices.Sorted(maps.Keys(x.Environment)), ", ")) // values may be secrets
		if x.AutoLand {
			p.field("auto land", "yes")
		}
		if x.ShipMode != work.ShipDirectly {
			p.field("ship mode", string(x.ShipMode))
		}
		p.field("forge", forgeText(x.Forge))
		p.field("evaluators", strings.Join(wordsOf(x.Evaluators), ", "))
		for i, lesson := range x.Lessons {
			p.field("lesson "+strconv.Itoa(i+1), lesson)
		}
		p.field("created", p.ago(x.CreatedAt))
	})
}

func forgeText(f work.Forge) string {
	var parts []string
	for _, part := range []string{f.Kind, f.API} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if f.TokenEnv != "" {
		parts = append(parts, "token in "+f.TokenEnv)
	}
	return strings.Join(parts, ", ")
}

func limitsText(l work.Limits) string {
	var parts []string
	if l.Slots > 0 {
		parts = append(parts, strconv.Itoa(l.Slots)+" at once")
	}
	if l.Timeout > 0 {
		parts = append(parts, exact(time.Duration(l.Timeout))+" each")
	}
	if l.Silence > 0 {
		parts = append(parts, exact(time.Duration(l.Silence))+" without output")
	}
	return strings.Join(parts, ", ")
}

package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

func newRoleCommand(s *shell) *cobra.Command {
	return newGroup("role", "Who plans, builds and judges: agent, model, prompt and limits",
		newRoleListCommand(s), newRoleShowCommand(s), newRoleSetCommand(s))
}

func newRoleListCommand(s *shell) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the roles that are configured", Args: takes(), Example: "  claudomator role list",
		RunE: s.call(func(ctx context.Context, api app.API, _ []string) error {
			all, err := api.Roles(ctx)
			if err != nil {
				return err
			}
			names, err := projectNames(ctx, api, s.format)
			if err != nil {
				return err
			}
			return s.show(list(all), func(p *page) {
				if len(all) == 0 {
					p.line("no roles are configured")
					return
				}
				p.roles(all, names)
			})
		}),
	}
}

func (p *page) roles(all []work.RoleConfig, names map[work.ProjectID]string) {
	var rows [][]string
	for _, r := range all {
		command := ""
		if len(r.Command) > 0 {
			command = fmt.Sprintf("%q", r.Command)
		}
		active := "no"
		if r.Active {
			active = "yes"
		}
		rows = append(rows, []string{string(r.Name), names[r.ProjectID], strconv.Itoa(r.Version), active, r.Agent, r.Model, command})
	}
	p.table("", []string{"NAME", "PROJECT", "VERSION", "ACTIVE", "AGENT", "MODEL", "COMMAND"}, rows)
}

func newRoleShowCommand(s *shell) *cobra.Command {
	var versions bool
	var project string
	c := &cobra.Command{
		Use: "show NAME", Short: "Show a role's configuration, the prompt included", Args: takes("NAME"), Example: "  claudomator role show checker",
	}
	c.Flags().StringVar(&project, "project", "", "what this project has on top of the general configuration")
	c.Flags().BoolVar(&versions, "versions", false, "list all versions")
	c.RunE = s.call(func(ctx context.Context, api app.API, args []string) error {
		all, err := api.Role(ctx, args[0])
		if err != nil {
			return err
		}
		names, err := projectNames(ctx, api, textFormat)
		if err != nil {
			return err
		}
		all = slices.DeleteFunc(all, func(r work.RoleConfig) bool {
			return (project != "" || !versions) && names[r.ProjectID] != project && string(r.ProjectID) != project
		})
		if versions {
			return s.show(list(all), func(p *page) { p.roles(all, names) })
		}
		if len(all) == 0 {
			return work.Errorf(work.NotFound, "the role %q has no configuration in project %q", args[0], project).
				WithHint("claudomator role set %s --project %s --prompt-file FILE", args[0], project)
		}
		newest := all[len(all)-1]
		for _, r := range all {
			if r.Active {
				newest = r
			}
		}
		return s.showRole(&newest)
	})
	return c
}

func (s *shell) showRole(r *work.RoleConfig) error {
	return s.show(r, func(p *page) {
		p.line("%s", p.style(bold, inert(string(r.Name))))
		p.field("project", string(r.ProjectID))
		p.field("version", version(r.Version))
		if !r.Active {
			p.field("active", "no")
		}
		p.field("agent", r.Agent)
		p.field("model", r.Model)
		if len(r.Command) > 0 {
			p.field("command", fmt.Sprintf("%q", r.Command))
		}
		p.field("tools", strings.Join(r.AllowedTools, ", "))
		if r.MaxBudgetUSD > 0 {
			p.field("budget", fmt.Sprintf("$%.2f", r.MaxBudgetUSD))
		}
		if r.Timeout > 0 {
			p.field("timeout", exact(time.Duration(r.Timeout)))
		}
		if !r.CreatedAt.IsZero() {
			p.field("created", p.ago(r.CreatedAt))
		}
		p.block("Prompt", r.Prompt)
	})
}

// version names that of a role; the one that comes with the program is none of
// a person's.
func version(n int) string {
	if n == 0 {
		return "built in"
	}
	return strconv.Itoa(n)
}

func newRoleSetCommand(s *shell) *cobra.Command {
	var project, agent, model, command, promptFile string
	var tools []string
	var budget float64
	var timeout time.Duration
	var active bool
	c := &cobra.Command{
		Use: "set NAME", Short: "Make a new version of a role's configuration; what is not given stays", Args: takes("NAME"),
		Example: "  claudomator role set checker --command '[\"sh\",\"-c\",\"cat >/dev/null; go test ./...\"]'\n" +
			"  claudomator role set builder --agent claude --prompt-file builder.md",
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.StringVar(&project, "project", "", "only in this project, on top of what holds for all")
	flags.StringVar(&agent, "agent", "", "agent type")
	flags.StringVar(&model, "model", "", "model")
	flags.StringVar(&command, "command", "", "the agent's program and arguments, as a JSON list")
	flags.StringVar(&promptFile, "prompt-file", "", "file with the system prompt, or - for standard input")
	flags.StringArrayVar(&tools, "allow-tool", nil, "tool it may use (repeatable)")
	flags.Float64Var(&budget, "budget", 0, "most US dollars an execution may cost")
	flags.DurationVar(&timeout, "timeout", 0, "how long an execution may run")
	flags.BoolVar(&active, "active", true, "false: tasks of this role run without a configuration")
	c.RunE = s.call(func(ctx context.Context, api app.API, args []string) error {
		argv, err := commandLine(c, command)
		if err != nil {
			return err
		}
		in := app.RoleInput{Project: project}
		if c.Flags().Changed("prompt-file") {
			prompt, err := s.readText(promptFile)
			if err != nil {
				return err
			}
			in.Prompt = &prompt
		}
		given(c, "agent", &in.Agent, agent)
		given(c, "model", &in.Model, model)
		given(c, "command", &in.Command, argv)
		given(c, "allow-tool", &in.AllowedTools, emptied(tools))
		given(c, "budget", &in.MaxBudgetUSD, budget)
		given(c, "timeout", &in.Timeout, work.Duration(timeout))
		given(c, "active", &in.Active, active)
		r, err := api.SetRole(ctx, args[0], in)
		if err != nil {
			return err
		}
		return s.showRole(r)
	})
	return c
}

func newTokenCommand(s *shell) *cobra.Command {
	return newGroup("token", "Credentials for people and programs",
		newTokenCreateCommand(s), newTokenListCommand(s), newTokenRevokeCommand(s))
}

func newTokenCreateCommand(s *shell) *cobra.Command {
	var scope string
	c := &cobra.Command{
		Use: "create NAME", Short: "Make a token; it is printed once, and cannot be read again", Args: takes("NAME"),
		Example: "  claudomator token create laptop\n  claudomator token create dashboard --scope read",
	}
	c.Flags().StringVar(&scope, "scope", string(app.ScopeAdmin), "admin or read")
	c.RunE = s.call(func(ctx context.Context, api app.API, args []string) error {
		token, err := api.CreateToken(ctx, args[0], app.Scope(scope))
		if err != nil {
			return err
		}
		return s.show(token, func(p *page) { p.line("%s", token.Secret) })
	})
	return c
}

func newTokenListCommand(s *shell) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the tokens, without their secrets", Args: takes(), Example: "  claudomator token list",
		RunE: s.call(func(ctx context.Context, api app.API, _ []string) error {
			all, err := api.Tokens(ctx)
			if err != nil {
				return err
			}
			return s.show(list(all), func(p *page) {
				var rows [][]string
				for _, t := range all {
					rows = append(rows, []string{t.ID, t.Name, string(t.Scope), p.ago(t.CreatedAt), p.ago(t.RevokedAt)})
				}
				p.table("", []string{"ID", "NAME", "SCOPE", "CREATED", "REVOKED"}, rows)
			})
		}),
	}
}

func newTokenRevokeCommand(s *shell) *cobra.Command {
	return &cobra.Command{
		Use: "revoke NAME|ID", Short: "End a token", Args: takes("NAME|ID"), Example: "  claudomator token revoke laptop",
		RunE: s.call(func(ctx context.Context, api app.API, args []string) error {
			if err := api.RevokeToken(ctx, args[0]); err != nil {
				return err
			}
			return s.show(map[string]any{"token": args[0], "revoked": true}, func(p *page) { p.line("revoked token %s", inert(args[0])) })
		}),
	}
}

package cli

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/claudomator/claudomator/internal/app"
)

func newAgentCommand(s *shell) *cobra.Command {
	return newGroup("agent", "The programs that do the work", newAgentListCommand(s))
}

func newAgentListCommand(s *shell) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the agent types, and whether the server can use them", Args: takes(), Example: "  claudomator agent list",
		RunE: s.call(func(ctx context.Context, api app.API, _ []string) error {
			all, err := api.Agents(ctx)
			if err != nil {
				return err
			}
			return s.show(list(all), func(p *page) {
				var rows [][]string
				for _, a := range all {
					usable, found := "yes", cmp.Or(a.Note, a.Path, "named by the task")
					if !a.Installed {
						usable, found = "no", cmp.Or(a.Note, "not installed")
					}
					rows = append(rows, []string{a.Type, usable, a.Version, found})
				}
				p.table("", []string{"TYPE", "USABLE", "VERSION", "FOUND"}, rows)
				if agent := configured(all); agent != "" {
					p.line("")
					p.line("%s works where nothing nearer names an agent (the server's setting agent)", inert(agent))
				}
			})
		}),
	}
}

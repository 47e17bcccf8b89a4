package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

func newEpicCommand(s *shell) *cobra.Command {
	return newGroup("epic", "Stories that belong together, and how far they are", newEpicAddCommand(s), newEpicListCommand(s))
}

func newEpicAddCommand(s *shell) *cobra.Command {
	return &cobra.Command{
		Use: "add NAME", Short: "Make an epic, for stories to belong to", Args: takes("NAME"),
		Example: "  claudomator epic add \"Payment\"",
		RunE: s.call(func(ctx context.Context, api app.API, args []string) error {
			epic, err := api.AddEpic(ctx, app.EpicInput{Name: args[0]})
			if err != nil {
				return err
			}
			return s.show(epic, func(p *page) { p.line("%s  %s", epic.ID, inert(epic.Name)) })
		}),
	}
}

func newEpicListCommand(s *shell) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the epics with the progress of their stories", Args: takes(), Example: "  claudomator epic list",
		RunE: s.call(func(ctx context.Context, api app.API, _ []string) error {
			all, err := api.Epics(ctx)
			if err != nil {
				return err
			}
			return s.show(list(all), func(p *page) { p.epics(all) })
		}),
	}
}

func (p *page) epics(all []work.EpicProgress) {
	if len(all) == 0 {
		p.line("no epics")
		return
	}
	ids := make([]string, len(all))
	for i, e := range all {
		ids[i] = string(e.ID)
	}
	short := shorten(ids)
	var rows [][]string
	for i, e := range all {
		sum := 0
		var parts []string
		for _, status := range work.StoryStatuses() {
			n := e.Stories[status]
			if sum += n; n > 0 && status != work.Deployed {
				parts = append(parts, fmt.Sprintf("%d %s", n, status))
			}
		}
		done := strconv.Itoa(e.Stories[work.Deployed]) + " of " + strconv.Itoa(sum-e.Stories[work.StoryCancelled])
		rows = append(rows, []string{short(ids[i]), e.Name, done, strings.Join(parts, ", ")})
	}
	p.table("", []string{"ID", "NAME", "SHIPPED", "OTHERS"}, rows)
}

// completeEpics offers the names of epics.
func (s *shell) completeEpics(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return s.complete(c, args, func(ctx context.Context, api app.API) ([]string, error) {
		all, err := api.Epics(ctx)
		var out []string
		for _, e := range all {
			out = append(out, inert(e.Name))
		}
		return out, err
	})
}

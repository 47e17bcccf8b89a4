package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

func newDiskCommand(s *shell) *cobra.Command {
	var reclaim, bin, yes bool
	c := &cobra.Command{
		Use: "disk", Short: "Show what the server's data uses on the disk, and free it", Args: takes(),
		Long: "Show what the server's data uses on the disk: by task and by project, largest first.\n\n" +
			"With --reclaim the workspaces of tasks that are over (ended, or replaced by another\n" +
			"attempt) go to the bin now, not after their retention. What they hold and the vault\n" +
			"does not is kept as a snapshot first (see \"claudomator rescue\"); a task that runs or\n" +
			"waits keeps its workspace. That frees nothing until the bin is emptied: by itself after\n" +
			"its retention, or now with --bin. Gone with it is what no snapshot holds: ignored files\n" +
			"above 10 MiB each or 64 MiB together, build trees above 64 MiB, special files, and\n" +
			"workspaces that could not be read.",
		Example: "  claudomator disk\n  claudomator disk --reclaim\n  claudomator disk --reclaim --bin --yes",
	}
	c.Flags().BoolVar(&reclaim, "reclaim", false, "move the workspaces of tasks that are over to the bin")
	c.Flags().BoolVar(&bin, "bin", false, "with --reclaim: delete what is in the bin, for good")
	c.Flags().BoolVar(&yes, "yes", false, "with --bin: do not ask")
	c.RunE = s.call(func(ctx context.Context, api app.API, _ []string) error {
		switch {
		case bin && !reclaim:
			return usageError(c, "--bin goes with --reclaim")
		case yes && !bin:
			return usageError(c, "--yes goes with --bin")
		case !reclaim:
			use, err := api.Disk(ctx)
			if err != nil {
				return err
			}
			return s.show(use, func(p *page) { p.disk(use) })
		case bin && !yes:
			if err := s.confirm(ctx, c, "Delete all that is in the bin, for good?"); err != nil {
				return err
			}
		}
		freed, err := api.ReclaimDisk(ctx, app.ReclaimRequest{EmptyBin: bin})
		if err != nil {
			return err
		}
		return s.show(freed, func(p *page) { p.reclaimed(freed) })
	})
	return c
}

// confirm asks for a yes where somebody sits; else --yes has to be given.
func (s *shell) confirm(ctx context.Context, c *cobra.Command, question string) error {
	if !s.Terminal || !s.InTerminal || s.format == jsonFormat {
		return usageError(c, "nobody can be asked here: %s", question).WithReason("unconfirmed").WithHint("give --yes")
	}
	answer, err := (&asker{shell: s}).ask(ctx, question+" [y/N]")
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if answer = strings.ToLower(answer); answer != "y" && answer != "yes" {
		return work.Errorf(work.Conflict, "nothing was done").WithReason("unconfirmed")
	}
	return nil
}

func (p *page) disk(use *app.DiskUse) {
	if use.Partial {
		p.line("%s", p.style(yellow, "not everything could be looked at: it is more than is shown here"))
	}
	p.line("%s used, %s free of %s", size(use.Total), size(use.Free), size(use.Size))
	p.field("database", size(use.Database))
	p.field("bin", fmt.Sprintf("%s, %s, each for %s", size(use.Bin), count(use.Binned, "workspace"), span(time.Duration(use.BinFor))))
	p.field("other", size(use.Other))
	if use.Reclaimable > 0 {
		p.field("reclaimable", size(use.Reclaimable)+" of workspaces: claudomator disk --reclaim")
	}
	if len(use.Projects) > 0 {
		p.heading("Projects")
		var rows [][]string
		for _, x := range use.Projects {
			rows = append(rows, []string{cmp.Or(x.Name, string(x.ProjectID)), size(x.Vault)})
		}
		p.table("  ", []string{"PROJECT", "VAULT"}, rows)
	}
	if len(use.Tasks) > 0 {
		p.heading("Tasks")
		p.taskDisk(use.Tasks)
	}
}

func (p *page) taskDisk(tasks []app.TaskDisk) {
	var ids []string
	for _, t := range tasks {
		ids = append(ids, string(t.TaskID))
	}
	short := shorten(ids)
	var rows [][]string
	for _, t := range tasks {
		when, name := "", t.Name
		switch {
		case t.TaskID == "":
			name = "(of tasks that were removed)"
		case !t.ReclaimAt.IsZero() && !t.ReclaimAt.After(p.now):
			when = "now"
		case !t.ReclaimAt.IsZero():
			when = p.ago(t.ReclaimAt)
		}
		rows = append(rows, []string{short(string(t.TaskID)), string(t.State), size(t.Workspace), size(t.Transcripts), when, name})
	}
	p.table("  ", []string{"ID", "STATE", "WORKSPACE", "LOGS", "RECLAIMED", "NAME"}, rows)
}

func (p *page) reclaimed(r *app.Reclaimed) {
	var bytes int64
	for _, w := range r.Binned {
		bytes += w.Bytes
	}
	p.line("moved to the bin: %s, %s", count(len(r.Binned), "workspace"), size(bytes))
	for _, k := range r.Kept {
		p.field("kept", k.Workspace+": "+k.Why)
	}
	if r.BinEmptied > 0 || r.BinFreed > 0 {
		p.line("deleted from the bin: %s, %s freed", count(r.BinEmptied, "workspace"), size(r.BinFreed))
	}
	p.line("%s in the bin, %s free", size(r.Bin), size(r.Free))
}

// size is a number of bytes in its largest unit, of 1024.
func size(bytes int64) string {
	const unit, units = 1024, "KMGTPE"
	if bytes < unit {
		return fmt.Sprintf("%d B", bytes)
	}
	value, i := float64(bytes)/unit, 0
	for ; value >= unit-0.05 && i < len(units)-1; i++ {
		value /= unit
	}
	return fmt.Sprintf("%.1f %ciB", value, units[i])
}

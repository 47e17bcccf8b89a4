package cli

import (
	"context"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

func newRescueCommand(s *shell) *cobra.Command {
	var in app.RestoreRequest
	c := &cobra.Command{
		Use: "rescue [TASK]", Short: "List what is kept of tasks, and restore it", Args: takes("[TASK]"),
		Long: "List what the vaults keep of a task, or of all tasks, newest first:\n\n" +
			"  files    a workspace before it was reset or removed, ignored files too\n" +
			"  commits  commits that no result holds\n" +
			"  branch   a task's branch before it was started over\n" +
			"  result   a task's branch: where the task is named, or was removed\n\n" +
			"With --restore one of them (its commit, or the beginning of it, or its ref) is brought\n" +
			"back: to a new or empty folder, or as a new branch in the project's repository. The\n" +
			"server does it: as its user, on its machine, outside of its data folder. A branch of\n" +
			"kind files holds ignored files, too: look before you push it.",
		Example:           "  claudomator rescue basket\n  claudomator rescue --restore 3f9c2a71 --to /tmp/basket\n  claudomator rescue --restore 3f9c2a71 --branch basket-rescued",
		ValidArgsFunction: s.completeTasks,
	}
	c.Flags().StringVar(&in.Snapshot, "restore", "", "restore this one")
	c.Flags().StringVar(&in.To, "to", "", "with --restore: a new or empty folder for its files")
	c.Flags().StringVar(&in.Branch, "branch", "", "with --restore: name of a new branch")
	c.RunE = s.call(func(ctx context.Context, api app.API, args []string) error {
		if len(givenFlags(c)) == 0 {
			all, err := api.Snapshots(ctx, strings.Join(args, ""))
			if err != nil {
				return err
			}
			return s.show(list(all), func(p *page) { p.snapshots(all) })
		}
		if err := atMostOne(c, "to", "branch"); err != nil {
			return err
		}
		if in.Snapshot == "" || in.To == "" && in.Branch == "" {
			return usageError(c, "--restore goes with --to or with --branch")
		}
		in.Task = strings.Join(args, "")
		if in.To != "" {
			dir, err := filepath.Abs(in.To)
			if err != nil {
				return work.Errorf(work.Invalid, "find the folder %s: %w", in.To, err)
			}
			in.To = dir
		}
		back, err := api.RestoreSnapshot(ctx, in)
		if err != nil {
			return err
		}
		return s.show(back, func(p *page) {
			where := back.To
			if back.Branch != "" {
				where = "branch " + back.Branch + " of project " + back.Snapshot.Project
			}
			p.line("restored %s to %s", head(back.Snapshot.Commit, 12), inert(where))
		})
	})
	return c
}

func (p *page) snapshots(all []app.Snapshot) {
	if len(all) == 0 {
		p.line("nothing is kept")
		return
	}
	var ids, commits []string
	for _, x := range all {
		ids, commits = append(ids, string(x.TaskID)), append(commits, x.Commit)
	}
	task, commit := shorten(ids), shorten(commits)
	var rows [][]string
	for _, x := range all {
		name := x.TaskName
		if x.Removed {
			name = "(removed)"
		}
		rows = append(rows, []string{commit(x.Commit), string(x.Kind), p.ago(x.At), strconv.Itoa(x.Files), task(string(x.TaskID)), name, x.Why})
	}
	p.table("", []string{"COMMIT", "KIND", "MADE", "FILES", "TASK", "NAME", "WHY"}, rows)
}

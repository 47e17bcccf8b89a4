package cli

import (
	"cmp"
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

func newMergeCommand(s *shell) *cobra.Command {
	return newGroup("merge", "Landing accepted work on a branch of the repository",
		newMergeStartCommand(s), newMergeStatusCommand(s), newMergeListCommand(s), newMergeOpenCommand(s), newMergeContinueCommand(s), newMergeAbortCommand(s))
}

func newMergeStartCommand(s *shell) *cobra.Command {
	var into string
	var wait bool
	c := &cobra.Command{
		Use: "start TASK", Short: "Land a COMPLETED task", Args: takes("TASK"),
		Long: "Land a COMPLETED task, with its completed improvements, on a branch of the project's\n" +
			"repository. With --wait it returns when branch and checkout are done; a conflict or a\n" +
			"refusal is exit code 4.",
		Example: "  claudomator merge start basket --wait", ValidArgsFunction: s.completeTasks,
	}
	c.Flags().StringVar(&into, "into", "", "the branch (default: the project's)")
	c.Flags().BoolVar(&wait, "wait", false, "return when it is over")
	c.RunE = s.call(func(ctx context.Context, api app.API, args []string) error {
		m, err := api.StartMerge(ctx, args[0], into)
		return s.merged(ctx, api, m, err, wait)
	})
	return c
}

func newMergeStatusCommand(s *shell) *cobra.Command {
	return &cobra.Command{
		Use: "status MERGE|TASK", Short: "Show a landing, or the newest one of a task", Args: takes("MERGE|TASK"),
		Example: "  claudomator merge status basket", ValidArgsFunction: s.completeTasks,
		RunE: s.call(func(ctx context.Context, api app.API, args []string) error {
			m, err := findMerge(ctx, api, args[0])
			return s.merged(ctx, api, m, err, false)
		}),
	}
}

func newMergeListCommand(s *shell) *cobra.Command {
	return &cobra.Command{
		Use: "list [TASK]", Short: "List landings, newest first", Args: takes("[TASK]"),
		Example: "  claudomator merge list basket", ValidArgsFunction: s.completeTasks,
		RunE: s.call(func(ctx context.Context, api app.API, args []string) error {
			all, err := api.Merges(ctx, strings.Join(args, ""))
			if err != nil {
				return err
			}
			return s.show(list(all), func(p *page) {
				if len(all) == 0 {
					p.line("no landings")
					return
				}
				p.merges("", all)
			})
		}),
	}
}

func newMergeOpenCommand(s *shell) *cobra.Command {
	return &cobra.Command{
		Use: "open MERGE|TASK", Short: "Print the folder in which a conflict is to be resolved", Args: takes("MERGE|TASK"),
		Long: "Print the folder in which the conflict of a landing is to be resolved: a workspace on\n" +
			"the server's machine with the merge begun in it. Edit its files until no conflict is left,\n" +
			"then go on with \"merge continue\": it takes what stands there, committed or not.",
		Example: "  cd \"$(claudomator merge open basket)\"", ValidArgsFunction: s.completeTasks,
		RunE: s.call(func(ctx context.Context, api app.API, args []string) error {
			m, err := findMerge(ctx, api, args[0])
			if err != nil {
				return err
			}
			if m.Status != work.MergeConflicted {
				return work.Errorf(work.Illegal, "landing %s is %s: there is no conflict to resolve", m.ID, m.Status).WithReason("not_conflicted").With("merge", m.ID)
			}
			return s.show(m, func(p *page) { p.line("%s", m.Dir) })
		}),
	}
}

func newMergeContinueCommand(s *shell) *cobra.Command {
	var wait bool
	c := &cobra.Command{
		Use: "continue MERGE|TASK", Short: "Go on with a conflicted landing that was resolved", Args: takes("MERGE|TASK"),
		Example: "  claudomator merge continue basket --wait", ValidArgsFunction: s.completeTasks,
	}
	c.Flags().BoolVar(&wait, "wait", false, "return when it is over")
	c.RunE = s.call(func(ctx context.Context, api app.API, args []string) error {
		m, err := findMerge(ctx, api, args[0])
		if err != nil {
			return err
		}
		m, err = api.ContinueMerge(ctx, string(m.ID))
		return s.merged(ctx, api, m, err, wait)
	})
	return c
}

func newMergeAbortCommand(s *shell) *cobra.Command {
	return &cobra.Command{
		Use: "abort MERGE|TASK", Short: "End a conflicted landing with nothing changed", Args: takes("MERGE|TASK"),
		Example: "  claudomator merge abort basket", ValidArgsFunction: s.completeTasks,
		RunE: s.call(func(ctx context.Context, api app.API, args []string) error {
			m, err := findMerge(ctx, api, args[0])
			if err != nil {
				return err
			}
			m, err = api.AbortMerge(ctx, string(m.ID))
			return s.merged(ctx, api, m, err, false)
		}),
	}
}

// findMerge finds a landing by its id, or the newest one of a task.
func findMerge(ctx context.Context, api app.API, ref string) (*work.Merge, error) {
	m, err := api.Merge(ctx, ref)
	if work.CodeOf(err) != work.NotFound || err == nil {
		return m, err
	}
	all, taskErr := api.Merges(ctx, ref)
	switch {
	case work.CodeOf(taskErr) == work.NotFound && taskErr != nil:
		return nil, work.Errorf(work.NotFound, "there is no merge and no task %q", ref)
	case taskErr != nil:
		return nil, taskErr
	case len(all) == 0:
		return nil, work.Errorf(work.NotFound, "task %s was never landed", ref).WithHint("claudomator merge start %s", ref)
	}
	return all[0], nil
}

// merged answers with a landing; when it was waited for, what did not land is
// an error.
func (s *shell) merged(ctx context.Context, api app.API, m *work.Merge, err error, wait bool) error {
	if err != nil {
		return err
	}
	if wait {
		if m, err = waitMerge(ctx, api, m); err != nil {
			return err
		}
	}
	if err := s.show(m, func(p *page) { p.merge(m) }); err != nil || !wait {
		return err
	}
	return mergeError(m)
}

// waitMerge waits until a landing is over, or pauses in a conflict.
func waitMerge(ctx context.Context, api app.API, m *work.Merge) (*work.Merge, error) {
	id, task := string(m.ID), m.TaskID
	err := (&watch{
		api:   api,
		since: func(ctx context.Context) (int64, error) { return lastEvent(ctx, api, string(task)) },
		look: func(ctx context.Context) (bool, error) {
			now, err := api.Merge(ctx, id)
			if err != nil {
				return false, err
			}
			m = now
			return m.Status != work.MergeRunning, nil
		},
		concerns: func(e work.Event) bool { return e.Task == task },
	}).run(ctx)
	return m, err
}

// mergeError says why a landing that is over has not landed, or nil.
func mergeError(m *work.Merge) error {
	var err *work.Error
	switch m.Status {
	case work.MergeLanded, work.MergeNothing, work.MergeRunning:
		return nil
	case work.MergeConflicted:
		err = work.Errorf(work.Conflict, "landing on %s conflicts in %s", m.Target, strings.Join(m.Conflicts, ", ")).WithReason("conflicted").With("conflicts", m.Conflicts)
		err.Hint = "resolve it, then: claudomator merge continue " + string(m.ID) + " --wait (or abort)"
	case work.MergeRefused:
		err = work.Errorf(work.Conflict, "landing on %s was refused: %s", m.Target, cmp.Or(m.Message, m.Reason)).WithReason(m.Reason)
		if len(m.Conflicts) > 0 {
			err = err.With("conflicts", m.Conflicts)
		}
	case work.MergeAborted:
		err = work.Errorf(work.Conflict, "landing on %s was aborted", m.Target).WithReason("aborted")
	}
	if m.Hint != "" {
		err.Hint = m.Hint
	}
	return err.With("merge", m.ID)
}

// accepted waits until accepted work is integrated and landed, or is not.
func (s *shell) accepted(ctx context.Context, api app.API, view *app.TaskView) (*app.TaskView, error) {
	id := string(view.ID)
	err := (&watch{
		api:   api,
		since: func(ctx context.Context) (int64, error) { return lastEvent(ctx, api, id) },
		look: func(ctx context.Context) (bool, error) {
			now, err := api.Task(ctx, id)
			if err != nil {
				return false, err
			}
			view = now
			return !now.Waiting(work.Ready, work.OnIntegration) && !now.Waiting(work.Ready, work.OnLanding), nil
		},
		concerns: func(e work.Event) bool { return e.Tree == view.TreeID },
	}).run(ctx)
	return view, err
}

// notAccepted says why accepted work is not COMPLETED, or nil.
func notAccepted(ctx context.Context, api app.API, view *app.TaskView) error {
	switch {
	case view.State == work.Completed:
		return nil
	case view.SupersededBy != "":
		return work.Errorf(work.Conflict, "task %s conflicts with its parent's work: attempt %s settles it", view.ID, view.CurrentID).
			WithReason("integration_conflict").With("current", view.CurrentID).WithHint("claudomator task wait %s", view.CurrentID)
	}
	merges, err := api.Merges(ctx, string(view.ID))
	if err != nil {
		return err
	}
	if len(merges) > 0 && merges[0].Status != work.MergeLanded {
		if err := mergeError(merges[0]); err != nil {
			return err
		}
	}
	return work.Errorf(work.Conflict, "task %s is %s: %s", view.ID, stateText(&view.Task), cmp.Or(view.Reason, "it was not completed")).WithReason("not_completed")
}

func (p *page) merge(m *work.Merge) {
	p.line("%s  %s  task %s onto %s", m.ID, p.style(colorOf(string(m.Status)), string(m.Status)), m.TaskID, inert(m.Target))
	p.field("commit", m.Commit)
	p.field("reason", m.Reason)
	p.field("message", m.Message)
	p.field("hint", m.Hint)
	for _, file := range m.Conflicts {
		p.field("conflict", file)
	}
}

func (p *page) merges(indent string, all []*work.Merge) {
	var ids []string
	for _, m := range all {
		ids = append(ids, string(m.ID), string(m.TaskID))
	}
	short := shorten(ids)
	var rows [][]string
	for _, m := range all {
		rows = append(rows, []string{short(string(m.ID)), string(m.Status), short(string(m.TaskID)), m.Target, p.ago(m.CreatedAt), cmp.Or(m.Message, head(m.Commit, 12))})
	}
	p.table(indent, []string{"ID", "STATUS", "TASK", "ONTO", "STARTED", "RESULT"}, rows)
}

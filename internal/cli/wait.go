package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

var errWaited = errors.New("waited long enough")

func newTaskWaitCommand(s *shell) *cobra.Command {
	var names []string
	var timeout time.Duration
	c := &cobra.Command{
		Use: "wait ID", Short: "Wait until a task is over, or needs a person", Args: takes("ID"),
		Long: "Wait until nothing automatic is left to happen to a task: it has ended, or waits for a\n" +
			"person. With --for: until it is in one of the states. A rejected attempt's place is\n" +
			"followed to the attempt that stands there now. Exit code 8 when the task ended badly, 4\n" +
			"when it is COMPLETED and another state was waited for, 7 when the time is up.",
		Example: "  claudomator task wait basket --timeout 10m\n  claudomator task wait basket --for READY,COMPLETED",
	}
	c.Flags().StringSliceVar(&names, "for", nil, "states to wait for, separated by commas")
	c.Flags().DurationVar(&timeout, "timeout", 0, "give up after this time; 0: never")
	c.ValidArgsFunction = s.completeTasks
	c.RunE = func(c *cobra.Command, args []string) error {
		states, err := parseStates(c, names)
		if err != nil {
			return err
		}
		if timeout < 0 {
			return usageError(c, "--timeout must not be negative")
		}
		return s.call(func(ctx context.Context, api app.API, args []string) error {
			return s.wait(ctx, api, args[0], states, timeout)
		})(c, args)
	}
	return c
}

// wait waits, prints the task as it then is, and says how it ended.
func (s *shell) wait(ctx context.Context, api app.API, ref string, states []work.State, timeout time.Duration) error {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, timeout, errWaited)
		defer cancel()
	}
	w := waiter{api: api, ref: ref, states: states}
	err := w.run(ctx)
	if errors.Is(err, errWaited) {
		if w.view == nil {
			return work.Errorf(work.Timeout, "task %s could not be looked at within %s", ref, timeout)
		}
		return work.Errorf(work.Timeout, "task %s is still %s after %s", w.view.ID, stateText(&w.view.Task), timeout)
	}
	if err != nil {
		return err
	}
	if err := s.acted(w.view, nil); err != nil {
		return err
	}
	return w.verdict()
}

// waiter follows the place that a task stands at.
type waiter struct {
	api    app.API
	ref    string
	states []work.State // empty: until it rests

	view *app.TaskView // the attempt that stands there now
}

func (w *waiter) run(ctx context.Context) error {
	return (&watch{
		api: w.api, look: w.look,
		since:    func(ctx context.Context) (int64, error) { return lastEvent(ctx, w.api, w.ref) },
		concerns: w.concerns, pace: w.pace,
	}).run(ctx)
}

// concerns is true for what happens in the task's tree, and in any other one while
// the task may wait for that.
func (w *waiter) concerns(e work.Event) bool { return e.Tree == w.view.TreeID || hearsOthers(w.view) }

// hearsOthers is true for a task that may wait for one of another tree.
func hearsOthers(v *app.TaskView) bool {
	return v.State == work.Pending || v.BlockedOn == work.OnDependencies || v.Hold == work.HoldBuiltOn
}

// pace lets much that happens elsewhere not make as many looks.
func (w *waiter) pace() time.Duration {
	if hearsOthers(w.view) {
		return lookPace
	}
	return 0
}

func (w *waiter) look(ctx context.Context) (bool, error) {
	view, err := currentAttempt(ctx, w.api, w.ref)
	if err != nil {
		return false, err
	}
	w.view, w.ref = view, string(view.ID)
	if len(w.states) > 0 {
		return slices.Contains(w.states, view.State) || view.State.Ended(), nil
	}
	return view.Rests, nil
}

// verdict is the error of a task that did not get where it was waited for.
func (w *waiter) verdict() error {
	v := w.view
	switch {
	case slices.Contains(w.states, v.State):
		return nil
	case v.State.EndedBadly():
		why := ""
		if v.Reason != "" {
			why = ": " + v.Reason
		}
		err := work.Errorf(work.Illegal, "task %s ended %s%s", v.ID, v.State, why).WithReason("ended_badly").With("state", v.State)
		return badEnd{err.WithHint("claudomator task logs %s", v.ID)}
	case len(w.states) > 0:
		return work.Errorf(work.Illegal, "task %s is %s: it will not become %s", v.ID, v.State, strings.Join(wordsOf(w.states), " or ")).WithReason("wrong_state")
	}
	return nil
}

// currentAttempt reads the attempt that stands at a task's place.
func currentAttempt(ctx context.Context, api app.API, ref string) (*app.TaskView, error) {
	for {
		v, err := api.Task(ctx, ref)
		if err != nil {
			return nil, err
		}
		if v.CurrentID == "" || v.CurrentID == v.ID {
			return v, nil
		}
		ref = string(v.CurrentID)
	}
}

// stateText is a state with what it waits for.
func stateText(t *work.Task) string {
	if on := waitsFor(t); on != "" {
		return fmt.Sprintf("%s (%s)", t.State, on)
	}
	return string(t.State)
}

// storyWaiter follows a story.
type storyWaiter struct {
	api      app.API
	ref      string
	statuses []work.StoryStatus // empty: until it rests …
	leaves   work.StoryStatus   // … or has another status than this one

	view  *app.StoryView
	about *app.TaskView // what its status hangs on: its planner, or what stands at its root
}

// lookPace is how long what many events concern is let alone between looks.
const lookPace = 250 * time.Millisecond

func (w *storyWaiter) watch() *watch {
	return &watch{api: w.api, since: w.since, look: w.look, pace: func() time.Duration { return lookPace }, concerns: func(e work.Event) bool {
		return e.Tree == work.TreeID(w.view.RootTaskID) || w.about != nil && hearsOthers(w.about)
	}}
}

func (w *storyWaiter) since(ctx context.Context) (int64, error) {
	view, err := w.api.Story(ctx, w.ref)
	if err != nil {
		return 0, err
	}
	w.ref = string(view.ID)
	return lastEvent(ctx, w.api, string(view.RootTaskID))
}

func (w *storyWaiter) look(ctx context.Context) (bool, error) {
	view, err := w.api.Story(ctx, w.ref)
	if err != nil {
		return false, err
	}
	w.view, w.about = view, nil
	about := view.RootID
	if view.Status == work.Draft {
		about = view.Planner
	}
	if about != "" {
		if w.about, err = currentAttempt(ctx, w.api, string(about)); err != nil {
			return false, err
		}
	}
	switch {
	case len(w.statuses) > 0:
		return slices.Contains(w.statuses, view.Status) || view.Status == work.Deployed || w.endedBadly() != "", nil
	case w.leaves != "" && view.Status != w.leaves:
		return true, nil
	}
	return view.Rests, nil
}

// conflicted is the landing of a ship that a conflict has paused, or nil.
func (w *storyWaiter) conflicted(ctx context.Context) (*work.Merge, error) {
	if !w.view.Paused {
		return nil, nil
	}
	m, err := w.api.Merge(ctx, string(w.view.Ship.MergeID))
	if err != nil || m.Status != work.MergeConflicted {
		return nil, err
	}
	return m, nil
}

// endedBadly says how a story ended that came to no good end, "" for others.
func (w *storyWaiter) endedBadly() string {
	v, why := w.view, ""
	if v.Ship != nil {
		why = v.Ship.Error
	}
	what := "the task at its root"
	if v.Status == work.Draft {
		what = "its planner"
	}
	switch {
	case v.Status == work.StoryCancelled:
		return "is CANCELLED"
	case v.Status == work.DeployFailed:
		return strings.TrimSuffix("is DEPLOY_FAILED: "+why, ": ")
	case w.about == nil || !w.about.State.EndedBadly() || v.Status == work.Draft && v.Plan != nil:
		return ""
	}
	return strings.TrimSuffix(fmt.Sprintf("is %s: %s (%s) ended %s: %s", v.Status, what, w.about.ID, w.about.State, w.about.Reason), ": ")
}

// verdict is the error of a story that did not get where it was waited for.
func (w *storyWaiter) verdict() error {
	v := w.view
	how := w.endedBadly()
	switch {
	case slices.Contains(w.statuses, v.Status):
		return nil
	case how != "":
		err := work.Errorf(work.Illegal, "story %s %s", v.ID, how).WithReason("ended_badly").With("status", v.Status)
		return badEnd{err.WithHint("claudomator story show %s", v.ID)}
	case len(w.statuses) > 0:
		return work.Errorf(work.Illegal, "story %s is %s: it will not become %s", v.ID, v.Status, strings.Join(wordsOf(w.statuses), " or ")).WithReason("wrong_status")
	}
	return nil
}

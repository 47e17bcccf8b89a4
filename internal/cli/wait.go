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

	view  *app.TaskView // the attempt that stands there now
	trees map[work.TreeID]bool
}

func (w *waiter) run(ctx context.Context) error {
	return (&watch{
		api: w.api, look: w.look,
		since:    func(ctx context.Context) (int64, error) { return lastEvent(ctx, w.api, w.ref) },
		concerns: func(e work.Event) bool { return w.trees[e.Tree] },
	}).run(ctx)
}

func (w *waiter) look(ctx context.Context) (bool, error) {
	w.trees = map[work.TreeID]bool{}
	view, err := w.current(ctx, w.ref)
	if err != nil {
		return false, err
	}
	w.view, w.ref = view, string(view.ID)
	if len(w.states) > 0 {
		return slices.Contains(w.states, view.State) || view.State.Ended(), nil
	}
	return w.rests(ctx, view)
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

// current reads the attempt that stands at a task's place.
func (w *waiter) current(ctx context.Context, ref string) (*app.TaskView, error) {
	for {
		v, err := w.api.Task(ctx, ref)
		if err != nil {
			return nil, err
		}
		w.trees[v.TreeID] = true
		if v.CurrentID == "" || v.CurrentID == v.ID {
			return v, nil
		}
		ref = string(v.CurrentID)
	}
}

// rests is true when nothing automatic is left to happen to a task.
func (w *waiter) rests(ctx context.Context, v *app.TaskView) (bool, error) {
	switch {
	case v.State.Ended():
		return true, nil
	case v.State == work.Pending && v.ParentTaskID != "" && !v.Draft:
		return w.parentRests(ctx, v)
	case v.State == work.Pending, v.Waiting(work.Ready, work.OnPerson), v.Waiting(work.Blocked, work.OnQuestion), v.Waiting(work.Queued, work.OnPaused):
		return true, nil
	case v.Waiting(work.Blocked, work.OnConflict):
		return w.conflictRests(ctx, v)
	case v.Waiting(work.Blocked, work.OnChildren):
		return w.childrenRest(ctx, v)
	case v.Waiting(work.Ready, work.OnJudges):
		return w.judgesRest(ctx, v)
	case v.Waiting(work.Queued, work.OnDependencies):
		return w.dependenciesRest(ctx, v)
	}
	return false, nil
}

// parentRests: a child that is PENDING begins when its parent's run has ended.
func (w *waiter) parentRests(ctx context.Context, v *app.TaskView) (bool, error) {
	parent, err := w.current(ctx, string(v.ParentTaskID))
	if err != nil {
		return false, err
	}
	if rests, err := w.rests(ctx, parent); err != nil || !rests {
		return false, err
	}
	now, err := w.current(ctx, string(v.ID)) // it may have moved since it was looked at
	return err == nil && now.State == v.State, err
}

// conflictRests: a conflict rests unless its landing has been continued.
func (w *waiter) conflictRests(ctx context.Context, v *app.TaskView) (bool, error) {
	if v.MergeID == "" {
		return true, nil
	}
	m, err := w.api.Merge(ctx, string(v.MergeID))
	return err == nil && m.Status != work.MergeRunning, err
}

// childrenRest: children rest when none of them moves, at any depth. A parent
// that waits for none any more has moved since it was looked at; its event is
// still to come.
func (w *waiter) childrenRest(ctx context.Context, v *app.TaskView) (bool, error) {
	root, err := w.api.TaskTree(ctx, string(v.ID))
	if err != nil {
		return false, err
	}
	node := findNode(root, v.ID)
	return node != nil && node.Task.Waiting(work.Blocked, work.OnChildren) && !slices.ContainsFunc(node.Children, moves), nil
}

// judgesRest: judges rest when they wait for an answer.
func (w *waiter) judgesRest(ctx context.Context, v *app.TaskView) (bool, error) {
	root, err := w.api.TaskTree(ctx, string(v.ID))
	if err != nil || root == nil {
		return false, err
	}
	node := findNode(root, v.ID)
	if node == nil {
		return false, nil
	}
	return !judgesMove(node), nil
}

// judgesMove is true unless a judge of the place has asked something and no other
// one moves.
func judgesMove(n *app.TreeNode) bool {
	asks := false
	for _, j := range n.Judges {
		if moves(&app.TreeNode{Task: j}) {
			return true
		}
		asks = asks || j.Waiting(work.Blocked, work.OnQuestion)
	}
	return !asks
}

// moves is true while something automatic goes on at a place or below. What
// waits for dependencies moves only if they do, and they are here too.
func moves(n *app.TreeNode) bool {
	t := n.Task
	switch {
	case t.State == work.Running,
		t.State == work.Queued && t.BlockedOn != work.OnDependencies && t.BlockedOn != work.OnPaused,
		t.State == work.Ready && t.BlockedOn != work.OnPerson && (t.BlockedOn != work.OnJudges || judgesMove(n)):
		return true
	}
	return slices.ContainsFunc(n.Children, moves)
}

// dependenciesRest: a task that waits for others rests when those that it
// waits for do.
func (w *waiter) dependenciesRest(ctx context.Context, v *app.TaskView) (bool, error) {
	waits := false
	for _, on := range v.DependsOn {
		d, err := w.current(ctx, string(on))
		if err != nil {
			return false, err
		}
		if d.State == work.Completed || (d.State == work.Ready && v.ParentTaskID == "") {
			continue // it is enough
		}
		if d.State.EndedBadly() {
			return false, nil // and takes this one along, in a moment
		}
		rests, err := w.rests(ctx, d)
		if err != nil || !rests {
			return false, err
		}
		waits = true
	}
	return waits, nil
}

// stateText is a state with what it waits for.
func stateText(t *work.Task) string {
	if on := waitsFor(t); on != "" {
		return fmt.Sprintf("%s (%s)", t.State, on)
	}
	return string(t.State)
}

// findNode finds the place at which a task is the current attempt.
func findNode(n *app.TreeNode, id work.TaskID) *app.TreeNode {
	if n.Task.ID == id {
		return n
	}
	for _, child := range n.Children {
		if found := findNode(child, id); found != nil {
			return found
		}
	}
	return nil
}

// storyWaiter follows a story.
type storyWaiter struct {
	api      app.API
	ref      string
	statuses []work.StoryStatus // empty: until it rests …
	leaves   work.StoryStatus   // … or has another status than this one

	view  *app.StoryView
	about *app.TaskView // what its status hangs on: its planner, or what stands at its root
	tasks waiter
}

// storyPace is how long a story that much happens to is let alone between looks.
const storyPace = 250 * time.Millisecond

func (w *storyWaiter) watch() *watch {
	return &watch{api: w.api, since: w.since, look: w.look, pace: storyPace, concerns: func(e work.Event) bool {
		return e.Tree == work.TreeID(w.view.RootTaskID)
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
	w.tasks = waiter{api: w.api, trees: map[work.TreeID]bool{}}
	about := view.RootID
	if view.Status == work.Draft {
		about = view.Planner
	}
	if about != "" {
		if w.about, err = w.tasks.current(ctx, string(about)); err != nil {
			return false, err
		}
	}
	switch {
	case len(w.statuses) > 0:
		return slices.Contains(w.statuses, view.Status) || view.Status == work.Deployed || w.endedBadly() != "", nil
	case w.leaves != "" && view.Status != w.leaves:
		return true, nil
	}
	return w.rests(ctx)
}

// rests is true when nothing automatic is left to happen to the story.
func (w *storyWaiter) rests(ctx context.Context) (bool, error) {
	switch w.view.Status {
	case work.ReviewReady, work.Shippable, work.Deployed, work.DeployFailed, work.StoryCancelled:
		return true, nil
	case work.Shipping:
		m, err := w.conflicted(ctx)
		return m != nil, err
	case work.Draft, work.InProgress, work.Validating, work.NeedsFix:
	}
	if w.about == nil {
		return true, nil
	}
	return w.tasks.rests(ctx, w.about)
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

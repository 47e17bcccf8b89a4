package cli

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

// storyActed answers with the story that something was done to.
func (s *shell) storyActed(view *app.StoryView, err error) error {
	if err != nil {
		return err
	}
	return s.show(view, func(p *page) { p.storyLine(view) })
}

// newStoryAct is a command that asks one thing of one story: a method of app.API.
func newStoryAct(s *shell, use, short string, act func(api app.API, ctx context.Context, ref string) (*app.StoryView, error)) *cobra.Command {
	return &cobra.Command{
		Use: use + " STORY", Short: short, Args: takes("STORY"), Example: "  claudomator story " + use + " gift-cards",
		ValidArgsFunction: s.completeStories,
		RunE: s.call(func(ctx context.Context, api app.API, args []string) error {
			view, err := act(api, ctx, args[0])
			return s.storyActed(view, err)
		}),
	}
}

func newStoryAcceptCommand(s *shell) *cobra.Command {
	c := newStoryAct(s, "accept", "Accept a story's work: it can then be shipped", app.API.AcceptStory)
	c.Long = "Accept a story's work, whatever its reviewers say: it is then SHIPPABLE. Nothing is landed\nor deployed before `claudomator story ship`."
	return c
}

func newStoryCancelCommand(s *shell) *cobra.Command {
	return newStoryAct(s, "cancel", "End a story, and all work for it", app.API.CancelStory)
}

func newStoryStopDeployCommand(s *shell) *cobra.Command {
	return newStoryAct(s, "stop-deploy", "End a running deployment, which then has failed", app.API.StopDeploy)
}

func newStoryRejectCommand(s *shell) *cobra.Command {
	var f rejectFlags
	c := &cobra.Command{
		Use: "reject STORY [TEXT]", Short: "Reject a story's work: a fix attempt begins, with what you say", Args: takes("STORY", "[TEXT]"),
		Example: "  claudomator story reject gift-cards -m \"a card can be used twice\"\n" +
			"  claudomator story reject gift-cards --at cards.go:12=\"divides by zero\" --extra 1",
		ValidArgsFunction: s.completeStories,
	}
	f.define(c)
	c.RunE = s.call(func(ctx context.Context, api app.API, args []string) error {
		in, err := f.input(c, s, args[1:])
		if err != nil {
			return err
		}
		view, err := api.RejectStory(ctx, args[0], in)
		return s.storyActed(view, err)
	})
	return c
}

func newStoryShipCommand(s *shell) *cobra.Command {
	var in app.ShipRequest
	var wait bool
	c := &cobra.Command{
		Use: "ship STORY", Short: "Land a SHIPPABLE story and deploy it, or go on where a ship has failed", Args: takes("STORY"),
		Long: "Land a SHIPPABLE story, push and deploy it, and run its smoke validation; in DEPLOY_FAILED:\n" +
			"go on with the step that has failed. With --wait it returns when the story is DEPLOYED; exit\n" +
			"code 8 when the ship was stopped, and why, 4 when its landing waits in a conflict.",
		Example: "  claudomator story ship gift-cards --wait", ValidArgsFunction: s.completeStories,
	}
	c.Flags().BoolVar(&wait, "wait", false, "return when it is DEPLOYED, or was stopped")
	c.Flags().StringVar(&in.IdempotencyKey, "idempotency-key", "", "a repeated request with the same key gets the same answer")
	c.RunE = s.call(func(ctx context.Context, api app.API, args []string) error {
		sent, err := api.ShipStory(ctx, args[0], in)
		if err != nil {
			return err
		}
		if !wait {
			return s.show(sent, func(p *page) {
				p.shipment(sent)
				p.next("story watch "+string(sent.StoryID), "shows how it goes")
			})
		}
		if s.format != jsonFormat {
			p := s.page()
			p.shipment(sent)
			if err := s.flush(p); err != nil {
				return err
			}
		}
		return s.shipped(ctx, api, string(sent.StoryID))
	})
	return c
}

func (p *page) shipment(sent *app.Shipment) {
	p.line("%s", inert(sent.Message))
	for _, report := range sent.Reports {
		p.paragraph(yellow, "  ", "- open report: "+inert(report))
	}
}

// shipped waits until a ship is over, and says how it ended.
func (s *shell) shipped(ctx context.Context, api app.API, story string) error {
	w := storyWaiter{api: api, ref: story, leaves: work.Shipping}
	if err := w.watch().run(ctx); err != nil {
		return err
	}
	if err := s.storyActed(w.view, nil); err != nil {
		return err
	}
	v := w.view
	switch m, err := w.conflicted(ctx); {
	case err != nil:
		return err
	case m != nil:
		return pausedShip(v, m)
	case v.Status == work.Deployed:
		return nil
	}
	why := "it was taken back"
	if v.Ship != nil && v.Ship.Error != "" {
		why = v.Ship.Error
	}
	err := work.Errorf(work.Illegal, "the ship of story %s was stopped, the story is %s: %s", v.ID, v.Status, why).WithReason("not_shipped").With("status", v.Status)
	return badEnd{err.WithHint("claudomator story show %s", v.ID)}
}

// pausedShip says which landing a conflict has paused, and how the ship goes on.
func pausedShip(v *app.StoryView, m *work.Merge) error {
	err := work.Errorf(work.Conflict, "story %s is not shipped yet: its landing (merge %s) on %s conflicts in %s", v.ID, m.ID, m.Target, strings.Join(m.Conflicts, ", ")).
		WithReason("conflicted").With("merge", m.ID).With("conflicts", m.Conflicts)
	how := cmp.Or(m.Hint, "resolve it, then continue; or abort, and nothing has changed")
	return err.WithHint("%s: claudomator merge continue %s --wait, or claudomator merge abort %s", how, m.ID, m.ID)
}

func newStoryWaitCommand(s *shell) *cobra.Command {
	var names []string
	var timeout time.Duration
	c := &cobra.Command{
		Use: "wait STORY", Short: "Wait until a story needs a person, or is over", Args: takes("STORY"),
		Long: "Wait until nothing automatic is left to happen to a story: it is over, or all that is open\n" +
			"in it waits for a person. With --for: until it has one of the statuses. Exit code 8 when it\n" +
			"is CANCELLED or DEPLOY_FAILED, or its planner or its root has failed; 4 when it is DEPLOYED\n" +
			"and another status was waited for; 7 when the time is up.",
		Example:           "  claudomator story wait gift-cards --timeout 2h\n  claudomator story wait gift-cards --for REVIEW_READY,SHIPPABLE",
		ValidArgsFunction: s.completeStories,
	}
	c.Flags().StringSliceVar(&names, "for", nil, "statuses to wait for, separated by commas")
	c.Flags().DurationVar(&timeout, "timeout", 0, "give up after this time; 0: never")
	s.completeStoryFlags(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		statuses, err := parseStatuses(c, names)
		if err != nil {
			return err
		}
		if timeout < 0 {
			return usageError(c, "--timeout must not be negative")
		}
		return s.call(func(ctx context.Context, api app.API, args []string) error {
			return s.waitStory(ctx, &storyWaiter{api: api, ref: args[0], statuses: statuses}, timeout)
		})(c, args)
	}
	return c
}

// waitStory waits, prints the story as it then is, and says how it ended.
func (s *shell) waitStory(ctx context.Context, w *storyWaiter, timeout time.Duration) error {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, timeout, errWaited)
		defer cancel()
	}
	err := w.watch().run(ctx)
	switch {
	case errors.Is(err, errWaited) && w.view == nil:
		return work.Errorf(work.Timeout, "story %s could not be looked at within %s", w.ref, timeout)
	case errors.Is(err, errWaited):
		return work.Errorf(work.Timeout, "story %s is still %s after %s", w.view.ID, w.view.Status, timeout)
	case err != nil:
		return err
	}
	if err := s.storyActed(w.view, nil); err != nil {
		return err
	}
	return w.verdict()
}

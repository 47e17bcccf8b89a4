package engine_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/claudomator/claudomator/internal/engine"
	"github.com/claudomator/claudomator/internal/work"
)

// coreThatDies hears nothing any more from its nth report on, or from after it.
type coreThatDies struct {
	engine.Core
	after bool
	died  chan struct{}

	mu   sync.Mutex
	left int
}

func (c *coreThatDies) Do(ctx context.Context, tree work.TreeID, by work.Actor, command work.Command) error {
	switch command.(type) {
	case work.Landed, work.Pushed, work.Begin, work.End:
	default:
		return c.Core.Do(ctx, tree, by, command)
	}
	c.mu.Lock()
	c.left--
	last, dead := c.left == 0, c.left < 0
	c.mu.Unlock()
	if dead {
		return errOnce
	}
	var err error
	if !last || c.after {
		err = c.Core.Do(ctx, tree, by, command)
	}
	if last {
		close(c.died)
		if !c.after {
			err = errOnce
		}
	}
	return err
}

// Whatever report of a ship is the last that a killed server hears: it lands and
// pushes once, and never deploys twice by itself. TestB30… is killed before the first.
func TestShipKilledAtItsReports(t *testing.T) {
	for name, test := range map[string]struct {
		report int
		after  bool
	}{
		"landed":            {1, true},
		"pushed, unheard":   {2, false},
		"about to deploy":   {3, false},
		"deployed, unheard": {4, false},
	} {
		t.Run(name, func(t *testing.T) { killedShip(t, test.report, test.after) })
	}
}

func killedShip(t *testing.T, at int, after bool) {
	t.Helper()
	w := newWorld(t, 4)
	origin := w.origin()
	plan := small()
	plan.Validation = work.Validations{{Type: work.SmokeValidation, Steps: []string{"test -f one"}}}
	s := w.ready(plan, func(p *work.Project) { p.Deploy = `echo x >>"$OUT/deployed"` })
	s.stop()
	died := make(chan struct{})
	s.wrap = func(o *engine.Options) { o.Core = &coreThatDies{Core: o.Core, after: after, died: died, left: at} }
	s.start()
	s.must(work.ShipStory{})
	<-died
	s.crash()
	s.wrap = nil
	s.start()
	s.meets(func(tree *work.Tree) bool { return tree.Story.Status != work.Shipping })
	if deployed := s.kept("deployed"); deployed != "x" && deployed != "" {
		t.Errorf("deployed by itself: %q", deployed)
	}
	if story, ship := s.story(); story.Status == work.DeployFailed {
		if ship.Step != work.ShipDeploy || !strings.Contains(ship.Error, "cut off") {
			t.Errorf("%+v", ship)
		}
		s.must(work.ShipStory{})
	}
	ship := s.is(work.Deployed)
	if main := s.git("-C", s.repo, "rev-parse", "main"); s.merges() != "1" || main != ship.Commit || s.git("-C", origin, "rev-parse", "main") != main {
		t.Errorf("%s landings, main is %s, shipped %s", s.merges(), main, ship.Commit)
	}
	if s.kept("deployed") == "" {
		t.Error("it was not deployed")
	}
	s.thrownAway()
}

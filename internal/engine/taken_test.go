package engine_test

import (
	"strings"
	"testing"

	"github.com/claudomator/claudomator/internal/work"
)

// needsPower is a deployment that fails until there is power.
func needsPower(p *work.Project) {
	p.Deploy = `echo "$CLAUDOMATOR_BRANCH" >>"$OUT/tries"; test -e "$OUT/power"`
}

// A landing that a person has taken back is neither pushed nor deployed: the story is
// landed anew. At a URL the branch there is looked at.
func TestShipAfterItsLandingWasTakenBack(t *testing.T) {
	for name, atURL := range map[string]bool{"of a repository here": false, "of a URL": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 4)
			origin, here := w.origin(), w.repo
			before := w.git("-C", here, "rev-parse", "main")
			if atURL {
				w.repo = "file://" + origin
			}
			s := w.ready(small(), needsPower)
			if w.repo = here; atURL {
				w.repo = origin
			}
			s.must(work.ShipStory{})
			landed := s.is(work.DeployFailed).Commit
			if got := w.git("-C", origin, "rev-parse", "main"); got != landed {
				t.Fatalf("the remote is at %s, landed was %s", got, landed)
			}
			w.git("-C", here, "reset", "-q", "--hard", before)
			w.git("-C", here, "push", "-q", "--force", "origin", "main")
			s.keep("power")
			s.must(work.ShipStory{})
			ship := s.is(work.Shippable)
			if !strings.Contains(ship.Error, "main does not contain the landing "+landed) || s.kept("tries") != "main" || w.git("-C", origin, "rev-parse", "main") != before {
				t.Errorf("%+v, tried %q", ship, s.kept("tries"))
			}
			s.must(work.ShipStory{})
			again := s.is(work.Deployed)
			if got := w.git("-C", origin, "rev-parse", "main"); got != again.Commit || w.merges() != "1" || s.kept("tries") != "main\nmain" {
				t.Errorf("%+v, the remote is at %s, tried %q", again, got, s.kept("tries"))
			}
		})
	}
}

// A ship that goes on does not mind what others have pushed onto its landing, nor that
// the project has got another branch.
func TestShipGoesOnWithItsTarget(t *testing.T) {
	w := newWorld(t, 4)
	origin := w.origin()
	s := w.ready(small(), needsPower)
	s.must(work.ShipStory{})
	landed := s.is(work.DeployFailed).Commit
	theirs := w.elsewhere(origin, "main", "b")
	w.git("-C", w.repo, "branch", "next", "main~1")
	s.change(func(p *work.Project) { p.Branch = "next" })
	s.keep("power")
	s.must(work.ShipStory{})
	if ship := s.is(work.Deployed); ship.Commit != landed || ship.Target != "main" || s.kept("tries") != "main\nmain" {
		t.Errorf("%+v, tried for %q", ship, s.kept("tries"))
	}
	if got := w.git("-C", origin, "for-each-ref", "--format=%(refname:short) %(objectname)"); got != "main "+theirs {
		t.Errorf("the remote has %q", got)
	}
}

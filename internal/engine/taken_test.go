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

// The story's branch at the remote is made anew where it was removed; one that others
// have made in its place, or that has the story's new name, is theirs.
func TestStoryBranchThatWasRemoved(t *testing.T) {
	for name, test := range map[string]struct {
		play  func(s *tale, f *forge)
		error string
	}{
		"and no more": {func(*tale, *forge) {}, ""},
		"and made by others": {func(s *tale, f *forge) {
			s.git("-C", f.origin, "branch", "story/small", "main") // what is accepted follows it
		}, "not the story's"},
		"and renamed": {func(s *tale, f *forge) {
			name := "story/large"
			s.git("-C", f.origin, "branch", name, "main")
			s.must(work.EditStory{BranchName: &name})
		}, "not the story's"},
	} {
		t.Run(name, func(t *testing.T) {
			s, f := pulled(t, small())
			s.must(work.ShipStory{})
			s.opened()
			f.set(func() { f.state = "closed" })
			s.look()
			s.is(work.Shippable)
			s.git("-C", f.origin, "branch", "-D", "story/small")
			test.play(s, f)
			s.must(work.RejectTask{Task: s.current().ID, Comment: "more"})
			s.shippable()
			s.must(work.ShipStory{})
			if test.error != "" {
				s.meets(func(tree *work.Tree) bool { return tree.Story.Status == work.Shippable })
				if _, ship := s.story(); !strings.Contains(ship.Error, test.error) || len(f.opened) != 1 {
					t.Errorf("%+v, %d opened", ship, len(f.opened))
				}
				return
			}
			s.opened()
			if got := s.git("-C", f.origin, "rev-parse", "story/small"); got != s.current().Accepted.Commit || len(f.opened) != 2 {
				t.Errorf("the branch is at %s, %d opened", got, len(f.opened))
			}
		})
	}
}

package engine_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/claudomator/claudomator/internal/engine"
	"github.com/claudomator/claudomator/internal/work"
)

// What a forge says of a merge is believed once it is seen: the target has the merge,
// and that is of what was accepted. Nothing else is deployed.
func TestMergeIsSeen(t *testing.T) {
	colleague := "git commit -q --allow-empty -m theirs; "
	for name, test := range map[string]struct {
		play  func(s *tale, f *forge) // before it is looked at
		error string                  // "": it is believed
	}{
		"a merge commit": {func(s *tale, f *forge) { f.mergeBy(s.world, colleague+"git merge -q --no-edit $head") }, ""},
		"a fast-forward": {func(s *tale, f *forge) { f.mergeBy(s.world, "git merge -q --ff-only $head") }, ""},
		"a squash":       {func(s *tale, f *forge) { f.mergeBy(s.world, "git merge -q --squash $head; git commit -qm squashed") }, ""},
		"a rebase": {func(s *tale, f *forge) {
			f.mergeBy(s.world, colleague+"git rebase -q main $head")
		}, ""},
		"a merge that is not named":  {func(s *tale, f *forge) { f.mergeBy(s.world, mergeCommit, func() { f.merged = "" }) }, ""},
		"a merge with more in it":    {func(s *tale, f *forge) { s.elsewhere(f.origin, "story/small", "b"); f.merge(s.world) }, ""},
		"a commit that is nowhere":   {func(_ *tale, f *forge) { f.set(func() { f.state, f.merged = "merged", strings.Repeat("a", 40) }) }, "is not on branch \"main\""},
		"no name, and not the story": {func(_ *tale, f *forge) { f.set(func() { f.state = "merged" }) }, "is not on branch \"main\""},
		"the target as it was": {func(s *tale, f *forge) {
			f.set(func() { f.state, f.merged = "merged", s.git("-C", f.origin, "rev-parse", "main") })
		}, "was on branch \"main\" before"},
		"the branch alone": {func(s *tale, f *forge) {
			f.set(func() { f.state, f.merged = "merged", s.git("-C", f.origin, "rev-parse", "story/small") })
		}, "is not on branch \"main\""},
		"another head": {func(s *tale, f *forge) {
			f.mergeBy(s.world, "git merge -q --squash $head; git commit -qm squashed", func() { f.head = strings.Repeat("b", 40) })
		}, "with bbbbbbbb"},
	} {
		t.Run(name, func(t *testing.T) {
			s, f := pulled(t, small())
			if name != "a fast-forward" {
				s.elsewhere(f.origin, "main", "c") // the story does not know of it
			}
			s.must(work.ShipStory{})
			s.opened()
			test.play(s, f)
			s.look()
			if test.error == "" {
				want := s.git("-C", f.origin, "rev-parse", "main")
				if ship := s.is(work.Deployed); f.merged != "" && ship.Commit != want || !strings.HasSuffix(s.kept("deployed"), "one") {
					t.Errorf("%+v, deployed %q, want %s", ship, s.kept("deployed"), want)
				}
				return
			}
			if ship := s.is(work.Shippable); !strings.Contains(ship.Error, test.error) || s.kept("deployed") != "" {
				t.Errorf("%+v, deployed %q", ship, s.kept("deployed"))
			}
			s.must(work.ShipStory{}) // by another pull request
			s.meets(func(tree *work.Tree) bool { return tree.Story.Ship.Pull.Number == 2 })
		})
	}
}

// A remote that is away when the forge tells of a merge is looked at again.
func TestMergeIsSeenLater(t *testing.T) {
	s, f := pulled(t, small())
	s.must(work.ShipStory{})
	s.opened()
	head := s.current().Accepted.Commit
	f.set(func() { f.head = head })
	merged := f.mergeBy(s.world, mergeCommit, func() {
		if err := os.Rename(f.origin, f.origin+".away"); err != nil {
			t.Fatal(err)
		}
	})
	s.looked(f)
	if story, ship := s.story(); story.Status != work.Shipping || s.kept("deployed") != "" {
		t.Errorf("%s, %+v", story.Status, ship)
	}
	if err := os.Rename(f.origin+".away", f.origin); err != nil {
		t.Fatal(err)
	}
	s.look()
	if ship := s.is(work.Deployed); ship.Commit != merged {
		t.Errorf("%+v, want %s", ship, merged)
	}
}

// A pull request keeps the target that it was opened for.
func TestPullRequestKeepsItsTarget(t *testing.T) {
	s, f := pulled(t, small())
	s.change(func(p *work.Project) { p.Deploy = `echo "$CLAUDOMATOR_BRANCH $CLAUDOMATOR_COMMIT" >>"$OUT/deployed"` })
	s.must(work.ShipStory{})
	s.opened()
	s.change(func(p *work.Project) { p.Branch = "next" })
	s.must(work.Settle{})
	merged := f.merge(s.world)
	s.look()
	if ship := s.is(work.Deployed); ship.Commit != merged || s.kept("deployed") != "main "+merged || s.current().Landed.Branch != "main" {
		t.Errorf("%+v, deployed %q, landed %+v", ship, s.kept("deployed"), s.current().Landed)
	}
}

// A merge that is taken back at the remote before its deployment has worked is neither
// deployed again nor called so: the story can be shipped anew.
func TestMergeThatWasTakenBack(t *testing.T) {
	s, f := pulled(t, small(), func(p *work.Project) { p.Deploy = `test -e "$OUT/power" && ` + p.Deploy })
	before := s.git("-C", f.origin, "rev-parse", "main")
	s.must(work.ShipStory{})
	s.opened()
	f.merge(s.world)
	s.look()
	s.is(work.DeployFailed)
	s.git("-C", f.origin, "update-ref", "refs/heads/main", before)
	s.keep("power")
	s.must(work.ShipStory{})
	if ship := s.is(work.Shippable); !strings.Contains(ship.Error, "does not contain the landing") || s.current().Landed != nil || s.kept("deployed") != "" {
		t.Errorf("%+v, landed %+v, deployed %q", ship, s.current().Landed, s.kept("deployed"))
	}
}

// The same merge, there still, is deployed.
func TestMergeThatIsThereStill(t *testing.T) {
	s, f := pulled(t, small(), func(p *work.Project) { p.Deploy = `test -e "$OUT/power" && ` + p.Deploy })
	s.must(work.ShipStory{})
	s.opened()
	merged := f.merge(s.world)
	s.look()
	s.is(work.DeployFailed)
	s.keep("power")
	s.must(work.ShipStory{})
	if ship := s.is(work.Deployed); ship.Commit != merged || len(f.opened) != 1 || !strings.HasPrefix(s.kept("deployed"), merged) {
		t.Errorf("%+v, %d opened, deployed %q", ship, len(f.opened), s.kept("deployed"))
	}
}

// What became of a pull request while nobody followed it is seen by the next ship.
func TestPullRequestThatNobodyFollowed(t *testing.T) {
	unfollowed := func(t *testing.T) (*tale, *forge) {
		s, f := pulled(t, small())
		s.must(work.ShipStory{})
		s.opened()
		f.set(func() { f.fails = []error{work.Errorf(work.Forbidden, "not today")} })
		s.look()
		if ship := s.is(work.Shippable); !strings.Contains(ship.Error, "not today") {
			t.Fatalf("%+v", ship)
		}
		return s, f
	}
	t.Run("merged", func(t *testing.T) {
		s, f := unfollowed(t)
		merged := f.merge(s.world)
		s.must(work.ShipStory{})
		if ship := s.is(work.Deployed); ship.Commit != merged || len(f.opened) != 1 || s.kept("deployed") != merged+" a one" {
			t.Errorf("%+v, %d opened, deployed %q", ship, len(f.opened), s.kept("deployed"))
		}
	})
	t.Run("closed", func(t *testing.T) {
		s, f := unfollowed(t)
		f.set(func() { f.state = "closed" })
		s.must(work.ShipStory{})
		s.meets(func(tree *work.Tree) bool { return tree.Story.Ship.Pull.Number == 2 })
		f.merge(s.world)
		s.look()
		s.is(work.Deployed)
	})
	t.Run("open, and the story is another", func(t *testing.T) {
		s, f := unfollowed(t)
		s.must(work.RejectTask{Task: s.current().ID, Comment: "more"})
		s.shippable()
		s.must(work.ShipStory{})
		s.opened()
		if got := s.git("-C", f.origin, "rev-parse", "story/small"); got != s.current().Accepted.Commit || len(f.opened) != 1 {
			t.Errorf("the branch is at %s, %d opened", got, len(f.opened))
		}
		f.merge(s.world)
		s.look()
		s.is(work.Deployed)
	})
	t.Run("merged, and the story is another", func(t *testing.T) {
		s, f := unfollowed(t)
		f.merge(s.world)
		s.must(work.RejectTask{Task: s.current().ID, Comment: "more"})
		s.shippable()
		s.must(work.ShipStory{})
		s.opened()
		merged := f.merge(s.world)
		s.look()
		if ship := s.is(work.Deployed); ship.Commit != merged || len(f.opened) != 2 {
			t.Errorf("%+v, %d opened, want %s", ship, len(f.opened), merged)
		}
	})
}

// A forge that wants to be left alone is, for an hour at most, and as long as one that
// is away.
func TestForgeThatWantsToBeLeftAlone(t *testing.T) {
	limited := func(in time.Duration) error {
		return &engine.LaterError{At: time.Now().Add(in), Err: work.Errorf(work.Exhausted, "too many requests")}
	}
	t.Run("for days", func(t *testing.T) {
		s, f := pulled(t, small())
		s.stop()
		wrap := s.wrap
		s.wrap = func(o *engine.Options) { wrap(o); o.PullLimit = 100 * time.Hour }
		s.start()
		s.must(work.ShipStory{})
		s.opened()
		f.set(func() { f.fails = []error{limited(50 * time.Hour)} })
		s.look()
		const query = `SELECT COUNT(*) FROM river_job WHERE json_extract(args, '$.kind') = 'pull_request' AND state = 'scheduled' AND scheduled_at > ? AND scheduled_at < ?`
		s.eventually("an hour's pause", func() bool {
			var jobs int
			now := time.Now().UTC()
			if err := s.store.DB().QueryRowContext(s.ctx, query, now.Add(59*time.Minute).Format(time.DateTime), now.Add(61*time.Minute).Format(time.DateTime)).Scan(&jobs); err != nil {
				t.Fatal(err)
			}
			return jobs == 1
		})
		if story, ship := s.story(); story.Status != work.Shipping || ship.Pull == nil {
			t.Errorf("%s, %+v", story.Status, ship)
		}
	})
	t.Run("for good", func(t *testing.T) {
		s, f := pulled(t, small())
		s.stop()
		wrap := s.wrap
		s.wrap = func(o *engine.Options) { wrap(o); o.PullLimit = 500 * time.Millisecond }
		s.start()
		s.must(work.ShipStory{})
		s.opened()
		f.set(func() { f.fails = slicesOf(limited(10*time.Hour), many) })
		s.eventually("the end of the ship", func() bool {
			s.look()
			story, _ := s.story()
			return story.Status == work.Shippable
		})
		if _, ship := s.story(); !strings.Contains(ship.Error, "too many requests") {
			t.Errorf("%+v", ship)
		}
	})
}

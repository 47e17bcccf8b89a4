package engine_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/claudomator/claudomator/internal/engine"
	"github.com/claudomator/claudomator/internal/work"
)

// ended waits until it is known what has become of a cancelled story's pull request.
func (s *tale) ended(ok func(ship *work.Ship) bool) work.Ship {
	s.Helper()
	s.meets(func(tree *work.Tree) bool { return tree.Story.Status == work.StoryCancelled && ok(tree.Story.Ship) })
	_, ship := s.story()
	return ship
}

func pullIs(state work.PullState) func(*work.Ship) bool {
	return func(ship *work.Ship) bool { return ship.Pull != nil && ship.Pull.State == state }
}

// The pull request of a cancelled story is closed, with a word of why, and its branch
// left.
func TestCancelClosesThePullRequest(t *testing.T) {
	for name, play := range map[string]func(s *tale, f *forge){
		"while it is open": func(*tale, *forge) {},
		"in the fix of its checks": func(s *tale, f *forge) {
			f.set(func() { f.red = "assertion 7" })
			s.look()
			s.meets(func(tree *work.Tree) bool { return tree.Current(tree.Root()).AttemptNo == 2 })
		},
		"after the forge was away": func(s *tale, f *forge) {
			f.set(func() {
				f.fails = []error{work.Errorf(work.Unavailable, "away"), &engine.LaterError{At: time.Now().Add(time.Second), Err: work.Errorf(work.Exhausted, "too many requests")}}
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, f := pulled(t, small())
			s.must(work.ShipStory{})
			s.opened()
			play(s, f)
			story, _ := s.story()
			s.must(work.CancelStory{})
			ship := s.ended(pullIs(work.PullClosed))
			s.eventually("nothing is left to say", func() bool { _, ship = s.story(); return ship.Error == "" })
			f.set(func() {
				if f.state != "closed" || len(f.said) != 1 || !strings.Contains(f.said[0], "cancelled") || !strings.HasSuffix(f.said[0], "Claudomator-Story: "+string(story.ID)+"\n") {
					t.Errorf("it is %s, said %q", f.state, f.said)
				}
			})
			if got := s.git("-C", f.origin, "branch", "--list", "story/small"); got == "" || s.kept("deployed") != "" {
				t.Errorf("branch %q, deployed %q", got, s.kept("deployed"))
			}
		})
	}
}

// What cannot be closed is said, and does not hold the cancelling back.
func TestCancelThatCannotCloseThePullRequest(t *testing.T) {
	for name, test := range map[string]struct {
		play  func(s *tale, f *forge) // nil: a person merges it
		state work.PullState
		error string
	}{
		"a bad token": {func(_ *tale, f *forge) {
			f.closes = []error{work.Errorf(work.Unauthenticated, "the token is not valid").WithHint("set another")}
		}, "open", "could not be closed, close it at the forge: the token is not valid; set another"},
		"still away":       {func(_ *tale, f *forge) { f.fails = slicesOf(work.Errorf(work.Unavailable, "nobody answers"), many) }, "open", "tried again: nobody answers"},
		"merged meanwhile": {nil, "merged", "merged before it could be closed"},
		"no remote":        {func(s *tale, _ *forge) { s.git("-C", s.repo, "remote", "remove", "origin") }, "open", "no remote"},
	} {
		t.Run(name, func(t *testing.T) {
			s, f := pulled(t, small())
			s.must(work.ShipStory{})
			s.opened()
			if test.play == nil {
				f.mergeBy(s.world, mergeCommit, func() { s.must(work.CancelStory{}) })
			} else {
				s.cancelAsleep(f, func() { test.play(s, f) })
			}
			ship := s.ended(func(ship *work.Ship) bool { return ship.Error != "" })
			if ship.Pull.State != test.state || !strings.Contains(ship.Error, test.error) || s.kept("deployed") != "" || len(f.said) != 0 {
				t.Errorf("%+v, pull request %+v, said %q", ship, ship.Pull, f.said)
			}
			if test.state == work.PullMerged && ship.Commit != f.merged {
				t.Errorf("it names %s, merged was %s", ship.Commit, f.merged)
			}
		})
	}
}

// cancelAsleep cancels a story of which nobody has seen yet what happens at the forge.
func (s *tale) cancelAsleep(f *forge, happens func()) {
	s.Helper()
	f.set(func() { // no look comes in between
		happens()
		s.must(work.CancelStory{})
	})
}

// A forge that stays away is not asked for ever.
func TestCancelGivesUpOnAForgeThatStaysAway(t *testing.T) {
	s, f := pulled(t, small())
	s.must(work.ShipStory{})
	s.opened()
	wrap := s.wrap
	s.wrap = func(o *engine.Options) { wrap(o); o.PullLimit = 2 * time.Second }
	asked, goOn := s.slowly(f)
	s.cancelAsleep(f, func() { f.closes = slicesOf(work.Errorf(work.Unavailable, "nobody answers"), many) })
	<-asked
	goOn <- struct{}{} // and the next time it waits again: what is told first stands until it is seen
	s.ended(func(ship *work.Ship) bool { return strings.Contains(ship.Error, "tried again") })
	close(goOn)
	s.ended(func(ship *work.Ship) bool {
		return strings.Contains(ship.Error, "close it at the forge: nobody answers")
	})
}

// slowForge takes its time to open and to close.
type slowForge struct {
	*forge
	asked chan<- string
	goOn  <-chan struct{}
}

func (f slowForge) wait(ctx context.Context, what string) error {
	f.asked <- what
	select {
	case <-f.goOn:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (f slowForge) Open(ctx context.Context, r engine.PullRequest) (work.Pull, error) {
	if err := f.wait(ctx, "open"); err != nil {
		return work.Pull{}, err
	}
	return f.forge.Open(ctx, r)
}

func (f slowForge) Close(ctx context.Context, r engine.PullRequest, number int, comment string) (engine.PullLook, error) {
	if err := f.wait(ctx, "close"); err != nil {
		return engine.PullLook{}, err
	}
	return f.forge.Close(ctx, r, number, comment)
}

// slowly starts the server anew with a forge that waits until it may go on.
func (s *tale) slowly(f *forge) (asked <-chan string, goOn chan<- struct{}) {
	s.Helper()
	words, next := make(chan string, 100), make(chan struct{})
	wrap := s.wrap
	s.stop()
	s.wrap = func(o *engine.Options) {
		wrap(o)
		o.Forge = slowForge{f, words, next}
	}
	s.start()
	return words, next
}

// A server that dies between the cancelling and the closing closes it when it is back,
// and says why once.
func TestCancelClosesThePullRequestAfterARestart(t *testing.T) {
	s, f := pulled(t, small())
	s.must(work.ShipStory{})
	s.opened()
	asked, goOn := s.slowly(f)
	s.must(work.CancelStory{})
	if what := <-asked; what != "close" {
		t.Errorf("it is asked to %s", what)
	}
	s.crash()
	if f.state != "open" {
		t.Fatal("nothing is put to the test")
	}
	close(goOn)
	s.start()
	s.ended(pullIs(work.PullClosed))
	f.set(func() {
		if f.state != "closed" || len(f.said) != 1 {
			t.Errorf("it is %s, said %q", f.state, f.said)
		}
	})
}

// One whose opening was not reported yet is found by its branch and closed.
func TestCancelClosesAPullRequestThatIsBeingOpened(t *testing.T) {
	s, f := pulled(t, small())
	asked, goOn := s.slowly(f)
	s.must(work.ShipStory{})
	<-asked
	s.must(work.CancelStory{})
	if story, ship := s.story(); story.Status != work.StoryCancelled || ship.Pull != nil {
		t.Errorf("%s, %+v", story.Status, ship)
	}
	close(goOn)
	s.ended(pullIs(work.PullClosed))
	f.set(func() {
		if len(f.opened) != 1 || len(f.said) != 1 {
			t.Errorf("%d opened, said %q", len(f.opened), f.said)
		}
	})
}

// Where nothing was pushed there is no pull request, and no forge to be asked.
func TestCancelWithoutAPullRequest(t *testing.T) {
	s, f := pulled(t, small())
	main := "main"
	s.must(work.EditStory{BranchName: &main})
	s.must(work.ShipStory{})
	s.meets(func(tree *work.Tree) bool { return tree.Story.Ship.Error != "" })
	s.is(work.Shippable)
	f.set(func() { f.fails = slicesOf(work.Errorf(work.Unauthenticated, "the token is not valid"), 10) })
	before := s.is(work.Shippable)
	s.must(work.CancelStory{})
	s.eventually("the closing is over", func() bool {
		var open int
		const query = `SELECT COUNT(*) FROM river_job WHERE json_extract(args, '$.kind') = 'close_pull' AND state <> 'completed'`
		if err := s.store.DB().QueryRowContext(s.ctx, query).Scan(&open); err != nil {
			t.Fatal(err)
		}
		return open == 0
	})
	if _, ship := s.story(); len(f.fails) != 10 || ship.Pull != nil || strings.Contains(ship.Error, "closed") {
		t.Errorf("asked %d times; %+v, before %+v", 10-len(f.fails), ship, before)
	}
}

package engine_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/claudomator/claudomator/internal/engine"
	"github.com/claudomator/claudomator/internal/work"
)

// origin gives the world's repository a bare remote.
func (w *world) origin() string {
	w.Helper()
	dir := filepath.Join(w.T.TempDir(), "origin.git")
	w.git("clone", "-q", "--bare", w.repo, dir)
	w.git("-C", w.repo, "remote", "add", "origin", dir)
	return dir
}

// elsewhere commits a file to a branch of a remote, as a colleague does.
func (w *world) elsewhere(origin, branch, name string) string {
	w.Helper()
	dir := filepath.Join(w.T.TempDir(), "clone")
	w.git("clone", "-q", "-b", branch, origin, dir)
	if err := os.WriteFile(filepath.Join(dir, name), []byte("theirs\n"), 0o600); err != nil {
		w.Fatal(err)
	}
	w.git("-C", dir, "add", ".")
	w.git("-C", dir, "-c", "user.name=o", "-c", "user.email=o@x", "commit", "-q", "-m", "elsewhere")
	w.git("-C", dir, "push", "-q")
	return w.git("-C", dir, "rev-parse", "HEAD")
}

// quickly makes pauses and polls short from the next start on, which it makes.
func (w *world) quickly(more func(*engine.Options)) {
	w.Helper()
	w.stop()
	w.wrap = func(o *engine.Options) {
		o.PushPause, o.PullPoll = 20*time.Millisecond, 50*time.Millisecond
		if more != nil {
			more(o)
		}
	}
	w.start()
}

func TestShipPushesToTheRemote(t *testing.T) {
	w := newWorld(t, 4)
	origin := w.origin()
	s := w.ready(small(), func(p *work.Project) { p.Deploy = `echo x >>"$OUT/deployed"` })
	s.must(work.ShipStory{})
	ship := s.is(work.Deployed)
	if got := w.git("-C", origin, "rev-parse", "main"); got != ship.Commit {
		t.Errorf("the remote is at %s, landed was %s", got, ship.Commit)
	}
	events, err := w.store.Events(w.ctx, 0, work.TreeID(s.root), "", 10_000)
	if err != nil {
		t.Fatal(err)
	}
	pushed := 0
	for _, e := range events {
		if e.Kind == "story.pushed" {
			pushed++
		}
	}
	if pushed != 1 {
		t.Errorf("%d events of a push", pushed)
	}
}

// What a remote refuses leaves the story landed: Ship goes on at the push.
func TestPushRefusedIsResumed(t *testing.T) {
	w := newWorld(t, 4)
	origin := w.origin()
	hook := filepath.Join(origin, "hooks", "pre-receive")
	if err := os.WriteFile(hook, []byte("#!/bin/sh\necho no pushes on mondays >&2\nexit 1\n"), 0o700); err != nil { //nolint:gosec // a hook is run
		t.Fatal(err)
	}
	s := w.ready(small(), func(p *work.Project) { p.Deploy = `echo x >>"$OUT/deployed"` })
	s.must(work.ShipStory{})
	ship := s.is(work.DeployFailed)
	if ship.Step != work.ShipPush || !strings.Contains(ship.Error, "no pushes on mondays") || s.kept("deployed") != "" {
		t.Errorf("%+v, deployed %q", ship, s.kept("deployed"))
	}
	if err := os.Remove(hook); err != nil {
		t.Fatal(err)
	}
	s.must(work.ShipStory{})
	again := s.is(work.Deployed)
	if again.Commit != ship.Commit || w.merges() != "1" || s.kept("deployed") != "x" || w.git("-C", origin, "rev-parse", "main") != ship.Commit {
		t.Errorf("%+v after %+v, %s landings, deployed %q", again, ship, w.merges(), s.kept("deployed"))
	}
}

// What others have brought to the remote is not pushed over. Once the project's
// repository has it, Ship pushes both.
func TestPushOntoAMovedRemote(t *testing.T) {
	w := newWorld(t, 4)
	origin := w.origin()
	s := w.ready(small(), nil)
	theirs := w.elsewhere(origin, "main", "b")
	s.must(work.ShipStory{})
	ship := s.is(work.DeployFailed)
	if !strings.Contains(ship.Error, "git pull") || w.git("-C", origin, "rev-parse", "main") != theirs {
		t.Errorf("%+v", ship)
	}
	w.git("-C", w.repo, "-c", "user.name=u", "-c", "user.email=u@x", "pull", "-q", "--no-rebase", "--no-edit", "origin", "main")
	s.must(work.ShipStory{})
	s.is(work.Deployed)
	for _, commit := range []string{theirs, ship.Commit} {
		w.git("-C", origin, "merge-base", "--is-ancestor", commit, "main")
	}
}

// A remote that is away for a moment is tried again, one that stays away reported.
func TestPushToARemoteThatIsAway(t *testing.T) {
	for name, back := range map[string]bool{"for a moment": true, "for good": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 4)
			origin := w.origin()
			w.quickly(func(o *engine.Options) { o.PushPause = 300 * time.Millisecond })
			s := w.ready(small(), nil)
			if err := os.Rename(origin, origin+".away"); err != nil {
				t.Fatal(err)
			}
			s.must(work.ShipStory{})
			s.meets(func(tree *work.Tree) bool { return tree.Story.Ship.Step == work.ShipPush })
			if !back {
				if ship := s.is(work.DeployFailed); !strings.Contains(ship.Error, "check the path") {
					t.Errorf("%+v", ship)
				}
				return
			}
			time.Sleep(100 * time.Millisecond) // the first try meets nothing
			if err := os.Rename(origin+".away", origin); err != nil {
				t.Fatal(err)
			}
			if ship := s.is(work.Deployed); w.git("-C", origin, "rev-parse", "main") != ship.Commit {
				t.Error("it was not pushed")
			}
		})
	}
}

// A push that was delivered again pushes nothing, and moves nothing on twice.
func TestPushDeliveredTwice(t *testing.T) {
	w := newWorld(t, 4)
	origin := w.origin()
	s := w.ready(small(), func(p *work.Project) { p.Deploy = `echo x >>"$OUT/deployed"` })
	s.must(work.ShipStory{})
	for range 20 {
		s.must(work.Settle{Redeliver: true})
	}
	if ship := s.is(work.Deployed); s.kept("deployed") != "x" || w.git("-C", origin, "rev-parse", "main") != ship.Commit || w.merges() != "1" {
		t.Errorf("deployed %q, %s landings", s.kept("deployed"), w.merges())
	}
}

// A project may be at a URL: its remote is what it is landed on, and what a forge has
// merged there is what is deployed.
func TestShipToAURL(t *testing.T) {
	at := func(w *world, f *forge, mode work.ShipMode) *tale {
		w.repo = "file://" + f.origin
		s := w.ready(small(), func(p *work.Project) {
			p.ShipMode, p.Deploy = mode, `echo "$CLAUDOMATOR_COMMIT $(cat one)" >>"$OUT/deployed"`
		})
		w.repo = f.origin
		s.must(work.ShipStory{})
		return s
	}
	deployed := func(s *tale) {
		s.Helper()
		ship := s.is(work.Deployed)
		if main := s.git("-C", s.repo, "rev-parse", "main"); ship.Commit != main || s.merges() != "1" || s.kept("deployed") != main+" one" {
			s.Errorf("%+v, main is %s, deployed %q", ship, main, s.kept("deployed"))
		}
	}
	t.Run("directly", func(t *testing.T) {
		w := newWorld(t, 4)
		deployed(at(w, &forge{origin: w.origin()}, work.ShipDirectly))
	})
	t.Run("by pull request", func(t *testing.T) {
		w := newWorld(t, 4)
		f := &forge{origin: w.origin(), git: w.tryGit}
		w.quickly(func(o *engine.Options) { o.Forge = f })
		s := at(w, f, work.ShipPullRequest)
		s.opened()
		f.merge(w)
		s.look()
		deployed(s)
	})
}

package engine_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claudomator/claudomator/internal/engine"
	"github.com/claudomator/claudomator/internal/work"
)

// forge is a forge whose pull requests are rows in memory; branches and merges are
// those of a real remote.
type forge struct {
	origin string
	git    func(args ...string) string

	mu     sync.Mutex
	opened []engine.PullRequest // newly, not found
	state  work.PullState
	merged string
	head   string // as it says; "": where the branch is
	red    string // of head
	fails  []error
	closes []error  // of closing alone
	said   []string // below the pull requests, when they were closed
	looks  int
}

func (f *forge) Open(_ context.Context, r engine.PullRequest) (work.Pull, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.fail(); err != nil {
		return work.Pull{}, err
	}
	if f.state != "open" {
		f.opened = append(f.opened, r)
		f.state, f.head = "open", ""
	}
	return f.pull(), nil
}

func (f *forge) pull() work.Pull {
	n := len(f.opened)
	head := f.head
	if head == "" {
		head = f.git("--git-dir", f.origin, "rev-parse", "refs/heads/"+f.opened[n-1].Branch)
	}
	return work.Pull{Number: n, URL: fmt.Sprintf("https://forge.test/o/r/pulls/%d", n), State: f.state, Checks: "pending", Head: head}
}

func (f *forge) fail() error {
	if len(f.fails) == 0 {
		return nil
	}
	err := f.fails[0]
	f.fails = f.fails[1:]
	return err
}

func (f *forge) Look(_ context.Context, _ engine.PullRequest, number int) (engine.PullLook, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.looks++
	if err := f.fail(); err != nil {
		return engine.PullLook{}, err
	}
	if number != len(f.opened) {
		return engine.PullLook{}, work.Errorf(work.NotFound, "there is no pull request %d", number)
	}
	return engine.PullLook{Pull: f.pull(), Commit: f.merged, Red: f.red}, nil
}

func (f *forge) Close(_ context.Context, r engine.PullRequest, number int, comment string) (engine.PullLook, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.closes) > 0 {
		err := f.closes[0]
		f.closes = f.closes[1:]
		return engine.PullLook{}, err
	}
	if err := f.fail(); err != nil {
		return engine.PullLook{}, err
	}
	if number == 0 && f.state == "open" && f.opened[len(f.opened)-1].Branch == r.Branch {
		number = len(f.opened)
	}
	switch {
	case number == 0:
		return engine.PullLook{}, nil
	case number != len(f.opened):
		return engine.PullLook{}, work.Errorf(work.NotFound, "there is no pull request %d", number)
	case f.state == "open":
		f.state, f.said = "closed", append(f.said, comment)
	}
	return engine.PullLook{Pull: f.pull(), Commit: f.merged}, nil
}

func (f *forge) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// merge merges the open pull request, as a person does at the forge.
func (f *forge) merge(w *world) string {
	w.Helper()
	return f.mergeBy(w, mergeCommit)
}

const mergeCommit = "git merge -q --no-ff --no-edit $head"

// mergeBy does it with a script in a clone, whose HEAD it then names as the merge;
// $head is the branch. No look comes between the merge and what else happens.
func (f *forge) mergeBy(w *world, script string, happens ...func()) string {
	w.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	dir := w.T.TempDir()
	w.git("clone", "-q", f.origin, dir)
	cmd := exec.Command("sh", "-ec", script+"; git push -q origin HEAD:main") //nolint:gosec // the script is the test's
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "head=origin/"+f.opened[len(f.opened)-1].Branch,
		"GIT_AUTHOR_NAME=o", "GIT_AUTHOR_EMAIL=o@x", "GIT_COMMITTER_NAME=o", "GIT_COMMITTER_EMAIL=o@x")
	if out, err := cmd.CombinedOutput(); err != nil {
		w.Fatalf("merge: %v\n%s", err, out)
	}
	merged := w.git("-C", dir, "rev-parse", "HEAD")
	f.state, f.merged = "merged", merged
	for _, h := range happens {
		h()
	}
	return merged
}

// pulled is a SHIPPABLE story of a project that ships by pull requests.
func pulled(t *testing.T, plan *work.Plan, change ...func(*work.Project)) (*tale, *forge) {
	t.Helper()
	w := newWorld(t, 4)
	f := &forge{origin: w.origin(), git: w.tryGit}
	w.quickly(func(o *engine.Options) { o.Forge = f })
	return w.ready(plan, func(p *work.Project) {
		p.ShipMode, p.Forge = work.ShipPullRequest, work.Forge{Kind: "gitea"}
		p.Deploy = `echo "$CLAUDOMATOR_COMMIT $(git --version >/dev/null; ls | tr '\n' ' ')" >>"$OUT/deployed"`
		for _, c := range change {
			c(p)
		}
	}), f
}

// opened waits until a pull request of what is accepted now is open.
func (s *tale) opened() {
	s.Helper()
	s.meets(func(tree *work.Tree) bool {
		p := tree.Story.Ship.Pull
		return tree.Story.Status == work.Shipping && p != nil && p.State == work.PullOpen && p.Head == tree.Current(tree.Root()).Accepted.Commit
	})
}

// look lets the story look at its pull request now: scheduled jobs move slowly.
func (s *tale) look() {
	s.Helper()
	s.must(work.Settle{Redeliver: true})
}

// looked lets it look until what there is now was seen, and reported: looks come one
// after the other, and the first of three may have begun before.
func (s *tale) looked(f *forge) {
	s.Helper()
	looks := func() (n int) { f.set(func() { n = f.looks }); return n }
	before := looks()
	s.eventually("three looks", func() bool { s.look(); return looks() >= before+3 })
}

// A story is shipped by a pull request: opened, red, fixed, merged by a person, and
// deployed at the merge.
func TestShipByPullRequest(t *testing.T) {
	plan := small()
	plan.AcceptanceCriteria = []string{"one is there"}
	plan.Spec = "A file called one."
	s, f := pulled(t, plan)
	s.must(work.ShipStory{})
	s.opened()
	first := s.current().Accepted.Commit
	if story, ship := s.story(); story.Status != work.Shipping || ship.Pull.Head != first || ship.Pull.Number != 1 || ship.Pull.URL == "" {
		t.Errorf("%s, %+v", story.Status, ship.Pull)
	}
	if got := s.git("-C", f.origin, "rev-parse", "story/small"); got != first {
		t.Errorf("the remote's story branch is at %s, want %s", got, first)
	}
	r := f.opened[0]
	if r.Title != "Small" || r.Branch != "story/small" || r.Target != "main" || r.Remote != f.origin || r.Forge.Kind != "gitea" || r.Commit != first {
		t.Errorf("asked for %+v", r)
	}
	for _, want := range []string{"echo again >>fixed", "A file called one.", "- one is there\n", "arbitration: ` sh -c", "exit 0 `", "\nClaudomator-Story: " + string(s.id) + "\n"} {
		if !strings.Contains(r.Body, want) {
			t.Errorf("the body lacks %q:\n%s", want, r.Body)
		}
	}

	f.set(func() { f.red = "unit tests: failed\nassertion 7" })
	s.look()
	s.meets(func(tree *work.Tree) bool { return tree.Current(tree.Root()).AttemptNo == 2 })
	if fix := s.current(); !strings.Contains(fix.RejectionComment, "assertion 7") || fix.Book.Base != first {
		t.Errorf("the fix starts from %s and is told %q", fix.Book.Base, fix.RejectionComment)
	}
	f.set(func() { f.red = "" })
	s.shippable()
	s.must(work.ShipStory{})
	s.opened()
	second := s.current().Accepted.Commit
	if got := s.git("-C", f.origin, "rev-parse", "story/small"); got != second || second == first || len(f.opened) != 1 {
		t.Errorf("the remote's story branch is at %s, want %s; %d opened", got, second, len(f.opened))
	}

	before := s.git("-C", s.repo, "rev-parse", "main")
	merged := f.merge(s.world)
	s.look()
	ship := s.is(work.Deployed)
	if want := merged + " a fixed one"; ship.Commit != merged || s.kept("deployed") != want {
		t.Errorf("%+v, deployed %q, want %q", ship, s.kept("deployed"), want)
	}
	if got := s.git("-C", s.repo, "rev-parse", "main"); got != before || s.current().Landed.Commit != merged {
		t.Errorf("the project's repository was moved to %s; landed %+v", got, s.current().Landed)
	}
	s.thrownAway()
}

func TestPullRequestThatEndsOtherwise(t *testing.T) {
	for name, test := range map[string]struct {
		play  func(s *tale, f *forge)
		error string
	}{
		"closed": {func(s *tale, f *forge) {
			s.opened()
			f.set(func() { f.state = "closed" })
			s.look()
		}, "closed without being merged"},
		"removed": {func(s *tale, f *forge) {
			s.opened()
			f.set(func() { f.fails = []error{work.Errorf(work.NotFound, "there is no such pull request")} })
			s.look()
		}, "there is no such pull request"},
	} {
		t.Run(name, func(t *testing.T) {
			s, f := pulled(t, small())
			s.must(work.ShipStory{})
			test.play(s, f)
			if ship := s.is(work.Shippable); !strings.Contains(ship.Error, test.error) || s.kept("deployed") != "" {
				t.Errorf("%+v", ship)
			}
			s.must(work.ShipStory{}) // and once more
			s.opened()
			f.merge(s.world)
			s.look()
			s.is(work.Deployed)
		})
	}
}

// What cannot be opened is said, and the story can be shipped again.
func TestPullRequestThatCannotBeOpened(t *testing.T) {
	refused := func(code work.Code, text string) error { return work.Errorf(code, "%s", text).WithHint("do this") }
	for name, test := range map[string]struct {
		prepare func(s *tale, f *forge)
		error   string
	}{
		"a bad token": {func(_ *tale, f *forge) { f.fails = []error{refused(work.Unauthenticated, "the token is not valid")} }, "the token is not valid; do this"},
		"no remote":   {func(s *tale, _ *forge) { s.git("-C", s.repo, "remote", "remove", "origin") }, "no remote"},
		"its own target": {func(s *tale, _ *forge) {
			main := "main"
			s.must(work.EditStory{BranchName: &main})
		}, "the one that it is to be merged into; give the story another one: claudomator story set"},
		"away for good": {func(_ *tale, f *forge) { f.fails = slicesOf(refused(work.Unavailable, "nobody answers"), 4) }, "nobody answers"},
		"a branch of others": {func(s *tale, f *forge) {
			s.git("-C", f.origin, "branch", "story/small", "main")
			s.elsewhere(f.origin, "story/small", "b")
		}, "not the story's"},
		"a branch of others that could be followed": {func(s *tale, f *forge) { s.git("-C", f.origin, "branch", "story/small", "main") }, "not the story's"},
	} {
		t.Run(name, func(t *testing.T) {
			s, f := pulled(t, small())
			test.prepare(s, f)
			s.must(work.ShipStory{})
			s.meets(func(tree *work.Tree) bool { return tree.Story.Ship.Error != "" })
			if ship := s.is(work.Shippable); !strings.Contains(ship.Error, test.error) || len(f.opened) != 0 {
				t.Errorf("%+v, %d opened", ship, len(f.opened))
			}
		})
	}
}

// many is more than is asked for while it is waited for something.
const many = 100_000

func slicesOf(err error, n int) []error {
	out := make([]error, n)
	for i := range out {
		out[i] = err
	}
	return out
}

// A forge that is away, or wants to be left alone for a while, ends nothing.
func TestPullRequestOutlivesAFaultOfTheForge(t *testing.T) {
	s, f := pulled(t, small())
	until := time.Now().Add(2 * time.Second)
	f.fails = []error{work.Errorf(work.Unavailable, "away"), &engine.LaterError{At: until, Err: work.Errorf(work.Exhausted, "too many requests")}}
	s.must(work.ShipStory{})
	s.opened()
	if opened := time.Now(); opened.Before(until) {
		t.Errorf("it was asked %s before the instant that the forge named", until.Sub(opened))
	}
	f.set(func() {
		f.fails = []error{work.Errorf(work.Timeout, "slow"), work.Errorf(work.Unavailable, "away")}
	})
	s.looked(f)
	if story, ship := s.story(); story.Status != work.Shipping || ship.Error != "" {
		t.Errorf("%s, %+v", story.Status, ship)
	}
	f.merge(s.world)
	s.look()
	s.is(work.Deployed)
}

// A forge that stays away is a person's concern in the end: nobody could cancel the
// story otherwise.
func TestPullRequestOfAForgeThatStaysAway(t *testing.T) {
	s, f := pulled(t, small())
	s.stop()
	wrap := s.wrap
	s.wrap = func(o *engine.Options) {
		wrap(o)
		o.PullLimit = time.Second
	}
	s.start()
	s.must(work.ShipStory{})
	s.opened()
	before := time.Now()
	f.set(func() { f.fails = slicesOf(work.Errorf(work.Unavailable, "nobody answers"), many) })
	s.eventually("the end of the ship", func() bool {
		s.look()
		time.Sleep(200 * time.Millisecond)
		story, _ := s.story()
		return story.Status == work.Shippable
	})
	if _, ship := s.story(); !strings.Contains(ship.Error, "nobody answers") || time.Since(before) < time.Second {
		t.Errorf("after %s: %+v", time.Since(before), ship)
	}
}

// What others add to the story's branch at the remote is neither taken for what was
// judged nor overwritten by the next ship.
func TestPullRequestThatOthersGoOnWith(t *testing.T) {
	s, f := pulled(t, small())
	s.must(work.ShipStory{})
	s.opened()
	theirs := s.elsewhere(f.origin, "story/small", "b")
	f.set(func() { f.red = "broken by what was added" })
	s.look()
	s.looked(f)
	s.meets(func(tree *work.Tree) bool { return tree.Story.Ship.Pull.Head == theirs })
	if story, _ := s.story(); story.Status != work.Shipping || s.current().AttemptNo != 1 {
		t.Errorf("%s, attempt %d", story.Status, s.current().AttemptNo)
	}
	f.set(func() { f.state, f.red = "closed", "" })
	s.look()
	s.is(work.Shippable)
	s.must(work.RejectTask{Task: s.current().ID, Comment: "once more"})
	s.shippable()
	s.must(work.ShipStory{})
	s.meets(func(tree *work.Tree) bool { return tree.Story.Ship.Error != "" })
	if ship := s.is(work.Shippable); !strings.Contains(ship.Error, "not the story's") || s.git("-C", f.origin, "rev-parse", "story/small") != theirs {
		t.Errorf("%+v", ship)
	}
}

// Each start of the server gives the effect again: one job follows, not one more.
func TestPullRequestIsFollowedOnce(t *testing.T) {
	s, f := pulled(t, small())
	s.must(work.ShipStory{})
	s.opened()
	jobs := func(among string) (n int) {
		const query = `SELECT COUNT(*) FROM river_job WHERE json_extract(args, '$.kind') = 'pull_request'`
		if err := s.store.DB().QueryRowContext(s.ctx, query+among).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	delivered := func() int { return jobs("") }
	following := func() int { return jobs(` AND state IN ('available', 'scheduled', 'running', 'retryable')`) }
	for range 3 {
		before := delivered()
		s.stop()
		s.start()
		for range 3 {
			s.look()
		}
		if n := delivered() - before; n < 3 {
			t.Errorf("delivered %d times more: nothing is put to the test", n)
		}
	}
	s.eventually("one job is left", func() bool { return following() == 1 })
	before := 0
	f.set(func() { before = f.looks })
	s.eventually("it goes on", func() (goes bool) {
		f.set(func() { goes = f.looks > before })
		return goes
	})
	f.merge(s.world)
	s.is(work.Deployed) // by itself
	s.eventually("no job is left", func() bool { return following() == 0 })
}

// A forge that does not answer again and again is named to a person, until it does.
func TestPullRequestNamesAForgeThatIsAway(t *testing.T) {
	s, f := pulled(t, small())
	s.must(work.ShipStory{})
	s.opened()
	named := func() (is bool) {
		s.look()
		time.Sleep(50 * time.Millisecond)
		s.view(func(tree *work.Tree) {
			is = slices.ContainsFunc(work.Inbox(tree), func(i work.Item) bool {
				return i.Kind == work.ItemStuck && strings.HasSuffix(i.Text, "nobody answers")
			})
		})
		return is
	}
	f.set(func() { f.fails = slicesOf(work.Errorf(work.Unavailable, "nobody answers"), many) })
	s.eventually("it is named", named)
	f.set(func() { f.fails = nil })
	s.eventually("it is not named any more", func() bool { return !named() })
	if story, ship := s.story(); story.Status != work.Shipping || ship.Error != "" {
		t.Errorf("%s, %+v", story.Status, ship)
	}
}

package engine_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

// tale is a story in a world.
type tale struct {
	*world
	id   work.StoryID
	root work.TaskID // its first attempt
	out  string      // a folder outside of every repository
}

func person() work.Actor { return work.Actor{Kind: work.PersonActor, ID: "tester"} }

// begin makes a story in DRAFT; change, if any, edits the project before.
func (w *world) begin(in work.StoryInput, elaborate bool, change func(*work.Project)) *tale {
	w.Helper()
	s := &tale{world: w, id: work.StoryID(app.RandomIDs{}.New()), root: work.TaskID(app.RandomIDs{}.New()), out: w.T.TempDir()}
	w.change(func(p *work.Project) {
		p.Environment = map[string]string{"OUT": s.out, "CLAUDOMATOR_STORY_ID": "nonsense"}
		if change != nil {
			change(p)
		}
	})
	project, err := w.store.Project(w.ctx, "p")
	if err != nil {
		w.Fatal(err)
	}
	tree := work.NewTree(work.TreeID(s.root), nil, nil, nil)
	tree.Project = *project
	step := work.NewStep(tree, time.Now(), app.RandomIDs{}, person())
	if err := work.Decide(step, work.CreateStory{ID: s.id, Root: s.root, Input: in, Elaborate: elaborate}); err != nil {
		w.Fatal(err)
	}
	if _, err := w.store.Commit(w.ctx, step.ChangeSet()); err != nil {
		w.Fatal(err)
	}
	if err := s.do(work.Settle{}); err != nil {
		w.Fatal(err)
	}
	return s
}

func (w *world) change(edit func(*work.Project)) {
	w.Helper()
	p, err := w.store.Project(w.ctx, "p")
	if err != nil {
		w.Fatal(err)
	}
	edit(p)
	if err := w.store.SaveProject(w.ctx, p); err != nil {
		w.Fatal(err)
	}
}

func (s *tale) do(c work.Command) error {
	return s.service.Do(s.ctx, work.TreeID(s.root), person(), c)
}

func (s *tale) must(c work.Command) {
	s.Helper()
	if err := s.do(c); err != nil {
		s.Fatalf("%T: %v", c, err)
	}
}

// view looks at the tree.
func (s *tale) view(f func(*work.Tree)) {
	s.Helper()
	err := s.service.View(s.ctx, work.TreeID(s.root), func(t *work.Tree) error { f(t); return nil })
	if err != nil {
		s.Fatal(err)
	}
}

// story is a copy of it, and of its ship, as they stand.
func (s *tale) story() (story work.Story, ship work.Ship) {
	s.Helper()
	s.view(func(t *work.Tree) {
		if story = *t.Story; story.Ship != nil {
			ship = *story.Ship
		}
	})
	return story, ship
}

// current is a copy of what stands at the root.
func (s *tale) current() (root work.Task) {
	s.Helper()
	s.view(func(t *work.Tree) { root = *t.Current(t.Root()) })
	return root
}

// is waits until the story has one of the statuses.
func (s *tale) is(status work.StoryStatus) work.Ship {
	s.Helper()
	s.meets(func(t *work.Tree) bool { return t.Story.Status == status })
	_, ship := s.story()
	return ship
}

// meets waits until the tree satisfies ok.
func (s *tale) meets(ok func(*work.Tree) bool) {
	s.Helper()
	defer func() {
		if !s.Failed() {
			return
		}
		s.view(func(t *work.Tree) {
			s.Logf("the story is %s, its ship %+v", t.Story.Status, t.Story.Ship)
			for _, task := range t.Tasks() {
				s.Logf("%s %q is %s (%s): %s", task.ID, task.Name, task.State, task.BlockedOn, task.Reason)
			}
		})
	}()
	s.until(s.root, func(*app.TaskView) (done bool) {
		s.view(func(t *work.Tree) { done = ok(t) })
		return done
	})
}

// shippable brings an approved story to where a person presses Ship.
func (s *tale) shippable() {
	s.Helper()
	s.is(work.ReviewReady)
	s.must(work.AcceptTask{Task: s.current().ID})
	s.is(work.Shippable)
}

// kept is a file that commands have written outside, "" where there is none.
func (s *tale) kept(name string) string {
	s.Helper()
	text, err := os.ReadFile(filepath.Join(s.out, name))
	if err != nil && !os.IsNotExist(err) {
		s.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

func (s *tale) keep(name string) {
	s.Helper()
	if err := os.WriteFile(filepath.Join(s.out, name), nil, 0o600); err != nil {
		s.Fatal(err)
	}
}

// log is the transcript of an execution.
func (w *world) log(id work.ExecutionID) string {
	w.Helper()
	r, err := w.service.Transcript(w.ctx, string(id), 0)
	if err != nil {
		w.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	text, err := io.ReadAll(r)
	if err != nil {
		w.Fatal(err)
	}
	return string(text)
}

// runs lists the executions of a kind that a task has had.
func (w *world) runs(id work.TaskID, kind work.ExecutionKind) []*work.Execution {
	w.Helper()
	all, err := w.service.Executions(w.ctx, string(id))
	if err != nil {
		w.Fatal(err)
	}
	var out []*work.Execution
	for _, x := range all {
		if x.Kind == kind {
			out = append(out, x)
		}
	}
	return out
}

// merges counts the landings on main.
func (w *world) merges() string {
	w.Helper()
	return w.git("-C", w.repo, "rev-list", "--first-parent", "--merges", "--count", "main")
}

// thrownAway fails when a workspace that belongs to an execution is left.
func (w *world) thrownAway() {
	w.Helper()
	w.eventually("the end of all workspaces of executions", func() bool { // a run is reported before its job is over
		left, _ := filepath.Glob(filepath.Join(w.dir, "workspaces", "x-*")) // the pattern is well formed
		return len(left) == 0
	})
}

// small is a plan with one task that writes a file.
func small() *work.Plan {
	return &work.Plan{
		Name: "Small", Goal: "echo again >>fixed", BranchName: "story/small",
		Tasks: []work.PlanTask{{Name: "one", Instructions: "echo one >one"}},
	}
}

// ready is a story of a plan up to SHIPPABLE, whose judges all approve.
func ready(t *testing.T, plan *work.Plan, change func(*work.Project)) *tale {
	t.Helper()
	w := newWorld(t, 4)
	return w.ready(plan, change)
}

func (w *world) ready(plan *work.Plan, change func(*work.Project)) *tale {
	w.Helper()
	w.project(app.ProjectInput{})
	w.judges(nil)
	s := w.begin(work.StoryInput{Plan: plan}, false, func(p *work.Project) {
		p.Evaluators = []work.Role{work.EvaluatorTests}
		if change != nil {
			change(p)
		}
	})
	s.must(work.ApproveStory{})
	s.shippable()
	return s
}

package engine_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

// planner is the planner's task.
func (s *tale) planner() (planner work.Task) {
	s.Helper()
	s.view(func(tree *work.Tree) {
		for _, t := range tree.Tasks() {
			if t.Role() == work.Planner {
				planner = *t
			}
		}
	})
	return planner
}

// report is what the planner's run says, over its tools.
func (s *tale) report(plan *work.Plan) error {
	s.Helper()
	runs := s.runs(s.planner().ID, work.AgentRun)
	x := runs[len(runs)-1].ID
	return s.service.Do(s.ctx, work.TreeID(s.root), work.Actor{Kind: work.AgentActor, ID: string(x)}, work.Report{Execution: x, Plan: plan})
}

// A planner without a configuration runs the goal as a script, in a throw-away
// workspace of the branch as it is now; only what it reports stays.
func TestPlannerReadsAndReports(t *testing.T) {
	w := newWorld(t, 4)
	w.project(app.ProjectInput{})
	w.theirs("b", "two\n")
	const goal = `cat a b >"$OUT/read"; pwd >"$OUT/dir"; echo dirt >dirt; git add dirt; git -c user.name=p -c user.email=p@x commit -qm dirt; until test -e "$OUT/go"; do sleep 0.05; done`
	s := w.begin(work.StoryInput{Goal: goal}, true, nil)
	s.eventually("the planner at work", func() bool { return s.kept("dir") != "" })
	if story, _ := s.story(); story.Status != work.Draft || story.Plan != nil {
		t.Errorf("%s, plan %+v", story.Status, story.Plan)
	}
	plan := small()
	plan.Validation = work.Validations{{Type: "wrong"}}
	if err := s.report(plan); work.CodeOf(err) != work.Invalid {
		t.Errorf("a bad plan: %v", err)
	}
	if err := s.report(small()); err != nil {
		t.Fatal(err)
	}
	s.keep("go")
	s.meets(func(tree *work.Tree) bool { return tree.Planning() == nil })
	p := s.planner()
	if p.State != work.Completed || p.Result != nil || p.Book.Head != "" {
		t.Errorf("the planner is %s, with %+v at %s", p.State, p.Result, p.Book.Head)
	}
	if s.kept("read") != "one\ntwo" || !strings.HasPrefix(filepath.Base(s.kept("dir")), "x-") {
		t.Errorf("it read %q in %s", s.kept("read"), s.kept("dir"))
	}
	s.thrownAway()
	if refs := s.vault("for-each-ref", "--format=%(refname)", "refs/heads/"+p.Ref()); refs != "" {
		t.Errorf("it left the branch %s", refs)
	}
	runs := s.runs(p.ID, work.AgentRun)
	if len(runs) != 1 || runs[0].Outcome != work.Success || runs[0].Agent != work.CommandAgent {
		t.Errorf("%d runs, %+v", len(runs), runs)
	}
	story, _ := s.story()
	if story.Status != work.Draft || story.Plan == nil || story.Name != "Small" || story.PlannedBy != p.ID {
		t.Errorf("%s %q, planned by %s", story.Status, story.Name, story.PlannedBy)
	}
	w.judges(nil)
	s.must(work.ApproveStory{})
	s.shippable()
}

// A planner that reports nothing is sent back once, then a person is asked.
func TestPlannerThatReportsNothing(t *testing.T) {
	w := newWorld(t, 4)
	w.project(app.ProjectInput{})
	s := w.begin(work.StoryInput{Goal: `echo x >>"$OUT/runs"`}, true, nil)
	s.meets(func(tree *work.Tree) bool { return tree.Planning() == nil })
	if p := s.planner(); p.State != work.Failed || !strings.Contains(p.Reason, "no usable plan, twice") || s.kept("runs") != "x\nx" {
		t.Errorf("%s (%s), ran %q", p.State, p.Reason, s.kept("runs"))
	}
	s.thrownAway()
}

// A planner that is cut off by the end of the server plans again.
func TestPlannerCutOff(t *testing.T) {
	w := newWorld(t, 4)
	w.project(app.ProjectInput{})
	s := w.begin(work.StoryInput{Goal: `echo x >>"$OUT/runs"; until test -e "$OUT/go"; do sleep 0.05; done`}, true, nil)
	s.eventually("the planner at work", func() bool { return s.kept("runs") == "x" })
	s.crash()
	s.start()
	s.eventually("the planner at work again", func() bool { return s.kept("runs") == "x\nx" })
	if err := s.report(small()); err != nil {
		t.Fatal(err)
	}
	s.keep("go")
	s.meets(func(tree *work.Tree) bool { return tree.Planning() == nil })
	if p := s.planner(); p.State != work.Completed {
		t.Errorf("%s (%s)", p.State, p.Reason)
	}
	s.thrownAway()
}

// A story of a project without a repository is planned, built, and deployed at what
// was accepted: there is nothing to land or to push.
func TestStoryWithoutARepository(t *testing.T) {
	w := newWorld(t, 4)
	name, agent := "p", "command"
	if _, err := w.service.AddProject(w.ctx, app.ProjectInput{Name: &name, Agent: &agent}); err != nil {
		t.Fatal(err)
	}
	s := w.begin(work.StoryInput{Goal: `ls -A >"$OUT/seen"; until test -e "$OUT/go"; do sleep 0.05; done`}, true, func(p *work.Project) {
		p.Deploy = `cat one >"$OUT/deployed"`
	})
	s.eventually("the planner at work", func() bool { return s.kept("seen") != "" })
	if err := s.report(small()); err != nil {
		t.Fatal(err)
	}
	s.keep("go")
	s.meets(func(tree *work.Tree) bool { return tree.Planning() == nil })
	w.judges(nil)
	s.must(work.ApproveStory{})
	s.shippable()
	s.meetsBranch(s.current().Accepted.Commit)
	s.must(work.ShipStory{})
	if ship := s.is(work.Deployed); s.kept("deployed") != "one" || ship.Commit != s.current().Accepted.Commit {
		t.Errorf("%+v, deployed %q", ship, s.kept("deployed"))
	}
	s.thrownAway()
}

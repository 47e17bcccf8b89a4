package review_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/claudomator/claudomator/internal/work"
)

// What a stage can do with stories that are made as people make them. Their root
// is the task R.

// part is a task of a plan, after others.
func part(name string, after ...string) work.PlanTask {
	return work.PlanTask{Name: name, Instructions: "build " + name, DependsOn: after}
}

// plan is a plan of parts.
func plan(policy string, parts ...work.PlanTask) *work.Plan {
	return &work.Plan{Name: "Log in", Goal: "people can log in", BranchName: "story/log-in", Policy: policy, Tasks: parts}
}

// write begins a story without a planner.
func (s *stage) write(in work.StoryInput) *work.Story {
	s.t.Helper()
	tree, err := s.draft(s.project, work.CreateStory{ID: "S", Root: "R", Input: in})
	if err != nil {
		s.t.Fatalf("create: %v", err)
	}
	return tree.Story
}

// elaborate begins a story whose plan a planner is to make.
func (s *stage) elaborate() *work.Story {
	s.t.Helper()
	tree, err := s.draft(s.project, work.CreateStory{ID: "S", Root: "R", Input: work.StoryInput{Goal: "people can log in"}, Elaborate: true})
	if err != nil {
		s.t.Fatalf("elaborate: %v", err)
	}
	return tree.Story
}

const planner = "planner.R.1"

// reports lets the running planner report a plan.
func (s *stage) reports(p *work.Plan) error {
	x := live(s.tree("R"), planner, work.AgentRun)
	return s.do(s.tree("R"), work.Actor{Kind: work.AgentActor, ID: string(x.ID)}, work.Report{Execution: x.ID, Plan: p})
}

// approved begins a story with a plan, and approves it.
func (s *stage) approved(p *work.Plan) *work.Story {
	s.t.Helper()
	story := s.write(work.StoryInput{Plan: p})
	s.tell(work.ApproveStory{})
	return story
}

// tell asks something of the story.
func (s *stage) tell(c work.Command) {
	s.t.Helper()
	if err := s.do(s.tree("R"), alice, c); err != nil {
		s.t.Fatalf("%T: %v", c, err)
	}
}

// denied asserts that a person is refused something of the story: the code, the
// reason, and that nothing has changed.
func (s *stage) denied(c work.Command, code work.Code, reason string) {
	s.t.Helper()
	_ = s.denial(c, code, reason)
}

// denial is denied for those who look closer.
func (s *stage) denial(c work.Command, code work.Code, reason string) *work.Error {
	s.t.Helper()
	tree := s.tree("R")
	version, before := tree.Version, *tree.Story
	err := s.do(tree, alice, c)
	e, ok := work.AsError(err)
	if !ok || e.Code != code || e.Reason != reason {
		s.t.Errorf("%T: got %v, want %s %q", c, err, code, reason)
		return work.Errorf(work.Internal, "%w", errors.New("not refused"))
	}
	if tree.Version != version || tree.Story.Status != before.Status || tree.Story.Name != before.Name || tree.Story.Plan != before.Plan {
		s.t.Errorf("%T was refused and has changed the story", c)
	}
	return e
}

// acts asserts what can be asked of the story, wherever that is said.
func (s *stage) acts(want ...work.Act) {
	s.t.Helper()
	if got := s.tree("R").StoryActions(); !slices.Equal(got, want) {
		s.t.Errorf("acts %v, want %v", got, want)
	}
}

// item is the text of the story's own item in the inbox, "" when it has none.
func (s *stage) item() string {
	for _, i := range s.inbox("R") {
		if i.Kind == work.ItemStory {
			return i.Text
		}
	}
	return ""
}

func (s *stage) remarks(want string) {
	s.t.Helper()
	if got := s.item(); got != want {
		s.t.Errorf("the inbox says %q, want %q", got, want)
	}
}

// report is a report of the engine about the tree; it must be taken.
func (s *stage) report(c work.Command) {
	s.t.Helper()
	if err := s.do(s.tree("R"), work.System(), c); err != nil {
		s.t.Fatalf("%T: %v", c, err)
	}
}

// late is a report that must change nothing.
func (s *stage) late(c work.Command) {
	s.t.Helper()
	tree := s.tree("R")
	version := tree.Version
	if err := s.do(tree, work.System(), c); work.CodeOf(err) != work.Conflict || tree.Version != version {
		s.t.Errorf("a late %T: %v, version %d → %d", c, err, version, tree.Version)
	}
}

// step asserts how far the ship is.
func (s *stage) step(want work.ShipStep) {
	s.t.Helper()
	story := s.tree("R").Story
	if story.Status != work.Shipping || story.Ship.Step != want {
		s.t.Errorf("the story is %s at %q, want SHIPPING at %q", story.Status, story.Ship.Step, want)
	}
}

// body is what the latest event of a kind says.
func (s *stage) body(kind string) map[string]any {
	s.t.Helper()
	for _, e := range slices.Backward(s.events) {
		if e.Kind == kind {
			return e.Body
		}
	}
	s.t.Fatalf("there is no event %s", kind)
	return nil
}

// pushed delivers the push of what landed.
func (s *stage) pushed(root work.TaskID, failure string) {
	s.t.Helper()
	if _, ok := s.take(work.Push, root); !ok {
		s.t.Fatalf("nothing pushes %s", root)
	}
	s.report(work.Pushed{Task: root, Remote: "origin", Failure: failure})
}

// whole is a project with everything that a ship can do.
func whole(p *work.Project) { p.Deploy = "make deploy" }

func pulls(p *work.Project) { p.ShipMode = work.ShipPullRequest }

func capped(n int) func(*work.Project) { return func(p *work.Project) { p.MaxFixes = &n } }

func smoke() work.Validations {
	return work.Validations{{Type: work.SmokeValidation, Steps: []string{"curl -f http://localhost"}}}
}

// shippable is a stage with a story that a person has accepted: its root, R, alone.
func shippable(t *testing.T, change ...func(*work.Project)) (*stage, *work.Story) {
	t.Helper()
	s := newStage(t, change...)
	p := plan("")
	p.Validation = smoke()
	story := s.approved(p)
	s.run("R", success("r1"))
	s.ask(work.AcceptTask{Task: "R"})
	s.status(story, work.Shippable)
	s.effects = nil // of the review, mostly
	return s, story
}

// shipTo brings a shippable story as far as a step.
func (s *stage) shipTo(step work.ShipStep) {
	s.t.Helper()
	s.now = s.now.Add(time.Minute)
	s.tell(work.ShipStory{})
	root := s.tree("R").Current("R").ID
	for range 4 {
		if s.tree("R").Story.Ship.Step == step {
			break
		}
		switch s.tree("R").Story.Ship.Step {
		case work.ShipLand:
			s.lands(root, landed)
		case work.ShipPush:
			s.pushed(root, "")
		case work.ShipDeploy:
			s.gates(root, true)
		case work.ShipAccept, work.ShipValidate, work.ShipPull, work.ShipSmoke:
		}
	}
	s.step(step)
}

// found is what a ship that goes on is told first: its landing is there, and pushed.
func (s *stage) found(root work.TaskID) {
	s.t.Helper()
	s.step(work.ShipPush)
	s.report(work.Pushed{Task: root})
}

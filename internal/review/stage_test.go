package review_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/claudomator/claudomator/internal/review"
	"github.com/claudomator/claudomator/internal/work"
)

// stage is a world played by hand, so that a test reads like a story: create, run,
// judge, integrate, and say what must be true then.
type stage struct {
	*world
	t       *testing.T
	project work.Project
	told    int // events that have been looked at
}

func newStage(t *testing.T, change ...func(*work.Project)) *stage {
	t.Parallel()
	s := &stage{world: newWorld(), t: t, project: work.Project{ID: "p", Branch: "main", Repository: "/r", Agent: "scripted"}}
	for _, c := range change {
		c(&s.project)
	}
	return s
}

func gated(p *work.Project)    { p.Validate = []string{"make test"} }
func noRepo(p *work.Project)   { p.Repository = "" }
func autoLand(p *work.Project) { p.AutoLand = true }

// create makes a top-level task under a policy, and starts it.
func (s *stage) create(id work.TaskID, policy string, change ...func(*work.TaskInput)) *work.Task {
	s.t.Helper()
	in := work.TaskInput{Name: string(id), Review: policy}
	for _, c := range change {
		c(&in)
	}
	tree, err := s.begin(s.project, nil, id, in, true)
	if err != nil {
		s.t.Fatalf("create %s: %v", id, err)
	}
	return tree.Task(id)
}

func on(pos ...work.Position) func(*work.TaskInput) {
	return func(in *work.TaskInput) { in.DependsOn = pos }
}

func named(names ...string) func(*work.TaskInput) {
	return func(in *work.TaskInput) { in.AcceptanceCriteria = names }
}

func builder(in *work.TaskInput) { in.Agent.Role = work.Builder }

// story makes a story in progress, whose root is its task and is started.
func (s *stage) story(id work.TaskID, policy string) *work.Story {
	s.t.Helper()
	story := &work.Story{ID: work.StoryID(id), Name: string(id), Status: work.InProgress, Policy: policy, RootTaskID: id}
	if _, err := s.begin(s.project, story, id, work.TaskInput{Name: string(id), Agent: work.AgentSpec{Role: work.Builder}}, true); err != nil {
		s.t.Fatalf("story %s: %v", id, err)
	}
	return story
}

// task is a row, which must be there.
func (s *stage) task(id work.TaskID) *work.Task {
	s.t.Helper()
	if tree := s.treeOf(id); tree != nil {
		return tree.Task(id)
	}
	s.t.Fatalf("there is no task %s", id)
	return nil
}

// ask does what a person wants.
func (s *stage) ask(c work.Command) {
	s.t.Helper()
	if err := s.try(c); err != nil {
		s.t.Fatalf("%T: %v", c, err)
	}
}

func (s *stage) try(c work.Command) error { return s.do(s.treeOf(subject(c)), alice, c) }

// refused asserts that a person is refused, for that reason.
func (s *stage) refused(c work.Command, reason string) {
	s.t.Helper()
	_ = s.refusal(c, reason)
}

// refusal is refused for those who look closer.
func (s *stage) refusal(c work.Command, reason string) *work.Error {
	s.t.Helper()
	err := s.try(c)
	e, ok := work.AsError(err)
	if !ok || e.Reason != reason {
		s.t.Errorf("%+v: got %v, want a refusal %q", c, err, reason)
		return &work.Error{}
	}
	return e
}

// subject is the task a command speaks about.
func subject(c work.Command) work.TaskID {
	switch c := c.(type) {
	case work.StartTask:
		return c.Task
	case work.RejectTask:
		return c.Task
	case work.AnswerTask:
		return c.Task
	case work.DropTask:
		return c.Task
	case work.RemoveTask:
		return c.Task
	case work.PatchTask:
		return c.Task
	case work.StartMerge:
		return c.Task
	case work.CreateTask:
		return c.Input.ParentTaskID
	case work.AbortMerge:
		return work.TaskID(strings.Split(string(c.Merge), ".")[1])
	case work.ContinueMerge:
		return work.TaskID(strings.Split(string(c.Merge), ".")[1])
	}
	return target(c)
}

// start begins the execution that waits for a task.
func (s *stage) start(id work.TaskID) *work.Execution {
	s.t.Helper()
	tree := s.treeOf(id)
	e, ok := s.take(work.StartExecution, id)
	if !ok {
		s.t.Fatalf("%s is %s(%s), and nothing starts it", id, s.task(id).State, s.task(id).BlockedOn)
	}
	if err := s.beginRun(tree, e.Execution); err != nil {
		s.t.Fatalf("start %s: %v", id, err)
	}
	return tree.Execution(e.Execution)
}

// end reports how the running execution of a task ended.
func (s *stage) end(id work.TaskID, how outcome) {
	s.t.Helper()
	tree := s.treeOf(id)
	x := live(tree, id, work.ExecutionKinds()...)
	if x == nil {
		s.t.Fatalf("%s does not run", id)
	}
	if err := s.endRun(tree, x, how); err != nil {
		s.t.Fatalf("end %s: %v", id, err)
	}
}

// run starts and ends a task.
func (s *stage) run(id work.TaskID, how outcome) {
	s.t.Helper()
	s.start(id)
	s.end(id, how)
}

// gates runs the gates of a task.
func (s *stage) gates(id work.TaskID, passed bool) {
	s.t.Helper()
	s.run(id, gates(passed))
}

// spawn lets the running agent of a task add a subtask, after siblings.
func (s *stage) spawn(id work.TaskID, name string, after ...string) work.TaskID {
	s.t.Helper()
	return s.add(id, work.TaskInput{Name: name, Agent: work.AgentSpec{Instructions: "do " + name}}, after...)
}

// suggest lets the running agent of a task file an improvement.
func (s *stage) suggest(id work.TaskID, name string) work.TaskID {
	s.t.Helper()
	return s.add(id, work.TaskInput{Name: name, Kind: work.Improvement})
}

func (s *stage) add(id work.TaskID, in work.TaskInput, after ...string) work.TaskID {
	s.t.Helper()
	tree := s.treeOf(id)
	x := live(tree, id, work.AgentRun)
	if x == nil {
		s.t.Fatalf("%s does not run", id)
	}
	if err := s.do(tree, work.Actor{Kind: work.AgentActor, ID: string(x.ID)}, work.Spawn{Execution: x.ID, Input: in, Siblings: after}); err != nil {
		s.t.Fatalf("spawn %s: %v", in.Name, err)
	}
	return tree.SpawnedID(&s.ids, tree.Task(id), in.Name)
}

// asks lets the running agent of a task ask, which ends its run.
func (s *stage) asks(id work.TaskID, question string) {
	s.t.Helper()
	tree := s.treeOf(id)
	x := live(tree, id, work.AgentRun)
	if err := s.do(tree, work.System(), work.Ask{Execution: x.ID, Question: work.Question{Text: question}}); err != nil {
		s.t.Fatal(err)
	}
	s.end(id, ends(work.Asked, ""))
}

// judge is the newest judge of a role for a task.
func (s *stage) judge(id work.TaskID, role work.Role) *work.Task {
	var found *work.Task
	for _, j := range s.treeOf(id).JudgesOf(id) {
		if j.Role() == role {
			found = j
		}
	}
	return found
}

// says lets a judge report a verdict and end.
func (s *stage) says(id work.TaskID, role work.Role, v *work.Verdict) {
	s.t.Helper()
	j := s.judge(id, role)
	if j == nil {
		s.t.Fatalf("%s has no %s", id, role)
	}
	x := s.start(j.ID)
	if v != nil {
		if err := s.do(s.treeOf(id), work.System(), work.Report{Execution: x.ID, Verdict: v}); err != nil {
			s.t.Fatalf("verdict of %s: %v", role, err)
		}
	}
	s.end(j.ID, ends(work.Success, ""))
}

var panel = []work.Role{work.EvaluatorCorrectness, work.EvaluatorTests, work.EvaluatorSecurity, work.EvaluatorQuality}

// approve lets the whole panel and the arbiter approve a task.
func (s *stage) approve(id work.TaskID) {
	s.t.Helper()
	for _, role := range append(slices.Clone(panel), work.Arbitration) {
		s.says(id, role, approval(s.task(id)))
	}
}

// reject lets the panel approve, and the arbiter reject with findings.
func (s *stage) reject(id work.TaskID, why string, findings ...work.Finding) {
	s.t.Helper()
	for _, role := range panel {
		s.says(id, role, approval(s.task(id)))
	}
	s.says(id, work.Arbitration, rejection(why, findings...))
}

// integrates delivers the integration of a task.
func (s *stage) integrates(id work.TaskID) {
	s.t.Helper()
	e, ok := s.take(work.Integrate, id)
	if !ok {
		s.t.Fatalf("%s is %s(%s), and nothing integrates it", id, s.task(id).State, s.task(id).BlockedOn)
	}
	if err := s.integrate(e, false); err != nil {
		s.t.Fatalf("integrate %s: %v", id, err)
	}
}

// conflicts lets the integration of a task conflict.
func (s *stage) conflicts(id work.TaskID) {
	s.t.Helper()
	e, ok := s.take(work.Integrate, id)
	if !ok {
		s.t.Fatalf("nothing integrates %s", id)
	}
	if err := s.integrate(e, true); err != nil {
		s.t.Fatalf("integrate %s: %v", id, err)
	}
}

// stops delivers the end of what was told to stop.
func (s *stage) stops(id work.TaskID) {
	s.t.Helper()
	if _, ok := s.take(work.StopExecution, id); !ok {
		s.t.Fatalf("nothing stops %s", id)
	}
	s.end(id, ends(work.CancelledRun, ""))
}

// lands ends the running merge of a task.
func (s *stage) lands(id work.TaskID, c func(work.MergeID) work.Command) {
	s.t.Helper()
	e, ok := s.take(work.Land, id)
	if !ok {
		s.t.Fatalf("nothing lands %s", id)
	}
	if err := s.do(s.treeOf(id), work.System(), c(e.Merge)); err != nil {
		s.t.Fatal(err)
	}
}

func landed(m work.MergeID) work.Command { return work.Landed{Merge: m, Commit: "l1"} }
func landRefused(m work.MergeID) work.Command {
	return work.LandRefused{Merge: m, Reason: "dirty_target", Message: "the target has uncommitted changes"}
}
func landConflict(m work.MergeID) work.Command {
	return work.LandConflict{Merge: m, Files: []string{"a"}}
}

// is asserts where tasks stand: "id STATE" or "id STATE(what it waits for)".
func (s *stage) is(want ...string) {
	s.t.Helper()
	for _, w := range want {
		id, state, _ := strings.Cut(w, " ")
		t := s.task(work.TaskID(id))
		got := string(t.State)
		if t.BlockedOn != work.NotBlocked {
			got += "(" + string(t.BlockedOn) + ")"
		}
		if t.Dropped {
			got += " dropped"
		}
		if t.SupersededBy != "" {
			got += " superseded"
		}
		if got != state {
			s.t.Errorf("%s is %s, want %s (%s)", id, got, state, t.Reason)
		}
	}
}

// holds asserts why a READY task waits for a person, and that the inbox says so.
func (s *stage) holds(id work.TaskID, hold work.Hold) {
	s.t.Helper()
	t := s.task(id)
	if !t.Waiting(work.Ready, work.OnPerson) || t.Hold != hold {
		s.t.Errorf("%s is %s(%s), hold %q, want %q", id, t.State, t.BlockedOn, t.Hold, hold)
	}
	if !slices.ContainsFunc(s.inbox(id), func(i work.Item) bool { return i.TaskID == id && i.Hold == hold }) {
		s.t.Errorf("the inbox does not say that %s waits (%s)", id, hold)
	}
}

// inbox is that of the tree a task belongs to.
func (s *stage) inbox(id work.TaskID) []work.Item {
	tree := s.treeOf(id)
	s.refresh(tree)
	return work.Inbox(tree)
}

// listed asserts which tasks of a tree the inbox names: "id kind".
func (s *stage) listed(of work.TaskID, want ...string) {
	s.t.Helper()
	got := []string{}
	for _, i := range s.inbox(of) {
		got = append(got, fmt.Sprint(i.TaskID, " ", i.Kind))
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		s.t.Errorf("inbox %q, want %q", got, want)
	}
}

// news are the events since the last look: "kind task".
func (s *stage) news() []string {
	var out []string
	for _, e := range s.events[s.told:] {
		out = append(out, fmt.Sprint(e.Kind, " ", e.Task))
	}
	s.told = len(s.events)
	return out
}

// pending are the undelivered effects: "kind task".
func (s *stage) pending() []string {
	var out []string
	for _, e := range s.effects {
		if e.Kind != work.FinishJob && e.Kind != work.Reclaim {
			out = append(out, fmt.Sprint(e.Kind, " ", e.Task))
		}
	}
	slices.Sort(out)
	return out
}

// tells asserts the events since the last look, in order.
func (s *stage) tells(want ...string) {
	s.t.Helper()
	if got := s.news(); !slices.Equal(got, want) {
		s.t.Errorf("events\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// due asserts the effects that are on their way.
func (s *stage) due(want ...string) {
	s.t.Helper()
	slices.Sort(want)
	if got := s.pending(); !slices.Equal(got, want) {
		s.t.Errorf("effects %q, want %q", got, want)
	}
}

// without takes the judges from the machine.
func (s *stage) without() { s.rules = review.Rules{} }

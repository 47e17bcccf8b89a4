package work

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// StoryInput is what a story is made with.
type StoryInput struct {
	Name       string
	Goal       string
	EpicID     EpicID
	Policy     string
	BranchName string
	Plan       *Plan
}

// Branch is what a story's branch is named after, and the name it is asked to have.
func (in StoryInput) Branch() (name, branch string) {
	name, branch = cmp.Or(in.Name, in.Goal), in.BranchName
	if in.Plan != nil {
		name, branch = cmp.Or(in.Plan.Name, name), cmp.Or(in.Plan.BranchName, branch)
	}
	return name, branch
}

// CreateStory begins a tree with a story in DRAFT. Its root waits for the
// approval of a plan; with Elaborate a planner makes one first.
type CreateStory struct {
	ID        StoryID
	Root      TaskID
	Input     StoryInput
	Elaborate bool
	Planner   AgentSpec // of the planner; its instructions are the goal
}

func (c CreateStory) apply(s *Step) error {
	if TreeID(c.Root) != s.Tree.ID || s.Tree.Size() > 0 {
		return Errorf(Conflict, "tree %s is there already", s.Tree.ID).WithReason("exists")
	}
	in := c.Input
	story := &Story{
		ID: c.ID, ProjectID: s.Tree.Project.ID, EpicID: in.EpicID, Name: strings.TrimSpace(in.Name), Goal: in.Goal, Policy: in.Policy,
		BranchName: in.BranchName, Status: Draft, RootTaskID: c.Root, CreatedAt: s.Now, UpdatedAt: s.Now,
	}
	story.Named = story.Name != ""
	if c.Elaborate && strings.TrimSpace(in.Goal) == "" {
		return Errorf(Invalid, "a goal is needed to make a plan").WithHint("say what is wanted")
	}
	if in.Plan != nil {
		if err := in.Plan.Check(); err != nil {
			return err
		}
		story.take(in.Plan)
	}
	if story.Name == "" {
		story.Name = title(cmp.Or(story.Goal, story.Spec))
	}
	if err := story.check(); err != nil {
		return err
	}
	s.Tree.Story = story
	s.add(&Task{
		ID: c.Root, Kind: TopLevel, Name: story.Name, ProjectID: story.ProjectID, StoryID: story.ID, Agent: AgentSpec{Role: Builder},
		Retry: Retry{MaxAttempts: 1, Backoff: Exponential}, Priority: Normal, Origin: FromPlan, State: Pending,
	})
	s.storyChanged("story.created", map[string]any{"name": story.Name})
	if c.Elaborate {
		s.spawnApart(Planner, "Plan: "+story.Name, c.Planner, story.Goal)
	}
	return nil
}

// title is a name made from the first line of a text.
func title(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	line = strings.TrimSpace(line)
	const most = 80
	if runes := []rune(line); len(runes) > most {
		return strings.TrimSpace(string(runes[:most-1])) + "…"
	}
	return line
}

// spawnApart adds a task of a role that stands beside the tree: the planner or
// the retro of its story. Its id is derived: each number is made once.
func (s *Step) spawnApart(role Role, name string, spec AgentSpec, instructions string) {
	n := 1
	for _, t := range s.Tree.order {
		if t.Role() == role && t.Apart() {
			n++
		}
	}
	spec.Role, spec.Instructions = role, instructions
	t := &Task{
		ID:   TaskID(s.derive(string(role), string(s.Tree.ID), n)),
		Kind: TopLevel, Name: name, ProjectID: s.Tree.Project.ID, StoryID: s.Tree.Story.ID, Agent: spec,
		Retry: Retry{MaxAttempts: 1, Backoff: Exponential}, Priority: Normal, Review: "none", Origin: FromSystem, State: Queued,
	}
	s.add(t)
	s.addRun(t, AgentRun)
	s.event("task.created", t, map[string]any{"name": t.Name})
}

// take makes a plan the story's: what the plan leaves open stays, but for its
// validation, which is the plan's alone.
func (y *Story) take(p *Plan) {
	y.Plan, y.PlanError = p, ""
	y.Name, y.Goal, y.Spec = cmp.Or(strings.TrimSpace(p.Name), y.Name), cmp.Or(p.Goal, y.Goal), cmp.Or(p.Spec, y.Spec)
	y.Policy, y.BranchName = cmp.Or(p.Policy, y.Policy), cmp.Or(p.BranchName, y.BranchName)
	if len(p.AcceptanceCriteria) > 0 {
		y.AcceptanceCriteria = p.AcceptanceCriteria
	}
	y.Validation = p.Validation
}

// check refuses a story whose own fields break a rule: those of a plan do.
func (y *Story) check() error {
	p := Plan{Name: y.Name, Goal: y.Goal, Spec: y.Spec, AcceptanceCriteria: y.AcceptanceCriteria, BranchName: y.BranchName, Policy: y.Policy, Validation: y.Validation}
	if y.Plan != nil {
		p.Tasks = y.Plan.Tasks
	} else if y.Checked() {
		p.Policy = "" // its plan, and with it the tasks, may still come
	}
	return p.Check()
}

// storyChanged marks the story as changed, and says why.
func (s *Step) storyChanged(kind string, body map[string]any) {
	s.Tree.Story.UpdatedAt = s.Now
	s.story = true
	root := s.Tree.Current(s.Tree.Root())
	if root != nil {
		s.Touch(root.ID)
	}
	s.event(kind, root, body)
}

// act takes a row of the story's table, or refuses with what is allowed.
func (s *Step) act(act Act) error {
	story := s.Tree.Story
	to, ok := s.Tree.machines.story.Next(story.Status, act)
	if !ok {
		return s.Tree.StoryRefused(Errorf(Illegal, "story %s is %s: it cannot be asked to %s", story.ID, story.Status, act).WithReason("story_status"))
	}
	if to != story.Status {
		s.SetStory(to)
	}
	return nil
}

// StoryRefused lets a refusal name what can be asked of the tree's story instead.
func (t *Tree) StoryRefused(err *Error) *Error {
	return instead(err, t.StoryActions()).With("status", string(t.Story.Status))
}

// StoryActions lists what a person can ask of the tree's story now.
func (t *Tree) StoryActions() []Act {
	out := []Act{}
	if t.Story == nil {
		return out
	}
	root := t.Current(t.Root())
	may := func(act Act) bool {
		switch act {
		case ActEdit:
			return t.Story.Status == Draft && t.Planning() == nil
		case ActApprove:
			return t.Story.Status == Draft && t.Planning() == nil && t.Story.Plan != nil
		case ActAccept:
			return slices.Contains(t.Actions(root), DoAccept)
		case ActReject:
			return slices.Contains(t.Actions(root), DoReject)
		case ActShip, ActCancel:
			_, ok := t.machines.story.Next(t.Story.Status, act)
			return ok && (act != ActCancel || t.mayCancelShip() == nil)
		case ActStopDeploy:
			return t.Story.Status == Shipping && t.Story.Ship.Step == ShipDeploy
		case ActRefuse, ActDeploy, ActFail, ActBreak:
		}
		return false
	}
	for _, act := range Acts() {
		if may(act) {
			out = append(out, act)
		}
	}
	return out
}

// theStory is the tree's story, or a refusal.
func (s *Step) theStory() (*Story, error) {
	if s.Tree.Story == nil {
		return nil, Errorf(NotFound, "tree %s has no story", s.Tree.ID)
	}
	return s.Tree.Story, nil
}

// EditStory changes a story; nil fields stay. Once it is approved only its name,
// its epic and, until it is shipped, its branch can be changed.
type EditStory struct {
	Name               *string
	EpicID             *EpicID
	Goal               *string
	Spec               *string
	Policy             *string
	BranchName         *string
	AcceptanceCriteria *[]string
	Plan               *Plan
}

func (c EditStory) apply(s *Step) error {
	story, err := s.theStory()
	if err != nil {
		return err
	}
	if c.BranchName != nil && (story.Status == Shipping || story.Status.Over()) {
		return s.Tree.StoryRefused(Errorf(Illegal, "story %s is %s: its branch is not renamed", story.ID, story.Status).WithReason("story_status"))
	}
	if c.Goal != nil || c.Spec != nil || c.Policy != nil || c.AcceptanceCriteria != nil || c.Plan != nil || (c.BranchName != nil && story.Status == Draft) {
		if story.Status != Draft {
			return s.Tree.StoryRefused(Errorf(Illegal, "story %s is %s: its plan is not edited any more", story.ID, story.Status).WithReason("story_status"))
		}
		if err := s.Tree.notPlanning(); err != nil {
			return err
		}
	}
	edited := *story // a refusal must leave the story as it is
	if c.Plan != nil {
		if err := c.Plan.Check(); err != nil {
			return err
		}
		edited.take(c.Plan)
	}
	Assign(&edited.Name, c.Name)
	Assign(&edited.EpicID, c.EpicID)
	Assign(&edited.Goal, c.Goal)
	Assign(&edited.Spec, c.Spec)
	Assign(&edited.Policy, c.Policy)
	Assign(&edited.BranchName, c.BranchName)
	Assign(&edited.AcceptanceCriteria, c.AcceptanceCriteria)
	edited.Name, edited.Named = strings.TrimSpace(edited.Name), edited.Named || c.Name != nil
	if err := edited.check(); err != nil {
		return err
	}
	*story = edited
	root := s.Tree.Current(s.Tree.Root())
	root.BranchName = story.BranchName
	s.edit(root)
	s.storyChanged("story.updated", nil)
	s.branch(root)
	return nil
}

// notPlanning refuses while a planner is at work: what it reports replaces the plan.
func (t *Tree) notPlanning() error {
	if p := t.Planning(); p != nil {
		return Errorf(Illegal, "task %s is making the plan of story %s", p.ID, t.Story.ID).WithReason("planning").With("task", string(p.ID)).
			WithHint("wait for it, answer its question, or cancel that task")
	}
	return nil
}

// ApproveStory turns a plan into work: the root, a builder that only rolls up
// where the plan has tasks, and the plan's tasks with their subtasks below it.
type ApproveStory struct{}

func (c ApproveStory) apply(s *Step) error {
	story, err := s.theStory()
	if err != nil {
		return err
	}
	if story.Status != Draft {
		return s.act(ActApprove) // refused
	}
	if err := s.Tree.notPlanning(); err != nil {
		return err
	}
	if story.Plan == nil {
		return Errorf(Illegal, "story %s has no plan yet", story.ID).WithReason("no_plan").WithHint("give it one: story set %s --plan FILE; or retry its planner", story.ID)
	}
	if err := story.check(); err != nil {
		return err
	}
	if err := s.act(ActApprove); err != nil {
		return err
	}
	root := s.Tree.Task(story.RootTaskID)
	root.Name, root.BranchName, root.AcceptanceCriteria = story.Name, story.BranchName, story.AcceptanceCriteria
	root.Agent.Instructions = cmp.Or(strings.TrimSpace(story.Goal), strings.TrimSpace(story.Spec), story.Name)
	s.edit(root)
	if len(story.Plan.Tasks) == 0 {
		return s.queue(root)
	}
	for _, t := range story.Plan.Tasks {
		if err := s.planTask(root, t); err != nil {
			return err
		}
	}
	for _, t := range story.Plan.Tasks { // only now: a task may depend on a later one
		if err := s.planEdges(root, t); err != nil {
			return err
		}
	}
	return s.afterRun(root)
}

func (s *Step) planEdges(root *Task, p PlanTask) error {
	t := s.Tree.Task(s.Tree.SpawnedID(s.IDs, root, p.Name))
	for _, name := range p.DependsOn {
		t.DependsOn = append(t.DependsOn, Position(s.Tree.SpawnedID(s.IDs, root, name)))
	}
	if err := s.checkDependencies(t); err != nil {
		return err
	}
	s.Tree.linkDependencies(t, nil)
	s.edit(t)
	return nil
}

// planTask adds a task of the plan below the root, with its subtasks in order.
func (s *Step) planTask(root *Task, p PlanTask) error {
	id := s.Tree.SpawnedID(s.IDs, root, p.Name)
	err := CreateTask{ID: id, Input: TaskInput{
		Name: p.Name, ParentTaskID: root.ID, Kind: Subtask, Agent: AgentSpec{Role: Builder, Instructions: p.Instructions},
		AcceptanceCriteria: p.AcceptanceCriteria, Origin: FromPlan,
	}}.apply(s)
	if err != nil {
		return err
	}
	var before []Position
	for _, sub := range p.Subtasks {
		step := s.Tree.SpawnedID(s.IDs, s.Tree.Task(id), sub.Name)
		err := CreateTask{ID: step, Input: TaskInput{
			Name: sub.Name, ParentTaskID: id, Kind: Subtask, Agent: AgentSpec{Instructions: sub.Instructions}, DependsOn: before, Origin: FromPlan,
		}}.apply(s)
		if err != nil {
			return err
		}
		before = []Position{Position(step)}
	}
	return nil
}

// CancelStory ends a story and all work for it; while it is being shipped only
// before its target moves.
type CancelStory struct{}

func (c CancelStory) apply(s *Step) error {
	if _, err := s.theStory(); err != nil {
		return err
	}
	if err := s.Tree.mayCancelShip(); err != nil {
		return s.Tree.StoryRefused(err)
	}
	pull := s.Tree.mayHavePull()
	if err := s.act(ActCancel); err != nil {
		return err
	}
	if pull {
		s.effect(Effect{Kind: ClosePull, Task: s.Tree.Current(s.Tree.Root()).ID})
	}
	for _, t := range s.Tree.Tasks() {
		top := t.ParentTaskID == "" && t.Judges == nil && t.SupersededBy == ""
		if !top || t.State.Ended() {
			continue
		}
		t.Book.Cascade = "" // a person's: never revived by itself
		if err := s.cancel(t, "its story was cancelled"); err != nil {
			return err
		}
	}
	s.TouchAll() // below what had ended badly, all that could still begin ends too
	return s.stopRuns(s.Tree.Current(s.Tree.Root()), GateRun)
}

// cancelled is true when the tree's story was cancelled: nothing of it runs again.
func (t *Tree) cancelled() bool { return t.Story != nil && t.Story.Status == StoryCancelled }

// reportPlan takes a planner's plan, in place of what it reported before.
func (s *Step) reportPlan(t *Task, p *Plan) error {
	story := s.Tree.Story
	switch {
	case t.Role() != Planner || story == nil:
		return Errorf(Forbidden, "only a planner may report a plan").WithReason("not_a_planner")
	case story.Status != Draft:
		return Errorf(Illegal, "story %s is %s: its plan is decided", story.ID, story.Status).WithReason("story_status")
	}
	if err := p.Check(); err != nil {
		return err
	}
	planned := *story // a refusal must leave the story as it is
	planned.take(p)
	if story.Named {
		planned.Name = story.Name
	}
	planned.PlannedBy = t.ID
	if err := planned.check(); err != nil {
		return err
	}
	*story = planned
	s.storyChanged("plan.reported", map[string]any{"planner": t.ID, "tasks": len(p.Tasks)})
	return nil
}

// PlanRefused records what was wrong with a plan that a planner reported.
type PlanRefused struct {
	Execution ExecutionID
	Problems  string
}

func (c PlanRefused) apply(s *Step) error {
	x := s.Tree.Execution(c.Execution)
	if x == nil || x.State != ExecutionRunning || x.Stopping != "" || s.Tree.Story == nil || s.Tree.Story.Status != Draft {
		return Errorf(Conflict, "execution %s is over", c.Execution).WithReason("stale")
	}
	s.Tree.Story.PlanError = c.Problems
	s.storyChanged("plan.refused", map[string]any{"problems": c.Problems})
	return nil
}

// planMissing sends a planner that ended without a plan back once, with what is
// wrong; the second time it has failed. False for all that planned, or need not.
func (s *Step) planMissing(t *Task) (bool, error) {
	if t.Role() != Planner || s.Tree.Story == nil || s.Tree.Story.PlannedBy == t.ID {
		return false, nil
	}
	story := s.Tree.Story
	story.PlanError = cmp.Or(story.PlanError, "the planner ended without reporting a plan")
	s.storyChanged("plan.missing", map[string]any{"problems": story.PlanError})
	if t.Book.SentBack {
		return true, s.ended(t, OnFail, "no usable plan, twice: "+story.PlanError)
	}
	t.Book.SentBack = true
	return true, s.requeue(t, s.Tree.Execution(t.Book.Current), "it ended without a usable plan")
}

// LookBack starts the retro of a story that is deployed, once, with the agent that
// who gives; nothing is done where there is none. True when it was started.
func (s *Step) LookBack(who func() (AgentSpec, bool)) bool {
	story := s.Tree.Story
	if story.Status != Deployed || s.lookedBack() {
		return false
	}
	spec, ok := who()
	if ok {
		s.spawnApart(Retro, "Look back: "+story.Name, spec, "")
	}
	return ok
}

// lookedBack is true when the story has, or had, its retro.
func (s *Step) lookedBack() bool {
	id := TaskID(s.derive(string(Retro), string(s.Tree.ID), 1))
	gone := s.Tree.Task(TaskID(s.Tree.Root())).Book.Gone
	return s.Tree.Task(id) != nil || slices.Contains(slices.Collect(maps.Values(gone)), id)
}

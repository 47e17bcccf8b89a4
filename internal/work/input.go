package work

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// TaskInput is what a person, a file or an agent gives to make a task.
type TaskInput struct {
	Name               string
	Description        string
	ParentTaskID       TaskID
	StoryID            StoryID
	Kind               Kind // of a child; Subtask unless an improvement
	BranchName         string
	RepositoryURL      string
	Agent              AgentSpec
	Timeout            Duration
	Retry              Retry
	Priority           Priority
	Tags               []string
	DependsOn          []Position
	AcceptanceCriteria []string
	Gates              []string
	Review             string
	Draft              bool
	CommitType         string
	Origin             Origin
	CreatedBy          TaskID
}

// CreateTask adds a task: the root of a new tree, or a child of a parent.
type CreateTask struct {
	ID    TaskID
	Input TaskInput
	Start bool
}

func (c CreateTask) apply(s *Step) error {
	in := c.Input
	t := &Task{
		ID: c.ID, Kind: TopLevel, Name: strings.TrimSpace(in.Name), Description: in.Description,
		ParentTaskID: in.ParentTaskID, ProjectID: s.Tree.Project.ID, StoryID: in.StoryID, RepositoryURL: in.RepositoryURL,
		BranchName: in.BranchName, Agent: in.Agent, Timeout: in.Timeout, Retry: in.Retry, Priority: in.Priority,
		Tags: in.Tags, DependsOn: in.DependsOn, AcceptanceCriteria: in.AcceptanceCriteria, Gates: in.Gates,
		Review: in.Review, Draft: in.Draft, CommitType: in.CommitType, Origin: in.Origin, CreatedBy: in.CreatedBy, State: Pending,
	}
	t.defaults()
	if err := t.check(); err != nil {
		return err
	}
	if t.Apart() {
		return Errorf(Invalid, "the role %s is given by a story, not to a task", t.Role()).WithReason("role").WithHint("claudomator story elaborate")
	}
	if err := s.adopt(t, in.Kind); err != nil {
		return err
	}
	if err := s.checkDependencies(t); err != nil {
		return err
	}
	if c.Start {
		if err := mayStart(s.Tree, t); err != nil {
			return err
		}
	}
	s.add(t)
	s.event("task.created", t, map[string]any{"name": t.Name})
	if !c.Start {
		return nil
	}
	return s.queue(t)
}

func (t *Task) defaults() {
	if t.Retry.MaxAttempts == 0 {
		t.Retry.MaxAttempts = 1
	}
	if t.Retry.Backoff == "" {
		t.Retry.Backoff = Exponential
	}
	if t.Priority == "" {
		t.Priority = Normal
	}
	if t.Origin == "" {
		t.Origin = FromPerson
	}
}

// adopt checks that a child may be added to its parent now.
func (s *Step) adopt(t *Task, kind Kind) error {
	if s.Tree.Task(t.ID) != nil {
		return Errorf(Conflict, "there is a task %s already", t.ID).WithReason("exists")
	}
	if t.ParentTaskID == "" {
		if TreeID(t.ID) != s.Tree.ID {
			return Errorf(Internal, "task %s cannot be the root of tree %s", t.ID, s.Tree.ID)
		}
		return nil
	}
	t.Kind = Kind(cmp.Or(string(kind), string(Subtask)))
	if t.Kind == TopLevel {
		return Errorf(Invalid, "a child is a subtask or an improvement, not of kind %q", t.Kind)
	}
	parent := s.Tree.Task(t.ParentTaskID)
	if parent == nil {
		return Errorf(NotFound, "there is no parent task %s", t.ParentTaskID)
	}
	if err := s.Tree.busy(parent); err != nil {
		return err
	}
	if parent.State == Ready || parent.State.Ended() || parent.Waiting(Blocked, OnConflict) {
		return Errorf(Illegal, "task %s is %s: it takes no more children", parent.ID, parent.State).WithReason("parent_ended").
			WithHint("retry the parent first, or make a top-level task")
	}
	if s.Tree.drafted(parent) {
		return storyDraft(s.Tree)
	}
	if parent.Apart() {
		return Errorf(Illegal, "task %s judges or plans: it has no children", parent.ID).WithReason("not_a_builder")
	}
	if t.Kind == Improvement && parent.ParentTaskID != "" {
		return Errorf(Illegal, "task %s is a child itself: improvements are one layer deep", parent.ID).WithReason("too_deep")
	}
	t.StoryID = parent.StoryID
	return nil
}

// Spawn is what a running agent adds below its own task: a subtask or an
// improvement, once per name and position.
type Spawn struct {
	Execution ExecutionID
	Input     TaskInput
	Siblings  []string // dependencies, by id or sibling's name
}

func (c Spawn) apply(s *Step) error {
	x := s.Tree.Execution(c.Execution)
	if x == nil || x.State != ExecutionRunning || x.Stopping != "" || x.Kind != AgentRun {
		return Errorf(Conflict, "execution %s is over", c.Execution).WithReason("stale")
	}
	caller := s.Tree.Task(x.TaskID)
	in := c.Input
	if in.Kind == "" {
		in.Kind = Subtask
	}
	if in.Kind == Subtask && in.Agent.Role == NoRole {
		in.Agent.Role = caller.Role()
	}
	in.ParentTaskID, in.CreatedBy, in.Origin = caller.ID, caller.ID, FromAgent
	for _, name := range c.Siblings {
		pos, ok := s.Tree.sibling(caller, strings.TrimSpace(name))
		if !ok {
			return Errorf(Invalid, "there is no sibling %q to depend on", name).WithHint("spawn it first; depends_on takes ids or names of your own subtasks")
		}
		in.DependsOn = append(in.DependsOn, pos)
	}
	if _, gone := s.Tree.gone(caller, in.Name); gone {
		return nil
	}
	if pos, known := s.Tree.sibling(caller, strings.TrimSpace(in.Name)); known {
		return s.Tree.sameChild(pos, in)
	}
	return CreateTask{ID: s.Tree.SpawnedID(s.IDs, caller, in.Name), Input: in}.apply(s)
}

// SpawnedID is the id of the child that has name below a position.
func (t *Tree) SpawnedID(ids IDs, caller *Task, name string) TaskID {
	if id, gone := t.gone(caller, name); gone {
		return id
	}
	if pos, known := t.sibling(caller, strings.TrimSpace(name)); known {
		return TaskID(pos)
	}
	return TaskID(ids.Derive("child", string(caller.Position()), strings.TrimSpace(name)))
}

// gone finds a child that a person took away from caller's place.
func (t *Tree) gone(caller *Task, name string) (TaskID, bool) {
	for _, attempt := range t.Chain(caller.Position()) {
		if id, ok := attempt.Book.Gone[strings.TrimSpace(name)]; ok {
			return id, true
		}
	}
	return "", false
}

// sibling finds a child position of caller's place by id or name, in any
// attempt of it.
func (t *Tree) sibling(caller *Task, name string) (Position, bool) {
	for _, attempt := range t.Chain(caller.Position()) {
		for _, pos := range t.Children(attempt.ID) {
			if anchor := t.Task(TaskID(pos)); anchor.Name == name || string(anchor.ID) == name {
				return pos, true
			}
		}
	}
	return "", false
}

// sameChild allows a repeated spawn and refuses one with other content.
func (t *Tree) sameChild(pos Position, in TaskInput) error {
	child := t.Task(TaskID(pos))
	same := child.Agent.Instructions == in.Agent.Instructions && child.Description == in.Description &&
		slices.Equal(child.AcceptanceCriteria, in.AcceptanceCriteria) && slices.Equal(child.DependsOn, in.DependsOn) &&
		in.Kind == child.Kind && in.Agent.Role == child.Role()
	if !same {
		return Errorf(Conflict, "a subtask named %q exists with other content (%s)", in.Name, child.ID).WithReason("name_taken").WithHint("choose another name")
	}
	return nil
}

// The longest texts that are taken, in bytes.
const (
	maxName  = 1000
	maxText  = 8 << 20
	maxItem  = 64 << 10
	maxItems = 1000
)

// check refuses a task whose own fields break a rule.
func (t *Task) check() error {
	if t.Name == "" {
		return Errorf(Invalid, "a task needs a name").WithHint("give --name, or name: in the file")
	}
	if err := CheckText("name", t.Name, maxName, false); err != nil {
		return err
	}
	if err := CheckText("description", t.Description, maxText, true); err != nil {
		return err
	}
	if len(t.Agent.Instructions) > maxText {
		return Errorf(Invalid, "instructions are %d bytes long, at most %d are taken", len(t.Agent.Instructions), maxText).WithHint("put long material into a file of the repository")
	}
	lists := []struct {
		name string
		list []string
	}{{"tags", t.Tags}, {"acceptance_criteria", t.AcceptanceCriteria}, {"gates", t.Gates}, {"agent.command", t.Agent.Command}, {"agent.allowed_tools", t.Agent.AllowedTools}}
	for _, l := range lists {
		if len(l.list) > maxItems {
			return Errorf(Invalid, "%s has %d entries, at most %d are taken", l.name, len(l.list), maxItems)
		}
		for i, item := range l.list {
			if strings.TrimSpace(item) == "" && l.name != "agent.command" {
				return Errorf(Invalid, "%s entry %d is empty", l.name, i+1)
			}
			if err := CheckText(fmt.Sprintf("%s entry %d", l.name, i+1), item, maxItem, true); err != nil {
				return err
			}
		}
	}
	return t.checkValues()
}

const year = 365 * 24 * time.Hour

func (t *Task) checkValues() error {
	switch {
	case len(t.Agent.Command) > 0 && t.Agent.Command[0] == "":
		return Errorf(Invalid, "agent.command names no program")
	case t.Timeout < 0 || (t.Timeout > 0 && time.Duration(t.Timeout) < time.Second):
		return Errorf(Invalid, "timeout %s is too short", time.Duration(t.Timeout)).WithHint("one second at least; leave it out for the default")
	case time.Duration(t.Timeout) > year:
		return Errorf(Invalid, "timeout %s is too long", time.Duration(t.Timeout)).WithHint("at most 8760h, a year; leave it out for the default")
	case t.Retry.MaxAttempts < 0 || t.Retry.MaxAttempts > 100:
		return Errorf(Invalid, "retry.max_attempts is %d, it must be 1 to 100", t.Retry.MaxAttempts)
	case t.Retry.Backoff != Linear && t.Retry.Backoff != Exponential:
		return Errorf(Invalid, "retry.backoff %q is unknown", t.Retry.Backoff).WithHint("linear or exponential")
	case !slices.Contains(Priorities(), t.Priority):
		return Errorf(Invalid, "priority %q is unknown", t.Priority).WithHint("low, normal, high or urgent")
	case !slices.Contains(Kinds(), t.Kind):
		return Errorf(Invalid, "kind %q is unknown", t.Kind).WithHint("task, subtask or improvement")
	case t.Agent.MaxBudgetUSD < 0 || t.Agent.MaxTurns < 0:
		return Errorf(Invalid, "a limit of the agent is negative")
	case t.Agent.Role != NoRole && !validName(string(t.Agent.Role)):
		return Errorf(Invalid, "role %q is not a name", t.Agent.Role).WithHint("lower-case letters, digits and dashes")
	}
	if err := CheckText("commit_type", t.CommitType, 50, false); err != nil {
		return err
	}
	if t.BranchName != "" && !ValidBranch(t.BranchName) {
		return Errorf(Invalid, "branch_name %q is not a legal git branch name", t.BranchName).WithHint("for example: feature/short-name")
	}
	return nil
}

// CheckText refuses a text that is longer than most bytes, is not UTF-8, or holds
// control characters; line breaks and tabs only where lines are allowed.
func CheckText(name, text string, most int, lines bool) error {
	if err := checkLength(name, text, most); err != nil {
		return err
	}
	if strings.ToValidUTF8(text, "") != text {
		return Errorf(Invalid, "%s is not valid UTF-8", name)
	}
	bad := func(r rune) bool { return (r < ' ' && !(lines && (r == '\n' || r == '\t' || r == '\r'))) || r == 0x7f }
	if i := strings.IndexFunc(text, bad); i >= 0 {
		return Errorf(Invalid, "%s has a control character at byte %d", name, i)
	}
	return nil
}

func validName(name string) bool {
	return name != "" && len(name) <= 100 && !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != '.'
	})
}

// ValidName is true for names of roles and projects: lower-case letters,
// digits, dash, dot and underscore.
func ValidName(name string) bool { return validName(name) && name[0] != '-' && name[0] != '.' }

// ValidBranch is true for names that git takes as a branch (the rules of
// git check-ref-format --branch).
func ValidBranch(name string) bool {
	if name == "" || len(name) > 200 || name[0] == '-' || strings.HasPrefix(name, "refs/") || name == "@" || name == "HEAD" ||
		strings.HasPrefix(name, "/") || strings.HasSuffix(name, "/") || strings.HasSuffix(name, ".") {
		return false
	}
	for _, bad := range []string{"..", "//", "@{", "\\", "/.", ".lock/", "~", "^", ":", "?", "*", "[", " "} {
		if strings.Contains(name, bad) {
			return false
		}
	}
	return name[0] != '.' && !strings.HasSuffix(name, ".lock") && strings.ToValidUTF8(name, "") == name &&
		!strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f })
}

package app

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/claudomator/claudomator/internal/review"
	"github.com/claudomator/claudomator/internal/work"
)

// CreateTask makes a top-level task, or a child of a parent, and starts it when
// asked. With an idempotency key a repeated request answers with the first.
func (s *Service) CreateTask(ctx context.Context, in TaskRequest) (*TaskView, error) {
	by, err := may(ctx, true)
	if err != nil {
		return nil, err
	}
	id := s.o.IDs.New()
	made, err := s.once(ctx, by, in.IdempotencyKey, in, id, func(idem *work.Idempotency) error {
		return s.createTask(ctx, by, work.TaskID(id), in, idem)
	})
	if err != nil {
		return nil, err
	}
	return s.view(ctx, work.TaskID(made))
}

func (s *Service) createTask(ctx context.Context, by work.Actor, id work.TaskID, in TaskRequest, idem *work.Idempotency) error {
	input, project, err := s.taskInput(ctx, in)
	if err != nil {
		return err
	}
	tree, begin, err := s.treeFor(ctx, id, input, project)
	if err != nil {
		return err
	}
	unlock, err := s.edging(ctx, input.DependsOn)
	if err != nil {
		return err
	}
	defer unlock()
	return s.change(ctx, tree, by, begin, keyed{idempotency: idem, commands: []work.Command{work.CreateTask{ID: id, Input: input, Start: in.Start}}})
}

// treeFor says which tree a new task goes to, and how to begin a new one.
func (s *Service) treeFor(ctx context.Context, id work.TaskID, in work.TaskInput, project *work.Project) (work.TreeID, fresh, error) {
	if in.ParentTaskID != "" {
		tree, err := s.o.Lookup.TreeOf(ctx, in.ParentTaskID)
		return tree, s.reaching(tree, in.DependsOn), err
	}
	begin := func(ctx context.Context) (*work.Tree, error) {
		tree := work.NewTree(work.TreeID(id), nil, nil, nil)
		tree.Project = *project
		return tree, s.reach(ctx, tree, in.DependsOn)
	}
	return work.TreeID(id), begin, nil
}

// reaching makes a tree that is there ready for an edge to others, if only to
// refuse it by name; nil where nothing is depended on.
func (s *Service) reaching(id work.TreeID, on []work.Position) fresh {
	if len(on) == 0 {
		return nil
	}
	return func(ctx context.Context) (*work.Tree, error) {
		t, err := s.tree(ctx, id, nil)
		if err != nil {
			return nil, err
		}
		return t, s.reach(ctx, t, on)
	}
}

// edging lets those who add edges go one after the other: all edges share one
// version, and a crowd would refuse each other again and again.
func (s *Service) edging(ctx context.Context, on []work.Position) (unlock func(), err error) {
	if len(on) == 0 {
		return func() {}, nil
	}
	return s.locks.lock(ctx, edgesKey)
}

const edgesKey = "edges" // the id of no tree

// reach loads what a tree must know of others to depend on them.
func (s *Service) reach(ctx context.Context, tree *work.Tree, on []work.Position) error {
	if len(on) == 0 {
		return nil
	}
	outer, err := s.o.Trees.Outer(ctx, on)
	if err != nil {
		return err
	}
	delete(outer, tree.Root()) // its own root is no other tree
	maps.Copy(tree.Outer, outer)
	if tree.Current(tree.Root()) == nil {
		on = nil // nothing can depend on a new tree yet: its edges close no cycle
	}
	tree.Reach, tree.Edges, err = s.o.Trees.Reach(ctx, on)
	return err
}

// taskInput resolves the names in a request and checks what the domain cannot.
func (s *Service) taskInput(ctx context.Context, in TaskRequest) (work.TaskInput, *work.Project, error) {
	var none work.TaskInput
	out := work.TaskInput{
		Name: in.Name, Description: in.Description, BranchName: in.BranchName, RepositoryURL: in.RepositoryURL,
		Agent: work.AgentSpec{
			Type: in.Agent.Type, Role: work.Role(in.Agent.Role), Model: in.Agent.Model, Instructions: in.Agent.Instructions,
			Command: in.Agent.Command, AllowedTools: in.Agent.AllowedTools, MaxBudgetUSD: in.Agent.MaxBudgetUSD, MaxTurns: in.Agent.MaxTurns,
		},
		Timeout: in.Timeout, Retry: work.Retry{MaxAttempts: in.Retry.MaxAttempts, Backoff: work.Backoff(in.Retry.Backoff)},
		Priority: work.Priority(in.Priority), Tags: in.Tags, AcceptanceCriteria: in.AcceptanceCriteria, Gates: in.Gates,
		Review: in.Review, Draft: in.Draft, CommitType: in.CommitType, Origin: work.FromPerson,
	}
	if in.Review != "" {
		if _, err := review.Preset(in.Review); err != nil {
			return none, nil, err
		}
	}
	if err := s.knownAgent(in.Agent.Type); err != nil {
		return none, nil, err
	}
	var err error
	if out.DependsOn, err = s.positions(ctx, in.DependsOn); err != nil {
		return none, nil, err
	}
	if in.ParentTaskID != "" {
		if out.ParentTaskID, err = s.parentOf(ctx, in); err != nil {
			return none, nil, err
		}
		return out, nil, nil
	}
	project, err := s.projectOf(ctx, in)
	if err != nil {
		return none, nil, err
	}
	rules, err := s.rules(ctx, project.ID)
	if err != nil {
		return none, nil, err
	}
	if _, err := rules.Agent(out.Agent, work.AgentSpec{}, *project); err != nil {
		return none, nil, err
	}
	return out, project, nil
}

// projectFor finds the named project; without a name, the only one there is.
func (s *Service) projectFor(ctx context.Context, ref string) (*work.Project, error) {
	if ref != "" {
		return s.o.Settings.Project(ctx, ref)
	}
	all, err := s.o.Settings.Projects(ctx)
	if err != nil {
		return nil, err
	}
	if len(all) == 1 {
		return all[0], nil
	}
	names := make([]string, len(all))
	for i, p := range all {
		names[i] = p.Name
	}
	if len(all) == 0 {
		return nil, work.Errorf(work.Invalid, "there is no project yet").WithHint("claudomator project add NAME --repo PATH")
	}
	return nil, work.Errorf(work.Invalid, "the task names no project").WithHint("one of: %s", strings.Join(names, ", "))
}

func (s *Service) knownAgent(agent string) error {
	types := s.o.Agents.Types()
	if agent == "" || slices.Contains(types, agent) {
		return nil
	}
	return work.Errorf(work.Invalid, "there is no agent type %q", agent).WithHint("one of: %s", strings.Join(types, ", "))
}

// positions resolves dependency references; a fix attempt names its place.
func (s *Service) positions(ctx context.Context, refs []string) ([]work.Position, error) {
	var out []work.Position
	for _, ref := range refs {
		id, err := s.o.Lookup.ResolveTask(ctx, ref)
		if err != nil {
			return nil, err
		}
		t, err := s.o.Lookup.Task(ctx, id)
		if err != nil {
			return nil, err
		}
		out = append(out, t.Position())
	}
	return out, nil
}

// Tasks is one page of tasks, newest first.
func (s *Service) Tasks(ctx context.Context, q TaskQuery) (Page[*work.Task], error) {
	var none Page[*work.Task]
	if _, err := may(ctx, false); err != nil {
		return none, err
	}
	filter := TaskFilter{States: q.States, Tag: q.Tag, Text: q.Text, TopLevel: q.TopLevel, All: q.All, After: q.After}
	var err error
	if filter.Limit, err = pageSize(q.Limit); err != nil {
		return none, err
	}
	for _, state := range q.States {
		if !slices.Contains(work.States(), state) {
			return none, work.Errorf(work.Invalid, "there is no task state %q", state).WithHint("one of: %v", work.States())
		}
	}
	if q.Project != "" {
		p, err := s.o.Settings.Project(ctx, q.Project)
		if err != nil {
			return none, err
		}
		filter.Project = p.ID
	}
	if q.Parent != "" {
		id, err := s.o.Lookup.ResolveTask(ctx, q.Parent)
		if err != nil {
			return none, err
		}
		filter.Parent = id
	}
	return s.o.Lists.Tasks(ctx, filter)
}

// pageSize is how much of a list is asked for at once.
func pageSize(limit int) (int, error) {
	if limit < 0 || limit > 500 {
		return 0, work.Errorf(work.Invalid, "limit is %d, it must be 1 to 500", limit)
	}
	return cmp.Or(limit, 50), nil
}

// Task is one task and what can be asked of it.
func (s *Service) Task(ctx context.Context, ref string) (*TaskView, error) {
	if _, err := may(ctx, false); err != nil {
		return nil, err
	}
	id, err := s.o.Lookup.ResolveTask(ctx, ref)
	if err != nil {
		return nil, err
	}
	return s.view(ctx, id)
}

func (s *Service) view(ctx context.Context, id work.TaskID) (*TaskView, error) {
	tree, err := s.o.Lookup.TreeOf(ctx, id)
	if err != nil {
		return nil, err
	}
	var view *TaskView
	var others []work.Elsewhere
	err = s.View(ctx, tree, func(tree *work.Tree) error {
		t := tree.Task(id)
		if t == nil {
			return work.Errorf(work.NotFound, "there is no task %s", id)
		}
		view = &TaskView{Task: *t, Actions: tree.Actions(t), CurrentID: tree.Current(t.Position()).ID}
		view.Rests, others = tree.Rests(t)
		if m := tree.OpenMerge(t.ID); m != nil {
			view.MergeID = m.ID
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	view.Rests, err = s.hold(ctx, view.Rests, others)
	return view, err
}

// hold says whether what rests if places of other trees hold it does rest: if they
// do, and those that they wait for in turn.
func (s *Service) hold(ctx context.Context, rests bool, places []work.Elsewhere) (bool, error) {
	for i := 0; rests && i < len(places); i++ {
		tree, err := s.o.Lookup.TreeOf(ctx, work.TaskID(places[i].At))
		if err == nil {
			err = s.View(ctx, tree, func(tree *work.Tree) error {
				holds, more := tree.Holds(places[i])
				rests = holds
				for _, pos := range more {
					if !slices.Contains(places, pos) {
						places = append(places, pos)
					}
				}
				return nil
			})
		}
		if work.UnlessMissing(err) != nil {
			return false, err
		}
		rests = rests && err == nil // what is gone lets go, in a moment
	}
	return rests, nil
}

// find resolves a task and says in which tree it is.
func (s *Service) find(ctx context.Context, ref string) (work.TaskID, work.TreeID, error) {
	id, err := s.o.Lookup.ResolveTask(ctx, ref)
	if err != nil {
		return "", "", err
	}
	tree, err := s.o.Lookup.TreeOf(ctx, id)
	return id, tree, err
}

// act resolves a task, applies a command to its tree, and shows the task.
func (s *Service) act(ctx context.Context, ref string, command func(work.TaskID) work.Command) (*TaskView, error) {
	by, err := may(ctx, true)
	if err != nil {
		return nil, err
	}
	id, tree, err := s.find(ctx, ref)
	if err != nil {
		return nil, err
	}
	if err := s.Do(ctx, tree, by, command(id)); err != nil {
		return nil, err
	}
	return s.view(ctx, id)
}

// StartTask submits a PENDING task.
func (s *Service) StartTask(ctx context.Context, ref string) (*TaskView, error) {
	return s.act(ctx, ref, func(id work.TaskID) work.Command { return work.StartTask{Task: id} })
}

// AcceptTask accepts READY work, and lands it where asked or by default.
func (s *Service) AcceptTask(ctx context.Context, ref string, in AcceptInput) (*TaskView, error) {
	return s.act(ctx, ref, func(id work.TaskID) work.Command {
		return work.AcceptTask{Task: id, Land: in.Land, Target: in.Into}
	})
}

// RejectTask sends READY work back with a comment; the answer shows the
// rejected attempt, whose superseded_by names the fix.
func (s *Service) RejectTask(ctx context.Context, ref string, in RejectInput) (*TaskView, error) {
	return s.act(ctx, ref, func(id work.TaskID) work.Command {
		return work.RejectTask{Task: id, Comment: in.Comment, Findings: in.Findings, Extra: in.Extra}
	})
}

// AnswerTask answers the task's open question.
func (s *Service) AnswerTask(ctx context.Context, ref, text string) (*TaskView, error) {
	return s.act(ctx, ref, func(id work.TaskID) work.Command { return work.AnswerTask{Task: id, Text: text} })
}

// MessageTask sends words to a task, which then works on.
func (s *Service) MessageTask(ctx context.Context, ref, text string) (*TaskView, error) {
	return s.act(ctx, ref, func(id work.TaskID) work.Command { return work.MessageTask{Task: id, Text: text} })
}

// RetryTask runs a task again.
func (s *Service) RetryTask(ctx context.Context, ref string, fresh bool) (*TaskView, error) {
	return s.act(ctx, ref, func(id work.TaskID) work.Command { return work.RetryTask{Task: id, Fresh: fresh} })
}

// CancelTask ends a task.
func (s *Service) CancelTask(ctx context.Context, ref string) (*TaskView, error) {
	return s.act(ctx, ref, func(id work.TaskID) work.Command { return work.CancelTask{Task: id} })
}

// SubmitTask takes work done by hand in the task's workspace.
func (s *Service) SubmitTask(ctx context.Context, ref string) (*TaskView, error) {
	return s.act(ctx, ref, func(id work.TaskID) work.Command { return work.SubmitTask{Task: id} })
}

// DropTask gives up a badly ended child position.
func (s *Service) DropTask(ctx context.Context, ref string) (*TaskView, error) {
	return s.act(ctx, ref, func(id work.TaskID) work.Command { return work.DropTask{Task: id} })
}

// PostponeTask makes a child a PENDING task of its own.
func (s *Service) PostponeTask(ctx context.Context, ref string) (*TaskView, error) {
	return s.act(ctx, ref, func(id work.TaskID) work.Command { return work.PostponeTask{Task: id} })
}

// RemoveTask deletes a task; a root takes its tree along.
func (s *Service) RemoveTask(ctx context.Context, ref string) error {
	by, err := may(ctx, true)
	if err != nil {
		return err
	}
	id, tree, err := s.find(ctx, ref)
	if err != nil {
		return err
	}
	return s.Do(ctx, tree, by, work.RemoveTask{Task: id})
}

// PatchTask changes what a task is asked to do, while it does not run.
func (s *Service) PatchTask(ctx context.Context, ref string, in TaskPatch) (*TaskView, error) {
	by, err := may(ctx, true)
	if err != nil {
		return nil, err
	}
	id, tree, err := s.find(ctx, ref)
	if err != nil {
		return nil, err
	}
	c := work.PatchTask{
		Task: id, Name: in.Name, Description: in.Description, Instructions: in.Instructions,
		AcceptanceCriteria: (*[]string)(in.AcceptanceCriteria), Gates: in.Gates, Tags: in.Tags,
		Priority: (*work.Priority)(in.Priority), Timeout: in.Timeout, MaxBudgetUSD: in.MaxBudgetUSD, Draft: in.Draft,
	}
	if in.Retry != nil {
		c.Retry = &work.Retry{MaxAttempts: in.Retry.MaxAttempts, Backoff: work.Backoff(in.Retry.Backoff)}
	}
	var on []work.Position
	if in.DependsOn != nil {
		if on, err = s.positions(ctx, *in.DependsOn); err != nil {
			return nil, err
		}
		c.DependsOn = &on
	}
	unlock, err := s.edging(ctx, on)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := s.change(ctx, tree, by, s.reaching(tree, on), c); err != nil {
		return nil, err
	}
	return s.view(ctx, id)
}

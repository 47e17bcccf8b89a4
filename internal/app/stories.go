package app

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/claudomator/claudomator/internal/work"
)

// Elaborate begins a story in DRAFT, and sets a planner to work on its plan.
func (s *Service) Elaborate(ctx context.Context, in ElaborateInput) (*Elaborated, error) {
	by, err := may(ctx, true)
	if err != nil {
		return nil, err
	}
	if err := s.knownAgent(in.Agent); err != nil {
		return nil, err
	}
	story, err := s.begin(ctx, by, in.IdempotencyKey, in, cmp.Or(in.Project, in.ProjectID), in.Epic, work.CreateStory{
		Input: work.StoryInput{Name: in.Name, Goal: in.Goal, Policy: in.Policy}, Elaborate: true, Planner: work.AgentSpec{Type: in.Agent},
	})
	if err != nil {
		return nil, err
	}
	view, err := s.storyView(ctx, story)
	if err != nil {
		return nil, err
	}
	return &Elaborated{StoryID: story.ID, TaskID: view.Planner}, nil
}

// ApprovePlan begins a story with a whole plan; its tasks are queued at once,
// unless it is only to be kept as a draft.
func (s *Service) ApprovePlan(ctx context.Context, in ApproveInput) (*Approved, error) {
	by, err := may(ctx, true)
	if err != nil {
		return nil, err
	}
	c, then := work.CreateStory{Input: work.StoryInput{Plan: in.plan()}}, []work.Command{work.ApproveStory{}}
	if in.Draft {
		then = nil
	}
	story, err := s.begin(ctx, by, in.IdempotencyKey, in, cmp.Or(in.Project, in.ProjectID), in.Epic, c, then...)
	if err != nil {
		return nil, err
	}
	return s.approved(ctx, story)
}

// begin makes a story in a tree of its own, and does with it what then says, or finds
// the one that an equal request has made.
func (s *Service) begin(ctx context.Context, by work.Actor, key string, request any, project, epic string, c work.CreateStory, then ...work.Command) (*work.Story, error) {
	c.ID, c.Root = work.StoryID(s.o.IDs.New()), work.TaskID(s.o.IDs.New())
	made, err := s.once(ctx, by, key, request, string(c.ID), func(idem *work.Idempotency) error {
		p, err := s.projectFor(ctx, project)
		if err != nil {
			return err
		}
		if c.Input.EpicID, err = s.epicID(ctx, epic); err != nil {
			return err
		}
		tree, begin, err := s.treeFor(ctx, c.Root, work.TaskInput{}, p)
		if err != nil {
			return err
		}
		name, branch := c.Input.Branch()
		return s.branching(ctx, p.ID, c.ID, branch, func() error {
			if branch == "" {
				if c.Input.BranchName, err = s.ownBranch(ctx, p, c.ID, name); err != nil {
					return err
				}
			}
			return s.change(ctx, tree, by, begin, keyed{idempotency: idem, commands: append([]work.Command{c}, then...)})
		})
	})
	if err != nil {
		return nil, err
	}
	return s.o.Stories.Story(ctx, made)
}

// epicID resolves the name of an epic.
func (s *Service) epicID(ctx context.Context, ref string) (work.EpicID, error) {
	if ref == "" {
		return "", nil
	}
	epic, err := s.o.Stories.Epic(ctx, ref)
	if err != nil {
		return "", err
	}
	return epic.ID, nil
}

// Stories is a page of stories, newest first.
func (s *Service) Stories(ctx context.Context, q StoryQuery) (Page[*work.Story], error) {
	var none Page[*work.Story]
	if _, err := may(ctx, false); err != nil {
		return none, err
	}
	filter := work.StoryFilter{Statuses: q.Statuses, Text: q.Text, After: q.After}
	var err error
	if filter.Limit, err = pageSize(q.Limit); err != nil {
		return none, err
	}
	for _, status := range q.Statuses {
		if !slices.Contains(work.StoryStatuses(), status) {
			return none, work.Errorf(work.Invalid, "there is no story status %q", status).WithHint("one of: %v", work.StoryStatuses())
		}
	}
	if q.Project != "" {
		p, err := s.o.Settings.Project(ctx, q.Project)
		if err != nil {
			return none, err
		}
		filter.Project = p.ID
	}
	if filter.Epic, err = s.epicID(ctx, q.Epic); err != nil {
		return none, err
	}
	return s.o.Stories.Stories(ctx, filter)
}

// ask finds the story that the caller speaks of, if it may be read, or changed.
func (s *Service) ask(ctx context.Context, ref string, change bool) (*work.Story, work.Actor, error) {
	by, err := may(ctx, change)
	if err != nil {
		return nil, by, err
	}
	story, err := s.o.Stories.Story(ctx, ref)
	return story, by, err
}

// Story is one story and what can be asked of it.
func (s *Service) Story(ctx context.Context, ref string) (*StoryView, error) {
	story, _, err := s.ask(ctx, ref, false)
	if err != nil {
		return nil, err
	}
	return s.storyView(ctx, story)
}

func (s *Service) storyView(ctx context.Context, story *work.Story) (*StoryView, error) {
	var view *StoryView
	var others []work.Elsewhere
	err := s.View(ctx, work.TreeID(story.RootTaskID), func(tree *work.Tree) error {
		root := tree.Current(tree.Root())
		view = &StoryView{Story: *tree.Story, Actions: tree.StoryActions(), RootID: root.ID, Attempts: root.AttemptNo, TaskIDs: []work.TaskID{}}
		view.Needs, view.Paused = tree.StoryNeeds(), tree.ShipPaused()
		view.Rests, others = tree.StoryRests()
		for _, t := range tree.Tasks() {
			view.count(t)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	view.Rests, err = s.hold(ctx, view.Rests, others)
	return view, err
}

// count takes a task of its tree into a story's view.
func (v *StoryView) count(t *work.Task) {
	v.SpentUSD += t.Book.SpentUSD
	if t.Role() == work.Planner {
		v.Planner = t.ID
	}
	if t.Origin == work.FromPlan && t.ParentTaskID == v.RootTaskID && t.AttemptOf == "" {
		v.TaskIDs = append(v.TaskIDs, t.ID)
	}
	if t.ParentTaskID == "" || t.SupersededBy != "" || t.Dropped {
		return
	}
	v.Progress.Tasks++
	switch {
	case t.State == work.Completed:
		v.Progress.Completed++
	case t.State == work.Running:
		v.Progress.Running++
	case t.State.EndedBadly(), t.BlockedOn == work.OnPerson, t.BlockedOn == work.OnQuestion, t.BlockedOn == work.OnConflict:
		v.Progress.Waiting++
	}
}

// actStory resolves a story, applies a command to its tree, and shows it.
func (s *Service) actStory(ctx context.Context, ref string, command func(tree *work.Tree) work.Command) (*StoryView, error) {
	story, by, err := s.ask(ctx, ref, true)
	if err != nil {
		return nil, err
	}
	if err := s.Do(ctx, work.TreeID(story.RootTaskID), by, onTree{of: command}); err != nil {
		return nil, s.ofStory(ctx, story, err)
	}
	return s.storyView(ctx, story)
}

// ofStory lets what its root refuses name what can be asked of the story instead:
// actions and hint of a task are of no use to one who asked the story.
func (s *Service) ofStory(ctx context.Context, story *work.Story, err error) error {
	e, ok := work.AsError(err)
	if !ok {
		return err
	}
	if _, ofTask := e.Details["allowed"].([]work.Action); !ofTask {
		return err
	}
	told := *e
	told.Details, told.Hint = maps.Clone(e.Details), ""
	return s.View(ctx, work.TreeID(story.RootTaskID), func(tree *work.Tree) error { return tree.StoryRefused(&told) })
}

// EditStory changes a story, and its plan while it is a draft.
func (s *Service) EditStory(ctx context.Context, ref string, in StoryPatch) (*StoryView, error) {
	if _, err := may(ctx, true); err != nil {
		return nil, err
	}
	c := work.EditStory{
		Name: in.Name, Goal: in.Goal, Spec: in.Spec, Policy: in.Policy, BranchName: in.BranchName,
		AcceptanceCriteria: (*[]string)(in.AcceptanceCriteria),
	}
	if in.Epic != nil {
		epic, err := s.epicID(ctx, *in.Epic)
		if err != nil {
			return nil, err
		}
		c.EpicID = &epic
	}
	branch := ""
	if in.Plan != nil {
		c.Plan, branch = in.Plan.plan(), in.Plan.BranchName
	}
	work.Assign(&branch, in.BranchName)
	story, err := s.o.Stories.Story(ctx, ref)
	if err != nil {
		return nil, err
	}
	err = s.branching(ctx, story.ProjectID, story.ID, branch, func() error {
		_, err := s.actStory(ctx, string(story.ID), func(*work.Tree) work.Command { return c })
		return err
	})
	if err != nil {
		return nil, err
	}
	return s.storyView(ctx, story)
}

// ApproveStory turns a story's plan into work.
func (s *Service) ApproveStory(ctx context.Context, ref string) (*Approved, error) {
	story, by, err := s.ask(ctx, ref, true)
	if err != nil {
		return nil, err
	}
	if err := s.Do(ctx, work.TreeID(story.RootTaskID), by, work.ApproveStory{}); err != nil {
		return nil, err
	}
	return s.approved(ctx, story)
}

func (s *Service) approved(ctx context.Context, story *work.Story) (*Approved, error) {
	view, err := s.storyView(ctx, story)
	if err != nil {
		return nil, err
	}
	return &Approved{Story: view, TaskIDs: view.TaskIDs}, nil
}

// AcceptStory accepts what stands at the story's root: the same as accepting
// that task.
func (s *Service) AcceptStory(ctx context.Context, ref string) (*StoryView, error) {
	return s.actStory(ctx, ref, func(tree *work.Tree) work.Command {
		return work.AcceptTask{Task: tree.Current(tree.Root()).ID}
	})
}

// RejectStory rejects what stands at the story's root.
func (s *Service) RejectStory(ctx context.Context, ref string, in RejectInput) (*StoryView, error) {
	return s.actStory(ctx, ref, func(tree *work.Tree) work.Command {
		return work.RejectTask{Task: tree.Current(tree.Root()).ID, Comment: in.Comment, Findings: in.Findings, Extra: in.Extra}
	})
}

// ShipStory lands a story and deploys it; the same idempotency key repeats its
// answer.
func (s *Service) ShipStory(ctx context.Context, ref string, in ShipRequest) (*Shipment, error) {
	story, by, err := s.ask(ctx, ref, true)
	if err != nil {
		return nil, err
	}
	request := struct{ Ship work.StoryID }{story.ID}
	_, err = s.once(ctx, by, in.IdempotencyKey, request, string(story.ID), func(idem *work.Idempotency) error {
		return s.Do(ctx, work.TreeID(story.RootTaskID), by, keyed{idempotency: idem, commands: []work.Command{work.ShipStory{}}})
	})
	if err != nil {
		return nil, err
	}
	view, err := s.storyView(ctx, story)
	if err != nil {
		return nil, err
	}
	out := &Shipment{StoryID: story.ID, Message: fmt.Sprintf("story %q is being shipped", view.Name)}
	if view.Ship != nil && len(view.Ship.Reports) > 0 {
		out.Reports = view.Ship.Reports
		out.Message += fmt.Sprintf(", over %d open reports", len(out.Reports))
	}
	return out, nil
}

// StopDeploy ends a running deployment.
func (s *Service) StopDeploy(ctx context.Context, ref string) (*StoryView, error) {
	return s.actStory(ctx, ref, func(*work.Tree) work.Command { return work.StopDeploy{} })
}

// CancelStory ends a story and all work for it.
func (s *Service) CancelStory(ctx context.Context, ref string) (*StoryView, error) {
	return s.actStory(ctx, ref, func(*work.Tree) work.Command { return work.CancelStory{} })
}

// StoryTree is a story's tree from its root on.
func (s *Service) StoryTree(ctx context.Context, ref string) (*TreeNode, error) {
	story, _, err := s.ask(ctx, ref, false)
	if err != nil {
		return nil, err
	}
	return s.TaskTree(ctx, string(story.RootTaskID))
}

// Epics lists the epics with how far their stories are.
func (s *Service) Epics(ctx context.Context) ([]work.EpicProgress, error) {
	if _, err := may(ctx, false); err != nil {
		return nil, err
	}
	return s.o.Stories.Epics(ctx)
}

// AddEpic makes an epic.
func (s *Service) AddEpic(ctx context.Context, in EpicInput) (*work.EpicProgress, error) {
	if _, err := may(ctx, true); err != nil {
		return nil, err
	}
	epic := work.Epic{ID: work.EpicID(s.o.IDs.New()), Name: strings.TrimSpace(in.Name), CreatedAt: s.o.Now()}
	if epic.Name == "" {
		return nil, work.Errorf(work.Invalid, "an epic needs a name")
	}
	if err := work.CheckText("name", epic.Name, 1000, false); err != nil {
		return nil, err
	}
	if err := s.o.Stories.SaveEpic(ctx, epic); err != nil {
		return nil, err
	}
	return s.o.Stories.Epic(ctx, string(epic.ID))
}

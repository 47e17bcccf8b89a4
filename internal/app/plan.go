package app

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/claudomator/claudomator/internal/work"
)

// RunPlan is all that the engine needs to carry out one execution; a copy, so
// that nothing of the tree is shared.
type RunPlan struct {
	Task      work.Task
	Execution work.Execution
	Project   work.Project
	Spec      work.AgentSpec // of an agent's run, resolved: task, role, parent, project, server
	Prompt    string         // what the agent reads; for a command its instructions, byte for byte
	Resume    string         // handle of the conversation to go on with; empty: a new one
	News      string         // what the agent reads in a resumed conversation
	Base      string         // commit to start from; empty: the freshly fetched default branch with On merged in
	On        []work.BuiltOn // commits of other trees it is built on, as its beginning has recorded them
	Detached  bool           // not the task's own work (judges, planner, gates, …): a throw-away workspace at Base
	Fresh     bool           // start again from the base; what is there is kept as a snapshot
	Commands  []string       // what the server runs itself: gates, deployment, smoke validation
	Facts     []string       // NAME=value of the server's own, for those commands
	Target    string         // branch that has what is deployed or validated after that
	Timeout   time.Duration
	Budget    float64 // what it may cost, USD; 0: no limit
	Refusal   error   // why it cannot be run at all: it is begun, and ended with this
	Silence   time.Duration
	Isolation string      // level of the sandbox
	Parent    work.TaskID // from whose branch's head a child starts
}

// PlanRun reads what an execution is to do. Conflict with reason "stale" when it
// does not wait or run any more.
func (s *Service) PlanRun(ctx context.Context, treeID work.TreeID, id work.ExecutionID) (*RunPlan, error) {
	var plan *RunPlan
	err := s.View(ctx, treeID, func(tree *work.Tree) error {
		rules, err := s.rules(ctx, tree.Project.ID)
		if err != nil {
			return err
		}
		x := tree.Execution(id)
		if x == nil || !x.Live() {
			return work.Errorf(work.Conflict, "execution %s is over", id).WithReason("stale")
		}
		t := tree.Task(x.TaskID)
		plan = &RunPlan{Task: *t, Execution: *x, Project: tree.Project, Parent: t.ParentTaskID, Fresh: t.Book.Fresh}
		role := rules.Roles[t.Role()]
		s.limits(plan, role)
		plan.origin(tree)
		if x.Kind != work.AgentRun { // the server's own, or a person's work: no agent takes part
			plan.Commands = tree.Commands(t, x.Kind)
			plan.shipped(tree)
			return nil
		}
		plan.Spec, plan.Refusal = rules.Worker(tree, t)
		if plan.Refusal == nil {
			plan.budget()
		}
		if plan.Refusal == nil {
			err = s.say(plan, tree, t, role)
		}
		return err
	})
	return plan, err
}

// shipped tells the commands of a ship what they need to know of it.
func (p *RunPlan) shipped(tree *work.Tree) {
	x, story := p.Execution, tree.Story
	if story == nil || story.Ship == nil || x.Kind != work.DeployRun && x.Kind != work.SmokeRun {
		return
	}
	p.Target = story.Ship.Target
	p.Facts = []string{
		"CLAUDOMATOR_STORY_ID=" + string(story.ID),
		"CLAUDOMATOR_BRANCH=" + p.Target,
		"CLAUDOMATOR_COMMIT=" + x.Commit,
	}
}

// say composes what the agent reads, and finds the conversation to go on with.
func (s *Service) say(p *RunPlan, tree *work.Tree, t *work.Task, role work.RoleConfig) (err error) {
	if p.Execution.State == work.ExecutionQueued && role.Name == "" && t.Role() != "" && !slices.Contains(work.Roles(), t.Role()) {
		s.o.Log.Warn("run without a role: it has no active configuration", "task", t.ID, "role", t.Role())
	}
	if p.Prompt, err = prompt(tree, t, role, p.Spec); err != nil {
		return err
	}
	talk := t.Book.Talk
	if talk.Handle == "" || talk.Agent != p.Spec.Type || p.Fresh {
		return nil
	}
	p.Resume = talk.Handle
	p.News, err = news(tree, t)
	return err
}

// origin says where the workspace starts.
func (p *RunPlan) origin(tree *work.Tree) {
	t := p.Task
	switch {
	case !p.Execution.Kind.Own():
		p.Base, p.Detached = p.Execution.Commit, true
	case t.Judges != nil:
		p.Base, p.Detached = t.Judges.Commit, true
	case t.Apart(): // planner and retro look at what there is now
		p.Detached = true
		return
	case t.Book.Base != "" && (!t.Book.Fresh || t.AttemptOf != ""):
		p.Base = t.Book.Base
	case t.ParentTaskID != "":
		p.Base = tree.Task(t.ParentTaskID).Book.Head
	}
	if p.Base == "" {
		p.On = slices.Clone(t.BuiltOn)
	}
}

func (s *Service) limits(p *RunPlan, role work.RoleConfig) {
	d := s.o.Defaults
	task, own, project := time.Duration(p.Task.Timeout), time.Duration(role.Timeout), time.Duration(p.Project.Limits.Timeout)
	switch {
	case p.Execution.Kind == work.DeployRun:
		p.Timeout = cmp.Or(project, d.Timeout)
	case !p.Execution.Kind.Own():
		p.Timeout = d.GateTimeout
	case p.Task.Judges != nil:
		p.Timeout = cmp.Or(task, d.JudgeTimeout)
	case p.Task.Role() == work.Retro:
		p.Timeout = cmp.Or(task, own, d.JudgeTimeout)
	case p.Task.Apart(): // a planner, who reads the whole repository
		p.Timeout = cmp.Or(task, own, d.Timeout)
	default:
		p.Timeout = cmp.Or(task, own, project, d.Timeout)
	}
	if d.Wall > 0 {
		p.Timeout = min(p.Timeout, d.Wall)
	}
	p.Silence = cmp.Or(time.Duration(p.Project.Limits.Silence), d.Silence)
	p.Isolation = cmp.Or(p.Project.Isolation, d.Isolation, "none")
}

// budget leaves the run what earlier runs of its task have not spent.
func (p *RunPlan) budget() {
	budget, spent := p.Spec.MaxBudgetUSD, p.Task.Book.SpentUSD
	if budget == 0 {
		return
	}
	if p.Budget = budget - spent; p.Budget <= 0 {
		p.Refusal = work.Errorf(work.Exhausted, "%.2f of %.2f USD are spent", spent, budget).WithReason("budget").
			WithHint("raise it: claudomator task set %s --budget USD; then retry", p.Task.ID)
	}
}

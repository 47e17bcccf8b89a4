package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/engine"
	"github.com/claudomator/claudomator/internal/store"
	"github.com/claudomator/claudomator/internal/work"
)

// panel are the roles that judge a node of a story.
func panel() []work.Role {
	return []work.Role{work.EvaluatorCorrectness, work.EvaluatorTests, work.EvaluatorSecurity, work.EvaluatorQuality, work.Arbitration}
}

// fillStories stores finished stories, each with a root, four nodes below it, and
// their judges, as a server would have left them. It gives the last seq.
func fillStories(ctx context.Context, data string, n int) (ids []work.StoryID, last int64, err error) {
	if err := os.MkdirAll(data, 0o700); err != nil {
		return nil, 0, fmt.Errorf("make a data folder: %w", err)
	}
	// What is finished has no effects: the queue is never asked.
	s, err := store.Open(ctx, store.Config{URL: filepath.Join(data, "claudomator.db")}, engine.NewQueue().Enqueue)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	f := storyFiller{project: &work.Project{ID: work.ProjectID(app.RandomIDs{}.New()), Name: "finished", Branch: "main"}}
	if err := s.SaveProject(ctx, f.project); err != nil {
		return nil, 0, fmt.Errorf("store a project: %w", err)
	}
	begin := time.Now().Add(-time.Duration(n) * time.Minute).UTC()
	for i := range n {
		c := f.finished(i, begin.Add(time.Duration(i)*time.Minute))
		if _, err := s.Commit(ctx, c); err != nil {
			return nil, 0, fmt.Errorf("store a story: %w", err)
		}
		ids = append(ids, c.Story.ID)
	}
	last, err = s.LastSeq(ctx)
	return ids, last, err
}

type storyFiller struct {
	ids     app.RandomIDs
	project *work.Project
	at      time.Time
	change  work.ChangeSet
}

// finished is a deployed story as it is stored in the end.
func (f *storyFiller) finished(i int, at time.Time) work.ChangeSet {
	f.at, f.change = at, work.ChangeSet{}
	plan := &work.Plan{
		Name: fmt.Sprintf("finished story %d", i), Goal: "Lists and maps may end with a comma.", BranchName: fmt.Sprintf("story/finished-%d", i),
		Spec: "The parser accepts trailing commas in lists and maps, and the printer never writes one.",
	}
	story := &work.Story{
		ID: work.StoryID(f.ids.New()), ProjectID: f.project.ID, Name: plan.Name, Goal: plan.Goal, Spec: plan.Spec, BranchName: plan.BranchName,
		Status: work.Deployed, Plan: plan, CreatedAt: at, UpdatedAt: at.Add(time.Minute),
	}
	root := f.node(story, nil, i)
	story.RootTaskID = root.ID
	for n := range 4 {
		node := f.node(story, root, 10*i+n)
		plan.Tasks = append(plan.Tasks, work.PlanTask{Name: node.Name, Instructions: node.Agent.Instructions})
	}
	story.Shipped = &work.Shipped{Commit: root.Book.Head, At: story.UpdatedAt}
	f.event("story.deployed", root.ID)
	f.change.Tree, f.change.Story = root.TreeID, story
	f.change.Summary = work.Summary{
		ID: root.TreeID, ProjectID: f.project.ID, StoryID: story.ID, Current: root.ID, State: root.State,
		Head: root.Book.Head, Accepted: root.Book.Head, Landed: true,
	}
	return f.change
}

// node is a builder's task that was approved, with those who judged it.
func (f *storyFiller) node(story *work.Story, parent *work.Task, i int) *work.Task {
	head := fmt.Sprintf("%040x", i)
	t := &work.Task{
		ID: work.TaskID(f.ids.New()), Kind: work.TopLevel, Name: fmt.Sprintf("node %d", i), StoryID: story.ID, Origin: work.FromPlan,
		Agent: work.AgentSpec{Type: "command", Role: work.Builder, Instructions: "Make the parser accept trailing commas in lists and maps, with tests for both."},
	}
	if t.TreeID = work.TreeID(t.ID); parent != nil {
		t.Kind, t.ParentTaskID, t.TreeID = work.Subtask, parent.ID, parent.TreeID
	}
	f.done(t, head, parent != nil)
	for _, role := range panel() {
		j := &work.Task{
			ID: work.TaskID(f.ids.New()), TreeID: t.TreeID, Kind: work.TopLevel, Name: string(role) + ": " + t.Name, StoryID: story.ID, Origin: work.FromSystem,
			Agent: work.AgentSpec{Type: "command", Role: role, Command: []string{"true"}}, Review: "none",
			Judges: &work.Judged{TaskID: t.ID, Commit: head}, Verdict: &work.Verdict{Approved: true, Reasoning: "It does what was asked."},
		}
		f.event("judge.spawned", j.ID)
		f.done(j, head, true)
		f.event("verdict.reported", j.ID)
	}
	f.event("decision.approved", t.ID)
	return t
}

// done completes a task, with the run that did it.
func (f *storyFiller) done(t *work.Task, head string, ran bool) {
	base := fmt.Sprintf("%040x", 7)
	t.ProjectID, t.Priority, t.AttemptNo, t.State, t.CreatedAt, t.UpdatedAt = f.project.ID, work.Normal, 1, work.Completed, f.at, f.at.Add(time.Second)
	t.Accepted = &work.Acceptance{By: work.System(), Commit: head, At: f.at}
	t.Result = &work.Result{Base: base, Head: head, Files: 2, Insertions: 31, Deletions: 4}
	t.Book = work.Book{Ran: true, Base: base, Head: head, Began: true, Number: 1}
	f.change.Tasks = append(f.change.Tasks, t)
	f.event("task.created", t.ID)
	if ran {
		x := &work.Execution{
			ID: work.ExecutionID(f.ids.New()), TaskID: t.ID, TreeID: t.TreeID, Kind: work.AgentRun, Number: 1, State: work.ExecutionEnded, Outcome: work.Success,
			Agent: "command", Base: base, Head: head, CreatedAt: f.at, StartedAt: f.at, EndedAt: f.at.Add(time.Second),
		}
		t.Book.Executions, t.Book.Current = 1, x.ID
		f.change.Executions = append(f.change.Executions, x)
		f.event("execution.started", t.ID)
		f.event("execution.ended", t.ID)
	}
	f.event("task.ready", t.ID)
	f.event("task.completed", t.ID)
}

func (f *storyFiller) event(kind string, task work.TaskID) {
	tree := f.change.Tasks[0].TreeID
	f.change.Events = append(f.change.Events, work.Event{At: f.at, Actor: work.System(), Tree: tree, Task: task, Kind: kind})
}

package app

import (
	"context"
	"slices"

	"github.com/claudomator/claudomator/internal/review"
	"github.com/claudomator/claudomator/internal/work"
)

// RunCaller is a running agent, known by its run token.
type RunCaller struct {
	Execution work.ExecutionID
	Task      work.TaskID
	Tree      work.TreeID
}

// RunTools is what a running agent can do about its own task; *Service
// implements it, and the run endpoint offers it. Every answer to a token that is
// unknown, foreign or over is an error, never "ok".
type RunTools interface {
	AuthenticateRun(ctx context.Context, secret string) (RunCaller, error)
	// Offered lists the tools that the caller's role may use.
	Offered(ctx context.Context, c RunCaller) ([]Tool, error)
	Spawn(ctx context.Context, c RunCaller, in SpawnInput) (work.TaskID, error)
	Suggest(ctx context.Context, c RunCaller, title, description string) (work.TaskID, error)
	Ask(ctx context.Context, c RunCaller, q work.Question) error
	Report(ctx context.Context, c RunCaller, r RunReport) error
	Context(ctx context.Context, c RunCaller) (*RunContext, error)
}

var _ RunTools = (*Service)(nil)

// Tool is a tool of the run endpoint.
type Tool string

// The tools.
const (
	ToolSpawn   Tool = "spawn_subtask"
	ToolSuggest Tool = "suggest_improvement"
	ToolAsk     Tool = "ask_user"
	ToolBlocker Tool = "report_blocker"
	ToolSummary Tool = "report_summary"
	ToolVerdict Tool = "report_verdict"
	ToolPlan    Tool = "report_plan"
	ToolLessons Tool = "report_lessons"
	ToolContext Tool = "get_context"
)

// Tools lists every tool.
func Tools() []Tool {
	return []Tool{ToolSpawn, ToolSuggest, ToolAsk, ToolBlocker, ToolSummary, ToolVerdict, ToolPlan, ToolLessons, ToolContext}
}

// SpawnInput is a subtask as an agent describes it.
type SpawnInput struct {
	Name               string
	Instructions       string
	DependsOn          []string // ids or names of the caller's own subtasks
	AcceptanceCriteria []string
	Role               work.Role // builder, or empty for the caller's own
}

// RunReport is what an agent says about its task; one field at a time.
type RunReport struct {
	Summary string
	Blocker string
	Verdict *work.Verdict
	Plan    *PlanInput
	Misfits []string // what of a plan (nil: all of it) could not be read: it is refused, with all else that is wrong
	Lessons *[]string
}

// RunContext is what an agent can know of its task.
type RunContext struct {
	Task         *work.Task         `json:"task"`
	Criteria     []string           `json:"criteria"`
	Parent       *work.Task         `json:"parent,omitempty"`
	Story        *StoryContext      `json:"story,omitempty"`
	Siblings     []*work.Task       `json:"siblings"`
	Lessons      []string           `json:"lessons"`
	Interactions []work.Interaction `json:"interactions"`
	Rejection    *Rejection         `json:"rejection,omitempty"`
	Attempt      *AttemptContext    `json:"attempt,omitempty"` // for a judge, as all below
	Gates        []work.GateResult  `json:"gates,omitempty"`
	Verdicts     []RoleVerdict      `json:"verdicts,omitempty"` // of this round
	History      []Round            `json:"history,omitempty"`
}

// StoryContext is what an agent can know of the story it works for.
type StoryContext struct {
	ID        work.StoryID `json:"id"`
	Name      string       `json:"name"`
	Goal      string       `json:"goal,omitempty"`
	Spec      string       `json:"spec,omitempty"`
	PlanError string       `json:"plan_error,omitempty"` // what is wrong with the plan that was reported last
}

// Rejection is why the attempt before was not accepted.
type Rejection struct {
	Comment  string        `json:"comment"`
	Findings work.Findings `json:"findings"`
}

// AttemptContext names the work under review.
type AttemptContext struct {
	TaskID work.TaskID `json:"task_id"`
	Commit string      `json:"commit"`
	Base   string      `json:"base"`
}

// RoleVerdict is a judge's verdict with its role.
type RoleVerdict struct {
	Role work.Role `json:"role"`
	work.Verdict
}

// Round is an earlier attempt at the place under review.
type Round struct {
	AttemptNo int           `json:"attempt_no"` // the rejected attempt
	Commit    string        `json:"commit"`
	Comment   string        `json:"comment"`
	Findings  work.Findings `json:"findings,omitempty"`
}

// AuthenticateRun finds the run a token belongs to, while it runs.
func (s *Service) AuthenticateRun(ctx context.Context, secret string) (RunCaller, error) {
	x, err := s.o.Lookup.ExecutionByToken(ctx, HashSecret(secret))
	if err != nil && work.CodeOf(err) != work.NotFound {
		return RunCaller{}, err
	}
	if err != nil || secret == "" || x.State != work.ExecutionRunning || x.Stopping != "" {
		return RunCaller{}, work.Errorf(work.Unauthenticated, "the run token is missing or not valid").
			WithHint("a token speaks for one run, and ends with it")
	}
	return RunCaller{Execution: x.ID, Task: x.TaskID, Tree: x.TreeID}, nil
}

func (c RunCaller) actor() work.Actor {
	return work.Actor{Kind: work.AgentActor, ID: string(c.Execution)}
}

// offers says which tools a task's run may use.
func offers(t *work.Task) []Tool {
	var tools []Tool
	if !t.Apart() {
		tools = append(tools, ToolSpawn)
		if t.ParentTaskID == "" {
			tools = append(tools, ToolSuggest)
		}
	}
	tools = append(tools, ToolAsk, ToolBlocker, ToolSummary)
	if t.Judges != nil {
		tools = append(tools, ToolVerdict)
	}
	if t.Role() == work.Planner {
		tools = append(tools, ToolPlan)
	}
	if t.Role() == work.Retro {
		tools = append(tools, ToolLessons)
	}
	return append(tools, ToolContext)
}

// Offered lists the tools that the caller's role may use.
func (s *Service) Offered(ctx context.Context, c RunCaller) ([]Tool, error) {
	var tools []Tool
	err := s.own(ctx, c, func(_ *work.Tree, t *work.Task) error {
		tools = offers(t)
		return nil
	})
	return tools, err
}

// own lets f look at the caller's task.
func (s *Service) own(ctx context.Context, c RunCaller, f func(*work.Tree, *work.Task) error) error {
	return s.View(ctx, c.Tree, func(tree *work.Tree) error {
		t := tree.Task(c.Task)
		if t == nil {
			return work.Errorf(work.NotFound, "task %s is gone", c.Task)
		}
		return f(tree, t)
	})
}

// use refuses a tool that the caller's role is not offered.
func (s *Service) use(ctx context.Context, c RunCaller, tool Tool) error {
	tools, err := s.Offered(ctx, c)
	if err != nil {
		return err
	}
	if !slices.Contains(tools, tool) {
		return work.Errorf(work.Forbidden, "this run may not use %s", tool).WithReason("not_offered").WithHint("offered: %v", tools)
	}
	return nil
}

// Spawn adds a subtask below the caller's task; a repeated name is the same one.
func (s *Service) Spawn(ctx context.Context, c RunCaller, in SpawnInput) (work.TaskID, error) {
	if err := s.use(ctx, c, ToolSpawn); err != nil {
		return "", err
	}
	if in.Role != work.NoRole && in.Role != work.Builder {
		return "", work.Errorf(work.Invalid, "role %q cannot be given to a subtask", in.Role).WithHint("builder, or leave it out for your own role")
	}
	return s.spawn(ctx, c, work.Spawn{Execution: c.Execution, Siblings: in.DependsOn, Input: work.TaskInput{
		Name: in.Name, Agent: work.AgentSpec{Role: in.Role, Instructions: in.Instructions},
		AcceptanceCriteria: in.AcceptanceCriteria, Kind: work.Subtask,
	}})
}

// Suggest files work outside the caller's task as an improvement.
func (s *Service) Suggest(ctx context.Context, c RunCaller, title, description string) (work.TaskID, error) {
	if err := s.use(ctx, c, ToolSuggest); err != nil {
		return "", err
	}
	return s.spawn(ctx, c, work.Spawn{Execution: c.Execution, Input: work.TaskInput{
		Name: title, Description: description, Kind: work.Improvement,
		Agent: work.AgentSpec{Instructions: description},
	}})
}

func (s *Service) spawn(ctx context.Context, c RunCaller, spawn work.Spawn) (id work.TaskID, err error) {
	if err := s.Do(ctx, c.Tree, c.actor(), spawn); err != nil {
		return "", err
	}
	err = s.own(ctx, c, func(tree *work.Tree, t *work.Task) error {
		id = tree.SpawnedID(s.o.IDs, t, spawn.Input.Name)
		return nil
	})
	return id, err
}

// Ask records a question; the run is then ended after a short grace, and goes
// on when a person has answered.
func (s *Service) Ask(ctx context.Context, c RunCaller, q work.Question) error {
	if err := s.Do(ctx, c.Tree, c.actor(), work.Ask{Execution: c.Execution, Question: q}); err != nil {
		return err
	}
	if s.o.Parked != nil {
		s.o.Parked(c.Execution)
	}
	return nil
}

// Report records a summary, a roadblock, or a judge's verdict.
func (s *Service) Report(ctx context.Context, c RunCaller, r RunReport) error {
	if r.Verdict != nil {
		if err := s.use(ctx, c, ToolVerdict); err != nil {
			return err
		}
		if err := s.counts(ctx, c, r.Verdict); err != nil {
			return err
		}
	}
	if r.Plan != nil || len(r.Misfits) > 0 {
		return s.reportPlan(ctx, c, r)
	}
	if r.Lessons != nil {
		return s.reportLessons(ctx, c, *r.Lessons)
	}
	return s.Do(ctx, c.Tree, c.actor(), work.Report{Execution: c.Execution, Summary: r.Summary, Blocker: r.Blocker, Verdict: r.Verdict})
}

// reportPlan takes a planner's plan, or tells it in place what is wrong with it;
// that is kept for the case that it does not mend it.
func (s *Service) reportPlan(ctx context.Context, c RunCaller, r RunReport) error {
	if err := s.use(ctx, c, ToolPlan); err != nil {
		return err
	}
	var plan *work.Plan
	if r.Plan != nil {
		plan = r.Plan.plan()
	}
	err := plan.Check(r.Misfits...)
	if err == nil {
		err = s.keepPlan(ctx, c, plan)
	}
	if e, ok := work.AsError(err); ok && e.Reason == "plan" {
		if kept := s.Do(ctx, c.Tree, c.actor(), work.PlanRefused{Execution: c.Execution, Problems: e.Message}); kept != nil {
			return kept
		}
	}
	return err
}

// keepPlan makes a plan its story's, if its branch is free.
func (s *Service) keepPlan(ctx context.Context, c RunCaller, plan *work.Plan) error {
	var story work.Story
	err := s.own(ctx, c, func(tree *work.Tree, t *work.Task) error {
		if tree.Story == nil {
			return work.Errorf(work.Forbidden, "task %s plans no story", t.ID).WithReason("not_a_planner")
		}
		story = *tree.Story
		return nil
	})
	if err != nil {
		return err
	}
	err = s.branching(ctx, story.ProjectID, story.ID, plan.BranchName, func() error {
		return s.Do(ctx, c.Tree, c.actor(), work.Report{Execution: c.Execution, Plan: plan})
	})
	if e, ok := work.AsError(err); ok && e.Reason == "branch_taken" {
		return plan.Check("branch_name: " + e.Message)
	}
	return err
}

// counts refuses an approval that would count as no verdict, while the judge can
// still mend it.
func (s *Service) counts(ctx context.Context, c RunCaller, v *work.Verdict) error {
	return s.own(ctx, c, func(_ *work.Tree, t *work.Task) error {
		unproven := review.Unproven(v, t.AcceptanceCriteria)
		if len(unproven) == 0 {
			return nil
		}
		return work.Errorf(work.Invalid, "the approval does not prove %d of the criteria", len(unproven)).WithReason("criteria").
			WithHint("an entry of criteria with met true and how it was verified, its text copied exactly, for each of: %q; or do not approve", unproven).
			With("criteria", unproven)
	})
}

// Context is what an agent can know of its task.
func (s *Service) Context(ctx context.Context, c RunCaller) (*RunContext, error) {
	var out *RunContext
	err := s.own(ctx, c, func(tree *work.Tree, t *work.Task) error {
		out = contextOf(tree, t)
		return nil
	})
	return out, err
}

func contextOf(tree *work.Tree, t *work.Task) *RunContext {
	out := &RunContext{
		Task: copied(t), Criteria: t.AcceptanceCriteria, Siblings: []*work.Task{}, Lessons: recent(tree.Project.Lessons), Interactions: t.Interactions,
	}
	if t.RejectionComment != "" || len(t.RejectionFindings) > 0 {
		out.Rejection = &Rejection{Comment: t.RejectionComment, Findings: t.RejectionFindings}
	}
	if y := tree.Story; y != nil {
		out.Story = &StoryContext{ID: y.ID, Name: y.Name, Goal: y.Goal, Spec: y.Spec, PlanError: y.PlanError}
	}
	if parent := tree.Task(t.ParentTaskID); parent != nil {
		out.Parent = copied(parent)
		for _, pos := range tree.Children(parent.ID) {
			if pos != t.Position() {
				out.Siblings = append(out.Siblings, copied(tree.Current(pos)))
			}
		}
	}
	if t.Judges != nil {
		out.judging(tree, t)
	}
	return out
}

// copied is a task for those who keep it after its tree was let go.
func copied(t *work.Task) *work.Task {
	c := *t
	return &c
}

// judging adds what a judge sees of the attempt under review.
func (out *RunContext) judging(tree *work.Tree, j *work.Task) {
	t := tree.Task(j.Judges.TaskID)
	if t == nil {
		return
	}
	out.Attempt = &AttemptContext{TaskID: t.ID, Commit: j.Judges.Commit, Base: t.Book.Base}
	for _, x := range tree.Runs(t.ID, work.GateRun) {
		if x.Commit == j.Judges.Commit && x.Outcome == work.Success {
			out.Gates = x.Gates
		}
	}
	for _, other := range tree.JudgesOf(t.ID) {
		if other.ID != j.ID && other.Verdict != nil && other.Judges.Commit == j.Judges.Commit && other.Book.ForRound == j.Book.ForRound {
			out.Verdicts = append(out.Verdicts, RoleVerdict{Role: other.Role(), Verdict: *other.Verdict})
		}
	}
	chain := tree.Chain(t.Position())
	for i, attempt := range chain[:max(len(chain)-1, 0)] {
		next := chain[i+1]
		out.History = append(out.History, Round{
			AttemptNo: attempt.AttemptNo, Commit: attempt.Book.Head, Comment: next.RejectionComment, Findings: next.RejectionFindings,
		})
	}
}

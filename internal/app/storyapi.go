package app

import (
	"github.com/claudomator/claudomator/internal/work"
)

// PlanInput is a plan as a person or a planner writes it. The names are those of
// the plan itself.
type PlanInput struct {
	Name               string          `json:"name" yaml:"name" doc:"Short title of the story" jsonschema:"short title of the story"`
	ProjectID          string          `json:"project_id,omitempty" yaml:"project_id" doc:"Project, by id or name; the only one there is when left out" jsonschema:"leave it out: the story has its project"`
	Goal               string          `json:"goal,omitempty" yaml:"goal" doc:"What is wanted, in a person's words" jsonschema:"what is wanted; left out, the story's goal stays"`
	BranchName         string          `json:"branch_name,omitempty" yaml:"branch_name" doc:"Branch of the result; story/NAME when left out" jsonschema:"branch of the result, story/kebab-case"`
	Spec               string          `json:"spec,omitempty" yaml:"spec" doc:"What is to be built, precisely; every judge sees it" jsonschema:"what is to be built, precisely, as Markdown; every judge sees it"`
	AcceptanceCriteria StringList      `json:"acceptance_criteria,omitempty" yaml:"acceptance_criteria" doc:"What must be true of the whole, each checkable by a reviewer" jsonschema:"what must be true of the whole, each checkable by a reviewer who sees nothing else"`
	Policy             string          `json:"policy,omitempty" yaml:"policy" doc:"Review policy: arbitrated (when left out) or checked" jsonschema:"arbitrated (when left out) or checked"`
	Tasks              []PlanTaskInput `json:"tasks,omitempty" yaml:"tasks" doc:"Parts that can be built on their own; none: a builder decides alone how to build the goal" jsonschema:"parts that can be built and judged on their own; none where the work is one coherent change"`
	Validation         ValidationList  `json:"validation,omitempty" yaml:"validation" doc:"Commands that show that the story works: one, or a list" jsonschema:"commands that show that the story works"`
}

// PlanTaskInput is a task of a plan.
type PlanTaskInput struct {
	Name               string             `json:"name" yaml:"name" doc:"Short title, unique in the plan" jsonschema:"short title, unique in the plan"`
	Instructions       string             `json:"instructions" yaml:"instructions" doc:"What exactly to do: files, functions, changes" jsonschema:"what exactly to do: files, functions, changes"`
	AcceptanceCriteria StringList         `json:"acceptance_criteria,omitempty" yaml:"acceptance_criteria" doc:"What must be true of it, each checkable by a reviewer" jsonschema:"what must be true of it, each checkable by a reviewer who sees nothing else"`
	DependsOn          []string           `json:"depends_on,omitempty" yaml:"depends_on" doc:"Names of tasks that must be integrated before" jsonschema:"names of tasks of the plan whose result this one needs"`
	Subtasks           []PlanSubtaskInput `json:"subtasks,omitempty" yaml:"subtasks" doc:"Steps after the task's own run, one after the other" jsonschema:"steps after the task's own run, one after the other"`
}

// PlanSubtaskInput is a step of a plan's task.
type PlanSubtaskInput struct {
	Name         string `json:"name" yaml:"name" doc:"Short title, unique in its task" jsonschema:"short title, unique in its task"`
	Instructions string `json:"instructions" yaml:"instructions" doc:"What exactly to do" jsonschema:"what exactly to do"`
}

func (in PlanInput) plan() *work.Plan {
	p := &work.Plan{
		Name: in.Name, Goal: in.Goal, BranchName: in.BranchName, Spec: in.Spec, AcceptanceCriteria: in.AcceptanceCriteria,
		Policy: in.Policy, Validation: work.Validations(in.Validation),
	}
	for _, t := range in.Tasks {
		task := work.PlanTask{Name: t.Name, Instructions: t.Instructions, AcceptanceCriteria: t.AcceptanceCriteria, DependsOn: t.DependsOn}
		for _, sub := range t.Subtasks {
			task.Subtasks = append(task.Subtasks, work.PlanSubtask(sub))
		}
		p.Tasks = append(p.Tasks, task)
	}
	return p
}

// ElaborateInput is a goal that a planner makes a plan for.
type ElaborateInput struct {
	Project        string `json:"project,omitempty" doc:"Name or id of the project; the only one there is when left out"`
	ProjectID      string `json:"project_id,omitempty" doc:"The same as project"`
	Goal           string `json:"goal" doc:"What is wanted, in your words"`
	Name           string `json:"name,omitempty" doc:"Short title; from the goal when left out"`
	Policy         string `json:"policy,omitempty" doc:"Review policy: arbitrated (when left out) or checked"`
	Epic           string `json:"epic,omitempty" doc:"Epic it belongs to, by id or name"`
	Agent          string `json:"agent,omitempty" doc:"Agent type of the planner; that of the role or project when left out"`
	IdempotencyKey string `json:"-"`
}

// Elaborated names a story and the task that plans it.
type Elaborated struct {
	StoryID work.StoryID `json:"story_id"`
	TaskID  work.TaskID  `json:"task_id"`
}

// ApproveInput is a whole plan, approved as it stands.
type ApproveInput struct {
	PlanInput      `yaml:",inline"`
	Project        string `json:"project,omitempty" yaml:"project" doc:"The same as project_id"`
	Epic           string `json:"epic,omitempty" yaml:"epic" doc:"Epic it belongs to, by id or name"`
	Draft          bool   `json:"draft,omitempty" yaml:"draft" doc:"Only keep it as a draft, to be approved later"`
	IdempotencyKey string `json:"-" yaml:"-"`
}

// Approved is a story whose work has begun; the ids are those of its plan's
// tasks, in order.
type Approved struct {
	Story   *StoryView    `json:"story"`
	TaskIDs []work.TaskID `json:"task_ids"`
}

// StoryPatch changes a story; nil fields stay. After its approval only name, epic
// and, until it is shipped, branch can be changed.
type StoryPatch struct {
	Name               *string     `json:"name,omitempty" doc:"Short title"`
	Goal               *string     `json:"goal,omitempty" doc:"What is wanted"`
	Spec               *string     `json:"spec,omitempty" doc:"What is to be built, precisely"`
	Policy             *string     `json:"policy,omitempty" doc:"Review policy: arbitrated or checked"`
	BranchName         *string     `json:"branch_name,omitempty" doc:"Branch of the result"`
	AcceptanceCriteria *StringList `json:"acceptance_criteria,omitempty" doc:"What must be true of the whole"`
	Epic               *string     `json:"epic,omitempty" doc:"Epic it belongs to, by id or name; empty: none"`
	Plan               *PlanInput  `json:"plan,omitempty" doc:"The whole plan, in place of the one there is"`
}

// StoryQuery chooses stories for a list.
type StoryQuery struct {
	Project  string             `query:"project" json:"project,omitempty" doc:"Only of this project"`
	Epic     string             `query:"epic" json:"epic,omitempty" doc:"Only of this epic"`
	Statuses []work.StoryStatus `query:"status,explode" json:"status,omitempty" doc:"Only with one of these statuses; may be repeated"`
	Text     string             `query:"text" json:"text,omitempty" doc:"Only with this text in name or goal"`
	After    string             `query:"after" json:"after,omitempty" doc:"The next of the page before"`
	Limit    int                `query:"limit" minimum:"0" json:"limit,omitempty" doc:"Stories a page, at most 500; 50 when left out"`
}

// StoryView is a story, what can be asked of it now, and how far it is.
type StoryView struct {
	work.Story
	Actions  []work.Act    `json:"actions"`
	RootID   work.TaskID   `json:"current_root_id"` // the attempt that stands at its root
	Needs    string        `json:"needs,omitempty" doc:"What it waits for from a person, in words; left out: nothing"`
	Rests    bool          `json:"rests" doc:"Nothing automatic is left to happen to it: it has ended, or waits for a person"`
	Paused   bool          `json:"paused,omitempty" doc:"Its ship waits until a conflict of its landing is resolved"`
	Planner  work.TaskID   `json:"planner_id,omitempty"`
	TaskIDs  []work.TaskID `json:"task_ids"` // of its plan's tasks, in order
	Progress Progress      `json:"progress"`
	Attempts int           `json:"attempts"` // of its root
	SpentUSD float64       `json:"spent_usd"`
}

// Progress counts the places of a story's tree below its root.
type Progress struct {
	Tasks     int `json:"tasks"`
	Completed int `json:"completed"`
	Running   int `json:"running"`
	Waiting   int `json:"waiting"` // for a person
}

// Shipment answers a press of Ship.
type Shipment struct {
	Message string       `json:"message"`
	StoryID work.StoryID `json:"story_id"`
	Reports []string     `json:"reports,omitempty" doc:"Reports of checkers that are open, and are shipped over"`
}

// ShipRequest is a press of Ship.
type ShipRequest struct{ IdempotencyKey string }

// EpicInput is what an epic is made with.
type EpicInput struct {
	Name string `json:"name" doc:"Short title"`
}

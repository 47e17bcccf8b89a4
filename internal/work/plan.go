package work

import (
	"fmt"
	"slices"
	"strings"
)

// Plan is what a story is to be built from: written by a planner or a person,
// approved by a person. The JSON names are those of a plan file.
type Plan struct {
	Name               string      `json:"name" doc:"Short title of the story"`
	Goal               string      `json:"goal,omitempty" doc:"What is wanted, in a person's words"`
	BranchName         string      `json:"branch_name,omitempty" doc:"Branch of the result, such as story/short-name; from the name when left out"`
	Spec               string      `json:"spec,omitempty" doc:"What is to be built, precisely; every judge sees it"`
	AcceptanceCriteria []string    `json:"acceptance_criteria,omitempty" doc:"What must be true of the whole, each checkable by a reviewer"`
	Policy             string      `json:"policy,omitempty" doc:"arbitrated (when left out) or checked"`
	Tasks              []PlanTask  `json:"tasks,omitempty" doc:"Parts that can be built on their own; none: the story's root decides alone"`
	Validation         Validations `json:"validation,omitempty" doc:"Commands that show that the story works"`
}

// PlanTask is one task of a plan, built by a builder.
type PlanTask struct {
	Name               string        `json:"name" doc:"Short title, unique in the plan"`
	Instructions       string        `json:"instructions" doc:"What exactly to do: files, functions, changes"`
	AcceptanceCriteria []string      `json:"acceptance_criteria,omitempty" doc:"What must be true of it, each checkable by a reviewer"`
	DependsOn          []string      `json:"depends_on,omitempty" doc:"Names of tasks that must be integrated before"`
	Subtasks           []PlanSubtask `json:"subtasks,omitempty" doc:"Steps after the task's own run, one after the other"`
}

// PlanSubtask is a step of a plan's task.
type PlanSubtask struct {
	Name         string `json:"name" doc:"Short title, unique in its task"`
	Instructions string `json:"instructions" doc:"What exactly to do"`
}

// The policies that a story can have; the interpreter knows more.
const (
	PolicyArbitrated = "arbitrated"
	PolicyChecked    = "checked"
)

// StoryPolicies are the review policies that a story can have.
func StoryPolicies() []string { return []string{PolicyArbitrated, PolicyChecked} }

const (
	maxPlanTasks    = 200
	maxPlanProblems = 50 // that are named one by one
)

// problems collects what is wrong, so that all of it is said at once.
type problems []string

func (p *problems) say(format string, args ...any) { *p = append(*p, fmt.Sprintf(format, args...)) }

func (p *problems) text(name, text string, most int, lines bool) {
	if err := CheckText(name, text, most, lines); err != nil {
		p.say("%v", err)
	}
}

func (p *problems) list(name string, list []string) {
	if len(list) > maxItems {
		p.say("%s has %d entries, at most %d are taken", name, len(list), maxItems)
		return
	}
	for i, item := range list {
		if strings.TrimSpace(item) == "" {
			p.say("%s entry %d is empty", name, i+1)
		}
		p.text(fmt.Sprintf("%s entry %d", name, i+1), item, maxItem, true)
	}
}

// Check refuses a plan that breaks a rule, or of which something could not be read
// (nil: all of it), with everything that is wrong under the detail "problems".
func (p *Plan) Check(unread ...string) error {
	wrong := problems(slices.Clone(unread))
	if p != nil {
		p.checkStory(&wrong)
		p.checkTasks(&wrong)
		p.checkValidation(&wrong)
	}
	if len(wrong) == 0 {
		return nil
	}
	what := "a problem"
	if number := len(wrong); number > 1 {
		what = fmt.Sprintf("%d problems", number)
	}
	if more := len(wrong) - maxPlanProblems; more > 0 {
		wrong = append(wrong[:maxPlanProblems], fmt.Sprintf("and %d more", more))
	}
	return Errorf(Invalid, "the plan has %s: %s", what, strings.Join(wrong, "; ")).WithReason("plan").With("problems", []string(wrong)).
		WithHint("mend them and give the whole plan again")
}

func (p *Plan) checkStory(wrong *problems) {
	if strings.TrimSpace(p.Name) == "" {
		wrong.say("name is missing")
	}
	wrong.text("name", p.Name, maxName, false)
	wrong.text("goal", p.Goal, maxText, true)
	wrong.text("spec", p.Spec, maxText, true)
	wrong.list("acceptance_criteria", p.AcceptanceCriteria)
	if p.BranchName != "" && !ValidBranch(p.BranchName) {
		wrong.say("branch_name %.100q is not a legal git branch name, such as story/short-name", p.BranchName)
	}
	if p.Policy != "" && !slices.Contains(StoryPolicies(), p.Policy) {
		wrong.say("policy %.60q is unknown: %s", p.Policy, strings.Join(StoryPolicies(), " or "))
	}
	if p.Policy == PolicyChecked && len(p.Tasks) == 0 {
		wrong.say("tasks: at least one is needed under policy checked")
	}
	if len(p.Tasks) > maxPlanTasks {
		wrong.say("tasks: %d, at most %d are taken", len(p.Tasks), maxPlanTasks)
	}
}

func (p *Plan) checkTasks(wrong *problems) {
	names := map[string]bool{}
	for i := range p.Tasks {
		t := &p.Tasks[i]
		at := fmt.Sprintf("tasks[%d] %.60q", i, t.Name)
		if strings.TrimSpace(t.Name) == "" {
			wrong.say("%s: name is missing", at)
		} else if names[strings.TrimSpace(t.Name)] {
			wrong.say("%s: another task has that name", at)
		}
		names[strings.TrimSpace(t.Name)] = true
		wrong.text(at+": name", t.Name, maxName, false)
		if strings.TrimSpace(t.Instructions) == "" {
			wrong.say("%s: instructions are missing", at)
		}
		wrong.text(at+": instructions", t.Instructions, maxText, true)
		wrong.list(at+": acceptance_criteria", t.AcceptanceCriteria)
		steps := map[string]bool{}
		for j, sub := range t.Subtasks {
			if strings.TrimSpace(sub.Name) == "" || strings.TrimSpace(sub.Instructions) == "" {
				wrong.say("%s: subtasks[%d] needs a name and instructions", at, j)
			} else if steps[strings.TrimSpace(sub.Name)] {
				wrong.say("%s: two subtasks are named %.60q", at, sub.Name)
			}
			steps[strings.TrimSpace(sub.Name)] = true
			wrong.text(at+": subtask name", sub.Name, maxName, false)
			wrong.text(at+": subtask instructions", sub.Instructions, maxText, true)
		}
		if len(t.Subtasks) > maxPlanTasks {
			wrong.say("%s: %d subtasks, at most %d are taken", at, len(t.Subtasks), maxPlanTasks)
		}
	}
	for i := range p.Tasks {
		for _, d := range p.Tasks[i].DependsOn {
			if !names[strings.TrimSpace(d)] {
				wrong.say("tasks[%d] %.60q: depends_on names no task of the plan: %.60q", i, p.Tasks[i].Name, d)
			}
		}
	}
	if circle := p.circle(); circle != nil {
		for i, name := range circle {
			circle[i] = fmt.Sprintf("%.60s", name)
		}
		wrong.say("depends_on goes in a circle: %s", strings.Join(circle, " → "))
	}
}

// circle is a way from a task over its dependencies back to itself, nil if none.
func (p *Plan) circle() []string {
	needs := map[string][]string{}
	for _, t := range p.Tasks {
		needs[strings.TrimSpace(t.Name)] = t.DependsOn
	}
	done := map[string]bool{}
	var way []string
	var walk func(name string) []string
	walk = func(name string) []string {
		if at := slices.Index(way, name); at >= 0 {
			return append(slices.Clone(way[at:]), name)
		}
		if done[name] {
			return nil
		}
		way = append(way, name)
		for _, d := range needs[name] {
			if circle := walk(strings.TrimSpace(d)); circle != nil {
				return circle
			}
		}
		way, done[name] = way[:len(way)-1], true
		return nil
	}
	for _, t := range p.Tasks {
		if circle := walk(strings.TrimSpace(t.Name)); circle != nil {
			return circle
		}
	}
	return nil
}

func (p *Plan) checkValidation(wrong *problems) {
	if len(p.Validation) > maxItems {
		wrong.say("validation has %d entries, at most %d are taken", len(p.Validation), maxItems)
	}
	for i, v := range p.Validation {
		at := fmt.Sprintf("validation[%d]", i)
		switch v.Type {
		case BuildValidation, TestValidation, SmokeValidation:
		default:
			wrong.say("%s: type %.60q is unknown: build, test or smoke", at, v.Type)
		}
		if len(v.Steps) == 0 {
			wrong.say("%s: steps are missing", at)
		}
		wrong.list(at+": steps", v.Steps)
		wrong.text(at+": success_criteria", v.SuccessCriteria, maxItem, true)
	}
}

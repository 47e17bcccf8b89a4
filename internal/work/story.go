package work

import (
	"slices"
	"time"
)

// Story is one deliverable; it owns one task tree, whose root never changes its
// place, and the ship decision.
type Story struct {
	ID                 StoryID           `json:"id"`
	ProjectID          ProjectID         `json:"project_id"`
	EpicID             EpicID            `json:"epic_id,omitempty"`
	Name               string            `json:"name"`
	Goal               string            `json:"goal,omitempty"`
	Spec               string            `json:"spec,omitempty"`
	Status             StoryStatus       `json:"status"`
	Policy             string            `json:"policy,omitempty"` // arbitrated (also when empty) or checked
	BranchName         string            `json:"branch_name,omitempty"`
	AcceptanceCriteria []string          `json:"acceptance_criteria,omitempty"`
	Plan               *Plan             `json:"plan,omitempty"`
	PlanError          string            `json:"plan_error,omitempty"` // what is wrong with the planner's last plan
	Validation         Validations       `json:"validation,omitempty"`
	RootTaskID         TaskID            `json:"root_task_id"`
	ValidationResult   *ValidationResult `json:"validation_result,omitempty"` // the last one at Ship
	Ship               *Ship             `json:"ship,omitempty"`              // the last Ship, under way or over
	Shipped            *Shipped          `json:"shipped,omitempty"`
	CreatedAt          time.Time         `json:"created_at"`
	UpdatedAt          time.Time         `json:"updated_at"`

	// PlannedBy is the planner whose plan the story has.
	PlannedBy TaskID `json:"planned_by,omitempty"`
	// Named is true when a person has named it: a planner's plan does not.
	Named bool `json:"named,omitempty"`
}

// Checked is true under policy checked: each of the plan's tasks has a checker, and
// nothing else is judged.
func (y *Story) Checked() bool { return y.Policy == PolicyChecked }

// Epic groups stories under a name.
type Epic struct {
	ID        EpicID    `json:"id"`
	Name      string    `json:"name"`
	CreatedAt time.Time `json:"created_at"`
}

// ShipMode is how a project's stories are shipped.
type ShipMode string

// The ship modes.
const (
	ShipDirectly    ShipMode = ""             // the target branch is moved
	ShipPullRequest ShipMode = "pull_request" // the story branch is pushed, and merged at the forge
)

// Forge says where a project's pull requests are opened; what is empty follows
// from the remote's address.
type Forge struct {
	Kind     string `json:"kind,omitempty" doc:"github or gitea (Forgejo too); by the remote's host when left out"`
	API      string `json:"api,omitempty" doc:"Base address of its API, where it is not the host's usual one"`
	TokenEnv string `json:"token_env,omitempty" doc:"Name of the server's environment variable that holds the token"`
}

// ValidationType says when a validation's commands run.
type ValidationType string

// The types of validation.
const (
	BuildValidation ValidationType = "build" // gates of the root, before REVIEW_READY …
	TestValidation  ValidationType = "test"  // … and so are these
	SmokeValidation ValidationType = "smoke" // on what was deployed
)

// Validation is how a story is shown to work: shell commands that must all pass.
type Validation struct {
	Type            ValidationType `json:"type" yaml:"type" doc:"build or test: before review; smoke: after the deployment"`
	Steps           []string       `json:"steps" yaml:"steps" doc:"Shell commands, each of which must end with exit code 0"`
	SuccessCriteria string         `json:"success_criteria,omitempty" yaml:"success_criteria" doc:"What their success shows, in words"`
}

// Validations is a list of them.
type Validations []Validation

// Steps are the commands of some types of validation, in order.
func (v Validations) Steps(types ...ValidationType) []string {
	var out []string
	for _, one := range v {
		if slices.Contains(types, one.Type) {
			out = append(out, one.Steps...)
		}
	}
	return out
}

// ValidationResult is what the validation of a commit found.
type ValidationResult struct {
	Commit string       `json:"commit"`
	Passed bool         `json:"passed"`
	Steps  []GateResult `json:"steps"`
	At     time.Time    `json:"at"`
}

// ShipStep is what a ship does now, or did last.
type ShipStep string

// The steps of a ship, in order.
const (
	ShipAccept   ShipStep = "accept"       // what is READY still is being integrated (policy checked)
	ShipValidate ShipStep = "validate"     // build and test steps on the integrated root (policy checked)
	ShipLand     ShipStep = "land"         // the target is moved …
	ShipPull     ShipStep = "pull_request" // … or a pull request is followed until it is merged
	ShipPush     ShipStep = "push"         // the target is pushed to the remote
	ShipDeploy   ShipStep = "deploy"
	ShipSmoke    ShipStep = "smoke"
)

// Ship is one press of Ship, and how far it came.
type Ship struct {
	By        Actor       `json:"by"`
	StartedAt time.Time   `json:"started_at"`
	Target    string      `json:"target"` // the branch, as it was when Ship was pressed
	Step      ShipStep    `json:"step"`
	Resume    ShipStep    `json:"resume,omitempty"` // where a ship goes on once the landing is found again
	MergeID   MergeID     `json:"merge_id,omitempty"`
	Commit    string      `json:"commit,omitempty"` // landed
	Execution ExecutionID `json:"execution_id,omitempty"`
	Pull      *Pull       `json:"pull_request,omitempty"`
	Error     string      `json:"error,omitempty"`   // why it stopped
	Reports   []string    `json:"reports,omitempty"` // of checkers, open when Ship was pressed
}

// Pull is a pull request at a forge.
type Pull struct {
	Number int       `json:"number"`
	URL    string    `json:"url"`
	Head   string    `json:"head"` // commit
	State  PullState `json:"state"`
	Checks string    `json:"checks,omitempty"`
}

// PullState is where a pull request stands at its forge.
type PullState string

// The states of a pull request.
const (
	PullOpen   PullState = "open"
	PullMerged PullState = "merged"
	PullClosed PullState = "closed"
)

// Shipped is what became of a story.
type Shipped struct {
	Commit string    `json:"commit"`
	At     time.Time `json:"at"`
}

// Validations of the story, at its root: none elsewhere.
func (t *Tree) validation(task *Task, types ...ValidationType) []string {
	if t.Story == nil || task.Position() != t.Root() {
		return nil
	}
	return t.Story.Validation.Steps(types...)
}

// Commands are what the server runs for an execution of a task that is not the
// task's own: its gates, the project's deploy command, or the smoke validation.
func (t *Tree) Commands(task *Task, kind ExecutionKind) []string {
	switch kind {
	case GateRun:
		return slices.Concat(task.Gates, t.Project.Validate, t.validation(task, BuildValidation, TestValidation))
	case DeployRun:
		if t.Project.Deploy != "" {
			return []string{t.Project.Deploy}
		}
	case SmokeRun:
		return t.validation(task, SmokeValidation)
	case AgentRun, SubmitRun:
	}
	return nil
}

// Planning is the planner at work on the tree's story, nil when there is none.
func (t *Tree) Planning() *Task {
	for _, task := range t.order {
		if task.Role() == Planner && task.ParentTaskID == "" && !task.State.Ended() {
			return task
		}
	}
	return nil
}

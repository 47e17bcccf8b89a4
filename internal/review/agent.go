package review

import (
	"cmp"
	"slices"

	"github.com/claudomator/claudomator/internal/work"
)

// Rules is what must be known besides the tree of who is there to work and to judge.
type Rules struct {
	Roles  map[work.Role]work.RoleConfig // the active role configurations
	Usable func(agent string) bool       // whether an agent program can be used here
	// Default is the agent of tasks that nothing nearer gives one.
	Default string
	Models  map[string]string // by agent type, where nothing nearer names one
	// Judges are the agents that this server's configuration names, in the order in
	// which they are asked to judge what another one has built.
	Judges []string
}

// Worker resolves who does a task's run, and with what; see Agent. A judge and a
// retro have been told by Judge when they were spawned, the model included.
func (r Rules) Worker(tree *work.Tree, t *work.Task) (work.AgentSpec, error) {
	if t.Judges != nil || t.Role() == work.Retro {
		r.Roles = nil
	}
	return r.Agent(t.Agent, above(tree, t), tree.Project)
}

// above is the agent of the nearest ancestor that names one.
func above(tree *work.Tree, t *work.Task) work.AgentSpec {
	for p := tree.Task(t.ParentTaskID); p != nil; p = tree.Task(p.ParentTaskID) {
		if spec := p.Agent.Typed(); spec.Type != "" {
			return spec
		}
	}
	return work.AgentSpec{}
}

// Agent completes what a task says of its agent by the role's configuration, the
// agent above it, the project's and the server's, in this order. Invalid, with reason
// "no_agent", when none of them names a type.
func (r Rules) Agent(spec, above work.AgentSpec, project work.Project) (work.AgentSpec, error) {
	role := r.Roles[spec.Role]
	if spec.Type == "" && len(spec.Command) == 0 {
		spec.Type, spec.Command = role.Agent, role.Command
	}
	if role.Agent == "" || spec.Type == role.Agent { // a model belongs to its agent
		spec.Model = cmp.Or(spec.Model, role.Model)
	}
	spec = spec.Typed()
	if spec.Type == "" && above.Type != "" {
		spec.Type, spec.Command, spec.Model = above.Type, above.Command, cmp.Or(spec.Model, above.Model)
	}
	spec.Type = cmp.Or(spec.Type, project.Agent, r.Default)
	spec.Model = cmp.Or(spec.Model, r.Models[spec.Type])
	if spec.AllowedTools == nil {
		spec.AllowedTools = role.AllowedTools
	}
	if spec.MaxBudgetUSD == 0 {
		spec.MaxBudgetUSD = role.MaxBudgetUSD
	}
	if spec.Type == work.CommandAgent && len(spec.Command) == 0 {
		spec.Command = []string{"sh"}
	}
	if spec.Type == "" {
		return spec, work.Errorf(work.Invalid, "no agent is chosen for this task").WithReason("no_agent").
			WithHint("give --agent TYPE, or set one: claudomator project set NAME --agent TYPE; for all projects: the server's setting agent")
	}
	return spec, nil
}

// judgeSpec resolves who judges a task.
func (r Rules) judgeSpec(tree *work.Tree, task *work.Task, role work.Role) (work.AgentSpec, bool) {
	return r.Judge(tree.Project, r.builder(tree, task), role)
}

// Judge resolves who judges what builder has built: the role's configuration, else the
// project's default, else the builder; but where these would let an agent judge what it
// has built itself, another one that the server is set up for. False when that cannot
// be used: not installed, or a command without a command of its own.
func (r Rules) Judge(project work.Project, builder work.AgentSpec, role work.Role) (work.AgentSpec, bool) {
	config := r.Roles[role]
	spec := work.AgentSpec{
		Type: config.Agent, Model: config.Model, Command: slices.Clone(config.Command),
		AllowedTools: slices.Clone(config.AllowedTools), MaxBudgetUSD: config.MaxBudgetUSD,
	}
	spec = spec.Typed()
	spec.Type = cmp.Or(spec.Type, project.Agent)
	if config.Agent == "" && spec.Type != work.CommandAgent {
		if spec.Type == "" {
			spec.Type, spec.Model = builder.Type, cmp.Or(spec.Model, builder.Model)
		}
		if other := r.other(builder.Type); spec.Type == builder.Type && other != "" {
			spec.Type, spec.Model = other, ""
		}
	}
	if spec.AllowedTools == nil {
		spec.AllowedTools = []string{"Bash", "Read", "Glob", "Grep"}
	}
	if spec.MaxBudgetUSD == 0 {
		spec.MaxBudgetUSD = judgeBudget
	}
	if spec.Type == work.CommandAgent {
		return spec, len(spec.Command) > 0
	}
	return spec, spec.Type != "" && r.Usable != nil && r.Usable(spec.Type)
}

// builder is the agent that has built a task's work, or would.
func (r Rules) builder(tree *work.Tree, task *work.Task) work.AgentSpec {
	spec := task.Agent.Typed()
	for _, x := range tree.Runs(task.ID, work.AgentRun) {
		if spec.Type == "" {
			spec = work.AgentSpec{Type: x.Agent, Model: x.Model}
		}
	}
	if spec.Type == "" {
		spec, _ = r.Worker(tree, task)
	}
	return spec
}

// other is an agent to judge what builder has built, "" if there is none. What a
// command has built is judged by whom a person names.
func (r Rules) other(builder string) string {
	if builder == work.CommandAgent {
		return ""
	}
	for _, name := range r.Judges {
		if name != builder && name != work.CommandAgent && r.Usable != nil && r.Usable(name) {
			return name
		}
	}
	return ""
}

const judgeBudget = 0.50 // USD

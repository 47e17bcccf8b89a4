package review

import (
	"fmt"
	"strings"

	"github.com/claudomator/claudomator/internal/work"
)

// Policy says how a READY task is judged. It is a value: new behaviour is a
// field whose zero means "off", or a new preset, never a second code path.
type Policy struct {
	Name    string
	Gates   bool        // the server runs the gate commands first
	Decide  bool        // a failing gate is a rejection, whatever anyone says
	Panel   []work.Role // judges of one attempt, in parallel
	Arbiter work.Role   // decides over the panel's verdicts; none: all must approve
	Auto    bool        // an approval accepts without a person
	Fix     bool        // a rejection is answered by a fix attempt; else it is reported
	Fixes   int         // cap of fix attempts, a person's included
}

// unjudged is true where nothing is asked of the work before it is accepted.
func (p Policy) unjudged() bool { return p.Auto && !p.Gates && len(p.Panel) == 0 }

// defaultFixes is max_fix_attempts where a project does not say otherwise.
const defaultFixes = 3

// presets lists the policies a task, story or project can name.
func presets() []Policy {
	return []Policy{
		{Name: "none", Auto: true, Fixes: defaultFixes},
		{Name: "human", Gates: true, Fixes: defaultFixes},
		{Name: work.PolicyChecked, Gates: true, Decide: true, Panel: []work.Role{work.Checker}, Auto: true, Fixes: defaultFixes},
		{
			Name: work.PolicyArbitrated, Gates: true, Decide: true,
			Panel:   []work.Role{work.EvaluatorCorrectness, work.EvaluatorTests, work.EvaluatorSecurity, work.EvaluatorQuality},
			Arbiter: work.Arbitration, Auto: true, Fix: true, Fixes: defaultFixes,
		},
	}
}

// Preset is a policy by its name.
func Preset(name string) (Policy, error) {
	var names []string
	for _, p := range presets() {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return Policy{}, work.Errorf(work.Invalid, "there is no review policy %q", name).WithHint("one of: %s", strings.Join(names, ", "))
}

// CheckRule tells whether an entry of a project's policies map can be used:
// "ROLE/DEPTH" (either may be "*") and a policy's name.
func CheckRule(key, policy string) error {
	role, depth, ok := strings.Cut(key, "/")
	digits := depth != "" && strings.Trim(depth, "0123456789") == ""
	if !ok || role == "" || (depth != "*" && !digits) {
		return work.Errorf(work.Invalid, "policies key %q is not ROLE/DEPTH", key).WithHint("for example builder/0, builder/* or */1")
	}
	_, err := Preset(policy)
	return err
}

// For chooses the policy of a task: its own, else its story's, else the
// project's map, else the project's, else by role and depth; never its
// parent's.
func For(tree *work.Tree, task *work.Task) Policy {
	p := choose(tree, task)
	if n := tree.Project.MaxFixes; n != nil {
		p.Fixes = *n
	}
	if p.Arbiter != "" && len(tree.Project.Evaluators) > 0 {
		p.Panel = tree.Project.Evaluators
	}
	return p
}

func choose(tree *work.Tree, task *work.Task) Policy {
	depth := tree.Depth(task)
	names := []string{task.Review, storyPolicy(tree, task, depth), mapped(tree.Project.Policies, task.Role(), depth)}
	if depth == 0 {
		names = append(names, tree.Project.Policy)
	}
	switch {
	case task.Unreviewed():
		names = []string{"none"}
	case task.Role() == work.Builder:
		names = append(names, work.PolicyArbitrated)
	case depth == 0:
		names = append(names, work.PolicyChecked)
	default:
		names = append(names, "none")
	}
	for _, name := range names {
		if name == "" {
			continue
		}
		p, err := Preset(name)
		if err != nil {
			break
		}
		return p
	}
	human, _ := Preset("human") // an unknown name never accepts anything
	return human
}

func storyPolicy(tree *work.Tree, task *work.Task, depth int) string {
	if tree.Story == nil {
		return ""
	}
	switch tree.Story.Policy {
	case work.PolicyChecked:
		if depth == 1 {
			return work.PolicyChecked
		}
		return "none"
	case "", work.PolicyArbitrated:
		if task.Role() == work.Builder {
			return work.PolicyArbitrated
		}
	}
	return ""
}

// mapped finds the closest entry: exact role and depth, then the role, then the
// depth, then "*/*".
func mapped(policies map[string]string, role work.Role, depth int) string {
	name := string(role)
	if role == work.NoRole {
		name = "none"
	}
	for _, key := range []string{fmt.Sprintf("%s/%d", name, depth), name + "/*", fmt.Sprintf("*/%d", depth), "*/*"} {
		if p, ok := policies[key]; ok {
			return p
		}
	}
	return ""
}

// MaxFixes is the cap of fix attempts for a task under its policy.
func MaxFixes(tree *work.Tree) func(*work.Task) int {
	return func(t *work.Task) int { return For(tree, t).Fixes }
}

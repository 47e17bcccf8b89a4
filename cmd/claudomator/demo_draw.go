package main

import (
	"fmt"
	"strings"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

// What the demo draws: a plan, a tree, a proof.

// drawPlan shows what the planner proposes: what is to be built, and how it will be
// known that it is.
func (s *show) drawPlan(story *work.Story) {
	for _, t := range story.Plan.Tasks {
		s.row(t.Name, t.Instructions)
		s.criteria("", t.AcceptanceCriteria)
	}
	s.criteria("the whole", story.AcceptanceCriteria)
	for _, v := range story.Validation {
		s.row(string(v.Type), strings.Join(v.Steps, "; "))
	}
}

func (s *show) criteria(name string, criteria []string) {
	for _, c := range criteria {
		s.row(name, "→ "+c)
		name = ""
	}
}

// drawTree draws the story's root and all below it, with who approved it.
func (s *show) drawTree(root *app.TreeNode, status work.StoryStatus) {
	var place func(n *app.TreeNode, state, first, rest string)
	place = func(n *app.TreeNode, state, first, rest string) {
		s.say("   %-12s  %-17s  %s", state, first+n.Task.Name, approvals(n))
		for i, child := range n.Children {
			to, on := "├─ ", "│  "
			if i == len(n.Children)-1 {
				to, on = "└─ ", "   "
			}
			place(child, string(child.Task.State), rest+to, rest+on)
		}
	}
	place(root, string(status), "", "")
}

// approvals says who approved a place, and at which attempt.
func approvals(n *app.TreeNode) string {
	approved, against := 0, ""
	for _, j := range n.Judges {
		if j.Verdict != nil && j.Verdict.Approved {
			approved++
		} else {
			against += ", not " + dimension(j.Agent.Role)
		}
	}
	text := fmt.Sprintf("approved by %d of %d%s", approved, len(n.Judges), against)
	if n.Task.AttemptNo > 1 {
		text += fmt.Sprintf(", in attempt %d", n.Task.AttemptNo)
	}
	return text
}

// drawProof shows how each criterion of the whole was verified, and who was of
// another mind than the arbiter.
func (s *show) drawProof(root *app.TreeNode) {
	for _, j := range root.Judges {
		if j.Agent.Role != work.Arbitration || j.Verdict == nil {
			continue
		}
		for _, c := range j.Verdict.Criteria {
			s.row("✓ proven", fmt.Sprintf("%s (%s)", c.Criterion, c.How))
		}
		for _, other := range root.Judges {
			if other.Verdict == nil || other.Verdict.Approved == j.Verdict.Approved {
				continue
			}
			for _, f := range other.Verdict.Findings {
				s.row("✗ "+dimension(other.Agent.Role), fmt.Sprintf("%s:%d %s", f.File, f.Line, f.Text))
			}
		}
		s.row("✓ arbiter", j.Verdict.Reasoning)
	}
}

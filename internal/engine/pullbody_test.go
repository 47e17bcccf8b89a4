package engine

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudomator/claudomator/internal/work"
)

// A pull request tells what a story is for, what was to be true and how the accepted
// commit was found to be so; what agents wrote calls nobody and closes nothing.
func TestPullBody(t *testing.T) {
	t.Parallel()
	judge := func(id work.TaskID, role work.Role, commit string, approved bool, how string) *work.Task {
		return &work.Task{
			ID: id, AttemptNo: 1, Agent: work.AgentSpec{Role: role}, Judges: &work.Judged{TaskID: "r", Commit: commit},
			Verdict: &work.Verdict{Approved: approved, Criteria: []work.Criterion{{Criterion: "it\nholds", Met: true, How: how}}},
		}
	}
	root := &work.Task{ID: "r", AttemptNo: 1, AcceptanceCriteria: []string{"it\nholds", "it shines"}, Accepted: &work.Acceptance{Commit: "c2"}}
	silent := judge("e", work.EvaluatorQuality, "c2", true, "")
	silent.Verdict = nil
	tree := work.NewTree("r", []*work.Task{
		root,
		judge("a", work.EvaluatorTests, "c2", true, "`go test`:\nexit 0, @everyone, closes #1"),
		judge("b", work.EvaluatorSecurity, "c2", false, "not this"),
		judge("c", work.Arbitration, "c1", true, "nor this: another commit"),
		judge("d", work.Arbitration, "c2", true, " "),
		silent,
	}, nil, nil)
	tree.Story = &work.Story{ID: "s1", Goal: "A bridge.\n", Spec: strings.Repeat("é", mostExcerpt)}
	want := "A bridge.\n\n" + strings.Repeat("é", mostExcerpt/2) + " …\n\n" + `## Acceptance criteria

- it holds
  - evaluator-tests: ` + "`` `go test`: exit 0, @everyone, closes #1 ``" + `
  - arbitration: not said how
- it shines

Claudomator-Story: s1
`
	if diff := cmp.Diff(want, pullBody(tree, root)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	tree.Story = &work.Story{ID: "s1", Goal: "A bridge.", Spec: "A bridge."}
	root.AcceptanceCriteria = nil
	if got := pullBody(tree, root); got != "A bridge.\n\nClaudomator-Story: s1\n" {
		t.Errorf("got %q", got)
	}
}

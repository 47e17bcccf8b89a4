package cli

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

// TestTreeFits: whatever a tree is like, each of its places is drawn once, in
// order, on a line that is no wider than the terminal, and does nothing to it.
func TestTreeFits(t *testing.T) {
	t.Parallel()
	texts := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "数え直すことが必要", "two words", "a\nb", strings.Repeat("long ", 40)}))
	rapid.Check(t, func(t *rapid.T) {
		left := 30
		state := rapid.SampledFrom(work.States())
		var place func(level int) *app.TreeNode
		place = func(level int) *app.TreeNode {
			left--
			n := &app.TreeNode{Task: &work.Task{
				ID: work.TaskID(rapid.StringMatching("[a-z2-7]{16}").Draw(t, "id")), Name: texts.Draw(t, "name"), State: state.Draw(t, "state"), Dropped: rapid.Bool().Draw(t, "dropped"),
				BlockedOn: rapid.SampledFrom([]work.BlockedOn{"", work.OnPerson, work.OnIntegration}).Draw(t, "on"), Hold: work.HoldNoChanges,
				AttemptNo: rapid.IntRange(0, 3).Draw(t, "attempt"), RejectionComment: texts.Draw(t, "comment"),
			}}
			for range rapid.IntRange(0, 2).Draw(t, "judges") {
				j := &work.Task{ID: "judge", Name: "Check", State: state.Draw(t, "judge"), Agent: work.AgentSpec{Role: work.EvaluatorCorrectness, Type: "claude"}, Reason: texts.Draw(t, "reason")}
				if rapid.Bool().Draw(t, "spoken") {
					j.Verdict = &work.Verdict{Approved: rapid.Bool().Draw(t, "approved"), Reasoning: texts.Draw(t, "reasoning")}
				}
				n.Judges = append(n.Judges, j)
			}
			for range rapid.IntRange(0, 3).Draw(t, "children") {
				if left > 0 && level < 20 {
					n.Children = append(n.Children, place(level+1))
				}
			}
			return n
		}
		root := place(0)
		p := &page{width: rapid.OneOf(rapid.Just(0), rapid.IntRange(2, 130)).Draw(t, "width"), ascii: rapid.Bool().Draw(t, "ascii"), color: rapid.Bool().Draw(t, "color"), now: noon()}
		folded := rapid.Bool().Draw(t, "folded")
		p.tree(root, folded)
		lines := strings.Split(strings.TrimSuffix(uncolored(p.text.String()), "\n"), "\n")
		for _, line := range lines {
			if p.width > 0 && columns(line) > p.width || inertLine(line) != line {
				t.Errorf("%d columns of %d: %q", columns(line), p.width, line)
			}
		}
		if want := drawn(root, folded); len(lines) != want {
			t.Errorf("%d lines, want %d:\n%s", len(lines), want, strings.Join(lines, "\n"))
		}
	})
}

// drawn is how many lines a tree has.
func drawn(n *app.TreeNode, folded bool) int {
	sum := 1
	if folded && n.Task.State == work.Completed {
		return sum
	}
	if n.Task.AttemptNo > 1 {
		sum++
	}
	sum += len(n.Judges)
	for _, child := range n.Children {
		sum += drawn(child, folded)
	}
	return sum
}

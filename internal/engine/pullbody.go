package engine

import (
	"fmt"
	"strings"

	"github.com/claudomator/claudomator/internal/work"
)

const mostExcerpt = 4000 // bytes of goal or spec in a pull request

// pullBody is what a pull request says of a story: what it is for, what must be true
// of it, how each point was verified, and by which story it came.
func pullBody(tree *work.Tree, root *work.Task) string {
	story := tree.Story
	var b strings.Builder
	section := func(text string) {
		if text = strings.TrimSpace(text); text != "" {
			b.WriteString(text + "\n\n")
		}
	}
	section(excerpt(story.Goal))
	if story.Spec != story.Goal {
		section(excerpt(story.Spec))
	}
	if len(root.AcceptanceCriteria) > 0 {
		b.WriteString("## Acceptance criteria\n\n")
		for _, c := range root.AcceptanceCriteria {
			b.WriteString("- " + oneLine(c) + "\n")
			for _, how := range verified(tree, root, c) {
				b.WriteString("  - " + how + "\n")
			}
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "Claudomator-Story: %s\n", story.ID)
	return b.String()
}

// verified is how the judges who approved the accepted commit verified a criterion.
func verified(tree *work.Tree, root *work.Task, criterion string) []string {
	var out []string
	for _, j := range tree.JudgesOf(root.ID) {
		if j.Verdict == nil || !j.Verdict.Approved || root.Accepted == nil || j.Judges.Commit != root.Accepted.Commit {
			continue
		}
		for _, c := range j.Verdict.Criteria {
			if c.Criterion == criterion && c.Met {
				out = append(out, fmt.Sprintf("%s: %s", j.Role(), code(c.How)))
			}
		}
	}
	return out
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// code shows what an agent wrote as it stands: a mention in it calls nobody, and
// "closes #1" closes nothing.
func code(text string) string {
	text = oneLine(text)
	if text == "" {
		return "not said how"
	}
	fence := "`"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + " " + text + " " + fence
}

func excerpt(text string) string {
	if len(text) <= mostExcerpt {
		return text
	}
	return strings.ToValidUTF8(text[:mostExcerpt], "") + " …"
}

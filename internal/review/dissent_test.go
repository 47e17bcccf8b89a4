package review_test

import (
	"fmt"
	"testing"

	"github.com/claudomator/claudomator/internal/work"
)

// TestReview_DissentIsRecorded: a decision names the judges whose verdict it does
// not follow.
func TestReview_DissentIsRecorded(t *testing.T) {
	for name, c := range map[string]struct {
		rejects  work.Role // of the panel, "" for none
		approved bool
		want     string
	}{
		"approved against one":   {work.EvaluatorSecurity, true, "[evaluator-security]"},
		"rejected against three": {work.EvaluatorSecurity, false, "[evaluator-correctness evaluator-tests evaluator-quality]"},
		"all of one mind":        {"", true, "<nil>"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.create("a", "arbitrated")
			s.run("a", success("a1"))
			for _, role := range panel {
				verdict := approval(s.task("a"))
				if role == c.rejects {
					verdict = rejection("no")
				}
				s.says("a", role, verdict)
			}
			decision := approval(s.task("a"))
			if !c.approved {
				decision = rejection("no")
			}
			s.says("a", work.Arbitration, decision)
			for _, e := range s.events {
				if e.Task == "a" && (e.Kind == "decision.approved" || e.Kind == "decision.rejected") {
					if got := fmt.Sprint(e.Body["dissent"]); got != c.want {
						t.Errorf("dissent %s, want %s", got, c.want)
					}
					return
				}
			}
			t.Error("nothing was decided")
		})
	}
}

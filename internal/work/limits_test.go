package work

import (
	"strings"
	"testing"
)

func TestWhatAgentsSayIsBounded(t *testing.T) {
	t.Parallel()
	long := func(n int) string { return strings.Repeat("x", n+1) }
	full := &Task{Blockers: make([]string, maxBlockers)}
	tests := map[string]error{
		"summary":    Report{Summary: long(maxSummary)}.check(&Task{}),
		"roadblock":  Report{Blocker: long(maxSaid)}.check(&Task{}),
		"roadblocks": Report{Blocker: "one more"}.check(full),
		"reasoning":  Report{Verdict: &Verdict{Reasoning: long(maxSummary)}}.check(&Task{}),
		"finding":    Report{Verdict: &Verdict{Findings: Findings{{Text: long(maxSaid)}}}}.check(&Task{}),
		"findings":   Report{Verdict: &Verdict{Findings: make(Findings, maxItems+1)}}.check(&Task{}),
		"evidence":   Report{Verdict: &Verdict{Evidence: []Evidence{{Output: long(maxSaid)}}}}.check(&Task{}),
		"criterion":  Report{Verdict: &Verdict{Criteria: []Criterion{{How: long(maxSaid)}}}}.check(&Task{}),
		"question":   Question{Text: long(maxSaid)}.check(),
		"option":     Question{Text: "?", Options: []string{long(maxSaid)}}.check(),
		"options":    Question{Text: "?", Options: make([]string, maxItems+1)}.check(),
	}
	for name, err := range tests {
		if code := CodeOf(err); err == nil || (code != Invalid && code != Exhausted) {
			t.Errorf("%s: %v, want a refusal", name, err)
		}
	}
	most := Report{Summary: long(maxSummary - 1), Blocker: long(maxSaid - 1), Verdict: &Verdict{Findings: make(Findings, maxItems)}}
	if err := most.check(&Task{}); err != nil {
		t.Errorf("what is just allowed: %v", err)
	}
}

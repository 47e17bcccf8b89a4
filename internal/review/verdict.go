package review

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/claudomator/claudomator/internal/work"
)

// state is where the judging of one attempt and commit by one role is.
type state int

const (
	missing state = iota // a judge must be spawned
	working              // a judge is at work, or has asked something
	spoken               // there is a usable verdict
	silent               // two judges ended without one: a person's turn
)

// standing looks at the judges of a role for the task's present head and round.
// Cancelled ones do not count, except for the numbers.
func standing(tree *work.Tree, t *work.Task, role work.Role) (*work.Task, state) {
	without := 0
	for _, j := range judges(tree, t, role) {
		if j.Book.ForRound != t.Book.Round {
			continue
		}
		switch {
		case j.State == work.Completed && usable(j):
			return j, spoken
		case j.State == work.Cancelled:
		case j.State.Ended():
			without++
		default:
			return j, working
		}
	}
	if without > 1 {
		return nil, silent
	}
	return nil, missing
}

func hasVerdict(tree *work.Tree, t *work.Task, role work.Role) bool {
	_, s := standing(tree, t, role)
	return s == spoken || s == working
}

// judges lists the judging tasks of a role for the task's present head.
func judges(tree *work.Tree, t *work.Task, role work.Role) []*work.Task {
	var out []*work.Task
	for _, j := range tree.JudgesOf(t.ID) {
		if j.Role() == role && j.Judges.Commit == t.Book.Head {
			out = append(out, j)
		}
	}
	return out
}

// usable is false for no verdict at all, and for an approval that contradicts
// itself or does not say how each criterion was verified.
func usable(j *work.Task) bool {
	return j.Verdict != nil && len(Unproven(j.Verdict, j.AcceptanceCriteria)) == 0
}

// Unproven lists the criteria that an approval leaves out, calls unmet, or does
// not say how it verified; none for a verdict that counts.
func Unproven(v *work.Verdict, criteria []string) []string {
	if !v.Approved {
		return nil
	}
	var all []string
	proven := map[string]bool{}
	for _, c := range v.Criteria {
		if !c.Met {
			all = append(all, c.Criterion)
		}
		proven[strings.TrimSpace(c.Criterion)] = c.Met && strings.TrimSpace(c.How) != ""
	}
	for _, c := range criteria {
		if !proven[strings.TrimSpace(c)] && !slices.Contains(all, c) {
			all = append(all, c)
		}
	}
	return all
}

func spawn(s *work.Step, rules Rules, t *work.Task, role work.Role) {
	spec, _ := rules.judgeSpec(s.Tree, t, role)
	n := 1
	for _, j := range judges(s.Tree, t, role) {
		n = max(n, j.Book.Number+1)
	}
	name := fmt.Sprintf("%s: %s", role, t.Name)
	if s.Tree.Story != nil && t.Position() == s.Tree.Root() {
		name = fmt.Sprintf("%s: %s", role, s.Tree.Story.Name)
	}
	// Without a timeout of the role the server's limit for judges holds.
	j := s.SpawnJudge(t, role, n, name, spec, rules.Roles[role].Timeout)
	if role == work.Checker {
		j.Name, j.CheckerForTaskID = "Check: "+t.Name, t.ID
	}
}

// noVerdict leaves the decision to a person, with what is known.
func noVerdict(s *work.Step, t *work.Task, role work.Role) error {
	var last *work.Task
	for _, j := range judges(s.Tree, t, role) {
		last = j
	}
	why := cmp.Or(last.Summary, last.Reason, "it ended without reporting one")
	if last.Verdict != nil {
		why = strings.TrimSpace("its approval proves nothing for some criterion, or contradicts itself\n" + words(last.Verdict))
	}
	s.Report(t, fmt.Sprintf("%s gave no usable verdict, twice: %s", role, why))
	s.WaitForPerson(t, work.HoldNoVerdict, "no verdict from "+string(role))
	return nil
}

// rejection is why work is not accepted.
type rejection struct {
	report   string
	findings work.Findings
	dissent  []work.Role // of those that were heard
}

func (r *rejection) add(j *work.Task) {
	text := cmp.Or(words(j.Verdict), "rejected without a reason")
	r.report = strings.TrimSpace(r.report + "\n" + text)
	r.findings = append(r.findings, owned(j)...)
}

// words are a verdict's reasoning and findings, as a person reads them.
func words(v *work.Verdict) string {
	var b strings.Builder
	b.WriteString(v.Reasoning)
	for _, f := range v.Findings {
		fmt.Fprintf(&b, "\n- %s", f)
	}
	return strings.TrimSpace(b.String())
}

// owned are a judge's findings with its dimension, part of their identity.
func owned(j *work.Task) work.Findings {
	var out work.Findings
	if j.Verdict.Approved {
		return nil
	}
	for _, f := range j.Verdict.Findings {
		if f.Role == "" {
			f.Role = j.Role()
		}
		out = append(out, f)
	}
	return out
}

// reject reports to a person, or spawns a fix attempt while that can help.
func reject(s *work.Step, p Policy, t *work.Task, why rejection) error {
	if !p.Fix {
		return report(s, t, work.HoldFlagged, "flagged by its review", why)
	}
	if t.AttemptNo-1 >= p.Fixes+t.ExtraFixes {
		return report(s, t, work.HoldCap, fmt.Sprintf("rejected again after %d fix attempts", t.AttemptNo-1), why)
	}
	if reason, stuck := stalemate(s.Tree.Chain(t.Position()), why.findings); stuck {
		return report(s, t, work.HoldStalemate, reason, why)
	}
	s.Decided(t, false, why.report, why.dissent...)
	return s.SpawnFix(t, work.Fix{Comment: why.report, Findings: why.findings})
}

// stalemate compares the findings with those that the attempts of a place have
// answered: repeated or growing ones need a person, also where work is undone and
// done again. Gates count by what they print alone: when they pass at last, the
// judges behind them speak for the first time.
func stalemate(attempts []*work.Task, now work.Findings) (reason string, stuck bool) {
	for _, a := range attempts {
		if len(now) > 0 && now.Same(a.RejectionFindings) {
			return "the same findings as before", true
		}
	}
	was, is := opinions(attempts[len(attempts)-1].RejectionFindings), opinions(now)
	if was > 0 && is > was {
		return fmt.Sprintf("the findings grow: %d before, %d now", was, is), true
	}
	return "", false
}

func opinions(list work.Findings) int {
	n := 0
	for _, f := range list {
		if f.Role != gate {
			n++
		}
	}
	return n
}

func report(s *work.Step, t *work.Task, hold work.Hold, reason string, why rejection) error {
	s.Report(t, why.report)
	s.WaitForPerson(t, hold, reason)
	s.Decided(t, false, why.report, why.dissent...)
	return nil
}

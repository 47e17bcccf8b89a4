package app

import (
	"fmt"
	"slices"
	"strings"

	"github.com/claudomator/claudomator/internal/work"
)

// What judges and the retro are told of what went before.

// heard is a verdict as the arbiter reads it.
type heard struct {
	Role      work.Role
	Approved  bool
	Reasoning string
	Findings  []string
	Proof     []string
}

// round is an earlier attempt as a judge reads it.
type round struct {
	AttemptNo int
	Comment   string
	Findings  []string
}

// mostRounds are told of in full; of older ones the newer say what came again.
const mostRounds = 4

// Heard are this round's verdicts, with a mark beside each finding, for the one
// who weighs them. The other judges speak without having heard each other.
func (b brief) Heard() []heard {
	var out []heard
	for _, v := range b.weighed() {
		h := heard{Role: v.Role, Approved: v.Approved, Reasoning: long(v.Reasoning), Findings: lines(marked(own(v), b.last()))}
		for _, c := range v.Criteria {
			met := "not met"
			if c.Met {
				met = "met"
			}
			h.Proof = append(h.Proof, fmt.Sprintf("%s, %s: %s", met, short(c.Criterion), c.How))
		}
		h.Proof = lines(h.Proof)
		out = append(out, h)
	}
	return out
}

// weighed are the verdicts that the arbiter decides about: the last of each judge,
// since one that proved nothing was given again, and none of its own.
func (b brief) weighed() []RoleVerdict {
	if !b.Arbiter {
		return nil
	}
	var out []RoleVerdict
	for _, v := range b.Verdicts {
		out = slices.DeleteFunc(out, func(before RoleVerdict) bool { return before.Role == v.Role })
		if v.Role != b.Task.Role() {
			out = append(out, v)
		}
	}
	return out
}

// own are a verdict's findings with the dimension that found them.
func own(v RoleVerdict) work.Findings {
	out := slices.Clone(v.Findings)
	for i := range out {
		if out[i].Role == "" {
			out[i].Role = v.Role
		}
	}
	return out
}

// last are the findings of the round before; nil when there was none.
func (b brief) last() work.Findings {
	if len(b.History) == 0 {
		return nil
	}
	return b.History[len(b.History)-1].Findings
}

// Rounds are the earlier attempts, oldest first.
func (b brief) Rounds() []round {
	var out []round
	for i, r := range b.History {
		var before work.Findings
		if i > 0 {
			before = b.History[i-1].Findings
		}
		out = append(out, round{AttemptNo: r.AttemptNo, Comment: clipped(r.Comment, mostLong/2), Findings: lines(marked(r.Findings, before))})
	}
	return out[max(len(out)-mostRounds, 0):]
}

// Gone are the findings of the round before that no verdict of this one names.
func (b brief) Gone() []string {
	if !b.Arbiter {
		return nil
	}
	var now work.Findings
	for _, v := range b.weighed() {
		now = append(now, v.Findings...)
	}
	var out work.Findings
	for _, f := range b.last() {
		if !among(f, now) {
			out = append(out, f)
		}
	}
	return objections(out)
}

// marked says beside each finding whether it was named in the round before. In the
// first round there is nothing to compare with, and no mark.
func marked(now, before work.Findings) []string {
	out := make([]string, 0, len(now))
	for _, f := range now {
		text := objection(f)
		switch {
		case among(f, before):
			text = "repeated: " + text
		case len(before) > 0:
			text = "new: " + text
		}
		out = append(out, text)
	}
	return out
}

// among says whether a list names the finding. Whoever named it: what a judge
// found, the arbiter passes on as its own.
func among(f work.Finding, list work.Findings) bool {
	f.Role = ""
	return slices.ContainsFunc(list, func(other work.Finding) bool {
		other.Role = ""
		return work.Findings{f}.Same(work.Findings{other})
	})
}

// happened is what a retro looks back on: place by place what was rejected, asked,
// reported and lost. Places where nothing of it happened are left out. The oldest
// places are dropped where it would be too much.
func happened(tree *work.Tree) string {
	var places []string
	for _, t := range tree.Tasks() {
		if t.AttemptOf != "" || t.Judges != nil || t.Role() == work.Retro {
			continue
		}
		if text := story(tree, t); text != "" {
			places = append(places, clipped(text, mostHappened/4))
		}
	}
	size, keep := 0, len(places)
	for keep > 0 && size+len(places[keep-1])+1 <= mostHappened-100 { // the notice needs room
		keep--
		size += len(places[keep]) + 1
	}
	text := strings.Join(places[keep:], "\n")
	if keep > 0 {
		text = fmt.Sprintf("[… the oldest %d of %d places are left out …]\n%s", keep, len(places), text)
	}
	return text
}

// story tells of one place; "" when nothing went otherwise than planned.
func story(tree *work.Tree, anchor *work.Task) string {
	chain := tree.Chain(anchor.Position())
	var out []string
	say := func(format string, args ...any) { out = append(out, "- "+item(fmt.Sprintf(format, args...))) }
	told := 0 // an attempt takes over what was said in the one before
	for i, t := range chain {
		if t.RejectionComment != "" || len(t.RejectionFindings) > 0 {
			say("attempt %d was rejected: %s", chain[max(i-1, 0)].AttemptNo, short(t.RejectionComment))
			for _, line := range objections(t.RejectionFindings) {
				say("found: %s", line)
			}
		}
		for _, said := range t.Interactions[min(told, len(t.Interactions)):] {
			if said.Question != "" {
				say("attempt %d asked: %s", t.AttemptNo, short(said.Question))
			}
			say("a person said: %s", short(said.Answer))
		}
		told = len(t.Interactions)
		for _, text := range lines(t.Blockers) {
			say("attempt %d met an obstacle: %s", t.AttemptNo, text)
		}
		for _, x := range tree.Runs(t.ID, work.AgentRun) {
			if x.State == work.ExecutionEnded && x.Outcome != work.Success && x.Outcome != work.Asked {
				say("run %d of attempt %d ended as %s: %s", x.Number, t.AttemptNo, x.Outcome, short(x.Error))
			}
		}
		if t.State.Ended() && t.State != work.Completed {
			say("attempt %d ended %s: %s", t.AttemptNo, t.State, short(t.Reason))
		}
	}
	if len(out) == 0 {
		return ""
	}
	return fmt.Sprintf("%s (attempts: %d)\n%s", item(anchor.Name), len(chain), strings.Join(out, "\n"))
}

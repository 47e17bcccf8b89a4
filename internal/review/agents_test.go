package review_test

import (
	"fmt"
	"time"

	"github.com/claudomator/claudomator/internal/work"
)

// progress lets one process do something, or end.
func (s *sim) progress(i int) {
	p := s.procs[i]
	tree := s.tree(p.tree.ID)
	t := tree.Task(p.task)
	switch {
	case !p.kind.Own():
		s.gateRun(i)
	case t.Judges != nil:
		s.judgeRun(i, tree, t)
	case t.Role() == work.Planner:
		s.plannerRun(i, tree, t)
	default:
		s.workRun(i, tree, t)
	}
}

func (s *sim) gateRun(i int) {
	switch n := s.choose(6); {
	case n < 3:
		s.end(i, gates(true))
	case n == 3:
		s.end(i, gates(false))
	case n == 4:
		s.end(i, ends(work.FailedRun, "the workspace could not be made"))
	default:
		s.lose(i)
	}
}

func gates(passed bool) outcome {
	return func(_ *world, _ *work.Tree, _ *work.Task, end *work.End) {
		end.Outcome, end.Gates = work.Success, gateResult(passed)
	}
}

func (s *sim) lose(i int) {
	p := s.procs[i]
	s.procs = append(s.procs[:i:i], s.procs[i+1:]...)
	s.say("lose %s", p.id)
	s.must(s.do(s.tree(p.tree.ID), work.System(), work.Lose{Execution: p.id, Fence: p.fence}))
}

// judgeRun: verdicts, missing ones, contradictions, approvals without proof.
func (s *sim) judgeRun(i int, tree *work.Tree, t *work.Task) {
	p := s.procs[i]
	switch s.choose(12) {
	case 0, 1, 2, 3:
		s.verdict(p, tree, t, approval(t))
		s.judgeEnds(i, tree, t, true)
	case 4, 5, 6:
		s.verdict(p, tree, t, rejection("wrong", s.findings()...))
		s.judgeEnds(i, tree, t, false)
	case 7:
		s.verdict(p, tree, t, &work.Verdict{Approved: true, Criteria: []work.Criterion{{Criterion: "it works", Met: s.one(2)}}})
		s.judgeEnds(i, tree, t, s.one(2))
	case 8:
		s.judgeEnds(i, tree, t, s.one(2))
	case 9:
		s.ask(i, tree)
	case 10:
		s.end(i, ends(pick(s, work.FailedRun, work.TimedOutRun, work.Silent, work.BudgetRun, work.Overloaded, work.Limited, work.CancelledRun), "no luck"))
	default:
		s.lose(i)
	}
}

// judgeEnds ends a judge's run: a command's exit code speaks too.
func (s *sim) judgeEnds(i int, tree *work.Tree, t *work.Task, approve bool) {
	x := tree.Execution(s.procs[i].id)
	switch {
	case x.Spec.Type != "command":
		s.end(i, ends(work.Success, ""))
	case approve:
		s.end(i, exits(0, "fine"))
	default:
		s.end(i, exits(1, "not fine"))
	}
}

func (s *sim) verdict(p proc, tree *work.Tree, t *work.Task, v *work.Verdict) {
	err := s.do(tree, work.Actor{Kind: work.AgentActor, ID: string(p.id)}, work.Report{Execution: p.id, Verdict: v})
	s.say("verdict of %s: approved=%v %v", t.ID, v.Approved, err)
	if e, ok := work.AsError(err); ok && e.Reason != "already_reported" {
		s.fail("a verdict met %v", err)
	}
}

func (s *sim) findings() []work.Finding {
	out := make([]work.Finding, s.choose(3))
	for i := range out {
		out[i] = work.Finding{Kind: "bug", File: "a", Line: s.choose(3), Text: "wrong"}
	}
	return out
}

func (s *sim) ask(i int, tree *work.Tree) {
	p := s.procs[i]
	err := s.do(tree, work.System(), work.Ask{Execution: p.id, Question: work.Question{Text: "which?"}})
	s.say("%s asks: %v", p.id, err)
	s.stale(err)
	s.end(i, ends(work.Asked, ""))
}

// workRun: a worker commits, decomposes, asks, fails in every way.
func (s *sim) workRun(i int, tree *work.Tree, t *work.Task) {
	p := s.procs[i]
	if p.kind == work.SubmitRun {
		s.end(i, pick(s, success(s.git.commit("")), nothing(), ends(work.FailedRun, "cannot be read"), ends(work.CancelledRun, "")))
		return
	}
	switch s.choose(16) {
	case 0, 1, 2, 3, 4:
		s.endWell(i, tree, t)
	case 5, 6, 7, 8:
		s.spawn(i, tree, t)
	case 9:
		s.end(i, nothing())
	case 10:
		s.ask(i, tree)
	case 11:
		s.end(i, ends(pick(s, work.FailedRun, work.TimedOutRun, work.Silent, work.BudgetRun), "no luck"))
	case 12:
		s.end(i, ends(pick(s, work.Overloaded, work.CancelledRun), "busy"))
	case 13:
		reset := s.now.Add(time.Duration(s.choose(3)-1) * time.Hour)
		s.end(i, func(_ *world, _ *work.Tree, _ *work.Task, end *work.End) {
			end.Outcome, end.ResumeAt = work.Limited, reset
		})
	case 14:
		s.stale(s.do(tree, work.System(), work.Report{Execution: p.id, Summary: "did it", Blocker: pick(s, "", "no network")}))
	default:
		s.lose(i)
	}
}

// endWell ends a run with a commit; what conflicts may stay unresolved.
func (s *sim) endWell(i int, tree *work.Tree, t *work.Task) {
	if t.Book.MergeIn != "" && s.mode == 0 && s.one(3) {
		s.end(i, unresolved("", "", "a"))
		return
	}
	if s.mode == 0 && s.one(25) { // it has rewritten what its branch holds: kept apart, and to be merged in
		s.end(i, unresolved("", s.git.commit("", base), "a"))
		return
	}
	s.end(i, success(s.newCommit(tree, t)))
}

// newCommit names a commit that nobody has made.
func (s *sim) newCommit(_ *work.Tree, _ *work.Task) string {
	s.git.n++
	return fmt.Sprintf("c%d", s.git.n)
}

// spawn adds a subtask or an improvement; sometimes one that exists.
func (s *sim) spawn(i int, tree *work.Tree, t *work.Task) {
	p := &s.procs[i]
	n := p.calls
	if n > 0 && s.one(5) {
		n--
	}
	p.calls = max(p.calls, n+1)
	if n > 2 || tree.Size() > 40 {
		return
	}
	c := work.Spawn{Execution: p.id, Input: work.TaskInput{Name: fmt.Sprintf("s%d", n), Agent: work.AgentSpec{Instructions: "do"}}}
	if n > 0 && s.one(2) {
		c.Siblings = []string{fmt.Sprintf("s%d", s.choose(n))}
	}
	if s.one(4) {
		c.Input.Kind, c.Input.Name, c.Siblings = work.Improvement, fmt.Sprintf("i%d", n), nil
	}
	err := s.do(tree, work.Actor{Kind: work.AgentActor, ID: string(p.id)}, c)
	s.say("%s spawns %s after %v: %v", t.ID, c.Input.Name, c.Siblings, err)
	if e, ok := work.AsError(err); ok {
		switch e.Reason {
		case "stale", "name_taken", "too_deep", "dropped", "not_a_builder", "role", "":
		default:
			s.fail("spawn: %v (%s)", err, e.Reason)
		}
	}
}

// mischief is a report that must be refused and change nothing: of a former life,
// about a foreign execution, or by one who may not.
func (s *sim) mischief() {
	if len(s.procs) == 0 {
		return
	}
	p := s.procs[s.choose(len(s.procs))]
	tree := s.tree(p.tree.ID)
	for _, c := range []work.Command{
		work.End{Execution: p.id, Fence: p.fence - 1, Outcome: work.Success},
		work.End{Execution: p.id, Fence: p.fence, Outcome: "fine"},
		work.Lose{Execution: p.id, Fence: p.fence + 1},
		work.Begin{Execution: p.id},
		work.End{Execution: "foreign", Fence: 1, Outcome: work.Success},
		work.Ask{Execution: "foreign", Question: work.Question{Text: "?"}},
		work.Report{Execution: "foreign", Summary: "mine"},
		work.Spawn{Execution: "foreign", Input: work.TaskInput{Name: "x"}},
		work.Integrated{Task: p.task, Into: p.task, Commit: "none", Head: "none"},
		work.IntegrateConflict{Task: p.task, Into: "nobody", Commit: "none"},
		work.IntegrateLacks{Task: p.task, Into: p.task, Commit: "none"},
		work.Landed{Merge: "none", Commit: "none"},
	} {
		if err := s.do(tree, work.System(), c); err == nil {
			s.fail("%T was taken: %+v", c, c)
		}
	}
	if t := tree.Task(p.task); t.Judges == nil && p.kind == work.AgentRun {
		if err := s.do(tree, work.System(), work.Report{Execution: p.id, Verdict: &work.Verdict{Approved: true}}); err == nil {
			s.fail("a worker's verdict was taken")
		}
	}
}

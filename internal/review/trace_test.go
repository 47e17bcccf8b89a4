package review_test

import (
	"testing"

	"github.com/claudomator/claudomator/internal/work"
)

// TestTrace is one tree from beginning to end: decomposition, a crash, a rejection
// and its fix, an integration conflict, and the roll-up. Each step's events and
// effects are compared one by one.
func TestTrace(t *testing.T) {
	s := newStage(t, gated)
	const c1, c2 = "child.P.one", "child.P.two"
	const c1b, c2b = "fix.child.P.one.2", "fix.child.P.two.2"

	// 1. A person creates and starts P.
	s.create("P", "arbitrated", builder)
	s.is("P QUEUED(slot)")
	s.tells("task.created P", "task.queued P")
	s.due("start_execution P")

	// 2. The engine takes it.
	x1 := s.start("P")
	s.is("P RUNNING")
	s.tells("execution.started P")

	// 3. Its agent decomposes: the children wait for its run.
	s.spawn("P", "one")
	s.spawn("P", "two", "one")
	s.is("P RUNNING", c1+" PENDING", c2+" PENDING")
	s.tells("task.created "+c1, "task.created "+c2)
	s.due()
	if role := s.task(c1).Role(); role != work.Builder {
		t.Errorf("a subtask of a builder has role %q", role)
	}

	// 4. The server is killed: the execution is lost, and not counted.
	if err := s.do(s.tree("P"), work.System(), work.Lose{Execution: x1.ID, Fence: x1.Fence}); err != nil {
		t.Fatal(err)
	}
	s.is("P QUEUED(slot)")
	s.tells("execution.lost P")
	s.due("start_execution P", "stop_execution P")
	s.take(work.StopExecution, "P")

	// 5. The second run repeats both spawns, which makes nothing new, and ends.
	s.start("P")
	s.news()
	s.spawn("P", "one")
	s.spawn("P", "two", "one")
	s.tells()
	s.end("P", success("p1"))
	s.is("P BLOCKED(children)", c1+" QUEUED(slot)", c2+" QUEUED(dependencies)")
	s.tells("execution.ended P", "task.blocked P", "task.queued "+c1, "task.queued "+c2)
	s.due("start_execution " + c1)

	// 6. c1 runs from p1 and is done: gates first.
	s.run(c1, success("a1"))
	s.is(c1 + " READY(gates)")
	s.tells("execution.started "+c1, "execution.ended "+c1, "task.ready "+c1, "gates.started "+c1)
	s.due("start_execution " + c1)

	// 7. They pass: four evaluators.
	s.gates(c1, true)
	s.is(c1 + " READY(judges)")
	judge := func(task, role, commit string) string { return "judge." + task + ".1." + commit + ".evaluator-" + role }
	s.tells("gates.passed "+c1, "judge.spawned "+judge(c1, "correctness", "a1"), "judge.spawned "+judge(c1, "tests", "a1"),
		"judge.spawned "+judge(c1, "security", "a1"), "judge.spawned "+judge(c1, "quality", "a1"))
	s.due("start_execution "+judge(c1, "correctness", "a1"), "start_execution "+judge(c1, "tests", "a1"),
		"start_execution "+judge(c1, "security", "a1"), "start_execution "+judge(c1, "quality", "a1"))

	// 8. Three approve, security objects; arbitration rejects.
	for _, role := range panel {
		v := approval(s.task(c1))
		if role == work.EvaluatorSecurity {
			v = rejection("injection", work.Finding{Kind: "injection", File: "a", Line: 1, Text: "s1"})
		}
		s.says(c1, role, v)
	}
	arbiter := "judge." + c1 + ".1.a1.arbitration"
	s.due("start_execution " + arbiter)
	s.news()
	s.says(c1, work.Arbitration, rejection("injection"))

	// 9. In the same step: a fix attempt at the same place.
	s.is(c1+" READY superseded", c1b+" QUEUED(slot)", c2+" QUEUED(dependencies)", "P BLOCKED(children)")
	s.tells("execution.started "+arbiter, "execution.ended "+arbiter, "verdict.reported "+arbiter, "task.ready "+arbiter,
		"task.completed "+arbiter, "decision.rejected "+c1, "fix.spawned "+c1b)
	s.due("start_execution " + c1b)
	fix := s.task(c1b)
	if fix.AttemptOf != c1 || fix.AttemptNo != 2 || fix.Book.Base != "a1" || fix.RejectionComment != "injection" || len(fix.RejectionFindings) != 1 {
		t.Errorf("the fix is %+v", fix)
	}

	// 10. It passes gates and panel; its acceptance is recorded, its state stays.
	s.run(c1b, success("a2"))
	s.gates(c1b, true)
	s.approve(c1b)
	s.is(c1b + " READY(integration)")
	if a := s.task(c1b).Accepted; a == nil || a.Commit != "a2" || a.By != work.System() {
		t.Errorf("accepted %+v", a)
	}
	s.due("integrate " + c1b)
	s.news()

	// 11. Integrated: completed, and what waited for it starts.
	s.integrates(c1b)
	s.is(c1b+" COMPLETED", c2+" QUEUED(slot)", "P BLOCKED(children)")
	s.tells("task.integrated "+c1b, "task.completed "+c1b)
	s.due("start_execution " + c2)

	// 12. c2 is approved and conflicts: a fix whose work is the conflict.
	s.run(c2, success("b1"))
	s.gates(c2, true)
	s.approve(c2)
	s.news()
	s.conflicts(c2)
	s.is(c2+" READY superseded", c2b+" QUEUED(slot)")
	s.tells("integrate.conflict "+c2, "fix.spawned "+c2b)
	head := s.task("P").Book.Head
	if fix := s.task(c2b); fix.Book.Base != "b1" || fix.Book.MergeIn != head || len(fix.Book.Conflicts) != 1 {
		t.Errorf("the fix is %+v", fix.Book)
	}

	// 13. Approved and integrated: P is judged on the integrated head, without a run.
	s.run(c2b, success("b2"))
	s.gates(c2b, true)
	s.approve(c2b)
	s.news()
	runs := s.task("P").Book.Executions
	s.integrates(c2b)
	s.is(c2b+" COMPLETED", "P READY(gates)")
	s.tells("task.integrated "+c2b, "task.completed "+c2b, "task.ready P", "gates.started P")
	if s.task("P").Book.Executions != runs+1 || len(s.tree("P").Runs("P", work.GateRun)) != 1 {
		t.Error("something of P's own ran again")
	}

	// 14. Approved: P has no parent, and is completed at once.
	s.gates("P", true)
	s.approve("P")
	s.is("P COMPLETED")
	if news := s.news(); news[len(news)-2] != "decision.approved P" || news[len(news)-1] != "task.completed P" {
		t.Errorf("events %q", news)
	}
	s.due()
	if items := s.inbox("P"); len(items) != 0 {
		t.Errorf("inbox %+v", items)
	}
}

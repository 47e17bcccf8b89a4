package review_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/claudomator/claudomator/internal/work"
)

// commanded is a task whose checker is a command, READY and being checked.
func commanded(t *testing.T) *stage {
	t.Helper()
	s := newStage(t)
	s.rules.Roles = map[work.Role]work.RoleConfig{work.Checker: {Command: []string{"sh", "-c", "test -f x"}}}
	s.create("a", "checked", named("it works"))
	s.run("a", success("a1"))
	return s
}

func TestReview_ACommandJudgesExitCode(t *testing.T) {
	signalled := func(_ *world, _ *work.Tree, _ *work.Task, end *work.End) {
		code := 1
		end.Outcome, end.ExitCode, end.Signalled = work.FailedRun, &code, true
	}
	for name, c := range map[string]struct {
		how   outcome
		state string
		text  string
	}{
		"0 approves":          {exits(0, "ok"), "a COMPLETED", ""},
		"1 rejects":           {exits(1, "x is missing"), "a READY(person)", "x is missing"},
		"a signal is no word": {signalled, "a READY(judges)", ""},
		"nor is a timeout":    {ends(work.TimedOutRun, ""), "a READY(judges)", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := commanded(t)
			j := s.judge("a", work.Checker)
			s.run(j.ID, c.how)
			s.is(c.state)
			if got := s.task("a").CheckerReport; !strings.Contains(got, c.text) {
				t.Errorf("the report is %q", got)
			}
			if c.state == "a COMPLETED" {
				if v := j.Verdict; v == nil || v.Criteria[0].How != "sh -c test -f x: exit 0" || v.Evidence[0].ExitCode != 0 {
					t.Errorf("the proof is %+v", v)
				}
			}
			if c.text != "" {
				s.is(string(j.ID) + " COMPLETED")
				if x := s.tree("a").Runs(j.ID, work.AgentRun)[0]; x.Outcome != work.Success || x.Error != "" || *x.ExitCode != 1 {
					t.Errorf("it is no successful run with a verdict: %+v", x)
				}
			}
		})
	}
}

func TestReview_ACommandThatContradictsItselfDoesNotApprove(t *testing.T) {
	for name, c := range map[string]struct {
		verdict *work.Verdict
		code    int
	}{
		"approves and exits 1": {&work.Verdict{Approved: true}, 1},
		"rejects and exits 0":  {rejection("no"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := commanded(t)
			for range 2 {
				j := s.judge("a", work.Checker)
				x := s.start(j.ID)
				if err := s.do(s.tree("a"), work.System(), work.Report{Execution: x.ID, Verdict: c.verdict}); err != nil {
					t.Fatal(err)
				}
				s.end(j.ID, exits(c.code, "tail"))
			}
			s.holds("a", work.HoldNoVerdict)
		})
	}
}

// A command judge that asks has not judged, whatever its exit code: the answer
// continues the same judge.
func TestReview_ACommandThatAsksDoesNotJudge(t *testing.T) {
	for name, code := range map[string]int{"and exits 0": 0, "and exits 1": 1} {
		t.Run(name, func(t *testing.T) {
			s := commanded(t)
			j := s.judge("a", work.Checker)
			x := s.start(j.ID)
			if err := s.do(s.tree("a"), work.System(), work.Ask{Execution: x.ID, Question: work.Question{Text: "which?"}}); err != nil {
				t.Fatal(err)
			}
			s.end(j.ID, exits(code, "tail"))
			s.is("a READY(judges)", string(j.ID)+" BLOCKED(question)")
		})
	}
}

func TestReview_AVerdictIsTakenOnce(t *testing.T) {
	s := newStage(t)
	s.create("a", "checked")
	w := s.start("a")
	report := func(x *work.Execution) error {
		return s.do(s.tree("a"), work.System(), work.Report{Execution: x.ID, Verdict: approval(s.task("a"))})
	}
	if e, _ := work.AsError(report(w)); e == nil || e.Reason != "not_a_judge" {
		t.Errorf("a worker's verdict: %v", e)
	}
	s.end("a", success("a1"))
	j := s.judge("a", work.Checker)
	x := s.start(j.ID)
	if err := report(x); err != nil {
		t.Fatal(err)
	}
	if e, _ := work.AsError(report(x)); e == nil || e.Reason != "already_reported" {
		t.Errorf("a second verdict: %v", e)
	}
	s.end(j.ID, ends(work.Success, ""))
	if e, _ := work.AsError(report(x)); e == nil || e.Reason != "stale" {
		t.Errorf("a verdict after the end: %v", e)
	}
}

func TestReview_AFailingGateCannotBeTalkedAway(t *testing.T) {
	s := newStage(t, gated)
	s.create("a", "arbitrated")
	s.run("a", success("a1"))
	s.gates("a", false)
	s.is("a READY superseded", "fix.a.2 QUEUED(slot)")
	if len(s.tree("a").JudgesOf("a")) != 0 {
		t.Error("opinions were asked for")
	}
	if got := s.task("fix.a.2").RejectionComment; !strings.Contains(got, "make test") || !strings.Contains(got, "1 test failed") {
		t.Errorf("the fix is told %q", got)
	}
}

func TestReview_AGatesTimeoutIsAFailure(t *testing.T) {
	s := newStage(t, gated)
	s.create("a", "checked")
	s.run("a", success("a1"))
	s.run("a", func(_ *world, _ *work.Tree, _ *work.Task, end *work.End) {
		end.Outcome, end.Gates = work.Success, []work.GateResult{{Command: "make test", TimedOut: true}}
	})
	s.holds("a", work.HoldFlagged)
	if got := s.task("a").CheckerReport; !strings.Contains(got, "timed out") {
		t.Errorf("the report is %q", got)
	}
}

func TestReview_GatesThatCannotRunAreTriedAgainThenAPerson(t *testing.T) {
	s := newStage(t, gated)
	s.create("a", "checked")
	s.run("a", success("a1"))
	s.run("a", ends(work.CancelledRun, "the server stops")) // no fault of theirs
	for range 3 {
		s.is("a READY(gates)")
		s.run("a", ends(work.FailedRun, "no workspace"))
	}
	s.holds("a", work.HoldGates)
	s.ask(work.RetryTask{Task: "a"}) // new work gives them a new chance
	s.run("a", success("a2"))
	s.is("a READY(gates)")
}

func TestReview_LostGatesAreStartedAgainAndFiveLossesAskAPerson(t *testing.T) {
	s := newStage(t, gated)
	s.create("a", "checked")
	s.run("a", success("a1"))
	for range 5 {
		s.is("a READY(gates)")
		x := s.start("a")
		if err := s.do(s.tree("a"), work.System(), work.Lose{Execution: x.ID, Fence: x.Fence}); err != nil {
			t.Fatal(err)
		}
	}
	s.holds("a", work.HoldGates)
}

func TestReview_ADecisionOrCancelStopsGates(t *testing.T) {
	for name, c := range map[string]work.Command{
		"accept": work.AcceptTask{Task: "a"}, "reject": work.RejectTask{Task: "a", Comment: "no"},
		"cancel": work.CancelTask{Task: "a"}, "retry": work.RetryTask{Task: "a"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, gated)
			s.create("a", "checked")
			s.run("a", success("a1"))
			x := s.start("a")
			s.ask(c)
			if x.Stopping != work.CancelledRun {
				t.Error("they run on")
			}
			s.news()
			s.take(work.StopExecution, "a")
			if err := s.gatesEnd(s.tree("a"), x, false); err != nil { // they failed just then
				t.Fatal(err)
			}
			if slices.Contains(s.news(), "gates.failed a") || s.task("a").CheckerReport != "" {
				t.Error("what was stopped still speaks")
			}
		})
	}
}

func TestReview_NewGatesWaitForTheStoppedOnes(t *testing.T) {
	s := newStage(t, gated)
	s.create("a", "checked")
	s.run("a", success("a1"))
	old := s.start("a")
	s.ask(work.MessageTask{Task: "a", Text: "more"})
	start, _ := s.take(work.StartExecution, "a")
	if err := s.beginRun(s.tree("a"), start.Execution); err != nil { // the agent's workspace is free
		t.Fatal(err)
	}
	tree := s.tree("a")
	if err := s.endRun(tree, live(tree, "a", work.AgentRun), success("a2")); err != nil {
		t.Fatal(err)
	}
	e, _ := s.take(work.StartExecution, "a")
	if err := s.beginRun(tree, e.Execution); work.CodeOf(err) != work.Conflict {
		t.Fatalf("two gate runs at once: %v", err)
	}
	if err := s.endRun(tree, old, ends(work.CancelledRun, "")); err != nil {
		t.Fatal(err)
	}
	s.take(work.StopExecution, "a")
	s.gates("a", true)
	s.is("a READY(judges)")
}

func TestReview_ImprovementsHoldAcceptanceUnderEveryPolicy(t *testing.T) {
	for _, policy := range []string{"none", "human", "checked", "arbitrated"} {
		t.Run(policy, func(t *testing.T) {
			s := newStage(t)
			s.create("P", policy)
			s.start("P")
			extra := s.suggest("P", "extra")
			s.end("P", success("p1"))
			s.run(extra, success("e1"))
			switch policy {
			case "checked":
				s.says("P", work.Checker, approval(s.task("P")))
			case "arbitrated":
				s.approve("P")
			case "human":
				s.holds("P", work.HoldHuman)
				return
			}
			s.holds("P", work.HoldImprovements)
			s.ask(work.AcceptTask{Task: "P", Land: new(true)})
			s.is("P READY(landing)")
			m := s.tree("P").OpenMerge("P")
			if len(m.Queue) != 2 || m.Queue[0].TaskID != "P" || m.Queue[1].TaskID != extra {
				t.Errorf("it lands %+v", m.Queue)
			}
			s.lands("P", landed)
			s.is("P COMPLETED")
			if s.task(extra).Landed == nil || s.task("P").Landed == nil {
				t.Error("what was landed does not say so")
			}
		})
	}
}

func TestReview_ImprovementsOfAnEarlierAttemptHoldToo(t *testing.T) {
	s := newStage(t)
	s.create("P", "checked")
	s.start("P")
	extra := s.suggest("P", "extra")
	s.end("P", success("p1"))
	s.run(extra, ends(work.FailedRun, ""))
	s.ask(work.RejectTask{Task: "P", Comment: "no"})
	s.run("fix.P.2", success("p2"))
	s.says("fix.P.2", work.Checker, approval(s.task("P")))
	s.holds("fix.P.2", work.HoldImprovements)
	s.ask(work.DropTask{Task: extra})
	s.is("fix.P.2 COMPLETED")
}

func TestReview_AutoLandNeedsNobody(t *testing.T) {
	s := newStage(t, autoLand)
	s.create("P", "none")
	s.start("P")
	extra := s.suggest("P", "extra")
	s.end("P", success("p1"))
	s.run(extra, success("e1"))
	s.is("P READY(landing)")
	s.lands("P", landRefused) // and nothing lands by itself afterwards
	s.holds("P", work.HoldLanding)
	s.due()
	s.ask(work.AcceptTask{Task: "P", Land: new(true)})
	s.lands("P", landed)
	s.is("P COMPLETED")
}

func TestReview_APersonDecidesWheneverItIsReady(t *testing.T) {
	s := newStage(t, gated)
	s.create("a", "arbitrated")
	s.run("a", success("a1"))
	s.ask(work.RejectTask{Task: "a", Comment: "no", Findings: work.Findings{{File: "f", Line: 3, Text: "this line"}}}) // during gates
	s.run("fix.a.2", success("a2"))
	s.gates("fix.a.2", true)
	s.ask(work.AcceptTask{Task: "fix.a.2"}) // while it is judged
	s.is("fix.a.2 COMPLETED")
	s.refused(work.RejectTask{Task: "fix.a.2", Comment: "no"}, "completed")
	s.create("b", "human")
	s.run("b", success("b1"))
	s.refused(work.RejectTask{Task: "b", Comment: " "}, "")
}

func TestReview_EndsThatAskAPerson(t *testing.T) {
	bug := func(line int) work.Finding { return work.Finding{Kind: "bug", File: "f", Line: line, Text: "wrong"} }
	for name, c := range map[string]struct {
		second outcome
		found  []work.Finding
		hold   work.Hold
	}{
		"the same findings twice":              {success("a2"), []work.Finding{bug(1)}, work.HoldStalemate},
		"a growing list":                       {success("a2"), []work.Finding{bug(2), bug(3)}, work.HoldStalemate},
		"no change since the last rejection":   {success(""), nil, work.HoldNoChanges},
		"other findings, no more than before ": {success("a2"), []work.Finding{bug(2)}, work.NoHold},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.create("a", "arbitrated")
			s.run("a", success("a1"))
			s.reject("a", "no", bug(1))
			s.run("fix.a.2", c.second)
			if c.hold != work.HoldNoChanges {
				s.reject("fix.a.2", "no", c.found...)
			}
			if c.hold == work.NoHold {
				s.is("fix.a.3 QUEUED(slot)")
				return
			}
			s.holds("fix.a.2", c.hold)
			s.due()
		})
	}
}

func TestReview_GatesThatPassAtLastAreNoGrowth(t *testing.T) {
	s := newStage(t, gated)
	s.create("a", "arbitrated")
	s.run("a", success("a1"))
	s.gates("a", false)
	s.run("fix.a.2", success("a2"))
	s.gates("fix.a.2", true)
	s.reject("fix.a.2", "no", work.Finding{Kind: "bug", File: "f", Text: "x"}, work.Finding{Kind: "bug", File: "g", Text: "y"})
	s.is("fix.a.3 QUEUED(slot)")
}

func TestReview_GatesThatFailAlikeTwiceAskAPerson(t *testing.T) {
	s := newStage(t, gated)
	s.create("a", "arbitrated")
	s.run("a", success("a1"))
	s.gates("a", false)
	s.run("fix.a.2", success("a2"))
	s.gates("fix.a.2", false)
	s.holds("fix.a.2", work.HoldStalemate)
}

func TestReview_TheFixIsToldWhatThePanelFound(t *testing.T) {
	s := newStage(t)
	s.create("a", "arbitrated")
	s.run("a", success("a1"))
	for _, role := range panel {
		s.says("a", role, rejection("no", work.Finding{Kind: "bug", File: "f", Text: "wrong"}))
	}
	s.says("a", work.Arbitration, rejection("fix these"))
	got := s.task("fix.a.2")
	if got.RejectionComment != "fix these" || len(got.RejectionFindings) != 4 || got.RejectionFindings[1].Role != work.EvaluatorTests {
		t.Errorf("it is told %q %+v", got.RejectionComment, got.RejectionFindings)
	}
}

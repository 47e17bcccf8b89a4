package review_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/claudomator/claudomator/internal/review"
	"github.com/claudomator/claudomator/internal/work"
)

// The tests here are named after the sentences of section 6 of the specification.

func TestReview_WhichPolicy(t *testing.T) {
	t.Parallel()
	task := func(role work.Role, parent, policy string) *work.Task {
		return &work.Task{ID: "t", Kind: work.TopLevel, ParentTaskID: work.TaskID(parent), Agent: work.AgentSpec{Role: role}, Review: policy, AttemptNo: 1}
	}
	judge := task(work.Checker, "", "arbitrated")
	judge.Judges = &work.Judged{TaskID: "root"}
	extra := task("", "root", "human")
	extra.Kind = work.Improvement
	for _, c := range []struct {
		name    string
		task    *work.Task
		story   string
		project work.Project
		want    string
	}{
		{"judges are never judged", judge, "", work.Project{Policy: "human"}, "none"},
		{"nor planners", task(work.Planner, "", "human"), "", work.Project{}, "none"},
		{"nor retros", task(work.Retro, "", "human"), "", work.Project{}, "none"},
		{"nor improvements", extra, "", work.Project{}, "none"},
		{"the task's own", task(work.Builder, "", "human"), "arbitrated", work.Project{Policy: "none"}, "human"},
		{"its story's: every builder node", task(work.Builder, "root", ""), "arbitrated", work.Project{Policies: map[string]string{"*/*": "none"}}, "arbitrated"},
		{"its story's: not what has no role", task("", "root", ""), "arbitrated", work.Project{}, "none"},
		{"checked story: direct children", task(work.Builder, "root", ""), "checked", work.Project{}, "checked"},
		{"checked story: nothing below", task(work.Builder, "deep", ""), "checked", work.Project{}, "none"},
		{"checked story: not the root", task(work.Builder, "", ""), "checked", work.Project{}, "none"},
		{"the project's map: role and depth", task("docs", "root", ""), "", work.Project{Policies: map[string]string{"docs/1": "human", "docs/*": "none", "*/1": "checked"}}, "human"},
		{"the project's map: role", task("docs", "root", ""), "", work.Project{Policies: map[string]string{"docs/*": "human", "*/1": "checked"}}, "human"},
		{"the project's map: depth", task("docs", "root", ""), "", work.Project{Policies: map[string]string{"docs/0": "human", "*/1": "checked", "*/*": "none"}}, "checked"},
		{"the project's map: everything", task("docs", "root", ""), "", work.Project{Policies: map[string]string{"*/*": "human"}}, "human"},
		{"the project's map: no role", task("", "root", ""), "", work.Project{Policies: map[string]string{"none/1": "human"}}, "human"},
		{"the project's policy at top level", task("", "", ""), "", work.Project{Policy: "human"}, "human"},
		{"and not below", task("", "root", ""), "", work.Project{Policy: "human"}, "none"},
		{"builders by default", task(work.Builder, "deep", ""), "", work.Project{}, "arbitrated"},
		{"top level by default", task("", "", ""), "", work.Project{}, "checked"},
		{"others by default", task("docs", "root", ""), "", work.Project{}, "none"},
		{"an unknown name accepts nothing", task("", "root", "strict"), "", work.Project{}, "human"},
	} {
		tree := work.NewTree("root", []*work.Task{
			{ID: "root", Kind: work.TopLevel, Review: "human", AttemptNo: 1}, {ID: "deep", ParentTaskID: "root", AttemptNo: 1}, c.task,
		}, nil, nil)
		tree.Project = c.project
		if c.story != "" {
			tree.Story = &work.Story{Policy: c.story}
		}
		p := review.For(tree, c.task)
		if p.Name != c.want {
			t.Errorf("%s: %s, want %s", c.name, p.Name, c.want)
		}
		if p.Name == "human" && p.Auto {
			t.Errorf("%s: accepts by itself", c.name)
		}
	}
}

func TestReview_Names(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"none", "human", "checked", "arbitrated"} {
		if p, err := review.Preset(name); err != nil || p.Name != name || p.Fixes != 3 {
			t.Errorf("%s: %+v %v", name, p, err)
		}
	}
	if _, err := review.Preset("strict"); work.CodeOf(err) != work.Invalid {
		t.Errorf("%v", err)
	}
	for key, ok := range map[string]bool{"builder/0": true, "*/*": true, "*/12": true, "none/*": true, "builder": false, "/1": false, "a/": false, "a/-1": false, "a/x": false} {
		if err := review.CheckRule(key, "human"); (err == nil) != ok {
			t.Errorf("%q: %v", key, err)
		}
	}
	if review.CheckRule("*/*", "strict") == nil {
		t.Error("an unknown policy is taken")
	}
}

func TestReview_NoneAcceptsAtOnceWithoutGates(t *testing.T) {
	s := newStage(t, gated)
	s.create("a", "none", func(in *work.TaskInput) { in.Gates = []string{"true"} })
	s.run("a", success("a1"))
	s.is("a COMPLETED")
	s.due()
}

func TestReview_HumanShowsGatesAndWaits(t *testing.T) {
	for name, how := range map[string]outcome{"pass": gates(true), "fail": gates(false), "broken": ends(work.FailedRun, "no workspace")} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, gated)
			s.create("a", "human")
			s.run("a", success("a1"))
			s.is("a READY(gates)")
			for s.task("a").BlockedOn == work.OnGates {
				s.run("a", how)
			}
			s.holds("a", work.HoldHuman)
			s.ask(work.AcceptTask{Task: "a"})
			s.is("a COMPLETED")
		})
	}
}

func TestReview_CheckedApproves(t *testing.T) {
	s := newStage(t, gated)
	s.create("a", "checked", named("it works"))
	s.run("a", success("a1"))
	s.gates("a", true)
	j := s.judge("a", work.Checker)
	if j.Name != "Check: a" || j.CheckerForTaskID != "a" || j.Timeout != 0 || j.Agent.MaxBudgetUSD != 0.50 ||
		!slices.Equal(j.Agent.AllowedTools, []string{"Bash", "Read", "Glob", "Grep"}) || !slices.Equal(j.AcceptanceCriteria, []string{"it works"}) {
		t.Errorf("the checker is %+v", j)
	}
	s.says("a", work.Checker, approval(s.task("a")))
	s.is("a COMPLETED")
	if by := s.task("a").Accepted.By; by != work.System() {
		t.Errorf("accepted by %v", by)
	}
}

func TestReview_CheckedReports(t *testing.T) {
	for name, c := range map[string]struct {
		play func(s *stage)
		hold work.Hold
		want string
	}{
		"failed gate output": {func(s *stage) { s.gates("a", false) }, work.HoldFlagged, "1 test failed"},
		"the verdict's reasoning and findings": {func(s *stage) {
			s.gates("a", true)
			s.says("a", work.Checker, rejection("it is wrong", work.Finding{Kind: "bug", File: "f", Line: 7, Text: "off by one"}))
		}, work.HoldFlagged, "it is wrong\n- f:7 off by one"},
		"the verdict's, though it does not count": {func(s *stage) {
			s.gates("a", true)
			for range 2 {
				s.says("a", work.Checker, &work.Verdict{Approved: true, Reasoning: "looks good", Findings: work.Findings{{File: "f", Line: 7, Text: "or not"}}})
			}
		}, work.HoldNoVerdict, "looks good\n- f:7 or not"},
		"the summary": {func(s *stage) {
			s.gates("a", true)
			for range 2 {
				j := s.judge("a", work.Checker)
				x := s.start(j.ID)
				if err := s.do(s.tree("a"), work.System(), work.Report{Execution: x.ID, Summary: "the disk was full"}); err != nil {
					s.t.Fatal(err)
				}
				s.end(j.ID, ends(work.FailedRun, "it crashed"))
			}
		}, work.HoldNoVerdict, "the disk was full"},
		"the error": {func(s *stage) {
			s.gates("a", true)
			for range 2 {
				s.run(s.judge("a", work.Checker).ID, ends(work.FailedRun, "it crashed"))
			}
		}, work.HoldNoVerdict, "it crashed"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, gated)
			s.create("a", "checked", named("it works"))
			s.run("a", success("a1"))
			c.play(s)
			s.holds("a", c.hold)
			if got := s.task("a").CheckerReport; !strings.Contains(got, c.want) {
				t.Errorf("the report is %q", got)
			}
			s.due() // it never fixes by itself
		})
	}
}

func TestReview_ArbitratedHearsFourAndThenDecides(t *testing.T) {
	s := newStage(t, gated)
	s.create("a", "arbitrated")
	s.run("a", success("a1"))
	s.gates("a", true)
	if got := len(s.pending()); got != 4 {
		t.Fatalf("%d judges start", got)
	}
	for i, role := range panel {
		if s.judge("a", work.Arbitration) != nil {
			t.Fatalf("arbitration begins after %d verdicts", i)
		}
		if got, want := s.judge("a", role).Name, string(role)+": a"; got != want {
			t.Errorf("it is called %q", got)
		}
		s.says("a", role, rejection("no")) // dissent does not decide
	}
	s.says("a", work.Arbitration, approval(s.task("a")))
	s.is("a COMPLETED")
}

func TestReview_FixesUpToTheCapThenAPerson(t *testing.T) {
	s := newStage(t)
	s.create("a", "arbitrated")
	id := work.TaskID("a")
	for n := 2; n <= 5; n++ {
		s.run(id, success("c"+string(id)))
		s.reject(id, "no", work.Finding{Kind: "bug", File: "f", Line: n, Text: "wrong"})
		if n < 5 {
			id = work.TaskID("fix.a." + string(rune('0'+n)))
		}
	}
	s.is("fix.a.4 READY(person)")
	s.holds("fix.a.4", work.HoldCap)
	s.refused(work.RejectTask{Task: "fix.a.4", Comment: "no"}, "cap_reached")
	s.ask(work.RejectTask{Task: "fix.a.4", Comment: "once more", Extra: 1})
	s.is("fix.a.5 QUEUED(slot)")
	s.run("fix.a.5", success("last"))
	s.reject("fix.a.5", "still no")
	s.holds("fix.a.5", work.HoldCap)
	s.ask(work.AcceptTask{Task: "fix.a.5"})
	s.is("fix.a.5 COMPLETED")
}

func TestReview_TheProjectSetsTheCap(t *testing.T) {
	none := 0
	s := newStage(t, func(p *work.Project) { p.MaxFixes = &none })
	s.create("a", "arbitrated")
	s.run("a", success("a1"))
	s.reject("a", "no")
	s.holds("a", work.HoldCap)
}

func TestReview_HumanRoundsCountTowardTheSameCap(t *testing.T) {
	two := 2
	s := newStage(t, func(p *work.Project) { p.MaxFixes = &two })
	s.create("a", "arbitrated")
	s.run("a", success("a1"))
	s.ask(work.RejectTask{Task: "a", Comment: "no"})
	s.run("fix.a.2", success("a2"))
	s.reject("fix.a.2", "no")
	s.run("fix.a.3", success("a3"))
	s.refused(work.RejectTask{Task: "fix.a.3", Comment: "no"}, "cap_reached")
}

// TestReview_AnotherJudges: nobody judges what it has built itself where the server
// is set up for another agent, unless a person said who judges.
func TestReview_AnotherJudges(t *testing.T) {
	for name, c := range map[string]struct {
		role   work.RoleConfig
		task   work.AgentSpec
		proj   string
		judges []string
		want   string
	}{
		"another one":               {work.RoleConfig{}, work.AgentSpec{Type: "scripted"}, "scripted", []string{"scripted", "second"}, "second"},
		"the one that built is not": {work.RoleConfig{}, work.AgentSpec{}, "", []string{"scripted", "second"}, "second"},
		"a person said who":         {work.RoleConfig{Agent: "scripted"}, work.AgentSpec{Type: "scripted"}, "", []string{"second"}, "scripted"},
		"the project's is another":  {work.RoleConfig{}, work.AgentSpec{Type: "second"}, "scripted", []string{"second"}, "scripted"},
		"none that can be used":     {work.RoleConfig{}, work.AgentSpec{Type: "scripted"}, "", []string{"absent"}, "scripted"},
		"none that is set up":       {work.RoleConfig{}, work.AgentSpec{Type: "scripted"}, "", nil, "scripted"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, func(p *work.Project) { p.Agent = c.proj })
			s.rules = review.Rules{
				Roles: map[work.Role]work.RoleConfig{work.Checker: c.role}, Judges: c.judges,
				Usable: func(agent string) bool { return agent == "scripted" || agent == "second" },
			}
			s.create("a", "checked", func(in *work.TaskInput) { in.Agent = c.task })
			s.run("a", success("a1"))
			if j := s.judge("a", work.Checker); j == nil || j.Agent.Type != c.want {
				t.Errorf("spawned %+v, want %s", j, c.want)
			}
		})
	}
}

func TestReview_WhoJudges(t *testing.T) {
	shell := []string{"sh", "-c", "test -f x"}
	for name, c := range map[string]struct {
		role work.RoleConfig
		task work.AgentSpec
		proj string
		want string // agent type, "" for nobody
	}{
		"the role's agent":                   {work.RoleConfig{Agent: "scripted", Model: "big"}, work.AgentSpec{Type: "other"}, "other", "scripted"},
		"the project's default":              {work.RoleConfig{}, work.AgentSpec{Type: "other"}, "scripted", "scripted"},
		"the judged task's own":              {work.RoleConfig{}, work.AgentSpec{Type: "scripted"}, "", "scripted"},
		"the role's command":                 {work.RoleConfig{Command: shell}, work.AgentSpec{Type: "command"}, "", "command"},
		"not installed":                      {work.RoleConfig{Agent: "absent"}, work.AgentSpec{Type: "scripted"}, "", ""},
		"a command task without its checker": {work.RoleConfig{}, work.AgentSpec{Type: "command"}, "", ""},
		"the one that really ran":            {work.RoleConfig{}, work.AgentSpec{}, "", "scripted"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, gated, func(p *work.Project) { p.Agent = c.proj })
			s.rules.Roles = map[work.Role]work.RoleConfig{work.Checker: c.role}
			s.create("a", "checked", func(in *work.TaskInput) { in.Agent = c.task })
			s.run("a", success("a1"))
			s.gates("a", true)
			j := s.judge("a", work.Checker)
			if c.want == "" {
				if j != nil {
					t.Fatalf("spawned %+v", j.Agent)
				}
				s.holds("a", work.HoldNoJudge)
				if runs := s.tree("a").Runs("a", work.GateRun); len(runs) != 1 || len(runs[0].Gates) != 1 {
					t.Error("what the gates found is not shown")
				}
				s.rules.Roles[work.Checker] = work.RoleConfig{Command: shell} // one is set: it goes on
				if err := s.do(s.tree("a"), work.System(), work.Settle{}); err != nil {
					t.Fatal(err)
				}
				s.is("a READY(judges)")
				return
			}
			if j == nil || j.Agent.Type != c.want || j.Agent.Model != c.role.Model {
				t.Errorf("judged by %+v", j)
			}
		})
	}
}

func TestReview_NoJudgeForTheArbiterSpawnsNobody(t *testing.T) {
	s := newStage(t)
	s.rules.Roles = map[work.Role]work.RoleConfig{work.Arbitration: {Agent: "absent"}}
	s.create("a", "arbitrated")
	s.run("a", success("a1"))
	s.holds("a", work.HoldNoJudge)
	s.due()
}

func TestReview_TicksAndRestartsCreateNoDuplicates(t *testing.T) {
	s := newStage(t)
	s.create("a", "arbitrated")
	s.run("a", success("a1"))
	for range 3 {
		s.trees[0] = reload(s.trees[0])
		if err := s.do(s.trees[0], work.System(), work.Settle{}); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(s.tree("a").JudgesOf("a")); got != 4 {
		t.Errorf("%d judges", got)
	}
}

func TestReview_OnlyTheVerdictForThatCommitCounts(t *testing.T) {
	s := newStage(t)
	s.create("a", "checked")
	s.run("a", success("a1"))
	old := s.judge("a", work.Checker)
	s.start(old.ID)
	s.ask(work.MessageTask{Task: "a", Text: "also that"}) // a1 will not be judged any more
	s.run("a", success("a2"))
	s.stops(old.ID)
	s.is("a READY(judges)")
	j := s.judge("a", work.Checker)
	if j == old || j.Judges.Commit != "a2" {
		t.Errorf("judged by %s for %s", j.ID, j.Judges.Commit)
	}
}

func TestReview_TheNumberCountsOnOverCancelledJudges(t *testing.T) {
	s := newStage(t)
	s.create("P", "checked")
	s.start("P")
	extra := s.suggest("P", "extra")
	s.end("P", success("p1"))
	s.run(extra, ends(work.FailedRun, ""))
	first := s.judge("P", work.Checker)
	s.ask(work.RetryTask{Task: extra}) // sends P back: its judge is cancelled
	s.is(string(first.ID)+" CANCELLED", "P BLOCKED(children)")
	s.run(extra, success("e1"))
	second := s.judge("P", work.Checker)
	if second == first || second.Book.Number != 2 {
		t.Errorf("the next judge is %s, number %d", second.ID, second.Book.Number)
	}
}

func TestReview_AfterARetriedImprovementTheVerdictStands(t *testing.T) {
	s := newStage(t)
	s.create("P", "checked")
	s.start("P")
	extra := s.suggest("P", "extra")
	s.end("P", success("p1"))
	s.run(extra, ends(work.FailedRun, ""))
	s.says("P", work.Checker, approval(s.task("P")))
	s.holds("P", work.HoldImprovements)
	s.news()
	s.ask(work.RetryTask{Task: extra})
	s.run(extra, success("e1"))
	s.holds("P", work.HoldImprovements)
	if got := len(s.tree("P").JudgesOf("P")); got != 1 {
		t.Errorf("%d judges for one commit", got)
	}
	if slices.Contains(s.news(), "decision.approved P") {
		t.Error("one decision is told twice")
	}
}

func TestReview_NoVerdictIsOneNewJudgeThenAPerson(t *testing.T) {
	unproven := &work.Verdict{Approved: true, Criteria: []work.Criterion{{Criterion: "it works", Met: true}}}
	unmet := &work.Verdict{Approved: true, Criteria: []work.Criterion{{Criterion: "it works", How: "go test"}}}
	other := &work.Verdict{Approved: true, Criteria: []work.Criterion{{Criterion: "something else", Met: true, How: "go test"}}}
	for name, play := range map[string]func(s *stage){
		"crash":                        func(s *stage) { s.run(s.judge("a", work.Checker).ID, ends(work.FailedRun, "")) },
		"time":                         func(s *stage) { s.run(s.judge("a", work.Checker).ID, ends(work.TimedOutRun, "")) },
		"silence":                      func(s *stage) { s.says("a", work.Checker, nil) },
		"a criterion without proof":    func(s *stage) { s.says("a", work.Checker, unproven) },
		"approved with an unmet one":   func(s *stage) { s.says("a", work.Checker, unmet) },
		"a criterion that is left out": func(s *stage) { s.says("a", work.Checker, other) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.create("a", "checked", named("it works"))
			s.run("a", success("a1"))
			play(s)
			s.is("a READY(judges)")
			play(s)
			s.holds("a", work.HoldNoVerdict)
			if s.task("a").CheckerReport == "" {
				t.Error("the person is not told why")
			}
			if got := len(s.tree("a").JudgesOf("a")); got != 2 {
				t.Errorf("%d judges", got)
			}
		})
	}
}

func TestReview_AJudgesQuestionContinuesTheSameJudge(t *testing.T) {
	s := newStage(t)
	s.create("a", "checked")
	s.run("a", success("a1"))
	j := s.judge("a", work.Checker)
	s.start(j.ID)
	s.asks(j.ID, "is this meant?")
	s.is("a READY(judges)")
	s.listed("a", string(j.ID)+" question")
	s.ask(work.AnswerTask{Task: j.ID, Text: "yes"})
	s.says("a", work.Checker, approval(s.task("a")))
	s.is("a COMPLETED")
	if got := len(s.tree("a").JudgesOf("a")); got != 1 {
		t.Errorf("%d judges", got)
	}
}

func TestReview_AFailedJudgeCanBeAskedAgainByAPerson(t *testing.T) {
	s := newStage(t)
	s.create("a", "checked")
	s.run("a", success("a1"))
	for range 2 {
		s.run(s.judge("a", work.Checker).ID, ends(work.FailedRun, ""))
	}
	j := s.judge("a", work.Checker)
	s.ask(work.RetryTask{Task: j.ID})
	s.is("a READY(judges)")
	s.refused(work.RetryTask{Task: s.tree("a").JudgesOf("a")[0].ID}, "stale_judge") // not two at once
	s.says("a", work.Checker, approval(s.task("a")))
	s.is("a COMPLETED")
}

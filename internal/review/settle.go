package review

import (
	"fmt"
	"strings"

	"github.com/claudomator/claudomator/internal/work"
)

// Settle drives the step's tree until nothing more follows. The number of
// looks is bounded, so that a broken rule is an error and never a loop.
func Settle(s *work.Step, rules Rules) error {
	s.MaxFixes = MaxFixes(s.Tree)
	most := 1000 + 100*s.Tree.Size()
	for range most {
		t, ok := s.Touched()
		if !ok {
			return settleStory(s)
		}
		if err := s.Follow(t); err != nil {
			return err
		}
		if t.State == work.Ready && t.SupersededBy == "" {
			if err := judge(s, rules, t); err != nil {
				return err
			}
		}
	}
	return work.Errorf(work.Internal, "tree %s does not settle", s.Tree.ID)
}

// judge does the next thing the policy asks for on one READY task.
func judge(s *work.Step, rules Rules, t *work.Task) error {
	if t.BlockedOn == work.OnIntegration || t.BlockedOn == work.OnLanding || t.Hold == work.HoldLanding {
		return nil
	}
	p := For(s.Tree, t)
	if p.Name == "none" {
		return accept(s, t)
	}
	if noChanges(s.Tree, t) {
		s.WaitForPerson(t, work.HoldNoChanges, whyNothing(t))
		return nil
	}
	if p.Gates {
		done, err := gates(s, p, t)
		if err != nil || !done {
			return err
		}
	}
	if len(p.Panel) == 0 {
		s.WaitForPerson(t, work.HoldHuman, "waits for a person's decision")
		return nil
	}
	return panel(s, rules, p, t)
}

// noChanges is rule 10: work that should have been code and changed nothing.
func noChanges(tree *work.Tree, t *work.Task) bool {
	return tree.Project.Repository != "" && (t.Result == nil || t.Result.NoChanges)
}

func whyNothing(t *work.Task) string {
	if t.Summary != "" {
		return "it changed nothing; the agent says: " + t.Summary
	}
	return "it changed nothing, and the agent gave no reason"
}

// maxGateFaults bounds how often gates are tried that cannot be run.
const maxGateFaults = 3

// gates runs the gate commands on the task's head. It is done when they have
// passed, or decide nothing.
func gates(s *work.Step, p Policy, t *work.Task) (done bool, err error) {
	if len(Commands(s.Tree, t)) == 0 {
		return true, nil
	}
	for _, x := range s.Tree.Runs(t.ID, work.GateRun) {
		if x.Round != t.Book.Round || x.Commit != t.Book.Head {
			continue
		}
		switch {
		case x.Live():
			s.AwaitReview(t, work.OnGates)
			return false, nil
		case x.State == work.ExecutionEnded && x.Outcome == work.Success:
			if work.GatesPassed(x.Gates) || !p.Decide {
				return true, nil
			}
			return false, reject(s, p, t, rejection{report: gateReport(x.Gates), findings: gateFindings(x.Gates)})
		}
	}
	if t.Book.GateFaults >= maxGateFaults {
		s.WaitForPerson(t, work.HoldGates, "the gates could not be run; see their log")
		return false, nil
	}
	s.StartGates(t)
	return false, nil
}

// Commands lists the gate commands of a task: its own, then the project's.
func Commands(tree *work.Tree, t *work.Task) []string {
	return append(append([]string{}, t.Gates...), tree.Project.Validate...)
}

func gateReport(results []work.GateResult) string {
	var b strings.Builder
	for _, g := range results {
		if !g.Passed() {
			how := fmt.Sprintf("exit code %d", g.ExitCode)
			if g.TimedOut {
				how = "timed out"
			}
			fmt.Fprintf(&b, "gate failed (%s): %s\n%s\n", how, g.Command, g.Output)
		}
	}
	return strings.TrimSpace(b.String())
}

func gateFindings(results []work.GateResult) work.Findings {
	var out work.Findings
	for _, g := range results {
		if !g.Passed() {
			out = append(out, work.Finding{Role: "gate", Kind: g.Command, Severity: "high", Text: g.Output})
		}
	}
	return out
}

// panel spawns what judges are missing, and decides when all have spoken.
func panel(s *work.Step, rules Rules, p Policy, t *work.Task) error {
	roles := p.Panel
	if p.Arbiter != "" {
		roles = append(append([]work.Role{}, roles...), p.Arbiter)
	}
	for _, role := range roles {
		if _, ok := rules.judgeSpec(s.Tree, t, role); !ok && !hasVerdict(s.Tree, t, role) {
			s.WaitForPerson(t, work.HoldNoJudge, fmt.Sprintf("no agent can be used for the role %s; set one with `role set %s`, or decide yourself", role, role))
			return nil
		}
	}
	verdicts := make([]*work.Task, 0, len(roles))
	waiting := false
	for _, role := range p.Panel {
		j, state := standing(s.Tree, t, role)
		switch state {
		case missing:
			spawn(s, rules, t, role)
			waiting = true
		case working:
			waiting = true
		case silent:
			return noVerdict(s, t, role)
		case spoken:
			verdicts = append(verdicts, j)
		}
	}
	if waiting {
		s.AwaitReview(t, work.OnJudges)
		return nil
	}
	if p.Arbiter != "" {
		j, state := standing(s.Tree, t, p.Arbiter)
		switch state {
		case missing:
			spawn(s, rules, t, p.Arbiter)
			s.AwaitReview(t, work.OnJudges)
			return nil
		case working:
			s.AwaitReview(t, work.OnJudges)
			return nil
		case silent:
			return noVerdict(s, t, p.Arbiter)
		case spoken:
			return decide(s, p, t, []*work.Task{j}, verdicts)
		}
	}
	return decide(s, p, t, verdicts, nil)
}

// decide acts on the verdicts that count; heard are those the arbiter weighed.
func decide(s *work.Step, p Policy, t *work.Task, deciding, heard []*work.Task) error {
	var why rejection
	for _, j := range deciding {
		if !j.Verdict.Approved {
			why.add(j)
		}
	}
	if why.report == "" {
		return approve(s, p, t)
	}
	for _, j := range heard {
		why.findings = append(why.findings, owned(j)...)
	}
	return reject(s, p, t, why)
}

// approve accepts, unless something still holds the task for a person.
func approve(s *work.Step, p Policy, t *work.Task) error {
	hold, reason := work.NoHold, ""
	switch b := s.Tree.Unbuilt(t); {
	case !p.Auto:
		hold, reason = work.HoldHuman, "approved; waits for a person's decision"
	case b != "":
		hold, reason = work.HoldBuiltOn, fmt.Sprintf("approved, but built on %s, which is not settled yet", b)
	case improved(s.Tree, t) && !s.Tree.Project.AutoLand && t.StoryID == "":
		hold, reason = work.HoldImprovements, "approved; with its improvements it waits for a person to accept and land it"
	}
	if hold != work.NoHold {
		if s.WaitForPerson(t, hold, reason) {
			s.Decided(t, true, reason)
		}
		return nil
	}
	if t.BlockedOn != work.OnPerson { // a hold has recorded the decision already
		s.Decided(t, true, "")
	}
	return accept(s, t)
}

func accept(s *work.Step, t *work.Task) error {
	actor := s.Actor
	s.Actor = work.System()
	defer func() { s.Actor = actor }()
	return s.Accept(t)
}

// improved is true when any attempt of the task's place has improvements.
func improved(tree *work.Tree, t *work.Task) bool {
	for _, attempt := range tree.Chain(t.Position()) {
		for _, pos := range tree.Children(attempt.ID) {
			if c := tree.Current(pos); c.Kind == work.Improvement && c.State == work.Completed {
				return true
			}
		}
	}
	return false
}

// settleStory derives the story's status from its root.
func settleStory(s *work.Step) error {
	story := s.Tree.Story
	if story == nil {
		return nil
	}
	root := s.Tree.Current(s.Tree.Root())
	if root == nil {
		return nil
	}
	if status := storyStatus(s.Tree, story, root); status != story.Status {
		s.SetStory(status)
	}
	return nil
}

// storyStatus: drafts, shipping and ended stories are moved by acts alone.
func storyStatus(tree *work.Tree, story *work.Story, root *work.Task) work.StoryStatus {
	switch story.Status {
	case work.Draft, work.Shippable, work.Shipping, work.Deployed, work.DeployFailed, work.StoryCancelled:
		return story.Status
	case work.InProgress, work.Validating, work.NeedsFix, work.ReviewReady:
	}
	if story.Policy == "checked" {
		return checkedStatus(tree, root)
	}
	switch {
	case root.State == work.Completed:
		return work.ReviewReady
	case root.State == work.Ready && (root.Hold == work.HoldCap || root.Hold == work.HoldStalemate):
		return work.NeedsFix
	case root.State == work.Ready:
		return work.Validating
	case root.AttemptNo > 1 && !root.Book.Began:
		return work.NeedsFix
	}
	return work.InProgress
}

// checkedStatus: each of the plan's tasks is completed, or its check is over.
func checkedStatus(tree *work.Tree, root *work.Task) work.StoryStatus {
	children := tree.Children(root.ID)
	for _, pos := range children {
		c := tree.Current(pos)
		over := c.State == work.Completed || c.Dropped || (c.State == work.Ready && c.BlockedOn == work.OnPerson && c.Hold != work.HoldNoJudge)
		if !over {
			return work.InProgress
		}
	}
	if len(children) == 0 {
		return work.InProgress
	}
	return work.Shippable
}

package review

import (
	"fmt"
	"strings"

	"github.com/claudomator/claudomator/internal/work"
)

// Settle drives the step's tree until nothing more follows. The number of
// looks is bounded, so that a broken rule is an error and never a loop. What
// follows is the server's doing, whoever acted.
func Settle(s *work.Step, rules Rules) error {
	s.MaxFixes = MaxFixes(s.Tree)
	actor := s.Actor
	s.Actor = work.System()
	defer func() { s.Actor = actor }()
	most := 1000 + 100*s.Tree.Size()
	for range most {
		t, ok := s.Touched()
		if !ok {
			again, err := settleStory(s, rules)
			if err != nil || !again {
				return err
			}
			continue
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
	if b, moved := s.Tree.Moved(t); moved {
		return s.Absorb(t, b)
	}
	if reason, lost := s.Tree.Lost(t); lost {
		s.WaitForPerson(t, work.HoldBuiltOn, reason)
		return nil
	}
	p := For(s.Tree, t)
	if p.unjudged() {
		return release(s, p, t)
	}
	if reason, ok := nothingNew(s.Tree, t); ok {
		s.WaitForPerson(t, work.HoldNoChanges, reason)
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

// nothingNew is rule 10: work that should have been code and changed nothing, or
// a fix attempt that left the rejected work as it was.
func nothingNew(tree *work.Tree, t *work.Task) (reason string, nothing bool) {
	switch {
	case tree.Project.Repository == "":
		return "", false
	case t.Result == nil || t.Result.NoChanges:
		reason = "it changed nothing"
	case t.AttemptNo > 1 && t.Book.Head == t.Book.Base:
		reason = "it changed nothing since it was rejected"
	default:
		return "", false
	}
	if t.Summary != "" {
		return reason + "; the agent says: " + t.Summary, true
	}
	return reason + ", and the agent gave no reason", true
}

// gates runs the gate commands on the task's head. It is done when they have
// passed, or decide nothing.
func gates(s *work.Step, p Policy, t *work.Task) (done bool, err error) {
	if len(s.Tree.Commands(t, work.GateRun)) == 0 {
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
	if t.Book.GateFaults >= work.MaxGateFaults {
		if !p.Decide {
			return true, nil
		}
		s.WaitForPerson(t, work.HoldGates, "the gates could not be run; see their log")
		return false, nil
	}
	s.StartGates(t)
	return false, nil
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

// gate is the dimension of what the gates find.
const gate work.Role = "gate"

func gateFindings(results []work.GateResult) work.Findings {
	var out work.Findings
	for _, g := range results {
		if !g.Passed() {
			out = append(out, work.Finding{Role: gate, Kind: g.Command, Severity: "high", Text: g.Output})
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
	approved := why.report == ""
	for _, j := range heard {
		if j.Verdict.Approved != approved {
			why.dissent = append(why.dissent, j.Role())
		}
	}
	if approved {
		return approve(s, p, t, why.dissent)
	}
	if len(why.findings) == 0 { // else the arbiter's list is what the fix works on
		for _, j := range heard {
			why.findings = append(why.findings, owned(j)...)
		}
	}
	return reject(s, p, t, why)
}

// approve records the approval of a review, and lets the work go.
func approve(s *work.Step, p Policy, t *work.Task, dissent []work.Role) error {
	s.Decided(t, true, "", dissent...)
	return release(s, p, t)
}

// release accepts, unless something still holds the task for a person.
func release(s *work.Step, p Policy, t *work.Task) error {
	switch b := s.Tree.Unbuilt(t); {
	case !p.Auto:
		s.WaitForPerson(t, work.HoldHuman, "approved; waits for a person's decision")
	case b != "":
		s.WaitForPerson(t, work.HoldBuiltOn, fmt.Sprintf("approved, but built on task %s, which is not settled yet", b))
	case s.Tree.Project.AutoLand && t.Lands():
		return s.AcceptLanding(t, "")
	case s.Tree.Improved(t) && t.StoryID == "":
		s.WaitForPerson(t, work.HoldImprovements, "approved; with its improvements it waits for a person to accept and land it")
	default:
		return s.Accept(t)
	}
	return nil
}

// settleStory derives the story's status from its root, and lets a ship go on; it
// is true when something more has to settle.
func settleStory(s *work.Step, rules Rules) (again bool, err error) {
	story, root := s.Tree.Story, s.Tree.Current(s.Tree.Root())
	if story == nil || root == nil {
		return false, nil
	}
	if story.Status == work.Shipping {
		if again, err := s.FollowShip(); again || err != nil {
			return again, err
		}
	}
	if status := storyStatus(s.Tree, story, root); status != story.Status {
		s.SetStory(status)
	}
	return s.LookBack(func() (work.AgentSpec, bool) { return rules.judgeSpec(s.Tree, root, work.Retro) }), nil
}

// storyStatus: drafts, shipping and ended stories are moved by acts alone.
func storyStatus(tree *work.Tree, story *work.Story, root *work.Task) work.StoryStatus {
	switch story.Status {
	case work.Draft, work.Shipping, work.Deployed, work.DeployFailed, work.StoryCancelled:
		return story.Status
	case work.InProgress, work.Validating, work.NeedsFix, work.ReviewReady, work.Shippable:
	}
	rejected := root.AttemptNo > 1 && !root.Book.Began
	switch {
	case story.Checked() && !rejected:
		return checkedStatus(tree, root)
	case root.State == work.Completed && root.Accepted.By.Kind == work.PersonActor:
		return work.Shippable
	case root.State == work.Completed:
		return work.ReviewReady
	case root.State == work.Ready && (root.Hold == work.HoldCap || root.Hold == work.HoldStalemate):
		return work.NeedsFix
	case root.State == work.Ready:
		return work.Validating
	case rejected:
		return work.NeedsFix
	}
	return work.InProgress
}

// checkedStatus: each of the plan's tasks is completed, or its check is over. A
// fix of the root runs itself, over the tasks of the attempt before.
func checkedStatus(tree *work.Tree, root *work.Task) work.StoryStatus {
	if root.State != work.Completed && !root.Waiting(work.Blocked, work.OnChildren) {
		return work.InProgress
	}
	tasks := 0
	for _, attempt := range tree.Chain(tree.Root()) {
		for _, pos := range tree.Children(attempt.ID) {
			c := tree.Current(pos)
			if c.Kind == work.Improvement || c.Dropped {
				continue
			}
			if tasks++; !checkOver(c) {
				return work.InProgress
			}
		}
	}
	if tree.Invalid() || (tasks == 0 && !builtItself(root)) {
		return work.InProgress
	}
	return work.Shippable
}

// builtItself is true for a root that was sent back and has done the work on its own.
func builtItself(root *work.Task) bool {
	return root.AttemptNo > 1 && root.State == work.Completed && root.Result != nil && !root.Result.NoChanges
}

// checkOver is true when a checker or gate has spoken and no fix is open.
func checkOver(t *work.Task) bool {
	return t.State == work.Completed ||
		t.Waiting(work.Ready, work.OnPerson) && (t.Hold == work.HoldFlagged || t.Hold == work.HoldNoVerdict)
}

package work

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// ShipStory lands a story's work and deploys it, or goes on where an earlier
// ship stopped after the landing.
type ShipStory struct{}

func (c ShipStory) apply(s *Step) error {
	story, err := s.theStory()
	if err != nil {
		return err
	}
	if err := s.Tree.mayShip(); err != nil {
		return err
	}
	resumed := story.Status == DeployFailed
	if err := s.act(ActShip); err != nil {
		return err
	}
	if resumed {
		story.Ship.By, story.Ship.Error = s.Actor, ""
	} else {
		before := story.Ship
		story.Ship, story.ValidationResult = &Ship{By: s.Actor, StartedAt: s.Now, Target: s.Tree.Project.Branch, Step: ShipAccept}, nil
		if before != nil {
			story.Ship.Pull = before.Pull // it may have been merged while nobody looked
		}
		if err := s.acceptFlagged(); err != nil {
			return err
		}
	}
	body := map[string]any{"step": story.Ship.Step}
	if reports := story.Ship.Reports; len(reports) > 0 {
		body["reports"] = reports
	}
	s.storyChanged("ship.started", body)
	if resumed {
		return s.shipAgain()
	}
	return nil // the interpreter goes on
}

// shipAgain goes on where a ship stopped after the landing, once that is found to be
// on its branch still: a person may have taken it back.
func (s *Step) shipAgain() error {
	ship := s.Tree.Story.Ship
	ship.Resume = ship.Step
	if ship.MergeID == "" { // it was merged at the forge
		return s.shipStep(ShipPull)
	}
	return s.shipStep(ShipPush)
}

// shipOn goes on once the landing is seen: to the deployment, or to where a ship that
// goes on had stopped.
func (s *Step) shipOn() error {
	next := s.Tree.Story.Ship.Resume
	s.Tree.Story.Ship.Resume = ""
	if next == ShipSmoke {
		return s.shipStep(ShipSmoke)
	}
	return s.shipStep(ShipDeploy)
}

// mayShip refuses what is not SHIPPABLE, naming the ship that runs or ran.
func (t *Tree) mayShip() error {
	story := t.Story
	switch story.Status {
	case Shippable, DeployFailed:
		return nil
	case Shipping:
		return t.StoryRefused(Errorf(Illegal, "story %s is being shipped already (%s)", story.ID, story.Ship.Step).WithReason("shipping").With("ship", story.Ship))
	case Deployed:
		return t.StoryRefused(Errorf(Illegal, "story %s is shipped already, as %s", story.ID, story.Shipped.Commit).WithReason("already_shipped").With("commit", story.Shipped.Commit))
	case Draft, InProgress, Validating, NeedsFix, ReviewReady, StoryCancelled:
	}
	return t.StoryRefused(Errorf(Illegal, "story %s is %s: only a SHIPPABLE story is shipped", story.ID, story.Status).WithReason("not_shippable"))
}

// acceptFlagged accepts what a checked story still has READY: its check is over,
// and pressing Ship is a person's word for it. What was reported stays listed.
func (s *Step) acceptFlagged() error {
	root := s.Tree.Current(s.Tree.Root())
	for _, attempt := range s.Tree.Chain(s.Tree.Root()) {
		for _, pos := range s.Tree.Children(attempt.ID) {
			t := s.Tree.Current(pos)
			if t.Kind == Improvement || t.State != Ready || t.BlockedOn != OnPerson {
				continue
			}
			report, _, _ := strings.Cut(cmp.Or(t.CheckerReport, t.Reason, "no verdict"), "\n")
			s.Tree.Story.Ship.Reports = append(s.Tree.Story.Ship.Reports, t.Name+": "+report)
			if err := (AcceptTask{Task: t.ID}).apply(s); err != nil {
				return err
			}
		}
	}
	s.Touch(root.ID)
	return nil
}

// FollowShip does the next thing a ship is waiting for, once what it waited for
// has happened; the interpreter calls it whenever the tree has settled. It is
// true when something more has to settle.
func (s *Step) FollowShip() (bool, error) {
	story, root := s.Tree.Story, s.Tree.Current(s.Tree.Root())
	switch story.Ship.Step {
	case ShipAccept:
		if root.State == Completed {
			return true, s.shipStep(ShipValidate)
		}
		for _, pos := range s.Tree.Unsettled(root.ID) { // a conflict has begun a fix, or asks a person
			if c := s.Tree.Current(pos); c.Kind == Subtask && c.BlockedOn != OnIntegration {
				return true, s.shipUndone("task " + string(c.ID) + " is not integrated; ship again when it is")
			}
		}
	case ShipValidate:
		return s.shipValidated(root)
	case ShipLand, ShipPull, ShipPush, ShipDeploy, ShipSmoke:
		// Reports move these on.
	}
	return false, nil
}

// shipStep begins a step, or the next one where there is nothing to do.
func (s *Step) shipStep(step ShipStep) error {
	story, root := s.Tree.Story, s.Tree.Current(s.Tree.Root())
	ship := story.Ship
	ship.Step, ship.Execution = step, ""
	s.storyChanged("ship.step", map[string]any{"step": step})
	switch step {
	case ShipAccept:
	case ShipValidate:
		if len(s.Tree.Commands(root, GateRun)) == 0 || s.Tree.validated(root) {
			return s.shipStep(ShipLand)
		}
		root.Book.Round++
		root.Book.GateFaults = 0
		s.shipRun(root, GateRun, root.Book.Head)
	case ShipLand:
		if s.Tree.Project.ShipMode == ShipPullRequest && s.Tree.Project.Repository != "" {
			return s.shipStep(ShipPull)
		}
		ship.MergeID = s.startMerge(root, ship.Target, false)
	case ShipPull:
		for _, part := range s.Tree.unlanded(root) {
			if ship.Resume != "" {
				break // they were named before
			}
			ship.Reports = append(ship.Reports, s.Tree.Task(part.TaskID).Name+": a suggested improvement, which is not part of the pull request")
		}
		s.effect(s.Tree.pullEffect(root))
	case ShipPush:
		s.effect(s.Tree.pushEffect(root))
	case ShipDeploy:
		if len(s.Tree.Commands(root, DeployRun)) == 0 {
			return s.shipStep(ShipSmoke)
		}
		s.shipRun(root, DeployRun, ship.Commit)
	case ShipSmoke:
		if len(s.Tree.Commands(root, SmokeRun)) == 0 {
			return s.shipDone()
		}
		root.Book.GateFaults = 0
		s.shipRun(root, SmokeRun, ship.Commit)
	}
	return nil
}

// validated is true when the gates have run on what is shipped: before it was judged,
// whatever a person then made of them, or in an earlier ship that they passed.
func (t *Tree) validated(root *Task) bool {
	return slices.ContainsFunc(t.Runs(root.ID, GateRun), func(x *Execution) bool {
		ran := x.State == ExecutionEnded && x.Outcome == Success && x.Commit == root.Book.Head
		return ran && (GatesPassed(x.Gates) || !t.Story.Checked())
	})
}

func (t *Tree) pullEffect(root *Task) Effect {
	return Effect{Kind: PullRequest, Task: root.ID, Commit: root.accepted()}
}

func (t *Tree) pushEffect(root *Task) Effect {
	return Effect{Kind: Push, Task: root.ID, Commit: t.Story.Ship.Commit}
}

// shipRun queues commands that the server runs in a fresh workspace of a commit.
func (s *Step) shipRun(root *Task, kind ExecutionKind, commit string) {
	x := s.addRun(root, kind)
	x.Commit, x.Round = commit, root.Book.Round
	s.Tree.Story.Ship.Execution = x.ID
	s.effect(start(root, x.ID))
}

// shipping is the story whose ship a report about its root speaks of.
func (t *Tree) shipping(task TaskID, step ShipStep) (*Story, *Task, error) {
	root, story := t.Task(task), t.Story
	if story == nil || root == nil || story.Status != Shipping || story.Ship.Step != step || root != t.Current(t.Root()) {
		return nil, nil, Errorf(Conflict, "task %s is not being shipped (%s)", task, step).WithReason("stale")
	}
	return story, root, nil
}

// Ships is true while a step of a ship awaits a report.
func (t *Tree) Ships(task TaskID, step ShipStep) bool {
	_, _, err := t.shipping(task, step)
	return err == nil
}

// shipValidated reads what the validation at Ship found, once it is over.
func (s *Step) shipValidated(root *Task) (bool, error) {
	story := s.Tree.Story
	x := s.Tree.Execution(story.Ship.Execution)
	switch {
	case x == nil || x.Live():
		return false, nil
	case x.State == ExecutionEnded && x.Outcome == Success:
		story.ValidationResult = &ValidationResult{Commit: x.Commit, Passed: GatesPassed(x.Gates), Steps: x.Gates, At: s.Now}
		if story.ValidationResult.Passed {
			return true, s.shipStep(ShipLand)
		}
		return true, s.shipUndone("the validation failed: " + failedCommand(x.Gates))
	case root.Book.GateFaults >= MaxGateFaults:
		return true, s.shipUndone("the validation could not be run; see its log")
	}
	s.shipRun(root, GateRun, root.Book.Head)
	return true, nil
}

func failedCommand(gates []GateResult) string {
	for _, g := range gates {
		if !g.Passed() {
			if g.TimedOut {
				return g.Command + " ran too long"
			}
			return fmt.Sprintf("%s ended with exit code %d", g.Command, g.ExitCode)
		}
	}
	return ""
}

// shipUndone ends a ship before the target has moved, saying why; the story is
// what its tree makes it.
func (s *Step) shipUndone(why string) error {
	s.Tree.Story.Ship.Error = why
	s.storyChanged("ship.refused", map[string]any{"reason": why})
	return s.act(ActRefuse)
}

// shipFailed ends a ship after the target has moved: Ship goes on at its step.
func (s *Step) shipFailed(why string) error {
	s.Tree.Story.Ship.Error = why
	s.storyChanged("ship.failed", map[string]any{"step": s.Tree.Story.Ship.Step, "reason": why})
	return s.act(ActFail)
}

// shipDone is the end of a ship that came all the way.
func (s *Step) shipDone() error {
	story := s.Tree.Story
	story.Shipped = &Shipped{Commit: story.Ship.Commit, At: s.Now}
	s.storyChanged("ship.done", map[string]any{"commit": story.Ship.Commit})
	return s.act(ActDeploy)
}

// shipBroken answers what failed only outside with a fix attempt of the root.
func (s *Step) shipBroken(root *Task, why string, findings Findings) error {
	story := s.Tree.Story
	if root.AttemptNo-1 >= s.MaxFixes(root)+root.ExtraFixes {
		why += "; the fix attempts are used up: reject the story with more of them (extra), or ship again"
		if story.Ship.Step == ShipSmoke {
			return s.shipFailed(why)
		}
		return s.shipUndone(why)
	}
	story.Ship.Error = why
	s.storyChanged("ship.broken", map[string]any{"step": story.Ship.Step, "reason": why})
	if err := s.act(ActBreak); err != nil {
		return err
	}
	return s.SpawnFix(root, Fix{Comment: why, Findings: findings})
}

// shipLanded goes on after the target has moved.
func (s *Step) shipLanded(m *Merge) error {
	story := s.Tree.Story
	if story == nil || story.Status != Shipping || story.Ship.MergeID != m.ID {
		return nil
	}
	root := s.Tree.Current(s.Tree.Root())
	story.Ship.Commit = cmp.Or(m.Commit, root.accepted())
	if story.Ship.Commit == "" {
		return s.shipUndone("nothing to land: no part of the story has changed anything")
	}
	if root.Landed == nil { // the target holds it already, or it is its improvements alone
		root.Landed = &Landing{Branch: m.Target, Commit: story.Ship.Commit, At: s.Now}
	}
	return s.shipStep(ShipPush) // also of what was landed before: it may not have been pushed
}

// shipStopped ends a ship whose landing was refused or aborted.
func (s *Step) shipStopped(m *Merge, why string) error {
	if story := s.Tree.Story; story == nil || story.Status != Shipping || story.Ship.MergeID != m.ID {
		return nil
	}
	return s.shipUndone(why)
}

// StopDeploy ends a running deployment, which then has failed.
type StopDeploy struct{}

func (c StopDeploy) apply(s *Step) error {
	story, err := s.theStory()
	if err != nil {
		return err
	}
	if story.Status != Shipping || story.Ship.Step != ShipDeploy {
		return s.Tree.StoryRefused(Errorf(Illegal, "story %s is not being deployed", story.ID).WithReason("not_deploying"))
	}
	x := s.Tree.Execution(story.Ship.Execution)
	if err := s.stopRuns(s.Tree.Task(x.TaskID), DeployRun); err != nil {
		return err
	}
	if !x.Live() { // it had not begun
		return s.shipFailed("the deployment was stopped by a person")
	}
	return nil
}

// mayCancelShip refuses to cancel a story whose target has moved, or may be
// moving now.
func (t *Tree) mayCancelShip() *Error {
	story := t.Story
	if story == nil || story.Status != Shipping {
		return nil
	}
	switch story.Ship.Step {
	case ShipAccept, ShipValidate:
		return nil
	case ShipPull:
		if story.Ship.Resume == "" { // nothing was seen to be merged
			return nil
		}
	case ShipLand:
		return Errorf(Illegal, "story %s is being landed", story.ID).WithReason("shipping").WithHint("abort its merge %s first, if that is conflicted", story.Ship.MergeID)
	case ShipPush, ShipDeploy, ShipSmoke:
	}
	return Errorf(Illegal, "story %s is landed already", story.ID).WithReason("shipping").WithHint("stop-deploy ends a running deployment")
}

// branch lets the story's branch follow what was accepted at its root.
func (s *Step) branch(t *Task) {
	if s.Tree.storyRoot(t) && t.State == Completed && t.SupersededBy == "" && t.accepted() != "" && s.Tree.Story.BranchName != "" {
		s.effect(Effect{Kind: Branch, Task: t.ID, Commit: t.accepted()})
	}
}

package work

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
)

// What is reported of a ship from outside, and how it goes on from there.

// Pushed reports that the landed commit is at the remote, or that there is none;
// a Failure says why it is not. Gone is a landing that is not on its branch any more.
type Pushed struct {
	Task    TaskID
	Remote  string
	Failure string
	Gone    bool
}

func (c Pushed) apply(s *Step) error {
	story, root, err := s.Tree.shipping(c.Task, ShipPush)
	if err != nil {
		return err
	}
	s.answered(root, Push)
	if c.Gone {
		return s.shipTakenBack(root)
	}
	if c.Failure != "" {
		return s.shipFailed("landed, but not pushed: " + c.Failure)
	}
	if c.Remote != "" {
		s.event("story.pushed", root, map[string]any{"remote": c.Remote, "commit": story.Ship.Commit})
	}
	return s.shipOn()
}

// shipTakenBack returns a story whose landing somebody has taken back to where it can
// be landed again.
func (s *Step) shipTakenBack(root *Task) error {
	target, commit := s.Tree.Story.Ship.Target, s.Tree.Story.Ship.Commit
	for landed := range s.Tree.landedWith(root, commit) {
		landed.Landed = nil
		s.edit(landed)
	}
	return s.shipUndone(fmt.Sprintf("%s does not contain the landing %s any more; ship again to land it anew", target, commit))
}

// landedWith walks what a landing has brought to its branch.
func (t *Tree) landedWith(root *Task, commit string) iter.Seq[*Task] {
	return func(yield func(*Task) bool) {
		if root.Landed != nil && root.Landed.Commit == commit && !yield(root) {
			return
		}
		for c := range t.improvements(root) {
			if c.Landed != nil && c.Landed.Commit == commit && !yield(c) {
				return
			}
		}
	}
}

// PullSeen reports how a story's pull request stands at the forge. Red holds the
// logs of its failed checks; a Failure says why it could not be opened. Gone is a merge
// that the forge tells of and that is not on its branch.
type PullSeen struct {
	Task    TaskID
	Pull    Pull
	Commit  string // of the merge, once merged
	Red     string
	Failure string
	Gone    bool
}

func (c PullSeen) apply(s *Step) error {
	story, root, err := s.Tree.shipping(c.Task, ShipPull)
	if err != nil {
		return err
	}
	s.answered(root, PullRequest)
	landed := story.Ship.Resume != "" // and only to be found again
	switch {
	case landed && (c.Gone || c.Failure == "" && c.Pull.State != PullMerged):
		return s.shipTakenBack(root)
	case landed && c.Failure != "":
		return s.shipFailed("pull request: " + c.Failure)
	case c.Failure != "":
		return s.shipUndone("pull request: " + c.Failure)
	}
	if known := story.Ship.Pull; known == nil || *known != c.Pull {
		pull := c.Pull
		story.Ship.Pull = &pull
		s.storyChanged("ship.pull_request", map[string]any{"url": c.Pull.URL, "state": c.Pull.State, "checks": c.Pull.Checks})
	}
	switch {
	case c.Pull.State == PullMerged:
		if landed {
			return s.shipOn()
		}
		commit := cmp.Or(c.Commit, c.Pull.Head) // a forge may not name the merge
		story.Ship.Commit = commit
		root.Landed = &Landing{Branch: story.Ship.Target, Commit: commit, At: s.Now}
		s.edit(root)
		s.event("task.landed", root, map[string]any{"branch": story.Ship.Target, "commit": commit, "pull_request": c.Pull.URL})
		return s.shipOn()
	case c.Pull.State == PullClosed:
		return s.shipUndone("the pull request was closed without being merged: " + c.Pull.URL)
	case c.Red != "":
		return s.shipBroken(root, "checks of the pull request failed\n"+c.Red, nil)
	}
	return nil
}

// shipRunEnded goes on after the deployment or the smoke validation.
func (s *Step) shipRunEnded(t *Task, x *Execution) error {
	story := s.Tree.Story
	if story == nil || story.Status != Shipping || story.Ship.Execution != x.ID {
		return nil // it was stopped, and that was reported then
	}
	s.event("ship."+string(x.Kind)+"_ended", t, map[string]any{"execution": x.ID, "outcome": x.Outcome})
	switch {
	case x.Outcome == CancelledRun && x.Stopping == "" && x.Kind == SmokeRun: // the server stops
		s.shipRun(t, SmokeRun, x.Commit)
		return nil
	case x.Outcome == CancelledRun && x.Stopping == "":
		return s.shipFailed("the deployment was cut off by the end of the server; see its log, then ship again")
	case x.Outcome == CancelledRun:
		return s.shipFailed("the deployment was stopped by a person")
	case x.Outcome != Success:
		return s.shipFailed(cmp.Or(x.Error, string(x.Outcome)))
	case !GatesPassed(x.Gates) && x.Kind == DeployRun:
		return s.shipFailed("the deployment failed: " + failedCommand(x.Gates))
	case !GatesPassed(x.Gates):
		return s.shipBroken(t, smokeReport(x.Gates), nil)
	case x.Kind == DeployRun:
		return s.shipStep(ShipSmoke)
	}
	return s.shipDone()
}

func smokeReport(gates []GateResult) string {
	i := slices.IndexFunc(gates, func(g GateResult) bool { return !g.Passed() })
	return "the smoke validation failed after the deployment: " + failedCommand(gates) + "\n" + gates[i].Output
}

// shipRunLost ends what was cut off by a restart: a deployment is never repeated
// by itself, the smoke validation is.
func (s *Step) shipRunLost(t *Task, x *Execution) error {
	story := s.Tree.Story
	if story == nil || story.Status != Shipping || story.Ship.Execution != x.ID {
		return nil
	}
	if x.Kind == SmokeRun && t.Book.GateFaults < MaxGateFaults {
		t.Book.GateFaults++
		s.shipRun(t, SmokeRun, x.Commit)
		return nil
	}
	return s.shipFailed(fmt.Sprintf("the %s was cut off when the server ended; see its log, then ship again", x.Kind))
}

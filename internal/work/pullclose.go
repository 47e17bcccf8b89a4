package work

// What becomes of a pull request whose story is cancelled: it is closed at the forge,
// after the cancelling, which waits for no forge.

// mayHavePull is true when a pull request of the story may be open at its forge: one
// is known, or is being opened, or the answer to that was lost.
func (t *Tree) mayHavePull() bool {
	ship := t.Story.Ship
	switch {
	case ship == nil:
		return false
	case ship.Pull != nil && ship.Pull.State == PullOpen:
		return true
	}
	return ship.Step == ShipPull && (ship.Pull == nil || t.Story.Status == Shipping)
}

// PullEnded reports what has become of a cancelled story's pull request. Pull is as
// it stands now, zero when there is none or it is not known; a Failure says what went
// wrong, and Again that it is tried again.
type PullEnded struct {
	Task    TaskID
	Pull    Pull
	Commit  string // of the merge, where it was merged
	Failure string
	Again   bool
}

func (c PullEnded) apply(s *Step) error {
	story := s.Tree.Story
	if story == nil || story.Status != StoryCancelled || story.Ship == nil {
		return Errorf(Conflict, "task %s has no pull request to close", c.Task).WithReason("stale")
	}
	ship, why := story.Ship, ""
	switch {
	case c.Pull.State == PullMerged:
		why = "the pull request was merged before it could be closed; nothing of it was deployed"
	case c.Failure != "" && c.Again:
		why = "the pull request is not closed yet, and that is tried again: " + c.Failure
	case c.Failure != "" && c.Pull.State == PullClosed:
		why = "the pull request is closed, but without a word of why: " + c.Failure
	case c.Failure != "":
		why = "the pull request could not be closed, close it at the forge: " + c.Failure
	}
	pull := ship.Pull
	if c.Pull.Number != 0 {
		pull = &c.Pull
	}
	if ship.Error == why && (pull == ship.Pull || ship.Pull != nil && *pull == *ship.Pull) {
		return nil
	}
	ship.Error, ship.Pull = why, pull
	body := map[string]any{}
	if pull != nil {
		body["url"], body["state"] = pull.URL, pull.State
	}
	if c.Pull.State == PullMerged {
		ship.Commit = c.Commit
		body["commit"] = c.Commit
	}
	if why != "" {
		body["reason"] = why
	}
	s.storyChanged("ship.pull_request", body)
	return nil
}

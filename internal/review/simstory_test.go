package review_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/claudomator/claudomator/internal/work"
)

// What the simulation lets happen to stories: plans, acts of people, and ships.

// tellStory begins a story: with a plan, with a planner, or with neither.
func (s *sim) tellStory(project work.Project, root work.TaskID) (*work.Tree, error) {
	in := work.StoryInput{Name: string(root), Goal: "goal", Policy: pick(s, "", "arbitrated", "checked"), BranchName: pick(s, "", "story/"+string(root))}
	c := work.CreateStory{ID: work.StoryID("S" + root), Root: root, Input: in, Elaborate: s.one(4)}
	if !c.Elaborate || s.one(4) {
		c.Input.Plan = s.plan(in.Policy)
	}
	tree, err := s.draft(project, c)
	s.say("story %s policy=%q planner=%v plan=%v: %v", root, in.Policy, c.Elaborate, c.Input.Plan != nil, err)
	if err == nil && !c.Elaborate && !s.one(5) {
		s.must(s.do(tree, alice, work.ApproveStory{}))
		s.say("alice: approves it")
		if s.one(2) {
			s.hurry(tree)
		}
	}
	return tree, err
}

// hurry brings a story whose root works alone to its ship, so that the worlds see
// many of those.
func (s *sim) hurry(tree *work.Tree) {
	root := tree.Current(tree.Root())
	at := slices.IndexFunc(s.effects, func(e work.Effect) bool { return e.Kind == work.StartExecution && e.Task == root.ID })
	if at < 0 {
		return
	}
	s.deliver(s.pull(at))
	if i := slices.IndexFunc(s.procs, func(p proc) bool { return p.task == root.ID }); i >= 0 {
		s.end(i, success(s.newCommit(tree, root)))
		s.must(s.do(tree, alice, work.AcceptTask{Task: root.ID}))
		s.must(s.do(tree, alice, work.ShipStory{}))
		s.say("alice: accepts and ships it")
	}
}

// plan is a good plan of up to three tasks; a checked story needs one.
func (s *sim) plan(policy string) *work.Plan {
	p := &work.Plan{Name: "plan"}
	parts := s.choose(4)
	if policy == "checked" {
		parts = max(parts, 1)
	}
	for i := range parts {
		t := work.PlanTask{Name: fmt.Sprintf("p%d", i), Instructions: "do"}
		for j := range i {
			if s.one(3) {
				t.DependsOn = append(t.DependsOn, fmt.Sprintf("p%d", j))
			}
		}
		for j := range s.choose(8) / 6 {
			t.Subtasks = append(t.Subtasks, work.PlanSubtask{Name: fmt.Sprintf("u%d", j), Instructions: "do"})
		}
		p.Tasks = append(p.Tasks, t)
	}
	for _, kind := range []work.ValidationType{work.TestValidation, work.SmokeValidation} {
		if s.one(2) {
			p.Validation = append(p.Validation, work.Validation{Type: kind, Steps: []string{string(kind)}})
		}
	}
	return p
}

// plannerRun: good plans, bad ones, none, and all that befalls any run.
func (s *sim) plannerRun(i int, tree *work.Tree, t *work.Task) {
	p := s.procs[i]
	agent := work.Actor{Kind: work.AgentActor, ID: string(p.id)}
	switch s.choose(8) {
	case 0, 1:
		err := s.do(tree, agent, work.Report{Execution: p.id, Plan: s.plan(tree.Story.Policy)})
		s.say("%s reports a plan: %v", t.ID, err)
		s.stale(err)
		s.end(i, success(""))
	case 2:
		bad := &work.Plan{Name: "p", Tasks: []work.PlanTask{{Name: "a", Instructions: "do", DependsOn: []string{"b"}}}}
		err := s.do(tree, agent, work.Report{Execution: p.id, Plan: bad})
		if err == nil {
			s.fail("a broken plan was taken")
		}
		if work.CodeOf(err) == work.Invalid {
			s.must(s.do(tree, work.System(), work.PlanRefused{Execution: p.id, Problems: err.Error()}))
		}
		s.say("%s reports a broken plan: %v", t.ID, err)
	case 3:
		s.end(i, success(""))
	default:
		s.workRun(i, tree, t)
	}
}

var storyActs = []work.Act{work.ActEdit, work.ActApprove, work.ActAccept, work.ActReject, work.ActShip, work.ActStopDeploy, work.ActCancel}

// actOnStory asks something of a story: what is offered must be possible, and what
// is not offered must be refused.
func (s *sim) actOnStory(tree *work.Tree) {
	legal := tree.StoryActions()
	act := storyActs[s.choose(len(storyActs))]
	if !s.one(4) && len(legal) > 0 {
		act = legal[s.choose(len(legal))]
	}
	if act == work.ActCancel && !s.one(4) {
		return
	}
	was := tree.Story.Status
	s.now = s.now.Add(1)
	err := s.do(tree, alice, s.storyCommand(tree, act))
	s.say("alice: %s story %s (%s): %v", act, tree.Story.ID, was, err)
	if offered := slices.Contains(legal, act); (err == nil) != offered {
		switch e, _ := work.AsError(err); {
		case err == nil:
			s.fail("%s of the story was not offered, and done", act)
		case e.Reason == "cap_reached":
		default:
			s.fail("%s of the story was offered, and refused: %v", act, err)
		}
	}
}

// goOn lets people act on the stories that rest when all is quiet, and says whether
// they did: few stories come so far in a world that is disturbed.
func (s *sim) goOn() (acted bool) {
	for _, tree := range slices.Clone(s.trees) {
		if tree.Story == nil {
			continue
		}
		switch tree.Story.Status {
		case work.ReviewReady, work.Shippable, work.DeployFailed:
			s.refresh(tree)
			s.actOnStory(tree)
			acted = true
		case work.Draft, work.InProgress, work.Validating, work.NeedsFix, work.Shipping, work.Deployed, work.StoryCancelled:
		}
	}
	return acted
}

func (s *sim) storyCommand(tree *work.Tree, act work.Act) work.Command {
	root := tree.Current(tree.Root())
	switch act {
	case work.ActEdit:
		return work.EditStory{Plan: s.plan(tree.Story.Policy)}
	case work.ActApprove:
		return work.ApproveStory{}
	case work.ActAccept:
		return work.AcceptTask{Task: root.ID}
	case work.ActReject:
		return work.RejectTask{Task: root.ID, Comment: "no", Findings: s.findings(), Extra: s.choose(3) / 2}
	case work.ActShip:
		return work.ShipStory{}
	case work.ActStopDeploy:
		return work.StopDeploy{}
	case work.ActCancel:
		return work.CancelStory{}
	case work.ActRefuse, work.ActDeploy, work.ActFail, work.ActBreak:
	}
	panic("no command for " + act)
}

// push brings what was landed to the remote, or not.
func (s *sim) push(tree *work.Tree, e work.Effect) {
	c := work.Pushed{Task: e.Task, Remote: pick(s, "origin", "")}
	switch {
	case s.one(4):
		c.Failure = "no credentials"
	case s.one(6):
		c.Gone = true
	}
	err := s.do(tree, work.System(), c)
	if c.Gone && err == nil {
		s.takenBack()
	}
	s.say("push %s: %q gone %v %v", e.Commit, c.Failure, c.Gone, err)
	s.stale(err)
}

// takenBack forgets what was landed: it may be landed anew.
func (s *sim) takenBack() {
	maps.DeleteFunc(s.told, func(key string, _ int) bool { return strings.HasPrefix(key, "landed ") })
}

// pull looks at a pull request, which is followed until it is closed.
func (s *sim) pullRequest(tree *work.Tree, e work.Effect) {
	c := work.PullSeen{Task: e.Task, Pull: work.Pull{Number: 1, URL: "u", Head: e.Commit, State: "merged", Checks: "passed"}, Commit: "merged." + e.Commit}
	switch s.choose(8) {
	case 0, 1:
	case 2, 3:
		c.Pull.State = "open"
		s.effects = append(s.effects, e)
	case 4:
		c.Pull.State, c.Pull.Checks, c.Red = "open", "failed", "lint"
	case 5:
		c.Pull.State = "closed"
	case 6:
		c.Failure = "401"
	case 7:
		c.Failure, c.Gone = "it is not on main", true
	}
	err := s.do(tree, work.System(), c)
	if c.Gone && err == nil {
		s.takenBack()
	}
	s.say("pull request for %s: %s %q %q %v", e.Commit, c.Pull.State, c.Red, c.Failure, err)
	s.stale(err)
}

// shipped is what the watcher remembers of a story between commits.
type shipped struct {
	presses int // of Ship, whose deployment has not begun
	deploys map[work.ExecutionID]bool
}

// checkShip holds every commit to what a ship must never do.
func (s *sim) checkShip(d decision) {
	for _, m := range d.changes.Merges {
		if m.Status != work.MergeLanded {
			continue
		}
		for _, part := range m.Queue {
			key := fmt.Sprint("landed ", part.TaskID, " ", part.Commit)
			if s.told[key]++; s.told[key] > 1 {
				s.fail("%s of %s was landed twice", part.Commit, part.TaskID)
			}
		}
	}
	story := d.tree.Story
	if story == nil {
		return
	}
	s.follow(d)
	ship := s.ships[story.ID]
	if ship == nil {
		ship = &shipped{deploys: map[work.ExecutionID]bool{}}
		s.ships[story.ID] = ship
	}
	if _, pressed := d.command.(work.ShipStory); pressed {
		ship.presses = 1
	}
	for _, x := range d.changes.Executions {
		if x.Kind != work.DeployRun || ship.deploys[x.ID] {
			continue
		}
		ship.deploys[x.ID] = true
		if ship.presses--; ship.presses < 0 {
			s.fail("%s repeats a deployment that nobody asked for", x.ID)
		}
	}
	for _, e := range d.changes.Effects {
		if e.Kind == work.Land || e.Kind == work.PullRequest || e.Kind == work.Push {
			s.checkWord(d.tree, e)
		}
	}
	if story.Status == work.Deployed && d.before == work.Shipping {
		s.checkDeployed(d.tree, d.tree.Current(d.tree.Root()))
	}
}

// checkDeployed: DEPLOYED is what was landed, and whose runs all went well.
func (s *sim) checkDeployed(tree *work.Tree, root *work.Task) {
	if story := tree.Story; root.Landed == nil || story.Shipped == nil || story.Shipped.Commit == "" {
		s.fail("the story is DEPLOYED, landed %+v, shipped %+v", root.Landed, story.Shipped)
	}
	for _, kind := range []work.ExecutionKind{work.DeployRun, work.SmokeRun} {
		runs := tree.Runs(root.ID, kind)
		if len(tree.Commands(root, kind)) == 0 {
			continue
		}
		if len(runs) == 0 || runs[len(runs)-1].Outcome != work.Success || !work.GatesPassed(runs[len(runs)-1].Gates) {
			s.fail("the story is DEPLOYED, and its %s run has not passed: %+v", kind, runs)
		}
	}
}

// follow notes the ways a story went, step by step of what its events tell.
func (s *sim) follow(d decision) {
	was := d.before
	for _, e := range d.changes.Events {
		for _, now := range work.StoryStatuses() {
			if e.Kind == "story."+strings.ToLower(string(now)) && was != "" {
				s.moves[fmt.Sprint(was, " → ", now)] = true
				was = now
			}
		}
		if e.Kind == "ship.step" {
			s.moves[fmt.Sprint("ship → ", e.Body["step"])] = true
		}
	}
}

// checkWord: nothing of a story goes out that no person has accepted, as it is or,
// in a checked one, by shipping it when all of its checks were over.
func (s *sim) checkWord(tree *work.Tree, e work.Effect) {
	root := tree.Current(tree.Root())
	ship := tree.Story.Ship
	switch {
	case e.Task != root.ID || root.State != work.Completed || root.Accepted == nil:
		s.fail("%s of %s, which is %s", e.Kind, e.Task, root.State)
	case ship == nil || ship.By.Kind != work.PersonActor:
		s.fail("%s without a person who ships", e.Kind)
	case tree.Story.Policy != "checked" && root.Accepted.By.Kind != work.PersonActor:
		s.fail("%s of what %v has accepted", e.Kind, root.Accepted.By)
	}
	if m := tree.Merge(e.Merge); e.Kind == work.Land && m.Queue != nil && root.Landed == nil && root.Accepted.Commit != "" && m.Queue[0].Commit != root.Accepted.Commit {
		s.fail("%s is landed, %s was accepted", m.Queue[0].Commit, root.Accepted.Commit)
	}
	if tree.Story.Policy != "checked" {
		return
	}
	for _, attempt := range tree.Chain(tree.Root()) {
		for _, pos := range tree.Children(attempt.ID) {
			if c := tree.Current(pos); c.Kind == work.Subtask && c.State != work.Completed && !c.Dropped {
				s.fail("%s although %s is %s", e.Kind, c.ID, c.State)
			}
		}
	}
}

// explainStory: a story that is not over waits for something automatic or a person.
func (s *sim) explainStory(tree *work.Tree, inbox []work.Item) {
	story := tree.Story
	if story == nil {
		return
	}
	root := tree.Current(tree.Root())
	listed := slices.ContainsFunc(inbox, func(i work.Item) bool { return i.Kind == work.ItemStory || i.TaskID == root.ID })
	ok := listed
	switch story.Status {
	case work.Draft:
		ok = listed || tree.Planning() != nil
	case work.InProgress, work.Validating, work.NeedsFix:
		ok = listed || !root.State.Ended() // which is explained by its own
	case work.ReviewReady, work.Shippable, work.DeployFailed:
	case work.Shipping:
		ok = s.shipsOn(tree, root, listed)
	case work.Deployed, work.StoryCancelled:
		ok = !listed
	}
	if !ok {
		s.fail("the story is %s, its root %s(%s), and nothing will happen to it (inbox %+v)", story.Status, root.State, root.BlockedOn, inbox)
	}
	if story.Status != work.StoryCancelled {
		return
	}
	for _, t := range tree.Tasks() {
		if t.SupersededBy == "" && !t.State.Ended() && t.BlockedOn != work.OnIntegration {
			s.fail("the story is CANCELLED, and %s is %s", t.ID, t.State)
		}
		for _, x := range tree.Runs(t.ID, work.AgentRun) {
			if x.Live() && x.Stopping == "" {
				s.fail("the story is CANCELLED, and %s goes on", x.ID)
			}
		}
	}
}

// shipsOn: a ship waits for a run, a merge or a report.
func (s *sim) shipsOn(tree *work.Tree, root *work.Task, listed bool) bool {
	ship := tree.Story.Ship
	awaited := func(kind work.EffectKind) bool {
		return s.lossy || slices.ContainsFunc(s.effects, func(e work.Effect) bool { return e.Kind == kind && e.Task == root.ID })
	}
	switch ship.Step {
	case work.ShipAccept:
		return root.Waiting(work.Blocked, work.OnChildren) && slices.ContainsFunc(tree.Unsettled(root.ID), func(pos work.Position) bool {
			c := tree.Current(pos)
			return c.BlockedOn == work.OnIntegration || c.Kind == work.Improvement
		})
	case work.ShipLand:
		m := tree.OpenMerge(root.ID)
		return m != nil && m.ID == ship.MergeID && (m.Status == work.MergeRunning || listed)
	case work.ShipPull:
		return awaited(work.PullRequest)
	case work.ShipPush:
		return awaited(work.Push)
	case work.ShipValidate, work.ShipDeploy, work.ShipSmoke:
		x := tree.Execution(ship.Execution)
		return x != nil && x.Live()
	}
	return false
}

// past is a bad end that concerns nobody any more.
func past(tree *work.Tree, t *work.Task) bool {
	return tree.Story != nil && (tree.Story.Status == work.StoryCancelled || t.Role() == work.Planner)
}

// branches: what is accepted at a story's root moves its branch.
func (s *sim) checkBranch(d decision, was, now work.State) {
	root, story := d.tree.Current(d.tree.Root()), d.tree.Story
	if story == nil || story.BranchName == "" || was == now || now != work.Completed || root.Accepted.Commit == "" {
		return
	}
	if !slices.ContainsFunc(d.changes.Effects, func(e work.Effect) bool {
		return e.Kind == work.Branch && e.Task == root.ID && e.Commit == root.Accepted.Commit
	}) {
		s.fail("%s was accepted, and the story's branch does not follow", root.ID)
	}
}

package review_test

import (
	"fmt"
	"slices"

	"github.com/claudomator/claudomator/internal/review"
	"github.com/claudomator/claudomator/internal/work"
)

// shadow is what the watcher remembers of a task between commits.
type shadow struct {
	state      work.State
	accepted   bool
	superseded bool
	dropped    bool
	killed     bool // cancelled by a person
	on         work.BlockedOn
}

// check holds every commit to the properties.
func (s *sim) check(_ *world, d decision) {
	s.checks++
	for _, t := range d.changes.Tasks {
		s.checkTask(d, t)
	}
	for _, e := range d.changes.Events {
		s.once(e)
	}
	for _, v := range d.tree.Violations() {
		s.fail("after %T: %s", d.command, v)
	}
	s.checkStory(d)
	s.checkShip(d)
	inbox := slices.DeleteFunc(slices.Clone(d.changes.Summary.Inbox), func(i work.Item) bool {
		return i.Kind == work.ItemStuck // is about what is automatic, and no reason to wait
	})
	for _, item := range inbox {
		if t := d.tree.Task(item.TaskID); item.TaskID != "" && (t == nil || t.SupersededBy != "") {
			s.fail("the inbox names %s, which is superseded or gone", item.TaskID)
		}
	}
	for _, t := range d.tree.Tasks() {
		if t.SupersededBy == "" {
			s.explain(d.tree, t, inbox)
		}
	}
	s.explainStory(d.tree, inbox)
	if !s.lossy {
		s.checkEffects(d.tree)
	}
	if s.checks%4 == 0 {
		s.settled(d.tree)
	}
}

// checkTask compares a task with what it was.
func (s *sim) checkTask(d decision, t *work.Task) {
	was, known := s.shadows[t.ID]
	if t.Position() == d.tree.Root() && t.SupersededBy == "" {
		s.checkBranch(d, was.state, t.State)
	}
	if known && was.state != t.State {
		s.moves[fmt.Sprint(was.state, " → ", t.State)] = true
	}
	asked := target(d.command) == t.ID
	switch {
	case known && was.superseded && (t.SupersededBy == "" || t.State != was.state || len(d.tree.Actions(t)) > 0):
		s.fail("superseded attempt %s moved to %s, or offers %v", t.ID, t.State, d.tree.Actions(t))
	case was.dropped && (!t.Dropped || !t.State.EndedBadly()):
		s.fail("%s was dropped, which is final, and is %s", t.ID, t.State)
	case was.killed && t.State != work.Cancelled && !asked:
		s.fail("%s was cancelled by a person, and %T made it %s", t.ID, d.command, t.State)
	}
	if was.on == work.OnIntegration && t.State == work.Cancelled {
		s.fail("%s was cancelled while it was being integrated", t.ID)
	}
	if t.Accepted != nil && !was.accepted {
		s.checkBuiltOn(d.tree, t)
		s.checkAcceptance(d, t, asked)
	}
	p := review.For(d.tree, t)
	if t.AttemptNo-1 > max(p.Fixes, 3)+t.ExtraFixes {
		s.fail("%s is fix attempt %d, the cap is %d+%d", t.ID, t.AttemptNo-1, p.Fixes, t.ExtraFixes)
	}
	if t.Judges != nil && !t.State.Ended() {
		if judged := d.tree.Task(t.Judges.TaskID); judged.State != work.Ready || judged.SupersededBy != "" {
			s.fail("%s judges %s, which is %s %s", t.ID, judged.ID, judged.State, judged.SupersededBy)
		}
		for _, other := range d.tree.JudgesOf(t.Judges.TaskID) {
			if other.ID != t.ID && other.Role() == t.Role() && !other.State.Ended() {
				s.fail("%s and %s judge the same work at once", t.ID, other.ID)
			}
		}
	}
	_, cancel := d.command.(work.CancelTask)
	s.shadows[t.ID] = shadow{
		state: t.State, accepted: t.Accepted != nil, superseded: t.SupersededBy != "", dropped: t.Dropped,
		killed: t.State == work.Cancelled && (was.killed || cancel && asked), on: t.BlockedOn,
	}
}

// checkBuiltOn: nothing is accepted before what it contains of other trees is.
func (s *sim) checkBuiltOn(tree *work.Tree, t *work.Task) {
	for _, b := range t.BuiltOn {
		o, ok := tree.Outer[b.Position()]
		if !ok || o.State != work.Completed || o.Accepted != b.Commit || o.StoryID != "" && !o.Landed {
			s.fail("%s was accepted, built on %s of %s, which is %+v", t.ID, b.Commit, b.TaskID, o)
		}
	}
}

// target is the task a person's command speaks about.
func target(c work.Command) work.TaskID {
	switch c := c.(type) {
	case work.CancelTask:
		return c.Task
	case work.RetryTask:
		return c.Task
	case work.MessageTask:
		return c.Task
	case work.SubmitTask:
		return c.Task
	case work.PostponeTask:
		return c.Task
	case work.AcceptTask:
		return c.Task
	default:
		return ""
	}
}

// checkAcceptance: a person's word, or the policy's verdict on that very commit.
func (s *sim) checkAcceptance(d decision, t *work.Task, asked bool) {
	if t.Accepted.By.Kind == work.PersonActor {
		_, accepts := d.command.(work.AcceptTask)
		_, ships := d.command.(work.ShipStory) // which accepts what a check was over for
		flagged := ships && d.tree.Story.Policy == "checked" && t.ParentTaskID != ""
		if !(accepts && asked) && !flagged {
			s.fail("%s was accepted for %v by %T", t.ID, t.Accepted.By, d.command)
		}
		return
	}
	if t.ParentTaskID == "" && t.StoryID == "" && !d.tree.Project.AutoLand {
		for _, attempt := range d.tree.Chain(t.Position()) {
			for _, pos := range d.tree.Children(attempt.ID) {
				if c := d.tree.Current(pos); c.Kind == work.Improvement && !c.Dropped {
					s.fail("%s was accepted by itself, with the improvement %s", t.ID, c.ID)
				}
			}
		}
	}
	p := review.For(d.tree, t)
	if p.Name == "none" {
		return
	}
	decider := work.Checker
	if p.Arbiter != "" {
		decider = p.Arbiter
	}
	approved := slices.ContainsFunc(d.tree.JudgesOf(t.ID), func(j *work.Task) bool {
		return j.Role() == decider && j.State == work.Completed && j.Judges.Commit == t.Accepted.Commit && proven(j)
	})
	if p.Name == "human" || !approved {
		s.fail("%s (%s) was accepted without a verdict on %s", t.ID, p.Name, t.Accepted.Commit)
	}
	if len(d.tree.Commands(t, work.GateRun)) > 0 && !slices.ContainsFunc(d.tree.Runs(t.ID, work.GateRun), func(x *work.Execution) bool {
		return x.Commit == t.Accepted.Commit && x.Outcome == work.Success && work.GatesPassed(x.Gates)
	}) {
		s.fail("%s was accepted over its gates", t.ID)
	}
	if t.Result != nil && t.Result.NoChanges && d.tree.Project.Repository != "" {
		s.fail("%s changed nothing, and was accepted by itself", t.ID)
	}
}

// proven: an approval that says of each criterion how it was verified.
func proven(j *work.Task) bool {
	return j.Verdict != nil && j.Verdict.Approved && !slices.ContainsFunc(j.AcceptanceCriteria, func(criterion string) bool {
		return !slices.ContainsFunc(j.Verdict.Criteria, func(c work.Criterion) bool { return c.Criterion == criterion && c.Met && c.How != "" })
	})
}

// once: what must be an event is one exactly once.
func (s *sim) once(e work.Event) {
	var key string
	switch e.Kind {
	case "task.created", "verdict.reported", "judge.spawned", "fix.spawned":
		key = fmt.Sprint(e.Kind, " ", e.Task)
	case "gates.passed", "gates.failed":
		key = fmt.Sprint("gates of ", e.Body["execution"])
	case "decision.approved", "decision.rejected":
		t := s.tree(e.Tree).Task(e.Task)
		key = fmt.Sprint(e.Kind, " ", e.Task, e.Body["commit"], t.Book.Round, e.Actor.Kind)
	default:
		return
	}
	if s.told[key]++; s.told[key] > 1 {
		s.fail("%s happened twice", key)
	}
}

// checkStory: only the root's task moves an arbitrated story, and what is asked of
// it and becomes of its ship.
func (s *sim) checkStory(d decision) {
	story := d.tree.Story
	if story == nil || d.before == "" || story.Status == d.before || story.Policy == "checked" || d.before == work.Shipping {
		return
	}
	switch d.command.(type) {
	case work.ApproveStory, work.CancelStory, work.ShipStory:
		return
	}
	root := d.tree.Current(d.tree.Root())
	if !slices.ContainsFunc(d.changes.Tasks, func(t *work.Task) bool { return t.ID == root.ID }) {
		s.fail("story went from %s to %s, and its root did not move", d.before, story.Status)
	}
}

// explain: whatever is not over waits for something automatic or for a person.
func (s *sim) explain(tree *work.Tree, t *work.Task, inbox []work.Item) {
	listed := slices.ContainsFunc(inbox, func(i work.Item) bool { return i.TaskID == t.ID })
	if parent := tree.Task(t.ParentTaskID); parent != nil && (t.State == work.Queued || t.State == work.Running) && !parent.Waiting(work.Blocked, work.OnChildren) {
		s.fail("%s is %s below %s, which is %s(%s): it starts from that one's head", t.ID, t.State, parent.ID, parent.State, parent.BlockedOn)
	}
	ok := true
	switch t.State {
	case work.Pending:
		parent := tree.Task(t.ParentTaskID)
		ok = parent == nil || parent.SupersededBy == "" && (t.Draft || !parent.Waiting(work.Blocked, work.OnChildren) && parent.State != work.Cancelled)
	case work.Queued:
		x := tree.Execution(t.Book.Current)
		ok = x != nil && x.State == work.ExecutionQueued && s.queuedOn(tree, t)
	case work.Running:
		ok = live(tree, t.ID, work.AgentRun, work.SubmitRun) != nil
	case work.Blocked:
		ok = listed
		if t.BlockedOn == work.OnChildren {
			ok = len(tree.Unsettled(t.ID)) > 0
			for _, pos := range tree.Unsettled(t.ID) {
				c := tree.Current(pos)
				ok = ok && (listed || !c.State.EndedBadly() && !(c.State == work.Pending && c.Draft))
			}
		}
	case work.Ready:
		ok = s.readyOn(tree, t, listed)
	case work.Completed, work.Failed, work.TimedOut, work.BudgetExceeded, work.Cancelled:
		root := t.ParentTaskID == "" && t.Judges == nil && t.State != work.Completed
		ok = !root || listed || s.shadows[t.ID].killed || past(tree, t)
	}
	if !ok {
		s.fail("%s is %s(%s), and nothing will happen to it", t.ID, t.State, t.BlockedOn)
	}
	x := live(tree, t.ID, work.AgentRun, work.SubmitRun) // gates may run on over what a person was called for
	if rests, on := tree.Rests(t); rests && len(on) == 0 && !t.State.Ended() && x != nil && x.Stopping == "" {
		s.fail("%s is %s(%s) and said to rest, with a run that is not over", t.ID, t.State, t.BlockedOn)
	}
}

func (s *sim) queuedOn(tree *work.Tree, t *work.Task) bool {
	switch t.BlockedOn {
	case work.OnSlot:
		return t.WakeAt.IsZero()
	case work.OnDependencies:
		return len(t.DependsOn) > 0 && !slices.ContainsFunc(t.DependsOn, func(d work.Position) bool {
			c := tree.Current(d)
			return c != nil && c.State.EndedBadly() // then it would have been cancelled
		})
	case work.OnRetry, work.OnLimit, work.OnBudget, work.OnPaused, work.OnResources:
		sum := s.outer[tree.Root()]
		return !t.WakeAt.IsZero() && !sum.WakeAt.IsZero() && !sum.WakeAt.After(t.WakeAt)
	case work.NotBlocked, work.OnChildren, work.OnQuestion, work.OnConflict, work.OnGates, work.OnJudges, work.OnIntegration, work.OnLanding, work.OnPerson:
	}
	return false
}

func (s *sim) readyOn(tree *work.Tree, t *work.Task, listed bool) bool {
	switch t.BlockedOn {
	case work.OnGates:
		return slices.ContainsFunc(tree.Runs(t.ID, work.GateRun), (*work.Execution).Live)
	case work.OnJudges:
		return slices.ContainsFunc(tree.JudgesOf(t.ID), func(j *work.Task) bool { return !j.State.Ended() })
	case work.OnIntegration:
		return t.Accepted != nil && t.ParentTaskID != "" || t.Book.Absorb != nil
	case work.OnLanding:
		return tree.OpenMerge(t.ID) != nil && t.Accepted != nil
	case work.OnPerson:
		return listed && t.Hold != work.NoHold
	case work.NotBlocked, work.OnDependencies, work.OnSlot, work.OnRetry, work.OnLimit, work.OnBudget, work.OnPaused, work.OnResources, work.OnChildren, work.OnQuestion, work.OnConflict:
	}
	return false
}

// checkEffects: what waits for the engine has an effect on its way.
func (s *sim) checkEffects(tree *work.Tree) {
	for _, t := range tree.Tasks() {
		for _, kind := range work.ExecutionKinds() {
			for _, x := range tree.Runs(t.ID, kind) {
				waits := x.State == work.ExecutionQueued && (!kind.Own() || t.Waiting(work.Queued, work.OnSlot))
				if waits && !s.sleeps(tree, t, kind) && !s.queued(work.StartExecution, x.ID, tree) {
					s.fail("%s waits for a slot, and no effect starts it", x.ID)
				}
				if x.State == work.ExecutionRunning && x.Stopping != "" && !s.queued(work.StopExecution, x.ID, tree) && s.proc(x.ID) < 0 {
					s.fail("%s is to stop, and no effect stops it", x.ID)
				}
			}
		}
		if t.Waiting(work.Ready, work.OnIntegration) && !slices.ContainsFunc(s.effects, func(e work.Effect) bool {
			return e.Kind == work.Integrate && (e.Task == t.ID || e.Into == t.ID)
		}) {
			s.fail("%s is to be integrated, and no effect does it", t.ID)
		}
		if m := tree.OpenMerge(t.ID); m != nil && m.Status == work.MergeRunning && !slices.ContainsFunc(s.effects, func(e work.Effect) bool {
			return e.Kind == work.Land && e.Merge == m.ID
		}) {
			s.fail("%s is to be landed, and no effect does it", m.ID)
		}
	}
}

// sleeps: the workspace is held by another run, whose end starts this.
func (s *sim) sleeps(tree *work.Tree, t *work.Task, kind work.ExecutionKind) bool {
	if kind.Own() {
		return live(tree, t.ID, work.AgentRun, work.SubmitRun) != nil
	}
	return live(tree, t.ID, work.GateRun, work.DeployRun, work.SmokeRun) != nil
}

func (s *sim) queued(kind work.EffectKind, id work.ExecutionID, tree *work.Tree) bool {
	return slices.ContainsFunc(s.effects, func(e work.Effect) bool {
		return e.Kind == kind && e.Execution == id || e.Kind == work.Recheck && e.Tree == tree.ID
	})
}

// settled: looking again changes nothing.
func (s *sim) settled(tree *work.Tree) {
	s.refresh(tree)
	if slices.ContainsFunc(s.effects, func(e work.Effect) bool { return e.Kind == work.Recheck && e.Tree == tree.ID }) {
		return // others have moved meanwhile
	}
	step := work.NewStep(tree, s.now, &s.ids, work.System())
	s.must(work.Decide(step, work.Settle{}))
	s.must(review.Settle(step, s.rules))
	if step.Dirty() {
		cs := step.ChangeSet()
		text := ""
		for _, t := range cs.Tasks {
			text += fmt.Sprintf(" %s %s(%s)", t.ID, t.State, t.BlockedOn)
		}
		s.fail("settling twice changed%s; events %v effects %v", text, cs.Events, cs.Effects)
	}
}

// calm lets everything that is under way end, without anybody's doing.
func (s *sim) calm() {
	s.say("calm, mode %d", s.mode)
	s.choose = func(int) int { return 0 }
	s.rules.Usable = newWorld().rules.Usable
	s.settleAll(false)
	if s.lossy {
		s.restart()
	}
	for range 5000 {
		switch {
		case len(s.effects) > 0:
			s.deliver(s.pull(0))
		case len(s.procs) > 0:
			s.calmly()
		case !s.pass():
			return
		}
	}
	s.fail("the world does not end")
}

// calmly ends the oldest process: well, or as the mode wants it.
func (s *sim) calmly() {
	p := s.procs[0]
	t := s.tree(p.tree.ID).Task(p.task)
	switch {
	case !p.kind.Own():
		s.end(0, gates(s.mode != 2))
	case t.Role() == work.Planner && s.mode == 0:
		s.progress(0)
	case t.Judges == nil && p.kind == work.AgentRun:
		s.endWell(0, s.tree(p.tree.ID), t)
	case t.Judges != nil && s.mode == 1:
		s.git.n++
		s.verdict(p, s.tree(p.tree.ID), t, rejection("no", work.Finding{Kind: "bug", File: "a", Line: s.git.n, Text: "wrong"}))
		s.judgeEnds(0, s.tree(p.tree.ID), t, false)
	default:
		s.progress(0)
	}
}

// rests: when all is quiet, everything is said to rest.
func (s *sim) rests(tree *work.Tree) {
	hold := func(rests bool, on []work.Elsewhere) bool {
		for i := 0; rests && i < len(on); i++ {
			holds, more := s.tree(work.TreeID(on[i].At)).Holds(on[i])
			rests, on = holds, append(on, more...)
		}
		return rests
	}
	for _, t := range tree.Tasks() {
		if !hold(tree.Rests(t)) {
			s.fail("%s is %s(%s) when all is quiet, and said not to rest", t.ID, t.State, t.BlockedOn)
		}
	}
	if tree.Story != nil && !hold(tree.StoryRests()) && (tree.Story.Status != work.Shipping || len(work.Inbox(tree)) == 0) {
		s.fail("the story is %s when all is quiet, and said not to rest", tree.Story.Status)
	}
}

// finish: each tree is over, or waits for a person, or for a tree that does.
func (s *sim) finish() {
	for _, tree := range s.trees {
		s.settled(tree)
		s.rests(tree)
		open := false
		for _, t := range tree.Tasks() {
			if t.SupersededBy != "" || t.State.Ended() || t.State == work.Pending {
				continue
			}
			open = true
			if t.State == work.Running || t.State == work.Queued && t.BlockedOn != work.OnDependencies || t.BlockedOn == work.OnIntegration || t.BlockedOn == work.OnGates {
				s.fail("%s is %s(%s) when all is quiet", t.ID, t.State, t.BlockedOn)
			}
		}
		root := tree.Current(tree.Root())
		if tree.Story != nil && tree.Story.Status == work.Shipping && len(work.Inbox(tree)) == 0 {
			s.fail("the story is SHIPPING at %s when all is quiet", tree.Story.Ship.Step)
		}
		if open && len(work.Inbox(tree)) == 0 && !root.Waiting(work.Queued, work.OnDependencies) {
			s.fail("tree %s is open and asks nobody", tree.ID)
		}
		for _, i := range work.Inbox(tree) {
			if i.Kind == work.ItemStuck {
				s.fail("%s is said to be stuck when all is quiet: %s", i.TaskID, i.Text)
			}
		}
		s.counted(tree)
	}
}

// counted: every verdict, fix, judge and gate result has its event.
func (s *sim) counted(tree *work.Tree) {
	for _, t := range tree.Tasks() {
		want := map[string]bool{
			"verdict.reported": t.Judges != nil && t.Verdict != nil, "judge.spawned": t.Judges != nil, "fix.spawned": t.AttemptOf != "",
		}
		for kind, must := range want {
			if must && s.told[fmt.Sprint(kind, " ", t.ID)] != 1 {
				s.fail("%s of %s is no event", kind, t.ID)
			}
		}
		for _, x := range tree.Runs(t.ID, work.GateRun) {
			if x.State == work.ExecutionEnded && x.Outcome == work.Success && s.told[fmt.Sprint("gates of ", x.ID)] != 1 {
				s.fail("the gates %s are no event", x.ID)
			}
		}
	}
}

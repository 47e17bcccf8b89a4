package review_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claudomator/claudomator/internal/work"
)

// sim lets a world loose: whatever its chooser says happens, and properties_test.go
// watches every commit. One driver serves the fast seeded loop and rapid.
type sim struct {
	*world
	choose func(n int) int // at least 0, less than n; 0 is the plainest
	story  *strings.Builder
	mode   int // how judges and gates behave once everything calms down

	past    []work.Effect // delivered before: they may come again
	lossy   bool          // an effect was lost; only a restart brings it back
	procs   []proc        // what really runs
	shadows map[work.TaskID]shadow
	ships   map[work.StoryID]*shipped
	told    map[string]int // events that must happen once
	moves   map[string]bool
	checks  int
}

// proc is a process of the engine.
type proc struct {
	tree  *work.Tree
	task  work.TaskID
	id    work.ExecutionID
	fence int64
	kind  work.ExecutionKind
	calls int
}

func newSim(choose func(n int) int, loud bool) *sim {
	s := &sim{
		world: newWorld(), choose: choose, shadows: map[work.TaskID]shadow{}, ships: map[work.StoryID]*shipped{}, told: map[string]int{}, moves: map[string]bool{},
	}
	if loud {
		s.story = &strings.Builder{}
	}
	s.watch = s.check
	return s
}

func (s *sim) say(format string, args ...any) {
	if s.story != nil {
		fmt.Fprintf(s.story, format+"\n", args...)
	}
}

func (s *sim) fail(format string, args ...any) { panic(broken(fmt.Sprintf(format, args...))) }

// broken is a property that does not hold.
type broken string

// one tells whether something happens that happens once in n times.
func (s *sim) one(n int) bool { return s.choose(n) == n-1 }

// run is a whole world: it begins, is disturbed for some steps, calms down, and
// must then have ended, or wait for a person.
func (s *sim) run() {
	s.populate()
	for range s.choose(90) {
		s.step()
	}
	s.mode = s.choose(3)
	random := s.choose
	s.calm()
	for range 2 {
		s.choose = random
		if !s.goOn() {
			break
		}
		s.calm()
	}
	s.finish()
}

// populate begins one to three trees.
func (s *sim) populate() {
	project := work.Project{ID: "p", Branch: "main", Repository: "/r", Agent: "scripted"}
	if s.one(8) {
		project.Repository = ""
	}
	if !s.one(3) {
		project.Validate = []string{"make test"}
	}
	if s.one(3) {
		n := s.choose(3)
		project.MaxFixes = &n
	}
	project.AutoLand = s.one(8)
	project.Deploy = pick(s, "", "make deploy")
	project.ShipMode = pick(s, work.ShipDirectly, work.ShipDirectly, work.ShipPullRequest)
	if !s.one(3) {
		project.Evaluators = []work.Role{work.EvaluatorTests} // a small panel comes further
	}
	project.Policy = pick(s, "", "", "none", "human", "checked", "arbitrated")
	if s.one(4) {
		s.rules.Roles = map[work.Role]work.RoleConfig{work.Checker: {Name: work.Checker, Command: []string{"sh"}}}
	}
	var before []work.Position
	for i := range 1 + s.choose(3) {
		in := work.TaskInput{
			Name: fmt.Sprintf("t%d", i), Review: pick(s, "", "none", "human", "checked", "arbitrated"),
			Agent: work.AgentSpec{Role: pick(s, work.NoRole, work.Builder)},
			Retry: work.Retry{MaxAttempts: 1 + s.choose(2)},
		}
		if s.one(3) {
			in.AcceptanceCriteria = []string{"it works"}
		}
		for _, pos := range before {
			if s.one(2) {
				in.DependsOn = append(in.DependsOn, pos)
			}
		}
		if s.one(3) {
			tree, err := s.tellStory(project, work.TaskID(in.Name))
			s.must(err)
			before = append(before, tree.Root())
			continue
		}
		tree, err := s.begin(project, nil, work.TaskID(in.Name), in, true)
		s.say("begin %s review=%q role=%q deps=%v: %v", in.Name, in.Review, in.Agent.Role, in.DependsOn, err)
		if err == nil {
			before = append(before, tree.Root())
		} else if e, _ := work.AsError(err); e.Reason != "bad_dependency" {
			s.fail("begin: %v", err)
		}
	}
}

func pick[T any](s *sim, from ...T) T { return from[s.choose(len(from))] }

// step does one thing.
func (s *sim) step() {
	switch n := s.choose(24); {
	case n < 9 && len(s.effects) > 0:
		s.deliver(s.pull(s.choose(len(s.effects))))
	case n < 16 && len(s.procs) > 0:
		s.progress(s.choose(len(s.procs)))
	case n < 20:
		s.person()
	case n == 20:
		s.pass()
	case n == 21 && len(s.past) > 0:
		s.say("again:")
		s.deliver(s.past[s.choose(len(s.past))])
	case n == 22:
		s.mischief()
	case n == 23:
		s.surroundings()
	}
}

// surroundings change: effects are lost, the server is killed, agents come and go.
func (s *sim) surroundings() {
	switch s.choose(4) {
	case 0:
		s.restart()
	case 1:
		if len(s.effects) > 0 {
			e := s.pull(s.choose(len(s.effects)))
			s.say("lost: %s %s%s", e.Kind, e.Task, e.Execution)
			s.lossy = true
		}
	case 2:
		s.rules.Usable = func(string) bool { return false }
		s.say("no agent can be used as a judge")
		s.settleAll(false)
	case 3:
		s.rules.Usable = newWorld().rules.Usable
		s.settleAll(false)
	}
}

func (s *sim) settleAll(redeliver bool) {
	for _, tree := range slices.Clone(s.trees) {
		s.must(s.do(tree, work.System(), work.Settle{Redeliver: redeliver}))
	}
}

func (s *sim) must(err error) {
	if err != nil {
		s.fail("refused: %v", err)
	}
}

// restart is kill -9: what ran is dead, what was queued may be lost, memory too.
func (s *sim) restart() {
	s.say("restart")
	s.effects, s.lossy = nil, true
	for i, tree := range s.trees {
		s.trees[i] = reload(tree)
	}
	for _, p := range s.procs {
		tree := s.tree(p.tree.ID)
		s.must(s.do(tree, work.System(), work.Lose{Execution: p.id, Fence: p.fence}))
	}
	s.procs = nil
	s.settleAll(true)
	s.lossy = false
}

// reload reads a tree again from its rows.
func reload(tree *work.Tree) *work.Tree {
	var tasks []*work.Task
	var runs []*work.Execution
	var merges []*work.Merge
	for _, t := range tree.Tasks() {
		copied := *t
		tasks = append(tasks, &copied)
		for _, kind := range work.ExecutionKinds() {
			for _, x := range tree.Runs(t.ID, kind) {
				run := *x
				runs = append(runs, &run)
			}
		}
		if m := tree.OpenMerge(t.ID); m != nil {
			merge := *m
			merges = append(merges, &merge)
		}
	}
	slices.Reverse(tasks)
	out := work.NewTree(tree.ID, tasks, runs, merges)
	out.Version, out.Project = tree.Version, tree.Project
	if tree.Story != nil {
		text, err := json.Marshal(tree.Story)
		if err == nil {
			err = json.Unmarshal(text, &out.Story)
		}
		if err != nil {
			panic(err)
		}
	}
	return out
}

// pass lets time go to the next instant at which something is due.
func (s *sim) pass() bool {
	var next time.Time
	for _, sum := range s.outer {
		if !sum.WakeAt.IsZero() && (next.IsZero() || sum.WakeAt.Before(next)) {
			next = sum.WakeAt
		}
	}
	s.now = s.now.Add(time.Second)
	if next.IsZero() {
		return false
	}
	if next.After(s.now) {
		s.now = next
	}
	s.say("time passes")
	for _, tree := range slices.Clone(s.trees) {
		if sum := s.outer[tree.Root()]; !sum.WakeAt.IsZero() && !sum.WakeAt.After(s.now) {
			s.must(s.do(tree, work.System(), work.Wake{}))
		}
	}
	return true
}

func (s *sim) pull(i int) work.Effect {
	e := s.effects[i]
	s.effects = slices.Delete(s.effects, i, i+1)
	if len(s.past) < 40 {
		s.past = append(s.past, e)
	}
	return e
}

// deliver carries an effect out, as the engine's handlers do.
func (s *sim) deliver(e work.Effect) {
	tree := s.tree(e.Tree)
	if tree == nil {
		return
	}
	if s.one(40) { // it keeps failing, someone is told, and it is delivered again
		s.effects = append(s.effects, e)
		err := s.do(tree, work.System(), work.Stuck{Effect: e, Error: pick(s, "the disk is full", "the repository is gone")})
		s.say("%s of %s is stuck: %v", e.Kind, e.Task, err)
		s.stale(err)
		return
	}
	switch e.Kind {
	case work.StartExecution:
		s.start(tree, e)
	case work.StopExecution:
		if i := s.proc(e.Execution); i >= 0 {
			s.end(i, ends(pick(s, work.CancelledRun, work.Success, work.FailedRun), "stopped"))
		}
	case work.Integrate:
		if s.one(12) && tree.Task(e.Into) != nil && !s.lossy { // dies between the reference and the report
			into := tree.Task(e.Into)
			if e.Contains == "" || s.git.contains(e.Commit, e.Contains) {
				s.git.branches[e.Into] = s.git.merge(s.git.head(tree, into), e.Commit)
			}
			s.restart()
			return
		}
		err := s.integrate(e, s.mode == 0 && s.one(5))
		s.say("integrate %s into %s: %v", e.Task, e.Into, err)
		s.stale(err)
	case work.Land:
		s.land(tree, e)
	case work.Recheck:
		s.must(s.do(tree, work.System(), work.Settle{}))
	case work.Push:
		s.push(tree, e)
	case work.PullRequest:
		s.pullRequest(tree, e)
	case work.ClosePull:
		s.closePull(tree, e)
	case work.FinishJob, work.Reclaim, work.Branch:
	}
}

// stale allows a refusal only because the tree is past that point.
func (s *sim) stale(err error) {
	if err != nil && work.CodeOf(err) != work.Conflict {
		s.fail("an effect met %v", err)
	}
}

func (s *sim) start(tree *work.Tree, e work.Effect) {
	if s.one(30) {
		s.stale(s.do(tree, work.System(), work.Park{
			Execution: e.Execution, On: pick(s, work.OnBudget, work.OnPaused, work.OnResources), Until: s.now.Add(time.Hour), Reason: "not now",
		}))
	}
	err := s.beginRun(tree, e.Execution)
	s.say("start %s: %v", e.Execution, err)
	s.stale(err)
	if err != nil {
		return
	}
	x := tree.Execution(e.Execution)
	for _, p := range s.procs {
		if p.task == x.TaskID && p.kind.Own() == x.Kind.Own() {
			s.fail("%s runs while %s still does", x.ID, p.id)
		}
	}
	s.procs = append(s.procs, proc{tree: tree, task: x.TaskID, id: x.ID, fence: x.Fence, kind: x.Kind})
}

func (s *sim) proc(id work.ExecutionID) int {
	return slices.IndexFunc(s.procs, func(p proc) bool { return p.id == id })
}

// end reports the end of a process; the report must be taken.
func (s *sim) end(i int, how outcome) {
	p := s.procs[i]
	s.procs = slices.Delete(s.procs, i, i+1)
	tree := s.tree(p.tree.ID)
	x := tree.Execution(p.id)
	if x == nil {
		s.fail("%s runs and is forgotten", p.id)
	}
	err := s.endRun(tree, x, how)
	s.say("end %s: %s, then %s", p.id, x.Outcome, tree.Task(p.task).State)
	s.must(err)
}

func (s *sim) land(tree *work.Tree, e work.Effect) {
	m := tree.Merge(e.Merge)
	if m == nil {
		return
	}
	var err error
	switch s.choose(4) {
	case 0, 1:
		commit := "landed." + string(m.ID)
		if len(m.Queue) == 0 {
			commit = ""
		}
		err = s.do(tree, work.System(), work.Landed{Merge: m.ID, Commit: commit})
	case 2:
		err = s.do(tree, work.System(), work.LandConflict{Merge: m.ID, Current: m.TaskID, Files: []string{"a"}})
	case 3:
		err = s.do(tree, work.System(), work.LandRefused{Merge: m.ID, Reason: "dirty_target", Message: "the target has uncommitted changes"})
	}
	s.say("land %s: %s %v", m.ID, m.Status, err)
	s.stale(err)
}

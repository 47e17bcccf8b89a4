package chaos_test

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

// seat is where a judge sits: for one attempt, one commit and one role.
type seat struct {
	judged work.TaskID
	commit string
	role   work.Role
}

// record is what the events tell of reviews.
type record struct {
	numbers  map[seat][]string        // of the judges that were spawned
	seats    map[work.TaskID]seat     // of every judge
	verdicts map[seat]int             // that were reported
	decided  map[work.TaskID][]string // by the server: kind and commit
	fixes    map[work.TaskID]int      // that answered a rejection of it
	reviews  map[work.TaskID]int      // how often its work was handed in
}

func (a *audit) record() record {
	r := record{
		map[seat][]string{}, map[work.TaskID]seat{}, map[seat]int{}, map[work.TaskID][]string{}, map[work.TaskID]int{}, map[work.TaskID]int{},
	}
	for _, e := range a.log {
		text := func(key string) string { return fmt.Sprint(e.Body[key]) }
		switch e.Kind {
		case "judge.spawned":
			at := seat{work.TaskID(text("judges")), text("commit"), work.Role(text("role"))}
			r.seats[e.Task] = at
			r.numbers[at] = append(r.numbers[at], text("number"))
		case "verdict.reported":
			r.verdicts[r.seats[e.Task]]++
		case "decision.approved", "decision.rejected":
			if e.Actor.Kind == work.SystemActor {
				r.decided[e.Task] = append(r.decided[e.Task], e.Kind+" "+text("commit"))
			}
		case "fix.spawned":
			r.fixes[work.TaskID(text("rejected"))]++
		case "task.ready":
			r.reviews[e.Task]++
		}
	}
	return r
}

// reviews: each judge is there once and speaks once, each review is decided once,
// each rejection is answered by one fix at the same place.
func (a *audit) reviews() {
	r := a.record()
	for at, numbers := range r.numbers {
		slices.Sort(numbers)
		for i, n := range numbers {
			if n != fmt.Sprint(i+1) {
				a.w.Errorf("judges of %v are numbered %v", at, numbers)
				break
			}
		}
		if n := r.verdicts[at]; n > r.reviews[at.judged] {
			a.w.Errorf("%d verdicts of %v, whose work was handed in %d times", n, at, r.reviews[at.judged])
		}
	}
	for id, decided := range r.decided {
		slices.Sort(decided)
		if len(decided) > r.reviews[id] {
			a.w.Errorf("task %s was decided as %q, and handed in %d times", id, decided, r.reviews[id])
		}
	}
	for id, n := range r.fixes {
		if n != 1 {
			a.w.Errorf("task %s was answered by %d fixes", id, n)
		}
	}
	for _, t := range a.tasks {
		if t.SupersededBy != "" {
			fix := a.tasks[t.SupersededBy]
			if r.fixes[t.ID] != 1 || fix == nil || fix.Position() != t.Position() || fix.AttemptNo != t.AttemptNo+1 || fix.ParentTaskID != t.ParentTaskID {
				a.w.Errorf("attempt %d at %s is superseded by %s, of which %d were made", t.AttemptNo, a.path(t), t.SupersededBy, r.fixes[t.ID])
			}
		}
		if story := a.stories[t.StoryID]; story != nil && story.Policy != "checked" && t.Role() == work.Builder && !a.again[t.ID] {
			a.arbitrated(r, t)
		}
	}
}

// arbitrated: a builder's attempt of a story was judged by four evaluators and an
// arbiter, each with one verdict. A judge without one was killed.
func (a *audit) arbitrated(r record, t *work.Task) {
	decided := r.decided[t.ID]
	if len(decided) != 1 {
		a.w.Errorf("attempt %d at %s was decided as %q, not once", t.AttemptNo, a.path(t), decided)
		return
	}
	kind, commit, _ := strings.Cut(decided[0], " ")
	if rejected := kind == "decision.rejected"; rejected != (t.SupersededBy != "") {
		a.w.Errorf("attempt %d at %s: %s, and superseded by %q", t.AttemptNo, a.path(t), kind, t.SupersededBy)
	}
	roles := []work.Role{work.EvaluatorCorrectness, work.EvaluatorTests, work.EvaluatorSecurity, work.EvaluatorQuality, work.Arbitration}
	for _, role := range roles {
		if n := r.verdicts[seat{t.ID, commit, role}]; n != 1 {
			a.w.Errorf("attempt %d at %s has %d verdicts of %s for %s", t.AttemptNo, a.path(t), n, role, commit)
		}
	}
	judges := 0
	for id, at := range r.seats {
		if at.judged != t.ID {
			continue
		}
		judges++
		if j := a.tasks[id]; at.commit != commit || j == nil || j.Verdict == nil && !j.State.EndedBadly() {
			a.w.Errorf("attempt %d at %s was decided for %s; judge %s of %s has said nothing of it and was not killed", t.AttemptNo, a.path(t), commit, id, at.commit)
		}
	}
}

// path names a place by the names from its root to it.
func (a *audit) path(t *work.Task) string {
	path := t.Name
	for parent := a.tasks[t.ParentTaskID]; parent != nil; parent = a.tasks[parent.ParentTaskID] {
		path = parent.Name + "/" + path
	}
	return path
}

func (a *audit) loadStories() {
	a.w.Helper()
	a.stories = map[work.StoryID]*app.StoryView{}
	page, err := a.api.Stories(a.ctx, app.StoryQuery{Limit: 500})
	if err != nil || page.Next != "" {
		a.w.Fatalf("list stories: %v, and there are more", err)
	}
	for _, s := range page.Items {
		if a.stories[s.ID], err = a.api.Story(a.ctx, string(s.ID)); err != nil {
			a.w.Fatal(err)
		}
	}
}

// ships: what is DEPLOYED was landed once, and each deployment ran once. Only a
// person deploys again what was cut off.
func (a *audit) ships() {
	for id, s := range a.stories {
		first := a.tasks[s.RootTaskID]
		if first == nil || first.AttemptNo != 1 || first.ParentTaskID != "" {
			a.w.Errorf("the root of story %s is %s, which is not its first", id, s.RootTaskID)
			continue
		}
		if s.Status != work.Deployed {
			a.w.Errorf("story %s is %s, not over", id, s.Status)
			continue
		}
		landed := 0
		for _, m := range a.merges {
			t := a.tasks[m.TaskID]
			if t == nil || t.StoryID != id || m.Status != work.MergeLanded {
				continue
			}
			landed++
			if m.Commit != s.Shipped.Commit {
				a.w.Errorf("story %s was shipped as %s, and landed as %s", id, s.Shipped.Commit, m.Commit)
			}
		}
		if landed != 1 {
			a.w.Errorf("story %s was landed %d times", id, landed)
		}
		a.deployments(s)
	}
}

func (a *audit) deployments(s *app.StoryView) {
	failed, stopped, pressed := 0, 0, 0
	for _, e := range a.log {
		switch {
		case string(e.Tree) != string(s.RootTaskID):
		case e.Kind == "ship.started":
			pressed++
		case e.Kind == "ship.failed" && e.Body["step"] == string(work.ShipDeploy):
			failed++
		case e.Kind == "ship.failed", e.Kind == "ship.refused":
			stopped++
		}
	}
	if pressed != 1+failed+stopped {
		a.w.Errorf("story %s was shipped %d times, after %d deployments and %d other steps that failed", s.ID, pressed, failed, stopped)
	}
	text, _ := os.ReadFile(a.w.path("deployed"))
	runs, done := 0, 0
	for _, x := range a.runs {
		if t := a.tasks[x.TaskID]; t == nil || t.StoryID != s.ID || x.Kind != work.DeployRun {
			continue
		}
		runs++
		begun := strings.Count(string(text), fmt.Sprintf("begun %s.deploy1 %s\n", x.ID, s.Shipped.Commit))
		ended := strings.Count(string(text), fmt.Sprintf("ended %s.deploy1 %s\n", x.ID, s.Shipped.Commit))
		if begun > 1 || ended > begun {
			a.w.Errorf("deployment %s began %d times and came to its end %d times", x.ID, begun, ended)
		}
		if x.Outcome == work.Success && work.GatesPassed(x.Gates) {
			done++
			if ended != 1 {
				a.w.Errorf("deployment %s has succeeded, and came to its end %d times", x.ID, ended)
			}
		}
	}
	if runs != 1+failed || done != 1 {
		a.w.Errorf("story %s had %d deployments, of which %d failed and %d succeeded", s.ID, runs, failed, done)
	}
	a.deploys += runs
}

package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/client"
	"github.com/claudomator/claudomator/internal/work"
)

// person makes work, answers, judges, retries, cancels and lands, like somebody
// who does not know that the server is being killed.
type person struct {
	w       *world
	dice    *rand.Rand
	made    int
	tries   map[string]int // how often something was done about a task
	refused []string       // answers that should not be
}

// kind is a tree that a person can ask for.
type kind struct {
	part   string // of agent.sh
	role   string
	review string
	needs  bool // the tree before it
}

func kinds() []kind {
	return []kind{
		{part: "parent", review: "none"},
		{part: "parent", review: "human"},
		{part: "nested", review: "none"},
		{part: "clashing", review: "human"},
		{part: "asker", review: "none"},
		{part: "flawed", review: "checked"},
		{part: "daemon", review: "human"},
		{part: "main", review: "none"},
		{part: "main", review: "human"},
		{part: "leaf", review: "none", needs: true},
		{part: "hall", role: "builder", review: "arbitrated"},
		{part: "parent", review: "checked"},
	}
}

const openTrees = 6 // at once, during the storm

// setUp registers the repository, with what deploys it, and the judges, which all
// run one program.
func (p *person) setUp(ctx context.Context, judge, deploy string) {
	p.w.Helper()
	api, err := p.w.api()
	if err != nil {
		p.w.Fatal(err)
	}
	name, repo, agent := "r", p.w.path("R"), "command"
	gates, environment := []string{"test -e a"}, map[string]string{"CHAOS": p.w.dir, "PATH": os.Getenv("PATH")}
	if _, err := api.AddProject(ctx, app.ProjectInput{Name: &name, Repository: &repo, Agent: &agent, Validate: &gates, Environment: &environment, Deploy: &deploy}); err != nil {
		p.w.Fatalf("add the project: %v", err)
	}
	for _, role := range work.Roles() {
		if role == work.Builder || role == work.NoRole {
			continue
		}
		command := []string{"sh", "-c", `exec sh "$CHAOS/` + judge + `" ` + string(role)}
		if _, err := api.SetRole(ctx, string(role), app.RoleInput{Agent: &agent, Command: &command}); err != nil {
			p.w.Fatalf("configure %s: %v", role, err)
		}
	}
}

const (
	glance    = 120 * time.Millisecond // between two looks at the inbox
	lookLimit = 30 * time.Second       // for one look, on a busy machine
)

// quiet counts looks at which nobody seems to do anything. What is looked at changes
// between the calls of one look, so that a few in a row say nothing, however long
// they take.
type quiet struct {
	looks int
	since time.Time
}

// lasts takes one look into account; true when it has been quiet for too long.
func (q *quiet) lasts(is bool) bool {
	switch {
	case !is:
		*q = quiet{}
	case q.looks == 0:
		q.looks, q.since = 1, time.Now()
	default:
		q.looks++
	}
	return q.looks > 50 && time.Since(q.since) > 15*time.Second
}

// live is the person's life during the storm.
func (p *person) live(ctx context.Context) {
	for ctx.Err() == nil {
		if api, err := p.w.api(); err == nil {
			limit, cancel := context.WithTimeout(ctx, lookLimit)
			p.look(limit, api, true)
			cancel()
		}
		select {
		case <-ctx.Done():
		case <-time.After(glance):
		}
	}
}

// look is one look at everything; answers whether all is over.
func (p *person) look(ctx context.Context, api *client.Client, storm bool) (over bool) {
	tasks, err := allTasks(ctx, api)
	if err != nil {
		return false
	}
	items, err := api.Attention(ctx)
	if err != nil {
		return false
	}
	for _, item := range items {
		p.settle(ctx, api, item, storm)
	}
	open := openRoots(tasks)
	over = len(open) == 0
	for _, t := range tasks {
		if isRoot(t) && t.State == work.Completed {
			over = p.land(ctx, api, t) && over
		}
	}
	if !storm {
		return over
	}
	if len(open) < openTrees {
		p.create(ctx, api, tasks)
	}
	if p.dice.IntN(40) == 0 && len(tasks) > 0 { // changes their mind
		t := tasks[p.dice.IntN(min(len(tasks), 30))]
		if !t.State.Ended() && t.Judges == nil {
			_, err := api.CancelTask(ctx, string(t.ID))
			p.expect("cancel", t.ID, err)
		}
	}
	return false
}

// create makes the next tree, at random.
func (p *person) create(ctx context.Context, api *client.Client, tasks []*work.Task) {
	all := kinds()
	k := all[p.dice.IntN(len(all))]
	if p.made < len(all) {
		k = all[p.made] // each of them once, however short the storm
	}
	p.make(ctx, api, k, tasks)
}

// make makes a tree of a kind; its name tells how many were made before.
func (p *person) make(ctx context.Context, api *client.Client, k kind, tasks []*work.Task) {
	p.made++
	key := fmt.Sprintf("t%d", p.made)
	in := app.TaskRequest{
		Project: "r", Name: key, Review: k.review, Start: true, Tags: []string{k.part},
		Agent:          app.AgentInput{Role: k.role, Instructions: "exec sh $CHAOS/agent.sh " + k.part + " " + key},
		IdempotencyKey: key,
	}
	if k.needs {
		for _, t := range tasks {
			if isRoot(t) && t.SupersededBy == "" && t.State != work.Cancelled {
				in.DependsOn = []string{string(t.ID)}
				break
			}
		}
	}
	_, err := api.CreateTask(ctx, in)
	p.expect("create", work.TaskID(key), err)
}

// settle does something about an item of the inbox.
func (p *person) settle(ctx context.Context, api *client.Client, item work.Item, storm bool) {
	id := string(item.TaskID)
	p.tries[id+string(item.Kind)]++
	tries := p.tries[id+string(item.Kind)]
	var err error
	switch item.Kind {
	case work.ItemQuestion:
		_, err = api.AnswerTask(ctx, id, "that")
	case work.ItemReview:
		if storm && tries == 1 && p.dice.IntN(3) == 0 {
			_, err = api.RejectTask(ctx, id, app.RejectInput{Comment: "not like this"})
			break
		}
		_, err = api.AcceptTask(ctx, id, app.AcceptInput{})
	case work.ItemConflict:
		p.resolve(ctx, api, item, tries)
	case work.ItemChild:
		p.children(ctx, api, item, storm)
	case work.ItemEnded, work.ItemBuiltOn:
		if slices.Contains(item.Actions, work.DoRetry) && tries < 12 {
			_, err = api.RetryTask(ctx, id, false)
			break
		}
		if slices.Contains(item.Actions, work.DoCancel) {
			_, err = api.CancelTask(ctx, id)
			break
		}
		err = api.RemoveTask(ctx, id)
	case work.ItemParked, work.ItemStuck, work.ItemStory:
		err = fmt.Errorf("nothing here should be parked: %s", item.Text)
	}
	p.expect("settle "+string(item.Kind), item.TaskID, err)
}

// children does something about the badly ended children of a task.
func (p *person) children(ctx context.Context, api *client.Client, item work.Item, storm bool) {
	children, err := api.Subtasks(ctx, string(item.TaskID))
	p.expect("list children", item.TaskID, err)
	for _, c := range children {
		if c.SupersededBy != "" || c.Dropped || !c.State.EndedBadly() {
			continue
		}
		p.tries[string(c.ID)]++
		var err error
		switch {
		case p.tries[string(c.ID)] > 12 || storm && p.dice.IntN(10) == 0:
			_, err = api.DropTask(ctx, string(c.ID))
		default:
			_, err = api.RetryTask(ctx, string(c.ID), false)
		}
		p.expect("settle a child", c.ID, err)
	}
}

// resolve settles a conflict: of a landing in its workspace, of an integration
// by giving the child up.
func (p *person) resolve(ctx context.Context, api *client.Client, item work.Item, tries int) {
	merges, err := api.Merges(ctx, string(item.TaskID))
	if err != nil {
		return
	}
	for _, m := range merges {
		if m.Status != work.MergeConflicted {
			continue
		}
		if tries%4 == 0 {
			_, err := api.AbortMerge(ctx, string(m.ID))
			p.expect("abort", item.TaskID, err)
			return
		}
		for _, file := range m.Conflicts {
			_ = os.WriteFile(filepath.Join(p.w.path("data/workspaces"), "m-"+string(m.ID), file), fmt.Appendf(nil, "%s and others\n", item.Name), 0o600)
		}
		_, err := api.ContinueMerge(ctx, string(m.ID))
		p.expect("continue", item.TaskID, err)
		return
	}
	if slices.Contains(item.Actions, work.DoDrop) {
		_, err = api.DropTask(ctx, string(item.TaskID))
	} else {
		_, err = api.CancelTask(ctx, string(item.TaskID))
	}
	p.expect("give up", item.TaskID, err)
}

// land lands a completed root, but some never; true when there is nothing left
// to do about it.
func (p *person) land(ctx context.Context, api *client.Client, t *work.Task) bool {
	if t.Landed != nil || slices.Contains(t.Tags, "daemon") || p.tries[string(t.ID)+"landed"] > 0 {
		return true
	}
	merges, err := api.Merges(ctx, string(t.ID))
	if err != nil {
		return false
	}
	for _, m := range merges {
		switch m.Status {
		case work.MergeRunning, work.MergeConflicted:
			return false
		case work.MergeLanded, work.MergeNothing:
			p.tries[string(t.ID)+"landed"]++
			return true
		case work.MergeRefused, work.MergeAborted: // asked again
		}
	}
	_, err = api.StartMerge(ctx, string(t.ID), "")
	p.expect("land", t.ID, err)
	return false
}

// expect notes answers that no person should ever get: all but a server that is
// down, and one that was asked too late.
func (p *person) expect(what string, id work.TaskID, err error) {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return
	}
	switch work.CodeOf(err) {
	case work.Unavailable, work.Timeout, work.Conflict, work.Illegal, work.NotFound:
		return
	case work.Invalid, work.Unauthenticated, work.Forbidden, work.Exhausted, work.Internal:
		p.refused = append(p.refused, fmt.Sprintf("%s of %s: %v", what, id, err))
	}
}

// finish leads everything to its end, without new work and in calm weather.
func (p *person) finish(ctx context.Context) {
	p.w.Helper()
	var q quiet
	for {
		api, err := p.w.api()
		if err != nil {
			p.w.Fatal(err)
		}
		if p.look(ctx, api, false) {
			break
		}
		if stuck := p.stuck(ctx, api); q.lasts(len(stuck) > 0) {
			p.w.Errorf("neither automatic work under way nor an item in the inbox:\n%s", strings.Join(stuck, "\n"))
			return
		}
		if ctx.Err() != nil {
			p.w.Errorf("not over %s after the storm:\n%s", settleLimit, strings.Join(p.open(ctx, api), "\n"))
			return
		}
		time.Sleep(glance)
	}
	for _, text := range p.refused {
		p.w.Errorf("an answer that nobody should get: %s", text)
	}
}

// stuck lists open trees that wait for nobody.
func (p *person) stuck(ctx context.Context, api *client.Client) (found []string) {
	tasks, err := allTasks(ctx, api)
	if err != nil {
		return []string{err.Error()}
	}
	items, err := api.Attention(ctx)
	if err != nil {
		return []string{err.Error()}
	}
	alive := map[work.TreeID]bool{}
	asked := map[work.TaskID]bool{}
	for _, item := range items {
		asked[item.TaskID] = true
	}
	for _, t := range tasks {
		if t.SupersededBy == "" && (moves(t) || asked[t.ID]) {
			alive[t.TreeID] = true
		}
	}
	for _, t := range openRoots(tasks) {
		if !alive[t.TreeID] {
			found = append(found, "tree of "+describe(t))
		}
	}
	return found
}

// open describes what is not over.
func (p *person) open(ctx context.Context, api *client.Client) (lines []string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit) // asked when its own time is over
	defer cancel()
	tasks, err := allTasks(ctx, api)
	if err != nil {
		return []string{err.Error()}
	}
	for _, t := range tasks {
		if !t.State.Ended() && t.SupersededBy == "" {
			lines = append(lines, describe(t))
		}
		if merges, err := api.Merges(ctx, string(t.ID)); err == nil && isRoot(t) && len(merges) > 0 && t.Landed == nil {
			m := merges[0]
			lines = append(lines, fmt.Sprintf("landing %d of %s (%s): %s %s", len(merges), t.ID, t.Name, m.Status, m.Message))
		}
	}
	items, _ := api.Attention(ctx)
	for _, item := range items {
		lines = append(lines, fmt.Sprintf("inbox: %s %s %s", item.TaskID, item.Kind, item.Text))
	}
	return lines
}

// removeAll deletes every tree, and waits until their workspaces are gone.
func (p *person) removeAll() {
	p.w.Helper()
	ctx, cancel := context.WithTimeout(p.w.Context(), settleLimit)
	defer cancel()
	for {
		api, err := p.w.api()
		if err != nil {
			p.w.Fatal(err)
		}
		tasks, err := allTasks(ctx, api)
		if err != nil && ctx.Err() == nil {
			p.w.Fatalf("list tasks: %v", err)
		}
		for _, t := range tasks {
			if isRoot(t) && t.SupersededBy == "" {
				p.expect("remove", t.ID, api.RemoveTask(ctx, string(t.ID)))
			}
		}
		left, _ := os.ReadDir(p.w.path("data/workspaces"))
		if len(tasks) == 0 && len(left) == 0 {
			return
		}
		if ctx.Err() != nil {
			p.w.Errorf("%d tasks and workspaces %q are left after everything was removed", len(tasks), left)
			return
		}
		time.Sleep(glance)
	}
}

func describe(t *work.Task) string {
	return fmt.Sprintf("%s (%s, %s) is %s(%s) since %s: %s", t.ID, t.Name, t.Role(), t.State, t.BlockedOn, t.UpdatedAt.Format(time.TimeOnly), t.Reason)
}

func allTasks(ctx context.Context, api *client.Client) (all []*work.Task, err error) {
	for query := (app.TaskQuery{All: true, Limit: 500}); ; {
		page, err := api.Tasks(ctx, query)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if query.After = page.Next; page.Next == "" {
			return all, nil
		}
	}
}

func isRoot(t *work.Task) bool { return t.ParentTaskID == "" && t.Judges == nil }

// openRoots are the current roots of trees that are not over.
func openRoots(tasks []*work.Task) (open []*work.Task) {
	for _, t := range tasks {
		over := t.State == work.Completed || t.State == work.Cancelled || t.State == work.Pending // never started
		if isRoot(t) && t.SupersededBy == "" && !over {
			open = append(open, t)
		}
	}
	return open
}

// moves is true for what goes on without a person.
func moves(t *work.Task) bool {
	switch t.State {
	case work.Queued, work.Running:
		return true
	case work.Ready:
		return t.BlockedOn != work.OnPerson
	case work.Pending, work.Blocked, work.Completed, work.Failed, work.TimedOut, work.BudgetExceeded, work.Cancelled:
	}
	return false
}

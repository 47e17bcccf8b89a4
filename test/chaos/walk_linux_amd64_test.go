package chaos_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/client"
	"github.com/claudomator/claudomator/internal/work"
)

// walk is a person who leads one thing after the other to its end, in a world whose
// server is killed once. Everything is asked for until it is so, as by somebody who
// got no answer.
type walk struct {
	w     *world
	trap  *trap
	ctx   context.Context //nolint:containedctx // of the step that is under way
	at    string          // that step
	wrong string          // what went wrong first
	told  []string        // what must be the same wherever it was killed
}

const (
	stepLimit = 90 * time.Second // for one step, on a busy machine
	stepPause = 20 * time.Millisecond
)

// do repeats a step until it is done, and starts the server again once it was killed.
func (k *walk) do(name string, step func(api *client.Client) (done bool, err error)) {
	k.at = name
	for end := time.Now().Add(stepLimit); k.wrong == "" && !k.w.Failed(); time.Sleep(stepPause) {
		k.revive()
		if time.Now().After(end) {
			k.fail("not done after %s\n%s", stepLimit, strings.Join(k.open(), "\n"))
			return
		}
		api, err := k.w.api()
		if err != nil {
			continue
		}
		if k.try(api, step) {
			return
		}
	}
}

func (k *walk) try(api *client.Client, step func(api *client.Client) (done bool, err error)) bool {
	ctx, cancel := context.WithTimeout(k.w.Context(), limit)
	defer cancel()
	k.ctx = ctx
	done, err := step(api)
	p := &person{w: k.w}
	if p.expect(k.at, "", err); len(p.refused) > 0 {
		k.fail("an answer that nobody should get: %s", p.refused[0])
	}
	return done
}

func (k *walk) fail(format string, args ...any) {
	if k.wrong == "" {
		k.wrong = k.at + ": " + fmt.Sprintf(format, args...)
	}
}

func (k *walk) open() []string {
	api, err := k.w.api()
	if err != nil {
		return []string{err.Error()}
	}
	return (&person{w: k.w}).open(k.w.Context(), api)
}

// begin starts the server in the trap, for the first time in its data folder.
func (k *walk) begin() {
	_ = os.Remove(k.w.path("data"))
	k.trap.set(k.w)
	address, err := k.w.server.URL()
	if err != nil {
		select {
		case <-k.trap.sprung:
		case <-time.After(time.Second):
			k.w.Fatal(err)
		}
		return
	}
	k.w.mu.Lock()
	defer k.w.mu.Unlock()
	k.w.url = address
}

// revive starts the server, outside of the trap, once that has killed it.
func (k *walk) revive() {
	select {
	case <-k.trap.sprung:
		if k.trap.server != 0 {
			k.trap.server = 0
			k.w.kill()
			k.w.start()
		}
	default:
	}
}

// project registers the repository.
func (k *walk) project() {
	name, repo, agent, deploy := "r", k.w.path("R"), "command", "exec sh $CHAOS/deploy.sh"
	gates, environment := []string{"test -e a"}, map[string]string{"CHAOS": k.w.dir, "PATH": os.Getenv("PATH")}
	k.do("add the project", func(api *client.Client) (bool, error) {
		if _, err := api.Project(k.ctx, name); err == nil {
			return true, nil
		}
		_, err := api.AddProject(k.ctx, app.ProjectInput{Name: &name, Repository: &repo, Agent: &agent, Validate: &gates, Environment: &environment, Deploy: &deploy})
		return err == nil, err
	})
}

func (k *walk) judges() {
	agent := "command"
	for _, role := range work.Roles() {
		if role == work.Builder || role == work.NoRole {
			continue
		}
		command := []string{"sh", "-c", `exec sh "$CHAOS/judge.sh" ` + string(role)}
		k.do("set a role", func(api *client.Client) (bool, error) {
			_, err := api.SetRole(k.ctx, string(role), app.RoleInput{Agent: &agent, Command: &command})
			return err == nil, err
		})
	}
}

func part(name, key string) string { return "exec sh $CHAOS/steps.sh " + name + " " + key }

// create makes a task that plays a part of steps.sh.
func (k *walk) create(name, key, review string) {
	in := app.TaskRequest{Project: "r", Name: key, Review: review, Start: true, IdempotencyKey: key, Agent: app.AgentInput{Instructions: part(name, key)}}
	k.do("create "+key, func(api *client.Client) (bool, error) {
		_, err := api.CreateTask(k.ctx, in)
		return err == nil, err
	})
}

// find is the task of a name, its newest attempt; nil when there is none.
func (k *walk) find(api *client.Client, name string) (*work.Task, error) {
	tasks, err := allTasks(k.ctx, api)
	i := slices.IndexFunc(tasks, func(t *work.Task) bool { return t.Name == name && t.Judges == nil && t.SupersededBy == "" })
	if err != nil || i < 0 {
		return nil, err
	}
	return tasks[i], nil
}

// until looks at a task until it is so, and does what is to be done until then.
func (k *walk) until(what, name string, so func(t *work.Task) bool, act func(api *client.Client, t *work.Task) error) {
	k.do(what+" "+name, func(api *client.Client) (bool, error) {
		t, err := k.find(api, name)
		if err != nil || t == nil || so(t) || act == nil {
			return err == nil && t != nil && so(t), err
		}
		return false, act(api, t)
	})
}

func is(states ...work.State) func(t *work.Task) bool {
	return func(t *work.Task) bool { return slices.Contains(states, t.State) }
}

func waits(t *work.Task) bool { return t.State == work.Ready && t.BlockedOn == work.OnPerson }

func landed(t *work.Task) bool { return t.Landed != nil }

// accept accepts and lands a task by one word.
func (k *walk) accept(name string) {
	land := true
	k.until("accept", name, landed, func(api *client.Client, t *work.Task) error {
		if !waits(t) {
			return nil
		}
		if t.Hold == work.HoldLanding {
			k.fail("its landing was refused: %s", t.Reason)
		}
		_, err := api.AcceptTask(k.ctx, string(t.ID), app.AcceptInput{Land: &land})
		return err
	})
}

// land lands a task, and resolves its conflict.
func (k *walk) land(name string) {
	k.until("land", name, landed, func(api *client.Client, t *work.Task) error {
		merges, err := api.Merges(k.ctx, string(t.ID))
		if err != nil {
			return err
		}
		for _, m := range merges {
			switch m.Status {
			case work.MergeConflicted:
				for _, file := range m.Conflicts {
					if err := os.WriteFile(filepath.Join(k.w.path("data/workspaces"), "m-"+string(m.ID), file), []byte("resolved\n"), 0o600); err != nil {
						return err
					}
				}
				_, err := api.ContinueMerge(k.ctx, string(m.ID))
				return err
			case work.MergeRefused:
				k.fail("refused: %s; %s", m.Message, m.Hint)
				return nil
			case work.MergeRunning, work.MergeLanded, work.MergeNothing, work.MergeAborted:
				return nil
			}
		}
		_, err = api.StartMerge(k.ctx, string(t.ID), "")
		return err
	})
}

func (k *walk) tell(format string, args ...any) {
	if k.wrong == "" && !k.w.Failed() {
		k.told = append(k.told, fmt.Sprintf(format, args...))
	}
}

// scenarios are what is walked, by name.
func scenarios() map[string]func(k *walk) {
	return map[string]func(k *walk){
		"task": func(k *walk) {
			k.create("leaf", "t", "human")
			k.accept("t")
		},
		"parent": func(k *walk) {
			k.create("parent", "p", "none")
			k.until("wait for", "p", is(work.Completed), nil)
			k.land("p")
		},
		"conflict": func(k *walk) {
			k.create("line", "x", "none")
			k.create("line", "y", "none")
			k.until("wait for", "x", is(work.Completed), nil)
			k.until("wait for", "y", is(work.Completed), nil)
			k.land("x")
			k.land("y")
		},
		"question": func(k *walk) {
			k.create("asker", "q", "none")
			k.until("answer", "q", is(work.Completed), func(api *client.Client, t *work.Task) error {
				if t.State != work.Blocked || t.BlockedOn != work.OnQuestion {
					return nil
				}
				_, err := api.AnswerTask(k.ctx, string(t.ID), "that")
				return err
			})
			k.land("q")
		},
		"by hand":          (*walk).byHand,
		"checked story":    func(k *walk) { k.story("checked") },
		"arbitrated story": func(k *walk) { k.story("arbitrated") },
	}
}

// byHand takes over a run that failed; starts another over, and brings back what it
// had; postpones a subtask, cancels, removes and reclaims.
func (k *walk) byHand() {
	k.create("fails", "h", "human")
	k.until("take over", "h", waits, func(api *client.Client, t *work.Task) error {
		if t.State != work.Failed {
			return nil
		}
		if err := os.WriteFile(filepath.Join(k.w.path("data/workspaces"), string(t.ID), "hand"), []byte("by hand\n"), 0o600); err != nil {
			return err
		}
		_, err := api.SubmitTask(k.ctx, string(t.ID))
		return err
	})
	k.accept("h")
	k.create("fails", "f", "human")
	k.until("start over", "f", func(t *work.Task) bool { return t.State == work.Failed && k.fresh(t) }, func(api *client.Client, t *work.Task) error {
		if t.State != work.Failed {
			return nil
		}
		_, err := api.RetryTask(k.ctx, string(t.ID), true)
		return err
	})
	k.rescue()
	k.create("later", "l", "none")
	k.until("postpone", "l", is(work.Completed), func(api *client.Client, _ *work.Task) error {
		soon, err := k.find(api, "soon")
		if err != nil || soon == nil {
			return err
		}
		if soon.ParentTaskID == "" {
			k.w.write("go", "") // for what it would have waited for
			return nil
		}
		_, err = api.PostponeTask(k.ctx, string(soon.ID))
		return err
	})
	k.create("leaf", "c", "human")
	k.until("cancel", "c", is(work.Cancelled), func(api *client.Client, t *work.Task) error {
		if !waits(t) {
			return nil
		}
		_, err := api.CancelTask(k.ctx, string(t.ID))
		return err
	})
	for _, name := range []string{"f", "c"} {
		k.do("remove "+name, func(api *client.Client) (bool, error) {
			t, err := k.find(api, name)
			if err != nil || t == nil {
				return err == nil, err
			}
			return false, api.RemoveTask(k.ctx, string(t.ID))
		})
	}
	k.do("reclaim", func(api *client.Client) (bool, error) {
		_, err := api.ReclaimDisk(k.ctx, app.ReclaimRequest{EmptyBin: true})
		return err == nil, err
	})
}

// fresh is true once what a task had was kept, before it was started over.
func (k *walk) fresh(t *work.Task) bool {
	api, err := k.w.api()
	if err != nil {
		return false
	}
	kept, err := api.Snapshots(k.ctx, string(t.ID))
	return err == nil && slices.ContainsFunc(kept, keptBranch)
}

func keptBranch(s app.Snapshot) bool { return s.Kind == app.SnapshotBranch && s.Files > 0 }

func (k *walk) rescue() {
	to := k.w.path("restored")
	k.do("rescue", func(api *client.Client) (bool, error) {
		kept, err := api.Snapshots(k.ctx, "f")
		i := slices.IndexFunc(kept, keptBranch)
		if err != nil || i < 0 {
			return false, err
		}
		if branch, _ := k.w.tryGit(k.w.path("R"), "branch", "--list", "rescued"); branch == "" {
			_, err := api.RestoreSnapshot(k.ctx, app.RestoreRequest{Snapshot: kept[i].Ref, Branch: "rescued"})
			if refusal, ok := work.AsError(err); ok && refusal.Reason == "locked" { // by a killed git, before it had written there: nobody's
				_ = os.Remove(k.w.path("R/.git/refs/heads/rescued.lock")) // as the hint says
			}
			return false, err
		}
		if _, err := os.Stat(filepath.Join(to, "f")); err == nil {
			return true, nil
		}
		_ = os.RemoveAll(to) // half of it, and no answer
		_, err = api.RestoreSnapshot(k.ctx, app.RestoreRequest{Snapshot: kept[i].Ref, To: to})
		return false, err
	})
	if k.wrong == "" {
		k.tell("rescued %s", k.w.git(k.w.path("R"), "ls-tree", "-r", "rescued"))
		k.w.git(k.w.path("R"), "branch", "-q", "-D", "rescued")
	}
}

// story takes a small story to its deployment. Nobody is asked for more than to
// accept it, to ship it, and to deploy again what was cut off.
func (k *walk) story(policy string) {
	k.w.git("", "clone", "-q", "--bare", k.w.path("R"), k.w.path("origin.git"))
	k.w.git(k.w.path("R"), "remote", "add", "origin", k.w.path("origin.git"))
	k.judges()
	second := map[string]string{"checked": "leaf", "arbitrated": "flawed"}[policy]
	plan := app.ApproveInput{Project: "r", IdempotencyKey: "s", PlanInput: app.PlanInput{
		Name: "s", Goal: "true", BranchName: "story/s", Policy: policy,
		Tasks: []app.PlanTaskInput{
			{Name: "s1", Instructions: part("leaf", "s1"), AcceptanceCriteria: app.StringList{"it is there"}},
			{Name: "s2", Instructions: part(second, "s2"), AcceptanceCriteria: app.StringList{"it is there"}, DependsOn: []string{"s1"}},
		},
		Validation: app.ValidationList{
			{Type: work.BuildValidation, Steps: []string{"test -e s1"}}, {Type: work.SmokeValidation, Steps: []string{"test -e s2"}},
		},
	}}
	id := ""
	k.do("approve", func(api *client.Client) (bool, error) {
		made, err := api.ApprovePlan(k.ctx, plan)
		if err == nil {
			id = string(made.Story.ID)
		}
		return err == nil, err
	})
	k.do("follow the story", func(api *client.Client) (bool, error) { return k.follow(api, id) })
	vaults, _ := filepath.Glob(k.w.path("data/vaults/*.git"))
	if len(vaults) == 1 {
		k.tell("pushed %s", k.w.git(k.w.path("origin.git"), "rev-parse", "main^{tree}"))
		k.tell("branch %s", k.w.git(vaults[0], "rev-parse", "refs/claudomator/story/story/s^{tree}"))
	}
}

func (k *walk) follow(api *client.Client, id string) (done bool, err error) {
	view, err := api.Story(k.ctx, id)
	if err != nil {
		return false, err
	}
	switch view.Status {
	case work.ReviewReady:
		_, err = api.AcceptStory(k.ctx, id)
	case work.DeployFailed, work.Shippable:
		if view.Ship != nil && view.Status == work.DeployFailed && !strings.Contains(view.Ship.Error, "cut off") {
			k.fail("the ship has failed: %s", view.Ship.Error)
		}
		_, err = api.ShipStory(k.ctx, id, app.ShipRequest{})
	case work.Deployed:
		tasks, err := allTasks(k.ctx, api)
		return err == nil && !busy(tasks), err
	case work.Draft, work.InProgress, work.Validating, work.NeedsFix, work.Shipping, work.StoryCancelled:
		items, err := api.Attention(k.ctx)
		for _, item := range items {
			if item.Kind != work.ItemStory {
				k.fail("nobody should be asked: %s of %s: %s", item.Kind, item.Name, item.Text)
			}
		}
		return false, err
	}
	return false, err
}

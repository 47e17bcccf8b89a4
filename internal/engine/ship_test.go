package engine_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/engine"
	"github.com/claudomator/claudomator/internal/work"
)

// A whole story with a command for every role: planned tasks, a step, reviews by the
// full panel, Ship, a deployment whose log is kept, and what was deployed validated.
func TestStoryShips(t *testing.T) {
	w := newWorld(t, 4)
	w.project(app.ProjectInput{})
	w.judges(nil)
	s := w.begin(work.StoryInput{Plan: &work.Plan{
		Name: "Two files", Goal: "two files", BranchName: "story/two-files", AcceptanceCriteria: []string{"both are there"},
		Tasks: []work.PlanTask{
			{Name: "two", Instructions: "cat one >two", DependsOn: []string{"one"}},
			{Name: "one", Instructions: "echo one >one", Subtasks: []work.PlanSubtask{{Name: "more", Instructions: "echo more >>one"}}},
		},
		Validation: work.Validations{
			{Type: work.TestValidation, Steps: []string{"test -f one -a -f two"}},
			{Type: work.SmokeValidation, Steps: []string{`echo "$CLAUDOMATOR_STORY_ID $CLAUDOMATOR_COMMIT" >"$OUT/smoke"`}},
		},
	}}, false, func(p *work.Project) {
		p.Setup = `echo x >"$OUT/setup-$CLAUDOMATOR_EXECUTION_ID"`
		p.Deploy = `echo "deploying $(cat two | tr '\n' ' ')"; echo "$CLAUDOMATOR_STORY_ID $CLAUDOMATOR_BRANCH $CLAUDOMATOR_COMMIT ${CLAUDOMATOR_MCP_TOKEN-none}" >>"$OUT/deployed"`
	})
	if err := s.do(work.ShipStory{}); work.CodeOf(err) != work.Illegal {
		t.Errorf("a draft is shipped: %v", err)
	}
	s.must(work.ApproveStory{})
	s.shippable()
	s.meetsBranch(s.current().Accepted.Commit)
	s.must(work.ShipStory{})
	ship := s.is(work.Deployed)
	story, _ := s.story()
	main := w.git("-C", w.repo, "rev-parse", "main")
	if story.Shipped == nil || story.Shipped.Commit != main || ship.Commit != main || w.merges() != "1" {
		t.Errorf("shipped %+v, main is %s with %s merges", story.Shipped, main, w.merges())
	}
	if got := w.git("-C", w.repo, "show", "main:two"); got != "one\nmore" {
		t.Errorf("two is %q", got)
	}
	if want := string(s.id) + " main " + main + " none"; s.kept("deployed") != want {
		t.Errorf("the deployment saw %q, want %q", s.kept("deployed"), want)
	}
	if want := string(s.id) + " " + main; s.kept("smoke") != want {
		t.Errorf("the smoke validation saw %q, want %q", s.kept("smoke"), want)
	}
	for _, kind := range []work.ExecutionKind{work.DeployRun, work.SmokeRun} {
		runs := w.runs(s.root, kind)
		if len(runs) != 1 || runs[0].Outcome != work.Success || s.kept("setup-"+string(runs[0].ID)+".setup") != "x" {
			t.Fatalf("%s: %d runs, %+v", kind, len(runs), runs)
		}
	}
	deploy := w.runs(s.root, work.DeployRun)[0]
	if log := w.log(deploy.ID); !strings.Contains(log, "deploying one more") || deploy.LogBytes == 0 {
		t.Errorf("its log of %d bytes:\n%s", deploy.LogBytes, log)
	}
	if len(deploy.Gates) != 1 || !strings.Contains(deploy.Gates[0].Output, "deploying one more") {
		t.Errorf("its result: %+v", deploy.Gates)
	}
	s.meets(func(tree *work.Tree) bool { // the retro
		last := tree.Tasks()[tree.Size()-1]
		return last.Role() == work.Retro && last.State == work.Completed
	})
	w.thrownAway()
}

// meetsBranch waits until the story's branch in the vault is at a commit.
func (s *tale) meetsBranch(commit string) {
	s.Helper()
	s.eventually("the story's branch at "+commit, func() bool {
		story, _ := s.story()
		return s.vault("rev-parse", "-q", "--verify", "refs/claudomator/story/"+story.BranchName) == commit
	})
}

// vault is what git says of the project's vault, "" when it fails.
func (s *tale) vault(args ...string) string {
	s.Helper()
	story, _ := s.story()
	return s.tryGit(append([]string{"--git-dir", filepath.Join(s.dir, "vaults", string(story.ProjectID)+".git")}, args...)...)
}

// What failed after the deployment is mended from what was landed.
func TestSmokeFailureIsFixedFromTheLanding(t *testing.T) {
	plan := small()
	plan.Validation = work.Validations{{Type: work.SmokeValidation, Steps: []string{`echo "looking for it"; test -f fixed`}}}
	s := ready(t, plan, func(p *work.Project) {
		p.Deploy = `git rev-parse HEAD 2>/dev/null; echo "$CLAUDOMATOR_COMMIT" >>"$OUT/deployed"`
	})
	s.must(work.ShipStory{})
	s.meets(func(tree *work.Tree) bool { return tree.Current(tree.Root()).AttemptNo == 2 })
	first := s.git("-C", s.repo, "rev-parse", "main")
	fix := s.current()
	if !strings.Contains(fix.RejectionComment, "looking for it") || fix.Book.Base != first {
		t.Errorf("the fix starts from %s, not from the landed %s, and is told %q", fix.Book.Base, first, fix.RejectionComment)
	}
	s.shippable()
	s.must(work.ShipStory{})
	ship := s.is(work.Deployed)
	if got, want := s.kept("deployed"), first+"\n"+ship.Commit; got != want || s.merges() != "2" {
		t.Errorf("deployed %q, want %q; %s merges", got, want, s.merges())
	}
	if s.git("-C", s.repo, "merge-base", "--is-ancestor", first, s.current().Accepted.Commit); s.current().ID == s.root {
		t.Error("the first attempt was shipped")
	}
	s.thrownAway()
}

// A deployment that fails is gone on with at the deployment: nothing lands twice.
func TestDeployFailureIsResumed(t *testing.T) {
	s := ready(t, small(), func(p *work.Project) { p.Deploy = `echo x >>"$OUT/tries"; echo "no power" >&2; test -e "$OUT/power"` })
	s.must(work.ShipStory{})
	ship := s.is(work.DeployFailed)
	if ship.Step != work.ShipDeploy || !strings.Contains(ship.Error, "exit code 1") {
		t.Errorf("%+v", ship)
	}
	if log := s.log(ship.Execution); !strings.Contains(log, "no power") {
		t.Errorf("its log:\n%s", log)
	}
	s.keep("power")
	s.must(work.ShipStory{})
	if again := s.is(work.Deployed); again.Commit != ship.Commit || s.merges() != "1" || s.kept("tries") != "x\nx" {
		t.Errorf("%+v after %+v, %s merges, tried %q", again, ship, s.merges(), s.kept("tries"))
	}
}

// A deployment whose workspace cannot be set up was not tried.
func TestDeployWhoseSetupFails(t *testing.T) {
	s := ready(t, small(), func(p *work.Project) {
		p.Setup = `test -z "$CLAUDOMATOR_COMMIT" || exit 3`
		p.Deploy = `echo x >>"$OUT/deployed"`
	})
	s.must(work.ShipStory{})
	if ship := s.is(work.DeployFailed); !strings.Contains(ship.Error, "setup command failed with exit code 3") || s.kept("deployed") != "" {
		t.Errorf("%+v, deployed %q", ship, s.kept("deployed"))
	}
	s.thrownAway()
}

// A deployment that runs too long has failed, with its whole process tree.
func TestDeployHasATimeLimit(t *testing.T) {
	s := ready(t, small(), func(p *work.Project) {
		p.Deploy = `setsid sleep 300 >/dev/null 2>&1 & echo $! >"$OUT/pid"; wait`
	})
	for limit := 500 * time.Millisecond; s.kept("pid") == ""; limit *= 4 { // longer where it did not get to that
		s.change(func(p *work.Project) { p.Limits.Timeout = work.Duration(limit) })
		s.must(work.ShipStory{})
		if ship := s.is(work.DeployFailed); !strings.Contains(ship.Error, "ran too long") {
			t.Fatalf("%+v", ship)
		}
	}
	s.dead()
}

// dead fails when the process that a command has noted lives.
func (s *tale) dead() {
	s.Helper()
	pid, err := strconv.Atoi(s.kept("pid"))
	if err != nil {
		s.Fatal(err)
	}
	if alive(pid) {
		s.Errorf("process %d is alive", pid)
	}
}

// alive is true of a process that has not ended; one that is dead and has not been
// waited for yet is told apart where /proc does.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return syscall.Kill(pid, 0) == nil && (err != nil || !strings.Contains(string(stat), ") Z "))
}

// A person ends a deployment: all of it, also what has left its process group.
func TestStopDeploy(t *testing.T) {
	s := ready(t, small(), func(p *work.Project) {
		p.Deploy = `test -e "$OUT/go" && exit 0; (setsid sleep 300 >/dev/null 2>&1 & echo $! >"$OUT/pid"); echo x >>"$OUT/began"; sleep 300`
	})
	s.must(work.ShipStory{})
	s.eventually("the deployment", func() bool { return s.kept("began") != "" && s.kept("pid") != "" })
	s.must(work.StopDeploy{})
	ship := s.is(work.DeployFailed)
	if !strings.Contains(ship.Error, "stopped by a person") || s.kept("began") != "x" {
		t.Errorf("%+v, began %q", ship, s.kept("began"))
	}
	s.dead()
	s.thrownAway()
	s.keep("go")
	s.must(work.ShipStory{})
	s.is(work.Deployed)
}

// A deployment that ends with the server is never run again by itself.
func TestDeployCutOffIsNotRepeated(t *testing.T) {
	for name, end := range map[string]func(*world){"stopped": func(w *world) { w.stop() }, "killed": (*world).crash} {
		t.Run(name, func(t *testing.T) {
			s := ready(t, small(), func(p *work.Project) { p.Deploy = `echo x >>"$OUT/began"; test -e "$OUT/go" || sleep 300` })
			s.must(work.ShipStory{})
			s.eventually("the deployment", func() bool { return s.kept("began") != "" })
			end(s.world)
			s.start()
			ship := s.is(work.DeployFailed)
			if !strings.Contains(ship.Error, "cut off") {
				t.Errorf("%+v", ship)
			}
			s.must(work.Settle{Redeliver: true})
			s.stop()
			s.start()
			if s.is(work.DeployFailed); s.kept("began") != "x" || len(s.runs(s.root, work.DeployRun)) != 1 {
				t.Errorf("it began again: %q, %d runs", s.kept("began"), len(s.runs(s.root, work.DeployRun)))
			}
			s.keep("go")
			s.must(work.ShipStory{})
			if s.is(work.Deployed); s.merges() != "1" {
				t.Errorf("%s merges", s.merges())
			}
			s.thrownAway()
		})
	}
}

// What validates a deployment looks only: cut off, it is run again.
func TestSmokeCutOffIsRepeated(t *testing.T) {
	plan := small()
	plan.Validation = work.Validations{{Type: work.SmokeValidation, Steps: []string{`echo x >>"$OUT/smoke"; test -e "$OUT/go" || sleep 300`}}}
	s := ready(t, plan, func(p *work.Project) { p.Deploy = `echo x >>"$OUT/deployed"` })
	s.must(work.ShipStory{})
	s.eventually("the validation", func() bool { return s.kept("smoke") != "" })
	s.crash()
	s.keep("go")
	s.start()
	if s.is(work.Deployed); s.kept("deployed") != "x" || s.kept("smoke") != "x\nx" {
		t.Errorf("deployed %q, looked %q", s.kept("deployed"), s.kept("smoke"))
	}
}

// coreThatForgets never hears that a landing has moved its target.
type coreThatForgets struct {
	engine.Core
	moved chan struct{}
}

func (c *coreThatForgets) Do(ctx context.Context, tree work.TreeID, by work.Actor, command work.Command) error {
	if _, ok := command.(work.Landed); ok {
		select {
		case c.moved <- struct{}{}:
		default:
		}
		return errOnce
	}
	return c.Core.Do(ctx, tree, by, command)
}

// B30: a server that is killed between the moved target and its report lands once.
func TestB30ShipKilledAfterTheTargetMoved(t *testing.T) {
	s := ready(t, small(), func(p *work.Project) { p.Deploy = `echo x >>"$OUT/deployed"` })
	s.stop()
	moved := make(chan struct{}, 1)
	s.wrap = func(o *engine.Options) { o.Core = &coreThatForgets{o.Core, moved} }
	s.start()
	s.must(work.ShipStory{})
	<-moved
	landed := s.git("-C", s.repo, "rev-parse", "main")
	if story, ship := s.story(); story.Status != work.Shipping || ship.Commit != "" {
		t.Fatalf("it was reported: %+v", ship)
	}
	s.crash()
	s.wrap = nil
	s.start()
	if ship := s.is(work.Deployed); ship.Commit != landed || s.git("-C", s.repo, "rev-parse", "main") != landed || s.kept("deployed") != "x" {
		t.Errorf("landed %s, then %+v, deployed %q", landed, ship, s.kept("deployed"))
	}
}

// theirs commits a file to main beside the server.
func (w *world) theirs(name, text string) {
	w.Helper()
	w.write(name, text)
	w.git("-C", w.repo, "add", name)
	w.git("-C", w.repo, "-c", "user.name=u", "-c", "user.email=u@x", "commit", "-q", "-m", "theirs")
}

// What prevents the landing of a story leaves the target as it was; a conflict is
// settled by a person, or the ship undone.
func TestShipMeetsTheTarget(t *testing.T) {
	t.Run("refused", func(t *testing.T) {
		s := ready(t, small(), nil)
		s.write("a", "changed\n") // the checkout is not clean
		s.must(work.ShipStory{})
		s.meets(func(tree *work.Tree) bool { return tree.Story.Ship != nil && tree.Story.Ship.Error != "" })
		if ship := s.is(work.Shippable); !strings.Contains(ship.Error, "uncommitted") && !strings.Contains(ship.Error, "changes") {
			t.Errorf("%+v", ship)
		}
		s.write("a", "one\n")
		s.must(work.ShipStory{})
		s.is(work.Deployed)
	})
	conflicted := func(t *testing.T) (*tale, *work.Merge) {
		s := ready(t, small(), func(p *work.Project) { p.Deploy = `cat one >"$OUT/deployed"` })
		s.theirs("one", "theirs\n")
		s.must(work.ShipStory{})
		var m work.Merge
		s.meets(func(tree *work.Tree) bool {
			open := tree.OpenMerge(s.root)
			if open != nil {
				m = *open
			}
			return m.Status == work.MergeConflicted
		})
		if story, _ := s.story(); story.Status != work.Shipping || strings.Join(m.Conflicts, " ") != "one" || s.merges() != "0" {
			t.Fatalf("%s with conflicts in %q, %s merges", story.Status, m.Conflicts, s.merges())
		}
		return s, &m
	}
	t.Run("conflict, resolved", func(t *testing.T) {
		s, m := conflicted(t)
		if err := os.WriteFile(filepath.Join(s.dir, "workspaces", "m-"+string(m.ID), "one"), []byte("both\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		s.must(work.ContinueMerge{Merge: m.ID})
		if s.is(work.Deployed); s.kept("deployed") != "both" || s.git("-C", s.repo, "show", "main:one") != "both" {
			t.Errorf("deployed %q", s.kept("deployed"))
		}
	})
	t.Run("conflict, aborted", func(t *testing.T) {
		s, m := conflicted(t)
		s.must(work.AbortMerge{Merge: m.ID})
		s.is(work.Shippable)
		if s.merges() != "0" || s.kept("deployed") != "" {
			t.Errorf("%s merges, deployed %q", s.merges(), s.kept("deployed"))
		}
		s.eventually("its workspace is gone", func() bool {
			_, err := os.Stat(filepath.Join(s.dir, "workspaces", "m-"+string(m.ID)))
			return os.IsNotExist(err)
		})
	})
}

// A deployment waits for a slot as everything does, and gets one.
func TestDeployWaitsForASlot(t *testing.T) {
	w := newWorld(t, 1)
	s := w.ready(small(), func(p *work.Project) { p.Deploy = `echo x >>"$OUT/deployed"` })
	busy := w.task(app.TaskRequest{Review: "none", Agent: app.AgentInput{Instructions: `until test -e "$OUT/go"; do sleep 0.05; done; echo x>x`}})
	w.state(busy.ID, work.Running)
	s.must(work.ShipStory{})
	s.meets(func(tree *work.Tree) bool { return tree.Story.Ship.Step == work.ShipDeploy })
	s.eventually("a refused start", func() bool {
		list, err := w.store.Waiting(w.ctx, 10)
		if err != nil {
			t.Fatal(err)
		}
		return len(list) == 1 && s.kept("deployed") == ""
	})
	s.keep("go")
	w.state(busy.ID, work.Completed)
	s.is(work.Deployed)
}

// The story's branch follows what is accepted at its root; an older commit that is
// delivered late moves nothing.
func TestStoryBranchFollows(t *testing.T) {
	s := ready(t, small(), nil)
	first := s.current().Accepted.Commit
	late := work.Effect{Kind: work.Branch, Tree: work.TreeID(s.root), Task: s.root, Commit: first}
	s.meetsBranch(first)
	s.must(work.RejectTask{Task: s.root, Comment: "more"})
	s.shippable()
	second := s.current().Accepted.Commit
	s.meetsBranch(second)
	tx, err := s.store.DB().BeginTx(s.ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.queue.Enqueue(s.ctx, tx, []work.Effect{late}); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	s.eventually("the late delivery", func() bool {
		var left int
		const query = `SELECT COUNT(*) FROM river_job WHERE json_extract(args, '$.kind') = 'branch' AND state NOT IN ('completed')`
		if err := s.store.DB().QueryRowContext(s.ctx, query).Scan(&left); err != nil {
			t.Fatal(err)
		}
		return left == 0
	})
	if s.meetsBranch(second); first == second {
		t.Error("nothing was put to the test")
	}
}

// Under checked the validation runs at Ship, before the target moves.
func TestCheckedStoryIsValidatedAtShip(t *testing.T) {
	plan := small()
	plan.Policy = "checked"
	plan.Goal = `until test -e "$OUT/never"; do sleep 0.05; done` // what the fix runs, and would ship with
	plan.Validation = work.Validations{{Type: work.BuildValidation, Steps: []string{`echo "no cement"; test -e "$OUT/cement"`}}}
	w := newWorld(t, 4)
	w.project(app.ProjectInput{})
	w.judges(nil)
	s := w.begin(work.StoryInput{Plan: plan}, false, func(p *work.Project) { p.Deploy = `cat one >"$OUT/deployed"` })
	s.must(work.ApproveStory{})
	s.is(work.Shippable)
	s.must(work.ShipStory{})
	s.meets(func(tree *work.Tree) bool { return tree.Story.ValidationResult != nil })
	story, ship := s.story()
	if v := story.ValidationResult; v.Passed || !strings.Contains(v.Steps[0].Output, "no cement") || story.Status != work.InProgress || s.merges() != "0" {
		t.Errorf("%s, %+v, %+v", story.Status, v, ship)
	}
}

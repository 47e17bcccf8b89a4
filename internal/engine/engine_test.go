package engine_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

func TestCheckedTaskLands(t *testing.T) {
	w := newWorld(t, 4)
	w.project(app.ProjectInput{})
	w.checker("test -f x")
	task := w.task(app.TaskRequest{Name: "Add x", Agent: app.AgentInput{Instructions: "echo x>x"}})
	done := w.state(task.ID, work.Completed)
	if done.Accepted == nil || done.Accepted.By.Kind != work.SystemActor {
		t.Errorf("accepted by %+v, want the system", done.Accepted)
	}
	if got := w.git("-C", w.repo, "rev-list", "--count", "--all"); got != "1" {
		t.Errorf("the user's repository has %s commits before the landing, want 1", got)
	}
	m, err := w.service.StartMerge(w.ctx, string(task.ID), "")
	if err != nil {
		t.Fatal(err)
	}
	if m = w.landed(m); m.Status != work.MergeLanded {
		t.Fatalf("merge is %s: %s %s", m.Status, m.Reason, m.Message)
	}
	if got := w.git("-C", w.repo, "show", "main:x"); got != "x" {
		t.Errorf("x on main is %q", got)
	}
	if got := w.git("-C", w.repo, "status", "--porcelain"); got != "" {
		t.Errorf("the checkout is not clean: %s", got)
	}
	log := w.git("-C", w.repo, "log", "-1", "--format=%B", "main")
	for _, want := range []string{"Add x", "Claudomator-Task: " + string(task.ID), "Claudomator-Execution: "} {
		if !strings.Contains(log, want) {
			t.Errorf("the landing's message lacks %q:\n%s", want, log)
		}
	}
}

func TestFlaggedTaskIsFixed(t *testing.T) {
	w := newWorld(t, 4)
	w.project(app.ProjectInput{})
	w.checker(`test -f y || { echo "y is missing"; exit 1; }`)
	task := w.task(app.TaskRequest{Agent: app.AgentInput{Instructions: "echo x>>x; test $(wc -l <x) -lt 2 || echo y>y"}})
	flagged := w.state(task.ID, work.Ready)
	if flagged.Hold != work.HoldFlagged || !strings.Contains(flagged.CheckerReport, "y is missing") {
		t.Fatalf("hold %q, report %q", flagged.Hold, flagged.CheckerReport)
	}
	rejected, err := w.service.RejectTask(w.ctx, string(task.ID), app.RejectInput{Comment: "add y"})
	if err != nil {
		t.Fatal(err)
	}
	fix := w.state(rejected.SupersededBy, work.Completed)
	if fix.AttemptNo != 2 || fix.AttemptOf != work.Position(task.ID) {
		t.Errorf("fix is attempt %d of %s", fix.AttemptNo, fix.AttemptOf)
	}
}

func TestNoChangesIsNeverCompleted(t *testing.T) {
	w := newWorld(t, 4)
	w.project(app.ProjectInput{})
	w.checker("true")
	task := w.task(app.TaskRequest{Agent: app.AgentInput{Instructions: "true"}})
	if got := w.state(task.ID, work.Ready); got.Hold != work.HoldNoChanges || !got.Result.NoChanges {
		t.Errorf("hold %q, result %+v", got.Hold, got.Result)
	}
}

func TestGatesDecide(t *testing.T) {
	w := newWorld(t, 4)
	w.project(app.ProjectInput{Validate: &[]string{"test -f x", "echo no >&2; false"}})
	w.checker("true")
	task := w.task(app.TaskRequest{Agent: app.AgentInput{Instructions: "echo x>x"}})
	got := w.state(task.ID, work.Ready)
	if got.Hold != work.HoldFlagged || !strings.Contains(got.CheckerReport, "no") {
		t.Errorf("hold %q, report %q", got.Hold, got.CheckerReport)
	}
}

func TestSlotsAreShared(t *testing.T) {
	w := newWorld(t, 2)
	w.project(app.ProjectInput{})
	w.checker("true")
	var ids []work.TaskID
	for range 12 {
		ids = append(ids, w.task(app.TaskRequest{Agent: app.AgentInput{Instructions: "echo $CLAUDOMATOR_TASK_ID>$CLAUDOMATOR_TASK_ID"}}).ID)
	}
	for _, id := range ids {
		w.state(id, work.Completed)
	}
}

func TestStoppedServerGoesOn(t *testing.T) {
	w := newWorld(t, 4)
	w.project(app.ProjectInput{})
	w.checker("true")
	task := w.task(app.TaskRequest{Agent: app.AgentInput{Instructions: "echo run >>\"$HOME/../nowhere\" 2>/dev/null; test -f go || sleep 600; echo x>x"}})
	w.state(task.ID, work.Running)
	w.stop()
	w.start()
	again := w.until(task.ID, func(v *app.TaskView) bool { return v.State == work.Running })
	if again.State != work.Running {
		t.Fatalf("state %s", again.State)
	}
	if _, err := w.service.CancelTask(w.ctx, string(task.ID)); err != nil {
		t.Fatal(err)
	}
	w.state(task.ID, work.Cancelled)
}

// A server that was killed while a judge worked has not removed the workspace
// the judge had; the next one does.
func TestLostJudgeLeavesNoWorkspace(t *testing.T) {
	w := newWorld(t, 4)
	w.project(app.ProjectInput{})
	bin, open, judging := filepath.Join(w.dir, "bin"), filepath.Join(w.dir, "open"), filepath.Join(w.dir, "judging")
	w.checker(": >" + judging + "; test -e " + open + " || sleep 600")
	task := w.task(app.TaskRequest{Agent: app.AgentInput{Instructions: "echo x>x"}})
	workspaces := func() []string {
		list, _ := filepath.Glob(filepath.Join(w.dir, "workspaces", "x-*")) // the pattern is well formed
		return list
	}
	w.eventually("a judge at work", func() bool { return w.there(judging) })
	if err := os.WriteFile(bin, nil, 0o600); err != nil { // nothing can be removed: there is no bin
		t.Fatal(err)
	}
	w.crash()
	if len(workspaces()) != 1 {
		t.Fatalf("left by the crash: %q", workspaces())
	}
	if err := os.Remove(bin); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(open, nil, 0o600); err != nil { // for the next judge; the first was not to end
		t.Fatal(err)
	}
	w.start()
	w.state(task.ID, work.Completed)
	if left := workspaces(); len(left) != 0 {
		t.Errorf("left: %q", left)
	}
}

// TestLandingDeliveredTwiceLandsOnce: at a start of the server a landing may be
// delivered again while an older delivery is still at work on it.
func TestLandingDeliveredTwiceLandsOnce(t *testing.T) {
	w := newWorld(t, 4)
	w.project(app.ProjectInput{})
	w.checker("true")
	for range 5 {
		task := w.task(app.TaskRequest{Agent: app.AgentInput{Instructions: "echo $CLAUDOMATOR_TASK_ID>$CLAUDOMATOR_TASK_ID"}})
		w.state(task.ID, work.Completed)
		m, err := w.service.StartMerge(w.ctx, string(task.ID), "")
		if err != nil {
			t.Fatal(err)
		}
		for range 5 {
			if err := w.service.Do(w.ctx, task.TreeID, work.System(), work.Settle{Redeliver: true}); err != nil {
				t.Fatal(err)
			}
		}
		if m = w.landed(m); m.Status != work.MergeLanded {
			t.Errorf("the landing is %s: %s", m.Status, m.Message)
		}
	}
	if got := w.git("-C", w.repo, "rev-list", "--merges", "--count", "main"); got != "5" {
		t.Errorf("main has %s merges, want 5", got)
	}
}

// An agent that prints its environment does not leave its token behind.
func TestRunTokenIsMasked(t *testing.T) {
	w := newWorld(t, 4)
	w.project(app.ProjectInput{})
	task := w.task(app.TaskRequest{Review: "none", Agent: app.AgentInput{Instructions: `env; echo "token $CLAUDOMATOR_MCP_TOKEN end" | tee x`}})
	w.state(task.ID, work.Completed)
	runs, err := w.service.Executions(w.ctx, string(task.ID))
	if err != nil {
		t.Fatal(err)
	}
	log, err := w.service.Transcript(w.ctx, string(runs[0].ID), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	text, err := io.ReadAll(log)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "[masked]"); n != 2 {
		t.Errorf("%d places are masked, want 2:\n%s", n, text)
	}
}

package engine_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/claudomator/claudomator/internal/agent"
	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/engine"
	"github.com/claudomator/claudomator/internal/work"
)

// What fails once, between two steps of the engine, leaves nothing that waits for
// nobody until the next start.

var errOnce = errors.New("fails once")

// coreThatFails refuses the first plan of an execution that has begun.
type coreThatFails struct {
	engine.Core
	failed atomic.Bool
}

func (c *coreThatFails) PlanRun(ctx context.Context, tree work.TreeID, id work.ExecutionID) (*app.RunPlan, error) {
	plan, err := c.Core.PlanRun(ctx, tree, id)
	if err == nil && plan.Execution.State == work.ExecutionRunning && c.failed.CompareAndSwap(false, true) {
		return nil, errOnce
	}
	return plan, err
}

func TestBegunExecutionThatCannotBePlannedEnds(t *testing.T) {
	w := newWorld(t, 4)
	w.project(app.ProjectInput{})
	w.stop()
	w.wrap = func(o *engine.Options) { o.Core = &coreThatFails{Core: o.Core} }
	w.start()
	task := w.task(app.TaskRequest{Review: "none", Agent: app.AgentInput{Instructions: "echo x>x"}})
	if got := w.state(task.ID, work.Failed); !strings.Contains(got.Reason, errOnce.Error()) {
		t.Errorf("reason %q", got.Reason)
	}
	if _, err := w.service.RetryTask(w.ctx, string(task.ID), false); err != nil {
		t.Fatal(err)
	}
	w.state(task.ID, work.Completed)
}

func TestRunWhoseWorkspaceIsGoneHasFailed(t *testing.T) {
	w := newWorld(t, 4)
	w.project(app.ProjectInput{})
	task := w.task(app.TaskRequest{Review: "human", Agent: app.AgentInput{Instructions: "test -f x && rm -rf \"$PWD\" || echo x>x"}})
	w.state(task.ID, work.Ready)
	if _, err := w.service.RetryTask(w.ctx, string(task.ID), false); err != nil {
		t.Fatal(err)
	}
	if got := w.state(task.ID, work.Failed); !strings.Contains(got.Reason, "workspace is gone") {
		t.Errorf("reason %q", got.Reason)
	}
}

// scheduleThatFails cannot say once what waits.
type scheduleThatFails struct {
	app.Schedule
	asked atomic.Int64
}

func (s *scheduleThatFails) Waiting(ctx context.Context, limit int) ([]work.Waiting, error) {
	if s.asked.Add(1) == 1 {
		return nil, errOnce
	}
	return s.Schedule.Waiting(ctx, limit)
}

func TestWaitingWorkStartsAfterAFailedLook(t *testing.T) {
	p := &puppet{acts: []func(context.Context, agent.Job) agent.Result{func(ctx context.Context, job agent.Job) agent.Result {
		time.Sleep(time.Minute) // virtual: the other task meets no free slot meanwhile
		return writes("x")(ctx, job)
	}}}
	inHours(t, p, func(w *world, task func(app.TaskRequest) *app.TaskView) {
		w.stop()
		schedule := &scheduleThatFails{}
		w.slots = 1
		w.wrap = func(o *engine.Options) {
			schedule.Schedule = o.Schedule
			o.Schedule = schedule
		}
		w.start()
		var ids []work.TaskID
		for range 2 {
			ids = append(ids, task(app.TaskRequest{}).ID)
		}
		for _, id := range ids {
			w.state(id, work.Completed)
		}
		if schedule.asked.Load() < 2 {
			t.Errorf("what waits was asked %d times: nothing was put to the test", schedule.asked.Load())
		}
	})
}

// What fails again and again is told to a person, tried on, and done once its cause has
// gone.
func TestWhatKeepsFailingIsTold(t *testing.T) {
	w := newWorld(t, 4)
	w.project(app.ProjectInput{})
	failures := func() (n int) {
		const query = `SELECT COALESCE(MAX(json_array_length(errors)), 0) FROM river_job WHERE json_extract(args, '$.kind') = 'integrate'`
		if err := w.store.DB().QueryRowContext(w.ctx, query).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	stuck := func() (texts []string) {
		items, err := w.service.Attention(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range items {
			if i.Kind == work.ItemStuck {
				texts = append(texts, string(i.TaskID)+": "+i.Text)
			}
		}
		if n := failures(); texts != nil && n < 2 {
			t.Errorf("told after %d failures: %q", n, texts)
		}
		return texts
	}
	parent, err := w.service.CreateTask(w.ctx, app.TaskRequest{Project: "p", Name: "parent", Review: "none", Agent: app.AgentInput{Instructions: "echo x>p"}})
	if err != nil {
		t.Fatal(err)
	}
	lock := filepath.Join("refs", "heads", "claudomator", string(parent.ID)+".lock") // of the parent's branch
	child, err := w.service.CreateTask(w.ctx, app.TaskRequest{
		Project: "p", Name: "child", Review: "none", ParentTaskID: string(parent.ID),
		Agent: app.AgentInput{Instructions: `echo x>c; mkdir -p "$(echo ` + w.dir + `/vaults/*.git)/` + lock + `/x"`},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.service.StartTask(w.ctx, string(parent.ID)); err != nil {
		t.Fatal(err)
	}
	w.until(child.ID, func(*app.TaskView) bool { return stuck() != nil })
	if told := stuck(); len(told) != 1 || !strings.HasPrefix(told[0], string(child.ID)+": ") || !strings.Contains(told[0], "is held by another process") {
		t.Errorf("told %q", told)
	}
	if err := os.RemoveAll(filepath.Join(w.vaultDir(), lock)); err != nil {
		t.Fatal(err)
	}
	w.state(child.ID, work.Completed)
	w.state(parent.ID, work.Completed)
	if told := stuck(); told != nil {
		t.Errorf("told after it was done: %q", told)
	}
}

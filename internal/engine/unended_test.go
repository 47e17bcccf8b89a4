package engine_test

import (
	"context"
	"fmt"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/claudomator/claudomator/internal/agent"
	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/engine"
	"github.com/claudomator/claudomator/internal/sandbox"
	"github.com/claudomator/claudomator/internal/work"
)

// undying is an agent whose runs leave a process that could not be ended.
type undying struct {
	left chan *exec.Cmd
}

func (*undying) Installed() error { return nil }

func (*undying) Describe(context.Context) (agent.Description, error) {
	return agent.Description{Name: "undying"}, nil
}

func (u *undying) Run(_ context.Context, job agent.Job, _ agent.Sink) (agent.Result, error) {
	c := exec.Command("sleep", "3600")
	c.Dir, c.Env = job.Dir, []string{sandbox.Marker + "=" + job.ID}
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := c.Start(); err != nil {
		return agent.Result{Outcome: agent.Failed}, err
	}
	u.left <- c
	return agent.Result{Outcome: agent.Failed}, fmt.Errorf("run agent: %w", sandbox.ErrNotEnded)
}

// An execution ends when its processes are gone, not before: what could not be
// ended at once is ended later, and only then is the task free for another run.
func TestRunEndsWithItsProcesses(t *testing.T) {
	t.Parallel()
	u := &undying{left: make(chan *exec.Cmd, 1)}
	w := makeWorld(t, 2, engine.Catalog{"undying": u})
	defer func() { w.stop() }()
	name := "undying"
	w.project(app.ProjectInput{Agent: &name})
	task := w.task(app.TaskRequest{Name: "t"})
	c := <-u.left
	died := make(chan struct{})
	go func() { _ = c.Wait(); close(died) }()
	if v, err := w.service.Task(w.ctx, string(task.ID)); err != nil || v.State != work.Running {
		t.Errorf("while a process lives the task is %s, %v", v.State, err)
	}
	w.state(task.ID, work.Failed)
	select {
	case <-died:
	case <-time.After(10 * time.Second):
		t.Error("the task has ended, and its process lives")
	}
}

package engine_test

import (
	"context"
	"fmt"
	"os/exec"
	"syscall"
	"testing"

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
	w.patience = patient
	defer func() { w.stop() }()
	name := "undying"
	w.project(app.ProjectInput{Agent: &name})
	task := w.task(app.TaskRequest{Name: "t"})
	c := <-u.left
	died := make(chan struct{})
	go func() { _ = c.Wait(); close(died) }()
	defer func() { _ = c.Process.Kill(); <-died }() // it is dead already
	w.eventually("the end of the task", func() bool {
		v, err := w.service.Task(w.ctx, string(task.ID))
		if err != nil {
			t.Fatal(err)
		}
		over := v.State != work.Running
		if over && alive(c.Process.Pid) {
			t.Errorf("the task is %s, and its process lives", v.State)
		}
		return over
	})
	w.state(task.ID, work.Failed)
}

package engine_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/engine"
	"github.com/claudomator/claudomator/internal/work"
)

// overtaking lets the second report of an integration come before the first, if the
// engine lets it.
type overtaking struct {
	engine.Core
	reports atomic.Int32
	second  chan struct{}
}

func (o *overtaking) Do(ctx context.Context, tree work.TreeID, by work.Actor, c work.Command) error {
	if _, ok := c.(work.Integrated); !ok {
		return o.Core.Do(ctx, tree, by, c)
	}
	if o.reports.Add(1) == 2 {
		defer close(o.second)
		return o.Core.Do(ctx, tree, by, c)
	}
	select {
	case <-o.second:
	case <-time.After(2 * time.Second): // it has to wait
	}
	return o.Core.Do(ctx, tree, by, c)
}

// Two children that are integrated at the same time are both in what is accepted of
// their parent, and landed: once the older head of its branch was reported last.
func TestSiblingsIntegratedAtOnce(t *testing.T) {
	w := newWorld(t, 3)
	w.stop()
	w.wrap = func(o *engine.Options) { o.Core = &overtaking{Core: o.Core, second: make(chan struct{})} }
	w.start()
	w.project(app.ProjectInput{})
	parent, err := w.service.CreateTask(w.ctx, app.TaskRequest{Project: "p", Name: "parent", Review: "none", Agent: app.AgentInput{Instructions: "true"}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		in := app.TaskRequest{Name: fmt.Sprint("child", i), Project: "p", Review: "none", ParentTaskID: string(parent.ID), Agent: app.AgentInput{Instructions: fmt.Sprintf("echo x >child%d", i)}}
		if _, err := w.service.CreateTask(w.ctx, in); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.service.StartTask(w.ctx, string(parent.ID)); err != nil {
		t.Fatal(err)
	}
	w.state(parent.ID, work.Completed)
	m, err := w.service.StartMerge(w.ctx, string(parent.ID), "")
	if err != nil {
		t.Fatal(err)
	}
	w.landed(m)
	if files := w.git("-C", w.repo, "ls-tree", "--name-only", "main"); files != "a\nchild0\nchild1" {
		t.Errorf("landed was %q", files)
	}
}

package engine_test

import (
	"context"
	"testing"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/engine"
	"github.com/claudomator/claudomator/internal/work"
)

// A question that was taken is never lost: not when the server is killed, and not
// when it is stopped, before the run that asked has ended.
func TestQuestionOutlivesTheServer(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*world){"killed": (*world).crash, "stopped": func(w *world) { w.stop() }} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := make(chan struct{})
			a := &actor{runs: map[work.TaskID]int{}}
			w := makeWorld(t, 2, engine.Catalog{"actor": a})
			a.w, w.patience = w, patient
			a.parts = map[string]func(context.Context, *scene) error{"Q": func(ctx context.Context, s *scene) error {
				if s.run > 1 {
					return s.write("x", "x\n")
				}
				if err := s.service.Ask(ctx, s.caller, work.Question{Text: "which?"}); err != nil {
					return err
				}
				close(asked)
				<-ctx.Done()
				return ctx.Err()
			}}
			agent := "actor"
			w.project(app.ProjectInput{Agent: &agent})
			task := w.task(app.TaskRequest{Name: "Q", Review: "none"})
			<-asked
			end(w)
			w.start()
			v := w.until(task.ID, func(v *app.TaskView) bool { return v.State != work.Running })
			if v.State != work.Blocked || v.Question == nil || v.Question.Text != "which?" {
				t.Fatalf("after the restart it is %s (%s), question %v", v.State, v.BlockedOn, v.Question)
			}
			if _, err := w.service.AnswerTask(w.ctx, string(task.ID), "this"); err != nil {
				t.Fatal(err)
			}
			done := w.state(task.ID, work.Completed)
			if len(done.Interactions) != 1 || done.Interactions[0].Answer != "this" {
				t.Errorf("interactions %+v", done.Interactions)
			}
		})
	}
}

// What cannot be run at all ends, and says so: it waits for nobody else.
func TestTaskWithoutAnAgentEnds(t *testing.T) {
	w := newWorld(t, 2)
	w.project(app.ProjectInput{})
	task, err := w.service.CreateTask(w.ctx, app.TaskRequest{Project: "p", Name: "a task"})
	if err != nil {
		t.Fatal(err)
	}
	none := ""
	if _, err := w.service.SetProject(w.ctx, "p", app.ProjectInput{Agent: &none}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.service.StartTask(w.ctx, string(task.ID)); err != nil {
		t.Fatal(err)
	}
	if v := w.state(task.ID, work.Failed); v.Reason == "" {
		t.Error("it failed without a reason")
	}
}

package app_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

// TestProjectPatch: a change of a limit, or of where the forge is, leaves the others
// as they are; an empty value takes one away.
func TestProjectPatch(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "a.db"))
	s.project(t)
	hour, none := work.Duration(time.Hour), work.Duration(0)
	for _, step := range []struct {
		in     app.ProjectInput
		limits work.Limits
		forge  work.Forge
	}{
		{
			app.ProjectInput{Limits: &app.LimitsInput{Slots: new(2), Timeout: &hour}, Forge: &app.ForgeInput{API: new("https://forge/api/v1"), TokenEnv: new("TOKEN")}},
			work.Limits{Slots: 2, Timeout: hour}, work.Forge{API: "https://forge/api/v1", TokenEnv: "TOKEN"},
		},
		{
			app.ProjectInput{Limits: &app.LimitsInput{Silence: &hour}, Forge: &app.ForgeInput{Kind: new("gitea")}},
			work.Limits{Slots: 2, Timeout: hour, Silence: hour}, work.Forge{Kind: "gitea", API: "https://forge/api/v1", TokenEnv: "TOKEN"},
		},
		{
			app.ProjectInput{Limits: &app.LimitsInput{Timeout: &none}, Forge: &app.ForgeInput{TokenEnv: new("")}},
			work.Limits{Slots: 2, Silence: hour}, work.Forge{Kind: "gitea", API: "https://forge/api/v1"},
		},
	} {
		p, err := s.SetProject(s.ctx, "p", step.in)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.limits, p.Limits) + cmp.Diff(step.forge, p.Forge); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}

// TestTaskPatch_Retry: a change of one of the two leaves the other as it is.
func TestTaskPatch_Retry(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "a.db"))
	s.project(t)
	task := s.create(t, app.TaskRequest{Retry: app.RetryInput{MaxAttempts: 3, Backoff: "linear"}})
	for _, step := range []struct {
		in   app.RetryInput
		want work.Retry
	}{
		{app.RetryInput{MaxAttempts: 5}, work.Retry{MaxAttempts: 5, Backoff: work.Linear}},
		{app.RetryInput{Backoff: "exponential"}, work.Retry{MaxAttempts: 5, Backoff: work.Exponential}},
	} {
		view, err := s.PatchTask(s.ctx, string(task.ID), app.TaskPatch{Retry: &step.in})
		if err != nil || view.Retry != step.want {
			t.Errorf("%+v makes %+v, %v, want %+v", step.in, view, err, step.want)
		}
	}
}

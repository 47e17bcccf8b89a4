package app_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

// A task's own timeout goes before the server's, and never beyond its wall.
func TestTimeoutOfARun(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "a.db"))
	s.project(t)
	for given, want := range map[time.Duration]time.Duration{0: 30 * time.Minute, time.Minute: time.Minute, 3 * time.Hour: time.Hour} {
		task := s.create(t, app.TaskRequest{Timeout: work.Duration(given), Start: true})
		runs, err := s.Executions(s.ctx, string(task.ID))
		if err != nil || len(runs) != 1 {
			t.Fatalf("%d executions, %v", len(runs), err)
		}
		plan, err := s.PlanRun(s.ctx, task.TreeID, runs[0].ID)
		if err != nil || plan.Timeout != want {
			t.Errorf("with %s: %+v, %v, want %s", given, plan, err, want)
		}
	}
}

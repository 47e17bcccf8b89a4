package engine_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

// An agent that makes its workspace unsafe to look at fails by name; a fresh retry
// puts what is there into the bin, unread, and starts again.
func TestUnsafeWorkspaceIsLeftByAFreshRetry(t *testing.T) {
	for name, hostile := range map[string]string{
		"git folder is a pointer": `mv .git ../stolen-$CLAUDOMATOR_TASK_ID; echo "gitdir: /nowhere" >.git`,
		"HEAD is a link":          `rm .git/HEAD; ln -s /etc/passwd .git/HEAD`,
		"alternates point away":   `echo /tmp >.git/objects/info/alternates`,
		"workspace is a link":     `cd ..; mv "$CLAUDOMATOR_TASK_ID" gone-$CLAUDOMATOR_TASK_ID; ln -s /etc "$CLAUDOMATOR_TASK_ID"`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 2)
			w.project(app.ProjectInput{})
			script := `if test -e "$HOSTILE"; then echo x>x; else touch "$HOSTILE"; ` + hostile + `; fi`
			mark := filepath.Join(t.TempDir(), "mark")
			environment := map[string]string{"HOSTILE": mark}
			if _, err := w.service.SetProject(w.ctx, "p", app.ProjectInput{Environment: &environment}); err != nil {
				t.Fatal(err)
			}
			task := w.task(app.TaskRequest{Review: "none", Agent: app.AgentInput{Instructions: script}})
			if v := w.state(task.ID, work.Failed); v.Reason == "" {
				t.Error("it failed without a reason")
			}
			if _, err := w.service.RetryTask(w.ctx, string(task.ID), true); err != nil {
				t.Fatal(err)
			}
			w.state(task.ID, work.Completed)
			bin, err := os.ReadDir(filepath.Join(w.dir, "bin"))
			if err != nil || len(bin) == 0 {
				t.Errorf("the bin holds %d entries, %v", len(bin), err)
			}
			if _, err := os.Stat("/etc/passwd"); err != nil {
				t.Error(err)
			}
		})
	}
}

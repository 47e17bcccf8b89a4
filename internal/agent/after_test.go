package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// After sees what the program left, when nothing can write there any more, and
// what it says still counts.
func TestAfterLooksAtWhatIsLeft(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text string
		stopped    bool
		want       Outcome
	}{
		{"by itself", `echo limited >left; echo '{"End":"failure"}'; exit 1`, false, Limited},
		{"stopped", `trap "echo limited >left; exit 1" TERM; echo >ready; while :; do sleep 0.01; done`, true, Limited},
		{"nothing left", `exit 1`, false, Failed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inTime(t, func(wall time.Duration) (reached bool) {
				limits := Limits{StopGrace: time.Minute}
				if tt.stopped {
					limits.Wall = wall
				}
				job := testJob(t, limits)
				result, err := machineRunner(t).Run(t.Context(), job, SinkFunc(func(Event) {}), func(s *Session) (Program, error) {
					return Program{Argv: []string{"sh", "-c", tt.text}, Line: readProtocol(s), After: func() {
						if left, _ := os.ReadFile(filepath.Join(job.Dir, "left")); strings.TrimSpace(string(left)) == "limited" {
							s.Emit(Event{Kind: KindLimit, Limit: &Limit{Kind: LimitUsage}})
						}
					}}, nil
				})
				if _, absent := os.Stat(filepath.Join(job.Dir, "ready")); tt.stopped && absent != nil {
					return false
				}
				if err != nil || result.Outcome != tt.want {
					t.Errorf("%+v, %v", result, err)
				}
				return true
			})
		})
	}
}

func TestValueIsWhatTheProgramSees(t *testing.T) {
	t.Parallel()
	r := machineRunner(t, "HOME=/h", "CODEX_HOME=/c", "GIT_PAGER=less")
	job := Job{Env: []string{"HOME=/of-the-job", "CLAUDOMATOR_TASK_ID=forged"}, TaskID: "t"}
	for name, want := range map[string]string{"HOME": "/of-the-job", "CODEX_HOME": "", "GIT_PAGER": "cat", "CLAUDOMATOR_TASK_ID": "t"} {
		if got := r.Value(job, name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	if got := r.Inheriting("CODEX_HOME").Value(job, "CODEX_HOME"); got != "/c" {
		t.Errorf("inherited CODEX_HOME = %q", got)
	}
}

package cli

import (
	"strings"
	"testing"

	"github.com/claudomator/claudomator/internal/work"
)

// Who checks is what the project says of the role, on top of what holds for all;
// what another project says is nothing to it.
func TestRunAsksForTheProjectsOwnChecker(t *testing.T) {
	t.Parallel()
	top, _ := repository(t, "shop")
	all := work.RoleConfig{Name: work.Checker, Active: true, Agent: "claude"}
	missing := work.RoleConfig{Name: work.Checker, Active: true, Agent: "codex"}
	for name, test := range map[string]struct {
		of   work.ProjectID
		code int
	}{
		"its own": {"p1", 2}, "another's": {"p9", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := built(nil)
			api.projects[0].Repository = top
			missing := missing
			missing.ProjectID = test.of
			api.roles = []work.RoleConfig{all, missing}
			r := run(t.Context(), api, nil, "run", "x", "--repo", top, "--check", "--agent", "claude")
			if r.code != test.code || test.code != 0 && !strings.Contains(r.err, "choose the checker: agent codex cannot be used") {
				t.Errorf("%+v", r)
			}
		})
	}
}

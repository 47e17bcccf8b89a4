package cli

import (
	"cmp"
	"strings"
	"testing"

	"github.com/claudomator/claudomator/internal/app"
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

// TestRunLeavesTheAgentToTheServer: where neither flag nor project names an agent and the
// server's configuration does, the task names none, whatever else is installed.
func TestRunLeavesTheAgentToTheServer(t *testing.T) {
	t.Parallel()
	top, _ := repository(t, "shop")
	for name, c := range map[string]struct {
		standard string // the server's agent
		ours     string // the project's
		args     []string
		agent    string // of the task; or
		wrong    string // why there is none
	}{
		"the server's":             {"command", "", nil, "", ""},
		"named here":               {"command", "", []string{"--agent", "claude"}, "claude", ""},
		"the project's":            {"codex", "command", nil, "", ""},
		"not usable":               {"codex", "", nil, "", "agent codex cannot be used: codex is not on the PATH"},
		"who checks":               {"claude", "", []string{"--check"}, "", ""},
		"a command checks nothing": {"command", "", []string{"--check"}, "", "there is no checker"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := built(func(v *app.TaskView) { v.Agent.Type = "" })
			api.roles = nil
			for i := range api.agents {
				api.agents[i].Default = api.agents[i].Type == c.standard
			}
			api.projects[0].Repository, api.projects[0].Agent = top, c.ours
			r := run(t.Context(), api, nil, append([]string{"run", "x", "--repo", top}, c.args...)...)
			if c.wrong != "" {
				if r.code != 2 || !strings.Contains(r.err, c.wrong) || len(api.requests) > 0 {
					t.Errorf("%+v", r)
				}
				return
			}
			works := "agent " + cmp.Or(c.ours, c.standard) + "\n" // the fake's task says nothing of its own
			if r.code != 0 || len(api.requests) != 1 || api.requests[0].Agent.Type != c.agent || !strings.Contains(r.out, works) {
				t.Errorf("%+v, %+v", r, api.requests)
			}
		})
	}
}

// TestRunNamesAProgram: a protocol is no agent. Its program is named by the command or
// by the server's configuration; else nothing is made.
func TestRunNamesAProgram(t *testing.T) {
	t.Parallel()
	top, _ := repository(t, "shop")
	argv := `["gemini","--acp"]`
	for name, c := range map[string]struct {
		agents string // "all", or the path of the one program that speaks the protocol
		ours   string // the agent of the project
		args   []string
		agent  string // of the task; or
		wrong  string // why there is none
	}{
		"named here":            {"", "", []string{"--agent", "acp", "--command", argv}, "acp", ""},
		"a program alone":       {"all", "", []string{"--command", argv}, "command", ""},
		"of the configuration":  {"/bin/gemini", "", nil, "acp", ""},
		"named there":           {"/bin/gemini", "", []string{"--agent", "acp"}, "acp", ""},
		"none":                  {"", "", nil, "", "no agent program is installed here"},
		"the protocol alone":    {"", "", []string{"--agent", "acp"}, "", "none is named\nhint: name it: --command '" + argv + "'"},
		"the project's, alone":  {"", "acp", nil, "", "agent acp needs a program"},
		"for the project's":     {"", "acp", []string{"--command", argv, "--agent", "acp"}, "acp", ""},
		"another than the rest": {"all", "", []string{"--agent", "claude"}, "claude", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := built(nil)
			if c.agents != "all" {
				api.agents = append(api.agents[1:], app.AgentInfo{Type: "acp", Installed: true, Path: c.agents})
			}
			api.projects[0].Repository, api.projects[0].Agent = top, c.ours
			r := run(t.Context(), api, nil, append([]string{"run", "x", "--repo", top}, c.args...)...)
			if c.wrong != "" {
				if r.code != 2 || !strings.Contains(r.err, c.wrong) || len(api.requests) > 0 {
					t.Errorf("%+v", r)
				}
				return
			}
			if r.code != 0 || len(api.requests) != 1 || api.requests[0].Agent.Type != c.agent || len(api.requests[0].Agent.Command) != strings.Count(strings.Join(c.args, ""), ",")*2 {
				t.Errorf("%+v, %+v", r, api.requests)
			}
		})
	}
}

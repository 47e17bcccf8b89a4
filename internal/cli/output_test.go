package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

// shop is a server with a bit of everything, hostile names included.
func shop() *fake {
	exit := 1
	ago := func(d time.Duration) time.Time { return noon().Add(-d) }
	fix := &app.TaskView{
		Task: work.Task{
			ID: "fixbasket2345678", TreeID: "basket2345678901", Kind: work.TopLevel, Name: "Fix the basket\x1b[31m\u202e", ProjectID: "p1",
			Agent:    work.AgentSpec{Type: "command", Role: work.Builder, Command: []string{"sh", "-c", "make"}, Instructions: "Count again.\n\tTwice.\x07\n"},
			Priority: work.High, Tags: []string{"till"}, DependsOn: []work.Position{"d1"}, AcceptanceCriteria: []string{"the total is right", "nothing else changes", "it is fast"},
			Gates: []string{"go vet"}, Review: "checked", Origin: work.FromPerson, AttemptOf: "basket2345678901", AttemptNo: 2,
			CheckerReport: "the total is wrong", RejectionComment: "try harder", RejectionFindings: work.Findings{{Kind: "bug", File: "a.go", Line: 3, Text: "off by one"}},
			Question: &work.Question{Text: "Cents or euros?", Options: []string{"cents", "euros"}}, Blockers: []string{"no network"}, Summary: "Counted.",
			State: work.Ready, BlockedOn: work.OnPerson, Hold: work.HoldFlagged, Reason: "the checker says no",
			Result: &work.Result{Base: "0123456789abcdef", Head: "fedcba9876543210", Files: 1, Insertions: 10, Deletions: 2, HeldBack: []string{".env"}, Warnings: []string{"large file"}},
			Landed: &work.Landing{Branch: "main", Commit: "fedcba9876543210", At: ago(time.Minute)}, Accepted: &work.Acceptance{By: work.Person("ann"), At: ago(2 * time.Minute)},
			CreatedAt: ago(3 * time.Hour), UpdatedAt: ago(90 * time.Second), Timeout: work.Duration(30 * time.Minute),
		},
		Actions: []work.Action{work.DoAccept, work.DoReject}, CurrentID: "fixbasket2345678", MergeID: "m1",
	}
	judge := &work.Task{ID: "judge23456789012", Name: "Check: Fix", State: work.Completed, Agent: work.AgentSpec{Role: work.Checker}, Verdict: &work.Verdict{
		Reasoning: "no test", Criteria: []work.Criterion{{Criterion: "the total is right", How: "basket_test.go"}, {Criterion: "nothing else changes", Met: true, How: "read only"}},
	}}
	part := &work.Task{ID: "part234567890123", Name: "Part", Kind: work.Subtask, State: work.Running}
	other := &app.TaskView{Task: work.Task{ID: "fixbasket9999999", Name: "数え直す", State: work.Queued, BlockedOn: work.OnSlot, ProjectID: "p1", UpdatedAt: ago(50 * time.Hour)}}
	return &fake{
		projects: []*work.Project{{
			ID: "p1", Name: "shop", Repository: "/srv/shop", Branch: "main", Validate: []string{"go test ./..."}, Policy: "checked", Policies: map[string]string{"builder/*": "human"},
			Limits: work.Limits{Slots: 2, Timeout: work.Duration(time.Hour)}, Environment: map[string]string{"KEY": "secret"}, AutoLand: true, CreatedAt: ago(72 * time.Hour),
		}},
		tasks: []*app.TaskView{fix, other},
		tree: &app.TreeNode{
			Task: &fix.Task, Judges: []*work.Task{judge},
			Children: []*app.TreeNode{{Task: part, Children: []*app.TreeNode{{Task: &work.Task{ID: "below", Name: "Below", State: work.Failed, Dropped: true}}}}, {Task: &work.Task{ID: "last", Name: "Last", State: work.Pending}}},
		},
		executions: []*work.Execution{
			{ID: "x1", Kind: work.AgentRun, Number: 1, State: work.ExecutionEnded, Outcome: work.FailedRun, Agent: "command", ExitCode: &exit, Error: "exit status 1", CostUSD: 0.123, StartedAt: ago(2 * time.Hour), EndedAt: ago(2*time.Hour - 3*time.Minute)},
			{ID: "x2", Kind: work.GateRun, Number: 2, State: work.ExecutionRunning, StartedAt: ago(5 * time.Second), Gates: []work.GateResult{{Command: "go vet", ExitCode: 2}}},
		},
		merges: []*work.Merge{{ID: "m1", TaskID: "fixbasket2345678", Target: "main", Status: work.MergeConflicted, Conflicts: []string{"a.go"}, Dir: "/data/workspaces/m-m1", Message: "both changed", CreatedAt: ago(time.Minute)}},
		roles:  []work.RoleConfig{{Name: work.Checker, Version: 1, Agent: "claude"}, {Name: work.Checker, Version: 2, Active: true, Agent: "command", Command: []string{"sh"}, Prompt: "Check.\n"}},
		items:  []work.Item{{Kind: work.ItemQuestion, TaskID: "fixbasket2345678", Name: "Fix", Text: "Cents or euros?", Actions: []work.Action{work.DoAnswer}}, {Kind: work.ItemStory, StoryID: "s1", Name: "Checkout", Text: "the story is DRAFT"}},
		agents: []app.AgentInfo{
			{Type: "claude", Installed: true, Version: "2.1.332", Path: "/usr/bin/claude"}, {Type: "codex", Note: "codex is not on the PATH\x1b[2J"}, {Type: "command", Installed: true},
		},
		patch: "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-one\x1b[2J\n+one\xff\r\n\\ No newline",
	}
}

// TestOutput holds what people and programs read to golden files.
func TestOutput(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"project-list": "project list", "project-show": "project show shop", "project-show-json": "project show shop -o json",
		"project-list-json": "project list -o json", "task-list": "task list", "task-list-json": "task list --limit 1 -o json",
		"task-show": "task show fixbasket2345678", "task-show-json": "task show fixbasket2345678 -o json", "task-show-missing": "task show nobody",
		"task-show-missing-json": "task show nobody -o json", "task-tree": "task tree fixbasket2345678", "task-start": "task start fixbasket2345678",
		"task-rm": "task rm fixbasket9999999", "task-rm-json": "task rm fixbasket9999999 -o json", "task-diff": "task diff fixbasket2345678",
		"task-diff-json": "task diff fixbasket2345678 -o json", "merge-status": "merge status m1", "merge-status-task": "merge status fixbasket2345678 -o json",
		"merge-list": "merge list", "merge-open": "merge open fixbasket2345678", "role-list": "role list", "role-show": "role show checker", "role-set": "role set checker --command [\"a\"] -o json",
		"token-create": "token create laptop", "token-create-json": "token create laptop --scope read -o json", "attention": "attention", "attention-json": "attention -o json",
		"events-task": "events --task fixbasket2345678 --after 3", "events-task-json": "events --task fixbasket2345678 --limit 1 -o json",
		"agent-list": "agent list", "agent-list-json": "agent list -o json",
	}
	for name, args := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			golden(t, "output/"+name, run(t.Context(), shop(), nil, strings.Fields(args)...).String())
		})
	}
	t.Run("terminal", func(t *testing.T) {
		t.Parallel()
		narrow := func(d *Deps) { d.Terminal, d.Width = true, func() int { return 72 } }
		for name, args := range map[string]string{"task-list": "task list", "task-show": "task show fixbasket2345678", "task-diff": "task diff fixbasket2345678"} {
			r := run(t.Context(), shop(), narrow, strings.Fields(args)...)
			golden(t, "output/"+name+"-terminal", strings.ReplaceAll(r.String(), "\x1b", "␛"))
		}
		plain := run(t.Context(), shop(), func(d *Deps) { narrow(d); d.Environ = append(d.Environ, "NO_COLOR=1") }, "task", "list")
		if strings.Contains(plain.out, "\x1b") {
			t.Errorf("NO_COLOR: %q", plain.out)
		}
		for line := range strings.Lines(plain.out) {
			if n := columns(strings.TrimRight(line, "\n")); n > 72 {
				t.Errorf("%d columns: %q", n, line)
			}
		}
	})
	t.Run("default agent", func(t *testing.T) {
		t.Parallel()
		api := shop()
		api.agents[0].Default = true
		golden(t, "output/agent-list-default", run(t.Context(), api, nil, "agent", "list").String())
	})
	t.Run("empty", func(t *testing.T) {
		t.Parallel()
		for _, args := range []string{"task list", "project list", "role list", "attention", "merge list"} {
			if r := run(t.Context(), &fake{}, nil, append(strings.Fields(args), "-o", "json")...); r.out != "[]\n" {
				t.Errorf("%s: %+v", args, r)
			}
		}
	})
}

// TestPatchBytes: a diff that goes to no terminal is what git made.
func TestPatchBytes(t *testing.T) {
	t.Parallel()
	api := shop()
	if r := run(t.Context(), api, nil, "task", "diff", "fixbasket2345678"); r.out != api.patch {
		t.Errorf("got %q", r.out)
	}
}

// TestActions: what each command asks of the server.
func TestActions(t *testing.T) {
	t.Parallel()
	tests := map[string][]string{
		`start`:                        {"task", "start", "fixbasket2345678"},
		`accept`:                       {"task", "accept", "fixbasket2345678"},
		`retry true`:                   {"task", "retry", "fixbasket2345678", "--fresh"},
		`answer "cents, please"`:       {"task", "answer", "fixbasket2345678", "cents, please"},
		`message "go on"`:              {"task", "message", "fixbasket2345678", "-m", "go on"},
		`message "from\nstdin"`:        {"task", "message", "fixbasket2345678", "-F", "-"},
		`reject "no" [] extra 2`:       {"task", "reject", "fixbasket2345678", "-m", "no", "--extra", "2"},
		`reject "" [a.go:3 x] extra 0`: {"task", "reject", "fixbasket2345678", "--at", "a.go:3=x"},
		`remove fixbasket2345678`:      {"task", "rm", "fixbasket2345678"},
		`remove project p1`:            {"project", "rm", "shop"},
		`merge t into release`:         {"merge", "start", "t", "--into", "release"},
	}
	for want, args := range tests {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			api := shop()
			run(t.Context(), api, func(d *Deps) { d.In = strings.NewReader("from\nstdin\n") }, args...)
			if !slices.Equal(api.asked, []string{want}) {
				t.Errorf("asked %q", api.asked)
			}
		})
	}
}

// TestProjectInput: only what was given is sent; a path means the same to a
// server in another folder.
func TestProjectInput(t *testing.T) {
	t.Parallel()
	api := shop()
	run(t.Context(), api, nil, "project", "add", "shop", "--repo", "sub/dir", "--validate", "a, b", "--validate", "c", "--policy", "human", "--env", "A=b=c")
	if p := api.project; *p.Name != "shop" || !strings.HasPrefix(*p.Repository, "/") || !strings.HasSuffix(*p.Repository, "/sub/dir") ||
		!slices.Equal(*p.Validate, []string{"a, b", "c"}) || (*p.Environment)["A"] != "b=c" || p.Agent != nil || p.Limits != nil || p.AutoLand != nil {
		t.Errorf("%+v", p)
	}
	for _, remote := range []string{"https://host/x.git", "git@host:x.git", "host:x", "ssh://host/x"} {
		run(t.Context(), api, nil, "project", "set", "shop", "--repo", remote)
		if *api.project.Repository != remote {
			t.Errorf("%s became %s", remote, *api.project.Repository)
		}
	}
	run(t.Context(), api, nil, "project", "set", "shop", "--slots", "7", "--validate", "", "--auto-land=false")
	want := app.ProjectInput{Limits: &app.LimitsInput{Slots: new(7)}, Validate: &[]string{}, AutoLand: new(bool)}
	if diff := cmp.Diff(want, api.project); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestTaskSet(t *testing.T) {
	t.Parallel()
	api := shop()
	r := run(t.Context(), api, nil, "task", "set", "fixbasket2345678", "--accept", "a", "--tag", "", "--retry", "5", "--draft=false")
	want := app.TaskPatch{AcceptanceCriteria: &app.StringList{"a"}, Tags: &[]string{}, Retry: &app.RetryInput{MaxAttempts: 5}, Draft: new(bool)}
	if diff := cmp.Diff(want, api.change); diff != "" || r.code != 0 {
		t.Errorf("%+v -want +got:\n%s", r, diff)
	}
}

// TestPages: as many as are asked for are read, page by page.
func TestPages(t *testing.T) {
	t.Parallel()
	api := &fake{}
	for range 1200 {
		api.tasks = append(api.tasks, task("t"+strings.Repeat("x", len(api.tasks)), "READY/person"))
	}
	for args, want := range map[string]int{"--limit 0": 1200, "--limit 700": 700, "": 50, "--limit 5000": 1200} {
		r := run(t.Context(), api, nil, append([]string{"task", "list"}, strings.Fields(args)...)...)
		if got := strings.Count(r.out, "READY"); got != want || strings.Contains(r.out, "there are more") != (want < 1200) {
			t.Errorf("%q: %d tasks", args, got)
		}
	}
}

// TestShorten: a short id is never that of two tasks on the page.
func TestShorten(t *testing.T) {
	t.Parallel()
	short := shorten([]string{"abcdefgh1x", "abcdefgh2x", "z"})
	if got := short("abcdefgh1x") + short("z"); got != "abcdefgh1z" {
		t.Errorf("got %q", got)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("disk full") }

// TestFullDisk: an answer that could not be written is not a success.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"task list", "task list -o json", "task diff fixbasket2345678", "events --task fixbasket2345678 -o json", "completion fish"} {
		if r := run(t.Context(), shop(), func(d *Deps) { d.Out = broken{} }, strings.Fields(args)...); r.code != 1 || !strings.Contains(r.err, "disk full") {
			t.Errorf("%s: %+v", args, r)
		}
	}
}

// TestEscape: JSON on a terminal is as harmless as text, and means the same.
func TestEscape(t *testing.T) {
	t.Parallel()
	text := "a\x1b\u009b\x7f\u202e\n\tü\ufffd<&>"
	var b bytes.Buffer
	if err := encode(&b, text); err != nil {
		t.Fatal(err)
	}
	if want := `"a\u001b\u009b\u007f\u202e\n\tü�<&>"` + "\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
	var back string
	if err := json.Unmarshal(b.Bytes(), &back); err != nil || back != text {
		t.Errorf("read back %q, %v", back, err)
	}
}

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

// repository is a folder that looks like one, with a folder below.
func repository(t *testing.T, name string) (top, below string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	top = filepath.Join(dir, name)
	below = filepath.Join(top, "a", "b")
	if err := os.MkdirAll(below, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(top, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	return top, below
}

// built is a server on which whatever is made is done at once, and waits for a
// person.
func built(change func(*app.TaskView)) *fake {
	api := shop()
	view := &app.TaskView{
		Task: work.Task{
			ID: "made1", TreeID: "made1", Name: "x", ProjectID: "p1", State: work.Ready, BlockedOn: work.OnPerson, Hold: work.HoldHuman,
			Result: &work.Result{Files: 1, Insertions: 1}, Agent: work.AgentSpec{Type: "claude"},
		},
		Actions: []work.Action{work.DoAccept, work.DoReject, work.DoMessage}, CurrentID: "made1",
	}
	if change != nil {
		change(view)
	}
	api.tasks, api.executions, api.merges = []*app.TaskView{view}, nil, nil
	api.tree = &app.TreeNode{Task: &view.Task}
	return api
}

// TestRunMakes: the project of the repository is found or made, an agent that is
// there is chosen, and a person judges where nobody else is said to.
func TestRunMakes(t *testing.T) {
	t.Parallel()
	top, below := repository(t, "My Shop")
	made := func(change func(*fake), args ...string) (*fake, app.TaskRequest) {
		t.Helper()
		api := built(nil)
		if change != nil {
			change(api)
		}
		r := run(t.Context(), api, nil, append([]string{"run", "--repo", below}, args...)...)
		if r.code != 0 || len(api.requests) != 1 {
			t.Fatalf("%q: %+v", args, r)
		}
		return api, api.requests[0]
	}
	api, got := made(nil, "Fix it\nnow", "--accept", "a", "--accept", "b")
	if *api.project.Name != "my-shop" || *api.project.Repository != top {
		t.Errorf("project %q for %q", *api.project.Name, *api.project.Repository)
	}
	if got.Name != "Fix it" || got.Agent.Instructions != "Fix it\nnow" || got.Agent.Type != "claude" || got.Review != "human" || !got.Start || !slices.Equal(got.AcceptanceCriteria, []string{"a", "b"}) {
		t.Errorf("%+v", got)
	}
	api, _ = made(func(f *fake) { f.projects[0].Name = "my-shop" }, "x")
	if *api.project.Name != "my-shop-2" {
		t.Errorf("a name that is taken: %q", *api.project.Name)
	}
	api, got = made(func(f *fake) { f.projects[0].Repository, f.projects[0].Agent = top, "command" }, "x")
	if api.project.Name != nil || got.Project != "p1" || got.Agent.Type != "" || got.Review != "" {
		t.Errorf("a project that is there: %+v", got)
	}
	_, got = made(nil, "x", "--agent", "command", "--model", "m", "--name", "n")
	if got.Agent.Type != "command" || got.Agent.Model != "m" || got.Name != "n" {
		t.Errorf("%+v", got)
	}
	_, got = made(nil, "x", "--check") // the checker's role is a command
	if got.Review != "checked" {
		t.Errorf("--check: %+v", got)
	}
	_, got = made(func(f *fake) { f.projects[0].Repository = "https://host/x.git" }, "x", "--repo", "https://host/x.git")
	if got.Project != "p1" {
		t.Errorf("a URL: %+v", got)
	}
}

// TestRunMistakes: what cannot work is said before anything is made.
func TestRunMistakes(t *testing.T) {
	t.Parallel()
	top, _ := repository(t, "shop")
	nowhere := t.TempDir()
	local := func(d *Deps) { d.Environ = []string{"CLAUDOMATOR_DATA_DIR=" + nowhere, "CLAUDOMATOR_TOKEN=x"} }
	host := func(api app.API) func(*Deps) {
		return func(d *Deps) {
			local(d)
			d.Host = func(context.Context, Settings) (app.API, func() error, error) {
				return api, func() error { return nil }, nil
			}
		}
	}
	tests := map[string]struct {
		args   []string
		change func(*fake)
		code   int
		want   string
	}{
		"nothing to do":       {[]string{"run"}, nil, 2, "run needs instructions\nhint: say what is to be done: claudomator run \"Fix"},
		"empty":               {[]string{"run", " "}, nil, 2, "the instructions are empty"},
		"not quoted":          {[]string{"run", "fix", "it"}, nil, 2, "does not take \"it\" beside \"fix\"\nhint: quote the instructions: claudomator run \"fix it\""},
		"no repository":       {[]string{"run", "x", "--repo", nowhere}, nil, 2, "is in no git repository\nhint: go into one"},
		"nothing there":       {[]string{"run", "x", "--repo", nowhere + "/none"}, nil, 2, "there is nothing at "},
		"unknown project":     {[]string{"run", "x", "--project", "none"}, nil, 3, "there is no project \"none\""},
		"two projects":        {[]string{"run", "x", "--repo", top}, func(f *fake) { p := *f.projects[0]; p.Repository = top; f.projects = []*work.Project{&p, &p} }, 2, "several projects work on"},
		"unknown agent":       {[]string{"run", "x", "--repo", top, "--agent", "claud"}, nil, 2, "there is no agent type \"claud\"\nhint: did you mean claude?"},
		"agent not installed": {[]string{"run", "x", "--repo", top, "--agent", "codex"}, nil, 2, "agent codex cannot be used: codex is not on the PATH"},
		"no agent":            {[]string{"run", "x", "--repo", top}, func(f *fake) { f.agents = f.agents[1:] }, 2, "no agent program is installed here, and none is chosen\nhint: "},
		"argv no JSON":        {[]string{"run", "x", "--repo", top, "--command", "sh"}, nil, 2, "--command takes a JSON list of texts"},
		"task and command":    {[]string{"run", "--task", "t", "--command", "[]"}, nil, 2, "--command does not go with --task"},
		"no checker":          {[]string{"run", "x", "--repo", top, "--check", "--agent", "command"}, func(f *fake) { f.roles = nil }, 2, "there is no checker"},
		"checker not there": {[]string{"run", "x", "--repo", top, "--check"}, func(f *fake) {
			f.roles = []work.RoleConfig{{Name: work.Checker, Active: true, Agent: "codex"}}
		}, 2, "choose the checker: agent codex cannot be used"},
		"task and words": {[]string{"run", "x", "--task", "t"}, nil, 2, "instructions do not go with --task"},
		"task and agent": {[]string{"run", "--task", "t", "--agent", "codex"}, nil, 2, "--agent does not go with --task"},
		"unknown task":   {[]string{"run", "--task", "none"}, nil, 3, "there is no task \"none\""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := built(nil)
			if test.change != nil {
				test.change(api)
			}
			r := run(t.Context(), api, host(api), test.args...)
			if r.code != test.code || !strings.Contains(r.err, test.want) || len(api.requests) > 0 || api.project.Name != nil {
				t.Errorf("%+v", r)
			}
		})
	}
}

// TestRunServer: the server that is named or runs is used, else one of our own,
// which ends with the command, however that ends.
func TestRunServer(t *testing.T) {
	t.Parallel()
	top, _ := repository(t, "shop")
	gone := &fake{err: work.Errorf(work.Unavailable, "connection refused")}
	tests := map[string]struct {
		environ string
		connect app.API
		own     []error // what starting a server of our own gives, in turn
		code    int
		hosted  int
		stopped int
	}{
		"one runs":               {"", built(nil), nil, 0, 0, 0},
		"none runs":              {"", gone, []error{nil}, 0, 1, 1},
		"named, and gone":        {"CLAUDOMATOR_SERVER=http://test", gone, []error{nil}, 7, 0, 0},
		"another is starting":    {"", gone, []error{work.Errorf(work.Conflict, "another server").WithReason("data_dir_in_use"), nil}, 0, 2, 1},
		"it cannot be started":   {"", gone, []error{work.Errorf(work.Invalid, "bad settings")}, 2, 1, 0},
		"the folder stays taken": {"", gone, slices.Repeat([]error{work.Errorf(work.Conflict, "another server").WithReason("data_dir_in_use")}, 41), 4, 41, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				dir := t.TempDir()
				if err := os.WriteFile(filepath.Join(dir, "server"), []byte("http://test\n"), 0o600); err != nil {
					t.Fatal(err)
				}
				hosted, stopped := 0, 0
				r := run(t.Context(), nil, func(d *Deps) {
					d.Environ = []string{"CLAUDOMATOR_DATA_DIR=" + dir, "CLAUDOMATOR_TOKEN=x", test.environ}
					d.Connect = func(context.Context, string, string) (app.API, error) { return test.connect, nil }
					d.Host = func(context.Context, Settings) (app.API, func() error, error) {
						hosted++
						if err := test.own[hosted-1]; err != nil {
							return nil, nil, err
						}
						return built(nil), func() error { stopped++; return nil }, nil
					}
				}, "run", "--repo", top, "x")
				if r.code != test.code || hosted != test.hosted || stopped != test.stopped {
					t.Errorf("%+v, %d started, %d stopped", r, hosted, stopped)
				}
				if test.hosted > 0 && r.code == 0 && !strings.Contains(r.out, "own server") {
					t.Errorf("it is not said: %s", r.out)
				}
			})
		})
	}
}

// TestRunServerEndsAtTheEnd: the server of another run ends while the work is
// accepted or landed; that is done with another one, and a server that always
// refuses is not asked for ever.
func TestRunServerEndsAtTheEnd(t *testing.T) {
	t.Parallel()
	gone := work.Errorf(work.Unavailable, "the request was given up")
	landed := func(v *app.TaskView) {
		v.State, v.BlockedOn, v.Hold, v.Landed = work.Completed, work.NotBlocked, work.NoHold, &work.Landing{Branch: "main", Commit: "abc"}
	}
	tests := map[string]struct {
		dies   func(first *fake, file string) // when it is asked to accept
		second func(*app.TaskView)            // how the task stands on the next server
		refuse bool                           // the next server, too
		code   int
	}{
		"it refuses":                 {func(first *fake, file string) { first.err = gone; _ = os.Remove(file) }, nil, false, 0},
		"it refuses, and has landed": {func(first *fake, file string) { first.err = gone; _ = os.Remove(file) }, landed, false, 0},
		"it begins to, and is gone": {func(first *fake, file string) {
			first.tasks[0].BlockedOn = work.OnLanding
			first.stream = slices.Repeat([]step{{err: gone}}, 100)
			first.before = func() { first.err = gone }
			_ = os.Remove(file)
		}, nil, false, 0},
		"every server refuses": {func(first *fake, _ string) { first.err = gone }, nil, true, 7},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				dir := t.TempDir()
				file := filepath.Join(dir, "server")
				if err := os.WriteFile(file, []byte("http://test\n"), 0o600); err != nil {
					t.Fatal(err)
				}
				first, second := built(nil), built(test.second)
				first.accept = func(app.AcceptInput) *app.TaskView {
					test.dies(first, file)
					return first.tasks[0]
				}
				accepts := 0
				second.accept = func(app.AcceptInput) *app.TaskView {
					accepts++
					if landed(second.tasks[0]); test.refuse {
						second.err = gone
					}
					return second.tasks[0]
				}
				begun := time.Now()
				r := run(t.Context(), nil, func(d *Deps) {
					d.Environ = []string{"CLAUDOMATOR_DATA_DIR=" + dir, "CLAUDOMATOR_TOKEN=x"}
					d.Connect = func(context.Context, string, string) (app.API, error) { return first, nil }
					d.Host = func(context.Context, Settings) (app.API, func() error, error) {
						return second, func() error { return nil }, nil
					}
				}, "run", "--task", "made1", "--yes")
				if r.code != test.code || accepts > 1 || (accepts == 1) != (test.second == nil) {
					t.Errorf("%d accepts, %+v", accepts, r)
				}
				if took := time.Since(begun); took > time.Minute {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

// TestRunYes: --yes lands what nothing speaks against, and nothing else.
func TestRunYes(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*app.TaskView)
		runs   []*work.Execution
		code   int
		want   string
	}{
		"ready":            {nil, nil, 0, "landed on main as abc"},
		"changed nothing":  {func(v *app.TaskView) { v.Result.NoChanges, v.Hold = true, work.HoldNoChanges }, nil, 4, "it changed nothing"},
		"flagged":          {func(v *app.TaskView) { v.Hold = work.HoldFlagged }, nil, 4, "there is a report against it"},
		"a report":         {func(v *app.TaskView) { v.CheckerReport = "no" }, nil, 4, "there is a report against it"},
		"no judge":         {func(v *app.TaskView) { v.Hold = work.HoldNoJudge }, nil, 4, "no judge can be used"},
		"no verdict":       {func(v *app.TaskView) { v.Hold = work.HoldNoVerdict }, nil, 4, "its judges gave no verdict"},
		"improvements":     {func(v *app.TaskView) { v.Hold = work.HoldImprovements }, nil, 4, "approved with improvements"},
		"held back":        {func(v *app.TaskView) { v.Result.HeldBack = []string{".env"} }, nil, 4, "files were held back: .env"},
		"a gate failed":    {nil, []*work.Execution{{ID: "g", Kind: work.GateRun, State: work.ExecutionEnded, Gates: []work.GateResult{{Command: "make", ExitCode: 2}}}}, 4, "a gate has failed: make"},
		"a gate's old run": {nil, []*work.Execution{{ID: "g", Kind: work.GateRun, Gates: []work.GateResult{{ExitCode: 2}}}, {ID: "h", Kind: work.GateRun, Gates: []work.GateResult{{Command: "make"}}}}, 0, "landed on main"},
		"failed":           {func(v *app.TaskView) { v.State, v.BlockedOn, v.Reason = work.Failed, work.NotBlocked, "exit 3" }, nil, 8, "ended FAILED: exit 3"},
		"asks": {func(v *app.TaskView) {
			v.State, v.BlockedOn, v.Question = work.Blocked, work.OnQuestion, &work.Question{Text: "Which?"}
		}, nil, 4, "asks, and nobody can answer"},
		"in conflict": {func(v *app.TaskView) { v.State, v.BlockedOn = work.Blocked, work.OnConflict }, nil, 4, "it is BLOCKED (conflict)"},
		"done, landed": {func(v *app.TaskView) {
			v.State, v.BlockedOn, v.Landed = work.Completed, work.NotBlocked, &work.Landing{}
		}, nil, 0, ""},
		"done, unchanged": {func(v *app.TaskView) {
			v.State, v.BlockedOn, v.Result.NoChanges = work.Completed, work.NotBlocked, true
		}, nil, 0, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := built(test.change)
			api.executions = test.runs
			asked := 0
			api.accept = func(in app.AcceptInput) *app.TaskView {
				if asked++; in.Land == nil || !*in.Land {
					t.Errorf("accepted with %+v", in)
				}
				v := api.tasks[0]
				v.State, v.BlockedOn, v.Hold, v.Landed = work.Completed, work.NotBlocked, work.NoHold, &work.Landing{Branch: "main", Commit: "abc"}
				return v
			}
			r := run(t.Context(), api, nil, "run", "--task", "made1", "--yes")
			if r.code != test.code || !strings.Contains(r.out+r.err, test.want) || (test.code != 0 && asked > 0) {
				t.Errorf("%d accepts, %+v", asked, r)
			}
			if test.want == "landed on main as abc" && asked != 1 {
				t.Errorf("%d accepts", asked)
			}
			r = run(t.Context(), built(test.change), nil, "run", "--task", "made1", "--json")
			lines := strings.Split(strings.TrimSpace(r.out), "\n")
			for _, line := range lines {
				if !json.Valid([]byte(line)) || !strings.HasPrefix(line, `{"type":"`) {
					t.Errorf("no event: %q", line)
				}
			}
			if !strings.HasPrefix(lines[len(lines)-1], `{"type":"result"`) {
				t.Errorf("ends with %q", lines[len(lines)-1])
			}
		})
	}
}

// TestRunDecides: what a person types is what is asked of the server, and a
// question is not put twice.
func TestRunDecides(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		typed string
		asked []string
		code  int
	}{
		"keep":                  {"k\n", nil, 0},
		"the end of the input":  {"", nil, 0},
		"half a line":           {"keep", nil, 0},
		"nonsense":              {"\n?\nyes\nk\n", nil, 0},
		"accept":                {"accept\n", []string{"accept false"}, 0},
		"land":                  {"L\n", []string{"accept true"}, 0},
		"reject":                {"r\nwrong total\nk\n", []string{`reject "wrong total" [] extra 0`}, 0},
		"reject on one line":    {"reject wrong total\nk\n", []string{`reject "wrong total" [] extra 0`}, 0},
		"reject without reason": {"r\n\nk\n", nil, 0},
		"message":               {"m also this\nk\n", []string{`message "also this"`}, 0},
		"diff":                  {"d\nk\n", nil, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := built(nil)
			api.accept = func(in app.AcceptInput) *app.TaskView {
				word := "accept false"
				if *in.Land {
					word = "accept true"
				}
				api.asked = append(api.asked, word)
				v := api.tasks[0]
				v.State, v.BlockedOn, v.Hold = work.Completed, work.NotBlocked, work.NoHold
				if *in.Land {
					v.Landed = &work.Landing{Branch: "main", Commit: "abc"}
				}
				return v
			}
			r := run(t.Context(), api, func(d *Deps) { d.Terminal, d.InTerminal, d.In = true, true, strings.NewReader(test.typed) }, "run", "--task", "made1")
			if r.code != test.code || !slices.Equal(api.asked, test.asked) {
				t.Errorf("asked %q, %+v", api.asked, r)
			}
			if test.typed == "d\nk\n" && !strings.Contains(r.out, "@@ -1 +1 @@") {
				t.Errorf("no diff: %s", r.out)
			}
		})
	}
}

// TestRunAnswers: a question is asked, also that of a child; a number is the
// option of that number.
func TestRunAnswers(t *testing.T) {
	t.Parallel()
	asking := func(v *work.Task) {
		v.State, v.BlockedOn, v.Question = work.Blocked, work.OnQuestion, &work.Question{Text: "Which?", Options: []string{"red", "blue"}}
	}
	for typed, want := range map[string]string{"2\nk\n": `answer "blue"`, "\n\nred, please\nk\n": `answer "red, please"`, "7\nk\n": `answer "7"`, "": ""} {
		for _, child := range []bool{false, true} {
			api := built(nil)
			v := api.tasks[0]
			asks := &v.Task
			if child {
				asks = &work.Task{ID: "child", Name: "Child"}
				v.State, v.BlockedOn = work.Blocked, work.OnChildren
				api.tree.Children = []*app.TreeNode{{Task: asks}}
				api.tasks = append(api.tasks, &app.TaskView{Task: work.Task{ID: "child"}})
			}
			asking(asks)
			api.answered = func() {
				asks.State, asks.BlockedOn = work.Completed, work.NotBlocked
				v.State, v.BlockedOn = work.Ready, work.OnPerson
			}
			r := run(t.Context(), api, func(d *Deps) { d.Terminal, d.InTerminal, d.In = true, true, strings.NewReader(typed) }, "run", "--task", "made1")
			if got := strings.Join(api.asked, ""); got != want || r.code != 0 || !strings.Contains(r.out, "? Which?") {
				t.Errorf("%q, child %t: asked %q, %+v", typed, child, got, r)
			}
		}
	}
}

// TestRunInterrupted: Ctrl-C asks once and leaves at the second; without a
// terminal it leaves at once. A server of our own is stopped in any case.
func TestRunInterrupted(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		terminal, own bool
		presses       int
		typed         string
		code          int
		asked         []string
		want          string
	}{
		"pipe":               {false, false, 1, "", 130, nil, "the task goes on"},
		"pipe, own server":   {false, true, 1, "", 130, nil, "its run ends with this server"},
		"twice":              {true, false, 2, "", 130, nil, "the task goes on"},
		"twice, own server":  {true, true, 2, "", 130, nil, "its run ends with this server"},
		"detach":             {true, false, 1, "d\n", 0, nil, "the task goes on"},
		"leave":              {true, true, 1, "leave\n", 130, nil, "its run ends with this server"},
		"detach is not own":  {true, true, 1, "d\nl\n", 130, nil, "[l]eave"},
		"stop":               {true, false, 1, "s\n", 130, []string{"cancel"}, "CANCELLED"},
		"keep, then stop":    {true, false, 1, "k\ns\n", 130, []string{"cancel"}, "CANCELLED"},
		"nothing to be read": {true, false, 1, "EOF", 130, nil, "the task goes on"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				api := built(func(v *app.TaskView) { v.State, v.BlockedOn, v.Hold = work.Running, work.NotBlocked, work.NoHold })
				api.cancelled = func() { api.tasks[0].State = work.Cancelled }
				pressed, stopped := make(chan struct{}, 1), 0
				in, keyboard := io.Pipe()
				over := make(chan struct{})
				defer close(over)
				go func() {
					defer func() { _ = keyboard.Close() }()
					pressed <- struct{}{}
					synctest.Wait()
					for line := range strings.Lines(test.typed) {
						if line == "EOF" {
							return
						}
						if line == "s\n" && test.typed != "s\n" {
							pressed <- struct{}{}
						}
						_, _ = io.WriteString(keyboard, line)
						synctest.Wait()
					}
					if test.presses > 1 {
						pressed <- struct{}{}
					}
					<-over // the person does not go away
				}()
				r := run(t.Context(), api, func(d *Deps) {
					d.Terminal, d.InTerminal, d.In = test.terminal, test.terminal, in
					d.Interrupts = func() (<-chan struct{}, func()) { return pressed, func() {} }
					if test.own {
						d.Environ = []string{"CLAUDOMATOR_DATA_DIR=" + t.TempDir()}
						d.Host = func(context.Context, Settings) (app.API, func() error, error) {
							return api, func() error { stopped++; return nil }, nil
						}
					}
				}, "run", "--task", "made1")
				_ = in.CloseWithError(errors.New("the test is over"))
				if r.code != test.code || !slices.Equal(api.asked, test.asked) || !strings.Contains(r.out, test.want) || strings.Contains(r.err, "error") || (stopped == 1) != test.own {
					t.Errorf("asked %q, stopped %d, %+v", api.asked, stopped, r)
				}
			})
		})
	}
}

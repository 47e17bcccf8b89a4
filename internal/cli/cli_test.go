package cli

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

var update = flag.Bool("update", false, "write the golden files")

// TestHelp: the whole help is a golden file, so that every change of a command
// or flag is seen; every command says what it does, by an example too.
func TestHelp(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Hidden {
			return
		}
		if c.Short == "" || (c.Example == "" && !c.HasSubCommands()) {
			t.Errorf("%s lacks a description or an example", c.CommandPath())
		}
		if !c.HasSubCommands() && !strings.Contains(c.Example, c.CommandPath()) {
			t.Errorf("the example of %s does not show it", c.CommandPath())
		}
		args := append(strings.Fields(c.CommandPath())[1:], "--help")
		r := run(t.Context(), nil, nil, args...)
		if r.code != 0 || r.err != "" {
			t.Errorf("%s --help: exit %d, %s", c.CommandPath(), r.code, r.err)
		}
		fmt.Fprintf(&b, "==== %s\n%s\n", c.CommandPath(), r.out)
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(newRootCommand(&shell{}))
	golden(t, "help", b.String())
	golden(t, "commands", strings.Join(Commands(), "\n")+"\n")
}

// TestExitCodes holds the one map to the documented codes, over all errors.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	want := map[work.Code]int{
		work.Invalid: 2, work.NotFound: 3, work.Conflict: 4, work.Illegal: 4, work.Unauthenticated: 5, work.Forbidden: 5,
		work.Exhausted: 6, work.Unavailable: 7, work.Timeout: 7, work.Internal: 1,
	}
	for _, code := range work.Codes() {
		api := &fake{err: fmt.Errorf("look: %w", work.Errorf(code, "no luck\nat all\x1b[2J").WithReason("why").WithHint("try").With("allowed", []work.Action{work.DoRetry}).With("path", "a"))}
		r := run(t.Context(), api, nil, "attention")
		if r.code != want[code] || want[code] == 0 {
			t.Errorf("%s: exit %d, want %d", code, r.code, want[code])
		}
		if r.err != "error: look: no luck at all\uFFFD[2J\nhint: try\n" || r.out != "" {
			t.Errorf("%s: out %q, errors %q", code, r.out, r.err)
		}
		r = run(t.Context(), api, nil, "attention", "-o", "json")
		var p map[string]any
		if err := json.Unmarshal([]byte(r.err), &p); err != nil {
			t.Fatalf("%s: no JSON on standard error: %q", code, r.err)
		}
		if p["code"] != string(code) || p["reason"] != "why" || p["hint"] != "try" || p["allowed"] == nil || p["details"] == nil || r.out != "" {
			t.Errorf("%s: problem %v", code, p)
		}
	}
	if got := exitCode(errors.New("odd")); got != 1 {
		t.Errorf("an unknown error: exit %d", got)
	}
	if got := exitCode(badEnd{work.Errorf(work.Illegal, "x")}); got != 8 {
		t.Errorf("a bad end: exit %d", got)
	}
}

func TestInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r := run(ctx, &fake{}, nil, "events"); r.code != 130 || r.err != "error: interrupted\n" {
		t.Errorf("events: %+v", r)
	}
	serve := func(err error) func(*Deps) {
		return func(d *Deps) { d.Serve = func(context.Context, ServeOptions) error { return err } }
	}
	if r := run(ctx, nil, serve(nil), "serve"); r.code != 0 {
		t.Errorf("a server that was stopped: %+v", r)
	}
	if r := run(ctx, nil, serve(work.Errorf(work.Invalid, "bad settings")), "serve"); r.code != 2 {
		t.Errorf("a server that failed meanwhile: %+v", r)
	}
}

func TestUsageErrors(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ args, want string }{
		"misspelt command":       {"tsk list", "error: claudomator has no command \"tsk\"\nhint: did you mean `claudomator task`?"},
		"misspelt subcommand":    {"task crate --name x", "error: claudomator task has no command \"crate\"\nhint: did you mean `claudomator task create`?"},
		"foreign subcommand":     {"merge frobnicate", "hint: one of: abort, continue, list, open, start, status"},
		"group alone":            {"role", "error: claudomator role needs a command\nhint: one of: list, set, show"},
		"misspelt flag":          {"task create --nmae x", "error: unknown flag: --nmae\nhint: did you mean --name?"},
		"unknown flag":           {"task list --frobnicate", "error: unknown flag: --frobnicate\nhint: see `claudomator task list --help`"},
		"missing argument":       {"task show", "error: claudomator task show needs ID\nhint: see `claudomator task show --help`"},
		"too many arguments":     {"task show a b", "error: claudomator task show does not take \"b\""},
		"bad format":             {"task list -o yaml", "must be text or json"},
		"bad duration":           {"task wait x --timeout soon", "invalid argument \"soon\" for \"--timeout\""},
		"negative timeout":       {"task wait x --timeout -1s", "--timeout must not be negative"},
		"unknown state":          {"task wait x --for DONE", "error: there is no state \"DONE\"\nhint: one of: PENDING, "},
		"no name":                {"task create --project p", "error: a task needs a name"},
		"two instructions":       {"task create --name x --instructions a --instructions-file b", "instructions"},
		"argv no JSON":           {"task create --name x --command sh", "--command takes a JSON list of texts"},
		"argv no texts":          {"role set checker --command [1]", "--command takes a JSON list of texts"},
		"flag beside file":       {"task create -f x.yaml --name y", "error: --name does not go with a task file"},
		"no comment":             {"task reject x", "error: claudomator task reject needs a text"},
		"two texts":              {"task answer x yes -m no", "takes one text"},
		"bad finding":            {"task reject x --at file", "--at takes FILE[:LINE]=TEXT"},
		"bad line":               {"task reject x --at a.go:z=w", "line \"z\""},
		"land or not":            {"task accept x --land --no-land", "land"},
		"nothing to set":         {"task set x", "nothing to change was given"},
		"bad pair":               {"project add p --env A", "--env takes NAME=VALUE"},
		"bad shell":              {"completion csh", "there is no completion for \"csh\""},
		"file that is not there": {"task create -f testdata/none.yaml", "error: read the file: open testdata/none.yaml"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := run(t.Context(), &fake{}, nil, strings.Fields(tt.args)...)
			if r.code != 2 || r.out != "" || !strings.HasPrefix(r.err, "error: ") || !strings.Contains(r.err, tt.want) {
				t.Errorf("exit %d, out %q, errors %q; want exit 2 and %q", r.code, r.out, r.err, tt.want)
			}
			r = run(t.Context(), &fake{}, nil, append([]string{"-o", "json"}, strings.Fields(tt.args)...)...)
			if !json.Valid([]byte(r.err)) && name != "bad format" {
				t.Errorf("no JSON: %q", r.err)
			}
		})
	}
}

// TestAMistakeInEveryCommand: whichever command it is, a wrong flag and too many words
// are wrong use, nothing is done, and the way to its help is told.
func TestAMistakeInEveryCommand(t *testing.T) {
	t.Parallel()
	many := strings.Fields("a b c d e f g")
	for _, command := range Commands() {
		words := strings.Fields(command)
		for what, args := range map[string][]string{"--frobnicate": {"--frobnicate"}, "\"": many} {
			r := run(t.Context(), &fake{}, nil, append(slices.Clone(words), args...)...)
			if r.code != 2 || r.out != "" || !strings.HasPrefix(r.err, "error: ") || !strings.Contains(r.err, what) || !strings.Contains(r.err, "\nhint: ") {
				t.Errorf("%s %s: exit %d, out %q, errors %q", command, strings.Join(args, " "), r.code, r.out, r.err)
			}
		}
	}
}

// TestLocate: where the server is looked for, and which token it gets.
func TestLocate(t *testing.T) {
	t.Parallel()
	dir, empty := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{"server": "http://127.0.0.1:7420\n", "token": "local\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tests := map[string]struct {
		args, environ []string
		want          string // server and token, or the error
		code          int
	}{
		"named":                  {nil, []string{"CLAUDOMATOR_SERVER=http://s", "CLAUDOMATOR_TOKEN=t"}, "http://s t", 0},
		"flag wins":              {[]string{"--server", "http://f"}, []string{"CLAUDOMATOR_SERVER=http://s", "CLAUDOMATOR_TOKEN=t"}, "http://f t", 0},
		"local":                  {nil, []string{"CLAUDOMATOR_DATA_DIR=" + dir}, "http://127.0.0.1:7420 local", 0},
		"local by flag":          {[]string{"--data-dir", dir}, []string{"CLAUDOMATOR_DATA_DIR=" + empty}, "http://127.0.0.1:7420 local", 0},
		"local, own token":       {nil, []string{"CLAUDOMATOR_DATA_DIR=" + dir, "CLAUDOMATOR_TOKEN=t"}, "http://127.0.0.1:7420 t", 0},
		"local server named":     {[]string{"--server", "http://127.0.0.1:7420/"}, []string{"CLAUDOMATOR_DATA_DIR=" + dir}, "http://127.0.0.1:7420 local", 0},
		"no token for strangers": {[]string{"--server", "http://evil"}, []string{"CLAUDOMATOR_DATA_DIR=" + dir}, "error: there is no token for http://evil", 5},
		"no server":              {nil, []string{"CLAUDOMATOR_DATA_DIR=" + empty}, "error: no server is running for " + empty + "\nhint: start one: claudomator serve", 7},
		"no home":                {nil, nil, "error: no server is named", 7},
		"default folder":         {nil, []string{"HOME=/nowhere"}, "error: no server is running for /nowhere/.local/share/claudomator", 7},
		"data home":              {nil, []string{"HOME=/nowhere", "XDG_DATA_HOME=/data-home"}, "error: no server is running for /data-home/claudomator", 7},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ""
			r := run(t.Context(), nil, func(d *Deps) {
				d.Environ = tt.environ
				d.Connect = func(_ context.Context, server, token string) (app.API, error) {
					got = server + " " + token
					return &fake{}, nil
				}
			}, append(tt.args, "attention")...)
			if r.code != tt.code || !strings.Contains(got+r.err, tt.want) {
				t.Errorf("exit %d, connected to %q, errors %q; want exit %d and %q", r.code, got, r.err, tt.code, tt.want)
			}
		})
	}
}

// TestServerCommands: raw settings go through as they were given.
func TestServerCommands(t *testing.T) {
	t.Parallel()
	var got ServeOptions
	change := func(d *Deps) {
		d.Serve = func(_ context.Context, o ServeOptions) error { got = o; return nil }
		d.Doctor = func(context.Context, DoctorOptions) ([]Check, error) {
			return []Check{{"git", CheckOK, "2.50", ""}, {"disk", CheckFail, "full", "make room"}}, nil
		}
		d.Demo = func(_ context.Context, o DemoOptions) error {
			if !o.Headless || !o.JSON {
				t.Errorf("demo options: %+v", o)
			}
			return nil
		}
	}
	run(t.Context(), nil, change, "serve", "--addr", "127.0.0.1:0", "--data-dir", "d", "--config", "c.yaml")
	if want := (ServeOptions{Settings{"c.yaml", map[string]string{"addr": "127.0.0.1:0", "data_dir": "d"}}}); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("serve got %v, want %v", got, want)
	}
	run(t.Context(), nil, change, "demo", "--headless", "-o", "json")
	r := run(t.Context(), nil, change, "doctor")
	if r.code != 7 || r.out != "STATUS  CHECK  FOUND\nok      git    2.50\nfail    disk   full (make room)\n" || !strings.Contains(r.err, "1 check failed") {
		t.Errorf("doctor: %+v", r)
	}
	if r := run(t.Context(), nil, change, "version"); !strings.HasPrefix(r.out, "claudomator 1.2.3 (go") {
		t.Errorf("version: %+v", r)
	}
	for _, name := range []string{"bash", "zsh", "fish", "powershell"} {
		if r := run(t.Context(), nil, nil, "completion", name); r.code != 0 || !strings.Contains(r.out, "claudomator") {
			t.Errorf("completion %s: %+v", name, r)
		}
	}
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	api := &fake{tasks: []*app.TaskView{{Task: work.Task{ID: "abcdefghijklmnop", Name: "Fix it", State: work.Ready}}}}
	if r := run(t.Context(), api, nil, "__complete", "task", "show", ""); !strings.HasPrefix(r.out, "abcdefgh\tFix it (READY)\n") {
		t.Errorf("tasks: %+v", r)
	}
	api.projects = []*work.Project{{Name: "shop"}}
	if r := run(t.Context(), api, nil, "__complete", "task", "create", "--project", ""); !strings.HasPrefix(r.out, "shop\n") {
		t.Errorf("projects: %+v", r)
	}
	if r := run(t.Context(), nil, nil, "__complete", "task", "show", ""); r.code != 0 || !strings.HasPrefix(r.out, ":4\n") {
		t.Errorf("no server: %+v", r)
	}
}

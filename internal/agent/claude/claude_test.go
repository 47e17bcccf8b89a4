package claude

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudomator/claudomator/internal/agent"
	"github.com/claudomator/claudomator/internal/agent/agenttest"
	"github.com/claudomator/claudomator/internal/sandbox"
)

// fake speaks as the program does: it runs a shell text and reports its status
// as a result.
const fake = `if [ "$1" = --version ]; then echo "2.1.332 (Claude Code)"; exit; fi
sh -c "$1"; status=$?
if [ $status = 0 ]; then printf '\n{"type":"result","subtype":"success","is_error":false,"result":"done"}\n'
else printf '\n{"type":"result","subtype":"success","is_error":true,"result":"it failed"}\n'; fi
exit $status`

func TestConformance(t *testing.T) {
	t.Parallel()
	agenttest.Run(t, func(_ *testing.T, runner *agent.Runner) agenttest.Harness {
		return agenttest.Harness{
			Agent: New(runner, []string{"sh", "-c", fake, "claude"}),
			Shell: func(_ *testing.T, job *agent.Job, text string) {
				job.Command = []string{"sh", "-c", fake, "claude", text}
			},
			Missing: func(_ *testing.T, job *agent.Job) { job.Command = []string{"no-such-program-here"} },
		}
	})
}

// machine is a runner of this machine, and the folder of runs' private files.
func machine(t testing.TB) (runner *agent.Runner, private string) {
	t.Helper()
	host, err := sandbox.Open(sandbox.Options{StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	private = filepath.Join(t.TempDir(), "private")
	return agent.NewRunner(agent.RunnerOptions{Host: host, Environ: append(os.Environ(), "CLAUDE_CONFIG_DIR=/config"), Private: private, Now: time.Now}), private
}

// stays is the end of a text whose program does not leave.
const stays = "sleep 3600"

// play runs a shell text in place of the program.
func play(t *testing.T, text string, change ...func(*Agent, *agent.Job)) (agent.Result, []agent.Event) {
	t.Helper()
	runner, private := machine(t)
	a := New(runner, nil)
	job := agent.Job{
		ID: strings.NewReplacer("/", "-", " ", "-", ",", "-").Replace(t.Name()) + "-" + rand.Text(), Dir: t.TempDir(), Prompt: "do it\n",
		Command: []string{"sh", "-c", "cat >/dev/null\n" + text, "claude"},
		Limits:  agent.Limits{StopGrace: time.Minute, Linger: time.Minute}, // it leaves by itself, on a busy machine, too
	}
	if strings.HasSuffix(text, stays) {
		job.Limits.Linger, job.Limits.StopGrace = 500*time.Millisecond, time.Second // it does not follow
	}
	for _, c := range change {
		c(a, &job)
	}
	var events []agent.Event
	result, err := a.Run(t.Context(), job, agent.SinkFunc(func(e agent.Event) { events = append(events, e) }))
	if err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(private, "*")); left != nil {
		t.Errorf("left after the run: %v", left)
	}
	return result, events
}

func TestInvocation(t *testing.T) {
	t.Parallel()
	mcp := func(_ *Agent, job *agent.Job) {
		job.MCP = agent.Endpoint{URL: "http://127.0.0.1:1/mcp/run", Token: "run-secret"}
	}
	for _, tt := range []struct {
		name   string
		change func(*Agent, *agent.Job)
		want   []string
		not    []string
	}{
		{"plain", func(*Agent, *agent.Job) {}, []string{"-p", "--output-format", "stream-json", "--verbose", "--strict-mcp-config", "--setting-sources=user", "--dangerously-skip-permissions"}, nil},
		{"all", func(_ *Agent, job *agent.Job) {
			job.Model, job.MaxTurns, job.Resume, job.Limits.BudgetUSD = "opus", 7, "11111111-2222-4333-8444-555555555555", 2.5
		}, []string{"--model=opus", "--max-turns=7", "--max-budget-usd=2.5", "--resume=11111111-2222-4333-8444-555555555555"}, nil},
		{"allowed tools", func(_ *Agent, job *agent.Job) { job.AllowedTools = []string{"Read", "Bash(git log *)"} },
			[]string{"--permission-mode=dontAsk", "--allowedTools=mcp__claudomator", "--allowedTools=Read", "--allowedTools=Bash(git log *)"},
			[]string{"--dangerously-skip-permissions"}},
		{"values that look like options", func(_ *Agent, job *agent.Job) {
			job.Model, job.AllowedTools = "--dangerously-skip-permissions", []string{"--dangerously-skip-permissions"}
		}, []string{"--model=--dangerously-skip-permissions", "--allowedTools=--dangerously-skip-permissions"}, []string{"--dangerously-skip-permissions"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, events := play(t, `for a in "$@"; do echo "$a"; case $a in --mcp-config=*) f=${a#*=}; ls -l "$f"; cat "$f"; echo;; esac; done; env`, mcp, tt.change)
			var lines []string
			for _, e := range events {
				lines = append(lines, e.Text)
			}
			for _, want := range append(tt.want, "CLAUDE_CODE_MAX_RETRIES=2", "ENABLE_TOOL_SEARCH=false", "DISABLE_AUTOUPDATER=1", "CLAUDE_CONFIG_DIR=/config",
				"CLAUDOMATOR_MCP_TOKEN=run-secret",
				`{"mcpServers":{"claudomator":{"headers":{"Authorization":"Bearer ${CLAUDOMATOR_MCP_TOKEN}"},"type":"http","url":"http://127.0.0.1:1/mcp/run"}}}`) {
				if !slices.Contains(lines, want) {
					t.Errorf("no %s in\n%s", want, strings.Join(lines, "\n"))
				}
			}
			for _, line := range lines {
				if slices.Contains(tt.not, line) || strings.Contains(line, "run-secret") && line != "CLAUDOMATOR_MCP_TOKEN=run-secret" {
					t.Errorf("unwanted: %s", line)
				}
			}
			if !slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, "-rw-------") && strings.HasSuffix(l, "mcp.json") }) {
				t.Error("the configuration is not for its owner alone")
			}
			if root := slices.Contains(lines, "IS_SANDBOX=1"); root != (os.Geteuid() == 0) {
				t.Errorf("IS_SANDBOX set: %v", root)
			}
		})
	}
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	runner, _ := machine(t)
	for _, tt := range []struct{ says, version, err string }{
		{"2.1.332 (Claude Code)", "2.1.332", ""},
		{"2.1.200 (Claude Code)", "2.1.200", ""},
		{"2.10.0 (Claude Code)", "2.10.0", ""},
		{"3 (Claude Code)", "3", ""},
		{"2.1.99 (Claude Code)", "2.1.99", `2.1.200 is the oldest that is understood`},
		{"1.0.300 (Claude Code)", "1.0.300", `2.1.200 is the oldest that is understood`},
		{"claude 3", "", `is not Claude Code: asked for its version it says "claude 3"`},
	} {
		d, err := New(runner, []string{"sh", "-c", "echo '" + tt.says + "'"}).Describe(t.Context())
		if d.Version != tt.version || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: %+v, %v", tt.says, d, err)
		}
	}
	if err := New(runner, []string{"no-such-program-here"}).Installed(); err == nil {
		t.Error("what is not there is installed")
	}
	if err := New(runner, []string{"sh"}).Installed(); err != nil {
		t.Error(err)
	}
}

// A run is judged by what the program reports, its status and its signals
// together; the raw facts stay (B39).
func TestExitCodesLie(t *testing.T) {
	t.Parallel()
	const (
		good = `echo '{"type":"result","subtype":"success","is_error":false,"result":"done"}'; `
		bad  = `echo '{"type":"result","subtype":"success","is_error":true,"result":"API Error: why"}'; `
	)
	for _, tt := range []struct {
		name, text string
		want       agent.Outcome
		rule, err  string
		fault      bool
	}{
		{"success", good, agent.Success, "reported success", "", false},
		{"marked as error, exit 0", bad, agent.Failed, "reported failure", "API Error: why", false},
		{"text of an error alone, exit 0", `echo API Error`, agent.Failed, "exit 0 without a report", "exit 0 without a report: API Error", true},
		{"empty, exit 0", ``, agent.Failed, "exit 0 without a report", "exit 0 without a report", true},
		{"exit 1 after success", good + `exit 1`, agent.Success, "reported success", "", false},
		{"killed after success", good + `kill -9 $$`, agent.Success, "reported success", "", false},
		{"stays after success", good + stays, agent.Success, "reported success", "", false},
		{"stays after failure", bad + stays, agent.Failed, "reported failure", "API Error: why", false},
		{"exit 1 without a word", `exit 1`, agent.Failed, "exit status without a report", "exit status 1", false},
		{"killed", `kill -9 $$`, agent.Failed, "signal without a report", "ended by signal: killed", false},
		{"unknown subtype", `echo '{"type":"result","subtype":"error_of_the_future","is_error":false}'`, agent.Failed, "reported failure", "error_of_the_future", false},
		{"denied to the agent", `echo '{"type":"result","subtype":"success","is_error":false,"result":"I was not permitted to write","permission_denials":[{"tool_name":"Write"}]}'`,
			agent.Success, "reported success", "", false}, // that nothing was changed is for the one who reviews
		{"first result stands", bad + good, agent.Failed, "reported failure", "API Error: why", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			result, _ := play(t, tt.text)
			if result.Outcome != tt.want || result.Rule != tt.rule || result.Error != tt.err || result.AgentFault != tt.fault {
				t.Errorf("%s by %q: %q, fault %v", result.Outcome, result.Rule, result.Error, result.AgentFault)
			}
		})
	}
}

// A conversation that cannot be gone on with is known as such (B42).
func TestNoResume(t *testing.T) {
	t.Parallel()
	const id = "11111111-2222-4333-8444-555555555555"
	resume := func(_ *Agent, job *agent.Job) { job.Resume = id }
	for _, tt := range []struct {
		name, text string
		noResume   bool
		want       agent.Outcome
	}{
		{"unknown, in words alone", `echo "No conversation found with session ID: ` + id + `" >&2; exit 1`, true, agent.Failed},
		{"unknown", `echo '{"type":"result","subtype":"error_during_execution","is_error":true,"errors":["No conversation found with session ID: ` + id + `"]}'; exit 1`, true, agent.Failed},
		{"too long", `echo '{"type":"result","subtype":"success","is_error":true,"terminal_reason":"prompt_too_long","result":"Prompt is too long"}'; exit 1`, true, agent.Failed},
		{"another one", `echo '{"type":"system","subtype":"init","session_id":"other"}'; echo '{"type":"result","subtype":"success","session_id":"other","is_error":false}'`, true, agent.Failed},
		{"the same", `echo '{"type":"system","subtype":"init","session_id":"` + id + `"}'; echo '{"type":"result","subtype":"success","session_id":"` + id + `","is_error":false}'`, false, agent.Success},
		{"an error of another kind", `echo '{"type":"result","subtype":"success","is_error":true,"result":"API Error: 400"}'; exit 1`, false, agent.Failed},
		{"said by a tool", `echo '{"type":"user","message":{"content":[{"type":"tool_result","content":"No conversation found"}]}}'; echo '{"type":"result","subtype":"success","is_error":false}'`, false, agent.Success},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			result, _ := play(t, tt.text, resume)
			if result.NoResume != tt.noResume || result.Outcome != tt.want {
				t.Errorf("%s (%s), no resume %v", result.Outcome, result.Error, result.NoResume)
			}
		})
	}
	if result, _ := play(t, `echo "No conversation found" >&2; exit 1`); result.NoResume {
		t.Error("a new conversation cannot be resumed")
	}
}

// What goes on in the background when the agent says that it is done (B35).
func TestBackgroundWork(t *testing.T) {
	t.Parallel()
	const (
		begun   = `echo '{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"make all","run_in_background":true}}]}}'; echo '{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"running"}]},"tool_use_result":{"backgroundTaskId":"b1"}}'; `
		tells   = `echo '{"type":"system","subtype":"background_tasks_changed","tasks":[{"task_id":"b1","description":"make all"}]}'; `
		none    = `echo '{"type":"system","subtype":"background_tasks_changed","tasks":[]}'; `
		done    = `echo '{"type":"result","subtype":"success","is_error":false,"result":"running in the background, I will report"}'; `
		ended   = `echo '{"type":"system","subtype":"task_notification","task_id":"b1","status":"completed"}'; `
		stopped = `echo '{"type":"system","subtype":"task_notification","task_id":"b1","status":"stopped"}'; `
		turn    = `echo '{"type":"assistant","message":{"content":[{"type":"text","text":"It has ended."}]}}'; `
		warning = "the agent said that it was done while this was still under way in the background, and it was ended unfinished: make all"
	)
	for _, tt := range []struct {
		name, text string
		warnings   []string
	}{
		{"left running by a program that leaves", begun + done, []string{warning}},
		{"left running, as the program tells", tells + done + stopped + none, []string{warning}},
		{"waited for in vain", begun + done + stays, []string{warning}},
		{"ends, and the agent goes on", begun + tells + done + `sleep 0.1; ` + ended + none + turn + done, nil},
		{"ended before", begun + tells + ended + none + done, nil},
		{"stopped by the agent before", begun + tells + stopped + none + done, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			result, _ := play(t, tt.text, func(a *Agent, _ *agent.Job) {
				if a.wait = time.Minute; strings.HasSuffix(tt.text, stays) {
					a.wait = 2 * time.Second
				}
			})
			if diff := cmp.Diff(tt.warnings, result.Warnings); diff != "" || result.Outcome != agent.Success {
				t.Errorf("%s (%s), warnings (-want +got):\n%s", result.Outcome, result.Error, diff)
			}
		})
	}
	// Waited for longer than the silence limit allows: what was reported stands.
	for silence := time.Second; ; silence *= 3 {
		var dir string
		began := time.Now()
		result, _ := play(t, begun+done+"echo >said; "+stays, func(_ *Agent, job *agent.Job) { dir, job.Limits.Silence = job.Dir, silence })
		said, err := os.Stat(filepath.Join(dir, "said"))
		if silence < time.Minute && (err != nil || said.ModTime().Sub(began) > silence/8) {
			continue // perhaps it was ended before its report came here
		}
		if result.Outcome != agent.Success || len(result.Warnings) != 1 {
			t.Errorf("%+v", result)
		}
		break
	}
	// The agent went on and was cut off in that turn: the earlier report does not count.
	result, _ := play(t, begun+done+ended+turn+`exit 1`)
	if result.Outcome != agent.Failed {
		t.Errorf("%+v", result)
	}
}

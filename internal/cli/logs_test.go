package cli

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

const lines = `{"at":"2026-03-01T12:00:00Z","kind":"log","stream":"stdout","text":"plain\u001b[2J"}
{"kind":"log","stream":"stderr","text":"to stderr"}
{"kind":"log","stream":"notice","text":"timeout","cut":12}
{"kind":"text","text":"I will\nlook"}
{"kind":"thought","text":"hm"}
{"kind":"tool_call","tool":{"name":"Bash","input":"{\"command\":\"ls\"}"}}
{"kind":"tool_call","tool":{"name":"Bash","output":"a\nb\n","done":true}}
{"kind":"tool_call","tool":{"name":"Bash","output":"no","done":true,"failed":true}}
{"kind":"file_edit","edit":{"path":"a.go","diff":"-x\n+y\n"}}
{"kind":"usage","usage":{"input":1}}
{"kind":"question","question":{"text":"Which?","options":["a","b"]}}
{"kind":"limit","limit":{"kind":"usage","reset_at":"2026-03-01T15:00:00Z","text":"limit reached"}}
{"kind":"blocker","text":"no network"}
{"kind":"raw","text":"???"}
{"kind":"later","text":"of a newer server"}
not json
`

func logged(text string) *fake {
	return &fake{
		tasks:      []*app.TaskView{task("a", "RUNNING")},
		executions: []*work.Execution{{ID: "x1", Number: 1, Kind: work.AgentRun, State: work.ExecutionEnded}, {ID: "x2", Number: 2, Kind: work.GateRun, State: work.ExecutionEnded}},
		log:        func() (string, error) { return text, nil },
	}
}

func TestLogs(t *testing.T) {
	t.Parallel()
	r := run(t.Context(), logged(lines), nil, "task", "logs", "a")
	golden(t, "output/task-logs", r.String())
	r = run(t.Context(), logged(lines), func(d *Deps) { d.Terminal = true }, "task", "logs", "a")
	golden(t, "output/task-logs-terminal", strings.ReplaceAll(r.String(), "\x1b", "␛"))
	if r := run(t.Context(), logged(lines), nil, "task", "logs", "a", "-o", "json"); r.out != lines {
		t.Errorf("json: %q", r.out)
	}
	if r := run(t.Context(), logged("half"), nil, "task", "logs", "a"); r.out != "half\n" {
		t.Errorf("a line that was cut off: %+v", r)
	}
	if r := run(t.Context(), logged(""), nil, "task", "logs", "a", "--execution", "7"); r.code != 3 {
		t.Errorf("no such execution: %+v", r)
	}
	none := logged("")
	none.executions = nil
	if r := run(t.Context(), none, nil, "task", "logs", "a"); r.code != 3 || !strings.Contains(r.err, "hint: -f waits for it") {
		t.Errorf("not executed: %+v", r)
	}
	unwritten := logged("")
	unwritten.log = func() (string, error) { return "", work.Errorf(work.NotFound, "no transcript") }
	if r := run(t.Context(), unwritten, nil, "task", "logs", "a"); r.code != 0 || r.out != "" {
		t.Errorf("nothing printed: %+v", r)
	}
}

// TestLogsChoice: the newest run of the agent, unless another one is named.
func TestLogsChoice(t *testing.T) {
	t.Parallel()
	api := logged("")
	api.executions = append(api.executions, &work.Execution{ID: "x3", Number: 3, Kind: work.AgentRun}, &work.Execution{ID: "2x4", Number: 4, Kind: work.GateRun})
	for execution, want := range map[string]work.ExecutionID{"": "x3", "1": "x1", "2": "x2", "x2": "x2", "4": "2x4"} {
		got, err := (&transcript{api: api}).newest(t.Context(), "a", execution)
		if err != nil || got.ID != want {
			t.Errorf("%q: %v %v, want %s", execution, got, err, want)
		}
	}
}

// TestLogsFollow: it waits for the first execution, prints what grows, never
// half a line, and ends with the execution.
func TestLogsFollow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := logged("")
		api.executions = nil
		x := &work.Execution{ID: "x1", Number: 1, Kind: work.AgentRun, State: work.ExecutionRunning}
		api.stream = []step{
			{event: work.Event{Seq: 8, Task: "a"}},
			{event: work.Event{Seq: 9, Task: "a"}, do: func() { api.executions = []*work.Execution{x} }},
		}
		reads := 0
		api.log = func() (string, error) {
			switch reads++; reads {
			case 1:
				return "", work.Errorf(work.NotFound, "not yet")
			case 2:
				return "one\ntw", nil
			case 3:
				return "", work.Errorf(work.Unavailable, "restarting")
			case 4:
				x.State = work.ExecutionEnded // while it is read: there is more
				return "one\ntwo\n", nil
			}
			return "one\ntwo\nthree", nil
		}
		r := run(t.Context(), api, nil, "task", "logs", "a", "-f")
		if r.out != "one\ntwo\nthree\n" || r.code != 0 || reads != 5 {
			t.Errorf("%+v after %d reads", r, reads)
		}
	})
}

// TestLogsFollowNever: a task that ended without an execution is not followed
// for ever.
func TestLogsFollowNever(t *testing.T) {
	t.Parallel()
	api := logged("")
	api.executions, api.tasks = nil, []*app.TaskView{task("a", "CANCELLED")}
	if r := run(t.Context(), api, nil, "task", "logs", "a", "-f"); r.code != 3 {
		t.Errorf("%+v", r)
	}
}

package agents_test

import (
	"strings"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
	"github.com/claudomator/claudomator/test/agents/fakellm"
)

// scripts are what the model says, by the word in the prompt.
func scripts() fakellm.Scripts {
	return fakellm.Scripts{
		"edit": {
			{Text: "I will make the file.", Calls: []fakellm.Call{{Shell: "echo hello >made.txt; cat made.txt; ps -ww -eo args >$HOME/ps.out; env >$HOME/env.out"}},
				Usage: fakellm.Usage{Input: 1000, Output: 50, CacheRead: 200}},
			{Text: "Now the summary.", Expect: "hello", Calls: []fakellm.Call{{Tool: "report_summary", Args: map[string]any{"text": "I made made.txt."}}},
				Usage: fakellm.Usage{Input: 1200, Output: 40, CacheRead: 300}},
			{Text: "DONE", Expect: "ok", Usage: fakellm.Usage{Input: 1300, Output: 30, CacheRead: 400}},
		},
	}
}

func cases() map[string]func(*world) {
	return map[string]func(*world){
		"edit": testEdit,
	}
}

// testEdit: shell and run tools work, the result lands, what it took is known,
// and the run's token is nowhere.
func testEdit(w *world) {
	w.serve()
	id := w.start("edit")
	task := w.reaches(id, work.Ready)
	if task.Summary != "I made made.txt." {
		w.Errorf("summary %q", task.Summary)
	}
	x := w.run(id, 1)
	if x.Outcome != work.Success || x.SessionHandle == "" || w.program.costs != (x.CostUSD > 0) {
		w.Errorf("execution %+v", x)
	}
	if x.Usage.Input < 3500 || x.Usage.Output < 120 || x.Usage.CacheRead < 900 {
		w.Errorf("usage %+v", x.Usage)
	}
	text := w.transcript(x)
	for _, want := range []string{`"kind":"text"`, `"kind":"tool_call"`, "made.txt", "report_summary", "DONE"} {
		if !strings.Contains(text, want) {
			w.Errorf("the transcript lacks %s", want)
		}
	}
	w.secrets(text)
	if _, err := w.api.AcceptTask(w.Context(), id, app.AcceptInput{}); err != nil {
		w.Fatal(err)
	}
	if _, err := w.api.StartMerge(w.Context(), id, ""); err != nil {
		w.Fatal(err)
	}
	w.await(id, "landed", func(t *app.TaskView) bool { return t.Landed != nil })
	if got := w.git("show", "main:made.txt"); got != "hello\n" {
		w.Errorf("main has %q", got)
	}
}

// secrets looks for the run's token and the key where they must not be, in what
// the shell of the script saw.
func (w *world) secrets(transcript string) {
	w.Helper()
	env := make(map[string]string)
	for line := range strings.Lines(w.read("home/env.out")) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		env[name] = value
	}
	token := env["CLAUDOMATOR_MCP_TOKEN"]
	if token == "" || env["CLAUDOMATOR_TASK_ID"] == "" {
		w.Fatalf("the agent's environment is not that of a run: %v", env)
	}
	if _, ok := env["DATABASE_PASSWORD"]; ok {
		w.Error("the agent has a variable of the server")
	}
	for where, text := range map[string]string{"command lines": w.read("home/ps.out"), "the server's log": w.read("server.log"), "the transcript": transcript} {
		for what, secret := range map[string]string{"the run's token": token, "the key": key} {
			if strings.Contains(text, secret) {
				w.Errorf("%s is in %s", what, where)
			}
		}
	}
	if !strings.Contains(w.read("home/ps.out"), w.program.name) {
		w.Error("ps did not see the program")
	}
}

package agents_test

import (
	"maps"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
	"github.com/claudomator/claudomator/test/agents/fakellm"
)

// scripts are what the model says, by the word in the prompt.
func scripts() fakellm.Scripts {
	all := fakellm.Scripts{
		"edit": {
			{Text: "I will make the file.", Calls: []fakellm.Call{{Shell: "echo hello >made.txt; cat made.txt; ps -ww -eo args >$HOME/ps.out; env >$HOME/env.out"}},
				Usage: fakellm.Usage{Input: 1000, Output: 50, CacheRead: 200}},
			{Text: "Now the summary.", Expect: "hello", Calls: []fakellm.Call{{Tool: "report_summary", Args: map[string]any{"text": "I made made.txt."}}},
				Usage: fakellm.Usage{Input: 1200, Output: 40, CacheRead: 300}},
			{Text: "DONE", Expect: "ok", Usage: fakellm.Usage{Input: 1300, Output: 30, CacheRead: 400}},
		},
		"ask": {
			{Text: "I have a question.", Calls: []fakellm.Call{{Shell: "echo half >half"}}},
			{Calls: []fakellm.Call{{Tool: "ask_user", Args: map[string]any{"question": "Which colour?", "options": []string{"red", "blue"}}}}},
			{Text: "I wait for the answer."},
		},
		"answered": {
			{Text: "I go on.", Calls: []fakellm.Call{{Shell: "cat half; echo blue >colour"}}},
			{Text: "DONE", Expect: "half"},
		},
		"once":   {{Text: "AFTER THE LIMIT", Fault: &fakellm.Fault{Kind: fakellm.RateLimit, Times: 1, RetryAfter: 1}}},
		"broken": {{Fault: &fakellm.Fault{Kind: fakellm.Broken}}},
		"denied": {{Fault: &fakellm.Fault{Kind: fakellm.Denied}}},
		"limit":  {{Fault: &fakellm.Fault{Kind: fakellm.UsageLimit, ResetsIn: 7200}}},
		"hang":   {{Fault: &fakellm.Fault{Kind: fakellm.Hang}}},
		"say":    {{Text: "SAID"}},
		// A process that left its session twice and ignores requests, while the shell goes on.
		"daemon": {{Calls: []fakellm.Call{{Shell: `(setsid sh -c '(trap "" TERM INT HUP; setsid sh -c "trap \"\" TERM INT HUP; echo \$\$ >$HOME/daemon.new; mv $HOME/daemon.new $HOME/daemon; while :; do sleep 1; done" &) ; exit 0' >/dev/null 2>&1 </dev/null &); sleep 600`}}}},
	}
	maps.Copy(all, claudeScripts())
	maps.Copy(all, codexScripts())
	return all
}

// cases are for every program; a program may have further ones.
func cases() map[string]func(*world) {
	return map[string]func(*world){
		"edit":              testEdit,
		"question":          testQuestion,
		"lost conversation": testLostConversation,
		"429 once":          testOnce,
		"500 for ever":      func(w *world) { testFault(w, "broken", work.Overloaded) },
		"wrong key":         func(w *world) { testFault(w, "denied", work.FailedRun) },
		"usage limit":       testUsageLimit,
		"not reached":       testNotReached,
		"hang":              testHang,
		"cancel":            testCancel,
		"in the foreground": testForeground,
	}
}

// testForeground: one command, from words to a landed commit, with a server of its
// own that is gone with it.
func testForeground(w *world) {
	w.configure()
	c := exec.CommandContext(w.Context(), w.bin, "run", "--agent", w.program.name, "--repo", w.path("R"), "--yes", "Follow SCRIPT:edit to its end.")
	c.Dir, c.Env = w.path("R"), w.environ
	out, err := c.CombinedOutput()
	if err != nil {
		w.Errorf("run: %v", err)
	}
	wanted := []string{"I will make the file.", "report_summary", "I made made.txt.", "made.txt", "landed on main"}
	if w.program.costs {
		wanted = append(wanted, "$0.")
	}
	for _, want := range wanted {
		if !strings.Contains(string(out), want) {
			w.Errorf("run does not say %q", want)
		}
	}
	if got := w.read("R/made.txt"); got != "hello\n" {
		w.Errorf("landed: %q", got)
	}
	w.leavesNothing()
	if w.Failed() {
		w.Logf("run said:\n%s", out)
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

// testQuestion: the run ends with its question; the answer goes on in the same
// conversation and workspace.
func testQuestion(w *world) {
	w.serve()
	id := w.start("ask")
	task := w.reaches(id, work.Blocked)
	if task.Question == nil || task.Question.Text != "Which colour?" || len(task.Question.Options) != 2 {
		w.Fatalf("question %+v", task.Question)
	}
	// A program that is quick has ended by itself before the question ends it.
	if x := w.run(id, 1); x.Outcome != work.Asked && x.Outcome != work.Success || x.SessionHandle == "" {
		w.Errorf("execution %+v", x)
	}
	w.answer(id)
	w.reaches(id, work.Ready)
	first, second := w.run(id, 1), w.run(id, 2)
	if second.Outcome != work.Success || second.SessionHandle != first.SessionHandle {
		w.Errorf("first %+v\nsecond %+v", first, second)
	}
	if got := w.conversation(); got != "ask answered" {
		w.Errorf("the conversation went through %q", got)
	}
	// Each run's cost is its own, though the conversation's grows.
	if w.program.costs && second.CostUSD > 2*first.CostUSD {
		w.Errorf("cost of the first run %v, of the second %v", first.CostUSD, second.CostUSD)
	}
}

func (w *world) answer(id string) {
	w.Helper()
	if _, err := w.api.AnswerTask(w.Context(), id, "Blue: SCRIPT:answered"); err != nil {
		w.Fatal(err)
	}
}

// conversation are the scripts named in the last request of an agent.
func (w *world) conversation() string {
	w.Helper()
	var last []string
	for _, r := range w.model.Requests() {
		if r.Miss != "" {
			w.Errorf("the script could not go on: %s", r.Miss)
		}
		if r.Scripts != nil {
			last = r.Scripts
		}
	}
	return strings.Join(last, " ")
}

// testLostConversation: what the program knew of the conversation is gone; the
// task is begun again, once, with all that is known, and ends well.
func testLostConversation(w *world) {
	w.serve()
	id := w.start("ask")
	w.reaches(id, work.Blocked)
	first := w.run(id, 1)
	if err := os.RemoveAll(w.path("home/" + w.program.memory)); err != nil {
		w.Fatal(err)
	}
	w.answer(id)
	w.reaches(id, work.Ready)
	runs, err := w.api.Executions(w.Context(), id)
	if err != nil {
		w.Fatal(err)
	}
	last := runs[len(runs)-1]
	if last.Outcome != work.Success || last.SessionHandle == first.SessionHandle || len(runs) > 3 {
		w.Errorf("%d runs, the last one %+v", len(runs), last)
	}
}

// testOnce: one refused request is repeated by the program, and is seen.
func testOnce(w *world) {
	w.serve()
	id := w.start("once")
	x := w.run(id, 1)
	text := w.transcript(x)
	if x.Outcome != work.Success || !strings.Contains(text, "AFTER THE LIMIT") {
		w.Errorf("execution %+v", x)
	}
	if !strings.Contains(text, `"kind":"limit"`) {
		w.Error("the transcript does not show the retry")
	}
}

// testFault: a provider that fails for ever. Where it is overloaded the task
// waits to be repeated and no attempt is used up; else it has failed.
func testFault(w *world, script string, want work.Outcome) {
	w.serve()
	id := w.start(script)
	x := w.run(id, 1)
	if x.Outcome != want || x.Error == "" {
		w.Errorf("outcome %s (%s), want %s", x.Outcome, x.Error, want)
	}
	if want == work.FailedRun {
		w.reaches(id, work.Failed)
		return
	}
	task := w.reaches(id, work.Queued)
	if !task.WakeAt.After(x.EndedAt) || task.Reason == "" {
		w.Errorf("waits until %v: %s", task.WakeAt, task.Reason)
	}
}

// testUsageLimit: the task waits until the limit is over.
func testUsageLimit(w *world) {
	w.subscribed = true
	begun := time.Now()
	w.serve()
	id := w.start("limit")
	if x := w.run(id, 1); x.Outcome != work.Limited {
		w.Errorf("outcome %s: %s", x.Outcome, x.Error)
	}
	task := w.await(id, "waiting", func(t *app.TaskView) bool { return !t.WakeAt.IsZero() })
	if wait := task.WakeAt.Sub(begun); wait < 110*time.Minute || wait > 140*time.Minute || task.State != work.Queued {
		w.Errorf("%s, waits for %s: %s", task.State, wait, task.Reason)
	}
}

// testNotReached: nothing listens at the provider's address.
func testNotReached(w *world) {
	w.model.Close()
	w.config = append(w.config, "limits:", "  silence: 30s", "  task: 90s")
	testFault(w, "say", work.Overloaded)
}

// testHang: the provider never answers; the silence limit ends the run.
func testHang(w *world) {
	w.config = append(w.config, "limits:", "  silence: 25s") // it takes its time to start on a busy machine
	w.serve()
	id := w.start("hang")
	if x := w.run(id, 1); x.Outcome != work.Silent {
		w.Errorf("outcome %s: %s", x.Outcome, x.Error)
	}
	w.reaches(id, work.TimedOut)
	for _, p := range w.processes() {
		w.Errorf("alive after the run: %s", p)
	}
}

// testCancel: a cancel during a tool call ends all that the run has started.
func testCancel(w *world) {
	w.serve()
	id := w.start("daemon")
	w.await(id, "running its shell", func(*app.TaskView) bool {
		_, err := os.Stat(w.path("home/daemon"))
		return err == nil
	})
	if _, err := w.api.CancelTask(w.Context(), id); err != nil {
		w.Fatal(err)
	}
	x := w.run(id, 1)
	if x.Outcome != work.CancelledRun {
		w.Errorf("outcome %s: %s", x.Outcome, x.Error)
	}
	w.reaches(id, work.Cancelled)
	for _, p := range w.processes() {
		w.Errorf("alive after the run: %s", p)
	}
}

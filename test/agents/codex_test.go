package agents_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
	"github.com/claudomator/claudomator/test/agents/fakellm"
)

// codexScripts are for the cases of Codex alone.
func codexScripts() fakellm.Scripts {
	return fakellm.Scripts{
		// Its shell tool gives a command up to the background after yield_time_ms.
		"left": {
			{Text: "I start it.", Calls: []fakellm.Call{{Shell: "echo x >begun; sleep 600; echo finished >late", Args: map[string]any{"yield_time_ms": 250}}}},
			{Text: "It runs, I will report."},
		},
		"delegate": {
			{Text: "I delegate it.", Calls: []fakellm.Call{{Tool: "spawn_agent", Args: map[string]any{"message": "SCRIPT:hang"}}}},
			{Text: "It will report.", Expect: "agent_id"},
		},
		"toolong": {{Text: "DONE", Fault: &fakellm.Fault{Kind: fakellm.TooLong, Times: 1}}},
		"long": {
			{Text: "I read.", Calls: []fakellm.Call{{Shell: "cat $HOME/../data/private/*/prompt.md >$HOME/got; ls -lR $HOME/../data/private"}}},
			{Text: "DONE", Expect: `drwx------.*-rw-------.*prompt\.md`},
		},
		"kept": {
			{Text: "I look.", Calls: []fakellm.Call{{Shell: `sleep 1; env >$HOME/env.out; grep -rl -e "$CLAUDOMATOR_MCP_TOKEN" $HOME/.codex >$HOME/found; wc -l <$HOME/found`}}},
			{Text: "DONE"},
		},
		"nearly": {{Text: "DONE", Headers: map[string]string{
			"x-codex-primary-used-percent": "93", "x-codex-primary-window-minutes": "300", "x-codex-primary-reset-at": "{{now+1h}}",
		}}},
	}
}

func codexCases() map[string]func(*world) {
	return map[string]func(*world){
		"background work":       testCodexLeaves,
		"conversation too long": testCodexTooLong,
		"long prompt":           testCodexLongPrompt,
		"nearly at the limit":   testCodexWarns,
		"sub-agent":             testCodexDelegates,
		"usage of each run":     testCodexUsage,
		"what it keeps":         testCodexKeeps,
		"repository's settings": testCodexSettings,
	}
}

// testCodexLeaves: a command that Codex has left running is ended, and whoever
// reviews the work is told.
func testCodexLeaves(w *world) {
	w.serve()
	id := w.start("left")
	task := w.reaches(id, work.Ready)
	if task.Result == nil || !strings.Contains(strings.Join(task.Result.Warnings, "\n"), "sleep 600") {
		w.Errorf("result %+v", task.Result)
	}
	for _, p := range w.processes() {
		w.Errorf("alive after the run: %s", p)
	}
}

// testCodexDelegates: whoever reviews the work is told that Codex has given it to
// a sub-agent that had not ended.
func testCodexDelegates(w *world) {
	w.serve()
	id := w.start("delegate")
	task := w.reaches(id, work.Ready)
	if task.Result == nil || !strings.Contains(strings.Join(task.Result.Warnings, "\n"), "without waiting for a sub-agent: SCRIPT:hang") {
		w.Errorf("result %+v", task.Result)
	}
	w.conversation() // no request missed
}

// testCodexTooLong: a conversation that the model cannot take any more is begun
// again, once.
func testCodexTooLong(w *world) {
	w.serve()
	id := w.start("ask")
	w.reaches(id, work.Blocked)
	if _, err := w.api.AnswerTask(w.Context(), id, "Blue: SCRIPT:toolong"); err != nil {
		w.Fatal(err)
	}
	w.reaches(id, work.Ready)
	runs, err := w.api.Executions(w.Context(), id)
	if err != nil {
		w.Fatal(err)
	}
	last := runs[len(runs)-1]
	if last.Outcome != work.Success || last.SessionHandle == runs[0].SessionHandle || len(runs) > 3 {
		w.Errorf("%d runs, the last one %+v", len(runs), last)
	}
}

// testCodexLongPrompt: what Codex does not take as one message arrives whole,
// in a file that nobody else can read and that goes with the run. The model
// knows its script from the repository, not having read the prompt.
func testCodexLongPrompt(w *world) {
	w.write("R/AGENTS.md", "Follow SCRIPT:long to its end.\n")
	w.git("add", "AGENTS.md")
	w.git("commit", "-qm", "tell agents")
	w.serve()
	text := strings.Repeat("€ long instructions\n", 80_000) + "the very end"
	id := w.start("", func(in *app.TaskRequest) { in.Name, in.Agent.Instructions = "long", text })
	w.reaches(id, work.Ready)
	if got := w.read("home/got"); !strings.Contains(got, text) {
		w.Errorf("%d bytes arrived", len(got))
	}
	w.conversation() // no request missed
}

// testCodexWarns: what the provider says of the account's limit is shown.
func testCodexWarns(w *world) {
	w.serve()
	id := w.start("nearly")
	w.reaches(id, work.Ready)
	if text := w.transcript(w.run(id, 1)); !strings.Contains(text, `"kind":"warning","reset_at":"2`) || !strings.Contains(text, "93 % of the usage limit of 5 hours") {
		w.Errorf("transcript %s", text)
	}
}

// testCodexUsage: Codex counts over the conversation, each run is told its own.
func testCodexUsage(w *world) {
	w.serve()
	id := w.start("ask")
	w.reaches(id, work.Blocked)
	w.answer(id)
	w.reaches(id, work.Ready)
	var ours, theirs int64
	for n := range 2 {
		x := w.run(id, n+1)
		if x.Usage.Input <= 0 || x.Usage.Output <= 0 {
			w.Errorf("usage of run %d: %+v", n+1, x.Usage)
		}
		ours += x.Usage.Input + x.Usage.CacheRead + x.Usage.CacheWrite + x.Usage.Output
	}
	files, err := filepath.Glob(w.path("home/.codex/sessions/*/*/*/rollout-*.jsonl"))
	if err != nil || len(files) != 1 {
		w.Fatalf("conversations %v, %v", files, err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		w.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		var record struct {
			Payload struct {
				Type string
				Info struct {
					Total struct {
						All int64 `json:"total_tokens"`
					} `json:"total_token_usage"`
				}
			}
		}
		if json.Unmarshal([]byte(line), &record) == nil && record.Payload.Type == "token_count" && record.Payload.Info.Total.All > 0 {
			theirs = record.Payload.Info.Total.All
		}
	}
	if ours != theirs || theirs == 0 {
		w.Errorf("the runs together used %d tokens, the conversation %d", ours, theirs)
	}
}

// testCodexKeeps: Codex's folder has the conversation, and no secret of the run,
// neither while it goes on nor when it is over.
func testCodexKeeps(w *world) {
	w.serve()
	settings := w.read("home/.codex/config.toml")
	id := w.start("kept")
	w.reaches(id, work.Ready)
	if found := w.read("home/found"); found != "" {
		w.Errorf("while it runs the run's token is in %s", found)
	}
	_, after, _ := strings.Cut(w.read("home/env.out"), "CLAUDOMATOR_MCP_TOKEN=")
	token, _, _ := strings.Cut(after, "\n")
	if len(token) < 10 {
		w.Fatalf("token %q", token)
	}
	files := 0
	err := filepath.WalkDir(w.path("home/.codex"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if files++; strings.Contains(string(data), token) {
			w.Errorf("the run's token is in %s", path)
		}
		return err
	})
	if err != nil || files < 3 {
		w.Errorf("looked at %d files, %v", files, err)
	}
	if got := w.read("home/.codex/config.toml"); got != settings {
		w.Errorf("the user's settings are now:\n%s", got)
	}
}

// testCodexSettings: what a repository would set is not done, and nobody is
// asked about it.
func testCodexSettings(w *world) {
	w.write("R/.codex/config.toml", `model_provider = "elsewhere"
notify = ["touch", "`+w.path("notified")+`"]
[mcp_servers.claudomator]
command = "touch"
args = ["`+w.path("started")+`"]
`)
	w.git("add", "-f", ".codex")
	w.git("commit", "-qm", "set things")
	w.serve()
	id := w.start("edit")
	if task := w.reaches(id, work.Ready); task.Summary != "I made made.txt." {
		w.Errorf("summary %q", task.Summary)
	}
	for _, name := range []string{"notified", "started"} {
		if _, err := os.Stat(w.path(name)); err == nil {
			w.Errorf("the repository's setting was followed: %s", name)
		}
	}
}

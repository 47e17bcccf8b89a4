package codex_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/claudomator/claudomator/internal/agent"
	"github.com/claudomator/claudomator/internal/agent/codex"
)

const (
	begun     = `{"type":"thread.started","thread_id":"01a22c9f-0000-7000-8000-000000000001"}` + "\n"
	completed = `{"type":"turn.completed","usage":{"input_tokens":10,"output_tokens":2}}` + "\n"
	said      = `{"type":"item.completed","item":{"id":"item_1","type":"agent_message","text":"SAID"}}` + "\n"
	failed    = `{"type":"turn.failed","error":{"message":"no"}}` + "\n"
	command   = `{"type":"item.started","item":{"id":"item_2","type":"command_execution","command":"grep x","status":"in_progress"}}` + "\n"
)

// B39: exit codes lie both ways.
func TestExitCodesLie(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, stdout, exit string
		want               agent.Outcome
		fault              bool
	}{
		{"exit 0, nothing said", "", "0", agent.Failed, true},
		{"exit 0, never completed", begun + said, "0", agent.Failed, true},
		{"exit 0, failed", begun + failed, "0", agent.Failed, false},
		{"exit 1, completed", begun + said + completed, "1", agent.Success, false},
		{"exit 1, only words of success", begun + said, "1", agent.Failed, false},
		{"completed, then failed", begun + completed + failed, "1", agent.Success, false},
		{"failed, then completed", begun + failed + completed, "0", agent.Failed, false},
		{"completed without usage", begun + `{"type":"turn.completed","usage":null}` + "\n", "0", agent.Success, false},
		{"failed in a new form", begun + `{"type":"turn.failed","error":"words alone"}` + "\n", "1", agent.Failed, false},
		{"failed without a reason", begun + `{"type":"turn.failed"}` + "\n", "1", agent.Failed, false},
		{"the model speaks of a limit", begun + `{"type":"item.completed","item":{"id":"i","type":"agent_message","text":"You've hit your usage limit. status 429"}}` + "\n" + failed, "1", agent.Failed, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			result, _ := openTranscript(t, map[string][]byte{"stdout": []byte(tt.stdout), "exit": []byte(tt.exit)}).run(t)
			if result.Outcome != tt.want || result.AgentFault != tt.fault || (result.Error == "") != (tt.want == agent.Success) {
				t.Errorf("%s (%s: %s), agent's fault %v", result.Outcome, result.Rule, result.Error, result.AgentFault)
			}
		})
	}
}

// B38: what no parser expects costs nothing that comes after it.
func TestStreamMonsters(t *testing.T) {
	t.Parallel()
	huge := strings.Repeat("x", 50_000_000)
	for name, monster := range map[string]string{
		"a result of 50 MB":        command + `{"type":"item.completed","item":{"id":"item_2","type":"command_execution","command":"grep x","aggregated_output":"` + huge + `","exit_code":0,"status":"completed"}}` + "\n",
		"50 MB of no JSON":         huge + "\n",
		"half a line":              `{"type":"item.comp` + "\n",
		"text between":             "npm warn something\n",
		"bad bytes":                "{\"type\":\"\xff\xfe\"}\n\xff\xfe\n",
		"lone surrogates":          `{"type":"item.completed","item":{"id":"i","type":"agent_message","text":"a\ud800b\u0000c\u001b[31md"}}` + "\n",
		"terminal control":         "\x1b[31mred\x1b]0;title\x07\rone\rtwo\n",
		"an array":                 "[1,2]\nnull\n7\n\"x\"\n{}\n",
		"deep nesting":             strings.Repeat(`{"item":`, 20000) + "\n",
		"a thread of no thread":    `{"type":"thread.started","thread_id":"../../*"}` + "\n",
		"changed types everywhere": `{"type":"turn.started","item":7}` + "\n" + `{"type":7}` + "\n" + `{"type":"error","message":{"a":1}}` + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stdout := begun + monster + said + strings.TrimSuffix(completed, "\n") // the last line has no end
			result, events := openTranscript(t, map[string][]byte{"stdout": []byte(stdout), "exit": []byte("0")}).run(t)
			var size, spoke int
			for _, e := range events {
				size += len(e.Text)
				if e.Kind == agent.KindText && e.Text == "SAID" {
					spoke++
				}
				if strings.ContainsAny(e.Text, "\x00\x1b\r") {
					t.Errorf("event %.100q", e.Text)
				}
			}
			if result.Outcome != agent.Success || result.Usage.Output != 2 || spoke != 1 || size > 2*agent.MaxLine || len(result.Warnings) > 0 {
				t.Errorf("%s (%s), usage %+v, spoke %d times, %d bytes, warnings %q", result.Outcome, result.Rule, result.Usage, spoke, size, result.Warnings)
			}
		})
	}
}

// B42: a conversation that cannot go on says so, and nothing else does.
func TestNoResume(t *testing.T) {
	t.Parallel()
	const asked = "01a22c9f-0000-7000-8000-000000000001"
	tooLong := `{"type":"turn.failed","error":{"message":"Codex ran out of room in the model's context window."}}` + "\n"
	for _, tt := range []struct {
		name, resume, stdout, stderr string
		want                         bool
	}{
		{"unknown", asked, "", "Error: thread/resume: thread/resume failed: no rollout found for thread id " + asked + "\n", true},
		{"damaged", asked, "", "Error: thread/resume: thread/resume failed: failed to parse rollout\n", true},
		{"another one", "01a22c9f-0000-7000-8000-000000000002", begun + said + completed, "", true},
		{"too long", asked, begun + tooLong, "", true},
		{"a new one, too long", "", begun + tooLong, "", false},
		{"goes on", asked, begun + said + completed, "", false},
		{"fails for another reason", asked, begun + failed, "", false},
		{"ends at once for another reason", asked, "", "Error: no login\n", false},
		{"the model says so", asked, begun + said + `{"type":"item.completed","item":{"id":"i","type":"agent_message","text":"Error: thread/resume failed"}}` + "\n" + failed, "", false},
		{"a new one says so", "", "", "Error: thread/resume: no rollout found\n", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			files := map[string][]byte{"stdout": []byte(tt.stdout), "stderr": []byte(tt.stderr), "resume": []byte(tt.resume), "exit": []byte("1")}
			result, _ := openTranscript(t, files).run(t)
			if result.NoResume != tt.want || tt.want && result.Outcome != agent.Failed {
				t.Errorf("no resume: %v, %s (%s: %s)", result.NoResume, result.Outcome, result.Rule, result.Error)
			}
		})
	}
}

// Without the conversation's file every recorded run comes to the same end.
func TestOutcomesNeedNoFile(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatal(err)
	}
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			files := make(map[string][]byte)
			for _, f := range without(without(archive.Files, "rollout"), "before") {
				files[f.Name] = f.Data
			}
			result, _ := again(t, files)
			if want := fmt.Sprintf(`{"outcome":%q,"rule":%q`, result.Outcome, result.Rule); !bytes.Contains(files["want"], []byte(want)) {
				t.Errorf("without the file: %s", want)
			}
		})
	}
}

// Every row of both tables is there once, and is what some recorded run has.
func TestTablesHaveNoIdleRows(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var all bytes.Buffer
	for _, name := range names {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range without(archive.Files, "want") {
			all.Write(f.Data)
		}
	}
	seen := make(map[string]bool)
	for _, row := range codex.Rows() {
		key := row.Event + " " + row.Item
		if seen[key] || row.Becomes == "" {
			t.Errorf("row %q is there twice or says nothing", key)
		}
		seen[key] = true
		if row.Becomes == "nothing" {
			continue
		}
		if !lineWith(all.Bytes(), `"type":"`+row.Event+`"`, `"type":"`+row.Item+`"`) {
			t.Errorf("no transcript has a line for the row %q", key)
		}
	}
	for _, f := range codex.Failures() {
		if f.Info != nil && !containsAny(all.String(), f.Info) || f.Says != nil && !containsAny(strings.ReplaceAll(all.String(), "’", "'"), f.Says) {
			t.Errorf("no transcript has a failure for the row %q", f.Name)
		}
	}
}

func lineWith(data []byte, event, item string) bool {
	for line := range bytes.Lines(data) {
		if bytes.Contains(line, []byte(event)) && (item == `"type":""` || bytes.Contains(line, []byte(item))) {
			return true
		}
	}
	return false
}

func containsAny(text string, parts []string) bool {
	for _, part := range parts {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}

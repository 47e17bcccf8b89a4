package scripted

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ script, words string }{
		{"", "no steps"},
		{"steps: []", "no steps"},
		{"steps:\n  - say: x\nsteep: 1", "line 3"},
		{"steps:\n  - say: x\n---\nsteps: []", "behind its end"},
		{"steps:\n  - say", "line 2: a step is an action"},
		{"steps:\n  - shout: x", "line 2: no such action"},
		{"steps:\n  - say: x\n    edit: y", "line 3: a step has one action"},
		{"steps:\n  - say: x\n    raw: true", `line 3: say takes no "raw"; it takes when`},
		{"steps:\n  - run: x\n    raw: 7", "line 3: raw"},
		{"steps:\n  - say: [a]", "line 2: the value of say is a text"},
		{"steps:\n  - edit: x", `line 2: edit takes either "content"`},
		{"steps:\n  - edit: x\n    content: y\n    replace: a\n    with: b", `line 2: edit takes either "content"`},
		{"steps:\n  - edit: x\n    replace: a", `line 2: edit takes either "content"`},
		{"steps:\n  - sleep: soon", "line 2: sleep"},
		{"steps:\n  - flood: -1", "line 2: flood"},
		{"steps:\n  - flood: 1\n    as: water", "text, message, line, noise, stderr"},
		{"steps:\n  - stop: now", "line 2: stop: a turn ends for end_turn"},
		{"steps:\n  - limit: x\n    reset: later", "line 2: limit: reset is a duration"},
		{"steps:\n  - die: SLOWLY", "line 2: die"},
		{"steps:\n  - ignore_term: false", "line 2: ignore_term"},
		{"steps:\n  - call: x\n    arguments: [1]", "line 3: arguments"},
		{"steps:\n  - say: x\n    when: {weather: fine}", `line 3: there is no condition "weather"`},
		{"steps:\n  - say: x\n    when: often", "line 3: when is a list"},
		{"steps:\n  - say: x\n    when: {attempt: two}", "line 3: attempt"},
		{"steps: {say: x}", "line 1"},
	} {
		if _, err := Parse([]byte(tt.script)); err == nil || !strings.Contains(err.Error(), tt.words) {
			t.Errorf("%q: %v, want %q", tt.script, err, tt.words)
		}
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	s, err := Parse([]byte(Marker + `
steps:
  - call: spawn_subtask
    arguments: {name: a, depends_on: [b]}
    when: {attempt: 2, role: checker, answered: true, resumed: false, exists: x, missing: y}
  - print: !!binary //4=
exit_code: 4
`))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(s.Steps[0].Arguments); got != `{"depends_on":["b"],"name":"a"}` {
		t.Errorf("arguments %s", got)
	}
	if w := s.Steps[0].When; *w.Attempt != 2 || *w.Role != "checker" || !*w.Answered || *w.Resumed || w.Exists != "x" || w.Missing != "y" {
		t.Errorf("when %+v", w)
	}
	if s.Steps[1].Value != "\xff\xfe" || s.ExitCode != 4 || s.Steps[1].Line != 6 {
		t.Errorf("%+v", s)
	}
}

func TestInPrompt(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		prompt, script string
		found          bool
	}{
		{"do it", "", false},
		{"#!scripted\nsteps: 1\n", "#!scripted\nsteps: 1\n", true},
		{"Task:\n#!scripted\nsteps: 1\n#!end\nmore\n", "#!scripted\nsteps: 1\n", true},
		{"<<<INSTRUCTIONS\n#!scripted\nsteps: 1\nINSTRUCTIONS\n## More", "#!scripted\nsteps: 1\n", true},
		{"#!end\n  #!scripted \nsteps: 1", "  #!scripted \nsteps: 1", true},
	} {
		if script, found := inPrompt(tt.prompt); script != tt.script || found != tt.found {
			t.Errorf("%q: %q, %v", tt.prompt, script, found)
		}
	}
}

// TestEveryActionIsDoneAndTold: what Parse takes, a turn does, and the package's
// documentation tells.
func TestEveryActionIsDoneAndTold(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	turn := &turn{}
	done := slices.Sorted(maps.Keys(turn.deeds()))
	done = append(done, slices.Sorted(maps.Keys(turn.faults()))...)
	slices.Sort(done)
	if known := slices.Sorted(maps.Keys(actions())); !slices.Equal(done, known) {
		t.Errorf("done %v, known %v", done, known)
	}
	for action, keys := range actions() {
		if !strings.Contains(string(doc), "//\t"+action+" ") {
			t.Errorf("the documentation does not tell of %s", action)
		}
		for _, key := range keys {
			if !strings.Contains(string(doc), `"`+key+`"`) {
				t.Errorf("the documentation does not tell of %s", key)
			}
			if key != "arguments" && (&Step{}).field(key) == nil {
				t.Errorf("%s is read nowhere", key)
			}
		}
	}
}

func TestStore(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := openStore(func(name string) string {
		if name == "HOME" {
			return t.TempDir()
		}
		return ""
	}, func() time.Time { return now })
	c := conversation{ID: "ABCDEFGHIJKLMNOP", Script: "x", Next: 3}
	if err := s.save(&c); err != nil {
		t.Fatal(err)
	}
	got, err := s.load(c.ID)
	if err != nil || *got != c {
		t.Errorf("%+v, %v", got, err)
	}
	for _, id := range []string{"", "../ABCDEFGHIJKLMN", "ABCDEFGHIJKLMNOQ", "abcdefghijklmnop"} {
		if _, err := s.load(id); err == nil {
			t.Errorf("there is a conversation %q", id)
		}
	}
	now = now.Add(keptFor - time.Hour)
	s.prune()
	if _, err := s.load(c.ID); err != nil {
		t.Error(err)
	}
	now = now.Add(2 * time.Hour)
	s.prune()
	if _, err := s.load(c.ID); err == nil {
		t.Error("an old conversation is kept")
	}
	none := openStore(func(string) string { return "" }, time.Now)
	if err := none.save(&c); err != nil {
		t.Error(err)
	}
}

// TestConditions: a step is left out unless all of its conditions hold, and values
// are filled in from the task.
func TestConditions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/there", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	asked := 0
	p := &program{o: Options{Environ: []string{"WHO=me"}, Call: func(context.Context, string, string, string, json.RawMessage) (json.RawMessage, error) {
		asked++
		return json.RawMessage(`{"task":{"name":"evaluator-tests: Paint","attempt_no":2,"agent":{}},"interactions":[{"question":"q","answer":"blue"},{"answer":"a message"}]}`), nil
	}}}
	turn := &turn{program: p, s: &session{dir: dir, url: "u"}, prompt: "the prompt"}
	for when, want := range map[string]bool{
		"{}": true, "{attempt: 2}": true, "{attempt: 1}": false, "{role: builder}": true, "{role: checker}": false,
		"{answered: true}": true, "{answered: false}": false, "{resumed: true}": false, "{resumed: false}": true,
		"{exists: there}": true, "{exists: not}": false, "{missing: there}": false, "{missing: not}": true,
		"{attempt: 2, exists: not}": false, "{task: Paint}": true, "{task: 'evaluator-tests: Paint'}": true, "{task: aint}": false,
	} {
		s, err := Parse([]byte("steps: [{say: x, when: " + when + "}]"))
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := turn.applies(t.Context(), &s.Steps[0].When); err != nil || ok != want {
			t.Errorf("%s: %v, %v", when, ok, err)
		}
	}
	s, err := Parse([]byte(`steps: [{call: t, arguments: {a: ["{{answer}} {{attempt}}"], b: 1, c: "{{WHO}}: {{prompt}} {{other}}"}}]`))
	if err != nil {
		t.Fatal(err)
	}
	got, err := turn.filled(t.Context(), s.Steps[0])
	if want := `{"a":["blue 2"],"b":1,"c":"me: the prompt {{other}}"}`; err != nil || string(got.Arguments) != want {
		t.Errorf("%s, %v", got.Arguments, err)
	}
	if asked != 1 {
		t.Errorf("the task was asked for %d times", asked)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("steps: [{say: x}]")
	f.Add("#!scripted\nsteps:\n  - edit: a\n    content: b\n    when: {attempt: 1}\nagain: [{limit: x, reset: 1h}]")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse([]byte(text))
		if err != nil {
			return
		}
		for _, step := range append(s.Steps, s.Again...) {
			if _, ok := actions()[step.Action]; !ok {
				t.Errorf("action %q", step.Action)
			}
		}
	})
}

package cli

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

func TestTaskFile(t *testing.T) {
	t.Parallel()
	full := app.TaskRequest{
		Project: "shop", Name: "Fix", Timeout: work.Duration(30 * time.Minute), Priority: "high", Draft: true,
		Agent:     app.AgentInput{Type: "command", Instructions: "one\n  two\n", Command: []string{"sh", "-c", "x"}, MaxBudgetUSD: 1.5, MaxTurns: 3},
		Retry:     app.RetryInput{MaxAttempts: 2},
		DependsOn: []string{"a"}, AcceptanceCriteria: app.StringList{"it works"},
	}
	tests := map[string]struct {
		text string
		want []app.TaskRequest
		many bool
		err  string
	}{
		"yaml": {text: "project: shop\nname: Fix\ntimeout: 30m\npriority: high\ndraft: true\nagent:\n  type: command\n  instructions: |\n    one\n      two\n" +
			"  command: [sh, -c, x]\n  max_budget_usd: 1.5\n  max_turns: 3\nretry: {max_attempts: 2}\ndepends_on: [a]\nacceptance_criteria: it works\n", want: []app.TaskRequest{full}},
		"json": {text: "{\n\t\"project\": \"shop\", \"name\": \"Fix\", \"timeout\": \"30m\", \"priority\": \"high\", \"draft\": true,\n\t\"agent\": {\"type\": \"command\"," +
			"\"instructions\": \"one\\n  two\\n\", \"command\": [\"sh\",\"-c\",\"x\"], \"max_budget_usd\": 1.5, \"max_turns\": 3},\n" +
			"\"retry\": {\"max_attempts\": 2}, \"depends_on\": [\"a\"], \"acceptance_criteria\": [\"it works\"]}", want: []app.TaskRequest{full}},
		"json pairs":        {text: `{"name": "\ud83d\ude00 \/"}`, want: []app.TaskRequest{{Name: "😀 /"}}},
		"list":              {text: "- name: a\n- name: b\n", want: []app.TaskRequest{{Name: "a"}, {Name: "b"}}, many: true},
		"list of one":       {text: "[{\"name\": \"a\"}]", want: []app.TaskRequest{{Name: "a"}}, many: true},
		"documents":         {text: "name: a\n---\nname: b\n---\n", want: []app.TaskRequest{{Name: "a"}, {Name: "b"}}, many: true},
		"nothing given":     {text: "name: a\nagent:\ntags: ~\n", want: []app.TaskRequest{{Name: "a"}}},
		"alias":             {text: "- name: a\n  agent: &x {type: t}\n- name: b\n  agent: *x\n", want: []app.TaskRequest{{Name: "a", Agent: app.AgentInput{Type: "t"}}, {Name: "b", Agent: app.AgentInput{Type: "t"}}}, many: true},
		"empty":             {text: "", err: "f holds no task"},
		"only a comment":    {text: "# nothing\n", err: "f holds no task"},
		"null":              {text: "null", err: "f holds no task"},
		"empty list":        {text: "[]", err: "f holds no task"},
		"unknown key":       {text: "name: a\n\ninstrctions: x\n", err: `f: line 3: there is no key "instrctions"`},
		"misspelt key":      {text: "name: a\npriorty: low\n", err: `f: line 2: there is no key "priorty"; "priority" is meant?`},
		"unknown below":     {text: "name: a\nagent:\n  typ: x\n", err: `f: line 3: there is no key "agent.typ"; "agent.type" is meant?`},
		"unknown in json":   {text: "{\"name\": \"a\",\n\n \"agent\": {\n\"foo\": 1}}", err: `f: line 4: there is no key "agent.foo"`},
		"server's own key":  {text: "name: a\nstate: READY\n", err: `f: line 2: there is no key "state"`},
		"twice":             {text: "{\"name\": \"a\",\n\"name\": \"b\"}", err: `f: line 2: name is given twice`},
		"number for a list": {text: "name: a\ngates: 3\n", err: "f: line 2: gates: a list of texts is expected, not 3"},
		"map for a text":    {text: "name: {a: b}\n", err: "f: line 1: name: a text is expected, not a map"},
		"list for a text":   {text: "name: a\nreview: [x]\n", err: "f: line 2: review: a text is expected, not a list"},
		"word for a number": {text: "name: a\nagent: {max_turns: many}\n", err: "f: line 2: agent.max_turns: a whole number is expected, not many"},
		"word for yes":      {text: "name: a\nstart: perhaps\n", err: "f: line 2: start: true or false is expected, not perhaps"},
		"text for a map":    {text: "name: a\nagent: claude\n", err: "f: line 2: agent must be a map of keys and values"},
		"no duration":       {text: "name: a\ntimeout: soon\n", err: `f: line 2: timeout: duration "soon" is not one`},
		"not a task":        {text: "just words", err: "f: line 1: a task must be a map of keys and values"},
		"list of words":     {text: "- name: a\n- b\n", err: "f: line 2: a task must be a map of keys and values"},
		"no name":           {text: "- name: a\n- review: none\n", err: "f: line 2: the task has no name"},
		"all at once":       {text: "nam: a\npriorty: b\n", err: `line 1: there is no key "nam"; "name" is meant?; line 2: there is no key "priorty"`},
		"broken yaml":       {text: "name: a\n  b: [\n", err: "f: line 2: "},
		"broken json":       {text: "{\"name\": \"a\",\n", err: "f: line "},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, many, err := readTasks("f", []byte(tt.text))
			if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err) || work.CodeOf(err) != work.Invalid) {
				t.Fatalf("error %v, want %q", err, tt.err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || many != tt.many {
				t.Errorf("many %v (-want +got):\n%s", many, diff)
			}
		})
	}
}

// FuzzTaskFile: whatever stands in a file, it is read or refused as invalid.
func FuzzTaskFile(f *testing.F) {
	for _, seed := range []string{"name: a\n", "[{\"name\": 1}]", "- &a [*a]\n", "--- |\n", "{\"agent\": {}}", "name: !!binary x\n", "? {a: b}\n: c\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		tasks, _, err := readTasks("f", []byte(text))
		if err != nil && work.CodeOf(err) != work.Invalid {
			t.Errorf("error %v", err)
		}
		if err == nil && len(tasks) == 0 {
			t.Error("neither tasks nor an error")
		}
	})
}

// TestInstructions: they arrive byte for byte, whatever they hold.
func TestInstructions(t *testing.T) {
	t.Parallel()
	text := "#!/bin/sh\r\n\techo '<&>' \u2028 \x01 ünï \n\n\n"
	api := &fake{}
	in := func(d *Deps) { d.In = strings.NewReader(text) }
	if r := run(t.Context(), api, in, "task", "create", "--name", "x", "--instructions-file", "-"); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	if got := api.requests[0].Agent.Instructions; got != text {
		t.Errorf("got %q, want %q", got, text)
	}
	bad := func(d *Deps) { d.In = strings.NewReader("\xff\xfe") }
	if r := run(t.Context(), api, bad, "task", "create", "--name", "x", "--instructions-file", "-"); r.code != 2 || len(api.requests) != 1 {
		t.Errorf("invalid UTF-8: %+v", r)
	}
}

// TestCreateFlags: every flag arrives at its place.
func TestCreateFlags(t *testing.T) {
	t.Parallel()
	api := &fake{}
	r := run(t.Context(), api, nil, "task", "create", "--project", "shop", "--name", "x", "--agent", "command", "--command", `["sh","-c","a, b"]`,
		"--instructions", "do", "--accept", "a, b", "--accept", "c", "--depends-on", "d", "--parent", "p", "--policy", "checked", "--start",
		"--gate", "go test", "--tag", "t", "--priority", "low", "--timeout", "90s", "--retry", "2", "--backoff", "linear", "--budget", "0.5",
		"--role", "builder", "--model", "m", "--description", "d", "--commit-type", "fix", "--idempotency-key", "k", "--allow-tool", "Bash", "--draft")
	want := app.TaskRequest{
		Project: "shop", ParentTaskID: "p", Name: "x", Description: "d", Timeout: work.Duration(90 * time.Second),
		Agent: app.AgentInput{Type: "command", Role: "builder", Model: "m", Instructions: "do", Command: []string{"sh", "-c", "a, b"}, AllowedTools: []string{"Bash"}, MaxBudgetUSD: 0.5},
		Retry: app.RetryInput{MaxAttempts: 2, Backoff: "linear"}, Priority: "low", Tags: []string{"t"}, DependsOn: []string{"d"},
		AcceptanceCriteria: app.StringList{"a, b", "c"}, Gates: []string{"go test"}, Review: "checked", Draft: true, CommitType: "fix", Start: true, IdempotencyKey: "k",
	}
	if r.code != 0 || len(api.requests) != 1 {
		t.Fatalf("%+v", r)
	}
	if diff := cmp.Diff(want, api.requests[0]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestCreateFromFile: what goes beside a file, how the answer looks, and what
// is left when the server refuses one of several.
func TestCreateFromFile(t *testing.T) {
	t.Parallel()
	file := func(text string) func(*Deps) { return func(d *Deps) { d.In = strings.NewReader(text) } }
	api := &fake{}
	r := run(t.Context(), api, file("- name: a\n- {name: b, project: other}\n"), "task", "create", "-f", "-", "--project", "shop", "--start", "--idempotency-key", "k", "-o", "json")
	if r.code != 0 || !strings.HasPrefix(r.out, "[\n  {\n    \"id\": \"made1\"") {
		t.Errorf("a list: %+v", r)
	}
	a, b := api.requests[0], api.requests[1]
	if a.Project != "shop" || b.Project != "other" || !a.Start || a.IdempotencyKey != "k/1" || b.IdempotencyKey != "k/2" {
		t.Errorf("%+v %+v", a, b)
	}
	if r := run(t.Context(), api, file("name: a\n"), "task", "create", "-f", "-", "-o", "json"); !strings.HasPrefix(r.out, "{\n  \"id\": \"made3\"") {
		t.Errorf("one: %+v", r)
	}
	api = &fake{refuse: func(in app.TaskRequest) error {
		if in.Name == "b" {
			return work.Errorf(work.NotFound, "there is no project").WithHint("add it")
		}
		return nil
	}}
	three := file("- name: a\n- name: b\n- name: c\n")
	r = run(t.Context(), api, three, "task", "create", "-f", "-", "--start")
	if r.code != 3 || r.out != "" || r.err != "error: task 2 of 3 (b): there is no project\nhint: add it\n" {
		t.Errorf("refused: %+v", r)
	}
	if len(api.requests) != 1 || api.requests[0].Start || !slices.Equal(api.asked, []string{"remove made1"}) {
		t.Errorf("of a file that is refused something is left: %+v, asked %q", api.requests, api.asked)
	}
	r = run(t.Context(), api, three, "task", "create", "-f", "-", "--idempotency-key", "k")
	if r.code != 3 || r.out != "made2  PENDING  a\n" || len(api.asked) != 1 {
		t.Errorf("with a key what is there stays: %+v, asked %q", r, api.asked)
	}
	api = &fake{tasks: []*app.TaskView{task("made1", "QUEUED/slot"), task("made2", "QUEUED/slot"), task("made3", "QUEUED/slot")}}
	r = run(t.Context(), api, three, "task", "create", "-f", "-", "--start")
	if r.code != 0 || api.requests[0].Start || !slices.Equal(api.asked, []string{"start", "start", "start"}) {
		t.Errorf("started when all are there: %+v, asked %q", r, api.asked)
	}
	if r := run(t.Context(), nil, file("- name: a\n- nam: b\n"), "task", "create", "-f", "-"); r.code != 2 || !strings.Contains(r.err, "standard input: line 2") {
		t.Errorf("a bad file must not reach the server: %+v", r)
	}
}

package cli

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/claudomator/claudomator/internal/work"
)

// session is what a coding agent's run looks like: long words, wide characters,
// calls that overlap, paths of the workspace, and text that means harm.
const session = `{"at":"2026-03-01T12:00:00Z","kind":"log","stream":"notice","text":"workspace at 829b8a17ba34397fc295d253bfa1032936ef01cb"}
{"at":"2026-03-01T12:00:01Z","kind":"thought","text":"First the tests, then the code, so that I know what is wrong before I change anything at all.\nsecond\nthird\nfourth\nfifth"}
{"at":"2026-03-01T12:00:02Z","kind":"text","text":"I will look at the tests first:\n\n- the total of an empty basket, which is what the task is about after all\n- 数え直すことが必要です。全角文字は二つの桁を使います。\n\nThen the code."}
{"at":"2026-03-01T12:00:03Z","kind":"tool_call","tool":{"id":"t1","name":"Bash","input":"{\"command\":\"cd /data/workspaces/a && go test -count=1 -run 'TestBasket|TestTotal' ./internal/basket/...\",\"description\":\"Run tests\"}"}}
{"at":"2026-03-01T12:00:03Z","kind":"tool_call","tool":{"id":"t2","name":"Read","input":"{\"file_path\":\"/data/workspaces/a/internal/basket/basket.go\"}"}}
{"at":"2026-03-01T12:00:03.02Z","kind":"tool_call","tool":{"id":"t2","name":"Read","output":"package basket","done":true}}
{"at":"2026-03-01T12:01:15Z","kind":"tool_call","tool":{"id":"t1","name":"Bash","output":"ok  \tbasket\nFAIL: TestTotal\n\tbasket_test.go:12: got 0.1, want 0.10 and a much longer explanation of why that is wrong\nexit status 1","done":true,"failed":true}}
{"at":"2026-03-01T12:01:16Z","kind":"file_edit","edit":{"path":"/data/workspaces/a/internal/basket/basket.go","diff":"--- a/basket.go\n+++ b/basket.go\n@@ -1,2 +1,3 @@\n package basket\n-func Total() float64 { return sum(items) }\n+func Total() int { return sumOfCents(items, roundingHalfToEven, andAVeryLongArgumentListThatGoesOnAndOn) }\n+\u001b[2J\u202e\n"}}
{"at":"2026-03-01T12:01:17Z","kind":"file_edit","edit":{"path":"internal/basket/a_file_with_a_long_name_in_a_deep_folder/and_another/basket_total_test.go","diff":"+1\n+2\n+3\n+4\n+5\n+6\n+7\n+8\n+9\n+10\n"}}
{"at":"2026-03-01T12:01:18Z","kind":"tool_call","tool":{"name":"mcp__claudomator__report_summary","input":"{\"text\":\"Counted in cents.\"}"}}
{"at":"2026-03-01T12:01:18.5Z","kind":"tool_call","tool":{"name":"mcp__claudomator__report_summary","output":"{}","done":true}}
{"at":"2026-03-01T12:01:19Z","kind":"usage","usage":{"input":1200,"output":300},"cost_usd":0.42}
{"at":"2026-03-01T12:01:20Z","kind":"limit","limit":{"kind":"overload","text":"529, trying again in 4 s"}}
{"at":"2026-03-01T12:01:21Z","kind":"question","question":{"text":"Should prices that were stored with three digits be rounded, or refused?","options":["rounded half to even, as the accounting department does","refused"]}}
{"at":"2026-03-01T12:01:22Z","kind":"log","stream":"stderr","text":"warning\u001b]0;title\u0007"}
{"at":"2026-03-01T12:01:23Z","kind":"tool_call","tool":{"id":"t9","name":"shell","input":"{\"command\":[\"bash\",\"-lc\",\"sleep 600\"]}"}}
`

// TestRender holds what people read to golden files, at three widths, with
// colours and without. Nothing is wider than the terminal, nothing acts on it.
func TestRender(t *testing.T) {
	t.Parallel()
	for _, columns := range []int{40, 80, 120} {
		for _, colored := range []bool{false, true} {
			name := fmt.Sprintf("%d", columns)
			if colored {
				name += "-color"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				golden(t, "render/"+name, rendered(t, columns, colored))
			})
		}
	}
}

func rendered(t *testing.T, width int, colored bool) string {
	t.Helper()
	terminal := func(d *Deps) {
		d.Terminal, d.Width = true, func() int { return width }
		if !colored {
			d.Environ = append(d.Environ, "NO_COLOR=1")
		}
	}
	api := shop()
	api.log = func() (string, error) { return session, nil }
	api.executions[0].TaskID = "a"
	var all strings.Builder
	for _, args := range []string{"task logs fixbasket2345678 --execution 1", "task list", "task show fixbasket2345678", "task tree fixbasket2345678", "agent list", "attention"} {
		r := run(t.Context(), api, terminal, strings.Fields(args)...)
		if r.code != 0 || r.err != "" {
			t.Fatalf("%s: %+v", args, r)
		}
		fmt.Fprintf(&all, "==== %s\n%s", args, r.out)
	}
	fmt.Fprintf(&all, "==== run\n%s", summarized(t, api, terminal))
	for _, args := range []string{"story list", "story show Gift_cards", "story tree Gift_cards", "attention", "epic list", "story approve Gift_cards"} {
		fmt.Fprintf(&all, "==== %s\n%s", args, told(t, cards(), terminal, args))
	}
	for _, args := range []string{"story show Gift_cards", "story tree Gift_cards"} {
		fmt.Fprintf(&all, "==== draft: %s\n%s", args, told(t, draftOf(cards()), terminal, args))
	}
	deep := cards()
	deep.tree = deepTree(30)
	fmt.Fprintf(&all, "==== deep: story tree\n%s", told(t, deep, terminal, "story tree Gift_cards"))
	inColor := strings.Contains(all.String(), "\x1b[")
	if inColor != colored {
		t.Errorf("colours: %t", inColor)
	}
	text := uncolored(all.String())
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if columns(line) > width && !strings.HasPrefix(line, "====") && !strings.HasPrefix(line, "  claudomator ") { // commands are copied whole
			t.Errorf("%d columns at width %d: %q", columns(line), width, line)
		}
		if inertLine(line) != line {
			t.Errorf("acts on a terminal: %q", line)
		}
	}
	return strings.ReplaceAll(all.String(), "\x1b", "␛")
}

// told is what a command prints; _ is a blank.
func told(t *testing.T, api *fake, terminal func(*Deps), line string) string {
	t.Helper()
	args := strings.Fields(line)
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "_", " ")
	}
	r := run(t.Context(), api, terminal, args...)
	if r.code != 0 || r.err != "" {
		t.Fatalf("%s: %+v", line, r)
	}
	return r.out
}

// summarized is the end of a run that a checker has judged.
func summarized(t *testing.T, api *fake, terminal func(*Deps)) string {
	t.Helper()
	view := api.tasks[0]
	view.Question, view.Actions = nil, []work.Action{work.DoAccept, work.DoReject, work.DoMessage}
	defer func() { view.Question = &work.Question{Text: "Cents or euros?", Options: []string{"cents", "euros"}} }()
	r := run(t.Context(), api, func(d *Deps) { terminal(d); d.InTerminal = true }, "run", "--task", string(view.ID))
	if r.code != 0 {
		t.Fatalf("run: %+v", r)
	}
	at := strings.LastIndex(r.out, "READY")
	return r.out[max(strings.LastIndex(r.out[:at], "\n"), 0)+1:]
}

// TestColors: a wish in the environment counts before what the terminal can do.
func TestColors(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		terminal bool
		environ  string
		want     bool
	}{
		"terminal":             {true, "TERM=xterm", true},
		"pipe":                 {false, "TERM=xterm", false},
		"no color":             {true, "NO_COLOR=1", false},
		"empty no color":       {true, "NO_COLOR=", true},
		"dumb":                 {true, "TERM=dumb", false},
		"forced into a pipe":   {false, "CLICOLOR_FORCE=1", true},
		"forced on dumb":       {true, "TERM=dumb CLICOLOR_FORCE=1", true},
		"not forced":           {false, "CLICOLOR_FORCE=0", false},
		"refused before force": {true, "CLICOLOR_FORCE=1 NO_COLOR=1", false},
		"switched off":         {true, "CLICOLOR=0", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &shell{Deps: Deps{Terminal: test.terminal, Environ: strings.Fields(test.environ)}}
			if got := s.colors(); got != test.want {
				t.Errorf("%t", got)
			}
		})
	}
}

func TestWrap(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		line string
		most int
		want string
	}{
		"fits":            {"one two", 7, "one two"},
		"between words":   {"one two three", 8, "one two|three"},
		"no limit":        {"one two three", 0, "one two three"},
		"long word":       {"abcdefghijklmno", 10, "abcdefghij|klmno"},
		"wide":            {"数え直すことが", 10, "数え直すこ|とが"},
		"indent":          {"    one two three", 13, "    one two|    three"},
		"list":            {"- one two three four", 12, "- one two|  three four"},
		"number":          {"12. one two three", 13, "12. one two|    three"},
		"criterion":       {"[x] one two three", 13, "[x] one two|    three"},
		"blanks at break": {"one two     three", 8, "one two|three"},
		"indent too deep": {"                    one two", 20, "one two"},
		"combining":       {"e\u0301e\u0301e\u0301 e\u0301", 3, "e\u0301e\u0301e\u0301|e\u0301"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := strings.Join(wrap(test.line, test.most), "|"); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// FuzzWrap: no word is lost, no line is too wide, and it ends.
func FuzzWrap(f *testing.F) {
	for _, seed := range []string{"", "a", "one two three", "- 数え直す 数え直す", "          x", strings.Repeat("ab ", 100)} {
		f.Add(seed, 10)
	}
	f.Fuzz(func(t *testing.T, line string, most int) {
		line = inert(line)
		if most < 2 || most > 200 || !utf8.ValidString(line) {
			return
		}
		var joined strings.Builder
		for _, part := range wrap(line, most) {
			if columns(part) > most {
				t.Errorf("%d columns, not %d: %q", columns(part), most, part)
			}
			joined.WriteString(part)
		}
		if got, want := squeezed(joined.String()), squeezed(line); got != want {
			t.Errorf("%q became %q", want, got)
		}
	})
}

func squeezed(text string) string { return strings.ReplaceAll(text, " ", "") }

// FuzzTeller: whatever a transcript holds, what is printed is lines that do
// nothing but show.
func FuzzTeller(f *testing.F) {
	for line := range strings.Lines(session) {
		f.Add([]byte(line), 60)
	}
	f.Add([]byte(`{"kind":"tool_call","tool":{"name":"x","input":"[1,{\"a\":[\"\u001b\"]}]","done":true}}`), 1)
	f.Fuzz(func(t *testing.T, line []byte, width int) {
		p := &page{width: min(max(width, 0), 300), now: noon()}
		teller := teller{task: "a"}
		teller.tell(p, line)
		p.line("%s", inert(teller.busy()))
		teller.finish(p)
		for line := range strings.Lines(p.text.String()) {
			line = strings.TrimSuffix(line, "\n")
			if strings.ContainsFunc(line, func(r rune) bool { return inertRune(r) != r }) {
				t.Errorf("acts on a terminal: %q", line)
			}
		}
	})
}

func TestToolInput(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		`{"command":"ls\n-l"}`:                       "ls -l",
		`{"command":["bash","-lc","go test ./..."]}`: "go test ./...",
		`{"command":["ls","-l"]}`:                    "ls -l",
		`{"command":["ls",1],"path":"x"}`:            "x",
		`{"file_path":"a.go","content":"long"}`:      "a.go",
		`{"other":1}`:                                `{"other":1}`,
		`{}`:                                         "",
		`plain  text`:                                "plain text",
		``:                                           "",
	}
	for input, want := range tests {
		if got, onFile := toolInput(input); got != want || onFile != (want == "x" || want == "a.go") {
			t.Errorf("%s: %q (file: %t), want %q", input, got, onFile, want)
		}
	}
	one := teller{task: "abc1"}
	for text, want := range map[string]string{
		"/x/workspaces/abc1/a.go": "a.go", "cd /x/workspaces/abc1 && ls": "ls", "/x/workspaces/other/a.go": "/x/workspaces/other/a.go",
		"cat /x/workspaces/abc1/a /x/workspaces/abc1/b": "cat a b", "/x/workspaces/abc12/a": "/x/workspaces/abc12/a",
	} {
		if got := one.short(text); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// TestCallsOverlap: an answer belongs to its call, by id or by name; a call that
// the end has cut off is told, too.
func TestCallsOverlap(t *testing.T) {
	t.Parallel()
	r := run(t.Context(), logged(`{"at":"2026-03-01T12:00:00Z","kind":"tool_call","tool":{"id":"1","name":"A","input":"one"}}
{"at":"2026-03-01T12:00:01Z","kind":"tool_call","tool":{"id":"2","name":"A","input":"two"}}
{"at":"2026-03-01T12:00:02Z","kind":"tool_call","tool":{"name":"B","input":"three"}}
{"at":"2026-03-01T12:00:09Z","kind":"tool_call","tool":{"id":"2","done":true}}
{"at":"2026-03-01T12:00:12Z","kind":"tool_call","tool":{"name":"B","done":true,"failed":true,"output":"\n\na\nb\n"}}
{"at":"2026-03-01T12:00:12Z","kind":"tool_call","tool":{"id":"7","name":"C","input":"not begun","done":true}}
`), nil, "task", "logs", "a")
	want := "  A two  ok 8.0s\n  B three  failed 10s\n    a\n    b\n  C not begun  ok\n  A one  not finished\n"
	if r.out != want {
		t.Errorf("%s\nwant:\n%s", r.out, want)
	}
}

// TestEditOnce: a call that has changed a file is told by the change alone.
func TestEditOnce(t *testing.T) {
	t.Parallel()
	r := run(t.Context(), logged(`{"kind":"tool_call","tool":{"id":"1","name":"Edit","input":"{\"file_path\":\"/d/workspaces/a/x.go\"}"}}
{"kind":"tool_call","tool":{"id":"1","name":"Edit","done":true}}
{"kind":"file_edit","edit":{"path":"x.go","diff":"-a\n+b\n"}}
{"kind":"tool_call","tool":{"id":"2","name":"Read","input":"{\"file_path\":\"y.go\"}"}}
{"kind":"tool_call","tool":{"id":"2","name":"Read","done":true}}
{"kind":"file_edit","edit":{"path":"z.go"}}
{"kind":"tool_call","tool":{"id":"3","name":"Edit","input":"{\"file_path\":\"w.go\"}"}}
{"kind":"tool_call","tool":{"id":"3","name":"Edit","done":true,"failed":true,"output":"not read before"}}
{"kind":"tool_call","tool":{"id":"4","name":"Read","input":"{\"path\":\"last\"}"}}
{"kind":"tool_call","tool":{"id":"4","done":true}}
`), nil, "task", "logs", "a")
	want := "  edit x.go  +1 −1\n    -a\n    +b\n  Read y.go  ok\n  edit z.go\n  Edit w.go  failed\n    not read before\n  Read last  ok\n"
	if r.out != want {
		t.Errorf("%s\nwant:\n%s", r.out, want)
	}
}

// TestDiffstat counts patches as git writes them.
func TestDiffstat(t *testing.T) {
	t.Parallel()
	patch := `diff --git a/x b/x
index 1..2 100644
--- a/x
+++ b/x
@@ -1,3 +1,4 @@ func
 same
--- a line that looks like a header
+++ another
+new
 same
@@ -9 +10 @@
-old
+new
\ No newline at end of file
diff --git a/old name b/new name
similarity index 100%
rename from old name
rename to new name
diff --git "a/\303\274" "b/\303\274"
new file mode 100644
--- /dev/null
+++ "b/\303\274"
@@ -0,0 +1,2 @@
+a
+b
diff --git a/gone b/gone
deleted file mode 100644
--- a/gone
+++ /dev/null
@@ -1 +0,0 @@
-x
diff --git a/pic b/pic
Binary files a/pic and b/pic differ
diff --git a/mode b/mode
old mode 100644
new mode 100755
`
	stat, err := readStat(t.Context(), &fake{patch: patch}, "a")
	if err != nil {
		t.Fatal(err)
	}
	want := "[{x 3 2 false} {new name 0 0 false} {ü 2 0 false} {gone 0 1 false} {pic 0 0 true} {mode 0 0 false}]"
	if got := fmt.Sprint(stat.files); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	long := &diffstat{}
	for _, part := range []string{"diff --git a/x b/x\n@@ -0,0 +1 @@\n+", strings.Repeat("x", 1<<20), strings.Repeat("y", 1<<20), "\ndiff --git a/z b/z\n"} {
		_, _ = long.Write([]byte(part))
	}
	if got := fmt.Sprint(long.files); got != "[{x 1 0 false} {z 0 0 false}]" || cap(long.rest) > 64<<10 {
		t.Errorf("a long line: %s, %d bytes kept", got, cap(long.rest))
	}
}

func FuzzDiffstat(f *testing.F) {
	f.Add([]byte("diff --git a/x b/x\n@@ -1 +1,2 @@\n-a\n+b\n+c\n"))
	f.Add([]byte("@@ -1 +1 @@\n+x"))
	f.Add([]byte("diff --git \"a/\\\n+++ \"b/\\7\n@@ -9,x +1,99999999999999999999 @@\n"))
	f.Fuzz(func(t *testing.T, patch []byte) {
		stat := &diffstat{}
		if n, err := stat.Write(patch); n != len(patch) || err != nil {
			t.Errorf("%d %v", n, err)
		}
		p := &page{width: 60}
		p.diffstat(stat)
		for line := range strings.Lines(p.text.String()) {
			if columns(strings.TrimSuffix(line, "\n")) > 80 {
				t.Errorf("wide: %q", line)
			}
		}
	})
}

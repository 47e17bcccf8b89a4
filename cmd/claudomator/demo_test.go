package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/claudomator/claudomator/internal/work"
	"github.com/claudomator/claudomator/test/binary"
)

func TestDemo(t *testing.T) {
	t.Parallel()
	bin := binary.Build(t)
	t.Run("for people", func(t *testing.T) { t.Parallel(); demoForPeople(t, bin) })
	t.Run("for programs", func(t *testing.T) { t.Parallel(); demoForPrograms(t, bin) })
}

// demoForPeople plays the demo as a newcomer does, and looks at what is told and at
// what has become of the repository.
func demoForPeople(t *testing.T, bin string) {
	dir := t.TempDir()
	told, errs, code := playDemo(t, bin, "demo", "--headless", "--dir", dir)
	if code != 0 {
		t.Fatalf("exit code %d\n%s\n%s", code, errs, told)
	}
	for _, line := range strings.Split(told, "\n") {
		if utf8.RuneCountInString(line) > 80 && !strings.Contains(line, dir) {
			t.Errorf("wider than a terminal: %q", line)
		}
	}
	at := 0
	for _, want := range []string{
		`\n2\. A goal becomes a plan\n`, `planner +has read the repository`, `smoke +grep -q "HELLO, ADA"`,
		`\n3\. Approved`, `Two voices +its builder splits it: Shout, Whisper\n`,
		`Whisper +✓ correctness  ✓ tests  ✗ security  ✓ quality  ✗ arbiter\n +voices/whisper\.sh:1 \$1 is not in quotes`,
		`Whisper +mended in attempt 2: 2 files`, `Whisper +✓ correctness  ✓ tests  ✓ security  ✓ quality  ✓ arbiter\n`,
		`\n4\. A question`, `question  Shout\n +Which mark ends a shout\?\n`,
		`New voices +✓ correctness  ✓ tests  ✓ security  ✗ quality  ✓ arbiter\n`,
		`\n5\. Your decision.*\n.*\n +[0-9a-f]+ A greeter with one voice\n\n`,
		`REVIEW_READY  New voices +approved by 4 of 5, not quality\n`, `COMPLETED +│  └─ Whisper +approved by 5 of 5, in attempt 2\n`,
		`✓ proven +sh check\.sh passes \(sh check\.sh: exit code 0\)\n`, `✗ quality +greet\.sh:2`, `✓ arbiter +Not followed: quality\.`,
		`story reject 'New voices' \\\n +--at 'greet\.sh:2=`, `A README +suggested`, `A README +built: 1 file,`, `New voices +mended in attempt 2: 1 file,`,
		`New voices +✓ correctness  ✓ tests  ✓ security  ✓ quality  ✓ arbiter\n +\$ claudomator story accept`,
		`\n6\. Shipped`, `ship +main is moved`, `HELLO, ADA!!!\n`,
		` A README\n +[0-9a-f]+ New voices\n +[0-9a-f]+ A greeter with one voice\n`, `8 files changed`,
		`\n7\. Afterwards`, `a lesson +Put \$1 in quotes`,
	} {
		found := regexp.MustCompile(want).FindStringIndex(told[at:])
		if found == nil {
			t.Fatalf("%q is not told behind %q in\n%s", want, told[max(at-60, 0):at], told)
		}
		at += found[1]
	}
	poster, err := os.ReadFile(filepath.Join(dir, "site", "poster.txt"))
	if want := "Hello, Ada!\nHELLO, ADA!!!\nhello, ada...\n"; err != nil || string(poster) != want {
		t.Errorf("deployed is %q, %v", poster, err)
	}
	c := exec.CommandContext(t.Context(), "sh", "-c", "sh check.sh && sh greet.sh '*' whisper && git status --short")
	c.Dir = filepath.Join(dir, "greeter")
	if out, err := c.CombinedOutput(); err != nil || string(out) != "all tests pass\nhello, *...\n" {
		t.Errorf("the repository in the end: %v\n%s", err, out)
	}

	// What is there is not played over.
	if _, errs, code := playDemo(t, bin, "demo", "--dir", dir); code != 2 || !strings.Contains(errs, "is there already") {
		t.Errorf("a second time in the same folder: exit code %d: %s", code, errs)
	}
}

// demoForPrograms prints its events and nothing else.
func demoForPrograms(t *testing.T, bin string) {
	told, errs, code := playDemo(t, bin, "demo", "-o", "json", "--dir", filepath.Join(t.TempDir(), "new"))
	if code != 0 {
		t.Fatalf("exit code %d\n%s", code, errs)
	}
	kinds, last := map[string]int{}, int64(0)
	for lines := bufio.NewScanner(strings.NewReader(told)); lines.Scan(); {
		var e work.Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		if e.Seq <= last {
			t.Errorf("event %d behind %d", e.Seq, last)
		}
		last = e.Seq
		kinds[e.Kind]++
	}
	// Seven attempts at five places: each is heard by four evaluators and an arbiter, who
	// rejects one; a person rejects another.
	for kind, want := range map[string]int{"verdict.reported": 35, "decision.approved": 6, "decision.rejected": 2, "fix.spawned": 2, "question.asked": 1, "ship.done": 1} {
		if kinds[kind] != want {
			t.Errorf("%d × %s, want %d", kinds[kind], kind, want)
		}
	}
}

func playDemo(t *testing.T, bin string, args ...string) (out, errs string, code int) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	c := exec.CommandContext(t.Context(), bin, args...)
	c.Dir, c.Stdout, c.Stderr = t.TempDir(), &stdout, &stderr
	_ = c.Run()
	return stdout.String(), stderr.String(), c.ProcessState.ExitCode()
}

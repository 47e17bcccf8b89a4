package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestQuickRun holds the report's form. It says nothing about figures.
func TestQuickRun(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		if os.Getenv("CLAUDOMATOR_CI") != "" {
			t.Fatal("CI runs on Linux")
		}
		t.Skip("processor time is read from /proc")
	}
	dir := t.TempDir()
	binary, out := filepath.Join(dir, "claudomator"), filepath.Join(dir, "results.md")
	if text, err := exec.Command("go", "build", "-o", binary, "../cmd/claudomator").CombinedOutput(); err != nil {
		t.Fatalf("build the server: %v\n%s", err, text)
	}
	only := []string{"binary", "cycle", "latency", "database", "story", "streams", "runs"}
	o := options{quick: true, binary: binary, tmp: filepath.Join(dir, "tmp"), only: only, progress: io.Discard}
	if err := measure(t.Context(), o, out); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), dir) || strings.Contains(string(text), "/dev/shm") {
		t.Error("the report names a path of this machine")
	}
	checkForm(t, string(text), only)
	left, err := os.ReadDir(o.tmp)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// checkForm: each section has rows, each row says what was measured, and a row
// with a goal has a verdict.
func checkForm(t *testing.T, text string, names []string) {
	t.Helper()
	rows, section := map[string]int{}, ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if name, found := strings.CutPrefix(line, "## "); found {
			section = name
		}
		cells := strings.Split(line, "|")
		if len(cells) < 2 || strings.Contains(line, "---") || cells[1] == " what " {
			continue
		}
		if len(cells) != 7 {
			t.Fatalf("a row has %d cells: %s", len(cells)-2, line)
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows[section]++
		what, goal, measured, verdict := cells[1], cells[2], cells[3], verdict(cells[5])
		if what == "" || !strings.ContainsAny(measured, "0123456789") {
			t.Errorf("a row without a figure: %s", line)
		}
		if (goal != "") != (verdict != noGoal) || !slices.Contains([]string{"", "yes", "**no**"}, string(verdict)) {
			t.Errorf("goal and verdict do not fit: %s", line)
		}
	}
	for _, name := range names {
		if rows[name] == 0 {
			t.Errorf("section %q has no rows", name)
		}
	}
	if !strings.Contains(text, "## Notes") {
		t.Error("there are no notes")
	}
}

func TestUnknownSection(t *testing.T) {
	t.Parallel()
	if _, err := newBench(options{only: []string{"nonesuch"}, tmp: t.TempDir()}); err == nil {
		t.Error("a section that does not exist was taken")
	}
}

func TestQuantiles(t *testing.T) {
	t.Parallel()
	var s samples
	for i := range 200 {
		s = append(s, time.Duration(200-i)*time.Millisecond)
	}
	if got := s.String(); got != "p50 101 / p99 199 ms (n=200)" {
		t.Errorf("200 samples: %s", got)
	}
	if got := s[199:].String(); got != "p50 1.00 / p99 1.00 ms (n=1)" {
		t.Errorf("one sample: %s", got)
	}
	if within(s.p50(), 101*time.Millisecond) != met || within(s.p99(), 198*time.Millisecond) != missed {
		t.Error("a limit is inclusive, and above it is missed")
	}
}

// TestFigures: what is read of a process grows as it works.
func TestFigures(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		if os.Getenv("CLAUDOMATOR_CI") != "" {
			t.Fatal("CI runs on Linux")
		}
		t.Skip("figures are read from /proc")
	}
	before, err := cpuOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if err := exec.Command("sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done").Run(); err != nil {
		t.Fatal(err)
	}
	after, err := cpuOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if used := after.minus(before); used.reaped < tick {
		t.Errorf("a child that worked used %v", used.reaped)
	}
	if memory, err := anonymous(os.Getpid()); err != nil || memory < 1<<20 {
		t.Errorf("anonymous memory is %d, %v", memory, err)
	}
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	if n, err := childrenOf(os.Getpid()); err != nil || n < 1 {
		t.Errorf("%d children, %v", n, err)
	}
}

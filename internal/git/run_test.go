package git

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The option type protects only as long as nobody converts data to it.
func TestOptionsAreLiterals(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	starts := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if name, ok := call.Fun.(*ast.Ident); ok && name.Name == "opt" && file != "run.go" {
				t.Errorf("%s converts data to an option", file)
			}
			if sel, ok := call.Fun.(*ast.SelectorExpr); ok && (sel.Sel.Name == "CommandContext" || sel.Sel.Name == "Command" || sel.Sel.Name == "StartProcess") {
				if starts++; file != "run.go" {
					t.Errorf("%s starts processes", file)
				}
			}
			return true
		})
	}
	if starts != 1 {
		t.Errorf("%d places start processes", starts)
	}
}

func TestValuesCannotBeOptions(t *testing.T) {
	t.Parallel()
	g := newGit(t, nil)
	for _, v := range []string{"--upload-pack=touch x", "-x", "", "a\x00b"} {
		_, err := g.run(t.Context(), command{args: []opt{"rev-parse"}, values: []string{v}})
		wantKind(t, err, KindInvalidRef)
	}
	for _, bad := range [][2]string{{"refs/heads/x:y", ""}, {"refs/heads/x", "main"}, {"--x", ""}} {
		if _, err := leaseOpt(bad[0], bad[1]); err == nil {
			t.Errorf("%v became an option", bad)
		}
	}
}

// fake writes a program that stands in for git.
func fake(t *testing.T, script string) *Git {
	t.Helper()
	path := filepath.Join(t.TempDir(), "git")
	text := "#!/bin/sh\nfor a; do case $a in version) echo 'git version 2.39.5'; exit;; esac; done\n" + script + "\n"
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil { //nolint:gosec // must run
		t.Fatal(err)
	}
	g, err := New(t.Context(), Options{Program: path, Environ: os.Environ(), Timeout: patient})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestTimeoutEndsTheWholeGroup(t *testing.T) {
	t.Parallel()
	pids := filepath.Join(t.TempDir(), "pids")
	g := fake(t, "sleep 3600 & echo $! >"+pids+"; sleep 3600")
	wantGone(t, noted(t, pids, 500*time.Millisecond, func(limit time.Duration) {
		g.opts.Timeout = limit
		_, err := g.run(t.Context(), command{args: []opt{"status"}})
		if e := wantError(t, err, KindTimeout); e.Exit != -1 {
			t.Errorf("exit %d", e.Exit)
		}
	}))
}

// noted is what a program has written to a file before its time limit ended it: a
// longer one where it did not get to that.
func noted(t *testing.T, file string, limit time.Duration, run func(limit time.Duration)) string {
	t.Helper()
	for ; ; limit *= 3 {
		run(limit)
		if text, err := os.ReadFile(file); strings.TrimSpace(string(text)) != "" {
			return string(text)
		} else if limit > time.Minute {
			t.Fatalf("nothing noted in %s: %v", limit, err)
		}
	}
}

// wantGone waits a moment for the end of a process.
func wantGone(t *testing.T, pid string) {
	t.Helper()
	id, err := strconv.Atoi(strings.TrimSpace(pid))
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(patient); ; time.Sleep(10 * time.Millisecond) {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(id) + "/stat") // also tells a process that nobody has waited for
		if syscall.Kill(id, 0) != nil || err == nil && strings.Contains(string(stat), ") Z ") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("process %d lives on: %s", id, stat)
		}
	}
}

func TestOutputIsCapped(t *testing.T) {
	t.Parallel()
	g := fake(t, "yes")
	out, err := g.run(t.Context(), command{args: []opt{"log"}, limit: 1000})
	wantKind(t, err, KindTooLarge)
	if len(out) != 1000 {
		t.Errorf("%d bytes", len(out))
	}
}

func TestEnvironmentIsClosed(t *testing.T) {
	t.Setenv("GIT_DIR", "/elsewhere")
	t.Setenv("GIT_CONFIG_COUNT", "1")
	t.Setenv("SECRET", "s")
	g := fake(t, "env")
	out, err := g.run(t.Context(), command{args: []opt{"x"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"GIT_DIR", "GIT_CONFIG_COUNT", "SECRET", "HOME="} {
		if strings.Contains(string(out), bad) {
			t.Errorf("%s was inherited:\n%s", bad, out)
		}
	}
	for _, need := range []string{"LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=file\n"} {
		if !strings.Contains(string(out), need) {
			t.Errorf("%s is missing", need)
		}
	}
}

func TestProgramMustBeThereAndRecent(t *testing.T) {
	t.Parallel()
	_, err := New(t.Context(), Options{Program: "/nonexistent/git"})
	wantKind(t, err, KindMissingGit)
	for out, ok := range map[string]bool{
		"git version 2.38.0": true, "git version 2.37.9": false, "git version 3.0.rc1": true,
		"git version 2.39.5 (Apple Git-154)": true, "jj 1.0": false, "git version 1.99": false,
	} {
		if recentEnough(out) != ok {
			t.Errorf("%q", out)
		}
	}
}

func TestErrorsSayWhatAndWhy(t *testing.T) {
	t.Parallel()
	for words, kind := range map[string]Kind{
		"fatal: write error: No space left on device":           KindStorageFull,
		"fatal: not a git repository: x":                        KindNotARepository,
		"fatal: Unable to create '/x/index.lock': File exists.": KindLocked,
		"fatal: something new":                                  KindFailed,
	} {
		g := fake(t, "echo \""+words+"\" >&2; exit 128")
		_, err := g.run(t.Context(), command{args: []opt{"x"}})
		if e := wantError(t, err, kind); e.Exit != 128 || !strings.Contains(e.Error(), words) || len(e.Args) != 1 {
			t.Errorf("%+v", e)
		}
	}
	inner := errors.New("inner")
	if e := fail(KindFailed, "outer").because(inner); !errors.Is(e, inner) || KindOf(e) != KindFailed || KindOf(inner) != "" {
		t.Error("the chain is broken")
	}
}

func TestReaderRestsAndSurvivesCancelling(t *testing.T) {
	t.Parallel()
	l := newLab(t, "")
	head := l.head("main")
	l.calls.take()
	for range 100 {
		if _, err := l.vault.commit(l.ctx(), head); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(l.calls.take()); n > 1 {
		t.Errorf("%d processes for 100 reads", n)
	}
	ctx, cancel := context.WithCancel(l.ctx())
	cancel()
	if _, err := l.vault.commit(ctx, head); err == nil {
		t.Error("a cancelled read succeeded")
	}
	l.vault.reader.mu.Lock()
	l.vault.reader.idle.Reset(0)
	l.vault.reader.mu.Unlock()
	deadline := time.Now().Add(patient)
	for live := true; live; time.Sleep(time.Millisecond) {
		l.vault.reader.mu.Lock()
		live = l.vault.reader.live != nil
		l.vault.reader.mu.Unlock()
		if time.Now().After(deadline) {
			t.Fatal("the reader never rests")
		}
	}
	if _, err := l.vault.commit(l.ctx(), head); err != nil {
		t.Error(err)
	}
	if kind, err := l.vault.reader.kind(l.ctx(), strings.Repeat("1", 40)); kind != "" || err != nil {
		t.Errorf("a missing object: %q, %v", kind, err)
	}
}

package chaos_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "modernc.org/sqlite" // the other process at the database

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

// badGit stands before git on the server's PATH (runs have the real one). It
// counts its calls, and does what the file "plan" says: "every N" makes each Nth
// call go wrong, in turn by failing at once, by being killed, by doing its work
// and failing then; "hang N" makes the Nth call from then on hang.
const badGit = `#!/bin/sh
at=$(dirname "$0")
exec 8>"$at/lock"
flock 8
n=$(($(cat "$at/count" 2>/dev/null || echo 0) + 1))
echo $n >"$at/count"
read -r what every <"$at/plan"
[ "$what" != hang ] || [ $n -ne $every ] || { echo $$ >"$at/hung"; exec 8>&-; exec sleep 1000; }
exec 8>&-
if [ "$what" = every ] && [ $((n % every)) -eq 0 ]; then
	echo $n >>"$at/done"
	case $((n / every % 3)) in
	0) echo "fatal: injected" >&2; exit 128 ;;
	1) kill -9 $$ ;;
	2) REAL "$@"; exit 128 ;;
	esac
fi
exec REAL "$@"
`

type faultyGit struct {
	*world
	dir string
}

// spoil gives a world's next server a git that can go wrong.
func spoil(w *world) faultyGit {
	w.Helper()
	real, err := exec.LookPath("git")
	if err != nil {
		w.Fatal(err)
	}
	g := faultyGit{w, w.path("faults")}
	if err := os.Mkdir(g.dir, 0o755); err != nil {
		w.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(g.dir, "git"), []byte(strings.ReplaceAll(badGit, "REAL", real)), 0o700); err != nil { //nolint:gosec // a program
		w.Fatal(err)
	}
	g.plan("never 0")
	return g
}

func (g faultyGit) environ() string {
	return "PATH=" + g.dir + string(os.PathListSeparator) + os.Getenv("PATH")
}

// plan says what shall happen from the next call on, which is the first.
func (g faultyGit) plan(text string) {
	g.Helper()
	lock, err := os.OpenFile(filepath.Join(g.dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		g.Fatal(err)
	}
	defer func() { _ = lock.Close() }() // and with it the lock
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		g.Fatal(err)
	}
	g.write("faults/count", "0\n")
	g.write("faults/plan", text+"\n")
}

func (g faultyGit) number(file string) int {
	text, _ := os.ReadFile(filepath.Join(g.dir, file))
	n, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return n
}

func visitor(t *testing.T, w *world) *person {
	t.Helper()
	p := &person{w: w, dice: rand.New(rand.NewPCG(1, 1)), tries: map[string]int{}}
	p.setUp(t.Context(), "judge.sh", "")
	return p
}

func (p *person) asks(kinds ...kind) {
	p.w.Helper()
	api, err := p.w.api()
	if err != nil {
		p.w.Fatal(err)
	}
	for _, k := range kinds {
		p.make(p.w.Context(), api, k, nil)
	}
}

// ends leads everything to its end and checks what is left.
func (p *person) ends() {
	p.w.Helper()
	ctx, cancel := context.WithTimeout(p.w.Context(), settleLimit)
	defer cancel()
	p.finish(ctx)
	if !p.w.Failed() {
		a := p.w.audit(ctx)
		a.all()
	}
	if p.w.Failed() {
		p.w.explain()
	}
}

// testGitFails makes every seventh git command of the server go wrong while trees
// run, then lets it work again.
func testGitFails(t *testing.T, bin string) {
	w := newWorld(t, bin, "")
	g := spoil(w)
	w.start(g.environ())
	p := visitor(t, w)
	g.plan("every 7")
	p.asks(kind{part: "parent", review: "none"}, kind{part: "clashing", review: "human"}, kind{part: "daemon", review: "human"},
		kind{part: "flawed", review: "checked"}, kind{part: "main", review: "none"}, kind{part: "main", review: "none"})
	ctx, cancel := context.WithTimeout(t.Context(), settleLimit)
	defer cancel()
	wrong := func() int {
		faults, _ := os.ReadFile(filepath.Join(g.dir, "done"))
		return bytes.Count(faults, []byte("\n"))
	}
	for end := time.Now().Add(10 * time.Second); ctx.Err() == nil && (time.Now().Before(end) || wrong() < 12); {
		if api, err := w.api(); err == nil {
			p.look(ctx, api, false)
		}
		time.Sleep(glance)
	}
	calls := g.number("count")
	g.plan("never 0")
	p.ends()
	if n := wrong(); n < 12 {
		t.Errorf("only %d of %d git commands went wrong: the test did not test", n, calls)
	}
}

// testGitHangs kills the server while one of its git commands hangs: the command
// is gone with it, and the next life does the work.
func testGitHangs(t *testing.T, bin string) {
	w := newWorld(t, bin, "")
	g := spoil(w)
	w.start(g.environ())
	p := visitor(t, w)
	for call := 1; call <= 15; call += 2 {
		_ = os.Remove(filepath.Join(g.dir, "hung"))
		g.plan(fmt.Sprintf("hang %d", call))
		p.asks(kind{part: "parent", review: "none"})
		pid := 0
		for end := time.Now().Add(limit); pid == 0 && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			pid = g.number("hung")
		}
		w.kill()
		if pid == 0 {
			t.Fatalf("git was not called %d times", call)
		}
		for end := time.Now().Add(limit); syscall.Kill(pid, 0) == nil; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("call %d: git outlives the server that was killed", call)
			}
		}
		g.plan("never 0")
		w.start(g.environ())
	}
	p.ends()
}

// testDiskFull fills the disk of the data directory while agents work, kills the
// server, frees the disk: no work is called done that is not kept, none is lost.
func testDiskFull(t *testing.T, bin string) {
	w := newWorld(t, bin, "")
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=32m", "tmpfs", w.path("data")).CombinedOutput(); err != nil {
		if os.Getenv("CLAUDOMATOR_CI") != "" {
			t.Fatalf("a small disk cannot be mounted, and in CI nothing may be skipped: %v\n%s", err, out)
		}
		t.Skipf("a small disk cannot be mounted: %s", out)
	}
	t.Cleanup(func() {
		w.kill()
		if out, err := exec.Command("umount", "-l", w.path("data")).CombinedOutput(); err != nil {
			t.Errorf("unmount: %v\n%s", err, out)
		}
	})
	w.start()
	p := visitor(t, w)
	p.asks(kind{part: "patient", review: "none"}, kind{part: "patient", review: "none"}, kind{part: "patient", review: "human"})
	await(t, "the agents' commits", func() bool {
		ready, _ := filepath.Glob(w.path("ready-*"))
		return len(ready) == 3
	})
	fill(t, w.path("data/ballast"))
	api, err := w.api()
	if err != nil {
		t.Fatal(err)
	}
	_, err = api.CreateTask(t.Context(), app.TaskRequest{Project: "r", Name: strings.Repeat("n", 200), Description: strings.Repeat("d", 60000)})
	if work.CodeOf(err) != work.Unavailable || !strings.Contains(err.Error(), "storage full") {
		t.Errorf("with a full disk creating a task says %v, not that the storage is full", err)
	}
	w.write("go", "")
	for range 15 { // the runs end, and cannot be kept
		time.Sleep(100 * time.Millisecond)
		tasks, err := allTasks(t.Context(), api)
		if err != nil {
			t.Fatalf("reading must go on: %v", err)
		}
		for _, task := range tasks {
			if task.State == work.Completed || task.State == work.Ready {
				t.Errorf("with a full disk work cannot be done: %s", describe(task))
			}
		}
	}
	w.kill()
	if err := os.Remove(w.path("data/ballast")); err != nil {
		t.Fatal(err)
	}
	w.start()
	p.ends()
}

// fill writes until the disk is full.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }() // on a full disk that fails, too
	for size := 1 << 20; size > 0; {
		if _, err := f.Write(make([]byte, size)); errors.Is(err, syscall.ENOSPC) {
			size /= 2
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// testDatabaseBusy holds a write transaction for 30 s from another process while
// twenty tasks change their state: they wait, and nothing is lost or done twice.
func testDatabaseBusy(t *testing.T, bin string) {
	w := newWorld(t, bin, "")
	w.start()
	p := visitor(t, w)
	var leaves []kind
	for range 20 {
		leaves = append(leaves, kind{part: "leaf", review: "none"})
	}
	p.asks(leaves...)
	db, err := sql.Open("sqlite", "file:"+w.path("data/claudomator.db")+"?_txlock=immediate&_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	api, err := w.api()
	if err != nil {
		t.Fatal(err)
	}
	refused := make(chan error, 1)
	go func() {
		_, err := api.CreateTask(t.Context(), app.TaskRequest{Project: "r", Name: "while busy"})
		refused <- err
	}()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(time.Second) {
		if _, err := allTasks(t.Context(), api); err != nil {
			t.Errorf("reading must go on: %v", err)
		}
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := <-refused; err != nil && work.CodeOf(err) != work.Unavailable {
		t.Errorf("with a busy database creating a task says %v", err)
	}
	p.ends()
	a := w.audit(t.Context())
	for _, x := range a.runs {
		if x.State == work.ExecutionLost || x.Number > 1 {
			t.Errorf("execution %s of task %s is %s: a busy database is no reason to lose or repeat one", x.ID, x.TaskID, x.State)
		}
	}
}

func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %s", what, limit)
		}
	}
}

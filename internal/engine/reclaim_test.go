package engine_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/engine"
	"github.com/claudomator/claudomator/internal/work"
)

func (w *world) workspaceOf(id work.TaskID) string {
	return filepath.Join(w.dir, "workspaces", string(id))
}

func (w *world) there(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// written makes sure that what is in a folder has its place on the disk: until then a
// file may take none, and what is measured twice is not the same.
func written(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Type()&fs.ModeSymlink != 0 {
			return err
		}
		f, err := os.Open(path) //nolint:gosec // below the test's folder
		if err != nil {
			return err
		}
		return errors.Join(f.Sync(), f.Close())
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (w *world) reclaim(bin bool) *app.Reclaimed {
	w.Helper()
	r, err := w.service.ReclaimDisk(w.ctx, app.ReclaimRequest{EmptyBin: bin})
	if err != nil {
		w.Fatal(err)
	}
	for _, k := range r.Kept {
		w.Errorf("kept %s: %s", k.Workspace, k.Why)
	}
	return r
}

// Only what is over goes to the bin, and its work can be brought back after the
// bin is empty, also when its task is gone.
func TestReclaimLosesNothing(t *testing.T) {
	w := newWorld(t, 4)
	w.project(app.ProjectInput{})
	go1 := filepath.Join(w.dir, "go")
	waits := w.task(app.TaskRequest{Name: "waits", Review: "human", Agent: app.AgentInput{Instructions: "echo x>x"}})
	runs := w.task(app.TaskRequest{Name: "runs", Review: "human", Agent: app.AgentInput{Instructions: "until test -e " + go1 + "; do sleep 0.05; done; echo x>x"}})
	failed := w.task(app.TaskRequest{Name: "failed", Agent: app.AgentInput{Instructions: "echo done>done; false"}})
	w.state(waits.ID, work.Ready)
	w.state(failed.ID, work.Failed)
	w.eventually("a workspace that is in use", func() bool { return w.there(w.workspaceOf(runs.ID) + "/a") })
	for name, text := range map[string]string{"by-hand": "precious\n", "done": "changed\n"} {
		if err := os.WriteFile(filepath.Join(w.workspaceOf(failed.ID), name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("by-hand", filepath.Join(w.workspaceOf(failed.ID), "link")); err != nil {
		t.Fatal(err)
	}
	written(t, w.workspaceOf(failed.ID))
	use, err := w.service.Disk(w.ctx)
	if err != nil || use.Reclaimable == 0 || use.Partial || use.Database == 0 || use.Free == 0 || len(use.Projects) != 1 || use.Projects[0].Name != "p" {
		t.Fatalf("%+v, %v", use, err)
	}
	for _, row := range use.Tasks { // a transcript may have no blocks yet: what is told is what is allocated
		if row.Workspace == 0 || row.ReclaimAt.IsZero() == (row.TaskID == failed.ID) {
			t.Errorf("%+v", row)
		}
	}

	got := w.reclaim(false)
	if len(got.Binned) != 1 || got.Binned[0].TaskID != failed.ID || got.Binned[0].Bytes != use.Reclaimable || got.BinEmptied != 0 || got.Bin < use.Reclaimable {
		t.Errorf("%+v of %+v", got, use)
	}
	if w.there(w.workspaceOf(failed.ID)) || !w.there(w.workspaceOf(waits.ID)) || !w.there(w.workspaceOf(runs.ID)) {
		t.Error("not just the workspace of the task that is over went")
	}
	if got = w.reclaim(true); got.BinEmptied != 1 || got.BinFreed == 0 || len(got.Binned) != 0 || got.Bin > 4096 {
		t.Errorf("%+v", got)
	}
	if err := w.service.RemoveTask(w.ctx, string(failed.ID)); err != nil {
		t.Fatal(err)
	}
	all, err := w.service.Snapshots(w.ctx, string(failed.ID)[:6])
	if err != nil || len(all) != 2 {
		t.Fatalf("%+v, %v", all, err)
	}
	for _, x := range all {
		if !x.Removed || x.At.IsZero() || x.Why == "" || x.Project != "p" {
			t.Errorf("%+v", x)
		}
	}
	if all[0].Kind != app.SnapshotFiles || all[0].Files != 3 || all[1].Kind != app.SnapshotResult || all[1].Files != 1 {
		t.Errorf("%+v", all)
	}
	to := filepath.Join(t.TempDir(), "new", "dir")
	if _, err := w.service.RestoreSnapshot(w.ctx, app.RestoreRequest{Snapshot: all[0].Commit[:8], To: to}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a": "one\n", "by-hand": "precious\n", "done": "changed\n", "link": "precious\n"} {
		if text, err := os.ReadFile(filepath.Join(to, name)); err != nil || string(text) != want {
			t.Errorf("%s is %q, %v", name, text, err)
		}
	}
	if err := os.WriteFile(go1, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w.state(runs.ID, work.Ready)
}

// lateTasks and lateCore answer what was, after the test has had a moment.
type lateTasks struct {
	engine.Tasks
	between func(id work.TaskID)
}

func (l lateTasks) Task(ctx context.Context, id work.TaskID) (*work.Task, error) {
	t, err := l.Tasks.Task(ctx, id)
	l.between(id)
	return t, err
}

type lateCore struct {
	engine.Core
	between func(id work.TaskID)
}

func (l lateCore) View(ctx context.Context, tree work.TreeID, f func(*work.Tree) error) error {
	err := l.Core.View(ctx, tree, f)
	l.between(work.TaskID(tree))
	return err
}

// A retry that comes while a task is looked at keeps its workspace; one that comes
// after that waits, and begins in a new one.
func TestReclaimMeetsARetry(t *testing.T) {
	t.Parallel()
	for name, binned := range map[string]int{"before the last look": 0, "after it": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := makeWorld(t, 4, nil)
			w.stop()
			open, begun := filepath.Join(w.dir, "open"), filepath.Join(w.dir, "begun")
			var armed atomic.Bool
			retry := func(id work.TaskID) {
				if !armed.CompareAndSwap(true, false) {
					return
				}
				if _, err := w.service.RetryTask(w.ctx, string(id), false); err != nil {
					t.Error(err)
				}
				w.until(id, func(v *app.TaskView) bool { return v.State == work.Running })
				for end := time.Now().Add(time.Second); !w.there(begun) && time.Now().Before(end); { // it is not to begin yet
					time.Sleep(10 * time.Millisecond)
				}
			}
			w.wrap = func(o *engine.Options) {
				if binned == 0 {
					o.Tasks = lateTasks{o.Tasks, retry}
				} else {
					o.Core = lateCore{o.Core, retry}
				}
			}
			w.start()
			w.project(app.ProjectInput{})
			task := w.task(app.TaskRequest{Review: "human", Agent: app.AgentInput{
				Instructions: "test -e " + open + " || exit 1; d=$(pwd -P); echo >" + begun + "; sleep 0.5; echo here>\"$d\"/here",
			}})
			w.state(task.ID, work.Failed)
			if err := os.WriteFile(open, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			armed.Store(true)
			if got := w.reclaim(false); len(got.Binned) != binned {
				t.Errorf("went to the bin: %+v", got.Binned)
			}
			if v := w.state(task.ID, work.Ready); v.Result.Files != 1 {
				t.Errorf("%d files", v.Result.Files)
			}
			if !w.there(w.workspaceOf(task.ID) + "/here") {
				t.Error("the workspace is gone")
			}
		})
	}
}

// Retries and reclaims in any order: no run loses the folder it works in.
func TestReclaimNeverTakesWhatRuns(t *testing.T) {
	w := newWorld(t, 4)
	w.project(app.ProjectInput{})
	// It ends badly where its folder is not the one at its path any more.
	const script = `echo $$ >>x; d=$(pwd -P); i=$(ls -di . | cut -d' ' -f1); for n in 1 2 3 4 5; do sleep 0.01; j=$(ls -di "$d" | cut -d' ' -f1); test "$i" = "$j" || { echo LOST; exit 7; }; done; exit 1`
	var ids []work.TaskID
	for range 3 {
		ids = append(ids, w.task(app.TaskRequest{Review: "human", Agent: app.AgentInput{Instructions: script}}).ID)
	}
	over := make(chan struct{})
	var binned atomic.Int64
	var loop sync.WaitGroup
	loop.Go(func() {
		for {
			select {
			case <-over:
				return
			default:
				binned.Add(int64(len(w.reclaim(false).Binned)))
			}
		}
	})
	for round := 0; round < 8 || binned.Load() == 0; round++ { // what is never reclaimed tries nothing
		for _, id := range ids {
			w.state(id, work.Failed)
			if _, err := w.service.RetryTask(w.ctx, string(id), false); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, id := range ids {
		w.state(id, work.Failed)
	}
	close(over)
	loop.Wait()
	for _, id := range ids {
		runs, err := w.service.Executions(w.ctx, string(id))
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range runs {
			if x.ExitCode == nil || *x.ExitCode != 1 {
				t.Errorf("execution %d ended with %v: %s", x.Number, x.ExitCode, x.Error)
			}
		}
		out := w.git("--git-dir", w.vaultDir(), "show", "claudomator/"+string(id)+":x")
		if got := len(strings.Fields(out)); got != len(runs) {
			t.Errorf("%d runs have left %d lines", len(runs), got)
		}
	}
}

func (w *world) vaultDir() string {
	w.Helper()
	found, _ := filepath.Glob(filepath.Join(w.dir, "vaults", "*.git")) // the pattern is well formed
	if len(found) != 1 {
		w.Fatalf("vaults: %q", found)
	}
	return found[0]
}

// What a judge has left is of no task, and brings back all the same.
func TestSnapshotOfAJudge(t *testing.T) {
	w := newWorld(t, 4)
	w.project(app.ProjectInput{})
	w.checker("echo note>note; git add note; git -c user.name=j -c user.email=j@x commit -qm note; echo loose>loose")
	task := w.task(app.TaskRequest{Agent: app.AgentInput{Instructions: "echo x>x"}})
	w.state(task.ID, work.Completed)
	var all []app.Snapshot
	w.eventually("two snapshots", func() bool {
		var err error
		if all, err = w.service.Snapshots(w.ctx, ""); err != nil || len(all) > 2 {
			t.Fatalf("%+v, %v", all, err)
		}
		return len(all) == 2
	})
	for _, x := range all {
		to := filepath.Join(t.TempDir(), "to")
		if _, err := w.service.RestoreSnapshot(w.ctx, app.RestoreRequest{Snapshot: x.Ref, To: to}); err != nil || x.TaskID != "" || x.Removed || x.Files == 0 {
			t.Errorf("%+v, %v", x, err)
		}
		if !w.there(filepath.Join(to, "note")) || !w.there(filepath.Join(to, "x")) {
			t.Errorf("%s lacks a file", x.Ref)
		}
	}
	use, err := w.service.Disk(w.ctx)
	if err != nil || len(use.Tasks) == 0 || use.Tasks[len(use.Tasks)-1].TaskID == "" {
		t.Errorf("all belongs to tasks that are there: %+v, %v", use, err)
	}
}

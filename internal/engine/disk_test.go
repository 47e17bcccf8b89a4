package engine_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/engine"
	"github.com/claudomator/claudomator/internal/work"
)

const mib = 1 << 20

// What is measured is what is there, once, and nothing that a link points at.
func TestMeasure(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "outside")
	file := func(path string, bytes int) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.Repeat("x", bytes)), 0o600); err != nil {
			t.Fatal(err)
		}
		written(t, path)
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	file(outside, 8*mib)
	file(in("claudomator.db"), mib)
	file(in("claudomator.db-wal"), mib)
	file(in("workspaces/a/d/big"), 3*mib)
	file(in("workspaces/b/x"), 1)
	file(in("workspaces/x-c/x"), mib)
	file(in("workspaces/.a.old-git/x"), mib)
	file(in("workspaces/.a.unreadable-git-7/x"), mib)
	file(in("workspaces/of-nobody"), mib)
	file(in("transcripts/e.jsonl"), 2*mib)
	file(in("vaults/p.git/pack"), 4*mib)
	file(in("bin/c-1/x"), mib)
	file(in("bin/c-1.claudomator.json"), 1)
	file(in("run.log"), mib)
	for name, link := range map[string]func(string, string) error{"workspaces/b/link": os.Symlink, "workspaces/b/folder": func(_, to string) error { return os.Symlink("/usr", to) }} {
		if err := link(outside, in(name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"workspaces/a/again", "workspaces/a/d/more"} {
		if err := os.Link(in("workspaces/a/d/big"), in(name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("loop", in("workspaces/b/loop")); err != nil {
		t.Fatal(err)
	}
	disk := engine.Disk{DataDir: dir, Database: in("claudomator.db")}
	m, err := disk.Measure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ got, want int64 }{
		"a": {m.Workspaces[app.Workspace{Task: "a"}], 3 * mib}, "b": {m.Workspaces[app.Workspace{Task: "b"}], 0},
		"a judge's": {m.Workspaces[app.Workspace{Execution: "c"}], mib}, "of nobody": {m.SetAside[app.Workspace{}], mib},
		"set aside": {m.SetAside[app.Workspace{Task: "a"}], 2 * mib}, "transcript": {m.Transcripts["e"], 2 * mib}, "vault": {m.Vaults["p"], 4 * mib},
		"bin": {m.Bin, mib}, "database": {m.Database, 2 * mib}, "other": {m.Other, mib},
	} {
		if c.got < c.want || c.got > c.want+mib/2 { // folders and blocks take a bit more
			t.Errorf("%s: %d bytes, want a bit more than %d", name, c.got, c.want)
		}
	}
	if m.Binned != 1 || m.Free <= 0 || m.Size < m.Free || m.Partial || len(m.Workspaces) != 3 || len(m.SetAside) != 2 {
		t.Errorf("%+v", m)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := disk.Measure(ended); work.CodeOf(err) != work.Timeout {
		t.Errorf("nobody waits for it any more: %v", err)
	}
}

// A workspace is found again by its folder's name; what is none is nobody's, or was
// set aside of one.
func TestWorkspaceNames(t *testing.T) {
	t.Parallel()
	const id = "fixbasket2345678"
	for name, c := range map[string]struct {
		of app.Workspace
		ok bool
	}{
		id:                              {app.Workspace{Task: id}, true},
		"x-" + id:                       {app.Workspace{Execution: id}, true},
		"m-" + id:                       {app.Workspace{Merge: id}, true},
		"." + id + ".old-git":           {app.Workspace{Task: id}, false},
		".x-" + id + ".old-git":         {app.Workspace{Execution: id}, false},
		".m-" + id + ".old-git":         {app.Workspace{Merge: id}, false},
		"." + id + ".unreadable-git-17": {app.Workspace{Task: id}, false},
		"." + id:                        {app.Workspace{Task: id}, false},
		"y-" + id:                       {}, "lost-found": {}, "x-": {}, "m-": {}, "-": {}, ".": {}, "": {},
	} {
		of, ok := engine.WorkspaceOf(name)
		if of != c.of || ok != c.ok {
			t.Errorf("%q: %+v, %v", name, of, ok)
		}
		if folder := engine.Folder(of); ok && folder != name {
			t.Errorf("%q has the folder %q", name, folder)
		}
	}
}

// A workspace that cannot be reclaimed stays as it is, and is named.
func TestReclaimSaysWhatItCannot(t *testing.T) {
	w := newWorld(t, 4)
	w.project(app.ProjectInput{})
	task := w.task(app.TaskRequest{Agent: app.AgentInput{Instructions: "echo x>x; false"}})
	w.state(task.ID, work.Failed)
	if err := os.WriteFile(filepath.Join(w.dir, "bin"), nil, 0o600); err != nil { // there can be no bin
		t.Fatal(err)
	}
	got, err := w.service.ReclaimDisk(w.ctx, app.ReclaimRequest{EmptyBin: true})
	if err != nil || len(got.Binned) != 0 || len(got.Kept) != 1 || got.Kept[0].Workspace != string(task.ID) || got.Kept[0].Why == "" {
		t.Errorf("%+v, %v", got, err)
	}
	if !w.there(w.workspaceOf(task.ID) + "/x") {
		t.Error("the workspace is gone")
	}
}

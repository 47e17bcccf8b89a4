package cli

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

// cellar is a server with something on its disk, hostile names included.
type cellar struct {
	*fake
	asked []string
}

func (*cellar) Disk(context.Context) (*app.DiskUse, error) {
	const mib = 1 << 20
	return &app.DiskUse{
		Tasks: []app.TaskDisk{
			{TaskID: "fixbasket2345678", Name: "Fix the basket\x1b[31m\u202e", State: work.Failed, ProjectID: "p1", Workspace: 300 * mib, Transcripts: 5000, ReclaimAt: noon().Add(50 * time.Hour)},
			{TaskID: "fixbasket9999999", Name: "数え直す", State: work.Ready, ProjectID: "p1", Workspace: 200 * mib},
			{TaskID: "oldbasket2345678", Name: "Old", State: work.Completed, ProjectID: "p1", Workspace: 1000, ReclaimAt: noon().Add(-time.Minute)},
			{Transcripts: 1023},
		},
		Projects: []app.ProjectDisk{{ProjectID: "p1", Name: "shop", Vault: 1<<30 - 1}, {ProjectID: "p9", Vault: 12}},
		Bin:      5 * mib, Binned: 1, BinFor: work.Duration(14 * 24 * time.Hour), Database: 4096, Other: 0,
		Total: 1529 * mib, Reclaimable: 301 * mib, Free: 12 << 30, Size: 3 << 40, Partial: true,
	}, nil
}

func (f *cellar) ReclaimDisk(_ context.Context, in app.ReclaimRequest) (*app.Reclaimed, error) {
	out := &app.Reclaimed{
		Binned: []app.ReclaimedWorkspace{{TaskID: "fixbasket2345678", Bytes: 300 << 20}, {TaskID: "oldbasket2345678", Bytes: 1000}},
		Kept:   []app.KeptWorkspace{{Workspace: "badbasket2345678", Why: "the disk is full (storage_full)\x07"}}, Bin: 305 << 20, Free: 12 << 30,
	}
	f.asked = append(f.asked, "reclaim")
	if in.EmptyBin {
		f.asked = append(f.asked, "empty")
		out.Bin, out.BinFreed, out.BinEmptied = 0, 305<<20, 3
	}
	return out, nil
}

func (*cellar) Snapshots(_ context.Context, ref string) ([]app.Snapshot, error) {
	if ref == "nobody" {
		return nil, nil
	}
	at := noon().Add(-3 * time.Hour)
	return []app.Snapshot{
		{Ref: "refs/claudomator/snapshots/fixbasket2345678/17", Commit: strings.Repeat("c0ffee12", 5), Kind: app.SnapshotFiles, Why: "Before the workspace was reset or discarded", At: at, Files: 3, TaskID: "fixbasket2345678", TaskName: "Fix the basket\x1b[31m", ProjectID: "p1", Project: "shop"},
		{Ref: "refs/claudomator/kept/oldbasket2345678/x", Commit: strings.Repeat("beef0123", 5), Kind: app.SnapshotCommits, Why: "Commits outside of a result: wip", At: at, Files: 1, TaskID: "oldbasket2345678", Removed: true, ProjectID: "p1", Project: "shop"},
		{Ref: "refs/claudomator/snapshots/detached-1/18", Commit: strings.Repeat("feed4567", 5), Kind: app.SnapshotFiles, Why: "Before the workspace was reset or discarded", At: at, Files: 2, ProjectID: "p1", Project: "shop"},
	}, nil
}

func (f *cellar) RestoreSnapshot(ctx context.Context, in app.RestoreRequest) (*app.Restored, error) {
	f.asked = append(f.asked, strings.Join([]string{in.Task, in.Snapshot, in.To, in.Branch}, "|"))
	all, err := f.Snapshots(ctx, "")
	return &app.Restored{Snapshot: all[0], To: in.To, Branch: in.Branch}, err
}

func TestOutputDisk(t *testing.T) {
	t.Parallel()
	for name, args := range map[string]string{
		"disk": "disk", "disk-json": "disk -o json", "disk-reclaim": "disk --reclaim", "disk-reclaim-bin": "disk --reclaim --bin --yes",
		"disk-reclaim-json": "disk --reclaim --bin --yes -o json", "disk-unasked": "disk --reclaim --bin", "disk-bin": "disk --bin", "disk-yes": "disk --reclaim --yes",
		"rescue": "rescue", "rescue-json": "rescue basket -o json", "rescue-none": "rescue nobody", "rescue-none-json": "rescue nobody -o json",
		"rescue-to": "rescue --restore c0ffee12 --to /tmp/new", "rescue-branch": "rescue --restore c0ffee12 --branch saved", "rescue-branch-json": "rescue --restore c0ffee12 --branch saved -o json",
		"rescue-nowhere": "rescue --restore c0ffee12", "rescue-nothing": "rescue basket --to /tmp/new", "rescue-both": "rescue --restore c0ffee12 --to /tmp/new --branch saved",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			golden(t, "output/"+name, runOn(t, &cellar{fake: &fake{}}, nil, strings.Fields(args)...).String())
		})
	}
}

// runOn is run against something that is more than a fake.
func runOn(t *testing.T, api app.API, change func(*Deps), args ...string) result {
	t.Helper()
	return run(t.Context(), &fake{}, func(d *Deps) {
		d.Connect = func(context.Context, string, string) (app.API, error) { return api, nil }
		if change != nil {
			change(d)
		}
	}, args...)
}

// The bin is emptied after a yes, and after nothing else.
func TestBinIsConfirmed(t *testing.T) {
	t.Parallel()
	tests := map[string]int{"y\n": 0, "YES\n": 0, "\n": 4, "n\n": 4, "yess\n": 4, "": 4}
	for typed, code := range tests {
		api := &cellar{fake: &fake{}}
		r := runOn(t, api, func(d *Deps) {
			d.In, d.Terminal, d.InTerminal = strings.NewReader(typed), true, true
		}, "disk", "--reclaim", "--bin")
		if r.code != code || slices.Contains(api.asked, "empty") != (code == 0) || len(api.asked) > 0 != (code == 0) {
			t.Errorf("%q: asked %q, %+v", typed, api.asked, r)
		}
	}
	api := &cellar{fake: &fake{}}
	if r := runOn(t, api, func(d *Deps) { d.In, d.Terminal = io.MultiReader(strings.NewReader("y\n")), true }, "disk", "--reclaim", "--bin"); r.code != 2 || len(api.asked) > 0 {
		t.Errorf("a pipe is no person: %+v", r)
	}
}

// What is restored, and where to, is what was given; a folder means the same to a
// server in another one.
func TestRescueAsks(t *testing.T) {
	t.Parallel()
	api := &cellar{fake: &fake{}}
	runOn(t, api, nil, "rescue", "basket", "--restore", "c0ffee", "--to", "sub/../dir")
	if len(api.asked) != 1 || !strings.HasPrefix(api.asked[0], "basket|c0ffee|/") || !strings.HasSuffix(api.asked[0], "/dir|") || strings.Contains(api.asked[0], "..") {
		t.Errorf("asked %q", api.asked)
	}
}

func TestSize(t *testing.T) {
	t.Parallel()
	for bytes, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1<<20 - 1: "1.0 MiB", 1 << 20: "1.0 MiB", 5<<30 + 1<<29: "5.5 GiB", 1<<63 - 1: "8.0 EiB"} {
		if got := size(bytes); got != want {
			t.Errorf("%d is %s, want %s", bytes, got, want)
		}
	}
}

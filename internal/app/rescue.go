package app

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/claudomator/claudomator/internal/work"
)

// Vaults reads what was kept of tasks, and brings it back.
type Vaults interface {
	// Projects are those that have a vault, removed ones too.
	Projects(ctx context.Context) ([]work.ProjectID, error)
	// Kept lists what the vault of a project keeps of tasks, in no order;
	// the fields about the task's row and the project are left empty.
	Kept(ctx context.Context, project work.Project) ([]Snapshot, error)
	// Restore writes the files of a commit into a new or empty folder of this
	// machine. Conflict when the folder holds something.
	Restore(ctx context.Context, project work.Project, commit, dir string) error
	// NewBranch makes a branch at a commit in the project's repository. Invalid
	// when the name is none, or taken.
	NewBranch(ctx context.Context, project work.Project, commit, branch string) error
}

// SnapshotKind says what a snapshot is of.
type SnapshotKind string

// The kinds of snapshots.
const (
	SnapshotFiles   SnapshotKind = "files"   // a workspace as it stood, ignored files too
	SnapshotCommits SnapshotKind = "commits" // commits that no result holds
	SnapshotBranch  SnapshotKind = "branch"  // a task's branch before it was set back
	SnapshotResult  SnapshotKind = "result"  // a task's branch: what its runs have reported
)

// SnapshotKinds are all of them.
func SnapshotKinds() []SnapshotKind {
	return []SnapshotKind{SnapshotFiles, SnapshotCommits, SnapshotBranch, SnapshotResult}
}

// Snapshot is something of a task that the vault keeps.
type Snapshot struct {
	Ref       string         `json:"ref"` // in the project's vault
	Commit    string         `json:"commit"`
	Kind      SnapshotKind   `json:"kind"`
	Why       string         `json:"why"`
	At        time.Time      `json:"at"`
	Files     int            `json:"files"` // that differ from what the work began with
	TaskID    work.TaskID    `json:"task_id,omitempty"`
	TaskName  string         `json:"task_name,omitempty"`
	Removed   bool           `json:"removed,omitempty"` // the task is gone
	ProjectID work.ProjectID `json:"project_id"`
	Project   string         `json:"project"`
}

// RestoreRequest says which snapshot is brought back, and where to: a folder or a
// branch.
type RestoreRequest struct {
	Snapshot string `json:"snapshot" doc:"Its ref, or an unambiguous beginning of its commit"`
	Task     string `json:"task,omitempty" doc:"Only among those of this task"`
	To       string `json:"to,omitempty" doc:"Absolute path of a new or empty folder on the server's machine"`
	Branch   string `json:"branch,omitempty" doc:"Name of a new branch in the project's repository"`
}

// Restored says what was brought back, and where to.
type Restored struct {
	Snapshot Snapshot `json:"snapshot"`
	To       string   `json:"to,omitempty"`
	Branch   string   `json:"branch,omitempty"`
}

// Snapshots lists what is kept of a task, or of all tasks, newest first. A task's
// result is among it where the task is named, or gone. A removed task is known by
// its id, or three characters or more of its beginning.
func (s *Service) Snapshots(ctx context.Context, taskRef string) ([]Snapshot, error) {
	if _, err := may(ctx, false); err != nil {
		return nil, err
	}
	all, err := s.keptOf(ctx, taskRef)
	if taskRef == "" {
		all = slices.DeleteFunc(all, func(x Snapshot) bool { return x.Kind == SnapshotResult && !x.Removed })
	}
	slices.SortFunc(all, func(a, b Snapshot) int { return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.Ref, b.Ref)) })
	return all, err
}

// keptOf is what all vaults keep of a task, or of all.
func (s *Service) keptOf(ctx context.Context, taskRef string) ([]Snapshot, error) {
	all, err := s.kept(ctx)
	if err != nil || taskRef == "" {
		return all, err
	}
	id, err := s.o.Lookup.ResolveTask(ctx, taskRef)
	if err != nil && work.CodeOf(err) == work.NotFound {
		id, err = removedTask(all, taskRef)
	}
	return slices.DeleteFunc(all, func(x Snapshot) bool { return x.TaskID != id }), err
}

// kept is what all vaults keep.
func (s *Service) kept(ctx context.Context) ([]Snapshot, error) {
	ids, err := s.o.Vaults.Projects(ctx)
	if err != nil {
		return nil, err
	}
	var all []Snapshot
	tasks := map[work.TaskID]*work.Task{}
	for _, id := range ids {
		p, err := s.known(ctx, id)
		if err != nil {
			return nil, err
		}
		if p.ID == "" {
			continue // of another database: its repository is not known
		}
		kept, err := s.o.Vaults.Kept(ctx, *p)
		if err != nil {
			return nil, err
		}
		for _, x := range kept {
			x.ProjectID, x.Project = p.ID, p.Name
			t, known := tasks[x.TaskID]
			if !known {
				if t, err = s.task(ctx, x.TaskID); err != nil {
					return nil, err
				}
				tasks[x.TaskID] = t
			}
			if t != nil {
				x.TaskName = t.Name
			}
			x.Removed = x.TaskID != "" && t == nil
			all = append(all, x)
		}
	}
	return all, nil
}

// removedTask finds a task that only the vaults still know.
func removedTask(all []Snapshot, ref string) (work.TaskID, error) {
	const least = 3
	found := map[work.TaskID]bool{}
	for _, x := range all {
		if x.Removed && (string(x.TaskID) == ref || len(ref) >= least && strings.HasPrefix(string(x.TaskID), ref)) {
			found[x.TaskID] = true
		}
	}
	var ids []string
	for id := range found {
		ids = append(ids, string(id))
	}
	slices.Sort(ids)
	switch len(ids) {
	case 0:
		return "", work.Errorf(work.NotFound, "there is no task %q, and nothing is kept of one", ref).WithHint("`claudomator rescue` lists what is kept of all")
	case 1:
		return work.TaskID(ids[0]), nil
	}
	return "", work.Errorf(work.Invalid, "%d removed tasks are meant by %q", len(ids), ref).WithReason("ambiguous").WithHint("use the id of one: %s", strings.Join(ids, ", "))
}

// RestoreSnapshot brings a snapshot back, as the server's user on the server's
// machine.
func (s *Service) RestoreSnapshot(ctx context.Context, in RestoreRequest) (*Restored, error) {
	if _, err := may(ctx, true); err != nil {
		return nil, err
	}
	switch {
	case in.Snapshot == "":
		return nil, work.Errorf(work.Invalid, "no snapshot is named").WithHint("`claudomator rescue` lists them")
	case (in.To == "") == (in.Branch == ""):
		return nil, work.Errorf(work.Invalid, "a snapshot is restored to a folder or to a branch").WithHint("give one of to and branch")
	case in.To != "" && !filepath.IsAbs(in.To):
		return nil, work.Errorf(work.Invalid, "the folder %q is not an absolute path", in.To).WithHint("it is a path on the server's machine")
	case in.Branch != "" && !work.ValidBranch(in.Branch):
		return nil, work.Errorf(work.Invalid, "%q cannot be a branch name", in.Branch)
	}
	x, err := s.snapshot(ctx, in)
	if err != nil {
		return nil, err
	}
	p, err := s.known(ctx, x.ProjectID)
	if err != nil {
		return nil, err
	}
	if in.To != "" {
		err = s.o.Vaults.Restore(ctx, *p, x.Commit, in.To)
	} else {
		err = s.o.Vaults.NewBranch(ctx, *p, x.Commit, in.Branch)
	}
	if err != nil {
		return nil, err
	}
	return &Restored{Snapshot: *x, To: in.To, Branch: in.Branch}, nil
}

// snapshot finds the one that a request names.
func (s *Service) snapshot(ctx context.Context, in RestoreRequest) (*Snapshot, error) {
	const least = 4
	all, err := s.keptOf(ctx, in.Task)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(all, func(x Snapshot) bool { return x.Ref == in.Snapshot }); i >= 0 {
		return &all[i], nil
	}
	var found []Snapshot
	for _, x := range all {
		if len(in.Snapshot) < least || !strings.HasPrefix(x.Commit, in.Snapshot) {
			continue
		}
		// The same commit under two names of one vault is the same snapshot.
		if !slices.ContainsFunc(found, func(y Snapshot) bool { return y.Commit == x.Commit && y.ProjectID == x.ProjectID }) {
			found = append(found, x)
		}
	}
	switch len(found) {
	case 0:
		return nil, work.Errorf(work.NotFound, "there is no snapshot %q", in.Snapshot).WithHint("see `claudomator rescue TASK`")
	case 1:
		return &found[0], nil
	}
	var refs []string
	for _, x := range found[:min(len(found), 6)] {
		refs = append(refs, x.Ref)
	}
	return nil, work.Errorf(work.Invalid, "%d snapshots are meant by %q", len(found), in.Snapshot).WithReason("ambiguous").WithHint("use the ref of one: %s", strings.Join(refs, ", "))
}

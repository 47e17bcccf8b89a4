package engine

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/git"
	"github.com/claudomator/claudomator/internal/work"
)

const (
	vaultSuffix  = ".git"
	branchPrefix = "refs/heads/claudomator/" // of tasks, in a vault
	// These begin the last part of a snapshot that is a branch.
	beforeFresh = "branch-"
	beforeBack  = "lost-"
)

// Projects lists those that have a vault.
func (v *Vaults) Projects(context.Context) ([]work.ProjectID, error) {
	entries, err := os.ReadDir(v.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, work.Errorf(work.Internal, "look for vaults: %w", err)
	}
	var ids []work.ProjectID
	for _, entry := range entries {
		if id, ok := strings.CutSuffix(entry.Name(), vaultSuffix); ok && !strings.HasPrefix(id, ".") {
			ids = append(ids, work.ProjectID(id))
		}
	}
	return ids, nil
}

// Kept lists what a project's vault keeps of tasks.
func (v *Vaults) Kept(ctx context.Context, p work.Project) ([]app.Snapshot, error) {
	vault, err := v.get(ctx, p)
	if err != nil {
		return nil, named(err)
	}
	var all []app.Snapshot
	var changes []git.Change
	for _, prefix := range []string{git.SnapshotPrefix, git.KeptPrefix, branchPrefix} {
		found, err := vault.Snapshots(ctx, prefix)
		if err != nil {
			return nil, named(err)
		}
		for _, info := range found {
			x := snapshotOf(prefix, info)
			change := git.Change{From: info.Parent, To: info.Commit}
			if x.Kind != app.SnapshotFiles && x.TaskID != "" { // it may be many commits
				base, err := refOf(ctx, vault, baseRef(x.TaskID))
				if err != nil {
					return nil, named(err)
				}
				if base != "" {
					change.From = base
				}
			}
			all, changes = append(all, x), append(changes, change)
		}
	}
	counts, err := vault.ChangedFiles(ctx, changes)
	if err != nil {
		return nil, named(err)
	}
	for i := range all {
		all[i].Files = counts[i]
	}
	return slices.DeleteFunc(all, func(x app.Snapshot) bool {
		return x.Kind == app.SnapshotResult && (x.Files == 0 || x.TaskID == "") // nothing yet, or a landing's
	}), nil
}

// snapshotOf tells whose a reference of the vault is, and why it is there.
func snapshotOf(prefix string, info git.SnapshotInfo) app.Snapshot {
	task, last, _ := strings.Cut(strings.TrimPrefix(info.Ref, prefix), "/")
	of, _ := workspaceOf(task)
	x := app.Snapshot{Ref: info.Ref, Commit: info.Commit, At: info.At, TaskID: of.Task} // none of a judge, of gates, or of a landing's conflict
	subject, _, _ := strings.Cut(info.Message, "\n")
	switch {
	case prefix == branchPrefix:
		x.Kind, x.Why = app.SnapshotResult, "What its runs have reported"
	case prefix == git.KeptPrefix:
		x.Kind, x.Why = app.SnapshotCommits, "Commits outside of a result: "+subject
	case strings.HasPrefix(last, beforeFresh):
		x.Kind, x.Why = app.SnapshotBranch, "Before it was started over"
	case strings.HasPrefix(last, beforeBack):
		x.Kind, x.Why = app.SnapshotBranch, "What a lost run had handed over"
	default:
		x.Kind, x.Why = app.SnapshotFiles, subject
	}
	return x
}

// Restore writes the files of a commit into a new or empty folder outside of the
// data folder.
func (v *Vaults) Restore(ctx context.Context, p work.Project, commit, dir string) error {
	inside, err := v.ours(dir)
	if err != nil {
		return err
	}
	if inside {
		return work.Errorf(work.Invalid, "%s is in the server's data folder", dir).WithHint("choose another folder")
	}
	vault, err := v.get(ctx, p)
	if err == nil {
		err = vault.Restore(ctx, commit, dir)
	}
	switch {
	case err == nil:
		return nil
	case git.KindOf(err) == git.KindPathOccupied:
		return work.Errorf(work.Conflict, "%s is not an empty folder", dir).WithReason(string(git.KindPathOccupied)).WithHint("choose another; nothing in it was touched")
	case notWritable(err):
		return work.Errorf(work.Invalid, "write to %s as the server's user: %w", dir, err).WithHint("choose a folder that the server may write to")
	}
	refusal := named(err)
	if e, ok := work.AsError(refusal); ok && e.Hint == "" {
		return e.WithHint("what was written so far is in %s", dir)
	}
	return refusal
}

// notWritable is true for what is the path's fault, not the server's.
func notWritable(err error) bool {
	for _, cause := range []error{fs.ErrPermission, syscall.EROFS, syscall.ENOTDIR, syscall.ELOOP, syscall.ENAMETOOLONG} {
		if errors.Is(err, cause) {
			return true
		}
	}
	return false
}

// ours is true for a path that is, or would be, in the data folder.
func (v *Vaults) ours(path string) (bool, error) {
	data, err := filepath.EvalSymlinks(filepath.Dir(v.dir))
	if err != nil {
		return false, work.Errorf(work.Internal, "find the data folder: %w", err)
	}
	for path = filepath.Clean(path); ; path = filepath.Dir(path) {
		real, err := filepath.EvalSymlinks(path)
		if err == nil {
			return real == data || strings.HasPrefix(real, data+string(filepath.Separator)), nil
		}
		if path == filepath.Dir(path) {
			return false, nil
		}
	}
}

// NewBranch makes a branch at a commit in the project's repository.
func (v *Vaults) NewBranch(ctx context.Context, p work.Project, commit, branch string) error {
	vault, err := v.get(ctx, p)
	if err == nil {
		err = vault.NewBranch(ctx, branch, commit)
	}
	if err != nil {
		return named(err)
	}
	return nil
}

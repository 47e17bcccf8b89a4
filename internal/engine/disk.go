package engine

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

// Disk measures a data folder, for the surfaces.
type Disk struct {
	DataDir   string
	Database  string // file of the database; "" when another program keeps it
	Retention Retention
}

// Measure implements app.Disk.
func (d Disk) Measure(ctx context.Context) (app.Measured, error) {
	out := app.Measured{
		Workspaces: map[app.Workspace]int64{}, SetAside: map[app.Workspace]int64{},
		Transcripts: map[work.ExecutionID]int64{}, Vaults: map[work.ProjectID]int64{}, Retention: d.Retention,
	}
	s := newSurveyor()
	for _, name := range d.databaseFiles() {
		out.Database += s.size(ctx, name)
	}
	entries, err := os.ReadDir(d.DataDir)
	if err != nil {
		return out, work.Errorf(work.Internal, "look at the data folder: %w", err)
	}
	for _, entry := range entries {
		dir := filepath.Join(d.DataDir, entry.Name())
		switch entry.Name() {
		case "workspaces":
			s.each(ctx, dir, func(name string, bytes int64) {
				if w, ok := workspaceOf(name); ok {
					out.Workspaces[w] = bytes
				} else {
					out.SetAside[w] += bytes
				}
			})
		case "transcripts":
			s.each(ctx, dir, func(name string, bytes int64) {
				id, _, _ := strings.Cut(name, ".") // plain or compressed, or both
				out.Transcripts[work.ExecutionID(id)] += bytes
			})
		case "vaults":
			s.each(ctx, dir, func(name string, bytes int64) {
				out.Vaults[work.ProjectID(strings.TrimSuffix(name, vaultSuffix))] = bytes
			})
		case "bin":
			s.each(ctx, dir, func(name string, bytes int64) {
				out.Bin += bytes
				if !strings.HasSuffix(name, ".json") {
					out.Binned++
				}
			})
		default:
			out.Other += s.size(ctx, dir) // the database's files were counted already
		}
	}
	if ctx.Err() != nil {
		return out, work.Errorf(work.Timeout, "measure the data folder: %w", context.Cause(ctx))
	}
	out.Partial = s.partial
	out.Free, out.Size, err = space(d.DataDir)
	return out, err
}

// databaseFiles are the database's, and what SQLite keeps beside it.
func (d Disk) databaseFiles() []string {
	if d.Database == "" {
		return nil
	}
	return []string{d.Database, d.Database + "-wal", d.Database + "-shm"}
}

func (e *Engine) workspace(w app.Workspace) string {
	return filepath.Join(e.o.DataDir, "workspaces", folder(w))
}
func (e *Engine) mergeDir(id work.MergeID) string { return e.workspace(app.Workspace{Merge: id}) }
func (e *Engine) binDir() string                  { return filepath.Join(e.o.DataDir, "bin") }

// folder is the name of a workspace's folder.
func folder(w app.Workspace) string {
	switch {
	case w.Execution != "":
		return "x-" + string(w.Execution)
	case w.Merge != "":
		return "m-" + string(w.Merge)
	}
	return string(w.Task)
}

// workspaceOf tells which workspace has a folder's name. It is not ok for what was
// set aside of one (internal/git begins such names with a dot), and for what is of
// nobody: then w is empty.
func workspaceOf(name string) (w app.Workspace, ok bool) {
	of, aside := strings.CutPrefix(name, ".")
	if aside {
		of, _, _ = strings.Cut(of, ".")
	}
	switch kind, id, two := strings.Cut(of, "-"); {
	case !two:
		w.Task = work.TaskID(of)
	case kind == "x":
		w.Execution = work.ExecutionID(id)
	case kind == "m":
		w.Merge = work.MergeID(id)
	}
	return w, !aside && w != app.Workspace{}
}

// surveyor adds up what files take on the disk. What has several names counts
// once, where it is met first.
type surveyor struct {
	seen    map[inode]bool
	looked  int
	partial bool // something could not be read, or there was too much
}

type inode struct{ device, number uint64 }

func newSurveyor() *surveyor { return &surveyor{seen: map[inode]bool{}} }

// mostFiles bounds one survey: some ten seconds.
const mostFiles = 2_000_000

// each measures what is in a folder, one by one.
func (s *surveyor) each(ctx context.Context, dir string, found func(name string, bytes int64)) {
	entries, err := os.ReadDir(dir)
	s.partial = s.partial || err != nil
	for _, entry := range entries {
		found(entry.Name(), s.size(ctx, filepath.Join(dir, entry.Name())))
	}
}

// size measures a file, or a folder with all in it on its file system. A link is
// itself, not what it points at. What vanishes meanwhile is nothing.
func (s *surveyor) size(ctx context.Context, root string) (bytes int64) {
	var device uint64
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			s.partial = true
			return nil //nolint:nilerr // the others count
		}
		if s.looked++; ctx.Err() != nil || s.looked > mostFiles {
			s.partial = true
			return filepath.SkipAll
		}
		info, err := d.Info()
		if err != nil {
			s.partial = s.partial || !errors.Is(err, fs.ErrNotExist)
			return nil
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			bytes += info.Size()
			return nil
		}
		at := inode{uint64(st.Dev), st.Ino} //nolint:gosec,unconvert // signed on macOS
		if path == root {
			device = at.device
		}
		if at.device != device {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		if (st.Nlink > 1 || path == root) && !d.IsDir() {
			if s.seen[at] {
				return nil
			}
			s.seen[at] = true
		}
		const block = 512 // whatever the file system's is
		bytes += st.Blocks * block
		return nil
	})
	return bytes
}

// sizeOf measures one folder; what cannot be read in it is left out.
func sizeOf(ctx context.Context, dir string) (int64, error) {
	bytes := newSurveyor().size(ctx, dir)
	if ctx.Err() != nil {
		return 0, work.Errorf(work.Timeout, "measure %s: %w", filepath.Base(dir), context.Cause(ctx))
	}
	return bytes, nil
}

// space is how much of a file system is free for this user, and its size.
func space(dir string) (free, size int64, err error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return 0, 0, work.Errorf(work.Internal, "look at the file system of the data folder: %w", err)
	}
	block := int64(st.Bsize)                                       //nolint:unconvert // 32 bits on macOS
	return int64(st.Bavail) * block, int64(st.Blocks) * block, nil //nolint:gosec // far below
}

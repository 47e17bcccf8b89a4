package app

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/claudomator/claudomator/internal/work"
)

// Disk measures what the server's data uses. It changes nothing.
type Disk interface {
	// Measure looks at everything in the data folder, until ctx ends. Links are
	// not followed and other file systems not entered.
	Measure(ctx context.Context) (Measured, error)
}

// Workspace names one by whose it is: exactly one is set.
type Workspace struct {
	Task      work.TaskID
	Execution work.ExecutionID // one that is not its task's own work, as a judge's
	Merge     work.MergeID     // with a conflict
}

// Measured is what lies in the data folder; sizes are bytes that are allocated on
// the disk.
type Measured struct {
	Workspaces  map[Workspace]int64
	SetAside    map[Workspace]int64 // what broken ones have left; under none what is of nobody
	Transcripts map[work.ExecutionID]int64
	Vaults      map[work.ProjectID]int64
	Bin         int64
	Binned      int   // workspaces in the bin
	Database    int64 // 0 where it is another program's
	Other       int64
	Free, Size  int64 // of the file system
	Partial     bool  // some of it could not be read, or there was too much of it
	Retention   Retention
}

// Retention says how long finished things stay on the disk.
type Retention struct {
	Workspaces, Bin, Transcripts time.Duration
}

// DiskUse is what the server's data uses. Sizes are bytes that are allocated on
// the disk.
type DiskUse struct {
	Tasks       []TaskDisk    `json:"tasks"`    // largest first
	Projects    []ProjectDisk `json:"projects"` // largest first
	Bin         int64         `json:"bin_bytes"`
	Binned      int           `json:"bin_workspaces"`
	BinFor      work.Duration `json:"bin_kept_for"` // how long a workspace stays in the bin
	Database    int64         `json:"database_bytes"`
	Other       int64         `json:"other_bytes"`
	Total       int64         `json:"total_bytes"`
	Reclaimable int64         `json:"reclaimable_bytes"` // workspaces that can go to the bin now
	Free        int64         `json:"free_bytes"`        // of the data's file system, for this user
	Size        int64         `json:"file_system_bytes"`
	Partial     bool          `json:"partial,omitempty"` // it is more: some could not be read, or there was too much
}

// TaskDisk is what one task uses.
type TaskDisk struct {
	TaskID      work.TaskID    `json:"task_id"` // empty: of tasks that were removed
	Name        string         `json:"name,omitempty"`
	State       work.State     `json:"state,omitempty"`
	ProjectID   work.ProjectID `json:"project_id,omitempty"`
	Workspace   int64          `json:"workspace_bytes"`
	Transcripts int64          `json:"transcript_bytes"`
	ReclaimAt   time.Time      `json:"reclaim_at,omitzero"` // when its workspace goes to the bin by itself
}

// ProjectDisk is what a project's vault uses.
type ProjectDisk struct {
	ProjectID work.ProjectID `json:"project_id"`
	Name      string         `json:"name,omitempty"` // empty: not known to this database
	Vault     int64          `json:"vault_bytes"`
}

// ReclaimRequest says what is to be freed.
type ReclaimRequest struct {
	EmptyBin bool `json:"empty_bin,omitempty" doc:"Delete what is in the bin, for good; also what went there just now"`
}

// Reclaimed is what was freed.
type Reclaimed struct {
	Binned     []ReclaimedWorkspace `json:"binned"`      // went to the bin
	Kept       []KeptWorkspace      `json:"kept"`        // could not
	BinFreed   int64                `json:"freed_bytes"` // by emptying the bin
	BinEmptied int                  `json:"deleted_workspaces"`
	Bin        int64                `json:"bin_bytes"` // what is still in the bin
	Free       int64                `json:"free_bytes"`
}

// ReclaimedWorkspace is one that went to the bin.
type ReclaimedWorkspace struct {
	TaskID work.TaskID `json:"task_id"`
	Bytes  int64       `json:"bytes"`
}

// KeptWorkspace is one that could not be reclaimed.
type KeptWorkspace struct {
	Workspace string `json:"workspace"`
	Why       string `json:"why"`
}

// Over is true for a task whose workspace is not needed any more: it has ended,
// or another attempt stands at its place.
func Over(t *work.Task) bool { return t.State.Ended() || t.SupersededBy != "" }

// Disk is what the server's data uses, and what of it can be reclaimed.
func (s *Service) Disk(ctx context.Context) (*DiskUse, error) {
	if _, err := may(ctx, false); err != nil {
		return nil, err
	}
	m, err := s.o.Disk.Measure(ctx)
	if err != nil {
		return nil, err
	}
	out := &DiskUse{
		Tasks: []TaskDisk{}, Projects: []ProjectDisk{}, Bin: m.Bin, Binned: m.Binned, BinFor: work.Duration(m.Retention.Bin),
		Database: m.Database, Other: m.Other, Free: m.Free, Size: m.Size, Partial: m.Partial,
	}
	out.Total = m.Bin + m.Database + m.Other
	if err := s.taskDisk(ctx, m, out); err != nil {
		return nil, err
	}
	for id, bytes := range m.Vaults {
		p, err := s.known(ctx, id)
		if err != nil {
			return nil, err
		}
		out.Projects = append(out.Projects, ProjectDisk{ProjectID: id, Name: p.Name, Vault: bytes})
		out.Total += bytes
	}
	slices.SortFunc(out.Projects, func(a, b ProjectDisk) int {
		return cmp.Or(cmp.Compare(b.Vault, a.Vault), cmp.Compare(a.ProjectID, b.ProjectID))
	})
	return out, nil
}

// known is a project by its whole id, removed ones too; an empty one when this
// database does not know it.
func (s *Service) known(ctx context.Context, id work.ProjectID) (*work.Project, error) {
	p, err := s.o.Settings.Project(ctx, string(id))
	if err != nil || p.ID != id {
		return &work.Project{}, work.UnlessMissing(err)
	}
	return p, nil
}

// taskDisk sums up by task. What belongs to none that is there is one row.
func (s *Service) taskDisk(ctx context.Context, m Measured, out *DiskUse) error {
	sums, err := s.sums(ctx, m)
	if err != nil {
		return err
	}
	gone := TaskDisk{}
	for id, row := range sums {
		out.Total += row.Workspace + row.Transcripts
		t, err := s.task(ctx, id)
		if err != nil {
			return err
		}
		if t == nil {
			gone.Workspace += row.Workspace
			gone.Transcripts += row.Transcripts
			continue
		}
		row.TaskID, row.Name, row.State, row.ProjectID = id, t.Name, t.State, t.ProjectID
		if bytes, there := m.Workspaces[Workspace{Task: id}]; there && Over(t) {
			row.ReclaimAt = t.UpdatedAt.Add(m.Retention.Workspaces)
			out.Reclaimable += bytes
		}
		out.Tasks = append(out.Tasks, *row)
	}
	if gone != (TaskDisk{}) {
		out.Tasks = append(out.Tasks, gone)
	}
	slices.SortFunc(out.Tasks, func(a, b TaskDisk) int {
		return cmp.Or(cmp.Compare(b.Workspace+b.Transcripts, a.Workspace+a.Transcripts), cmp.Compare(a.TaskID, b.TaskID))
	})
	return nil
}

// sums are the sizes by task, under "" what is of none.
func (s *Service) sums(ctx context.Context, m Measured) (map[work.TaskID]*TaskDisk, error) {
	sums := map[work.TaskID]*TaskDisk{}
	of := func(id work.TaskID) *TaskDisk {
		if sums[id] == nil {
			sums[id] = &TaskDisk{}
		}
		return sums[id]
	}
	for _, sizes := range []map[Workspace]int64{m.Workspaces, m.SetAside} {
		for w, bytes := range sizes {
			id, err := s.taskOfWorkspace(ctx, w)
			if err != nil {
				return nil, err
			}
			of(id).Workspace += bytes
		}
	}
	for x, bytes := range m.Transcripts {
		id, err := s.taskOfExecution(ctx, x)
		if err != nil {
			return nil, err
		}
		of(id).Transcripts += bytes
	}
	return sums, nil
}

// task is a task by its whole id, nil when there is none.
func (s *Service) task(ctx context.Context, id work.TaskID) (*work.Task, error) {
	if id == "" {
		return nil, nil //nolint:nilnil // no task is no error
	}
	t, err := s.o.Lookup.Task(ctx, id)
	if err != nil {
		return nil, work.UnlessMissing(err)
	}
	return t, nil
}

// taskOfWorkspace is the task that a workspace is of, "" when there is none.
func (s *Service) taskOfWorkspace(ctx context.Context, w Workspace) (work.TaskID, error) {
	switch {
	case w.Execution != "":
		return s.taskOfExecution(ctx, w.Execution)
	case w.Merge != "":
		m, err := s.o.Lookup.Merge(ctx, string(w.Merge))
		if err != nil {
			return "", work.UnlessMissing(err)
		}
		return m.TaskID, nil
	}
	return w.Task, nil
}

func (s *Service) taskOfExecution(ctx context.Context, id work.ExecutionID) (work.TaskID, error) {
	x, err := s.o.Lookup.Execution(ctx, string(id))
	if err != nil {
		return "", work.UnlessMissing(err)
	}
	return x.TaskID, nil
}

// ReclaimDisk moves the workspaces of tasks that are over to the bin, their work
// kept in the vault, and empties the bin when asked to.
func (s *Service) ReclaimDisk(ctx context.Context, in ReclaimRequest) (*Reclaimed, error) {
	if _, err := may(ctx, true); err != nil {
		return nil, err
	}
	return s.o.Reclaim(ctx, in.EmptyBin)
}

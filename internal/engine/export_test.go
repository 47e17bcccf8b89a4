package engine

import (
	"bytes"
	"log/slog"
)

// MeetTrouble is what River's own words do when it has met an error.
func (q *Queue) MeetTrouble() {
	slog.New(riverLog{slog.DiscardHandler, &q.troubled}).Info("Job errored; retrying")
	if q.troubled.Load() {
		panic("engine: a failed job is no trouble of the queue's")
	}
	slog.New(riverLog{slog.NewTextHandler(new(bytes.Buffer), nil), &q.troubled}).With("a", 1).WithGroup("g").Error("Completer error (will retry after sleep)")
}

var (
	Program     = program
	BranchOf    = branchOf
	BaseRef     = baseRef
	Folder      = folder
	WorkspaceOf = workspaceOf
)

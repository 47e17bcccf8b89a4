package app

import (
	"context"

	"github.com/claudomator/claudomator/internal/work"
)

// StartMerge begins to land a COMPLETED task on a branch (empty: the project's).
func (s *Service) StartMerge(ctx context.Context, taskRef, into string) (*work.Merge, error) {
	view, err := s.act(ctx, taskRef, func(id work.TaskID) work.Command { return work.StartMerge{Task: id, Target: into} })
	if err != nil {
		return nil, err
	}
	merges, err := s.o.Lists.Merges(ctx, view.ID)
	if err != nil {
		return nil, err
	}
	if len(merges) == 0 {
		return nil, work.Errorf(work.Internal, "the merge of %s is not to be found", view.ID)
	}
	return merges[0], nil
}

// Merges lists the landings of a task, newest first.
func (s *Service) Merges(ctx context.Context, taskRef string) ([]*work.Merge, error) {
	if _, err := may(ctx, false); err != nil {
		return nil, err
	}
	if taskRef == "" {
		return s.o.Lists.Merges(ctx, "")
	}
	id, err := s.o.Lookup.ResolveTask(ctx, taskRef)
	if err != nil {
		return nil, err
	}
	return s.o.Lists.Merges(ctx, id)
}

// Merge is one landing.
func (s *Service) Merge(ctx context.Context, ref string) (*work.Merge, error) {
	if _, err := may(ctx, false); err != nil {
		return nil, err
	}
	return s.o.Lookup.Merge(ctx, ref)
}

// ContinueMerge goes on with a conflicted landing after it was resolved.
func (s *Service) ContinueMerge(ctx context.Context, ref string) (*work.Merge, error) {
	return s.merge(ctx, ref, func(id work.MergeID) work.Command { return work.ContinueMerge{Merge: id} })
}

// AbortMerge ends a conflicted landing with nothing changed.
func (s *Service) AbortMerge(ctx context.Context, ref string) (*work.Merge, error) {
	return s.merge(ctx, ref, func(id work.MergeID) work.Command { return work.AbortMerge{Merge: id} })
}

func (s *Service) merge(ctx context.Context, ref string, command func(work.MergeID) work.Command) (*work.Merge, error) {
	by, err := may(ctx, true)
	if err != nil {
		return nil, err
	}
	m, err := s.o.Lookup.Merge(ctx, ref)
	if err != nil {
		return nil, err
	}
	if err := s.Do(ctx, m.TreeID, by, command(m.ID)); err != nil {
		return nil, err
	}
	return s.o.Lookup.Merge(ctx, string(m.ID))
}

package engine

import (
	"context"
	"errors"
	"io"

	"github.com/claudomator/claudomator/internal/git"
	"github.com/claudomator/claudomator/internal/work"
)

// Diff writes the patch between two commits of a project's vault.
func (v *Vaults) Diff(ctx context.Context, project work.Project, base, head string, w io.Writer, limit int64) error {
	vault, err := v.get(ctx, project)
	if err != nil {
		return named(err)
	}
	patch, _, err := vault.Patch(ctx, base, head, nil, int(limit))
	if err != nil {
		return named(err)
	}
	if _, err := w.Write(patch); err != nil {
		return work.Errorf(work.Internal, "write the patch: %w", err)
	}
	return nil
}

// Inspect checks a repository before it becomes a project's.
func (v *Vaults) Inspect(ctx context.Context, repository, branch string) (realPath, defaultBranch string, err error) {
	if branch != "" {
		if err := git.ValidBranch(branch); err != nil {
			return "", "", named(err)
		}
	}
	info, err := v.git.Inspect(ctx, repository, branch)
	if err != nil {
		return "", "", named(err)
	}
	return info.Path, info.Branch, nil
}

// codes says what class of error each kind of git error is for a caller.
func codes() map[git.Kind]work.Code {
	out := map[git.Kind]work.Code{
		git.KindTimeout: work.Timeout, git.KindStorageFull: work.Unavailable, git.KindUnreachable: work.Unavailable,
		git.KindLocked: work.Unavailable, git.KindMissingGit: work.Unavailable, git.KindFailed: work.Internal,
		git.KindTooLarge: work.Exhausted, git.KindRefMoved: work.Conflict, git.KindTargetMoved: work.Conflict,
		git.KindBranchHeld: work.Conflict, git.KindMergeRunning: work.Conflict,
		git.KindAuthentication: work.Unavailable, git.KindNotFastForward: work.Conflict, git.KindFileMissing: work.NotFound,
	}
	invalid := []git.Kind{
		git.KindNotARepository, git.KindUnsupported, git.KindNoCommits, git.KindDetached, git.KindBranchMissing,
		git.KindInvalidRef, git.KindRefConflict,
	}
	for _, kind := range invalid {
		out[kind] = work.Invalid
	}
	inTheWay := []git.Kind{
		git.KindPathOccupied, git.KindUnsafeWorkspace, git.KindCorruptWorkspace, git.KindDirtyCheckout, git.KindMidOperation,
		git.KindAlreadyLanded, git.KindPushRejected, git.KindShallowNoMergeBase, git.KindUnrelated,
	}
	for _, kind := range inTheWay {
		out[kind] = work.Conflict
	}
	return out
}

// named is a git error in the words every surface knows.
func named(err error) error {
	g, ok := errors.AsType[*git.Error](err)
	if !ok {
		return err
	}
	code, known := codes()[g.Kind]
	if !known {
		code = work.Internal
	}
	e := work.Errorf(code, "%s", g.Message).WithReason(string(g.Kind))
	e.Hint = g.Hint
	if len(g.Paths) > 0 {
		e.Details = map[string]any{"paths": g.Paths}
	}
	return e
}

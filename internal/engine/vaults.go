package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/claudomator/claudomator/internal/git"
	"github.com/claudomator/claudomator/internal/work"
)

// Vaults opens each project's vault once; the engine works with them, and app
// reads from them ([app.Diffs], [app.Repositories]).
type Vaults struct {
	git *git.Git
	dir string

	mu   sync.Mutex
	open map[work.ProjectID]*vault
}

type vault struct {
	mu         sync.Mutex
	repository string
	*git.Vault
	landing chan struct{} // holds one element while a landing runs
}

// NewVaults keeps vaults below a data directory.
func NewVaults(g *git.Git, dataDir string) *Vaults {
	return &Vaults{git: g, dir: filepath.Join(dataDir, "vaults"), open: map[work.ProjectID]*vault{}}
}

// get is the vault of a project, made at its first use.
func (v *Vaults) get(ctx context.Context, p work.Project) (*git.Vault, error) {
	entry := v.entry(p.ID)
	entry.mu.Lock()
	defer entry.mu.Unlock()
	if entry.Vault != nil && entry.repository == p.Repository {
		return entry.Vault, nil
	}
	opened, err := v.git.OpenVault(ctx, filepath.Join(v.dir, string(p.ID)+".git"), p.Repository)
	if err != nil {
		return nil, err
	}
	if entry.Vault != nil {
		entry.Close()
	}
	entry.Vault, entry.repository = opened, p.Repository
	return opened, nil
}

func (v *Vaults) entry(id work.ProjectID) *vault {
	v.mu.Lock()
	defer v.mu.Unlock()
	entry := v.open[id]
	if entry == nil {
		entry = &vault{landing: make(chan struct{}, 1)}
		v.open[id] = entry
	}
	return entry
}

// turn waits until no landing of the project runs, in the order of asking, and
// answers what ends this one; false when its turn has not come soon: landings
// must not hold up everything else that is to be done.
func (v *Vaults) turn(ctx context.Context, id work.ProjectID) (done func(), ok bool) {
	landing := v.entry(id).landing
	timer := time.NewTimer(turnLimit)
	defer timer.Stop()
	select {
	case landing <- struct{}{}:
		return func() { <-landing }, true
	case <-timer.C:
	case <-ctx.Done():
	}
	return nil, false
}

const turnLimit = 5 * time.Second

// looseMost is how many loose objects a vault may have, each a file; a small task
// leaves about ten.
const looseMost = 5000

// maintain packs what the runs of this life have made many of.
func (v *Vaults) maintain(ctx context.Context) (err error) {
	v.mu.Lock()
	entries := slices.Collect(maps.Values(v.open))
	v.mu.Unlock()
	for _, entry := range entries {
		entry.mu.Lock()
		vault := entry.Vault
		entry.mu.Unlock()
		if vault != nil {
			err = errors.Join(err, vault.Maintain(ctx, looseMost))
		}
	}
	return err
}

// Close ends the vaults' helper processes.
func (v *Vaults) Close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, entry := range v.open {
		if entry.Vault != nil {
			entry.Close()
		}
	}
}

// refOf reads a reference, "" when there is none.
func refOf(ctx context.Context, v *git.Vault, ref string) (string, error) {
	commit, err := v.Ref(ctx, ref)
	if git.KindOf(err) == git.KindBranchMissing {
		return "", nil
	}
	return commit, err
}

// discard moves a workspace to the bin; what the vault lacks is kept as a snapshot
// first. One that an agent has made unsafe to look at goes there unread.
func discard(ctx context.Context, v *git.Vault, dir, bin string) error {
	_, err := v.Discard(ctx, dir, bin)
	if kind := git.KindOf(err); kind == git.KindUnsafeWorkspace || kind == git.KindCorruptWorkspace {
		_, err = v.SetAside(ctx, dir, bin)
	}
	return err
}

// branchOf is the head of a task's branch in the vault; a branch that does not
// exist yet, because the task runs no agent itself, starts at the project's
// freshly fetched branch. Where it starts is written first: a branch whose start
// a crash kept from being noted could never tell what it changed.
func branchOf(ctx context.Context, v *git.Vault, p work.Project, id work.TaskID) (string, error) {
	ref := "refs/heads/" + (&work.Task{ID: id}).Ref()
	head, err := refOf(ctx, v, ref)
	if err != nil || head != "" {
		return head, err
	}
	base, err := refOf(ctx, v, baseRef(id))
	if err == nil && base == "" {
		if head, err = v.BranchHead(ctx, p.Branch); err == nil {
			base, err = firstRef(ctx, v, baseRef(id), head)
		}
	}
	if err == nil {
		head, err = firstRef(ctx, v, ref, base)
	}
	if err != nil {
		return "", fmt.Errorf("start the branch of task %s: %w", id, err)
	}
	return head, nil
}

// firstRef makes a reference, or returns where a sibling that was quicker made it.
func firstRef(ctx context.Context, v *git.Vault, ref, commit string) (string, error) {
	err := v.SetRef(ctx, ref, commit, "")
	if git.KindOf(err) == git.KindRefMoved {
		return refOf(ctx, v, ref)
	}
	return commit, err
}

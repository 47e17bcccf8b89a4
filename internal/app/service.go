package app

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/claudomator/claudomator/internal/review"
	"github.com/claudomator/claudomator/internal/work"
)

// Options is what the service stands on; cmd wires it.
type Options struct {
	Trees        Trees
	Lookup       Lookup
	Lists        Lists
	Settings     Settings
	Stories      Stories
	Templates    TemplateFiles
	Tokens       Tokens
	Diffs        Diffs
	Transcripts  Transcripts
	Agents       AgentCatalog
	Repositories Repositories
	Disk         Disk
	Vaults       Vaults
	IDs          work.IDs
	Now          func() time.Time
	Defaults     Defaults
	Log          *slog.Logger
	// Committed is told of every commit, after it: the engine's timers.
	Committed func(work.ChangeSet)
	// Reclaim moves the workspaces of tasks that are over to the bin, and empties
	// the bin when asked to.
	Reclaim func(ctx context.Context, emptyBin bool) (*Reclaimed, error)
	// Parked is told that a run has asked a person, and is to end.
	Parked func(work.ExecutionID)
}

// Defaults are the server's limits where nothing nearer says otherwise.
type Defaults struct {
	Agent        string
	Timeout      time.Duration // of a task's execution
	Wall         time.Duration // beyond which no execution goes, whatever its task says; 0: none
	Silence      time.Duration // without output
	JudgeTimeout time.Duration
	GateTimeout  time.Duration
	Isolation    string
	Models       map[string]string // by agent type
	Judges       []string          // agents that may judge what another has built
}

// Service implements API and serves the engine.
type Service struct {
	o     Options
	locks keyedLocks
	cache treeCache
	hub   *hub

	rolesMu sync.Mutex
	roles   map[work.ProjectID]map[work.Role]work.RoleConfig // see activeRoles; nil: to be read
}

var _ API = (*Service)(nil)

// New makes a service; it starts nothing.
func New(o Options) *Service {
	return &Service{o: o, hub: newHub(o.Lists)}
}

// tries bounds how often a decision is made again because the tree changed.
const tries = 5

// Do applies a command to a tree: load, decide, settle, commit, then tell.
func (s *Service) Do(ctx context.Context, tree work.TreeID, by work.Actor, c work.Command) error {
	return s.change(ctx, tree, by, nil, c)
}

// fresh makes the tree of a command that begins one.
type fresh func(ctx context.Context) (*work.Tree, error)

func (s *Service) change(ctx context.Context, id work.TreeID, by work.Actor, begin fresh, c work.Command) error {
	unlock, err := s.locks.lock(ctx, string(id))
	if err != nil {
		return err
	}
	defer unlock()
	for range tries {
		err = s.try(ctx, id, by, begin, c)
		if e, ok := work.AsError(err); !ok || e.Code != work.Conflict || (e.Reason != "version" && e.Reason != "edges") {
			return err
		}
	}
	return work.Errorf(work.Conflict, "the tree %s kept changing", id).WithReason("busy").WithHint("try again")
}

// try decides once, and keeps the decision if the tree has not changed meanwhile.
func (s *Service) try(ctx context.Context, id work.TreeID, by work.Actor, begin fresh, c work.Command) (err error) {
	tree, err := s.tree(ctx, id, begin)
	if err != nil {
		return err
	}
	rules, err := s.rules(ctx, tree.Project.ID)
	if err != nil {
		return err
	}
	step := work.NewStep(tree, s.o.Now(), s.o.IDs, by)
	defer func() {
		if err != nil && step.Dirty() {
			s.cache.forget(id) // changed here, but not kept: read it again
		}
	}()
	step.MaxFixes = review.MaxFixes(tree)
	key := keyed{commands: []work.Command{c}}
	switch k := c.(type) {
	case keyed:
		key = k
	case onTree:
		key.commands[0] = k.of(tree)
	}
	for _, c := range key.commands {
		if err := work.Decide(step, c); err != nil {
			return err
		}
	}
	if err := review.Settle(step, rules); err != nil {
		return err
	}
	if !step.Dirty() {
		return nil
	}
	changes := step.ChangeSet()
	changes.Idempotency = key.idempotency
	version, err := s.o.Trees.Commit(ctx, changes)
	if err != nil {
		if work.CodeOf(err) != work.Conflict {
			s.hub.uncertain() // it may be kept all the same: only the answer was lost
		}
		return err
	}
	step.Committed(version)
	if tree.Size() == 0 {
		s.cache.forget(id) // removed
	} else {
		s.cache.keep(tree)
	}
	s.hub.publish(changes.Events)
	if s.o.Committed != nil {
		s.o.Committed(changes)
	}
	return nil
}

// keyed are commands that are kept together, with a client's idempotency key; nil:
// without one.
type keyed struct {
	work.Command
	commands    []work.Command
	idempotency *work.Idempotency
}

// onTree is a command that is known only when the tree is: what stands at its root.
type onTree struct {
	work.Command
	of func(*work.Tree) work.Command
}

// tree gives the tree to decide on: from memory, the store, or newly begun.
func (s *Service) tree(ctx context.Context, id work.TreeID, begin fresh) (*work.Tree, error) {
	if begin != nil {
		return begin(ctx)
	}
	if tree := s.cache.get(id); tree != nil {
		if err := s.o.Trees.Refresh(ctx, tree); err != nil {
			s.cache.forget(id)
			return nil, err
		}
		return tree, nil
	}
	return s.o.Trees.LoadTree(ctx, id)
}

// View lets f look at a tree as it stands; f must not keep or change it.
func (s *Service) View(ctx context.Context, id work.TreeID, f func(*work.Tree) error) error {
	unlock, err := s.locks.lock(ctx, string(id))
	if err != nil {
		return err
	}
	defer unlock()
	tree, err := s.tree(ctx, id, nil)
	if err != nil {
		return err
	}
	s.cache.keep(tree)
	return f(tree)
}

// rules are the role configurations that hold in a project, and what agents can
// be used.
func (s *Service) rules(ctx context.Context, project work.ProjectID) (review.Rules, error) {
	s.rolesMu.Lock()
	defer s.rolesMu.Unlock()
	if s.roles == nil {
		all, err := s.o.Settings.Roles(ctx)
		if err != nil {
			return review.Rules{}, err
		}
		s.roles = activeRoles(all)
	}
	d := s.o.Defaults
	return review.Rules{Roles: rolesOf(s.roles, project), Usable: s.o.Agents.Usable, Default: d.Agent, Models: d.Models, Judges: d.Judges}, nil
}

func (s *Service) forgetRoles() {
	s.rolesMu.Lock()
	defer s.rolesMu.Unlock()
	s.roles = nil
}

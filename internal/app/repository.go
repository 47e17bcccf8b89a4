package app

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/claudomator/claudomator/internal/work"
)

// projectOf finds the project that a task is made for: the named one, the one
// with the repository that the request names, or the only one there is. A
// request that names another repository than its project's is refused: it was
// written for other code.
func (s *Service) projectOf(ctx context.Context, in TaskRequest) (*work.Project, error) {
	ref := in.Project
	if ref == "" {
		ref = in.ProjectID
	}
	if ref == "" && in.RepositoryURL != "" {
		return s.projectWith(ctx, in.RepositoryURL)
	}
	p, err := s.projectFor(ctx, ref)
	if err != nil || in.RepositoryURL == "" {
		return p, err
	}
	return p, s.sameRepository(ctx, p, in.RepositoryURL)
}

// projectWith finds the project with a repository.
func (s *Service) projectWith(ctx context.Context, repository string) (*work.Project, error) {
	all, err := s.o.Settings.Projects(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range all {
		if s.sameRepository(ctx, p, repository) == nil {
			return p, nil
		}
	}
	return nil, work.Errorf(work.Invalid, "no project has the repository %q", repository).WithReason("repository").
		WithHint("claudomator project add NAME --repo %s", repository)
}

// sameRepository refuses another repository than the project's. A path may be
// written as people write it: it is looked at on the disk. A URL is not asked for.
func (s *Service) sameRepository(ctx context.Context, p *work.Project, repository string) error {
	plain := func(r string) string { return strings.TrimSuffix(strings.TrimRight(r, "/"), ".git") }
	switch {
	case repository == p.Repository:
		return nil
	case filepath.IsAbs(repository) && filepath.IsAbs(p.Repository):
		if path, _, err := s.o.Repositories.Inspect(ctx, repository, p.Branch); err == nil && path == p.Repository {
			return nil
		}
	case p.Repository != "" && plain(repository) == plain(p.Repository):
		return nil
	}
	has := "has no repository"
	if p.Repository != "" {
		has = "has the repository " + p.Repository
	}
	return work.Errorf(work.Invalid, "project %s %s, not %q", p.Name, has, repository).WithReason("repository").
		WithHint("leave repository_url out, or name the project of that repository")
}

// parentOf finds the parent that a request names. The project is the parent's.
func (s *Service) parentOf(ctx context.Context, in TaskRequest) (work.TaskID, error) {
	id, err := s.o.Lookup.ResolveTask(ctx, in.ParentTaskID)
	if err != nil || in.RepositoryURL == "" {
		return id, err
	}
	t, err := s.o.Lookup.Task(ctx, id)
	if err != nil {
		return id, err
	}
	p, err := s.o.Settings.Project(ctx, string(t.ProjectID))
	if err != nil {
		return id, err
	}
	return id, s.sameRepository(ctx, p, in.RepositoryURL)
}

package app

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/claudomator/claudomator/internal/work"
)

// branching lets do give a story of a project the branch name, when no other open
// story stands in its way, and nobody else takes one meanwhile. An empty name is
// none that could be taken.
func (s *Service) branching(ctx context.Context, project work.ProjectID, id work.StoryID, name string, do func() error) error {
	unlock, err := s.locks.lock(ctx, "branches "+string(project))
	if err != nil {
		return err
	}
	defer unlock()
	if name == "" {
		return do()
	}
	taken, err := s.o.Stories.Branches(ctx, project)
	if err != nil {
		return err
	}
	p, err := s.o.Settings.Project(ctx, string(project))
	if err != nil {
		return err
	}
	if err := freeBranch(taken, id, p, name); err != nil {
		return err
	}
	return do()
}

// ownBranch makes a branch name for a story that asks for none.
func (s *Service) ownBranch(ctx context.Context, p *work.Project, id work.StoryID, name string) (string, error) {
	taken, err := s.o.Stories.Branches(ctx, p.ID)
	if err != nil {
		return "", err
	}
	for _, folder := range []string{"story/", "story-"} { // where somebody has a branch "story", nothing stands below it
		base := folder + kebab(name)
		for n := 1; n < 100; n++ {
			branch := base
			if n > 1 {
				branch = fmt.Sprintf("%s-%d", base, n)
			}
			if freeBranch(taken, id, p, branch) == nil {
				return branch, nil
			}
		}
	}
	return "", work.Errorf(work.Conflict, "too many open stories have branches like story/%s", kebab(name)).WithReason("branch_taken").WithHint("give the story a branch name of its own")
}

// freeBranch refuses a name that another story has, or that cannot stand beside
// one in a repository: git keeps no branch a beside a branch a/b.
func freeBranch(taken map[string]work.StoryID, id work.StoryID, p *work.Project, name string) error {
	if strings.EqualFold(name, p.Branch) || below(name, p.Branch) || below(p.Branch, name) {
		return work.Errorf(work.Invalid, "branch %q cannot stand beside %q, on which stories are landed", name, p.Branch).WithReason("branch_taken").WithHint("for example story/%s", kebab(name))
	}
	for other, story := range taken {
		if story != id && (strings.EqualFold(other, name) || below(other, name) || below(name, other)) {
			return work.Errorf(work.Conflict, "branch %q cannot stand beside %q of story %s", name, other, story).WithReason("branch_taken").WithHint("choose another name")
		}
	}
	return nil
}

// below is true for a branch in the folder that another one would be.
func below(name, folder string) bool {
	return strings.HasPrefix(strings.ToLower(name), strings.ToLower(folder)+"/")
}

// kebab is a name in lower-case letters, digits and dashes, short enough for a branch.
func kebab(name string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(name) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
		if b.Len() >= 50 {
			break
		}
	}
	return cmp.Or(strings.Trim(b.String(), "-"), "unnamed")
}

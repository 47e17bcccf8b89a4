package git

import "context"

// storyPrefix is where the vault keeps the branches of stories:
// refs/claudomator/story/<branch>. A name that a person chose meets neither the
// branches of tasks (refs/heads/claudomator) nor those of the source
// (refs/remotes), which every fetch sets and prunes.
const storyPrefix = "refs/claudomator/story/"

// SetStoryBranch moves a story's branch in the vault from old to commit; old ""
// makes it. The loser of a race gets KindRefMoved; who finds the branch at the
// commit has nothing to do, so it may be repeated.
func (v *Vault) SetStoryBranch(ctx context.Context, name, commit, old string) error {
	if err := ValidBranch(name); err != nil {
		return err
	}
	err := v.SetRef(ctx, storyPrefix+name, commit, old)
	if KindOf(err) == KindRefMoved {
		if now, readErr := v.Ref(ctx, storyPrefix+name); readErr == nil && now == commit {
			return nil
		}
	}
	return err
}

// StoryBranch is the commit of a story's branch in the vault, KindBranchMissing
// when it was not set yet.
func (v *Vault) StoryBranch(ctx context.Context, name string) (string, error) {
	if err := ValidBranch(name); err != nil {
		return "", err
	}
	return v.Ref(ctx, storyPrefix+name)
}

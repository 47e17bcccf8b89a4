package git

import "context"

// remotePrefix is where the vault keeps what it fetched from the remote of a source
// that is a repository on this machine: refs/claudomator/remote/<branch>. A fetch
// of the source prunes nothing there.
const remotePrefix = "refs/claudomator/remote/"

// FetchRemote brings a branch of the remote into the vault, past the source, and
// returns its head. KindUnreachable when there is no remote, KindBranchMissing when
// that has no such branch.
func (v *Vault) FetchRemote(ctx context.Context, branch string) (string, error) {
	if err := ValidBranch(branch); err != nil {
		return "", err
	}
	url, err := v.Remote(ctx)
	if err != nil {
		return "", err
	}
	if url == "" {
		return "", fail(KindUnreachable, "%s has no remote", DisplayURL(v.source.text)).hint("add one called origin")
	}
	unlock, err := v.git.locks.lock(ctx, v.dir+"\x00fetch")
	if err != nil {
		return "", err
	}
	defer unlock()
	_, err = v.git.run(ctx, command{
		args:   []opt{"fetch", "-q", "--no-tags", "--no-auto-gc", "--no-write-fetch-head", "--no-recurse-submodules", "--update-shallow"},
		values: []string{url, "+refs/heads/" + branch + ":" + remotePrefix + branch}, env: v.env(), network: true,
	})
	if KindOf(err) == KindBranchMissing {
		return "", fail(KindBranchMissing, "%s has no branch %q", DisplayURL(url), branch).because(err)
	}
	if err != nil {
		return "", unreachable(url, err)
	}
	return v.Ref(ctx, remotePrefix+branch)
}

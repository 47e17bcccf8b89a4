package git

import "testing"

// What others have brought to the remote is had without the user's repository
// knowing of it, and a fetch of that one leaves it.
func TestFetchRemote(t *testing.T) {
	t.Parallel()
	l := newLab(t, withOrigin)
	before := sh(t, l.repo, "git for-each-ref; git config -l --local")
	sh(t, l.repo, "git clone -q ../o.git ../other; cd ../other; echo x >x; git add x; git -c user.name=o -c user.email=o@x commit -qm theirs; git push -q")
	theirs := sh(t, l.origin(), "git rev-parse main")
	if _, err := l.vault.Resolve(l.ctx(), theirs); KindOf(err) != KindBranchMissing {
		t.Fatalf("the vault knows it already: %v", err)
	}
	for range 2 {
		if got, err := l.vault.FetchRemote(l.ctx(), "main"); err != nil || got != theirs {
			t.Errorf("fetched %q, %v, want %s", got, err, theirs)
		}
	}
	if after := sh(t, l.repo, "git for-each-ref; git config -l --local"); after != before {
		t.Errorf("the user's repository became\n%s", after)
	}
	sh(t, l.repo, "git branch new")
	if err := l.vault.Fetch(l.ctx()); err != nil {
		t.Fatal(err)
	}
	if got, err := l.vault.Resolve(l.ctx(), remotePrefix+"main"); err != nil || got != theirs {
		t.Errorf("after a fetch of the source it is %q, %v", got, err)
	}
	if _, err := l.vault.FetchRemote(l.ctx(), "nowhere"); KindOf(err) != KindBranchMissing {
		t.Errorf("a branch that is not there: %v", err)
	}
	sh(t, l.repo, "git remote remove origin")
	if _, err := l.vault.FetchRemote(l.ctx(), "main"); KindOf(err) != KindUnreachable {
		t.Errorf("without a remote: %v", err)
	}
}

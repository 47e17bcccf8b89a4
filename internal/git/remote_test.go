package git

import (
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

const withOrigin = "git clone -q --bare . ../o.git; git remote add origin ../o.git; git fetch -q;"

func (l *lab) origin() string { return filepath.Join(filepath.Dir(l.repo), "o.git") }

func (l *lab) push(s PushSpec) Pushed {
	l.t.Helper()
	out, err := l.vault.Push(l.ctx(), s)
	if err != nil {
		l.t.Fatal(err)
	}
	return out
}

// commitOn makes a commit in the vault that no ref has.
func (l *lab) commitOn(parent, message string) string {
	l.t.Helper()
	tree, err := l.vault.treeOf(l.ctx(), parent)
	if err != nil {
		l.t.Fatal(err)
	}
	commit, err := l.vault.writeCommit(tree, []string{parent}, Identity{}, time.Unix(1, 0), message)
	if err != nil {
		l.t.Fatal(err)
	}
	return commit
}

func TestPushToOrigin(t *testing.T) {
	t.Parallel()
	l := newLab(t, withOrigin)
	one := l.run("t", "echo x >x").Head
	two, other := l.commitOn(one, "two"), l.commitOn(l.head("main"), "other")
	before := sh(t, l.repo, "git for-each-ref; git status --porcelain=v2 --branch; git config -l --local")
	const branch = "story/some-thing"
	for i, step := range []struct {
		spec   PushSpec
		before string
		kind   Kind
		done   bool // nothing was to do
	}{
		{PushSpec{Commit: one, Old: two}, "", KindRefMoved, false}, // it is not there at all
		{PushSpec{Commit: one, New: true}, "", "", false},
		{PushSpec{Commit: one, New: true}, one, "", true},           // a repetition
		{PushSpec{Commit: two, New: true}, "", KindRefMoved, false}, // also where it would follow
		{PushSpec{Commit: one}, one, "", true},
		{PushSpec{Commit: one, Old: two}, one, "", true}, // a repetition after it had come from there
		{PushSpec{Commit: two, Old: other}, "", KindRefMoved, false},
		{PushSpec{Commit: two, Old: one}, one, "", false},
		{PushSpec{Commit: other}, "", KindNotFastForward, false},
		{PushSpec{Commit: other, Old: two}, "", KindNotFastForward, false}, // a lease is no permission to go back
		{PushSpec{Commit: one, Old: two}, "", KindNotFastForward, false},
		{PushSpec{Commit: other, Old: one, Replace: true}, "", KindRefMoved, false},
		{PushSpec{Commit: other, Old: two, Replace: true}, two, "", false},
		{PushSpec{Commit: two, Replace: true}, other, "", false},
		{PushSpec{Commit: zeroHash}, "", KindBranchMissing, false},
		{PushSpec{Commit: two, Old: "main"}, "", KindInvalidRef, false},
	} {
		step.spec.Branch = branch
		out, err := l.vault.Push(l.ctx(), step.spec)
		if KindOf(err) != step.kind || out.Before != step.before || out.Already != step.done {
			t.Errorf("step %d: %+v, %v, want kind %q, before %q, already %v", i, out, err, step.kind, step.before, step.done)
		}
		if err == nil && (out.Remote != l.origin() || sh(t, l.origin(), "git rev-parse "+branch) != step.spec.Commit) {
			t.Errorf("step %d: pushed %+v", i, out)
		}
	}
	_, err := l.vault.Push(l.ctx(), PushSpec{Branch: "-x", Commit: one})
	wantKind(t, err, KindInvalidRef)
	// Somebody else's commit, which the vault never saw, is not lost.
	sh(t, l.origin(), "git -c user.name=o -c user.email=o update-ref refs/heads/"+branch+" $(git -c user.name=o -c user.email=o commit-tree -p "+branch+" -m theirs "+branch+"^{tree})")
	theirs := sh(t, l.origin(), "git rev-parse "+branch)
	far := two
	for range 70 { // more than is looked through without a process
		far = l.commitOn(far, "on and on")
	}
	for _, commit := range []string{l.commitOn(two, "three"), far} {
		_, err = l.vault.Push(l.ctx(), PushSpec{Branch: branch, Commit: commit})
		wantKind(t, err, KindNotFastForward)
	}
	_, err = l.vault.Push(l.ctx(), PushSpec{Branch: branch, Commit: other, Old: two, Replace: true})
	wantKind(t, err, KindRefMoved)
	lock := filepath.Join(l.origin(), "refs/heads", branch+".lock") // a git that crashed there has left it
	write(t, lock, "")
	_, err = l.vault.Push(l.ctx(), PushSpec{Branch: branch, Commit: other, Old: theirs, Replace: true})
	if e := wantError(t, err, KindLocked); e.Hint == "" || os.Remove(lock) != nil {
		t.Errorf("nobody is told what to do: %v", err)
	}
	if at := sh(t, l.origin(), "git rev-parse "+branch); at != theirs {
		t.Errorf("the remote is at %s", at)
	}
	_, err = l.vault.Push(l.ctx(), PushSpec{Branch: "story", Commit: one})
	wantKind(t, err, KindRefConflict)
	if after := sh(t, l.repo, "git for-each-ref; git status --porcelain=v2 --branch; git config -l --local"); after != before {
		t.Errorf("the user's repository changed:\n%s\n%s", before, after)
	}
	sh(t, l.origin(), "git fsck --strict")
}

// Between the look and the push somebody else pushes: their commit stays, even
// where ours may replace what is there.
func TestPushIsCompareAndSwap(t *testing.T) {
	t.Parallel()
	for _, replace := range []bool{false, true} {
		l := newLab(t, withOrigin+"git -C ../o.git branch story/x main")
		got := l.run("t", "echo x >x")
		theirs := ""
		l.git.opts.Trace = func(args []string) {
			if args[0] == "push" {
				theirs, _ = trySh(l.repo, "C=$(git commit-tree -p main -m moved main^{tree}); git push -q origin $C:refs/heads/story/x; echo $C")
			}
		}
		_, err := l.vault.Push(l.ctx(), PushSpec{Branch: "story/x", Commit: got.Head, Replace: replace})
		wantKind(t, err, KindRefMoved)
		if at := sh(t, l.origin(), "git rev-parse story/x"); at != strings.TrimSpace(theirs) {
			t.Errorf("the remote is at %s, not at %s", at, theirs)
		}
	}
}

func TestPushesAtOnce(t *testing.T) {
	t.Parallel()
	l := newLab(t, withOrigin)
	got := l.run("t", "echo x >x")
	outs, errs := make([]Pushed, 6), make([]error, 6)
	var wg sync.WaitGroup
	for i := range outs {
		wg.Go(func() {
			outs[i], errs[i] = l.vault.Push(l.ctx(), PushSpec{Branch: "story/x", Commit: got.Head})
		})
	}
	wg.Wait()
	first := 0
	for i, out := range outs {
		if errs[i] != nil {
			t.Error(errs[i])
		}
		if !out.Already {
			first++
		}
	}
	if first != 1 {
		t.Errorf("%d of them pushed", first)
	}
}

func TestPushWithoutRemote(t *testing.T) {
	t.Parallel()
	for name, setup := range map[string]string{
		"none": "", "another": "git remote add upstream ../o.git", "no URL": "git config remote.origin.prune true",
	} {
		l := newLab(t, setup)
		out := l.push(PushSpec{Branch: "story/x", Commit: l.head("main")})
		if url, err := l.vault.Remote(l.ctx()); err != nil || url != "" || out != (Pushed{}) {
			t.Errorf("%s: pushed %+v to %q, %v", name, out, url, err)
		}
	}
	g := newGit(t, nil)
	v, err := g.OpenVault(t.Context(), filepath.Join(t.TempDir(), "v.git"), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Close)
	head, err := v.BranchHead(t.Context(), "main")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := v.Push(t.Context(), PushSpec{Branch: "main", Commit: head}); err != nil || out != (Pushed{}) {
		t.Errorf("pushed %+v, %v", out, err)
	}
}

func TestRemote(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ setup, want string }{
		"relative":      {"git remote add origin ../o.git", "TOP/o.git"},
		"folder":        {"git remote add origin sub/o.git", "TOP/R/sub/o.git"},
		"absolute":      {"git remote add origin /srv/o.git", "/srv/o.git"},
		"file":          {"git remote add origin file:///srv/o.git", "file:///srv/o.git"},
		"scp":           {"git remote add origin git@h.example:o/r.git", "git@h.example:o/r.git"},
		"ssh":           {"git remote add origin ssh://git@h.example:2222/o/r.git", "ssh://git@h.example:2222/o/r.git"},
		"credentials":   {"git remote add origin https://me:s3cret@h.example/o/r.git", "https://me:s3cret@h.example/o/r.git"},
		"push URL":      {"git remote add origin https://h.example/o/r.git; git config remote.origin.pushurl git@h.example:o/r.git", "git@h.example:o/r.git"},
		"several":       {"git remote add origin git@h.example:o/r.git; git remote set-url --add origin git@i.example:o/r.git", "git@h.example:o/r.git"},
		"instead":       {"git remote add origin gh:o/r.git; git config url.https://h.example/.insteadOf gh:", "https://h.example/o/r.git"},
		"push instead":  {"git remote add origin https://h.example/o/r.git; git config url.git@h.example:.pushInsteadOf https://h.example/", "git@h.example:o/r.git"},
		"included":      {"git config -f ../more remote.origin.url git@h.example:o/r.git; git config include.path ../../more", "git@h.example:o/r.git"},
		"per tree":      {"git config extensions.worktreeConfig true; git config --worktree remote.origin.url git@h.example:o/r.git", "git@h.example:o/r.git"},
		"per linked":    {"git config extensions.worktreeConfig true; git remote add origin git@h.example:o/main.git; git branch b; git worktree add -q ../L b; git -C ../L config --worktree remote.origin.pushurl git@h.example:o/r.git; cd ..; mv R M; git -C M worktree repair ../L 2>/dev/null; mv L R; git -C M worktree repair ../R 2>/dev/null", "git@h.example:o/r.git"},
		"bare relative": {"cd ..; git clone -q --bare R B; rm -rf R; mv B R; cd R; git remote set-url origin ../o.git", "TOP/o.git"},
		"linked":        {"git branch b; git worktree add -q ../L b; git remote add origin o.git; cd ..; mv R M; git -C M worktree repair ../L 2>/dev/null; mv L R; git -C M worktree repair ../R 2>/dev/null", "TOP/R/o.git"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, c.setup)
			want := strings.Replace(c.want, "TOP", filepath.Dir(l.repo), 1)
			if url, err := l.vault.Remote(l.ctx()); err != nil || url != want {
				t.Errorf("remote %q, %v, want %q", url, err, want)
			}
		})
	}
	for _, bad := range []string{"ext::touch\\ ran", "fd::17", "ftp://me:s3cret@h.example/o.git", "-oProxyCommand=x"} {
		l := newLab(t, "git config remote.origin.url '"+bad+"'")
		_, err := l.vault.Remote(l.ctx())
		if e := wantError(t, err, KindUnreachable); strings.Contains(e.Error(), "s3cret") {
			t.Errorf("%s: %v", bad, e)
		}
	}
}

// A hook of the remote is its say, whatever it prints; one that hangs is ended.
func TestRemoteHooks(t *testing.T) {
	t.Parallel()
	for _, says := range []string{"no such luck", "stale info", "cannot lock ref", "fetch first (non-fast-forward)", "The requested URL returned error: 403"} {
		l := newLab(t, withOrigin+"printf '#!/bin/sh\\necho \"$1\"; echo \""+says+"\" >&2; exit 1\\n' >../o.git/hooks/update; chmod +x ../o.git/hooks/update")
		got := l.run("t", "echo x >x")
		_, err := l.vault.Push(l.ctx(), PushSpec{Branch: "story/x", Commit: got.Head})
		if e := wantError(t, err, KindPushRejected); !strings.Contains(e.Message, says) || !strings.Contains(e.Message, "hook declined") || e.Hint == "" {
			t.Errorf("%q: %+v", says, e)
		}
		if refs := sh(t, l.origin(), "git for-each-ref refs/heads/story"); refs != "" {
			t.Errorf("%q: the remote has %s", says, refs)
		}
	}
	l := newLab(t, withOrigin+"printf '#!/bin/sh\\necho $$ >../pid; sleep 3600\\n' >../o.git/hooks/pre-receive; chmod +x ../o.git/hooks/pre-receive")
	got := l.run("t", "echo x >x")
	wantGone(t, noted(t, filepath.Join(filepath.Dir(l.repo), "pid"), 2*time.Second, func(limit time.Duration) {
		l.git.opts.NetTimeout = limit
		_, err := l.vault.Push(l.ctx(), PushSpec{Branch: "story/x", Commit: got.Head})
		wantKind(t, err, KindTimeout)
	}))
	checked := newLab(t, "git clone -q . ../o.git; git remote add origin ../o.git")
	more := checked.run("t", "echo x >x")
	_, err := checked.vault.Push(checked.ctx(), PushSpec{Branch: "main", Commit: more.Head})
	if e := wantError(t, err, KindPushRejected); !strings.Contains(e.Message, "checked out") {
		t.Errorf("%+v", e)
	}
}

// The hooks and the programs of the user's own repository have no part in a push.
func TestPushRunsNothingOfTheUsers(t *testing.T) {
	t.Parallel()
	l := newLab(t, withOrigin+`M=$(cd ..; pwd)/ran
		for h in pre-push reference-transaction post-update; do printf '#!/bin/sh\ntouch %s\nexit 1\n' "$M" >.git/hooks/$h; chmod +x .git/hooks/$h; done
		for k in core.sshCommand core.askPass credential.helper remote.origin.receivepack core.gitProxy gpg.program core.alternateRefsCommand; do git config $k "touch $M"; done; git config push.gpgSign true`)
	got := l.run("t", "echo x >x")
	l.push(PushSpec{Branch: "story/x", Commit: got.Head})
	if exists(filepath.Join(filepath.Dir(l.repo), "ran")) {
		t.Error("a configured program ran")
	}
}

// deaf is an address at which nobody listens, and that nobody gets by asking for a
// free port.
const deaf = "127.0.0.1:1"

func TestPushThatDoesNotArrive(t *testing.T) {
	t.Parallel()
	closed := "http://me:s3cret@" + deaf + "/r.git"
	refusing := func(status int) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", `Basic realm="r"`)
			w.WriteHeader(status)
		}))
		t.Cleanup(s.Close)
		return strings.Replace(s.URL, "://", "://me:s3cret@", 1) + "/r.git"
	}
	ssh := filepath.Join(t.TempDir(), "ssh")
	for name, c := range map[string]struct {
		url, ssh string
		kind     Kind
	}{
		"no such folder": {"../gone.git", "", KindUnreachable},
		"no repository":  {"..", "", KindUnreachable},
		"nobody listens": {closed, "", KindUnreachable},
		"401":            {refusing(http.StatusUnauthorized), "", KindAuthentication},
		"403":            {refusing(http.StatusForbidden), "", KindAuthentication},
		"404":            {refusing(http.StatusNotFound), "", KindUnreachable},
		"no key":         {"git@h.example:o/r.git", "git@h.example: Permission denied (publickey).", KindAuthentication},
		"unknown host":   {"git@h.example:o/r.git", "Host key verification failed.", KindAuthentication},
		"no right":       {"git@h.example:o/r.git", "ERROR: Permission to o/r.git denied to me.", KindAuthentication},
		"no route":       {"ssh://git@h.example/o/r.git", "ssh: connect to host h.example port 22: No route to host", KindUnreachable},
	} {
		l := newLab(t, "git config remote.origin.url "+c.url)
		if c.ssh != "" {
			sh(t, l.repo, "printf '#!/bin/sh\\necho \""+c.ssh+"\" >&2; exit 255\\n' >"+ssh+"; chmod +x "+ssh)
			l.git.opts.NetworkEnv = []string{"GIT_SSH_COMMAND=" + ssh, "GIT_SSH_VARIANT=ssh"}
		}
		_, err := l.vault.Push(l.ctx(), PushSpec{Branch: "story/x", Commit: l.head("main")})
		e := wantError(t, err, c.kind)
		if e.Hint == "" || !strings.Contains(e.Error(), c.ssh) {
			t.Errorf("%s: %+v", name, e)
		}
		for ; e != nil; e, _ = e.Err.(*Error) { //nolint:errorlint // each link of the chain, one by one
			if strings.Contains(e.Error()+strings.Join(e.Args, " "), "s3cret") {
				t.Errorf("%s: credentials are shown: %+v", name, e)
			}
		}
	}
}

// Git's own server behind HTTP: credentials of the URL are used, and only those.
func TestPushOverHTTP(t *testing.T) {
	t.Parallel()
	l := newLab(t, withOrigin+"git -C ../o.git config http.receivepack true")
	backend := sh(t, "/", "git --exec-path") + "/git-http-backend"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name, password, _ := r.BasicAuth(); name != "me" || password != "s3cret" {
			w.Header().Set("WWW-Authenticate", `Basic realm="r"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		(&cgi.Handler{
			Path: backend,
			Env:  []string{"GIT_PROJECT_ROOT=" + filepath.Dir(l.repo), "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=me", "PATH=" + os.Getenv("PATH")},
		}).ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	address, err := url.Parse(server.URL + "/o.git")
	if err != nil {
		t.Fatal(err)
	}
	got := l.run("t", "echo x >x")
	sh(t, l.repo, "git remote set-url origin "+address.String())
	_, err = l.vault.Push(l.ctx(), PushSpec{Branch: "story/x", Commit: got.Head})
	wantKind(t, err, KindAuthentication)
	address.User = url.UserPassword("me", "s3cret")
	sh(t, l.repo, "git remote set-url origin "+address.String())
	out := l.push(PushSpec{Branch: "story/x", Commit: got.Head})
	if sh(t, l.origin(), "git rev-parse story/x") != got.Head || strings.Contains(out.Remote, "s3cret") {
		t.Errorf("pushed %+v", out)
	}
	sh(t, l.origin(), `printf '#!/bin/sh\necho no such luck; exit 1\n' >hooks/pre-receive; chmod +x hooks/pre-receive`)
	_, err = l.vault.Push(l.ctx(), PushSpec{Branch: "story/y", Commit: got.Head})
	if e := wantError(t, err, KindPushRejected); !strings.Contains(e.Message, "no such luck") || strings.Contains(e.Error(), "s3cret") {
		t.Errorf("%+v", e)
	}
	// The same address as the source: landing and pushing are one way.
	sh(t, l.origin(), "rm hooks/pre-receive")
	v, err := l.git.OpenVault(l.ctx(), filepath.Join(t.TempDir(), "v.git"), address.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Close)
	l.vault = v
	more := l.run("u", "echo y >y")
	landed := l.land("u", more.Head)
	if out := l.push(PushSpec{Branch: "main", Commit: landed.Commit}); !out.Already {
		t.Errorf("pushed %+v after landing %+v", out, landed)
	}
}

func TestDisplayURL(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"https://me:s3cret@h.example/o/r.git":     "https://***@h.example/o/r.git",
		"https://tok3n@h.example/o/r.git":         "https://***@h.example/o/r.git",
		"https://me:a@b@h.example/o":              "https://***@h.example/o",
		"https://h.example/o/r.git":               "https://h.example/o/r.git",
		"https://h.example/@scope/r":              "https://h.example/@scope/r",
		"ssh://git@h.example:22/o/r.git":          "ssh://git@h.example:22/o/r.git",
		"ssh://git:pw@h.example/o/r.git":          "ssh://git:***@h.example/o/r.git",
		"git@h.example:o/r.git":                   "git@h.example:o/r.git",
		"/a/path@b":                               "/a/path@b",
		"reach 'https://me:x@h/o' and http://y@h": "reach 'https://***@h/o' and http://***@h",
	} {
		if got := DisplayURL(url); got != want {
			t.Errorf("%q shows as %q, want %q", url, got, want)
		}
	}
}

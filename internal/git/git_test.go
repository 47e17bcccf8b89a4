package git

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// lab is one source repository, its vault, and a count of git processes.
type lab struct {
	t     testing.TB
	git   *Git
	repo  string
	dir   string // for workspaces
	vault *Vault
	calls *calls
}

type calls struct {
	mu   sync.Mutex
	list []string
}

func (c *calls) add(args []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, strings.Join(args, " "))
}

func (c *calls) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	got := c.list
	c.list = nil
	return got
}

// patient is how long a busy machine may take for what a command is to do.
const patient = 5 * time.Minute

func newGit(t testing.TB, c *calls) *Git {
	t.Helper()
	o := Options{Timeout: patient, Environ: os.Environ()}
	if c != nil {
		o.Trace = c.add
	}
	g, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// sh runs a shell text as a user or an agent would, outside of this package's
// own runner.
func sh(t testing.TB, dir, script string) string {
	t.Helper()
	out, err := trySh(dir, script)
	if err != nil {
		t.Fatalf("%s\n%s: %v", script, out, err)
	}
	return strings.TrimSpace(out)
}

func trySh(dir, script string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patient)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-ec", script) //nolint:gosec // tests
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C.UTF-8", "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_AUTHOR_DATE=2030-01-01T00:00:00Z", "GIT_COMMITTER_DATE=2030-01-01T00:00:00Z"}
	var buf bytes.Buffer
	cmd.Stdout, cmd.Stderr = &buf, &buf
	err := cmd.Run()
	return buf.String(), err
}

const userConfig = "git config user.name User; git config user.email user@example.org; git config commit.gpgsign false;"

// newLab makes a source with one file "a" on main.
func newLab(t testing.TB, setup string) *lab {
	t.Helper()
	top := t.TempDir()
	top, err := filepath.EvalSymlinks(top)
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{t: t, repo: filepath.Join(top, "R"), dir: filepath.Join(top, "ws"), calls: &calls{}}
	sh(t, top, "git init -q -b main R; cd R; "+userConfig+" echo one >a; git add a; git commit -qm first; "+setup)
	l.git = newGit(t, l.calls)
	l.vault = l.open(l.repo)
	return l
}

func (l *lab) open(repository string) *Vault { return l.openAt("v.git", repository) }

func (l *lab) openAt(name, repository string) *Vault {
	l.t.Helper()
	v, err := l.git.OpenVault(l.ctx(), filepath.Join(filepath.Dir(l.dir), "vaults", name), repository)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(v.Close)
	return v
}

func (l *lab) ctx() context.Context { return l.t.Context() }

func (l *lab) head(branch string) string {
	l.t.Helper()
	h, err := l.vault.BranchHead(l.ctx(), branch)
	if err != nil {
		l.t.Fatal(err)
	}
	return h
}

func (l *lab) ws(task string) string { return filepath.Join(l.dir, task) }

func (l *lab) prepare(task string) Prepared {
	l.t.Helper()
	p, err := l.vault.Prepare(l.ctx(), Workspace{Dir: l.ws(task), Branch: "claudomator/" + task, Base: l.head("main")})
	if err != nil {
		l.t.Fatal(err)
	}
	return p
}

func (l *lab) tryCollect(task string) (Collected, error) {
	return l.vault.Collect(l.ctx(), CollectSpec{Dir: l.ws(task), Branch: "claudomator/" + task, Message: "Keep " + task + "\n\nClaudomator-Task: " + task + "\n"})
}

func (l *lab) collect(task string) Collected {
	l.t.Helper()
	c, err := l.tryCollect(task)
	if err != nil {
		l.t.Fatal(err)
	}
	return c
}

// run prepares a task, lets a shell text work in it, and collects.
func (l *lab) run(task, script string) Collected {
	l.t.Helper()
	l.prepare(task)
	sh(l.t, l.ws(task), script)
	return l.collect(task)
}

func (l *lab) landSpec(task string, commits ...string) LandSpec {
	s := LandSpec{Target: "main", PrivateRef: "refs/claudomator/landing/" + task}
	for _, c := range commits {
		s.Parts = append(s.Parts, Part{Commit: c, Message: "Land " + task + "\n\nClaudomator-Task: " + task + "\n"})
	}
	return s
}

func (l *lab) land(task string, commits ...string) Landed {
	l.t.Helper()
	out, err := l.vault.Land(l.ctx(), l.landSpec(task, commits...))
	if err != nil {
		l.t.Fatal(err)
	}
	return out
}

// files lists a commit of the vault.
func (l *lab) files(commit string) string {
	l.t.Helper()
	return sh(l.t, l.vault.Dir(), "git -c core.quotePath=true ls-tree -r --name-only "+commit)
}

func (l *lab) show(commit, path string) string {
	l.t.Helper()
	return sh(l.t, l.vault.Dir(), "git cat-file -p '"+commit+":"+path+"'")
}

// sound is the check after every case: both repositories whole, the user's
// clean and on its branch, no lock left.
func (l *lab) sound() {
	l.t.Helper()
	sh(l.t, l.repo, "git fsck --strict")
	sh(l.t, l.vault.Dir(), "git fsck --strict --connectivity-only")
	if s := sh(l.t, l.repo, "git status --porcelain"); s != "" {
		l.t.Errorf("the user's checkout is not clean:\n%s", s)
	}
	if locks := sh(l.t, filepath.Dir(l.dir), "find . -name '*.lock' -o -name 'tmp_obj*' -o -name 'claudomator-index*' | grep -v '/ws/' || true"); locks != "" {
		l.t.Errorf("left behind: %s", locks)
	}
}

func wantKind(t testing.TB, err error, kind Kind) {
	t.Helper()
	_ = wantError(t, err, kind)
}

// wantError is wantKind for those who look closer.
func wantError(t testing.TB, err error, kind Kind) *Error {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Kind != kind {
		t.Fatalf("got error %v (kind %q), want kind %q", err, KindOf(err), kind)
	}
	return e
}

func warned(ws []Warning, kind string) bool {
	for _, w := range ws {
		if w.Kind == kind {
			return true
		}
	}
	return false
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

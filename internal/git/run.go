package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Options configures New. All but Environ may be left out.
type Options struct {
	Program    string              // default: git from PATH
	Name       string              // the server's own identity, default Claudomator
	Email      string              // default claudomator@localhost
	Timeout    time.Duration       // per local command, default 2 min
	NetTimeout time.Duration       // per fetch and push, default 10 min
	Environ    []string            // the server's own: git gets PATH of it, fetch and push also HOME, ssh agent and proxies
	NetworkEnv []string            // extra environment for fetch and push (GIT_SSH_COMMAND=…, proxies)
	Now        func() time.Time    // default time.Now
	Trace      func(args []string) // called for every process started; must not block
}

// Git is the git program. It is safe for concurrent use.
type Git struct {
	opts  Options
	locks keyedMutex
}

// minimum is the first release with merge-tree --write-tree.
const minimumMajor, minimumMinor = 2, 38

// New finds the program and checks its version.
func New(ctx context.Context, o Options) (*Git, error) {
	if o.Program == "" {
		o.Program = "git"
	}
	path, err := exec.LookPath(o.Program)
	if err != nil {
		return nil, fail(KindMissingGit, "find the git program").because(err).hint("install git 2.38 or newer")
	}
	o.Program = path
	if o.Name == "" {
		o.Name = "Claudomator"
	}
	if o.Email == "" {
		o.Email = "claudomator@localhost"
	}
	if o.Timeout == 0 {
		o.Timeout = 2 * time.Minute
	}
	if o.NetTimeout == 0 {
		o.NetTimeout = 10 * time.Minute
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	g := &Git{opts: o}
	out, err := g.run(ctx, command{args: []opt{"version"}})
	if err != nil {
		return nil, err
	}
	if !recentEnough(string(out)) {
		return nil, fail(KindMissingGit, "%s is too old", strings.TrimSpace(string(out))).hint("install git 2.38 or newer")
	}
	return g, nil
}

var versionPattern = regexp.MustCompile(`^git version (\d+)\.(\d+)`)

func recentEnough(out string) bool {
	m := versionPattern.FindStringSubmatch(out)
	if m == nil {
		return false
	}
	major, _ := strconv.Atoi(m[1])
	minor, _ := strconv.Atoi(m[2])
	return major > minimumMajor || major == minimumMajor && minor >= minimumMinor
}

// opt is a command-line option or subcommand. Only literals convert to it by
// themselves, and a test forbids explicit conversions outside this file: data
// can therefore never become an option.
type opt string

// leaseOpt is the one option that carries data; both parts are checked.
func leaseOpt(ref, old string) (opt, error) {
	if err := checkRef(ref); err != nil {
		return "", err
	}
	if old != "" && !isHash(old) {
		return "", fail(KindInvalidRef, "%q is not a commit", old)
	}
	return opt("--force-with-lease=" + ref + ":" + old), nil
}

// command is one git process to be.
type command struct {
	args     []opt    // subcommand and options
	values   []string // revisions and refs; refused when they begin with "-"
	paths    []string // after "--", taken literally
	dir      string   // working directory
	env      []string // GIT_DIR and its like
	stdin    io.Reader
	network  bool // may use network protocols, the user's HOME and ssh agent
	lasting  bool // no deadline: the owner ends it
	finishes bool // ends by itself in a moment, and would leave a lock of the user's behind when cut off
	magic    bool // the command cannot be told to take paths literally: begin them with "./"
	limit    int  // cap on output, default 64 MiB
}

// hardening goes before every subcommand. Config given this way wins over
// every file.
func hardening() []opt {
	return []opt{
		"-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false",
		"-c", "core.commitGraph=false", "-c", "core.multiPackIndex=false",
		"-c", "core.attributesFile=/dev/null", "-c", "core.excludesFile=/dev/null",
		"-c", "core.untrackedCache=false", "-c", "core.splitIndex=false",
		"-c", "submodule.recurse=false", "-c", "fetch.recurseSubmodules=false",
		"-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "pack.threads=1",
		"-c", "diff.external=", "-c", "commit.gpgSign=false", "-c", "push.gpgSign=false",
		"-c", "push.recurseSubmodules=no", "-c", "credential.helper=",
	}
}

const defaultOutputLimit = 64 << 20

// run starts a command, waits for it and returns its standard output.
func (g *Git) run(ctx context.Context, c command) ([]byte, error) {
	limit := c.limit
	if limit == 0 {
		limit = defaultOutputLimit
	}
	out := &capped{limit: limit, strict: true}
	p, err := g.start(ctx, c, c.stdin, out)
	if err != nil {
		return nil, err
	}
	err = p.wait()
	if out.over() {
		return out.buf.Bytes(), fail(KindTooLarge, "git %s wrote more than %d bytes", p.args[0], limit)
	}
	return out.buf.Bytes(), err
}

// process is a running git.
type process struct {
	cmd    *exec.Cmd
	args   []string
	stderr *capped
	ctx    context.Context
	cancel context.CancelFunc
}

// start is the only place of this package that starts a process. It gets its
// own process group, a closed environment and a deadline at which the whole
// group is killed; where the system can, it dies with the server.
func (g *Git) start(ctx context.Context, c command, stdin io.Reader, stdout io.Writer) (*process, error) {
	args, err := c.arguments()
	if err != nil {
		return nil, err
	}
	timeout := g.opts.Timeout
	if c.network {
		timeout = g.opts.NetTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	if c.lasting {
		cancel()
		ctx, cancel = context.WithCancel(context.WithoutCancel(ctx))
	}
	var full []string
	for _, o := range hardening() {
		full = append(full, string(o))
	}
	cmd := exec.CommandContext(ctx, g.opts.Program, append(full, args...)...)
	cmd.Dir = c.dir
	if cmd.Dir == "" {
		cmd.Dir = "/"
	}
	cmd.Env = g.environment(c)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if !c.finishes {
		dieWithParent(cmd.SysProcAttr)
	}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 2 * time.Second
	stderr := &capped{limit: 16 << 10}
	cmd.Stdin, cmd.Stdout = stdin, stdout
	if !c.lasting { // copying it would keep a goroutine at a read for as long as it lives
		cmd.Stderr = stderr
	}
	if g.opts.Trace != nil {
		g.opts.Trace(args)
	}
	if err := cmd.Start(); err != nil {
		cancel()
		return nil, (&Error{Kind: KindFailed, Message: "start git", Args: args}).because(err)
	}
	return &process{cmd: cmd, args: args, stderr: stderr, ctx: ctx, cancel: cancel}, nil
}

// wait reaps the process and turns its end into an error or nil.
func (p *process) wait() error {
	defer p.cancel()
	err := p.cmd.Wait()
	if err == nil || (errors.Is(err, exec.ErrWaitDelay) && p.cmd.ProcessState.Success()) {
		return nil
	}
	e := &Error{Message: "git " + p.args[0], Exit: p.cmd.ProcessState.ExitCode(), Stderr: DisplayURL(p.stderr.String())}
	for _, arg := range p.args {
		e.Args = append(e.Args, DisplayURL(arg))
	}
	e.Kind, e.Hint = classify(e.Stderr)
	if cause := p.ctx.Err(); cause != nil {
		e.Err = context.Cause(p.ctx)
		if errors.Is(cause, context.DeadlineExceeded) {
			e.Kind, e.Message = KindTimeout, "git "+p.args[0]+" took too long and was ended"
		}
		return e
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		e.Err = err
	}
	return e
}

func (c command) arguments() ([]string, error) {
	args := make([]string, 0, len(c.args)+len(c.values)+len(c.paths)+1)
	for _, o := range c.args {
		args = append(args, string(o))
	}
	for _, v := range c.values {
		if v == "" || v[0] == '-' || strings.ContainsRune(v, 0) {
			return nil, fail(KindInvalidRef, "%q cannot be passed to git", v)
		}
		args = append(args, v)
	}
	if len(c.paths) > 0 {
		args = append(args, "--")
		for _, p := range c.paths {
			if strings.ContainsRune(p, 0) {
				return nil, fail(KindInvalidRef, "a path holds a NUL byte")
			}
			args = append(args, p)
		}
	}
	return args, nil
}

func (g *Git) environment(c command) []string {
	env := []string{
		"LC_ALL=C", "TZ=UTC",
		"GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_ATTR_NOSYSTEM=1", "GIT_NO_LAZY_FETCH=1", "GIT_NO_REPLACE_OBJECTS=1",
		"GIT_OPTIONAL_LOCKS=0", "GIT_PAGER=cat", "GIT_EDITOR=false",
		"GIT_AUTHOR_NAME=" + g.opts.Name, "GIT_AUTHOR_EMAIL=" + g.opts.Email,
		"GIT_COMMITTER_NAME=" + g.opts.Name, "GIT_COMMITTER_EMAIL=" + g.opts.Email,
	}
	env = append(env, g.inherited("PATH")...)
	if !c.magic {
		env = append(env, "GIT_LITERAL_PATHSPECS=1")
	}
	if c.network {
		env = append(env, "GIT_ALLOW_PROTOCOL=file:https:http:ssh:git",
			"GIT_SSH_COMMAND=ssh -o BatchMode=yes", "GIT_ASKPASS=false", "SSH_ASKPASS=false")
		env = append(env, g.inherited("HOME", "SSH_AUTH_SOCK", "HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy")...)
		env = append(env, g.opts.NetworkEnv...)
	} else {
		env = append(env, "GIT_ALLOW_PROTOCOL=file")
	}
	return append(env, c.env...)
}

// inherited picks variables of the server's own environment.
func (g *Git) inherited(names ...string) (env []string) {
	for _, entry := range g.opts.Environ {
		if name, _, _ := strings.Cut(entry, "="); slices.Contains(names, name) {
			env = append(env, entry)
		}
	}
	return env
}

// capped keeps the first limit bytes. A strict one then refuses further input,
// which ends the process that floods it; any other drops what is too much.
type capped struct {
	mu     sync.Mutex
	buf    bytes.Buffer
	limit  int
	full   bool
	strict bool
}

func (w *capped) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if room := w.limit - w.buf.Len(); len(p) <= room {
		w.buf.Write(p)
	} else {
		w.buf.Write(p[:room])
		w.full = true
		if w.strict {
			return room, io.ErrShortWrite
		}
	}
	return len(p), nil
}

func (w *capped) over() bool     { w.mu.Lock(); defer w.mu.Unlock(); return w.full }
func (w *capped) String() string { w.mu.Lock(); defer w.mu.Unlock(); return w.buf.String() }

// keyedMutex serialises work per name. Its zero value is ready.
type keyedMutex struct {
	mu   sync.Mutex
	held map[string]*keyLock
}

type keyLock struct {
	token   chan struct{}
	waiters int
}

// lock waits for the name or the end of ctx and returns the release.
func (k *keyedMutex) lock(ctx context.Context, name string) (func(), error) {
	k.mu.Lock()
	if k.held == nil {
		k.held = map[string]*keyLock{}
	}
	l := k.held[name]
	if l == nil {
		l = &keyLock{token: make(chan struct{}, 1)}
		k.held[name] = l
	}
	l.waiters++
	k.mu.Unlock()
	select {
	case l.token <- struct{}{}:
		return func() { <-l.token; k.leave(name, l) }, nil
	case <-ctx.Done():
		k.leave(name, l)
		return nil, fmt.Errorf("wait for %s: %w", name, context.Cause(ctx))
	}
}

// tryLock takes the name only when nobody holds or awaits it.
func (k *keyedMutex) tryLock(name string) (func(), bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.held == nil {
		k.held = map[string]*keyLock{}
	}
	if k.held[name] != nil {
		return nil, false
	}
	l := &keyLock{token: make(chan struct{}, 1), waiters: 1}
	l.token <- struct{}{}
	k.held[name] = l
	return func() { <-l.token; k.leave(name, l) }, true
}

func (k *keyedMutex) leave(name string, l *keyLock) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if l.waiters--; l.waiters == 0 {
		delete(k.held, name)
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

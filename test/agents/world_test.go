package agents_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/client"
	"github.com/claudomator/claudomator/internal/work"
	"github.com/claudomator/claudomator/test/agents/fakellm"
	"github.com/claudomator/claudomator/test/binary"
)

// taskLimit is how long a task may take on a busy machine; it takes seconds.
const taskLimit = 8 * time.Minute

// world is a home folder, a repository, a model server, and a server with one
// agent program.
type world struct {
	*testing.T
	program program
	dir     string
	bin     string
	folder  string // of the agent programs
	model   *fakellm.Server
	environ []string // of the server and of people
	config  []string // lines of its configuration, besides the program's
	// subscribed logs the program in with a subscription, where it tells the two apart.
	subscribed bool

	server *binary.Server
	api    *client.Client
}

// lock names the versions that are pinned, as ./install does.
func lock(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("programs/package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])[:16]
}

func newWorld(t *testing.T, bin, folder string, p program) *world {
	t.Helper()
	w := &world{T: t, program: p, dir: t.TempDir(), bin: bin, folder: folder, model: fakellm.Start(scripts())}
	t.Cleanup(w.model.Close)
	t.Cleanup(w.explain)
	w.write("home/.gitconfig", "[user]\n\tname = Ada\n\temail = ada@example.org\n")
	w.environ = []string{
		"HOME=" + w.path("home"), "PATH=" + folder + ":" + os.Getenv("PATH"), "LC_ALL=C.UTF-8", "TERM=dumb", "GIT_CONFIG_NOSYSTEM=1",
		"CLAUDOMATOR_DATA_DIR=" + w.path("data"), "CLAUDOMATOR_CONFIG=" + w.path("config.yaml"),
		// What must not reach an agent, and what must not confuse it.
		"DATABASE_PASSWORD=server-secret", "CLAUDECODE=1", "CLAUDE_CODE_ENTRYPOINT=cli",
	}
	w.write("R/a", "a\n")
	w.git("init", "-q", "-b", "main")
	w.git("add", "a")
	w.git("commit", "-qm", "begin")
	return w
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

func (w *world) write(name, text string) {
	w.Helper()
	if err := os.MkdirAll(filepath.Dir(w.path(name)), 0o755); err != nil {
		w.Fatal(err)
	}
	if err := os.WriteFile(w.path(name), []byte(text), 0o600); err != nil {
		w.Fatal(err)
	}
}

func (w *world) read(name string) string {
	w.Helper()
	data, err := os.ReadFile(w.path(name))
	if err != nil {
		w.Error(err)
	}
	return string(data)
}

// git runs git in the user's repository, and answers what it printed.
func (w *world) git(args ...string) string {
	w.Helper()
	c := exec.CommandContext(w.Context(), "git", args...)
	c.Dir, c.Env = w.path("R"), w.environ
	out, err := c.CombinedOutput()
	if err != nil {
		w.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// configure gives the program what it needs, and the server its settings.
func (w *world) configure() {
	w.Helper()
	w.program.prepare(w, w.model.URL)
	lines := append([]string{"agents:", "  " + w.program.name + ":", "    inherit: [" + strings.Join(w.program.inherit, ", ") + "]"}, w.config...)
	w.write("config.yaml", strings.Join(lines, "\n")+"\n")
}

// serve starts the server, and adds the repository.
func (w *world) serve() {
	w.Helper()
	w.configure()
	server, err := binary.Launch(binary.Options{Bin: w.bin, Dir: w.dir, Env: w.environ, Log: w.path("server.log")})
	if err != nil {
		w.Fatal(err)
	}
	w.server = server
	w.Cleanup(w.stop)
	address, err := server.URL()
	if err != nil {
		w.Fatal(err)
	}
	token, err := binary.Token(w.path("data"))
	if err != nil {
		w.Fatal(err)
	}
	w.api = client.New(address, token, &http.Client{Transport: &http.Transport{DisableKeepAlives: true}})
	name, repository, policy := "r", w.path("R"), "human"
	if _, err := w.api.AddProject(w.Context(), app.ProjectInput{Name: &name, Repository: &repository, Policy: &policy, Agent: &w.program.name}); err != nil {
		w.Fatal(err)
	}
}

// stop ends the server as an operator would; nothing of any run may be left then.
func (w *world) stop() {
	if err := w.server.Stop(); err != nil {
		w.Error(err)
	}
	w.leavesNothing()
}

// leavesNothing looks for what must be gone with the server.
func (w *world) leavesNothing() {
	w.Helper()
	for _, p := range w.processes() {
		w.Errorf("left after the end of the server: %s", p)
		_ = syscall.Kill(p.pid, syscall.SIGKILL)
	}
	left, err := filepath.Glob(w.path("data/private/*"))
	if err != nil || len(left) > 0 {
		w.Errorf("left after the runs: %v, %v", left, err)
	}
}

// start makes a task whose prompt names a script, and starts it.
func (w *world) start(script string, change ...func(*app.TaskRequest)) string {
	w.Helper()
	in := app.TaskRequest{
		Project: "r", Name: script, Start: true,
		Agent: app.AgentInput{Type: w.program.name, Instructions: "Follow SCRIPT:" + script + " to its end."},
	}
	for _, c := range change {
		c(&in)
	}
	task, err := w.api.CreateTask(w.Context(), in)
	if err != nil {
		w.Fatal(err)
	}
	return string(task.ID)
}

// await waits until a task is as wanted; it fails at once where it has ended.
func (w *world) await(id, what string, wanted func(*app.TaskView) bool) *app.TaskView {
	w.Helper()
	var task *app.TaskView
	for deadline := time.Now().Add(taskLimit); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		var err error
		if task, err = w.api.Task(w.Context(), id); err != nil {
			w.Fatal(err)
		}
		if wanted(task) {
			return task
		}
	}
	w.Fatalf("after %s the task is %s (%s), not %s", taskLimit, task.State, task.Reason, what)
	return nil
}

func (w *world) reaches(id string, state work.State) *app.TaskView {
	w.Helper()
	return w.await(id, string(state), func(t *app.TaskView) bool { return t.State == state })
}

// run is a task's execution number n, from 1, once it has ended.
func (w *world) run(id string, n int) *work.Execution {
	w.Helper()
	var runs []*work.Execution
	w.await(id, fmt.Sprintf("at the end of run %d", n), func(*app.TaskView) bool {
		var err error
		if runs, err = w.api.Executions(w.Context(), id); err != nil {
			w.Fatal(err)
		}
		return len(runs) >= n && !runs[n-1].Live()
	})
	return runs[n-1]
}

// transcript is the text of an execution's transcript.
func (w *world) transcript(x *work.Execution) string {
	w.Helper()
	r, err := w.api.Transcript(w.Context(), string(x.ID), 0)
	if err != nil {
		w.Fatal(err)
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		w.Fatal(err)
	}
	return string(text)
}

// process is one of a run.
type process struct {
	pid  int
	args string
}

func (p process) String() string { return fmt.Sprintf("%d %s", p.pid, p.args) }

// processes are those of this world's runs: they carry the mark of a run and the
// name of this folder, or work in one of its workspaces. The server's own git
// does neither.
func (w *world) processes() []process {
	w.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		w.Fatal(err)
	}
	var ours []process
	for _, e := range entries {
		var pid int
		if _, err := fmt.Sscan(e.Name(), &pid); err != nil || w.server != nil && pid == w.server.PID() {
			continue
		}
		dir := filepath.Join("/proc", e.Name())
		environ, err := os.ReadFile(filepath.Join(dir, "environ"))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		cwd, _ := os.Readlink(filepath.Join(dir, "cwd"))
		args, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		marked := strings.Contains(string(environ), "CLAUDOMATOR_EXECUTION_ID=") && strings.Contains(string(environ), w.dir+"/")
		if len(args) > 0 && (marked || strings.HasPrefix(cwd, w.path("data/workspaces")+"/")) {
			ours = append(ours, process{pid, strings.ReplaceAll(string(args), "\x00", " ")})
		}
	}
	return ours
}

package chaos_test

import (
	"embed"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/claudomator/claudomator/internal/client"
	"github.com/claudomator/claudomator/test/binary"
)

//go:embed testdata/*.sh
var scripts embed.FS

// world is a folder with a server and the user's repository.
type world struct {
	*testing.T
	dir     string
	bin     string
	environ []string

	mu     sync.Mutex
	server *binary.Server // nil: none runs
	url    string         // empty: it does not serve
	starts int
}

// limit is how long anything may take that takes seconds on a busy machine.
const limit = 2 * time.Minute

// newWorld makes a folder with the scripts, a repository, and where asked a
// PostgreSQL database that is dropped at the end.
func newWorld(t *testing.T, bin, postgres string) *world {
	t.Helper()
	w := &world{T: t, dir: t.TempDir(), bin: bin}
	for _, dir := range []string{"locks", "keys", "data"} {
		if err := os.Mkdir(w.path(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	programs, err := scripts.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range programs {
		text, err := scripts.ReadFile("testdata/" + p.Name())
		if err != nil {
			t.Fatal(err)
		}
		w.write(p.Name(), string(text))
	}
	w.write("ledger", "")
	w.write(".gitconfig", "[user]\n\tname = Ada\n\temail = ada@example.org\n")
	w.environ = []string{
		"HOME=" + w.dir, "PATH=" + os.Getenv("PATH"), "LC_ALL=C.UTF-8", "GIT_CONFIG_NOSYSTEM=1",
		"CLAUDOMATOR_DATA_DIR=" + w.path("data"),
	}
	if postgres != "" {
		w.environ = append(w.environ, "CLAUDOMATOR_DATABASE="+w.database(postgres))
	}
	w.git("", "init", "-q", "-b", "main", w.path("R"))
	w.write("R/a", "a\n")
	w.git(w.path("R"), "add", "a")
	w.git(w.path("R"), "commit", "-qm", "begin")
	t.Cleanup(w.end)
	return w
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

func (w *world) write(name, text string) {
	w.Helper()
	if err := os.WriteFile(w.path(name), []byte(text), 0o600); err != nil {
		w.Fatal(err)
	}
}

// git runs git as the user, and answers what it printed.
func (w *world) git(dir string, args ...string) string {
	w.Helper()
	out, err := w.tryGit(dir, args...)
	if err != nil {
		w.Errorf("git %s in %s: %v\n%s", strings.Join(args, " "), filepath.Base(dir), err, out)
	}
	return strings.TrimRight(out, "\n")
}

func (w *world) tryGit(dir string, args ...string) (string, error) {
	c := exec.Command("git", args...)
	c.Dir, c.Env = dir, append(w.environ, "GIT_OPTIONAL_LOCKS=0")
	out, err := c.CombinedOutput()
	return string(out), err
}

// database makes a database that is dropped at the end.
func (w *world) database(postgres string) string {
	w.Helper()
	database, drop, err := binary.Database(postgres)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		if err := drop(); err != nil {
			w.Error(err)
		}
	})
	return database
}

// launch starts the server, and does not wait until it serves.
func (w *world) launch(environ ...string) *binary.Server {
	w.Helper()
	s, err := binary.Launch(binary.Options{
		Bin: w.bin, Dir: w.dir, Env: append(slices.Clip(w.environ), environ...), Args: []string{"--slots", "6"}, Log: w.path("server.log"),
	})
	if err != nil {
		w.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.server, w.url = s, ""
	w.starts++
	return s
}

// start starts the server and waits until it serves.
func (w *world) start(environ ...string) {
	w.Helper()
	address, err := w.launch(environ...).URL()
	if err != nil {
		w.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.url = address
}

// kill kills the server and waits until it is dead.
func (w *world) kill() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.server != nil {
		w.server.Kill()
	}
	w.server, w.url = nil, ""
}

// stop asks the server to end, as an operator would.
func (w *world) stop() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	err := w.server.Stop()
	w.server, w.url = nil, ""
	return err
}

var errDown = errors.New("no server runs")

// api speaks to the server of this moment.
func (w *world) api() (*client.Client, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.url == "" {
		return nil, errDown
	}
	token, err := binary.Token(w.path("data"))
	if err != nil {
		return nil, err
	}
	return client.New(w.url, token, &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}), nil
}

// end ends whatever the test has left.
func (w *world) end() {
	w.kill()
	for _, p := range w.processes() {
		_ = syscall.Kill(p.pid, syscall.SIGKILL)
	}
}

// explain says what to look at after a failure.
func (w *world) explain() {
	log, _ := os.ReadFile(w.path("server.log"))
	w.Logf("%d starts; the server's log ends with:\n%s", w.starts, log[max(0, len(log)-6000):])
	if keep := os.Getenv("CLAUDOMATOR_CHAOS_KEEP"); keep != "" {
		if out, err := exec.Command("cp", "-a", w.dir, keep).CombinedOutput(); err != nil {
			w.Logf("keep %s: %v %s", w.dir, err, out)
			return
		}
		w.Logf("all of it is in %s/%s: data/claudomator.db, ledger, server.log, data/transcripts", keep, filepath.Base(w.dir))
		return
	}
	w.Log("set CLAUDOMATOR_CHAOS_KEEP to a folder to keep database, vault, ledger and transcripts of a failed storm")
}

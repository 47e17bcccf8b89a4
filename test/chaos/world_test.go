package chaos_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"embed"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/claudomator/claudomator/internal/client"
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
	server *exec.Cmd     // nil: none runs
	ended  chan struct{} // closed when it has ended …
	status error         // … with this
	url    string
	starts int
}

const (
	startLimit = 30 * time.Second
	stopLimit  = time.Minute
)

// build compiles the binary. The tests' cache does not see what the compiler
// reads; it sees what is looked at here.
func build(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "claudomator")
	args := []string{"build", "-o", bin}
	environ := append(os.Environ(), "CGO_ENABLED=0")
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "-race" && s.Value == "true" {
				args, environ = append(args, "-race"), os.Environ()
			}
		}
	}
	const program = "github.com/claudomator/claudomator/cmd/claudomator"
	goCommand(t, environ, append(args, program)...)
	sources := goCommand(t, environ, "list", "-deps", "-f",
		`{{with .Module}}{{if .Main}}{{$.Dir}}{{range $.GoFiles}}
{{$.Dir}}/{{.}}{{end}}{{range $.EmbedFiles}}
{{$.Dir}}/{{.}}{{end}}
{{.GoMod}}{{end}}{{end}}`, program)
	for path := range strings.FieldsSeq(sources) {
		if _, err := os.Stat(path); err != nil {
			t.Fatal(err)
		}
	}
	return bin
}

func goCommand(t *testing.T, environ []string, args ...string) string {
	t.Helper()
	var stderr strings.Builder
	c := exec.CommandContext(t.Context(), "go", args...)
	c.Env, c.Stderr = environ, &stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", args[0], err, stderr.String())
	}
	return string(out)
}

// newWorld makes a folder with the scripts, a repository, and where asked a
// PostgreSQL database that is dropped at the end.
func newWorld(t *testing.T, bin, postgres string) *world {
	t.Helper()
	w := &world{T: t, dir: t.TempDir(), bin: bin}
	for _, dir := range []string{"locks", "data"} {
		if err := os.Mkdir(w.path(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"agent.sh", "judge.sh"} {
		text, err := scripts.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		w.write(name, string(text))
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

// database makes a database of its own on a PostgreSQL server.
func (w *world) database(address string) string {
	w.Helper()
	u, err := url.Parse(address)
	if err != nil {
		w.Fatalf("read CLAUDOMATOR_TEST_POSTGRES: %v", err)
	}
	name := "chaos_" + strings.ToLower(rand.Text())
	do := func(statement string) error {
		ctx, cancel := context.WithTimeout(context.Background(), startLimit)
		defer cancel()
		conn, err := pgx.Connect(ctx, address)
		if err != nil {
			return fmt.Errorf("connect to PostgreSQL: %w", err)
		}
		defer func() { _ = conn.Close(ctx) }()
		_, err = conn.Exec(ctx, statement)
		return err
	}
	if err := do("CREATE DATABASE " + name); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		if err := do("DROP DATABASE " + name + " WITH (FORCE)"); err != nil {
			w.Error(err)
		}
	})
	query := u.Query()
	query.Set("pool_max_conns", "8")
	u.Path, u.RawQuery = "/"+name, query.Encode()
	return u.String()
}

// launch starts the server and answers where its first line, the URL, comes.
func (w *world) launch(environ ...string) <-chan string {
	w.Helper()
	log, err := os.OpenFile(w.path("server.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		w.Fatal(err)
	}
	defer func() { _ = log.Close() }() // the server has it, too
	c := exec.Command(w.bin, "serve", "--addr", "127.0.0.1:0", "--slots", "6")
	c.Dir, c.Env, c.Stderr = w.dir, append(w.environ, environ...), log
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a signal to the tests is not one to it
	stdout, err := c.StdoutPipe()
	if err != nil {
		w.Fatal(err)
	}
	if err := c.Start(); err != nil {
		w.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.server, w.ended, w.url = c, make(chan struct{}), ""
	w.starts++
	line, ended := make(chan string, 1), w.ended
	go func() {
		first, _ := bufio.NewReader(stdout).ReadString('\n')
		line <- strings.TrimSpace(first)
		_, _ = io.Copy(io.Discard, stdout)
		w.status = c.Wait()
		close(ended)
	}()
	return line
}

// start starts the server and waits until it serves.
func (w *world) start(environ ...string) {
	w.Helper()
	select {
	case address := <-w.launch(environ...):
		if address == "" {
			w.Fatal("the server did not start")
		}
		w.mu.Lock()
		w.url = address
		w.mu.Unlock()
	case <-time.After(startLimit):
		w.Fatalf("the server did not start within %s", startLimit)
	}
}

// kill kills the server and waits until it is dead.
func (w *world) kill() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.server == nil {
		return
	}
	_ = w.server.Process.Kill()
	<-w.ended
	w.server, w.url = nil, ""
}

// stop asks the server to end, as an operator would.
func (w *world) stop() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.server.Process.Signal(syscall.SIGTERM)
	select {
	case <-w.ended:
		w.server, w.url = nil, ""
		return w.status
	case <-time.After(stopLimit):
		return fmt.Errorf("the server did not stop within %s", stopLimit)
	}
}

var errDown = errors.New("no server runs")

// api speaks to the server of this moment.
func (w *world) api() (*client.Client, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.url == "" {
		return nil, errDown
	}
	token, err := os.ReadFile(w.path("data/token"))
	if err != nil {
		return nil, err
	}
	return client.New(w.url, strings.TrimSpace(string(token)), &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}), nil
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

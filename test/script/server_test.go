package script_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rogpeppe/go-internal/testscript"
)

type worldKey struct{}

// world is what a script has: its folder, its server, its repositories.
type world struct {
	t         testscript.T
	dir       string
	bin       string
	env       func() []string
	server    *exec.Cmd // nil: none runs
	ended     chan error
	url       string
	flags     []string // arguments of the last start
	checkouts map[string]checkout
	drop      func() error // the database
}

// checkout is how a script leaves a repository.
type checkout struct {
	branch string
	status []string
}

const (
	startLimit = 20 * time.Second
	stopLimit  = 30 * time.Second
)

func worldOf(ts *testscript.TestScript) *world { return ts.Value(worldKey{}).(*world) }

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

// database makes a database of its own on a PostgreSQL server.
func (w *world) database(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", fmt.Errorf("read CLAUDOMATOR_TEST_POSTGRES: %w", err)
	}
	name := "script_" + strings.ToLower(rand.Text())
	do := func(statement string) error {
		ctx, cancel := context.WithTimeout(context.Background(), startLimit)
		defer cancel()
		conn, err := pgx.Connect(ctx, address)
		if err != nil {
			return fmt.Errorf("connect to PostgreSQL: %w", err)
		}
		defer func() { _ = conn.Close(ctx) }()
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
		return nil
	}
	if err := do("CREATE DATABASE " + name); err != nil {
		return "", err
	}
	w.drop = func() error { return do("DROP DATABASE " + name + " WITH (FORCE)") }
	query := u.Query()
	query.Set("pool_max_conns", "8") // many scripts share the server's connections
	u.Path, u.RawQuery = "/"+name, query.Encode()
	return u.String(), nil
}

// start runs the server and waits for its first line, the URL. Leading
// NAME=VALUE arguments are for its environment.
func (w *world) start(environ []string, args []string) error {
	if w.server != nil {
		return fmt.Errorf("the server runs already")
	}
	log, err := os.OpenFile(w.path("server.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the server has it, too
	flags := args
	for len(flags) > 0 && strings.Contains(flags[0], "=") && flags[0][0] != '-' {
		environ, flags = append(environ, flags[0]), flags[1:]
	}
	c := exec.Command(w.bin, append([]string{"serve", "--addr", "127.0.0.1:0"}, flags...)...)
	c.Dir, c.Env, c.Stderr = w.dir, environ, log
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a signal to the tests is not one to it
	stdout, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	w.server, w.flags, w.ended = c, args, make(chan error, 1)
	line := make(chan string, 1)
	go func() {
		first, _ := bufio.NewReader(stdout).ReadString('\n')
		line <- strings.TrimSpace(first)
		_, _ = io.Copy(io.Discard, stdout)
		w.ended <- c.Wait()
	}()
	select {
	case w.url = <-line:
		if w.url != "" {
			return os.WriteFile(w.path("server.pid"), fmt.Appendln(nil, c.Process.Pid), 0o600)
		}
		err = <-w.ended
		w.server = nil
		return fmt.Errorf("the server did not start: %w", err)
	case <-time.After(startLimit):
		return fmt.Errorf("the server did not start within %s", startLimit)
	}
}

// stop asks the server to end, and waits until it has.
func (w *world) stop() error {
	if err := w.server.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop the server: %w", err)
	}
	select {
	case err := <-w.ended:
		w.server = nil
		return err
	case <-time.After(stopLimit):
		return fmt.Errorf("the server did not stop within %s", stopLimit)
	}
}

// kill kills the server.
func (w *world) kill() error {
	if err := w.server.Process.Kill(); err != nil {
		return fmt.Errorf("kill the server: %w", err)
	}
	<-w.ended //nolint:errcheck // killed: the status is known
	w.server = nil
	return nil
}

// end is the end of every script.
func (w *world) end() {
	failed := w.t.(interface{ Failed() bool }).Failed()
	var found []string
	if !failed {
		found = w.check()
	}
	if w.server != nil {
		if err := w.stop(); err != nil {
			found = append(found, err.Error())
		}
	}
	left := w.leftovers()
	for _, p := range left {
		found = append(found, "left after the end of the server: "+p.String())
	}
	if w.server != nil {
		_ = w.kill()
	}
	for _, p := range left {
		_ = syscall.Kill(p.pid, syscall.SIGKILL)
	}
	if w.drop != nil {
		if err := w.drop(); err != nil {
			found = append(found, err.Error())
		}
	}
	log, _ := os.ReadFile(w.path("server.log"))
	if failed || len(found) > 0 {
		w.t.Log("the server's log ends with:\n" + string(log[max(0, len(log)-4000):]))
	}
	if len(found) > 0 {
		w.t.Fatal("after the script:\n" + strings.Join(found, "\n"))
	}
}

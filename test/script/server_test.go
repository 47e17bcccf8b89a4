package script_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/claudomator/claudomator/internal/forge/forgetest"
	"github.com/claudomator/claudomator/test/binary"
)

type worldKey struct{}

// world is what a script has: its folder, its server, its repositories.
type world struct {
	t         testscript.T
	dir       string
	bin       string
	env       func() []string
	server    *binary.Server // nil: none runs
	url       string
	flags     []string // arguments of the last start
	checkouts map[string]checkout
	drop      func() error      // the database
	forge     *forgetest.Double // nil: the script has none
	release   func()            // the database, where it is held
}

// checkout is how a script leaves a repository.
type checkout struct {
	branch string
	status []string
}

// limit is how long anything may take: far longer than what takes seconds on a busy
// machine, since a script that waits in vain is rare, and a loaded machine is not.
const limit = 200 * time.Second

func worldOf(ts *testscript.TestScript) *world { return ts.Value(worldKey{}).(*world) }

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

// start runs the server and waits until it serves. Leading NAME=VALUE arguments
// are for its environment.
func (w *world) start(environ []string, args []string) (err error) {
	if w.server != nil {
		return fmt.Errorf("the server runs already")
	}
	flags := args
	for len(flags) > 0 && strings.Contains(flags[0], "=") && flags[0][0] != '-' {
		environ, flags = append(environ, flags[0]), flags[1:]
	}
	w.flags = args
	w.server, err = binary.Launch(binary.Options{Bin: w.bin, Dir: w.dir, Env: environ, Args: flags, Log: w.path("server.log")})
	if err != nil {
		return err
	}
	if w.url, err = w.server.URL(); err != nil {
		w.kill()
		return err
	}
	return os.WriteFile(w.path("server.pid"), fmt.Appendln(nil, w.server.PID()), 0o600)
}

// stop asks the server to end, and waits until it has.
func (w *world) stop() error {
	err := w.server.Stop()
	w.server = nil
	return err
}

// kill kills the server.
func (w *world) kill() {
	w.server.Kill()
	w.server = nil
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

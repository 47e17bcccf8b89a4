// The scripts of this folder show what the product does, and prove it: each
// runs the real binary, with real git and real processes, on SQLite and on
// PostgreSQL. They are read like documentation; a file's name says what it
// shows, b01-unborn and the like are named after a case of the field.
//
// Each script has a folder of its own ($WORK, also $HOME), a server of its own
// on a free port (its data in $WORK/data, its log in $WORK/server.log), and an
// environment of nothing but what is set here. Besides testscript's own
// commands there are:
//
//	serve [NAME=VALUE]… [FLAG]…
//	                   start the server, wait until it serves (at $URL)
//	shutdown           end the server as an operator would; it must end well
//	kill9              kill it (SIGKILL) and nothing else
//	rounds N A B       N times: run shell script A, kill9, serve, run shell script B
//	                   ($ROUND counts; the kill comes the moment A ends)
//	claudomator …      run the command line
//	exits N PROG …     run a program that must end with exit code N
//	http METHOD PATH [HEADER:VALUE]… [BODY]
//	                   ask the server: the answer's body is stdout, its status
//	                   stderr; the token is added unless Authorization is given
//	json PATH [REGEXP] the last stdout has this field, and all of it matches;
//	                   a path is names and indexes, as in items.0.name or items.len
//	let NAME [PATH]    keep the last stdout, or a field of it, in a variable
//	until PROG …       run a program again and again until it succeeds
//	repo DIR           make a repository with a file a on branch main
//	leaves DIR BRANCH [STATUS]…
//	                   the script leaves this checkout on another branch, or with
//	                   these lines in git status
//	terminal COLSxROWS FILE PROG …
//	                   run a program on a terminal, and do what the file says (see
//	                   terminal_test.go): stdout is what it printed, without colours
//	forge VERB …       play a forge with pull requests (see forge_test.go), of the
//	                   kind $KIND: scripts named story-pull… run for each kind
//	over FILE …        the processes whose numbers the files hold have ended
//	hold DURATION      let nobody write to the database for so long, from now on
//	release            end that now
//
// After every script, also the one that has failed, all processes are ended;
// after one that has not, check_test.go holds what is left to the invariants.
package script_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/claudomator/claudomator/internal/forge/forgetest"
	"github.com/claudomator/claudomator/test/binary"
)

// TestMain lets more scripts run at once than there are cores: they wait for
// processes most of the time.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "8"); err != nil { // the command line wins: it is parsed later
		panic(err)
	}
	os.Exit(m.Run())
}

// TestNoScriptEndsEarly: testscript has a command "stop" of its own, which ends a
// script well, whatever comes after it.
func TestNoScriptEndsEarly(t *testing.T) {
	t.Parallel()
	scripts, err := filepath.Glob("*.txtar")
	if err != nil || len(scripts) == 0 {
		t.Fatal("there are no scripts: ", err)
	}
	early := regexp.MustCompile(`(?m)^(\[[^]]*\] *)?stop\b`)
	for _, script := range scripts {
		text, err := os.ReadFile(script)
		if err != nil {
			t.Fatal(err)
		}
		if at := early.FindIndex(text); at != nil {
			t.Errorf("%s:%d: stop ends the script here; shutdown ends the server", script, 1+strings.Count(string(text[:at[0]]), "\n"))
		}
	}
}

// TestScripts runs every script on both databases, and those of pull requests for
// both kinds of forges.
func TestScripts(t *testing.T) {
	t.Parallel()
	bin := binary.Build(t)
	t.Run("sqlite", func(t *testing.T) { run(t, bin, "", forgetest.GitHub, ".") })
	t.Run("postgres", func(t *testing.T) { run(t, bin, binary.Postgres(t), forgetest.GitHub, ".") })
	t.Run("gitea", func(t *testing.T) {
		pulls, err := filepath.Glob("story-pull*.txtar")
		if err != nil || len(pulls) == 0 {
			t.Fatal("there are no scripts: ", err)
		}
		run(t, bin, "", forgetest.Gitea, "", pulls...)
	})
}

func run(t *testing.T, bin, postgres, kind, dir string, files ...string) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: dir, Files: files, RequireUniqueNames: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("KIND", kind)
			return setUp(env, bin, postgres)
		},
		Cmds: commands(),
	})
}

// setUp makes a script's world: an empty home, git with an identity, and where
// asked a PostgreSQL database that is dropped at the end.
func setUp(env *testscript.Env, bin, postgres string) error {
	w := &world{t: env.T(), dir: env.WorkDir, bin: bin, checkouts: map[string]checkout{}}
	env.Values[worldKey{}] = w
	env.Defer(w.end)
	set := func(name, value string) { env.Setenv(name, value) }
	set("HOME", env.WorkDir)
	set("PATH", filepath.Dir(bin)+string(os.PathListSeparator)+os.Getenv("PATH"))
	set("LC_ALL", "C.UTF-8")
	set("GIT_CONFIG_NOSYSTEM", "1")
	set("CLAUDOMATOR_DATA_DIR", w.path("data"))
	if postgres != "" {
		database, drop, err := binary.Database(postgres)
		if err != nil {
			return err
		}
		w.drop = drop
		set("CLAUDOMATOR_DATABASE", database)
	}
	w.env = func() []string { return env.Vars }
	identity := "[user]\n\tname = Ada\n\temail = ada@example.org\n[init]\n\tdefaultBranch = main\n"
	if err := os.WriteFile(w.path(".gitconfig"), []byte(identity), 0o600); err != nil {
		return fmt.Errorf("give git an identity: %w", err)
	}
	return nil
}

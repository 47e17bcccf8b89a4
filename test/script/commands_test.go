package script_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/claudomator/claudomator/test/binary"
)

type command = func(ts *testscript.TestScript, neg bool, args []string)

func commands() map[string]command {
	return map[string]command{
		"serve": plain(0, serve), "shutdown": plain(0, shutdown), "kill9": plain(0, kill9), "rounds": plain(3, rounds),
		"claudomator": claudomator, "exits": plain(2, exits), "http": plain(2, ask),
		"json": field, "let": plain(1, let), "until": plain(1, until),
		"repo": plain(1, repo), "leaves": plain(2, leaves), "over": plain(1, over), "hold": plain(1, hold), "release": plain(0, release), "terminal": plain(3, terminal),
		"forge": plain(1, forge),
	}
}

// plain is a command that cannot be negated and takes at least some arguments.
func plain(least int, do func(ts *testscript.TestScript, args []string)) command {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg || len(args) < least {
			ts.Fatalf("wrong use: see the head of script_test.go")
		}
		do(ts, args)
	}
}

// environ is the script's environment as it stands: env commands change it.
func environ(ts *testscript.TestScript) []string {
	var out []string
	for _, entry := range worldOf(ts).env() {
		name, _, _ := strings.Cut(entry, "=")
		out = append(out, name+"="+ts.Getenv(name))
	}
	return out
}

func serve(ts *testscript.TestScript, args []string) {
	w := worldOf(ts)
	ts.Check(w.start(environ(ts), args))
	ts.Setenv("URL", w.url)
}

func shutdown(ts *testscript.TestScript, _ []string) { ts.Check(worldOf(ts).stop()) }

func kill9(ts *testscript.TestScript, _ []string) { worldOf(ts).kill() }

func rounds(ts *testscript.TestScript, args []string) {
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	w := worldOf(ts)
	for i := range n {
		ts.Setenv("ROUND", strconv.Itoa(i+1))
		ts.Check(ts.Exec("sh", "-eu", ts.MkAbs(args[1])))
		w.kill()
		serve(ts, w.flags)
		ts.Check(ts.Exec("sh", "-eu", ts.MkAbs(args[2])))
	}
}

func claudomator(ts *testscript.TestScript, neg bool, args []string) {
	switch err := ts.Exec("claudomator", args...); {
	case err == nil && neg:
		ts.Fatalf("it should have failed")
	case err != nil && !neg:
		ts.Fatalf("it failed: %v", err)
	}
}

func exits(ts *testscript.TestScript, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	code := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("run %s: %v", args[1], err)
	}
	if code != want {
		ts.Fatalf("exit code %d, not %d", code, want)
	}
}

func ask(ts *testscript.TestScript, args []string) {
	w := worldOf(ts)
	header, body := http.Header{}, ""
	for i, arg := range args[2:] {
		name, value, ok := strings.Cut(arg, ":")
		if ok && regexp.MustCompile(`^[A-Za-z-]+$`).MatchString(name) {
			header.Set(name, strings.TrimSpace(value))
			continue
		}
		if i != len(args)-3 {
			ts.Fatalf("%q is no header", arg)
		}
		body = arg
	}
	req, err := http.NewRequest(args[0], w.url+args[1], strings.NewReader(body))
	ts.Check(err)
	if _, given := header["Authorization"]; !given {
		header.Set("Authorization", "Bearer "+w.token())
	}
	if body != "" && header.Get("Content-Type") == "" {
		header.Set("Content-Type", "application/json")
	}
	req.Host, req.Header = header.Get("Host"), header
	resp, err := http.DefaultClient.Do(req)
	ts.Check(err)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	ts.Check(err)
	_, _ = ts.Stdout().Write(data)
	_, _ = fmt.Fprintln(ts.Stderr(), resp.Status)
}

func (w *world) token() string {
	token, _ := binary.Token(w.path("data")) // without one the answer is 401
	return token
}

// field checks a field of the last stdout.
func field(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) == 0 || len(args) > 2 {
		ts.Fatalf("wrong use: see the head of script_test.go")
	}
	text, ok := find(ts, args[0])
	if ok && len(args) == 2 {
		re, err := regexp.Compile(`(?s)^(?:` + args[1] + `)$`)
		ts.Check(err)
		ok = re.MatchString(text)
	}
	if ok == neg {
		ts.Fatalf("%s is %q", args[0], text)
	}
}

func let(ts *testscript.TestScript, args []string) {
	text, ok := strings.TrimSpace(ts.ReadFile("stdout")), true
	if len(args) > 1 {
		text, ok = find(ts, args[1])
	}
	if !ok {
		ts.Fatalf("there is no %s", args[1])
	}
	ts.Setenv(args[0], text)
}

// find reads a field of the last stdout as text: a string as it is, all else
// as JSON.
func find(ts *testscript.TestScript, path string) (string, bool) {
	var at any
	if err := json.Unmarshal([]byte(ts.ReadFile("stdout")), &at); err != nil {
		ts.Fatalf("the last output is no JSON: %v", err)
	}
	for name := range strings.SplitSeq(path, ".") {
		switch v := at.(type) {
		case map[string]any:
			inner, ok := v[name]
			if !ok {
				return "", false
			}
			at = inner
		case []any:
			i, err := strconv.Atoi(name)
			switch {
			case name == "len":
				at = len(v)
			case err != nil || i < 0 || i >= len(v):
				return "", false
			default:
				at = v[i]
			}
		default:
			return "", false
		}
	}
	if text, ok := at.(string); ok {
		return text, true
	}
	data, err := json.Marshal(at)
	ts.Check(err)
	return string(data), true
}

// over refuses a process whose number a file holds, and that has not ended; that
// nobody has asked yet how it did is no matter.
func over(ts *testscript.TestScript, files []string) {
	for _, file := range files {
		pid := strings.TrimSpace(ts.ReadFile(file))
		if _, err := strconv.Atoi(pid); err != nil {
			ts.Fatalf("%s holds no process: %v", file, err)
		}
		out, _ := exec.Command("ps", "-o", "stat=", "-p", pid).Output() // fails where there is none
		if stat := strings.TrimSpace(string(out)); stat != "" && stat[0] != 'Z' {
			ts.Fatalf("the process of %s lives: %s", file, stat)
		}
	}
}

func until(ts *testscript.TestScript, args []string) {
	for end := time.Now().Add(limit); ; time.Sleep(30 * time.Millisecond) {
		err := ts.Exec(args[0], args[1:]...)
		if err == nil {
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("not within %s: %v", limit, err)
		}
	}
}

func repo(ts *testscript.TestScript, args []string) {
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o755))
	ts.Check(os.WriteFile(filepath.Join(dir, "a"), []byte("a\n"), 0o600))
	for _, line := range []string{"init -q -b main", "add a", "commit -q -m begin"} {
		ts.Check(ts.Exec("git", append([]string{"-C", dir}, strings.Fields(line)...)...))
	}
	worldOf(ts).checkouts[dir] = checkout{branch: "main"}
}

func leaves(ts *testscript.TestScript, args []string) {
	worldOf(ts).checkouts[ts.MkAbs(args[0])] = checkout{args[1], args[2:]}
}

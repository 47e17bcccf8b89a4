package script_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/claudomator/claudomator/internal/forge/forgetest"
)

// forge plays a forge of the kind $KIND, and the people and checks at it:
//
//	forge start TOKEN   host acme/widget, whose branches are those of the bare
//	                    repository $WORK/acme/widget.git, for who has the token; its
//	                    API is at $FORGE
//	forge pulls         its pull requests become stdout, as JSON
//	forge check STATE [LOG]
//	                    the checks of the newest one's head are pending, passed or
//	                    failed, with this log
//	forge merge HOW     merge it: with a commit of its own, or by squash
//	forge close         close it unmerged
//	forge asked         the requests that came become stdout: how many, and METHOD and
//	                    PATH below the repository of each
//	forge answers LINE [STATUS [HEADER:VALUE]…]
//	                    answer this to "METHOD PATH", or to everything ("*"); without a
//	                    status as a forge does again
func forge(ts *testscript.TestScript, args []string) {
	w := worldOf(ts)
	if args[0] == "start" {
		w.forge = forgetest.New(ts.Getenv("KIND"))
		ts.Defer(w.forge.Close)
		w.forge.Host(args[1], w.remoteHead)
		ts.Setenv("FORGE", w.forge.API())
		return
	}
	if w.forge == nil {
		ts.Fatalf("there is no forge yet: forge start TOKEN")
	}
	switch verb, rest := args[0], args[1:]; verb {
	case "pulls":
		data, err := json.MarshalIndent(w.forge.Pulls(), "", "  ")
		ts.Check(err)
		_, _ = ts.Stdout().Write(data)
	case "check":
		w.forge.Check(w.newest(ts).Commit, rest[0], strings.Join(rest[1:], " "))
	case "merge":
		p := w.newest(ts)
		commit, err := w.mergePull(p, rest[0])
		ts.Check(err)
		w.forge.Merge(p.Number, commit)
	case "close":
		w.forge.End(w.newest(ts).Number)
	case "asked":
		asked := w.forge.Asked()
		_, _ = fmt.Fprintln(ts.Stdout(), len(asked), "requests")
		for _, a := range asked {
			_, _ = fmt.Fprintln(ts.Stdout(), a.Line)
		}
	case "answers":
		w.answers(ts, rest)
	default:
		ts.Fatalf("wrong use: see forge_test.go")
	}
}

// answers sets what is answered to a line; a kind's own words come with the statuses
// that have some.
func (w *world) answers(ts *testscript.TestScript, args []string) {
	if len(args) == 1 {
		w.forge.On(args[0])
		return
	}
	status, err := strconv.Atoi(args[1])
	ts.Check(err)
	header := http.Header{}
	for _, arg := range args[2:] {
		name, value, _ := strings.Cut(arg, ":")
		header.Set(name, value)
	}
	body := `{"message":"no"}`
	switch {
	case status == http.StatusForbidden && header.Get("X-RateLimit-Remaining") == "0":
		body = `{"message":"API rate limit exceeded"}`
	case status == http.StatusForbidden:
		body = w.forge.Fixture("forbidden")
	}
	w.forge.On(args[0], forgetest.Reply{Status: status, Header: header, Body: body})
}

// newest is the pull request that was opened last.
func (w *world) newest(ts *testscript.TestScript) forgetest.Pull {
	pulls := w.forge.Pulls()
	if len(pulls) == 0 {
		ts.Fatalf("no pull request was opened")
	}
	return pulls[len(pulls)-1]
}

const widget = "acme/widget.git"

// remoteHead is where a branch of the forge's repository is.
func (w *world) remoteHead(branch string) (commit string, ok bool) {
	out, err := w.runGit("--git-dir", w.path(widget), "rev-parse", "--verify", "-q", "refs/heads/"+branch)
	return out, err == nil
}

// mergePull merges a pull request as a forge does, and gives what its base got.
func (w *world) mergePull(p forgetest.Pull, how string) (commit string, err error) {
	dir, err := os.MkdirTemp(w.dir, "merge")
	if err != nil {
		return "", err
	}
	title := fmt.Sprintf("%s (#%d)", p.Title, p.Number)
	steps := map[string][][]string{
		"commit": {{"merge", "-q", "--no-ff", "-m", title, p.Commit}},
		"squash": {{"merge", "-q", "--squash", p.Commit}, {"commit", "-q", "-m", title}},
	}[how]
	if steps == nil {
		return "", errors.New("pull requests are merged by commit or by squash")
	}
	if _, err := w.runGit("clone", "-q", "-b", p.Base, w.path(widget), dir); err != nil {
		return "", err
	}
	for _, step := range append(steps, []string{"push", "-q", "origin", "HEAD:" + p.Base}) {
		if _, err := w.runGit(append([]string{"-C", dir}, step...)...); err != nil {
			return "", err
		}
	}
	return w.runGit("-C", dir, "rev-parse", "HEAD")
}

func (w *world) runGit(args ...string) (string, error) {
	c := exec.Command("git", args...)
	c.Env = w.env()
	out, err := c.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("git %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

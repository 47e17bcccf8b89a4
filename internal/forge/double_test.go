package forge

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	token  = "t0ken-of-the-server"
	head   = "6dcb09b5b57875f334f61aebed695e2e4193db5e"
	merge  = "e5bd3914e2e596debea16f433f57875b5b90bcd6"
	branch = "story/passkey"
)

// double stands in for a forge: it answers with what testdata has of the real
// one's shapes, and keeps what it was asked.
type double struct {
	*httptest.Server
	t    *testing.T
	kind string

	mu     sync.Mutex
	routes map[string][]reply
	seen   []asked
}

// reply is one answer of a route; the last one of a route is repeated.
type reply struct {
	status int
	header http.Header
	body   string
}

type asked struct {
	line   string // METHOD PATH below the repository
	query  string
	header http.Header
	body   string
}

func newDouble(t *testing.T, kind string) *double {
	d := &double{t: t, kind: kind, routes: map[string][]reply{}}
	d.Server = httptest.NewServer(d)
	t.Cleanup(d.Close)
	return d
}

// both runs a test with a double of each forge.
func both(t *testing.T, test func(t *testing.T, d *double)) {
	for _, kind := range []string{GitHub, Gitea} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			test(t, newDouble(t, kind))
		})
	}
}

func (d *double) prefix() string {
	if d.kind == GitHub {
		return "/api/v3/repos/acme/widget"
	}
	return "/api/v1/repos/acme/widget"
}

// forge is the client under test.
func (d *double) forge() Forge {
	d.t.Helper()
	f, err := For("git@forge.example:acme/widget.git", Config{
		Kind: d.kind, API: d.URL + strings.TrimSuffix(d.prefix(), "/repos/acme/widget"), Token: token,
		Now: func() time.Time { return time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC) },
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return f
}

func (d *double) on(line string, replies ...reply) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.routes[line] = replies
}

func (d *double) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		d.t.Error(err)
	}
	line := r.Method + " " + strings.TrimPrefix(r.URL.EscapedPath(), d.prefix())
	d.mu.Lock()
	d.seen = append(d.seen, asked{line, r.URL.RawQuery, r.Header.Clone(), string(body)})
	replies := d.routes[line]
	if len(replies) > 1 {
		d.routes[line] = replies[1:]
	}
	d.mu.Unlock()
	if len(replies) == 0 {
		replies = []reply{{status: http.StatusNotFound, body: d.fixture("not_found")}}
	}
	maps.Copy(w.Header(), replies[0].header)
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(replies[0].status)
	_, _ = io.WriteString(w, replies[0].body) // whoever went away is the subject of a test
}

// lines are the requests that came, without what was asked of them.
func (d *double) lines() string {
	var lines []string
	for _, a := range d.asked() {
		lines = append(lines, a.line)
	}
	return strings.Join(lines, "\n")
}

func (d *double) asked() []asked {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]asked(nil), d.seen...)
}

// fixture is a file of testdata with some of its members changed.
func (d *double) fixture(name string, changes ...map[string]any) string {
	d.t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", d.kind, name+".json"))
	if err != nil {
		d.t.Fatal(err)
	}
	var whole map[string]any
	if err := json.Unmarshal(data, &whole); err != nil {
		d.t.Fatal(err)
	}
	for _, c := range changes {
		change(whole, c)
	}
	data, err = json.Marshal(whole)
	if err != nil {
		d.t.Fatal(err)
	}
	return string(data)
}

// change sets members, those of members too.
func change(whole, by map[string]any) {
	for key, value := range by {
		deeper, ok := value.(map[string]any)
		inner, has := whole[key].(map[string]any)
		if ok && has {
			change(inner, deeper)
		} else {
			whole[key] = value
		}
	}
}

func (d *double) pull(changes ...map[string]any) string { return d.fixture("pull", changes...) }

func ok(body string) reply { return reply{status: http.StatusOK, body: body} }

func list(items ...string) string { return "[" + strings.Join(items, ",") + "]" }

func quoted(text string) string {
	data, err := json.Marshal(text)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

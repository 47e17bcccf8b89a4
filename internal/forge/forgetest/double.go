package forgetest

import (
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
)

// The kinds of forges.
const (
	GitHub = "github"
	Gitea  = "gitea"
)

//go:embed testdata
var testdata embed.FS

// Double stands in for a forge of one kind.
type Double struct {
	*httptest.Server
	Kind string

	mu     sync.Mutex
	routes map[string][]Reply
	seen   []Asked
	host   *host // nil: no pull requests of its own
}

// Reply is one answer of a route.
type Reply struct {
	Status int
	Header http.Header
	Body   string
}

// Asked is a request that came.
type Asked struct {
	Line   string // METHOD PATH, the path below the repository
	Query  string
	Header http.Header
	Body   string
}

// New starts a double of a kind; the caller closes it.
func New(kind string) *Double {
	d := &Double{Kind: kind, routes: map[string][]Reply{}}
	d.Server = httptest.NewServer(d)
	return d
}

// API is the base address of its API.
func (d *Double) API() string { return d.URL + strings.TrimSuffix(d.Prefix(), repository) }

const repository = "/repos/acme/widget"

// Prefix is the path of the repository in the API.
func (d *Double) Prefix() string {
	if d.Kind == GitHub {
		return "/api/v3" + repository
	}
	return "/api/v1" + repository
}

// On says what is answered to "METHOD PATH": each reply once, the last one again and
// again; without any, whatever the double answers by itself.
func (d *Double) On(line string, replies ...Reply) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.routes[line] = replies
}

// Asked are the requests that came so far, in order.
func (d *Double) Asked() []Asked {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]Asked(nil), d.seen...)
}

// ServeHTTP implements http.Handler.
func (d *Double) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // whoever went away is the subject of a test
	}
	asked := Asked{r.Method + " " + strings.TrimPrefix(r.URL.EscapedPath(), d.Prefix()), r.URL.RawQuery, r.Header.Clone(), string(body)}
	reply := d.answer(asked)
	maps.Copy(w.Header(), reply.Header)
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(reply.Status)
	_, _ = io.WriteString(w, reply.Body)
}

func (d *Double) answer(a Asked) Reply {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen = append(d.seen, a)
	for _, line := range []string{a.Line, Everything} {
		replies := d.routes[line]
		if len(replies) > 1 {
			d.routes[line] = replies[1:]
		}
		if len(replies) > 0 {
			return replies[0]
		}
	}
	if d.host != nil {
		return d.host.answer(a)
	}
	return d.NotFound()
}

// Everything is the line of what is asked and has no line of its own.
const Everything = "*"

// NotFound is what both say of what is not there.
func (d *Double) NotFound() Reply {
	return Reply{Status: http.StatusNotFound, Body: d.Fixture("not_found")}
}

// Exists is how each says that there is a pull request already.
func (d *Double) Exists() Reply {
	if d.Kind == GitHub {
		return Reply{Status: http.StatusUnprocessableEntity, Body: d.Fixture("exists")}
	}
	return Reply{Status: http.StatusConflict, Body: d.Fixture("exists")}
}

// Fixture is a file of testdata with some of its members changed.
func (d *Double) Fixture(name string, changes ...map[string]any) string {
	data, err := testdata.ReadFile("testdata/" + d.Kind + "/" + name + ".json")
	if err != nil {
		panic(err)
	}
	var whole map[string]any
	if err := json.Unmarshal(data, &whole); err != nil {
		panic(fmt.Errorf("%s: %w", name, err))
	}
	for _, c := range changes {
		change(whole, c)
	}
	return encode(whole)
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

func encode(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// List is a JSON array of what is JSON already.
func List(items ...string) string { return "[" + strings.Join(items, ",") + "]" }

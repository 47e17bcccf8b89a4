package forge

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/claudomator/claudomator/internal/forge/forgetest"
)

const (
	token  = "t0ken-of-the-server"
	head   = "6dcb09b5b57875f334f61aebed695e2e4193db5e"
	merge  = "e5bd3914e2e596debea16f433f57875b5b90bcd6"
	branch = "story/passkey"
)

// double is the forge's double, as the tests of one package speak of it.
type double struct {
	*forgetest.Double
	t    *testing.T
	kind string
}

type reply = forgetest.Reply

func newDouble(t *testing.T, kind string) *double {
	d := &double{forgetest.New(kind), t, kind}
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

// forge is the client under test.
func (d *double) forge() Forge {
	d.t.Helper()
	f, err := For("git@forge.example:acme/widget.git", Config{
		Kind: d.kind, API: d.API(), Token: token,
		Now: func() time.Time { return time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC) },
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return f
}

// lines are the requests that came, without what was asked of them.
func (d *double) lines() string {
	var lines []string
	for _, a := range d.asked() {
		lines = append(lines, a.Line)
	}
	return strings.Join(lines, "\n")
}

func (d *double) on(line string, replies ...reply) { d.On(line, replies...) }

func (d *double) asked() []forgetest.Asked { return d.Asked() }

func (d *double) prefix() string { return d.Prefix() }

func (d *double) exists() reply { return d.Exists() }

func (d *double) fixture(name string, changes ...map[string]any) string {
	return d.Fixture(name, changes...)
}

func (d *double) pull(changes ...map[string]any) string { return d.fixture("pull", changes...) }

func answered(status int, header http.Header, body string) reply {
	return reply{Status: status, Header: header, Body: body}
}

func ok(body string) reply { return reply{Status: http.StatusOK, Body: body} }

func list(items ...string) string { return forgetest.List(items...) }

func quoted(text string) string {
	data, err := json.Marshal(text)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

package api

import (
	"context"
	"database/sql"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/app/apptest"
	"github.com/claudomator/claudomator/internal/client"
	"github.com/claudomator/claudomator/internal/store"
	"github.com/claudomator/claudomator/internal/work"
)

// world is a server over the real service on a real database.
type world struct {
	*apptest.World
	store   *store.Store
	handler *server
	http    *httptest.Server
	token   string
}

func newWorld(t testing.TB) *world {
	t.Helper()
	drop := func(context.Context, *sql.Tx, []work.Effect) error { return nil } // nothing runs by itself
	db, err := store.Open(t.Context(), store.Config{URL: filepath.Join(t.TempDir(), "db.sqlite")}, drop)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	w := &world{token: "the-owner's-secret", store: db}
	w.World = apptest.New(t, app.Options{Trees: db, Lookup: db, Lists: db, Stories: db, Settings: db, Tokens: db, IDs: &apptest.Counted{}})
	if err := w.Service.EnsureToken(t.Context(), "owner", w.token); err != nil {
		t.Fatal(err)
	}
	w.handler = newServer(Options{
		API: w.Service, Auth: w.Service.Authenticate, LastSeq: db.LastSeq, Version: "dev", Log: w.Logger,
		Ready:   func(context.Context) error { return nil },
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "up 1\n") }),
		Admin:   http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "admin\n") }),
		Door:    app.NewDoor([]string{"claudomator.example"}),
	})
	w.http = httptest.NewServer(w.handler)
	t.Cleanup(w.http.Close)
	t.Cleanup(w.http.CloseClientConnections) // streams first
	return w
}

func (w *world) client() *client.Client { return client.New(w.http.URL, w.token, w.http.Client()) }

// received is what the server answered.
type received struct {
	status int
	header http.Header
	body   []byte
	Problem
}

// ask makes a request; edits change it before it is sent.
func (w *world) ask(method, path, body string, edits ...func(*http.Request)) received {
	w.Helper()
	req, err := http.NewRequestWithContext(w.Context(), method, w.http.URL+path, strings.NewReader(body))
	if err != nil {
		w.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+w.token)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	status, answered, data := w.Ask(w.http.Client(), req, edits...)
	a := received{status: status, header: answered, body: data}
	if strings.HasPrefix(answered.Get("Content-Type"), "application/problem+json") {
		if err := json.Unmarshal(data, &a.Problem); err != nil {
			w.Fatalf("%s %s: %v in %s", method, path, err, data)
		}
	}
	return a
}

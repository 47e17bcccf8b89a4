package api

import (
	"context"
	"log/slog"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/claudomator/claudomator/internal/app"
)

// Options is what the surface stands on; cmd wires it.
type Options struct {
	API app.API
	// Auth finds who a bearer token belongs to.
	Auth func(ctx context.Context, secret string) (app.Caller, error)
	// Ready says whether the server can do its work.
	Ready func(ctx context.Context) error
	// LastSeq is the newest event's number. A stream that begins "now" names it,
	// so that it can be resumed before the first event came.
	LastSeq func(ctx context.Context) (int64, error)
	Metrics http.Handler
	// Admin serves /mcp/admin: it finds the caller in its context, as everything
	// here does. Nil: nothing is there.
	Admin http.Handler
	// Door knows the names that the server may be asked for under.
	Door    *app.Door
	Version string
	Log     *slog.Logger
}

type server struct {
	o        Options
	mux      *routes
	doc      *huma.OpenAPI
	door     *app.Door
	failures *limiter
	replays  *replays
}

// New makes the handler; it starts nothing.
func New(o Options) http.Handler { return newServer(o) }

func newServer(o Options) *server {
	s := &server{
		o: o, mux: &routes{ServeMux: http.NewServeMux()}, door: o.Door,
		failures: &limiter{}, replays: &replays{},
	}
	h := humago.New(s.mux, humaConfig(o.Version))
	s.projects(h)
	s.tasks(h)
	s.taskActions(h)
	s.stories(h)
	s.storyActions(h)
	s.executions(h)
	s.merges(h)
	s.settings(h)
	s.disk(h)
	s.streams(h)
	s.doc = finish(h.OpenAPI())
	s.documents()
	if o.Metrics != nil {
		s.mux.HandleFunc("GET /metrics", o.Metrics.ServeHTTP)
	}
	if o.Admin != nil {
		s.mux.HandleFunc("/mcp/admin", o.Admin.ServeHTTP)
	}
	return s
}

// ServeHTTP passes a request through everything that stands before its route.
func (s *server) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	w := &answer{ResponseWriter: rw}
	defer s.survive(w, r)
	harden(w.Header())
	if s.health(w, r) {
		return
	}
	r, err := s.admit(r)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	s.replays.serve(s, w, r, s.route)
}

// health answers whether the process lives and can work: to anybody, and
// without details.
func (s *server) health(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	switch r.URL.Path {
	case "/healthz":
	case "/readyz":
		if err := s.o.Ready(r.Context()); err != nil {
			s.o.Log.WarnContext(r.Context(), "not ready", "error", err)
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte("not ready\n"))
			return true
		}
	default:
		return false
	}
	_, _ = w.Write([]byte("ok\n"))
	return true
}

// route finds the handler; the router's own refusals become problems too.
func (s *server) route(w http.ResponseWriter, r *http.Request) {
	handler, pattern := s.mux.Handler(r)
	if pattern != "" {
		s.mux.ServeHTTP(w, r)
		return
	}
	probe := &verdict{header: http.Header{}}
	handler.ServeHTTP(probe, r)
	p := missing(r)
	if probe.status == http.StatusMethodNotAllowed {
		allow := probe.header.Get("Allow")
		w.Header().Set("Allow", allow)
		p = wrongMethod(r, allow)
	}
	p.write(w)
}

// routes is the router, and the list of what was registered.
type routes struct {
	*http.ServeMux
	patterns []string
}

// HandleFunc registers a pattern, "METHOD /path",
// or a path alone for one that tells methods apart itself.
func (m *routes) HandleFunc(pattern string, handler func(http.ResponseWriter, *http.Request)) {
	m.patterns = append(m.patterns, pattern)
	m.ServeMux.HandleFunc(pattern, handler)
}

// own are the routes that are no use case.
func own() []string {
	return []string{"GET /metrics", "GET /openapi.json", "GET /docs", "GET /plan.schema.json", "/mcp/admin"}
}

// useCases are the registered routes that must stand in the parity table.
func (m *routes) useCases() []string {
	return slices.DeleteFunc(slices.Clone(m.patterns), func(p string) bool { return slices.Contains(own(), p) })
}

// verdict takes the router's refusal without sending it.
type verdict struct {
	header http.Header
	status int
}

func (v *verdict) Header() http.Header         { return v.header }
func (v *verdict) Write(b []byte) (int, error) { return len(b), nil }
func (v *verdict) WriteHeader(status int)      { v.status = status }

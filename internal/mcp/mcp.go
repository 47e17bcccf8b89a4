package mcp

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

//go:embed instructions.md
var instructions string

// Options is what the run endpoint stands on; cmd wires it.
type Options struct {
	Tools app.RunTools
	// Door knows the names that the server may be asked for under.
	Door    *app.Door
	Version string
	Log     *slog.Logger
}

type server struct {
	endpoint
	o Options
}

// New makes the handler of POST /mcp; it starts nothing.
func New(o Options) http.Handler {
	s := &server{o: o}
	s.endpoint = endpoint{
		log:     o.Log,
		who:     func(ctx context.Context) string { return "execution " + string(callerOf(ctx).Execution) },
		offered: func(ctx context.Context) ([]app.Tool, error) { return o.Tools.Offered(ctx, callerOf(ctx)) },
	}
	s.serve(o.Version, instructions, tools(o.Tools))
	return s
}

// ServeHTTP lets the protocol speak with runs that are alive, and nobody else.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	caller, err := s.admit(r)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	s.protocol.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, caller)))
}

// admit finds the run that asks. Browsers hold no run tokens; that their
// requests are refused nonetheless is the second fence.
func (s *server) admit(r *http.Request) (app.RunCaller, error) {
	if err := s.o.Door.Refuses(r); err != nil {
		return app.RunCaller{}, err
	}
	caller, err := s.o.Tools.AuthenticateRun(r.Context(), app.Bearer(r))
	if err != nil && r.Context().Err() != nil { // hung up: nobody reads this, and it is no bug
		return caller, work.Errorf(work.Unavailable, "the request was given up: %w", context.Cause(r.Context()))
	}
	return caller, err
}

// refuse answers before the protocol does; all else is a tool's answer, with
// status 200.
func (s *server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	p := (*app.Problem)(nil)
	if !errors.As(err, &p) {
		p = app.ProblemOf(s.explain(r.Context(), r.Method+" "+r.URL.Path, err))
	}
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	p.Headers(h, "claudomator run")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // a client that is gone misses nothing
}

type callerKey struct{}

// callerOf is the run that admit has found.
func callerOf(ctx context.Context) app.RunCaller {
	caller, _ := ctx.Value(callerKey{}).(app.RunCaller) // none: a caller that nothing knows
	return caller
}

package api

import (
	"fmt"
	"net/http"
	"runtime/debug"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

// harden sets what every answer says to a browser: run nothing, load nothing,
// show it nowhere else, keep no copy.
func harden(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// admit refuses what may not come in, and puts the caller into the context.
func (s *server) admit(r *http.Request) (*http.Request, error) {
	if err := s.door.Refuses(r); err != nil {
		return r, err
	}
	caller, err := s.authenticate(r)
	if err != nil {
		return r, err
	}
	return r.WithContext(app.WithCaller(r.Context(), caller)), nil
}

// authenticate finds who asks. After too many failures of one address only
// secrets that are known to be good are looked up for it.
func (s *server) authenticate(r *http.Request) (app.Caller, error) {
	secret, from := app.Bearer(r), network(r.RemoteAddr)
	if s.failures.exceeded(from) && !s.failures.trusts(secret) {
		return app.Caller{}, work.Errorf(work.Exhausted, "too many credentials failed").WithReason("authentication_failures").WithHint("wait a minute")
	}
	caller, err := s.o.Auth(r.Context(), secret)
	switch {
	case err == nil:
		s.failures.passed(secret)
	case work.CodeOf(err) == work.Unauthenticated:
		s.failures.failed(from)
	}
	return caller, err
}

// answer is a response that knows whether it has begun.
type answer struct {
	http.ResponseWriter
	begun bool
}

// WriteHeader sends the status.
func (w *answer) WriteHeader(status int) {
	if w.begun { // it is sent: a second one would only be logged, as if it were news
		return
	}
	w.begun = true
	w.ResponseWriter.WriteHeader(status)
}

// Write sends a part of the body.
func (w *answer) Write(b []byte) (int, error) {
	w.begun = true
	return w.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *answer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// survive ends the request of a panic, and nothing else. An answer that has
// begun is cut off: its reader must not take it for whole.
func (s *server) survive(w *answer, r *http.Request) {
	cause := recover()
	if cause == nil {
		return
	}
	if cause == http.ErrAbortHandler { //nolint:errorlint // net/http compares it so, too
		panic(cause)
	}
	p := s.bug(r.Context(), r.Method+" "+r.URL.Path, fmt.Errorf("panic: %v\n%s", cause, debug.Stack()))
	if w.begun {
		panic(http.ErrAbortHandler)
	}
	p.write(w)
}

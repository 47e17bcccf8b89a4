package api

import (
	"fmt"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"

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
	if !s.knownHost(r) {
		return r, &Problem{Status: http.StatusMisdirectedRequest, Code: work.Forbidden, Reason: "host",
			Detail: fmt.Sprintf("the server is not known as %q", r.Host), Hint: "add the name to the allowed hosts of the server's configuration"}
	}
	if err := s.origins.Check(r); err != nil {
		return r, work.Errorf(work.Forbidden, "the request comes from another site").WithReason("cross_origin").
			WithHint("only pages of the server itself may change anything")
	}
	caller, err := s.authenticate(r)
	if err != nil {
		return r, err
	}
	return r.WithContext(app.WithCaller(r.Context(), caller)), nil
}

// knownHost holds the Host header against the names the server goes by: a page
// that points its own name at this machine cannot talk to the server with it.
func (s *server) knownHost(r *http.Request) bool {
	host := strings.ToLower(r.Host)
	if slices.ContainsFunc(s.o.AllowedHosts, func(h string) bool { return strings.ToLower(h) == host }) {
		return true
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return false
	}
	_, port, err := net.SplitHostPort(local.String())
	if err != nil {
		return false
	}
	name, given, err := net.SplitHostPort(host)
	if err != nil { // no port: the scheme's own
		name, given = strings.Trim(host, "[]"), "80"
	}
	return given == port && slices.Contains(append([]string{"localhost", "127.0.0.1", "::1"}, s.o.AllowedHosts...), name)
}

// authenticate finds who asks. After too many failures of one address only
// secrets that are known to be good are looked up for it.
func (s *server) authenticate(r *http.Request) (app.Caller, error) {
	secret, from := bearer(r), network(r.RemoteAddr)
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

// bearer is the token of the Authorization header; the scheme is spelled in
// any case.
func bearer(r *http.Request) string {
	scheme, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(secret)
}

// answer is a response that knows whether it has begun.
type answer struct {
	http.ResponseWriter
	begun bool
}

// WriteHeader sends the status.
func (w *answer) WriteHeader(status int) {
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

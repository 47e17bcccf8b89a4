package api

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/app/apptest"
	"github.com/claudomator/claudomator/internal/work"
)

// No token, a bad one and a revoked one get the same answer on every route.
func TestEveryRouteNeedsACredential(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	revoked, err := w.Service.CreateToken(w.Owner(), "gone", app.ScopeAdmin)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Service.RevokeToken(w.Owner(), revoked.ID); err != nil {
		t.Fatal(err)
	}
	var first string
	for _, pattern := range w.handler.mux.patterns {
		method, path, hasMethod := strings.Cut(pattern, " ")
		if !hasMethod { // of every method
			method, path = "POST", pattern
		}
		path = strings.NewReplacer("{id}", "x", "{name}", "x").Replace(path)
		for _, credential := range []string{"", "Bearer", "Bearer wrong", "Bearer " + revoked.Secret} {
			w.handler.failures.forget()
			got := w.ask(method, path, "", apptest.Header("Authorization", credential))
			if first == "" {
				first = string(got.body)
			}
			if got.status != 401 || string(got.body) != first || !strings.HasPrefix(got.header.Get("WWW-Authenticate"), "Bearer") {
				t.Errorf("%s with %q: %d %s", pattern, credential, got.status, got.body)
			}
		}
	}
}

func TestHealthNeedsNone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	anybody := apptest.Header("Authorization", "")
	for _, path := range []string{"/healthz", "/readyz"} {
		if got := w.ask("GET", path, "", anybody); got.status != 200 || string(got.body) != "ok\n" {
			t.Errorf("%s: %d %q", path, got.status, got.body)
		}
	}
	w.handler.o.Ready = func(context.Context) error { return errors.New("the disk of host 7 is full") }
	got := w.ask("GET", "/readyz", "", anybody)
	if got.status != 503 || string(got.body) != "not ready\n" {
		t.Errorf("%d %q", got.status, got.body)
	}
	if got := w.ask("GET", "/healthz", "", anybody); got.status != 200 {
		t.Errorf("alive, but %d", got.status)
	}
	if got := w.ask("GET", "/metrics", ""); got.status != 200 || string(got.body) != "up 1\n" {
		t.Errorf("metrics: %d %q", got.status, got.body)
	}
}

// Pages of the server itself may change things, those of others may not.
func TestSameOriginIsWelcome(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, edit := range []func(*http.Request){apptest.Header("Origin", w.http.URL), apptest.Header("Sec-Fetch-Site", "same-origin"), apptest.Header("Sec-Fetch-Site", "none")} {
		if got := w.ask("PUT", "/api/roles/checker", `{"model":"m"}`, edit); got.status != 200 {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
}

// Whoever fails too often is not looked up any more for a while; who has been
// known is let in all the same, and forgetting comes with time.
func TestFailuresAreLimited(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if got := w.ask("GET", "/api/stats", ""); got.status != 200 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	fresh, err := w.Service.CreateToken(w.Owner(), "fresh", app.ScopeRead)
	if err != nil {
		t.Fatal(err)
	}
	for i := range failuresAMinute {
		if got := w.ask("GET", "/api/stats", "", apptest.Header("Authorization", fmt.Sprintf("Bearer guess%d", i))); got.status != 401 {
			t.Fatalf("failure %d: %d %s", i, got.status, got.body)
		}
	}
	for _, credential := range []string{"Bearer guess", "", "Bearer " + fresh.Secret} {
		got := w.ask("GET", "/api/stats", "", apptest.Header("Authorization", credential))
		if got.status != 429 || got.Code != work.Exhausted || got.header.Get("Retry-After") == "" {
			t.Errorf("%q: %d %s", credential, got.status, got.body)
		}
	}
	if got := w.ask("GET", "/api/stats", ""); got.status != 200 {
		t.Errorf("the known owner: %d %s", got.status, got.body)
	}
}

func TestFailuresAreForgiven(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var l limiter
		from, other := network("192.0.2.1:5"), network("192.0.2.2:5")
		for range failuresAMinute {
			l.failed(from)
		}
		if !l.exceeded(from) || l.exceeded(other) {
			t.Errorf("exceeded: %v, the other: %v", l.exceeded(from), l.exceeded(other))
		}
		time.Sleep(failureWindow + time.Second)
		if l.exceeded(from) {
			t.Error("not forgiven")
		}
		for range failuresAMinute {
			l.failed(from)
		}
		if !l.exceeded(from) {
			t.Error("forgiven for ever")
		}
	})
}

// The limiter's memory is bounded, and beyond the bound strangers share.
func TestLimiterIsBounded(t *testing.T) {
	t.Parallel()
	var l limiter
	addr := netip.MustParseAddr("10.0.0.0")
	for range 3 * countedNetworks {
		addr = addr.Next()
		l.failed(network(netip.AddrPortFrom(addr, 1).String()))
		l.passed(addr.String())
	}
	if len(l.from) > countedNetworks+1 || len(l.good) > trustedSecrets {
		t.Errorf("%d networks, %d secrets", len(l.from), len(l.good))
	}
	if !l.exceeded(network("192.0.2.1:5")) || l.exceeded(network("10.0.0.1:5")) {
		t.Error("a stranger is not limited, or an early one is")
	}
	if network("[2001:db8::1]:5") != network("[2001:db8::ffff]:7") || network("[::ffff:192.0.2.1]:5") != network("192.0.2.1:6") {
		t.Error("one network is two")
	}
}

// Nothing of an answer runs, loads or is kept; the documentation shows its one
// style and needs no other site.
func TestContentPolicy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, path := range []string{"/api/tasks", "/openapi.json", "/nothing", "/healthz"} {
		got := w.ask("GET", path, "")
		if csp := got.header.Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none'; base-uri") ||
			got.header.Get("X-Content-Type-Options") != "nosniff" || got.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %v", path, got.header)
		}
	}
	page := w.ask("GET", "/docs", "")
	style := regexp.MustCompile(`(?s)<style>(.*)</style>`).FindSubmatch(page.body)
	if page.status != 200 || style == nil {
		t.Fatalf("%d %s", page.status, page.body)
	}
	sum := sha256.Sum256(style[1])
	if csp := page.header.Get("Content-Security-Policy"); !strings.Contains(csp, "'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'") || strings.Contains(csp, "unsafe") {
		t.Errorf("the style is not allowed by %s", csp)
	}
	for _, outside := range []string{"http://", "https://", "<script", "<img", "<link"} {
		if strings.Contains(string(page.body), outside) {
			t.Errorf("the page has %s", outside)
		}
	}
	for _, word := range []string{"/api/tasks/{id}/accept", "acceptance_criteria", "list of string, or string", "#schema-TaskRequest", "Repeating a request with its key", "Dependencies that would make a circle", "PENDING | QUEUED", "list of Validation, or <a href=\"#schema-Validation\">", "DRAFT | IN_PROGRESS"} {
		if !strings.Contains(string(page.body), word) {
			t.Errorf("the page does not say %q", word)
		}
	}
	for _, link := range regexp.MustCompile(`href="#([^"]+)"`).FindAllStringSubmatch(string(page.body), -1) {
		if !strings.Contains(string(page.body), `id="`+link[1]+`"`) {
			t.Errorf("#%s leads nowhere", link[1])
		}
	}
}

// forget ends a window before its time.
func (l *limiter) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.from, l.window = nil, nil
}

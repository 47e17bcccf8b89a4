package app_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/claudomator/claudomator/internal/app"
)

// The names the server goes by: loopback and its own address with the served
// port, and the configured ones. A name that somebody points here is none.
func TestHosts(t *testing.T) {
	t.Parallel()
	door := app.NewDoor([]string{"Claudomator.example", "proxy.example:443"})
	for _, c := range []struct {
		local string // where the request came in
		host  string
		known bool
	}{
		{"127.0.0.1:8080", "localhost:8080", true},
		{"127.0.0.1:8080", "LOCALHOST:8080", true},
		{"127.0.0.1:8080", "127.0.0.1:8080", true},
		{"127.0.0.1:8080", "[::1]:8080", true},
		{"127.0.0.1:8080", "0.0.0.0:8080", true},
		{"[::1]:8080", "[::]:8080", true},
		{"192.0.2.7:8080", "192.0.2.7:8080", true},
		{"[::ffff:192.0.2.7]:8080", "192.0.2.7:8080", true},
		{"[2001:db8::7]:8080", "[2001:db8::7]:8080", true},
		{"127.0.0.1:80", "localhost", true},
		{"[::1]:80", "[::1]", true},
		{"127.0.0.1:8080", "claudomator.example", true},
		{"127.0.0.1:8080", "CLAUDOMATOR.example:8080", true},
		{"127.0.0.1:8080", "proxy.example:443", true},

		{"127.0.0.1:8080", "claudomator.example:1", false},
		{"127.0.0.1:8080", "proxy.example", false},
		{"127.0.0.1:8080", "proxy.example:8080", false},
		{"127.0.0.1:8080", "localhost", false},
		{"127.0.0.1:8080", "localhost:1", false},
		{"127.0.0.1:8080", "localhost.:8080", false},
		{"127.0.0.1:8080", "127.0.0.2:8080", false},
		{"127.0.0.1:8080", "192.0.2.7:8080", false},
		{"192.0.2.7:8080", "192.0.2.7", false},
		{"192.0.2.7:8080", "192.0.2.8:8080", false},
		{"127.0.0.1:8080", "localhost.evil.example:8080", false},
		{"127.0.0.1:8080", "evilclaudomator.example", false},
		{"127.0.0.1:8080", "", false},
		{"127.0.0.1:8080", ":8080", false},
		{"@socket", "localhost", false},
	} {
		var local net.Addr = &net.UnixAddr{Name: c.local, Net: "unix"}
		if tcp, err := net.ResolveTCPAddr("tcp", c.local); err == nil {
			local = tcp
		}
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Host = c.host
		err := door.Refuses(r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, local)))
		if known := err == nil; known != c.known {
			t.Errorf("%q at %s: known is %v", c.host, c.local, known)
		}
		var p *app.Problem
		if err != nil && (!errors.As(err, &p) || p.Status != http.StatusMisdirectedRequest || p.Title == "" || p.Hint == "") {
			t.Errorf("%q: %+v", c.host, err)
		}
	}
	if err := door.Refuses(httptest.NewRequest(http.MethodGet, "/", nil)); err == nil {
		t.Error("a request that came in nowhere is welcome")
	}
}

func TestBearer(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]string{
		"": "", "Bearer": "", "Bearer ": "", "Bearer x": "x", "bearer   x ": "x", "BEARER x": "x", "Basic x": "", "x": "",
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Authorization", header)
		if got := app.Bearer(r); got != want {
			t.Errorf("%q: %q, want %q", header, got, want)
		}
	}
}

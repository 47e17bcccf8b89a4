package app

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/claudomator/claudomator/internal/work"
)

// MaxBody is the largest request body of any surface, in bytes.
const MaxBody = 16 << 20

// Door is what every surface holds an HTTP request against before it looks for a
// credential: the name the server is asked for under, and the page it comes from.
type Door struct {
	hosts   []string
	origins *http.CrossOriginProtection
}

// NewDoor makes a door that knows the server by some names, besides loopback
// names and its own address: "name" (with the served port, or none) or
// "name:port".
func NewDoor(hosts []string) *Door {
	d := &Door{origins: http.NewCrossOriginProtection()}
	for _, h := range hosts {
		d.hosts = append(d.hosts, strings.ToLower(h))
	}
	return d
}

// Refuses is a *Problem for a request that may not come in, or nil.
func (d *Door) Refuses(r *http.Request) error {
	if !d.known(r) {
		p := &Problem{
			Status: http.StatusMisdirectedRequest, Code: work.Forbidden, Reason: "host",
			Detail: fmt.Sprintf("the server is not known as %q", r.Host),
			Hint:   "add the name to the allowed hosts of the server's configuration",
		}
		return p.Fill()
	}
	if d.origins.Check(r) != nil {
		p := &Problem{
			Status: http.StatusForbidden, Code: work.Forbidden, Reason: "cross_origin",
			Detail: "the request comes from another site", Hint: "only pages of the server itself may change anything",
		}
		return p.Fill()
	}
	return nil
}

// known holds the Host header against the names the server goes by: a page that
// points its own name at this machine cannot talk to the server with it.
func (d *Door) known(r *http.Request) bool {
	host := strings.ToLower(r.Host)
	if slices.Contains(d.hosts, host) {
		return true
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return false
	}
	served, err := netip.ParseAddrPort(local.String())
	if err != nil {
		return false
	}
	name, given, err := net.SplitHostPort(host)
	if err != nil { // no port: the scheme's own
		name, given = strings.Trim(host, "[]"), "80"
	}
	if given != fmt.Sprint(served.Port()) {
		return false
	}
	// An address is no name that anybody could point elsewhere. The one of all
	// interfaces is what a server that listens on them calls itself.
	if address, err := netip.ParseAddr(name); err == nil {
		return name == "127.0.0.1" || name == "::1" || address.IsUnspecified() || address.Unmap() == served.Addr().Unmap().WithZone("")
	}
	return name == "localhost" || slices.Contains(d.hosts, name)
}

// Bearer is the token of the Authorization header; the scheme is spelled in any
// case. Empty: none.
func Bearer(r *http.Request) string {
	scheme, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(secret)
}

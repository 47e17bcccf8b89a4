package api

import (
	"crypto/sha256"
	"net"
	"net/netip"
	"sync"
	"time"
)

// limiter counts failed credentials by where they came from, in windows of a
// minute. Its memory is bounded: networks beyond the limit share one count.
type limiter struct {
	mu     sync.Mutex
	from   map[netip.Prefix]int
	window *time.Timer                // nil: nothing is counted
	good   map[[sha256.Size]byte]bool // secrets that passed, as digests
}

const (
	failuresAMinute = 30
	failureWindow   = time.Minute
	countedNetworks = 4096
	trustedSecrets  = 1024
)

// exceeded says whether a network has failed too often.
func (l *limiter) exceeded(n netip.Prefix) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forgive()
	return l.from[l.key(n)] >= failuresAMinute
}

// failed counts a failure; the first one of a window begins it.
func (l *limiter) failed(n netip.Prefix) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forgive()
	if l.window == nil {
		l.from, l.window = map[netip.Prefix]int{}, time.NewTimer(failureWindow)
	}
	l.from[l.key(n)]++
}

// forgive ends a window that is over. It is asked, not called by the timer: so
// nothing runs that somebody would have to wait for.
func (l *limiter) forgive() {
	if l.window == nil {
		return
	}
	select {
	case <-l.window.C:
		l.from, l.window = nil, nil
	default:
	}
}

// passed remembers a good secret, so that a program on the same machine cannot
// lock a person out by failing.
func (l *limiter) passed(secret string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.good == nil || len(l.good) >= trustedSecrets {
		l.good = map[[sha256.Size]byte]bool{}
	}
	l.good[sha256.Sum256([]byte(secret))] = true
}

func (l *limiter) trusts(secret string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.good[sha256.Sum256([]byte(secret))]
}

// key is what a network is counted under: the zero prefix once there are too
// many.
func (l *limiter) key(n netip.Prefix) netip.Prefix {
	if _, known := l.from[n]; !known && len(l.from) >= countedNetworks {
		return netip.Prefix{}
	}
	return n
}

// network is what one attacker has at least: an IPv4 address, or an IPv6 /64.
func network(remote string) netip.Prefix {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return netip.Prefix{}
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Prefix{}
	}
	addr, bits := addr.Unmap().WithZone(""), 32
	if addr.Is6() {
		bits = 64
	}
	prefix, _ := addr.Prefix(bits) // the bits fit the address
	return prefix
}

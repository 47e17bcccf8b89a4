package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

// replays remembers the answers to requests that carry an Idempotency-Key: a
// client whose answer was lost asks again and gets it, and nothing is done
// twice. Refusals are not kept: they changed nothing, so they may be made again.
type replays struct {
	mu    sync.Mutex
	known map[[sha256.Size]byte]*reply
	order [][sha256.Size]byte // of kept ones, oldest first
	bytes int
}

// reply is an answer; before ready is closed its request is under way, and only
// that request touches it.
type reply struct {
	digest [sha256.Size]byte // of the request
	ready  chan struct{}
	kept   bool
	status int
	header http.Header
	body   bytes.Buffer
}

const (
	keptReplies    = 1000
	keptReplyBytes = 8 << 20
	longestKey     = 255
)

// serve answers from memory, or lets next answer.
func (p *replays) serve(s *server, w http.ResponseWriter, r *http.Request, next http.HandlerFunc) {
	key := r.Header.Get("Idempotency-Key")
	if key == "" || r.Method == http.MethodGet || r.Method == http.MethodHead || remembered(r) {
		next(w, r)
		return
	}
	if len(key) > longestKey {
		s.refuse(w, r, work.Errorf(work.Invalid, "the idempotency key is %d bytes long, at most %d are taken", len(key), longestKey))
		return
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, app.MaxBody+1))
	if err != nil {
		s.refuse(w, r, work.Errorf(work.Unavailable, "read the request body: %w", err))
		return
	}
	if len(body) > app.MaxBody {
		tooLarge().write(w)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	digest := sha256.Sum256(fmt.Appendf(nil, "%s %s\n%s", r.Method, r.URL.RequestURI(), body))
	// The credential is part of the key: nobody is answered with what another
	// asked for.
	id := sha256.Sum256([]byte(app.Bearer(r) + "\x00" + key))
	known, mine, err := p.begin(r.Context(), id, digest)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	if mine {
		known.header = w.Header().Clone()
		p.run(id, known, r, next)
	} else {
		w.Header().Set("Idempotency-Replayed", "true")
	}
	known.send(w)
}

// remembered says whether the store keeps the key of a request, over restarts.
func remembered(r *http.Request) bool {
	switch path := r.URL.Path; path {
	case "/api/tasks", "/api/stories/elaborate", "/api/stories/approve":
		return true
	default:
		return strings.HasPrefix(path, "/api/stories/") && strings.HasSuffix(path, "/ship")
	}
}

// run lets next fill an answer; a panic leaves none behind.
func (p *replays) run(id [sha256.Size]byte, mine *reply, r *http.Request, next http.HandlerFunc) {
	whole := false
	defer func() { p.end(id, mine, whole) }()
	next(mine, r)
	mine.WriteHeader(http.StatusOK)
	whole = true
}

// begin gives the answer that is known, after waiting for it where its request
// is under way, or a new one to fill (mine).
func (p *replays) begin(ctx context.Context, id, digest [sha256.Size]byte) (known *reply, mine bool, err error) {
	for {
		p.mu.Lock()
		known = p.known[id]
		if known == nil {
			if p.known == nil {
				p.known = map[[sha256.Size]byte]*reply{}
			}
			known = &reply{digest: digest, ready: make(chan struct{})}
			p.known[id] = known
			p.mu.Unlock()
			return known, true, nil
		}
		p.mu.Unlock()
		if known.digest != digest {
			return nil, false, work.Errorf(work.Conflict, "the idempotency key was used for another request").
				WithReason("key_reused").WithHint("use a new key for a new request")
		}
		select {
		case <-known.ready:
			if known.kept {
				return known, false, nil
			}
		case <-ctx.Done():
			return nil, false, work.Errorf(work.Timeout, "wait for the first request of this key: %w", context.Cause(ctx))
		}
	}
}

// end keeps a success and forgets anything else.
func (p *replays) end(id [sha256.Size]byte, r *reply, whole bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer close(r.ready)
	r.kept = whole && r.status/100 == 2 && r.body.Len() <= keptReplyBytes/8
	if !r.kept {
		delete(p.known, id)
		return
	}
	p.order = append(p.order, id)
	p.bytes += r.body.Len()
	for len(p.order) > keptReplies || p.bytes > keptReplyBytes {
		oldest := p.order[0]
		p.order = p.order[1:]
		p.bytes -= p.known[oldest].body.Len()
		delete(p.known, oldest)
	}
}

// Header, WriteHeader and Write take the answer of next.
func (r *reply) Header() http.Header { return r.header }

// WriteHeader takes the status.
func (r *reply) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
}

// Write takes a part of the body.
func (r *reply) Write(b []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	return r.body.Write(b)
}

func (r *reply) send(w http.ResponseWriter) {
	maps.Copy(w.Header(), r.header)
	w.WriteHeader(r.status)
	_, _ = w.Write(r.body.Bytes()) // a client that is gone asks again
}

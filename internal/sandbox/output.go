package sandbox

import (
	"bytes"
	"fmt"
	"io"
	"sync"
)

// Tail is a writer that keeps the last bytes written to it. Safe for
// concurrent use.
type Tail struct {
	mu   sync.Mutex
	size int
	buf  []byte // at most 2*size: trimmed in bulk, so that writing stays cheap
	cut  bool
}

// NewTail keeps the last size bytes.
func NewTail(size int) *Tail { return &Tail{size: size} }

// Write never fails.
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(p)
	if len(p) > t.size {
		t.cut = true
		t.buf = t.buf[:0]
		p = p[len(p)-t.size:]
	}
	t.buf = append(t.buf, p...)
	if len(t.buf) > 2*t.size {
		t.cut = true
		t.buf = t.buf[:copy(t.buf, t.buf[len(t.buf)-t.size:])]
	}
	return n, nil
}

// Bytes returns a copy of what is kept, and whether something came before it.
func (t *Tail) Bytes() (kept []byte, cut bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	kept, cut = t.buf, t.cut
	if len(kept) > t.size {
		kept, cut = kept[len(kept)-t.size:], true
	}
	return bytes.Clone(kept), cut
}

const capTail = 64 << 10

// capped passes on the first bytes of a stream, then says so, then keeps the
// last ones for finish: the end of a failing build is what matters most. It
// never refuses a byte, so the program never blocks or dies of SIGPIPE.
type capped struct {
	w     io.Writer
	limit int64 // negative: none
	seen  int64
	tail  *Tail
	err   error // first error of w; nothing is written to it afterwards
}

func newCapped(w io.Writer, limit int64) *capped {
	if limit == 0 {
		limit = DefaultOutputLimit
	}
	return &capped{w: w, limit: limit}
}

func (c *capped) Write(p []byte) (int, error) {
	head := p
	if c.limit >= 0 {
		head = p[:min(int64(len(p)), max(0, c.limit-c.seen))]
	}
	c.seen += int64(len(p))
	if len(head) > 0 {
		c.pass(head)
	}
	if rest := p[len(head):]; len(rest) > 0 {
		if c.tail == nil {
			c.tail = NewTail(capTail)
			c.pass(fmt.Appendf(nil, "\n[output limit of %d bytes reached: only the end of the rest is kept]\n", c.limit))
		}
		_, _ = c.tail.Write(rest)
	}
	return len(p), nil
}

// finish delivers what was kept beyond the cap.
func (c *capped) finish() {
	if c.tail == nil {
		return
	}
	kept, cut := c.tail.Bytes()
	if i := bytes.IndexByte(kept, '\n'); cut && i >= 0 {
		kept = kept[i+1:] // begin with a whole line
	}
	if left := c.seen - c.limit - int64(len(kept)); left > 0 {
		c.pass(fmt.Appendf(nil, "[%d bytes left out]\n", left))
	}
	c.pass(kept)
}

func (c *capped) pass(p []byte) {
	if c.err == nil {
		_, c.err = c.w.Write(p)
	}
}

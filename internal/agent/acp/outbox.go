package acp

import (
	"io"
	"sync"
)

// maxUnread is how many bytes of answers may wait for a program that asks and
// does not read.
const maxUnread = 1 << 20

// outbox is what is sent to the program: written without ever waiting, read by
// whoever feeds its standard input.
type outbox struct {
	mu       sync.Mutex
	more     sync.Cond
	waiting  []byte
	finished bool // no more will be written
	closed   bool // nobody reads any more
}

func newOutbox() *outbox {
	o := &outbox{}
	o.more.L = &o.mu
	return o
}

// send queues a line; false when it is an answer (bounded) and too many wait.
func (o *outbox) send(line []byte, bounded bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if bounded && len(o.waiting)+len(line) > maxUnread {
		return false
	}
	if !o.finished && !o.closed {
		o.waiting = append(o.waiting, line...)
		o.more.Broadcast()
	}
	return true
}

// Read implements io.Reader; it waits for the next line.
func (o *outbox) Read(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.waiting) == 0 && !o.finished && !o.closed {
		o.more.Wait()
	}
	if o.closed || len(o.waiting) == 0 {
		return 0, io.EOF
	}
	n := copy(p, o.waiting)
	if o.waiting = o.waiting[n:]; len(o.waiting) == 0 {
		o.waiting = nil // a long prompt must not stay in memory
	}
	return n, nil
}

// finish lets the reader come to an end when all is sent.
func (o *outbox) finish() { o.end(&o.finished) }

// Close lets the reader come to an end at once.
func (o *outbox) Close() error {
	o.end(&o.closed)
	return nil
}

func (o *outbox) end(how *bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	*how = true
	o.more.Broadcast()
}

package agent

import (
	"bytes"
	"sync"
)

// MaxLine is how many bytes of one line are kept.
const MaxLine = 1 << 20

// Line is one line of output without its line end.
type Line struct {
	Text []byte // valid only during the call that hands it over
	Cut  int64  // bytes that followed and were dropped
}

// Lines cuts a stream into lines and hands each to a function. A line longer
// than max is handed over cut, and the next one is whole again, so one monster
// costs neither memory nor what comes after it. Lines end with "\n" or
// "\r\n". Safe for concurrent use.
type Lines struct {
	mu   sync.Mutex
	max  int
	emit func(Line)
	buf  []byte
	cut  int64
}

// NewLines hands lines of at most max bytes to emit.
func NewLines(max int, emit func(Line)) *Lines { return &Lines{max: max, emit: emit} }

// Write never fails.
func (l *Lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(p)
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			l.keep(p)
			break
		}
		if len(l.buf) == 0 && l.cut == 0 && end <= l.max {
			l.emit(Line{Text: trimCR(p[:end])}) // whole in this chunk: no copy
		} else {
			l.keep(p[:end])
			l.flush()
		}
		p = p[end+1:]
	}
	return n, nil
}

// Close hands over a last line that had no end. Writing may go on afterwards.
func (l *Lines) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.buf) > 0 || l.cut > 0 {
		l.flush()
	}
	return nil
}

func (l *Lines) keep(p []byte) {
	room := min(len(p), l.max-len(l.buf))
	l.buf = append(l.buf, p[:room]...)
	l.cut += int64(len(p) - room)
}

func (l *Lines) flush() {
	text := l.buf
	if l.cut == 0 {
		text = trimCR(text)
	}
	l.emit(Line{Text: text, Cut: l.cut})
	l.buf, l.cut = l.buf[:0], 0
	if cap(l.buf) > 64<<10 {
		l.buf = nil // a rare monster must not stay in memory
	}
}

func trimCR(line []byte) []byte { return bytes.TrimSuffix(line, []byte{'\r'}) }

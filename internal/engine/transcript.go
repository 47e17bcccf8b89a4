package engine

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/claudomator/claudomator/internal/agent"
	"github.com/claudomator/claudomator/internal/git"
	"github.com/claudomator/claudomator/internal/work"
)

// transcript writes what a run says as JSON lines, secrets masked. Lines are
// written in portions: what a portion waits for is never longer than flushAfter,
// and what a killed server had not written is a moment of talk.
type transcript struct {
	e       *Engine
	file    *os.File
	out     *bufio.Writer
	flush   *time.Timer // runs while something waits in out
	unmask  func()
	secret  []byte // the run's own token
	mu      sync.Mutex
	closed  bool
	broken  bool
	blocked []string
}

func (e *Engine) openTranscript(id work.ExecutionID, secret string) (*transcript, error) {
	path := filepath.Join(transcriptDir(e.o.DataDir), string(id)+plainText)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	t := &transcript{e: e, file: file, out: bufio.NewWriterSize(file, portion), unmask: e.o.Mask.Add(secret), secret: []byte(secret)}
	t.flush = time.AfterFunc(time.Hour, t.flushNow)
	t.flush.Stop()
	return t, nil
}

const (
	portion    = 32 << 10
	flushAfter = 50 * time.Millisecond
)

// Emit implements agent.Sink. A line that cannot be written is lost, with one
// word in the server's log: the run itself goes on.
func (t *transcript) Emit(event agent.Event) {
	line, err := json.Marshal(event)
	t.mu.Lock()
	defer t.mu.Unlock()
	if event.Kind == agent.KindBlocker {
		t.blocked = append(t.blocked, event.Text)
	}
	if err != nil {
		t.e.o.Log.Error("put an event into words", "kind", event.Kind, "error", err)
		return
	}
	line = bytes.ReplaceAll(t.e.o.Hide(line), t.secret, []byte("[masked]"))
	if t.out.Buffered() == 0 {
		t.flush.Reset(flushAfter)
	}
	_, err = t.out.Write(append(line, '\n'))
	t.failed(err)
}

// flushNow writes what waits.
func (t *transcript) flushNow() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.failed(t.out.Flush())
	}
}

// failed drops what could not be written: later lines get their own chance.
func (t *transcript) failed(err error) {
	if err == nil {
		return
	}
	t.out.Reset(t.file)
	if !t.broken {
		t.broken = true
		t.e.o.Log.Error("write a transcript", "file", t.file.Name(), "error", err)
	}
}

func (t *transcript) notice(format string, args ...any) {
	t.Emit(agent.Event{At: t.e.o.Now(), Kind: agent.KindLog, Stream: agent.Notice, Text: agent.Sanitize(fmt.Sprintf(format, args...))})
}

func (t *transcript) warnings(list []git.Warning) {
	for _, w := range list {
		text := "warning: " + w.Message
		if len(w.Paths) > 0 {
			text += ": " + strings.Join(w.Paths[:min(len(w.Paths), 20)], ", ")
		}
		t.notice("%s", text)
	}
}

func (t *transcript) blockers() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.blocked
}

func (t *transcript) close() int64 {
	t.unmask()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	t.flush.Stop()
	t.failed(t.out.Flush())
	size, err := t.file.Seek(0, io.SeekEnd)
	t.failed(errors.Join(err, t.file.Close()))
	return size
}

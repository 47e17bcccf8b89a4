package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/claudomator/claudomator/internal/agent"
	"github.com/claudomator/claudomator/internal/git"
	"github.com/claudomator/claudomator/internal/work"
)

// transcript writes what a run says as JSON lines, secrets masked.
type transcript struct {
	e       *Engine
	file    *os.File
	unmask  func()
	secret  []byte // the run's own token
	mu      sync.Mutex
	bytes   int64
	broken  bool
	blocked []string
}

// TranscriptPath is where an execution's transcript lies.
func TranscriptPath(dataDir string, id work.ExecutionID) string {
	return filepath.Join(dataDir, "transcripts", string(id)+".jsonl")
}

func (e *Engine) openTranscript(id work.ExecutionID, secret string) (*transcript, error) {
	path := TranscriptPath(e.o.DataDir, id)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	return &transcript{e: e, file: file, unmask: e.o.Mask.Add(secret), secret: []byte(secret)}, nil
}

// Emit implements agent.Sink. A line that cannot be written is lost, with one
// word in the server's log: the run itself goes on.
func (t *transcript) Emit(event agent.Event) {
	line, err := json.Marshal(event)
	t.mu.Lock()
	defer t.mu.Unlock()
	if event.Kind == agent.KindBlocker {
		t.blocked = append(t.blocked, event.Text)
	}
	if err == nil {
		var n int
		line = bytes.ReplaceAll(t.e.o.Hide(line), t.secret, []byte("[masked]"))
		n, err = t.file.Write(append(line, '\n'))
		t.bytes += int64(n)
	}
	if err != nil && !t.broken {
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
	if err := t.file.Close(); err != nil && !t.broken {
		t.e.o.Log.Error("close a transcript", "file", t.file.Name(), "error", err)
	}
	return t.bytes
}

// Transcripts opens stored transcripts, for the surfaces.
type Transcripts struct{ DataDir string }

// Transcript opens an execution's JSON lines at a byte offset.
func (s Transcripts) Transcript(_ context.Context, id work.ExecutionID, offset int64) (io.ReadCloser, error) {
	file, err := os.Open(TranscriptPath(s.DataDir, id))
	if errors.Is(err, os.ErrNotExist) {
		return nil, work.Errorf(work.NotFound, "execution %s has no transcript", id).WithHint("it has not started yet, or its transcript was removed after its retention time")
	}
	if err != nil {
		return nil, work.Errorf(work.Internal, "open the transcript of %s: %w", id, err)
	}
	if _, err := file.Seek(offset, io.SeekStart); err != nil {
		return nil, errors.Join(work.Errorf(work.Internal, "read the transcript of %s: %w", id, err), file.Close())
	}
	return file, nil
}

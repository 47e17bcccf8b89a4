package apptest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

// Parts stand in for what other packages do with programs and files.
type Parts struct{}

// Agents are command, which is there, and claude, which is not.
func (Parts) Agents(context.Context) ([]app.AgentInfo, error) {
	return []app.AgentInfo{{Type: "command", Installed: true, Version: "1"}, {Type: "claude", Note: "not installed"}}, nil
}

// Types are the names of those agents.
func (Parts) Types() []string { return []string{"claude", "command"} }

// Usable is true of command.
func (Parts) Usable(agent string) bool { return agent == "command" }

// Diff says what is compared. In the project "torn" the vault breaks in the
// middle.
func (Parts) Diff(_ context.Context, p work.Project, base, head string, w io.Writer, _ int64) error {
	if p.Name == "torn" {
		_, _ = io.WriteString(w, strings.Repeat("+line\n", 10_000))
		return fmt.Errorf("read the vault: torn")
	}
	_, err := fmt.Fprintf(w, "diff of %s: %s..%s\n", p.Name, base, head)
	return err
}

// Transcript is one line that names the execution.
func (Parts) Transcript(_ context.Context, id work.ExecutionID, offset int64) (io.ReadCloser, error) {
	text := fmt.Sprintf("{\"execution\":%q}\n", id)
	return io.NopCloser(strings.NewReader(text[min(offset, int64(len(text))):])), nil
}

// Inspect takes absolute paths and URLs; the default branch is main.
func (Parts) Inspect(_ context.Context, repository, branch string) (string, string, error) {
	if !filepath.IsAbs(repository) && !strings.Contains(repository, "://") {
		return "", "", work.Errorf(work.Invalid, "%q is no repository", repository).WithReason("no_repository")
	}
	if branch == "" {
		branch = "main"
	}
	return repository, branch, nil
}

// Clock moves a second whenever it is read.
type Clock struct {
	mu sync.Mutex
	at time.Time
}

// Now is the time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(time.Second)
	return c.at
}

// Counted makes ids that sort as they were made.
type Counted struct {
	app.RandomIDs
	n atomic.Int64
}

// New gives the next one.
func (c *Counted) New() string { return fmt.Sprintf("x%015d", c.n.Add(1)) }

// Buffer is what was written, from anywhere.
type Buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write adds to it.
func (l *Buffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// String is all of it.
func (l *Buffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

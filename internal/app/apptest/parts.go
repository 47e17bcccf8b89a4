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

// Templates are a plan and a task, and one that cannot be read.
func (Parts) Templates(_ context.Context, p work.Project) ([]app.Template, error) {
	file := func(kind app.TemplateKind, folder, name, text, problem string) app.Template {
		return app.Template{Kind: kind, Name: name, Path: ".claudomator/" + folder + "/" + name + ".yaml", Branch: p.Branch, Commit: strings.Repeat("c", 40), Text: text, Problem: problem}
	}
	return []app.Template{
		file(app.StoryTemplate, "stories", "release", "name: Release\ntasks: [{name: notes, instructions: write them}]\n", ""),
		file(app.StoryTemplate, "stories", "vast", "", "it is too large to be a template"),
		file(app.TaskTemplate, "tasks", "upgrade", "name: Upgrade\nagent: {instructions: make upgrade}\n", ""),
	}, nil
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

// Measure finds a workspace and a transcript that belong to nothing, and a vault.
func (Parts) Measure(context.Context) (app.Measured, error) {
	return app.Measured{
		Workspaces: map[app.Workspace]int64{{Task: "gone"}: 4096}, Transcripts: map[work.ExecutionID]int64{"gone": 10}, Vaults: map[work.ProjectID]int64{"gone": 100},
		Bin: 7, Binned: 1, Database: 20, Other: 3, Free: 1000, Size: 5000,
	}, nil
}

// Reclaim finds one workspace, and an empty bin.
func (Parts) Reclaim(_ context.Context, emptyBin bool) (*app.Reclaimed, error) {
	out := &app.Reclaimed{Binned: []app.ReclaimedWorkspace{{TaskID: "gone", Bytes: 4096}}, Kept: []app.KeptWorkspace{}, Bin: 4096, Free: 1000}
	if emptyBin {
		out.Bin, out.BinFreed, out.BinEmptied = 0, 4096, 1
	}
	return out, nil
}

// vaults are those of the projects that the database knows.
type vaults struct{ settings app.Settings }

func (v vaults) Projects(ctx context.Context) ([]work.ProjectID, error) {
	all, err := v.settings.Projects(ctx)
	var ids []work.ProjectID
	for _, p := range all {
		ids = append(ids, p.ID)
	}
	return ids, err
}

// Kept is a snapshot of a task that was removed, in each of them.
func (vaults) Kept(_ context.Context, p work.Project) ([]app.Snapshot, error) {
	return []app.Snapshot{{
		Ref: "refs/claudomator/snapshots/gone/" + p.Name, Commit: "c0ffee" + string(p.ID), Kind: app.SnapshotFiles,
		Why: "Before the workspace was reset or discarded", At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Files: 2, TaskID: "gone",
	}}, nil
}

// Restore finds that everything but /new holds something.
func (vaults) Restore(_ context.Context, _ work.Project, _, dir string) error {
	if dir != "/new" {
		return work.Errorf(work.Conflict, "%s is not an empty folder", dir).WithReason("path_occupied").WithHint("choose another")
	}
	return nil
}

func (vaults) NewBranch(context.Context, work.Project, string, string) error { return nil }

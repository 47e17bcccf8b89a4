package codex_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/claudomator/claudomator/internal/agent"
	"github.com/claudomator/claudomator/internal/agent/codex"
	"github.com/claudomator/claudomator/internal/sandbox"
)

//go:generate go test -run TestTranscripts . -update

var update = flag.Bool("update", false, "write what the transcripts become")

// replay is Codex's part: it adds to the conversation's file, prints, and ends
// as recorded; one that was stopped goes on until it is stopped.
const replay = `#!/bin/sh
status=$(cat "$REPLAY/exit")
trap 'exit $status' INT
test -e "$REPLAY/rollout" && { mkdir -p "$CODEX_HOME/sessions/2026/11/30"; cat "$REPLAY/rollout" >>"$CODEX_HOME/sessions/2026/11/30/$ROLLOUT"; }
test -e "$REPLAY/stderr" && cat "$REPLAY/stderr" >&2
cat "$REPLAY/stdout"
echo >"$REPLAY/said"
test -e "$REPLAY/stop" && while :; do sleep 0.02; done
exit $status
`

// transcript is one recorded run, ready to be run again.
type transcript struct {
	files map[string][]byte
	job   agent.Job
}

// open lays a transcript's files out.
func openTranscript(t *testing.T, files map[string][]byte) *transcript {
	t.Helper()
	root := t.TempDir()
	tr := &transcript{files: files, job: agent.Job{
		ID:  strings.NewReplacer("/", "-", ",", "").Replace(t.Name()) + "-" + rand.Text(),
		Dir: filepath.Join(root, "dir"), Prompt: "do it", Resume: strings.TrimSpace(string(files["resume"])),
		Command: []string{filepath.Join(root, "codex")},
		Limits:  agent.Limits{Wall: 8 * time.Minute, StopGrace: time.Minute, Linger: time.Minute},
	}}
	home := filepath.Join(root, "home")
	name := fmt.Sprintf("rollout-2026-11-30T13-00-00-%s.jsonl", thread(files))
	tr.job.Env = []string{"CODEX_HOME=" + home, "REPLAY=" + root, "ROLLOUT=" + name}
	write := func(path string, data []byte, mode os.FileMode) {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, mode); err != nil {
			t.Fatal(err)
		}
	}
	write(tr.job.Command[0], []byte(replay), 0o755)
	write(filepath.Join(tr.job.Dir, "README.md"), nil, 0o644)
	for name, data := range files {
		write(filepath.Join(root, name), bytes.ReplaceAll(data, []byte("@DIR@"), []byte(tr.job.Dir)), 0o644)
	}
	if before, ok := files["before"]; ok {
		write(filepath.Join(home, "sessions/2026/11/30", name), before, 0o644)
	}
	return tr
}

// thread is the conversation that a transcript names first.
func thread(files map[string][]byte) string {
	var line struct {
		ID string `json:"thread_id"`
	}
	first, _, _ := bytes.Cut(files["stdout"], []byte("\n"))
	if json.Unmarshal(first, &line) == nil && line.ID != "" {
		return line.ID
	}
	return strings.TrimSpace(string(files["resume"]))
}

func newRunner(t *testing.T) *agent.Runner {
	t.Helper()
	host, err := sandbox.Open(sandbox.Options{StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	return agent.NewRunner(agent.RunnerOptions{Host: host, Environ: os.Environ(), Private: filepath.Join(t.TempDir(), "private"), Now: time.Now})
}

// run runs it; one that is to be cancelled is when its first call begins.
func (tr *transcript) run(t *testing.T) (agent.Result, []agent.Event) {
	t.Helper()
	stop := strings.TrimSpace(string(tr.files["stop"]))
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var events []agent.Event
	result, err := codex.New(newRunner(t), nil).Run(ctx, tr.job, agent.SinkFunc(func(e agent.Event) {
		events = append(events, e)
		if stop == "cancel" && e.Kind == agent.KindTool {
			cancel(agent.ErrCancelled)
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	return result, events
}

// story is a run as its golden has it: what was printed on standard error
// last, and nothing that differs from run to run.
func story(t *testing.T, result agent.Result, events []agent.Event) []byte {
	t.Helper()
	var out, late bytes.Buffer
	line := func(b *bytes.Buffer, v any) {
		encoder := json.NewEncoder(b)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(v); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range events {
		e.At = time.Time{}
		if e.Stream == agent.Stderr {
			line(&late, e)
		} else {
			line(&out, e)
		}
	}
	out.Write(late.Bytes())
	result.Tail, result.OutputBytes, result.Level = "", 0, ""
	line(&out, result)
	return bytes.ReplaceAll(out.Bytes(), []byte(`"at":"0001-01-01T00:00:00Z",`), nil)
}

// TestTranscripts runs what real runs of Codex printed, and compares events
// and result with the section "want".
func TestTranscripts(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) < 20 {
		t.Fatalf("%d transcripts, %v", len(names), err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			files := make(map[string][]byte)
			for _, f := range archive.Files {
				files[f.Name] = f.Data
			}
			result, events := again(t, files)
			got := story(t, result, events)
			if *update {
				archive.Files = append(without(archive.Files, "want"), txtar.File{Name: "want", Data: got})
				if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(files["want"]), string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// again is a transcript's run. One that ran into its time limit is given longer where
// it was ended before it had printed what was recorded.
func again(t *testing.T, files map[string][]byte) (agent.Result, []agent.Event) {
	t.Helper()
	const recorded = time.Second
	for wall := recorded; ; wall *= 3 {
		tr := openTranscript(t, files)
		stopped := strings.TrimSpace(string(files["stop"])) == "wall"
		if stopped {
			tr.job.Limits.Wall = wall
		}
		begun := time.Now()
		result, events := tr.run(t)
		said, err := os.Stat(filepath.Join(filepath.Dir(tr.job.Command[0]), "said"))
		if !stopped || wall > time.Minute || err == nil && said.ModTime().Sub(begun) < wall/2 {
			result.Error = strings.Replace(result.Error, wall.String(), recorded.String(), 1)
			return result, events
		}
	}
}

func without(files []txtar.File, name string) []txtar.File {
	var kept []txtar.File
	for _, f := range files {
		if f.Name != name {
			kept = append(kept, f)
		}
	}
	return kept
}

package engine_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claudomator/claudomator/internal/agent"
	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/engine"
	"github.com/claudomator/claudomator/internal/work"
)

// talker says much, is silent for hours, and says one thing more.
type talker struct{ puppet }

const lastWords = "that was all"

func (p *talker) Run(ctx context.Context, job agent.Job, sink agent.Sink) (agent.Result, error) {
	say := func(text string) {
		sink.Emit(agent.Event{At: time.Now(), Kind: agent.KindLog, Stream: agent.Stdout, Text: text})
	}
	say(strings.Repeat("I think. ", 10_000))
	time.Sleep(3 * time.Hour) // virtual
	say(lastWords)
	return p.puppet.Run(ctx, job, sink)
}

// The transcript of a run that is silent for hours is left as it is; when the run is
// long over it is compressed, and reads the same.
func TestTranscriptOfASilentRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := &talker{puppet{acts: []func(context.Context, agent.Job) agent.Result{writes("x")}}}
		w := makeWorld(t, 2, engine.Catalog{"puppet": a})
		defer func() { w.stop() }()
		w.stop()
		w.wrap = func(o *engine.Options) { o.Retention.Transcripts = 24 * time.Hour }
		w.start()
		name := "puppet"
		w.project(app.ProjectInput{Agent: &name})
		task := w.task(app.TaskRequest{Review: "none"})
		w.state(task.ID, work.Running)
		time.Sleep(time.Minute) // virtual: what was said is written
		runs, err := w.service.Executions(w.ctx, string(task.ID))
		if err != nil || len(runs) != 1 {
			t.Fatalf("%v, %v", runs, err)
		}
		plain := filepath.Join(w.dir, "transcripts", string(runs[0].ID)+".jsonl")
		aged := func() { // the clock of the disk is not the test's
			t.Helper()
			if err := os.Chtimes(plain, time.Now(), time.Now()); err != nil {
				t.Fatal(err)
			}
		}
		aged()
		time.Sleep(150 * time.Minute) // virtual
		if w.there(plain + ".zst") {
			t.Error("what a run has open was compressed")
		}
		w.state(task.ID, work.Completed)
		text, err := os.ReadFile(plain)
		if err != nil || !strings.Contains(string(text), lastWords) {
			t.Fatalf("%d bytes without the last words, %v", len(text), err)
		}
		aged()
		time.Sleep(150 * time.Minute) // virtual
		if w.there(plain) || !w.there(plain+".zst") {
			t.Error("it was not compressed")
		}
		run, err := w.service.Execution(w.ctx, string(runs[0].ID))
		if err != nil || run.LogBytes != int64(len(text)) {
			t.Fatalf("%+v, %v", run, err)
		}
		log, err := w.service.Transcript(w.ctx, string(run.ID), run.LogBytes-1000)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(log)
		if err != nil || string(got) != string(text[len(text)-1000:]) || log.Close() != nil {
			t.Errorf("its end: %q, %v", got, err)
		}
	})
}

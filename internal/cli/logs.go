package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

func newTaskLogsCommand(s *shell) *cobra.Command {
	var follow, raw bool
	var execution string
	c := &cobra.Command{
		Use: "logs ID", Short: "Print what a task's agent printed and did", Args: takes("ID"),
		Long: "Print the transcript of a task's newest execution: what the agent said, each call of a tool\n" +
			"on one line, each change of a file. With -f go on until it ends, and wait for one to begin.\n" +
			"With --raw (or -o json) every line is one event, as it is stored.",
		Example: "  claudomator task logs basket -f\n  claudomator task logs basket --execution 1", ValidArgsFunction: s.completeTasks,
	}
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the execution ends")
	c.Flags().BoolVar(&raw, "raw", false, "the events themselves, one JSON object a line")
	c.Flags().StringVar(&execution, "execution", "", "number or id of the execution (default: the agent's newest)")
	c.RunE = s.call(func(ctx context.Context, api app.API, args []string) error {
		l := transcript{api: api, follow: follow}
		var err error
		if l.run, err = l.choose(ctx, args[0], execution); err != nil {
			return err
		}
		if raw || s.format == jsonFormat {
			l.line = s.printRaw
			return l.print(ctx)
		}
		t := teller{task: l.run.TaskID}
		l.line = func(text []byte) error {
			p := s.page()
			t.tell(p, text)
			return s.flush(p)
		}
		l.pause = func() error {
			p := s.page()
			t.release(p)
			return s.flush(p)
		}
		err = l.print(ctx)
		p := s.page()
		t.finish(p)
		return errors.Join(err, s.flush(p))
	})
	return c
}

// printRaw prints one line of a transcript as it is stored.
func (s *shell) printRaw(text []byte) error {
	if _, err := fmt.Fprintf(s.Out, "%s\n", escape(text)); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// transcript reads what one execution has printed.
type transcript struct {
	api    app.API
	follow bool
	run    *work.Execution
	line   func(text []byte) error // prints one line
	pause  func() error            // is called when all lines that are there were printed; may be nil
	offset int64                   // of the first byte that is not printed yet
}

// choose finds the execution; when followed, it waits for the first one.
func (l *transcript) choose(ctx context.Context, ref, execution string) (*work.Execution, error) {
	if !l.follow {
		return l.newest(ctx, ref, execution)
	}
	view, err := l.api.Task(ctx, ref)
	if err != nil {
		return nil, err
	}
	ref = string(view.ID)
	var found *work.Execution
	err = (&watch{
		api:   l.api,
		since: func(ctx context.Context) (int64, error) { return lastEvent(ctx, l.api, ref) },
		look: func(ctx context.Context) (bool, error) {
			var err error
			found, err = l.newest(ctx, ref, execution)
			if reason(err) == "no_execution" {
				now, gone := l.api.Task(ctx, ref)
				if gone != nil || now.State.Ended() {
					return true, cmp.Or(gone, err) // there will be none
				}
				return false, nil
			}
			return err == nil && found.State != work.ExecutionQueued, err
		},
		concerns: func(e work.Event) bool { return e.Task == view.ID },
	}).run(ctx)
	return found, err
}

func (l *transcript) newest(ctx context.Context, ref, execution string) (*work.Execution, error) {
	all, err := l.api.Executions(ctx, ref)
	if err != nil {
		return nil, err
	}
	_, notNumber := strconv.Atoi(execution)
	var found *work.Execution
	for _, x := range all {
		named := execution != "" && (strconv.Itoa(x.Number) == execution || (notNumber != nil && strings.HasPrefix(string(x.ID), execution)))
		if named || (execution == "" && (found == nil || x.Kind == work.AgentRun || found.Kind != work.AgentRun)) {
			found = x
		}
	}
	switch {
	case found == nil && execution != "":
		return nil, work.Errorf(work.NotFound, "task %s has no execution %s", ref, execution)
	case found == nil:
		return nil, work.Errorf(work.NotFound, "task %s has not been executed yet", ref).WithReason("no_execution").WithHint("-f waits for it")
	}
	return found, nil
}

func reason(err error) string {
	if e, ok := work.AsError(err); ok {
		return e.Reason
	}
	return ""
}

// How often a transcript that grows is read: output is no event, so there is
// nothing else to wait for.
const (
	quickRead = 100 * time.Millisecond
	idleRead  = time.Second
)

func (l *transcript) print(ctx context.Context) error {
	pause := quickRead
	for {
		// The state first: what was printed before the end is there to be read.
		over := !l.run.Live()
		before := l.offset
		err := l.copy(ctx, over || !l.follow)
		switch {
		case err != nil && (!l.follow || over || work.CodeOf(err) != work.Unavailable):
			return err
		case over || !l.follow:
			return nil
		}
		if pause = min(2*pause, idleRead); l.offset != before {
			pause = quickRead
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
		if l.run, err = l.api.Execution(ctx, string(l.run.ID)); err != nil {
			return err
		}
	}
}

// copy prints the lines from the offset on; a last one without its end only
// when no more will come.
func (l *transcript) copy(ctx context.Context, last bool) error {
	in, err := l.api.Transcript(ctx, string(l.run.ID), l.offset)
	if work.CodeOf(err) == work.NotFound && err != nil {
		return nil // nothing was printed yet
	}
	if err != nil {
		return err
	}
	defer in.Close()
	for r := bufio.NewReader(in); ; {
		text, err := r.ReadBytes('\n')
		if complete := err == nil; complete || (last && len(text) > 0 && errors.Is(err, io.EOF)) {
			l.offset += int64(len(text))
			if werr := l.line(bytes.TrimRight(text, "\n")); werr != nil {
				return werr
			}
		}
		if errors.Is(err, io.EOF) {
			if l.pause == nil {
				return nil
			}
			return l.pause()
		}
		if err != nil {
			return work.Errorf(work.Unavailable, "read the transcript: %w", err)
		}
	}
}

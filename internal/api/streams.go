package api

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

// executions registers what is read in pieces, too.
func (s *server) executions(h huma.API) {
	api := s.o.API
	add(s, h, endpoint{method: http.MethodGet, path: "/api/executions/{id}", id: "Execution", summary: "Show an execution",
		about: "Its outcome, error, usage and cost."},
		func(ctx context.Context, in *Ref) (*work.Execution, error) { return api.Execution(ctx, in.ID) })
	s.pour(h, endpoint{method: http.MethodGet, path: "/api/executions/{id}/log", id: "Transcript", summary: "Read what an execution printed, from a byte offset on",
		about: "One JSON object a line. While it runs the answer ends at what there is so far; the next one begins at the offset where this one ended."},
		"application/x-ndjson", func(ctx context.Context, in *pourInput, w io.Writer) error {
			log, err := api.Transcript(ctx, in.ID, in.Offset)
			if err != nil {
				return err
			}
			defer log.Close()
			_, err = io.Copy(w, log)
			return err
		})
	s.pour(h, endpoint{method: http.MethodGet, path: "/api/tasks/{id}/diff", id: "TaskDiff", summary: "Read what a task changed, as a patch",
		about: "From the base that it started from to the head of its work."},
		"text/x-diff; charset=utf-8", func(ctx context.Context, in *pourInput, w io.Writer) error {
			return api.TaskDiff(ctx, in.ID, w)
		})
}

type pourInput struct {
	Ref
	Offset int64 `query:"offset" doc:"Of a transcript: where to begin, in bytes"`
}

// pour registers a route that answers with bytes as they come. An error before
// the first of them is a problem; a later one cuts the answer off, so that
// nobody takes it for whole.
func (s *server) pour(h huma.API, e endpoint, mediaType string, call func(context.Context, *pourInput, io.Writer) error) {
	op := e.operation(h)
	op.Responses["200"] = &huma.Response{Description: "OK", Content: map[string]*huma.MediaType{
		mediaType: {Schema: &huma.Schema{Type: huma.TypeString}},
	}}
	huma.Register(h, op, func(_ context.Context, in *pourInput) (*huma.StreamResponse, error) {
		return &huma.StreamResponse{Body: func(hctx huma.Context) { //nolint:contextcheck // the request has it
			r, w := humago.Unwrap(hctx)
			w.Header().Set("Content-Type", mediaType)
			out := &begun{w: w}
			err := call(r.Context(), in, out)
			switch {
			case err == nil && !out.yet:
				w.WriteHeader(http.StatusOK)
			case err != nil && !out.yet:
				s.refuse(w, r, err)
			case err != nil:
				_ = s.problem(r.Context(), e.id, err) // logs what is a bug
				panic(http.ErrAbortHandler)
			}
		}}, nil
	})
}

// begun is a writer that knows whether anything was written.
type begun struct {
	w   io.Writer
	yet bool
}

func (b *begun) Write(p []byte) (int, error) {
	b.yet = b.yet || len(p) > 0
	return b.w.Write(p)
}

const (
	heartbeat = 15 * time.Second
	// stalled is how long a reader may take nothing before it is disconnected.
	stalled = 30 * time.Second
)

type eventsInput struct {
	After int64  `query:"after" default:"-1" doc:"Begin after this event; negative: from now on"`
	Last  int64  `header:"Last-Event-ID" default:"-1" doc:"The same, as browsers resume; it wins"`
	Task  string `query:"task" doc:"Only what happens to this task"`
	Tree  string `query:"tree" doc:"Only what happens in the tree of this task"`
}

func (s *server) streams(h huma.API) {
	e := endpoint{method: http.MethodGet, path: "/api/events", id: "Events", summary: "Stream events (server-sent; their ids resume the stream)",
		about: "Without an id it begins now. Each event comes exactly once over reconnects with Last-Event-ID; a reader that stops reading is disconnected."}
	op := e.operation(h)
	op.Responses["200"] = &huma.Response{
		Description: "Each message's data is an Event, its id the event's seq",
		Content:     map[string]*huma.MediaType{"text/event-stream": {Schema: &huma.Schema{Type: huma.TypeString, Description: "Messages with id: SEQ and data: EVENT, one line of JSON"}}},
	}
	huma.Register(h, op, func(ctx context.Context, in *eventsInput) (*huma.StreamResponse, error) {
		keep, err := s.filter(ctx, in)
		if err != nil {
			return nil, s.problem(ctx, e.id, err)
		}
		after := in.After
		if in.Last >= 0 {
			after = in.Last
		}
		if after < 0 && s.o.LastSeq != nil {
			if after, err = s.o.LastSeq(ctx); err != nil {
				return nil, s.problem(ctx, e.id, err)
			}
		}
		return &huma.StreamResponse{Body: func(hctx huma.Context) {
			r, w := humago.Unwrap(hctx)
			s.stream(w, r, after, keep)
		}}, nil
	})
}

// filter says which events are wanted.
func (s *server) filter(ctx context.Context, in *eventsInput) (func(work.Event) bool, error) {
	ref := in.Task
	if ref == "" {
		ref = in.Tree
	}
	if ref == "" {
		return func(work.Event) bool { return true }, nil
	}
	t, err := s.o.API.Task(ctx, ref)
	if err != nil {
		return nil, err
	}
	if in.Task != "" {
		return func(e work.Event) bool { return e.Task == t.ID }, nil
	}
	return func(e work.Event) bool { return e.Tree == t.TreeID }, nil
}

// stream sends events until the reader goes away or does not read, its
// credential ends, or the server does.
func (s *server) stream(w http.ResponseWriter, r *http.Request, after int64, keep func(work.Event) bool) {
	ctx, cancel := context.WithCancel(r.Context())
	events := make(chan work.Event, 16)
	go s.follow(ctx, after, events)
	defer func() {
		cancel()
		for range events { // wait for the follower
		}
	}()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	out := newSender(w, after)
	defer out.close()
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	err := out.beat()
	for err == nil {
		select {
		case e, open := <-events:
			if !open {
				return
			}
			err = out.batch(e, events, keep)
		case <-beat.C:
			if _, err = s.o.Auth(ctx, app.Bearer(r)); err == nil {
				err = out.beat()
			}
		case <-ctx.Done():
			return
		}
	}
}

// follow reads events into a channel and closes it.
func (s *server) follow(ctx context.Context, after int64, to chan<- work.Event) {
	defer close(to)
	for e, err := range s.o.API.Events(ctx, after) {
		if err != nil {
			_ = s.problem(ctx, "Events", err) // logs what is a bug; the reader comes again
			return
		}
		select {
		case to <- e:
		case <-ctx.Done():
			return
		}
	}
}

// sender writes one event stream.
type sender struct {
	out   *bufio.Writer
	rc    *http.ResponseController
	stall *time.Timer
	seq   int64 // up to here everything was sent or filtered
}

func newSender(w http.ResponseWriter, seq int64) *sender {
	rc := http.NewResponseController(w)
	// A deadline in the past ends a write that hangs, whatever the clock says.
	cut := func() { _ = rc.SetWriteDeadline(time.Unix(1, 0)) }
	s := &sender{out: bufio.NewWriter(w), rc: rc, stall: time.AfterFunc(stalled, cut), seq: seq}
	s.stall.Stop()
	return s
}

func (s *sender) close() { s.stall.Stop() }

// batch writes an event and all that wait behind it, and flushes once.
func (s *sender) batch(e work.Event, more <-chan work.Event, keep func(work.Event) bool) error {
	s.stall.Reset(stalled)
	wrote := false
	for {
		if keep(e) {
			wrote = true
			if err := s.event(e); err != nil {
				return err
			}
		}
		s.seq = e.Seq
		select {
		case next, open := <-more:
			if open {
				e = next
				continue
			}
		default:
		}
		if !wrote {
			s.stall.Stop()
			return nil
		}
		return s.flush()
	}
}

func (s *sender) event(e work.Event) error {
	data, err := json.Marshal(e)
	if err != nil {
		return err
	}
	s.id(e.Seq)
	_, _ = s.out.WriteString("data: ")
	_, _ = s.out.Write(data)
	_, err = s.out.WriteString("\n\n") // a bufio.Writer keeps its first error
	return err
}

// beat says that the server is there, and up to which event it has looked.
func (s *sender) beat() error {
	s.stall.Reset(stalled)
	if s.seq >= 0 {
		s.id(s.seq)
	}
	if _, err := s.out.WriteString(": here\n\n"); err != nil {
		return err
	}
	return s.flush()
}

func (s *sender) id(seq int64) {
	_, _ = s.out.WriteString("id: ")
	_, _ = s.out.Write(strconv.AppendInt(s.out.AvailableBuffer(), seq, 10))
	_ = s.out.WriteByte('\n')
}

func (s *sender) flush() error {
	defer s.stall.Stop()
	return errors.Join(s.out.Flush(), s.rc.Flush())
}

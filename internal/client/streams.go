package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/claudomator/claudomator/internal/work"
)

// TaskDiff writes what a task changed as a patch.
func (c *Client) TaskDiff(ctx context.Context, ref string, w io.Writer) error {
	body, err := c.open(ctx, get(path("tasks", ref, "diff")))
	if err != nil {
		return err
	}
	defer body.Close()
	_, err = io.Copy(w, body)
	return err
}

// Transcript opens what an execution printed (JSONL) at a byte offset.
func (c *Client) Transcript(ctx context.Context, ref string, offset int64) (io.ReadCloser, error) {
	r := get(path("executions", ref, "log"))
	if offset != 0 {
		r.query = url.Values{"offset": {strconv.FormatInt(offset, 10)}}
	}
	return c.open(ctx, r)
}

// pipe is an answer's body whose errors are ours.
type pipe struct {
	io.ReadCloser
	explain func(error) error
}

// Read reads on.
func (p *pipe) Read(b []byte) (int, error) {
	n, err := p.ReadCloser.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		err = p.explain(err)
	}
	return n, err
}

const (
	// silence is how long nothing may come of a stream: three heartbeats.
	silence   = 45 * time.Second
	firstWait = 100 * time.Millisecond
	lastWait  = 5 * time.Second
)

// Events streams events after a sequence number (negative: from now on) until
// ctx ends. A stream that has begun goes on after breaks.
func (c *Client) Events(ctx context.Context, after int64) iter.Seq2[work.Event, error] {
	return func(yield func(work.Event, error) bool) {
		s := &subscription{c: c, seq: after, yield: yield}
		wait := firstWait
		for {
			before := s.seq
			err := s.listen(ctx)
			switch {
			case s.enough || ctx.Err() != nil:
				return
			case err != nil && (!s.begun || !passing(err)):
				yield(work.Event{}, err)
				return
			}
			if s.seq != before {
				wait = firstWait
			}
			if !pause(ctx, wait/2+rand.N(wait/2)) {
				return
			}
			wait = min(2*wait, lastWait)
		}
	}
}

// passing says whether an error of a stream may be over soon.
func passing(err error) bool {
	switch work.CodeOf(err) {
	case work.Unavailable, work.Timeout, work.Exhausted, work.Internal:
		return true
	case work.Invalid, work.NotFound, work.Conflict, work.Illegal, work.Unauthenticated, work.Forbidden:
	}
	return false
}

func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// subscription is a stream over any number of connections.
type subscription struct {
	c      *Client
	seq    int64 // go on after this one
	yield  func(work.Event, error) bool
	begun  bool
	enough bool // the caller has stopped
}

// listen reads one connection to its end.
func (s *subscription) listen(parent context.Context) error {
	ctx, cancel := context.WithCancel(parent)
	defer cancel()
	silent := time.AfterFunc(silence, cancel)
	defer silent.Stop()
	r := get(path("events"))
	r.query = url.Values{"after": {strconv.FormatInt(s.seq, 10)}}
	r.header = http.Header{"Accept": {"text/event-stream"}}
	body, err := s.c.open(ctx, r)
	if err != nil {
		return err
	}
	defer body.Close()
	s.begun = true
	return s.read(body, func() { silent.Reset(silence) })
}

// read takes messages apart: "id:" and "data:" lines, ended by an empty one. An
// id without data says up to where the server has looked.
func (s *subscription) read(body io.Reader, alive func()) error {
	lines := bufio.NewReader(body)
	id, data := s.seq, []byte(nil)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return work.Errorf(work.Unavailable, "read events: %w", err)
		}
		alive()
		line = bytes.TrimRight(line, "\r\n")
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch {
		case len(line) == 0:
			if len(data) > 0 && id > s.seq {
				var e work.Event
				if err := json.Unmarshal(data, &e); err != nil {
					return work.Errorf(work.Unavailable, "read event %d: %w", id, err)
				}
				if !s.yield(e, nil) {
					s.enough = true
					return nil
				}
			}
			s.seq, data = max(s.seq, id), nil
		case string(field) == "id":
			if id, err = strconv.ParseInt(string(value), 10, 64); err != nil {
				return work.Errorf(work.Unavailable, "read an event's id: %w", err)
			}
		case string(field) == "data":
			data = append(data, value...)
		}
	}
}

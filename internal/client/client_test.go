package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

// These tests are about the wire: what breaks on it, and what comes from
// something that is no Claudomator server. That the client is as the service is
// tested with the real server, in package api.

func TestNoServer(t *testing.T) {
	t.Parallel()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := "http://" + l.Addr().String()
	_ = l.Close()
	c := New(address, "the-secret", nil)
	_, err = c.Projects(t.Context())
	e, ok := work.AsError(err)
	if !ok || e.Code != work.Unavailable || !strings.Contains(e.Hint, "claudomator serve") || !strings.Contains(e.Message, address) {
		t.Errorf("%#v", err)
	}
	for _, err := range c.Events(t.Context(), 0) { // a stream that never began does not wait
		if work.CodeOf(err) != work.Unavailable {
			t.Error(err)
		}
	}
	if strings.Contains(fmt.Sprint(err, c), "the-secret") {
		t.Errorf("%v tells the token", err)
	}
}

func TestNoAddress(t *testing.T) {
	t.Parallel()
	for _, base := range []string{"", "localhost:8080", "http://bad host", "ftp://localhost"} {
		if _, err := New(base, "", nil).Projects(t.Context()); work.CodeOf(err) == work.Internal {
			t.Errorf("%q: %v", base, err)
		}
	}
}

// cutting is a server that carries requests out and loses its first answers.
func cutting(t *testing.T, lose int) (c *Client, keysSent func() []string) {
	t.Helper()
	var mu sync.Mutex
	var keys []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		mu.Lock()
		keys = append(keys, r.Header.Get("Idempotency-Key"))
		lost := len(keys) <= lose
		mu.Unlock()
		w.Header().Set("Content-Length", "11")
		_, _ = io.WriteString(w, `{"id":`)
		if lost {
			panic(http.ErrAbortHandler) // half an answer
		}
		_, _ = io.WriteString(w, `"x"} `)
	}))
	t.Cleanup(server.Close)
	return New(server.URL+"/", "t", server.Client()), func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(keys)
	}
}

// A lost answer is asked for once more, with the key of the first request.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	c, keys := cutting(t, 1)
	task, err := c.CreateTask(t.Context(), app.TaskRequest{Name: "a"})
	if err != nil || task.ID != "x" {
		t.Fatal(task, err)
	}
	if _, err := c.StartTask(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	if k := keys(); len(k) != 3 || k[0] == "" || k[0] != k[1] || k[2] == k[0] || k[2] == "" {
		t.Errorf("keys %q", k)
	}
	c, keys = cutting(t, 1)
	if _, err := c.CreateTask(t.Context(), app.TaskRequest{Name: "a", IdempotencyKey: "mine"}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"mine", "mine"}, keys()); diff != "" {
		t.Error(diff)
	}
	for _, lost := range []func(*Client) error{
		func(c *Client) error {
			_, err := c.Elaborate(t.Context(), app.ElaborateInput{IdempotencyKey: "mine"})
			return err
		},
		func(c *Client) error {
			_, err := c.ApprovePlan(t.Context(), app.ApproveInput{IdempotencyKey: "mine"})
			return err
		},
		func(c *Client) error {
			_, err := c.ShipStory(t.Context(), "x", app.ShipRequest{IdempotencyKey: "mine"})
			return err
		},
	} {
		c, keys = cutting(t, 1)
		if err := lost(c); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"mine", "mine"}, keys()); diff != "" {
			t.Error(diff)
		}
	}
	c, keys = cutting(t, 9)
	_, err = c.AddProject(t.Context(), app.ProjectInput{})
	if e, _ := work.AsError(err); e == nil || e.Code != work.Unavailable || e.Reason != "broken" || len(keys()) != 2 {
		t.Errorf("%v after %d requests", err, len(keys()))
	}
}

func TestCancelledCallsSayWhy(t *testing.T) {
	t.Parallel()
	c, _ := cutting(t, 9)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the user went home")
	cancel(why)
	if _, err := c.Projects(ctx); !errors.Is(err, why) || work.CodeOf(err) != work.Timeout {
		t.Error(err)
	}
}

// What answers without our error document is classed by its status.
func TestForeignAnswers(t *testing.T) {
	t.Parallel()
	for status, code := range map[int]work.Code{
		401: work.Unauthenticated, 403: work.Forbidden, 404: work.NotFound, 413: work.Invalid, 429: work.Exhausted,
		500: work.Internal, 502: work.Unavailable, 503: work.Unavailable, 504: work.Timeout, 302: work.Internal, 200: work.Internal,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, "<html>nginx</html>")
		}))
		_, err := New(server.URL, "t", server.Client()).Projects(t.Context())
		if e, ok := work.AsError(err); !ok || e.Code != code || e.Hint == "" {
			t.Errorf("%d: %v", status, err)
		}
		server.Close()
	}
}

// wire plays the connections of an event stream, one after the other.
type wire struct {
	asked []string // the query of each connection
	at    []time.Duration
	began time.Time
	plays []play
}

// play is what comes of one connection.
type play struct {
	status int
	text   string
	mute   bool // after the text nothing comes, until the request ends
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	w.asked, w.at = append(w.asked, r.URL.RawQuery), append(w.at, time.Since(w.began))
	if len(w.plays) == 0 {
		return nil, io.ErrUnexpectedEOF
	}
	p := w.plays[0]
	w.plays = w.plays[1:]
	body := io.NopCloser(strings.NewReader(p.text))
	if p.mute {
		in, out := io.Pipe()
		body = in
		go func() {
			_, _ = io.WriteString(out, p.text)
			<-r.Context().Done()
			_ = out.CloseWithError(r.Context().Err())
		}()
	}
	return &http.Response{StatusCode: p.status, Header: http.Header{}, Body: body}, nil
}

func message(seq int64) string { return fmt.Sprintf("id: %d\ndata: {\"seq\":%d}\n\n", seq, seq) }

func (w *wire) client() *Client {
	w.began = time.Now()
	return New("http://server", "t", &http.Client{Transport: w})
}

// A stream goes on behind the last event it gave, whatever broke: in the middle
// of a message, by refusals that pass, or by silence. What comes twice is given
// once.
func TestEventsGoOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wire{plays: []play{
			{200, "id: 4\n: here\n\n" + message(5) + message(6) + "id: 7\ndata: {\"se", false},
			{503, "starting", false},
			{200, message(6) + "id: 8\n: seven and eight are not for us\n\n", false},
			{200, message(9), true},
			{200, message(10), false},
		}}
		var got []int64
		for e, err := range w.client().Events(t.Context(), -1) {
			if err != nil {
				t.Fatal(err)
			}
			if got = append(got, e.Seq); e.Seq == 10 {
				break
			}
		}
		if diff := cmp.Diff([]int64{5, 6, 9, 10}, got); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"after=-1", "after=6", "after=6", "after=8", "after=9"}, w.asked); diff != "" {
			t.Error(diff)
		}
		if quiet := w.at[4] - w.at[3]; quiet < silence || quiet > silence+lastWait {
			t.Errorf("a silent server was given %v", quiet)
		}
	})
}

// Waits grow, and stay bounded; the end of the context ends them.
func TestEventsWaitPatiently(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wire{plays: []play{{200, message(1), false}}}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		for _, err := range w.client().Events(ctx, 0) {
			if err != nil {
				t.Error(err)
			}
		}
		if time.Since(w.began) != 10*time.Minute {
			t.Errorf("gave up after %v", time.Since(w.began))
		}
		gaps := make([]time.Duration, len(w.at)-1)
		for i := range gaps {
			gaps[i] = w.at[i+1] - w.at[i]
		}
		if slices.Max(gaps) > lastWait || slices.Max(gaps) < lastWait/2 || len(gaps) < 120 || len(gaps) > 260 {
			t.Errorf("%d waits up to %v", len(gaps), slices.Max(gaps))
		}
	})
}

// A refusal that will not pass ends the stream and is told.
func TestEventsEndWithRefusals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wire{plays: []play{
			{200, message(1), false},
			{401, `{"code":"unauthenticated","detail":"revoked"}`, false},
		}}
		var errs []error
		for _, err := range w.client().Events(t.Context(), 0) {
			if err != nil {
				errs = append(errs, err)
			}
		}
		if len(errs) != 1 || work.CodeOf(errs[0]) != work.Unauthenticated {
			t.Error(errs)
		}
	})
}

// What a server sends as a stream is foreign: nothing of it crashes, and where
// the stream would go on never moves back.
func FuzzEvents(f *testing.F) {
	f.Add(message(1) + message(2))
	f.Add("id: x\ndata: {}\n\n")
	f.Add("id: 9223372036854775808\n\n: c\r\ndata:\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		s := &subscription{}
		last := s.seq
		s.yield = func(work.Event, error) bool {
			if s.seq < last {
				t.Errorf("back from %d to %d", last, s.seq)
			}
			last = s.seq
			return true
		}
		if err := s.read(strings.NewReader(text), func() {}); err == nil {
			t.Error("an ended stream is no end of events")
		}
	})
}

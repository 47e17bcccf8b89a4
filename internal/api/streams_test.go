package api

import (
	"bufio"
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/app/apptest"
	"github.com/claudomator/claudomator/internal/work"
)

// listener reads one connection of the event stream, raw.
type listener struct {
	t     testing.TB
	lines *bufio.Scanner
	close context.CancelFunc
}

func (w *world) listen(query string, edits ...func(*http.Request)) *listener {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Context())
	w.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, "GET", w.http.URL+"/api/events"+query, nil)
	if err != nil {
		w.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+w.token)
	for _, edit := range edits {
		edit(r)
	}
	resp, err := w.http.Client().Do(r)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = resp.Body.Close() })
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" {
		w.Fatalf("%d %v", resp.StatusCode, resp.Header)
	}
	return &listener{w.TB, bufio.NewScanner(resp.Body), cancel}
}

// next is the next message that has data; beats are passed over.
func (l *listener) next() (id int64, data string) {
	l.t.Helper()
	for l.lines.Scan() {
		switch line := l.lines.Text(); {
		case strings.HasPrefix(line, "id: "):
			var err error
			if id, err = strconv.ParseInt(line[4:], 10, 64); err != nil {
				l.t.Fatal(err)
			}
		case strings.HasPrefix(line, "data: "):
			data = line[6:]
		case line == "" && data != "":
			return id, data
		}
	}
	l.t.Fatalf("the stream ended: %v", l.lines.Err())
	return 0, ""
}

// Where a stream begins: after an event, by either way of naming it; from now
// on; and only with what it was asked for.
func TestStreamsBeginWhereAsked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Project("house")
	a := w.Task(app.TaskRequest{Name: "a"})
	b := w.Task(app.TaskRequest{Name: "b"})
	last, err := w.store.LastSeq(t.Context())
	if err != nil || last < 2 {
		t.Fatal(last, err)
	}
	for name, l := range map[string]*listener{
		"query":  w.listen(fmt.Sprintf("?after=%d", last-1)),
		"header": w.listen("?after=0", apptest.Header("Last-Event-ID", fmt.Sprint(last-1))),
	} {
		if id, data := l.next(); id != last || !strings.Contains(data, `"task":"`+string(b.ID)) {
			t.Errorf("%s: %d %s", name, id, data)
		}
	}
	if id, data := w.listen("?after=0&task=" + string(b.ID)).next(); id != last || !strings.Contains(data, string(b.ID)) {
		t.Errorf("of one task: %d %s", id, data)
	}
	now, tree := w.listen(""), w.listen("?tree="+string(a.ID))
	if _, err := w.Service.StartTask(w.Owner(), string(b.ID)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Service.StartTask(w.Owner(), string(a.ID)); err != nil {
		t.Fatal(err)
	}
	if id, data := now.next(); id != last+1 || !strings.Contains(data, string(b.ID)) {
		t.Errorf("from now on: %d %s", id, data)
	}
	if _, data := tree.next(); !strings.Contains(data, `"tree":"`+string(a.TreeID)) {
		t.Errorf("of one tree: %s", data)
	}
}

// Readers that come and go while many write see every event once, in order.
func TestStreamsHaveNoGap(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Project("house")
	const writers, each = 4, 15
	var writing sync.WaitGroup
	for i := range writers {
		writing.Go(func() {
			for j := range each {
				if _, err := w.Service.CreateTask(w.Owner(), app.TaskRequest{Name: fmt.Sprint(i, j), Start: j%2 == 0}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	var reading sync.WaitGroup
	for reader := range 4 {
		reading.Go(func() {
			seen, created := int64(0), 0
			for created < writers*each {
				l := w.listen(fmt.Sprintf("?after=%d", seen)) // a new connection every few events
				for range 3 + 2*reader {
					id, data := l.next()
					if id != seen+1 {
						t.Errorf("reader %d: after %d came %d", reader, seen, id)
						return
					}
					seen = id
					if strings.Contains(data, "task.created") {
						created++
					}
					if created == writers*each {
						break
					}
				}
				l.close()
			}
		})
	}
	writing.Wait()
	reading.Wait()
}

// The client's stream goes on by itself when its connections are cut.
func TestClientStreamsGoOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Project("house")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w.Task(app.TaskRequest{Name: "first"})
	want := int64(1)
	for e, err := range w.client().Events(ctx, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Seq != want {
			t.Fatalf("after %d came %d", want-1, e.Seq)
		}
		if want++; want == 30 {
			return
		}
		if want%10 == 0 {
			w.http.CloseClientConnections()
		}
		w.Task(app.TaskRequest{Name: "more"})
	}
	t.Error("the stream ended by itself")
}

// quiet is a service in which nothing happens.
type quiet struct{ app.API }

func (quiet) Events(ctx context.Context, _ int64) iter.Seq2[work.Event, error] {
	return func(func(work.Event, error) bool) { <-ctx.Done() }
}

// A stream in which nothing happens beats every fifteen seconds, and ends with
// its credential.
func TestStreamsBeatUntilTheCredentialEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		s := &server{o: Options{API: quiet{}, Auth: func(context.Context, string) (app.Caller, error) {
			if asked++; asked > 3 {
				return app.Caller{}, work.Errorf(work.Unauthenticated, "revoked")
			}
			return app.Caller{}, nil
		}}}
		began := time.Now()
		w := httptest.NewRecorder()
		s.stream(w, httptest.NewRequestWithContext(t.Context(), "GET", "/api/events", nil), 7, func(work.Event) bool { return true })
		if want := strings.Repeat("id: 7\n: here\n\n", 4); w.Body.String() != want || time.Since(began) != 4*heartbeat {
			t.Errorf("after %v: %q", time.Since(began), w.Body)
		}
	})
}

// busy is a service in which much happens.
type busy struct{ app.API }

func (busy) Events(context.Context, int64) iter.Seq2[work.Event, error] {
	return func(yield func(work.Event, error) bool) {
		for seq := int64(1); yield(work.Event{Seq: seq, Kind: "x"}, nil); seq++ {
		}
	}
}

// stuck is a connection whose other end does not read.
type stuck struct {
	httptest.ResponseRecorder
	cut chan struct{}
}

func (s *stuck) Write([]byte) (int, error) {
	<-s.cut
	return 0, os.ErrDeadlineExceeded
}

func (s *stuck) SetWriteDeadline(time.Time) error {
	close(s.cut)
	return nil
}

// A reader that does not read is disconnected, and its follower with it.
func TestStuckReadersAreDisconnected(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &server{o: Options{API: busy{}}}
		began := time.Now()
		s.stream(&stuck{cut: make(chan struct{})}, httptest.NewRequestWithContext(t.Context(), "GET", "/api/events", nil), 0, func(work.Event) bool { return true })
		if waited := time.Since(began); waited != stalled {
			t.Errorf("after %v", waited)
		}
	})
}

// BenchmarkStreams delivers events to a thousand clients: one at a time, and a
// second's worth (50) at once. "ms-behind" is how long the last client took to
// see all of them; the clients share this process and its processors.
func BenchmarkStreams(b *testing.B) {
	const clients = 1000
	for _, events := range []int{1, 50} {
		b.Run(fmt.Sprint("events=", events), func(b *testing.B) {
			w := newWorld(b)
			w.Project("house")
			listeners := make([]*listener, clients)
			for i := range listeners {
				listeners[i] = w.listen("")
			}
			for b.Loop() {
				var all sync.WaitGroup
				for _, l := range listeners {
					all.Go(func() {
						for range events {
							l.next()
						}
					})
				}
				for range events {
					w.Task(app.TaskRequest{Name: "a"}) // one event
				}
				all.Wait()
			}
			b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms-behind")
			for _, l := range listeners {
				l.close()
			}
		})
	}
}

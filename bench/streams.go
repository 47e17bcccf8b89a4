package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/claudomator/claudomator/internal/app"
)

const deliveryGoal = 250 * time.Millisecond

// streams measures how soon events reach many clients. The clients run here, on
// the same cores as the server.
func (b *bench) streams(ctx context.Context) (rows []row, err error) {
	dir, err := folder(b.fast(), "streams")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s, err := b.serve(ctx, filepath.Join(dir, "data"), 4)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	clients, seconds, rate := b.pick(1000, 20), b.pick(10, 1), 50
	crowd := &crowd{sent: map[int64]time.Time{}}
	defer crowd.close()
	for range clients {
		if err := crowd.join(ctx, s); err != nil {
			return nil, err
		}
	}
	before, err := s.cpu()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := s.chatter(ctx, crowd, rate, seconds); err != nil {
		return nil, err
	}
	span := time.Since(began)
	after, err := s.cpu()
	if err != nil {
		return nil, err
	}
	want := clients * rate * seconds
	got := crowd.settle(want, 5*time.Second)
	if len(got) != want {
		return nil, fmt.Errorf("%d of %d deliveries arrived", len(got), want)
	}
	return []row{{
		fmt.Sprintf("delivery to %d event-stream clients, %d events/s", clients, rate), "p99 ≤ 250 ms",
		fmt.Sprintf("%s; server CPU %.0f %% of a core", got, 100*float64(after.minus(before).own)/float64(span)), "", within(got.p99(), deliveryGoal),
	}}, nil
}

// chatter makes events at a rate: each edit of a task is one.
func (s *server) chatter(ctx context.Context, c *crowd, rate, seconds int) error {
	t, err := s.CreateTask(ctx, app.TaskRequest{Project: "none", Name: "edited"})
	if err != nil {
		return fmt.Errorf("make a task: %w", err)
	}
	if err := s.chat(ctx, c, t, 1); err != nil { // shows that everybody listens
		return err
	}
	c.forget()
	beat := time.NewTicker(time.Second / time.Duration(rate))
	defer beat.Stop()
	for i := range rate * seconds {
		select {
		case <-beat.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err := s.chat(ctx, c, t, i+2); err != nil {
			return err
		}
	}
	return nil
}

func (s *server) chat(ctx context.Context, c *crowd, t *app.TaskView, i int) error {
	text := fmt.Sprint("edit ", i)
	c.sending(int64(i + 1)) // the task's own creation was event 1
	if _, err := s.PatchTask(ctx, string(t.ID), app.TaskPatch{Description: &text}); err != nil {
		return fmt.Errorf("edit a task: %w", err)
	}
	return nil
}

// crowd is many readers of the event stream, which parse only its ids.
type crowd struct {
	readers sync.WaitGroup
	conns   []net.Conn
	mu      sync.Mutex
	sent    map[int64]time.Time
	late    samples
}

func (c *crowd) sending(seq int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent[seq] = time.Now()
}

// forget waits for what was sent so far, and drops it.
func (c *crowd) forget() {
	c.settle(len(c.conns), 5*time.Second)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.late = nil
	clear(c.sent)
}

// join opens a stream.
func (c *crowd) join(ctx context.Context, s *server) error {
	var d net.Dialer
	host := strings.TrimPrefix(s.url, "http://")
	conn, err := d.DialContext(ctx, "tcp", host)
	if err != nil {
		return fmt.Errorf("open a stream: %w", err)
	}
	c.conns = append(c.conns, conn)
	if _, err := fmt.Fprintf(conn, "GET /api/events?after=0 HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", host, s.token); err != nil {
		return fmt.Errorf("open a stream: %w", err)
	}
	in := bufio.NewReaderSize(conn, 1<<10)
	status, err := in.ReadString('\n')
	if err != nil || !strings.Contains(status, " 200 ") {
		return errors.Join(fmt.Errorf("open a stream: the server answers %q", status), err)
	}
	c.readers.Go(func() { c.read(in) })
	return nil
}

// read notes every event's arrival. An id before data is an event's; the others
// are heartbeats, whose ids repeat.
func (c *crowd) read(in *bufio.Reader) {
	var id int64
	for {
		line, err := in.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
		if value, found := bytes.CutPrefix(line, []byte("id: ")); found {
			id, _ = strconv.ParseInt(string(bytes.TrimSpace(value)), 10, 64)
		}
		if bytes.HasPrefix(line, []byte("data: ")) {
			now := time.Now()
			c.mu.Lock()
			if sent, known := c.sent[id]; known {
				c.late = append(c.late, now.Sub(sent))
			}
			c.mu.Unlock()
		}
	}
}

// settle waits until so many deliveries have arrived, or a limit.
func (c *crowd) settle(want int, limit time.Duration) samples {
	for deadline := time.Now().Add(limit); ; time.Sleep(breath) {
		c.mu.Lock()
		got := c.late
		c.mu.Unlock()
		if len(got) >= want || time.Now().After(deadline) {
			return got
		}
	}
}

func (c *crowd) close() {
	for _, conn := range c.conns {
		_ = conn.Close()
	}
	c.readers.Wait()
}

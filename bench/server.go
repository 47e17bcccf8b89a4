package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/client"
	"github.com/claudomator/claudomator/internal/work"
)

// server is a running server process and a client of it.
type server struct {
	*client.Client
	cmd     *exec.Cmd
	dir     string
	url     string
	token   string
	serving time.Duration // from the start of the process to its first line
	events  watch
	follow  sync.WaitGroup
	stop    context.CancelFunc
}

const (
	startLimit = 30 * time.Second
	stopLimit  = 60 * time.Second
)

// serve starts a server on a new data folder, with a project "none" that has no
// repository; the caller ends it.
func (b *bench) serve(ctx context.Context, dir string, slots int) (*server, error) {
	s, err := b.start(ctx, dir, slots, 0)
	if err != nil {
		return nil, err
	}
	name, agent, policy := "none", "command", "none"
	if _, err := s.AddProject(ctx, app.ProjectInput{Name: &name, Agent: &agent, Policy: &policy}); err != nil {
		return nil, errors.Join(fmt.Errorf("add a project: %w", err), s.close())
	}
	return s, nil
}

// start starts a server on a data folder whose last event is known.
func (b *bench) start(ctx context.Context, dir string, slots int, after int64) (*server, error) {
	s := &server{dir: dir, events: watch{seen: map[work.TaskID]map[string]stamp{}, counts: map[string]int{}, changed: make(chan struct{})}}
	s.cmd = exec.Command(b.binary, "serve", "--addr", "127.0.0.1:0", "--data-dir", dir, "--slots", strconv.Itoa(slots), "--log-level", "error") //nolint:noctx // close ends it in order
	s.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LC_ALL=C"}
	s.cmd.Stderr = os.Stderr
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt is ours to pass on
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start a server: %w", err)
	}
	began := time.Now()
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a server: %w", err)
	}
	hung := time.AfterFunc(startLimit, func() { _ = s.cmd.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	s.serving = time.Since(began)
	hung.Stop()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read the server's address: %w", err), s.close())
	}
	secret, err := os.ReadFile(filepath.Join(dir, "token"))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read the server's token: %w", err), s.close())
	}
	s.url, s.token = strings.TrimSpace(line), strings.TrimSpace(string(secret))
	s.Client = client.New(s.url, s.token, nil)
	s.listen(ctx, after)
	return s, nil
}

// listen follows the server's events until it is closed.
func (s *server) listen(ctx context.Context, after int64) {
	ctx, s.stop = context.WithCancel(ctx)
	s.follow.Go(func() {
		for e, err := range s.Events(ctx, after) {
			if err != nil {
				return // whoever waits for an event has a limit
			}
			s.events.add(e)
		}
	})
}

// close ends the server and waits for it.
func (s *server) close() error {
	if s.stop != nil {
		s.stop()
		s.follow.Wait()
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("end a server: %w", err)
	}
	hung := time.AfterFunc(stopLimit, func() { _ = s.cmd.Process.Kill() })
	defer hung.Stop()
	if err := s.cmd.Wait(); err != nil {
		return fmt.Errorf("a server did not end well: %w", err)
	}
	return nil
}

func (s *server) cpu() (cpu, error) { return cpuOf(s.cmd.Process.Pid) }

// project adds a project for a repository.
func (s *server) project(ctx context.Context, name, repository string) error {
	agent, policy := "command", "none"
	if _, err := s.AddProject(ctx, app.ProjectInput{Name: &name, Repository: &repository, Agent: &agent, Policy: &policy}); err != nil {
		return fmt.Errorf("add a project: %w", err)
	}
	return nil
}

// request is a task that a command agent does.
func request(project, script string) app.TaskRequest {
	return app.TaskRequest{Project: project, Name: "measured", Start: true, Agent: app.AgentInput{Instructions: script}}
}

// stamp is when an event happened, and when it arrived here.
type stamp struct{ at, arrived time.Time }

// watch remembers the first event of each kind of each task.
type watch struct {
	mu      sync.Mutex
	seen    map[work.TaskID]map[string]stamp
	counts  map[string]int // of all events, by kind
	changed chan struct{}  // closed and replaced at every event
}

func (w *watch) add(e work.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[e.Kind]++
	kinds := w.seen[e.Task]
	if kinds == nil {
		kinds = map[string]stamp{}
		w.seen[e.Task] = kinds
	}
	if _, known := kinds[e.Kind]; !known {
		kinds[e.Kind] = stamp{e.At, time.Now()}
	}
	close(w.changed)
	w.changed = make(chan struct{})
}

// look gives an event of a task, and what is closed at the next event.
func (w *watch) look(id work.TaskID, kind string) (at stamp, bad string, found bool, changed <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	kinds := w.seen[id]
	for _, end := range []string{"task.failed", "task.timed_out", "task.cancelled"} {
		if _, ended := kinds[end]; ended && end != kind {
			bad = end
		}
	}
	at, found = kinds[kind]
	return at, bad, found, w.changed
}

// count is how many events of a kind there were.
func (w *watch) count(kind string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.counts[kind]
}

// await waits for an event of a task.
func (w *watch) await(ctx context.Context, id work.TaskID, kind string) (stamp, error) {
	for {
		at, bad, found, changed := w.look(id, kind)
		if found {
			return at, nil
		}
		if bad != "" {
			return stamp{}, fmt.Errorf("task %s: waited for %s, came %s", id, kind, bad)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return stamp{}, fmt.Errorf("task %s: wait for %s: %w", id, kind, context.Cause(ctx))
		}
	}
}

// finish makes a task and waits until it is accepted.
func (s *server) finish(ctx context.Context, in app.TaskRequest) (time.Duration, error) {
	began := time.Now()
	t, err := s.CreateTask(ctx, in)
	if err != nil {
		return 0, fmt.Errorf("make a task: %w", err)
	}
	done, err := s.events.await(ctx, t.ID, "task.completed")
	return done.arrived.Sub(began), err
}

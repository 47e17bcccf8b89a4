package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/client"
)

// How long a start, the end of the server and one pass of the suite may take.
const (
	startLimit = 30 * time.Second
	stopLimit  = 30 * time.Second
	suiteLimit = 2 * time.Minute
)

func main() {
	var t tools
	flag.StringVar(&t.server, "server", "bin/claudomator", "the `program` to test")
	flag.StringVar(&t.node, "node", "node", "the Node `program`, 22 or newer")
	flag.StringVar(&t.suite, "suite", "", "the `folder` of @modelcontextprotocol/conformance")
	flag.StringVar(&t.baseline, "expected-failures", "test/conformance/expected-failures.yaml", "the `file` of what does not apply")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := t.run(ctx); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "conformance:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop was called
	}
}

// tools are the programs and files that are put together.
type tools struct {
	server, node, suite, baseline string
}

// run tests both endpoints of a fresh server; an error says which has failed.
func (t tools) run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "conformance-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	s, err := start(ctx, t.server, dir)
	if err != nil {
		return err
	}
	defer func() { _ = s.stop() }()
	runToken, err := s.begin(ctx)
	if err != nil {
		return err
	}
	var all error
	for _, e := range []struct{ path, token string }{{"/mcp", runToken}, {"/mcp/admin", s.token}} {
		if err := t.endpoint(ctx, s.url+e.path, e.token, dir); err != nil {
			all = errors.Join(all, fmt.Errorf("%s: %w", e.path, err))
		}
	}
	return errors.Join(all, s.stop())
}

// endpoint runs the whole suite against one endpoint.
func (t tools) endpoint(ctx context.Context, address, token, dir string) error {
	p, err := proxy(address, token)
	if err != nil {
		return err
	}
	defer p.Close()
	ctx, cancel := context.WithTimeout(ctx, suiteLimit)
	defer cancel()
	fmt.Printf("\n--- %s\n", address)
	target, err := url.Parse(address)
	if err != nil {
		return err
	}
	c := exec.CommandContext(ctx, t.node, filepath.Join(t.suite, "dist", "index.js"), "server",
		"--url", p.URL+target.Path, "--suite", "all",
		"--expected-failures", t.baseline, "--output-dir", filepath.Join(dir, "results"))
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	if err := c.Run(); err != nil {
		return fmt.Errorf("run the suite: %w", err)
	}
	return nil
}

// proxy passes requests to an endpoint with a token. The endpoint is asked for
// under its own name; any other name that a request gives, as one that was
// rebound to this machine would, is left as it is.
func proxy(address, token string) (*httptest.Server, error) {
	target, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		// net/http has put it there.
		own := r.In.Context().Value(http.LocalAddrContextKey).(net.Addr).String()
		r.Out.URL.Scheme, r.Out.URL.Host = target.Scheme, target.Host
		if strings.ReplaceAll(r.In.Host, "localhost", "127.0.0.1") == own {
			r.Out.Host = target.Host
		}
		if origin, err := url.Parse(r.In.Header.Get("Origin")); err == nil && strings.ReplaceAll(origin.Host, "localhost", "127.0.0.1") == own {
			r.Out.Header.Set("Origin", target.Scheme+"://"+target.Host)
		}
		r.Out.Header.Set("Authorization", "Bearer "+token)
	}}
	return httptest.NewServer(forward), nil
}

// server is a running claudomator serve.
type server struct {
	dir, url, token string
	process         *exec.Cmd
	ended           chan struct{} // closed when it has ended …
	status          error         // … with this
}

func start(ctx context.Context, program, dir string) (*server, error) {
	s := &server{dir: dir, ended: make(chan struct{})}
	// Not ctx: it is asked to end, and waited for.
	s.process = exec.CommandContext(context.WithoutCancel(ctx), program, "serve", "--addr", "127.0.0.1:0", "--data-dir", filepath.Join(dir, "data"))
	s.process.Env = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "LC_ALL=C.UTF-8"}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	s.process.Stderr = log
	out, err := s.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.process.Start(); err != nil {
		return nil, fmt.Errorf("start the server: %w", err)
	}
	first := make(chan string, 1)
	go func() {
		defer close(s.ended)
		lines := bufio.NewScanner(out)
		if lines.Scan() {
			first <- lines.Text()
		}
		for lines.Scan() { // so that it never waits for us
		}
		s.status = s.process.Wait()
	}()
	select {
	case s.url = <-first:
	case <-s.ended:
		return nil, fmt.Errorf("the server has ended: %w: %s", s.status, s.log())
	case <-time.After(startLimit):
		return nil, errors.Join(fmt.Errorf("the server does not start: %s", s.log()), s.stop())
	}
	token, err := os.ReadFile(filepath.Join(dir, "data", "token"))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read the server's token: %w", err), s.stop())
	}
	s.token = strings.TrimSpace(string(token))
	return s, nil
}

func (s *server) log() string {
	text, _ := os.ReadFile(filepath.Join(s.dir, "log")) // none: nothing to add
	return string(text)
}

// begin lets a task run that does nothing but be there; it gives the token of
// its run. The run ends with the server.
func (s *server) begin(ctx context.Context) (token string, err error) {
	c := client.New(s.url, s.token, nil)
	name, sign := "conformance", filepath.Join(s.dir, "sign")
	if _, err := c.AddProject(ctx, app.ProjectInput{Name: &name}); err != nil {
		return "", fmt.Errorf("add a project: %w", err)
	}
	script := fmt.Sprintf("echo \"$CLAUDOMATOR_MCP_TOKEN\" > %[1]s.new && mv %[1]s.new %[1]s && exec sleep 600", sign)
	if _, err := c.CreateTask(ctx, app.TaskRequest{
		Project: name, Name: "be there", Start: true, Agent: app.AgentInput{Type: "command", Instructions: script},
	}); err != nil {
		return "", fmt.Errorf("make a task: %w", err)
	}
	for end := time.Now().Add(startLimit); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		text, err := os.ReadFile(sign)
		if err == nil {
			return strings.TrimSpace(string(text)), nil
		}
		if !errors.Is(err, os.ErrNotExist) {
			return "", err
		}
	}
	return "", fmt.Errorf("the run does not begin: %s", s.log())
}

// stop ends the server and waits for it.
func (s *server) stop() error {
	_ = s.process.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-s.ended:
	case <-time.After(stopLimit):
		_ = s.process.Process.Kill()
		<-s.ended
		return errors.New("the server did not end when it was asked to")
	}
	if s.status != nil {
		return fmt.Errorf("the server ended badly: %w: %s", s.status, s.log())
	}
	return nil
}

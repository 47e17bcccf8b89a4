package main

import (
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
	"github.com/claudomator/claudomator/test/binary"
)

// How long the start of a run and one pass of the suite may take.
const (
	startLimit = 2 * time.Minute
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
	s, err := start(t.server, dir)
	if err != nil {
		return err
	}
	defer s.Kill()
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
	if err := s.Stop(); err != nil {
		all = errors.Join(all, fmt.Errorf("%w: %s", err, s.log()))
	}
	return all
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
	*binary.Server
	dir, url, token string
}

func start(program, dir string) (*server, error) {
	data := filepath.Join(dir, "data")
	process, err := binary.Launch(binary.Options{
		Bin: program, Env: []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "LC_ALL=C.UTF-8"},
		Args: []string{"--data-dir", data}, Log: filepath.Join(dir, "log"),
	})
	if err != nil {
		return nil, err
	}
	s := &server{Server: process, dir: dir}
	if s.url, err = s.URL(); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %s", err, s.log()), s.Stop())
	}
	if s.token, err = binary.Token(data); err != nil {
		return nil, errors.Join(fmt.Errorf("read the server's token: %w", err), s.Stop())
	}
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

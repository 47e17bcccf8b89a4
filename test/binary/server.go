package binary

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// How long a server may take to serve and to end, on a busy machine; it takes
// well under a second.
const (
	startLimit = 2 * time.Minute
	stopLimit  = 3 * time.Minute
)

// Options say how a server is launched.
type Options struct {
	Bin  string   // the program
	Dir  string   // where it runs
	Env  []string // its whole environment
	Args []string // what follows "serve"; a free port is chosen
	Log  string   // the file its log is appended to
}

// Server is the process of a server.
type Server struct {
	cmd    *exec.Cmd
	spoken chan struct{} // closed when its first line has come, or cannot come any more …
	url    string        // … which is this
	ended  chan struct{} // closed when it has ended …
	status error         // … with this
}

// Launch starts a server; URL waits until it serves.
func Launch(o Options) (*Server, error) {
	log, err := os.OpenFile(o.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // the server has it, too
	s := &Server{spoken: make(chan struct{}), ended: make(chan struct{})}
	s.cmd = exec.Command(o.Bin, append([]string{"serve", "--addr", "127.0.0.1:0"}, o.Args...)...) //nolint:noctx // it is asked to end, and waited for
	s.cmd.Dir, s.cmd.Env, s.cmd.Stderr = o.Dir, o.Env, log
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a signal to the tests is not one to it
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the server: %w", err)
	}
	go func() { // until the server ends: Stop and Kill wait for it
		defer close(s.ended)
		lines := bufio.NewReader(stdout)
		first, _ := lines.ReadString('\n')
		s.url = strings.TrimSpace(first)
		close(s.spoken)
		_, _ = io.Copy(io.Discard, lines) // so that it never waits for us
		s.status = s.cmd.Wait()
	}()
	return s, nil
}

// PID is the process's number.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// URL is the server's address, once it serves.
func (s *Server) URL() (string, error) {
	select {
	case <-s.spoken:
	case <-time.After(startLimit):
		return "", fmt.Errorf("the server did not start within %s", startLimit)
	}
	if s.url == "" {
		<-s.ended
		return "", fmt.Errorf("the server did not start; it ended with: %v", s.status) //nolint:errorlint // it may have ended well
	}
	return s.url, nil
}

// Stop asks the server to end, as an operator would, and gives how it has ended.
// One that does not end is killed, which is an error.
func (s *Server) Stop() error {
	_ = s.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-s.ended:
	case <-time.After(stopLimit):
		s.Kill()
		return fmt.Errorf("the server did not stop within %s", stopLimit)
	}
	if s.status != nil {
		return fmt.Errorf("the server ended badly: %w", s.status)
	}
	return nil
}

// Kill kills the server and waits until it is dead.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill() // it may have ended
	<-s.ended
}

// Token is the owner's token of a server, from its data folder.
func Token(dataDir string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dataDir, "token"))
	return strings.TrimSpace(string(text)), err
}

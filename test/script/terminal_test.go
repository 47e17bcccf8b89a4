package script_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// session is a program on a terminal of its own, and a person who reads and types.
type session struct {
	keyboard *os.File // the other end of the terminal
	process  *exec.Cmd
	ended    chan struct{}

	mu     sync.Mutex
	screen bytes.Buffer
	seen   int // bytes that were looked for something in
}

var erased = regexp.MustCompile("[^\n]*\r\x1b\\[K")

var sequences = regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]")

// terminal runs a program on a terminal of COLUMNSxROWS, and does what a file
// says, a line at a time:
//
//	see REGEXP     wait until it prints this, from what was seen last on
//	type TEXT      type it, and Enter
//	press ctrl-c   (or ctrl-d)
//	resize CxR     change the terminal's size
//	exits CODE     wait for its end
//
// Stdout is then what stands there, without colours; stderr is all that was
// printed, byte for byte.
func terminal(ts *testscript.TestScript, args []string) {
	columns, rows, err := size(args[0])
	ts.Check(err)
	s, err := startSession(columns, rows, environ(ts), ts.MkAbs("."), args[2:])
	ts.Check(err)
	err = s.play(ts.ReadFile(args[1]))
	s.kill()
	all := s.printed()
	_, _ = ts.Stderr().Write([]byte(all))
	left := erased.ReplaceAll([]byte(strings.ReplaceAll(all, "\r\n", "\n")), nil)
	_, _ = ts.Stdout().Write(sequences.ReplaceAll(left, nil))
	ts.Check(err)
}

func size(text string) (columns, rows int, err error) {
	c, r, _ := strings.Cut(text, "x")
	columns, err = strconv.Atoi(c)
	if err != nil {
		return 0, 0, err
	}
	rows, err = strconv.Atoi(r)
	return columns, rows, err
}

func startSession(columns, rows int, environ []string, dir string, argv []string) (*session, error) {
	keyboard, tty, err := openTerminal()
	if err != nil {
		return nil, err
	}
	if err := resize(keyboard, columns, rows); err != nil {
		return nil, err
	}
	path := argv[0]
	environ = append([]string{"TERM=xterm"}, environ...) // the script's own counts
	for _, entry := range environ {
		if list, ok := strings.CutPrefix(entry, "PATH="); ok {
			for folder := range strings.SplitSeq(list, string(os.PathListSeparator)) {
				if info, err := os.Stat(folder + "/" + argv[0]); err == nil && !info.IsDir() && path == argv[0] {
					path = folder + "/" + argv[0]
				}
			}
		}
	}
	c := exec.Command(path, argv[1:]...)
	c.Dir, c.Env = dir, environ
	c.Stdin, c.Stdout, c.Stderr = tty, tty, tty
	c.SysProcAttr = ownTerminal()
	if err := c.Start(); err != nil {
		return nil, err
	}
	_ = tty.Close() // the program has it
	s := &session{keyboard: keyboard, process: c, ended: make(chan struct{})}
	read := make(chan struct{})
	go func() {
		defer close(read)
		buffer := make([]byte, 4096)
		for {
			n, err := keyboard.Read(buffer)
			s.mu.Lock()
			s.screen.Write(buffer[:n])
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	go func() {
		_ = c.Wait()
		select {
		case <-read:
		case <-time.After(10 * time.Second): // a child may hold the terminal
		}
		close(s.ended)
	}()
	return s, nil
}

func (s *session) play(steps string) error {
	for line := range strings.Lines(steps) {
		line = strings.TrimRight(line, "\n")
		verb, what, _ := strings.Cut(line, " ")
		var err error
		switch verb {
		case "see":
			err = s.see(what)
		case "type":
			err = s.press(what + "\n")
		case "press":
			err = s.press(map[string]string{"ctrl-c": "\x03", "ctrl-d": "\x04"}[what])
		case "resize":
			var columns, rows int
			if columns, rows, err = size(what); err == nil {
				err = resize(s.keyboard, columns, rows)
			}
		case "exits":
			err = s.exits(what)
		case "", "#":
		default:
			err = errors.New("there is no such step")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", line, err)
		}
	}
	return nil
}

func (s *session) press(text string) error {
	_, err := s.keyboard.WriteString(text)
	return err
}

func (s *session) see(pattern string) error {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return err
	}
	for end := time.Now().Add(limit); ; time.Sleep(10 * time.Millisecond) {
		s.mu.Lock()
		text := sequences.ReplaceAllFunc(s.screen.Bytes()[s.seen:], func(found []byte) []byte { return bytes.Repeat([]byte{0}, len(found)) })
		s.mu.Unlock()
		text, sizes := squeeze(text)
		if found := re.FindIndex(text); found != nil {
			s.seen += sizes[found[1]]
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("not within %s; since what was seen last there is:\n%s", limit, text)
		}
	}
}

// printed is all that it has printed so far.
func (s *session) printed() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.screen.String()
}

// squeeze leaves zero bytes and carriage returns out, and tells for each index
// of what is left where it stood.
func squeeze(text []byte) (out []byte, at []int) {
	for i, b := range text {
		if b != 0 && b != '\r' {
			out, at = append(out, b), append(at, i)
		}
	}
	return out, append(at, len(text))
}

func (s *session) exits(code string) error {
	select {
	case <-s.ended:
	case <-time.After(limit):
		return fmt.Errorf("it has not ended within %s", limit)
	}
	if got := s.process.ProcessState.ExitCode(); strconv.Itoa(got) != code {
		return fmt.Errorf("it has ended with exit code %d", got)
	}
	return nil
}

// kill ends what the steps have left running.
func (s *session) kill() {
	select {
	case <-s.ended:
	default:
		_ = s.process.Process.Kill()
		<-s.ended
	}
	_ = s.keyboard.Close()
}

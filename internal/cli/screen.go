package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// screen prints what stays, and on a terminal keeps one line below it that
// changes.
type screen struct {
	shell *shell
	live  bool   // the last line can change
	shown string // what stands there
}

const eraseLine = "\r\x1b[K"

// write prints lines that stay.
func (sc *screen) write(text func(*page)) error {
	p := sc.shell.page()
	if text(p); p.text.Len() == 0 {
		return nil
	}
	return sc.put(p.text.String() + sc.shown)
}

// status changes the last line.
func (sc *screen) status(text func(*page)) error {
	if !sc.live {
		return nil
	}
	p := sc.shell.page()
	text(p)
	line := strings.TrimSuffix(p.text.String(), "\n")
	if line == sc.shown {
		return nil
	}
	before := sc.shown
	sc.shown = line
	if before == "" {
		return sc.raw(line)
	}
	return sc.raw(eraseLine + line)
}

// clear takes the last line away.
func (sc *screen) clear() error {
	if sc.shown == "" {
		return nil
	}
	sc.shown = ""
	return sc.raw(eraseLine)
}

func (sc *screen) put(text string) error {
	if sc.shown != "" {
		text = eraseLine + text
	}
	return sc.raw(text)
}

func (sc *screen) raw(text string) error {
	if _, err := io.WriteString(sc.shell.Out, text); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// asker reads what a person types, a line at a time.
type asker struct {
	shell   *shell
	pressed <-chan struct{}

	in      *bufio.Reader
	pending chan typed // a line that was asked for and has not come yet
}

type typed struct {
	text string
	err  error
}

// ask prints a prompt and waits for a line. Ctrl-C and the end of ctx give
// errInterrupted, the end of the input io.EOF. What was typed before the question
// is no answer to it.
func (a *asker) ask(ctx context.Context, prompt string) (string, error) {
	if a.in == nil {
		a.in = bufio.NewReader(a.shell.In)
	}
	if a.pending == nil && a.shell.Discard != nil {
		a.shell.Discard()
		_, _ = a.in.Discard(a.in.Buffered()) // it holds so many
	}
	p := a.shell.page()
	p.paragraph(bold, "", prompt)
	if _, err := io.WriteString(a.shell.Out, strings.TrimSuffix(p.text.String(), "\n")+" "); err != nil {
		return "", fmt.Errorf("print: %w", err)
	}
	if a.pending == nil {
		// A read cannot be broken off: it ends with the line, or with the process.
		pending := make(chan typed, 1)
		go func() {
			text, err := a.in.ReadString('\n')
			pending <- typed{text, err}
		}()
		a.pending = pending
	}
	select {
	case line := <-a.pending:
		a.pending = nil
		if text := strings.TrimSpace(line.text); text != "" || line.err == nil {
			return text, nil
		}
		_, err := io.WriteString(a.shell.Out, "\n")
		return "", errors.Join(line.err, err)
	case <-a.pressed:
	case <-ctx.Done():
	}
	_, _ = io.WriteString(a.shell.Out, "\n") // the command ends anyway
	return "", errInterrupted
}

package scripted

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	sdk "github.com/coder/acp-go-sdk"
)

const floodChunk = 32 << 10 // bytes printed at once

// faults are the actions of an agent that does not work.
func (t *turn) faults() map[string]func(context.Context, *Step) error {
	return map[string]func(context.Context, *Step) error{
		"fail": func(_ context.Context, s *Step) error { return failure(s.Value, s.Kind, nil) },
		"overload": func(_ context.Context, s *Step) error {
			return failure(s.Value, "overloaded", nil)
		},
		"stop":  func(_ context.Context, s *Step) error { return &errEnded{sdk.StopReason(s.Value)} },
		"print": func(_ context.Context, s *Step) error { return t.out.print([]byte(s.Value)) },
		"limit": t.limit, "flood": t.flood, "ignore_term": t.ignore, "daemon": t.daemon, "die": t.die,
	}
}

// failure is an error answer, with its kind where programs look for it.
func failure(message, kind string, more map[string]any) error {
	data := map[string]any{}
	if kind != "" {
		data["errorKind"] = kind
	}
	for key, value := range more {
		data[key] = value
	}
	return &sdk.RequestError{Code: -32603, Message: message, Data: data}
}

func (t *turn) limit(_ context.Context, s *Step) error {
	if s.Reset == "" {
		return failure(s.Value, "usage_limit", nil)
	}
	at, err := s.resetAt(t.o.Now())
	if err != nil {
		return err
	}
	return failure(s.Value, "usage_limit", map[string]any{"resetsAt": float64(at.UnixMilli()) / 1000})
}

// flood prints a lot.
func (t *turn) flood(ctx context.Context, s *Step) error {
	size, err := number(s.Value)
	if err != nil {
		return err
	}
	line := strings.Repeat("0123456789abcde", 4) + "...\n"
	noise := []byte(strings.Repeat(line, floodChunk/len(line)))
	switch s.As {
	case "message":
		return t.update(ctx, sdk.UpdateToolCall("flood", sdk.WithUpdateRawOutput(strings.Repeat("x", int(size)))))
	case "text":
		for left := size; left > 0; left -= int64(len(line)) {
			if err := t.update(ctx, sdk.UpdateAgentMessageText(line)); err != nil {
				return err
			}
		}
		return nil
	case "line":
		noise = bytes.ReplaceAll(noise, []byte("\n"), []byte("."))
	}
	for left := size; left > 0; left -= int64(len(noise)) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		part := noise[:min(left, int64(len(noise)))]
		if s.As == "stderr" {
			_, err = t.o.Err.Write(part)
		} else {
			err = t.out.print(part)
		}
		if err != nil {
			return fmt.Errorf("print: %w", err)
		}
	}
	return t.out.print([]byte("\n"))
}

// ignore makes the program one that does not leave.
func (t *turn) ignore(context.Context, *Step) error {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stuck = true
	return nil
}

// daemon leaves a process that left the session twice, and ignores requests.
func (t *turn) daemon(ctx context.Context, s *Step) error {
	c := t.command(ctx, "sh", "-c", `(setsid sh -c 'trap "" TERM INT HUP; echo $$ >"$1.new"; mv "$1.new" "$1"; exec sleep 3600' sh "$1" </dev/null >/dev/null 2>&1 &)
until test -e "$1"; do sleep 0.01; done`, "sh", s.Value)
	_, err := captured(c)
	return err
}

// deaths are the signals that end the program at once.
func deaths() map[string]syscall.Signal {
	return map[string]syscall.Signal{"KILL": syscall.SIGKILL, "TERM": syscall.SIGTERM}
}

// die ends the program.
func (t *turn) die(_ context.Context, s *Step) error {
	if s.HalfLine {
		if err := t.out.print([]byte(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"` + t.s.ID + `","upd`)); err != nil {
			return fmt.Errorf("print: %w", err)
		}
	}
	if how, ok := deaths()[s.Value]; ok {
		signal.Reset(how)
		if err := syscall.Kill(os.Getpid(), how); err != nil {
			return fmt.Errorf("die: %w", err)
		}
		select {} // it comes
	}
	status, err := number(s.Value)
	if err != nil {
		return err
	}
	t.exit <- int(status)
	select {} // Run ends the program
}

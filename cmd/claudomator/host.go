package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/cli"
	"github.com/claudomator/claudomator/internal/client"
	"github.com/claudomator/claudomator/internal/config"
)

// hostFor runs a server of the data folder's for one command, on any free port
// of this machine. Its log goes to a file: the terminal belongs to the command.
func hostFor(ctx context.Context, settings cli.Settings) (api app.API, stop func() error, err error) {
	cfg, err := load(settings)
	if err != nil {
		return nil, nil, err
	}
	cfg.Addr = "127.0.0.1:0"
	log := &lateFile{path: filepath.Join(cfg.DataDir, "run.log")}
	api, end, err := host(ctx, cfg, log)
	if err != nil {
		_ = log.Close()
		return nil, nil, err
	}
	return api, func() error {
		err := end()
		_ = log.Close()
		if err != nil {
			return fmt.Errorf("end the server (its log is %s): %w", log.path, err)
		}
		return nil
	}, nil
}

// host runs a server until stop is called, and speaks to it. The end of ctx
// breaks off its start, and nothing else: what it does is then brought to an end
// by stop. While it runs, a pipe that nobody reads any more is an error of who
// writes to it, and not the end of the process: the agents would stay.
func host(ctx context.Context, cfg *config.Config, logTo io.Writer) (api app.API, stop func() error, err error) {
	serving, cancel := context.WithCancel(context.WithoutCancel(ctx))
	url, ended := make(chan string, 1), make(chan error, 1)
	go func() { ended <- run(serving, cfg, logTo, func(u string) { url <- u }) }()
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, syscall.SIGPIPE)
	stop = func() error {
		cancel()
		err := <-ended
		signal.Stop(pipes)
		return err
	}
	select {
	case err := <-ended:
		cancel()
		signal.Stop(pipes)
		return nil, nil, err
	case <-ctx.Done():
		_ = stop()
		return nil, nil, context.Cause(ctx)
	case u := <-url:
		token, err := os.ReadFile(filepath.Join(cfg.DataDir, "token"))
		if err != nil {
			_ = stop()
			return nil, nil, fmt.Errorf("read the server's token: %w", err)
		}
		return client.New(u, strings.TrimSpace(string(token)), http.DefaultClient), stop, nil
	}
}

// lateFile is a file that is made anew when something is written to it: by then
// the server holds the data folder, and no other one writes there.
type lateFile struct {
	path string
	file *os.File
}

// Write appends to the file.
func (l *lateFile) Write(data []byte) (int, error) {
	if l.file == nil {
		file, err := os.OpenFile(l.path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
		if err != nil {
			return 0, err
		}
		l.file = file
	}
	return l.file.Write(data)
}

// Close closes it, if it was made.
func (l *lateFile) Close() error {
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}

func showConfig(settings cli.Settings) ([]cli.Setting, error) {
	cfg, err := load(settings)
	if err != nil {
		return nil, err
	}
	var all []cli.Setting
	for _, s := range cfg.Origins() {
		all = append(all, cli.Setting{Key: s.Key, Value: s.Value, Origin: s.Origin})
	}
	return all, nil
}

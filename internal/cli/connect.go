package cli

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

// connect finds the server and the token for it.
func (s *shell) connect(ctx context.Context) (app.API, error) {
	server, token, err := s.locate()
	if err != nil {
		return nil, err
	}
	return s.Connect(ctx, server, token)
}

// locate names the server that was asked for, else the local one. The token of
// the data folder goes to the server that wrote it, and to no other.
func (s *shell) locate() (server, token string, err error) {
	server, token = s.server, s.env("CLAUDOMATOR_TOKEN")
	if server == "" {
		server = s.env("CLAUDOMATOR_SERVER")
	}
	if server != "" && token != "" {
		return server, token, nil
	}
	dir := s.folder()
	local, err := line(filepath.Join(dir, "server"))
	switch {
	case server != "" && (err != nil || strings.TrimRight(server, "/") != strings.TrimRight(local, "/")):
		return "", "", work.Errorf(work.Unauthenticated, "there is no token for %s", server).WithHint("set CLAUDOMATOR_TOKEN; on the server, `claudomator token create NAME` makes one")
	case dir == "":
		return "", "", work.Errorf(work.Unavailable, "no server is named, and there is no home folder to look for one").WithHint("give --server or --data-dir")
	case errors.Is(err, fs.ErrNotExist):
		return "", "", work.Errorf(work.Unavailable, "no server is running for %s", dir).WithHint("start one: claudomator serve")
	case err != nil:
		return "", "", work.Errorf(work.Unavailable, "find the server: %w", err)
	case token != "":
		return local, token, nil
	}
	token, err = line(filepath.Join(dir, "token"))
	if err != nil {
		return "", "", work.Errorf(work.Unauthenticated, "read the local token: %w", err).WithHint("set CLAUDOMATOR_TOKEN")
	}
	return local, token, nil
}

// folder is the data folder of the local server, "" without a home.
func (s *shell) folder() string {
	if s.dataDir != "" {
		return s.dataDir
	}
	if dir := s.env("CLAUDOMATOR_DATA_DIR"); dir != "" {
		return dir
	}
	if base := s.env("XDG_DATA_HOME"); filepath.IsAbs(base) {
		return filepath.Join(base, "claudomator")
	}
	if home := s.env("HOME"); home != "" {
		return filepath.Join(home, ".local", "share", "claudomator")
	}
	return ""
}

// env looks a variable up; the last one counts.
func (s *shell) env(name string) string {
	value := ""
	for _, entry := range s.Environ {
		if v, ok := strings.CutPrefix(entry, name+"="); ok {
			value = v
		}
	}
	return value
}

func line(file string) (string, error) {
	text, err := os.ReadFile(file)
	return strings.TrimSpace(string(text)), err
}

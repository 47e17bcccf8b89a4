package scripted

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const keptFor = 30 * 24 * time.Hour

// conversation is what is kept of one.
type conversation struct {
	ID     string `json:"id"`
	Script string `json:"script"`
	Next   int    `json:"next"` // the step to be done
}

// isID says whether text can be the id of a conversation, and so a file's name.
func isID(text string) bool {
	return len(text) >= 10 && len(text) <= 40 && strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == ""
}

// store keeps conversations in a folder.
type store struct {
	dir string
	now func() time.Time
}

// openStore finds the folder in an environment; empty where there is no home.
func openStore(env func(string) string, now func() time.Time) store {
	root := env("XDG_STATE_HOME")
	if !filepath.IsAbs(root) {
		home := env("HOME")
		if !filepath.IsAbs(home) {
			return store{now: now}
		}
		root = filepath.Join(home, ".local", "state")
	}
	return store{dir: filepath.Join(root, "claudomator", "scripted"), now: now}
}

func (s store) path(id string) string { return filepath.Join(s.dir, id+".json") }

func (s store) load(id string) (*conversation, error) {
	if s.dir == "" || !isID(id) {
		return nil, fmt.Errorf("no conversation %.50q", id)
	}
	data, err := os.ReadFile(s.path(id))
	if err != nil {
		return nil, fmt.Errorf("no conversation %s", id)
	}
	var c conversation
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, fmt.Errorf("read conversation %s: %w", id, err)
	}
	return &c, nil
}

// save keeps a conversation, whole or not at all.
func (s store) save(c *conversation) error {
	if s.dir == "" {
		return nil
	}
	data, err := json.Marshal(c)
	if err == nil {
		err = os.MkdirAll(s.dir, 0o700)
	}
	if err == nil {
		err = os.WriteFile(s.path(c.ID)+".new", data, 0o600)
	}
	if err == nil {
		err = os.Rename(s.path(c.ID)+".new", s.path(c.ID))
	}
	if err != nil {
		return fmt.Errorf("keep the conversation: %w", err)
	}
	return nil
}

func (s store) forget(id string) { _ = os.Remove(s.path(id)) } // not there is as good

// prune forgets what is old.
func (s store) prune() {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode()&fs.ModeType == 0 && s.now().Sub(info.ModTime()) > keptFor {
			_ = os.Remove(filepath.Join(s.dir, e.Name())) // tried again with the next conversation
		}
	}
}

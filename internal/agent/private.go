package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// private is a run's own folder outside of the workspace, made when it is asked
// for and removed when no process of the run is left.
type private struct{ root, name string }

// Private makes, or finds, a folder of this run alone (mode 0700), outside of
// the workspace, for what must not stay: configuration with the run's token. It
// is removed when the run is over; what a killed server leaves goes with
// [ClearPrivate].
func (s *Session) Private() (dir string, err error) {
	if s.private.root == "" {
		return "", errors.New("no directory for private files was configured")
	}
	dir = filepath.Join(s.private.root, s.private.name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make the run's private folder: %w", err)
	}
	return dir, nil
}

func (p private) remove() {
	if p.root != "" {
		_ = os.RemoveAll(filepath.Join(p.root, p.name)) // what is left goes at the next start
	}
}

// ClearPrivate removes what runs of a former life of the server left in the
// folder given as RunnerOptions.Private.
func ClearPrivate(root string) error {
	if err := os.RemoveAll(root); err != nil {
		return fmt.Errorf("remove private files of ended runs: %w", err)
	}
	return nil
}

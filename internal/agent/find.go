package agent

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/claudomator/claudomator/internal/sandbox"
)

const versionLimit = 20 * time.Second

// Find says which file argv runs, in the environment that agents get, and the
// first line that it prints when called with the further arguments version
// (none: it is not called). That answer is kept for as long as the file stays
// the same. An error wraps the named one of package sandbox.
func (r *Runner) Find(ctx context.Context, argv []string, version ...string) (path, text string, err error) {
	if path, err = sandbox.Find(argv[0], r.env); err != nil {
		return "", "", err
	}
	if len(version) == 0 {
		return path, "", nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", "", fmt.Errorf("look at %s: %w", path, err)
	}
	key := fmt.Sprint(path, argv[1:], info.ModTime().UnixNano(), info.Size())
	r.versions.Lock()
	defer r.versions.Unlock()
	if text, ok := r.versions.known[key]; ok {
		return path, text, nil
	}
	if text, err = r.version(ctx, append(append([]string{path}, argv[1:]...), version...)); err != nil {
		return path, "", err
	}
	r.versions.known[key] = text
	return path, text, nil
}

// versions remembers what programs said, for all runners of one machine.
type versions struct {
	sync.Mutex
	known map[string]string
}

func (r *Runner) version(ctx context.Context, argv []string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, versionLimit)
	defer cancel()
	var out bytes.Buffer
	p, err := r.opts.Host.Start(ctx, sandbox.Spec{
		ID:  "version-" + strings.Map(idRune, filepath.Base(argv[0])) + "-" + rand.Text(),
		Dir: os.TempDir(), Argv: argv, Env: r.env, Stdout: &out, Stderr: &out, OutputLimit: 4 << 10,
	})
	if err != nil {
		return "", fmt.Errorf("ask for the version: %w", err)
	}
	exit, err := p.Wait(ctx)
	if _, endErr := p.End(ctx); err == nil {
		err = endErr
	}
	line, _, _ := strings.Cut(strings.TrimSpace(Sanitize(out.String())), "\n")
	switch {
	case err != nil:
		return "", fmt.Errorf("%s does not tell its version: %w", argv[0], err)
	case exit.Code != 0:
		return "", fmt.Errorf("%s does not tell its version: %s: %s", argv[0], exit, line)
	}
	return line, nil
}

// idRune keeps what may stand in a run's id.
func idRune(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
		return r
	}
	return '-'
}

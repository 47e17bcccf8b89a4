package engine_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claudomator/claudomator/internal/work"
)

// A git that breaks down while the checkout is to follow its branch, more often than
// one landing tries: the checkout is brought along all the same. One left behind would
// look like a person's edits, and refuse every later landing.
func TestCheckoutFollowsThoughGitBreaksDown(t *testing.T) {
	w := newWorld(t, 4)
	left := filepath.Join(t.TempDir(), "left")
	w.program = filepath.Join(t.TempDir(), "git")
	script := fmt.Sprintf(`#!/bin/sh
case " $* " in
*" --dry-run "* | *" -n "*) ;;
*" read-tree -m -u "*)
	n=$(cat %[1]q 2>/dev/null || echo 0)
	if [ "$n" -gt 0 ]; then echo $((n-1)) >%[1]q; echo injected >&2; exit 128; fi ;;
esac
exec git "$@"
`, left)
	if err := os.WriteFile(w.program, []byte(script), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	w.stop()
	w.start()
	s := w.ready(small(), nil)
	const breakdowns = 4
	if err := os.WriteFile(left, fmt.Appendln(nil, breakdowns), 0o600); err != nil {
		t.Fatal(err)
	}
	s.must(work.ShipStory{})
	s.is(work.Deployed)
	if n, err := os.ReadFile(left); err != nil || strings.TrimSpace(string(n)) != "0" {
		t.Fatalf("git was to break down %d times, and %q are left (%v)", breakdowns, n, err)
	}
	if dirty := s.git("-C", s.repo, "status", "--porcelain"); dirty != "" {
		t.Errorf("the checkout was left behind:\n%s", dirty)
	}
}

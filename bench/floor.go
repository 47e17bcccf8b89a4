package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// commitOne is what the agent does, and the floor.
const commitOne = "echo x >f; git add f; git commit -qm x"

// repository makes one with a number of small files.
func repository(ctx context.Context, dir string, files int) error {
	folders := max(1, files/100)
	for i := range files {
		name := filepath.Join(dir, fmt.Sprintf("d%d", i%folders), fmt.Sprintf("file%d.txt", i))
		if i < folders {
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil { //nolint:gosec // as git makes them
				return fmt.Errorf("make a repository: %w", err)
			}
		}
		line := fmt.Sprintf("line of file %d\n", i)
		text := make([]byte, 0, 1200)
		for len(text)+len(line) < 1200 {
			text = append(text, line...)
		}
		if err := os.WriteFile(name, text, 0o644); err != nil { //nolint:gosec // as git makes them
			return fmt.Errorf("make a repository: %w", err)
		}
	}
	for _, args := range [][]string{
		{"init", "-q", "-b", "main", "."},
		{"config", "user.name", "bench"},
		{"config", "user.email", "bench@localhost"},
		{"config", "gc.auto", "0"},
		{"add", "."},
		{"commit", "-q", "-m", "first"},
		{"repack", "-a", "-d", "-q"},
	} {
		cmd := exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...)
		cmd.Env = gitEnviron()
		if text, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("make a repository: git %s: %w: %s", args[0], err, text)
		}
	}
	return nil
}

func gitEnviron() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C"}
}

// floor is the bare shell loop: it does one iteration for each line it reads.
type floor struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	wall samples
}

// A git that looks through the worktrees of a repository fails when it meets
// one that another git is just removing: loops on one repository meet each
// other so, and what failed is done again.
const floorLoop = `again() {
	for try in 1 2 3 4 5 6 7 8 9; do "$@" 2>/dev/null && return; done
	"$@"
}
while read -r i; do
	again git -C "$1" worktree add -q -B "$2-$i" "$1-$2-$i" HEAD || exit 1
	(cd "$1-$2-$i" && sh -c "$3") || exit 1
	again git -C "$1" worktree remove --force "$1-$2-$i" || exit 1
	echo done
done`

// startFloor starts the loop on a repository; worktrees lie beside it. Loops on
// one repository need different names.
func startFloor(repo, name string) (*floor, error) {
	f := &floor{}
	f.cmd = exec.Command("sh", "-c", floorLoop, "floor", repo, name, commitOne) //nolint:noctx // close ends it in order
	f.cmd.Env, f.cmd.Stderr = gitEnviron(), os.Stderr
	var err error
	if f.in, err = f.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start the floor: %w", err)
	}
	out, err := f.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start the floor: %w", err)
	}
	f.out = bufio.NewReader(out)
	if err := f.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the floor: %w", err)
	}
	return f, nil
}

// once does one iteration.
func (f *floor) once() error {
	began := time.Now()
	if _, err := fmt.Fprintln(f.in, len(f.wall)); err != nil {
		return fmt.Errorf("run the floor: %w", err)
	}
	if _, err := f.out.ReadString('\n'); err != nil {
		return fmt.Errorf("run the floor: it ended in the middle: %w", err)
	}
	f.wall = append(f.wall, time.Since(began))
	return nil
}

func (f *floor) cpu() (cpu, error) { return cpuOf(f.cmd.Process.Pid) }

func (f *floor) close() error {
	return errors.Join(f.in.Close(), f.cmd.Wait())
}

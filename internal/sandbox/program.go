package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// check refuses what could never run, before anything is created.
func (s *Spec) check() error {
	switch s.Level {
	case "", LevelNone:
	case LevelSandbox, LevelContainer:
		return fmt.Errorf("%w: %s", ErrLevelNotBuilt, s.Level)
	default:
		return fmt.Errorf("%w: unknown isolation level %q", ErrInvalid, s.Level)
	}
	if err := checkID(s.ID); err != nil {
		return err
	}
	if len(s.Argv) == 0 || s.Argv[0] == "" {
		return fmt.Errorf("%w: no program given", ErrInvalid)
	}
	for i, arg := range s.Argv {
		if strings.ContainsRune(arg, 0) {
			return fmt.Errorf("%w: argument %d contains a NUL byte", ErrInvalid, i)
		}
	}
	for _, entry := range s.Env {
		name, _, ok := strings.Cut(entry, "=")
		if !ok || name == "" || strings.ContainsRune(entry, 0) {
			return fmt.Errorf("%w: environment entry %q: want NAME=value without NUL bytes", ErrInvalid, name)
		}
	}
	info, err := os.Stat(s.Dir)
	switch {
	case !filepath.IsAbs(s.Dir):
		return fmt.Errorf("%w: working directory %q is not absolute", ErrInvalid, s.Dir)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: %q", ErrNoDirectory, s.Dir)
	case err != nil:
		return fmt.Errorf("%w: %w", ErrNoDirectory, err)
	case !info.IsDir():
		return fmt.Errorf("%w: %q is not a directory", ErrNoDirectory, s.Dir)
	}
	return nil
}

// checkID keeps ids safe as file names, cgroup names and marker values.
func checkID(id string) error {
	ok := id != "" && len(id) <= 128 && id[0] != '.'
	for _, r := range id {
		ok = ok && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.", r))
	}
	if !ok {
		return fmt.Errorf("%w: id %q", ErrInvalid, id)
	}
	return nil
}

// Find says which file a run with this environment would execute as name, or
// why none (ErrNoProgram, ErrNotExecutable). A name with a slash must be absolute.
func Find(name string, env []string) (path string, err error) {
	if name == "" || strings.Contains(name, "/") && !filepath.IsAbs(name) {
		return "", fmt.Errorf("%w: %q is neither a name nor an absolute path", ErrNoProgram, name)
	}
	return (&Spec{Argv: []string{name}, Env: env}).program()
}

// program resolves Argv[0] as the run itself would: in the run's PATH and
// directory, not in the server's.
func (s *Spec) program() (string, error) {
	name := s.Argv[0]
	if strings.Contains(name, "/") {
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(s.Dir, path)
		}
		return path, executable(path)
	}
	var blocked error
	for _, dir := range filepath.SplitList(s.lookup("PATH")) {
		if !filepath.IsAbs(dir) {
			continue // the workspace must not decide which program runs
		}
		path := filepath.Join(dir, name)
		err := executable(path)
		if err == nil {
			return path, nil
		}
		// A directory that may not be entered holds nothing for this run.
		if errors.Is(err, ErrNotExecutable) && !errors.Is(err, fs.ErrPermission) && blocked == nil {
			blocked = err
		}
	}
	if blocked != nil {
		return "", blocked
	}
	return "", fmt.Errorf("%w: %q is in no directory of PATH", ErrNoProgram, name)
}

func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("%w: %q", ErrNoProgram, path)
	case err != nil:
		return fmt.Errorf("%w: %w", ErrNotExecutable, err)
	case info.IsDir():
		return fmt.Errorf("%w: %q is a directory", ErrNotExecutable, path)
	case info.Mode().Perm()&0o111 == 0:
		return fmt.Errorf("%w: %q has no execute permission", ErrNotExecutable, path)
	}
	return nil
}

// lookup returns the last value of an environment variable, as execve's
// receivers commonly do.
func (s *Spec) lookup(name string) string {
	value := ""
	for _, entry := range s.Env {
		if rest, ok := strings.CutPrefix(entry, name+"="); ok {
			value = rest
		}
	}
	return value
}

// environ is the run's environment with exactly one marker.
func (s *Spec) environ() []string {
	env := make([]string, 0, len(s.Env)+1)
	for _, entry := range s.Env {
		if !strings.HasPrefix(entry, Marker+"=") {
			env = append(env, entry)
		}
	}
	return append(env, Marker+"="+s.ID)
}

// startError names what the kernel refused. By then the program was found and
// looked executable.
func (s *Spec) startError(path string, err error) error {
	switch {
	case errors.Is(err, syscall.E2BIG):
		return fmt.Errorf("%w: the largest is %s", ErrTooLarge, s.largest())
	case errors.Is(err, syscall.ENOENT):
		return fmt.Errorf("%w: %q exists, but the interpreter it names does not", ErrNoProgram, path)
	case errors.Is(err, syscall.ENOEXEC):
		return fmt.Errorf("%w: %q is neither a binary of this machine nor a script with a #! line", ErrNotExecutable, path)
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM):
		return fmt.Errorf("%w: %w", ErrNotExecutable, err)
	}
	return err
}

// largest names the biggest argument or variable, never its value: it may be
// a secret.
func (s *Spec) largest() string {
	size, name := 0, ""
	for i, arg := range s.Argv {
		if len(arg) > size {
			size, name = len(arg), fmt.Sprintf("argument %d", i)
		}
	}
	for _, entry := range s.Env {
		if len(entry) > size {
			key, _, _ := strings.Cut(entry, "=")
			size, name = len(entry), "environment variable "+key
		}
	}
	return fmt.Sprintf("%s with %d bytes", name, size)
}

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const cgroupPrefix = "claudomator-"

// findCgroup returns the directory below which runs get their own cgroup: this
// process's own place in the v2 hierarchy, if it may make children there.
// Nothing is assumed about where the hierarchy is mounted.
func findCgroup() (string, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", fmt.Errorf("%w: %w", errNoCgroup, err)
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", fmt.Errorf("%w: %w", errNoCgroup, err)
	}
	dir, err := cgroupDir(string(mounts), string(own))
	if err != nil {
		return "", err
	}
	return dir, tryCgroup(dir)
}

// cgroupDir finds our v2 cgroup from the texts of mountinfo and cgroup.
func cgroupDir(mountinfo, own string) (string, error) {
	path := ""
	for line := range strings.Lines(own) {
		if rest, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::"); ok {
			path = rest
		}
	}
	if path == "" || strings.HasPrefix(path, "/..") {
		return "", fmt.Errorf("%w: this process is in none that it can see", errNoCgroup)
	}
	for line := range strings.Lines(mountinfo) {
		before, after, ok := strings.Cut(line, " - ")
		fields := strings.Fields(before)
		if !ok || len(fields) < 5 || !strings.HasPrefix(after, "cgroup2 ") {
			continue
		}
		root, mount := unescape(fields[3]), unescape(fields[4])
		rel, err := filepath.Rel(root, path)
		if err == nil && rel != ".." && !strings.HasPrefix(rel, "../") {
			return filepath.Join(mount, rel), nil
		}
	}
	return "", fmt.Errorf("%w: not mounted", errNoCgroup)
}

// unescape undoes mountinfo's octal escapes ("\040" is a space).
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// tryCgroup makes and removes a child: only that proves the permission, and
// only a child shows whether the kernel has cgroup.kill (5.14).
func tryCgroup(dir string) error {
	// Placing a process needs write access to the common ancestor's list.
	if err := unix.Access(filepath.Join(dir, "cgroup.procs"), unix.W_OK); err != nil {
		return fmt.Errorf("%w: %s: %w", errNoCgroup, dir, err)
	}
	child, err := os.MkdirTemp(dir, cgroupPrefix+"probe-")
	if err != nil {
		return fmt.Errorf("%w: %w", errNoCgroup, err)
	}
	_, statErr := os.Stat(filepath.Join(child, "cgroup.kill"))
	if err := syscall.Rmdir(child); err != nil {
		return fmt.Errorf("%w: remove %s: %w", errNoCgroup, child, err)
	}
	if statErr != nil {
		return fmt.Errorf("%w: the kernel has no cgroup.kill", errNoCgroup)
	}
	return nil
}

// makeCgroup makes the run's cgroup and opens it for the clone call.
func makeCgroup(path string) (*os.File, error) {
	if err := os.Mkdir(path, 0o755); err != nil {
		return nil, fmt.Errorf("make cgroup: %w", err)
	}
	dir, err := os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		_ = syscall.Rmdir(path)
		return nil, fmt.Errorf("open cgroup: %w", err)
	}
	return dir, nil
}

// endCgroup kills everything in a cgroup and below, waits until it is empty
// and removes it. A missing one is ended already.
func endCgroup(ctx context.Context, path string) (int, error) {
	if removeCgroup(path) == nil {
		return 0, nil // the usual case: nothing was left
	}
	killed := countCgroup(path)
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		err := os.WriteFile(filepath.Join(path, "cgroup.kill"), []byte("1"), 0)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return killed, fmt.Errorf("%w: kill cgroup: %w", ErrNotEnded, err)
		}
		err = removeCgroup(path)
		if err == nil {
			return killed, nil
		}
		if pause(ctx, wait) != nil {
			return killed, fmt.Errorf("%w: %d left in cgroup: %w", ErrNotEnded, countCgroup(path), err)
		}
	}
}

// removeCgroup removes a cgroup and those a run made inside it. It fails while
// a process lives in any of them, which is the proof that none does.
func removeCgroup(path string) error {
	err := syscall.Rmdir(path)
	if err == nil || errors.Is(err, syscall.ENOENT) {
		return nil
	}
	entries, readErr := os.ReadDir(path)
	if readErr != nil {
		return err
	}
	for _, entry := range entries {
		if entry.IsDir() {
			if err := removeCgroup(filepath.Join(path, entry.Name())); err != nil {
				return err
			}
		}
	}
	if err := syscall.Rmdir(path); err != nil && !errors.Is(err, syscall.ENOENT) {
		return fmt.Errorf("remove cgroup: %w", err)
	}
	return nil
}

func countCgroup(path string) int {
	count := 0
	_ = filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			data, _ := os.ReadFile(filepath.Join(p, "cgroup.procs"))
			count += strings.Count(string(data), "\n")
		}
		return nil // a count for people; the proof is removeCgroup
	})
	return count
}

func placeIn(attr *syscall.SysProcAttr, group *os.File) {
	attr.UseCgroupFD, attr.CgroupFD = true, int(group.Fd())
}

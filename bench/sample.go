package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// samples are durations of one thing done many times.
type samples []time.Duration

// at is a quantile: 0.5 is the median.
func (s samples) at(q float64) time.Duration {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

func (s samples) p50() time.Duration { return s.at(0.50) }
func (s samples) p99() time.Duration { return s.at(0.99) }

// String is "p50 1.2 / p99 3.4 ms (n=100)".
func (s samples) String() string {
	return fmt.Sprintf("p50 %s / p99 %s ms (n=%d)", millis(s.p50()), millis(s.p99()), len(s))
}

// millis is a duration in milliseconds with three digits that mean something.
func millis(d time.Duration) string {
	return digits(float64(d) / float64(time.Millisecond))
}

func digits(v float64) string {
	switch {
	case v >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// cpu is processor time: of a process itself, and of the children it has
// reaped, with theirs.
type cpu struct{ own, reaped time.Duration }

func (c cpu) total() time.Duration { return c.own + c.reaped }
func (c cpu) minus(o cpu) cpu      { return cpu{c.own - o.own, c.reaped - o.reaped} }
func (c cpu) plus(o cpu) cpu       { return cpu{c.own + o.own, c.reaped + o.reaped} }
func (c cpu) by(n int) cpu         { return cpu{c.own / time.Duration(n), c.reaped / time.Duration(n)} }

// tick is the unit of /proc/PID/stat: the kernel keeps nanoseconds and shows
// hundredths of a second, so that differences over seconds are exact enough.
const tick = 10 * time.Millisecond

// cpuOf reads what a process has used so far.
func cpuOf(pid int) (cpu, error) {
	fields, err := statOf(pid)
	if err != nil {
		return cpu{}, err
	}
	var ticks [4]time.Duration // utime, stime, cutime, cstime
	for i := range ticks {
		n, err := strconv.ParseInt(fields[11+i], 10, 64)
		if err != nil {
			return cpu{}, fmt.Errorf("read processor time: %w", err)
		}
		ticks[i] = time.Duration(n) * tick
	}
	return cpu{own: ticks[0] + ticks[1], reaped: ticks[2] + ticks[3]}, nil
}

// statOf gives the fields of /proc/PID/stat from the state on.
func statOf(pid int) ([]string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, fmt.Errorf("read a process's figures: %w", err)
	}
	_, after, found := strings.Cut(string(text), ") ")
	fields := strings.Fields(after)
	if !found || len(fields) < 15 {
		return nil, errors.New("read a process's figures: they have another form")
	}
	return fields, nil
}

// exactCPU sums what the threads of a process have run, in nanoseconds. Threads
// that have ended are missing: it is for short spans of an idle process.
func exactCPU(pid int) (time.Duration, error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(files) == 0 {
		return 0, errors.Join(errors.New("the kernel tells nothing of threads"), err)
	}
	var sum time.Duration
	for _, file := range files {
		text, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("read a thread's figures: %w", err)
		}
		ran, _, _ := strings.Cut(string(text), " ")
		n, err := strconv.ParseInt(ran, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read a thread's figures: %w", err)
		}
		sum += time.Duration(n)
	}
	return sum, nil
}

// anonymous is a process's anonymous memory in bytes.
func anonymous(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("read a process's memory: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if value, found := strings.CutPrefix(line, "RssAnon:"); found {
			n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			return n << 10, err
		}
	}
	return 0, errors.New("the kernel tells nothing of anonymous memory")
}

// childrenOf counts the processes whose parent a process is.
func childrenOf(pid int) (int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0, fmt.Errorf("list processes: %w", err)
	}
	count := 0
	for _, e := range entries {
		child, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		fields, err := statOf(child)
		if err == nil && fields[1] == strconv.Itoa(pid) {
			count++
		}
	}
	return count, nil
}

func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	load, _, _ := strings.Cut(string(text), " ")
	return load
}

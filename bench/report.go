package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// verdict says whether a row's goal is met.
type verdict string

const (
	noGoal verdict = ""
	met    verdict = "yes"
	missed verdict = "**no**"
)

// within is the verdict on a figure that must not exceed a limit.
func within[N int64 | float64 | time.Duration](value, most N) verdict {
	if value <= most {
		return met
	}
	return missed
}

func both(a, b verdict) verdict {
	if a == met && b == met {
		return met
	}
	return missed
}

// row is one line of the report.
type row struct {
	what, goal, measured, ratio string
	met                         verdict
}

// report is the file that is written.
type report struct {
	head  []string
	parts []part
	loads [2]string
}

// part is what one section found, and the machine's load when it began.
type part struct {
	name, load string
	rows       []row
}

func newReport(ctx context.Context, b *bench) *report {
	r := &report{}
	r.loads[0] = loadAverage()
	line := func(format string, args ...any) { r.head = append(r.head, fmt.Sprintf(format, args...)) }
	line("- Date: %s", time.Now().UTC().Format(time.DateOnly))
	line("- Machine: %d cores, %s %s, kernel %s", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, kernel())
	line("- Tools: %s, %s", runtime.Version(), gitVersion(ctx))
	line("- Commit: %s", revision(ctx))
	if b.quick {
		line("- A quick run: it shows that everything can be measured; its figures mean little.")
	}
	if b.memory == "" {
		line("- No tmpfs was found: all was measured on the working disk.")
	}
	return r
}

func kernel() string {
	text, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(text))
}

func gitVersion(ctx context.Context) string {
	text, err := exec.CommandContext(ctx, "git", "--version").Output()
	if err != nil {
		return "no git"
	}
	return strings.TrimSpace(string(text))
}

// revision is the commit that is measured, with a mark where files differ.
func revision(ctx context.Context) string {
	text, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(text))
}

func (r *report) add(name, load string, rows []row) {
	r.parts = append(r.parts, part{name, load, rows})
}

func (r *report) end() { r.loads[1] = loadAverage() }

const notes = `
How to read it: the floor is a shell loop on a copy of the same repository, its iterations taking turns with the
server's: ` + "`git worktree add`" + `, ` + "`sh -c 'echo x >f; git add f; git commit'`" + `, ` + "`git worktree remove`" + `. It neither collects nor reviews.
Wall is what a client of the API sees, from the request until the event of the last state arrives. CPU is the server
itself ("own") and all processes it started and reaped (git and the agent; a floor iteration's processes likewise).
A latency is the time between the two events, whose times are taken before their commits. Goals are those of the
specification; a row without one is there for comparison.

Noise: the load above 1 that a machine shows while this runs is mostly the benchmark's own; what other work does to
the figures shows in the distance between p50 and p99, of the floor too. Ratios suffer less than figures. Some file
systems make the creation of files dearer after many were deleted: hence tmpfs, where a figure is compared.
`

// markdown is the report as it is written.
func (r *report) markdown() string {
	var b strings.Builder
	b.WriteString("# Benchmark results\n\nWritten by `make bench`; do not edit.\n\n")
	for _, line := range r.head {
		b.WriteString(line + "\n")
	}
	fmt.Fprintf(&b, "- Load (one minute): %s before, %s after\n", r.loads[0], r.loads[1])
	for _, p := range r.parts {
		fmt.Fprintf(&b, "\n## %s\n\nLoad when it began: %s\n\n| what | goal | measured | ratio | met |\n|---|---|---|---|---|\n", p.name, p.load)
		for _, r := range p.rows {
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", r.what, r.goal, r.measured, r.ratio, r.met)
		}
	}
	b.WriteString("\n## Notes\n" + notes)
	return b.String()
}

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	var o options
	out := flag.String("out", "bench/results.md", "where the report goes; - is standard output")
	only := flag.String("only", "", "sections to run, separated by commas (default: all)")
	flag.BoolVar(&o.quick, "quick", false, "small numbers: shows that everything can be measured")
	flag.StringVar(&o.binary, "bin", "bin/claudomator", "server binary, as make build makes it")
	flag.StringVar(&o.tmp, "tmp", "bench/tmp", "folder on the working disk")
	agent := flag.Int("as-agent", 0, "be an agent that prints so many lines a second for -for, instead")
	span := flag.Duration("for", time.Second, "how long -as-agent prints")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *agent > 0 {
		printLines(ctx, os.Stdout, *agent, *span)
		return
	}
	if *only != "" {
		o.only = strings.Split(*only, ",")
	}
	o.progress = os.Stderr
	if err := measure(ctx, o, *out); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop was called
	}
}

// measure runs the sections and writes the report, as far as it came.
func measure(ctx context.Context, o options, out string) error {
	b, err := newBench(o)
	if err != nil {
		return err
	}
	rep, failed := b.run(ctx)
	if err := b.close(); err != nil {
		failed = errors.Join(failed, err)
	}
	if out == "-" {
		_, err = os.Stdout.WriteString(rep.markdown())
	} else {
		err = os.WriteFile(out, []byte(rep.markdown()), 0o644) //nolint:gosec // a report is for everybody
	}
	return errors.Join(failed, err)
}

type options struct {
	quick    bool
	binary   string
	tmp      string
	only     []string
	progress io.Writer
}

// bench is one run, and where its data lies.
type bench struct {
	options
	dir    string // all that is made on the working disk
	memory string // the same on tmpfs; empty when there is none
}

// section is one group of figures, measured together.
type section struct {
	name string
	run  func(*bench, context.Context) ([]row, error)
	most time.Duration
}

func sections() []section {
	return []section{
		{"binary", (*bench).binarySize, time.Minute},
		{"cycle", (*bench).cycles, 5 * time.Minute},
		{"throughput", (*bench).throughput, 4 * time.Minute},
		{"latency", (*bench).latency, 3 * time.Minute},
		{"idle", (*bench).idle, 2 * time.Minute},
		{"database", (*bench).database, 8 * time.Minute},
		{"tree", (*bench).tree, 8 * time.Minute},
		{"story", (*bench).story, 8 * time.Minute},
		{"large", (*bench).large, 8 * time.Minute},
		{"streams", (*bench).streams, 2 * time.Minute},
		{"logs", (*bench).logs, 2 * time.Minute},
		{"runs", (*bench).runs, 3 * time.Minute},
	}
}

// newBench makes the folders.
func newBench(o options) (*bench, error) {
	for _, name := range o.only {
		if !slices.ContainsFunc(sections(), func(s section) bool { return s.name == name }) {
			return nil, fmt.Errorf("there is no section %q", name)
		}
	}
	b := &bench{options: o}
	var err error
	if b.binary, err = filepath.Abs(o.binary); err != nil {
		return nil, fmt.Errorf("find the server: %w", err)
	}
	if _, err := os.Stat(b.binary); err != nil {
		return nil, fmt.Errorf("find the server: %w (make build makes it)", err)
	}
	if b.tmp, err = filepath.Abs(o.tmp); err != nil {
		return nil, fmt.Errorf("find a folder: %w", err)
	}
	if err := os.MkdirAll(b.tmp, 0o755); err != nil { //nolint:gosec // as the checkout
		return nil, fmt.Errorf("make a folder: %w", err)
	}
	if b.dir, err = folder(b.tmp, "run"); err != nil {
		return nil, err
	}
	if b.memory, err = os.MkdirTemp("/dev/shm", "claudomator-bench-"); err != nil {
		b.memory = "" // another system; the report says so
	}
	return b, nil
}

func (b *bench) close() error {
	err := os.RemoveAll(b.dir)
	if b.memory != "" {
		err = errors.Join(err, os.RemoveAll(b.memory))
	}
	return err
}

// run measures section by section.
func (b *bench) run(ctx context.Context) (*report, error) {
	rep := newReport(ctx, b)
	var failed error
	for _, s := range sections() {
		if len(b.only) > 0 && !slices.Contains(b.only, s.name) {
			continue
		}
		if ctx.Err() != nil {
			return rep, errors.Join(failed, context.Cause(ctx))
		}
		before := loadAverage()
		began := time.Now()
		limited, cancel := context.WithTimeout(ctx, s.most)
		rows, err := s.run(b, limited)
		cancel()
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("section %s: %w", s.name, err))
			rows = append(rows, row{what: "section " + s.name, measured: "could not be measured to its end", met: missed})
		}
		rep.add(s.name, before, rows)
		_, _ = fmt.Fprintf(b.progress, "%-10s %5.1f s\n", s.name, time.Since(began).Seconds())
		for _, r := range rows {
			_, _ = fmt.Fprintf(b.progress, "    %s | %s | %s | %s\n", r.what, r.goal, r.measured, r.ratio)
		}
	}
	rep.end()
	return rep, failed
}

// pick is the number for a full run, or the one for a quick run.
func (b *bench) pick(full, quick int) int {
	if b.quick {
		return quick
	}
	return full
}

// place is where data lies.
type place struct{ name, dir string }

// places are tmpfs and the working disk.
func (b *bench) places() []place {
	if b.memory == "" {
		return []place{{"disk", b.dir}}
	}
	return []place{{"tmpfs", b.memory}, {"disk", b.dir}}
}

// fast is the place where the disk disturbs least.
func (b *bench) fast() string { return b.places()[0].dir }

// folder makes a folder of its own for a section.
func folder(dir, name string) (string, error) {
	made, err := os.MkdirTemp(dir, name+"-")
	if err != nil {
		return "", fmt.Errorf("make a folder: %w", err)
	}
	return made, nil
}

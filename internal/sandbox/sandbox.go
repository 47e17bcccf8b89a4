package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// Marker is the environment variable that carries the run's id. Every process
// of a run inherits it unless it clears its environment.
const Marker = "CLAUDOMATOR_EXECUTION_ID"

// Level says how far a run is kept from the rest of the machine.
type Level string

const (
	LevelNone      Level = "none"      // own session and cgroup; nothing is hidden or forbidden
	LevelSandbox   Level = "sandbox"   // namespaces and Landlock
	LevelContainer Level = "container" // one container of a Docker engine
)

// Levels returns every level, weakest first.
func Levels() []Level { return []Level{LevelNone, LevelSandbox, LevelContainer} }

// Why a run was not started, or not ended. Errors of this package wrap one of
// these where a caller can act on the difference.
var (
	ErrLevelNotBuilt = errors.New("isolation level is not built yet")
	ErrInvalid       = errors.New("run is not well formed")
	ErrNoDirectory   = errors.New("working directory does not exist")
	ErrNoProgram     = errors.New("program not found")
	ErrNotExecutable = errors.New("program cannot be executed")
	ErrTooLarge      = errors.New("arguments or environment too large for the system")
	ErrNotEnded      = errors.New("processes could not be ended")
)

// Spec describes one run.
type Spec struct {
	// ID names the run, uniquely on this machine: letters, digits, "-", "_"
	// and ".", at most 128, not beginning with ".".
	ID    string
	Level Level // empty means LevelNone
	Dir   string
	// Argv is program and arguments. A name without a slash is looked up in
	// the PATH of Env, one with a slash is taken relative to Dir.
	Argv []string
	// Env is the complete environment ("KEY=value"); nothing is inherited.
	// Start adds the marker.
	Env []string
	// Stdin is copied to the program; nil is end of file at once. A program
	// that does not read it is no error. A reader that may block for ever
	// must be an io.Closer: End closes it.
	Stdin io.Reader
	// Stdout and Stderr receive the output, each from one goroutine of its
	// own; nil discards. They must not block for ever.
	Stdout, Stderr io.Writer
	// MergeOutput sends stderr through Stdout's pipe, in the order written.
	MergeOutput bool
	// OutputLimit caps each stream, in bytes. Beyond it a notice is written
	// and only the last 64 KiB are kept and delivered at the end. 0 means
	// DefaultOutputLimit, negative no cap.
	OutputLimit int64
	// Gather lets a stream that trickles be read in portions: one that was read
	// often lately rests for up to 100 ms, or until the main process has ended,
	// before it is read again. For output that nobody answers.
	Gather bool
	// OutputGrace is how long Wait waits for output after the main process
	// has ended, when an orphan still holds the pipe. 0 means half a second.
	OutputGrace time.Duration
}

// DefaultOutputLimit is the cap of one output stream in bytes.
const DefaultOutputLimit = 64 << 20

const (
	defaultOutputGrace = 500 * time.Millisecond
	endLimit           = 10 * time.Second // until ErrNotEnded
	drainLimit         = 2 * time.Second  // for output after the tree has ended
	reapInterval       = 5 * time.Second  // how often orphans are reaped during a run
	gatherFree         = 5                // reads at once in a second, of a stream that gathers
	gatherMost         = 16 << 10         // bytes in a second, beyond which a stream does not trickle
	gatherRest         = 100 * time.Millisecond
)

// Options configure a Host.
type Options struct {
	// StateDir holds one small file per run that is not known to be over. It
	// is created if missing.
	StateDir string
	// NoCgroup makes the Host do without cgroups even where they work.
	NoCgroup bool
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Host starts and ends runs on this machine. It holds no runs itself: all it
// must remember is in its state directory. Safe for concurrent use.
type Host struct {
	reaping sync.Mutex
	reaped  time.Time // when orphans were last reaped

	dir     string
	now     func() time.Time
	machine *machine
}

// Open prepares the machine for runs. On Linux it makes this process a
// subreaper: orphans of its children become its children, where they are
// found and reaped.
func Open(opts Options) (*Host, error) {
	if opts.StateDir == "" {
		return nil, fmt.Errorf("open sandbox: state directory: %w", ErrInvalid)
	}
	if err := os.MkdirAll(opts.StateDir, 0o700); err != nil {
		return nil, fmt.Errorf("open sandbox: %w", err)
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	return &Host{dir: opts.StateDir, now: opts.Now, machine: openMachine(!opts.NoCgroup)}, nil
}

// reapOrphans reaps what any run has left, once for all runs that ask within
// the interval.
func (h *Host) reapOrphans() {
	h.reaping.Lock()
	defer h.reaping.Unlock()
	if now := h.now(); now.Sub(h.reaped) >= reapInterval/2 {
		h.reaped = now
		h.machine.reap("")
	}
}

// Report is what a level can do on this machine, for doctor and the run's
// record.
type Report struct {
	Level  Level  `json:"level"`
	Usable bool   `json:"usable"`
	Reason string `json:"reason,omitempty"` // why not usable
	// Ending names how a process tree is ended.
	Ending string `json:"ending,omitempty"`
	// Holds and Gaps are what a person may rely on, and what not.
	Holds []string `json:"holds,omitempty"`
	Gaps  []string `json:"gaps,omitempty"`
}

// Probe reports on every level, weakest first. It changes nothing.
func (h *Host) Probe(context.Context) []Report {
	none := h.machine.report()
	none.Level, none.Usable = LevelNone, true
	none.Holds = append([]string{"no controlling terminal", "environment given in full, nothing inherited"}, none.Holds...)
	none.Gaps = append([]string{"no isolation: reads, writes and connects like the server's user"}, none.Gaps...)
	reports := []Report{none}
	for _, level := range Levels()[1:] {
		reports = append(reports, Report{Level: level, Reason: ErrLevelNotBuilt.Error()})
	}
	return reports
}

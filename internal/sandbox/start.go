package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// Start begins a run. ctx bounds the start only; the run ends by itself or by
// End, which must be called in any case. On an error nothing runs and nothing
// is left behind.
func (h *Host) Start(ctx context.Context, spec Spec) (*Process, error) {
	p, err := h.start(ctx, spec)
	if err != nil {
		return nil, fmt.Errorf("start run %s: %w", spec.ID, err)
	}
	return p, nil
}

func (h *Host) start(ctx context.Context, spec Spec) (*Process, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	if err := spec.check(); err != nil {
		return nil, err
	}
	path, err := spec.program()
	if err != nil {
		return nil, err
	}
	record := Record{ID: spec.ID, Level: LevelNone, Started: h.now().UTC(), Boot: h.machine.boot}
	group, err := h.openGroup(&record)
	if err != nil {
		return nil, err
	}
	if group != nil {
		defer func() { _ = group.Close() }() // a folder's handle
	}
	p, err := h.launch(spec, path, &record, group)
	if err != nil {
		_, endErr := h.endTree(ctx, record, false)
		return nil, errors.Join(spec.startError(path, err), endErr, h.forget(spec.ID))
	}
	return p, nil
}

// openGroup records the run and makes its cgroup where there can be one. A
// cgroup that cannot be made (there is a limit on their number) does not stop
// the run: the search by marker remains.
func (h *Host) openGroup(record *Record) (*os.File, error) {
	record.Cgroup = h.machine.cgroupOf(record.ID)
	if err := h.reserve(*record); err != nil {
		return nil, err
	}
	if record.Cgroup == "" {
		return nil, nil
	}
	group, err := makeCgroup(record.Cgroup)
	if errors.Is(err, fs.ErrExist) {
		return nil, errors.Join(fmt.Errorf("%w: a cgroup of this id is left over; sweep it first", ErrInvalid), h.forget(record.ID))
	}
	if err != nil {
		record.Cgroup = ""
	}
	return group, nil
}

// launch connects the streams and starts the program. The caller cleans up
// cgroup and record on an error.
func (h *Host) launch(spec Spec, path string, record *Record, group *os.File) (*Process, error) {
	p := &Process{
		host:    h,
		grace:   spec.OutputGrace,
		gather:  spec.Gather,
		drained: make(chan struct{}),
		exited:  make(chan struct{}),
	}
	if p.grace == 0 {
		p.grace = defaultOutputGrace
	}
	p.cmd = &exec.Cmd{Path: path, Args: spec.Argv, Env: spec.environ(), Dir: spec.Dir}
	p.cmd.SysProcAttr = ownSession()
	childEnds, err := p.connect(&spec)
	defer closeAll(childEnds)
	if err == nil && group != nil {
		err = p.startIn(group, record)
	} else if err == nil {
		err = p.begin()
	}
	if err != nil {
		closeAll(p.parentEnds())
		return nil, err
	}
	record.PID = p.cmd.Process.Pid
	if self, err := h.machine.process(record.PID); err == nil {
		record.StartTime = self.start
	}
	p.record = *record
	// Marker and cgroup are recorded already and find the run by themselves,
	// so a full disk does not matter here.
	_ = h.save(p.record)
	p.watch(spec.Stdin)
	return p, nil
}

// startIn starts the program inside its cgroup from its first instruction on.
// Where the kernel refuses to place it there (old container engines forbid the
// call) it starts outside, and is found by marker.
func (p *Process) startIn(group *os.File, record *Record) error {
	c := p.cmd
	placeIn(c.SysProcAttr, group)
	err := p.begin()
	if err == nil || !refusesPlacing(err) {
		return err
	}
	if err := removeCgroup(record.Cgroup); err != nil {
		return err
	}
	record.Cgroup = ""
	p.cmd = again(c, ownSession())
	return p.begin()
}

// begin starts the program. One that is just being written (an update, or a file
// that a child about to start still holds open) is waited for, for a second.
func (p *Process) begin() error {
	for tries := 0; ; tries++ {
		err := p.cmd.Start()
		if !errors.Is(err, syscall.ETXTBSY) || tries == busyTries {
			return err
		}
		time.Sleep(busyPause)
		p.cmd = again(p.cmd, p.cmd.SysProcAttr)
	}
}

const (
	busyTries = 50
	busyPause = 20 * time.Millisecond
)

// again is the command of one that could not be started.
func again(c *exec.Cmd, attr *syscall.SysProcAttr) *exec.Cmd {
	return &exec.Cmd{Path: c.Path, Args: c.Args, Env: c.Env, Dir: c.Dir, Stdin: c.Stdin, Stdout: c.Stdout, Stderr: c.Stderr, SysProcAttr: attr}
}

// ownSession gives the run a session and process group without a terminal.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

func refusesPlacing(err error) bool {
	for _, errno := range []error{syscall.ENOSYS, syscall.EPERM, syscall.EACCES, syscall.EBUSY, syscall.EOPNOTSUPP, syscall.EINVAL} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// connect makes the pipes. It returns the program's ends, to be closed here
// once the program has them.
func (p *Process) connect(spec *Spec) (childEnds []*os.File, err error) {
	pipe := func() (r, w *os.File) {
		if err == nil {
			r, w, err = os.Pipe()
		}
		return r, w
	}
	if file, ok := spec.Stdin.(*os.File); ok {
		p.cmd.Stdin = file
	} else if spec.Stdin != nil {
		r, w := pipe()
		if err == nil {
			p.cmd.Stdin, p.stdin, p.source = r, w, spec.Stdin
			childEnds = append(childEnds, r)
		}
	}
	output := func(to io.Writer) *os.File {
		if to == nil {
			return nil
		}
		r, w := pipe()
		if err != nil {
			return nil
		}
		p.outputs = append(p.outputs, &output{from: r, to: newCapped(to, spec.OutputLimit)})
		childEnds = append(childEnds, w)
		return w
	}
	if w := output(spec.Stdout); w != nil {
		p.cmd.Stdout = w
		if spec.MergeOutput {
			p.cmd.Stderr = w
		}
	}
	if !spec.MergeOutput {
		if w := output(spec.Stderr); w != nil {
			p.cmd.Stderr = w
		}
	}
	return childEnds, err
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// output is one stream of the program on its way to a writer.
type output struct {
	from *os.File
	to   *capped
}

// copyOutput reads a stream to its end. Once the run is ending each read has a
// time limit, in case a stranger holds the pipe; a slow writer is not hurried.
func (p *Process) copyOutput(o *output, done *sync.WaitGroup) {
	defer done.Done()
	defer func() { _ = o.from.Close() }() // only read
	buf := make([]byte, 32<<10)
	rest := gather{now: p.host.now}
	for {
		n, err := o.from.Read(buf)
		if n > 0 {
			_, _ = o.to.Write(buf[:n])
		}
		if p.gather {
			rest.wait(n, p.exited)
		}
		if err != nil {
			break
		}
		if p.ending.Load() {
			_ = o.from.SetReadDeadline(p.host.now().Add(drainLimit))
		}
	}
	o.to.finish()
}

// gather spaces the reads of a stream that trickles: each wakes a goroutine and
// a chain of writers, which for a hundred talking agents is most of the work. A
// stream with much to say is read as fast as it comes: whoever writes it would
// wait at the full pipe.
type gather struct {
	now   func() time.Time
	since time.Time // when the second began in which reads and bytes are counted
	reads int
	bytes int
	heavy bool // the second before had much to say
}

// wait rests after a read of n bytes, if there were many small ones, unless done
// is closed.
func (g *gather) wait(n int, done <-chan struct{}) {
	if now := g.now(); now.Sub(g.since) >= time.Second {
		g.heavy = g.bytes > gatherMost
		g.since, g.reads, g.bytes = now, 0, 0
	}
	g.reads++
	g.bytes += n
	if g.reads <= gatherFree || g.heavy || g.bytes > gatherMost {
		return
	}
	timer := time.NewTimer(gatherRest)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}

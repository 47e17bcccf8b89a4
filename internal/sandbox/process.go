package sandbox

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Process is a started run. Its main process may end at any time; the run is
// over only when End has returned.
type Process struct {
	host   *Host
	record Record
	cmd    *exec.Cmd
	grace  time.Duration
	gather bool

	source  io.Reader // what stdin is copied from; nil when there is nothing to copy
	stdin   *os.File
	outputs []*output

	exited  chan struct{} // main process has ended; exit is set
	exit    Exit
	drained chan struct{} // every output has been read to its end
	ending  atomic.Bool
	workers sync.WaitGroup // everything but the outputs

	endLock sync.Mutex
	over    bool
	ended   Ended
}

// Exit is how the main process ended.
type Exit struct {
	Code   int            // exit status; -1 when ended by a signal
	Signal syscall.Signal // 0 when it exited by itself
}

// String is for people: "exit status 3" or "ended by signal: terminated".
func (e Exit) String() string {
	if e.Signal != 0 {
		return "ended by signal: " + e.Signal.String()
	}
	return fmt.Sprintf("exit status %d", e.Code)
}

// StopStep is one polite request to stop: a signal and how long to wait for
// the main process to follow it.
type StopStep struct {
	Signal syscall.Signal
	Group  bool // to the whole process group, as a terminal's Ctrl-C would
	Grace  time.Duration
}

// watch starts the run's goroutines. All of them end by the time End returns.
func (p *Process) watch(stdin io.Reader) {
	var readers sync.WaitGroup
	for _, o := range p.outputs {
		readers.Add(1)
		go p.copyOutput(o, &readers)
	}
	p.workers.Go(func() { readers.Wait(); close(p.drained) })
	p.workers.Go(p.waitMain)
	p.workers.Go(p.reapOrphans)
	if p.source != nil {
		p.workers.Go(func() {
			// A program that does not read its input is no fault.
			_, _ = io.Copy(p.stdin, stdin)
			_ = p.stdin.Close()
		})
	}
}

func (p *Process) waitMain() {
	_ = p.cmd.Wait() // the state says more than the error
	p.exit = Exit{Code: -1}
	if state := p.cmd.ProcessState; state != nil {
		p.exit.Code = state.ExitCode()
		if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			p.exit.Signal = ws.Signal()
		}
	}
	close(p.exited)
}

// reapOrphans keeps a long run that leaves many dead orphans from filling the
// process table.
func (p *Process) reapOrphans() {
	ticker := time.NewTicker(reapInterval)
	defer ticker.Stop()
	for {
		select {
		case <-p.exited:
			return
		case <-ticker.C:
			p.host.reapOrphans()
		}
	}
}

// PID is the main process, which leads the run's session and group.
func (p *Process) PID() int { return p.record.PID }

// Exited is closed when the main process has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Exit is how the main process ended, if it has.
func (p *Process) Exit() (Exit, bool) {
	select {
	case <-p.exited:
		return p.exit, true
	default:
		return Exit{}, false
	}
}

// Level is the isolation really used.
func (p *Process) Level() Level { return p.record.Level }

// Wait returns when the main process has ended and its output is complete, or
// the output grace is over because an orphan still holds a pipe. What the
// orphan writes until End is still delivered.
func (p *Process) Wait(ctx context.Context) (Exit, error) {
	select {
	case <-p.exited:
	case <-ctx.Done():
		return Exit{}, context.Cause(ctx)
	}
	timer := time.NewTimer(p.grace)
	defer timer.Stop()
	select {
	case <-p.drained:
	case <-timer.C:
	case <-ctx.Done():
	}
	return p.exit, nil
}

// Stop asks the main process to end, step by step, until it has or the steps
// are used up. It does not end the rest of the tree: End does.
func (p *Process) Stop(steps ...StopStep) {
	for _, step := range steps {
		select {
		case <-p.exited:
			return
		default:
		}
		if step.Group {
			_ = syscall.Kill(-p.record.PID, step.Signal)
		} else {
			_ = p.cmd.Process.Signal(step.Signal)
		}
		timer := time.NewTimer(step.Grace)
		select {
		case <-p.exited:
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// End ends whatever is left of the run, waits until it is gone, delivers the
// rest of its output and removes its record. It works although ctx has ended,
// and takes ten seconds at most, writers apart. After ErrNotEnded the record
// stays and End may be called again; after success further calls repeat the
// answer.
func (p *Process) End(ctx context.Context) (Ended, error) {
	p.endLock.Lock()
	defer p.endLock.Unlock()
	if p.over {
		return p.ended, nil
	}
	killed, err := p.host.endTree(ctx, p.record, false)
	p.ended.Killed += killed
	if err != nil {
		return p.ended, fmt.Errorf("end run %s: %w", p.record.ID, err)
	}
	p.ending.Store(true)
	for _, o := range p.outputs {
		_ = o.from.SetReadDeadline(p.host.now().Add(drainLimit))
	}
	p.closeInput()
	p.workers.Wait()
	for _, o := range p.outputs {
		if p.ended.Output == nil {
			p.ended.Output = o.to.err
		}
	}
	if err := p.host.forget(p.record.ID); err != nil {
		return p.ended, fmt.Errorf("end run %s: %w", p.record.ID, err)
	}
	p.over = true
	return p.ended, nil
}

// closeInput lets the copying of stdin end: its reader may wait for more.
func (p *Process) closeInput() {
	if p.source == nil {
		return
	}
	_ = p.stdin.Close()
	if closer, ok := p.source.(io.Closer); ok {
		_ = closer.Close()
	}
}

// parentEnds are this side's ends of the pipes.
func (p *Process) parentEnds() []*os.File {
	var ends []*os.File
	if p.stdin != nil {
		ends = append(ends, p.stdin)
	}
	for _, o := range p.outputs {
		ends = append(ends, o.from)
	}
	return ends
}

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// proc is one process as the system lists it. start tells two processes with
// the same id apart.
type proc struct {
	pid, ppid, session int
	start              uint64
	zombie             bool
}

// tree is what a run's processes are recognised by.
type tree struct {
	id    string // marker
	pid   int    // main process and session; 0 when unknown
	start uint64
}

// members picks the living processes of the run from a list of all: by marker,
// by session, and everything below those. This process and its ancestors are
// never among them: a server may itself run inside somebody's run.
func (t tree) members(all []proc, marked func(pid int, id string) bool) []proc {
	byPID := make(map[int]proc, len(all))
	for _, p := range all {
		byPID[p.pid] = p
	}
	protected := map[int]bool{0: true, 1: true}
	for pid := os.Getpid(); pid > 1 && !protected[pid]; pid = byPID[pid].ppid {
		protected[pid] = true
	}
	// A stranger now bearing the main process's id means the session is long
	// gone: an id is not reused while it names a session.
	if main, ok := byPID[t.pid]; ok && main.start != t.start {
		t.pid = 0
	}
	in := make(map[int]bool)
	for _, p := range all {
		if protected[p.pid] || p.zombie {
			continue
		}
		session := t.pid != 0 && (p.session == t.pid || p.pid == t.pid)
		if session || marked(p.pid, t.id) {
			in[p.pid] = true
		}
	}
	for grown := true; grown; {
		grown = false
		for _, p := range all {
			if in[p.ppid] && !in[p.pid] && !protected[p.pid] {
				in[p.pid], grown = true, true
			}
		}
	}
	var members []proc
	for _, p := range all {
		if in[p.pid] && !p.zombie {
			members = append(members, p)
		}
	}
	return members
}

// killFound ends the processes of the tree that can be found in the process
// list and returns how many there were. They are all stopped before the first
// is killed: a stopped process cannot fork, so nobody loses its parent, and
// with it the proof of belonging, in between.
func (m *machine) killFound(ctx context.Context, t tree) (int, error) {
	stopped := make(map[int]uint64)
	killed := make(map[int]uint64)
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		members, err := m.find(t)
		if err != nil {
			return len(killed), err
		}
		if len(members) == 0 {
			return len(killed), nil
		}
		grown := false
		for _, p := range members {
			if stopped[p.pid] != p.start {
				stopped[p.pid] = p.start
				grown = true
				m.signal(p, syscall.SIGSTOP)
			}
		}
		if grown && ctx.Err() == nil {
			continue
		}
		for _, p := range members {
			killed[p.pid] = p.start
			m.signal(p, syscall.SIGKILL)
		}
		if err := pause(ctx, wait); err != nil {
			return len(killed), fmt.Errorf("%w: %d left, one is process %d", ErrNotEnded, len(members), members[0].pid)
		}
		m.reap("")
	}
}

func (m *machine) find(t tree) ([]proc, error) {
	all, err := m.processes()
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	return t.members(all, m.marked), nil
}

// signal hits exactly the process that was listed: the handle is taken first
// and the start time compared through it afterwards.
func (m *machine) signal(p proc, sig syscall.Signal) {
	handle, err := os.FindProcess(p.pid)
	if err != nil {
		return
	}
	defer func() { _ = handle.Release() }()
	if now, err := m.process(p.pid); err == nil && now.start == p.start {
		_ = handle.Signal(sig) // gone is as good as ended; the caller looks again
	}
}

// pause waits, or says that ctx ended first.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// Ended says what the end of a tree took.
type Ended struct {
	// Killed counts the processes that were alive when the end began.
	Killed int
	// Output is the first error of an output writer, for a run ended by
	// Process.End.
	Output error
}

// endTree ends everything recorded of a run and proves it. thorough searches
// the whole process list even where a cgroup held the run.
func (h *Host) endTree(ctx context.Context, r Record, thorough bool) (int, error) {
	if r.Boot != h.machine.boot {
		return 0, nil
	}
	// Ending must work although the caller's context has ended: that is the
	// usual reason for it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endLimit)
	defer cancel()
	killed := 0
	if r.Cgroup != "" {
		n, err := endCgroup(ctx, r.Cgroup)
		killed += n
		if err != nil {
			return killed, err
		}
	}
	if thorough || r.Cgroup == "" || h.machine.reap(r.ID) {
		n, err := h.machine.killFound(ctx, tree{id: r.ID, pid: r.PID, start: r.StartTime})
		killed += n
		if err != nil {
			return killed, err
		}
	}
	return killed, nil
}

// Sweep ends every process of a run of a former life of the server, or of any
// run by its id, also when nothing is recorded of it. It returns when they are
// gone, or ErrNotEnded.
func (h *Host) Sweep(ctx context.Context, id string) (Ended, error) {
	if err := checkID(id); err != nil {
		return Ended{}, fmt.Errorf("sweep run: %w", err)
	}
	record := h.load(id)
	if record.Cgroup == "" {
		record.Cgroup = h.machine.cgroupOf(id) // perhaps the record was lost
	}
	killed, err := h.endTree(ctx, record, true)
	if err == nil {
		err = h.forget(id)
	}
	if err != nil {
		return Ended{Killed: killed}, fmt.Errorf("sweep run %s: %w", id, err)
	}
	return Ended{Killed: killed}, nil
}

var errNoCgroup = errors.New("no writable cgroup v2")

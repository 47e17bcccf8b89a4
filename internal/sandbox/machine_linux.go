package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// environLooks times environPause is how long a process may take to lay out
	// its environment; it is a matter of microseconds unless it is preempted.
	environLooks = 200
	environPause = 100 * time.Microsecond

	kernelThread = 0x00200000 // PF_KTHREAD of linux/sched.h
)

// machine is what the platform offers for finding and ending processes.
type machine struct {
	boot     string
	cgroup   string // directory for the runs' cgroups; empty: none
	noCgroup error  // why there is none
	handles  bool   // os.Process holds a pidfd for each child
}

func openMachine(useCgroup bool) *machine {
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	m := &machine{boot: strings.TrimSpace(string(boot)), noCgroup: fmt.Errorf("%w: switched off", errNoCgroup)}
	if useCgroup {
		if m.cgroup, m.noCgroup = findCgroup(); m.noCgroup != nil {
			m.cgroup = ""
		}
	}
	// Orphans come to this process instead of init. Refused (no kernel since
	// 3.4 does) they go there as always: the searches by marker still hold.
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		m.handles = self.WithHandle(func(uintptr) {}) == nil
		_ = self.Release()
	}
	return m
}

func (m *machine) report() Report {
	r := Report{Ending: "cgroup v2, then orphans by marker"}
	if m.cgroup != "" {
		r.Holds = []string{"every process of a run is ended, also after the server was killed, unless it moved itself to another cgroup and cleared its environment"}
		return r
	}
	r.Ending = "process list: session, marker and descent"
	r.Holds = []string{"processes that keep their environment, session or parent are ended, also after the server was killed"}
	r.Gaps = []string{
		m.noCgroup.Error(),
		"a process that leaves the session, loses its parent and clears its environment may survive",
	}
	return r
}

// cgroupOf names the cgroup a run gets; empty where there is none.
func (m *machine) cgroupOf(id string) string {
	if m.cgroup == "" {
		return ""
	}
	return filepath.Join(m.cgroup, cgroupPrefix+id)
}

// processes lists all processes. One that ends meanwhile is left out.
func (m *machine) processes() ([]proc, error) {
	names := list("/proc")
	all := make([]proc, 0, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if p, err := m.process(pid); err == nil {
			all = append(all, p)
		}
	}
	if len(all) == 0 {
		return nil, errors.New("/proc shows no process")
	}
	return all, nil
}

// list names the entries of a directory of /proc, unsorted.
func list(path string) []string {
	dir, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer func() { _ = dir.Close() }() // only read
	names, _ := dir.Readdirnames(-1)
	return names
}

// process reads what is needed of /proc/PID/stat.
func (m *machine) process(pid int) (proc, error) {
	fields, err := statFields(pid)
	if err != nil {
		return proc{}, err
	}
	const state, ppid, session, start = 0, 1, 3, 19 // fields 3, 4, 6 and 22 of proc(5)
	if len(fields) <= start {
		return proc{}, fmt.Errorf("read /proc/%d/stat: %d fields", pid, len(fields))
	}
	number := func(i int) int { n, _ := strconv.Atoi(string(fields[i])); return n }
	p := proc{pid: pid, ppid: number(ppid), session: number(session)}
	p.start, err = strconv.ParseUint(string(fields[start]), 10, 64)
	p.zombie = dead(fields[state])
	return p, err
}

// statFields reads /proc/PID/stat from its third field on. The command's name,
// in parentheses, may hold anything; what follows its last parenthesis is safe.
func statFields(pid int) ([][]byte, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return nil, err
	}
	return bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:]), nil
}

// marked says whether a process's environment carries the run's marker. One
// that may not be read belongs to somebody else.
//
// While a process executes a new program its environment reads as empty, until
// the kernel has laid it out: an empty one is believed only of a process that
// has none.
func (m *machine) marked(pid int, id string) bool {
	want := []byte(Marker + "=" + id + "\x00")
	for range environLooks {
		env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
		if err != nil {
			return false
		}
		if len(env) > 0 {
			return bytes.HasPrefix(env, want) || bytes.Contains(env, append([]byte{0}, want...))
		}
		if hasNoEnvironment(pid) {
			return false
		}
		time.Sleep(environPause)
	}
	return false
}

// hasNoEnvironment is true for a process started with an empty one, a dead one,
// and a thread of the kernel. One that is executing a new program gets its
// environment first and the address of its code after it.
func hasNoEnvironment(pid int) bool {
	fields, err := statFields(pid)
	const state, flags, code, envStart, envEnd = 0, 6, 23, 47, 48 // fields 3, 9, 26, 50, 51 of proc(5)
	if err != nil || len(fields) <= envEnd {
		return true
	}
	bits, _ := strconv.ParseUint(string(fields[flags]), 10, 64)
	executing := string(fields[code]) == "0" || !bytes.Equal(fields[envStart], fields[envEnd])
	return dead(fields[state]) || bits&kernelThread != 0 || !executing
}

func dead(state []byte) bool { return state[0] == 'Z' || state[0] == 'X' }

// children lists this process's own children, orphans of runs included.
func (m *machine) children() []int {
	var pids []int
	for _, task := range list("/proc/self/task") {
		data, _ := os.ReadFile("/proc/self/task/" + task + "/children")
		for field := range strings.FieldsSeq(string(data)) {
			if pid, err := strconv.Atoi(field); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// heldProcesses are the process ids this program holds a pidfd for.
func heldProcesses() map[int]bool {
	held := make(map[int]bool)
	for _, fd := range list("/proc/self/fd") {
		link, err := os.Readlink("/proc/self/fd/" + fd)
		if err != nil || !strings.Contains(link, "pidfd") {
			continue
		}
		info, _ := os.ReadFile("/proc/self/fdinfo/" + fd)
		for line := range strings.Lines(string(info)) {
			if rest, ok := strings.CutPrefix(line, "Pid:"); ok {
				if pid, err := strconv.Atoi(strings.TrimSpace(rest)); err == nil {
					held[pid] = true
				}
			}
		}
	}
	return held
}

// reap collects dead orphans, and only those: a child this program started is
// left to whoever waits for it. The difference is exact: os.Process holds a
// pidfd from a child's birth until it has been waited for, and nobody holds
// one for an orphan. Where there are no pidfds nothing is reaped.
//
// It also says whether a child with the run's marker lives. After the end of
// the run's cgroup that is an orphan outside of it, as programs that manage
// cgroups themselves (container engines) leave them.
func (m *machine) reap(id string) (stray bool) {
	var gone []int
	for _, pid := range m.children() {
		p, err := m.process(pid)
		switch {
		case err != nil:
		case p.zombie:
			gone = append(gone, pid)
		case !stray && id != "":
			stray = m.marked(pid, id)
		}
	}
	if len(gone) == 0 || !m.handles {
		return stray
	}
	ours := heldProcesses()
	for _, pid := range gone {
		for !ours[pid] {
			_, err := syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
			if !errors.Is(err, syscall.EINTR) {
				break
			}
		}
	}
	return stray
}

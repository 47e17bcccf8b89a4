package sandbox

import (
	"bytes"
	"context"
	"encoding/binary"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// machine is what macOS offers: a process list with sessions' groups and the
// environment of one's own processes. There are no cgroups and no subreapers.
type machine struct {
	boot     string
	cgroup   string // always empty
	noCgroup error
}

func openMachine(bool) *machine {
	m := &machine{noCgroup: errNoCgroup}
	if tv, err := unix.SysctlTimeval("kern.boottime"); err == nil {
		m.boot = strconv.FormatInt(tv.Sec, 10)
	}
	return m
}

func (m *machine) report() Report {
	return Report{
		Ending: "process list: group, marker and descent",
		Holds:  []string{"processes that keep their environment, group or parent are ended, also after the server was killed"},
		Gaps: []string{
			"macOS has no cgroups: a process that leaves the group, loses its parent and clears its environment may survive",
			"macOS hides the environment of its own protected programs, which then are found by group and descent only",
		},
	}
}

func (m *machine) cgroupOf(string) string { return "" }

// processes lists all processes. The process group stands in for the session,
// which macOS does not list: the main process leads both.
func (m *machine) processes() ([]proc, error) {
	infos, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil, os.NewSyscallError("sysctl kern.proc.all", err)
	}
	all := make([]proc, 0, len(infos))
	for i := range infos {
		all = append(all, fromKinfo(&infos[i]))
	}
	return all, nil
}

func (m *machine) process(pid int) (proc, error) {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return proc{}, os.NewSyscallError("sysctl kern.proc.pid", err)
	}
	return fromKinfo(info), nil
}

func fromKinfo(info *unix.KinfoProc) proc {
	const zombie = 5 // SZOMB of sys/proc.h
	started := info.Proc.P_starttime
	return proc{
		pid:     int(info.Proc.P_pid),
		ppid:    int(info.Eproc.Ppid),
		session: int(info.Eproc.Pgid),
		start:   uint64(started.Sec)*1e6 + uint64(started.Usec),
		zombie:  info.Proc.P_stat == zombie,
	}
}

// marked looks for the marker behind the arguments in kern.procargs2: a count,
// the program's path, the arguments, the environment, all ended by NUL.
func (m *machine) marked(pid int, id string) bool {
	data, err := unix.SysctlRaw("kern.procargs2", pid)
	if err != nil || len(data) < 4 {
		return false
	}
	args := int(binary.LittleEndian.Uint32(data))
	want := []byte(Marker + "=" + id)
	for i, field := range bytes.Split(data[4:], []byte{0}) {
		if i > args && bytes.Equal(field, want) {
			return true
		}
	}
	return false
}

// reap has nothing to do: orphans go to launchd.
func (m *machine) reap(string) (stray bool) { return false }

func makeCgroup(string) (*os.File, error) { return nil, errNoCgroup }

func removeCgroup(string) error { return nil }

func endCgroup(context.Context, string) (int, error) { return 0, nil }

func placeIn(*syscall.SysProcAttr, *os.File) {}

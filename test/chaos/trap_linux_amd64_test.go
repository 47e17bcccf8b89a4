package chaos_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// trap holds the server, and every git that it runs, at each change that they are
// about to make on the disk, and kills before one of them. The kernel asks the test
// about each such system call (seccomp): the product knows nothing of it. What agents
// write does not count: it is not theirs that the server must go on from.
type trap struct {
	at   int  // the change before which it kills; 0: it only counts
	both bool // a git that makes it is killed, too; else it outlives its server

	dir      string
	server   int // process
	listener int
	agents   map[int]bool // processes that are of a run, or not
	midway   bool         // in a transaction of the database
	last     string       // the file that was written last

	mu      sync.Mutex
	changes []string // in order
	sprung  chan struct{}
}

const (
	trapProgram = "CHAOS_TRAP_PROGRAM" // what this program becomes inside of a trap
	trapSocket  = "CHAOS_TRAP_SOCKET"  // where it hands over the kernel's questions; empty: it only tries
)

// trapped becomes the program that a test wants to trap; else it returns.
func trapped() {
	program, socket := os.Getenv(trapProgram), os.Getenv(trapSocket)
	if program == "" {
		return
	}
	runtime.LockOSThread() // the filter is this thread's, and that of what it becomes
	listener, err := filter()
	if err == nil && socket != "" {
		err = hand(socket, listener)
	}
	if err == nil && socket != "" {
		err = syscall.Exec(program, append([]string{program}, os.Args[1:]...), os.Environ())
	}
	if err == nil {
		os.Exit(0)
	}
	fmt.Fprintln(os.Stderr, "trap:", err)
	os.Exit(1)
}

// needTrap skips where the kernel lets nobody do this.
func needTrap(t *testing.T) {
	t.Helper()
	c := exec.CommandContext(t.Context(), self(t))
	c.Env = []string{trapProgram + "=try"}
	out, err := c.CombinedOutput()
	if err == nil {
		return
	}
	if os.Getenv("CLAUDOMATOR_CI") != "" {
		t.Fatalf("nothing may be skipped in CI: %v %s", err, out)
	}
	t.Skipf("system calls cannot be held here: %v %s", err, out)
}

func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// filter makes the kernel ask before each call that may change what is on the disk.
func filter() (listener int, err error) {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return 0, fmt.Errorf("renounce new privileges: %w", err)
	}
	calls := []uint32{
		unix.SYS_OPEN, unix.SYS_OPENAT, unix.SYS_WRITE, unix.SYS_PWRITE64, unix.SYS_FTRUNCATE,
		unix.SYS_RENAME, unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2, unix.SYS_LINK, unix.SYS_LINKAT, unix.SYS_SYMLINK, unix.SYS_SYMLINKAT,
		unix.SYS_MKDIR, unix.SYS_MKDIRAT, unix.SYS_RMDIR, unix.SYS_UNLINK, unix.SYS_UNLINKAT,
	}
	program := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}} // the call's number
	for i, call := range calls {
		program = append(program, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: call, Jt: uint8(len(calls) - i)})
	}
	program = append(program, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF})
	sum := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, uintptr(unsafe.Pointer(&sum)))
	if errno != 0 {
		return 0, fmt.Errorf("set a filter of system calls: %w", errno)
	}
	return int(fd), nil
}

// hand gives the listener to the test, by calls that are not held.
func hand(socket string, listener int) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.Connect(fd, &unix.SockaddrUnix{Name: socket})
	}
	if err == nil {
		err = unix.Sendmsg(fd, []byte{0}, unix.UnixRights(listener), nil, 0)
	}
	return err
}

// set starts the world's server inside of the trap.
func (tr *trap) set(w *world) {
	w.Helper()
	tr.dir, tr.agents, tr.sprung = w.dir, map[int]bool{}, make(chan struct{})
	short, err := os.MkdirTemp("", "trap") // a socket's path is short
	if err != nil {
		w.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(short) }()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(short, "s")})
	if err != nil {
		w.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	program := w.bin
	w.bin = self(w.T)
	tr.server = w.launch(trapProgram+"="+program, trapSocket+"="+filepath.Join(short, "s")).PID()
	w.bin = program
	if tr.listener, err = receive(l); err != nil {
		w.Fatalf("set the trap: %v", err)
	}
	over := make(chan struct{})
	go func() { defer close(over); tr.serve() }()
	w.Cleanup(func() { w.end(); <-over })
}

func receive(l *net.UnixListener) (listener int, err error) {
	if err := l.SetDeadline(time.Now().Add(limit)); err != nil {
		return 0, err
	}
	conn, err := l.AcceptUnix()
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }()
	rights := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := conn.ReadMsgUnix(make([]byte, 1), rights)
	if err != nil {
		return 0, err
	}
	messages, err := unix.ParseSocketControlMessage(rights[:n])
	if err != nil || len(messages) != 1 {
		return 0, fmt.Errorf("%d messages: %w", len(messages), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return 0, err
	}
	return fds[0], nil
}

// call and verdict are the kernel's seccomp_notif and seccomp_notif_resp.
type call struct {
	id         uint64
	pid, flags uint32
	number     int32
	arch       uint32
	ip         uint64
	args       [6]uint64
}

type verdict struct {
	id    uint64
	value int64
	err   int32
	flags uint32
}

const (
	receiveCall = 0xc0502100 // SECCOMP_IOCTL_NOTIF_RECV
	sendVerdict = 0xc0182101 // SECCOMP_IOCTL_NOTIF_SEND
)

// serve answers until nobody is left in the trap.
func (tr *trap) serve() {
	defer func() { _ = unix.Close(tr.listener) }()
	for {
		fds := []unix.PollFd{{Fd: int32(tr.listener), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, -1); errors.Is(err, unix.EINTR) {
			continue
		}
		if fds[0].Revents&unix.POLLIN == 0 {
			return
		}
		var c call
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(tr.listener), receiveCall, uintptr(unsafe.Pointer(&c))); errno != 0 {
			continue // who asked was killed meanwhile
		}
		tr.hold(c)
		v := verdict{id: c.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
		_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(tr.listener), sendVerdict, uintptr(unsafe.Pointer(&v))) // it may be dead
	}
}

// hold counts a change, and kills before the one that is meant.
func (tr *trap) hold(c call) {
	what := tr.change(c)
	if what == "" {
		return
	}
	pid := processOf(int(c.pid))
	if pid != tr.server && tr.ofRun(pid) {
		return
	}
	who := "server"
	if pid != tr.server {
		who = "git"
	}
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.changes = append(tr.changes, who+" "+strings.ReplaceAll(what, tr.dir+"/", ""))
	if len(tr.changes) != tr.at {
		return
	}
	close(tr.sprung)
	_ = syscall.Kill(tr.server, syscall.SIGKILL)
	if tr.both {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// disarm lets everything go on from now, and gives the changes so far.
func (tr *trap) disarm() []string {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.at = 0
	return slices.Clone(tr.changes)
}

// change describes what a call is about to change below the folder; empty: nothing.
// Of the writes to one file in a row the first alone counts, and of an object that is
// stored its rename: nobody has looked at it before.
func (tr *trap) change(c call) string {
	verb, path := tr.meant(c)
	again := verb == "write" && path == tr.last
	if tr.last = ""; verb == "write" {
		tr.last = path
	}
	_, err := os.Lstat(path)
	switch there := err == nil; {
	case !strings.HasPrefix(path, tr.dir+"/"), strings.HasPrefix(path, tr.dir+"/origin.git/"): // which is on another machine
	case filepath.Base(path) == "server.log", strings.HasSuffix(path, "-shm"):
	case verb == "make" && there, verb == "remove" && !there:
	case strings.Contains(path, "/objects/") && !strings.Contains(path, "/info/") && !strings.HasPrefix(verb, "rename"):
	case strings.HasSuffix(path, "-wal") && verb == "write":
		return tr.page(c)
	case !again:
		return verb + " " + path
	}
	return ""
}

// meant is what a call means to do to which path.
func (tr *trap) meant(c call) (verb, path string) {
	pid, at := int(c.pid), unix.AT_FDCWD
	named := func(dir, path int) string {
		if dir >= 0 {
			at = int(int32(c.args[dir])) //nolint:gosec // as the kernel reads it
		}
		return place(pid, at, text(pid, c.args[path]))
	}
	switch c.number {
	case unix.SYS_OPEN, unix.SYS_OPENAT:
		arg := int(c.number-unix.SYS_OPEN) / (unix.SYS_OPENAT - unix.SYS_OPEN) // openat has one argument before
		if flags := c.args[arg+1]; flags&unix.O_CREAT != 0 && flags&unix.O_TMPFILE != unix.O_TMPFILE {
			return "make", named(arg-1, arg)
		}
		return "", ""
	case unix.SYS_WRITE, unix.SYS_PWRITE64, unix.SYS_FTRUNCATE:
		path, _ = os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", pid, int32(c.args[0]))) //nolint:gosec // as the kernel reads it
		return "write", path
	case unix.SYS_RENAME, unix.SYS_LINK, unix.SYS_SYMLINK:
		return "rename to", named(-1, 1)
	case unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2, unix.SYS_LINKAT:
		return "rename to", named(2, 3)
	case unix.SYS_SYMLINKAT:
		return "rename to", named(1, 2)
	case unix.SYS_MKDIR:
		return "make", named(-1, 0)
	case unix.SYS_MKDIRAT:
		return "make", named(0, 1)
	case unix.SYS_UNLINKAT:
		return "remove", named(0, 1)
	}
	return "remove", named(-1, 0)
}

// page tells the first page that a transaction writes: what is killed later in it has
// not happened, either. A page's header is 24 bytes long, and its second number is 0
// but for the last page.
func (tr *trap) page(c call) string {
	if c.args[2] != 24 {
		return ""
	}
	first := !tr.midway
	header := peek(int(c.pid), c.args[1], 8)
	tr.midway = len(header) == 8 && bytes.Equal(header[4:], make([]byte, 4))
	if !first {
		return ""
	}
	return "transaction"
}

// ofRun is true for the processes of runs.
func (tr *trap) ofRun(pid int) bool {
	known, ok := tr.agents[pid]
	if !ok {
		environ, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		known = bytes.Contains(environ, []byte("CLAUDOMATOR_EXECUTION_ID="))
		tr.agents[pid] = known
	}
	return known
}

// place is a path of a process, in full.
func place(pid, at int, path string) string {
	if strings.HasPrefix(path, "/") {
		return filepath.Clean(path)
	}
	from := fmt.Sprintf("/proc/%d/cwd", pid)
	if at != unix.AT_FDCWD {
		from = fmt.Sprintf("/proc/%d/fd/%d", pid, at)
	}
	from, _ = os.Readlink(from)
	return filepath.Join(from, path)
}

// text reads a string of a process; it may end at the end of a page of its memory.
func text(pid int, at uint64) string {
	var all []byte
	for len(all) < unix.PathMax {
		here := at + uint64(len(all))
		part := peek(pid, here, int(min(256, 4096-here%4096))) //nolint:gosec // small
		if end := bytes.IndexByte(part, 0); end >= 0 || len(part) == 0 {
			return string(append(all, part[:max(end, 0)]...))
		}
		all = append(all, part...)
	}
	return string(all)
}

func peek(pid int, at uint64, size int) []byte {
	buf := make([]byte, size)
	local := []unix.Iovec{{Base: &buf[0], Len: uint64(size)}}
	n, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: uintptr(at), Len: size}}, 0)
	if err != nil {
		return nil
	}
	return buf[:n]
}

// processOf is the process of a thread.
func processOf(thread int) int {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", thread))
	for line := range strings.Lines(string(status)) {
		if id, ok := strings.CutPrefix(line, "Tgid:"); ok {
			n, _ := strconv.Atoi(strings.TrimSpace(id))
			return n
		}
	}
	return thread
}

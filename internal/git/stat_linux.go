package git

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// born returns when a file was made, in nanoseconds.
func born(path string, _ *syscall.Stat_t) int64 {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BTIME, &st)
	if err != nil || st.Mask&unix.STATX_BTIME == 0 {
		return 0
	}
	return st.Btime.Sec*1_000_000_000 + int64(st.Btime.Nsec)
}

func lstat(path string) (stamp, error) {
	var st syscall.Stat_t
	if err := syscall.Lstat(path, &st); err != nil {
		return stamp{}, err
	}
	return stamp{
		ctime: joinTime(st.Ctim.Sec, st.Ctim.Nsec), mtime: joinTime(st.Mtim.Sec, st.Mtim.Nsec),
		ino: uint32(st.Ino), size: uint32(st.Size), //nolint:gosec // as git truncates
		regular: st.Mode&syscall.S_IFMT == syscall.S_IFREG, link: st.Mode&syscall.S_IFMT == syscall.S_IFLNK,
		dir: st.Mode&syscall.S_IFMT == syscall.S_IFDIR, exec: st.Mode&0o100 != 0,
	}, nil
}

// dieWithParent has the kernel kill a process when the server is killed: it would
// otherwise go on writing where the server's next life already works.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

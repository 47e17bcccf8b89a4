package git

import "syscall"

// born returns when a file was made, in nanoseconds.
func born(_ string, st *syscall.Stat_t) int64 { return st.Birthtimespec.Nano() }

func lstat(path string) (stamp, error) {
	var st syscall.Stat_t
	if err := syscall.Lstat(path, &st); err != nil {
		return stamp{}, err
	}
	return stamp{
		ctime: joinTime(st.Ctimespec.Sec, st.Ctimespec.Nsec), mtime: joinTime(st.Mtimespec.Sec, st.Mtimespec.Nsec),
		ino: uint32(st.Ino), size: uint32(st.Size), //nolint:gosec // as git truncates
		regular: st.Mode&syscall.S_IFMT == syscall.S_IFREG, link: st.Mode&syscall.S_IFMT == syscall.S_IFLNK,
		dir: st.Mode&syscall.S_IFMT == syscall.S_IFDIR, exec: st.Mode&0o100 != 0,
	}, nil
}

// dieWithParent does nothing: this system cannot. A git process of a killed server
// ends when its work or its pipe does.
func dieWithParent(*syscall.SysProcAttr) {}

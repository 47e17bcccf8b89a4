package git

import "syscall"

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

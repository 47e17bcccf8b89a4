package git

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"strings"
)

// stamp is what a file system says about a file without its content being
// read. An agent can set times, but not the time of the last change (ctime).
type stamp struct {
	ctime, mtime       int64 // nanoseconds, seconds truncated to 32 bits as in an index
	ino, size          uint32
	regular, link, dir bool
	exec               bool
}

// same compares the fields an index keeps.
func (s stamp) same(o stamp) bool {
	return s.ctime == o.ctime && s.mtime == o.mtime && s.ino == o.ino && s.size == o.size
}

// indexEntry is one path of an index file.
type indexEntry struct {
	path, mode, hash string
	stage            int
	stamp            stamp
}

// parseIndex reads versions 2 to 4 of git's index. The file may come from an
// agent: every length is checked.
func parseIndex(data []byte) ([]indexEntry, error) {
	bad := fail(KindCorruptWorkspace, "the index is not readable")
	if len(data) < 12 || string(data[:4]) != "DIRC" {
		return nil, bad
	}
	version, count := binary.BigEndian.Uint32(data[4:]), binary.BigEndian.Uint32(data[8:])
	if version < 2 || version > 4 || int64(count)*62 > int64(len(data))+62*16 && version < 4 {
		return nil, bad
	}
	entries := make([]indexEntry, 0, min(int(count), len(data)/62+1))
	rest, last := data[12:], ""
	for range count {
		if len(rest) < 62 {
			return nil, bad
		}
		e := indexEntry{mode: octal(binary.BigEndian.Uint32(rest[24:])), hash: hex.EncodeToString(rest[40:60]), stamp: indexStamp(rest)}
		flags, size := binary.BigEndian.Uint16(rest[60:]), 62
		e.stage = int(flags>>12) & 3
		if flags&0x4000 != 0 {
			size = 64
		}
		if version == 4 {
			strip, n := offsetVarint(rest[min(size, len(rest)):])
			if n == 0 || strip > len(last) {
				return nil, bad
			}
			size += n
			e.path = last[:len(last)-strip]
		}
		if size > len(rest) {
			return nil, bad
		}
		name, _, ok := bytes.Cut(rest[size:], []byte{0})
		if !ok {
			return nil, bad
		}
		e.path += string(name)
		size += len(name) + 1
		if version < 4 {
			size = (size - 1 + 8) &^ 7
		}
		if size > len(rest) || e.path == "" {
			return nil, bad
		}
		rest, last = rest[size:], e.path
		entries = append(entries, e)
	}
	return entries, nil
}

func indexStamp(b []byte) stamp {
	u := func(at int) uint32 { return binary.BigEndian.Uint32(b[at:]) }
	return stamp{
		ctime: joinTime(int64(u(0)), int64(u(4))), mtime: joinTime(int64(u(8)), int64(u(12))),
		ino: u(20), size: u(36),
	}
}

func joinTime(sec, nsec int64) int64 { return int64(uint32(sec))*1_000_000_000 + nsec } //nolint:gosec // as git truncates

// octal gives a mode as trees write it.
func octal(mode uint32) string {
	switch mode {
	case 0o100644:
		return modeFile
	case 0o100755:
		return modeExec
	case 0o120000:
		return modeLink
	case 0o160000:
		return modeGitlink
	}
	return strings.TrimLeft(string([]byte{'0' + byte(mode>>15&7), '0' + byte(mode>>12&7), '0' + byte(mode>>9&7),
		'0' + byte(mode>>6&7), '0' + byte(mode>>3&7), '0' + byte(mode&7)}), "0")
}

// offsetVarint is the encoding of version 4's prefix lengths.
func offsetVarint(b []byte) (value, n int) {
	for n < len(b) && n < 4 {
		c := b[n]
		if n > 0 {
			value++
		}
		value = value<<7 | int(c&0x7f)
		n++
		if c&0x80 == 0 {
			return value, n
		}
	}
	return 0, 0
}

package git

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
)

// hash stores the contents of what differs, in the vault.
func (s *scanner) hash() error {
	for _, p := range s.suspects {
		if err := s.compare(p); err != nil {
			return err
		}
	}
	for _, p := range s.untracked {
		if err := s.add(p); err != nil {
			return err
		}
	}
	return s.convert()
}

func (s *scanner) compare(p string) error {
	mode, data, _, err := s.load(p)
	if err != nil {
		return err
	}
	tracked := s.wants[p]
	if data == nil { // too large to hold in memory
		hash, err := s.stream(p)
		if err == nil && (hash != tracked.hash || mode != tracked.mode) {
			s.edits[p] = edit{mode, hash}
		}
		return err
	}
	if objectName("blob", data) == tracked.hash && mode == tracked.mode {
		return nil
	}
	hash, err := s.ws.vault.writeObject("blob", data)
	if err != nil {
		return err
	}
	s.edits[p] = edit{mode, hash}
	return nil
}

func (s *scanner) add(p string) error {
	mode, data, size, err := s.load(p)
	if err != nil {
		if s.everything {
			s.unreadable = append(s.unreadable, p)
			return nil
		}
		return err
	}
	if !s.everything {
		if reason := holdReason(p, size, data[:min(len(data), 64<<10)]); reason != "" {
			s.hold(p, reason, size)
			return nil
		}
	}
	var hash string
	if data == nil {
		hash, err = s.stream(p)
	} else {
		hash, err = s.ws.vault.writeObject("blob", data)
	}
	s.edits[snapshotName(p)] = edit{mode, hash}
	return err
}

// snapshotName keeps a nested repository's .git in a form that trees may hold.
// Paths of commits never have such a part.
func snapshotName(p string) string {
	if !strings.Contains(p, ".git") {
		return p
	}
	parts := strings.Split(p, "/")
	for i, part := range parts {
		if strings.EqualFold(part, ".git") {
			parts[i] = "%2e" + part[1:]
		}
	}
	return strings.Join(parts, "/")
}

// load reads a link's text or a small file. data nil: a larger file.
func (s *scanner) load(p string) (mode string, data []byte, size int64, err error) {
	unreadable := func(err error) error {
		return fail(KindCorruptWorkspace, "read %s", Display(p)).because(err)
	}
	info, err := s.root.Lstat(p)
	if err != nil {
		return "", nil, 0, unreadable(err)
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		text, err := s.root.Readlink(p)
		if err != nil {
			return "", nil, 0, unreadable(err)
		}
		return modeLink, []byte(text), int64(len(text)), nil
	}
	mode = modeFile
	if info.Mode()&0o100 != 0 {
		mode = modeExec
	}
	f, err := s.openFile(p)
	if err != nil {
		return "", nil, 0, unreadable(err)
	}
	defer func() { _ = f.Close() }() // only read
	if info.Size() > largeFile {
		return mode, nil, info.Size(), nil
	}
	data, err = io.ReadAll(io.LimitReader(f, largeFile+1))
	if err != nil {
		return "", nil, 0, unreadable(err)
	}
	if data == nil {
		data = []byte{}
	}
	return mode, data, int64(len(data)), nil
}

func (s *scanner) openFile(p string) (*os.File, error) {
	f, err := s.root.OpenFile(p, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		_ = f.Close() // only read
		return nil, errors.Join(err, errors.New("not a regular file any more"))
	}
	return f, nil
}

func (s *scanner) stream(p string) (string, error) {
	f, err := s.openFile(p)
	if err != nil {
		return "", fail(KindCorruptWorkspace, "read %s", Display(p)).because(err)
	}
	defer func() { _ = f.Close() }() // only read
	info, err := f.Stat()
	if err != nil {
		return "", fail(KindCorruptWorkspace, "read %s", Display(p)).because(err)
	}
	return s.ws.vault.writeLoose("blob", info.Size(), f)
}

// convert lets git apply line-ending rules where .gitattributes may have some.
// No filter can run: filters need configuration, and the vault has none.
func (s *scanner) convert() error {
	if !s.attributes || s.everything || slices.ContainsFunc(s.special, isRules) {
		return nil
	}
	var paths []string
	var in bytes.Buffer
	for _, p := range sortedKeys(s.edits) {
		if m := s.edits[p].mode; m == modeFile || m == modeExec {
			paths = append(paths, p)
			in.WriteString(quotePath(p) + "\n")
		}
	}
	if len(paths) == 0 {
		return nil
	}
	out, err := s.ws.vault.git.run(s.ctx, command{
		args: []opt{"hash-object", "-w", "--stdin-paths"}, stdin: &in, env: s.ws.env(s.ws.index()), dir: s.ws.Dir,
	})
	hashes := strings.Fields(string(out))
	if err != nil || len(hashes) != len(paths) {
		return s.ctx.Err() // a rule that cannot be applied: the bytes as they are were stored already
	}
	for i, p := range paths {
		e := s.edits[p]
		e.hash = hashes[i]
		if s.edits[p] = e; s.wants[p].hash == e.hash && s.wants[p].mode == e.mode {
			delete(s.edits, p)
		}
	}
	return nil
}

// quotePath quotes a name for git's line-based inputs.
func quotePath(p string) string {
	const hexDigits = "01234567"
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(p) {
		switch c := p[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < 0x20 || c >= 0x7f:
			b.WriteString("\\" + string([]byte{hexDigits[c>>6], hexDigits[c>>3&7], hexDigits[c&7]}))
		default:
			b.WriteByte(c)
		}
	}
	return b.String() + `"`
}

func fileMode(st stamp) string {
	switch {
	case st.link:
		return modeLink
	case st.exec:
		return modeExec
	}
	return modeFile
}

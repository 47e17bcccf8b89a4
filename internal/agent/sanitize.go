package agent

import (
	"strings"
	"unicode/utf8"
)

// Sanitize makes foreign text safe to store, to send as JSON and to print on
// a terminal: valid UTF-8 (what is not becomes U+FFFD), no NUL, no terminal
// control sequences (colours, cursor, titles, links), no other control
// characters but tab and newline. A carriage return, with which programs
// redraw a line, becomes a newline: nothing of the text is lost.
func Sanitize(s string) string {
	if clean(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); {
		if s[i] == esc {
			i += escapeLen(s[i:])
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '\r' && strings.HasPrefix(s[i+size:], "\n"): // the newline follows
		case r == '\r':
			b.WriteByte('\n')
		case r == '\t' || r == '\n' || !control(r):
			b.WriteRune(r) // U+FFFD for an invalid byte
		}
		i += size
	}
	return b.String()
}

const esc = 0x1b

func control(r rune) bool { return r < 0x20 || r >= 0x7f && r < 0xa0 }

func clean(s string) bool {
	for _, r := range s {
		if r == utf8.RuneError || control(r) && r != '\t' && r != '\n' {
			return false
		}
	}
	return true
}

// escapeLen is the length of the escape sequence s begins with. One that is
// not complete counts as the escape character alone: it must not swallow the
// text behind it.
func escapeLen(s string) int {
	if len(s) < 2 {
		return 1
	}
	switch c := s[1]; {
	case c == '[': // control sequence: parameters, then one final byte
		for i := 2; i < len(s); i++ {
			if s[i] >= 0x40 && s[i] <= 0x7e {
				return i + 1
			}
			if s[i] < 0x20 || s[i] > 0x7e {
				break
			}
		}
	case strings.IndexByte("]PX^_", c) >= 0: // string ended by BEL or ESC \
		for i := 2; i < len(s); i++ {
			if s[i] == 0x07 {
				return i + 1
			}
			if s[i] == esc && i+1 < len(s) && s[i+1] == '\\' {
				return i + 2
			}
		}
	case c >= 0x20 && c <= 0x2f: // intermediate bytes, then one final byte
		for i := 2; i < len(s); i++ {
			if s[i] >= 0x30 && s[i] <= 0x7e {
				return i + 1
			}
			if s[i] < 0x20 || s[i] > 0x2f {
				break
			}
		}
	case c >= 0x30 && c <= 0x7e:
		return 2
	}
	return 1
}

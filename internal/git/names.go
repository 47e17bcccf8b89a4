package git

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

const zeroHash = "0000000000000000000000000000000000000000"

func isHash(s string) bool {
	if len(s) != 40 {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// ValidBranch says whether name can be a branch, by git's own rules and a
// length that fits in a file name with room for lock suffixes.
func ValidBranch(name string) error {
	if name == "HEAD" || strings.HasPrefix(name, "-") {
		return fail(KindInvalidRef, "%q cannot be a branch name", name)
	}
	return checkRef("refs/heads/" + name)
}

// checkRef implements git-check-ref-format for full names below refs/.
func checkRef(ref string) error {
	bad := fail(KindInvalidRef, "%q is not a legal name", ref).hint("use letters, digits, dots, dashes and single slashes")
	rest, ok := strings.CutPrefix(ref, "refs/")
	if !ok || !strings.Contains(rest, "/") || len(ref) > 1000 {
		return bad
	}
	if strings.Contains(ref, "..") || strings.Contains(ref, "@{") || strings.HasSuffix(ref, ".") || !utf8.ValidString(ref) {
		return bad
	}
	for _, c := range ref {
		if c < 0x20 || c == 0x7f || strings.ContainsRune(" ~^:?*[\\", c) {
			return bad
		}
	}
	for part := range strings.SplitSeq(ref, "/") {
		if part == "" || part[0] == '.' || strings.HasSuffix(part, ".lock") || len(part) > 240 {
			return bad
		}
	}
	return nil
}

// Display makes a path from a repository fit for people and JSON: what is not
// printable UTF-8 is escaped as git would, with backslashes.
func Display(path string) string {
	plain := true
	for i, r := range path {
		if r < 0x20 || r == 0x7f || r == '\\' && i == 0 || r == utf8.RuneError || bidi(r) {
			plain = false
			break
		}
	}
	if plain {
		return path
	}
	var b strings.Builder
	for i := 0; i < len(path); {
		r, n := utf8.DecodeRuneInString(path[i:])
		switch {
		case r == utf8.RuneError && n <= 1, r < 0x20, r == 0x7f:
			fmt.Fprintf(&b, `\%03o`, path[i])
		case r == '\\':
			b.WriteString(`\\`)
		case bidi(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
		i += n
	}
	return b.String()
}

// bidi reports the invisible characters that make text show in another order.
func bidi(r rune) bool {
	return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x200e || r == 0x200f
}

func displayPaths(paths []string) []string {
	shown := make([]string, len(paths))
	for i, p := range paths {
		shown[i] = Display(p)
	}
	return shown
}

// safePath says whether a path out of a tree or index may be joined to a
// directory: relative, clean, without ".git" in any spelling.
func safePath(p string) bool {
	if p == "" || strings.ContainsRune(p, 0) {
		return false
	}
	for part := range strings.SplitSeq(p, "/") {
		if part == "" || part == "." || part == ".." || strings.EqualFold(part, ".git") {
			return false
		}
	}
	return true
}

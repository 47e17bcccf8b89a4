package cli

import (
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// columns is how many columns a terminal needs for text.
func columns(text string) int {
	n := 0
	for _, r := range text {
		n += columnsOf(r)
	}
	return n
}

func columnsOf(r rune) int {
	if unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) {
		return 0
	}
	if kind := width.LookupRune(r).Kind(); kind == width.EastAsianWide || kind == width.EastAsianFullwidth {
		return 2
	}
	return 1
}

// cut shortens text to most columns.
func cut(text string, most int) string {
	if columns(text) <= most {
		return text
	}
	if most < 1 {
		return ""
	}
	n := 0
	for i, r := range text {
		if n += columnsOf(r); n > most-1 {
			return text[:i] + "…"
		}
	}
	return text
}

// cutFront shortens a path to most columns: its end says more than its beginning.
func cutFront(text string, most int) string {
	runes, n := []rune(text), 0
	if columns(text) <= most {
		return text
	}
	for i := len(runes) - 1; i >= 0; i-- {
		if n += columnsOf(runes[i]); n > most-1 {
			return "…" + string(runes[i+1:])
		}
	}
	return text
}

// pad fills text up with blanks to so many columns.
func pad(text string, to int) string {
	return text + strings.Repeat(" ", max(to-columns(text), 0))
}

// wrap breaks one line between words, so that no part needs more than most
// columns; most 0 leaves it whole. What follows the first part is indented as
// the line is, deeper behind the mark of a list. A word that fits nowhere is cut
// through.
func wrap(line string, most int) []string {
	line = strings.TrimRight(line, " ")
	if most <= 0 || columns(line) <= most {
		return []string{line}
	}
	const leastRoom = 8
	hang := indentation(line)
	if columns(hang) > most-leastRoom {
		hang, line = "", strings.TrimLeft(line, " ")
	}
	var out []string
	indent, from := "", len(hang)
	for line != "" {
		at := breakAt(line, from, most-columns(indent))
		out = append(out, strings.TrimRight(indent+line[:at], " "))
		line = strings.TrimLeft(line[at:], " ")
		indent, from = hang, 0
	}
	return out
}

// breakAt is the index at which the rest of a line goes to the next one: behind
// the last blank that fits, else where the columns are used up.
func breakAt(line string, from, most int) int {
	used, blank := 0, 0
	for i, r := range line {
		if used += columnsOf(r); used > most && r != ' ' {
			switch {
			case blank > from:
				return blank
			case i > from:
				return i
			}
		}
		if r == ' ' && i >= from {
			blank = i + 1
		}
	}
	return len(line)
}

// indentation is the blanks that stand under a line's own text: its indent, and
// the width of the mark of a list ("- ", "* ", "12. ").
func indentation(line string) string {
	text := strings.TrimLeft(line, " ")
	n := len(line) - len(text)
	mark, _, found := strings.Cut(text, " ")
	digits := strings.TrimRight(mark, ".)")
	isNumber := digits != "" && digits != mark && strings.Trim(digits, "0123456789") == ""
	box := ""
	if strings.HasPrefix(text, "[") && len(text) > 4 && text[2:4] == "] " { // "[x] ", "[ ] "
		box = text[:4]
	}
	switch {
	case box != "":
		n += len(box)
	case found && (strings.Contains("- * • · ? ! ✓ ✗", mark) || isNumber):
		n += columns(mark) + 1
	}
	return strings.Repeat(" ", n)
}

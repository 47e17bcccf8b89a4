package cli

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
)

// page collects what people read, so that it is written at once or not at all.
type page struct {
	text  strings.Builder
	color bool
	ascii bool // trees are drawn without box characters
	width int  // columns; 0: no limit
	now   time.Time
}

func (s *shell) page() *page {
	p := &page{now: s.Now(), color: s.colors(), ascii: !s.unicode()}
	if s.Terminal && s.Width != nil {
		p.width = s.Width()
	}
	return p
}

// colors: a wish in the environment counts, else what the terminal can do.
func (s *shell) colors() bool {
	switch forced := s.env("CLICOLOR_FORCE"); {
	case s.env("NO_COLOR") != "":
		return false
	case forced != "" && forced != "0":
		return true
	}
	return s.Terminal && s.env("CLICOLOR") != "0" && s.env("TERM") != "dumb"
}

// unicode is false where the locale names another character set than UTF-8.
func (s *shell) unicode() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if locale := strings.ToLower(s.env(name)); locale != "" {
			return strings.Contains(locale, "utf-8") || strings.Contains(locale, "utf8")
		}
	}
	return true // nothing is said: most terminals are
}

// show prints an answer: the value itself for programs, or what text writes
// for people.
func (s *shell) show(value any, text func(*page)) error {
	if s.format == jsonFormat {
		return encode(s.Out, value)
	}
	p := s.page()
	text(p)
	return s.flush(p)
}

func (s *shell) flush(p *page) error {
	if _, err := io.WriteString(s.Out, p.text.String()); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	p.text.Reset()
	return nil
}

// list is a slice that is an array in JSON also when it is empty.
func list[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}

func (p *page) line(format string, args ...any) {
	fmt.Fprintf(&p.text, format+"\n", args...)
}

// paragraph prints foreign text of several lines, wrapped between words.
func (p *page) paragraph(color, indent, text string) {
	most := 0
	if p.width > 0 {
		most = max(p.width-columns(indent), 10)
	}
	for part := range strings.SplitSeq(strings.TrimRight(text, " \n\t"), "\n") {
		for _, line := range wrap(inertLine(part), most) {
			p.line("%s", strings.TrimRight(indent+p.style(color, line), " "))
		}
	}
}

// field prints a named value, if there is one.
func (p *page) field(name, value string) {
	const name13 = 13
	if value == "" {
		return
	}
	most := 0
	if p.width > 0 {
		most = max(p.width-name13-1, 10)
	}
	for _, line := range wrap(inert(value), most) {
		p.line("%s %s", p.style(dim, pad(name, name13)), line)
		name = ""
	}
}

// block prints a text of several lines under a heading, at most a screen of it.
func (p *page) block(heading, text string) {
	const most = 40
	text = strings.TrimRight(text, " \n\t")
	if text == "" {
		return
	}
	p.heading(heading)
	lines := strings.Split(text, "\n")
	p.paragraph("", "  ", strings.Join(lines[:min(most, len(lines))], "\n"))
	if len(lines) > most {
		p.line("  … %d more lines: -o json has them all", len(lines)-most)
	}
}

func (p *page) heading(text string) {
	p.line("\n%s", p.style(bold, text))
}

// table prints rows in columns as wide as they need. Where the terminal is too
// narrow, the last column is cut, then the middle ones are, and then those just
// before the last are left out. Columns of states are coloured.
func (p *page) table(indent string, header []string, rows [][]string) {
	all := append([][]string{header}, rows...)
	for _, row := range all {
		for i := range row {
			row[i] = inert(row[i])
		}
	}
	widths := p.fit(all, columns(indent))
	last := len(header) - 1
	for n, row := range all {
		var b strings.Builder
		b.WriteString(indent)
		for i, text := range row {
			if widths[i] < 0 {
				continue
			}
			short := cut(text, widths[i])
			if i == last {
				b.WriteString(p.cell(n, header[i], text, short))
				break
			}
			b.WriteString(p.cell(n, header[i], text, pad(short, widths[i])) + "  ")
		}
		p.line("%s", strings.TrimRight(b.String(), " "))
	}
}

// fit gives each column its width; below zero it is left out.
func (p *page) fit(all [][]string, indent int) []int {
	const leastLast, leastMiddle, gap = 16, 9, 2 // 9: COMPLETED
	last := len(all[0]) - 1
	widths := make([]int, last+1)
	for _, row := range all {
		for i, text := range row {
			widths[i] = max(widths[i], columns(text))
		}
	}
	if p.width == 0 {
		return widths
	}
	excess := func() int {
		sum := indent + gap*last - p.width
		for _, w := range widths {
			sum += max(w, -gap)
		}
		return sum
	}
	shrink := func(i, least int) {
		if n := excess(); n > 0 && widths[i] > least {
			widths[i] = max(widths[i]-n, least)
		}
	}
	shrink(last, leastLast)
	for i := last - 1; i > 0; i-- {
		shrink(i, leastMiddle)
	}
	for i := last - 1; i > 0 && excess() > 0; i-- {
		widths[i] = -gap
	}
	if natural := widths[last]; excess() <= 0 { // what was left out has made room
		for _, row := range all {
			natural = max(natural, columns(row[last]))
		}
		widths[last] = min(natural, widths[last]-excess())
	}
	shrink(last, 1)
	return widths
}

func (p *page) cell(row int, column, text, padded string) string {
	switch {
	case row == 0:
		return p.style(dim, padded)
	case column == "STATE" || column == "STATUS" || column == "OUTCOME":
		return p.style(colorOf(text), padded)
	}
	return padded
}

// The SGR codes that are used; "" leaves text as it is.
const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

func (p *page) style(code, text string) string {
	if !p.color || code == "" || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// uncolored is a text without the codes of style.
func uncolored(text string) string {
	var out strings.Builder
	for {
		before, after, found := strings.Cut(text, "\x1b[")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		_, text, _ = strings.Cut(after, "m")
	}
}

// colorOf is the colour of a state word.
func colorOf(word string) string {
	switch strings.ToLower(word) {
	case "completed", "success", "landed", "approved", "ok", "deployed", "passed":
		return green
	case "running", "in_progress", "validating", "shipping":
		return cyan
	case "ready", "blocked", "question", "conflicted", "warn", "draft", "review_ready", "shippable", "asks":
		return yellow
	case "failed", "timed_out", "budget_exceeded", "lost", "refused", "rejected", "silent", "fail", "needs_fix", "deploy_failed", "no verdict":
		return red
	case "pending", "queued", "cancelled", "aborted", "nothing_to_land", "dropped":
		return dim
	}
	return ""
}

// inert makes foreign text safe to print on one line of a terminal.
func inert(text string) string { return strings.Map(inertRune, text) }

// inertLine is inert, with tabs as four blanks, for text that keeps its shape.
func inertLine(text string) string {
	return strings.Map(inertRune, strings.ReplaceAll(strings.TrimSuffix(text, "\r"), "\t", "    "))
}

// inertRune replaces control characters, and those that reorder what is read.
func inertRune(r rune) rune {
	switch {
	case r == '\n' || r == '\t' || r == '\r':
		return ' '
	case unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r):
		return unicode.ReplacementChar
	}
	return r
}

// shorten gives a beginning of each id that no other one on the page has.
func shorten(ids []string) func(string) string {
	const least = 8 // of 16 characters: 40 bits
	length := least
	for length < 64 {
		seen := map[string]string{}
		unique := true
		for _, id := range ids {
			short := head(id, length)
			if other, known := seen[short]; known && other != id {
				unique = false
			}
			seen[short] = id
		}
		if unique {
			break
		}
		length++
	}
	return func(id string) string { return head(id, length) }
}

func head(text string, most int) string { return text[:min(len(text), most)] }

// ago tells how long ago (or in how long) something is.
func (p *page) ago(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	d := p.now.Sub(at)
	switch {
	case d < -time.Second:
		return "in " + span(-d)
	case d < time.Second:
		return "now"
	}
	return span(d) + " ago"
}

// span is a duration in its largest unit.
func span(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 2*day:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d/day))
}

// exact is a duration as it can be given again: 30m, not 30m0s.
func exact(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

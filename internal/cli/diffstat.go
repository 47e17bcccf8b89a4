package cli

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/claudomator/claudomator/internal/app"
)

// fileStat is what a patch does to one file.
type fileStat struct {
	Path       string `json:"path"`
	Insertions int    `json:"insertions"`
	Deletions  int    `json:"deletions"`
	Binary     bool   `json:"binary,omitempty"`
}

// diffstat counts the lines of a git patch while it is written to it.
type diffstat struct {
	files []fileStat

	rest     []byte // of a line that is not complete, its beginning
	old, new int    // lines of the hunk that are still to come
}

// readStat counts what a task changed.
func readStat(ctx context.Context, api app.API, ref string) (*diffstat, error) {
	stat := &diffstat{}
	if err := api.TaskDiff(ctx, ref, stat); err != nil {
		return nil, err
	}
	stat.line(string(stat.rest))
	return stat, nil
}

// Write takes a piece of the patch.
func (d *diffstat) Write(data []byte) (int, error) {
	const most = 4 << 10 // of a line only the beginning is looked at
	written := len(data)
	for {
		i := bytes.IndexByte(data, '\n')
		if i < 0 {
			d.rest = append(d.rest, data[:min(len(data), max(most-len(d.rest), 0))]...)
			return written, nil
		}
		d.line(string(append(d.rest, data[:min(i, max(most-len(d.rest), 0))]...)))
		d.rest, data = d.rest[:0], data[i+1:]
	}
}

func (d *diffstat) line(text string) {
	if d.old > 0 || d.new > 0 {
		d.changed(text)
		return
	}
	if strings.HasPrefix(text, "diff --git ") {
		d.files = append(d.files, fileStat{Path: pathOf(text[strings.LastIndex(text, " b/")+1:])})
		return
	}
	if len(d.files) == 0 {
		return
	}
	file := &d.files[len(d.files)-1]
	switch {
	case strings.HasPrefix(text, "@@ "):
		d.old, d.new = hunkSize(text)
	case strings.HasPrefix(text, "+++ ") && text != "+++ /dev/null":
		file.Path = pathOf(text[len("+++ "):])
	case strings.HasPrefix(text, "--- ") && text != "--- /dev/null":
		file.Path = pathOf(text[len("--- "):])
	case strings.HasPrefix(text, "rename to "):
		file.Path = pathOf("b/" + text[len("rename to "):])
	case strings.HasPrefix(text, "Binary files ") || text == "GIT binary patch":
		file.Binary = true
	}
}

// changed counts one line of a hunk.
func (d *diffstat) changed(text string) {
	file := &d.files[len(d.files)-1]
	switch {
	case strings.HasPrefix(text, "+"):
		file.Insertions++
		d.new--
	case strings.HasPrefix(text, "-"):
		file.Deletions++
		d.old--
	case strings.HasPrefix(text, `\`): // no newline at the end
	default:
		d.old--
		d.new--
	}
}

// hunkSize reads "@@ -A,OLD +B,NEW @@"; a size that is left out is 1.
func hunkSize(text string) (old, new int) {
	size := func(sign, field string) int {
		numbers, found := strings.CutPrefix(field, sign)
		_, count, given := strings.Cut(numbers, ",")
		if !given {
			count = "1"
		}
		n, err := strconv.Atoi(count)
		if !found || err != nil {
			return 0
		}
		return n
	}
	fields := strings.Fields(text)
	if len(fields) < 3 {
		return 0, 0
	}
	return size("-", fields[1]), size("+", fields[2])
}

// pathOf is a path of a patch without its side: a/x, b/x, or quoted as in C.
func pathOf(text string) string {
	text = strings.TrimRight(text, "\t\r")
	if strings.HasPrefix(text, `"`) {
		if plain, err := strconv.Unquote(text); err == nil {
			text = plain
		}
	}
	if len(text) > 2 && (text[:2] == "a/" || text[:2] == "b/") {
		return text[2:]
	}
	return text
}

// diffstat prints how many lines of which files, the first twenty.
func (p *page) diffstat(d *diffstat) {
	const most = 20
	if len(d.files) == 0 {
		return
	}
	more, less, widest := 0, 0, 0
	for i, f := range d.files {
		more, less = more+f.Insertions, less+f.Deletions
		if i < most {
			widest = max(widest, columns(inert(f.Path)))
		}
	}
	const room = 14 // of the counts
	if p.width > 0 {
		widest = min(widest, max(p.width-room-2, 10))
	}
	p.heading(fmt.Sprintf("%s changed", count(len(d.files), "file")) + p.counts(more, less))
	for i, f := range d.files {
		if i == most {
			p.line("  %s", p.style(dim, "… "+count(len(d.files)-most, "more file")))
			return
		}
		counts := p.counts(f.Insertions, f.Deletions)
		if f.Binary {
			counts = "  " + p.style(dim, "binary")
		}
		p.line("  %s%s", pad(cutFront(inert(f.Path), widest), widest), counts)
	}
}

func (p *page) counts(more, less int) string {
	return "  " + p.style(green, "+"+strconv.Itoa(more)) + " " + p.style(red, "−"+strconv.Itoa(less))
}

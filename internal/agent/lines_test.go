package agent

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// split runs Lines over a stream cut into chunks of the given size.
func split(data []byte, max, chunk int) []string {
	var got []string
	lines := NewLines(max, func(l Line) { got = append(got, fmt.Sprintf("%s+%d", l.Text, l.Cut)) })
	for len(data) > 0 {
		n := min(chunk, len(data))
		_, _ = lines.Write(data[:n])
		data = data[n:]
	}
	_ = lines.Close()
	return got
}

func TestLines(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		in   string
		want []string
	}{
		{"", nil},
		{"a", []string{"a+0"}},
		{"a\nb\r\n\nc", []string{"a+0", "b+0", "+0", "c+0"}},
		{"12345678\nx\n", []string{"12345678+0", "x+0"}},
		{"123456789\nx", []string{"12345678+1", "x+0"}},
		{"1234567\r\nx", []string{"1234567+0", "x+0"}},
		{strings.Repeat("y", 1000) + "\nend", []string{"yyyyyyyy+992", "end+0"}},
		{"\n\n", []string{"+0", "+0"}},
	} {
		for chunk := 1; chunk <= 10; chunk++ {
			if diff := cmp.Diff(tt.want, split([]byte(tt.in), 8, chunk)); diff != "" {
				t.Errorf("%.20q in chunks of %d (-want +got):\n%s", tt.in, chunk, diff)
			}
		}
	}
}

func TestLinesHoldNoMonster(t *testing.T) {
	t.Parallel()
	lines := NewLines(MaxLine, func(Line) {})
	chunk := bytes.Repeat([]byte("x"), 1<<16)
	for range 800 { // 50 MB
		_, _ = lines.Write(chunk)
	}
	if held := cap(lines.buf); held > 2*MaxLine {
		t.Errorf("holds %d bytes during the line", held)
	}
	_, _ = lines.Write([]byte("\n"))
	if held := cap(lines.buf); held > 64<<10 {
		t.Errorf("holds %d bytes after the line", held)
	}
}

// Whatever the bytes and the chunks: no line is longer than allowed, nothing
// is lost uncounted, and the chunks make no difference.
func FuzzLines(f *testing.F) {
	f.Add([]byte("a\nbc\r\n\xff\xfe\x00\n{\"half"), uint8(3))
	f.Add(bytes.Repeat([]byte("z"), 100), uint8(7))
	f.Add([]byte("\r\r\n\n\r"), uint8(1))
	f.Fuzz(func(t *testing.T, data []byte, chunk uint8) {
		const max = 16
		var size int64
		count := 0
		lines := NewLines(max, func(l Line) {
			if len(l.Text) > max || bytes.IndexByte(l.Text, '\n') >= 0 {
				t.Fatalf("line %q", l.Text)
			}
			size += int64(len(l.Text)) + l.Cut
			count++
		})
		_, _ = lines.Write(data)
		_ = lines.Close()
		ends := bytes.Count(data, []byte("\n"))
		returns := bytes.Count(append(data, '\n'), []byte("\r\n"))
		if text := int64(len(data) - ends); size > text || size < text-int64(returns) {
			t.Fatalf("%d bytes of text came out as %d", text, size)
		}
		if last := len(data) > 0 && data[len(data)-1] != '\n'; last && count != ends+1 || !last && count != ends {
			t.Fatalf("%d lines for %d line ends", count, ends)
		}
		if diff := cmp.Diff(split(data, max, len(data)+1), split(data, max, int(chunk)+1)); diff != "" {
			t.Fatalf("chunks of %d differ:\n%s", chunk+1, diff)
		}
	})
}

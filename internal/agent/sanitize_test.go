package agent

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestSanitize(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                          "",
		"plain\ttext\n€ \U0001F600": "plain\ttext\n€ \U0001F600",
		"a\x00b":                    "ab",
		"\xff\xfe!":                 "\uFFFD\uFFFD!",
		"cut \xe2\x82":              "cut \uFFFD\uFFFD",
		"\x1b[1;31mred\x1b[0m":      "red",
		"\x1b]0;title\x07x":         "x",
		"\x1b]8;;http://h\x1b\\link\x1b]8;;\x1b\\": "link",
		"\x1b(Bx":                  "x",
		"\x1bc\x1b7x":              "x",
		"\x1b]0;never ended, text": "]0;never ended, text",
		"\x1b[31":                  "[31",
		"\x1b":                     "",
		"10%\r20%\r\n":             "10%\n20%\n",
		"bell\a back\b del\x7f":    "bell back del",
		"\u009b31mc1":              "31mc1",
		"\x1b\x1b[31mx":            "x",
	} {
		if got := Sanitize(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func FuzzSanitize(f *testing.F) {
	f.Add("\x1b[31mred\x1b]0;t\x07\xff\x00\r\n")
	f.Add("\x1b\x1b]\x1b[")
	f.Fuzz(func(t *testing.T, in string) {
		out := Sanitize(in)
		if !utf8.ValidString(out) || strings.ContainsAny(out, "\x00\x1b\r\x07\u009b") {
			t.Fatalf("%q became %q", in, out)
		}
		if again := Sanitize(out); again != out {
			t.Fatalf("%q became %q, then %q", in, out, again)
		}
		if clean(in) && in != out {
			t.Fatalf("clean %q became %q", in, out)
		}
	})
}

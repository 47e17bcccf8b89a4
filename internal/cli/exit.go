package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

var (
	errInterrupted = errors.New("interrupted")
	errLeft        = fmt.Errorf("%w, and told so", errInterrupted)
)

// badEnd says that the command worked and the task it waited for did not.
type badEnd struct{ err *work.Error }

func (e badEnd) Error() string { return e.err.Error() }

// Unwrap lets the error be found as what it is.
func (e badEnd) Unwrap() error { return e.err }

// exitCode is the one map from errors to exit codes.
func exitCode(err error) int {
	if err == nil {
		return 0
	}
	if errors.Is(err, errInterrupted) {
		return 130
	}
	if _, ok := errors.AsType[badEnd](err); ok {
		return 8
	}
	switch work.CodeOf(err) {
	case work.Invalid:
		return 2
	case work.NotFound:
		return 3
	case work.Conflict, work.Illegal:
		return 4
	case work.Unauthenticated, work.Forbidden:
		return 5
	case work.Exhausted:
		return 6
	case work.Unavailable, work.Timeout:
		return 7
	case work.Internal:
		return 1
	}
	return 1
}

// report prints an error, for people or for programs, and gives its exit code.
func (s *shell) report(err error, args []string) int {
	if errors.Is(err, errLeft) {
		return exitCode(err)
	}
	e := &work.Error{Code: work.Internal, Message: err.Error()}
	if found, ok := work.AsError(err); ok {
		copied := *found
		e = &copied
		e.Message = err.Error() // with what was added on the way
	}
	if e.Code == work.Unavailable && e.Hint == "" {
		e.Hint = "is the server running? claudomator serve"
	}
	if e.Code == work.NotFound && e.Hint == "" {
		e.Hint = whereToLook(e.Message)
	}
	// There is nobody left to tell when standard error cannot be written to.
	if s.format == jsonFormat || asksJSON(args) {
		p := newProblem(e)
		if errors.Is(err, errInterrupted) {
			p.Code, p.Title = work.Code(errInterrupted.Error()), errInterrupted.Error()
		}
		_ = encode(s.Err, p)
		return exitCode(err)
	}
	_, _ = fmt.Fprintf(s.Err, "error: %s\n", inert(e.Message))
	if e.Hint != "" {
		_, _ = fmt.Fprintf(s.Err, "hint: %s\n", inert(e.Hint))
	}
	return exitCode(err)
}

// whereToLook names the list in which what was not found would stand.
func whereToLook(message string) string {
	for _, noun := range []string{"task", "story", "epic", "project", "merge", "role", "token"} {
		if strings.Contains(message, "no "+noun+" ") {
			return "claudomator " + noun + " list shows which there are"
		}
	}
	return ""
}

// interrupted tells an error that is only the end of ctx from one of its own.
func interrupted(ctx context.Context, err error) bool {
	return ctx.Err() != nil &&
		(errors.Is(err, context.Canceled) || errors.Is(err, context.Cause(ctx)) || work.CodeOf(err) == work.Unavailable)
}

// newProblem is an error for programs: the server's own document, but for the
// HTTP status.
func newProblem(e *work.Error) *app.Problem {
	p := app.ProblemOf(e)
	p.Status, p.Title = 0, strings.ReplaceAll(string(e.Code), "_", " ")
	return p
}

// encode writes one value as JSON.
func encode(w io.Writer, value any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(value)
	if err == nil {
		_, err = w.Write(escape(b.Bytes()))
	}
	if err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// marshal is the value on one line.
func marshal(value any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(value)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// escape spells what a terminal might obey as JSON escapes: the value is the
// same. JSON itself leaves some control characters as they are.
func escape(text []byte) []byte {
	var out []byte
	for i, r := range string(text) {
		switch {
		case r != '\n' && r != unicode.ReplacementChar && inertRune(r) == unicode.ReplacementChar:
			if out == nil {
				out = append(make([]byte, 0, len(text)+64), text[:i]...)
			}
			out = fmt.Appendf(out, "\\u%04x", r)
		case out != nil:
			out = utf8.AppendRune(out, r)
		}
	}
	if out == nil {
		return text
	}
	return out
}

// asksJSON finds -o json in a command line that could not be parsed.
func asksJSON(args []string) bool {
	for i, a := range args {
		switch {
		case a == "--":
			return false
		case a == "-ojson" || a == "-o=json" || a == "--output=json":
			return true
		case (a == "-o" || a == "--output") && i+1 < len(args) && args[i+1] == "json":
			return true
		}
	}
	return false
}

// format is the value of -o.
type format string

const (
	textFormat format = "text"
	jsonFormat format = "json"
)

// String, Set and Type make it a flag.
func (f *format) String() string {
	if *f == "" {
		return string(textFormat)
	}
	return string(*f)
}

// Set takes the flag's text.
func (f *format) Set(text string) error {
	if format(text) != textFormat && format(text) != jsonFormat {
		return errors.New("must be text or json")
	}
	*f = format(text)
	return nil
}

// Type names the value in the help.
func (*format) Type() string { return "FORMAT" }

// flagError words what is wrong with a flag, and names the one that was meant.
func flagError(c *cobra.Command, err error) error {
	out := usageError(c, "%s", err)
	if name, unknown := strings.CutPrefix(err.Error(), "unknown flag: --"); unknown {
		var names []string
		c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if meant := nearest(name, names); meant != "" {
			out.Hint = "did you mean --" + meant + "?"
		}
	}
	return out
}

// nearest is the word that was probably meant, "" if none is close.
func nearest(word string, known []string) string {
	best, distance := "", 3 // more than two slips is another word
	for _, k := range slices.Sorted(slices.Values(known)) {
		if d := slips(word, k); d < distance && d < len(k) {
			best, distance = k, d
		}
	}
	return best
}

// slips counts the letters to insert, remove or replace between two words.
func slips(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/mcp"
	"github.com/claudomator/claudomator/internal/work"
)

// chatty is a service in which a diff and a log are what the test says.
type chatty struct {
	app.API
	diff, log string
	size      int64 // of the log, as far as the database knows
	err       error
}

func (c *chatty) TaskDiff(_ context.Context, _ string, w io.Writer) error {
	for text := c.diff; text != ""; { // as git writes: in pieces
		n := min(len(text), 5000)
		if _, err := io.WriteString(w, text[:n]); err != nil {
			return err
		}
		text = text[n:]
	}
	return c.err
}

func (c *chatty) Execution(context.Context, string) (*work.Execution, error) {
	return &work.Execution{ID: "x1", LogBytes: c.size}, nil
}

func (c *chatty) Transcript(_ context.Context, _ string, offset int64) (io.ReadCloser, error) {
	if c.err != nil {
		return nil, c.err
	}
	return io.NopCloser(strings.NewReader(c.log[offset:])), nil
}

// chat serves a chatty service's tools, and calls them.
func chat(t *testing.T, c *chatty) func(tool, arguments string) (string, error) {
	t.Helper()
	w := newWorld(t)
	s := httptest.NewServer(mcp.NewAdmin(mcp.AdminOptions{API: c, Log: w.Logger}))
	t.Cleanup(s.Close)
	return func(tool, arguments string) (string, error) {
		out, err := mcp.Call(t.Context(), s.URL, "t", tool, json.RawMessage(arguments))
		return string(out), err
	}
}

const most = 128 << 10

// Of a long diff its beginning is shown, up to the end of a line.
func TestLongDiffs(t *testing.T) {
	c := &chatty{}
	call := chat(t, c)
	line := strings.Repeat("é", 50) + "\n"
	for name, diff := range map[string]struct {
		text string
		want int
	}{
		"none": {"", 0}, "short": {line, len(line)}, "as long as may be": {strings.Repeat("x", most), most},
		"long": {strings.Repeat(line, 3000), most / len(line) * len(line)}, "one line": {strings.Repeat("x", most+1), 0},
	} {
		c.diff = diff.text
		out, err := call("show_diff", `{"task":"a"}`)
		var got struct {
			Diff string
			Cut  bool
		}
		if err := errors.Join(err, json.Unmarshal([]byte(out), &got)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got.Diff != diff.text[:diff.want] || got.Cut != (diff.want < len(diff.text)) {
			t.Errorf("%s: %d bytes of %d, cut %v; want %d", name, len(got.Diff), len(diff.text), got.Cut, diff.want)
		}
	}
	c.diff, c.err = line, work.Errorf(work.Unavailable, "the vault is away")
	if _, err := call("show_diff", `{"task":"a"}`); work.CodeOf(err) != work.Unavailable {
		t.Errorf("a diff that breaks: %v", err)
	}
}

// Of a log its newest whole lines are shown, wherever the database believes its
// end to be.
func TestLongLogs(t *testing.T) {
	c := &chatty{}
	call := chat(t, c)
	var long strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&long, "{\"n\":%d}\n", i)
	}
	for name, tt := range map[string]struct {
		log   string
		size  int64
		last  int
		lines string // all of them, or the last one
		count int
		cut   bool
	}{
		"none":                {"", 0, 0, "[]", 0, false},
		"short":               {"{\"a\":1}\nno JSON \"x\"\n", 0, 0, `[{"a":1},"no JSON \"x\""]`, 2, false},
		"still being written": {"{\"a\":1}\n{\"b\"", 0, 0, `[{"a":1},"{\"b\""]`, 2, false},
		"empty lines":         {"\n\n", 0, 0, `["",""]`, 2, false},
		"many":                {long.String(), int64(long.Len()), 0, `{"n":19999}`, 50, true},
		"many, in progress":   {long.String(), 0, 3, `[{"n":19997},{"n":19998},{"n":19999}]`, 3, true},
		"many, a few new":     {long.String(), int64(long.Len()) - 30, 1000, `{"n":19999}`, 1000, true},
		"exactly":             {"{\"a\":1}\n{\"a\":2}\n", 0, 2, `[{"a":1},{"a":2}]`, 2, false},
		"one long line":       {strings.Repeat("x", 3*most) + "\n", 0, 0, "[]", 0, true},
		"a short one after":   {strings.Repeat("x", 3*most) + "\n{\"a\":1}\n", 3*most + 9, 0, `[{"a":1}]`, 1, true},
	} {
		c.log, c.size = tt.log, tt.size
		arguments := `{"execution":"x1"}`
		if tt.last > 0 {
			arguments = fmt.Sprintf(`{"execution":"x1","last":%d}`, tt.last)
		}
		out, err := call("read_log", arguments)
		var got struct {
			Lines []json.RawMessage
			Cut   bool
		}
		if err := errors.Join(err, json.Unmarshal([]byte(out), &got)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		lines, err := json.Marshal(got.Lines)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Lines) != tt.count || got.Cut != tt.cut || !strings.HasSuffix(strings.TrimSuffix(string(lines), "]"), strings.TrimSuffix(tt.lines, "]")) {
			t.Errorf("%s: %d lines, cut %v, %.200s; want %d, %v, %s", name, len(got.Lines), got.Cut, lines, tt.count, tt.cut, tt.lines)
		}
	}
	c.err = work.Errorf(work.NotFound, "there is no log")
	if _, err := call("read_log", `{"execution":"x1"}`); work.CodeOf(err) != work.NotFound {
		t.Errorf("no log: %v", err)
	}
}

// A bug of the server, and a panic, end their call and name where the log has
// the details.
func TestAdminBugs(t *testing.T) {
	w := newWorld(t)
	c := &chatty{err: errors.New("disk /secret/path is on fire")}
	s := httptest.NewServer(mcp.NewAdmin(mcp.AdminOptions{API: c, Log: w.Logger}))
	t.Cleanup(s.Close)
	_, err := mcp.Call(t.Context(), s.URL, "t", "show_diff", json.RawMessage(`{"task":"a"}`))
	if work.CodeOf(err) != work.Internal || strings.Contains(err.Error(), "secret") || !strings.Contains(w.Log.String(), "on fire") {
		t.Errorf("a bug: %v; the log has %s", err, w.Log)
	}
	// The embedded API is nil: any other call panics.
	_, err = mcp.Call(t.Context(), s.URL, "t", "list_projects", nil)
	if err == nil || !strings.Contains(err.Error(), "internal error ") || !strings.Contains(w.Log.String(), "nil pointer") {
		t.Errorf("a panic: %v; the log has %s", err, w.Log)
	}
}

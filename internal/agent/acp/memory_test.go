package acp

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/claudomator/claudomator/internal/agent"
)

// Speech in small pieces without an end of line is passed on all the same, whatever
// came before it: neither memory nor time grow with what was said.
func TestSpeechWithoutEnd(t *testing.T) {
	t.Parallel()
	for _, begin := range []string{"", "\n", "head\n", "a\n\nb\n", " \n"} {
		var said strings.Builder
		s := speech{emit: func(e agent.Event) { said.WriteString(e.Text) }}
		s.say(agent.KindText, "", begin)
		for range 1000 {
			s.say(agent.KindText, "", strings.Repeat("x", 100))
			if held := s.text.Len(); held > 2*maxPiece {
				t.Fatalf("after %q: %d bytes are held back", begin, held)
			}
		}
		s.flush()
		if n := strings.Count(said.String(), "x"); n != 100_000 {
			t.Errorf("after %q: %d of 100000 bytes were said", begin, n)
		}
	}
}

// Calls that never end hold no more than so much of what they have changed, and
// what ends makes room.
func TestChangesHeldAreBounded(t *testing.T) {
	t.Parallel()
	var edits, diffs int
	calls := tools{dir: "/w", calls: map[string]*call{}, emit: func(e agent.Event) {
		if e.Kind == agent.KindEdit {
			edits++
			diffs += min(1, len(e.Edit.Diff))
		}
	}}
	take := func(id, status, path string, size int) {
		content, err := json.Marshal([]any{map[string]any{"type": "diff", "path": path, "newText": strings.Repeat("x", size)}})
		if err != nil {
			t.Fatal(err)
		}
		calls.take(&update{Content: content, callUpdate: callUpdate{CallID: id, Status: status}})
	}
	sum := func() int {
		held := 0
		for _, c := range calls.calls {
			for _, e := range c.edits {
				held += size(e)
			}
		}
		return held
	}
	for i := range 2 * maxCalls { // more than are followed
		for range 2 { // the same again
			take(fmt.Sprint(strings.Repeat("i", 10), i), "in_progress", fmt.Sprint("/w/", i), maxText)
		}
		if held := sum(); held != calls.held || held > maxEdits || len(calls.calls) > maxCalls {
			t.Fatalf("%d calls hold %d bytes, counted as %d", len(calls.calls), held, calls.held)
		}
	}
	for i := range 2 * maxCalls {
		take(fmt.Sprint(strings.Repeat("i", 10), i), "completed", "/w/last", 10)
	}
	if calls.held != 0 || len(calls.calls) != 0 {
		t.Errorf("%d bytes held of %d calls, and none is open", calls.held, len(calls.calls))
	}
	if edits < 2*maxCalls || diffs < maxCalls {
		t.Errorf("%d edits, %d with a diff", edits, diffs)
	}
}

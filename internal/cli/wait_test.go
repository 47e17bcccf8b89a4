package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

// task makes a view: state, or state and what it waits for.
func task(id, state string, change ...func(*app.TaskView)) *app.TaskView {
	state, on, _ := strings.Cut(state, "/")
	v := &app.TaskView{Task: work.Task{ID: work.TaskID(id), TreeID: "tree", Name: "Fix the basket", State: work.State(state), BlockedOn: work.BlockedOn(on)}, CurrentID: work.TaskID(id)}
	for _, c := range change {
		c(v)
	}
	return v
}

// TestWaitUntilItRests: a task that rests ends the wait at once; any other one is
// followed until the time is up.
func TestWaitUntilItRests(t *testing.T) {
	t.Parallel()
	tests := []struct {
		state string
		code  int
	}{
		{"PENDING", 0}, {"QUEUED/slot", 7}, {"RUNNING", 7}, {"BLOCKED/question", 0}, {"READY/judges", 7}, {"READY/person", 0},
		{"COMPLETED", 0}, {"FAILED", 8}, {"TIMED_OUT", 8}, {"BUDGET_EXCEEDED", 8}, {"CANCELLED", 8},
	}
	for _, tt := range tests {
		t.Run(tt.state, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				api := &fake{tasks: []*app.TaskView{task("a", tt.state)}}
				began := time.Now()
				r := run(t.Context(), api, nil, "task", "wait", "a", "--timeout", "1h")
				if r.code != tt.code {
					t.Errorf("exit %d, want %d; %s%s", r.code, tt.code, r.out, r.err)
				}
				if waited := time.Since(began); waited != 0 && tt.code != 7 || waited != time.Hour && tt.code == 7 {
					t.Errorf("waited %s", waited)
				}
				state, _, _ := strings.Cut(tt.state, "/")
				if tt.code == 7 && (r.out != "" || !strings.HasPrefix(r.err, "error: task a is still "+state)) {
					t.Errorf("out %q, errors %q", r.out, r.err)
				}
				if tt.code != 7 && !strings.HasPrefix(r.out, "a  "+state) {
					t.Errorf("out %q", r.out)
				}
			})
		})
	}
}

// TestWaitHearsOtherTrees: what waits for a task of another tree may rest once that
// one does.
func TestWaitHearsOtherTrees(t *testing.T) {
	t.Parallel()
	a := task("a", "QUEUED/dependencies")
	api := &fake{tasks: []*app.TaskView{a}}
	api.stream = []step{{do: func() { a.Rests = true }, event: work.Event{Seq: 8, Tree: "other"}}}
	if r := run(t.Context(), api, nil, "task", "wait", "a"); r.code != 0 || !strings.HasPrefix(r.out, "a  QUEUED") {
		t.Errorf("%+v", r)
	}
}

// TestWaitFor: with --for a task that rests elsewhere is waited for on.
func TestWaitFor(t *testing.T) {
	t.Parallel()
	tests := []struct {
		state, states string
		code          int
		want          string
	}{
		{"READY/person", "READY,COMPLETED", 0, ""},
		{"READY/person", "completed", 7, "still READY (person)"},
		{"FAILED", "READY", 8, "task a ended FAILED: no luck"},
		{"FAILED", "FAILED", 0, ""},
		{"COMPLETED", "READY", 4, "task a is COMPLETED: it will not become READY"},
		{"RUNNING", "running", 0, ""},
	}
	for _, tt := range tests {
		t.Run(tt.state+" for "+tt.states, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				api := &fake{tasks: []*app.TaskView{task("a", tt.state, func(v *app.TaskView) { v.Reason = "no luck" })}}
				r := run(t.Context(), api, nil, "task", "wait", "a", "--for", tt.states, "--timeout", "1m")
				if r.code != tt.code || !strings.Contains(r.err, tt.want) {
					t.Errorf("exit %d, errors %q; want exit %d and %q", r.code, r.err, tt.code, tt.want)
				}
			})
		})
	}
}

// TestWaitFollows plays a whole life: events of other trees are let pass, a
// rejected attempt is followed to the one that replaced it, and the stream
// begins after what was known before the first look.
func TestWaitFollows(t *testing.T) {
	t.Parallel()
	a := task("a", "RUNNING")
	api := &fake{tasks: []*app.TaskView{a}}
	to := func(state string) func() {
		return func() {
			next := task(string(api.tasks[len(api.tasks)-1].ID), state)
			*api.tasks[len(api.tasks)-1] = *next
		}
	}
	event := func(seq int64, tree work.TreeID) work.Event { return work.Event{Seq: seq, Tree: tree} }
	api.stream = []step{
		{do: to("READY/judges"), event: event(8, "tree")},
		{event: event(9, "other")},
		{do: func() {
			a.SupersededBy, a.CurrentID = "b", "b"
			a.BlockedOn = work.NotBlocked
			api.tasks = append(api.tasks, task("b", "QUEUED/slot"))
		}, event: event(10, "tree")},
		{do: to("RUNNING"), event: event(11, "tree")},
		{do: to("FAILED"), event: event(12, "tree")},
	}
	r := run(t.Context(), api, nil, "task", "wait", "a", "-o", "json")
	if r.code != 8 || !strings.Contains(r.out, `"id": "b"`) || !strings.Contains(r.err, `"reason": "ended_badly"`) {
		t.Errorf("%+v", r)
	}
	if !slices.Equal(api.after, []int64{7}) {
		t.Errorf("streams began after %v, want 7", api.after)
	}
	if len(api.stream) != 0 || api.looks != 6 { // once before the stream, then per event of the tree; b once through a
		t.Errorf("%d looks, %d steps left", api.looks, len(api.stream))
	}
}

// TestWaitNoLostWakeUp: what happens between the look and the stream is seen,
// since the stream begins before the look.
func TestWaitNoLostWakeUp(t *testing.T) {
	t.Parallel()
	api := &fake{tasks: []*app.TaskView{task("a", "RUNNING")}}
	api.stream = []step{{event: work.Event{Seq: 8, Tree: "tree"}, do: func() { *api.tasks[0] = *task("a", "COMPLETED") }}}
	if r := run(t.Context(), api, nil, "task", "wait", "a"); r.code != 0 || api.after[0] != 7 {
		t.Errorf("%+v after %v", r, api.after)
	}
}

// TestWaitLostStream: a server that goes is waited for, goes on where it was,
// and is given up after half a minute; an error of another kind ends the wait.
func TestWaitLostStream(t *testing.T) {
	t.Parallel()
	gone := work.Errorf(work.Unavailable, "connection refused")
	t.Run("comes back", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			api := &fake{tasks: []*app.TaskView{task("a", "RUNNING")}}
			api.stream = []step{
				{event: work.Event{Seq: 20, Tree: "tree"}},
				{err: gone}, {err: gone},
				{event: work.Event{Seq: 21, Tree: "tree"}, do: func() { *api.tasks[0] = *task("a", "COMPLETED") }},
			}
			if r := run(t.Context(), api, nil, "task", "wait", "a"); r.code != 0 {
				t.Errorf("%+v", r)
			}
			if want := []int64{7, 20, 20}; !slices.Equal(api.after, want) {
				t.Errorf("streams began after %v, want %v", api.after, want)
			}
		})
	})
	t.Run("does not", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			api := &fake{err: gone}
			began := time.Now()
			r := run(t.Context(), api, nil, "task", "wait", "a")
			if r.code != 7 || r.err != "error: connection refused\nhint: is the server running? claudomator serve\n" {
				t.Errorf("%+v", r)
			}
			if took := time.Since(began); took < patience || took > patience+lastPause {
				t.Errorf("gave up after %s", took)
			}
		})
	})
	t.Run("goes unnoticed", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			api := &fake{tasks: []*app.TaskView{task("a", "RUNNING")}}
			began := time.Now()
			api.before = func() { // the stream does not say so: it tries on by itself
				if time.Since(began) > 10*quiet {
					api.err = gone
				}
			}
			r := run(t.Context(), api, nil, "task", "wait", "a")
			if took := time.Since(began); r.code != 7 || took < 11*quiet+patience || took > 11*quiet+patience+lastPause {
				t.Errorf("gave up after %s: %+v", took, r)
			}
		})
	})
	t.Run("another error", func(t *testing.T) {
		t.Parallel()
		api := &fake{tasks: []*app.TaskView{task("a", "RUNNING")}, stream: []step{{err: work.Errorf(work.Unauthenticated, "revoked")}}}
		if r := run(t.Context(), api, nil, "task", "wait", "a"); r.code != 5 {
			t.Errorf("%+v", r)
		}
	})
	t.Run("no such task", func(t *testing.T) {
		t.Parallel()
		if r := run(t.Context(), &fake{}, nil, "task", "wait", "a"); r.code != 3 {
			t.Errorf("%+v", r)
		}
	})
	t.Run("interrupted", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			api := &fake{tasks: []*app.TaskView{task("a", "RUNNING")}}
			if r := run(ctx, api, nil, "task", "wait", "a"); r.code != 130 {
				t.Errorf("%+v", r)
			}
		})
	})
}

// TestMergeWait: what a landing came to, by its last status.
func TestMergeWait(t *testing.T) {
	t.Parallel()
	tests := []struct {
		end  work.Merge
		code int
		want string
	}{
		{work.Merge{Status: work.MergeLanded, Commit: "abc"}, 0, ""},
		{work.Merge{Status: work.MergeNothing}, 0, ""},
		{work.Merge{Status: work.MergeConflicted, Conflicts: []string{"a.go", "b.go"}}, 4,
			"error: landing on main conflicts in a.go, b.go\nhint: resolve it, then: claudomator merge continue m --wait (or abort)\n"},
		{work.Merge{Status: work.MergeRefused, Reason: "dirty", Message: "main is checked out with changes", Hint: "commit or stash them"}, 4,
			"error: landing on main was refused: main is checked out with changes\nhint: commit or stash them\n"},
		{work.Merge{Status: work.MergeAborted}, 4, "error: landing on main was aborted\n"},
	}
	for _, tt := range tests {
		t.Run(string(tt.end.Status), func(t *testing.T) {
			t.Parallel()
			m := &work.Merge{ID: "m", TaskID: "a", Target: "main", Status: work.MergeRunning}
			api := &fake{tasks: []*app.TaskView{task("a", "COMPLETED")}, merges: []*work.Merge{m}}
			api.stream = []step{
				{event: work.Event{Seq: 8, Task: "b"}},
				{event: work.Event{Seq: 9, Task: "a"}, do: func() {
					end := tt.end
					end.ID, end.TaskID, end.Target = m.ID, m.TaskID, m.Target
					*m = end
				}},
			}
			r := run(t.Context(), api, nil, "merge", "start", "a", "--wait")
			if r.code != tt.code || r.err != tt.want || !strings.HasPrefix(r.out, "m  "+string(tt.end.Status)) {
				t.Errorf("%+v, want exit %d and %q", r, tt.code, tt.want)
			}
			if api.looks != 2 {
				t.Errorf("%d looks", api.looks)
			}
		})
	}
}

// TestAccept: it returns when integration and landing are over, and says when
// they have not come to a good end.
func TestAccept(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, args, first string
		later             *app.TaskView
		merge             work.Merge
		code              int
		want              string
	}{
		{name: "at once", args: "a", first: "COMPLETED"},
		{name: "landed", args: "a --land", first: "READY/landing", later: task("a", "COMPLETED"), merge: work.Merge{Status: work.MergeLanded}},
		{name: "integrated", args: "a", first: "READY/integration", later: task("a", "COMPLETED")},
		{
			name: "refused", args: "a --land", first: "READY/landing", later: task("a", "READY/person"),
			merge: work.Merge{Status: work.MergeRefused, Message: "changes"}, code: 4, want: "landing on main was refused: changes",
		},
		{
			name: "conflicted", args: "a --into x", first: "READY/landing", later: task("a", "BLOCKED/conflict"),
			merge: work.Merge{Status: work.MergeConflicted, Conflicts: []string{"f"}}, code: 4, want: "conflicts in f",
		},
		{
			name: "integration conflict", args: "a --no-land", first: "READY/integration",
			later: task("a", "READY", func(v *app.TaskView) { v.SupersededBy, v.CurrentID = "b", "b" }), code: 4, want: "attempt b settles it",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := tt.merge
			m.ID, m.TaskID, m.Target = "m", "a", "main"
			api := &fake{tasks: []*app.TaskView{task("a", tt.first)}, merges: []*work.Merge{&m}}
			var got app.AcceptInput
			api.accept = func(in app.AcceptInput) *app.TaskView { got = in; return task("a", tt.first) }
			if tt.later != nil {
				api.stream = []step{{event: work.Event{Seq: 8, Tree: "tree"}, do: func() { *api.tasks[0] = *tt.later }}}
			}
			r := run(t.Context(), api, nil, append([]string{"task", "accept"}, strings.Fields(tt.args)...)...)
			if r.code != tt.code || !strings.Contains(r.err, tt.want) || (tt.code == 0) != (r.err == "") {
				t.Errorf("%+v, want exit %d and %q", r, tt.code, tt.want)
			}
			want := map[string]string{"a": "nil", "a --land": "true", "a --into x": "true", "a --no-land": "false"}[tt.args]
			if land := "nil"; got.Land != nil && fmt.Sprint(*got.Land) != want || got.Land == nil && land != want {
				t.Errorf("land is %v, want %s", got.Land, want)
			}
		})
	}
}

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

func child(v *app.TaskView)     { v.ParentTaskID = "p" }
func draft(v *app.TaskView)     { v.Draft = true }
func dependent(v *app.TaskView) { v.DependsOn = []work.Position{"d"} }
func merging(v *app.TaskView)   { v.MergeID = "m" }

func leaf(state string) *app.TreeNode { return &app.TreeNode{Task: &task("c", state).Task} }

// TestRests: what is waited for, by state. A task that rests ends the wait at
// once; any other one is followed until the time is up.
func TestRests(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		task   *app.TaskView
		others []*app.TaskView
		below  []*app.TreeNode
		judges []string
		moved  string // where the tree shows the task, when not where it was
		merge  work.MergeStatus
		code   int
	}{
		{name: "pending", task: task("a", "PENDING"), code: 0},
		{name: "pending draft child", task: task("a", "PENDING", child, draft), code: 0},
		{name: "pending child of a running parent", task: task("a", "PENDING", child), others: []*app.TaskView{task("p", "RUNNING")}, code: 7},
		{name: "pending child of a parent that asks", task: task("a", "PENDING", child), others: []*app.TaskView{task("p", "BLOCKED/question")}, code: 0},
		{name: "pending child of a failed parent", task: task("a", "PENDING", child), others: []*app.TaskView{task("p", "FAILED")}, code: 0},
		{name: "queued", task: task("a", "QUEUED/slot"), code: 7},
		{name: "queued for a retry", task: task("a", "QUEUED/retry"), code: 7},
		{name: "paused", task: task("a", "QUEUED/paused"), code: 0},
		{name: "behind a running one", task: task("a", "QUEUED/dependencies", dependent), others: []*app.TaskView{task("d", "RUNNING")}, code: 7},
		{name: "behind one that asks", task: task("a", "QUEUED/dependencies", dependent), others: []*app.TaskView{task("d", "BLOCKED/question")}, code: 0},
		{name: "behind one that was never started", task: task("a", "QUEUED/dependencies", dependent), others: []*app.TaskView{task("d", "PENDING")}, code: 0},
		{name: "behind one that has just failed", task: task("a", "QUEUED/dependencies", dependent), others: []*app.TaskView{task("d", "FAILED")}, code: 7},
		{name: "behind one that is ready", task: task("a", "QUEUED/dependencies", dependent), others: []*app.TaskView{task("d", "READY/person")}, code: 7},
		{name: "sibling behind one that is ready", task: task("a", "QUEUED/dependencies", dependent, child), others: []*app.TaskView{task("d", "READY/person")}, code: 0},
		{name: "running", task: task("a", "RUNNING"), code: 7},
		{name: "question", task: task("a", "BLOCKED/question"), code: 0},
		{name: "conflict", task: task("a", "BLOCKED/conflict"), code: 0},
		{name: "conflicted landing", task: task("a", "BLOCKED/conflict", merging), merge: work.MergeConflicted, code: 0},
		{name: "continued landing", task: task("a", "BLOCKED/conflict", merging), merge: work.MergeRunning, code: 7},
		{name: "children at work", task: task("a", "BLOCKED/children"), below: []*app.TreeNode{leaf("READY/person"), leaf("RUNNING")}, code: 7},
		{name: "children under review", task: task("a", "BLOCKED/children"), below: []*app.TreeNode{leaf("READY/judges")}, code: 7},
		{name: "children that need a person", task: task("a", "BLOCKED/children"), below: []*app.TreeNode{leaf("READY/person"), leaf("QUEUED/dependencies"), leaf("COMPLETED")}, code: 0},
		{name: "a failed child", task: task("a", "BLOCKED/children"), below: []*app.TreeNode{leaf("FAILED")}, code: 0},
		{name: "children that have just ended", task: task("a", "BLOCKED/children"), moved: "READY/gates", below: []*app.TreeNode{leaf("COMPLETED")}, code: 7},
		{name: "grandchildren at work", task: task("a", "BLOCKED/children"), below: []*app.TreeNode{{Task: leaf("BLOCKED/children").Task, Children: []*app.TreeNode{leaf("RUNNING")}}}, code: 7},
		{name: "gates", task: task("a", "READY/gates"), code: 7},
		{name: "judges", task: task("a", "READY/judges"), code: 7},
		{name: "a judge at work", task: task("a", "READY/judges"), judges: []string{"BLOCKED/question", "RUNNING"}, code: 7},
		{name: "a judge that asks", task: task("a", "READY/judges"), judges: []string{"BLOCKED/question", "COMPLETED"}, code: 0},
		{name: "judges that have just spoken", task: task("a", "READY/judges"), judges: []string{"COMPLETED"}, code: 7},
		{name: "a child whose judge asks", task: task("a", "BLOCKED/children"), below: []*app.TreeNode{{Task: leaf("READY/judges").Task, Judges: []*work.Task{&task("j", "BLOCKED/question").Task}}}, code: 0},
		{name: "integration", task: task("a", "READY/integration"), code: 7},
		{name: "landing", task: task("a", "READY/landing"), code: 7},
		{name: "person", task: task("a", "READY/person"), code: 0},
		{name: "completed", task: task("a", "COMPLETED"), code: 0},
		{name: "failed", task: task("a", "FAILED"), code: 8},
		{name: "timed out", task: task("a", "TIMED_OUT"), code: 8},
		{name: "budget exceeded", task: task("a", "BUDGET_EXCEEDED"), code: 8},
		{name: "cancelled", task: task("a", "CANCELLED"), code: 8},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				api := &fake{
					tasks:  append(tt.others, tt.task),
					tree:   &app.TreeNode{Task: &tt.task.Task, Children: tt.below},
					merges: []*work.Merge{{ID: "m", Status: tt.merge}},
				}
				for _, state := range tt.judges {
					api.tree.Judges = append(api.tree.Judges, &task("j", state).Task)
				}
				if tt.moved != "" {
					api.tree.Task = &task("a", tt.moved).Task
				}
				began := time.Now()
				r := run(t.Context(), api, nil, "task", "wait", "a", "--timeout", "1h")
				if r.code != tt.code {
					t.Errorf("exit %d, want %d; %s%s", r.code, tt.code, r.out, r.err)
				}
				if waited := time.Since(began); waited != 0 && tt.code != 7 || waited != time.Hour && tt.code == 7 {
					t.Errorf("waited %s", waited)
				}
				if tt.code == 7 && (r.out != "" || !strings.HasPrefix(r.err, "error: task a is still "+string(tt.task.State))) {
					t.Errorf("out %q, errors %q", r.out, r.err)
				}
				if tt.code != 7 && !strings.HasPrefix(r.out, "a  "+string(tt.task.State)) {
					t.Errorf("out %q", r.out)
				}
			})
		})
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

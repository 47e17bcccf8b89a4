package storetest

import (
	"fmt"
	"testing"

	"github.com/claudomator/claudomator/internal/store"
	"github.com/claudomator/claudomator/internal/work"
)

func testRefs(t *testing.T, fresh func(testing.TB) store.Config) {
	s := Open(t, fresh(t))
	for i, id := range []string{"abcd1", "abcd2", "abcd", "x", "zebra", "zulu1", "zulu2", "zulu3", "zulu4", "zulu5", "zulu6"} {
		task := newTask(id, i)
		task.Name = map[string]string{"abcd1": "unique", "abcd2": "twice", "x": "twice", "zebra": "abc"}[id]
		cs := changes(0, task)
		if id == "abcd1" { // rejected: its fix has the name now
			fix := newTask("fix1", i)
			fix.TreeID, fix.AttemptOf, fix.Name = task.TreeID, "abcd1", task.Name
			task.SupersededBy = fix.ID
			cs.Tasks = append(cs.Tasks, fix)
			cs.Executions = []*work.Execution{newRun(fix, work.AgentRun, 1), newRun(fix, work.AgentRun, 2)}
			cs.Merges = []*work.Merge{{ID: "merge1", TaskID: "fix1", Status: work.MergeRunning}}
		}
		commit(t, s, cs)
	}
	for ref, want := range map[string]work.TaskID{
		"abcd1": "abcd1", "abcd": "abcd", "x": "x", "zeb": "zebra", "unique": "fix1", "abc": "zebra", "fix": "fix1",
	} {
		if id, err := s.ResolveTask(t.Context(), ref); id != want {
			t.Errorf("%q means %q (%v), want %q", ref, id, err, want)
		}
	}
	for _, ref := range []string{"zu", "zulu", "twice"} {
		_, err := s.ResolveTask(t.Context(), ref)
		if ref == "zu" { // two characters name nothing
			wantError(t, err, work.NotFound, "")
			continue
		}
		wantError(t, err, work.Invalid, "ambiguous")
	}
	for _, ref := range []string{"", "nobody", "abcd3"} {
		_, err := s.ResolveTask(t.Context(), ref)
		wantError(t, err, work.NotFound, "")
	}
	if x := must[*work.Execution](t)(s.Execution(t.Context(), "fix1-agent-2")); x.Number != 2 || x.TreeID != "abcd1" {
		t.Errorf("the execution found is %+v", x)
	}
	_, err := s.Execution(t.Context(), "fix1-agent")
	wantError(t, err, work.Invalid, "ambiguous")
	if m := must[*work.Merge](t)(s.Merge(t.Context(), "mer")); m.ID != "merge1" || m.TreeID != "abcd1" {
		t.Errorf("the merge found is %+v", m)
	}
	_, err = s.ExecutionByToken(t.Context(), "")
	wantError(t, err, work.NotFound, "")
	_, err = s.TreeOf(t.Context(), "nobody")
	wantError(t, err, work.NotFound, "")
}

func testMerges(t *testing.T, fresh func(testing.TB) store.Config) {
	s := Open(t, fresh(t))
	for i, id := range []string{"a", "b"} {
		cs := changes(0, newTask(id, i))
		for n := range 3 {
			cs.Merges = append(cs.Merges, &work.Merge{
				ID: work.MergeID(fmt.Sprintf("%s%d", id, n)), TaskID: work.TaskID(id), Status: work.MergeRefused, CreatedAt: at(10*n + i),
			})
		}
		commit(t, s, cs)
	}
	for task, want := range map[work.TaskID][]work.MergeID{"a": {"a2", "a1", "a0"}, "": {"b2", "a2", "b1", "a1", "b0", "a0"}, "c": nil} {
		var got []work.MergeID
		for _, m := range must[[]*work.Merge](t)(s.Merges(t.Context(), task)) {
			got = append(got, m.ID)
		}
		same(t, "landings of "+string(task), want, got)
	}
}

// testForeignText: what agents and programs print reaches the rows; what
// people type reaches the queries.
func testForeignText(t *testing.T, fresh func(testing.TB) store.Config) {
	s := Open(t, fresh(t))
	const foreign = "\x00 \xff\xfe  \u202e </script> '; DROP TABLE tasks; -- \x1b[31m"
	root := newTask("root", 0)
	root.Reason, root.CheckerReport, root.Summary = foreign, foreign, foreign
	run := newRun(root, work.AgentRun, 1)
	run.Error, run.Gates = foreign, []work.GateResult{{Command: "make", Output: foreign}}
	cs := changes(0, root)
	cs.Executions = []*work.Execution{run}
	cs.Events[0].Body = map[string]any{"reason": foreign}
	commit(t, s, cs)
	// What is not UTF-8 is mended, everything else kept.
	const mended = "\x00 \ufffd\ufffd  \u202e </script> '; DROP TABLE tasks; -- \x1b[31m"
	task := load(t, s, "root").Task("root")
	event := must[[]work.Event](t)(s.Events(t.Context(), 0, "", "", 1))[0]
	for what, got := range map[string]any{"reason": task.Reason, "report": task.CheckerReport, "event": event.Body["reason"]} {
		if got != mended {
			t.Errorf("%s is %q, want %q", what, got, mended)
		}
	}
	for _, ref := range []string{foreign, "\x00\x00\x00", "\xff\xff\xff", "'; --", "%%%", "___"} {
		for what, err := range map[string]error{
			"task":      second(s.ResolveTask(t.Context(), ref)),
			"execution": second(s.Execution(t.Context(), ref)),
			"merge":     second(s.Merge(t.Context(), ref)),
			"project":   second(s.Project(t.Context(), ref)),
			"story":     second(s.Story(t.Context(), ref)),
			"epic":      second(s.Epic(t.Context(), ref)),
		} {
			if work.CodeOf(err) != work.NotFound {
				t.Errorf("%s %q gives %v", what, ref, err)
			}
		}
	}
}

func testInboxAndStats(t *testing.T, fresh func(testing.TB) store.Config) {
	s := Open(t, fresh(t))
	if items := must[[]work.Item](t)(s.Inbox(t.Context())); len(items) != 0 {
		t.Errorf("an empty store has an inbox: %v", items)
	}
	var want []work.Item
	for i := range 3 {
		root := newTask(fmt.Sprintf("tree%d", i), i)
		root.State = work.Ready
		superseded, judge := childOf(root, fmt.Sprintf("old%d", i), i), childOf(root, fmt.Sprintf("judge%d", i), i)
		superseded.SupersededBy, judge.Judges = "somebody", &work.Judged{TaskID: root.ID}
		run := newRun(root, work.AgentRun, 1)
		run.State, run.CostUSD = work.ExecutionStates()[i], 0.25
		cs := changes(0, root, superseded, judge)
		cs.Executions = []*work.Execution{run}
		if i < 2 {
			cs.Summary.Inbox = []work.Item{{Kind: work.ItemReview, TaskID: root.ID}, {Kind: work.ItemBuiltOn, TaskID: root.ID}}
			want = append(want, cs.Summary.Inbox...)
		}
		commit(t, s, cs)
	}
	same(t, "inbox", want, must[[]work.Item](t)(s.Inbox(t.Context())))
	same(t, "stats", work.Stats{
		Tasks:      map[work.State]int{work.Ready: 3},
		Executions: map[work.ExecutionState]int{work.ExecutionQueued: 1, work.ExecutionRunning: 1, work.ExecutionEnded: 1},
		CostUSD:    0.75,
	}, must[work.Stats](t)(s.Stats(t.Context())))
}

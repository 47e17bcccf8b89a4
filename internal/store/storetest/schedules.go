package storetest

import (
	"strings"
	"testing"
	"time"

	"github.com/claudomator/claudomator/internal/store"
	"github.com/claudomator/claudomator/internal/work"
)

func testWaiting(t *testing.T, fresh func(testing.TB) store.Config) {
	s := Open(t, fresh(t))
	add := func(id string, queued int, priority work.Priority, on work.BlockedOn, runs ...*work.Execution) {
		task := newTask(id, 0)
		task.State, task.BlockedOn, task.Priority, task.Agent.Type = work.Queued, on, priority, "codex"
		cs := changes(0, task)
		for _, x := range runs {
			x.TaskID, x.ID, x.CreatedAt = task.ID, work.ExecutionID(id+"-"+string(x.ID)), at(queued)
			cs.Executions = append(cs.Executions, x)
			if x.Kind.Own() && x.State == work.ExecutionQueued {
				task.Book.Current = x.ID
			}
		}
		commit(t, s, cs)
	}
	run := func(kind work.ExecutionKind, state work.ExecutionState) *work.Execution {
		return &work.Execution{ID: work.ExecutionID(string(kind) + "-" + string(state)), Kind: kind, State: state, Number: 1}
	}
	queued := func() *work.Execution { return run(work.AgentRun, work.ExecutionQueued) }
	add("late", 9, work.Normal, work.OnSlot, queued())
	add("early", 1, work.Normal, work.OnSlot, queued())
	add("urgent", 5, work.Urgent, work.OnSlot, queued())
	add("low", 0, work.Low, work.OnSlot, queued())
	add("aged", -3601, work.Low, work.OnSlot, queued()) // older than its priority's patience
	add("dependent", 0, work.Urgent, work.OnDependencies, queued())
	add("busy", 0, work.Urgent, work.OnSlot, run(work.AgentRun, work.ExecutionRunning), queued())
	add("gated", 4, work.Normal, work.OnGates, run(work.GateRun, work.ExecutionQueued))
	add("gating", 0, work.Urgent, work.OnGates, run(work.GateRun, work.ExecutionRunning), run(work.GateRun, work.ExecutionQueued))
	add("shipped", 6, work.Normal, work.NotBlocked, run(work.DeployRun, work.ExecutionQueued))
	add("tried", 7, work.Normal, work.NotBlocked, run(work.GateRun, work.ExecutionEnded), run(work.SmokeRun, work.ExecutionQueued))
	add("shipping", 0, work.Urgent, work.NotBlocked, run(work.DeployRun, work.ExecutionRunning), run(work.GateRun, work.ExecutionQueued))
	add("by-hand", 8, work.Normal, work.OnSlot, run(work.SubmitRun, work.ExecutionQueued))
	add("done", 0, work.Urgent, work.OnSlot, run(work.AgentRun, work.ExecutionEnded))

	// A later commit keeps the place in the queue.
	late := load(t, s, "late").Task("late")
	late.Name = "renamed"
	commit(t, s, changes(1, late))

	want := []string{"aged-agent-queued", "urgent-agent-queued", "early-agent-queued", "gated-gates-queued", "shipped-deploy-queued", "tried-smoke-queued", "by-hand-submit-queued", "late-agent-queued", "low-agent-queued"}
	for _, limit := range []int{1, 3, 100} {
		var got []string
		waiting := must[[]work.Waiting](t)(s.Waiting(t.Context(), limit))
		for _, w := range waiting {
			got = append(got, string(w.Execution))
			if byAgent := strings.HasSuffix(string(w.Execution), "-agent-queued"); byAgent != (w.Agent == "codex") {
				t.Errorf("%s takes a slot of agent %q", w.Execution, w.Agent)
			}
		}
		same(t, "waiting", want[:min(limit, len(want))], got)
		same(t, "first", work.Waiting{
			Execution: "aged-agent-queued", Task: "aged", Tree: "aged", Project: "project", Agent: "codex", Priority: work.Low, Since: at(-3601),
		}, waiting[0])
	}
}

func testLeases(t *testing.T, fresh func(testing.TB) store.Config) {
	s := Open(t, fresh(t))
	root := newTask("root", 0)
	mine, other, over := newRun(root, work.AgentRun, 1), newRun(root, work.AgentRun, 2), newRun(root, work.AgentRun, 3)
	for _, x := range []*work.Execution{mine, other, over} {
		x.State, x.Node, x.Fence, x.LeaseUntil = work.ExecutionRunning, "me", 1, at(30)
	}
	other.Node, over.State = "other", work.ExecutionEnded
	cs := changes(0, root)
	cs.Executions = []*work.Execution{mine, other, over}
	commit(t, s, cs)

	held := func(node string, now time.Time) []work.ExecutionID {
		var ids []work.ExecutionID
		for _, x := range must[[]work.Execution](t)(s.Held(t.Context(), node, now)) {
			ids = append(ids, x.ID)
		}
		return ids
	}
	same(t, "held by me", []work.ExecutionID{mine.ID}, held("me", at(0)))
	same(t, "expired early", []work.ExecutionID(nil), held("", at(29)))
	same(t, "expired", []work.ExecutionID{mine.ID, other.ID}, held("", at(30)))
	if err := s.RenewLeases(t.Context(), "me", at(60)); err != nil {
		t.Fatal(err)
	}
	same(t, "expired after renewal", []work.ExecutionID{other.ID}, held("", at(40)))
	if tree := load(t, s, "root"); tree.Version != 1 {
		t.Errorf("a renewed lease made version %d of the tree", tree.Version)
	}

	// A decision on a tree that was cached before the renewal.
	mine.Asked = &work.Question{Text: "which?"}
	cs = changes(1, root)
	cs.Executions = []*work.Execution{mine}
	commit(t, s, cs)
	same(t, "expired after a commit", []work.ExecutionID{other.ID}, held("", at(40)))

	mine.Fence, mine.LeaseUntil = 2, at(35) // another run: its lease is its own
	cs = changes(2, root)
	cs.Executions = []*work.Execution{mine}
	commit(t, s, cs)
	same(t, "expired after another begin", []work.ExecutionID{mine.ID, other.ID}, held("", at(40)))
}

func testDue(t *testing.T, fresh func(testing.TB) store.Config) {
	s := Open(t, fresh(t))
	due, next, err := s.DueTrees(t.Context(), at(0))
	if len(due) > 0 || !next.IsZero() || err != nil {
		t.Errorf("an empty store has due %v, next %v (%v)", due, next, err)
	}
	for id, wake := range map[string]int{"a": 20, "b": 10, "c": 30, "d": 40, "never": -1} {
		task := newTask(id, 0)
		cs := changes(0, task)
		if wake >= 0 {
			cs.Summary.WakeAt = at(wake)
		}
		cs.Summary.Open = id < "c"
		commit(t, s, cs)
	}
	due, next, err = s.DueTrees(t.Context(), at(20))
	if err != nil {
		t.Fatal(err)
	}
	same(t, "due", []work.TreeID{"b", "a"}, due)
	same(t, "next", at(30), next)
	due, next, err = s.DueTrees(t.Context(), at(40))
	if len(due) != 4 || !next.IsZero() || err != nil {
		t.Errorf("at the end due is %v, next %v (%v)", due, next, err)
	}
	same(t, "open", []work.TreeID{"a", "b"}, must[[]work.TreeID](t)(s.OpenTrees(t.Context())))
}

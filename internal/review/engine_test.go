package review_test

import (
	"fmt"

	"github.com/claudomator/claudomator/internal/work"
)

// begun takes a queued execution, as a node does when its job is delivered.
func (w *world) beginRun(tree *work.Tree, id work.ExecutionID) error {
	x := tree.Execution(id)
	spec := work.AgentSpec{Type: "scripted"}
	if x != nil {
		if t := tree.Task(x.TaskID); t.Agent.Type != "" {
			spec = t.Agent
		}
	}
	return w.do(tree, work.System(), work.Begin{Execution: id, Node: "node", JobID: 1, Spec: spec})
}

// live is the execution of a task that runs, of its own or of its gates.
func live(tree *work.Tree, id work.TaskID, kinds ...work.ExecutionKind) *work.Execution {
	for _, kind := range kinds {
		for _, x := range tree.Runs(id, kind) {
			if x.State == work.ExecutionRunning {
				return x
			}
		}
	}
	return nil
}

// outcome is how a test's run ends; see success, fails and so on.
type outcome func(w *world, tree *work.Tree, t *work.Task, end *work.End)

// success ends a run well, with a commit of that name.
func success(commit string) outcome {
	return func(w *world, tree *work.Tree, t *work.Task, end *work.End) {
		if t.Book.Fresh {
			delete(w.git.branches, t.ID)
		}
		from, head := w.git.start(tree, t), w.git.head(tree, t)
		end.Outcome = work.Success
		end.Base, end.Head = from, head
		if commit != "" {
			parents := []string{head}
			if t.Book.MergeIn != "" {
				parents = append(parents, t.Book.MergeIn)
			}
			end.Head = w.git.commit(commit, parents...)
			w.git.branches[t.ID] = end.Head
		}
		end.Result = result(from, end.Head)
	}
}

// nothing ends a run well, without any change.
func nothing() outcome { return success("") }

// ends gives a run another outcome.
func ends(how work.Outcome, reason string) outcome {
	return func(_ *world, _ *work.Tree, _ *work.Task, end *work.End) { end.Outcome, end.Error = how, reason }
}

// unresolved ends a run whose work conflicts in files.
func unresolved(commit, mergeIn string, files ...string) outcome {
	return func(w *world, tree *work.Tree, t *work.Task, end *work.End) {
		success(commit)(w, tree, t, end)
		end.Conflicts, end.MergeIn = files, mergeIn
	}
}

// exits ends a command's run with an exit code.
func exits(code int, tail string) outcome {
	return func(_ *world, _ *work.Tree, _ *work.Task, end *work.End) {
		end.Outcome, end.ExitCode, end.Tail = work.Success, &code, tail
		if code != 0 {
			end.Outcome = work.FailedRun
		}
	}
}

// endRun reports the end of a running execution.
func (w *world) endRun(tree *work.Tree, x *work.Execution, how outcome) error {
	end := work.End{Execution: x.ID, Fence: x.Fence}
	how(w, tree, tree.Task(x.TaskID), &end)
	return w.do(tree, work.System(), end)
}

// gatesEnd reports what the gates of a task said.
func (w *world) gatesEnd(tree *work.Tree, x *work.Execution, passed bool) error {
	return w.do(tree, work.System(), work.End{
		Execution: x.ID, Fence: x.Fence, Outcome: work.Success, Gates: gateResult(passed),
	})
}

func gateResult(passed bool) []work.GateResult {
	if passed {
		return []work.GateResult{{Command: "make test"}}
	}
	return []work.GateResult{{Command: "make test", ExitCode: 2, Output: "1 test failed"}}
}

// approval approves, with proof for every criterion.
func approval(t *work.Task) *work.Verdict {
	v := &work.Verdict{Approved: true, Reasoning: "good"}
	for _, c := range t.AcceptanceCriteria {
		v.Criteria = append(v.Criteria, work.Criterion{Criterion: c, Met: true, How: "go test: exit 0"})
	}
	return v
}

// rejection rejects with findings.
func rejection(reason string, findings ...work.Finding) *work.Verdict {
	return &work.Verdict{Reasoning: reason, Findings: findings}
}

// integrates carries out an integration, unless it conflicts.
func (w *world) integrate(e work.Effect, conflict bool) error {
	tree := w.tree(e.Tree)
	if tree == nil || tree.Task(e.Into) == nil {
		return nil
	}
	into := tree.Task(e.Into)
	head := w.git.head(tree, into)
	switch {
	case e.Contains != "" && !w.git.contains(e.Commit, e.Contains):
		return w.do(tree, work.System(), work.IntegrateLacks{Task: e.Task, Into: e.Into, Commit: e.Commit})
	case w.git.contains(head, e.Commit): // after a crash: the reference had moved
	case conflict:
		return w.do(tree, work.System(), work.IntegrateConflict{
			Task: e.Task, Into: e.Into, Commit: e.Commit, Head: head, Files: []string{"a"},
		})
	default:
		w.git.branches[into.ID] = w.git.merge(head, e.Commit)
	}
	head = w.git.branches[into.ID]
	return w.do(tree, work.System(), work.Integrated{
		Task: e.Task, Into: e.Into, Commit: e.Commit, Head: head, Result: result(w.git.start(tree, into), head),
	})
}

// take removes the oldest undelivered effect of a kind for a task from the queue.
func (w *world) take(kind work.EffectKind, task work.TaskID) (work.Effect, bool) {
	for i, e := range w.effects {
		if e.Kind == kind && (e.Task == task || task == "") {
			w.effects = append(w.effects[:i:i], w.effects[i+1:]...)
			return e, true
		}
	}
	return work.Effect{}, false
}

// recheck delivers every outstanding look at trees that others have moved.
func (w *world) recheck() {
	for {
		e, ok := w.take(work.Recheck, "")
		if !ok {
			return
		}
		if err := w.do(w.tree(e.Tree), work.System(), work.Settle{}); err != nil {
			panic(fmt.Sprintf("recheck %s: %v", e.Tree, err))
		}
	}
}

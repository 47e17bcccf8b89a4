package review_test

import (
	"slices"

	"github.com/claudomator/claudomator/internal/work"
)

var actions = []work.Action{
	work.DoAccept, work.DoReject, work.DoAnswer, work.DoMessage, work.DoRetry, work.DoCancel, work.DoSubmit,
	work.DoDrop, work.DoPostpone, work.DoMerge, work.DoStart, work.DoRemove,
}

// person asks something of some task. What the tree offers must be possible, and
// what it does not offer must be refused.
func (s *sim) person() {
	if len(s.trees) == 0 {
		return
	}
	tree := s.trees[s.choose(len(s.trees))]
	tasks := tree.Tasks()
	if len(tasks) == 0 {
		return
	}
	s.refresh(tree)
	if tree.Story != nil && s.one(2) {
		s.actOnStory(tree)
		return
	}
	t := tasks[s.choose(len(tasks))]
	switch s.choose(10) {
	case 7:
		s.add(tree, t)
		return
	case 8:
		s.patch(tree, t, tasks)
		return
	case 9:
		if s.settleMerge(tree, t) {
			return
		}
	}
	legal := tree.Actions(t)
	action := actions[s.choose(len(actions))]
	if !s.one(4) && len(legal) > 0 {
		action = legal[s.choose(len(legal))]
	}
	if action == work.DoRemove && !s.one(4) {
		return
	}
	was := t.State
	err := s.do(tree, alice, s.command(t, action))
	s.say("alice: %s %s (%s): %v", action, t.ID, was, err)
	if offered := slices.Contains(legal, action); (err == nil) != offered {
		switch e, _ := work.AsError(err); {
		case err == nil:
			s.fail("%s of %s was not offered, and done", action, t.ID)
		case e.Reason == "cap_reached", e.Reason == "has_children":
		default:
			s.fail("%s of %s was offered, and refused: %v", action, t.ID, err)
		}
	}
	if err == nil && action == work.DoRemove && tree.Size() == 0 {
		s.trees = slices.DeleteFunc(s.trees, func(other *work.Tree) bool { return other == tree })
		delete(s.outer, tree.Root())
		s.settleAll(false)
	}
}

func (s *sim) command(t *work.Task, action work.Action) work.Command {
	switch action {
	case work.DoStart:
		return work.StartTask{Task: t.ID}
	case work.DoAccept:
		return work.AcceptTask{Task: t.ID, Land: s.whether(t)}
	case work.DoReject:
		return work.RejectTask{Task: t.ID, Comment: "no", Findings: s.findings(), Extra: s.choose(3) / 2}
	case work.DoAnswer:
		return work.AnswerTask{Task: t.ID, Text: "that"}
	case work.DoMessage:
		return work.MessageTask{Task: t.ID, Text: "mind this"}
	case work.DoRetry:
		return work.RetryTask{Task: t.ID, Fresh: s.one(3)}
	case work.DoCancel:
		return work.CancelTask{Task: t.ID}
	case work.DoSubmit:
		return work.SubmitTask{Task: t.ID}
	case work.DoDrop:
		return work.DropTask{Task: t.ID}
	case work.DoPostpone:
		return work.PostponeTask{Task: t.ID}
	case work.DoMerge:
		return work.StartMerge{Task: t.ID}
	case work.DoRemove:
		return work.RemoveTask{Task: t.ID}
	}
	panic("no command for " + action)
}

// whether work is landed: yes, where it can be, no, or left open.
func (s *sim) whether(t *work.Task) *bool {
	if s.one(3) {
		return nil
	}
	return new(s.one(2) && t.Lands())
}

// add puts a child below a task by hand.
func (s *sim) add(tree *work.Tree, parent *work.Task) {
	if tree.Size() > 40 {
		return
	}
	in := work.TaskInput{Name: "by hand", ParentTaskID: parent.ID, Draft: s.one(3), Kind: pick(s, work.Subtask, work.Improvement)}
	for _, sibling := range tree.Children(parent.ID) {
		if s.one(3) {
			in.DependsOn = append(in.DependsOn, sibling)
		}
	}
	err := s.do(tree, alice, work.CreateTask{ID: work.TaskID(s.ids.New()), Input: in})
	s.say("alice: adds a child to %s (%s) after %v: %v", parent.ID, parent.State, in.DependsOn, err)
}

// patch edits a task: its text, its draft flag, what it depends on.
func (s *sim) patch(tree *work.Tree, t *work.Task, tasks []*work.Task) {
	c := work.PatchTask{Task: t.ID}
	switch s.choose(3) {
	case 0:
		text := "otherwise"
		c.Instructions = &text
	case 1:
		draft := false
		c.Draft = &draft
	case 2:
		on := []work.Position{}
		for range s.choose(3) {
			on = append(on, tasks[s.choose(len(tasks))].Position())
		}
		c.DependsOn = &on
	}
	err := s.do(tree, alice, c)
	s.say("alice: edits %s: %v", t.ID, err)
}

// settleMerge continues or aborts a paused landing.
func (s *sim) settleMerge(tree *work.Tree, t *work.Task) bool {
	m := tree.OpenMerge(t.ID)
	if m == nil {
		return false
	}
	var err error
	if paused := m.Status == work.MergeConflicted; s.one(2) {
		err = s.do(tree, alice, work.AbortMerge{Merge: m.ID})
		s.say("alice: aborts %s: %v", m.ID, err)
		if (err == nil) != paused {
			s.fail("abort: %v", err)
		}
	} else {
		err = s.do(tree, alice, work.ContinueMerge{Merge: m.ID})
		s.say("alice: continues %s: %v", m.ID, err)
		if (err == nil) != paused {
			s.fail("continue: %v", err)
		}
	}
	return true
}

package review_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/claudomator/claudomator/internal/review"
	"github.com/claudomator/claudomator/internal/work"
)

// wide is a tree of n siblings below a root that waits for them; some wait for a
// person, so that the inbox is long too.
func wide(n int) *work.Tree {
	rows := []*work.Task{{ID: "root", TreeID: "root", Kind: work.TopLevel, Name: "root", State: work.Blocked, BlockedOn: work.OnChildren, AttemptNo: 1, Book: work.Book{Ran: true}}}
	for i := range n {
		t := &work.Task{
			ID: work.TaskID(fmt.Sprintf("t%d", i)), TreeID: "root", Kind: work.Subtask, Name: "t", ParentTaskID: "root", AttemptNo: 1,
			Priority: work.Normal, Retry: work.Retry{MaxAttempts: 1, Backoff: work.Linear},
			State: work.Completed, Accepted: &work.Acceptance{}, CreatedAt: time.Unix(int64(i), 0),
		}
		if i%10 == 0 {
			t.State, t.BlockedOn, t.Hold, t.Accepted, t.Review = work.Ready, work.OnPerson, work.HoldHuman, nil, "human"
		}
		rows = append(rows, t)
	}
	tree := work.NewTree("root", rows, nil, nil)
	tree.Project = work.Project{ID: "p", Agent: "scripted"}
	return tree
}

// deep is a chain of n siblings, each after the one before.
func deep(n int) *work.Tree {
	rows := []*work.Task{{ID: "root", TreeID: "root", Kind: work.TopLevel, Name: "root", State: work.Blocked, BlockedOn: work.OnChildren, AttemptNo: 1}}
	for i := range n {
		t := &work.Task{
			ID: work.TaskID(fmt.Sprintf("t%d", i)), TreeID: "root", Kind: work.Subtask, Name: "t", ParentTaskID: "root", AttemptNo: 1,
			Priority: work.Normal, Retry: work.Retry{MaxAttempts: 1, Backoff: work.Linear},
			State: work.Queued, BlockedOn: work.OnDependencies, CreatedAt: time.Unix(int64(i), 0),
		}
		if i > 0 {
			t.DependsOn = []work.Position{work.Position(fmt.Sprintf("t%d", i-1))}
		}
		rows = append(rows, t)
	}
	tree := work.NewTree("root", rows, nil, nil)
	tree.Project = work.Project{ID: "p", Agent: "scripted"}
	return tree
}

// turn decides one command on a tree, settles it and makes its change set.
func turn(b *testing.B, tree *work.Tree, c work.Command) {
	b.Helper()
	step := work.NewStep(tree, time.Unix(1e6, 0), &names{}, work.System())
	step.MaxFixes = review.MaxFixes(tree)
	if err := work.Decide(step, c); err != nil {
		b.Fatal(err)
	}
	if err := review.Settle(step, review.Rules{}); err != nil {
		b.Fatal(err)
	}
	if cs := step.ChangeSet(); len(cs.Tasks) == 0 {
		b.Fatal("nothing changed")
	}
	step.Committed(tree.Version + 1)
}

// BenchmarkStep is one decision in a tree of a thousand: it must not grow with
// what is finished.
func BenchmarkStep(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		for name, make := range map[string]func(int) *work.Tree{"siblings": wide, "chain": deep} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				tree := make(n)
				text := []string{"a", "b"}
				for i := 0; b.Loop(); i++ {
					turn(b, tree, work.PatchTask{Task: "t0", Description: &text[i%2]})
				}
			})
		}
	}
}

// BenchmarkCascade cancels a whole chain and brings it back, in two steps.
func BenchmarkCascade(b *testing.B) {
	for _, n := range []int{100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			tree := deep(n)
			for b.Loop() {
				turn(b, tree, work.CancelTask{Task: "t0"})
				turn(b, tree, work.RetryTask{Task: "t0"})
			}
		})
	}
}

// BenchmarkSettleAll is what a start of the server does with an open tree.
func BenchmarkSettleAll(b *testing.B) {
	tree := wide(1000)
	for b.Loop() {
		step := work.NewStep(tree, time.Unix(1e6, 0), &names{}, work.System())
		if err := work.Decide(step, work.Settle{Redeliver: true}); err != nil {
			b.Fatal(err)
		}
		if err := review.Settle(step, review.Rules{}); err != nil {
			b.Fatal(err)
		}
	}
}

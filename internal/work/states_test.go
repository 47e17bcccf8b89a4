package work

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

//go:generate go test -run ^TestStatesDoc$ . -update

var update = flag.Bool("update", false, "write docs/states.md again")

const statesDoc = "../../docs/states.md"

// TestStatesDoc: docs/states.md is generated from the tables and guards, and holds
// every state with every trigger, and every action in every situation: a change
// of a row or a guard shows in its diff.
func TestStatesDoc(t *testing.T) {
	t.Parallel()
	want := statesText()
	if *update {
		if err := os.WriteFile(statesDoc, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(statesDoc)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("docs/states.md is not current; run go generate ./internal/work (-want +got)\n%s", diff)
	}
}

func statesText() string {
	var b strings.Builder
	b.WriteString(`# States

<!-- Generated from internal/work/state.go and ask.go by "go generate ./internal/work"; do not edit. -->

Three machines, each a table of rows in ` + "`internal/work/state.go`" + `. An execution's outcome is an input to its task's
machine, never the same thing. An empty cell is refused.

## Task

What a QUEUED, BLOCKED or READY task waits for is its ` + "`blocked_on`" + `, not a state of its own.

`)
	machine(&b, TaskMachine())
	b.WriteString("\n## Execution\n\n")
	machine(&b, ExecutionMachine())
	b.WriteString("\n## Story\n\nThe steps that people and landings take; the rest of a story's status follows from its tree.\n\n")
	machine(&b, StoryMachine())
	b.WriteString("\n## What a person can ask of a task\n\nBy what the task is and waits for. Whatever is not marked answers 409 and names what is.\n\n")
	offers(&b)
	return b.String()
}

func machine[S, T ~string](b *strings.Builder, t Table[S, T]) {
	b.WriteString("```mermaid\n" + t.Diagram() + "```\n\n")
	triggers := triggersOf(t)
	b.WriteString("| from |")
	for _, trigger := range triggers {
		fmt.Fprintf(b, " %s |", trigger)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(triggers)) + "\n")
	for _, s := range t.States {
		fmt.Fprintf(b, "| %s |", s)
		for _, trigger := range triggers {
			to, _ := t.Next(s, trigger)
			fmt.Fprintf(b, " %s |", to)
		}
		b.WriteString("\n")
	}
}

// situations are the cases that the guards tell apart.
func situations() []struct {
	name string
	tree *Tree
	task TaskID
} {
	type situation = struct {
		name string
		tree *Tree
		task TaskID
	}
	var out []situation
	waits := map[State][]BlockedOn{
		Queued:  {OnSlot, OnDependencies},
		Blocked: {OnChildren, OnQuestion, OnConflict},
		Ready:   {OnPerson, OnGates, OnJudges, OnIntegration, OnLanding},
	}
	for _, state := range States() {
		on := waits[state]
		if on == nil {
			on = []BlockedOn{NotBlocked}
		}
		for _, w := range on {
			label := string(state)
			if w != NotBlocked {
				label += "(" + string(w) + ")"
			}
			root := row("root", in(state, w))
			root.Accepted = &Acceptance{Commit: "c"}
			root.Question = &Question{Text: "?"}
			out = append(out, situation{label, grow(root), "root"})
			child := row("child", in(state, w), below("root"))
			child.Accepted = root.Accepted
			out = append(out, situation{"child: " + label, grow(row("root", in(Blocked, OnChildren)), child), "child"})
		}
	}
	bad := in(Failed, NotBlocked)
	superseded := row("root", in(Ready, NotBlocked))
	superseded.SupersededBy = "fix"
	dropped := row("child", bad, below("root"))
	dropped.Dropped = true
	extra := func(t *Task) { t.Kind = Improvement }
	judge := row("judge", bad)
	judge.Judges = &Judged{TaskID: "root", Commit: "c"}
	judged := row("root", in(Ready, OnPerson))
	judged.Book.Head = "c"
	story := row("root", in(Completed, NotBlocked))
	story.StoryID, story.Accepted = "s", &Acceptance{Commit: "c"}
	told := grow(story)
	told.Story = &Story{ID: "s", Status: ReviewReady}
	landed := row("root", in(Completed, NotBlocked))
	landed.Landed = &Landing{Branch: "main", Commit: "c"}
	out = append(out,
		situation{"superseded attempt", grow(superseded, row("fix", attempt("root", 2), in(Ready, OnPerson))), "root"},
		situation{"its fix, READY(person)", grow(superseded, row("fix", attempt("root", 2), in(Ready, OnPerson))), "fix"},
		situation{"child: dropped", grow(row("root", in(Blocked, OnChildren)), dropped), "child"},
		situation{"child: FAILED, its parent too", grow(row("root", bad), row("child", bad, below("root"))), "child"},
		situation{"child: FAILED, its sibling waits for it", grow(row("root", in(Blocked, OnChildren)), row("child", bad, below("root")), row("next", below("root"), after("child"))), "child"},
		situation{"child: FAILED, what it waits for too", grow(row("root", in(Blocked, OnChildren)), row("child", bad, below("root"), after("dep")), row("dep", bad, below("root"))), "child"},
		situation{"child: draft", grow(row("root", in(Blocked, OnChildren)), row("child", below("root"), func(t *Task) { t.Draft = true })), "child"},
		situation{"improvement: FAILED, its parent READY", grow(row("root", in(Ready, OnPerson)), row("child", bad, below("root"), extra)), "child"},
		situation{"judge: FAILED, its work READY", grow(judged, judge), "judge"},
		situation{"landed", grow(landed), "root"},
		situation{"story's root, REVIEW_READY", told, "root"},
	)
	return out
}

func offers(b *strings.Builder) {
	b.WriteString("| task |")
	for _, g := range guards() {
		fmt.Fprintf(b, " %s |", g.Action)
	}
	b.WriteString("\n|---|" + strings.Repeat(":-:|", len(guards())) + "\n")
	for _, s := range situations() {
		legal := s.tree.Actions(s.tree.Task(s.task))
		fmt.Fprintf(b, "| %s |", s.name)
		for _, g := range guards() {
			mark := ""
			if slices.Contains(legal, g.Action) {
				mark = "×"
			}
			fmt.Fprintf(b, " %s |", mark)
		}
		b.WriteString("\n")
	}
}

// TestTables: what must be true of the tables whatever rows they get.
func TestTables(t *testing.T) {
	t.Parallel()
	m := TaskMachine()
	for _, s := range States() {
		for _, trigger := range triggersOf(m) {
			to, ok := m.Next(s, trigger)
			if s == Completed && ok {
				t.Errorf("COMPLETED is left by %s", trigger)
			}
			if to == Completed && s != Ready {
				t.Errorf("%s is completed from %s: nothing is accepted that was not READY", trigger, s)
			}
			if to == Running && s != Queued {
				t.Errorf("%s runs without having been queued", s)
			}
		}
		if _, ok := m.Next(s, OnCancel); ok == s.Ended() {
			t.Errorf("cancel of %s: %v; it works in every state that is not an end", s, ok)
		}
		if _, ok := m.Next(s, OnQueue); s.EndedBadly() && !ok {
			t.Errorf("%s cannot be retried", s)
		}
	}
	if _, ok := m.Next("nowhere", OnQueue); ok {
		t.Error("a state that does not exist has a next one")
	}
}

// doubts lists rows that name an unknown state, or contradict another row.
func doubts[S, T ~string](t Table[S, T]) []string {
	var out []string
	for i, r := range t.Rows {
		if !slices.Contains(t.States, r.From) || !slices.Contains(t.States, r.To) {
			out = append(out, fmt.Sprintf("%s: row %v names an unknown state", t.Name, r))
		}
		for _, other := range t.Rows[:i] {
			if other.From == r.From && other.Trigger == r.Trigger {
				out = append(out, fmt.Sprintf("%s: two rows for %s on %s", t.Name, r.Trigger, r.From))
			}
		}
	}
	return out
}

// triggersOf lists every trigger of the table once, in order of its rows.
func triggersOf[S, T ~string](t Table[S, T]) []T {
	var out []T
	for _, r := range t.Rows {
		if !slices.Contains(out, r.Trigger) {
			out = append(out, r.Trigger)
		}
	}
	return out
}

func TestTablesHaveNoDoubtfulRows(t *testing.T) {
	t.Parallel()
	found := slices.Concat(doubts(TaskMachine()), doubts(ExecutionMachine()), doubts(StoryMachine()))
	if len(found) > 0 {
		t.Errorf("%q", found)
	}
	for name, rows := range map[string][]Row[State, Trigger]{
		"unknown state":   {{Pending, OnQueue, "nowhere"}},
		"two next states": {{Pending, OnQueue, Queued}, {Pending, OnQueue, Running}},
	} {
		if got := doubts(Table[State, Trigger]{"test", States(), rows}); len(got) != 1 {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestSituationsAreRefusedWithTheWayOut: an illegal action names the legal ones.
func TestSituationsAreRefusedWithTheWayOut(t *testing.T) {
	t.Parallel()
	for _, s := range situations() {
		task := s.tree.Task(s.task)
		legal := s.tree.Actions(task)
		for _, g := range guards() {
			_, err := step(s.tree).ask(s.task, g.Action)
			if offered := slices.Contains(legal, g.Action); (err == nil) != offered {
				t.Errorf("%s: %s offered %v, asked %v", s.name, g.Action, offered, err)
			}
			if err == nil {
				continue
			}
			e, ok := AsError(err)
			if !ok || e.Code != Illegal || e.Reason == "" {
				t.Errorf("%s: %s is refused with %v, without a reason", s.name, g.Action, err)
			}
			if e.Hint == "" && len(legal) > 0 {
				t.Errorf("%s: %s is refused without a hint", s.name, g.Action)
			}
		}
	}
}

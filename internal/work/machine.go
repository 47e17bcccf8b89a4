package work

import (
	"fmt"
	"slices"
	"strings"
)

// Row is one legal transition.
type Row[S, T ~string] struct {
	From    S
	Trigger T
	To      S
}

// Table is a state machine as data. From its rows follow the next state, the
// legal triggers, the diagrams in docs/states.md, the golden test of every
// state and trigger, and the CHECK constraints of the database.
type Table[S, T ~string] struct {
	Name   string
	States []S
	Rows   []Row[S, T]
	next   map[S]map[T]S
}

func newTable[S, T ~string](name string, states []S, rows []Row[S, T]) Table[S, T] {
	next := make(map[S]map[T]S, len(states))
	for _, s := range states {
		next[s] = map[T]S{}
	}
	for _, r := range rows {
		if next[r.From] == nil || next[r.To] == nil {
			panic(fmt.Sprintf("%s: row %v names an unknown state", name, r))
		}
		if _, twice := next[r.From][r.Trigger]; twice {
			panic(fmt.Sprintf("%s: two rows for %s on %s", name, r.Trigger, r.From))
		}
		next[r.From][r.Trigger] = r.To
	}
	return Table[S, T]{Name: name, States: states, Rows: rows, next: next}
}

// Next is the state after trigger, or false when no row allows it.
func (t Table[S, T]) Next(from S, trigger T) (S, bool) {
	to, ok := t.next[from][trigger]
	return to, ok
}

// Triggers lists every trigger of the table once, in order of its rows.
func (t Table[S, T]) Triggers() []T {
	var out []T
	for _, r := range t.Rows {
		if !slices.Contains(out, r.Trigger) {
			out = append(out, r.Trigger)
		}
	}
	return out
}

// Diagram is the table as a Mermaid state diagram.
func (t Table[S, T]) Diagram() string {
	var b strings.Builder
	b.WriteString("stateDiagram-v2\n")
	for _, r := range t.Rows {
		fmt.Fprintf(&b, "    %s --> %s: %s\n", r.From, r.To, r.Trigger)
	}
	return b.String()
}

package work

import (
	"fmt"
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
}

// Next is the state after trigger, or false when no row allows it.
func (t Table[S, T]) Next(from S, trigger T) (S, bool) {
	for _, r := range t.Rows {
		if r.From == from && r.Trigger == trigger {
			return r.To, true
		}
	}
	return "", false
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

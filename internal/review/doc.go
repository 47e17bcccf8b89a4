// Package review judges finished work: policies as values, and the one
// interpreter that drives every READY task of a tree by its policy.
//
// [Settle] takes the tree of a [work.Step] to a fixpoint: it lets the structure
// follow ([work.Step.Follow]: dependencies, cascades, roll-up), then, for each
// READY task, does the next thing its [Policy] asks for: run the gates, spawn a
// missing judge, read the verdicts, accept, report, spawn a fix attempt, or wait
// for a person. It is pure and idempotent: settling twice changes nothing. [Rules]
// resolve who does a run ([Rules.Worker]) and who judges it ([Rules.Judge]).
//
// # Invariants
//
//   - No code outside this package asks which role a task has in a review.
//   - A judge is identified by attempt, commit, role and number; a missing one
//     is spawned, a present one never twice.
//   - No verdict is not a rejection and never an approval; nothing is approved
//     by exhaustion; a failing gate cannot be talked away.
//   - Under arbitrated only the root's task moves a story's status; under checked
//     the plan's tasks do, its direct children.
//
// # Who calls it
//
// Package app, after every command and at start-up.
//
// # When it fails
//
// An error means a rule is broken (a loop, an unknown policy): nothing is
// committed, and the command that led there is refused.
package review

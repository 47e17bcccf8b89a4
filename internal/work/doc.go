// Package work is the domain: what a task, an execution, a story, a project, a
// role and a merge are, which states they have, and what a command does to a
// tree of tasks.
//
// It is pure. A command is decided by [Decide] on a [Step], which holds one
// [Tree] (a top-level task and all below it, with its judging tasks), the
// instant, and a source of identifiers; the result is a [ChangeSet] of rows,
// events and effects, or an [Error]. No clock, no randomness, no IO: the same
// command on the same tree always gives the same changes.
//
// # Invariants
//
//   - A state changes only along a row of the task table ([TaskMachine]), an
//     execution's along one of [ExecutionMachine]; docs/states.md shows both.
//   - "Which task stands at this place now" is decided by [Tree.Current] alone.
//     A [Position] (the anchor) and a [TaskID] are different types, so that
//     reading an anchor's state where the current attempt is meant does not
//     compile.
//   - Nothing rewrites a pointer to an attempt: a fix attempt points back at its
//     anchor, and the rejected attempt keeps the state it had. (Children that a
//     rejected run has spawned and that are not settled go on below its fix.)
//   - A story's status changes along a row of its table ([StoryMachine]) when
//     somebody acts, or as package review derives it from the tree.
//   - Identifiers of judging tasks, fixes, executions and spawned children are
//     derived from position, role and number: nothing can be made twice.
//   - Every change of a task marks it, its parent, the tasks that depend on it
//     and the task it judges as touched; package review settles what was
//     touched until nothing more follows.
//
// # Who calls it
//
// Package app alone applies commands; package review reads the tree and uses
// the Step's verbs (Accept, SpawnFix, SpawnJudge, StartGates, FollowShip). Surfaces use its
// types and its errors.
//
// # When it fails
//
// A command that the state does not allow returns an *Error and has changed
// nothing: [Step.Dirty] is false, and the tree can be used again. An error after
// changes (package review found a broken rule) leaves the caller to throw the
// Step and its Tree away; nothing half-done is kept, because nothing was written.
//
// Effects are delivered at least once, late or doubled; a report about what is
// past is refused with [Conflict] and changes nothing. What was never delivered is
// given again by [Settle] with Redeliver.
package work

// Package app is the application service: the only writer of the program.
//
// Whatever changes a tree goes one way ([Service.Do]): load the tree (from
// memory while its version stands), decide ([work.Decide]), settle
// ([review.Settle]), commit (one transaction: rows, events, effects), then, and
// only then, tell the event hub and the engine.
//
// # Invariants
//
//   - One decision at a time per tree in this process (a keyed lock); between
//     processes the tree's version decides, and a loser reloads and decides
//     again, at most five times.
//   - A refused command changes nothing; a tree whose decision failed is
//     forgotten and read again.
//   - Authorisation is here: every method looks at the [Caller] in its context.
//
// # Who calls it
//
// The surfaces, through [API] (the use cases, named by the user's verbs), and
// the engine, through Do, View and PlanRun.
//
// # When it fails
//
// Every error is a *work.Error; what is not one is a bug and becomes
// [work.Internal] at the edge.
package app

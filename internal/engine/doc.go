// Package engine carries out what was decided: it delivers effects, runs
// executions, holds leases and fires timers. It decides nothing itself and
// writes no state: all it learns it reports with commands ([Core].Do).
//
// # How work flows
//
//	commit ──effects──► River job ──► deliver ──► agent, git ──► command ──► commit
//	   └──wake_at──► timer ──► Wake                  ▲
//	start ──► recover: sweep processes, Lose, Settle, missing jobs again
//
// Effects are River jobs inserted by the commit that decided them. A job is a
// nudge: it may come late, twice, or after the fact, and then finds its row
// past that point and does nothing. One long agent run is one job without a
// time limit, beside the execution row {node, fence, lease} that is the truth.
// River's client works while there are jobs, and rests while there are none.
//
// # Invariants
//
//   - An execution is begun by one compare-and-set; every report carries its
//     fence. While it runs its lease is renewed; what is not is Lost.
//   - Two runs of one task never overlap: an execution ends, or is lost, only
//     when its process tree is gone for certain.
//   - A workspace is claimed by the run in it, or by who removes it: none goes to
//     the bin under a run, and one that begins meanwhile waits for its new one.
//   - The plain text of a transcript is removed only when its compressed form is
//     on the disk, and never while a run here has it open.
//   - A report of a run is repeated until it is stored, or the server stops.
//   - What the server runs itself (gates, deployments, smoke validations) runs in a
//     throw-away workspace of one commit, without a run token. A deployment is begun
//     once for each press of Ship; cut off, it has failed, and a person decides.
//   - A push never takes commits away from the remote that a ship of the same story
//     has not put there. One job follows a pull request, and waits in the queue
//     between two looks.
//   - Slots are taken before an execution is begun. What finds none stays
//     queued in the database, and a freed slot takes the most urgent, with age.
//
// # What happens when it fails
//
// A server killed at any instant: [Engine.Run] recovers at start. An effect
// whose handler fails is delivered again by River, after a wait. A stopped
// server ends its runs, keeps their work, and queues their tasks again.
package engine

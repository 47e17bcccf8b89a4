// Package agent runs coding agents: one run of one program on one job, its
// output as events, its end as an outcome.
//
// Agent is the interface that everything else sees. An adapter (a package
// below this one) knows how its program is started and what its output means;
// Runner does what is the same for all of them and must not be forgotten by
// any: environment, limits, stopping, ending the process tree, sanitising,
// bounding the transcript, deciding the outcome.
//
//	Agent.Run ── adapter ── Runner.Run ── sandbox.Host.Start … Process.End
//	                │            │
//	          Program: argv,     ├─ lines ──▶ Program.Line ──▶ Session.Emit ──▶ Sink
//	          stdin, stop, Line  └─ exit, cause, reports ──▶ Decide ──▶ Result
//
// # Invariants
//
//   - Run blocks until the run is over, and when it returns no process of the
//     run is alive and nothing is emitted any more. The one exception is an
//     error that wraps sandbox.ErrNotEnded.
//   - A run that is cancelled ends with an outcome that follows from the cause
//     of the cancellation (ErrCancelled, ErrStopping, ErrTimeout, ErrBudget,
//     ErrParked).
//   - Wall limit and silence limit hold for every adapter; there is no run
//     without them.
//   - Every outcome is decided by one table, Rules, from facts that are kept
//     in the Result. Exit codes lie in both directions: exit 0 alone proves
//     success only where an adapter says so.
//   - Memory per run is bounded whatever the program prints; every event is
//     valid UTF-8 without NUL or terminal control sequences.
//   - A prompt goes by standard input or file, never in argv.
//   - An agent inherits an allow-list of variables only, never the server's
//     own ones or the marks of an agent around the server.
//
// # Who calls it
//
// Package engine, once per execution. Package agenttest holds the suite every
// adapter passes.
//
// # What happens when it fails
//
// What the agent does wrong is an outcome in the Result, with Error in words
// for people. A non-nil error means that the run could not be started (it
// wraps the named error of sandbox or of the adapter) or could not be ended
// for certain (sandbox.ErrNotEnded); the Result then holds what is known, its
// outcome is Failed, or Cancelled if that came first.
package agent

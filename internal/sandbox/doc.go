// Package sandbox starts a process tree under an isolation level and ends all
// of it.
//
// A run is one Spec: a program, its directory, its complete environment, and
// where its output goes. Host.Start begins it, Process.Wait waits for its main
// process, Process.Stop asks it politely, and Process.End ends everything the
// run ever started. Level "none" is built; "sandbox" and "container" are
// answered with ErrLevelNotBuilt, and Host.Probe says so.
//
// # Invariants
//
//   - A started run is always ended with Process.End, also after a clean exit:
//     only then are its processes gone, its output complete, its goroutines
//     joined and its record removed.
//   - What is needed to find a run's tree again is in the state directory
//     before the program runs: its id (which is also the marker in the
//     environment) and its cgroup. Process id and start time are added as soon
//     as they exist. A record goes only after the tree is proved empty.
//   - A process is signalled only after it was identified as part of the run:
//     by cgroup, by marker, by session, or as a descendant of such a process;
//     and only through a handle checked against its start time, so a reused
//     process id is never hit.
//   - Nothing here waits for "any child": waits of other packages are never
//     stolen.
//   - An output writer never makes the run fail or hang: a failing one is
//     dropped and reported, a flood is capped, and streams are read
//     independently of each other.
//
// # How a tree is ended
//
//	        cgroup v2 writable?
//	       yes │           │ no
//	kill the cgroup     stop every process found by marker, session and
//	and remove it       descent until none is new, then kill them all;
//	       │            again until none is alive
//	       └─────┬─────┘
//	orphans handed to this process (it is a subreaper): those with the run's
//	marker are ended the same way, dead ones are reaped
//
// With a cgroup the end is certain for everything that did not move itself to
// another cgroup as root. Without one, a process that leaves the session,
// loses its parent and clears its environment may survive; Probe says which
// of the two this machine offers.
//
// # Who calls it
//
// Package agent for the runs of agents, package engine for setup, gates and
// deploys and, at start, for Leftovers and Sweep of a former life.
//
// # What happens when it fails
//
// A run that cannot be started returns a named error (ErrNoProgram,
// ErrNotExecutable, ErrNoDirectory, ErrTooLarge, ErrInvalid,
// ErrLevelNotBuilt) and leaves nothing behind. A tree that cannot be ended in
// ten seconds returns ErrNotEnded and keeps its record, so that Leftovers
// shows it and Sweep can be tried again.
package sandbox

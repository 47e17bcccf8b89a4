// Package agenttest is the conformance suite for agents: what every adapter
// must do, whatever program it runs.
//
// # Invariants
//
//   - Each test runs real processes and ends them.
//   - The suite knows no adapter; a Harness translates its shell texts into
//     jobs.
//
// # Who calls it
//
// The tests of each adapter, with one call of Run.
//
// # What happens when it fails
//
// A failing test names the promise of package agent that is broken.
package agenttest

// Package command is the agent that is any program: it runs Job.Command, else
// the configured one, else a shell, in the workspace.
//
// # Invariants
//
//   - Standard input is the prompt, byte for byte, then its end. A program
//     that does not read it is no fault.
//   - Exit 0 is success, any other status a failure.
//   - Each line of output is a log event that names its stream. A line that
//     begins with "CLAUDOMATOR_BLOCKED:" is a blocker event as well.
//
// # Who calls it
//
// The engine, through agent.Agent; test scripts stand on it.
//
// # What happens when it fails
//
// As for every agent, see package agent. There is no session to resume and no
// usage to report.
package command

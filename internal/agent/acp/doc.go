// Package acp is the agent that is any program which speaks the Agent Client
// Protocol (JSON-RPC over its standard streams, one message a line).
//
//	initialize ─▶ session/new, or session/resume or session/load ─▶ the mode that
//	asks nobody, the model ─▶ session/prompt ─▶ updates … ─▶ stopReason
//
// # Invariants
//
//   - Success is the answer end_turn to the prompt, unless the program reported
//     an error that it did not get over: programs end a turn that an error broke
//     off with end_turn as well. Any other answer, and an end without one, is a
//     failure. Limits are read from structured error data and from the text of
//     errors, never from what the model says.
//   - Every request of the program is answered at once: a permission is given,
//     once; files and terminals are not offered, everything else is not known.
//   - The program's output is read whatever becomes of what is sent to it, so
//     that the two never wait for each other. Unread answers are bounded, and
//     so is a message: of a longer one its readable beginning is taken. What is
//     no message is a line of output.
//   - What a resumed conversation replays is not recorded again.
//   - The prompt is text: bytes that are no UTF-8 arrive as U+FFFD, and a warning
//     says so.
//   - Standard input stays open until the prompt is answered; its end is the
//     request to leave. A run that is stopped asks with session/cancel first.
//
// Cost is what the program reports. Those that report it for the whole
// conversation (OpenCode) count what earlier runs of a resumed one have spent
// again: a budget ends too early rather than too late.
//
// Package github.com/coder/acp-go-sdk gives the types of what is sent. Its
// connection is not used on this side: a message of more than 10 MB, or more than
// 1,024 updates not yet taken, end it, and with it the result of the run; and its
// types of updates refuse what their version does not know.
//
// # Who calls it
//
// The engine, through agent.Agent, for the type "acp", for configured programs,
// and for the type "scripted" (package scripted), which is a program of ours.
//
// # What happens when it fails
//
// As for every agent, see package agent. A conversation that cannot be resumed
// ends at once with Result.NoResume.
package acp

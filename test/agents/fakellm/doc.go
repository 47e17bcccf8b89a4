// Package fakellm is a scripted model server, so that real agent programs can
// be run without a model. It speaks Anthropic's Messages and OpenAI's Responses,
// streamed and not, and answers what a script says.
//
// # Invariants
//
//   - What is answered follows from the request alone: the newest prompt that
//     names another script ("SCRIPT:word") chooses it, and the tool results that
//     came back since choose the turn. Only a fault that passes is counted.
//   - Requests that offer no tools (titles, summaries, probes) never move a
//     script.
//   - A script that cannot go on, because a tool is not offered or a result is
//     not the expected one, says so in the answer and in the log (Request.Miss).
//
// # Who calls it
//
// The tests of the real agent programs, one server each.
//
// # What happens when it fails
//
// A request that cannot be read is answered with 400 and logged with a miss.
package fakellm

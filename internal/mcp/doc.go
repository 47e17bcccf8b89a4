// Package mcp is the run endpoint: what a running agent can do about its own
// task, as tools of the Model Context Protocol over HTTP, and the small client
// behind "claudomator tool".
//
// A tool decodes its arguments, calls one method of [app.RunTools] and encodes
// the result. Descriptions are prompts, so they are files: tools/NAME.md.
//
// # Invariants
//
//   - Every request carries the token of a run that is alive, or gets the same
//     401, whatever it asks for. Nothing of it is read before.
//   - The endpoint keeps no sessions: a request needs none, and one that names a
//     session of a former life of the server is served like any other.
//   - A run sees and calls only the tools its role is offered. What task, tree
//     and execution it speaks for follows from its token, never from arguments.
//   - Arguments are checked whole, by the schema that is published, before app is
//     called: an unknown one is refused by its name.
//   - What app refuses is a tool error that an agent can read and correct: code,
//     reason, message, hint. Protocol errors are for broken requests only.
//
// # Who calls it
//
// cmd mounts the handler at /mcp and hands [Call] to the command line. Agent
// programs speak to the endpoint with clients of their own.
//
// # When it fails
//
// A caller that hangs up does not stop its call: it is carried out, the request
// returns after it, and repeating it finds what it made. A panic or another bug
// ends its call with the id under which the log has the details.
package mcp

//go:generate go test -run ^TestToolList$ . -update

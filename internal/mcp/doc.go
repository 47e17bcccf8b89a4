// Package mcp is what agents reach the server through, as tools of the Model
// Context Protocol over HTTP: what a running agent can do about its own task
// (/mcp, [New]), and what a person's own agent can do in the person's name
// (/mcp/admin, [NewAdmin]); and the small client behind "claudomator tool".
//
//	run ─────► /mcp        run token    tools/NAME.md  ─► app.RunTools
//	person's ─► /mcp/admin  API token    admin/NAME.md  ─► app.API
//
// A tool decodes its arguments, calls one method and encodes the result.
// Descriptions are prompts, so they are files.
//
// # Invariants
//
//   - Every request to /mcp carries the token of a run that is alive, or gets the
//     same 401, whatever it asks for. Nothing of it is read before. /mcp/admin
//     stands behind what all routes of the API stand behind, its token included.
//   - The endpoints keep no sessions: a request needs none, and one that names a
//     session of a former life of the server is served like any other.
//   - A run sees and calls only the tools its role is offered. What task, tree
//     and execution it speaks for follows from its token, never from arguments.
//   - What a person's agent is offered stands in the parity table
//     ([app.Operations]). Its arguments are the Go types that the API takes, its
//     results the objects that the API answers with, its rights the token's.
//   - Arguments are checked whole, by the schema that is published, before app is
//     called, and everything that is wrong is named. A planner's report is handed
//     on with what does not fit: its story keeps that for the person.
//   - What app refuses is a tool error that an agent can read and correct: code,
//     reason, message, hint. Protocol errors are for broken requests only.
//
// # Who calls it
//
// cmd mounts the handlers, the one of people inside the API's, and hands [Call]
// to the command line. Agent programs speak to the endpoints with clients of
// their own.
//
// # When it fails
//
// A caller that hangs up does not stop its call: it is carried out, the request
// returns after it, and repeating it finds what it made. A panic or another bug
// ends its call with the id under which the log has the details.
package mcp

//go:generate go test -run ^TestToolList$ . -update

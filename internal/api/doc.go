// Package api is the HTTP surface: JSON over the use cases of app, one document
// that describes it (OpenAPI 3.1) and a stream of events.
//
// A handler decodes, calls one method of [app.API] and encodes. What a request
// passes before it gets there is in [New]: the last resort for panics, headers,
// the Host allow-list and cross-origin protection ([app.Door]), the credential,
// the memory of repeated requests, the route. The tools of people's agents
// (/mcp/admin) stand behind the same.
//
// # Invariants
//
//   - Every route but /healthz and /readyz needs a credential, loopback
//     included: agents live on the same machine. No token and a bad one get the
//     same answer.
//   - Nothing is decided here: authorisation is app's, whose methods find the
//     caller in their context.
//   - Every error is one problem document (RFC 9457) with the domain's code; one
//     map turns codes into statuses. What a bug says stays in the log, under
//     the id that the answer names.
//   - Keys of a request are spelled exactly as documented: an unknown one, in
//     whatever case, is refused, and changes nothing.
//   - A POST, PUT, PATCH or DELETE repeated with its Idempotency-Key is done
//     once: what makes a task or a story, or ships one, for good (the store
//     remembers), everything else as long as this process remembers (the newest
//     thousand).
//   - An event stream has neither gap nor duplicate over reconnects: ids are
//     sequence numbers. A reader that stops reading is disconnected.
//
// # Who calls it
//
// cmd mounts the handler; package client speaks to it.
//
// # When it fails
//
// A refusal leaves nothing half-written: bodies are read and checked whole
// before app is called. A panic ends its request and no other. Streams end with
// their request's context, so cmd ends the server's base context to stop.
package api

// Package client is app.API spoken over HTTP: what the command line uses
// against a running server.
//
// # Invariants
//
//   - Errors come back as what they were: a *work.Error with code, reason, hint
//     and details, so that callers cannot tell a service from a client.
//   - A request whose connection broke is made once more. Everything that
//     changes something carries an idempotency key of its own, so the server
//     does it once.
//   - An event stream has neither gap nor duplicate: after a break it goes on
//     behind the last event it gave.
//
// # Who calls it
//
// cli, and any program that wants to.
//
// # When it fails
//
// A server that cannot be reached is [work.Unavailable] with a hint. An event
// stream that has once begun tries again until its context ends, with growing
// waits, unless the server refuses it.
package client

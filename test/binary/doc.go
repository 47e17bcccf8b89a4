// Package binary builds the real program and runs its server, for the tests that
// stand on both: test/script, test/chaos, test/agents and test/conformance.
//
// A Server that was launched is stopped or killed by whoever launched it; both
// wait until its process has ended. What a server leaves behind is looked for by
// the tests, since that is what they are about.
package binary

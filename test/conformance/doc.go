// Command conformance runs the official conformance suite of the Model Context
// Protocol against both MCP endpoints of a real server: /mcp, where a running
// agent speaks for its task, and /mcp/admin, where a person's agent speaks for
// the person.
//
//	suite ─► proxy (adds the bearer token) ─► claudomator serve
//
// The suite brings no credential, so a loopback proxy adds it and changes
// nothing else. What does not apply to a server without fixture tools, prompts
// and resources stands in expected-failures.yaml, each scenario with its reason. A
// listed scenario that passes fails the run, as does an unlisted one that fails.
//
// scripts/conformance installs the suite and the Node it needs, pinned in
// package-lock.json, outside of the repository, and calls this. Everything that
// is started here has ended when it returns.
package main

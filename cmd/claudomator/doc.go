// Command claudomator is the whole product in one binary: the server, its
// command line, and the demo.
//
// This package reads the configuration, builds every part and joins them, runs
// them, and turns the error into an exit code. It is the only place that knows
// concrete types; nothing is decided here.
//
// It is called by people and their scripts. When a part cannot be built, what
// was built before it is closed again and the error says what to do.
package main

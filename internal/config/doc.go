// Package config is what a server is told about itself: one struct, filled from
// four layers, each stronger than the one before it: the defaults in [Default], a
// YAML file, the environment (CLAUDOMATOR_…), and flags.
//
// # Invariants
//
// Nothing is ignored. A key that does not exist, a value of the wrong kind, and a
// value out of range are errors that name the key, the place (file and line,
// variable or flag) and what would be right; all of them are reported at once.
//
// Every value knows where it came from ([Config.Origins]). A [Secret] cannot be
// printed by accident: only Reveal shows it.
//
// Field names, descriptions and limits stand once, in the tags of the struct; the
// JSON schema in docs/config.schema.json is generated from them, and a test fails
// when it is not current.
//
// # Who calls it
//
// Only cmd: it loads the settings once at start and hands every package its own
// options. No other package sees a Config.
//
// # What happens when it fails
//
// [Load] returns an [*Error] with every problem, and no Config: a server does not
// start on half of its settings.
package config

//go:generate go test -run ^TestSchema$ . -update

// Package telemetry sets up what the server tells about itself while it runs: the
// log and the metrics. It holds no globals: main makes one of each and hands them
// on; a package that logs or counts gets them from its caller.
//
// # Invariants
//
// A secret that a [Mask] knows is in no line that passes through it, whatever it
// was part of: the mask works on the finished line, not on attributes one by one.
//
// There is one registry of metrics, and nothing is registered in Prometheus's own
// default one.
//
// # Who calls it
//
// cmd sets up log and metrics; whoever hands a fresh secret to a program (a run's
// token) adds it to the mask and takes it away again.
//
// # What happens when it fails
//
// A line that cannot be written is lost, as with any log; nothing waits for it.
// Unknown levels and formats are errors at start.
package telemetry

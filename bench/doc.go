// Command bench measures the server against the numbers it promises, and
// against a bare shell loop that does the same git work in the same run.
//
// It starts the real binary on loopback with data folders of its own, speaks to
// it over the real API, and writes results.md: what was measured, the goal, the
// figure, the ratio to the floor, and whether the goal is met. Wall time is what
// a client sees. CPU time is read from /proc: the server's own, and that of the
// processes it has started and reaped (git and the agent).
//
// Invariants: every process and folder it makes is gone when it ends, also when
// it is interrupted; every wait has a limit; what fails to be measured is a row
// that says so, and makes the exit code 1.
//
// `make bench` runs all of it in some minutes. `go run ./bench -quick` takes
// seconds: it shows that everything can be measured, its figures mean little.
// `-only` chooses sections by name. Its test holds the report's form, never the
// figures: those depend on the machine and on what else runs there.
package main

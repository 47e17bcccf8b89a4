// Package cli is the command line: cobra commands that call one method of an
// app.API each and print what it answers.
//
//	args ── cobra ── command ── connect ── app.API ── page (people) or JSON (programs)
//	                                          │
//	                                          └─ error ── one line and a hint, or a problem object; exit code
//
// # Invariants
//
//   - Standard output holds the answer and nothing else; notices and errors go
//     to standard error.
//   - With -o json the object itself is printed, lists as arrays; only logs and
//     events, which have no end, are one object a line.
//   - Every error is one line that begins "error: ", perhaps one that begins
//     "hint: ", and an exit code of one table (exitCode).
//   - What comes from agents and repositories is printed without effect on the
//     terminal: no control characters, no reordering of text. The two exceptions
//     are meant for programs: JSON, and a diff that goes to no terminal.
//   - The command line decides nothing about tasks: what is legal, and which
//     attempt stands at a place, the server says.
//   - A transcript is told in one way (teller), by task logs and by run.
//   - On a terminal nothing is wider than it, but patches and commands to copy.
//   - run asks only where somebody sits, takes nothing for an answer that was typed
//     before the question, and stops a server of its own however it ends.
//   - Waiting loses no wake-up: it knows a sequence number from before its first
//     look, and follows the events after that (watch).
//   - Trees are drawn in one way (drawing). Whether something rests, and what a story
//     waits for, the server says (app.TaskView.Rests, app.StoryView.Rests and Needs);
//     here is worded only what goes on by itself.
//   - A local token is sent to the local server only.
//
// # Who calls it
//
// Only cmd, once: [Run]. It hands over what needs other packages (Connect, Serve,
// Host, Config, Doctor, Demo), and what belongs to the process (streams,
// environment, terminal, Ctrl-C, clock).
//
// # What happens when it fails
//
// Run prints the error and returns its exit code; it never panics on input and
// never exits the process. A connection that is lost while waiting is taken up
// again for half a minute.
package cli

//go:generate go test -run "^Test(Help|Output|Logs|Render|StoryOutput|ProjectOfStories)$" . -update

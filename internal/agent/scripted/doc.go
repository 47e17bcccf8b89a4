// Package scripted is an agent that does what a script says: a program that
// speaks the Agent Client Protocol like any other ("claudomator scripted-agent"),
// for demonstrations, tests and measurements without a model. It can also do all
// that agents do wrong.
//
// # The script
//
// YAML, read strictly. It is the file that the program's argument names, or the
// variable SCRIPTED_AGENT_SCRIPT, or else what the task asks: instructions that begin
// with a line "#!scripted" are the script. (A judge finds it in its prompt, among what
// was asked; anywhere in a prompt it ends at a line "#!end".)
//
//	#!scripted
//	steps:
//	  - say: I will make the file.
//	  - edit: hello.txt
//	    content: "hello\n"
//	  - ask: Which colour?
//	    options: [red, blue]
//	  - run: echo {{answer}} >>hello.txt
//	  - commit: Say hello
//	  - call: report_summary
//	    arguments: {text: done}
//	again:
//	  - say: There is nothing left to do.
//
// Keys of a script:
//
//	steps      what is done, in order. A conversation that is resumed goes on behind
//	           the last step that was begun
//	roles      by role, what is done in place of steps by a run in that role: so one
//	           script can hold the work and its judge
//	again      what every later prompt of the same conversation does
//	exit_code  status with which the program leaves when the prompt is answered
//	stay       it does not leave
//	forget     it keeps no conversation: resuming finds none
//
// A step is one action with its value, and the keys that the action takes:
//
//	say TEXT          speaks
//	think TEXT        thinks
//	edit FILE         writes "content", or puts "with" in the place of "replace"
//	run COMMAND       runs a shell command; the prompt is its standard input. The step
//	                  fails with it, unless "may_fail". With "raw" it prints straight to
//	                  the program's own streams, between the messages
//	commit MESSAGE    commits everything
//	call TOOL         calls a tool of the run with "arguments"; "may_fail" as for run
//	ask QUESTION      asks the user, with "options", and waits for the end of the run
//	permission TITLE  asks the client for a permission, and fails without
//	sleep DURATION    does nothing
//	usage TOKENS      counts tokens read, and "output", "cache_read", "cache_write"; "cost"
//	                  is in USD. The last step that counts is what is reported
//	fail TEXT         answers the prompt with an error; "kind" names it for programs
//	limit TEXT        answers it with a usage limit that ends at "reset": a duration
//	                  from now, or a time
//	overload TEXT     answers it with an overload of the provider
//	stop REASON       ends the turn: end_turn, max_tokens, max_turn_requests, refusal, cancelled
//	print TEXT        prints it between the messages, as it stands (!!binary for any bytes)
//	flood BYTES       prints so many, "as" text (said), message (one), line (one), noise
//	                  (lines) or stderr
//	ignore_term true  from now on no signal, cancel or end of input makes it leave
//	daemon FILE       leaves a process behind that left the session and ignores signals;
//	                  its id is in FILE
//	die HOW           ends the program at once: KILL, TERM, or a status; with
//	                  "half_line" it has begun a message
//
// Any step can have "when": it is left out unless all of it is so:
//
//	attempt N       it is the Nth attempt at the task
//	role ROLE       the run's role: builder, checker …
//	task NAME       the task has that name, or is to judge the one that has it
//	answered BOOL   a question of the task has been answered
//	resumed BOOL    the conversation goes on from an earlier run
//	exists FILE, missing FILE
//
// In values, {{answer}} is the answer to the last question, {{attempt}} the number of
// the attempt, {{prompt}} the prompt, and {{VARIABLE}} a variable of the environment.
//
// # Invariants
//
//   - A script that cannot be understood does nothing: the prompt is answered
//     with the error and its line.
//   - The program knows no more than any agent: the workspace, the prompt, and the
//     tools of the run at the endpoint that it is given.
//   - A conversation is a file in the user's state folder, found again under the same
//     HOME, and gone after 30 days.
//
// # Who calls it
//
// The hidden command of the binary; the type "scripted" runs it through package acp.
//
// # What happens when it fails
//
// A failing step answers the prompt with an error.
package scripted

// Package claude is the agent that is Claude Code, run headless: one process a
// run, the prompt on its standard input, its events as lines of JSON
// ("stream-json") on its standard output.
//
// # Invariants
//
//   - The run's token is in the environment only. The configuration file of the
//     run's tools names the variable; it lies in the run's private folder.
//   - Everything is allowed to the program, or, where the job names tools,
//     nothing else is: it answers its own permission questions with no.
//   - Settings and hooks of the repository are not obeyed; its CLAUDE.md is read.
//   - What the program reports as its end is read in one table, [Endings]. A
//     result counts once no work is under way in the background any more; the
//     program begins another turn when that ends.
//   - Limits are taken from the program's structured signals (rate_limit_event,
//     api_retry, the result's error fields), never from what the model says.
//   - Usage and cost are those of this run, also when it goes on with a
//     conversation that has cost something before.
//   - What is not understood is recorded raw and never ends a run: the format is
//     not stable. Tested with version 2.1.332.
//
// # Who calls it
//
// The engine, through agent.Agent.
//
// # What happens when it fails
//
// As for every agent, see package agent. A conversation that cannot be resumed
// (unknown, too long, or another one was begun) ends as a failure with
// Result.NoResume.
package claude

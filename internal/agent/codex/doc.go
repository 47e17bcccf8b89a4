// Package codex runs OpenAI's Codex: `codex exec --json`, the user's own
// installation with the user's own login and settings.
//
// # Invariants
//
//   - Nothing is written into CODEX_HOME by this package, and nothing of a run
//     is kept there by Codex but the conversation itself: the run tools are
//     offered by settings on the command line, their token is named by its
//     environment variable, and the shell snapshots in which Codex would keep
//     that variable are switched off.
//   - What a line of Codex means is a row of Rows, why a turn failed a row of
//     Failures. Lines without a row are recorded as they are.
//   - The prompt goes by standard input. What Codex does not take there, more
//     than promptLimit characters or no UTF-8, goes by a file of the run.
//   - Success is turn.completed. Lines "Reconnecting…" are a provider that
//     holds the agent up, not an end.
//   - Usage is of this run alone. Codex counts over the whole conversation:
//     what it had counted before is subtracted. Usage.Input leaves out what is
//     counted as CacheRead and CacheWrite. What sub-agents of Codex use, it does
//     not tell.
//   - Commands and sub-agents that have not ended when Codex does are named in a
//     warning.
//   - Codex is asked to stop with SIGINT: it ends its commands and closes the
//     conversation, so that it can be resumed. What a command had sent to the
//     background is ended with the run.
//
// # The conversation's file
//
// Codex keeps each conversation in
// CODEX_HOME/sessions/YYYY/MM/DD/rollout-TIME-THREAD.jsonl (CODEX_HOME is
// ~/.codex unless set; these agents inherit it). What the stream does not say
// is read there, as it grows: usage of a run that does not complete, the state
// of the account's limits with the time of their reset, the kind of error that
// ended a turn. The stream alone is enough to run: without the file usage of a
// resumed run counts the whole conversation, a usage limit has no time of
// reset, and the kind of an error is taken from its words.
//
// # Who calls it
//
// The engine, through agent.Agent.
//
// # What happens when it fails
//
// As for every agent, see package agent. A conversation that Codex does not
// know, that it answers with another one, or that is too long for the model is
// a Result with NoResume.
package codex

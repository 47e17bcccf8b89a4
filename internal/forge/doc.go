// Package forge opens pull requests and looks at them, at GitHub (also an
// Enterprise server of one's own) and at Gitea or Forgejo, over their REST APIs.
//
// # Shape
//
// [For] finds the forge of a repository from the address of its remote and gives
// back a [Forge]: Open and Look, Find and Close. client.go is the only place that sends
// anything; github.go and gitea.go say what to whom.
//
// # Invariants
//
//   - Open opens at most one pull request for a head and a base: one that is open
//     already is given back as it is, title and text included.
//   - Close says its comment once, however often it is called, and changes nothing
//     that is merged or closed.
//   - Nothing that is unknown counts as passed: a check that is still to end, or
//     says something unheard of, is pending or failed. Without checks the answer
//     is "none", which is not "passed"; a forge says so, too, in the moments
//     between a push and the start of its checks.
//   - The token goes into the Authorization header of requests to the API's own
//     scheme, host and port, and nowhere else: no redirect takes it along, and no
//     error repeats it.
//   - What a forge sends is bounded in size and time, and checked before it is
//     believed. Texts in it (logs, summaries) are foreign: show them as such.
//
// # Callers and failure
//
// The engine is the caller, through an interface of its own that cmd fills with
// this. There is no state here: every method may be called
// again, and a failed one has changed nothing or is found done by the next call.
// Errors are *[Error] with a [Kind], a hint that names what to set, and, where the
// forge asked to wait, the instant from which to try again.
//
// # Known limits
//
// The head of a pull request is a branch of the same repository, not of a fork. A
// log is fetched only where the forge's API has one: jobs of GitHub Actions; of
// other checks there is what they said in their summary or description. GitHub lets
// classic tokens and those of apps read checks, but not fine-grained personal ones:
// Look says that it was forbidden then.
package forge

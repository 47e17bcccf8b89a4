// Package forgetest is a double of GitHub and of Gitea (Forgejo) for tests: an HTTP
// server with one repository, acme/widget, that answers in the shapes of the real
// ones, kept in testdata.
//
// # Shape
//
// [New] starts a [Double] that answers what it was told to ([Double.On]) and keeps what
// it was asked. [Double.Host] gives it pull requests of its own, whose branches are
// those of a real repository: then it opens, lists, closes and comments as a forge
// does, and a test plays the people and the checks ([Double.Check], [Double.Merge],
// [Double.End]). What it was told to answer comes before what it would answer.
//
// # Callers and failure
//
// The tests of forge, and the scripts of test/script through the real binary. A
// fixture that cannot be read panics: the double itself is broken then. It knows
// nothing of the client, so that both may be wrong in different ways.
package forgetest

// Package apptest is a service for the tests of the surfaces: the real one, on a
// database that the test opens, with stand-ins for agent programs, transcripts
// and git. The test plays the engine ([World.Begin], [World.Do]) and asks the
// surface ([World.Ask]).
//
// The stand-ins always answer the same, and the clock moves a second whenever it
// is read. A method that fails ends its test.
package apptest

// Package storetest is the conformance suite of package store: what every
// database must do, and databases for the tests of other packages.
//
// [Run] runs the suite on the databases that one function hands out; [SQLite]
// and [Postgres] are such functions, each giving a fresh database that goes
// away with its test. [Open] opens one for tests that only need a store.
//
// Postgres is there where CLAUDOMATOR_TEST_POSTGRES names a server; elsewhere
// its tests are skipped, and in CI they fail.
package storetest

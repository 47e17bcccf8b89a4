// Package store keeps the domain's rows in SQLite (the default) or Postgres:
// one code, one text for every statement, two folders of migrations.
//
// A tree is the unit of consistency. [Store.Commit] writes everything one
// decision changed in one transaction, if the tree still has the version it
// was decided on; [Store.LoadTree] reads a tree at one instant. Beside Commit
// only this writes: [Store.RenewLeases], and the settings (projects, roles,
// epics, tokens), which belong to no tree. A story belongs to its tree.
//
// # Invariants
//
//   - A commit is kept whole or not at all, the engine's jobs included: they
//     are inserted by enqueue in the same transaction.
//   - Events are numbered without gap in the order of commits. Whoever has read
//     up to a seq never misses one below it.
//   - Two commits that add edges between trees cannot both have been decided on
//     one version of the edges.
//   - A tree that waits for another is looked at again ([work.Recheck]) when
//     what it sees of it has changed, also when the edge was added meanwhile;
//     a tree that another depends on cannot be removed.
//   - A lease never moves back while its run lasts: the cached tree that a
//     decision was made on may hold an older one.
//   - No list, and nothing the scheduler asks, grows with finished work: open
//     states have partial indices, pages go by (created_at, id). [Store.Stats],
//     [Store.Epics] and searches by text or tag are the exceptions.
//
// # Who calls it
//
// Package app, through its ports (Trees, Schedule, Lookup, Lists, Stories, Settings),
// and cmd, which opens it and lends [Store.DB] and [Store.Pool] to the engine.
// SQLite has one connection that writes, shared with the engine: nothing may
// touch the pool from inside a transaction.
//
// # When it fails
//
// Errors are the domain's: Conflict with a reason ("version", "edges",
// "idempotent", "exists", "name_taken"), NotFound, Invalid (a cursor, a limit,
// an ambiguous name), Unavailable ("busy", "storage_full", "storage",
// "read_only", "database"), Timeout; Internal for what should not be. A failed
// commit leaves nothing behind and may be tried again.
package store

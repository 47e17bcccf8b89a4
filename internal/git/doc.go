// Package git does everything the server does with git: it keeps a bare copy
// of each project's repository (the vault), lends private workspaces to agents,
// takes their work back, merges it, and lands it on the real repository.
//
// # Shape
//
// A [Git] is the git program together with the only function that starts it
// (run.go). A [Vault] is one bare repository owned by the server. From it come:
//
//	Prepare → (an agent works) → Collect → Integrate … → Land → Push
//	                     Snapshot, Discard, Restore: nothing is lost on the way
//
// # Invariants
//
//   - Once an agent has started in a workspace, its .git directory is hostile:
//     no git process ever runs with it as its repository. HEAD and refs are read
//     as files, commits come over as a pack that the vault checks strictly, and
//     uncommitted work is found by comparing files with an index of our own.
//   - No program that a repository configures is ever run: no hook, filter,
//     file system monitor, external diff, merge driver, signer, editor or pager.
//     Only the hooks of a remote that is pushed to run, where it is: they are its
//     say in what it takes.
//   - The user's repository is written only by Land: objects, then one ref by
//     compare-and-swap, then the clean checkout of that very branch; and by
//     NewBranch: objects, then one ref that was not there. Push writes the remote,
//     and not even what the user's repository remembers of it.
//   - Nothing is deleted that is not proved to be ours (registry entry with the
//     device and inode of a real directory), and not before it was preserved.
//   - A failed inspection is an error. It never means "clean" or "no changes".
//   - The vault never prunes: an object that was once taken in stays.
//
// # Callers and failure
//
// The engine is the caller. Every method may be called again after a crash at
// any instant and then finishes or repeats what was begun. Errors are *[Error]
// with a [Kind] that a person can act on; conflicts, refused resolutions, an
// absent workspace and "nothing to land" are results, not errors.
//
// # Known limits
//
// Only SHA-1 repositories. LFS content is handled as whatever bytes lie in the
// working tree. Commits made inside a submodule are reported, not collected.
// A remote is reached with what needs no person and no program of a repository:
// SSH keys and agent of the server's user, ~/.netrc, credentials in the URL, or
// what Options.NetworkEnv says. Credential helpers and core.sshCommand are not
// asked, and nothing prompts. Of a repository's remotes only "origin" is pushed to.
// The kept objects of one vault, snapshots included, can be read by every agent
// of the same project, because workspaces borrow the vault's objects.
package git

package git

import (
	"errors"
	"fmt"
	"strings"
)

// Kind names what went wrong, in terms a person can act on.
type Kind string

// The kinds. Their texts are stable: callers store and show them.
const (
	KindFailed             Kind = "git_failed"            // git ended with an error nobody foresaw
	KindMissingGit         Kind = "git_missing"           // the program is not there or too old
	KindTimeout            Kind = "git_timeout"           // ended by us, with its whole process group
	KindTooLarge           Kind = "output_too_large"      // more output than the cap
	KindStorageFull        Kind = "storage_full"          // no space or no inodes
	KindNotARepository     Kind = "not_a_repository"      // nothing git-like at exactly that path
	KindUnsupported        Kind = "unsupported_format"    // SHA-256, or an unreadable layout
	KindUnreachable        Kind = "unreachable"           // the source or its remote cannot be reached
	KindAuthentication     Kind = "authentication"        // the remote wants other credentials, or does not let these do it
	KindNoCommits          Kind = "no_commits"            // unborn repository
	KindDetached           Kind = "detached_head"         // no current branch to take as default
	KindBranchMissing      Kind = "branch_missing"        // the branch, ref or commit is not there
	KindBranchHeld         Kind = "branch_held"           // another operation of the user holds the branch
	KindInvalidRef         Kind = "invalid_ref"           // not a legal name
	KindRefConflict        Kind = "ref_conflict"          // a/b beside a
	KindRefMoved           Kind = "ref_moved"             // compare-and-swap lost
	KindLocked             Kind = "locked"                // somebody's lock file is in the way
	KindPathOccupied       Kind = "path_occupied"         // foreign files where a workspace should be
	KindUnsafeWorkspace    Kind = "unsafe_workspace"      // links, foreign alternates, forged objects
	KindCorruptWorkspace   Kind = "workspace_unreadable"  // inspection failed; the workspace stays
	KindDirtyCheckout      Kind = "dirty_checkout"        // the target is checked out with changes
	KindMidOperation       Kind = "mid_operation"         // merge, rebase, … under way
	KindTargetMoved        Kind = "target_moved"          // kept moving while we tried
	KindMergeRunning       Kind = "merge_running"         // a landing on that target is running
	KindAlreadyLanded      Kind = "already_landed"        // too late to abort
	KindPushRejected       Kind = "push_rejected"         // the remote said no: a hook or a rule of its own
	KindNotFastForward     Kind = "not_fast_forward"      // the remote has commits that the pushed one does not follow
	KindShallowNoMergeBase Kind = "shallow_no_merge_base" // history cut off before the common ancestor
	KindUnrelated          Kind = "unrelated_histories"   // no common ancestor at all
	KindFileMissing        Kind = "file_missing"          // the commit has no such file
)

// Error is what every function of this package returns when it fails.
type Error struct {
	Kind    Kind
	Message string   // one sentence, lower case
	Hint    string   // what a person can do; may be empty
	Paths   []string // files concerned, escaped for display
	Args    []string // the git command, when one was run
	Exit    int      // its exit code; -1 when it was ended by a signal
	Stderr  string   // its first words
	Err     error
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Message)
	if len(e.Paths) > 0 {
		fmt.Fprintf(&b, ": %s", joinSome(e.Paths, 10))
	}
	if e.Stderr != "" {
		fmt.Fprintf(&b, ": %s", strings.TrimSpace(e.Stderr))
	}
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the kind of the first *Error in err's chain, "" when there is
// none.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return ""
}

func fail(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

func (e *Error) hint(text string) *Error     { e.Hint = text; return e }
func (e *Error) about(paths []string) *Error { e.Paths = displayPaths(paths); return e }
func (e *Error) because(err error) *Error    { e.Err = err; return e }

func joinSome(all []string, limit int) string {
	if len(all) <= limit {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:limit], ", "), len(all)-limit)
}

// Who may do what is settled beforehand: the server answers no prompt.
const (
	credentialsHint = "git is given the SSH keys and agent, ~/.netrc and the credentials in a URL; it runs no credential helper and asks nobody"
	hostKeyHint     = "connect once with ssh as the server's user, so that the host's key is known"
)

// classify maps git's own words (LC_ALL=C) to a kind. Unknown words stay
// KindFailed with the words attached: never swallowed, never guessed.
func classify(stderr string) (Kind, string) {
	for _, row := range []struct {
		words string
		kind  Kind
		hint  string
	}{
		{"No space left on device", KindStorageFull, "free some disk space"},
		{"Disk quota exceeded", KindStorageFull, "free some disk space"},
		{"refusing to merge unrelated histories", KindUnrelated, ""},
		{"couldn't find remote ref", KindBranchMissing, ""},
		{"not a git repository", KindNotARepository, ""},
		{"does not appear to be a git repository", KindUnreachable, "check the path or URL"},
		{"could not read Username", KindAuthentication, credentialsHint},
		{"could not read Password", KindAuthentication, credentialsHint},
		{"Authentication failed", KindAuthentication, credentialsHint},
		{"returned error: 401", KindAuthentication, credentialsHint},
		{"returned error: 403", KindAuthentication, credentialsHint},
		{"Permission denied (", KindAuthentication, credentialsHint},   // ssh
		{"ERROR: Permission to ", KindAuthentication, credentialsHint}, // a forge behind ssh
		{"marked as read only", KindAuthentication, credentialsHint},   // a deploy key
		{"Host key verification failed", KindAuthentication, hostKeyHint},
		{"Could not read from remote repository", KindUnreachable, "check the URL and the credentials"},
		{"unable to access", KindUnreachable, "check the URL and the network"},
		{"' not allowed", KindUnreachable, "only file, https, http, ssh and git URLs are used"}, // transport 'ext'
		{".lock': File exists", KindLocked, "another git process holds the lock, or one crashed and left it"},
		{"bad object", KindBranchMissing, ""},
		{"Not a valid object name", KindBranchMissing, ""},
	} {
		if strings.Contains(stderr, row.words) {
			return row.kind, row.hint
		}
	}
	return KindFailed, ""
}

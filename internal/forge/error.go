package forge

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Kind names what went wrong, in terms a person can act on.
type Kind string

// The kinds. Their texts are stable: callers store and show them.
const (
	KindUnknown         Kind = "forge_unknown"         // no forge can be told from the address, or the settings make no sense
	KindUnauthenticated Kind = "forge_unauthenticated" // no token, or not a valid one
	KindForbidden       Kind = "forge_forbidden"       // the token may not do this
	KindNotFound        Kind = "forge_not_found"       // no such repository or pull request, or not for this token
	KindRateLimited     Kind = "forge_rate_limited"    // too many requests: RetryAt says when there may be more
	KindRefused         Kind = "forge_refused"         // the forge understood, and does not do it
	KindMoved           Kind = "forge_moved"           // the forge points elsewhere, where the token does not go
	KindUnreachable     Kind = "forge_unreachable"     // no connection, no answer in time, or a fault of the forge
	KindBadAnswer       Kind = "forge_bad_answer"      // an answer that is no answer to what was asked
)

// Error is what every function of this package returns when it fails.
type Error struct {
	Kind    Kind
	Message string    // one sentence
	Hint    string    // what a person can do; may be empty
	Status  int       // of the HTTP answer, 0 without one
	RetryAt time.Time // not before then; zero when the forge named no time
	Err     error
}

func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %v", e.Message, e.Err)
	}
	return e.Message
}

func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the kind of the first *Error in err's chain, "" when there is
// none.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return ""
}

func fail(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

func (e *Error) hint(text string) *Error    { e.Hint = text; return e }
func (e *Error) because(err error) *Error   { e.Err = err; return e }
func (e *Error) answered(status int) *Error { e.Status = status; return e }

// says tells whether a forge's refusal has these words in it.
func says(err error, status int, words string) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Kind == KindRefused && e.Status == status && strings.Contains(strings.ToLower(e.Message), words)
}

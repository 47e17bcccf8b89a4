package work

import (
	"errors"
	"fmt"
)

// Code is the class of an error; every surface maps it once (HTTP status, exit
// code, tool error).
type Code string

// The codes, in the order of the table in the architecture.
const (
	Invalid         Code = "invalid"         // input breaks a rule
	NotFound        Code = "not_found"       // no such thing
	Conflict        Code = "conflict"        // changed under you: read again
	Illegal         Code = "illegal"         // this state does not allow that
	Unauthenticated Code = "unauthenticated" // who are you
	Forbidden       Code = "forbidden"       // you may not
	Exhausted       Code = "exhausted"       // budget, quota or limit reached
	Unavailable     Code = "unavailable"     // try again later
	Timeout         Code = "timeout"         // did not end in time
	Internal        Code = "internal"        // a bug; details are in the log
)

// Codes lists every code, for tests that range over them.
func Codes() []Code {
	return []Code{Invalid, NotFound, Conflict, Illegal, Unauthenticated, Forbidden, Exhausted, Unavailable, Timeout, Internal}
}

// Error is the only error that leaves the domain. Reason is a stable word for
// one kind of refusal ("superseded", "integrating", "cap_reached"); Hint says
// what the caller can do next; Details holds machine-readable facts such as
// "allowed" (the legal actions) or "path" (of a cycle).
type Error struct {
	Code    Code
	Reason  string
	Message string
	Hint    string
	Details map[string]any
	cause   error
}

func (e *Error) Error() string { return e.Message }

// Unwrap gives the cause named with %w, if any.
func (e *Error) Unwrap() error { return e.cause }

// Errorf makes an error of a class; %w keeps the cause reachable.
func Errorf(code Code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Message: err.Error(), cause: errors.Unwrap(err)}
}

// WithHint says what the caller can do about it.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// WithReason names the kind of refusal.
func (e *Error) WithReason(reason string) *Error {
	e.Reason = reason
	return e
}

// With adds a machine-readable fact.
func (e *Error) With(key string, value any) *Error {
	if e.Details == nil {
		e.Details = map[string]any{}
	}
	e.Details[key] = value
	return e
}

// AsError finds the domain error in err's chain.
func AsError(err error) (*Error, bool) { return errors.AsType[*Error](err) }

// CodeOf is the class of any error: Internal for what is not ours.
func CodeOf(err error) Code {
	if e, ok := AsError(err); ok {
		return e.Code
	}
	return Internal
}

// UnlessMissing is err, or nil where it says that there is no such thing: for who
// can do without it.
func UnlessMissing(err error) error {
	if CodeOf(err) == NotFound {
		return nil
	}
	return err
}

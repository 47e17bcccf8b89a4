package app

import (
	"context"

	"github.com/claudomator/claudomator/internal/work"
)

// Caller is who asks: a person's credential.
type Caller struct {
	Name  string
	Scope Scope
}

type callerKey struct{}

// WithCaller puts who asks into the context, once, at the edge.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// may finds the caller and refuses one that is unknown, or whose credential
// does not allow a change.
func may(ctx context.Context, change bool) (work.Actor, error) {
	c, ok := ctx.Value(callerKey{}).(Caller)
	if !ok {
		return work.Actor{}, work.Errorf(work.Unauthenticated, "no credential was given").WithHint("send a bearer token")
	}
	if change && c.Scope != ScopeAdmin {
		return work.Actor{}, work.Errorf(work.Forbidden, "the token %q may only read", c.Name).WithHint("use a token with scope admin")
	}
	return work.Person(c.Name), nil
}

package store_test

import (
	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/store"
)

// The store is what app asks for.
var (
	_ app.Trees    = (*store.Store)(nil)
	_ app.Schedule = (*store.Store)(nil)
	_ app.Lookup   = (*store.Store)(nil)
	_ app.Lists    = (*store.Store)(nil)
	_ app.Stories  = (*store.Store)(nil)
	_ app.Settings = (*store.Store)(nil)
	_ app.Tokens   = (*store.Store)(nil)
)

package engine

import (
	"context"
	"sync"
)

// claims are the names that are in use here: one holder each. A landing is
// claimed by the delivery that carries it out, a workspace by the run in it or by
// who removes it.
type claims struct {
	mu   sync.Mutex
	busy map[string]chan struct{} // closed when the holder releases it
}

// take waits until nobody holds the name, and holds it until release.
func (c *claims) take(ctx context.Context, name string) (release func(), err error) {
	for {
		release, busy := c.try(name)
		if release != nil {
			return release, nil
		}
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// try holds the name if nobody does; else release is nil, and busy closed when
// its holder is done.
func (c *claims) try(name string) (release func(), busy <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if held := c.busy[name]; held != nil {
		return nil, held
	}
	if c.busy == nil {
		c.busy = map[string]chan struct{}{}
	}
	done := make(chan struct{})
	c.busy[name] = done
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.busy, name)
		close(done)
	}, nil
}

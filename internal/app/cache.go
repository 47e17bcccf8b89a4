package app

import (
	"container/list"
	"context"
	"sync"

	"github.com/claudomator/claudomator/internal/work"
)

// keyedLocks is one lock per key, made when wanted and dropped when free.
type keyedLocks struct {
	mu    sync.Mutex
	locks map[string]*keyLock
}

type keyLock struct {
	free  chan struct{} // holds one token while free
	users int
}

// lock waits for the key's turn, or for ctx to end.
func (k *keyedLocks) lock(ctx context.Context, key string) (unlock func(), err error) {
	k.mu.Lock()
	if k.locks == nil {
		k.locks = map[string]*keyLock{}
	}
	l := k.locks[key]
	if l == nil {
		l = &keyLock{free: make(chan struct{}, 1)}
		l.free <- struct{}{}
		k.locks[key] = l
	}
	l.users++
	k.mu.Unlock()
	leave := func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if l.users--; l.users == 0 {
			delete(k.locks, key)
		}
	}
	select {
	case <-l.free:
		return func() { l.free <- struct{}{}; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, work.Errorf(work.Timeout, "wait for the tree: %w", context.Cause(ctx))
	}
}

// treeCache keeps recently decided trees, up to a number of tasks.
type treeCache struct {
	mu    sync.Mutex
	trees map[work.TreeID]*list.Element
	order list.List // of *work.Tree, most recent first
	tasks int
	sizes map[work.TreeID]int
}

const cachedTasks = 20_000 // about 40 MB at 2 kB a task

func (c *treeCache) get(id work.TreeID) *work.Tree {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.trees[id]
	if e == nil {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(*work.Tree)
}

func (c *treeCache) keep(t *work.Tree) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.trees == nil {
		c.trees, c.sizes = map[work.TreeID]*list.Element{}, map[work.TreeID]int{}
	}
	c.drop(t.ID)
	c.trees[t.ID] = c.order.PushFront(t)
	c.sizes[t.ID] = t.Size()
	c.tasks += t.Size()
	for c.tasks > cachedTasks && c.order.Len() > 1 {
		c.drop(c.order.Back().Value.(*work.Tree).ID)
	}
}

func (c *treeCache) forget(id work.TreeID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(id)
}

func (c *treeCache) drop(id work.TreeID) {
	if e := c.trees[id]; e != nil {
		c.order.Remove(e)
		delete(c.trees, id)
		c.tasks -= c.sizes[id]
		delete(c.sizes, id)
	}
}

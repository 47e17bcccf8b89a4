package app

import (
	"context"
	"iter"
	"sync"

	"github.com/claudomator/claudomator/internal/work"
)

// Hub hands committed events to streams, in order of their sequence numbers.
// It holds the newest in memory; a stream that begins earlier, or falls behind
// them, reads from the store: nothing is ever dropped or repeated.
type Hub struct {
	lists Lists

	mu      sync.Mutex
	recent  []work.Event // contiguous, at most keptEvents
	waiting map[int64]work.Event
	changed chan struct{} // closed and replaced when something was added
}

const (
	keptEvents = 4096
	pageEvents = 500
)

func newHub(lists Lists) *Hub {
	return &Hub{lists: lists, waiting: map[int64]work.Event{}, changed: make(chan struct{})}
}

// publish adds what was committed. Commits of different trees may arrive out of
// order: an event waits until those before it are here.
func (h *Hub) publish(events []work.Event) {
	if len(events) == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range events {
		h.waiting[e.Seq] = e
	}
	h.advance()
}

func (h *Hub) advance() {
	if len(h.recent) == 0 {
		lowest := int64(-1)
		for seq := range h.waiting {
			if lowest < 0 || seq < lowest {
				lowest = seq
			}
		}
		if lowest < 0 {
			return
		}
		h.recent = append(h.recent, h.waiting[lowest])
		delete(h.waiting, lowest)
	}
	for {
		next := h.recent[len(h.recent)-1].Seq + 1
		e, ok := h.waiting[next]
		if !ok {
			break
		}
		h.recent = append(h.recent, e)
		delete(h.waiting, next)
	}
	if over := len(h.recent) - keptEvents; over > keptEvents/4 {
		h.recent = append([]work.Event(nil), h.recent[over:]...)
	}
	if len(h.waiting) > keptEvents { // another node's commits are missing: start over from the store
		h.recent, h.waiting = nil, map[int64]work.Event{}
	}
	close(h.changed)
	h.changed = make(chan struct{})
}

// after gives the events after seq that are in memory; ok is false when memory
// does not reach back that far. changed is closed when there is more.
func (h *Hub) after(seq int64) (events []work.Event, ok bool, changed <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.recent) == 0 || seq < h.recent[0].Seq-1 {
		return nil, false, h.changed
	}
	first := h.recent[0].Seq
	if from := seq + 1 - first; from < int64(len(h.recent)) {
		events = h.recent[from:]
	}
	return events, true, h.changed
}

// Stream gives the events after seq, first the stored ones, then what comes.
func (h *Hub) Stream(ctx context.Context, seq int64) iter.Seq2[work.Event, error] {
	return func(yield func(work.Event, error) bool) {
		for ctx.Err() == nil {
			events, inMemory, changed := h.after(seq)
			if !inMemory {
				var err error
				if events, err = h.lists.Events(ctx, seq, "", "", pageEvents); err != nil {
					if ctx.Err() == nil {
						yield(work.Event{}, err)
					}
					return
				}
			}
			for _, e := range events {
				if !yield(e, nil) {
					return
				}
				seq = e.Seq
			}
			if len(events) > 0 {
				continue
			}
			select {
			case <-changed:
			case <-ctx.Done():
			}
		}
	}
}

package app

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/claudomator/claudomator/internal/work"
)

// hub hands committed events to streams, in order of their sequence numbers.
// It holds the newest in memory; a stream that begins earlier, or falls behind
// them, reads from the store: nothing is ever dropped or repeated. Events of
// commits that nobody told it of (another server's, or one whose answer was lost)
// are read from there too, a moment after they are missed.
type hub struct {
	lists Lists

	mu      sync.Mutex
	recent  []work.Event // contiguous, at most keptEvents
	waiting map[int64]work.Event
	doubt   bool          // a commit may have happened that nobody told of
	changed chan struct{} // closed and replaced when something was added
}

const (
	keptEvents = 4096
	pageEvents = 500
	patience   = time.Second // with events that are missing
)

func newHub(lists Lists) *hub {
	return &hub{lists: lists, waiting: map[int64]work.Event{}, changed: make(chan struct{})}
}

// publish adds what was committed. Commits of different trees may arrive out of
// order: an event waits until those before it are here.
func (h *hub) publish(events []work.Event) {
	if len(events) == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range events {
		if len(h.recent) == 0 || e.Seq > h.recent[len(h.recent)-1].Seq {
			h.waiting[e.Seq] = e
		}
	}
	h.advance()
}

// uncertain tells that a commit may have happened although it was reported as
// failed.
func (h *hub) uncertain() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.doubt = true
	close(h.changed)
	h.changed = make(chan struct{})
}

// lookUp reads from the store what nobody told of.
func (h *hub) lookUp(ctx context.Context, seq int64) error {
	h.mu.Lock()
	h.doubt = false
	h.mu.Unlock()
	events, err := h.lists.Events(ctx, seq, "", "", pageEvents)
	if err != nil {
		h.uncertain()
		return err
	}
	h.publish(events)
	return nil
}

func (h *hub) advance() {
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

// view is what a stream sees of the hub.
type view struct {
	events  []work.Event
	stored  bool            // memory does not reach back that far
	missing bool            // there is more than was told
	changed <-chan struct{} // closed when there is more
}

// after is what there is after seq.
func (h *hub) after(seq int64) view {
	h.mu.Lock()
	defer h.mu.Unlock()
	v := view{missing: h.doubt || len(h.waiting) > 0, changed: h.changed}
	if len(h.recent) == 0 || seq < h.recent[0].Seq-1 {
		v.stored = true
		return v
	}
	first := h.recent[0].Seq
	if from := seq + 1 - first; from < int64(len(h.recent)) {
		v.events = h.recent[from:]
	}
	return v
}

// Stream gives the events after seq, first the stored ones, then what comes.
func (h *hub) Stream(ctx context.Context, seq int64) iter.Seq2[work.Event, error] {
	return func(yield func(work.Event, error) bool) {
		for ctx.Err() == nil {
			v := h.after(seq)
			var err error
			if v.stored {
				v.events, err = h.lists.Events(ctx, seq, "", "", pageEvents)
			}
			for _, e := range v.events {
				if !yield(e, nil) {
					return
				}
				seq = e.Seq
			}
			if err == nil && len(v.events) == 0 {
				err = h.await(ctx, v, seq)
			}
			if err != nil {
				if ctx.Err() == nil {
					yield(work.Event{}, err)
				}
				return
			}
		}
	}
}

// await returns when there may be more after seq than was in v.
func (h *hub) await(ctx context.Context, v view, seq int64) error {
	var late <-chan time.Time
	if v.missing {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-v.changed:
	case <-ctx.Done():
	case <-late:
		return h.lookUp(ctx, seq)
	}
	return nil
}

package app

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claudomator/claudomator/internal/work"
)

// kept is a store that has only events.
type kept struct {
	Lists
	mu  sync.Mutex
	all []work.Event
}

func (k *kept) commit(seqs ...int64) []work.Event {
	k.mu.Lock()
	defer k.mu.Unlock()
	var events []work.Event
	for _, seq := range seqs {
		events = append(events, work.Event{Seq: seq})
	}
	k.all = append(k.all, events...)
	return events
}

func (k *kept) Events(_ context.Context, after int64, _ work.TreeID, _ work.TaskID, limit int) ([]work.Event, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var out []work.Event
	for _, e := range k.all {
		if e.Seq > after && len(out) < limit {
			out = append(out, e)
		}
	}
	return out, nil
}

// What nobody told the hub of reaches its streams soon, in order and once: the
// commit of another server, one whose answer was lost, and one told out of order.
func TestEventsThatNobodyToldOf(t *testing.T) {
	t.Parallel()
	for name, happens := range map[string]func(h *hub, k *kept){
		"in between": func(h *hub, k *kept) { k.commit(3, 4); h.publish(k.commit(5)) },
		"at the end": func(h *hub, k *kept) { k.commit(3, 4, 5); h.uncertain() },
		"out of order": func(h *hub, k *kept) {
			later := k.commit(3, 4, 5)
			h.publish(later[1:])
			h.publish(later[:1])
		},
		"told twice": func(h *hub, k *kept) { all := k.commit(3, 4, 5); h.publish(all); h.publish(all) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				k := &kept{}
				h := newHub(k)
				h.publish(k.commit(1, 2))
				var got [2][]int64
				began := time.Now()
				ctx, cancel := context.WithCancel(t.Context())
				var readers sync.WaitGroup
				for i, from := range []int64{0, 2} {
					readers.Go(func() {
						for e, err := range h.Stream(ctx, from) {
							if err != nil {
								t.Error(err)
							}
							got[i] = append(got[i], e.Seq)
						}
					})
				}
				synctest.Wait()
				happens(h, k)
				time.Sleep(2 * patience)
				h.publish(k.commit(6))
				synctest.Wait()
				if late := time.Since(began); late > 3*patience {
					t.Errorf("it took %s", late)
				}
				cancel()
				readers.Wait()
				for i, want := range []int{6, 4} {
					if len(got[i]) != want || got[i][0] != int64(7-want) || got[i][want-1] != 6 {
						t.Errorf("stream %d got %v", i, got[i])
					}
				}
				if len(h.waiting) != 0 || h.doubt {
					t.Errorf("left: %v, %v", h.waiting, h.doubt)
				}
			})
		})
	}
}

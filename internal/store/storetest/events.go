package storetest

import (
	"context"
	"fmt"
	"testing"

	"github.com/claudomator/claudomator/internal/store"
	"github.com/claudomator/claudomator/internal/work"
)

// testEventOrder commits to many trees at once while a reader follows by seq.
func testEventOrder(t *testing.T, fresh func(testing.TB) store.Config) {
	s := Open(t, fresh(t))
	const writers, commits = 6, 30
	total := 0
	for i := range writers * commits {
		total += i%3 + 1
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	seen := make(chan []work.Event)
	go func() { seen <- follow(ctx, t, s, total) }()
	together(writers, func(w int) {
		root := newTask(fmt.Sprintf("tree%d", w), w)
		for i := range commits {
			cs := changes(int64(i), root)
			for len(cs.Events) < (w*commits+i)%3+1 {
				cs.Events = append(cs.Events, cs.Events[0])
			}
			for n := range cs.Events {
				cs.Events[n].Body = map[string]any{"version": float64(i + 1), "n": float64(n)}
			}
			if _, err := s.Commit(ctx, cs); err != nil {
				t.Errorf("commit %d of tree %d: %v", i, w, err)
				stop()
				return
			}
			for n, e := range cs.Events {
				if e.Seq != cs.Events[0].Seq+int64(n) || e.Seq == 0 {
					t.Errorf("the events of one commit were given seq %d and %d", cs.Events[0].Seq, e.Seq)
				}
			}
		}
	})
	checkOrder(t, <-seen, total)
	if last := must[int64](t)(s.LastSeq(t.Context())); last != int64(total) {
		t.Errorf("the last seq is %d, want %d", last, total)
	}
}

// follow reads events as a stream does, resuming behind the last it has seen.
func follow(ctx context.Context, t *testing.T, s *store.Store, total int) []work.Event {
	var seen []work.Event
	after := int64(0)
	for len(seen) < total {
		events, err := s.Events(ctx, after, "", "", 7)
		if err != nil {
			if ctx.Err() == nil {
				t.Error(err)
			}
			return seen
		}
		for _, e := range events {
			seen, after = append(seen, e), e.Seq
		}
	}
	return seen
}

func checkOrder(t *testing.T, seen []work.Event, total int) {
	if len(seen) != total {
		t.Fatalf("the reader saw %d events, want %d", len(seen), total)
	}
	last := map[work.TreeID][2]float64{}
	for i, e := range seen {
		if e.Seq != int64(i+1) {
			t.Fatalf("event %d has seq %d: the reader missed one", i+1, e.Seq)
		}
		is := [2]float64{e.Body["version"].(float64), e.Body["n"].(float64)}
		if was := last[e.Tree]; is[0] < was[0] || (is[0] == was[0] && is[1] <= was[1]) {
			t.Errorf("tree %s: version %v came after version %v", e.Tree, is, was)
		}
		last[e.Tree] = is
	}
}

func testEventFilters(t *testing.T, fresh func(testing.TB) store.Config) {
	s := Open(t, fresh(t))
	for i, id := range []string{"a", "b", "a", "b", "a"} {
		cs := changes(int64(i/2), newTask(id, 0))
		cs.Events = append(cs.Events, cs.Events[0])
		cs.Events[1].Task = "" // of the tree as a whole
		commit(t, s, cs)
	}
	for _, c := range []struct {
		after int64
		tree  work.TreeID
		task  work.TaskID
		limit int
		want  []int64
	}{
		{0, "", "", 100, []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}},
		{7, "", "", 2, []int64{8, 9}},
		{10, "", "", 100, nil},
		{0, "a", "", 100, []int64{1, 2, 5, 6, 9, 10}},
		{2, "a", "", 2, []int64{5, 6}},
		{0, "", "b", 100, []int64{3, 7}},
		{3, "b", "b", 100, []int64{7}},
		{0, "a", "b", 100, nil},
	} {
		var got []int64
		for _, e := range must[[]work.Event](t)(s.Events(t.Context(), c.after, c.tree, c.task, c.limit)) {
			got = append(got, e.Seq)
		}
		same(t, fmt.Sprintf("events after %d of tree %q and task %q", c.after, c.tree, c.task), c.want, got)
	}
}

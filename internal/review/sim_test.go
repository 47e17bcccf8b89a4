package review_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/claudomator/claudomator/internal/work"
)

// play lets one world happen; it gives the property that broke, if any.
func play(choose func(n int) int, loud bool) (s *sim, failure string) {
	s = newSim(choose, loud)
	defer func() {
		switch r := recover().(type) {
		case nil:
		case broken:
			failure = string(r)
		case string:
			failure = r
		default:
			panic(r)
		}
	}()
	s.run()
	return s, ""
}

func seeded(seed uint64) func(n int) int {
	return rand.New(rand.NewPCG(seed, 1)).IntN
}

// enoughWorlds take every row of the tables.
const enoughWorlds = 20_000

// TestWorlds lets thousands of random worlds happen. CLAUDOMATOR_WORLDS sets how
// many, CLAUDOMATOR_SEED plays a single one and tells its story.
func TestWorlds(t *testing.T) {
	t.Parallel()
	if seed, err := strconv.ParseUint(os.Getenv("CLAUDOMATOR_SEED"), 10, 64); err == nil {
		s, failure := play(seeded(seed), true)
		t.Logf("%s", s.story)
		if failure != "" {
			t.Fatalf("seed %d: %s", seed, failure)
		}
		return
	}
	worlds := enoughWorlds
	if n, err := strconv.Atoi(os.Getenv("CLAUDOMATOR_WORLDS")); err == nil {
		worlds = n
	}
	const parts = 8
	var mu sync.Mutex
	moves := map[string]bool{}
	t.Run("all", func(t *testing.T) {
		for part := range parts {
			t.Run(fmt.Sprint(part), func(t *testing.T) {
				t.Parallel()
				for i := part; i < worlds; i += parts {
					s, failure := play(seeded(uint64(i)), false)
					if failure != "" {
						t.Fatalf("world %d: %s\n(CLAUDOMATOR_SEED=%d go test -run TestWorlds -v tells its story)", i, failure, i)
					}
					mu.Lock()
					maps.Copy(moves, s.moves)
					mu.Unlock()
				}
			})
		}
	})
	if !t.Failed() && worlds >= enoughWorlds {
		checkMoves(t, moves)
	}
}

// checkMoves: the worlds have taken every row of both tables, alone or within
// one step; a row that nothing takes says that something is possible which is not.
func checkMoves(t *testing.T, moves map[string]bool) {
	for _, row := range work.StoryMachine().Rows {
		if move := fmt.Sprint(row.From, " → ", row.To); row.From != row.To && !moves[move] {
			t.Errorf("no story went %s (%s)", move, row.Trigger)
		}
	}
	for _, step := range []work.ShipStep{work.ShipValidate, work.ShipLand, work.ShipPull, work.ShipPush, work.ShipDeploy, work.ShipSmoke} {
		if !moves[fmt.Sprint("ship → ", step)] {
			t.Errorf("no ship came to %s", step)
		}
	}
	for _, row := range work.TaskMachine().Rows {
		if move := fmt.Sprint(row.From, " → ", row.To); row.From != row.To && !moves[move] {
			t.Errorf("no world went %s (%s); seen: %v", move, row.Trigger, slices.Sorted(maps.Keys(moves)))
		}
	}
}

// TestWorldsShrink plays worlds whose choices rapid can make smaller: a failure
// comes with the shortest story that shows it.
func TestWorldsShrink(t *testing.T) {
	t.Parallel()
	for range 5 {
		rapid.Check(t, func(t *rapid.T) {
			s, failure := play(func(n int) int { return even(t, n) }, true)
			if failure != "" {
				t.Fatalf("%s\n%s", failure, s.story)
			}
		})
	}
}

// even draws evenly from 0 to n-1, bit by bit: rapid's ranges prefer small numbers,
// and a world of first choices is a dull one.
func even(t *rapid.T, n int) int {
	drawn := 0
	for most := n - 1; most > 0; most >>= 1 {
		drawn <<= 1
		if rapid.Bool().Draw(t, "bit") {
			drawn++
		}
	}
	return drawn % n
}

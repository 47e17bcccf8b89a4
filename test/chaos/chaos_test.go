// The test of this folder kills. It lets a person and many agents work on trees
// of tasks through the real binary, with real git and a real database, and ends
// server, agents, git and both at once with SIGKILL, at random instants. When the
// storm is over everything must come to its end, and then hold:
//
//   - no commit and no file that a run has made is lost: each is reachable in the
//     vault, from a branch, a snapshot or a kept reference
//   - no task ran twice at once, no process and no cgroup of a run is left
//   - every open tree has automatic work under way or an item in the inbox, and a
//     person can lead every one of them to its end
//   - nothing is accepted without a verdict or a person, but under policy none;
//     what is accepted is part of its parent's branch, once
//   - the user's branch holds exactly what was landed, each landing once
//   - each judge is there once for an attempt and a commit and speaks once, each
//     review is decided once, each rejection has one fix
//   - the events are counted without a gap, and none is told twice
//   - both repositories are sound; no lock, token, run record or judge's
//     workspace is left
//
// A story is told twice: of what it makes, and of how often each of its thirty
// nodes was attempted, nobody can say whether it was killed. It is landed once; a
// deployment that was cut off is repeated by a person alone.
//
// A sweep leaves nothing to chance: it walks through small scenarios, and kills the
// server, alone or with the git that it runs, before every single change that they
// make on the disk. Each walk must end as the one that nobody disturbed.
//
// CLAUDOMATOR_CHAOS=1 (make chaos) makes it long, CLAUDOMATOR_CHAOS_SWEEP=1 (make
// sweep) the sweep complete; CLAUDOMATOR_CHAOS_KILLS and
// CLAUDOMATOR_CHAOS_SEED choose the number of kills and what they hit. The seed
// repeats the choices, not the instants: those depend on the machine.
// docs/chaos.md has the figures of a long storm.
package chaos_test

import (
	"context"
	"flag"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/claudomator/claudomator/test/binary"
)

const (
	killsShort = 24   // on each database
	killsLong  = 1000 // on SQLite; a quarter of it on PostgreSQL
)

// TestMain lets more run at once than there are cores: the tests wait for
// processes most of the time.
func TestMain(m *testing.M) {
	trapped() // returns in tests alone

	if err := flag.Set("test.parallel", "8"); err != nil { // the command line wins: it is parsed later
		panic(err)
	}
	os.Exit(m.Run())
}

// TestChaos is all of it, with one binary.
func TestChaos(t *testing.T) {
	t.Parallel()
	bin := binary.Build(t)
	tests := map[string]func(*testing.T, string){
		"storm": testStorm, "storm on postgres": testStormPostgres, "stories": testStories, "sweep": testSweep, "git fails": testGitFails, "git hangs": testGitHangs,
		"disk full": testDiskFull, "database busy": testDatabaseBusy,
	}
	if os.Getenv("CLAUDOMATOR_CHAOS") != "" {
		tests["stories on postgres"] = testStoriesPostgres
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, bin)
		})
	}
}

func testStorm(t *testing.T, bin string) { storm(t, bin, "", kills(t, 1)) }

func testStormPostgres(t *testing.T, bin string) { storm(t, bin, binary.Postgres(t), kills(t, 4)) }

// kills is how many are wanted; share divides those of a long storm.
func kills(t *testing.T, share int) int {
	t.Helper()
	if text := os.Getenv("CLAUDOMATOR_CHAOS_KILLS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("read CLAUDOMATOR_CHAOS_KILLS: %v", err)
		}
		return n
	}
	if os.Getenv("CLAUDOMATOR_CHAOS") != "" {
		return killsLong / share
	}
	return killsShort
}

func seed(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("CLAUDOMATOR_CHAOS_SEED")
	if text == "" {
		return rand.Uint64()
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("read CLAUDOMATOR_CHAOS_SEED: %v", err)
	}
	return n
}

// settleLimit bounds how long everything may take to end after the storm.
const settleLimit = 6 * time.Minute

func storm(t *testing.T, bin, postgres string, kills int) {
	from := seed(t)
	w := newWorld(t, bin, postgres)
	defer func() {
		if t.Failed() {
			t.Logf("CLAUDOMATOR_CHAOS_SEED=%d CLAUDOMATOR_CHAOS_KILLS=%d: repeats what was hit, not when", from, kills)
			w.explain()
		}
	}()
	w.start()
	p := &person{w: w, dice: rand.New(rand.NewPCG(from, 1)), tries: map[string]int{}}
	p.setUp(t.Context(), "judge.sh", "")

	began := time.Now()
	ctx, calm := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); p.live(ctx) }()
	k := &killer{w: w, dice: rand.New(rand.NewPCG(from, 2))}
	k.rage(kills)
	calm()
	<-ended
	raged := time.Since(began)
	if t.Failed() {
		return
	}

	limit, cancel := context.WithTimeout(t.Context(), settleLimit)
	defer cancel()
	p.finish(limit)
	if t.Failed() {
		return
	}
	a := w.audit(t.Context())
	a.all()
	p.removeAll()
	a.remains()
	t.Log(k.figures(), a.figures(), "storm", raged.Round(time.Second), "settled", (time.Since(began) - raged).Round(time.Second))
}

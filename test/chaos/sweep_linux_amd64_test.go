package chaos_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/claudomator/claudomator/internal/work"
)

// testSweep kills the server once in each walk: before a change that it makes on the
// disk. make sweep takes every change, one after the other, the other tests some of
// each scenario. Each walk must end as the one that nobody disturbed.
func testSweep(t *testing.T, bin string) {
	needTrap(t)
	from := seed(t)
	for name, scenario := range scenarios() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			changes, want := sweep(t, bin, scenario, &trap{})
			if t.Failed() {
				return
			}
			t.Logf("%d changes; it ends with\n%s", len(changes), want)
			for _, tr := range traps(changes, rand.New(rand.NewPCG(from, uint64(len(name))))) {
				t.Run(fmt.Sprint(tr.at, tr.both), func(t *testing.T) {
					t.Parallel()
					if _, got := sweep(t, bin, scenario, tr); !t.Failed() && got != want {
						t.Errorf("it ended otherwise, with\n%s\nnot with\n%s", got, want)
					}
				})
			}
		})
	}
}

const (
	sweepShort = 3 // kills of each scenario
	sweepLong  = 60
)

// traps are those to set: each change is killed before by a server alone, one of git's
// by both as well.
func traps(changes []string, dice *rand.Rand) (all []*trap) {
	for i, change := range changes {
		all = append(all, &trap{at: i + 1})
		if strings.HasPrefix(change, "git ") {
			all = append(all, &trap{at: i + 1, both: true})
		}
	}
	if os.Getenv("CLAUDOMATOR_CHAOS_SWEEP") != "" {
		return all
	}
	most := sweepShort
	if os.Getenv("CLAUDOMATOR_CHAOS") != "" {
		most = sweepLong
	}
	dice.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:min(len(all), most)]
}

// sweep walks once, and gives what was changed in the trap, and how it ended.
func sweep(t *testing.T, bin string, scenario func(k *walk), tr *trap) (changes []string, ending string) {
	t.Helper()
	w := newWorld(t, bin, "")
	k := &walk{w: w, trap: tr}
	at := tr.at
	defer func() {
		if t.Failed() {
			changes := tr.disarm()
			at = min(at, len(changes))
			t.Logf("killed (git too: %t) at the end of\n%s", tr.both, strings.Join(changes[max(0, at-12):at], "\n"))
			w.explain()
		}
	}()
	k.begin()
	k.project()
	scenario(k)
	changes = tr.disarm()
	k.revive() // it may have been killed just now
	if k.wrong != "" {
		t.Error(k.wrong)
	}
	if t.Failed() {
		return changes, ""
	}
	a := w.audit(t.Context())
	a.events()
	var places []string
	for _, task := range a.tasks {
		if story := a.stories[task.StoryID]; task.State != work.Pending && (story == nil || story.Policy != "checked" || task.ParentTaskID != "") {
			a.task(task) // whether a checked story's root is right, its validation has told
		}
		if task.Judges == nil {
			places = append(places, fmt.Sprint(a.path(task), " ", task.State, " ", task.AttemptNo))
		}
	}
	slices.Sort(places)
	a.reviews()
	a.ships()
	a.landings()
	a.processes()
	a.work(false)
	a.fsck()
	k.tell("main\n%s\n%s merges", w.git(w.path("R"), "ls-tree", "-r", "main"), w.git(w.path("R"), "rev-list", "--count", "--merges", "main"))
	if len(a.stories) == 0 { // what was built as a story stays
		(&person{w: w}).removeAll()
		a.remains()
	}
	return changes, strings.Join(append(k.told, places...), "\n")
}

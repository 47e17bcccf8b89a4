package chaos_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/client"
	"github.com/claudomator/claudomator/internal/work"
	"github.com/claudomator/claudomator/test/binary"
)

const (
	storyShort = 50              // kills of stories, on SQLite
	storyLong  = 300             // a quarter of it on PostgreSQL
	storyTime  = 8 * time.Minute // for one story, storm included
)

// ending is what must be the same however often a story was killed.
type ending struct {
	Status   work.StoryStatus
	Tree     string         // git's, of the user's branch
	Attempts map[string]int // at every place, by its path of names
	Landings int
}

// stories lets the same story be built undisturbed, and then again and again
// while the server and agents are killed, until there were kills enough. In the end
// nobody must be able to tell them apart.
func stories(t *testing.T, bin, postgres string, wanted int) {
	from := seed(t)
	want, calm := tell(t, bin, postgres, from, 0)
	if t.Failed() {
		return
	}
	if places := len(want.Attempts); places != 31 {
		t.Fatalf("the story has %d places: %v", places, want.Attempts)
	}
	t.Log("undisturbed:", calm)
	for kills := 0; kills < wanted && !t.Failed(); {
		from++
		got, s := tell(t, bin, postgres, from, wanted-kills)
		if t.Failed() {
			return
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("a story that was killed ended otherwise (- undisturbed, + killed):\n%s", diff)
			s.w.explain()
		}
		if s.killer.caught && s.audit.deploys < 2 {
			t.Error("a deployment that was cut off is none of two")
		}
		kills += s.killer.kills()
		t.Log("killed:", s)
	}
}

func testStories(t *testing.T, bin string) {
	wanted := storyShort
	switch {
	case os.Getenv("CLAUDOMATOR_CHAOS_KILLS") != "":
		wanted = kills(t, 1)
	case os.Getenv("CLAUDOMATOR_CHAOS") != "":
		wanted = storyLong
	}
	stories(t, bin, "", wanted)
}

// testStoriesPostgres is a part of the long storm alone.
func testStoriesPostgres(t *testing.T, bin string) { stories(t, bin, binary.Postgres(t), storyLong/4) }

// saga is one story from its plan to its deployment, and who looks after it.
type saga struct {
	w      *world
	killer *killer
	audit  *audit
	story  string
	took   time.Duration

	retries int                  // of what was killed
	again   map[work.TaskID]bool // work that a person had reviewed once more
	wrong   []string
}

func (s *saga) String() string {
	return fmt.Sprint(s.killer.figures(), " ", s.audit.figures(), " retried by a person ", s.retries, ", reviewed once more ", len(s.again), "; ", s.took.Round(time.Second))
}

// tell runs one story in a world of its own, with at most so many kills.
func tell(t *testing.T, bin, postgres string, from uint64, most int) (ending, *saga) {
	t.Helper()
	w := newWorld(t, bin, postgres)
	defer w.end()
	s := &saga{w: w, again: map[work.TaskID]bool{}}
	s.killer = &killer{w: w, dice: rand.New(rand.NewPCG(from, 3)), whole: true}
	defer func() {
		if t.Failed() {
			t.Logf("CLAUDOMATOR_CHAOS_SEED=%d: repeats what was hit, not when", from)
			w.explain()
		}
	}()
	w.start()
	(&person{w: w}).setUp(t.Context(), "referee.sh", "exec sh $CHAOS/deploy.sh")
	limit, cancel := context.WithTimeout(t.Context(), storyTime)
	defer cancel()
	began := time.Now()
	over := make(chan struct{})
	go func() { defer close(over); s.live(limit) }()
	s.killer.haunt(most, w.path("deployed"), over)
	<-over
	s.took = time.Since(began)
	for _, text := range s.wrong {
		t.Error(text)
	}
	if t.Failed() {
		return ending{}, s
	}
	s.audit = w.audit(t.Context())
	s.audit.again = s.again
	s.audit.all()
	return s.check(), s
}

// plan is a story of thirty nodes below its root, in three levels.
func (s *saga) plan() app.ApproveInput {
	task := func(part, key string, needs ...string) app.PlanTaskInput {
		return app.PlanTaskInput{
			Name: key, Instructions: "exec sh $CHAOS/builder.sh " + part + " " + key, DependsOn: needs,
			AcceptanceCriteria: app.StringList{"story/" + key + " is there"},
		}
	}
	smoke := `test -e story/crown && echo "$CLAUDOMATOR_EXECUTION_ID" >>"$CHAOS/smoked"`
	return app.ApproveInput{Project: "r", IdempotencyKey: "the story", PlanInput: app.PlanInput{
		Name: "saga", Goal: "exec sh $CHAOS/builder.sh crown crown", BranchName: "story/saga",
		Tasks: []app.PlanTaskInput{
			task("limb", "a"), task("limb", "b"), task("limb", "c", "a"), task("limb", "d", "a", "b"), task("asker", "e"), task("limb", "f", "e"),
		},
		Validation: app.ValidationList{
			{Type: work.BuildValidation, Steps: []string{"test -e story/a"}}, {Type: work.SmokeValidation, Steps: []string{smoke}},
		},
	}}
}

// live is the life of the story's person: everything is asked for until it is so.
func (s *saga) live(ctx context.Context) {
	var q quiet
	for ; ; time.Sleep(glance) {
		if ctx.Err() != nil {
			s.wrong = append(s.wrong, "the story is not over after "+storyTime.String()+":\n"+strings.Join(s.open(ctx), "\n"))
			return
		}
		api, err := s.w.api()
		if err != nil {
			q = quiet{}
			continue
		}
		limit, cancel := context.WithTimeout(ctx, lookLimit)
		over, waits := s.look(limit, api)
		cancel()
		if over {
			return
		}
		if q.lasts(waits) {
			s.wrong = append(s.wrong, "neither automatic work under way nor an item in the inbox:\n"+strings.Join(s.open(ctx), "\n"))
			return
		}
	}
}

// look does what is to be done now; it tells whether all is over, or else whether
// nobody seems to do anything.
func (s *saga) look(ctx context.Context, api *client.Client) (over, waits bool) {
	if s.story == "" {
		made, err := api.ApprovePlan(ctx, s.plan())
		if err == nil {
			s.story = string(made.Story.ID)
		}
		s.expect("approve", "the plan", err)
		return false, false
	}
	view, err := api.Story(ctx, s.story)
	if err != nil {
		return false, false
	}
	tasks, err := allTasks(ctx, api)
	if err != nil {
		return false, false
	}
	items, err := api.Attention(ctx)
	if err != nil {
		return false, false
	}
	switch view.Status {
	case work.ReviewReady:
		_, err = api.AcceptStory(ctx, s.story)
	case work.Shippable, work.DeployFailed:
		_, err = api.ShipStory(ctx, s.story, app.ShipRequest{})
	case work.Deployed:
		over = !busy(tasks) && len(items) == 0
	case work.Draft, work.InProgress, work.Validating, work.NeedsFix, work.Shipping, work.StoryCancelled:
	}
	s.expect("go on with", string(view.Status), err)
	for _, item := range items {
		s.settle(ctx, api, item, tasks)
	}
	return over, len(items) == 0 && view.Status != work.Shipping && !busy(tasks)
}

// busy is true while something goes on without a person.
func busy(tasks []*work.Task) bool {
	return slices.ContainsFunc(tasks, func(t *work.Task) bool { return t.SupersededBy == "" && moves(t) })
}

// settle mends what was killed, and decides nothing that the story's judges decide.
func (s *saga) settle(ctx context.Context, api *client.Client, item work.Item, tasks []*work.Task) {
	id := string(item.TaskID)
	var err error
	switch {
	case item.Kind == work.ItemStory:
	case item.Kind == work.ItemQuestion:
		_, err = api.AnswerTask(ctx, id, "that")
	case item.Kind == work.ItemChild:
		for _, t := range tasks {
			if t.ParentTaskID == item.TaskID && t.SupersededBy == "" && t.State.EndedBadly() {
				s.retry(ctx, api, t.ID)
			}
		}
	case item.Kind == work.ItemEnded:
		s.retry(ctx, api, item.TaskID)
	case item.Kind == work.ItemReview && item.Hold == work.HoldNoVerdict:
		for _, t := range tasks {
			if t.Judges != nil && t.Judges.TaskID == item.TaskID && t.State.EndedBadly() {
				s.retry(ctx, api, t.ID)
				break
			}
		}
	case item.Kind == work.ItemReview && item.Hold == work.HoldGates:
		s.again[item.TaskID] = true
		s.retry(ctx, api, item.TaskID)
	default:
		s.wrong = append(s.wrong, fmt.Sprintf("nobody should be asked for this: %s of %s (%s): %s", item.Kind, id, item.Name, item.Text))
	}
	s.expect("settle "+string(item.Kind), id, err)
}

func (s *saga) retry(ctx context.Context, api *client.Client, id work.TaskID) {
	s.retries++
	_, err := api.RetryTask(ctx, string(id), false)
	s.expect("retry", string(id), err)
}

// expect notes answers that nobody should get, as a person does.
func (s *saga) expect(what, id string, err error) {
	p := &person{w: s.w}
	p.expect(what, work.TaskID(id), err)
	s.wrong = append(s.wrong, p.refused...)
}

func (s *saga) open(ctx context.Context) (lines []string) {
	ctx = context.WithoutCancel(ctx) // asked when its own time is over
	api, err := s.w.api()
	if err != nil {
		return []string{err.Error()}
	}
	if view, err := api.Story(ctx, s.story); err == nil {
		lines = append(lines, fmt.Sprintf("story %s is %s, ship %+v", view.ID, view.Status, view.Ship))
	}
	return append(lines, (&person{w: s.w}).open(ctx, api)...)
}

// check holds this one story to what must be true of it beyond what is true of
// every work, and gives what two of its kind must have in common.
func (s *saga) check() ending {
	a, view := s.audit, s.audit.stories[work.StoryID(s.story)]
	got := ending{Status: view.Status, Tree: s.w.git(s.w.path("R"), "rev-parse", "main^{tree}"), Attempts: map[string]int{}}
	if len(a.stories) != 1 {
		s.w.Errorf("%d stories came of one plan", len(a.stories))
	}
	for _, t := range a.tasks {
		if t.Judges == nil && t.Role() == work.Builder {
			path := a.path(t)
			got.Attempts[path] = max(got.Attempts[path], t.AttemptNo)
		}
	}
	for _, m := range a.merges {
		if m.Status == work.MergeLanded {
			got.Landings++
		}
	}
	want := fmt.Sprint(slices.Sorted(maps.Keys(map[string]int{"saga/a": 2, "saga/b/two": 2, "saga/c/two/one": 2, "saga/d/one": 2, "saga": 2})))
	var mended []string
	for path, n := range got.Attempts {
		if n == 2 {
			mended = append(mended, path)
		}
	}
	slices.Sort(mended)
	if fmt.Sprint(mended) != want {
		s.w.Errorf("mended were %v, not %s", mended, want)
	}
	return got
}

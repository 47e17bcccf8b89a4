package storetest

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/claudomator/claudomator/internal/store"
	"github.com/claudomator/claudomator/internal/work"
)

// filler gives every field of a row a value of its own, so that a field that
// is not stored, or stored in the place of another, is noticed.
type filler struct{ n int }

func filled[T any](f *filler) *T {
	item := new(T)
	f.fill(reflect.ValueOf(item).Elem())
	return item
}

func (f *filler) fill(v reflect.Value) {
	f.n++
	switch v.Interface().(type) { // what the database or JSON takes only some values of
	case time.Time:
		v.Set(reflect.ValueOf(at(f.n).Add(time.Duration(f.n) * time.Microsecond)))
		return
	case work.State:
		v.SetString(string(work.Ready))
		return
	case work.ExecutionState:
		v.SetString(string(work.ExecutionEnded))
		return
	case work.ExecutionKind:
		v.SetString(string(work.GateRun))
		return
	case work.MergeStatus:
		v.SetString(string(work.MergeConflicted))
		return
	case work.StoryStatus:
		v.SetString(string(work.Shippable))
		return
	case work.Scope:
		v.SetString(string(work.ScopeRead))
		return
	}
	f.fillKind(v)
}

func (f *filler) fillKind(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("%s %d ‘ü’ \\%%_\"'", v.Type().Name(), f.n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(f.n))
	case reflect.Float64:
		v.SetFloat(float64(f.n) + 0.25)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		f.fill(v.Index(0))
		f.fill(v.Index(1))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		value := reflect.New(v.Type().Elem()).Elem()
		f.fill(value)
		v.SetMapIndex(reflect.ValueOf(fmt.Sprintf("key %d", f.n)).Convert(v.Type().Key()), value)
	case reflect.Interface:
		v.Set(reflect.ValueOf(fmt.Sprintf("any %d", f.n)))
	case reflect.Struct:
		for i := range v.NumField() {
			f.fill(v.Field(i))
		}
	default:
		panic(fmt.Sprintf("a row has a %s: teach the filler", v.Type()))
	}
}

// empties lists the fields of v that hold nothing.
func empties(path string, v reflect.Value) []string {
	if v.IsZero() {
		return []string{path}
	}
	if v.Kind() == reflect.Pointer {
		return empties(path, v.Elem())
	}
	if v.Kind() != reflect.Struct || v.Type() == reflect.TypeFor[time.Time]() {
		return nil
	}
	var out []string
	for i := range v.NumField() {
		out = append(out, empties(path+"."+v.Type().Field(i).Name, v.Field(i))...)
	}
	return out
}

// testFilled: the filler itself must not leave out what it then compares.
func testFilled(t *testing.T, _ func(testing.TB) store.Config) {
	f := &filler{}
	for _, row := range []any{
		filled[work.Task](f), filled[work.Execution](f), filled[work.Merge](f), filled[work.Story](f), filled[work.Project](f),
		filled[work.RoleConfig](f), filled[work.Token](f), filled[work.Idempotency](f), filled[work.Summary](f), filled[work.Event](f),
		filled[work.Epic](f),
	} {
		for _, field := range empties(reflect.TypeOf(row).Elem().Name(), reflect.ValueOf(row)) {
			t.Errorf("%s is not filled", field)
		}
	}
}

// world is one filled row of each kind, which belong together.
type world struct {
	task      *work.Task
	execution *work.Execution
	merge     *work.Merge
	story     *work.Story
	project   *work.Project
	changes   work.ChangeSet
}

func newWorld() world {
	f := &filler{}
	w := world{
		task: filled[work.Task](f), execution: filled[work.Execution](f), merge: filled[work.Merge](f),
		story: filled[work.Story](f), project: filled[work.Project](f),
	}
	w.task.TreeID = work.TreeID(w.task.ID)
	w.task.ProjectID, w.task.StoryID = w.project.ID, w.story.ID
	w.task.DependsOn = nil // edges have tests of their own
	w.execution.TaskID, w.execution.TreeID = w.task.ID, w.task.TreeID
	w.merge.TaskID, w.merge.TreeID = w.task.ID, w.task.TreeID
	w.project.Version, w.project.Removed = 0, false
	summary, event, key := filled[work.Summary](f), filled[work.Event](f), filled[work.Idempotency](f)
	summary.ID, summary.Current, summary.ProjectID, summary.StoryID = w.task.TreeID, w.task.ID, w.project.ID, w.story.ID
	event.Seq, event.Tree, event.Task = 0, w.task.TreeID, w.task.ID
	w.changes = work.ChangeSet{
		Tree: w.task.TreeID, Summary: *summary, Tasks: []*work.Task{w.task}, Executions: []*work.Execution{w.execution},
		Merges: []*work.Merge{w.merge}, Story: w.story, Events: []work.Event{*event}, Idempotency: key,
	}
	return w
}

func testRoundTrip(t *testing.T, fresh func(testing.TB) store.Config) {
	s := Open(t, fresh(t))
	w := newWorld()
	if err := s.SaveProject(t.Context(), w.project); err != nil {
		t.Fatal(err)
	}
	if version := commit(t, s, w.changes); version != 1 {
		t.Errorf("a new tree has version %d, want 1", version)
	}
	same(t, "task", w.task, must[*work.Task](t)(s.Task(t.Context(), w.task.ID)))
	same(t, "execution", w.execution, must[*work.Execution](t)(s.Execution(t.Context(), string(w.execution.ID))))
	same(t, "execution by token", w.execution, must[*work.Execution](t)(s.ExecutionByToken(t.Context(), w.execution.TokenHash)))
	same(t, "executions", []*work.Execution{w.execution}, must[[]*work.Execution](t)(s.Executions(t.Context(), w.task.ID)))
	same(t, "merge", w.merge, must[*work.Merge](t)(s.Merge(t.Context(), string(w.merge.ID))))
	same(t, "merges", []*work.Merge{w.merge}, must[[]*work.Merge](t)(s.Merges(t.Context(), w.task.ID)))
	same(t, "project", w.project, must[*work.Project](t)(s.Project(t.Context(), w.project.Name)))
	same(t, "events", w.changes.Events, must[[]work.Event](t)(s.Events(t.Context(), 0, "", "", 10)))
	same(t, "key", w.changes.Idempotency, must[*work.Idempotency](t)(s.Idempotent(t.Context(), w.changes.Idempotency.Key)))
	same(t, "inbox", w.changes.Summary.Inbox, must[[]work.Item](t)(s.Inbox(t.Context())))
	position := work.Position(w.task.TreeID)
	outer := must[map[work.Position]work.Outer](t)(s.Outer(t.Context(), []work.Position{position, "nowhere"}))
	same(t, "summary", map[work.Position]work.Outer{position: w.changes.Summary}, outer)

	tree := load(t, s, w.task.TreeID)
	same(t, "tree's task", w.task, tree.Task(w.task.ID))
	same(t, "tree's execution", w.execution, tree.Execution(w.execution.ID))
	same(t, "tree's merge", w.merge, tree.Merge(w.merge.ID))
	same(t, "tree's story", w.story, tree.Story)
	same(t, "story", w.story, must[*work.Story](t)(s.Story(t.Context(), string(w.story.ID))))
	same(t, "stories", []*work.Story{w.story}, must[work.Page[*work.Story]](t)(s.Stories(t.Context(), work.StoryFilter{Epic: w.story.EpicID})).Items)
	same(t, "tree's project", *w.project, tree.Project)

	again(t, s, w)
}

// again writes other values over every field that may change.
func again(t *testing.T, s *store.Store, w world) {
	f := &filler{n: 5000}
	task, execution, merge, story := filled[work.Task](f), filled[work.Execution](f), filled[work.Merge](f), filled[work.Story](f)
	// What a row is and where it belongs does not change.
	task.ID, task.TreeID, task.DependsOn = w.task.ID, w.task.TreeID, nil
	execution.ID, execution.TaskID, execution.TreeID = w.execution.ID, w.execution.TaskID, w.execution.TreeID
	merge.ID, merge.TaskID, merge.TreeID = w.merge.ID, w.merge.TaskID, w.merge.TreeID
	story.ID, story.ProjectID, story.CreatedAt = w.story.ID, w.story.ProjectID, w.story.CreatedAt
	cs := w.changes
	cs.Version, cs.Idempotency = 1, nil
	cs.Tasks, cs.Executions, cs.Merges = []*work.Task{task}, []*work.Execution{execution}, []*work.Merge{merge}
	cs.Story = story
	if version := commit(t, s, cs); version != 2 {
		t.Errorf("the next version is %d, want 2", version)
	}
	same(t, "changed task", task, must[*work.Task](t)(s.Task(t.Context(), task.ID)))
	same(t, "changed execution", execution, must[*work.Execution](t)(s.Execution(t.Context(), string(execution.ID))))
	same(t, "changed merge", merge, must[*work.Merge](t)(s.Merge(t.Context(), string(merge.ID))))
	same(t, "changed story", story, must[*work.Story](t)(s.Story(t.Context(), string(story.ID))))
}

func same(t testing.TB, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s differs (-written +read):\n%s", what, diff)
	}
}

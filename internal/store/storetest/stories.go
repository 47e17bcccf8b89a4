package storetest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/claudomator/claudomator/internal/store"
	"github.com/claudomator/claudomator/internal/work"
)

// newStory is a small story whose tree has its id, made n seconds after the
// beginning.
func newStory(id string, n int, status work.StoryStatus) *work.Story {
	return &work.Story{
		ID: work.StoryID(id), ProjectID: "project", Name: "story " + id, Status: status, BranchName: "story/" + id,
		RootTaskID: work.TaskID("tree-" + id), CreatedAt: at(n), UpdatedAt: at(n),
	}
}

// storyChanges is a change set of a story's tree, which has its root alone.
func storyChanges(version int64, story *work.Story) work.ChangeSet {
	root := newTask(string(story.RootTaskID), 0)
	root.ProjectID, root.StoryID, root.CreatedAt = story.ProjectID, story.ID, story.CreatedAt
	if story.Status == work.Deployed || story.Status == work.StoryCancelled {
		root.State = work.Completed
	}
	cs := changes(version, root)
	cs.Story = story
	return cs
}

// library stores stories that differ in all that a filter can ask.
func library(t *testing.T, s *store.Store) []*work.Story {
	var all []*work.Story
	statuses := work.StoryStatuses()
	for n := range 36 {
		story := newStory(fmt.Sprintf("s%02d", n), n/3, statuses[n%len(statuses)]) // some are equally old
		story.ProjectID = work.ProjectID(fmt.Sprintf("project%d", n%3))
		story.EpicID = []work.EpicID{"", "e1", "e2", "unknown"}[n%4]
		story.Name = []string{"Fix the PARSER", "100% of it_all", "plain"}[(n/2)%3]
		story.Goal = []string{"", `a\b`, "Speed up the parser"}[(n/3)%3]
		commit(t, s, storyChanges(0, story))
		all = append(all, story)
	}
	slices.SortFunc(all, func(a, b *work.Story) int { return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(b.ID, a.ID)) })
	return all
}

// picked is what a filter means, in Go.
func picked(f work.StoryFilter, y *work.Story) bool {
	lower := strings.ToLower
	return (f.Project == "" || f.Project == y.ProjectID) && (f.Epic == "" || f.Epic == y.EpicID) &&
		(len(f.Statuses) == 0 || slices.Contains(f.Statuses, y.Status)) &&
		(f.Text == "" || strings.Contains(lower(y.Name), lower(f.Text)) || strings.Contains(lower(y.Goal), lower(f.Text)))
}

func testStoryFilters(t *testing.T, fresh func(testing.TB) store.Config) {
	s := Open(t, fresh(t))
	all := library(t, s)
	two := []work.StoryStatus{work.Shipping, work.Draft}
	for _, f := range []work.StoryFilter{
		{}, {Project: "project1"}, {Project: "nobody"}, {Epic: "e1"}, {Epic: "e2", Project: "project2"}, {Epic: "nothing"},
		{Statuses: two[:1]}, {Statuses: two}, {Statuses: work.StoryStatuses()}, {Statuses: two, Project: "project0"},
		{Statuses: two, Epic: "e1"}, {Statuses: two, Epic: "e1", Project: "project0", Text: "PARSER"},
		{Text: "parser"}, {Text: "speed UP"}, {Text: "100%"}, {Text: "t_a"}, {Text: "%"}, {Text: `\`}, {Text: "nowhere"},
	} {
		var want []*work.Story
		for _, story := range all {
			if picked(f, story) {
				want = append(want, story)
			}
		}
		for _, limit := range []int{0, 1, 7, 500} {
			f.Limit, f.After = limit, ""
			same(t, fmt.Sprintf("stories of %+v", f), want, shelf(t, s, f))
		}
	}
	for _, f := range []work.StoryFilter{{Limit: -1}, {Limit: 501}, {Text: "\x00"}, {Text: strings.Repeat("x", 1001)}} {
		wantError(t, second(s.Stories(t.Context(), f)), work.Invalid, "")
	}
	wantError(t, second(s.Stories(t.Context(), work.StoryFilter{After: "?"})), work.Invalid, "cursor")
}

// shelf reads all pages of a filter.
func shelf(t *testing.T, s *store.Store, f work.StoryFilter) []*work.Story {
	t.Helper()
	var all []*work.Story
	for {
		page := must[work.Page[*work.Story]](t)(s.Stories(t.Context(), f))
		if f.Limit > 0 && len(page.Items) > f.Limit {
			t.Fatalf("a page of %d has %d items", f.Limit, len(page.Items))
		}
		all = append(all, page.Items...)
		if page.Next == "" {
			return all
		}
		if len(page.Items) == 0 || len(all) > 1000 {
			t.Fatalf("the pages of %+v have no end", f)
		}
		f.After = page.Next
	}
}

func testStoryRefs(t *testing.T, fresh func(testing.TB) store.Config) {
	s := Open(t, fresh(t))
	names := map[string]string{"abcd1": "unique", "abcd2": "twice", "x": "twice", "zebra": "abc"}
	for i, id := range []string{"abcd1", "abcd2", "abcd", "x", "zebra", "zulu1", "zulu2"} {
		story := newStory(id, i, work.Draft)
		story.Name = cmp.Or(names[id], story.Name)
		commit(t, s, storyChanges(0, story))
	}
	for ref, want := range map[string]work.StoryID{"abcd1": "abcd1", "abcd": "abcd", "x": "x", "zeb": "zebra", "unique": "abcd1", "abc": "zebra"} {
		if story := must[*work.Story](t)(s.Story(t.Context(), ref)); story.ID != want {
			t.Errorf("%q means %q, want %q", ref, story.ID, want)
		}
	}
	for _, ref := range []string{"zulu", "twice"} {
		wantError(t, second(s.Story(t.Context(), ref)), work.Invalid, "ambiguous")
	}
	for _, ref := range []string{"", "zu", "nobody", "\x00", "%%%", "\xff\xff\xff"} {
		wantError(t, second(s.Story(t.Context(), ref)), work.NotFound, "")
	}
}

// testStoryChanges: what lists find a story by follows the story, and no other
// tree takes it.
func testStoryChanges(t *testing.T, fresh func(testing.TB) store.Config) {
	s := Open(t, fresh(t))
	story := newStory("s1", 0, work.Draft)
	commit(t, s, storyChanges(0, story))
	stray := *story
	stray.RootTaskID, stray.Name = "elsewhere", "stolen"
	wantError(t, second(s.Commit(t.Context(), storyChanges(0, &stray))), work.Conflict, "exists")

	story.Name, story.Goal, story.EpicID, story.Status, story.BranchName = "renamed", "new goal", "e1", work.InProgress, "story/new"
	commit(t, s, storyChanges(1, story))
	for _, f := range []work.StoryFilter{{Text: "renamed"}, {Text: "NEW goal"}, {Epic: "e1"}, {Statuses: []work.StoryStatus{work.InProgress}}} {
		same(t, fmt.Sprintf("stories of %+v", f), []*work.Story{story}, shelf(t, s, f))
	}
	for _, f := range []work.StoryFilter{{Text: "stolen"}, {Text: "story s1"}, {Statuses: []work.StoryStatus{work.Draft}}} {
		same(t, fmt.Sprintf("stories of %+v", f), []*work.Story(nil), shelf(t, s, f))
	}
	same(t, "story by its new name", story, must[*work.Story](t)(s.Story(t.Context(), "renamed")))
	same(t, "the tree's story", story, load(t, s, work.TreeID(story.RootTaskID)).Story)
	same(t, "branches", map[string]work.StoryID{"story/new": "s1"}, must[map[string]work.StoryID](t)(s.Branches(t.Context(), "project")))
	commit(t, s, changes(2, newTask(string(story.RootTaskID), 0))) // says nothing of the story
	same(t, "story after another commit", story, must[*work.Story](t)(s.Story(t.Context(), "s1")))
}

func testBranches(t *testing.T, fresh func(testing.TB) store.Config) {
	s := Open(t, fresh(t))
	want := map[string]work.StoryID{}
	for i, status := range work.StoryStatuses() {
		story := newStory(string(status), i, status)
		commit(t, s, storyChanges(0, story))
		if status != work.Deployed && status != work.StoryCancelled {
			want[story.BranchName] = story.ID
		}
	}
	elsewhere, nameless := newStory("elsewhere", 50, work.Draft), newStory("nameless", 51, work.Draft)
	elsewhere.ProjectID, nameless.BranchName = "another", ""
	older, younger := newStory("older", 52, work.Shipping), newStory("younger", 53, work.Draft)
	younger.BranchName = older.BranchName
	for _, story := range []*work.Story{elsewhere, nameless, younger, older} {
		commit(t, s, storyChanges(0, story))
	}
	want[older.BranchName] = "older"
	same(t, "branches", want, must[map[string]work.StoryID](t)(s.Branches(t.Context(), "project")))
	same(t, "branches of nobody", map[string]work.StoryID{}, must[map[string]work.StoryID](t)(s.Branches(t.Context(), "nobody")))

	older.Status = work.Deployed
	commit(t, s, storyChanges(1, older))
	want[older.BranchName] = "younger"
	same(t, "branches later", want, must[map[string]work.StoryID](t)(s.Branches(t.Context(), "project")))
}

func testEpics(t *testing.T, fresh func(testing.TB) store.Config) {
	s := Open(t, fresh(t))
	same(t, "epics of an empty store", []work.EpicProgress(nil), must[[]work.EpicProgress](t)(s.Epics(t.Context())))
	beta, alpha := work.Epic{ID: "id-beta", Name: "beta", CreatedAt: at(1)}, work.Epic{ID: "id-alpha", Name: "alpha", CreatedAt: at(2)}
	for _, e := range []work.Epic{beta, alpha} {
		if err := s.SaveEpic(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	for i, of := range []struct {
		epic   work.EpicID
		status work.StoryStatus
	}{{"id-beta", work.Draft}, {"id-beta", work.Deployed}, {"id-beta", work.Deployed}, {"", work.Draft}, {"gone", work.Draft}} {
		story := newStory(fmt.Sprintf("s%d", i), i, of.status)
		story.EpicID = of.epic
		commit(t, s, storyChanges(0, story))
	}
	first := work.EpicProgress{Epic: alpha, Stories: map[work.StoryStatus]int{}}
	full := work.EpicProgress{Epic: beta, Stories: map[work.StoryStatus]int{work.Draft: 1, work.Deployed: 2}}
	same(t, "epics", []work.EpicProgress{first, full}, must[[]work.EpicProgress](t)(s.Epics(t.Context())))
	for _, ref := range []string{"beta", "id-beta", "id-b"} {
		same(t, "epic "+ref, &full, must[*work.EpicProgress](t)(s.Epic(t.Context(), ref)))
	}
	same(t, "epic alpha", &first, must[*work.EpicProgress](t)(s.Epic(t.Context(), "alpha")))
	wantError(t, second(s.Epic(t.Context(), "id-")), work.Invalid, "ambiguous")
	for _, ref := range []string{"", "gone", "\x00", "%%%"} {
		wantError(t, second(s.Epic(t.Context(), ref)), work.NotFound, "")
	}

	wantError(t, s.SaveEpic(t.Context(), work.Epic{ID: "other", Name: "beta"}), work.Conflict, "name_taken")
	wantError(t, s.SaveEpic(t.Context(), work.Epic{ID: "id-alpha", Name: "beta"}), work.Conflict, "name_taken")
	if err := s.SaveEpic(t.Context(), work.Epic{ID: "id-beta", Name: "a first one", CreatedAt: at(9)}); err != nil {
		t.Fatal(err)
	}
	full.Name = "a first one" // it stays as old as it is
	same(t, "epics after a rename", []work.EpicProgress{full, first}, must[[]work.EpicProgress](t)(s.Epics(t.Context())))
	wantError(t, second(s.Epic(t.Context(), "beta")), work.NotFound, "")
}

// numbers gives ids that are numbered or spelled from their parts.
type numbers struct{ n int }

func (i *numbers) New() string {
	i.n++
	return fmt.Sprintf("new%d", i.n)
}

func (*numbers) Derive(parts ...string) string { return strings.Join(parts, "-") }

// testStoryTree: a story is a tree from its first commit on, with its root and
// the planner beside it, which no list of work shows; while it is being shipped
// its tree is open, whatever its tasks are.
func testStoryTree(t *testing.T, fresh func(testing.TB) store.Config) {
	s := Open(t, fresh(t))
	tree := work.NewTree("root", nil, nil, nil)
	tree.Project = work.Project{ID: "project"}
	step := work.NewStep(tree, at(1), &numbers{}, work.Person("ada"))
	create := work.CreateStory{ID: "story", Root: "root", Elaborate: true, Input: work.StoryInput{Name: "A name", Goal: "make it fast"}}
	if err := work.Decide(step, create); err != nil {
		t.Fatal(err)
	}
	cs := step.ChangeSet()
	commit(t, s, cs)

	stored := load(t, s, "root")
	root, planner := stored.Task("root"), stored.Planning()
	if stored.Size() != 2 || root == nil || root.State != work.Pending || planner == nil || planner.StoryID != "story" {
		t.Fatalf("the new story's tree has %d tasks, root %+v and planner %+v", stored.Size(), root, planner)
	}
	same(t, "the tree's story", cs.Story, stored.Story)
	same(t, "the story", cs.Story, must[*work.Story](t)(s.Story(t.Context(), "A name")))
	for _, c := range []struct {
		filter work.TaskFilter
		want   []work.TaskID
	}{
		{work.TaskFilter{}, []work.TaskID{"root"}},
		{work.TaskFilter{TopLevel: true}, []work.TaskID{"root"}},
		{work.TaskFilter{Story: "story"}, []work.TaskID{"root"}},
		{work.TaskFilter{All: true, TopLevel: true}, []work.TaskID{"root"}},
		{work.TaskFilter{All: true, Story: "story"}, []work.TaskID{planner.ID, "root"}},
	} {
		var got []work.TaskID
		for _, task := range turn(t, s, c.filter) {
			got = append(got, task.ID)
		}
		same(t, fmt.Sprintf("tasks of %+v", c.filter), c.want, got)
	}

	open := []work.TreeID{"root"}
	same(t, "open while it is planned", open, must[[]work.TreeID](t)(s.OpenTrees(t.Context())))
	for version, status := range []work.StoryStatus{work.Shippable, work.Shipping, work.DeployFailed, work.Shipping, work.Deployed} {
		over := newTask("root", 0)
		over.State, over.StoryID = work.Completed, "story"
		tree := work.NewTree("root", []*work.Task{over}, nil, nil)
		tree.Story = cs.Story
		tree.Story.Status, tree.Story.Ship = status, &work.Ship{Step: work.ShipPull}
		cs := changes(int64(version+1), over)
		cs.Summary, cs.Story = tree.Summary(), tree.Story
		if version == 0 {
			cs.Removed = []work.TaskID{planner.ID}
		}
		commit(t, s, cs)
		got := must[[]work.TreeID](t)(s.OpenTrees(t.Context()))
		if want := !status.Over(); cs.Summary.Open != want || slices.Equal(got, open) != want {
			t.Errorf("%s: the tree's summary says open %v, and the open trees are %v", status, cs.Summary.Open, got)
		}
	}
}

// testManyStories: beside a thousand stories that are over, what is asked of the
// open one is answered with it alone.
func testManyStories(t *testing.T, fresh func(testing.TB) store.Config) {
	s := Open(t, fresh(t))
	open := newStory("open", 0, work.InProgress)
	commit(t, s, storyChanges(0, open))
	shelve(t, s, 1000)
	same(t, "open trees", []work.TreeID{"tree-open"}, must[[]work.TreeID](t)(s.OpenTrees(t.Context())))
	same(t, "branches", map[string]work.StoryID{"story/open": "open"}, must[map[string]work.StoryID](t)(s.Branches(t.Context(), "project")))
	running := work.StoryFilter{Statuses: []work.StoryStatus{work.InProgress}, Project: "project"}
	same(t, "stories under way", []*work.Story{open}, shelf(t, s, running))
	if all := shelf(t, s, work.StoryFilter{Limit: 500}); len(all) != 1001 || all[1000].ID != "open" {
		t.Errorf("%d stories are on the pages", len(all))
	}
	tree := load(t, s, "tree-open")
	same(t, "the open story", open, tree.Story)
	if version := commit(t, s, storyChanges(tree.Version, tree.Story)); version != 2 {
		t.Errorf("the open tree has version %d, want 2", version)
	}
}

// shelve stores stories that are over.
func shelve(t testing.TB, s *store.Store, n int) {
	for i := range n {
		commit(t, s, storyChanges(0, newStory(fmt.Sprintf("over%04d", i), i+1, []work.StoryStatus{work.Deployed, work.StoryCancelled}[i%2])))
	}
}

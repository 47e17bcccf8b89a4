package storetest

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/claudomator/claudomator/internal/store"
	"github.com/claudomator/claudomator/internal/work"
)

// crowd stores tasks that differ in all that a filter can ask.
func crowd(t *testing.T, s *store.Store) []*work.Task {
	var all []*work.Task
	states := work.States()
	for tree := range 12 {
		root := newTask(fmt.Sprintf("tree%02d", tree), tree/3) // some are equally old
		var others []*work.Task
		for i := range 7 {
			child := childOf(root, fmt.Sprintf("tree%02d-%d", tree, i), tree/3+i%2)
			switch i {
			case 3:
				child.SupersededBy = "somebody"
			case 4:
				child.ParentTaskID, child.Judges = "", &work.Judged{TaskID: root.ID}
			case 5:
				child.ParentTaskID, child.Agent.Role = "", work.Planner
			case 6:
				child.ParentTaskID, child.Agent.Role = "", work.Retro
			}
			others = append(others, child)
		}
		for i, task := range append([]*work.Task{root}, others...) {
			task.ProjectID = work.ProjectID(fmt.Sprintf("project%d", tree%3))
			task.State = states[(tree+i)%len(states)]
			task.Tags = [][]string{nil, {"Bug"}, {"bug", `a"b%_\`}}[(tree+i)%3]
			task.Description = []string{"", "Fix the PARSER", "100% of it_all"}[(tree*2+i)%3]
			if tree%4 == 0 {
				task.StoryID = "story"
			}
		}
		commit(t, s, changes(0, root, others...))
		all = append(append(all, root), others...)
	}
	slices.SortFunc(all, func(a, b *work.Task) int { return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(b.ID, a.ID)) })
	return all
}

// chosen is what a filter means, in Go.
func chosen(f work.TaskFilter, t *work.Task) bool {
	lower := strings.ToLower
	return (f.Project == "" || f.Project == t.ProjectID) && (f.Tree == "" || f.Tree == t.TreeID) &&
		(f.Parent == "" || f.Parent == t.ParentTaskID) && (f.Story == "" || f.Story == t.StoryID) &&
		(len(f.States) == 0 || slices.Contains(f.States, t.State)) && (f.Tag == "" || slices.Contains(t.Tags, f.Tag)) &&
		(f.Text == "" || strings.Contains(lower(t.Name), lower(f.Text)) || strings.Contains(lower(t.Description), lower(f.Text))) &&
		(!f.TopLevel || (t.ParentTaskID == "" && !t.Apart())) && (f.All || (t.SupersededBy == "" && !t.Apart()))
}

func testFilters(t *testing.T, fresh func(testing.TB) store.Config) {
	s := Open(t, fresh(t))
	all := crowd(t, s)
	two := []work.State{work.Ready, work.Queued}
	for _, f := range []work.TaskFilter{
		{}, {All: true}, {TopLevel: true}, {TopLevel: true, All: true},
		{Project: "project1"}, {Project: "project1", TopLevel: true}, {Project: "project2", All: true}, {Project: "nobody"},
		{Tree: "tree03"}, {Tree: "tree03", All: true}, {Parent: "tree05"}, {Parent: "tree05", All: true}, {Story: "story"},
		{States: two[:1]}, {States: two}, {States: work.States(), All: true}, {States: two, Project: "project0", TopLevel: true},
		{States: two, Tag: "bug", Text: "task"}, {Tag: "Bug"}, {Tag: "bug"}, {Tag: `a"b%_\`}, {Tag: "%"}, {Tag: "bu"},
		{Text: "parser"}, {Text: "TREE07"}, {Text: "100%"}, {Text: "t_a"}, {Text: "%"}, {Text: `\`},
		{Project: "project0", Story: "story", Text: "fix", States: work.States(), TopLevel: true},
	} {
		var want []*work.Task
		for _, task := range all {
			if chosen(f, task) {
				want = append(want, task)
			}
		}
		for _, limit := range []int{0, 1, 7, 500} {
			f.Limit, f.After = limit, ""
			same(t, fmt.Sprintf("tasks of %+v", f), want, turn(t, s, f))
		}
	}
}

// turn reads all pages of a filter.
func turn(t *testing.T, s *store.Store, f work.TaskFilter) []*work.Task {
	t.Helper()
	var all []*work.Task
	for {
		page, err := s.Tasks(t.Context(), f)
		if err != nil {
			t.Fatalf("list %+v: %v", f, err)
		}
		if f.Limit > 0 && len(page.Items) > f.Limit {
			t.Fatalf("a page of %d has %d items", f.Limit, len(page.Items))
		}
		all = append(all, page.Items...)
		if page.Next == "" {
			return all
		}
		if len(page.Items) == 0 || len(all) > 10_000 {
			t.Fatalf("the pages of %+v have no end", f)
		}
		f.After = page.Next
	}
}

func testPages(t *testing.T, fresh func(testing.TB) store.Config) {
	s := Open(t, fresh(t))
	const old, added = 60, 40
	for i := range old {
		commit(t, s, changes(0, newTask(fmt.Sprintf("old%02d", i), i/4)))
	}
	together(3, func(i int) {
		if i == 0 {
			for n := range added {
				if _, err := s.Commit(t.Context(), changes(0, newTask(fmt.Sprintf("new%02d", n), old+n))); err != nil {
					t.Errorf("commit: %v", err)
				}
			}
			return
		}
		for range 5 {
			seen := map[work.TaskID]int{}
			for _, task := range turn(t, s, work.TaskFilter{Limit: 3 + i}) {
				seen[task.ID]++
			}
			for n := range old {
				if id := work.TaskID(fmt.Sprintf("old%02d", n)); seen[id] == 0 {
					t.Errorf("%s is on no page", id)
				}
			}
			for id, times := range seen {
				if times > 1 {
					t.Errorf("%s is on %d pages", id, times)
				}
			}
		}
	})
}

func testBadPages(t *testing.T, fresh func(testing.TB) store.Config) {
	s := Open(t, fresh(t))
	commit(t, s, changes(0, newTask("task", 0)))
	spell := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	for _, cursor := range []string{"?", "x", spell("x/y"), spell("99999999999999999999/y"), spell("1/\x00"), spell("1/\xff")} {
		_, err := s.Tasks(t.Context(), work.TaskFilter{After: cursor})
		wantError(t, err, work.Invalid, "cursor")
	}
	for _, f := range []work.TaskFilter{{Limit: -1}, {Limit: 501}, {Text: strings.Repeat("x", 1001)}, {Text: "\x00"}, {Tag: "\xff"}} {
		_, err := s.Tasks(t.Context(), f)
		wantError(t, err, work.Invalid, "")
	}
}

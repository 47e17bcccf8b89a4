package storetest_test

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/claudomator/claudomator/internal/store"
	"github.com/claudomator/claudomator/internal/store/storetest"
	"github.com/claudomator/claudomator/internal/work"
)

func everyDatabase(b *testing.B, bench func(*testing.B, *store.Store)) {
	b.Run("sqlite", func(b *testing.B) { bench(b, open(b, storetest.SQLite(b))) })
	b.Run("postgres", func(b *testing.B) { bench(b, open(b, storetest.Postgres(b))) })
}

func open(b *testing.B, cfg store.Config) *store.Store {
	s, err := store.Open(context.WithoutCancel(b.Context()), cfg, func(context.Context, *sql.Tx, []work.Effect) error { return nil })
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	return s
}

// percentile runs f until the benchmark has enough of it, and reports the
// 50th and the 99th percentile.
func percentile(b *testing.B, f func(i int)) {
	var took []time.Duration
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		before := b.Elapsed()
		f(i)
		took = append(took, b.Elapsed()-before)
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}

// BenchmarkCommit is a typical commit: one task, one execution, two events.
func BenchmarkCommit(b *testing.B) {
	everyDatabase(b, func(b *testing.B, s *store.Store) {
		version := int64(0)
		percentile(b, func(i int) {
			cs := numbered(version)
			cs.Executions[0].ID, cs.Tasks[0].Agent.Instructions = work.ExecutionID(fmt.Sprintf("x%d", i/3)), instructions
			cs.Tasks[0].State = work.States()[i%10]
			var err error
			if version, err = s.Commit(b.Context(), cs); err != nil {
				b.Fatal(err)
			}
		})
	})
}

const instructions = "Make the parser accept trailing commas in lists and maps, with tests for both, and say so in the manual."

// grow stores trees with a number of tasks and ended executions each.
func grow(b *testing.B, s *store.Store, trees, tasks, runs int) {
	states := work.States()
	for tree := range trees {
		root := fmt.Sprintf("tree%05d", tree)
		cs := work.ChangeSet{Tree: work.TreeID(root), Summary: work.Summary{ID: work.TreeID(root), Current: work.TaskID(root), State: work.Ready}}
		for i := range tasks {
			t := &work.Task{
				ID: work.TaskID(fmt.Sprintf("%s-%04d", root, i)), TreeID: cs.Tree, ParentTaskID: work.TaskID(root), Kind: work.Subtask,
				Name: "task", ProjectID: work.ProjectID(fmt.Sprintf("project%d", tree%3)), State: work.Completed,
				CreatedAt: time.UnixMicro(int64(tree*tasks + i + 1)).UTC(), Agent: work.AgentSpec{Instructions: instructions},
			}
			if i == 0 {
				t.ID, t.ParentTaskID, t.Kind = work.TaskID(root), "", work.TopLevel
			}
			if i%100 == 0 {
				t.State = states[tree%len(states)]
			}
			for n := range runs {
				cs.Executions = append(cs.Executions, &work.Execution{
					ID: work.ExecutionID(fmt.Sprintf("%s-x%d", t.ID, n)), TaskID: t.ID, Kind: work.AgentRun, State: work.ExecutionEnded, Number: n,
				})
			}
			cs.Tasks = append(cs.Tasks, t)
		}
		if _, err := s.Commit(b.Context(), cs); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLoadTree(b *testing.B) {
	everyDatabase(b, func(b *testing.B, s *store.Store) {
		grow(b, s, 1, 1000, 3)
		percentile(b, func(int) {
			tree, err := s.LoadTree(b.Context(), "tree00000")
			if err != nil || tree.Size() != 1000 {
				b.Fatal(tree, err)
			}
		})
	})
}

// BenchmarkOpen opens a database that is there already, with 10,000 tasks.
func BenchmarkOpen(b *testing.B) {
	cfg := storetest.SQLite(b)
	grow(b, open(b, cfg), 10, 1000, 0)
	percentile(b, func(int) {
		s, err := store.Open(b.Context(), cfg, func(context.Context, *sql.Tx, []work.Effect) error { return nil })
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	})
}

// BenchmarkRefresh is what a decision on a cached tree reads.
func BenchmarkRefresh(b *testing.B) {
	everyDatabase(b, func(b *testing.B, s *store.Store) {
		grow(b, s, 1, 10, 1)
		tree, err := s.LoadTree(b.Context(), "tree00000")
		if err != nil {
			b.Fatal(err)
		}
		percentile(b, func(int) {
			if err := s.Refresh(b.Context(), tree); err != nil {
				b.Fatal(err)
			}
		})
	})
}

// BenchmarkFirstPage reads pages of 50 beside 100,000 tasks.
func BenchmarkFirstPage(b *testing.B) {
	everyDatabase(b, func(b *testing.B, s *store.Store) {
		grow(b, s, 100, 1000, 0)
		for name, filter := range map[string]work.TaskFilter{
			"all":     {},
			"top":     {TopLevel: true},
			"project": {Project: "project1", TopLevel: true},
			"open":    {States: []work.State{work.Queued, work.Running, work.Blocked, work.Ready}},
			"state":   {States: []work.State{work.Completed}, Project: "project2"},
			"tree":    {Tree: "tree00050"},
		} {
			b.Run(name, func(b *testing.B) {
				percentile(b, func(int) {
					page, err := s.Tasks(b.Context(), filter)
					if err != nil || len(page.Items) == 0 {
						b.Fatal(len(page.Items), err)
					}
				})
			})
		}
		b.Run("waiting", func(b *testing.B) {
			percentile(b, func(int) {
				if _, err := s.Waiting(b.Context(), 50); err != nil {
					b.Fatal(err)
				}
			})
		})
	})
}

// BenchmarkStory asks and decides about an open story, alone and beside 1,000
// that are over: both cost the same.
func BenchmarkStory(b *testing.B) {
	for _, over := range []int{0, 1000} {
		b.Run(fmt.Sprintf("beside-%d", over), func(b *testing.B) {
			everyDatabase(b, func(b *testing.B, s *store.Store) {
				stories(b, s, over)
				b.Run("tick", func(b *testing.B) {
					percentile(b, func(int) {
						tree, err := s.LoadTree(b.Context(), "tree-open")
						if err != nil || tree.Story == nil {
							b.Fatal(tree, err)
						}
						if _, err := s.Commit(b.Context(), story(tree.Version, "open", work.InProgress)); err != nil {
							b.Fatal(err)
						}
					})
				})
				for name, ask := range map[string]func() (int, error){
					"list": func() (int, error) {
						page, err := s.Stories(b.Context(), work.StoryFilter{Project: "project", Statuses: []work.StoryStatus{work.InProgress, work.Shipping}})
						return len(page.Items), err
					},
					"branches": func() (int, error) {
						taken, err := s.Branches(b.Context(), "project")
						return len(taken), err
					},
					"open": func() (int, error) {
						trees, err := s.OpenTrees(b.Context())
						return len(trees), err
					},
				} {
					b.Run(name, func(b *testing.B) {
						percentile(b, func(int) {
							if n, err := ask(); n != 1 || err != nil {
								b.Fatal(n, err)
							}
						})
					})
				}
			})
		})
	}
}

// stories stores one that is open, and many that are over.
func stories(b *testing.B, s *store.Store, over int) {
	all := []work.ChangeSet{story(0, "open", work.InProgress)}
	for i := range over {
		all = append(all, story(0, fmt.Sprintf("over%04d", i), work.Deployed))
	}
	for _, cs := range all {
		if _, err := s.Commit(b.Context(), cs); err != nil {
			b.Fatal(err)
		}
	}
}

// story is a change set of a story's tree, with ten tasks.
func story(version int64, id string, status work.StoryStatus) work.ChangeSet {
	root, state := work.TreeID("tree-"+id), work.Blocked
	if status == work.Deployed {
		state = work.Completed
	}
	cs := work.ChangeSet{
		Tree: root, Version: version,
		Summary: work.Summary{ID: root, ProjectID: "project", StoryID: work.StoryID(id), Current: work.TaskID(root), State: state, Open: !state.Ended()},
		Story: &work.Story{
			ID: work.StoryID(id), ProjectID: "project", Name: id, Goal: instructions, Status: status, BranchName: "story/" + id, RootTaskID: work.TaskID(root),
			CreatedAt: time.UnixMicro(1).UTC(),
		},
	}
	for i := range 10 {
		t := &work.Task{
			ID: work.TaskID(fmt.Sprintf("%s-%d", root, i)), TreeID: root, ParentTaskID: work.TaskID(root), Kind: work.Subtask, Name: "task",
			ProjectID: "project", StoryID: work.StoryID(id), State: state, Agent: work.AgentSpec{Instructions: instructions},
		}
		if i == 0 {
			t.ID, t.ParentTaskID, t.Kind = work.TaskID(root), "", work.TopLevel
		}
		cs.Tasks = append(cs.Tasks, t)
	}
	return cs
}

package storetest

import (
	"strconv"
	"testing"

	"github.com/claudomator/claudomator/internal/store"
	"github.com/claudomator/claudomator/internal/work"
)

func testLoad(t *testing.T, fresh func(testing.TB) store.Config) {
	s := Open(t, fresh(t))
	_, err := s.LoadTree(t.Context(), "root")
	wantError(t, err, work.NotFound, "")

	other := newTask("other", 0)
	commit(t, s, changes(0, other))
	root := newTask("root", 0)
	root.DependsOn, root.ProjectID = []work.Position{"other"}, "nowhere"
	child := childOf(root, "child", 1)
	edges := int64(0)
	cs := changes(0, root, child)
	cs.Edges = &edges
	run := func(n int, kind work.ExecutionKind, state work.ExecutionState) {
		x := newRun(child, kind, n)
		x.State = state
		cs.Executions = append(cs.Executions, x)
	}
	run(1, work.AgentRun, work.ExecutionEnded)
	run(2, work.AgentRun, work.ExecutionLost)
	run(3, work.AgentRun, work.ExecutionEnded)
	run(4, work.GateRun, work.ExecutionEnded)
	run(5, work.GateRun, work.ExecutionLost)
	run(6, work.AgentRun, work.ExecutionRunning)
	run(7, work.AgentRun, work.ExecutionQueued)
	for _, status := range work.MergeStatuses() {
		cs.Merges = append(cs.Merges, &work.Merge{ID: work.MergeID(status), TaskID: "root", Status: status})
	}
	commit(t, s, cs)

	tree := load(t, s, "root")
	got := map[work.ExecutionKind][]int{}
	for _, kind := range work.ExecutionKinds() {
		for _, x := range tree.Runs("child", kind) {
			got[kind] = append(got[kind], x.Number)
		}
	}
	same(t, "loaded executions", map[work.ExecutionKind][]int{work.AgentRun: {3, 6, 7}, work.GateRun: {5}}, got)
	for _, status := range work.MergeStatuses() {
		if loaded := tree.Merge(work.MergeID(status)) != nil; loaded != status.Open() {
			t.Errorf("the %s merge is loaded: %v", status, loaded)
		}
	}
	if outer := tree.Outer["other"]; outer.Current != "other" || len(tree.Outer) != 1 {
		t.Errorf("the trees it depends on are %+v", tree.Outer)
	}
	if tree.Project.ID != "nowhere" || tree.Story != nil || tree.Size() != 2 || tree.Version != 1 {
		t.Errorf("the tree has project %q, story %v, %d tasks, version %d", tree.Project.ID, tree.Story, tree.Size(), tree.Version)
	}
}

func testRefresh(t *testing.T, fresh func(testing.TB) store.Config) {
	s := Open(t, fresh(t))
	project := &work.Project{ID: "project", Name: "name", Branch: "main"}
	if err := s.SaveProject(t.Context(), project); err != nil {
		t.Fatal(err)
	}
	other, root := newTask("other", 0), newTask("root", 1)
	commit(t, s, changes(0, other))
	commit(t, s, depend(0, 0, root, "other"))
	tree := load(t, s, "root")

	project.Branch = "trunk"
	if err := s.SaveProject(t.Context(), project); err != nil {
		t.Fatal(err)
	}
	other.State = work.Ready
	commit(t, s, changes(1, other))
	if err := s.Refresh(t.Context(), tree); err != nil {
		t.Fatal(err)
	}
	same(t, "refreshed project", *project, tree.Project)
	if state := tree.Outer["other"].State; state != work.Ready {
		t.Errorf("the other tree is seen as %s, want READY", state)
	}

	commit(t, s, depend(1, 1, root))
	tree.Task("root").DependsOn = nil
	if err := s.Refresh(t.Context(), tree); err != nil {
		t.Fatal(err)
	}
	if len(tree.Outer) != 0 {
		t.Errorf("without dependencies other trees are left: %v", tree.Outer)
	}
}

// testSnapshot loads a tree while it changes: all rows are of one version.
func testSnapshot(t *testing.T, fresh func(testing.TB) store.Config) {
	s := Open(t, fresh(t))
	root := newTask("root", 0)
	child := childOf(root, "child", 1)
	run := newRun(child, work.AgentRun, 1)
	write := func(version int64) {
		root.Name, child.Name, run.Fence = strconv.FormatInt(version+1, 10), strconv.FormatInt(version+1, 10), version+1
		cs := changes(version, root, child)
		cs.Executions = []*work.Execution{run}
		if _, err := s.Commit(t.Context(), cs); err != nil {
			t.Errorf("commit version %d: %v", version+1, err)
		}
	}
	write(0)
	const versions = 150
	together(3, func(i int) {
		for n := int64(1); n < versions; n++ {
			if i == 0 {
				write(n)
				continue
			}
			tree, err := s.LoadTree(t.Context(), "root")
			if err != nil {
				t.Error(err)
				return
			}
			version := strconv.FormatInt(tree.Version, 10)
			if tree.Task("root").Name != version || tree.Task("child").Name != version || tree.Execution(run.ID).Fence != tree.Version {
				t.Errorf("version %s was loaded with tasks of versions %s and %s and an execution of %d",
					version, tree.Task("root").Name, tree.Task("child").Name, tree.Execution(run.ID).Fence)
			}
		}
	})
}

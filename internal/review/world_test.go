package review_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/claudomator/claudomator/internal/review"
	"github.com/claudomator/claudomator/internal/work"
)

// world is a server without processes: the trees, the decisions on them, and a
// queue of the effects that a real engine would deliver. Tests move it by hand;
// the simulation lets it loose.
type world struct {
	now     time.Time
	rules   review.Rules
	trees   []*work.Tree
	outer   map[work.Position]work.Summary // of every tree, as last committed
	effects []work.Effect                  // not delivered yet, oldest first
	events  []work.Event
	git     vault
	ids     names

	watch func(w *world, d decision) // sees every commit; nil: nobody does
}

// decision is one committed step, for those who watch.
type decision struct {
	tree    *work.Tree
	by      work.Actor
	command work.Command
	before  work.StoryStatus
	changes work.ChangeSet
}

func newWorld() *world {
	return &world{
		now:   time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		outer: map[work.Position]work.Summary{},
		rules: review.Rules{Usable: func(agent string) bool { return agent == "scripted" }},
		git:   newVault(),
	}
}

// names gives identifiers that can be read: what they were derived from.
type names struct{ n int }

func (i *names) New() string {
	i.n++
	return fmt.Sprintf("n%d", i.n)
}

func (i *names) Derive(parts ...string) string { return strings.Join(parts, ".") }

var alice = work.Person("alice")

// do decides a command on a tree, settles it and commits, as package app does.
func (w *world) do(tree *work.Tree, by work.Actor, c work.Command) error {
	w.refresh(tree)
	status := work.StoryStatus("")
	if tree.Story != nil {
		status = tree.Story.Status
	}
	step := work.NewStep(tree, w.now, &w.ids, by)
	step.MaxFixes = review.MaxFixes(tree)
	if err := work.Decide(step, c); err != nil {
		if step.Dirty() {
			panic(fmt.Sprintf("%T was refused (%v) and has changed the tree", c, err))
		}
		return err
	}
	if err := review.Settle(step, w.rules); err != nil {
		panic(fmt.Sprintf("settle after %+v: %v", c, err))
	}
	if !step.Dirty() {
		return nil
	}
	w.commit(decision{tree, by, c, status, step.ChangeSet()}, step)
	return nil
}

func (w *world) commit(d decision, step *work.Step) {
	step.Committed(d.tree.Version + 1)
	for i := range d.changes.Events {
		d.changes.Events[i].Seq = int64(len(w.events) + 1)
		w.events = append(w.events, d.changes.Events[i])
	}
	w.effects = append(w.effects, d.changes.Effects...)
	for _, sum := range append([]work.Summary{d.changes.Summary}, d.changes.NewTrees...) {
		w.summarise(sum)
	}
	for _, sum := range d.changes.NewTrees { // a child was postponed
		var rows []*work.Task
		for _, t := range d.changes.Tasks {
			if t.TreeID == sum.ID {
				rows = append(rows, t)
			}
		}
		alone := work.NewTree(sum.ID, rows, nil, nil)
		alone.Project, alone.Version = d.tree.Project, 1
		w.trees = append(w.trees, alone)
	}
	if w.watch != nil {
		w.watch(w, d)
	}
}

// summarise keeps what other trees see of a tree, and has those look again that
// depend on it.
func (w *world) summarise(sum work.Summary) {
	pos := work.Position(sum.ID)
	old := w.outer[pos]
	w.outer[pos] = sum
	if old.Current == sum.Current && old.State == sum.State && old.Head == sum.Head && old.Accepted == sum.Accepted && old.Landed == sum.Landed {
		return
	}
	for _, other := range w.trees {
		for _, d := range outside(other) {
			if d == pos {
				w.effects = append(w.effects, work.Effect{Kind: work.Recheck, Tree: other.ID})
				break
			}
		}
	}
}

// outside lists the other trees that a tree's root depends or is built on.
func outside(t *work.Tree) []work.Position {
	root := t.Current(t.Root())
	if root == nil {
		return nil
	}
	out := append([]work.Position{}, root.DependsOn...)
	for _, b := range root.BuiltOn {
		out = append(out, b.Position())
	}
	return out
}

func (w *world) refresh(tree *work.Tree) {
	clear(tree.Outer)
	for _, pos := range outside(tree) {
		if sum, ok := w.outer[pos]; ok {
			tree.Outer[pos] = sum
		}
	}
}

// tree finds a tree by its id.
func (w *world) tree(id work.TreeID) *work.Tree {
	for _, t := range w.trees {
		if t.ID == id {
			return t
		}
	}
	return nil
}

// treeOf finds the tree that holds a task.
func (w *world) treeOf(id work.TaskID) *work.Tree {
	for _, t := range w.trees {
		if t.Task(id) != nil {
			return t
		}
	}
	return nil
}

// begin makes a tree with a root, and starts it when asked.
func (w *world) begin(project work.Project, story *work.Story, id work.TaskID, in work.TaskInput, go_ bool) (*work.Tree, error) {
	tree := work.NewTree(work.TreeID(id), nil, nil, nil)
	tree.Project, tree.Story = project, story
	if story != nil {
		in.StoryID = story.ID
	}
	tree.Reach = w.reach()
	for _, d := range in.DependsOn {
		if sum, ok := w.outer[d]; ok {
			tree.Outer[d] = sum
		}
	}
	return w.plant(tree, work.CreateTask{ID: id, Input: in, Start: go_})
}

// draft makes a tree with a story, as a person does.
func (w *world) draft(project work.Project, c work.CreateStory) (*work.Tree, error) {
	tree := work.NewTree(work.TreeID(c.Root), nil, nil, nil)
	tree.Project = project
	return w.plant(tree, c)
}

// plant decides the command that begins a tree: its root is not there yet, so do
// would not refresh what that depends on.
func (w *world) plant(tree *work.Tree, c work.Command) (*work.Tree, error) {
	w.trees = append(w.trees, tree)
	step := work.NewStep(tree, w.now, &w.ids, alice)
	step.MaxFixes = review.MaxFixes(tree)
	if err := work.Decide(step, c); err != nil {
		w.trees = w.trees[:len(w.trees)-1]
		return nil, err
	}
	if err := review.Settle(step, w.rules); err != nil {
		panic(err)
	}
	w.commit(decision{tree, alice, c, "", step.ChangeSet()}, step)
	return tree, nil
}

// reach is the graph of dependencies between trees.
func (w *world) reach() map[work.Position][]work.Position {
	out := map[work.Position][]work.Position{}
	for _, t := range w.trees {
		if root := t.Current(t.Root()); root != nil {
			out[t.Root()] = root.DependsOn
		}
	}
	return out
}

// vault is what a model needs of git: which commit contains which, and branches.
type vault struct {
	n        int
	parents  map[string][]string
	branches map[work.TaskID]string
}

const base = "m0"

func newVault() vault {
	return vault{parents: map[string][]string{base: nil}, branches: map[work.TaskID]string{}}
}

func (v *vault) commit(name string, parents ...string) string {
	if name == "" {
		v.n++
		name = fmt.Sprintf("c%d", v.n)
	}
	v.parents[name] = append([]string{}, parents...)
	return name
}

func (v *vault) contains(a, b string) bool {
	if a == b {
		return true
	}
	for _, p := range v.parents[a] {
		if v.contains(p, b) {
			return true
		}
	}
	return false
}

// merge gives a commit that contains both; the first when it contains the other.
func (v *vault) merge(a, b string) string {
	switch {
	case v.contains(a, b):
		return a
	case v.contains(b, a):
		return b
	}
	return v.commit("", a, b)
}

// head is a task's branch, made from what it starts from when there is none.
func (v *vault) head(tree *work.Tree, t *work.Task) string {
	if h := v.branches[t.ID]; h != "" {
		return h
	}
	h := base
	switch {
	case t.Book.Base != "":
		h = t.Book.Base
	case t.ParentTaskID != "":
		h = v.head(tree, tree.Task(t.ParentTaskID))
	}
	for _, b := range t.BuiltOn {
		h = v.merge(h, b.Commit)
	}
	v.branches[t.ID] = h
	return h
}

// start is the commit a task's changes are counted from.
func (v *vault) start(tree *work.Tree, t *work.Task) string {
	switch {
	case t.Book.Base != "":
		return t.Book.Base
	case t.ParentTaskID != "":
		return v.head(tree, tree.Task(t.ParentTaskID))
	}
	return v.head(tree, t)
}

func result(from, to string) *work.Result {
	r := &work.Result{Base: from, Head: to, NoChanges: from == to}
	if !r.NoChanges {
		r.Files = 1
	}
	return r
}

package work

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// ItemKind is why something needs a person.
type ItemKind string

// The kinds of inbox item.
const (
	ItemQuestion ItemKind = "question"
	ItemReview   ItemKind = "review"   // READY work that waits for a person
	ItemConflict ItemKind = "conflict" // an integration or landing that a person must settle
	ItemChild    ItemKind = "child"    // a parent blocked by a badly ended or draft child
	ItemEnded    ItemKind = "ended"    // a top-level task ended badly
	ItemBuiltOn  ItemKind = "built_on" // what it is built on ended badly, or is not part of what was accepted
	ItemParked   ItemKind = "parked"   // waits for a limit, a budget, a paused agent or resources
	ItemStuck    ItemKind = "stuck"    // what the server is to do next keeps failing
	ItemStory    ItemKind = "story"
)

// Resumes is true for what goes on by itself once its cause has gone.
func (k ItemKind) Resumes() bool { return k == ItemParked || k == ItemStuck }

// Item is one thing that needs a person.
type Item struct {
	Kind    ItemKind `json:"kind"`
	TaskID  TaskID   `json:"task_id,omitempty"`
	StoryID StoryID  `json:"story_id,omitempty"`
	Name    string   `json:"name"`
	Text    string   `json:"text"`
	Hold    Hold     `json:"hold,omitempty"`
	Actions []Action `json:"actions,omitempty"`
	Acts    []Act    `json:"story_actions,omitempty"` // what can be asked of the story, where it is one
}

// Inbox lists all that needs a person in one tree: the one place where that is
// decided.
func Inbox(t *Tree) []Item {
	var out []Item
	for _, task := range t.order {
		if task.SupersededBy != "" {
			continue
		}
		for _, item := range t.items(task) {
			item.TaskID, item.StoryID, item.Name = task.ID, task.StoryID, task.Name
			item.Actions = t.Actions(task)
			out = append(out, item)
		}
	}
	for _, m := range t.merges {
		if m.Status == MergeConflicted && !m.Accepting { // else the task itself is an item
			task := t.tasks[m.TaskID]
			out = append(out, Item{Kind: ItemConflict, TaskID: m.TaskID, StoryID: task.StoryID, Name: task.Name,
				Text: fmt.Sprintf("landing on %s (merge %s) conflicts in %s; %s", m.Target, m.ID, strings.Join(m.Conflicts, ", "), m.Hint)})
		}
	}
	if text := t.storyItem(); text != "" {
		out = append(out, Item{Kind: ItemStory, StoryID: t.Story.ID, Name: t.Story.Name, Text: text, Acts: t.StoryActions()})
	}
	slices.SortFunc(out, func(a, b Item) int {
		return cmp.Or(cmp.Compare(a.TaskID, b.TaskID), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Text, b.Text))
	})
	return out
}

// StoryNeeds says what a story waits for from a person, in the words of the inbox,
// "" for nothing.
func (t *Tree) StoryNeeds() string {
	if t.Story.Status.Over() {
		return "" // its retro may need somebody, the story does not
	}
	root := t.Current(t.Root())
	at, others := "", 0 // what needs a person at its root, and elsewhere in its tree
	for _, item := range Inbox(t) {
		switch {
		case item.Kind == ItemStory:
			return item.Text
		case item.TaskID == root.ID:
			at = item.Text
		default:
			others++
		}
	}
	switch {
	case at != "" && t.Story.Status == Shipping:
		return "the ship is paused: " + at
	case at != "":
		return "the task at its root awaits a person: " + at
	case others == 1:
		return "1 thing in its tree needs you"
	case others > 1:
		return fmt.Sprintf("%d things in its tree need you", others)
	}
	return ""
}

// storyItem says what the tree's story needs from a person, "" for nothing.
func (t *Tree) storyItem() string {
	if t.Story == nil {
		return ""
	}
	root, stopped := t.Current(t.Root()), ""
	if ship := t.Story.Ship; ship != nil && ship.Error != "" && !root.CreatedAt.After(ship.StartedAt) {
		stopped = ": " + ship.Error
	}
	switch t.Story.Status {
	case Draft:
		switch {
		case t.Planning() != nil:
			return ""
		case t.Story.Plan == nil:
			return t.unplanned()
		}
		return "the story's plan awaits approval"
	case ReviewReady:
		return "the story was approved by its reviewers and awaits a person"
	case Shippable:
		if stopped != "" {
			return "the ship was stopped" + stopped
		}
		return "the story can be shipped"
	case DeployFailed:
		return "the ship failed after the landing" + stopped
	case InProgress:
		switch {
		case root.State != Completed:
		case t.Invalid():
			return "the ship was stopped" + stopped
		default: // only then is a finished story not SHIPPABLE
			return "nothing is left of the story's plan to be shipped: reject it to have it built, or cancel it"
		}
	case Shipping:
		if pull := t.Story.Ship.Pull; t.Story.Ship.Step == ShipPull && pull != nil && pull.State == PullOpen && !slices.Contains([]string{"", "pending", "failed"}, pull.Checks) { // "": not looked at yet
			return "pull request " + pull.URL + " waits to be merged"
		}
	case Validating, NeedsFix, Deployed, StoryCancelled:
	}
	return ""
}

// unplanned says why a story has no plan, and what can be done about it.
func (t *Tree) unplanned() string {
	text := "the story has no plan"
	if t.Story.PlanError != "" {
		text = "the story has no usable plan: " + t.Story.PlanError
	}
	for _, task := range slices.Backward(t.order) {
		if task.Role() != Planner || task.ParentTaskID != "" || !task.State.EndedBadly() {
			continue
		}
		if t.Story.PlanError == "" {
			text += ": its planner ended: " + cmp.Or(task.Reason, string(task.State))
		}
		return text + "; retry its planner, task " + string(task.ID) + ", or give it a plan"
	}
	return text
}

// past is true when a task's bad end needs nobody: its story was cancelled; and a
// planner's is its story's item.
func (t *Tree) past(task *Task) bool {
	return t.cancelled() || t.Story != nil && task.Role() == Planner
}

// Invalid is true when the validation at Ship has failed for what stands at the
// root now.
func (t *Tree) Invalid() bool {
	v := t.Story.ValidationResult
	return v != nil && !v.Passed && v.Commit == t.Current(t.Root()).Book.Head
}

func (t *Tree) items(task *Task) (out []Item) {
	if c, ok := t.stuck(task); ok {
		out = append(out, Item{Kind: ItemStuck, Text: fmt.Sprintf("what it waits for (%s) keeps failing, and is tried again: %s", c.Effect.Kind, c.Error)})
	}
	if item, ok := t.stateItem(task); ok {
		return append(out, item)
	}
	if len(task.BuiltOn) > 0 && task.State != Completed {
		if reason, lost := t.Lost(task); lost {
			out = append(out, Item{Kind: ItemBuiltOn, Text: reason})
		}
	}
	return out
}

func (t *Tree) stateItem(task *Task) (Item, bool) {
	switch task.State {
	case Blocked:
		return t.blockedItem(task)
	case Ready:
		if task.BlockedOn == OnPerson {
			return Item{Kind: ItemReview, Hold: task.Hold, Text: task.Reason}, true
		}
	case Failed, TimedOut, BudgetExceeded, Cancelled:
		// What a person cancelled needs nobody; a child is its parent's item, a
		// judge that of what it judges.
		own := task.State == Cancelled && task.Book.Cascade == ""
		if task.ParentTaskID == "" && task.Judges == nil && !own && !t.past(task) {
			return Item{Kind: ItemEnded, Text: cmp.Or(task.Reason, string(task.State))}, true
		}
	case Queued:
		if task.BlockedOn.parks() {
			return Item{Kind: ItemParked, Text: cmp.Or(task.Reason, string(task.BlockedOn))}, true
		}
		for _, d := range task.DependsOn {
			if t.Outer[d].State == Pending {
				return Item{Kind: ItemParked, Text: fmt.Sprintf("it waits for task %s, which nobody has started", d)}, true
			}
		}
	case Pending, Running, Completed:
	}
	return Item{}, false
}

func (t *Tree) blockedItem(task *Task) (Item, bool) {
	switch task.BlockedOn {
	case OnQuestion:
		return Item{Kind: ItemQuestion, Text: task.Question.Text}, true
	case OnConflict:
		return Item{Kind: ItemConflict, Text: task.Reason}, true
	case OnChildren:
		for c := range t.unsettled(task.ID) {
			if c.State.EndedBadly() {
				return Item{Kind: ItemChild, Text: fmt.Sprintf("its child %s (%s) ended: %s; retry or drop it, or cancel this task", c.ID, c.Name, cmp.Or(c.Reason, string(c.State)))}, true
			}
			if c.State == Pending && c.Draft {
				return Item{Kind: ItemChild, Text: fmt.Sprintf("its child %s (%s) is a draft", c.ID, c.Name)}, true
			}
		}
	case NotBlocked, OnDependencies, OnSlot, OnRetry, OnLimit, OnBudget, OnPaused, OnResources, OnGates, OnJudges, OnIntegration, OnLanding, OnPerson:
		// Nothing that a BLOCKED task waits for.
	}
	return Item{}, false
}

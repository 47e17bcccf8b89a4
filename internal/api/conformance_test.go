package api

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/app/apptest"
	"github.com/claudomator/claudomator/internal/work"
)

// subject is an implementation of app.API, with the world it acts on.
type subject struct {
	*world
	app.API
	ctx  context.Context
	lore *lore
}

// lore is what was seen so far, with ids replaced by their order of appearance
// and without times, so that two worlds can be compared.
type lore struct {
	names map[string]string
	lines []string
	used  map[string]bool // methods of app.API that have succeeded
}

// An id is 16 letters and digits, a secret 43 characters.
var (
	ids   = regexp.MustCompile(`\b[a-z0-9]{16}\b|\bcm_[A-Za-z0-9_-]{43}`)
	times = regexp.MustCompile(`"2026-01-0[0-9T:.]+Z"|"next":"[^"]+"`)
)

func (l *lore) note(method string, value any, err error) {
	l.used[method] = l.used[method] || err == nil
	line := method + ": "
	if err != nil {
		e, ok := work.AsError(err)
		if !ok {
			line += fmt.Sprintf("not ours: %v", err)
		} else {
			details, _ := json.Marshal(e.Details)
			var sorted any // what came over HTTP has lost the order of its keys
			_ = json.Unmarshal(details, &sorted)
			details, _ = json.Marshal(sorted)
			line += fmt.Sprintf("%s/%s %q %q %s", e.Code, e.Reason, e.Message, e.Hint, details)
		}
	} else {
		data, err := json.Marshal(value)
		if err != nil {
			line += err.Error()
		}
		line += string(data)
	}
	line = strings.NewReplacer("null", "[]", `"actions":[],`, "", `"children":[],`, "").Replace(line)
	line = times.ReplaceAllString(line, "TIME")
	l.lines = append(l.lines, ids.ReplaceAllStringFunc(line, func(id string) string {
		if l.names[id] == "" {
			l.names[id] = fmt.Sprintf("<%d>", len(l.names))
		}
		return l.names[id]
	}))
}

// Over HTTP everything is as it is without: the same calls give the same
// values and the same errors.
func TestClientIsAsTheService(t *testing.T) {
	t.Parallel()
	var all []*lore
	for _, remote := range []bool{false, true} {
		w := newWorld(t)
		s := subject{world: w, API: w.Service, ctx: w.Owner(), lore: &lore{names: map[string]string{}, used: map[string]bool{}}}
		if remote {
			s.API, s.ctx = w.client(), t.Context()
		}
		s.projects()
		s.settings()
		id := s.tasks()
		s.reviewed(id)
		s.children()
		s.stories()
		s.disk()
		s.listening()
		all = append(all, s.lore)
	}
	if diff := cmp.Diff(all[0].lines, all[1].lines); diff != "" {
		t.Errorf("service (-) and client (+):\n%s", diff)
	}
	var methods []string
	for i := range reflect.TypeFor[app.API]().NumMethod() {
		methods = append(methods, reflect.TypeFor[app.API]().Method(i).Name)
	}
	worked := maps.Clone(all[1].used)
	maps.DeleteFunc(worked, func(_ string, ok bool) bool { return !ok })
	if diff := cmp.Diff(methods, slices.Sorted(maps.Keys(worked))); diff != "" {
		t.Errorf("methods (-) and what has succeeded (+):\n%s", diff)
	}
}

func seen[T any](s subject, method string) func(T, error) T {
	return func(v T, err error) T {
		s.lore.note(method, v, err)
		return v
	}
}

func (s subject) projects() {
	p := seen[*work.Project](s, "AddProject")
	name, repository, setup, bad := "house", "/srv/house", "make deps", "No Name"
	p(s.AddProject(s.ctx, app.ProjectInput{
		Name: &name, Repository: &repository, Validate: &[]string{"make"}, Policies: &map[string]string{"builder/*": "human"},
		Limits: &app.LimitsInput{Slots: new(2), Timeout: new(work.Duration(3e9))}, Forge: &app.ForgeInput{API: new("https://forge/api/v1"), TokenEnv: new("TOKEN")}, Environment: &map[string]string{"A": "b"},
	}))
	p(s.AddProject(s.ctx, app.ProjectInput{Name: &name}))
	p(s.AddProject(s.ctx, app.ProjectInput{Name: &bad}))
	set := seen[*work.Project](s, "SetProject")
	set(s.SetProject(s.ctx, "house", app.ProjectInput{Setup: &setup, Environment: &map[string]string{}, Validate: &[]string{}}))
	set(s.SetProject(s.ctx, "house", app.ProjectInput{Limits: &app.LimitsInput{Slots: new(0)}, Forge: &app.ForgeInput{Kind: new("gitea")}}))
	set(s.SetProject(s.ctx, "cellar", app.ProjectInput{Setup: &setup}))
	one := seen[*work.Project](s, "Project")
	one(s.Project(s.ctx, "house"))
	one(s.Project(s.ctx, "no such / project?#%2F"))
	one(s.Project(s.ctx, ".."))
	seen[[]*work.Project](s, "Projects")(s.Projects(s.ctx))
	attic := "attic"
	p(s.AddProject(s.ctx, app.ProjectInput{Name: &attic}))
	s.lore.note("RemoveProject", nil, s.RemoveProject(s.ctx, "attic"))
	s.lore.note("RemoveProject", nil, s.RemoveProject(s.ctx, "attic"))
}

func (s subject) settings() {
	set := seen[*work.RoleConfig](s, "SetRole")
	argv, prompt, agent := []string{"sh", "-c", "true"}, "Look closely.", "claude"
	set(s.SetRole(s.ctx, "checker", app.RoleInput{Command: &argv, Prompt: &prompt}))
	set(s.SetRole(s.ctx, "checker", app.RoleInput{Agent: &agent}))
	set(s.SetRole(s.ctx, "No Role", app.RoleInput{}))
	role := seen[[]work.RoleConfig](s, "Role")
	role(s.Role(s.ctx, "checker"))
	role(s.Role(s.ctx, "planner"))
	seen[[]work.RoleConfig](s, "Roles")(s.Roles(s.ctx))
	token := seen[*app.NewToken](s, "CreateToken")
	made := token(s.CreateToken(s.ctx, "laptop", app.ScopeRead))
	token(s.CreateToken(s.ctx, "", app.ScopeRead))
	s.lore.note("RevokeToken", nil, s.RevokeToken(s.ctx, made.ID))
	s.lore.note("RevokeToken", nil, s.RevokeToken(s.ctx, "nobody"))
	seen[[]app.Token](s, "Tokens")(s.Tokens(s.ctx))
	seen[[]app.AgentInfo](s, "Agents")(s.Agents(s.ctx))
}

func (s subject) tasks() work.TaskID {
	create := seen[*app.TaskView](s, "CreateTask")
	full := app.TaskRequest{
		Project: "house", Name: "a ünïcode/name\"", Description: "line\nline", Timeout: work.Duration(60e9), Priority: "high",
		Agent: app.AgentInput{Type: "command", Command: []string{"sh", "-c", "x"}, Instructions: "do it", MaxTurns: 3, MaxBudgetUSD: 0.5},
		Retry: app.RetryInput{MaxAttempts: 1, Backoff: "linear"}, Tags: []string{"t"}, AcceptanceCriteria: app.StringList{"works"},
		Gates: []string{"true"}, Review: "human", CommitType: "feat", IdempotencyKey: "k",
	}
	t := create(s.CreateTask(s.ctx, full))
	create(s.CreateTask(s.ctx, full)) // the same one
	create(s.CreateTask(s.ctx, app.TaskRequest{Name: "", Project: "house"}))
	create(s.CreateTask(s.ctx, app.TaskRequest{Name: "b", Project: "house", DependsOn: []string{string(t.ID)}, Start: true}))
	id := string(t.ID)
	one := seen[*app.TaskView](s, "Task")
	one(s.Task(s.ctx, id))
	one(s.Task(s.ctx, full.Name))
	one(s.Task(s.ctx, "nosuchtask"))
	patch := seen[*app.TaskView](s, "PatchTask")
	text, low, on := "do it well", "low", []string{id}
	patch(s.PatchTask(s.ctx, id, app.TaskPatch{Instructions: &text, Priority: &low, Tags: &[]string{}}))
	patch(s.PatchTask(s.ctx, id, app.TaskPatch{DependsOn: &on}))
	page := seen[app.Page[*work.Task]](s, "Tasks")
	first := page(s.Tasks(s.ctx, app.TaskQuery{Project: "house", States: []work.State{work.Pending, work.Queued}, TopLevel: true, All: true, Limit: 1}))
	page(s.Tasks(s.ctx, app.TaskQuery{After: first.Next, Limit: 1}))
	page(s.Tasks(s.ctx, app.TaskQuery{Tag: "none", Text: "ü&="}))
	page(s.Tasks(s.ctx, app.TaskQuery{Project: "cellar"}))
	page(s.Tasks(s.ctx, app.TaskQuery{Limit: 501}))
	return t.ID
}

// reviewed takes a task through its life: run, rejected, fixed, accepted,
// landed.
func (s subject) reviewed(task work.TaskID) {
	id := string(task)
	start := seen[*app.TaskView](s, "StartTask")
	start(s.StartTask(s.ctx, id))
	start(s.StartTask(s.ctx, id))
	s.Run(task, apptest.Changed())
	view := s.diffs(id)
	if view.State == work.Ready && view.BlockedOn == work.OnGates {
		s.Run(task, work.End{Outcome: work.Success, Gates: []work.GateResult{{Command: "true"}}})
	}
	reject := seen[*app.TaskView](s, "RejectTask")
	reject(s.RejectTask(s.ctx, id, app.RejectInput{}))
	rejected := reject(s.RejectTask(s.ctx, id, app.RejectInput{Comment: "not so", Findings: work.Findings{{Kind: "bug", File: "a.go", Line: 3, Text: "wrong"}}}))
	accept := seen[*app.TaskView](s, "AcceptTask")
	accept(s.AcceptTask(s.ctx, id, app.AcceptInput{})) // superseded
	fix := rejected.SupersededBy
	s.Run(fix, work.End{Outcome: work.FailedRun, Error: "exit status 1"})
	seen[[]work.Item](s, "Attention")(s.Attention(s.ctx))
	retry := seen[*app.TaskView](s, "RetryTask")
	retry(s.RetryTask(s.ctx, string(fix), true))
	s.Run(fix, apptest.Changed())
	s.Run(fix, work.End{Outcome: work.Success, Gates: []work.GateResult{{Command: "true"}}})
	no := false
	accept(s.AcceptTask(s.ctx, string(fix), app.AcceptInput{Land: &no}))
	s.landing(string(fix))
}

func (s subject) diffs(id string) *app.TaskView {
	diff := func(ref string) {
		var out strings.Builder
		err := s.TaskDiff(s.ctx, ref, &out)
		s.lore.note("TaskDiff", out.String(), err)
	}
	diff(id)
	diff("nosuchtask")
	list := seen[[]*work.Execution](s, "Executions")(s.Executions(s.ctx, id))
	one := seen[*work.Execution](s, "Execution")
	one(s.Execution(s.ctx, string(list[0].ID)))
	one(s.Execution(s.ctx, "nosuchrun"))
	for _, from := range []struct {
		ref    string
		offset int64
	}{{string(list[0].ID), 0}, {string(list[0].ID), 5}, {string(list[0].ID), -1}, {"nosuchrun", 0}} {
		log, err := s.Transcript(s.ctx, from.ref, from.offset)
		var text []byte
		if err == nil {
			text, err = io.ReadAll(log)
			_ = log.Close()
		}
		s.lore.note("Transcript", string(text), err)
	}
	seen[[]work.Event](s, "TaskEvents")(s.TaskEvents(s.ctx, id))
	return seen[*app.TaskView](s, "Task")(s.Task(s.ctx, id))
}

func (s subject) landing(id string) {
	start := seen[*work.Merge](s, "StartMerge")
	m := start(s.StartMerge(s.ctx, id, ""))
	start(s.StartMerge(s.ctx, id, "release"))
	one := seen[*work.Merge](s, "Merge")
	one(s.Merge(s.ctx, string(m.ID)))
	one(s.Merge(s.ctx, "nosuchmerge"))
	list := seen[[]*work.Merge](s, "Merges")
	list(s.Merges(s.ctx, ""))
	list(s.Merges(s.ctx, id))
	list(s.Merges(s.ctx, "nosuchtask"))
	goOn, abort := seen[*work.Merge](s, "ContinueMerge"), seen[*work.Merge](s, "AbortMerge")
	conflict := func() {
		tree, err := s.store.TreeOf(s.Context(), m.TaskID)
		if err != nil {
			s.Fatal(err)
		}
		s.Do(tree, work.LandConflict{Merge: m.ID, Current: m.TaskID, Files: []string{"a.go"}})
	}
	goOn(s.ContinueMerge(s.ctx, string(m.ID)))
	conflict()
	goOn(s.ContinueMerge(s.ctx, string(m.ID)))
	conflict()
	abort(s.AbortMerge(s.ctx, string(m.ID)))
	abort(s.AbortMerge(s.ctx, string(m.ID)))
}

// children are asked, messaged, dropped, postponed and removed.
func (s subject) children() {
	create := seen[*app.TaskView](s, "CreateTask")
	parent := create(s.CreateTask(s.ctx, app.TaskRequest{Project: "house", Name: "parent", Review: "human", Start: true}))
	child := create(s.CreateTask(s.ctx, app.TaskRequest{ParentTaskID: string(parent.ID), Name: "child"}))
	later := create(s.CreateTask(s.ctx, app.TaskRequest{ParentTaskID: string(parent.ID), Name: "later"}))
	seen[*app.TaskView](s, "PostponeTask")(s.PostponeTask(s.ctx, string(later.ID)))
	x := s.Begin(parent.ID, "token")
	s.Do(x.TreeID, work.Ask{Execution: x.ID, Question: work.Question{Text: "which?", Options: []string{"this"}}})
	s.Do(x.TreeID, work.End{Execution: x.ID, Fence: x.Fence, Outcome: work.Asked})
	answer := seen[*app.TaskView](s, "AnswerTask")
	answer(s.AnswerTask(s.ctx, string(parent.ID), "this"))
	answer(s.AnswerTask(s.ctx, string(parent.ID), "that"))
	s.Run(parent.ID, apptest.Changed())
	s.Run(child.ID, work.End{Outcome: work.FailedRun, Error: "no"})
	seen[*app.TaskView](s, "SubmitTask")(s.SubmitTask(s.ctx, string(child.ID)))
	s.Run(child.ID, work.End{Outcome: work.FailedRun, Error: "no"})
	seen[*app.TaskView](s, "DropTask")(s.DropTask(s.ctx, string(child.ID)))
	seen[*app.TaskView](s, "MessageTask")(s.MessageTask(s.ctx, string(parent.ID), "one more thing"))
	seen[*app.TreeNode](s, "TaskTree")(s.TaskTree(s.ctx, string(child.ID)))
	seen[[]*work.Task](s, "Subtasks")(s.Subtasks(s.ctx, string(parent.ID)))
	cancel := seen[*app.TaskView](s, "CancelTask")
	cancel(s.CancelTask(s.ctx, string(parent.ID)))
	cancel(s.CancelTask(s.ctx, string(parent.ID)))
	s.lore.note("RemoveTask", nil, s.RemoveTask(s.ctx, string(parent.ID)))
	s.lore.note("RemoveTask", nil, s.RemoveTask(s.ctx, string(parent.ID)))
}

// disk is measured and freed, and what was kept is brought back.
func (s subject) disk() {
	seen[*app.DiskUse](s, "Disk")(s.Disk(s.ctx))
	reclaim := seen[*app.Reclaimed](s, "ReclaimDisk")
	reclaim(s.ReclaimDisk(s.ctx, app.ReclaimRequest{}))
	reclaim(s.ReclaimDisk(s.ctx, app.ReclaimRequest{EmptyBin: true}))
	kept := seen[[]app.Snapshot](s, "Snapshots")
	all := kept(s.Snapshots(s.ctx, ""))
	kept(s.Snapshots(s.ctx, "gon"))
	kept(s.Snapshots(s.ctx, "nosuchtask"))
	restore := seen[*app.Restored](s, "RestoreSnapshot")
	for _, in := range []app.RestoreRequest{
		{Snapshot: all[0].Ref, To: "/new"}, {Snapshot: all[0].Commit, Branch: "saved", Task: "gone"}, {Snapshot: all[0].Commit, To: "/old"},
		{Snapshot: all[0].Commit, To: "here"}, {Snapshot: all[0].Commit}, {Snapshot: all[0].Commit, To: "/new", Branch: "b"},
		{Snapshot: "nosuch", To: "/new"}, {To: "/new"}, {Snapshot: all[0].Commit, Branch: "a..b"}, {Snapshot: "c0ffee", To: "/new"},
	} {
		restore(s.RestoreSnapshot(s.ctx, in))
	}
}

// listening reads all events from the beginning.
func (s subject) listening() {
	seen[*app.Stats](s, "Stats")(s.Stats(s.ctx))
	last, err := s.store.LastSeq(s.ctx)
	if err != nil {
		s.Fatal(err)
	}
	for e, err := range s.Events(s.ctx, 0) {
		s.lore.note("Events", e, err)
		if err != nil || e.Seq == last {
			return
		}
	}
	s.Error("the stream ended by itself")
}

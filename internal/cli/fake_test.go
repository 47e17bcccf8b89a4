package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

// fake answers from fields; what a test does not expect to be called is nil in
// the embedded interface, and panics. It stands in for a server, which this
// package must not import.
type fake struct {
	app.API
	err        error // of every call, when set
	projects   []*work.Project
	tasks      []*app.TaskView
	tree       *app.TreeNode
	executions []*work.Execution
	merges     []*work.Merge
	roles      []work.RoleConfig
	items      []work.Item
	agents     []app.AgentInfo
	patch      string
	log        func() (string, error)
	stream     []step
	accept     func(app.AcceptInput) *app.TaskView
	refuse     func(app.TaskRequest) error
	before     func() // every look at a task
	answered   func()
	cancelled  func()
	stories    []*app.StoryView
	epics      []work.EpicProgress
	files      []app.Template
	events     []work.Event // of every task; nil: two of a task that was queued
	planned    func(app.ApproveInput) error

	project  app.ProjectInput
	requests []app.TaskRequest
	change   app.TaskPatch
	goal     app.ElaborateInput
	plan     app.ApproveInput
	edit     app.StoryPatch
	asked    []string // actions, in order
	after    []int64  // of every stream
	looks    int      // how often a task or merge was read
}

// step is what a stream does next: change the world, then send or fail.
type step struct {
	do    func()
	event work.Event
	err   error
}

func (f *fake) view(ref string) (*app.TaskView, error) {
	for _, v := range f.tasks {
		if f.err == nil && (string(v.ID) == ref || v.Name == ref) {
			copied := *v
			copied.Rests = v.Rests || resting(&v.Task)
			return &copied, nil
		}
	}
	return nil, cmpErr(f.err, work.Errorf(work.NotFound, "there is no task %q", ref))
}

// resting is what a server says of a task that has nothing around it.
func resting(t *work.Task) bool {
	alone := &work.Task{ID: t.ID, State: t.State, BlockedOn: t.BlockedOn}
	rests, _ := work.NewTree(t.TreeID, []*work.Task{alone}, nil, nil).Rests(alone)
	return rests
}

func cmpErr(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

func (f *fake) act(what, ref string) (*app.TaskView, error) {
	f.asked = append(f.asked, what)
	return f.view(ref)
}

func (f *fake) AddProject(_ context.Context, in app.ProjectInput) (*work.Project, error) {
	f.project = in
	return f.projects[0], f.err
}

func (f *fake) SetProject(_ context.Context, _ string, in app.ProjectInput) (*work.Project, error) {
	f.project = in
	return f.projects[0], f.err
}

func (f *fake) Projects(context.Context) ([]*work.Project, error) { return f.projects, f.err }

func (f *fake) Project(_ context.Context, ref string) (*work.Project, error) {
	for _, p := range f.projects {
		if p.Name == ref || string(p.ID) == ref {
			return p, f.err
		}
	}
	return nil, work.Errorf(work.NotFound, "there is no project %q", ref)
}

func (f *fake) RemoveProject(_ context.Context, ref string) error {
	f.asked = append(f.asked, "remove project "+ref)
	return f.err
}

func (f *fake) CreateTask(_ context.Context, in app.TaskRequest) (*app.TaskView, error) {
	if f.refuse != nil {
		if err := f.refuse(in); err != nil {
			return nil, err
		}
	}
	f.requests = append(f.requests, in)
	v := &app.TaskView{Task: work.Task{ID: work.TaskID(fmt.Sprintf("made%d", len(f.requests))), Name: in.Name, ProjectID: work.ProjectID(in.Project), State: work.Pending}}
	return v, f.err
}

func (f *fake) Tasks(_ context.Context, q app.TaskQuery) (app.Page[*work.Task], error) {
	from := 0
	if q.After != "" {
		from = slices.IndexFunc(f.tasks, func(v *app.TaskView) bool { return string(v.ID) == q.After })
	}
	to := min(from+q.Limit, len(f.tasks))
	page := app.Page[*work.Task]{Items: []*work.Task{}}
	for _, v := range f.tasks[from:to] {
		page.Items = append(page.Items, &v.Task)
	}
	if to < len(f.tasks) {
		page.Next = string(f.tasks[to].ID)
	}
	return page, f.err
}

func (f *fake) Task(_ context.Context, ref string) (*app.TaskView, error) {
	f.looks++
	if f.before != nil {
		f.before()
	}
	return f.view(ref)
}

func (f *fake) PatchTask(_ context.Context, ref string, in app.TaskPatch) (*app.TaskView, error) {
	f.change = in
	return f.view(ref)
}

func (f *fake) StartTask(_ context.Context, ref string) (*app.TaskView, error) {
	return f.act("start", ref)
}

func (f *fake) AcceptTask(_ context.Context, ref string, in app.AcceptInput) (*app.TaskView, error) {
	if f.accept != nil {
		return f.accept(in), f.err
	}
	return f.act("accept", ref)
}

func (f *fake) RejectTask(_ context.Context, ref string, in app.RejectInput) (*app.TaskView, error) {
	return f.act(fmt.Sprintf("reject %q %v extra %d", in.Comment, in.Findings, in.Extra), ref)
}

func (f *fake) AnswerTask(_ context.Context, ref, text string) (*app.TaskView, error) {
	if f.answered != nil {
		f.answered()
	}
	return f.act(fmt.Sprintf("answer %q", text), ref)
}

func (f *fake) CancelTask(_ context.Context, ref string) (*app.TaskView, error) {
	f.cancelled()
	return f.act("cancel", ref)
}

func (f *fake) MessageTask(_ context.Context, ref, text string) (*app.TaskView, error) {
	return f.act(fmt.Sprintf("message %q", text), ref)
}

func (f *fake) RetryTask(_ context.Context, ref string, fresh bool) (*app.TaskView, error) {
	return f.act(fmt.Sprintf("retry %v", fresh), ref)
}

func (f *fake) RemoveTask(_ context.Context, ref string) error {
	f.asked = append(f.asked, "remove "+ref)
	return f.err
}

func (f *fake) TaskTree(context.Context, string) (*app.TreeNode, error) { return f.tree, f.err }

func (f *fake) TaskDiff(_ context.Context, _ string, w io.Writer) error {
	for part := range strings.SplitAfterSeq(f.patch, "e") { // pieces end anywhere
		if _, err := io.WriteString(w, part); err != nil {
			return err
		}
	}
	return f.err
}

func (f *fake) TaskEvents(context.Context, string) ([]work.Event, error) {
	if f.events != nil {
		return f.events, f.err
	}
	return []work.Event{{Seq: 3, Kind: "task.created"}, {Seq: 7, Kind: "task.queued"}}, f.err
}

func (f *fake) Executions(context.Context, string) ([]*work.Execution, error) {
	return f.executions, f.err
}

func (f *fake) Execution(_ context.Context, ref string) (*work.Execution, error) {
	i := slices.IndexFunc(f.executions, func(x *work.Execution) bool { return string(x.ID) == ref })
	copied := *f.executions[i]
	return &copied, f.err
}

func (f *fake) Transcript(_ context.Context, _ string, offset int64) (io.ReadCloser, error) {
	text, err := f.log()
	if err != nil {
		return nil, err
	}
	return io.NopCloser(strings.NewReader(text[offset:])), nil
}

func (f *fake) StartMerge(_ context.Context, ref, into string) (*work.Merge, error) {
	f.asked = append(f.asked, "merge "+ref+" into "+into)
	copied := *f.merges[0]
	return &copied, f.err
}

func (f *fake) Merges(_ context.Context, task string) ([]*work.Merge, error) {
	if _, err := f.view(task); task != "" && err != nil {
		return nil, err
	}
	return f.merges, f.err
}

func (f *fake) Merge(_ context.Context, ref string) (*work.Merge, error) {
	f.looks++
	for _, m := range f.merges {
		if string(m.ID) == ref {
			copied := *m
			return &copied, f.err
		}
	}
	return nil, work.Errorf(work.NotFound, "there is no merge %q", ref)
}

func (f *fake) Roles(context.Context) ([]work.RoleConfig, error) { return f.roles, f.err }

func (f *fake) Role(context.Context, string) ([]work.RoleConfig, error) { return f.roles, f.err }

func (f *fake) SetRole(_ context.Context, name string, in app.RoleInput) (*work.RoleConfig, error) {
	r := work.RoleConfig{Name: work.Role(name), Version: 2, Active: true, Agent: "command"}
	if in.Command != nil {
		r.Command = *in.Command
	}
	return &r, f.err
}

func (f *fake) CreateToken(_ context.Context, name string, scope app.Scope) (*app.NewToken, error) {
	return &app.NewToken{Token: app.Token{ID: "t1", Name: name, Scope: scope}, Secret: "s3cret"}, f.err
}

func (f *fake) Agents(context.Context) ([]app.AgentInfo, error) { return f.agents, f.err }

func (f *fake) Attention(context.Context) ([]work.Item, error) { return f.items, f.err }

// Events plays the steps that are left, and then waits for the end of ctx.
func (f *fake) Events(ctx context.Context, after int64) iter.Seq2[work.Event, error] {
	return func(yield func(work.Event, error) bool) {
		f.after = append(f.after, after)
		for len(f.stream) > 0 {
			next := f.stream[0]
			f.stream = f.stream[1:]
			if next.do != nil {
				next.do()
			}
			if !yield(next.event, next.err) || next.err != nil {
				return
			}
		}
		<-ctx.Done()
	}
}

// noon is the time of all tests.
func noon() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

// result is what one command line did.
type result struct {
	out, err string
	code     int
}

// String is the form of the golden files.
func (r result) String() string {
	return fmt.Sprintf("%s-- errors --\n%s-- exit code --\n%d\n", r.out, r.err, r.code)
}

// run runs one command line against a fake.
func run(ctx context.Context, api *fake, change func(*Deps), args ...string) result {
	var out, errs bytes.Buffer
	deps := Deps{
		In: strings.NewReader(""), Out: &out, Err: &errs, Now: noon, Version: "1.2.3",
		Environ: []string{"CLAUDOMATOR_SERVER=http://test", "CLAUDOMATOR_TOKEN=x"},
		Connect: func(context.Context, string, string) (app.API, error) {
			if api == nil {
				return nil, errors.New("this command must not connect")
			}
			return api, nil
		},
	}
	if change != nil {
		change(&deps)
	}
	code := Run(ctx, args, deps)
	return result{out.String(), errs.String(), code}
}

// golden compares text with a file, or writes it with -update.
func golden(t *testing.T, name, text string) {
	t.Helper()
	file := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (go test -update writes it)", err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("%s is not as the golden file (-want +got); go test -update writes it:\n%s", name, diff)
	}
}

package script_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/client"
	"github.com/claudomator/claudomator/internal/work"
)

// check is what holds after every script, whatever it did:
//
//   - the server answers (one that the script has ended is started again)
//   - events are counted without a gap
//   - every task is in a state that a person can leave, but for those of a
//     cancelled story, and every open tree has automatic work under way or an item
//     in the inbox
//   - no process of an execution that is over is left
//   - no workspace is left but those of tasks and of landings that are paused
//   - git fsck finds nothing, in vaults and in the user's repositories
//   - the user's checkouts are on their branch and clean, and hold no reference
//     of ours, unless the script says otherwise
func (w *world) check() (found []string) {
	report := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	if w.server == nil {
		if err := w.start(w.env(), w.flags); err != nil {
			return []string{err.Error()}
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*limit) // some scripts leave a thousand tasks
	defer cancel()
	api := client.New(w.url, w.token(), http.DefaultClient)
	if err := w.checkEvents(ctx); err != nil {
		report("%v", err)
	}
	tasks, wrong := w.settledTasks(ctx, api)
	found = append(found, wrong...)
	w.checkWorkspaces(ctx, api, tasks, report)
	vaults, _ := filepath.Glob(w.path("data/vaults/*.git"))
	for _, vault := range vaults {
		w.fsck(vault, report)
	}
	for dir, want := range w.checkouts {
		w.checkCheckout(dir, want, report)
	}
	return found
}

// readEvents gives the numbers of an event stream, as long as more are wanted.
func (w *world) readEvents(ctx context.Context, query string, each func(id int64) (more bool)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url+"/api/events"+query, http.NoBody)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+w.token())
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("the server does not answer: %w", err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		text, ok := strings.CutPrefix(lines.Text(), "id: ")
		if id, err := strconv.ParseInt(text, 10, 64); ok && err == nil && !each(id) {
			return nil
		}
	}
	return fmt.Errorf("the event stream has ended: %w", lines.Err())
}

// lastEvent is the number of the event that came last.
func (w *world) lastEvent(ctx context.Context) (last int64, err error) {
	err = w.readEvents(ctx, "", func(id int64) bool { last = id; return false })
	return last, err
}

// checkEvents reads the event stream from its beginning to its end.
func (w *world) checkEvents(ctx context.Context) error {
	last, err := w.lastEvent(ctx)
	if err != nil {
		return err
	}
	var gap error
	before := int64(0)
	err = w.readEvents(ctx, "?after=0", func(id int64) bool {
		if id != before && id != before+1 { // a beat repeats the last one
			gap = fmt.Errorf("after event %d comes %d", before, id)
		}
		before = id
		return gap == nil && id < last
	})
	if gap != nil {
		return gap
	}
	return err
}

// settledTasks checks the tasks, and again while something has happened meanwhile: a
// script may leave tasks at work, and what was read before and after an event does not
// belong together.
func (w *world) settledTasks(ctx context.Context, api app.API) (known map[string]bool, found []string) {
	for {
		found = nil
		report := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
		before, err := w.lastEvent(ctx)
		if err == nil {
			known, err = w.checkTasks(ctx, api, report)
		}
		if err != nil {
			report("%v", err)
		}
		if len(found) == 0 || ctx.Err() != nil {
			return known, found
		}
		if after, err := w.lastEvent(ctx); err != nil || after == before {
			return known, found
		}
	}
}

// checkTasks holds every task to what a person may expect of it.
func (w *world) checkTasks(ctx context.Context, api app.API, report func(string, ...any)) (map[string]bool, error) {
	known := map[string]bool{}
	items, err := api.Attention(ctx)
	if err != nil {
		return nil, err
	}
	asked := map[work.TaskID]bool{}
	for _, item := range items {
		asked[item.TaskID] = true
		if len(item.Actions)+len(item.Acts) == 0 && item.Kind != work.ItemConflict {
			report("task %s waits for a person who can do nothing", item.TaskID)
		}
	}
	open, moving, waiting := map[work.TreeID]bool{}, map[work.TreeID]bool{}, map[work.TreeID]bool{}
	for query := (app.TaskQuery{All: true, Limit: 500}); ; {
		page, err := api.Tasks(ctx, query)
		if err != nil {
			return nil, err
		}
		for _, t := range page.Items {
			known[string(t.ID)] = true
			if t.SupersededBy != "" {
				continue
			}
			open[t.TreeID] = open[t.TreeID] || !t.State.Ended() && t.State != work.Pending
			moving[t.TreeID] = moving[t.TreeID] || moves(t)
			waiting[t.TreeID] = waiting[t.TreeID] || asked[t.ID]
			if err := checkTask(ctx, api, t); err != nil {
				report("%v", err)
			}
		}
		if query.After = page.Next; page.Next == "" {
			break
		}
	}
	for tree := range open {
		if open[tree] && !moving[tree] && !waiting[tree] {
			report("tree %s waits for nobody", tree)
		}
	}
	for _, p := range w.leftovers() {
		if x, err := api.Execution(ctx, p.execution); err == nil && x.Live() {
			continue
		}
		if slices.Contains(w.leftovers(), p) { // else it has ended with its execution, just now
			report("left of an execution that is over: %s", p)
		}
	}
	return known, nil
}

// moves is true for what goes on without a person.
func moves(t *work.Task) bool {
	switch t.State {
	case work.Queued, work.Running:
		return true
	case work.Ready:
		return t.BlockedOn != work.OnPerson
	case work.Pending, work.Blocked, work.Completed, work.Failed, work.TimedOut, work.BudgetExceeded, work.Cancelled:
	}
	return false
}

// checkTask: a person can always do something but for what is done or dropped;
// executions do not overlap, and none is alive where the task is over.
func checkTask(ctx context.Context, api app.API, t *work.Task) error {
	view, err := api.Task(ctx, string(t.ID))
	if err != nil {
		return err
	}
	if len(view.Actions) == 0 && t.State != work.Completed && !t.Dropped && t.Judges == nil && !calledOff(ctx, api, t) {
		return fmt.Errorf("task %s is %s and offers nothing to do", t.ID, t.State)
	}
	if t.State.EndedBadly() && t.Reason == "" {
		return fmt.Errorf("task %s is %s without a reason", t.ID, t.State)
	}
	runs, err := api.Executions(ctx, string(t.ID))
	if err != nil {
		return err
	}
	var busy time.Time
	for _, x := range runs {
		if x.Live() && t.State.Ended() {
			return fmt.Errorf("task %s is %s and execution %s is %s", t.ID, t.State, x.ID, x.State)
		}
		if !x.StartedAt.IsZero() && x.StartedAt.Before(busy) {
			return fmt.Errorf("execution %s of task %s began before another had ended", x.ID, t.ID)
		}
		if x.EndedAt.After(busy) {
			busy = x.EndedAt
		}
	}
	return nil
}

// calledOff is true for what belongs to a cancelled story: nothing of it runs again.
func calledOff(ctx context.Context, api app.API, t *work.Task) bool {
	if t.StoryID == "" {
		return false
	}
	story, err := api.Story(ctx, string(t.StoryID))
	return err == nil && story.Status == work.StoryCancelled
}

// reclaimLimit is how long what a removed task has left may still be there: it
// goes after the answer.
const reclaimLimit = limit / 2

// checkWorkspaces: what is there belongs to a task or to a paused landing.
func (w *world) checkWorkspaces(ctx context.Context, api app.API, tasks map[string]bool, report func(string, ...any)) {
	var stray []string
	for end := time.Now().Add(reclaimLimit); ; time.Sleep(50 * time.Millisecond) {
		entries, err := os.ReadDir(w.path("data/workspaces"))
		if err != nil {
			report("%v", err)
		}
		stray = nil
		for _, e := range entries {
			if !tasks[e.Name()] && !inUse(ctx, api, e.Name()) {
				stray = append(stray, e.Name())
			}
		}
		if len(stray) == 0 || time.Now().After(end) {
			break
		}
	}
	for _, name := range stray {
		report("workspace %s belongs to nothing", name)
	}
}

// inUse is true for the workspace of a paused landing, and of a judge or gate
// that runs.
func inUse(ctx context.Context, api app.API, name string) bool {
	if id, ok := strings.CutPrefix(name, "m-"); ok {
		m, err := api.Merge(ctx, id)
		return err == nil && m.Status == work.MergeConflicted
	}
	if id, ok := strings.CutPrefix(name, "x-"); ok {
		x, err := api.Execution(ctx, id)
		return err == nil && x.Live()
	}
	return false
}

func (w *world) git(dir string, args ...string) (string, error) {
	c := exec.Command("git", append([]string{"-C", dir}, args...)...)
	c.Env = append(w.env(), "GIT_OPTIONAL_LOCKS=0")
	out, err := c.CombinedOutput()
	return strings.TrimRight(string(out), "\n"), err
}

func (w *world) fsck(dir string, report func(string, ...any)) {
	if out, err := w.git(dir, "fsck", "--full", "--strict", "--no-dangling", "--no-progress"); err != nil || strings.Contains(out, "error") {
		report("git fsck of %s: %v\n%s", filepath.Base(dir), err, out)
	}
}

func (w *world) checkCheckout(dir string, want checkout, report func(string, ...any)) {
	w.fsck(dir, report)
	if branch, err := w.git(dir, "branch", "--show-current"); err != nil || branch != want.branch {
		report("%s is on branch %q, not %q", filepath.Base(dir), branch, want.branch)
	}
	status, err := w.git(dir, "status", "--porcelain")
	if lines := strings.FieldsFunc(status, func(r rune) bool { return r == '\n' }); err != nil || !slices.Equal(lines, want.status) {
		report("git status of %s says %q, not %q", filepath.Base(dir), lines, want.status)
	}
	refs, err := w.git(dir, "for-each-ref", "--format=%(refname)", "refs/heads/claudomator", "refs/claudomator")
	if err != nil || refs != "" {
		report("%s holds references of ours: %s", filepath.Base(dir), refs)
	}
	trees, err := w.git(dir, "worktree", "list", "--porcelain")
	if err != nil || strings.Contains(trees, w.path("data")) {
		report("%s has our work trees: %s", filepath.Base(dir), trees)
	}
	for _, lock := range []string{"index.lock", "HEAD.lock", "packed-refs.lock", "MERGE_HEAD"} {
		if _, err := os.Lstat(filepath.Join(dir, ".git", lock)); err == nil {
			report("%s holds .git/%s", filepath.Base(dir), lock)
		}
	}
}

// process is one that an execution has left.
type process struct {
	pid       int
	execution string
	command   string
}

func (p process) String() string {
	return fmt.Sprintf("process %d (%s) of execution %q", p.pid, p.command, p.execution)
}

// leftovers finds processes that carry the mark of an execution of this
// script's server, are held in its cgroup, or work in its data folder.
func (w *world) leftovers() []process {
	var list []process
	var ours = map[string]bool{}
	transcripts, _ := filepath.Glob(w.path("data/transcripts/*.jsonl"))
	for _, t := range transcripts {
		ours[strings.TrimSuffix(filepath.Base(t), ".jsonl")] = true
	}
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		p := process{}
		p.pid, _ = strconv.Atoi(filepath.Base(dir))
		environ, _ := os.ReadFile(dir + "/environ")
		for entry := range strings.SplitSeq(string(environ), "\x00") {
			if id, ok := strings.CutPrefix(entry, "CLAUDOMATOR_EXECUTION_ID="); ok && ours[id] {
				p.execution = id
			}
		}
		group, _ := os.ReadFile(dir + "/cgroup")
		for id := range ours {
			if strings.Contains(string(group), "/claudomator-"+id) {
				p.execution = id
			}
		}
		cwd, _ := os.Readlink(dir + "/cwd")
		stray := strings.HasPrefix(cwd, w.path("data/workspaces")+"/") && !w.works(dir)
		if p.execution == "" && !stray {
			continue
		}
		command, _ := os.ReadFile(dir + "/cmdline")
		p.command = strings.ReplaceAll(strings.TrimRight(string(command), "\x00"), "\x00", " ")
		if p.command != "" { // else it is dead, and only not yet waited for
			list = append(list, p)
		}
	}
	return list
}

// works is true for a process of the server that runs, such as the git command that
// prepares a workspace just now.
func (w *world) works(proc string) bool {
	if w.server == nil {
		return false
	}
	status, _ := os.ReadFile(proc + "/status")
	return strings.Contains(string(status), fmt.Sprintf("\nPPid:\t%d\n", w.server.PID()))
}

package chaos_test

import (
	"context"
	"crypto/sha1" //nolint:gosec // git's own
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/client"
	"github.com/claudomator/claudomator/internal/work"
)

// audit holds what is left after the storm to what must hold.
type audit struct {
	w      *world
	ctx    context.Context //nolint:containedctx // of the one test
	api    *client.Client
	vault  string
	tasks  map[work.TaskID]*work.Task
	runs   map[work.ExecutionID]*work.Execution
	merges []*work.Merge
	ledger []string

	stories map[work.StoryID]*app.StoryView
	log     []work.Event         // all that has happened
	again   map[work.TaskID]bool // attempts of stories that a person had reviewed once more

	commits, files, deploys int
}

func (w *world) audit(ctx context.Context) *audit {
	w.Helper()
	api, err := w.api()
	if err != nil {
		w.Fatal(err)
	}
	a := &audit{w: w, ctx: ctx, api: api, tasks: map[work.TaskID]*work.Task{}, runs: map[work.ExecutionID]*work.Execution{}}
	vaults, _ := filepath.Glob(w.path("data/vaults/*.git"))
	if len(vaults) != 1 {
		w.Fatalf("%d vaults, not one", len(vaults))
	}
	a.vault = vaults[0]
	tasks, err := allTasks(ctx, api)
	if err != nil {
		w.Fatal(err)
	}
	for _, t := range tasks {
		a.tasks[t.ID] = t
		runs, err := api.Executions(ctx, string(t.ID))
		if err != nil {
			w.Fatal(err)
		}
		for _, x := range runs {
			a.runs[x.ID] = x
		}
		if isRoot(t) {
			merges, err := api.Merges(ctx, string(t.ID))
			if err != nil {
				w.Fatal(err)
			}
			a.merges = append(a.merges, merges...)
		}
	}
	a.loadStories()
	text, err := os.ReadFile(w.path("ledger"))
	if err != nil {
		w.Fatal(err)
	}
	a.ledger = strings.Split(strings.TrimSpace(string(text)), "\n")
	return a
}

func (a *audit) figures() string {
	lost := 0
	for _, x := range a.runs {
		if x.State == work.ExecutionLost {
			lost++
		}
	}
	trees := 0
	for _, t := range a.tasks {
		if isRoot(t) && t.AttemptOf == "" {
			trees++
		}
	}
	return fmt.Sprintf("trees %d; tasks %d; executions %d, %d of them lost; landings %d, deployments %d; commits %d and files %d noted, none lost;",
		trees, len(a.tasks), len(a.runs), lost, len(a.merges), a.deploys, a.commits, a.files)
}

// all is everything but what only shows when all trees are removed.
func (a *audit) all() {
	a.events()
	for _, t := range a.tasks {
		a.task(t)
	}
	a.reviews()
	a.ships()
	a.landings()
	a.processes()
	a.records()
	a.work(false)
	a.fsck()
}

// remains is what must hold when every tree and workspace is gone: the work is
// still in the vault.
func (a *audit) remains() {
	a.work(true)
	a.processes()
	a.litter()
	a.fsck()
}

// events are counted without a gap, and none is told twice.
func (a *audit) events() {
	ctx, cancel := context.WithTimeout(a.ctx, limit)
	defer cancel()
	marker := "t-last" // an event that is surely the last one
	last, err := a.api.CreateTask(ctx, app.TaskRequest{Project: "r", Name: marker})
	if err != nil {
		a.w.Errorf("make a last event: %v", err)
		return
	}
	before, told := int64(0), map[string]int64{}
	for e, err := range a.api.Events(ctx, 0) {
		if err != nil {
			a.w.Errorf("read the events after %d: %v", before, err)
			return
		}
		if e.Seq != before+1 {
			a.w.Errorf("after event %d comes %d", before, e.Seq)
		}
		before = e.Seq
		a.log = append(a.log, e)
		if once := onlyOnce(e); once != "" {
			if told[once] != 0 {
				a.w.Errorf("events %d and %d tell the same: %s", told[once], e.Seq, once)
			}
			told[once] = e.Seq
		}
		if e.Task == last.ID {
			break
		}
	}
	if err := a.api.RemoveTask(ctx, string(last.ID)); err != nil {
		a.w.Errorf("remove the last task: %v", err)
	}
}

// onlyOnce names an event that can happen only once; empty for the others.
func onlyOnce(e work.Event) string {
	switch e.Kind {
	case "task.created", "judge.spawned", "fix.spawned", "verdict.reported", "task.removed":
		return e.Kind + " " + string(e.Task)
	case "execution.ended", "execution.lost": // one of them
		return fmt.Sprint("end of ", e.Body["execution"])
	case "execution.started":
		return fmt.Sprint(e.Kind, " ", e.Body["execution"])
	case "task.landed":
		body, _ := json.Marshal(e.Body)
		return e.Kind + " " + string(e.Task) + string(body)
	case "merge.started", "merge.landed", "merge.nothing_to_land":
		return fmt.Sprint(e.Kind, " ", e.Body["merge"])
	}
	return ""
}

// task: it is over, its runs did not overlap, and nobody's work was accepted or
// integrated but as the rules say.
func (a *audit) task(t *work.Task) {
	parent := a.tasks[t.ParentTaskID]
	live := t.SupersededBy == "" && !t.State.Ended() && (t.State != work.Pending || parent != nil)
	if live && !(t.State == work.Pending && parent != nil && parent.State.Ended()) {
		a.w.Errorf("not over: %s", describe(t))
	}
	if t.State.EndedBadly() && t.Reason == "" {
		a.w.Errorf("%s without a reason: %s", t.State, t.ID)
	}
	a.overlaps(t)
	if t.State != work.Completed || t.Judges != nil {
		return
	}
	if t.Accepted == nil {
		a.w.Errorf("COMPLETED and not accepted: %s", describe(t))
		return
	}
	if !a.judged(t) {
		a.w.Errorf("accepted by %s without a verdict or a person: %s", t.Accepted.By.Kind, describe(t))
	}
	if parent != nil && t.Accepted.Commit != "" {
		branch := "refs/heads/claudomator/" + string(parent.ID)
		if _, err := a.w.tryGit(a.vault, "merge-base", "--is-ancestor", t.Accepted.Commit, branch); err != nil {
			a.w.Errorf("accepted and COMPLETED, but %s is not in its parent's branch: %s", t.Accepted.Commit, describe(t))
		}
	}
}

func (a *audit) overlaps(t *work.Task) {
	var busy time.Time
	var runs []*work.Execution
	for _, x := range a.runs {
		if x.TaskID == t.ID && x.Kind.Own() {
			runs = append(runs, x)
		}
		if x.TaskID == t.ID && x.Live() {
			a.w.Errorf("execution %s is %s: %s", x.ID, x.State, describe(t))
		}
	}
	slices.SortFunc(runs, func(x, y *work.Execution) int { return x.Number - y.Number })
	for _, x := range runs {
		if !x.StartedAt.IsZero() && x.StartedAt.Before(busy) {
			a.w.Errorf("execution %s began before the one before it had ended: %s", x.ID, describe(t))
		}
		if x.EndedAt.After(busy) {
			busy = x.EndedAt
		}
	}
}

// judged: by a person, by an approving judge of exactly this commit, or by
// nobody where nobody need.
func (a *audit) judged(t *work.Task) bool {
	if t.Accepted.By.Kind == work.PersonActor || t.Review == "none" || t.Review == "" && t.ParentTaskID != "" && t.Role() == work.NoRole {
		return true
	}
	for _, j := range a.tasks {
		if j.Judges != nil && j.Judges.TaskID == t.ID && j.Judges.Commit == t.Accepted.Commit && j.Verdict != nil && j.Verdict.Approved {
			return true
		}
	}
	return false
}

// landings: the user's branch holds exactly what was landed, each landing once,
// and nobody's checkout is touched otherwise.
func (a *audit) landings() {
	repo := a.w.path("R")
	var on []string // what the branch holds
	for line := range strings.Lines(a.w.git(repo, "log", "--first-parent", "--format=%H", "main")) {
		on = append(on, strings.TrimSpace(line))
	}
	slices.Reverse(on)
	var landed []string
	for _, m := range a.merges {
		switch {
		case m.Status == work.MergeRunning || m.Status == work.MergeConflicted:
			a.w.Errorf("landing %s of %s is still %s", m.ID, m.TaskID, m.Status)
		case m.Status == work.MergeLanded:
			landed = append(landed, m.Commit)
			a.part(m)
		}
	}
	want := slices.Clone(on[1:])
	slices.Sort(want)
	slices.Sort(landed)
	if !slices.Equal(want, landed) {
		a.w.Errorf("main holds %q beyond its beginning, landed was %q", want, landed)
	}
	if status := a.w.git(repo, "status", "--porcelain", "--branch"); status != "## main" {
		a.w.Errorf("the user's checkout is not as it was: %s", status)
	}
	if refs := a.w.git(repo, "for-each-ref", "--format=%(refname)"); refs != "refs/heads/main" {
		a.w.Errorf("the user's repository holds other references: %s", refs)
	}
}

// part: what was landed is what was accepted.
func (a *audit) part(m *work.Merge) {
	for _, part := range m.Queue {
		t := a.tasks[part.TaskID]
		if t == nil || t.Accepted == nil || t.Accepted.Commit != part.Commit {
			a.w.Errorf("landing %s took %s of task %s, which was not accepted", m.ID, part.Commit, part.TaskID)
		}
		if parents := strings.Fields(a.w.git(a.w.path("R"), "rev-list", "--parents", "-n1", m.Commit)); !slices.Contains(parents[1:], part.Commit) {
			a.w.Errorf("landing %s is %q, which does not merge %s", m.ID, parents, part.Commit)
		}
	}
}

// processes: nothing of a run is left, neither alive nor as a cgroup.
func (a *audit) processes() {
	for _, p := range a.w.processes() {
		a.w.Errorf("left: %s", p)
	}
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return nil //nolint:nilerr // others' come and go
		}
		id, ours := strings.CutPrefix(d.Name(), "claudomator-")
		id, _, _ = strings.Cut(id, ".")
		if ours && a.runs[work.ExecutionID(id)] != nil {
			a.w.Errorf("left: cgroup %s", path)
		}
		return nil
	})
}

// records: no run record is left, and no workspace that belongs to no task. The
// janitor, which looks a minute after the start, may have to remove some.
func (a *audit) records() {
	runs, _ := os.ReadDir(a.w.path("data/runs"))
	for _, r := range runs {
		a.w.Errorf("left: run record %s", r.Name())
	}
	var left []string
	for end := time.Now().Add(3 * limit); ; time.Sleep(glance) {
		left = nil
		workspaces, _ := os.ReadDir(a.w.path("data/workspaces"))
		for _, d := range workspaces {
			// A task's former .git goes with its next run, or with the task.
			name := strings.TrimSuffix(strings.TrimPrefix(d.Name(), "."), ".old-git")
			if a.tasks[work.TaskID(name)] == nil {
				left = append(left, d.Name())
			}
		}
		if len(left) == 0 || time.Now().After(end) {
			break
		}
	}
	if len(left) > 0 {
		a.w.Errorf("left: workspaces %q, which belong to no task", left)
	}
}

// litter: no lock and no half-written file is left.
func (a *audit) litter() {
	for _, dir := range []string{a.w.path("data"), a.w.path("R")} {
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
			case d.IsDir() && path == a.w.path("data/bin"):
				return filepath.SkipDir
			case !d.IsDir() && (strings.HasSuffix(path, ".lock") || strings.HasSuffix(path, ".new")):
				a.w.Errorf("left: %s", path)
			}
			return nil //nolint:nilerr // gone meanwhile
		})
	}
}

// work: every commit and file of the ledger is reachable in the vault. Before
// the workspaces are gone, what a run that never reported left in them counts.
func (a *audit) work(gone bool) {
	reachable := map[string]bool{}
	for line := range strings.Lines(a.w.git(a.vault, "rev-list", "--objects", "--all")) {
		hash, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		reachable[hash] = true
	}
	a.commits, a.files = 0, 0
	for _, line := range a.ledger {
		f := strings.Fields(line)
		if len(f) != 4 {
			a.w.Errorf("the ledger says %q, which is no line of it", line)
			continue
		}
		switch f[0] {
		case "commit":
			a.commits++
			if !reachable[f[3]] && (gone || !a.lies(f[1], filepath.Join(".git/objects", f[3][:2], f[3][2:]))) {
				a.w.Errorf("lost commit %s of run %s of task %s", f[3], f[2], f[1])
			}
		case "file":
			a.files++
			text := fmt.Sprintf("%s %s %s\n", f[3], f[1], f[2])
			if !reachable[blob(text)] && (gone || !a.lies(f[1], "work/"+f[3]+"-"+f[2])) {
				a.w.Errorf("lost file %s of run %s of task %s", f[3], f[2], f[1])
			}
		default:
			a.w.Errorf("the ledger says %q: a run that was not alone, or did not see what it builds on", line)
		}
	}
}

// lies tells whether a file is in a task's workspace.
func (a *audit) lies(task, name string) bool {
	_, err := os.Lstat(filepath.Join(a.w.path("data/workspaces"), task, name))
	return err == nil
}

func blob(text string) string {
	sum := sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(text), text)) //nolint:gosec // git's own
	return hex.EncodeToString(sum[:])
}

func (a *audit) fsck() {
	for _, dir := range []string{a.vault, a.w.path("R")} {
		if out, err := a.w.tryGit(dir, "fsck", "--full", "--strict", "--no-dangling", "--no-progress"); err != nil || strings.Contains(out, "error") {
			a.w.Errorf("git fsck of %s: %v\n%s", filepath.Base(dir), err, out)
		}
	}
}

package cli

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

// storyAt makes a server with one story, whose status hangs on a task.
func storyAt(status work.StoryStatus, about *app.TaskView, change ...func(*app.StoryView)) *fake {
	v := &app.StoryView{Story: work.Story{ID: "s1", Name: "Cards", Status: status, RootTaskID: "tree"}, RootID: "a", Planner: "planner"}
	for _, c := range change {
		c(v)
	}
	api := &fake{stories: []*app.StoryView{v}, merges: []*work.Merge{{ID: "m", Target: "main", Status: work.MergeConflicted, Conflicts: []string{"a.go"}}}}
	if about != nil {
		about.Name = string(about.ID)
		api.tasks = append(api.tasks, about)
		api.tree = &app.TreeNode{Task: &about.Task}
	}
	return api
}

func withPlan(v *app.StoryView) { v.Plan = &work.Plan{} }

func withShip(step work.ShipStep, merge work.MergeID, why string) func(*app.StoryView) {
	return func(v *app.StoryView) { v.Ship = &work.Ship{Step: step, MergeID: merge, Error: why} }
}

// TestStoryRests: what is waited for, by status and by the task it hangs on.
func TestStoryRests(t *testing.T) {
	t.Parallel()
	failed := func(v *app.TaskView) { v.Reason = "no luck" }
	tests := []struct {
		name string
		api  *fake
		code int
		want string // of the errors
	}{
		{"planner at work", storyAt(work.Draft, task("planner", "RUNNING")), 7, "story s1 is still DRAFT after 1h"},
		{"planner that asks", storyAt(work.Draft, task("planner", "BLOCKED/question")), 0, ""},
		{"planned", storyAt(work.Draft, task("planner", "COMPLETED"), withPlan), 0, ""},
		{"planner that failed", storyAt(work.Draft, task("planner", "FAILED", failed)), 8, "story s1 is DRAFT: its planner (planner) ended FAILED: no luck\nhint: claudomator story show s1"},
		{"planned again in vain", storyAt(work.Draft, task("planner", "FAILED", failed), withPlan), 0, ""},
		{"written by hand", storyAt(work.Draft, nil, withPlan, func(v *app.StoryView) { v.Planner = "" }), 0, ""},
		{"children at work", storyAt(work.InProgress, task("a", "RUNNING")), 7, ""},
		{"root that asks", storyAt(work.InProgress, task("a", "BLOCKED/question")), 0, ""},
		{"root that failed", storyAt(work.InProgress, task("a", "FAILED", failed)), 8, "the task at its root (a) ended FAILED: no luck"},
		{"validation failed at Ship", storyAt(work.InProgress, task("a", "COMPLETED")), 0, ""},
		{"under review", storyAt(work.Validating, task("a", "READY/gates")), 7, ""},
		{"held for a person", storyAt(work.Validating, task("a", "READY/person")), 0, ""},
		{"to be fixed", storyAt(work.NeedsFix, task("a", "QUEUED/slot")), 7, ""},
		{"at the cap", storyAt(work.NeedsFix, task("a", "READY/person")), 0, ""},
		{"review ready", storyAt(work.ReviewReady, task("a", "READY/person")), 0, ""},
		{"shippable", storyAt(work.Shippable, task("a", "COMPLETED")), 0, ""},
		{"shipping", storyAt(work.Shipping, task("a", "COMPLETED"), withShip(work.ShipDeploy, "m", "")), 7, ""},
		{"landing in a conflict", storyAt(work.Shipping, task("a", "COMPLETED"), withShip(work.ShipLand, "m", ""), func(v *app.StoryView) { v.Paused = true }), 0, ""},
		{"deployed", storyAt(work.Deployed, task("a", "COMPLETED")), 0, ""},
		{"deploy failed", storyAt(work.DeployFailed, task("a", "COMPLETED"), withShip(work.ShipDeploy, "m", "exit 1")), 8, "story s1 is DEPLOY_FAILED: exit 1"},
		{"cancelled", storyAt(work.StoryCancelled, task("a", "CANCELLED")), 8, "story s1 is CANCELLED\nhint"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				r := run(t.Context(), tt.api, nil, "story", "wait", "s1", "--timeout", "1h")
				if r.code != tt.code || !strings.Contains(r.err, tt.want) {
					t.Errorf("exit %d, want %d and %q: %s%s", r.code, tt.code, tt.want, r.out, r.err)
				}
				if waited := time.Since(began); waited != 0 && tt.code != 7 || waited != time.Hour && tt.code == 7 {
					t.Errorf("waited %s", waited)
				}
			})
		})
	}
}

// TestStoryWaitFor: with --for a story that rests elsewhere is waited for on, but
// not one that came to an end.
func TestStoryWaitFor(t *testing.T) {
	t.Parallel()
	tests := []struct {
		api      *fake
		statuses string
		code     int
		want     string
	}{
		{storyAt(work.ReviewReady, task("a", "READY/person")), "review_ready,SHIPPABLE", 0, ""},
		{storyAt(work.ReviewReady, task("a", "READY/person")), "DEPLOYED", 7, "still REVIEW_READY"},
		{storyAt(work.InProgress, task("a", "BLOCKED/question")), "REVIEW_READY", 7, "still IN_PROGRESS"},
		{storyAt(work.InProgress, task("a", "FAILED")), "REVIEW_READY", 8, "ended FAILED"},
		{storyAt(work.Deployed, task("a", "COMPLETED")), "REVIEW_READY", 4, "story s1 is DEPLOYED: it will not become REVIEW_READY"},
		{storyAt(work.StoryCancelled, task("a", "CANCELLED")), "DEPLOYED", 8, "is CANCELLED"},
		{storyAt(work.StoryCancelled, task("a", "CANCELLED")), "CANCELLED", 0, ""},
		{storyAt(work.DeployFailed, task("a", "COMPLETED")), "DEPLOY_FAILED", 0, ""},
	}
	for _, tt := range tests {
		t.Run(string(tt.api.stories[0].Status)+" for "+tt.statuses, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := run(t.Context(), tt.api, nil, "story", "wait", "s1", "--for", tt.statuses, "--timeout", "1m")
				if r.code != tt.code || !strings.Contains(r.err, tt.want) {
					t.Errorf("exit %d, want %d and %q: %+v", r.code, tt.code, tt.want, r)
				}
			})
		})
	}
}

// set is a step that gives the story a status, and then sends an event.
func set(api *fake, seq int64, change func(v *app.StoryView)) step {
	return step{do: func() { change(api.stories[0]) }, event: work.Event{Seq: seq, At: noon(), Tree: "tree", Task: "a", Kind: "story.changed"}}
}

func becomes(status work.StoryStatus) func(*app.StoryView) {
	return func(v *app.StoryView) { v.Status = status }
}

// TestStoryPace: a story that much happens to is looked at a few times a second,
// and the last of it is not missed; events of other trees are let pass.
func TestStoryPace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := storyAt(work.InProgress, task("a", "RUNNING"))
		for seq := range int64(1000) {
			next := set(api, 8+seq, func(*app.StoryView) { time.Sleep(time.Millisecond) })
			if seq%2 == 1 {
				next.event.Tree = "other"
			}
			api.stream = append(api.stream, next)
		}
		api.stream = append(api.stream, set(api, 2000, becomes(work.ReviewReady)))
		began := time.Now()
		r := run(t.Context(), api, nil, "story", "wait", "s1")
		if took := time.Since(began); r.code != 0 || !strings.Contains(r.out, "REVIEW_READY") || took < time.Second || took > time.Second+2*lookPace {
			t.Errorf("after %s: %+v", took, r)
		}
		if api.looks > 20 { // two calls a look
			t.Errorf("%d looks at what happened in a second", api.looks)
		}
		if api.after[0] != 7 || len(api.stream) != 0 {
			t.Errorf("streams began after %v, %d steps are left", api.after, len(api.stream))
		}
	})
}

// TestElaborateWait: it returns with the plan, a question, or a failure.
func TestElaborateWait(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		end  func(api *fake)
		code int
		out  string
	}{
		"plan": {func(api *fake) {
			withPlan(api.stories[0])
			api.stories[0].Actions, api.stories[0].Needs = []work.Act{work.ActApprove}, "the story's plan awaits approval"
			api.tasks[0].State = work.Completed
		}, 0, "the story's plan awaits approval\n  possible now: story approve\n"},
		"question": {func(api *fake) {
			*api.tasks[0] = *task("planner", "BLOCKED/question")
			api.items = []work.Item{{Kind: work.ItemQuestion, StoryID: "s1", TaskID: "planner", Name: "Plan: Cards", Text: "Which cards?", Actions: []work.Action{work.DoAnswer}}}
		}, 0, "planner  question  Plan: Cards\n  Which cards?\n  possible: answer\n"},
		"failure": {func(api *fake) { api.tasks[0].State = work.Failed }, 8, "s1  DRAFT"},
		"approved": {func(api *fake) {
			api.stories[0].Status = work.InProgress
			api.tasks = append(api.tasks, task("a", "RUNNING"))
		}, 0, "s1  IN_PROGRESS"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				api := storyAt(work.Draft, task("planner", "RUNNING"))
				api.stream = []step{{do: func() { tt.end(api) }, event: work.Event{Seq: 8, Tree: "tree"}}}
				r := run(t.Context(), api, nil, "story", "elaborate", "--wait", "cards")
				if r.code != tt.code || !strings.Contains(r.out, tt.out) || !strings.HasPrefix(r.out, "story         s1\n") {
					t.Errorf("want exit %d and %q: %+v", tt.code, tt.out, r)
				}
				api = storyAt(work.Draft, task("planner", "RUNNING"))
				api.stream = []step{{do: func() { tt.end(api) }, event: work.Event{Seq: 8, Tree: "tree"}}}
				r = run(t.Context(), api, nil, "story", "elaborate", "--wait", "cards", "-o", "json")
				if r.code != tt.code || r.out != "{\n  \"story_id\": \"s1\",\n  \"task_id\": \"planner\"\n}\n" {
					t.Errorf("json: %+v", r)
				}
			})
		})
	}
}

// TestShipWait: how a ship ended, by the last status.
func TestShipWait(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		end  func(v *app.StoryView)
		code int
		want string
	}{
		"deployed":   {becomes(work.Deployed), 0, ""},
		"refused":    {func(v *app.StoryView) { v.Status = work.Shippable; v.Ship.Error = "main is checked out with changes" }, 8, "the ship of story s1 was stopped, the story is SHIPPABLE: main is checked out with changes\nhint: claudomator story show s1\n"},
		"failed":     {func(v *app.StoryView) { v.Status = work.DeployFailed; v.Ship.Error = "exit 1" }, 8, "the story is DEPLOY_FAILED: exit 1"},
		"broken":     {func(v *app.StoryView) { v.Status = work.NeedsFix; v.Ship.Error = "the page is not there" }, 8, "the story is NEEDS_FIX: the page is not there"},
		"validation": {func(v *app.StoryView) { v.Status = work.InProgress; v.Ship.Error = "go test failed" }, 8, "the story is IN_PROGRESS: go test failed"},
		"cancelled":  {becomes(work.StoryCancelled), 8, "the story is CANCELLED: it was taken back"},
		"conflict": {func(v *app.StoryView) { v.Ship.Step, v.Ship.MergeID, v.Paused = work.ShipLand, "m", true }, 4, "error: story s1 is not shipped yet: its landing (merge m) on main conflicts in a.go\n" +
			"hint: resolve it, then continue; or abort, and nothing has changed: claudomator merge continue m --wait, or claudomator merge abort m\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				api := storyAt(work.Shipping, task("a", "COMPLETED"), withShip(work.ShipAccept, "", ""))
				api.stories[0].Ship.Reports = []string{"Store: no test"}
				api.stream = []step{set(api, 8, tt.end)}
				r := run(t.Context(), api, nil, "story", "ship", "s1", "--wait")
				if r.code != tt.code || !strings.Contains(r.err, tt.want) || !strings.HasPrefix(r.out, "story \"Cards\" is being shipped\n  - open report: Store: no test\ns1  ") {
					t.Errorf("want exit %d and %q: %+v", tt.code, tt.want, r)
				}
			})
		})
	}
}

// TestStoryWatchLines: without a terminal every event of the tree is a line; it
// ends where a person is needed, or past that when nothing moves.
func TestStoryWatchLines(t *testing.T) {
	t.Parallel()
	play := func(api *fake) *fake {
		other := set(api, 9, func(*app.StoryView) {})
		other.event.Tree = "other"
		api.stream = []step{set(api, 8, func(*app.StoryView) { time.Sleep(time.Second) }), other, set(api, 10, func(*app.StoryView) {
			time.Sleep(time.Second)
			api.items = []work.Item{{Kind: work.ItemParked, StoryID: "s1", TaskID: "c", Name: "Store", Text: "limit"}}
		}), set(api, 11, func(*app.StoryView) {
			time.Sleep(time.Second)
			api.items = []work.Item{{Kind: work.ItemQuestion, StoryID: "s1", TaskID: "c", Name: "Store", Text: "Which?"}, {Kind: work.ItemReview, TaskID: "z", Name: "Elsewhere"}}
		}), set(api, 12, func(v *app.StoryView) { time.Sleep(time.Second); v.Status = work.ReviewReady })}
		return api
	}
	seqs := regexp.MustCompile(`(?m)^(?:\{"seq":)?(\d+)[ ,]`)
	for args, want := range map[string]string{"": "[8 10 11]", "--through": "[8 10 11 12]", "--json": "[8 10 11]", "-o json --through": "[8 10 11 12]"} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := run(t.Context(), play(storyAt(work.InProgress, task("a", "RUNNING"))), nil, append([]string{"story", "watch", "s1"}, strings.Fields(args)...)...)
				var got []string
				for _, m := range seqs.FindAllStringSubmatch(r.out, -1) {
					got = append(got, m[1])
				}
				if r.code != 0 || fmt.Sprint(got) != want {
					t.Errorf("events %v, want %v: %+v", got, want, r)
				}
				isJSON := strings.Contains(args, "json")
				if strings.Contains(r.out, "Elsewhere") || isJSON && strings.Count(r.out, "\n") != len(got) || !isJSON && (!strings.HasPrefix(r.out, "s1  IN_PROGRESS") || !strings.Contains(r.out, "c  question  Store\n    Which?\n")) {
					t.Errorf("%s", r.out)
				}
			})
		})
	}
	if r := run(t.Context(), storyAt(work.ReviewReady, task("a", "READY/person")), nil, "story", "watch", "s1"); strings.Count(r.out, "REVIEW_READY") != 1 {
		t.Errorf("told twice: %+v", r)
	}
	failed := storyAt(work.StoryCancelled, task("a", "CANCELLED"))
	if r := run(t.Context(), failed, nil, "story", "watch", "s1"); r.code != 8 {
		t.Errorf("cancelled: %+v", r)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if r := run(ctx, storyAt(work.InProgress, task("a", "RUNNING")), nil, "story", "watch", "s1"); r.code != 130 {
			t.Errorf("Ctrl-C: %+v", r)
		}
	})
}

// terminal is what one shows of what is written to it: enough of one for what
// watch writes.
type terminal struct {
	width, height int
	lines         []string // all that were begun, from the top
	row           int
	writes        int
	touched       int // lines above the screen that were written to
}

func (x *terminal) Write(data []byte) (int, error) {
	x.writes++
	text := string(data)
	for text != "" {
		if m := regexp.MustCompile(`^\x1b\[(\d*)([A-Za-z])`).FindStringSubmatch(text); m != nil {
			switch n := 1; m[2] {
			case "A":
				_, _ = fmt.Sscan(m[1], &n)
				x.row = max(x.row-n, 0)
				if x.row < len(x.lines)-x.height {
					x.touched++
				}
			case "J":
				x.lines = x.lines[:x.row]
			}
			text = text[len(m[0]):]
			continue
		}
		line, rest, found := strings.Cut(text, "\n")
		if at := strings.Index(line, "\x1b"); at > 0 { // what erases the rest of the line
			line, rest, found = line[:at], text[at:], false
		}
		if line = strings.TrimPrefix(line, "\r"); line != "" {
			for len(x.lines) <= x.row {
				x.lines = append(x.lines, "")
			}
			x.lines[x.row] = line
		}
		if found {
			x.row++
		} else if line == "" && strings.HasPrefix(rest, "\n") {
			rest, x.row = rest[1:], x.row+1
		}
		if text = rest; strings.HasPrefix(text, "\x1b[K\n") {
			text, x.row = text[len("\x1b[K\n"):], x.row+1
		}
	}
	return len(data), nil
}

// TestStoryWatchTerminal: the tree stands still and changes in its place, a few
// times a second; what does not fit is folded, and then left out.
func TestStoryWatchTerminal(t *testing.T) {
	t.Parallel()
	for _, height := range []int{40, 12, 6, 0} {
		t.Run(fmt.Sprint(height), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				api := cards()
				v, pay := api.stories[0], api.tree.Children[1].Task
				v.Status, api.items, v.RootTaskID = work.InProgress, nil, "tree"
				api.tasks = append(api.tasks, task(string(v.RootID), "RUNNING"))
				api.tree.Task.State = work.Blocked
				for seq := range int64(100) {
					api.stream = append(api.stream, set(api, 200+seq, func(*app.StoryView) {
						time.Sleep(10 * time.Millisecond)
						pay.Name = fmt.Sprintf("Pay %d", seq)
					}))
				}
				api.stream = append(api.stream, set(api, 900, func(v *app.StoryView) { pay.State, pay.BlockedOn, v.Status = work.Completed, "", work.ReviewReady }))
				screen := &terminal{width: 80, height: 24}
				if height > 0 {
					screen.height = height
				}
				r := run(t.Context(), api, func(d *Deps) {
					d.Out, d.Terminal, d.Environ = screen, true, append(d.Environ, "NO_COLOR=1")
					d.Width = func() int { return screen.width }
					d.Height = func() int { return height }
				}, "story", "watch", "Gift cards")
				text := strings.Join(screen.lines, "\n")
				if r.code != 0 || strings.Count(text, "root2345  ") != 1 || strings.Count(text, "REVIEW_READY · 1 of 5 tasks completed") != 1 || !strings.HasSuffix(text, "possible now: story reject, story ship") {
					t.Errorf("%+v\n%s", r, text)
				}
				if shown := strings.Contains(text, "pay23456  COMPLETED  Pay 99"); shown != (height != 12 && height != 6) {
					t.Errorf("its last state is shown: %t\n%s", shown, text)
				}
				if more := strings.Contains(text, "more lines: claudomator story tree giftcards2345678"); more != (height == 12 || height == 6) {
					t.Errorf("left out: %t\n%s", more, text)
				}
				if screen.writes > 8 || screen.touched > 0 {
					t.Errorf("%d writes in a second, %d above the screen", screen.writes, screen.touched)
				}
				for _, line := range screen.lines {
					if columns(line) > screen.width {
						t.Errorf("wide: %q", line)
					}
				}
			})
		})
	}
}

// TestCanvas: lines that were longer are erased, fewer lines leave none behind, and
// a terminal that has become narrower has broken them.
func TestCanvas(t *testing.T) {
	t.Parallel()
	screen, width := &terminal{height: 10}, 20
	c := canvas{shell: &shell{Deps: Deps{Out: screen, Width: func() int { return width }}}}
	for _, lines := range [][]string{{"one\n", "two\n", "three\n"}, {"1\n"}, {"1\n"}, {"1\n", "\x1b[31mred\x1b[0m text of 20 col.\n"}} {
		if err := c.draw(lines); err != nil {
			t.Fatal(err)
		}
	}
	if screen.writes != 3 || c.rows() != 2 {
		t.Errorf("%d writes, %d rows", screen.writes, c.rows())
	}
	if width = 10; c.rows() != 3 {
		t.Errorf("%d rows of a narrower terminal", c.rows())
	}
	c.shell.Out = broken{}
	if err := c.draw([]string{"x\n"}); err == nil {
		t.Error("an error is lost")
	}
}

// TestASCII: where the locale is no UTF-8 one, a tree is drawn with what everybody
// has.
func TestASCII(t *testing.T) {
	t.Parallel()
	for environ, ascii := range map[string]bool{"": false, "LANG=C": true, "LANG=en_US.UTF-8": false, "LC_ALL=POSIX LANG=de_DE.utf8": true, "LC_CTYPE=C.UTF-8 LANG=C": false, "LANG=de_DE.ISO-8859-1": true} {
		for _, width := range []int{40, 0} {
			api := cards()
			api.tree.Children[0].Children[0].Task.Name, api.tree.Children[0].Task.Name = "A name that is long enough to be cut", "x"
			r := run(t.Context(), api, func(d *Deps) {
				d.Terminal, d.Width = true, func() int { return width }
				d.Environ = append(d.Environ, append(strings.Fields(environ), "NO_COLOR=1")...)
			}, "task", "tree", "giftcards2345678")
			drawn := strings.ContainsFunc(r.out, func(c rune) bool { return c > 127 })
			if r.code != 0 || drawn == ascii || strings.Contains(r.out, "|  `- below345") != ascii {
				t.Errorf("%q: %+v", environ, r)
			}
			lines := strings.Split(r.out, "\n")
			if width > 0 && ascii && !slices.ContainsFunc(lines, func(l string) bool { return strings.HasSuffix(l, "~") }) {
				t.Errorf("nothing was cut: %s", r.out)
			}
		}
	}
}

// TestStoryState: what a status means is told from what the server says that it
// needs, and else from what goes on.
func TestStoryState(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status      work.StoryStatus
		needs, want string
	}{
		{work.InProgress, "", "its tasks are being worked on"},
		{work.InProgress, "1 thing in its tree needs you", "1 thing in its tree needs you"},
		{work.Validating, "", "what stands at its root is being reviewed"},
		{work.NeedsFix, "", "what stood at its root was rejected, and is to be fixed"},
		{work.NeedsFix, "so says the server", "so says the server"},
		{work.Draft, "", "its plan is being made by task planner"},
		{work.Shipping, "", "it is being shipped: the deploy command is run"},
		{work.Shipping, "the ship is paused: x", "the ship is paused: x"},
	} {
		api := storyAt(tt.status, task("a", "RUNNING"), withShip(work.ShipDeploy, "", ""), func(v *app.StoryView) { v.Needs = tt.needs })
		r := run(t.Context(), api, nil, "story", "accept", "s1")
		if r.code != 0 || !strings.Contains(r.out, "  "+tt.want+"\n") {
			t.Errorf("%s: want %q: %+v", tt.status, tt.want, r)
		}
	}
}

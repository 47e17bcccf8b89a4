package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

func newTaskTreeCommand(s *shell) *cobra.Command {
	return &cobra.Command{
		Use: "tree ID", Short: "Draw the tree a task belongs to, with its judges", Args: takes("ID"),
		Example: "  claudomator task tree basket", ValidArgsFunction: s.completeTasks,
		RunE: s.call(func(ctx context.Context, api app.API, args []string) error {
			root, err := api.TaskTree(ctx, args[0])
			if err != nil {
				return err
			}
			return s.show(root, func(p *page) { p.tree(root, false) })
		}),
	}
}

// tree draws a place and all below it; folded, what is COMPLETED is one line.
func (p *page) tree(root *app.TreeNode, folded bool) {
	d := drawing{page: p, short: shorten(treeIDs(root)), folded: folded, step: 3}
	for p.width > 0 && d.step > 1 && d.step*depth(root) > p.width/2 {
		d.step--
	}
	d.place(root, "", "")
}

func treeIDs(n *app.TreeNode) []string {
	ids := []string{string(n.Task.ID)}
	for _, j := range n.Judges {
		ids = append(ids, string(j.ID))
	}
	for _, child := range n.Children {
		ids = append(ids, treeIDs(child)...)
	}
	return ids
}

// depth is how many levels stand below a place.
func depth(n *app.TreeNode) int {
	deepest := 0
	if len(n.Judges) > 0 {
		deepest = 1
	}
	for _, child := range n.Children {
		deepest = max(deepest, 1+depth(child))
	}
	return deepest
}

// drawing draws one tree.
type drawing struct {
	*page
	short  func(string) string
	folded bool
	step   int // columns of a level, 3 to 1: a deep tree has narrow ones
}

// The lines of a tree. Each is cut to the columns of a level.
const (
	onward, last, passing, nothing                     = "├─ ", "└─ ", "│  ", "   "
	onwardASCII, lastASCII, passingASCII, nothingASCII = "|- ", "`- ", "|  ", "   "
)

// lines gives what leads to a place and to what stands below it.
func (d *drawing) lines(isLast bool) (to, on string) {
	switch {
	case isLast && d.ascii:
		to, on = lastASCII, nothingASCII
	case isLast:
		to, on = last, nothing
	case d.ascii:
		to, on = onwardASCII, passingASCII
	default:
		to, on = onward, passing
	}
	if d.step < 3 { // without the line to the right
		to = string([]rune(to)[0]) + nothing
	}
	return string([]rune(to)[:d.step]), string([]rune(on)[:d.step])
}

// place draws a place and what is below it; first leads to its own line, rest to
// all others.
func (d *drawing) place(n *app.TreeNode, first, rest string) {
	d.row(first, func(room int) string { return d.placeLine(n.Task, room) })
	if d.folded && n.Task.State == work.Completed {
		return
	}
	left := len(n.Judges) + len(n.Children)
	if text := earlier(n); text != "" {
		_, on := d.lines(left == 0)
		d.row(rest+on, func(room int) string { return d.style(dim, d.cut(text, room)) })
	}
	next := func() (to, on string) {
		left--
		to, on = d.lines(left == 0)
		return rest + to, rest + on
	}
	for _, j := range n.Judges {
		to, _ := next()
		d.row(to, func(room int) string { return d.judgeLine(j, room) })
	}
	for _, child := range n.Children {
		to, on := next()
		d.place(child, to, on)
	}
}

// row prints a line behind its lead, which never takes more than half the width.
func (d *drawing) row(lead string, text func(room int) string) {
	if d.width == 0 {
		d.line("%s", strings.TrimRight(lead+text(0), " "))
		return
	}
	if short := cutFront(lead, max(d.width/2, 1)); short != lead {
		if d.ascii {
			short = "~" + strings.TrimPrefix(short, "…")
		}
		lead = short
	}
	d.line("%s", strings.TrimRight(lead+text(max(d.width-columns(lead), 1)), " "))
}

// cut shortens text to so many columns; 0: no limit.
func (d *drawing) cut(text string, most int) string {
	if most == 0 {
		return text
	}
	short := cut(text, most)
	if short != text && d.ascii {
		return strings.TrimSuffix(short, "…") + "~"
	}
	return short
}

// earlier tells of the attempts that stood at a place before, and why they do not
// any more.
func earlier(n *app.TreeNode) string {
	before := n.Task.AttemptNo - 1
	if before < 1 {
		return ""
	}
	return strings.TrimSuffix(count(before, "earlier attempt")+" rejected: "+strings.TrimPrefix(inert(firstLine(rejection(n.Task))), "- "), ": ")
}

func (d *drawing) placeLine(t *work.Task, room int) string {
	const leastName, wantedName, gaps = 5, 12, 4
	id, state, on := d.short(string(t.ID)), string(t.State), ""
	if waits := waitsFor(t); waits != "" {
		on = " (" + waits + ")"
	}
	mark := ""
	if t.Dropped {
		mark = "  dropped"
	}
	attempt := ""
	if t.AttemptNo > 1 {
		attempt = fmt.Sprintf("  attempt %d", t.AttemptNo)
	}
	name := inert(t.Name)
	if room > 0 {
		used := columns(id+state+mark+attempt) + gaps
		if columns(on)+wantedName > room-used {
			on = "" // the state alone, rather than no name
		}
		if used+leastName > room {
			id, attempt = head(id, 4), ""
			used = columns(id+state+mark) + gaps
		}
		if used+leastName > room {
			return d.style(colorOf(state), d.cut(state+"  "+name, room))
		}
		name = d.cut(name, room-used-columns(on))
	}
	return id + "  " + d.style(colorOf(state), state) + on + "  " + name + d.style(dim, mark) + d.style(dim, attempt)
}

// judgeLine is who judges, and what is said.
func (d *drawing) judgeLine(j *work.Task, room int) string {
	const gap = 2
	id, role, word, why := d.short(string(j.ID)), cmp.Or(string(j.Agent.Role), inert(j.Name)), judgement(j), ""
	switch {
	case j.Verdict != nil:
		why = inert(firstLine(j.Verdict.Reasoning))
	case j.State.EndedBadly():
		why = inert(firstLine(j.Reason))
	}
	if agent := inert(j.Agent.Type); agent != "" && (room == 0 || columns(id+role+word+agent)+8 <= room) {
		role += " (" + agent + ")"
	}
	if room == 0 {
		return strings.TrimSuffix(id+"  "+role+": "+d.style(colorOf(word), word)+"  "+why, "  ")
	}
	if columns(id+role+word)+2*gap > room {
		id = ""
	}
	if id != "" {
		id += "  "
	}
	role = d.cut(role, max(room-columns(id+word)-gap, 1))
	used := columns(id+role+word) + gap
	if used > room {
		return d.style(colorOf(word), d.cut(word, room))
	}
	line := id + role + ": " + d.style(colorOf(word), word)
	if left := room - used - gap; left > gap && why != "" {
		line += "  " + d.cut(why, left)
	}
	return line
}

// judgement is what a judge says, or what it does while it says nothing.
func judgement(j *work.Task) string {
	switch {
	case j.Verdict != nil && j.Verdict.Approved:
		return "approved"
	case j.Verdict != nil:
		return "rejected"
	case j.BlockedOn == work.OnQuestion:
		return "asks"
	case j.State == work.Completed:
		return "no verdict"
	}
	return strings.ToLower(string(j.State))
}

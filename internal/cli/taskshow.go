package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

func newTaskShowCommand(s *shell) *cobra.Command {
	return &cobra.Command{
		Use: "show ID", Short: "Show a task: where it stands, what it waits for, what can be done", Args: takes("ID"),
		Example: "  claudomator task show basket", ValidArgsFunction: s.completeTasks,
		RunE: s.call(func(ctx context.Context, api app.API, args []string) error {
			view, err := api.Task(ctx, args[0])
			if err != nil {
				return err
			}
			if s.format == jsonFormat {
				return encode(s.Out, view)
			}
			d, err := readDossier(ctx, api, view)
			if err != nil {
				return err
			}
			if slices.Contains(view.Actions, work.DoSubmit) {
				d.byHand = s.workspace(view.ID)
			}
			return s.show(view, func(p *page) { p.dossier(d) })
		}),
	}
}

// workspace names the folder in which a task's work can be done by hand.
func (s *shell) workspace(id work.TaskID) string {
	server := cmp.Or(s.server, s.env("CLAUDOMATOR_SERVER"))
	dir := s.folder()
	local, err := line(filepath.Join(dir, "server"))
	path := filepath.Join(dir, "workspaces", string(id))
	if dir != "" && err == nil && (server == "" || strings.TrimRight(server, "/") == strings.TrimRight(local, "/")) {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return filepath.Join("workspaces", string(id)) + " of the server's data folder"
}

// dossier is all that people are told about a task.
type dossier struct {
	*app.TaskView
	project    string
	byHand     string // how work is done by hand, where that is possible
	executions []*work.Execution
	judges     []*work.Task
	children   []*app.TreeNode
	merges     []*work.Merge
}

func readDossier(ctx context.Context, api app.API, view *app.TaskView) (dossier, error) {
	d := dossier{TaskView: view}
	ref := string(view.ID)
	project, err := api.Project(ctx, string(view.ProjectID))
	if err != nil {
		return d, err
	}
	d.project = project.Name
	if d.executions, err = api.Executions(ctx, ref); err != nil {
		return d, err
	}
	root, err := api.TaskTree(ctx, ref)
	if err != nil {
		return d, err
	}
	if node := findNode(root, view.ID); node != nil {
		d.judges, d.children = node.Judges, node.Children
	}
	d.merges, err = api.Merges(ctx, ref)
	return d, err
}

func (p *page) dossier(d dossier) {
	p.paragraph(bold, "", inert(d.Name))
	p.line("%s", p.style(colorOf(string(d.State)), string(d.State))+p.clip(inert(situation(p, &d.Task)), len(d.State)))
	if d.Reason != "" && d.Hold != work.HoldHuman {
		p.paragraph("", "", d.Reason)
	}
	if d.SupersededBy != "" {
		p.line("rejected: attempt %s stands at its place now", d.CurrentID)
	}
	p.possible("", "", wordsOf(d.Actions))
	if d.byHand != "" {
		p.paragraph("", "", "by hand: work in "+d.byHand+", then:")
		p.next("task submit "+string(d.ID), "takes what is there, and has it judged")
	}
	p.line("")
	p.facts(d)
	if d.Question != nil {
		text := d.Question.Text
		for i, option := range d.Question.Options {
			text += fmt.Sprintf("\n%d. %s", i+1, option)
		}
		p.block("Question", text)
	}
	p.block("Checker report", d.CheckerReport)
	p.block("Rejected because", rejection(&d.Task))
	p.criteria(d)
	p.block("Blockers", strings.Join(d.Blockers, "\n"))
	p.block("Summary", d.Summary)
	p.block("Description", d.Description)
	p.block("Instructions", d.Agent.Instructions)
	p.executions(d.executions)
	p.judges(d.judges)
	p.children(d.children)
	if len(d.merges) > 0 {
		p.heading("Landings")
		p.merges("  ", d.merges)
	}
}

// possible says what can be asked now, where anything can.
func (p *page) possible(style, indent string, words []string) {
	if len(words) > 0 {
		p.paragraph(style, indent, "possible now: "+strings.Join(words, ", "))
	}
}

// situation is what a state means for this task.
func situation(p *page, t *work.Task) string {
	out := ""
	switch {
	case t.BlockedOn == work.OnPerson:
		out = ": waits for a person" + holdText(t.Hold)
	case t.BlockedOn != work.NotBlocked:
		out = ": waits for " + onText(t.BlockedOn)
	}
	if !t.WakeAt.IsZero() {
		out += ", " + p.ago(t.WakeAt)
	}
	return out
}

// onText words what a task waits for.
func onText(on work.BlockedOn) string {
	words := map[work.BlockedOn]string{
		work.OnDependencies: "the tasks it depends on", work.OnSlot: "a free slot", work.OnRetry: "the next try",
		work.OnLimit: "the usage limit to be reset", work.OnBudget: "a budget", work.OnPaused: "its agent program to work again",
		work.OnResources: "disk or memory", work.OnChildren: "its children", work.OnQuestion: "an answer to its question",
		work.OnConflict: "a conflict to be settled", work.OnGates: "its gates", work.OnJudges: "its judges",
		work.OnIntegration: "integration into its parent", work.OnLanding: "its landing", work.OnPerson: "a person",
	}
	return cmp.Or(words[on], string(on))
}

// holdText words why a person is asked.
func holdText(h work.Hold) string {
	words := map[work.Hold]string{
		work.HoldHuman: "", work.HoldFlagged: ", there is a report against it", work.HoldNoChanges: ", it changed nothing",
		work.HoldNoJudge: ", no judge can be used", work.HoldNoVerdict: ", its judges gave no verdict",
		work.HoldImprovements: ", approved with improvements", work.HoldBuiltOn: ", what it is built on is not settled",
		work.HoldCap: ", fix attempts are used up", work.HoldStalemate: ", the fixes bring nothing new",
		work.HoldGates: ", its gates could not be run", work.HoldLanding: ", its landing did not happen", work.NoHold: "",
	}
	if text, known := words[h]; known {
		return text
	}
	return ", " + string(h)
}

// facts are the fields of one line.
func (p *page) facts(d dossier) {
	t := &d.Task
	p.field("id", string(t.ID))
	p.field("project", d.project)
	if t.ParentTaskID != "" {
		p.field("parent", string(t.ParentTaskID)+" ("+string(t.Kind)+")")
	}
	if t.AttemptNo > 1 {
		p.field("attempt", fmt.Sprintf("%d at the place of %s", t.AttemptNo, t.Position()))
	}
	if t.Judges != nil {
		p.field("judges", fmt.Sprintf("%s at %s", t.Judges.TaskID, head(t.Judges.Commit, 12)))
	}
	p.field("agent", strings.Join(strings.Fields(string(t.Agent.Role)+" "+t.Agent.Type+" "+t.Agent.Model), " "))
	if len(t.Agent.Command) > 0 {
		p.field("command", fmt.Sprintf("%q", t.Agent.Command))
	}
	p.field("review", t.Review)
	p.field("priority", string(t.Priority))
	p.field("tags", strings.Join(t.Tags, ", "))
	p.field("depends on", strings.Join(wordsOf(t.DependsOn), ", "))
	for _, gate := range t.Gates {
		p.field("gate", gate)
	}
	if t.Timeout > 0 {
		p.field("timeout", exact(time.Duration(t.Timeout)))
	}
	p.field("created", p.ago(t.CreatedAt)+" by "+string(t.Origin))
	p.field("changed", p.ago(t.UpdatedAt))
	p.result(t.Result)
	if t.Accepted != nil {
		p.field("accepted", fmt.Sprintf("by %s, %s", cmp.Or(t.Accepted.By.ID, string(t.Accepted.By.Kind)), p.ago(t.Accepted.At)))
	}
	if t.Landed != nil {
		p.field("landed", fmt.Sprintf("on %s as %s, %s", t.Landed.Branch, head(t.Landed.Commit, 12), p.ago(t.Landed.At)))
	}
	p.field("merge", string(d.MergeID))
}

func (p *page) result(r *work.Result) {
	if r == nil {
		return
	}
	if r.NoChanges {
		p.field("result", "no changes")
	} else {
		p.field("result", fmt.Sprintf("%s changed, +%d −%d (%s..%s)", count(r.Files, "file"), r.Insertions, r.Deletions, head(r.Base, 12), head(r.Head, 12)))
	}
	p.field("held back", strings.Join(r.HeldBack, ", "))
	for _, warning := range r.Warnings {
		p.field("warning", warning)
	}
}

func rejection(t *work.Task) string {
	lines := []string{t.RejectionComment}
	for _, f := range t.RejectionFindings {
		lines = append(lines, "- "+f.String())
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

// criteria lists them with what the judges found.
func (p *page) criteria(d dossier) {
	if len(d.AcceptanceCriteria) == 0 {
		return
	}
	p.heading("Acceptance criteria")
	for _, c := range d.AcceptanceCriteria {
		p.paragraph("", "  ", criterionLine(c, d.judges))
	}
}

// criterionLine is a criterion, whether it is met, and how that was found.
func criterionLine(c string, judges []*work.Task) string {
	mark, how := "[ ]", ""
	for _, judge := range judges {
		if judge.Verdict == nil {
			continue
		}
		i := slices.IndexFunc(judge.Verdict.Criteria, func(x work.Criterion) bool { return x.Criterion == c })
		if i < 0 {
			continue
		}
		found := judge.Verdict.Criteria[i]
		mark, how = "[x]", found.How
		if !found.Met {
			mark = "[!]"
			break
		}
	}
	if how != "" {
		how = " (" + how + ")"
	}
	return mark + " " + c + how
}

func (p *page) executions(all []*work.Execution) {
	if len(all) == 0 {
		return
	}
	p.heading("Executions")
	var rows [][]string
	for _, x := range all {
		took := ""
		switch {
		case !x.EndedAt.IsZero() && !x.StartedAt.IsZero():
			took = span(x.EndedAt.Sub(x.StartedAt))
		case !x.StartedAt.IsZero():
			took = span(p.now.Sub(x.StartedAt))
		}
		cost := ""
		if x.CostUSD > 0 {
			cost = fmt.Sprintf("$%.2f", x.CostUSD)
		}
		exit := ""
		if x.ExitCode != nil {
			exit = "exit " + strconv.Itoa(*x.ExitCode)
		}
		note := strings.Join(slices.DeleteFunc([]string{exit, x.Error, gateText(x.Gates)}, func(s string) bool { return s == "" }), "; ")
		rows = append(rows, []string{strconv.Itoa(x.Number), string(x.Kind), cmp.Or(x.Agent, "-"), cmp.Or(string(x.Outcome), string(x.State)), p.ago(x.StartedAt), took, cost, note})
	}
	p.table("  ", []string{"NO", "KIND", "AGENT", "OUTCOME", "STARTED", "TOOK", "COST", ""}, rows)
}

func gateText(gates []work.GateResult) string {
	var parts []string
	for _, g := range gates {
		verdict := "passed"
		if !g.Passed() {
			verdict = "failed (exit " + strconv.Itoa(g.ExitCode) + ")"
		}
		parts = append(parts, g.Command+" "+verdict)
	}
	return strings.Join(parts, ", ")
}

func (p *page) judges(all []*work.Task) {
	if len(all) == 0 {
		return
	}
	p.heading("Judges")
	var rows [][]string
	for _, j := range all {
		verdict, why := "", j.Reason
		if j.Verdict != nil {
			verdict, why = "rejected", j.Verdict.Reasoning
			if j.Verdict.Approved {
				verdict = "approved"
			}
		}
		rows = append(rows, []string{string(j.ID), string(j.Agent.Role), string(j.State), cmp.Or(verdict, "-"), why})
	}
	p.table("  ", []string{"ID", "ROLE", "STATE", "VERDICT", ""}, rows)
}

func (p *page) children(all []*app.TreeNode) {
	if len(all) == 0 {
		return
	}
	p.heading("Children")
	var rows [][]string
	for _, n := range all {
		rows = append(rows, []string{string(n.Task.ID), string(n.Task.State), waitsFor(n.Task), string(n.Task.Kind), n.Task.Name})
	}
	p.table("  ", []string{"ID", "STATE", "WAITS FOR", "KIND", "NAME"}, rows)
}

// findNode finds the place at which a task is the current attempt.
func findNode(n *app.TreeNode, id work.TaskID) *app.TreeNode {
	if n.Task.ID == id {
		return n
	}
	for _, child := range n.Children {
		if found := findNode(child, id); found != nil {
			return found
		}
	}
	return nil
}

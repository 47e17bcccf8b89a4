package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

func newStoryShowCommand(s *shell) *cobra.Command {
	return &cobra.Command{
		Use: "show STORY", Short: "Show a story: where it stands, what it waits for, what can be done", Args: takes("STORY"),
		Example: "  claudomator story show gift-cards", ValidArgsFunction: s.completeStories,
		RunE: s.call(func(ctx context.Context, api app.API, args []string) error {
			view, err := api.Story(ctx, args[0])
			if err != nil {
				return err
			}
			if s.format == jsonFormat {
				return encode(s.Out, view)
			}
			f, err := readFolio(ctx, api, view)
			if err != nil {
				return err
			}
			return s.show(view, func(p *page) { p.folio(f) })
		}),
	}
}

func newStoryTreeCommand(s *shell) *cobra.Command {
	return &cobra.Command{
		Use: "tree STORY", Short: "Draw a story's tree: states, attempts, who judges and what is said", Args: takes("STORY"),
		Long: "Draw a story's tree: at every place the attempt that stands there now, how many were\n" +
			"rejected before and why, and who judges it. Below it: claudomator task show ID.",
		Example: "  claudomator story tree gift-cards", ValidArgsFunction: s.completeStories,
		RunE: s.call(func(ctx context.Context, api app.API, args []string) error {
			if s.format == jsonFormat {
				root, err := api.StoryTree(ctx, args[0])
				if err != nil {
					return err
				}
				return encode(s.Out, root)
			}
			view, err := api.Story(ctx, args[0])
			if err != nil {
				return err
			}
			root, err := api.StoryTree(ctx, string(view.ID))
			if err != nil {
				return err
			}
			return s.show(root, func(p *page) {
				p.paragraph("", "", p.status(view))
				p.tree(root, false)
			})
		}),
	}
}

// status is a story's status, and what it means now.
func (p *page) status(v *app.StoryView) string {
	return strings.TrimSuffix(string(v.Status)+": "+inert(firstLine(storyState(p, v))), ": ")
}

// folio is all that people are told about a story.
type folio struct {
	*app.StoryView
	project, epic string
	items         []work.Item // that need a person, in all its tree
	root          *app.TreeNode
	events        []work.Event      // of what stood at its root
	executions    []*work.Execution // likewise
}

func readFolio(ctx context.Context, api app.API, view *app.StoryView) (folio, error) {
	f := folio{StoryView: view}
	project, err := api.Project(ctx, string(view.ProjectID))
	if err != nil {
		return f, err
	}
	f.project = project.Name
	if view.EpicID != "" {
		epics, err := api.Epics(ctx)
		if err != nil {
			return f, err
		}
		i := slices.IndexFunc(epics, func(e work.EpicProgress) bool { return e.ID == view.EpicID })
		if f.epic = string(view.EpicID); i >= 0 {
			f.epic = epics[i].Name
		}
	}
	if f.items, err = itemsOf(ctx, api, view.ID); err != nil {
		return f, err
	}
	if f.root, err = api.StoryTree(ctx, string(view.ID)); err != nil || view.Ship == nil {
		return f, err
	}
	attempts := f.root.Attempts
	if len(attempts) == 0 {
		attempts = []*work.Task{f.root.Task}
	}
	for _, t := range attempts {
		events, err := api.TaskEvents(ctx, string(t.ID))
		if err != nil {
			return f, err
		}
		executions, err := api.Executions(ctx, string(t.ID))
		if err != nil {
			return f, err
		}
		f.events, f.executions = append(f.events, events...), append(f.executions, executions...)
	}
	return f, nil
}

func (p *page) folio(f folio) {
	p.paragraph(bold, "", inert(f.Name))
	status := p.status(f.StoryView)
	p.line("%s%s", p.style(colorOf(string(f.Status)), string(f.Status)), p.clip(strings.TrimPrefix(status, string(f.Status)), len(f.Status)))
	p.possible("", "", actWords(f.Actions))
	p.line("")
	p.storyFacts(f)
	others := slices.DeleteFunc(slices.Clone(f.items), func(i work.Item) bool { return i.Kind == work.ItemStory })
	if len(others) > 0 {
		p.heading("Needs you")
		p.attention(others, "  ")
	}
	p.block("Rejected because", rejection(f.root.Task))
	p.block("What is wrong with the planner's plan", f.PlanError)
	p.block("Goal", f.Goal)
	p.block("Spec", f.Spec)
	if len(f.AcceptanceCriteria) > 0 {
		p.heading("Acceptance criteria")
	}
	for _, c := range f.AcceptanceCriteria {
		p.paragraph("", "  ", criterionLine(c, f.root.Judges))
	}
	p.plan(f)
	p.validations(f.Validation)
	p.judges(f.root.Judges)
	p.ship(f)
	p.validationResult(f.ValidationResult)
}

// storyFacts are the fields of one line.
func (p *page) storyFacts(f folio) {
	p.field("id", string(f.ID))
	p.field("project", f.project)
	p.field("epic", f.epic)
	p.field("policy", cmp.Or(f.Policy, work.PolicyArbitrated))
	p.field("branch", f.BranchName)
	root := string(f.RootID)
	if f.Attempts > 1 {
		root += fmt.Sprintf(" (attempt %d)", f.Attempts)
	}
	p.field("root task", root)
	p.field("planner", string(f.Planner))
	p.field("progress", progressText(f.Progress))
	if f.SpentUSD > 0 {
		p.field("cost", dollars(f.SpentUSD))
	}
	p.field("created", p.ago(f.CreatedAt))
	p.field("changed", p.ago(f.UpdatedAt))
	if f.Shipped != nil {
		p.field("shipped", "as "+head(f.Shipped.Commit, 12)+", "+p.ago(f.Shipped.At))
	}
}

// progressText is how far a story's tree is.
func progressText(x app.Progress) string {
	if x.Tasks == 0 {
		return ""
	}
	text := fmt.Sprintf("%d of %s completed", x.Completed, count(x.Tasks, "task"))
	if x.Running > 0 {
		text += fmt.Sprintf(", %d running", x.Running)
	}
	if x.Waiting > 0 {
		text += fmt.Sprintf(", %d waiting for a person", x.Waiting)
	}
	return text
}

// plan lists the tasks of the plan, with how far each is once they are there; a
// draft is shown whole, for somebody is to approve it.
func (p *page) plan(f folio) {
	if f.Plan == nil {
		return
	}
	p.heading("Plan")
	if len(f.Plan.Tasks) == 0 {
		p.paragraph("", "  ", "no tasks: a builder decides alone how to build the goal")
		return
	}
	for i, t := range f.Plan.Tasks {
		node := named(f.root, t.Name)
		title := fmt.Sprintf("%d. %s", i+1, inert(t.Name))
		if node != nil {
			title += "  " + string(node.Task.ID) + " " + stateText(node.Task)
		}
		p.paragraph(bold, "  ", title)
		if f.Status == work.Draft {
			p.paragraph("", "     ", t.Instructions)
		}
		if len(t.DependsOn) > 0 {
			p.paragraph(dim, "     ", "after: "+inert(strings.Join(t.DependsOn, ", ")))
		}
		var judges []*work.Task
		if node != nil {
			judges = node.Judges
		}
		for _, c := range t.AcceptanceCriteria {
			p.paragraph("", "     ", criterionLine(c, judges))
		}
		for _, sub := range t.Subtasks {
			line := "- " + inert(sub.Name)
			if n := named(node, sub.Name); n != nil {
				line += "  " + stateText(n.Task)
			}
			p.paragraph("", "     ", line)
		}
	}
}

// named is the place below another that has a name, or nil.
func named(n *app.TreeNode, name string) *app.TreeNode {
	if n == nil {
		return nil
	}
	for _, child := range n.Children {
		if child.Task.Kind != work.Improvement && child.Task.Name == strings.TrimSpace(name) {
			return child
		}
	}
	return nil
}

func (p *page) validations(all work.Validations) {
	if len(all) == 0 {
		return
	}
	p.heading("Validation")
	for _, v := range all {
		p.paragraph("", "  ", string(v.Type)+": "+inert(cmp.Or(v.SuccessCriteria, "all of these must pass")))
		for _, step := range v.Steps {
			p.paragraph("", "  ", "- "+inert(step))
		}
	}
}

func (p *page) validationResult(r *work.ValidationResult) {
	if r == nil {
		return
	}
	word := "failed"
	if r.Passed {
		word = "passed"
	}
	p.heading("Validation at Ship")
	p.line("  %s at %s, %s", p.style(colorOf(word), word), head(r.Commit, 12), p.ago(r.At))
	for _, g := range r.Steps {
		mark := "✓ "
		if !g.Passed() {
			mark = "✗ "
		}
		p.paragraph("", "  ", mark+inert(gateText([]work.GateResult{g})))
		if output := strings.TrimRight(g.Output, "\n"); !g.Passed() && output != "" {
			p.paragraph(dim, "    ", lastLines(output, 10))
		}
	}
}

func lastLines(text string, most int) string {
	lines := strings.Split(text, "\n")
	return strings.Join(lines[max(len(lines)-most, 0):], "\n")
}

// ship tells of the last press of Ship: its steps, and where their logs are.
func (p *page) ship(f folio) {
	ship := f.Ship
	if ship == nil {
		return
	}
	p.heading("Ship")
	p.field("  pressed", cmp.Or(ship.By.ID, string(ship.By.Kind))+", "+p.ago(ship.StartedAt))
	if ship.MergeID != "" {
		p.field("  merge", string(ship.MergeID))
	}
	p.field("  commit", ship.Commit)
	if pull := ship.Pull; pull != nil {
		p.field("  pull", strings.TrimSuffix(fmt.Sprintf("%s (%s, checks %s)", pull.URL, pull.State, cmp.Or(pull.Checks, "not known")), " "))
	}
	if f.Status != work.Deployed {
		p.field("  stopped", ship.Error)
	}
	for _, report := range ship.Reports {
		p.field("  open report", report)
	}
	steps := shipSteps(f, p.now)
	var rows [][]string
	for i, step := range steps {
		if f.Paused && i == len(steps)-1 {
			step.result = string(work.MergeConflicted)
		}
		rows = append(rows, []string{step.name, step.result, step.took, p.ago(step.at)})
	}
	if len(rows) > 0 {
		p.table("  ", []string{"STEP", "OUTCOME", "TOOK", "STARTED"}, rows)
	}
	if f.Paused {
		merge := string(ship.MergeID)
		p.next("merge continue "+merge+" --wait", "goes on with the ship, when the conflict is resolved", "merge abort "+merge, "ends it, with nothing changed")
	}
	for _, x := range f.executions {
		if x.Kind.Own() || x.CreatedAt.Before(ship.StartedAt) {
			continue
		}
		how := cmp.Or(string(x.Outcome), string(x.State))
		if !work.GatesPassed(x.Gates) {
			how = "failed"
		}
		p.next(fmt.Sprintf("task logs %s --execution %d", x.TaskID, x.Number), "log of "+string(x.Kind)+": "+how)
	}
}

// shipStep is one step that a ship took.
type shipStep struct {
	name, result, took string
	at                 time.Time
}

// shipSteps reads from the events which steps the ship has taken, and how each
// ended.
func shipSteps(f folio, now time.Time) []shipStep {
	var steps []shipStep
	end := func(at time.Time, result string) {
		if n := len(steps) - 1; n >= 0 && steps[n].result == "" {
			steps[n].result = result
			if d := at.Sub(steps[n].at); d > 0 {
				steps[n].took = span(d)
			}
		}
	}
	skipped := func(at time.Time) {
		if n := len(steps) - 1; n >= 0 && steps[n].at.Equal(at) {
			end(at, "nothing to do")
		}
	}
	for _, e := range f.events {
		if e.At.Before(f.Ship.StartedAt) {
			continue
		}
		switch e.Kind {
		case "ship.started", "ship.step":
			skipped(e.At)
			end(e.At, "done")
			if name := fmt.Sprint(e.Body["step"]); e.Kind == "ship.step" || len(steps) == 0 { // resumed: the step follows
				steps = append(steps, shipStep{name: name, at: e.At})
			}
		case "ship.refused", "ship.failed", "ship.broken":
			end(e.At, "failed")
		case "ship.done":
			skipped(e.At)
			end(e.At, "done")
		}
	}
	if f.Status == work.Shipping {
		end(now, "running")
	}
	return steps
}

// stepText words a step of a ship.
func stepText(step work.ShipStep) string {
	words := map[work.ShipStep]string{
		work.ShipAccept: "what is READY is integrated", work.ShipValidate: "build and test validation is run",
		work.ShipLand: "the target branch is moved", work.ShipPull: "its pull request is followed until it is merged",
		work.ShipPush: "the target branch is pushed", work.ShipDeploy: "the deploy command is run", work.ShipSmoke: "the smoke validation is run",
	}
	return cmp.Or(words[step], string(step))
}

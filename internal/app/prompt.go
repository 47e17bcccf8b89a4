package app

import (
	"cmp"
	"embed"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"text/template"

	"github.com/claudomator/claudomator/internal/review"
	"github.com/claudomator/claudomator/internal/work"
)

// The prompts are texts that models read, and deliverables: short, and held by a
// test to what they promise. roles/NAME.md is what a role is told unless its
// configuration says otherwise.
//
//go:embed prompts/*.md prompts/roles/*.md
var promptFiles embed.FS

// brief is what the prompts are composed from.
type brief struct {
	*RunContext
	Role         string // the role's own text
	Instructions string
	Conflicts    []string
	Judged       *work.Task // what a judge looks at
	Arbiter      bool       // this judge weighs what the others said
	Ended        string     // why the run before ended badly
	Story        *work.Story
	Whole        bool   // the work at hand is all of the story
	Happened     string // what a retro looks back on
	project      work.Project
	offered      []Tool
}

// Has says whether the run is offered a tool.
func (b brief) Has(name Tool) bool { return slices.Contains(b.offered, name) }

// Tools are the tools that a prompt names, each with its use. A verdict and an
// improvement have sentences of their own; what a planner or a retro hands in says
// more than a summary.
func (b brief) Tools() []string {
	uses := []struct {
		tool Tool
		use  string
	}{
		{ToolContext, "all that is known about your task, when something is left open"},
		{ToolSpawn, "hands a part of the task to another agent"},
		{ToolAsk, "asks a person for a decision that is not yours to take; it ends your run, and you are started again with the answer"},
		{ToolBlocker, "records an obstacle; your run goes on"},
		{ToolPlan, "hands in the plan, or answers what is wrong with it"},
		{ToolLessons, "hands in the lessons: call it once, at the end"},
		{ToolSummary, "says what you did and how you verified it: call it once, at the end"},
	}
	switch {
	case b.Judged != nil:
		uses = uses[:1]
	case b.Has(ToolPlan) || b.Has(ToolLessons):
		uses = uses[:len(uses)-1]
	}
	var lines []string
	for _, u := range uses {
		if b.Has(u.tool) {
			lines = append(lines, string(u.tool)+" "+u.use)
		}
	}
	return lines
}

// prompt composes what an agent reads. A command gets its instructions byte for
// byte; a judging one the judge's prompt.
func prompt(tree *work.Tree, t *work.Task, role work.RoleConfig, spec work.AgentSpec) (string, error) {
	if t.Judges == nil && spec.Type == work.CommandAgent {
		return instructions(t), nil
	}
	text, err := rolePrompt(t.Role(), role)
	if err != nil {
		return "", err
	}
	b := briefOf(tree, t)
	b.Role, b.Instructions, b.offered = text, instructions(t), offers(t)
	switch {
	case t.Judges != nil:
		b.Judged = tree.Task(t.Judges.TaskID)
		b.Instructions = instructions(b.Judged)
		b.Whole = b.Judged.Position() == tree.Root()
		b.Arbiter = review.For(tree, b.Judged).Arbiter == t.Role()
		return b.compose("judge.md")
	case t.Role() == work.Planner:
		return b.compose("plan.md")
	case t.Role() == work.Retro:
		b.Happened = happened(tree)
		return b.compose("retro.md")
	}
	return b.compose("work.md")
}

// news is what an agent is told whose conversation is resumed: what has happened
// since its last run began.
func news(tree *work.Tree, t *work.Task) (string, error) {
	b := briefOf(tree, t)
	b.Ended = t.Book.Talk.Ended
	b.Interactions = slices.DeleteFunc(slices.Clone(t.Interactions), func(i work.Interaction) bool { return i.At.Before(t.Book.Talk.Since) })
	return b.compose("news.md")
}

// briefOf is what every prompt of a task can say.
func briefOf(tree *work.Tree, t *work.Task) brief {
	return brief{
		RunContext: contextOf(tree, t), Conflicts: t.Book.Conflicts,
		Story: tree.Story, Whole: t.Position() == tree.Root(), project: tree.Project,
	}
}

func (b brief) compose(name string) (string, error) {
	tmpl, err := template.New(name).Funcs(template.FuncMap{
		"fenced": fenced, "item": item, "lines": lines, "objections": objections, "short": short, "long": long,
	}).ParseFS(promptFiles, "prompts/parts.md", "prompts/"+name)
	if err != nil {
		return "", work.Errorf(work.Internal, "read prompt %s: %w", name, err)
	}
	var text strings.Builder
	if err := tmpl.ExecuteTemplate(&text, name, b); err != nil {
		return "", work.Errorf(work.Internal, "compose prompt %s: %w", name, err)
	}
	return strings.TrimSpace(text.String()) + "\n", nil
}

// rolePrompt is a role's own text: as configured, else the one that comes with
// the program; a role may have none.
func rolePrompt(name work.Role, config work.RoleConfig) (string, error) {
	if config.Prompt != "" || name == "" {
		return strings.TrimSpace(config.Prompt), nil
	}
	text, err := promptFiles.ReadFile("prompts/roles/" + string(name) + ".md")
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(text)), err
}

// instructions are what a task is asked: an improvement's are its description.
func instructions(t *work.Task) string { return cmp.Or(t.Agent.Instructions, t.Description) }

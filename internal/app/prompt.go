package app

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"text/template"

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
	Ended        string     // why the run before ended badly
	offered      []Tool
}

// Has says whether the run is offered a tool.
func (b brief) Has(name Tool) bool { return slices.Contains(b.offered, name) }

// Tools are the tools that a prompt names, each with its use. Those that read the
// context or spawn are left to the role and to the tool's own description.
func (b brief) Tools() []string {
	uses := []struct {
		tool Tool
		use  string
	}{
		{ToolContext, "all that is known about your task, when something is left open"},
		{ToolSpawn, "hands a part of the task to another agent"},
		{ToolAsk, "asks a person for a decision that is not yours to take; it ends your run, and you are started again with the answer"},
		{ToolBlocker, "records an obstacle; your run goes on"},
		{ToolSummary, "says what you did and how you verified it: call it once, at the end"},
	}
	if b.Judged != nil {
		uses = uses[:1]
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
	b := brief{RunContext: contextOf(tree, t), Role: text, Instructions: instructions(t), Conflicts: t.Book.Conflicts, offered: offers(t)}
	if t.Judges == nil {
		return b.compose("work.md")
	}
	b.Judged = tree.Task(t.Judges.TaskID)
	b.Instructions = instructions(b.Judged)
	return b.compose("judge.md")
}

// news is what an agent is told whose conversation is resumed: what has happened
// since its last run began.
func news(tree *work.Tree, t *work.Task) (string, error) {
	b := brief{RunContext: contextOf(tree, t), Conflicts: t.Book.Conflicts, Ended: t.Book.Talk.Ended}
	b.Interactions = slices.DeleteFunc(slices.Clone(t.Interactions), func(i work.Interaction) bool { return i.At.Before(t.Book.Talk.Since) })
	return b.compose("news.md")
}

func (b brief) compose(name string) (string, error) {
	tmpl, err := template.New(name).Funcs(template.FuncMap{"fenced": fenced, "item": item}).ParseFS(promptFiles, "prompts/parts.md", "prompts/"+name)
	if err != nil {
		return "", work.Errorf(work.Internal, "read prompt %s: %w", name, err)
	}
	var text strings.Builder
	if err := tmpl.ExecuteTemplate(&text, name, b); err != nil {
		return "", work.Errorf(work.Internal, "compose prompt %s: %w", name, err)
	}
	return strings.TrimSpace(text.String()) + "\n", nil
}

// fenced is a text between marks of which the last does not occur in it: agents
// write texts that judges read, and must not end them early.
func fenced(name, text string) string {
	mark := name
	for n := 2; ends(text, mark); n++ {
		mark = fmt.Sprintf("%s-%d", name, n)
	}
	return "<<<" + mark + "\n" + text + "\n" + mark
}

// ends says whether a line of the text could be taken for the mark.
func ends(text, mark string) bool {
	for line := range strings.Lines(text) {
		if strings.EqualFold(strings.TrimSpace(line), mark) {
			return true
		}
	}
	return false
}

// item is what an item of a list says: its further lines are indented, and so are
// no headings and items of the prompt itself.
func item(value any) string { return strings.ReplaceAll(fmt.Sprint(value), "\n", "\n    ") }

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

package app

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/claudomator/claudomator/internal/work"
)

// What the prompts say of a story. Its goal and spec are a person's or a planner's
// words: each has a place of its own, and a size.

// Title is the story's name.
func (b brief) Title() string {
	if b.Story == nil {
		return b.Task.Name
	}
	return cmp.Or(b.Story.Name, b.Task.Name)
}

// Purpose is what the story is for; "" where the task's own instructions say it.
func (b brief) Purpose() string {
	if b.Story == nil || b.asked(b.Story.Goal) {
		return ""
	}
	return clipped(b.Story.Goal, mostGoal)
}

// Specified is the story's spec; "" where the task's own instructions are it.
func (b brief) Specified() string {
	if b.Story == nil || b.asked(b.Story.Spec) {
		return ""
	}
	return clipped(b.Story.Spec, mostSpec)
}

// asked is true of a text that is the task's instructions already.
func (b brief) asked(text string) bool {
	return strings.TrimSpace(text) == strings.TrimSpace(b.Instructions)
}

// Goal is what a planner plans for, and a retro looks back on.
func (b brief) Goal() string {
	if b.Story == nil || b.Story.Goal == "" {
		return cmp.Or(b.Instructions, b.Title())
	}
	return b.Story.Goal
}

// Wanted are the criteria that the story has already.
func (b brief) Wanted() []string {
	if b.Story == nil {
		return b.Criteria
	}
	return b.Story.AcceptanceCriteria
}

// Facts are what a planner needs to know of the project and cannot read in it.
func (b brief) Facts() []string {
	p := b.project
	var out []string
	say := func(what, text string) {
		if text != "" {
			out = append(out, what+": "+long(text))
		}
	}
	say("default branch", p.Branch)
	say("setup, run before every task", p.Setup)
	say("validate, run by the server on every task's work anyway", strings.Join(p.Validate, "\n"))
	say("deploy, run after the story has landed", p.Deploy)
	if p.Repository == "" {
		say("repository", "none; the work starts from an empty one")
	}
	return out
}

// Earlier is the plan that the story has, as JSON; "" when there is none.
func (b brief) Earlier() (string, error) {
	if b.Story == nil || b.Story.Plan == nil {
		return "", nil
	}
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // commands are to be read
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(b.Story.Plan); err != nil {
		return "", work.Errorf(work.Internal, "encode the earlier plan: %w", err)
	}
	return clipped(strings.TrimSpace(text.String()), mostSpec), nil
}

// PlanError is what is wrong with the planner's plan; "" for every other role.
func (b brief) PlanError() string {
	if b.Story == nil || b.Task.Role() != work.Planner {
		return ""
	}
	return long(b.Story.PlanError)
}

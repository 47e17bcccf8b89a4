package app

import (
	"context"

	"github.com/claudomator/claudomator/internal/work"
)

// TemplateKind is what a template makes.
type TemplateKind string

// The kinds of template.
const (
	StoryTemplate TemplateKind = "story" // a plan, in .claudomator/stories
	TaskTemplate  TemplateKind = "task"  // a task file, in .claudomator/tasks
)

// Template is a file of a project's repository from which stories or tasks are
// made. It is shown with where it comes from: whoever may change the repository
// may change it.
type Template struct {
	Kind    TemplateKind `json:"kind"`
	Name    string       `json:"name" doc:"Name of the file, without its ending"`
	Path    string       `json:"path" doc:"Path in the repository"`
	Branch  string       `json:"branch" doc:"The project's default branch"`
	Commit  string       `json:"commit" doc:"Commit it was read at"`
	Text    string       `json:"text" doc:"The file: YAML or JSON"`
	Problem string       `json:"problem,omitempty" doc:"Why it cannot be used"`
}

// TemplateFiles reads the templates of a project's repository.
type TemplateFiles interface {
	Templates(ctx context.Context, p work.Project) ([]Template, error)
}

// Templates lists the templates of a project, stories first, by name.
func (s *Service) Templates(ctx context.Context, project string) ([]Template, error) {
	if _, err := may(ctx, false); err != nil {
		return nil, err
	}
	p, err := s.projectFor(ctx, project)
	if err != nil {
		return nil, err
	}
	return s.o.Templates.Templates(ctx, *p)
}

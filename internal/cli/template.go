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

func newTemplateCommand(s *shell) *cobra.Command {
	return newGroup("template", "Files of a repository that stories and tasks are begun with", newTemplateListCommand(s), newTemplateShowCommand(s))
}

func newTemplateListCommand(s *shell) *cobra.Command {
	var project string
	c := &cobra.Command{
		Use: "list", Short: "List a project's templates, and which of them cannot be used", Args: takes(),
		Long: "List a project's templates: YAML and JSON files in .claudomator/stories (plans) and\n" +
			".claudomator/tasks (tasks), at the head of the project's default branch. Whoever may change\n" +
			"the repository may change them.",
		Example: "  claudomator template list --project shop",
		RunE: s.call(func(ctx context.Context, api app.API, _ []string) error {
			all, err := templatesOf(ctx, api, project)
			if err != nil {
				return err
			}
			return s.show(list(all), func(p *page) { p.templates(all) })
		}),
	}
	s.projectFlag(c, &project)
	return c
}

func newTemplateShowCommand(s *shell) *cobra.Command {
	var project string
	c := &cobra.Command{
		Use: "show NAME", Short: "Print a template, and where it comes from", Args: takes("NAME"),
		Long: "Print a template as it stands in the repository; where it comes from is said on standard\n" +
			"error. NAME is its name, or its path where two have the same name.",
		Example:           "  claudomator template show release --project shop >plan.yaml",
		ValidArgsFunction: s.completeTemplates("", &project),
	}
	c.RunE = s.call(func(ctx context.Context, api app.API, args []string) error {
		t, err := findTemplate(ctx, api, project, "", args[0])
		if err != nil {
			return err
		}
		if s.format == jsonFormat {
			return encode(s.Out, t)
		}
		s.origin(t)
		if t.Problem != "" {
			s.notice("it cannot be used: %s", t.Problem)
		}
		if _, err := s.Out.Write(escape([]byte(t.Text))); err != nil {
			return fmt.Errorf("print: %w", err)
		}
		return nil
	})
	s.projectFlag(c, &project)
	return c
}

func (s *shell) projectFlag(c *cobra.Command, project *string) {
	c.Flags().StringVar(project, "project", "", "name or id of the project, where there is more than one")
	_ = c.RegisterFlagCompletionFunc("project", s.completeProjects) // fails only for a flag that does not exist
}

func (p *page) templates(all []app.Template) {
	if len(all) == 0 {
		p.line("no templates: the repository has no files in .claudomator/stories or .claudomator/tasks")
		return
	}
	var rows [][]string
	for _, t := range all {
		rows = append(rows, []string{t.Name, string(t.Kind), t.Path, head(t.Commit, 12), t.Problem})
	}
	p.table("", []string{"NAME", "KIND", "PATH", "COMMIT", "PROBLEM"}, rows)
}

// origin says on standard error where a template comes from.
func (s *shell) origin(t app.Template) {
	s.notice("template %s: %s", t.Name, originOf(t))
}

func originOf(t app.Template) string {
	return fmt.Sprintf("%s of branch %s at %s", t.Path, t.Branch, head(t.Commit, 12))
}

func (s *shell) notice(format string, args ...any) {
	_, _ = fmt.Fprintln(s.Err, inert(fmt.Sprintf(format, args...)))
}

// templatesOf lists a project's templates, each with what is wrong with it. No
// name is the only project there is.
func templatesOf(ctx context.Context, api app.API, project string) ([]app.Template, error) {
	if project == "" {
		known, err := api.Projects(ctx)
		if err != nil {
			return nil, err
		}
		if len(known) != 1 {
			return nil, severalProjects(known)
		}
		project = string(known[0].ID)
	}
	all, err := api.Templates(ctx, project)
	for i := range all {
		all[i].Problem = cmp.Or(all[i].Problem, problemOf(all[i]))
	}
	return all, err
}

func severalProjects(known []*work.Project) error {
	if len(known) == 0 {
		return work.Errorf(work.Invalid, "there is no project yet").WithHint("claudomator project add NAME --repo PATH")
	}
	names := make([]string, len(known))
	for i, p := range known {
		names[i] = p.Name
	}
	return work.Errorf(work.Invalid, "there are several projects with templates of their own").WithHint("give --project: %s", strings.Join(names, ", "))
}

// problemOf says why a template's text cannot be read as what it is to make.
func problemOf(t app.Template) string {
	var err error
	switch t.Kind {
	case app.StoryTemplate:
		_, err = parsePlan(t.Path, []byte(t.Text), new(app.ApproveInput))
	case app.TaskTemplate:
		_, _, err = readTasks(t.Path, []byte(t.Text))
	}
	if e, ok := work.AsError(err); ok {
		return strings.TrimPrefix(e.Message, t.Path+": ")
	}
	return ""
}

// findTemplate is the one template of a kind (empty: of any) that a name or path
// means.
func findTemplate(ctx context.Context, api app.API, project string, kind app.TemplateKind, ref string) (app.Template, error) {
	all, err := templatesOf(ctx, api, project)
	if err != nil {
		return app.Template{}, err
	}
	var found []app.Template
	var names, paths []string
	for _, t := range all {
		if kind != "" && t.Kind != kind {
			continue
		}
		names = append(names, t.Name)
		if t.Name == ref || t.Path == ref {
			found, paths = append(found, t), append(paths, t.Path)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		err := work.Errorf(work.NotFound, "there is no template %q", ref).WithHint("claudomator template list shows them")
		if kind != "" {
			err = work.Errorf(work.NotFound, "there is no %s template %q", kind, ref).WithHint("claudomator template list shows them")
		}
		if meant := nearest(ref, names); meant != "" {
			err = err.WithHint("did you mean %s?", meant)
		}
		return app.Template{}, err
	}
	return app.Template{}, work.Errorf(work.Invalid, "%d templates are meant by %q", len(found), ref).WithReason("ambiguous").WithHint("use the path of one: %s", strings.Join(paths, ", "))
}

// useTemplate finds a template that is to be used, and says where it comes from.
func (s *shell) useTemplate(ctx context.Context, api app.API, project string, kind app.TemplateKind, ref string) (app.Template, error) {
	t, err := findTemplate(ctx, api, project, kind, ref)
	if err != nil {
		return t, err
	}
	if t.Problem != "" {
		return t, work.Errorf(work.Invalid, "template %s cannot be used: %s: %s", t.Name, t.Path, t.Problem).WithReason("template").WithHint("mend it in the repository (%s)", originOf(t))
	}
	s.origin(t)
	return t, nil
}

// completeTemplates offers the names of a project's templates of a kind.
func (s *shell) completeTemplates(kind app.TemplateKind, project *string) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		return s.complete(c, args, func(ctx context.Context, api app.API) ([]string, error) {
			all, err := templatesOf(ctx, api, *project)
			var out []string
			for _, t := range all {
				if kind == "" || t.Kind == kind {
					out = append(out, inert(t.Name)+"\t"+inert(t.Path))
				}
			}
			return out, err
		})
	}
}

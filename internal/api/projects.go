package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

func (s *server) projects(h huma.API) {
	api := s.o.API
	add(s, h, endpoint{method: http.MethodGet, path: "/api/projects", id: "Projects", summary: "List the projects by name",
		about: "Removed ones are left out."},
		func(ctx context.Context, _ *struct{}) ([]*work.Project, error) { return list(api.Projects(ctx)) })
	add(s, h, endpoint{method: http.MethodPost, path: "/api/projects", id: "AddProject", summary: "Register a repository", status: http.StatusCreated,
		about: "The repository is looked at before anything is stored. Without one the project has a private empty repository."},
		func(ctx context.Context, in *struct{ Body app.ProjectInput }) (*work.Project, error) {
			return api.AddProject(ctx, in.Body)
		})
	add(s, h, endpoint{method: http.MethodGet, path: "/api/projects/{id}", id: "Project", summary: "Show a project",
		about: "Its settings are those that hold where a task says nothing itself."},
		func(ctx context.Context, in *Ref) (*work.Project, error) { return api.Project(ctx, in.ID) })
	add(s, h, endpoint{method: http.MethodPatch, path: "/api/projects/{id}", id: "SetProject", summary: "Change a project; what is left out stays",
		about: "A list or a map that is given replaces the old one whole. A project with tasks keeps its repository."},
		func(ctx context.Context, in *struct {
			Ref
			Body app.ProjectInput
		},
		) (*work.Project, error) {
			return api.SetProject(ctx, in.ID, in.Body)
		})
	addQuiet(s, h, endpoint{method: http.MethodDelete, path: "/api/projects/{id}", id: "RemoveProject", summary: "Remove a project whose work is over",
		about: "Its tasks and its vault stay; it is refused while there is open work."},
		func(ctx context.Context, in *Ref) error { return api.RemoveProject(ctx, in.ID) })
	add(s, h, endpoint{method: http.MethodGet, path: "/api/projects/{id}/templates", id: "Templates", summary: "List the templates in a project's repository",
		about: "Files in .claudomator/stories (plans) and .claudomator/tasks (tasks) at the head of its default branch, each with its text and the commit it was read at. Stories come first, then by name."},
		func(ctx context.Context, in *Ref) ([]app.Template, error) { return list(api.Templates(ctx, in.ID)) })
}

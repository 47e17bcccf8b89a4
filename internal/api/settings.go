package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

func (s *server) merges(h huma.API) {
	api := s.o.API
	add(s, h, endpoint{method: http.MethodPost, path: "/api/tasks/{id}/merge", id: "StartMerge", summary: "Begin to land a COMPLETED task", status: http.StatusAccepted,
		about: "The answer comes before the end: the landing is then asked for by its id. Landings of one project wait for each other."},
		func(ctx context.Context, in *struct {
			Ref
			Body *app.MergeRequest
		},
		) (*work.Merge, error) {
			return api.StartMerge(ctx, in.ID, value(in.Body).Into)
		})
	add(s, h, endpoint{method: http.MethodGet, path: "/api/tasks/{id}/merges", id: "TaskMerges", summary: "List the landings of a task, newest first",
		about: "Also those that were aborted or refused."},
		func(ctx context.Context, in *Ref) ([]*work.Merge, error) { return list(api.Merges(ctx, in.ID)) })
	add(s, h, endpoint{method: http.MethodGet, path: "/api/merges", id: "Merges", summary: "List the landings, newest first",
		about: "Also those that were aborted or refused."},
		func(ctx context.Context, in *struct {
			Task string `query:"task" doc:"Only of this task"`
		},
		) ([]*work.Merge, error) {
			return list(api.Merges(ctx, in.Task))
		})
	add(s, h, endpoint{method: http.MethodGet, path: "/api/merges/{id}", id: "Merge", summary: "Show a landing",
		about: "Its status, what is still to come, and the files of a conflict."},
		func(ctx context.Context, in *Ref) (*work.Merge, error) { return api.Merge(ctx, in.ID) })
	add(s, h, endpoint{method: http.MethodPost, path: "/api/merges/{id}/continue", id: "ContinueMerge", summary: "Go on with a landing whose conflict is resolved",
		about: "It goes on where it stopped; what was landed before stays."},
		func(ctx context.Context, in *Ref) (*work.Merge, error) { return api.ContinueMerge(ctx, in.ID) })
	add(s, h, endpoint{method: http.MethodPost, path: "/api/merges/{id}/abort", id: "AbortMerge", summary: "End a conflicted landing with nothing changed",
		about: "The work stays COMPLETED and can be landed again."},
		func(ctx context.Context, in *Ref) (*work.Merge, error) { return api.AbortMerge(ctx, in.ID) })
}

func (s *server) disk(h huma.API) {
	api := s.o.API
	add(s, h, endpoint{method: http.MethodGet, path: "/api/disk", id: "Disk", summary: "Show what the server's data uses on the disk",
		about: "By task and by project, largest first. Everything is looked at for each answer: with many files it takes seconds."},
		func(ctx context.Context, _ *struct{}) (*app.DiskUse, error) { return api.Disk(ctx) })
	add(s, h, endpoint{method: http.MethodPost, path: "/api/disk/reclaim", id: "ReclaimDisk", summary: "Move the workspaces of tasks that are over to the bin now",
		about: "What they hold and the vault does not is kept as a snapshot first; a task that runs, or waits for a person, keeps its workspace. With empty_bin what is in the bin is deleted, for good."},
		func(ctx context.Context, in *struct{ Body *app.ReclaimRequest }) (*app.Reclaimed, error) {
			return api.ReclaimDisk(ctx, value(in.Body))
		})
	add(s, h, endpoint{method: http.MethodGet, path: "/api/rescue", id: "Snapshots", summary: "List what is kept of tasks, newest first",
		about: "Workspaces as they stood before they were reset or removed, and commits that no result holds; of removed tasks their result, too."},
		func(ctx context.Context, _ *struct{}) ([]app.Snapshot, error) { return list(api.Snapshots(ctx, "")) })
	add(s, h, endpoint{method: http.MethodGet, path: "/api/tasks/{id}/rescue", id: "TaskSnapshots", summary: "List what is kept of a task, newest first",
		about: "The task may have been removed: then only its id, or the beginning of it, is known."},
		func(ctx context.Context, in *Ref) ([]app.Snapshot, error) { return list(api.Snapshots(ctx, in.ID)) })
	add(s, h, endpoint{method: http.MethodPost, path: "/api/rescue", id: "RestoreSnapshot", summary: "Restore a snapshot to a folder or a branch", status: http.StatusCreated,
		about: "The server's user writes, on the server's machine: into a new or empty folder outside of the data folder, or a new branch of the project's repository. A snapshot of files holds ignored files, too."},
		func(ctx context.Context, in *struct{ Body app.RestoreRequest }) (*app.Restored, error) {
			return api.RestoreSnapshot(ctx, in.Body)
		})
}

// RoleName names a role in the path.
type RoleName struct {
	Name string `path:"name" doc:"The role's name"`
}

func (s *server) settings(h huma.API) {
	api := s.o.API
	add(s, h, endpoint{method: http.MethodGet, path: "/api/roles", id: "Roles", summary: "List the active role configurations",
		about: "Roles without one are played as the program comes."},
		func(ctx context.Context, _ *struct{}) ([]work.RoleConfig, error) { return list(api.Roles(ctx)) })
	add(s, h, endpoint{method: http.MethodGet, path: "/api/roles/{name}", id: "Role", summary: "List the versions of a role, oldest first",
		about: "Those for all projects first, then those of single ones; version 0 comes with the program."},
		func(ctx context.Context, in *RoleName) ([]work.RoleConfig, error) {
			return list(api.Role(ctx, in.Name))
		})
	add(s, h, endpoint{method: http.MethodPut, path: "/api/roles/{name}", id: "SetRole", summary: "Make a new version of a role; what is left out stays",
		about: "Tasks that waited for a judge are looked at again. A name that is none of the roles needs an agent or a prompt."},
		func(ctx context.Context, in *struct {
			RoleName
			Body app.RoleInput
		},
		) (*work.RoleConfig, error) {
			return api.SetRole(ctx, in.Name, in.Body)
		})
	add(s, h, endpoint{method: http.MethodGet, path: "/api/tokens", id: "Tokens", summary: "List the credentials, without secrets",
		about: "Also those that were revoked."},
		func(ctx context.Context, _ *struct{}) ([]app.Token, error) { return list(api.Tokens(ctx)) })
	add(s, h, endpoint{method: http.MethodPost, path: "/api/tokens", id: "CreateToken", summary: "Make a credential; its secret is shown this once", status: http.StatusCreated,
		about: "It cannot be read again."},
		func(ctx context.Context, in *struct {
			Body app.TokenRequest
		},
		) (*app.NewToken, error) {
			return api.CreateToken(ctx, in.Body.Name, in.Body.Scope)
		})
	addQuiet(s, h, endpoint{method: http.MethodDelete, path: "/api/tokens/{id}", id: "RevokeToken", summary: "End a credential",
		about: "Nothing can be asked with it any more; event streams that were opened with it end within seconds."},
		func(ctx context.Context, in *Ref) error { return api.RevokeToken(ctx, in.ID) })
	add(s, h, endpoint{method: http.MethodGet, path: "/api/attention", id: "Attention", summary: "List all that needs a person",
		about: "Questions, work to accept, conflicts and bad ends, each with what can be done about it."},
		func(ctx context.Context, _ *struct{}) ([]work.Item, error) { return list(api.Attention(ctx)) })
	add(s, h, endpoint{method: http.MethodGet, path: "/api/agents", id: "Agents", summary: "List the agent programs of the server's machine",
		about: "Installed or not, with their versions; default marks the one of the server's setting agent."},
		func(ctx context.Context, _ *struct{}) ([]app.AgentInfo, error) { return list(api.Agents(ctx)) })
	add(s, h, endpoint{method: http.MethodGet, path: "/api/stats", id: "Stats", summary: "Count everything",
		about: "Tasks and executions by state, and what they cost."},
		func(ctx context.Context, _ *struct{}) (*app.Stats, error) { return api.Stats(ctx) })
}

package mcp

import (
	"context"
	_ "embed"
	"log/slog"
	"net/http"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

//go:embed admin.md
var adminInstructions string

// AdminOptions is what the endpoint of people's agents stands on; cmd wires it.
type AdminOptions struct {
	API     app.API
	Version string
	Log     *slog.Logger
}

// NewAdmin makes the handler of POST /mcp/admin; it starts nothing. It must stand
// behind what refuses requests and puts the caller into their context.
func NewAdmin(o AdminOptions) http.Handler {
	e := &endpoint{log: o.Log, who: func(context.Context) string { return "a person's agent" }}
	e.serve(o.Version, adminInstructions, adminTools(o.API))
	return e.protocol
}

// What the tools take besides the input of app's methods, which is embedded so
// that a field is defined and described once.
type (
	nothing    struct{}
	projectRef struct {
		Project string `json:"project" doc:"Id, unambiguous prefix of one, or name of the project"`
	}
	projectChange struct {
		Ref string `json:"project" doc:"Id, unambiguous prefix of one, or name of the project"`
		app.ProjectInput
	}
	taskRef struct {
		Task string `json:"task" doc:"Id, unambiguous prefix of one, or name of the task"`
	}
	taskCreation struct {
		app.TaskRequest
		Key string `json:"idempotency_key,omitempty" doc:"Repeating a call with its key gives the first answer and makes nothing again"`
	}
	taskChange struct {
		taskRef
		app.TaskPatch
	}
	acceptance struct {
		taskRef
		app.AcceptInput
	}
	rejection struct {
		taskRef
		app.RejectInput
	}
	speech struct {
		taskRef
		app.Words
	}
	retrial struct {
		taskRef
		app.RetryRequest
	}
	landing struct {
		taskRef
		app.MergeRequest
	}
	landings struct {
		Task string `json:"task,omitempty" doc:"Only of this task"`
	}
	storyRef struct {
		Story string `json:"story" doc:"Id, unambiguous prefix of one, or name of the story"`
	}
	elaboration struct {
		app.ElaborateInput
		Key string `json:"idempotency_key,omitempty" doc:"Repeating a call with its key gives the first answer and makes nothing again"`
	}
	planApproval struct {
		app.ApproveInput
		Key string `json:"idempotency_key,omitempty" doc:"Repeating a call with its key gives the first answer and makes nothing again"`
	}
	storyChange struct {
		storyRef
		app.StoryPatch
	}
	storyRejection struct {
		storyRef
		app.RejectInput
	}
	shipment struct {
		storyRef
		Key string `json:"idempotency_key,omitempty" doc:"Repeating a call with its key gives the first answer and ships nothing again"`
	}
	roleRef struct {
		Role string `json:"role" doc:"Name of the role, such as builder or checker"`
	}
	mergeRef struct {
		Merge string `json:"merge" doc:"Id of the landing"`
	}
	executionRef struct {
		Execution string `json:"execution" doc:"Id of the execution"`
	}
	logArguments struct {
		executionRef
		Last int `json:"last,omitempty" doc:"How many of the newest lines, at most 1000; 50 when left out"`
	}
	eventArguments struct {
		taskRef
		Last int `json:"last,omitempty" doc:"How many of the newest events, at most 1000; 50 when left out"`
	}
)

// items is a list as a tool returns it: results are objects.
type items[T any] struct {
	Items []T `json:"items"`
}

// listed makes a list one that is never null.
func listed[T any](all []T, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return items[T]{append([]T{}, all...)}, nil
}

// one passes a result on; a nil pointer in an interface would not be nil.
func one[T any](v *T, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return v, nil
}

// adminTool makes a tool of the admin endpoint.
func adminTool[In any](name app.Tool, do func(context.Context, In) (any, error)) *tool {
	return define("admin", name, do)
}

// reading makes one that changes nothing.
func reading[In any](name app.Tool, do func(context.Context, In) (any, error)) *tool {
	t := adminTool(name, do)
	t.reads = true
	return t
}

// action makes a tool that asks one thing of a task.
func action(name app.Tool, do func(context.Context, string) (*app.TaskView, error)) *tool {
	return adminTool(name, func(ctx context.Context, in taskRef) (any, error) { return one(do(ctx, in.Task)) })
}

// adminTools are all tools, those of one noun together.
func adminTools(api app.API) []*tool {
	var all []*tool
	for _, group := range [][]*tool{projectTools(api), taskTools(api), decisionTools(api), viewTools(api), storyTools(api), shipTools(api), mergeTools(api)} {
		all = append(all, group...)
	}
	return all
}

func projectTools(api app.API) []*tool {
	return []*tool{
		adminTool("add_project", func(ctx context.Context, in app.ProjectInput) (any, error) { return one(api.AddProject(ctx, in)) }),
		reading("list_projects", func(ctx context.Context, _ nothing) (any, error) { return listed(api.Projects(ctx)) }),
		reading("show_project", func(ctx context.Context, in projectRef) (any, error) { return one(api.Project(ctx, in.Project)) }),
		adminTool("change_project", func(ctx context.Context, in projectChange) (any, error) {
			return one(api.SetProject(ctx, in.Ref, in.ProjectInput))
		}),
		reading("list_templates", func(ctx context.Context, in projectRef) (any, error) { return listed(api.Templates(ctx, in.Project)) }),
	}
}

func taskTools(api app.API) []*tool {
	return []*tool{
		adminTool("create_task", func(ctx context.Context, in taskCreation) (any, error) {
			in.IdempotencyKey = in.Key
			return one(api.CreateTask(ctx, in.TaskRequest))
		}),
		reading("list_tasks", func(ctx context.Context, in app.TaskQuery) (any, error) {
			page, err := api.Tasks(ctx, in)
			page.Items = append([]*work.Task{}, page.Items...)
			return page, err
		}),
		reading("show_task", func(ctx context.Context, in taskRef) (any, error) { return one(api.Task(ctx, in.Task)) }),
		adminTool("change_task", func(ctx context.Context, in taskChange) (any, error) {
			return one(api.PatchTask(ctx, in.Task, in.TaskPatch))
		}),
		action("start_task", api.StartTask),
	}
}

func decisionTools(api app.API) []*tool {
	return []*tool{
		adminTool("accept_task", func(ctx context.Context, in acceptance) (any, error) {
			return one(api.AcceptTask(ctx, in.Task, in.AcceptInput))
		}),
		adminTool("reject_task", func(ctx context.Context, in rejection) (any, error) {
			return one(api.RejectTask(ctx, in.Task, in.RejectInput))
		}),
		adminTool("answer_task", func(ctx context.Context, in speech) (any, error) { return one(api.AnswerTask(ctx, in.Task, in.Text)) }),
		adminTool("message_task", func(ctx context.Context, in speech) (any, error) { return one(api.MessageTask(ctx, in.Task, in.Text)) }),
		adminTool("retry_task", func(ctx context.Context, in retrial) (any, error) { return one(api.RetryTask(ctx, in.Task, in.Fresh)) }),
		action("cancel_task", api.CancelTask),
		action("submit_task", api.SubmitTask),
		action("drop_task", api.DropTask),
		action("postpone_task", api.PostponeTask),
	}
}

func viewTools(api app.API) []*tool {
	return []*tool{
		reading("show_tree", func(ctx context.Context, in taskRef) (any, error) { return one(api.TaskTree(ctx, in.Task)) }),
		reading("show_diff", func(ctx context.Context, in taskRef) (any, error) { return diffOf(ctx, api, in.Task) }),
		reading("list_events", func(ctx context.Context, in eventArguments) (any, error) {
			last, err := newest(in.Last)
			if err != nil {
				return nil, err
			}
			all, err := api.TaskEvents(ctx, in.Task)
			return listed(all[max(0, len(all)-last):], err)
		}),
		reading("list_executions", func(ctx context.Context, in taskRef) (any, error) { return listed(api.Executions(ctx, in.Task)) }),
		reading("show_execution", func(ctx context.Context, in executionRef) (any, error) { return one(api.Execution(ctx, in.Execution)) }),
		reading("read_log", func(ctx context.Context, in logArguments) (any, error) {
			last, err := newest(in.Last)
			if err != nil {
				return nil, err
			}
			return logOf(ctx, api, in.Execution, last)
		}),
		reading("list_roles", func(ctx context.Context, _ nothing) (any, error) { return listed(api.Roles(ctx)) }),
		reading("show_role", func(ctx context.Context, in roleRef) (any, error) { return listed(api.Role(ctx, in.Role)) }),
		reading("list_attention", func(ctx context.Context, _ nothing) (any, error) { return listed(api.Attention(ctx)) }),
		reading("list_agents", func(ctx context.Context, _ nothing) (any, error) { return listed(api.Agents(ctx)) }),
	}
}

func storyTools(api app.API) []*tool {
	return []*tool{
		adminTool("elaborate_story", func(ctx context.Context, in elaboration) (any, error) {
			in.IdempotencyKey = in.Key
			return one(api.Elaborate(ctx, in.ElaborateInput))
		}),
		adminTool("approve_plan", func(ctx context.Context, in planApproval) (any, error) {
			in.IdempotencyKey = in.Key
			return one(api.ApprovePlan(ctx, in.ApproveInput))
		}),
		reading("list_stories", func(ctx context.Context, in app.StoryQuery) (any, error) {
			page, err := api.Stories(ctx, in)
			page.Items = append([]*work.Story{}, page.Items...)
			return page, err
		}),
		reading("show_story", func(ctx context.Context, in storyRef) (any, error) { return one(api.Story(ctx, in.Story)) }),
		adminTool("change_story", func(ctx context.Context, in storyChange) (any, error) {
			return one(api.EditStory(ctx, in.Story, in.StoryPatch))
		}),
		adminTool("approve_story", func(ctx context.Context, in storyRef) (any, error) { return one(api.ApproveStory(ctx, in.Story)) }),
		reading("show_story_tree", func(ctx context.Context, in storyRef) (any, error) { return one(api.StoryTree(ctx, in.Story)) }),
		reading("list_epics", func(ctx context.Context, _ nothing) (any, error) { return listed(api.Epics(ctx)) }),
		adminTool("add_epic", func(ctx context.Context, in app.EpicInput) (any, error) { return one(api.AddEpic(ctx, in)) }),
	}
}

func shipTools(api app.API) []*tool {
	return []*tool{
		adminTool("accept_story", func(ctx context.Context, in storyRef) (any, error) { return one(api.AcceptStory(ctx, in.Story)) }),
		adminTool("reject_story", func(ctx context.Context, in storyRejection) (any, error) {
			return one(api.RejectStory(ctx, in.Story, in.RejectInput))
		}),
		adminTool("ship_story", func(ctx context.Context, in shipment) (any, error) {
			return one(api.ShipStory(ctx, in.Story, app.ShipRequest{IdempotencyKey: in.Key}))
		}),
		adminTool("stop_deploy", func(ctx context.Context, in storyRef) (any, error) { return one(api.StopDeploy(ctx, in.Story)) }),
		adminTool("cancel_story", func(ctx context.Context, in storyRef) (any, error) { return one(api.CancelStory(ctx, in.Story)) }),
	}
}

func mergeTools(api app.API) []*tool {
	return []*tool{
		adminTool("start_merge", func(ctx context.Context, in landing) (any, error) { return one(api.StartMerge(ctx, in.Task, in.Into)) }),
		reading("list_merges", func(ctx context.Context, in landings) (any, error) { return listed(api.Merges(ctx, in.Task)) }),
		reading("show_merge", func(ctx context.Context, in mergeRef) (any, error) { return one(api.Merge(ctx, in.Merge)) }),
		adminTool("continue_merge", func(ctx context.Context, in mergeRef) (any, error) { return one(api.ContinueMerge(ctx, in.Merge)) }),
		adminTool("abort_merge", func(ctx context.Context, in mergeRef) (any, error) { return one(api.AbortMerge(ctx, in.Merge)) }),
	}
}

package app

import "slices"

// Operation is one use case and where people find it. The table of them is how
// several surfaces stay one product: a test walks the methods of [API] and the
// real registries of the surfaces against it, both ways.
type Operation struct {
	Name string // the method of API
	REST Offer  // "METHOD /path"
	CLI  Offer  // the words of the command
	MCP  Offer  // the tool
	Web  Offer  // the action
}

// Offer is how a surface offers an operation, or why it does not.
type Offer struct {
	As      []string
	Because string // why there is none
}

func as(names ...string) Offer { return Offer{As: names} }

func no(because string) Offer { return Offer{Because: because} }

func op(name string, rest, cli, mcp Offer) Operation {
	return Operation{name, rest, cli, mcp, no("built with the web surface")}
}

// Operations is the parity table, in the order of API.
func Operations() []Operation {
	return slices.Concat(projectOperations(), taskOperations(), storyOperations(), mergeOperations(), serverOperations(), viewOperations())
}

func byHand() Offer { return no("what is removed is gone: a person does it by hand") }

func projectOperations() []Operation {
	return []Operation{
		op("AddProject", as("POST /api/projects"), as("project add"), as("add_project")),
		op("Projects", as("GET /api/projects"), as("project list"), as("list_projects")),
		op("Project", as("GET /api/projects/{id}"), as("project show"), as("show_project")),
		op("SetProject", as("PATCH /api/projects/{id}"), as("project set"), as("change_project")),
		op("RemoveProject", as("DELETE /api/projects/{id}"), as("project rm"), byHand()),
		op("Templates", as("GET /api/projects/{id}/templates"), as("template list", "template show", "story approve", "task create"), as("list_templates")),
	}
}

func taskOperations() []Operation {
	return []Operation{
		op("CreateTask", as("POST /api/tasks"), as("task create"), as("create_task")),
		op("Tasks", as("GET /api/tasks"), as("task list"), as("list_tasks")),
		op("Task", as("GET /api/tasks/{id}"), as("task show", "task wait"), as("show_task")),
		op("PatchTask", as("PATCH /api/tasks/{id}"), as("task set"), as("change_task")),
		op("StartTask", as("POST /api/tasks/{id}/start"), as("task start"), as("start_task")),
		op("AcceptTask", as("POST /api/tasks/{id}/accept"), as("task accept"), as("accept_task")),
		op("RejectTask", as("POST /api/tasks/{id}/reject"), as("task reject"), as("reject_task")),
		op("AnswerTask", as("POST /api/tasks/{id}/answer"), as("task answer"), as("answer_task")),
		op("MessageTask", as("POST /api/tasks/{id}/message"), as("task message"), as("message_task")),
		op("RetryTask", as("POST /api/tasks/{id}/retry"), as("task retry"), as("retry_task")),
		op("CancelTask", as("POST /api/tasks/{id}/cancel"), as("task cancel"), as("cancel_task")),
		op("SubmitTask", as("POST /api/tasks/{id}/submit"), as("task submit"), as("submit_task")),
		op("DropTask", as("POST /api/tasks/{id}/drop"), as("task drop"), as("drop_task")),
		op("PostponeTask", as("POST /api/tasks/{id}/postpone"), as("task postpone"), as("postpone_task")),
		op("RemoveTask", as("DELETE /api/tasks/{id}"), as("task rm"), byHand()),

		op("Subtasks", as("GET /api/tasks/{id}/subtasks"), no("task tree shows them with all that belongs to them"), no("show_tree shows them with all that belongs to them")),
		op("TaskTree", as("GET /api/tasks/{id}/tree"), as("task tree"), as("show_tree")),
		op("TaskDiff", as("GET /api/tasks/{id}/diff"), as("task diff"), as("show_diff")),
		op("TaskEvents", as("GET /api/tasks/{id}/events"), as("events"), as("list_events")),
		op("Executions", as("GET /api/tasks/{id}/executions"), as("task show"), as("list_executions")),
		op("Execution", as("GET /api/executions/{id}"), as("task logs"), as("show_execution")),
		op("Transcript", as("GET /api/executions/{id}/log"), as("task logs"), as("read_log")),
	}
}

func storyOperations() []Operation {
	return []Operation{
		op("Elaborate", as("POST /api/stories/elaborate"), as("story elaborate"), as("elaborate_story")),
		op("ApprovePlan", as("POST /api/stories/approve"), as("story approve"), as("approve_plan")),
		op("Stories", as("GET /api/stories"), as("story list"), as("list_stories")),
		op("Story", as("GET /api/stories/{id}"), as("story show", "story plan", "story wait", "story watch"), as("show_story")),
		op("EditStory", as("PATCH /api/stories/{id}"), as("story set"), as("change_story")),
		op("ApproveStory", as("POST /api/stories/{id}/approve"), as("story approve"), as("approve_story")),
		op("AcceptStory", as("POST /api/stories/{id}/accept"), as("story accept"), as("accept_story")),
		op("RejectStory", as("POST /api/stories/{id}/reject"), as("story reject"), as("reject_story")),
		op("ShipStory", as("POST /api/stories/{id}/ship"), as("story ship"), as("ship_story")),
		op("StopDeploy", as("POST /api/stories/{id}/stop-deploy"), as("story stop-deploy"), as("stop_deploy")),
		op("CancelStory", as("POST /api/stories/{id}/cancel"), as("story cancel"), as("cancel_story")),
		op("StoryTree", as("GET /api/stories/{id}/task-tree"), as("story tree"), as("show_story_tree")),
		op("Epics", as("GET /api/epics"), as("epic list"), as("list_epics")),
		op("AddEpic", as("POST /api/epics"), as("epic add"), as("add_epic")),
	}
}

func mergeOperations() []Operation {
	return []Operation{
		op("StartMerge", as("POST /api/tasks/{id}/merge"), as("merge start"), as("start_merge")),
		op("Merges", as("GET /api/merges", "GET /api/tasks/{id}/merges"), as("merge list"), as("list_merges")),
		op("Merge", as("GET /api/merges/{id}"), as("merge status", "merge open"), as("show_merge")),
		op("ContinueMerge", as("POST /api/merges/{id}/continue"), as("merge continue"), as("continue_merge")),
		op("AbortMerge", as("POST /api/merges/{id}/abort"), as("merge abort"), as("abort_merge")),
	}
}

func serverOperations() []Operation {
	secret := no("credentials are the person's own: what an agent reads must not get it any")
	machine := no("the server's disk is the person's to look after: no task needs it, and an agent could write anywhere on it")
	return []Operation{
		op("Roles", as("GET /api/roles"), as("role list"), as("list_roles")),
		op("Role", as("GET /api/roles/{name}"), as("role show"), as("show_role")),
		op("SetRole", as("PUT /api/roles/{name}"), as("role set"), no("who judges, and by which prompt, is not for those whose work is judged to say")),

		op("Tokens", as("GET /api/tokens"), as("token list"), secret),
		op("CreateToken", as("POST /api/tokens"), as("token create"), secret),
		op("RevokeToken", as("DELETE /api/tokens/{id}"), as("token revoke"), secret),
		op("Disk", as("GET /api/disk"), as("disk"), machine),
		op("ReclaimDisk", as("POST /api/disk/reclaim"), as("disk"), machine),
		op("Snapshots", as("GET /api/rescue", "GET /api/tasks/{id}/rescue"), as("rescue"), machine),
		op("RestoreSnapshot", as("POST /api/rescue"), as("rescue"), machine),
	}
}

func viewOperations() []Operation {
	return []Operation{
		op("Attention", as("GET /api/attention"), as("attention"), as("list_attention")),
		op("Agents", as("GET /api/agents"), as("agent list"), as("list_agents")),
		op("Stats", as("GET /api/stats"), no("counts are for pages and for /metrics"), no("counts are for pages and for /metrics")),
		op("Events", as("GET /api/events"), as("events"), no("a tool answers once; list_attention and list_events say what has happened")),
	}
}

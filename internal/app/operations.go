package app

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

// Operations is the parity table, in the order of API.
func Operations() []Operation {
	mcp, web := no("the MCP surface for people (/mcp/admin) is not built yet; running agents have tools of their own"), no("built with the web surface")
	op := func(name string, rest, cli Offer) Operation { return Operation{name, rest, cli, mcp, web} }
	return []Operation{
		op("AddProject", as("POST /api/projects"), as("project add")),
		op("Projects", as("GET /api/projects"), as("project list")),
		op("Project", as("GET /api/projects/{id}"), as("project show")),
		op("SetProject", as("PATCH /api/projects/{id}"), as("project set")),
		op("RemoveProject", as("DELETE /api/projects/{id}"), as("project rm")),

		op("CreateTask", as("POST /api/tasks"), as("task create")),
		op("Tasks", as("GET /api/tasks"), as("task list")),
		op("Task", as("GET /api/tasks/{id}"), as("task show", "task wait")),
		op("PatchTask", as("PATCH /api/tasks/{id}"), as("task set")),
		op("StartTask", as("POST /api/tasks/{id}/start"), as("task start")),
		op("AcceptTask", as("POST /api/tasks/{id}/accept"), as("task accept")),
		op("RejectTask", as("POST /api/tasks/{id}/reject"), as("task reject")),
		op("AnswerTask", as("POST /api/tasks/{id}/answer"), as("task answer")),
		op("MessageTask", as("POST /api/tasks/{id}/message"), as("task message")),
		op("RetryTask", as("POST /api/tasks/{id}/retry"), as("task retry")),
		op("CancelTask", as("POST /api/tasks/{id}/cancel"), as("task cancel")),
		op("SubmitTask", as("POST /api/tasks/{id}/submit"), as("task submit")),
		op("DropTask", as("POST /api/tasks/{id}/drop"), as("task drop")),
		op("PostponeTask", as("POST /api/tasks/{id}/postpone"), as("task postpone")),
		op("RemoveTask", as("DELETE /api/tasks/{id}"), as("task rm")),

		op("Subtasks", as("GET /api/tasks/{id}/subtasks"), no("task tree shows them with all that belongs to them")),
		op("TaskTree", as("GET /api/tasks/{id}/tree"), as("task tree")),
		op("TaskDiff", as("GET /api/tasks/{id}/diff"), as("task diff")),
		op("TaskEvents", as("GET /api/tasks/{id}/events"), as("events")),
		op("Executions", as("GET /api/tasks/{id}/executions"), as("task show")),
		op("Execution", as("GET /api/executions/{id}"), as("task logs")),
		op("Transcript", as("GET /api/executions/{id}/log"), as("task logs")),

		op("StartMerge", as("POST /api/tasks/{id}/merge"), as("merge start")),
		op("Merges", as("GET /api/merges", "GET /api/tasks/{id}/merges"), as("merge list")),
		op("Merge", as("GET /api/merges/{id}"), as("merge status")),
		op("ContinueMerge", as("POST /api/merges/{id}/continue"), as("merge continue")),
		op("AbortMerge", as("POST /api/merges/{id}/abort"), as("merge abort")),

		op("Roles", as("GET /api/roles"), as("role list")),
		op("Role", as("GET /api/roles/{name}"), as("role show")),
		op("SetRole", as("PUT /api/roles/{name}"), as("role set")),

		op("Tokens", as("GET /api/tokens"), as("token list")),
		op("CreateToken", as("POST /api/tokens"), as("token create")),
		op("RevokeToken", as("DELETE /api/tokens/{id}"), as("token revoke")),

		op("Attention", as("GET /api/attention"), as("attention")),
		op("Agents", as("GET /api/agents"), no("a command that names an unknown agent type is told which there are")),
		op("Stats", as("GET /api/stats"), no("counts are for pages and for /metrics")),
		op("Events", as("GET /api/events"), as("events")),
	}
}

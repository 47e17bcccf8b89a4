package mcp

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

//go:embed tools/*.md admin/*.md
var descriptions embed.FS

// tool is one tool: what agents are told of it, and what it does.
type tool struct {
	name        app.Tool
	description string
	schema      *jsonschema.Schema
	reads       bool // changes nothing
	call        func(ctx context.Context, arguments []byte) (any, error)
}

// define makes a tool that takes In and is described in a folder. It panics
// where a description is missing or In has no schema: no input of a caller can
// cause that.
func define[In any](folder string, name app.Tool, do func(context.Context, In) (any, error)) *tool {
	text, err := descriptions.ReadFile(folder + "/" + string(name) + ".md")
	if err != nil {
		panic(fmt.Sprintf("mcp: describe %s: %v", name, err))
	}
	schema, err := schemaOf[In](folder == "tools")
	if err != nil {
		panic(fmt.Sprintf("mcp: schema of %s: %v", name, err))
	}
	t := &tool{name: name, description: strings.TrimSpace(string(text)), schema: schema}
	t.call = func(ctx context.Context, arguments []byte) (any, error) {
		var in In
		if err := t.decode(arguments, &in); err != nil {
			return nil, err
		}
		return do(ctx, in)
	}
	return t
}

// runTool makes a tool of the run endpoint.
func runTool[In any](name app.Tool, do func(context.Context, app.RunCaller, In) (any, error)) *tool {
	return define("tools", name, func(ctx context.Context, in In) (any, error) { return do(ctx, callerOf(ctx), in) })
}

// The arguments of each tool. Their descriptions are read by models.
type (
	spawnArguments struct {
		Name               string   `json:"name" jsonschema:"short title, unique among your subtasks"`
		Instructions       string   `json:"instructions" jsonschema:"the prompt of the subtask's agent"`
		DependsOn          []string `json:"depends_on,omitempty" jsonschema:"names or ids of your own subtasks that must be done before"`
		AcceptanceCriteria []string `json:"acceptance_criteria,omitempty" jsonschema:"what must be true of the result, each checkable by a reviewer who sees nothing else"`
		Role               string   `json:"role,omitempty" jsonschema:"builder, or left out for your own role"`
	}
	suggestArguments struct {
		Title       string `json:"title" jsonschema:"short title, unique among your suggestions"`
		Description string `json:"description" jsonschema:"the prompt of the agent that will do it"`
	}
	askArguments struct {
		Question string   `json:"question" jsonschema:"the question, with what a person must know to answer it"`
		Options  []string `json:"options,omitempty" jsonschema:"answers to choose from"`
	}
	blockerArguments struct {
		Text string `json:"text" jsonschema:"the obstacle"`
	}
	summaryArguments struct {
		Text string `json:"text" jsonschema:"the summary, as Markdown"`
	}
	verdictArguments struct {
		Approved  bool        `json:"approved" jsonschema:"whether the work is accepted"`
		Reasoning string      `json:"reasoning" jsonschema:"why, in a few sentences"`
		Criteria  []criterion `json:"criteria,omitempty" jsonschema:"one entry for each acceptance criterion"`
		Findings  []finding   `json:"findings,omitempty" jsonschema:"one entry for each objection"`
		Evidence  []evidence  `json:"evidence,omitempty" jsonschema:"commands that you ran"`
	}
	criterion struct {
		Criterion string `json:"criterion" jsonschema:"the text of the criterion, copied exactly"`
		Met       bool   `json:"met" jsonschema:"whether the work meets it"`
		How       string `json:"how" jsonschema:"how you verified it"`
	}
	finding struct {
		Kind     string `json:"kind" jsonschema:"one or two words for the kind of problem, such as missing-test"`
		Severity string `json:"severity,omitempty" jsonschema:"high, medium or low"`
		File     string `json:"file,omitempty" jsonschema:"path in the repository"`
		Line     int    `json:"line,omitempty" jsonschema:"line in the file, from 1"`
		Text     string `json:"text" jsonschema:"what is wrong and what would be right"`
	}
	evidence struct {
		Command  string `json:"command" jsonschema:"the command"`
		ExitCode int    `json:"exit_code" jsonschema:"its exit code"`
		Output   string `json:"output,omitempty" jsonschema:"the lines of its output that matter"`
	}
	planArguments struct {
		Plan app.PlanInput `json:"plan" jsonschema:"the whole plan"`
	}
	lessonsArguments struct {
		Lessons []string `json:"lessons" jsonschema:"one entry for each lesson, at most 1000 bytes; an empty list when there is none"`
	}
	contextArguments struct{}
)

// What tools return, besides the context.
type (
	spawned struct {
		TaskID work.TaskID `json:"task_id"`
	}
	parked struct {
		Parked bool `json:"parked"`
	}
	recorded struct {
		OK bool `json:"ok"`
	}
)

// tools are all tools, on top of what runs can do.
func tools(run app.RunTools) []*tool {
	return []*tool{
		runTool(app.ToolSpawn, func(ctx context.Context, c app.RunCaller, in spawnArguments) (any, error) {
			id, err := run.Spawn(ctx, c, app.SpawnInput{
				Name: in.Name, Instructions: in.Instructions, DependsOn: in.DependsOn,
				AcceptanceCriteria: in.AcceptanceCriteria, Role: work.Role(in.Role),
			})
			return spawned{id}, err
		}),
		runTool(app.ToolSuggest, func(ctx context.Context, c app.RunCaller, in suggestArguments) (any, error) {
			id, err := run.Suggest(ctx, c, in.Title, in.Description)
			return spawned{id}, err
		}),
		runTool(app.ToolAsk, func(ctx context.Context, c app.RunCaller, in askArguments) (any, error) {
			return parked{true}, run.Ask(ctx, c, work.Question{Text: in.Question, Options: in.Options})
		}),
		runTool(app.ToolBlocker, func(ctx context.Context, c app.RunCaller, in blockerArguments) (any, error) {
			return recorded{true}, run.Report(ctx, c, app.RunReport{Blocker: in.Text})
		}),
		runTool(app.ToolSummary, func(ctx context.Context, c app.RunCaller, in summaryArguments) (any, error) {
			return recorded{true}, run.Report(ctx, c, app.RunReport{Summary: in.Text})
		}),
		runTool(app.ToolVerdict, func(ctx context.Context, c app.RunCaller, in verdictArguments) (any, error) {
			return recorded{true}, run.Report(ctx, c, app.RunReport{Verdict: in.verdict()})
		}),
		planTool(run),
		runTool(app.ToolLessons, func(ctx context.Context, c app.RunCaller, in lessonsArguments) (any, error) {
			return recorded{true}, run.Report(ctx, c, app.RunReport{Lessons: &in.Lessons})
		}),
		runTool(app.ToolContext, func(ctx context.Context, c app.RunCaller, _ contextArguments) (any, error) {
			known, err := run.Context(ctx, c)
			if err != nil {
				return nil, err
			}
			return withLists(*known), nil
		}),
	}
}

// planTool takes a plan, and hands on with it what of it does not fit: the planner
// is told in one answer all that is wrong, and its story keeps it.
func planTool(run app.RunTools) *tool {
	t := runTool[planArguments](app.ToolPlan, nil)
	t.call = func(ctx context.Context, arguments []byte) (any, error) {
		var in planArguments
		given, err := t.parse(arguments, &in)
		if err != nil {
			return nil, err
		}
		var f faults
		f.check(t.schema, "", given)
		if fields, _ := given.(map[string]any); !isObject(fields["plan"]) {
			wrong := slices.Concat(f.misfits, f.gaps)
			err := run.Report(ctx, callerOf(ctx), app.RunReport{Misfits: wrong})
			if e, ok := work.AsError(err); ok && e.Reason == "plan" {
				err = t.refuse("%s", some(wrong))
			}
			return nil, err
		}
		// What is missing or empty in a plan its own rules name; what fits of one is
		// read, and held to them.
		if err := json.Unmarshal(arguments, &in); err != nil && len(f.misfits) == 0 {
			f.misfit("%v", err)
		}
		return recorded{true}, run.Report(ctx, callerOf(ctx), app.RunReport{Plan: &in.Plan, Misfits: f.misfits})
	}
	return t
}

func isObject(value any) bool {
	_, is := value.(map[string]any)
	return is
}

// withLists makes empty lists of those that are nil: scripts iterate over them.
func withLists(c app.RunContext) app.RunContext {
	c.Criteria = append([]string{}, c.Criteria...)
	c.Lessons = append([]string{}, c.Lessons...)
	c.Interactions = append([]work.Interaction{}, c.Interactions...)
	c.Siblings = append([]*work.Task{}, c.Siblings...)
	return c
}

func (in verdictArguments) verdict() *work.Verdict {
	v := &work.Verdict{Approved: in.Approved, Reasoning: in.Reasoning}
	for _, c := range in.Criteria {
		v.Criteria = append(v.Criteria, work.Criterion(c))
	}
	for _, f := range in.Findings {
		v.Findings = append(v.Findings, work.Finding{Kind: f.Kind, Severity: f.Severity, File: f.File, Line: f.Line, Text: f.Text})
	}
	for _, e := range in.Evidence {
		v.Evidence = append(v.Evidence, work.Evidence(e))
	}
	return v
}

package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

// TestStoryOutput holds what people and programs read of stories to golden files.
func TestStoryOutput(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"story-list": "story list", "story-list-json": "story list -o json", "story-show": "story show giftcards2345678", "story-show-json": "story show giftcards2345678 -o json",
		"story-show-missing": "story show nobody", "story-tree": "story tree giftcards2345678", "story-tree-json": "story tree giftcards2345678 -o json",
		"story-plan": "story plan giftcards2345678", "story-plan-json": "story plan giftcards2345678 -o json", "story-accept": "story accept giftcards2345678",
		"story-cancel-json": "story cancel giftcards2345678 -o json", "story-ship": "story ship giftcards2345678", "story-ship-json": "story ship giftcards2345678 -o json",
		"story-elaborate": "story elaborate cards", "story-elaborate-json": "story elaborate cards -o json", "story-approve": "story approve giftcards2345678",
		"story-approve-json": "story approve giftcards2345678 -o json", "epic-list": "epic list", "epic-list-json": "epic list -o json", "epic-add": "epic add Payment",
		"epic-add-json": "epic add Payment -o json", "attention-story": "attention",
	}
	for name, args := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			golden(t, "output/"+name, run(t.Context(), cards(), nil, strings.Fields(args)...).String())
		})
	}
	for name, args := range map[string]string{"story-show-draft": "story show giftcards2345678", "story-tree-draft": "story tree giftcards2345678", "story-set-draft": "story set giftcards2345678 --name Cards"} {
		golden(t, "output/"+name, run(t.Context(), draftOf(cards()), nil, strings.Fields(args)...).String())
	}
	paused := cards()
	v := paused.stories[0]
	v.Status, v.Ship.Step, v.Ship.Error, v.ValidationResult, v.Actions = work.Shipping, work.ShipLand, "", nil, nil
	paused.events = paused.events[:5]
	v.Paused, v.Needs = true, "the ship is paused: landing on main conflicts in a.go"
	paused.items = []work.Item{{Kind: work.ItemConflict, StoryID: v.ID, TaskID: v.RootID, Name: v.Name, Text: "landing on main conflicts in a.go"}}
	golden(t, "output/story-show-paused", run(t.Context(), paused, nil, "story", "show", "Gift cards").String())
	for _, args := range []string{"story list", "epic list"} {
		if r := run(t.Context(), &fake{}, nil, append(strings.Fields(args), "-o", "json")...); r.out != "[]\n" {
			t.Errorf("%s: %+v", args, r)
		}
		if r := run(t.Context(), &fake{}, nil, strings.Fields(args)...); !strings.HasPrefix(r.out, "no ") {
			t.Errorf("%s: %+v", args, r)
		}
	}
}

// TestStoryActions: what each command asks of the server.
func TestStoryActions(t *testing.T) {
	t.Parallel()
	tests := map[string][]string{
		"approve":                            {"story", "approve", "giftcards2345678"},
		"accept":                             {"story", "accept", "Gift cards"},
		`reject "no" [] extra 2`:             {"story", "reject", "giftcards2345678", "no", "--extra", "2"},
		`reject "" [a.go:3 x] extra 0`:       {"story", "reject", "giftcards2345678", "--at", "a.go:3=x"},
		`reject "from\nstdin" [b y] extra 0`: {"story", "reject", "giftcards2345678", "-F", "-", "--at", "b=y"},
		"ship k":                             {"story", "ship", "giftcards2345678", "--idempotency-key", "k"},
		"stop-deploy":                        {"story", "stop-deploy", "giftcards2345678"},
		"cancel story":                       {"story", "cancel", "giftcards2345678"},
		"stories {Project:shop Epic:Payment Statuses:[SHIPPABLE DRAFT] Text:x After: Limit:7}": {"story", "list", "--project", "shop", "--epic", "Payment", "--status", "shippable,Draft", "--text", "x", "--limit", "7"},
	}
	for want, args := range tests {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			api := cards()
			r := run(t.Context(), api, func(d *Deps) { d.In = strings.NewReader("from\nstdin\n") }, args...)
			if !slices.Equal(api.asked, []string{want}) || r.code != 0 {
				t.Errorf("asked %q: %+v", api.asked, r)
			}
		})
	}
}

// TestStoryUsage: a mistake in every command.
func TestStoryUsage(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ args, want string }{
		"no goal":                    {"story elaborate", "needs a goal\nhint: say what is wanted"},
		"two goals":                  {"story elaborate goal -f goal.md", "takes one goal"},
		"empty goal":                 {"story elaborate -", "the goal is empty"},
		"nothing to approve":         {"story approve", "needs STORY, or a plan with -f"},
		"flag beside story":          {"story approve x --draft", "--draft does not go with STORY\nhint: change the story with"},
		"no plan file":               {"story approve -f testdata/none.yaml", "read the file: open testdata/none.yaml"},
		"unknown status":             {"story list --status SHIPABLE", "there is no story status \"SHIPABLE\"\nhint: did you mean SHIPPABLE?"},
		"unknown status to wait":     {"story wait x --for DONE", "there is no story status \"DONE\"\nhint: one of: DRAFT, "},
		"negative limit":             {"story list --limit -1", "--limit must not be negative"},
		"negative timeout":           {"story wait x --timeout -1s", "--timeout must not be negative"},
		"nothing to set":             {"story set x", "nothing to change was given"},
		"two specs":                  {"story set x --spec a --spec-file b", "cannot be given together"},
		"reject without a word":      {"story reject x", "needs a text"},
		"reject at no place":         {"story reject x --at y", "--at takes FILE[:LINE]=TEXT"},
		"negative extra":             {"story reject x -m no --extra -1", "--extra must not be negative"},
		"show nothing":               {"story show", "claudomator story show needs STORY"},
		"plan nothing":               {"story plan", "claudomator story plan needs STORY"},
		"tree of two":                {"story tree a b", "does not take \"b\""},
		"watch nothing":              {"story watch", "needs STORY"},
		"ship nothing":               {"story ship", "needs STORY"},
		"stop-deploy nothing":        {"story stop-deploy", "needs STORY"},
		"cancel nothing":             {"story cancel", "needs STORY"},
		"accept nothing":             {"story accept", "needs STORY"},
		"misspelt":                   {"story elaborat x", "did you mean `claudomator story elaborate`?"},
		"edit":                       {"story edit x", "claudomator story has no command \"edit\""},
		"epic without a name":        {"epic add", "claudomator epic add needs NAME"},
		"epics of what":              {"epic list x", "does not take \"x\""},
		"lessons twice":              {"project set shop --lesson a --add-lesson b", "--lesson replaces all lessons"},
		"no such lesson":             {"project set shop --drop-lesson 3", "there is no lesson 3: the project has 0\nhint: claudomator project show shop numbers them"},
		"lesson by name":             {"project set shop --drop-lesson x", "invalid argument \"x\" for \"--drop-lesson\""},
		"misspelt flag of elaborate": {"story elaborate --projct x goal", "did you mean --project?"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := run(t.Context(), shop(), nil, strings.Fields(tt.args)...)
			if r.code != 2 || r.out != "" || !strings.HasPrefix(r.err, "error: ") || !strings.Contains(r.err, tt.want) {
				t.Errorf("exit %d, out %q, errors %q; want exit 2 and %q", r.code, r.out, r.err, tt.want)
			}
		})
	}
	for _, command := range []string{"show", "plan", "tree", "watch", "wait", "accept", "ship", "stop-deploy", "cancel", "approve"} {
		r := run(t.Context(), shop(), nil, "story", command, "nobody")
		if r.code != 3 || r.err != "error: there is no story \"nobody\"\nhint: claudomator story list shows which there are\n" {
			t.Errorf("%s of nobody: %+v", command, r)
		}
	}
}

// TestElaborate: every flag arrives at its place, and the goal from everywhere.
func TestElaborate(t *testing.T) {
	t.Parallel()
	goal := func(d *Deps) { d.In = strings.NewReader("from\nstdin\n") }
	for args, want := range map[string]app.ElaborateInput{
		"story elaborate --project shop --name N --policy checked --epic Payment --agent claude --idempotency-key k cards": {Project: "shop", Name: "N", Policy: "checked", Epic: "Payment", Agent: "claude", IdempotencyKey: "k", Goal: "cards"},
		"story elaborate -":    {Goal: "from\nstdin\n"},
		"story elaborate -f -": {Goal: "from\nstdin\n"},
	} {
		api := cards()
		if r := run(t.Context(), api, goal, strings.Fields(args)...); r.code != 0 {
			t.Errorf("%s: %+v", args, r)
		}
		if diff := cmp.Diff(want, api.goal); diff != "" {
			t.Errorf("%s: -want +got:\n%s", args, diff)
		}
	}
}

// TestApprovePlan: what a file holds arrives, with the flags beside it, and what
// the server finds wrong is told by line.
func TestApprovePlan(t *testing.T) {
	t.Parallel()
	file := func(text string) func(*Deps) { return func(d *Deps) { d.In = strings.NewReader(text) } }
	text := `name: Gift cards
goal: pay
acceptance_criteria: it works
policy: checked
tasks:
  - name: Store
    instructions: |
      In card.go.
    depends_on: []
    subtasks:
      - {name: Index, instructions: Add it.}
  - name: Pay
    instructions: Pay.
    acceptance_criteria: [a, b]
    depends_on: [Store]
validation: {type: test, steps: [go test], success_criteria: passes}
`
	want := app.ApproveInput{
		PlanInput: app.PlanInput{
			Name: "Gift cards", Goal: "pay", AcceptanceCriteria: app.StringList{"it works"}, Policy: "checked",
			Tasks: []app.PlanTaskInput{
				{Name: "Store", Instructions: "In card.go.\n", DependsOn: []string{}, Subtasks: []app.PlanSubtaskInput{{Name: "Index", Instructions: "Add it."}}},
				{Name: "Pay", Instructions: "Pay.", AcceptanceCriteria: app.StringList{"a", "b"}, DependsOn: []string{"Store"}},
			},
			Validation: app.ValidationList{{Type: work.TestValidation, Steps: []string{"go test"}, SuccessCriteria: "passes"}},
		},
		Project: "shop", Epic: "Payment", Draft: true, IdempotencyKey: "k",
	}
	args := strings.Fields("story approve -f - --project shop --epic Payment --draft --idempotency-key k -o json")
	api := &fake{}
	r := run(t.Context(), api, file(text), args...)
	if diff := cmp.Diff(want, api.plan); diff != "" || r.code != 0 {
		t.Errorf("%+v -want +got:\n%s", r, diff)
	}
	var answer struct {
		Story   map[string]any
		TaskIDs []string `json:"task_ids"`
	}
	if err := json.Unmarshal([]byte(r.out), &answer); err != nil || answer.Story["id"] != "made" || !slices.Equal(answer.TaskIDs, []string{"t1", "t2"}) {
		t.Errorf("answered %v %+v", err, answer)
	}
	run(t.Context(), api, file("{\"name\": \"x\", \"project_id\": \"own\", \"validation\": [{\"type\": \"smoke\", \"steps\": [\"a\"]}]}"), "story", "approve", "-f", "-")
	if api.plan.ProjectID != "own" || api.plan.Project != "" || len(api.plan.Validation) != 1 {
		t.Errorf("json: %+v", api.plan)
	}
	run(t.Context(), api, file("{name: x, project_id: own}"), "story", "approve", "-f", "-", "--project", "other")
	if api.plan.Project != "other" || api.plan.ProjectID != "" {
		t.Errorf("the flag counts: %+v", api.plan)
	}
	if r := run(t.Context(), &fake{}, file("name: alone\n"), "story", "approve", "-f", "-", "-o", "json"); !strings.Contains(r.out, `"task_ids": []`) {
		t.Errorf("no tasks: %+v", r)
	}
	// The same over HTTP, where a list of texts has become a list of anything.
	for _, overHTTP := range []bool{false, true} {
		api.planned = func(in app.ApproveInput) error {
			plan := work.Plan{Name: in.Name, Policy: "own", Tasks: []work.PlanTask{{Name: "a"}, {Name: "a", Instructions: "x", DependsOn: []string{"c"}}}, Validation: work.Validations{{Type: "odd"}}}
			e, _ := work.AsError(plan.Check())
			if overHTTP {
				var list []any
				for _, problem := range e.Details["problems"].([]string) { //nolint:forcetypeassert // so it is
					list = append(list, problem)
				}
				e.Details["problems"] = list
			}
			return fmt.Errorf("approve: %w", e)
		}
		r = run(t.Context(), api, file("# a plan\ntasks:\n- name: a\n- name: a\n  instructions: |\n    x\n\n  depends_on: [c]\npolicy: own\nvalidation:\n  type: odd\n"), "story", "approve", "-f", "-")
		wantErr := `error: standard input: line 2: name is missing; line 9: policy "own" is unknown: arbitrated or checked; line 3: tasks[0] "a": instructions are missing; ` +
			`line 4: tasks[1] "a": another task has that name; line 8: tasks[1] "a": depends_on names no task of the plan: "c"; line 11: validation[0]: type "odd" is unknown: build, test or smoke; ` +
			`line 11: validation[0]: steps are missing` + "\nhint: mend them and give the whole plan again\n"
		if r.code != 2 || r.err != wantErr {
			t.Errorf("exit %d\n%s\nwant\n%s", r.code, r.err, wantErr)
		}
	}
}

// TestPlanFile: what is no plan is refused before the server is asked, by line.
func TestPlanFile(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ text, want string }{
		"unknown key":         {"name: x\ntask: []\n", `line 2: there is no key "task"; "tasks" is meant?`},
		"unknown in a task":   {"name: x\ntasks:\n- name: a\n  instruction: b\n", `line 4: there is no key "tasks[0].instruction"; "tasks[0].instructions" is meant?`},
		"unknown in a step":   {"tasks:\n- subtasks:\n  - {nme: a}\n", `line 3: there is no key "tasks[0].subtasks[0].nme"; "tasks[0].subtasks[0].name" is meant?`},
		"unknown in one":      {"validation:\n  kind: test\n", `line 2: there is no key "validation.kind"`},
		"unknown in json":     {"{\n\t\"tasks\": [\n\t\t{\"name\": \"a\",\n\t\t \"stpes\": 1}]}", `line 4: there is no key "tasks[0].stpes"`},
		"tasks no list":       {"tasks: {name: a}\n", "line 1: tasks must be a list"},
		"task no map":         {"tasks:\n- a\n", "line 2: tasks[0] must be a map of keys and values"},
		"validation no map":   {"validation: go test\n", "line 1: validation must be a list"},
		"type no text":        {"validation: {type: [a]}\n", "line 1: validation[0].type: a text is expected, not a list"},
		"steps no list":       {"validation: {steps: a}\n", "line 1: validation[0].steps: a list of texts is expected, not a"},
		"depends_on no list":  {"tasks:\n- depends_on: a\n", "line 2: tasks[0].depends_on: a list of texts is expected, not a"},
		"name twice":          {"name: x\nname: y\n", "line 2: name is given twice"},
		"all at once":         {"nme: x\ntasks:\n- nme: y\n", `line 1: there is no key "nme"; "name" is meant?; line 3: there is no key "tasks[0].nme"`},
		"two plans":           {"name: x\n---\nname: y\n", "line 3: a file holds one plan"},
		"a list":              {"- name: x\n", "line 1: a plan must be a map of keys and values"},
		"nothing":             {"# later\n", "holds no plan\nhint: for example"},
		"no YAML":             {"name: [\n", "standard input: line"},
		"a key of the server": {"name: x\nstatus: DRAFT\n", `line 2: there is no key "status"`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, args := range []string{"story approve -f -", "story set x --plan -"} {
				r := run(t.Context(), nil, func(d *Deps) { d.In = strings.NewReader(tt.text) }, strings.Fields(args)...)
				if want := strings.ReplaceAll(tt.want, "validation.kind", "validation[0].kind"); r.code != 2 || !strings.Contains(r.err, want) || !strings.Contains(r.err, "standard input") {
					t.Errorf("%s: exit %d, %s; want %q", args, r.code, r.err, want)
				}
			}
		})
	}
}

// TestPlanRoundTrip: whatever a plan holds, what story plan prints is read back as
// the same plan.
func TestPlanRoundTrip(t *testing.T) {
	t.Parallel()
	api := cards()
	r := run(t.Context(), api, nil, "story", "plan", "giftcards2345678")
	set := run(t.Context(), api, func(d *Deps) { d.In = strings.NewReader(r.out) }, "story", "set", "giftcards2345678", "--plan", "-")
	if diff := cmp.Diff(planOf(&api.stories[0].Story, "shop"), *api.edit.Plan); diff != "" || set.code != 0 {
		t.Errorf("%+v -want +got:\n%s", set, diff)
	}
	again := run(t.Context(), api, func(d *Deps) { d.In = strings.NewReader(r.out) }, "story", "approve", "-f", "-")
	if diff := cmp.Diff(*api.edit.Plan, api.plan.PlanInput); diff != "" || again.code != 0 {
		t.Errorf("%+v -want +got:\n%s", again, diff)
	}
	asJSON := run(t.Context(), api, nil, "story", "plan", "giftcards2345678", "-o", "json")
	again = run(t.Context(), api, func(d *Deps) { d.In = strings.NewReader(asJSON.out) }, "story", "approve", "-f", "-")
	if diff := cmp.Diff(*api.edit.Plan, api.plan.PlanInput); diff != "" || again.code != 0 {
		t.Errorf("%+v -want +got:\n%s", again, diff)
	}
	for _, text := range []string{r.out, asJSON.out} {
		if strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && r != '\uFFFD' && inertRune(r) != r }) {
			t.Errorf("acts on a terminal: %q", text)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
			"a\nb\n", "a\nb", "  indented\nmore", "\n", " ", "a: b", "# no comment", "- x", "yes", "1.5", "null", "~", "tab\there", "ends \n", "x\r\ny", "a\n\n\nb\n\n", "'", "\"", "\u2028", "\ufeff", "| x", "{}", "[]", "*a", "&a", "!x", "%",
		}))
		list := rapid.SliceOfN(texts, 1, 3)
		in := app.PlanInput{Name: texts.Draw(t, "name"), Goal: texts.Draw(t, "goal"), Spec: texts.Draw(t, "spec"), AcceptanceCriteria: list.Draw(t, "criteria")}
		for range rapid.IntRange(0, 2).Draw(t, "tasks") {
			in.Tasks = append(in.Tasks, app.PlanTaskInput{Name: texts.Draw(t, "n"), Instructions: texts.Draw(t, "i"), DependsOn: list.Draw(t, "d"), Subtasks: []app.PlanSubtaskInput{{Name: texts.Draw(t, "s")}}})
		}
		for range rapid.IntRange(0, 2).Draw(t, "validations") {
			in.Validation = append(in.Validation, work.Validation{Type: work.SmokeValidation, Steps: list.Draw(t, "steps")})
		}
		text, err := writePlan(in)
		if err != nil {
			t.Fatal(err)
		}
		var back app.PlanInput
		if _, err := parsePlan("f", []byte(text), &back); err != nil {
			if in.Name+in.Goal+in.Spec == "" && strings.Contains(err.Error(), "holds no plan") {
				return
			}
			t.Fatalf("%v\n%s", err, text)
		}
		if diff := cmp.Diff(in, back); diff != "" {
			t.Fatalf("-want +got:\n%s\n%s", diff, text)
		}
	})
}

// FuzzPlanFile: whatever stands in a file, it is read or refused as invalid, and
// every problem of the server finds a line or none.
func FuzzPlanFile(f *testing.F) {
	for _, seed := range []string{"name: a\ntasks: [{name: b}]\n", "{\"validation\": {\"steps\": [1]}}", "tasks: &a [*a]\n", "a: &x {b: *x}\n", "tasks:\n- &t {name: a}\n- *t\n"} {
		f.Add(seed, `tasks[0] "a": subtasks[1] needs a name`)
	}
	f.Fuzz(func(t *testing.T, text, problem string) {
		var in app.ApproveInput
		plan, err := parsePlan("f", []byte(text), &in)
		if err != nil && work.CodeOf(err) != work.Invalid {
			t.Errorf("error %v", err)
		}
		if err == nil && (plan.node.Kind != yaml.MappingNode && plan.node.Kind != yaml.AliasNode || plan.lineOf(problem) < 0) {
			t.Errorf("node %v", plan.node)
		}
	})
}

// TestStorySet: only what was given is sent.
func TestStorySet(t *testing.T) {
	t.Parallel()
	api := cards()
	r := run(t.Context(), api, func(d *Deps) { d.In = strings.NewReader("the spec\n") }, "story", "set", "Gift cards", "--name", "n", "--goal", "g", "--spec-file", "-", "--policy", "checked", "--branch", "story/x", "--accept", "a, b", "--accept", "c", "--epic", "")
	p := func(text string) *string { return &text }
	want := app.StoryPatch{Name: p("n"), Goal: p("g"), Spec: p("the spec\n"), Policy: p("checked"), BranchName: p("story/x"), AcceptanceCriteria: &app.StringList{"a, b", "c"}, Epic: p("")}
	if diff := cmp.Diff(want, api.edit); diff != "" || r.code != 0 {
		t.Errorf("%+v -want +got:\n%s", r, diff)
	}
	api.stories[0].Plan, api.stories[0].PlanError = nil, "no tasks"
	if r := run(t.Context(), api, nil, "story", "plan", "Gift cards"); r.code != 4 || !strings.Contains(r.err, "has no usable plan: no tasks\nhint: write one") {
		t.Errorf("no plan: %+v", r)
	}
}

// TestProjectOfStories: the settings that stories need, and lessons one by one.
func TestProjectOfStories(t *testing.T) {
	t.Parallel()
	api := shop()
	api.projects[0].Forge = work.Forge{Kind: "gitea", API: "https://forge/api/v1"}
	api.projects[0].Lessons = []string{"one", "two", "three"}
	api.projects[0].Evaluators, api.projects[0].ShipMode = []work.Role{work.EvaluatorTests}, work.ShipPullRequest
	run(t.Context(), api, nil, "project", "set", "shop", "--ship-mode", "pull_request", "--forge-token-env", "TOKEN", "--evaluator", "evaluator-tests", "--evaluator", "evaluator-security", "--drop-lesson", "1,3", "--add-lesson", "four")
	mode := work.ShipPullRequest
	want := app.ProjectInput{
		ShipMode: &mode, Forge: &app.ForgeInput{TokenEnv: new("TOKEN")},
		Evaluators: &[]work.Role{work.EvaluatorTests, work.EvaluatorSecurity}, Lessons: &[]string{"two", "four"},
	}
	if diff := cmp.Diff(want, api.project); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	run(t.Context(), api, nil, "project", "set", "shop", "--ship-mode", "direct", "--evaluator", "", "--lesson", "")
	mode = work.ShipDirectly
	if diff := cmp.Diff(app.ProjectInput{ShipMode: &mode, Evaluators: &[]work.Role{}, Lessons: &[]string{}}, api.project); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	run(t.Context(), api, nil, "project", "add", "shop", "--forge-kind", "github", "--forge-api", "https://x/api")
	if diff := cmp.Diff(&app.ForgeInput{Kind: new("github"), API: new("https://x/api")}, api.project.Forge); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	golden(t, "output/project-show-stories", run(t.Context(), api, nil, "project", "show", "shop").String())
}

// TestStoryCompletion offers ids with names, epics and statuses.
func TestStoryCompletion(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"story show ":              "giftcard\tGift cards (DEPLOY_FAILED)\n",
		"story reject ":            "giftcard\tGift cards (DEPLOY_FAILED)\n",
		"story elaborate --epic ":  "Payment\nEmpty\n",
		"story approve --project ": "shop\n",
		"story list --status ":     "DRAFT\nIN_PROGRESS\n",
		"story wait --for ":        "DRAFT\n",
	} {
		if r := run(t.Context(), cards(), nil, append([]string{"__complete"}, strings.Split(args, " ")...)...); !strings.HasPrefix(r.out, want) {
			t.Errorf("%q: %+v", args, r)
		}
	}
}

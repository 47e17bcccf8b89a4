package work

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// good is a plan that breaks no rule.
func good() *Plan {
	return &Plan{
		Name: "Log in", Goal: "people\n\tcan log in", BranchName: "story/log-in", AcceptanceCriteria: []string{"it works\nfor all"}, Policy: "checked",
		Tasks: []PlanTask{
			{Name: "one", Instructions: "build one", DependsOn: []string{" two "}, Subtasks: []PlanSubtask{{"a", "do a"}, {"b", "do b"}}},
			{Name: "two", Instructions: "build two", Subtasks: []PlanSubtask{{"a", "do a"}}},
		},
		Validation: Validations{{Type: TestValidation, Steps: []string{"go test ./..."}}},
	}
}

func TestPlanCheck(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", maxName+1)
	many := slices.Repeat([]string{"x"}, maxItems+1)
	for name, c := range map[string]struct {
		change func(*Plan)
		want   []string // a part of each problem, in order; none: it is good
	}{
		"as it is":             {func(*Plan) {}, nil},
		"a name alone":         {func(p *Plan) { *p = Plan{Name: "n"} }, nil},
		"arbitrated, no tasks": {func(p *Plan) { p.Policy, p.Tasks = "arbitrated", nil }, nil},
		"other letters": {func(p *Plan) {
			p.Name, p.Tasks[1].Name, p.Tasks[0].DependsOn = "Ünï 名前 🙂", "名前", []string{"名前"}
		}, nil},
		"nothing":                {func(p *Plan) { *p = Plan{} }, []string{"name is missing"}},
		"blank name":             {func(p *Plan) { p.Name = " \t " }, []string{"name is missing", "name has a control character"}},
		"a name of two lines":    {func(p *Plan) { p.Name = "a\nb" }, []string{"name has a control character at byte 1"}},
		"a long name":            {func(p *Plan) { p.Name = long }, []string{"name is 1001 bytes long, at most 1000"}},
		"escapes in texts":       {func(p *Plan) { p.Goal, p.Spec = "\x1b[31m", "a\x00" }, []string{"goal has a control character", "spec has a control character"}},
		"not UTF-8":              {func(p *Plan) { p.Tasks[0].Instructions = "\xff" }, []string{`tasks[0] "one": instructions is not valid UTF-8`}},
		"criteria":               {func(p *Plan) { p.AcceptanceCriteria = []string{"a", " "} }, []string{"acceptance_criteria entry 2 is empty"}},
		"too many criteria":      {func(p *Plan) { p.AcceptanceCriteria = many }, []string{"acceptance_criteria has 1001 entries, at most 1000"}},
		"branch":                 {func(p *Plan) { p.BranchName = "a b" }, []string{`branch_name "a b" is not a legal git branch name`}},
		"policy":                 {func(p *Plan) { p.Policy = "human" }, []string{`policy "human" is unknown: arbitrated or checked`}},
		"checked, no tasks":      {func(p *Plan) { p.Tasks = nil }, []string{"at least one is needed under policy checked"}},
		"a task without a name":  {func(p *Plan) { p.Tasks[0].Name = " " }, []string{`tasks[0] " ": name is missing`}},
		"no instructions":        {func(p *Plan) { p.Tasks[1].Instructions = "\n" }, []string{`tasks[1] "two": instructions are missing`}},
		"two of one name":        {func(p *Plan) { p.Tasks[1].Name, p.Tasks[0].DependsOn = "one ", nil }, []string{`tasks[1] "one ": another task has that name`}},
		"criteria of a task":     {func(p *Plan) { p.Tasks[0].AcceptanceCriteria = []string{""} }, []string{`tasks[0] "one": acceptance_criteria entry 1 is empty`}},
		"a nameless subtask":     {func(p *Plan) { p.Tasks[0].Subtasks[0].Name = "" }, []string{`tasks[0] "one": subtasks[0] needs a name and instructions`}},
		"a subtask to do what":   {func(p *Plan) { p.Tasks[0].Subtasks[1].Instructions = "" }, []string{`subtasks[1] needs a name and instructions`}},
		"two subtasks, one name": {func(p *Plan) { p.Tasks[0].Subtasks[1].Name = " a" }, []string{`two subtasks are named " a"`}},
		"a subtask's characters": {func(p *Plan) { p.Tasks[0].Subtasks[1] = PlanSubtask{"\x07", "\x07"} }, []string{"subtask name has a control character", "subtask instructions has a control character"}},
		"an unknown dependency":  {func(p *Plan) { p.Tasks[1].DependsOn = []string{"three"} }, []string{`tasks[1] "two": depends_on names no task of the plan: "three"`}},
		"itself":                 {func(p *Plan) { p.Tasks[1].DependsOn = []string{"two"} }, []string{"depends_on goes in a circle: two → two"}},
		"a circle":               {func(p *Plan) { p.Tasks[1].DependsOn = []string{"one"} }, []string{"depends_on goes in a circle: one → two → one"}},
		"too many tasks":         {func(p *Plan) { p.Tasks = tasks(maxPlanTasks + 1) }, []string{"tasks: 201, at most 200"}},
		"as many as can be":      {func(p *Plan) { p.Tasks = tasks(maxPlanTasks) }, nil},
		"too many subtasks":      {func(p *Plan) { p.Tasks[0].Subtasks = subtasks(maxPlanTasks + 1) }, []string{`tasks[0] "one": 201 subtasks, at most 200`}},
		"validation's type":      {func(p *Plan) { p.Validation[0].Type = "lint" }, []string{`validation[0]: type "lint" is unknown: build, test or smoke`}},
		"no steps":               {func(p *Plan) { p.Validation[0].Steps = nil }, []string{"validation[0]: steps are missing"}},
		"an empty step":          {func(p *Plan) { p.Validation[0].Steps = []string{"a", " "} }, []string{"validation[0]: steps entry 2 is empty"}},
		"its criteria":           {func(p *Plan) { p.Validation[0].SuccessCriteria = "\x07" }, []string{"validation[0]: success_criteria has a control character"}},
		"too many validations":   {func(p *Plan) { p.Validation = slices.Repeat(p.Validation, maxItems+1) }, []string{"validation has 1001 entries"}},
		"all of it at once": {func(p *Plan) {
			p.Name, p.BranchName, p.Policy, p.Tasks[0].Instructions, p.Tasks[1].DependsOn, p.Validation[0].Steps = "", "-", "x", "", []string{"one", "z"}, nil
		}, []string{"name is missing", "branch_name", "policy", "instructions are missing", `"z"`, "circle", "steps are missing"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := good()
			c.change(p)
			checkProblems(t, p.Check(), c.want)
		})
	}
}

// checkProblems compares what is said to be wrong, and that it is said everywhere.
func checkProblems(t *testing.T, err error, want []string) {
	t.Helper()
	if len(want) == 0 {
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	e, ok := AsError(err)
	if !ok || e.Code != Invalid || e.Reason != "plan" || e.Hint == "" {
		t.Fatalf("got %v", err)
	}
	problems, _ := e.Details["problems"].([]string)
	if len(problems) != len(want) {
		t.Fatalf("%d problems %q, want %q", len(problems), problems, want)
	}
	for i, p := range problems {
		if !strings.Contains(p, want[i]) || !strings.Contains(e.Message, p) {
			t.Errorf("problem %d is %q, want %q, and in %q", i, p, want[i], e.Message)
		}
	}
}

func tasks(n int) []PlanTask {
	out := make([]PlanTask, n)
	for i := range out {
		out[i] = PlanTask{Name: fmt.Sprint("t", i), Instructions: "do"}
		if i > 0 { // a chain: looking for circles must not take long
			for j := range min(i, 50) {
				out[i].DependsOn = append(out[i].DependsOn, fmt.Sprint("t", j))
			}
		}
	}
	return out
}

func subtasks(n int) []PlanSubtask {
	out := make([]PlanSubtask, n)
	for i := range out {
		out[i] = PlanSubtask{fmt.Sprint("t", i), "do"}
	}
	return out
}

func TestValidationsSteps(t *testing.T) {
	t.Parallel()
	v := Validations{
		{Type: SmokeValidation, Steps: []string{"s1"}}, {Type: TestValidation, Steps: []string{"t1", "t2"}},
		{Type: BuildValidation, Steps: []string{"b1"}}, {Type: TestValidation, Steps: []string{"t3"}},
	}
	for want, types := range map[string][]ValidationType{
		"t1 t2 b1 t3": {BuildValidation, TestValidation}, "s1": {SmokeValidation}, "b1": {BuildValidation}, "": nil,
	} {
		if got := strings.Join(v.Steps(types...), " "); got != want {
			t.Errorf("%v: %q, want %q", types, got, want)
		}
	}
	if got := (Validations)(nil).Steps(TestValidation); got != nil {
		t.Errorf("of nothing: %q", got)
	}
}

func TestTitle(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                      "",
		"  \n\t ":                               "",
		"a goal":                                "a goal",
		"\n  the first line  \r\nand more":      "the first line",
		strings.Repeat("x", 80):                 strings.Repeat("x", 80),
		strings.Repeat("x", 81):                 strings.Repeat("x", 79) + "…",
		strings.Repeat("名", 100):                strings.Repeat("名", 79) + "…",
		strings.Repeat("x", 78) + " " + "yyyyy": strings.Repeat("x", 78) + "…",
	} {
		if got := title(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

package cli

import (
	"bytes"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

// planFile is a plan that stands in a file.
type planFile struct {
	name string
	node *yaml.Node
}

// readPlan fills a plan (a pointer to a struct) from a file: YAML or JSON, one
// plan. Everything that has no place in a plan is told at once, by line.
func (s *shell) readPlan(file string, into any) (planFile, error) {
	text, err := s.readFile(file)
	if err != nil {
		return planFile{}, err
	}
	if file == "-" {
		file = "standard input"
	}
	return parsePlan(file, text, into)
}

func parsePlan(name string, text []byte, into any) (planFile, error) {
	none := planFile{}
	documents, err := parseDocuments(text)
	switch {
	case err != nil:
		return none, work.Errorf(work.Invalid, "%s: %s", name, strings.TrimPrefix(err.Error(), "yaml: "))
	case len(documents) == 0:
		return none, work.Errorf(work.Invalid, "%s holds no plan", name).WithHint("for example:  name: Gift cards")
	case len(documents) > 1:
		return none, work.Errorf(work.Invalid, "%s: line %d: a file holds one plan", name, documents[1].Line)
	}
	f := filler{noun: "a plan"}
	f.fill(documents[0], reflect.ValueOf(into).Elem(), "")
	if len(f.problems) > 0 {
		return none, work.Errorf(work.Invalid, "%s: %s", name, strings.Join(f.problems, "; "))
	}
	return planFile{name, documents[0]}, nil
}

// located adds to what the server finds wrong with the plan where it stands.
func (p planFile) located(err error) error {
	e, ok := work.AsError(err)
	if !ok || e.Reason != "plan" {
		return err
	}
	var found []string
	switch problems := e.Details["problems"].(type) {
	case []string:
		found = slices.Clone(problems)
	case []any: // it came over HTTP
		for _, problem := range problems {
			found = append(found, fmt.Sprint(problem))
		}
	}
	if len(found) == 0 {
		return err
	}
	for i, problem := range found {
		if line := p.lineOf(problem); line > 0 {
			found[i] = fmt.Sprintf("line %d: %s", line, problem)
		}
	}
	out := *e
	out.Message = p.name + ": " + strings.Join(found, "; ")
	return &out
}

// A problem begins with the place that it is about: spec, tasks[2] "NAME": steps.
var placePattern = regexp.MustCompile(`^(\w+)(?:\[(\d+)\])?(?: "(?:[^"\\]|\\.)*")?(?:: (\w+)(?:\[(\d+)\])?)?`)

// lineOf is the line that a problem is about, 0 where none can be told.
func (p planFile) lineOf(problem string) int {
	m := placePattern.FindStringSubmatch(problem)
	if m == nil {
		return 0
	}
	node, known := below(p.node, m[1], m[2])
	if !known {
		if m[1] == "name" {
			return p.node.Line // it is missing
		}
		return 0
	}
	if m[3] != "" {
		node, _ = below(node, m[3], m[4])
	}
	return node.Line
}

// below is the value of a key in a map, and its item where an index is given; the
// node itself where there is none.
func below(node *yaml.Node, key, index string) (*yaml.Node, bool) {
	if node.Kind != yaml.MappingNode {
		return node, false
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value != key {
			continue
		}
		value := node.Content[i+1]
		if value.Kind == yaml.AliasNode {
			value = value.Alias
		}
		if n, err := strconv.Atoi(index); err == nil && value.Kind == yaml.SequenceNode && n < len(value.Content) {
			value = value.Content[n]
			if value.Kind == yaml.AliasNode {
				value = value.Alias
			}
		}
		if value.Kind == yaml.ScalarNode {
			return node.Content[i], true // a text of several lines begins behind its key
		}
		return value, true
	}
	return node, false
}

// planOf is a story's plan as it can be given again, with what was edited since.
func planOf(y *work.Story, project string) app.PlanInput {
	in := app.PlanInput{
		Name: y.Name, ProjectID: project, Goal: y.Goal, BranchName: y.BranchName, Spec: y.Spec, AcceptanceCriteria: y.AcceptanceCriteria,
		Policy: y.Policy, Validation: app.ValidationList(y.Validation),
	}
	if y.Plan == nil {
		return in
	}
	for _, t := range y.Plan.Tasks {
		task := app.PlanTaskInput{Name: t.Name, Instructions: t.Instructions, AcceptanceCriteria: t.AcceptanceCriteria, DependsOn: t.DependsOn}
		for _, sub := range t.Subtasks {
			task.Subtasks = append(task.Subtasks, app.PlanSubtaskInput(sub))
		}
		in.Tasks = append(in.Tasks, task)
	}
	return in
}

// writePlan is a plan as YAML that readPlan takes back, without what is empty.
func writePlan(in app.PlanInput) (string, error) {
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	const indent = 2
	enc.SetIndent(indent)
	if err := enc.Encode(nodeOf(reflect.ValueOf(in))); err != nil {
		return "", fmt.Errorf("write the plan: %w", err)
	}
	return string(escape(b.Bytes())), nil // what it escapes stands in quotes
}

// nodeOf is a struct, a list or a text as a YAML node.
func nodeOf(v reflect.Value) *yaml.Node {
	switch v.Kind() {
	case reflect.Struct:
		node := &yaml.Node{Kind: yaml.MappingNode}
		for i := range v.NumField() {
			if field := v.Field(i); !field.IsZero() {
				node.Content = append(node.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: v.Type().Field(i).Tag.Get("yaml")}, nodeOf(field))
			}
		}
		return node
	case reflect.Slice:
		node := &yaml.Node{Kind: yaml.SequenceNode}
		for i := range v.Len() {
			node.Content = append(node.Content, nodeOf(v.Index(i)))
		}
		return node
	}
	return textNode(v.String())
}

// textNode writes lines as lines, where reading them gives the same text again.
func textNode(text string) *yaml.Node {
	node := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
	plain := func(r rune) bool {
		return r == '\n' || unicode.IsPrint(r) && r != unicode.ReplacementChar && r != '\ufeff'
	}
	switch {
	case strings.ContainsFunc(text, func(r rune) bool { return !plain(r) }),
		strings.TrimSpace(text) == "", strings.HasPrefix(text, " "), strings.HasPrefix(text, "\n"):
		node.Style = yaml.DoubleQuotedStyle
	case strings.Contains(text, "\n"):
		node.Style = yaml.LiteralStyle
	}
	return node
}

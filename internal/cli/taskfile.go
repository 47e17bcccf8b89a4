package cli

import (
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

// readTasks reads a task file: YAML or JSON, one task or a list, perhaps in
// several documents; many is true unless it is one task that stands alone.
// Everything that is wrong is told at once, by line.
func readTasks(name string, text []byte) (tasks []app.TaskRequest, many bool, err error) {
	documents, err := parseDocuments(text)
	if err != nil {
		return nil, false, work.Errorf(work.Invalid, "%s: %s", name, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	many = len(documents) > 1
	f := filler{noun: "a task"}
	for _, doc := range documents {
		items := []*yaml.Node{doc}
		if doc.Kind == yaml.SequenceNode {
			items, many = doc.Content, true
		}
		for _, item := range items {
			var task app.TaskRequest
			f.fill(item, reflect.ValueOf(&task).Elem(), "")
			if task.Name == "" && len(f.problems) == 0 {
				f.add(item, "the task has no name")
			}
			tasks = append(tasks, task)
		}
	}
	switch {
	case len(f.problems) > 0:
		return nil, false, work.Errorf(work.Invalid, "%s: %s", name, strings.Join(f.problems, "; "))
	case len(tasks) == 0:
		return nil, false, work.Errorf(work.Invalid, "%s holds no task", name).WithHint("for example:  name: Fix the basket")
	}
	return tasks, many, nil
}

package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/claudomator/claudomator/internal/work"
)

// decode checks a tool's arguments by its schema and reads them.
func (t *tool) decode(arguments []byte, into any) error {
	var given any
	if len(bytes.TrimSpace(arguments)) > 0 {
		d := json.NewDecoder(bytes.NewReader(arguments))
		d.UseNumber()
		if err := d.Decode(&given); err != nil {
			return work.Errorf(work.Invalid, "the arguments are not JSON").WithReason("arguments")
		}
	}
	if given == nil {
		given, arguments = map[string]any{}, []byte("{}")
	}
	if wrong := check(t.schema, "", given); wrong != "" {
		return work.Errorf(work.Invalid, "%s", wrong).WithReason("arguments").WithHint("%s", t.usage())
	}
	if err := json.Unmarshal(arguments, into); err != nil {
		return work.Errorf(work.Invalid, "the arguments do not fit: %w", err).WithReason("arguments").WithHint("%s", t.usage())
	}
	return nil
}

// usage names the arguments.
func (t *tool) usage() string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(t.schema.Properties)) {
		if slices.Contains(t.schema.Required, name) {
			name += " (required)"
		}
		names = append(names, name)
	}
	if names == nil {
		return fmt.Sprintf("%s takes no arguments", t.name)
	}
	return fmt.Sprintf("%s takes %s", t.name, strings.Join(names, ", "))
}

// check says what is wrong with a value, in words that are short however long
// the value is; "" for nothing. It knows as much of JSON Schema as our schemas
// use, and one thing more: a text that is required is not blank.
func check(s *jsonschema.Schema, at string, value any) string {
	fits := false
	switch s.Type {
	case "object":
		var fields map[string]any
		if fields, fits = value.(map[string]any); fits {
			if of := valuesOf(s); of != nil {
				return checkValues(of, at, fields)
			}
			return checkFields(s, at, fields)
		}
	case "array":
		var items []any
		if items, fits = value.([]any); fits {
			return checkItems(s, at, items)
		}
	case "string":
		if _, fits = value.(string); fits && s.Enum != nil && !slices.Contains(s.Enum, value) {
			return fmt.Sprintf("%s must be one of %v", at, s.Enum)
		}
	case "boolean":
		_, fits = value.(bool)
	case "integer":
		var n json.Number
		if n, fits = value.(json.Number); fits {
			_, err := strconv.ParseInt(n.String(), 10, 32)
			fits = err == nil
		}
	case "number":
		var n json.Number
		if n, fits = value.(json.Number); fits {
			_, err := n.Float64()
			fits = err == nil
		}
	}
	if fits {
		return ""
	}
	if at == "" {
		at = "the arguments"
	}
	return fmt.Sprintf("%s must be of type %s", at, s.Type)
}

func checkItems(s *jsonschema.Schema, at string, items []any) string {
	for i, item := range items {
		if wrong := check(s.Items, fmt.Sprintf("%s[%d]", at, i), item); wrong != "" {
			return wrong
		}
	}
	return ""
}

// checkValues checks a map, whose keys are the caller's own.
func checkValues(of *jsonschema.Schema, at string, fields map[string]any) string {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if wrong := check(of, fmt.Sprintf("%s[%.100q]", at, name), fields[name]); wrong != "" {
			return wrong
		}
	}
	return ""
}

func checkFields(s *jsonschema.Schema, at string, fields map[string]any) string {
	path := func(name string) string { return strings.TrimPrefix(at+"."+name, ".") }
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		property, known := s.Properties[name]
		if !known {
			return fmt.Sprintf("there is no argument %.100q", path(name))
		}
		if fields[name] == nil && !slices.Contains(s.Required, name) {
			continue // as if left out
		}
		if wrong := check(property, path(name), fields[name]); wrong != "" {
			return wrong
		}
	}
	for _, name := range s.Required {
		value, given := fields[name]
		if !given {
			return path(name) + " is missing"
		}
		if text, ok := value.(string); ok && strings.TrimSpace(text) == "" {
			return path(name) + " is empty"
		}
	}
	return ""
}

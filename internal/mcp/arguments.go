package mcp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

// decode checks a tool's arguments by its schema and reads them. All that is wrong
// is said at once.
func (t *tool) decode(arguments []byte, into any) error {
	given, err := t.parse(arguments, into)
	if err != nil {
		return err
	}
	var f faults
	f.check(t.schema, "", given)
	if all := slices.Concat(f.misfits, f.gaps); len(all) > 0 {
		return t.refuse("%s", some(all))
	}
	if len(bytes.TrimSpace(arguments)) == 0 {
		return nil
	}
	if err := json.Unmarshal(arguments, into); err != nil {
		return t.refuse("the arguments do not fit: %w", err)
	}
	return nil
}

// parse reads arguments as JSON; none are an empty object. What can stand alone for
// a list in the type that they will fill is one.
func (t *tool) parse(arguments []byte, into any) (any, error) {
	var given any
	if len(bytes.TrimSpace(arguments)) > 0 {
		d := json.NewDecoder(bytes.NewReader(arguments))
		d.UseNumber()
		if err := d.Decode(&given); err != nil {
			return nil, work.Errorf(work.Invalid, "the arguments are not JSON").WithReason("arguments")
		}
	}
	if given == nil {
		given = map[string]any{}
	}
	return unfold(given, reflect.TypeOf(into).Elem()), nil
}

func (t *tool) refuse(format string, args ...any) error {
	return work.Errorf(work.Invalid, format, args...).WithReason("arguments").WithHint("%s", t.usage())
}

// unfold puts what stands alone for a list of type t into one, wherever app takes
// both.
func unfold(value any, t reflect.Type) any {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if _, many := value.([]any); !many && value != nil && (t == reflect.TypeFor[app.StringList]() || t == reflect.TypeFor[app.ValidationList]()) {
		return []any{value}
	}
	switch value := value.(type) {
	case map[string]any:
		if t.Kind() != reflect.Struct {
			return value
		}
		for _, f := range reflect.VisibleFields(t) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if inner, given := value[name]; given && !f.Anonymous {
				value[name] = unfold(inner, f.Type)
			}
		}
	case []any:
		if t.Kind() != reflect.Slice {
			return value
		}
		for i, item := range value {
			value[i] = unfold(item, t.Elem())
		}
	}
	return value
}

// some says many things in words that stay readable.
func some(all []string) string {
	const most = 20
	if more := len(all) - most; more > 0 {
		all = append(all[:most:most], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(all, "; ")
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

// faults is what is wrong with arguments, in words that are short however long the
// values are.
type faults struct {
	misfits []string // what is not known there, or of another type
	gaps    []string // what is missing, or empty
}

func (f *faults) misfit(format string, args ...any) {
	f.misfits = append(f.misfits, fmt.Sprintf(format, args...))
}

// check holds a value to a schema. It knows as much of JSON Schema as our schemas
// use, and one thing more: a text that is required is not blank.
func (f *faults) check(s *jsonschema.Schema, at string, value any) {
	fits := false
	switch s.Type {
	case "object":
		var fields map[string]any
		if fields, fits = value.(map[string]any); fits {
			f.checkFields(s, at, fields)
		}
	case "array":
		var items []any
		if items, fits = value.([]any); fits {
			for i, item := range items {
				f.check(s.Items, fmt.Sprintf("%s[%d]", at, i), item)
			}
		}
	case "string":
		if _, fits = value.(string); fits && s.Enum != nil && !slices.Contains(s.Enum, value) {
			f.misfit("%s must be one of %v", at, s.Enum)
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
	if !fits {
		f.misfit("%s must be of type %s", cmp.Or(at, "the arguments"), s.Type)
	}
}

func (f *faults) checkFields(s *jsonschema.Schema, at string, fields map[string]any) {
	if of := valuesOf(s); of != nil { // a map, whose keys are the caller's own
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			f.check(of, fmt.Sprintf("%s[%.100q]", at, name), fields[name])
		}
		return
	}
	path := func(name string) string { return strings.TrimPrefix(at+"."+name, ".") }
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		property, known := s.Properties[name]
		switch {
		case !known:
			f.misfit("there is no argument %.100q", path(name))
		case fields[name] == nil && !slices.Contains(s.Required, name): // as if left out
		default:
			f.check(property, path(name), fields[name])
		}
	}
	for _, name := range s.Required {
		value, given := fields[name]
		if text, ok := value.(string); !given {
			f.gaps = append(f.gaps, path(name)+" is missing")
		} else if ok && strings.TrimSpace(text) == "" {
			f.gaps = append(f.gaps, path(name)+" is empty")
		}
	}
}

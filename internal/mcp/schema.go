package mcp

import (
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

// schemaOf derives the schema of a tool's arguments from their Go type, which
// describes its fields in tags: "doc" in the types that other surfaces take, too,
// and "jsonschema". Where a field has both, running agents are told the second.
func schemaOf[In any](running bool) (*jsonschema.Schema, error) {
	text := func() *jsonschema.Schema { return &jsonschema.Schema{Type: "string"} }
	s, err := jsonschema.For[In](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[work.Duration]():  {Type: "string", Examples: []any{"30m"}},
		reflect.TypeFor[app.StringList](): {Type: "array", Items: text()},
		reflect.TypeFor[work.State]():     oneOf(work.States()),

		reflect.TypeFor[work.StoryStatus]():    oneOf(work.StoryStatuses()),
		reflect.TypeFor[work.ValidationType](): oneOf([]work.ValidationType{work.BuildValidation, work.TestValidation, work.SmokeValidation}),
	}})
	if err != nil {
		return nil, err
	}
	simplify(s)
	describe(s, reflect.TypeFor[In](), running)
	return s, nil
}

func oneOf[T ~string](values []T) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "string"}
	for _, v := range values {
		s.Enum = append(s.Enum, string(v))
	}
	return s
}

// simplify says "array" where the schema of a Go slice says "null or array":
// providers of models differ in what they take, and null is allowed anyway for
// whatever may be left out. For the same reason no properties are said to be none.
func simplify(s *jsonschema.Schema) {
	if s.Type == "object" && s.Properties == nil {
		s.Properties = map[string]*jsonschema.Schema{}
	}
	if slices.Contains(s.Types, "null") {
		s.Type, s.Types = s.Types[len(s.Types)-1], nil
	}
	for _, p := range s.Properties {
		simplify(p)
	}
	if s.Items != nil {
		simplify(s.Items)
	}
	if of := valuesOf(s); of != nil {
		simplify(of)
	}
}

// valuesOf is the schema of the values of a map, and nil for all else.
func valuesOf(s *jsonschema.Schema) *jsonschema.Schema {
	if of := s.AdditionalProperties; of != nil && (of.Type != "" || of.Types != nil) {
		return of
	}
	return nil
}

// describe takes the descriptions of fields from their doc tags; keep leaves those
// that are there.
func describe(s *jsonschema.Schema, t reflect.Type, keep bool) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t.Kind() == reflect.Slice && s.Items != nil:
		describe(s.Items, t.Elem(), keep)
	case t.Kind() == reflect.Struct:
		for _, f := range reflect.VisibleFields(t) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			field := s.Properties[name]
			if field == nil || f.Anonymous {
				continue
			}
			if doc := f.Tag.Get("doc"); doc != "" && (field.Description == "" || !keep) {
				field.Description = doc
			}
			describe(field, f.Type, keep)
		}
	}
}

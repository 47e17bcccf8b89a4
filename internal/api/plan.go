package api

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

// planSchema is the JSON schema of a plan, for the editor of whoever writes one.
func planSchema() []byte {
	types := registry("#/$defs/")
	plan := types.Schema(reflect.TypeFor[app.PlanInput](), false, "")
	defs := maps.Clone(types.Map())
	maps.DeleteFunc(defs, func(_ string, s *huma.Schema) bool { return s == plan })
	plan.Properties["policy"].Enum = oneOf(work.StoryPolicies()).Enum
	plan.Title, plan.Description = "Plan of a Claudomator story", "What a story is to be built from; a YAML or JSON file of this form is approved with: claudomator story approve -f FILE"
	plan.Extensions = map[string]any{"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": defs}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetIndent("", "  ")
	if err := e.Encode(plan); err != nil {
		panic(err) // it was just built, from types that marshal: a test has done it
	}
	return out.Bytes()
}

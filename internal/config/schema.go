package config

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"time"
)

// schemaNode is the part of JSON Schema that settings need.
type schemaNode struct {
	Schema      string                 `json:"$schema,omitempty"`
	Title       string                 `json:"title,omitempty"`
	Description string                 `json:"description,omitempty"`
	Type        string                 `json:"type"`
	Enum        []string               `json:"enum,omitempty"`
	Pattern     string                 `json:"pattern,omitempty"`
	Minimum     *int                   `json:"minimum,omitempty"`
	Default     any                    `json:"default,omitempty"`
	Items       *schemaNode            `json:"items,omitempty"`
	Properties  map[string]*schemaNode `json:"properties,omitempty"`
	Names       *schemaNode            `json:"propertyNames,omitempty"`
	Additional  any                    `json:"additionalProperties,omitempty"`
}

// durationPattern is what parseDuration reads, for editors.
const durationPattern = `^([0-9]+d)?([0-9]+(\.[0-9]+)?(h|m|s|ms))*$`

// Schema is the JSON schema of the settings file, as docs/config.schema.json holds it.
func Schema() ([]byte, error) {
	root := group(reflect.ValueOf(Default(nil)))
	root.Schema = "https://json-schema.org/draft/2020-12/schema"
	root.Title = "Settings of a Claudomator server"
	text, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode the settings' schema: %w", err)
	}
	return append(text, '\n'), nil
}

// group describes a struct of settings; its values are the defaults.
func group(v reflect.Value) *schemaNode {
	node := &schemaNode{Type: "object", Properties: map[string]*schemaNode{}, Additional: false}
	for i := range v.NumField() {
		sf := v.Type().Field(i)
		if !sf.IsExported() {
			continue
		}
		var below *schemaNode
		switch {
		case sf.Type.Kind() == reflect.Map:
			below = &schemaNode{
				Type:       "object",
				Names:      &schemaNode{Type: "string", Pattern: "^[a-z][a-z0-9-]*$"},
				Additional: group(reflect.Zero(sf.Type.Elem())),
			}
		case isGroup(sf.Type):
			below = group(v.Field(i))
		default:
			below = single(field{"", sf.Type, sf.Tag}, v.Field(i).Interface())
		}
		below.Description = sf.Tag.Get("doc")
		if machine := sf.Tag.Get("machine"); machine != "" {
			below.Description += " Default: " + machine + "."
		}
		node.Properties[sf.Tag.Get("koanf")] = below
	}
	return node
}

// single describes one setting. A default that is empty or differs from machine to
// machine is not stated.
func single(f field, byDefault any) *schemaNode {
	node := &schemaNode{Type: "string", Enum: f.enum()}
	switch {
	case f.isList():
		node.Type, node.Items = "array", &schemaNode{Type: "string"}
	case f.typ == reflect.TypeFor[time.Duration]():
		node.Pattern = durationPattern
	case f.typ == reflect.TypeFor[int]():
		node.Type = "integer"
		if lowest, err := strconv.Atoi(f.tag.Get("min")); err == nil {
			node.Minimum = &lowest
		}
	}
	if f.tag.Get("machine") == "" && !reflect.ValueOf(byDefault).IsZero() {
		node.Default = byDefault
		if d, ok := byDefault.(time.Duration); ok {
			node.Default = formatDuration(d)
		}
	}
	return node
}

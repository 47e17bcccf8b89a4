package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/claudomator/claudomator/internal/app"
)

// parseDocuments reads the YAML documents of a text, or its one JSON value.
func parseDocuments(text []byte) ([]*yaml.Node, error) {
	var documents []*yaml.Node
	if json.Valid(text) {
		r := jsonReader{text: text, dec: json.NewDecoder(bytes.NewReader(text)), line: 1}
		r.dec.UseNumber()
		node, err := r.node()
		if err == nil && node.Tag != "!!null" {
			documents = append(documents, node)
		}
		return documents, err
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var doc yaml.Node
		if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
			return documents, nil
		} else if err != nil {
			return nil, err
		}
		if len(doc.Content) > 0 && doc.Content[0].Tag != "!!null" {
			documents = append(documents, doc.Content[0])
		}
	}
}

// jsonReader reads JSON as YAML nodes that know their lines. JSON is nearly
// YAML, but not where tabs indent it or a character is escaped as a pair.
type jsonReader struct {
	text []byte
	dec  *json.Decoder
	at   int64 // up to here line is counted
	line int
}

func (r *jsonReader) node() (*yaml.Node, error) {
	token, err := r.dec.Token()
	if err != nil {
		return nil, err
	}
	r.line += bytes.Count(r.text[r.at:r.dec.InputOffset()], []byte("\n"))
	r.at = r.dec.InputOffset()
	node := &yaml.Node{Kind: yaml.ScalarNode, Line: r.line}
	switch v := token.(type) {
	case json.Delim:
		node.Kind, node.Tag = yaml.SequenceNode, "!!seq"
		if v == '{' {
			node.Kind, node.Tag = yaml.MappingNode, "!!map"
		}
		for r.dec.More() {
			child, err := r.node()
			if err != nil {
				return nil, err
			}
			node.Content = append(node.Content, child)
		}
		_, err = r.dec.Token() // the end
	case string:
		node.Tag, node.Value, node.Style = "!!str", v, yaml.DoubleQuotedStyle
	case json.Number:
		node.Tag, node.Value = "!!float", v.String()
		if !strings.ContainsAny(node.Value, ".eE") {
			node.Tag = "!!int"
		}
	case bool:
		node.Tag, node.Value = "!!bool", fmt.Sprint(v)
	case nil:
		node.Tag, node.Value = "!!null", "null"
	}
	return node, err
}

// filler fills structs from nodes, key by key, so that every problem has a line.
type filler struct {
	noun     string // what the whole is
	problems []string
}

func (f *filler) add(node *yaml.Node, format string, args ...any) {
	f.problems = append(f.problems, fmt.Sprintf("line %d: ", node.Line)+fmt.Sprintf(format, args...))
}

func (f *filler) fill(node *yaml.Node, into reflect.Value, path string) {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	if node.Kind != yaml.MappingNode {
		f.add(node, "%s must be a map of keys and values", cmp.Or(strings.TrimSuffix(path, "."), f.noun))
		return
	}
	fields := fieldsOf(into)
	seen := map[string]bool{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		field, known := fields[key.Value]
		switch {
		case !known:
			f.unknown(key, path, fields)
		case seen[key.Value]:
			f.add(key, "%s is given twice", path+key.Value)
		case value.Tag == "!!null":
		case field.Kind() == reflect.Struct:
			f.fill(value, field, path+key.Value+".")
		case field.Kind() == reflect.Slice && field.Type().Elem().Kind() == reflect.Struct:
			f.fillList(value, field, path+key.Value)
		default:
			if err := value.Decode(field.Addr().Interface()); err != nil {
				f.add(value, "%s: %s", path+key.Value, valueProblem(err))
			}
		}
		seen[key.Value] = true
	}
}

// fillList fills a list of structs; where the type takes one alone, that may stand
// without brackets.
func (f *filler) fillList(node *yaml.Node, into reflect.Value, path string) {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	items := []*yaml.Node{node}
	_, alone := into.Interface().(app.ValidationList)
	switch {
	case node.Kind == yaml.SequenceNode:
		items = node.Content
	case node.Kind != yaml.MappingNode || !alone:
		f.add(node, "%s must be a list", path)
		return
	}
	list := reflect.MakeSlice(into.Type(), len(items), len(items))
	for i, item := range items {
		f.fill(item, list.Index(i), fmt.Sprintf("%s[%d].", path, i))
	}
	into.Set(list)
}

func (f *filler) unknown(key *yaml.Node, path string, fields map[string]reflect.Value) {
	var names []string
	for name := range fields {
		names = append(names, name)
	}
	if meant := nearest(key.Value, names); meant != "" {
		f.add(key, "there is no key %q; %q is meant?", path+key.Value, path+meant)
		return
	}
	f.add(key, "there is no key %q", path+key.Value)
}

// fieldsOf maps the keys of a struct to its fields.
func fieldsOf(v reflect.Value) map[string]reflect.Value {
	out := map[string]reflect.Value{}
	for i := range v.NumField() {
		switch key := v.Type().Field(i).Tag.Get("yaml"); key {
		case "-":
		case ",inline":
			maps.Copy(out, fieldsOf(v.Field(i)))
		default:
			out[key] = v.Field(i)
		}
	}
	return out
}

var valuePattern = regexp.MustCompile("^line \\d+: cannot unmarshal !!(\\w+)(?: `(.*)`)? into (.*)$")

// valueProblem says in words what kind of value is expected.
func valueProblem(err error) string {
	problem, ok := errors.AsType[*yaml.TypeError](err)
	if !ok {
		return err.Error()
	}
	m := valuePattern.FindStringSubmatch(problem.Errors[0])
	if m == nil {
		return problem.Errors[0]
	}
	expected := map[string]string{
		"string": "a text", "bool": "true or false", "int": "a whole number", "float64": "a number",
		"[]string": "a list of texts", "app.StringList": "a list of texts", "work.Duration": "a duration like 30m",
		"work.ValidationType": "a text",
	}[m[3]]
	if expected == "" {
		expected = "something else"
	}
	found := m[2]
	switch m[1] {
	case "map":
		found = "a map"
	case "seq":
		found = "a list"
	}
	return expected + " is expected, not " + found
}

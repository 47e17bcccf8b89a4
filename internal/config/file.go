package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"go.yaml.in/yaml/v3"
)

// fileReader walks a YAML document and keeps the line of every value.
type fileReader struct {
	name     string
	layer    layer
	problems []Problem
}

// parseFile reads the settings in text; name is only for messages.
func parseFile(name string, text []byte) (layer, []Problem) {
	r := &fileReader{name: name, layer: newLayer()}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var doc, second yaml.Node
	switch err := decoder.Decode(&doc); {
	case errors.Is(err, io.EOF): // nothing in it but comments
		return r.layer, nil
	case err != nil:
		return r.layer, []Problem{{Origin: name, Message: strings.TrimPrefix(err.Error(), "yaml: ")}}
	}
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		return r.layer, []Problem{{Origin: name, Message: "holds more than one document"}}
	}
	r.mapping(doc.Content[0], "")
	return r.layer, r.problems
}

// mapping reads the keys of one level; prefix is the key of the level and a dot.
func (r *fileReader) mapping(n *yaml.Node, prefix string) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if isNull(n) {
		return
	}
	if n.Kind != yaml.MappingNode {
		r.wrong(n, strings.TrimSuffix(prefix, "."), "is not a list of keys with values")
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, val := n.Content[i], n.Content[i+1]
		full := prefix + key.Value
		switch f, known := fieldFor(full); {
		case seen[full]:
			r.wrong(key, full, "is set twice")
		case known:
			r.leaf(f, full, val)
		case isLevel(full):
			r.mapping(val, full+".")
		default:
			r.wrong(key, full, unknown(full, keys()))
		}
		seen[full] = true
	}
}

// leaf reads one value, as it is written: a number is a text where a text is wanted.
// A key without a value is not set.
func (r *fileReader) leaf(f field, key string, n *yaml.Node) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if isNull(n) {
		return
	}
	switch {
	case n.Kind == yaml.SequenceNode && f.isList():
		r.list(key, n)
	case n.Kind == yaml.ScalarNode:
		r.problems = append(r.problems, r.layer.set(f, key, n.Value, r.at(n))...)
	default:
		r.wrong(n, key, "is not a single value")
	}
}

func (r *fileReader) list(key string, n *yaml.Node) {
	items := []string{}
	for _, item := range n.Content {
		if item.Kind != yaml.ScalarNode || isNull(item) {
			r.wrong(item, key, "is not a list of plain texts")
			return
		}
		items = append(items, item.Value)
	}
	r.layer.values[key], r.layer.origins[key] = items, r.at(n)
}

func (r *fileReader) wrong(n *yaml.Node, key, message string) {
	r.problems = append(r.problems, Problem{r.at(n), key, message})
}

func (r *fileReader) at(n *yaml.Node) string { return fmt.Sprintf("%s:%d", r.name, n.Line) }

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// reason is the last part of a file error: the message names the file already.
func reason(err error) string {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err.Error()
	}
	return err.Error()
}

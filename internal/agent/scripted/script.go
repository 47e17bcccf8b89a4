package scripted

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Marker is the line that instructions begin with when they are a script. In a prompt,
// endMarker ends it, or endQuoted, which ends the instructions that a judge is shown.
const (
	Marker    = "#!scripted"
	endMarker = "#!end"
	endQuoted = "INSTRUCTIONS"
)

// Script is what the agent does.
type Script struct {
	Steps    []Step            `yaml:"steps"`
	Roles    map[string][]Step `yaml:"roles"`
	Again    []Step            `yaml:"again"`
	ExitCode int               `yaml:"exit_code"`
	Stay     bool              `yaml:"stay"`
	Forget   bool              `yaml:"forget"`
}

// Step is one action. Each takes some of the fields.
type Step struct {
	Line   int
	Action string
	Value  string
	When   When

	Content, Replace, With string
	Raw, MayFail, HalfLine bool
	Arguments              json.RawMessage
	Options                []string
	Kind, Reset, As        string
	Output                 int64
	CacheRead, CacheWrite  int64
	Cost                   float64
	given                  map[string]bool
}

// When are the conditions of a step; what is nil or empty is none.
type When struct {
	Attempt  *int
	Role     *string
	Task     string
	Answered *bool
	Resumed  *bool
	Exists   string
	Missing  string
}

// actions are all actions, and the keys that each takes besides "when".
func actions() map[string][]string {
	return map[string][]string{
		"say": nil, "think": nil, "commit": nil, "permission": nil, "sleep": nil, "overload": nil,
		"stop": nil, "print": nil, "ignore_term": nil, "daemon": nil,
		"edit":  {"content", "replace", "with"},
		"run":   {"may_fail", "raw"},
		"call":  {"arguments", "may_fail"},
		"ask":   {"options"},
		"usage": {"output", "cache_read", "cache_write", "cost"},
		"fail":  {"kind"},
		"limit": {"reset"},
		"flood": {"as"},
		"die":   {"half_line"},
	}
}

func floods() []string { return []string{"text", "message", "line", "noise", "stderr"} }

func reasons() []string {
	return []string{"end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"}
}

// field is where a key of a step is kept.
func (s *Step) field(key string) any {
	return map[string]any{
		"content": &s.Content, "replace": &s.Replace, "with": &s.With, "raw": &s.Raw, "may_fail": &s.MayFail,
		"half_line": &s.HalfLine, "options": &s.Options, "kind": &s.Kind, "reset": &s.Reset, "as": &s.As,
		"output": &s.Output, "cache_read": &s.CacheRead, "cache_write": &s.CacheWrite, "cost": &s.Cost,
	}[key]
}

func (w *When) field(key string) any {
	return map[string]any{
		"attempt": &w.Attempt, "role": &w.Role, "task": &w.Task, "answered": &w.Answered, "resumed": &w.Resumed,
		"exists": &w.Exists, "missing": &w.Missing,
	}[key]
}

// Parse reads a script. An error names the line.
func Parse(text []byte) (*Script, error) {
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	var s Script
	if err := dec.Decode(&s); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read script: %w", err)
	}
	if err := dec.Decode(new(any)); !errors.Is(err, io.EOF) {
		return nil, errors.New("read script: there is something behind its end")
	}
	if len(s.Steps) == 0 {
		return nil, errors.New("read script: it has no steps")
	}
	return &s, nil
}

// inPrompt finds a script in a prompt.
func inPrompt(prompt string) (string, bool) {
	var script strings.Builder
	found := false
	for line := range strings.Lines(prompt) {
		switch strings.TrimSpace(line) {
		case Marker:
			found = true
		case endMarker, endQuoted:
			if found {
				return script.String(), true
			}
		}
		if found {
			script.WriteString(line)
		}
	}
	return script.String(), found
}

// UnmarshalYAML implements yaml.Unmarshaler: it refuses what it does not know.
func (s *Step) UnmarshalYAML(node *yaml.Node) error {
	s.Line, s.given = node.Line, map[string]bool{}
	if node.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: a step is an action and its value, such as \"say: hello\"", node.Line)
	}
	known := actions()
	for key, value := range pairs(node) {
		if _, ok := known[key.Value]; !ok {
			continue
		}
		if s.Action != "" {
			return fmt.Errorf("line %d: a step has one action, and this one %s and %s", key.Line, s.Action, key.Value)
		}
		s.Action = key.Value
		if err := value.Decode(&s.Value); err != nil {
			return fmt.Errorf("line %d: the value of %s is a text: %w", value.Line, key.Value, err)
		}
	}
	if s.Action == "" {
		return fmt.Errorf("line %d: no such action; there are %s", node.Line, list(slices.Sorted(maps.Keys(known))))
	}
	for key, value := range pairs(node) {
		if err := s.take(known[s.Action], key, value); err != nil {
			return err
		}
	}
	if err := s.check(); err != nil {
		return fmt.Errorf("line %d: %w", s.Line, err)
	}
	return nil
}

// take reads one key of a step.
func (s *Step) take(allowed []string, key, value *yaml.Node) error {
	s.given[key.Value] = true
	switch {
	case key.Value == s.Action:
		return nil
	case key.Value == "when":
		return s.When.read(value)
	case !slices.Contains(allowed, key.Value):
		return fmt.Errorf("line %d: %s takes no %q; it takes %s", key.Line, s.Action, key.Value, list(append(slices.Clone(allowed), "when")))
	case key.Value == "arguments":
		var arguments map[string]any
		if err := value.Decode(&arguments); err != nil {
			return fmt.Errorf("line %d: arguments: %w", value.Line, err)
		}
		var err error
		if s.Arguments, err = json.Marshal(arguments); err != nil {
			return fmt.Errorf("line %d: arguments: %w", value.Line, err)
		}
		return nil
	}
	if err := value.Decode(s.field(key.Value)); err != nil {
		return fmt.Errorf("line %d: %s: %w", value.Line, key.Value, err)
	}
	return nil
}

func (w *When) read(node *yaml.Node) error {
	if node.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: when is a list of conditions, such as {attempt: 2}", node.Line)
	}
	for key, value := range pairs(node) {
		into := w.field(key.Value)
		if into == nil {
			return fmt.Errorf("line %d: there is no condition %q", key.Line, key.Value)
		}
		if err := value.Decode(into); err != nil {
			return fmt.Errorf("line %d: %s: %w", value.Line, key.Value, err)
		}
	}
	return nil
}

// check looks at what the values of an action can be.
func (s *Step) check() error {
	var err error
	switch s.Action {
	case "edit":
		if s.given["content"] == (s.given["replace"] && s.given["with"]) {
			return errors.New(`edit takes either "content", or "replace" and "with"`)
		}
	case "sleep":
		_, err = time.ParseDuration(s.Value)
	case "flood":
		_, err = number(s.Value)
		if s.As == "" {
			s.As = "noise"
		}
		if err == nil && !slices.Contains(floods(), s.As) {
			err = fmt.Errorf("a flood is as %s", list(floods()))
		}
	case "usage":
		_, err = number(s.Value)
	case "stop":
		if !slices.Contains(reasons(), s.Value) {
			err = fmt.Errorf("a turn ends for %s", list(reasons()))
		}
	case "limit":
		if s.Reset != "" {
			_, err = s.resetAt(time.Time{})
		}
	case "die":
		if _, ok := deaths()[s.Value]; !ok {
			_, err = number(s.Value)
		}
	case "ignore_term":
		if s.Value != "true" {
			err = errors.New("it can only be true")
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", s.Action, err)
	}
	return nil
}

// resetAt is when a limit ends.
func (s *Step) resetAt(now time.Time) (time.Time, error) {
	if d, err := time.ParseDuration(s.Reset); err == nil {
		return now.Add(d), nil
	}
	at, err := time.Parse(time.RFC3339, s.Reset)
	if err != nil {
		return at, errors.New(`reset is a duration such as "1h", or a time such as 2026-12-01T10:00:00Z`)
	}
	return at, nil
}

func pairs(node *yaml.Node) func(func(key, value *yaml.Node) bool) {
	return func(yield func(key, value *yaml.Node) bool) {
		for i := 0; i+1 < len(node.Content); i += 2 {
			if !yield(node.Content[i], node.Content[i+1]) {
				return
			}
		}
	}
}

func list(words []string) string { return strings.Join(words, ", ") }

func number(text string) (int64, error) {
	var n int64
	if err := json.Unmarshal([]byte(text), &n); err != nil || n < 0 {
		return 0, fmt.Errorf("%q is no whole number", text)
	}
	return n, nil
}

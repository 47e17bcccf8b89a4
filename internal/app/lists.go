package app

import (
	"bytes"
	"encoding/json"

	"go.yaml.in/yaml/v3"

	"github.com/claudomator/claudomator/internal/work"
)

// StringList is a list of strings that may also be written as one string.
type StringList []string

// UnmarshalJSON takes a list or one string.
func (l *StringList) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte(`"`)) {
		var one string
		if err := json.Unmarshal(data, &one); err != nil {
			return err
		}
		*l = StringList{one}
		return nil
	}
	var many []string
	if err := json.Unmarshal(data, &many); err != nil {
		return work.Errorf(work.Invalid, "a list of texts, or one text, is expected")
	}
	*l = many
	return nil
}

// UnmarshalYAML takes a list or one string.
func (l *StringList) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		*l = StringList{node.Value}
		return nil
	}
	var many []string
	if err := node.Decode(&many); err != nil {
		return err
	}
	*l = many
	return nil
}

// ValidationList is a list of validations; one alone may stand without brackets.
type ValidationList []work.Validation

// UnmarshalJSON takes a list or one validation.
func (l *ValidationList) UnmarshalJSON(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		var one work.Validation
		if err := d.Decode(&one); err != nil {
			return work.Errorf(work.Invalid, "the validation does not fit: %w", err).WithHint("type, steps, success_criteria")
		}
		*l = ValidationList{one}
		return nil
	}
	var many []work.Validation
	if err := d.Decode(&many); err != nil {
		return work.Errorf(work.Invalid, "the validation does not fit: %w", err).WithHint("a list of: type, steps, success_criteria")
	}
	*l = many
	return nil
}

package config

import "log/slog"

const hidden = "[hidden]"

// Secret is a text that no printing, logging or encoding shows. The value is
// behind a pointer, so that even %+v of a struct around it prints no more than an
// address. The zero Secret is empty.
type Secret struct{ value *string }

// NewSecret hides value.
func NewSecret(value string) Secret {
	if value == "" {
		return Secret{}
	}
	return Secret{&value}
}

// Reveal is the only way to the value.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// String says only whether there is a value.
func (s Secret) String() string {
	if s.value == nil {
		return ""
	}
	return hidden
}

// GoString is String for %#v.
func (s Secret) GoString() string { return `config.Secret("` + s.String() + `")` }

// LogValue is String for slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalJSON is String for JSON.
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + s.String() + `"`), nil }

// MarshalText is String for YAML and the other text encodings.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText is NewSecret for decoders.
func (s *Secret) UnmarshalText(text []byte) error {
	*s = NewSecret(string(text))
	return nil
}

// Equal compares values, not pointers.
func (s Secret) Equal(other Secret) bool { return s.Reveal() == other.Reveal() }

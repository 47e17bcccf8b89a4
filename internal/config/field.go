package config

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// field is one setting as the struct's tags describe it. In the key of a setting
// that exists once per agent type, "*" stands for the type's name.
type field struct {
	key string
	typ reflect.Type
	tag reflect.StructTag
}

// env is the variable that sets the field, with "*" as in the key.
func (f field) env() string {
	return "CLAUDOMATOR_" + strings.ToUpper(strings.ReplaceAll(f.key, ".", "_"))
}

// fields lists all settings in the order of the struct.
func fields() []field { return fieldsOf(reflect.TypeFor[Config](), "") }

func fieldsOf(t reflect.Type, prefix string) []field {
	var all []field
	for i := range t.NumField() {
		sf := t.Field(i)
		key := prefix + sf.Tag.Get("koanf")
		switch {
		case !sf.IsExported():
		case sf.Type.Kind() == reflect.Map:
			all = append(all, fieldsOf(sf.Type.Elem(), key+".*.")...)
		case isGroup(sf.Type):
			all = append(all, fieldsOf(sf.Type, key+".")...)
		default:
			all = append(all, field{key, sf.Type, sf.Tag})
		}
	}
	return all
}

// isGroup tells a struct that holds settings from one that is a value.
func isGroup(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t != reflect.TypeFor[Secret]()
}

// fieldFor finds the setting that a full key names.
func fieldFor(key string) (field, bool) {
	parts := strings.Split(key, ".")
	for _, f := range fields() {
		if of := strings.Split(f.key, "."); len(of) == len(parts) && covers(of, parts) {
			return f, true
		}
	}
	return field{}, false
}

// isLevel tells whether settings lie below a key.
func isLevel(key string) bool {
	parts := strings.Split(key, ".")
	return slices.ContainsFunc(fields(), func(f field) bool {
		of := strings.Split(f.key, ".")
		return len(of) > len(parts) && covers(of, parts)
	})
}

// covers tells whether parts agree with the beginning of a field's key.
func covers(of, parts []string) bool {
	for i, part := range parts {
		if part != of[i] && (of[i] != "*" || !isName(part)) {
			return false
		}
	}
	return true
}

// isName tells whether s can name an agent type: a letter, then letters, digits
// and hyphens, all small.
func isName(s string) bool {
	return s != "" && 'a' <= s[0] && s[0] <= 'z' &&
		strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// keyForEnv finds the full key that a variable sets. An agent type is written in
// capitals there, with "_" for "-".
func keyForEnv(name string) (string, bool) {
	for _, f := range fields() {
		before, after, perAgent := strings.Cut(f.env(), "*")
		if !perAgent && name == before {
			return f.key, true
		}
		agent, hasBefore := strings.CutPrefix(name, before)
		agent, hasAfter := strings.CutSuffix(agent, after)
		agent = strings.ToLower(strings.ReplaceAll(agent, "_", "-"))
		if perAgent && hasBefore && hasAfter && isName(agent) {
			return strings.Replace(f.key, "*", agent, 1), true
		}
	}
	return "", false
}

// isList tells a setting that holds several texts.
func (f field) isList() bool { return f.typ == reflect.TypeFor[[]string]() }

// enum lists the values that the field allows; nil where all are.
func (f field) enum() []string {
	if list := f.tag.Get("enum"); list != "" {
		return strings.Split(list, ",")
	}
	return nil
}

// parse reads a value of the field's type from text: the form it has in the
// environment and in flags. Items of a list are separated by commas.
func (f field) parse(text string) (any, error) {
	switch f.typ {
	case reflect.TypeFor[string](), reflect.TypeFor[Secret]():
		return text, nil // a Secret is made last: merging would copy around its pointer
	case reflect.TypeFor[[]string]():
		return split(text), nil
	case reflect.TypeFor[int]():
		n, err := strconv.Atoi(text)
		if err != nil {
			return nil, fmt.Errorf("%q is not a whole number", text)
		}
		return n, nil
	case reflect.TypeFor[time.Duration]():
		d, err := parseDuration(text)
		if err != nil {
			return nil, fmt.Errorf("%q is not a duration such as 90s, 30m, 1h30m or 7d", text)
		}
		return d, nil
	}
	return nil, fmt.Errorf("no setting has the type %s", f.typ)
}

func split(text string) []string {
	items := []string{}
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}

// parseDuration is time.ParseDuration that also knows whole days in front: 7d,
// 1d12h. A day is 24 hours.
func parseDuration(text string) (time.Duration, error) {
	count, rest, hasDays := strings.Cut(text, "d")
	if !hasDays {
		return time.ParseDuration(text)
	}
	days, err := strconv.Atoi(count)
	if err != nil || days < 0 || days > 36500 {
		return 0, fmt.Errorf("%q days", count)
	}
	if rest == "" {
		return time.Duration(days) * day, nil
	}
	d, err := time.ParseDuration(rest)
	return time.Duration(days)*day + d, err
}

// format writes a value as parse reads it; a secret stays hidden.
func format(value any) string {
	switch v := value.(type) {
	case []string:
		return strings.Join(v, ",")
	case time.Duration:
		return formatDuration(v)
	}
	return fmt.Sprint(value)
}

func formatDuration(d time.Duration) string {
	days, rest := "", d
	if d >= day {
		days, rest = strconv.Itoa(int(d/day))+"d", d%day
	}
	if rest == 0 && days != "" {
		return days
	}
	text := rest.String() // "1h0m0s": what is nothing is left out
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return days + text
}

// value is one setting of a Config, by its full key.
type value struct {
	key   string
	value any
}

// values lists what a Config holds, in the order of the struct.
func values(c *Config) []value { return valuesOf(reflect.ValueOf(c).Elem(), "") }

func valuesOf(v reflect.Value, prefix string) []value {
	var all []value
	for i := range v.NumField() {
		sf := v.Type().Field(i)
		key := prefix + sf.Tag.Get("koanf")
		switch {
		case !sf.IsExported():
		case sf.Type.Kind() == reflect.Map:
			names := v.Field(i).MapKeys()
			slices.SortFunc(names, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
			for _, name := range names {
				all = append(all, valuesOf(v.Field(i).MapIndex(name), key+"."+name.String()+".")...)
			}
		case isGroup(sf.Type):
			all = append(all, valuesOf(v.Field(i), key+".")...)
		default:
			all = append(all, value{key, v.Field(i).Interface()})
		}
	}
	return all
}

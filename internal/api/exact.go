package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// exactJSON reads JSON whose keys are spelled exactly as documented. The
// framework's check and the standard library both take keys in any case: two
// spellings of one key could then mean different things to two readers.
func exactJSON() huma.Format {
	f := huma.DefaultJSONFormat
	lenient := f.Unmarshal
	f.Unmarshal = func(data []byte, into any) error {
		if err := lenient(data, into); err != nil {
			return err
		}
		if _, untyped := into.(*any); untyped {
			return nil
		}
		var given any
		if err := json.Unmarshal(data, &given); err != nil {
			return err
		}
		return misspelled("", given, reflect.TypeOf(into).Elem())
	}
	return f
}

// misspelled names a key of value that type t has in another case only; what t
// has not at all is found by the framework.
func misspelled(at string, value any, t reflect.Type) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch value := value.(type) {
	case map[string]any:
		if t.Kind() == reflect.Slice { // one of a list, that stands alone
			t = t.Elem()
		}
		keys := jsonKeys(t)
		for _, key := range slices.Sorted(maps.Keys(value)) {
			field, known := keys[key]
			if t.Kind() == reflect.Struct && !known {
				return fmt.Errorf("unexpected property %.100q: keys are spelled exactly", strings.TrimPrefix(at+"."+key, "."))
			}
			if t.Kind() == reflect.Map {
				field = t.Elem()
			}
			if field == nil {
				continue
			}
			if err := misspelled(at+"."+key, value[key], field); err != nil {
				return err
			}
		}
	case []any:
		if t.Kind() != reflect.Slice {
			return nil
		}
		for i, item := range value {
			if err := misspelled(fmt.Sprintf("%s[%d]", at, i), item, t.Elem()); err != nil {
				return err
			}
		}
	}
	return nil
}

// jsonKeys are the keys of a struct's JSON, with the types of their values; none
// for other types.
func jsonKeys(t reflect.Type) map[string]reflect.Type {
	if t.Kind() != reflect.Struct {
		return nil
	}
	keys := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.IsExported() && !f.Anonymous && name != "-" && name != "" {
			keys[name] = f.Type
		}
	}
	return keys
}

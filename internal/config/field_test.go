package config

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Every setting is described, can be told apart in the environment, and has a
// type that can be read.
func TestFields(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, f := range fields() {
		if f.tag.Get("doc") == "" {
			t.Errorf("%s has no doc tag", f.key)
		}
		env := strings.ReplaceAll(f.env(), "*", "X")
		if other := seen[env]; other != "" {
			t.Errorf("%s and %s have the same variable %s", f.key, other, env)
		}
		seen[env] = f.key
		if key, known := keyForEnv(env); !known || key != strings.ReplaceAll(f.key, "*", "x") {
			t.Errorf("%s sets %q, want %s", env, key, f.key)
		}
		switch f.typ {
		case reflect.TypeFor[int](), reflect.TypeFor[time.Duration]():
		default:
			if _, err := f.parse("text"); err != nil {
				t.Errorf("%s cannot be read: %v", f.key, err)
			}
		}
		if lowest, ok := f.tag.Lookup("min"); ok {
			if _, err := f.parse(lowest); err != nil {
				t.Errorf("%s: its lowest value: %v", f.key, err)
			}
		}
	}
}

// What is shown as a duration can be written into a file as it is.
func TestDurationsRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(0, int64(1000*day)).Draw(t, "duration"))
		got, err := parseDuration(formatDuration(d))
		if err != nil || got != d {
			t.Fatalf("%v is shown as %q and read as %v, %v", d, formatDuration(d), got, err)
		}
	})
}

func TestDurationText(t *testing.T) {
	t.Parallel()
	for text, d := range map[string]time.Duration{
		"0s": 0, "90d": 90 * day, "1d12h": 36 * time.Hour, "30m": 30 * time.Minute,
		"1h": time.Hour, "1h30m": 90 * time.Minute, "1m30s": 90 * time.Second, "1h0m5s": time.Hour + 5*time.Second,
	} {
		if got := formatDuration(d); got != text {
			t.Errorf("%v is shown as %q, want %q", d, got, text)
		}
	}
}

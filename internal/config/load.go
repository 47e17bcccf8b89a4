package config

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/v2"
)

// Input is where the layers above the defaults come from.
type Input struct {
	// File is the YAML file; it must exist. Empty: the file that
	// CLAUDOMATOR_CONFIG names, else claudomator/config.yaml in the user's
	// configuration folder, if there is one.
	File string
	// Environ is the environment, as os.Environ gives it.
	Environ []string
	// Flags maps keys to what was given on the command line, as text.
	Flags map[string]string
}

// layer is what one source says: values by full key, and where each one stands.
type layer struct {
	values  map[string]any
	origins map[string]string
}

func newLayer() layer { return layer{map[string]any{}, map[string]string{}} }

// set parses text into the layer, or says what is wrong with it.
func (l layer) set(f field, key, text, origin string) []Problem {
	v, err := f.parse(text)
	if err != nil {
		return []Problem{{origin, key, err.Error()}}
	}
	l.values[key], l.origins[key] = v, origin
	return nil
}

// Load puts the layers on top of each other. On any problem it returns an *Error
// that lists all of them.
func Load(in Input) (*Config, error) {
	config := Default(in.Environ)
	merged := koanf.New(".")
	config.origins = map[string]string{}
	var problems []Problem
	for _, read := range []func(Input) (layer, []Problem){fileLayer, environmentLayer, flagLayer} {
		l, wrong := read(in)
		problems = append(problems, wrong...)
		if err := merged.Load(confmap.Provider(l.values, "."), nil); err != nil {
			return nil, fmt.Errorf("merge settings: %w", err)
		}
		maps.Copy(config.origins, l.origins)
	}
	if err := merged.Unmarshal("", &config); err != nil {
		return nil, fmt.Errorf("fill in settings: %w", err)
	}
	problems = append(problems, config.check()...)
	if len(problems) > 0 {
		return nil, &Error{problems}
	}
	return &config, nil
}

// fileLayer reads the YAML file, if there is one.
func fileLayer(in Input) (layer, []Problem) {
	name, mustExist := in.File, true
	if name == "" {
		name = lookup(in.Environ, "CLAUDOMATOR_CONFIG")
	}
	if name == "" {
		folder := home(in.Environ, "XDG_CONFIG_HOME", ".config")
		if folder == "" {
			return newLayer(), nil
		}
		name, mustExist = filepath.Join(folder, "config.yaml"), false
	}
	text, err := os.ReadFile(name)
	if os.IsNotExist(err) && !mustExist {
		return newLayer(), nil
	}
	if err != nil {
		return newLayer(), []Problem{{Origin: name, Message: "cannot be read: " + reason(err)}}
	}
	return parseFile(name, text)
}

// environmentLayer reads CLAUDOMATOR_… variables. One that is empty is not set.
func environmentLayer(in Input) (layer, []Problem) {
	l := newLayer()
	var problems []Problem
	for _, entry := range in.Environ {
		name, text, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, "CLAUDOMATOR_") || text == "" || slices.Contains(otherVariables(), name) {
			continue
		}
		key, known := keyForEnv(name)
		if !known {
			problems = append(problems, Problem{Origin: "environment " + name, Message: unknown(name, variables())})
			continue
		}
		f, _ := fieldFor(key)
		problems = append(problems, l.set(f, key, text, "environment "+name)...)
	}
	return l, problems
}

// otherVariables are ours, but no settings of a server: the client's, those an
// agent is started with, and those of the tests.
func otherVariables() []string {
	return []string{
		"CLAUDOMATOR_CONFIG", "CLAUDOMATOR_SERVER", "CLAUDOMATOR_TOKEN",
		"CLAUDOMATOR_TASK_ID", "CLAUDOMATOR_EXECUTION_ID", "CLAUDOMATOR_MCP_URL", "CLAUDOMATOR_MCP_TOKEN", "CLAUDOMATOR_BIN",
		"CLAUDOMATOR_CI", "CLAUDOMATOR_TEST_POSTGRES", "CLAUDOMATOR_CHAOS",
	}
}

// flagLayer takes what the command line set.
func flagLayer(in Input) (layer, []Problem) {
	l := newLayer()
	var problems []Problem
	for _, key := range slices.Sorted(maps.Keys(in.Flags)) {
		origin := "flag --" + strings.NewReplacer("_", "-", ".", "-").Replace(key)
		f, known := fieldFor(key)
		if !known {
			problems = append(problems, Problem{origin, key, unknown(key, keys())})
			continue
		}
		problems = append(problems, l.set(f, key, in.Flags[key], origin)...)
	}
	return l, problems
}

func keys() []string {
	var all []string
	for _, f := range fields() {
		all = append(all, f.key)
	}
	return all
}

func variables() []string {
	all := otherVariables()
	for _, f := range fields() {
		all = append(all, f.env())
	}
	return all
}

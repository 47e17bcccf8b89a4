package config

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
)

// load writes file (unless it is empty), loads it, and returns its name too.
func load(t *testing.T, file string, environ []string, flags map[string]string) (*Config, string, error) {
	t.Helper()
	in := Input{Environ: append([]string{"HOME=/home/me"}, environ...), Flags: flags}
	if file != "" {
		in.File = filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(in.File, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := Load(in)
	return c, cmp.Or(in.File, "no file"), err
}

func mustLoad(t *testing.T, file string, environ []string, flags map[string]string) *Config {
	t.Helper()
	c, _, err := load(t, file, environ, flags)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	c := mustLoad(t, "", nil, nil)
	if c.Slots < 4 {
		t.Errorf("Slots = %d, want at least 4", c.Slots)
	}
	if want := "/home/me/.local/share/claudomator"; c.DataDir != want {
		t.Errorf("DataDir = %q, want %q", c.DataDir, want)
	}
	if want := "/home/me/.local/share/claudomator/claudomator.db"; c.SQLiteFile() != want {
		t.Errorf("SQLiteFile() = %q, want %q", c.SQLiteFile(), want)
	}
	want := Limits{Wall: time.Hour, Task: 30 * time.Minute, Silence: 15 * time.Minute, Judge: 10 * time.Minute}
	if diff := gocmp.Diff(want, c.Limits); diff != "" {
		t.Errorf("Limits (-want +got):\n%s", diff)
	}
	keep := Retention{Workspaces: 168 * time.Hour, Bin: 336 * time.Hour, Transcripts: 2160 * time.Hour}
	if diff := gocmp.Diff(keep, c.Retention); diff != "" {
		t.Errorf("Retention (-want +got):\n%s", diff)
	}
	for _, s := range c.Origins() {
		if s.Origin != "default" {
			t.Errorf("%s comes from %q, want the default", s.Key, s.Origin)
		}
	}
}

const everyLayer = `# settings of a test
slots: 3
data_dir: /srv/file
allowed_hosts: [one.example, two.example]
log:
  format: json
  level:
limits:
  wall: 2d
  silence: 5m
agents:
  claude: {slots: 2}
  open-code: {slots: 1}
`

// Each layer wins over the one below it, and every value says which one won.
func TestLayers(t *testing.T) {
	t.Parallel()
	environ := []string{
		"CLAUDOMATOR_DATA_DIR=/srv/env", "CLAUDOMATOR_LIMITS_SILENCE=7m", "CLAUDOMATOR_SLOTS=",
		"CLAUDOMATOR_DATABASE=postgres://me:hunter2@db/work", "CLAUDOMATOR_AGENTS_OPEN_CODE_SLOTS=6",
		"CLAUDOMATOR_TASK_ID=not-a-setting",
	}
	flags := map[string]string{"data_dir": "/srv/flag", "log.level": "debug"}
	c, file, err := load(t, everyLayer, environ, flags)
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Database.Reveal(); got != "postgres://me:hunter2@db/work" {
		t.Errorf("Database = %q", got)
	}
	if diff := gocmp.Diff(map[string]Agent{"claude": {Slots: 2}, "open-code": {Slots: 6}}, c.Agents); diff != "" {
		t.Errorf("Agents (-want +got):\n%s", diff)
	}
	got := map[string]string{}
	for _, s := range c.Origins() {
		got[s.Key] = s.Value + " from " + strings.Replace(s.Origin, file, "FILE", 1)
	}
	want := map[string]string{
		"addr":                  "127.0.0.1:7420 from default",
		"agent":                 " from default",
		"allowed_hosts":         "one.example,two.example from FILE:4",
		"data_dir":              "/srv/flag from flag --data-dir",
		"database":              "[hidden] from environment CLAUDOMATOR_DATABASE",
		"slots":                 "3 from FILE:2",
		"agents.claude.command": " from default", "agents.claude.inherit": " from default",
		"agents.claude.model": " from default", "agents.claude.protocol": " from default",
		"agents.open-code.command": " from default", "agents.open-code.inherit": " from default",
		"agents.open-code.model": " from default", "agents.open-code.protocol": " from default",
		"agents.claude.slots":    "2 from FILE:12",
		"agents.open-code.slots": "6 from environment CLAUDOMATOR_AGENTS_OPEN_CODE_SLOTS",
		"limits.wall":            "2d from FILE:9",
		"limits.task":            "30m from default",
		"limits.silence":         "7m from environment CLAUDOMATOR_LIMITS_SILENCE",
		"limits.judge":           "10m from default",
		"retention.workspaces":   "7d from default",
		"retention.bin":          "14d from default",
		"retention.transcripts":  "90d from default",
		"log.level":              "debug from flag --log-level",
		"log.format":             "json from FILE:6",
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("origins (-want +got):\n%s", diff)
	}
}

// Whatever is wrong is reported at once, with its place.
func TestProblems(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		file    string
		environ []string
		flags   map[string]string
		want    []string
	}{
		{name: "unknown key", file: "addr: :80\nslotz: 3\nlimits:\n  wal: 1h\n", want: []string{
			"FILE:2: slotz: there is no such setting; slots is meant?",
			"FILE:4: limits.wal: there is no such setting; limits.wall is meant?",
		}},
		{name: "far from any key", file: "budget: 3\n", want: []string{"FILE:1: budget: there is no such setting"}},
		{name: "set twice", file: "slots: 1\nslots: 2\n", want: []string{"FILE:2: slots: is set twice"}},
		{name: "wrong kinds", file: "slots: many\nlimits: 3\naddr: [a]\nallowed_hosts: {a: b}\nlog:\n  level: {a: b}\n", want: []string{
			`FILE:1: slots: "many" is not a whole number`,
			"FILE:2: limits: is not a list of keys with values",
			"FILE:3: addr: is not a single value",
			"FILE:4: allowed_hosts: is not a single value",
			"FILE:6: log.level: is not a single value",
		}},
		{name: "a number for a text", file: "slots: 3\naddr: 7\n", want: []string{`FILE:2: addr: "7" is no address to listen on: HOST:PORT is wanted`}},
		{name: "nothing in a list", file: "agents:\n  mine:\n    command:\n      - run\n      -\n", want: []string{"FILE:5: agents.mine.command: is not a list of plain texts"}},
		{name: "durations", file: "limits: {wall: 3, task: 5x, silence: -1m}\nretention: {bin: 1.5d}\n", want: []string{
			`FILE:1: limits.wall: "3" is not a duration such as 90s, 30m, 1h30m or 7d`,
			`FILE:1: limits.task: "5x" is not a duration such as 90s, 30m, 1h30m or 7d`,
			`FILE:2: retention.bin: "1.5d" is not a duration such as 90s, 30m, 1h30m or 7d`,
			"FILE:1: limits.silence: -1m is less than 1s",
		}},
		{name: "no YAML", file: "slots: [\n", want: []string{"FILE: line 1: did not find expected node content"}},
		{name: "two documents", file: "slots: 1\n---\nslots: 2\n", want: []string{"FILE: holds more than one document"}},
		{name: "a list at the top", file: "- slots\n", want: []string{"FILE:1: is not a list of keys with values"}},
		{name: "agent name", file: "agents:\n  Claude: {slots: 1}\n", want: []string{"FILE:2: agents.Claude: there is no such setting"}},
		{name: "environment", environ: []string{"CLAUDOMATOR_SLOT=3", "CLAUDOMATOR_LOG_LEVEL=loud"}, want: []string{
			"environment CLAUDOMATOR_SLOT: there is no such setting; CLAUDOMATOR_SLOTS is meant?",
			`environment CLAUDOMATOR_LOG_LEVEL: log.level: "loud" is not one of debug, info, warn, error`,
		}},
		{name: "flags", flags: map[string]string{"port": "80", "addr": "80", "slots": "0"}, want: []string{
			"flag --port: port: there is no such setting",
			"flag --slots: slots: 0 is less than 1",
			`flag --addr: addr: "80" is no address to listen on: HOST:PORT is wanted`,
		}},
		{name: "sense", file: "addr: a:b\nallowed_hosts: ['*.example']\ndatabase: mysql://me:hunter2@db\nlimits: {wall: 10m}\n", want: []string{
			`FILE:1: addr: "a:b" is no address to listen on: the port is not a number from 0 to 65535`,
			"FILE:3: database: is not a URL that begins with postgres://; leave it empty for SQLite",
			`FILE:2: allowed_hosts: "*.example" is not the exact name of a host`,
			"default: limits.task: 30m is more than limits.wall allows (10m)",
		}},
		{name: "no home", environ: []string{"HOME="}, want: []string{"default: data_dir: there is no home folder to put it in: set it"}},
		{name: "no such file", environ: []string{"CLAUDOMATOR_CONFIG=/nowhere/c.yaml"}, want: []string{"/nowhere/c.yaml: cannot be read: no such file or directory"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, file, err := load(t, tt.file, tt.environ, tt.flags)
			var wrong *Error
			if !errors.As(err, &wrong) || c != nil {
				t.Fatalf("Load = %v, %v; want no Config and an *Error", c, err)
			}
			var got []string
			for _, p := range wrong.Problems {
				got = append(got, strings.Replace(p.String(), file, "FILE", 1))
				if !strings.Contains(err.Error(), p.String()) {
					t.Errorf("the error does not say %q", p)
				}
			}
			if diff := gocmp.Diff(tt.want, got); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error shows the password: %v", err)
			}
		})
	}
}

// TestNumbersForTexts: what YAML takes for a number or a yes is, where a text is
// wanted, the text as it is written.
func TestNumbersForTexts(t *testing.T) {
	t.Parallel()
	c := mustLoad(t, "data_dir: 007\nagents:\n  mine: {protocol: command, model: 1.10, command: [sleep, 5, yes]}\n", nil, nil)
	want := Agent{Protocol: "command", Model: "1.10", Command: []string{"sleep", "5", "yes"}}
	if diff := gocmp.Diff(want, c.Agents["mine"]); diff != "" || c.DataDir != "007" {
		t.Errorf("DataDir = %q, agent (-want +got):\n%s", c.DataDir, diff)
	}
}

// A file that says nothing changes nothing; the default place may be empty.
func TestFilesThatSayNothing(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"# only a comment\n", "---\n", "slots:\nlimits:\n"} {
		if c := mustLoad(t, text, nil, nil); c.Slots < 4 || c.Limits.Wall != time.Hour {
			t.Errorf("after %q: Slots = %d, Limits.Wall = %v", text, c.Slots, c.Limits.Wall)
		}
	}
}

func TestFileInItsDefaultPlace(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	if err := os.MkdirAll(filepath.Join(base, "claudomator"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(base, "claudomator", "config.yaml"), []byte("slots: 9\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if c := mustLoad(t, "", []string{"XDG_CONFIG_HOME=" + base}, nil); c.Slots != 9 {
		t.Errorf("Slots = %d, want the file's 9", c.Slots)
	}
}

func FuzzFile(f *testing.F) {
	f.Add(everyLayer)
	f.Add("a: &a {b: *a}\n")
	f.Add("limits: &x {wall: 1h}\nretention: *x\n")
	f.Fuzz(func(t *testing.T, text string) {
		l, problems := parseFile("f", []byte(text))
		for key := range l.values {
			if _, known := fieldFor(key); !known {
				t.Errorf("%q was taken although there is no such setting (%v)", key, problems)
			}
		}
	})
}

package config

import (
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Config is every setting of a server. Tags: koanf is the key, doc its
// description, enum the values allowed, min the smallest number or duration, and
// machine marks a default that differs from machine to machine.
type Config struct {
	Addr         string           `koanf:"addr" doc:"Address to listen on, HOST:PORT."`
	AllowedHosts []string         `koanf:"allowed_hosts" doc:"Host names that requests may name, besides the address itself and localhost."`
	DataDir      string           `koanf:"data_dir" doc:"Folder for the database, vaults, workspaces and transcripts." machine:"the user's data folder"`
	Database     Secret           `koanf:"database" doc:"PostgreSQL URL. Empty: SQLite in the data folder."`
	Slots        int              `koanf:"slots" doc:"Executions that run at once." min:"1" machine:"the number of cores, at least 4"`
	Agent        string           `koanf:"agent" doc:"Agent type where neither task, role, parent nor project names one. Empty: such a task is refused."`
	Agents       map[string]Agent `koanf:"agents" doc:"Agent programs, by the name of their type: settings of the known ones, and further ones."`
	Limits       Limits           `koanf:"limits" doc:"Limits of one execution."`
	Retention    Retention        `koanf:"retention" doc:"How long things are kept after their task has ended."`
	Log          Log              `koanf:"log" doc:"The server's own log, on standard error."`

	origins map[string]string // final key → the layer that set it
}

// Agent is one type of agent. The types acp, claude, codex, command and scripted
// are there without a setting; any other name needs a Protocol and a Command.
type Agent struct {
	Slots    int      `koanf:"slots" doc:"Executions of this type that run at once. 0: no limit of its own." min:"0"`
	Protocol string   `koanf:"protocol" doc:"How the server talks with the program: acp for anything that speaks the Agent Client Protocol. Empty: as the name of the type says." enum:",acp,claude,codex,command"`
	Command  []string `koanf:"command" doc:"Program and first arguments, where it is not the usual one found in PATH."`
	Model    string   `koanf:"model" doc:"Model where neither task nor role names one. Empty: the program's own."`
	Inherit  []string `koanf:"inherit" doc:"Variables of the server's environment that these agents get, such as ANTHROPIC_API_KEY. Logins kept in the home folder need none."`
}

// Limits end an execution that goes on for too long. A task's own timeout goes
// before Task, never beyond Wall.
type Limits struct {
	Wall    time.Duration `koanf:"wall" doc:"The longest any execution may run." min:"1s"`
	Task    time.Duration `koanf:"task" doc:"How long a task's execution may run unless the task says otherwise." min:"1s"`
	Silence time.Duration `koanf:"silence" doc:"How long an execution may run without output." min:"1s"`
	Judge   time.Duration `koanf:"judge" doc:"How long a judge's execution may run." min:"1s"`
}

// Retention says when what is left of ended work is removed.
type Retention struct {
	Workspaces  time.Duration `koanf:"workspaces" doc:"Until a workspace moves to the bin." min:"0s"`
	Bin         time.Duration `koanf:"bin" doc:"Until what is in the bin is deleted." min:"0s"`
	Transcripts time.Duration `koanf:"transcripts" doc:"Until an execution's transcript is deleted." min:"0s"`
}

// Log says how much the server logs, and in which form.
type Log struct {
	Level  string `koanf:"level" doc:"The least important messages that are logged." enum:"debug,info,warn,error"`
	Format string `koanf:"format" doc:"Lines for people (text) or for programs (json)." enum:"text,json"`
}

const day = 24 * time.Hour

// Default is the weakest layer. DataDir is empty where the environment names no
// home; [Load] then asks for it.
func Default(environ []string) Config {
	return Config{
		Addr:    "127.0.0.1:7420",
		DataDir: home(environ, "XDG_DATA_HOME", ".local/share"),
		Slots:   max(4, runtime.NumCPU()),
		Limits: Limits{
			Wall:    time.Hour,
			Task:    30 * time.Minute,
			Silence: 15 * time.Minute,
			Judge:   10 * time.Minute,
		},
		Retention: Retention{
			Workspaces:  7 * day,
			Bin:         14 * day,
			Transcripts: 90 * day,
		},
		Log: Log{Level: "info", Format: "text"},
	}
}

// SQLiteFile is where the database lies when Database is empty.
func (c *Config) SQLiteFile() string { return filepath.Join(c.DataDir, "claudomator.db") }

// Setting is one value as [Config.Origins] shows it.
type Setting struct {
	Key    string
	Value  string // as it could be written in the environment; a secret is hidden
	Origin string // "default", "FILE:LINE", "environment NAME" or "flag --NAME"
}

// Origins lists every setting in the order of the struct, with where it came from.
func (c *Config) Origins() []Setting {
	var all []Setting
	for _, v := range values(c) {
		all = append(all, Setting{Key: v.key, Value: format(v.value), Origin: c.originOf(v.key)})
	}
	return all
}

func (c *Config) originOf(key string) string {
	if origin := c.origins[key]; origin != "" {
		return origin
	}
	return "default"
}

// home is the program's folder below an XDG base folder, or "" without a home.
func home(environ []string, xdg, below string) string {
	if base := lookup(environ, xdg); filepath.IsAbs(base) {
		return filepath.Join(base, "claudomator")
	}
	if base := lookup(environ, "HOME"); base != "" {
		return filepath.Join(base, below, "claudomator")
	}
	return ""
}

// lookup finds a variable in the form that os.Environ gives. The last one counts.
func lookup(environ []string, name string) string {
	value := ""
	for _, entry := range environ {
		if v, ok := strings.CutPrefix(entry, name+"="); ok {
			value = v
		}
	}
	return value
}

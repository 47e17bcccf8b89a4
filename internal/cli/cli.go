package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

// Deps is what the command line needs from the process around it.
type Deps struct {
	In         io.Reader
	Out, Err   io.Writer
	Environ    []string   // as os.Environ gives it
	Terminal   bool       // Out is a terminal
	InTerminal bool       // In is one: somebody can be asked
	Width      func() int // columns of Out now; 0, or no function: not known
	Height     func() int // lines of Out now, likewise
	Now        func() time.Time
	Version    string

	// Discard forgets what was typed on In and not read, so that it answers no
	// question that is asked later. Nil: nothing is forgotten.
	Discard func()
	// Interrupts hands Ctrl-C to the command until release: it then does not
	// end ctx. Nil: it always ends ctx.
	Interrupts func() (pressed <-chan struct{}, release func())

	// Connect speaks to the server at a URL.
	Connect func(ctx context.Context, server, token string) (app.API, error)
	// Serve runs a server until ctx ends. It prints the URL, as the first line
	// on standard output, when requests are accepted.
	Serve func(ctx context.Context, o ServeOptions) error
	// Host runs a server of the data folder's for one command, and speaks to it;
	// stop ends it and waits until it has ended.
	Host func(ctx context.Context, settings Settings) (api app.API, stop func() error, err error)
	// Config reads the settings, and tells where each one came from.
	Config func(settings Settings) ([]Setting, error)
	// Doctor looks at what the server needs on this machine.
	Doctor func(ctx context.Context, o DoctorOptions) ([]Check, error)
	// Tool calls a tool of a running agent's own run.
	Tool func(ctx context.Context, url, token, name string, arguments json.RawMessage) (json.RawMessage, error)
	// Scripted is the agent without a model, on the standard streams; it gives the
	// exit status.
	Scripted func(ctx context.Context, args []string) int
	// Demo shows the product at work on a sample repository.
	Demo func(ctx context.Context, o DemoOptions) error
}

// Settings are server settings as the command line got them, not yet read.
type Settings struct {
	File  string            // configuration file; empty: the default one
	Flags map[string]string // key of the setting → text; only what was given
}

// Setting is one setting of the server, as config show tells it.
type Setting struct {
	Key    string `json:"key"`
	Value  string `json:"value"`  // as it is written in the environment; secrets are hidden
	Origin string `json:"origin"` // default, FILE:LINE, environment NAME, or flag --NAME
}

// ServeOptions are the options of serve.
type ServeOptions struct{ Settings }

// DoctorOptions are the options of doctor.
type DoctorOptions struct{ Settings }

// DemoOptions are the options of demo.
type DemoOptions struct {
	Headless bool   // in the terminal, as always until there is another way
	Dir      string // where everything is made and left; empty: a temporary folder
	JSON     bool   // print events for programs
}

// CheckStatus is what a check found.
type CheckStatus string

// What a check can find.
const (
	CheckOK   CheckStatus = "ok"
	CheckWarn CheckStatus = "warn" // works, but not as well as it could
	CheckFail CheckStatus = "fail" // the server cannot work like this
)

// Check is one thing doctor looked at.
type Check struct {
	Name    string      `json:"name"`
	Status  CheckStatus `json:"status"`
	Message string      `json:"message"`
	Hint    string      `json:"hint,omitempty"`
}

// Run runs one command line (without the program's name) and gives the exit code.
func Run(ctx context.Context, args []string, deps Deps) int {
	s := &shell{Deps: deps}
	root := newRootCommand(s) //nolint:contextcheck // cobra hands ctx to the commands
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	if status, ok := errors.AsType[leaves](err); ok {
		return int(status)
	}
	if interrupted(ctx, err) && !errors.Is(err, errLeft) {
		err = errInterrupted
	}
	return s.report(err, args)
}

// Commands lists every command that does something, by its full name.
func Commands() []string {
	var names []string
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		if !c.HasSubCommands() {
			names = append(names, strings.TrimPrefix(c.CommandPath(), "claudomator "))
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(newRootCommand(&shell{}))
	return names
}

// shell is one run of the command line: what it was given, and the global flags.
type shell struct {
	Deps
	format  format
	server  string
	dataDir string
}

const rootHelp = `Claudomator turns goals into shipped code with coding agents.

"claudomator run" does one task in the terminal, with a server of its own where
none runs. A server holds projects, stories and tasks: start it with "claudomator serve".
The other commands talk to it: to the one that --server or CLAUDOMATOR_SERVER names (with
the token in CLAUDOMATOR_TOKEN), else to the one that uses the local data folder. None
is needed by completion, config, demo, doctor and version.

Wherever an id is asked for, an unambiguous beginning of it or a name will do.
-o json prints the object itself, lists as arrays.

Exit codes: 0 done, 1 internal error, 2 wrong use or invalid input, 3 not found,
4 conflict or not possible now, 5 not authenticated or not allowed, 6 a budget or
limit is exhausted, 7 unavailable or timed out, 8 what was awaited ended badly,
130 interrupted. Treat any other as a failure.`

func newRootCommand(s *shell) *cobra.Command {
	root := newGroup("claudomator", "Turn goals into shipped code with coding agents",
		newRunCommand(s), newServeCommand(s), newProjectCommand(s), newTaskCommand(s), newStoryCommand(s), newEpicCommand(s), newTemplateCommand(s), newMergeCommand(s), newAttentionCommand(s),
		newEventsCommand(s), newDiskCommand(s), newRescueCommand(s), newRoleCommand(s), newAgentCommand(s), newTokenCommand(s), newToolCommand(s), newScriptedCommand(s), newConfigCommand(s),
		newDoctorCommand(s), newDemoCommand(s), newVersionCommand(s), newCompletionCommand(s))
	root.Long = rootHelp
	root.Example = "  claudomator demo\n  claudomator run --agent claude \"Fix the rounding of prices\"\n  claudomator serve\n  claudomator project add shop --repo ~/src/shop --policy checked\n" +
		"  claudomator task create --project shop --name \"Fix the basket\" --instructions-file goal.md --start\n" +
		"  claudomator story elaborate --project shop \"Customers can pay with gift cards\""
	root.SilenceErrors, root.SilenceUsage = true, true
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.SetFlagErrorFunc(flagError)
	flags := root.PersistentFlags()
	flags.VarP(&s.format, "output", "o", "text for people, json for programs")
	flags.StringVar(&s.server, "server", "", "URL of the server (CLAUDOMATOR_SERVER)")
	flags.StringVar(&s.dataDir, "data-dir", "", "data folder of the local server (CLAUDOMATOR_DATA_DIR)")
	return root
}

// newGroup is a command that only holds others.
func newGroup(use, short string, subs ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: cobra.ArbitraryArgs}
	c.FParseErrWhitelist.UnknownFlags = true // a misspelt command is the error, not its flags
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 0 && !c.HasParent() {
			return c.Help()
		}
		var names []string
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() {
				names = append(names, sub.Name())
			}
		}
		if len(args) == 0 {
			return usageError(c, "%s needs a command", c.CommandPath()).WithHint("one of: %s", strings.Join(names, ", "))
		}
		err := usageError(c, "%s has no command %q", c.CommandPath(), args[0])
		if meant := nearest(args[0], names); meant != "" {
			return err.WithHint("did you mean `%s %s`?", c.CommandPath(), meant)
		}
		return err.WithHint("one of: %s", strings.Join(names, ", "))
	}
	c.AddCommand(subs...)
	return c
}

// call makes the body of a command that talks to the server.
func (s *shell) call(run func(ctx context.Context, api app.API, args []string) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		api, err := s.connect(c.Context())
		if err != nil {
			return err
		}
		return run(c.Context(), api, args)
	}
}

// takes checks the arguments of a command; a name in brackets may be left out.
func takes(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		for i, name := range names {
			if i >= len(args) && !strings.HasPrefix(name, "[") {
				return usageError(c, "%s needs %s", c.CommandPath(), name)
			}
			if i < len(args) && args[i] == "" {
				return usageError(c, "%s is empty", strings.Trim(name, "[]"))
			}
		}
		if len(args) > len(names) {
			return usageError(c, "%s does not take %q", c.CommandPath(), args[len(names)])
		}
		return nil
	}
}

func usageError(c *cobra.Command, message string, args ...any) *work.Error {
	return work.Errorf(work.Invalid, message, args...).WithHint("see `%s --help`", c.CommandPath())
}

// givenFlags lists the command's own flags that were given.
func givenFlags(c *cobra.Command) []string {
	var names []string
	c.Flags().Visit(func(f *pflag.Flag) {
		if c.InheritedFlags().Lookup(f.Name) == nil {
			names = append(names, f.Name)
		}
	})
	return names
}

// atMostOne refuses flags that exclude each other.
func atMostOne(c *cobra.Command, flags ...string) error {
	given := slices.DeleteFunc(givenFlags(c), func(name string) bool { return !slices.Contains(flags, name) })
	if len(given) > 1 {
		return usageError(c, "--%s cannot be given together", strings.Join(given, " and --"))
	}
	return nil
}

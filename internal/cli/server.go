package cli

import (
	"runtime"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/claudomator/claudomator/internal/work"
)

// settingFlags are the server's settings that can be given as flags.
type settingFlags struct {
	file, addr, logLevel, logFormat string
	slots                           int
}

func (f *settingFlags) define(c *cobra.Command) {
	flags := c.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.addr, "addr", "", "address to listen on, HOST:PORT; port 0: any free one (default 127.0.0.1:7420)")
	flags.StringVar(&f.file, "config", "", "settings file (CLAUDOMATOR_CONFIG)")
	flags.IntVar(&f.slots, "slots", 0, "executions that run at once (default: the number of cores, at least 4)")
	flags.StringVar(&f.logLevel, "log-level", "", "debug, info, warn or error")
	flags.StringVar(&f.logFormat, "log-format", "", "text or json")
}

func (f *settingFlags) settings(c *cobra.Command, s *shell) Settings {
	out := Settings{File: f.file, Flags: map[string]string{}}
	for _, x := range []struct{ flag, key, text string }{
		{"addr", "addr", f.addr}, {"data-dir", "data_dir", s.dataDir}, {"slots", "slots", strconv.Itoa(f.slots)},
		{"log-level", "log.level", f.logLevel}, {"log-format", "log.format", f.logFormat},
	} {
		if c.Flags().Changed(x.flag) {
			out.Flags[x.key] = x.text
		}
	}
	return out
}

func newServeCommand(s *shell) *cobra.Command {
	var f settingFlags
	c := &cobra.Command{
		Use: "serve", Short: "Run the server until it is interrupted", Args: takes(),
		Long: "Run the server until it is interrupted. It prints its URL on the first line of standard\n" +
			"output when it accepts requests; the token for it is in the data folder's file \"token\".\n" +
			"Every setting can also stand in the settings file, or in the environment.",
		Example: "  claudomator serve\n  claudomator serve --addr 127.0.0.1:0 --data-dir /srv/claudomator",
	}
	f.define(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		return s.Serve(c.Context(), ServeOptions{f.settings(c, s)})
	}
	return c
}

func newDoctorCommand(s *shell) *cobra.Command {
	var f settingFlags
	c := &cobra.Command{
		Use: "doctor", Short: "Look at what the server needs on this machine", Args: takes(), Example: "  claudomator doctor",
	}
	f.define(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		checks, err := s.Doctor(c.Context(), DoctorOptions{f.settings(c, s)})
		if err != nil {
			return err
		}
		failed := 0
		for _, check := range checks {
			if check.Status == CheckFail {
				failed++
			}
		}
		err = s.show(list(checks), func(p *page) {
			var rows [][]string
			for _, check := range checks {
				text := check.Message
				if check.Hint != "" {
					text += " (" + check.Hint + ")"
				}
				rows = append(rows, []string{string(check.Status), check.Name, text})
			}
			p.table("", []string{"STATUS", "CHECK", "FOUND"}, rows)
		})
		if err == nil && failed > 0 {
			return work.Errorf(work.Unavailable, "%s failed", count(failed, "check")).WithReason("doctor").WithHint("see above")
		}
		return err
	}
	return c
}

func newDemoCommand(s *shell) *cobra.Command {
	var o DemoOptions
	c := &cobra.Command{
		Use: "demo", Short: "Watch a story go all the way on a sample repository", Args: takes(),
		Long: "Watch a story go all the way on a sample repository: plan, work that is handed out and\n" +
			"judged at every level, a rejection and its fix, a question, review, ship. It needs no account\n" +
			"and no network, takes about ten seconds, and touches nothing outside of its folder.\n" +
			"With -o json its events are printed, one JSON object a line.",
		Example: "  claudomator demo\n  claudomator demo --headless --dir /tmp/demo",
	}
	c.Flags().BoolVar(&o.Headless, "headless", false, "in the terminal: the only way there is yet, with or without this flag")
	c.Flags().StringVar(&o.Dir, "dir", "", "make it here and leave it (default: a temporary folder)")
	c.RunE = func(c *cobra.Command, _ []string) error {
		o.JSON = s.format == jsonFormat
		return s.Demo(c.Context(), o)
	}
	return c
}

func newVersionCommand(s *shell) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: takes(), Example: "  claudomator version",
		RunE: func(*cobra.Command, []string) error {
			facts := map[string]string{"version": s.Version, "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH}
			return s.show(facts, func(p *page) {
				p.line("claudomator %s (%s, %s)", s.Version, facts["go"], facts["platform"])
			})
		},
	}
}

func newCompletionCommand(s *shell) *cobra.Command {
	return &cobra.Command{
		Use: "completion bash|zsh|fish|powershell", Short: "Print a completion script for a shell", Args: takes("SHELL"),
		Long:      "Print a completion script for a shell. It completes commands, flags, ids and names.",
		Example:   "  source <(claudomator completion bash)\n  claudomator completion fish > ~/.config/fish/completions/claudomator.fish",
		ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
		RunE: func(c *cobra.Command, args []string) error {
			switch root := c.Root(); args[0] {
			case "bash":
				return root.GenBashCompletionV2(s.Out, true)
			case "zsh":
				return root.GenZshCompletion(s.Out)
			case "fish":
				return root.GenFishCompletion(s.Out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(s.Out)
			}
			return usageError(c, "there is no completion for %q", args[0]).WithHint("bash, zsh, fish or powershell")
		},
	}
}

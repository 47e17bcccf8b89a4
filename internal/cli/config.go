package cli

import (
	"github.com/spf13/cobra"
)

func newConfigCommand(s *shell) *cobra.Command {
	return newGroup("config", "The settings of the server", newConfigShowCommand(s))
}

func newConfigShowCommand(s *shell) *cobra.Command {
	var f settingFlags
	c := &cobra.Command{
		Use: "show", Short: "Show every setting, and where its value comes from", Args: takes(),
		Long: "Show every setting that a server started here and now would have, and where its value\n" +
			"comes from: the defaults, a line of the settings file, the environment, or a flag given\n" +
			"with this command. Secrets are hidden. No server needs to run.",
		Example: "  claudomator config show\n  claudomator config show --config /etc/claudomator.yaml -o json",
	}
	f.define(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		all, err := s.Config(f.settings(c, s))
		if err != nil {
			return err
		}
		return s.show(list(all), func(p *page) {
			var rows [][]string
			for _, x := range all {
				rows = append(rows, []string{x.Key, x.Value, x.Origin})
			}
			p.table("", []string{"SETTING", "VALUE", "FROM"}, rows)
		})
	}
	return c
}

package cli

import "github.com/spf13/cobra"

// leaves ends the command line with a status of its own, and says nothing.
type leaves int

func (leaves) Error() string { return "" }

// newScriptedCommand is the agent without a model. It is started by the server, like
// any other agent, and by configurations that name it.
func newScriptedCommand(s *shell) *cobra.Command {
	return &cobra.Command{
		Use: "scripted-agent [SCRIPT]", Short: "Be an agent that does what a script says", Hidden: true,
		Long: "Speak the Agent Client Protocol and do what a script says: the file SCRIPT, or what the task asks.",
		Args: takes("[SCRIPT]"),
		RunE: func(c *cobra.Command, args []string) error {
			if status := s.Scripted(c.Context(), args); status != 0 {
				return leaves(status)
			}
			return nil
		},
	}
}

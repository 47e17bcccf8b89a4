package cli

import (
	"encoding/json"
	"io"

	"github.com/spf13/cobra"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

const toolHelp = `Call a tool of the run that this process belongs to, and print its JSON result.

It is meant for agents that are commands: inside a run, the environment names the
endpoint and the token (CLAUDOMATOR_MCP_URL, CLAUDOMATOR_MCP_TOKEN). JSON is the
arguments as one object; "-" reads it from standard input. After ask_user the run
is ended: it goes on when a person has answered.`

// newToolCommand gives a command agent the tools that others reach over MCP.
func newToolCommand(s *shell) *cobra.Command {
	return &cobra.Command{
		Use: "tool NAME [JSON|-]", Short: "Call a run's tool from inside the run", Long: toolHelp,
		Args: takes("NAME", "[JSON]"),
		Example: `  claudomator tool get_context
  claudomator tool spawn_subtask '{"name":"tests","instructions":"make test"}'
  claudomator tool ask_user '{"question":"Which database?"}'`,
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return wordsOf(app.Tools()), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			url, token := s.env("CLAUDOMATOR_MCP_URL"), s.env("CLAUDOMATOR_MCP_TOKEN")
			if url == "" || token == "" {
				return work.Errorf(work.Unauthenticated, "this is not inside a run").WithHint("an agent's run sets CLAUDOMATOR_MCP_URL and CLAUDOMATOR_MCP_TOKEN")
			}
			arguments, err := s.toolArguments(args[1:])
			if err != nil {
				return err
			}
			result, err := s.Tool(c.Context(), url, token, args[0], arguments)
			if err != nil {
				return err
			}
			_, err = s.Out.Write(append(escape(result), '\n'))
			return err
		},
	}
}

func (s *shell) toolArguments(args []string) (json.RawMessage, error) {
	if len(args) == 0 {
		return nil, nil
	}
	text := []byte(args[0])
	if args[0] == "-" {
		var err error
		if text, err = io.ReadAll(s.In); err != nil {
			return nil, work.Errorf(work.Invalid, "read the arguments: %w", err)
		}
	}
	var object map[string]any
	if err := json.Unmarshal(text, &object); err != nil {
		return nil, work.Errorf(work.Invalid, "the arguments are no JSON object: %w", err).WithHint(`for example '{"text":"done"}'`)
	}
	return text, nil
}

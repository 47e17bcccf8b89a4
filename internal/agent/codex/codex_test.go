package codex_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/claudomator/claudomator/internal/agent"
	"github.com/claudomator/claudomator/internal/agent/agenttest"
	"github.com/claudomator/claudomator/internal/agent/codex"
)

// fake runs the shell text in its first argument as the model's work. As a
// model would, it opens the file that a long prompt is in. What the text prints
// is printed as it is, then Codex's report follows.
const fake = `#!/bin/sh
[ "$1" = --version ] && { echo codex-cli 0.0.1; exit; }
text=$1
told="Your instructions are too long for one message. They are in the file "
first=$(mktemp) # holds as much of the input as tells whether it names a file
head -c ${#told} >"$first"
if [ "$(tr -d '\0' <"$first")" = "${told% }" ] || [ "$(tr -d '\0' <"$first")" = "$told" ]; then
	rest=$(cat)
	rm -f "$first"
	sh -c "$text" <"${rest%% (*}"
else
	{ cat "$first" -; rm -f "$first"; } | sh -c "$text"
fi
status=$?
[ $status -gt 128 ] && kill -9 $$
echo
[ $status = 0 ] && { echo '{"type":"turn.completed","usage":{"input_tokens":1}}'; exit; }
echo '{"type":"turn.failed","error":{"message":"status '$status'"}}'
exit 1
`

func fakeCodex(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "codex")
	if err := os.WriteFile(path, []byte(fake), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestConformance(t *testing.T) {
	t.Parallel()
	agenttest.Run(t, func(t *testing.T, runner *agent.Runner) agenttest.Harness {
		program := fakeCodex(t)
		return agenttest.Harness{
			Agent: codex.New(runner, []string{program}),
			Shell: func(_ *testing.T, job *agent.Job, text string) { job.Command = []string{program, text} },
			Missing: func(_ *testing.T, job *agent.Job) {
				job.Command = []string{"no-such-codex-here"}
			},
		}
	})
}

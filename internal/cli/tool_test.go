package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/claudomator/claudomator/internal/work"
)

func TestTool(t *testing.T) {
	t.Parallel()
	inside := []string{"CLAUDOMATOR_MCP_URL=http://run/mcp", "CLAUDOMATOR_MCP_TOKEN=secret"}
	tests := []struct {
		name, in string
		args     []string
		environ  []string
		refusal  error
		code     int
		called   string
		out      string
	}{
		{name: "no arguments", args: []string{"get_context"}, environ: inside, called: "get_context ", out: `{"ok":true}` + "\n"},
		{name: "arguments", args: []string{"report_summary", `{"text":"x"}`}, environ: inside, called: `report_summary {"text":"x"}`, out: `{"ok":true}` + "\n"},
		{name: "from stdin", args: []string{"report_summary", "-"}, in: `{"text":"y"}`, environ: inside, called: `report_summary {"text":"y"}`, out: `{"ok":true}` + "\n"},
		{name: "no object", args: []string{"report_summary", `["x"]`}, environ: inside, code: 2},
		{name: "outside a run", args: []string{"get_context"}, code: 5},
		{name: "too many", args: []string{"a", "{}", "c"}, environ: inside, code: 2},
		{name: "refused", args: []string{"report_verdict"}, environ: inside, refusal: work.Errorf(work.Forbidden, "no"), called: "report_verdict ", code: 5},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var out, errs bytes.Buffer
			called := ""
			code := Run(t.Context(), append([]string{"tool"}, tt.args...), Deps{
				In: strings.NewReader(tt.in), Out: &out, Err: &errs, Environ: tt.environ,
				Tool: func(_ context.Context, url, token, name string, arguments json.RawMessage) (json.RawMessage, error) {
					if url != "http://run/mcp" || token != "secret" {
						t.Errorf("called %s with %s", url, token)
					}
					called = name + " " + string(arguments)
					return json.RawMessage(`{"ok":true}`), tt.refusal
				},
			})
			if code != tt.code || called != tt.called || out.String() != tt.out {
				t.Errorf("exit %d, called %q, printed %q (%s); want %d, %q, %q", code, called, out.String(), errs.String(), tt.code, tt.called, tt.out)
			}
		})
	}
}

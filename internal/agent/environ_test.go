package agent

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEnvironment(t *testing.T) {
	t.Parallel()
	base := []string{
		"PATH=/bin", "HOME=/h", "LC_ALL=C", "LC_TIME=C", "TERM=dumb", "https_proxy=http://p",
		"CLAUDECODE=1", "CLAUDE_CODE_ENTRYPOINT=cli", "CODEX_SANDBOX=seatbelt",
		"CLAUDOMATOR_TOKEN=t", "CLAUDOMATOR_DATABASE_URL=d",
		"ANTHROPIC_API_KEY=k", "OPENAI_API_KEY=k", "PATHOLOGY=x", "LD_PRELOAD=x", "MALFORMED",
	}
	want := []string{"GIT_EDITOR=true", "GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0", "HOME=/h", "LC_ALL=C", "LC_TIME=C", "PAGER=cat", "PATH=/bin", "TERM=dumb", "https_proxy=http://p"}
	if diff := cmp.Diff(want, Environment(base, nil)); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	want = append([]string{"ANTHROPIC_API_KEY=k"}, want...)
	if diff := cmp.Diff(want, Environment(base, []string{"ANTHROPIC_*", "CLAUDOMATOR_*", "CLAUDECODE"})); diff != "" {
		t.Errorf("with more allowed (-want +got):\n%s", diff)
	}
}

func TestMergeLetsTheLaterWin(t *testing.T) {
	t.Parallel()
	got := merge([]string{"B=1", "A=1"}, []string{"A=2"}, nil, []string{"C=x=y"})
	if diff := cmp.Diff([]string{"A=2", "B=1", "C=x=y"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/claudomator/claudomator/internal/config"
	"github.com/claudomator/claudomator/internal/engine"
	"github.com/claudomator/claudomator/internal/forge"
	"github.com/claudomator/claudomator/internal/telemetry"
	"github.com/claudomator/claudomator/internal/work"
)

const forgeToken = "forge-token-0123456789"

// gitea answers as Gitea does, with one pull request whose check has failed.
func gitea(t *testing.T, status *int) *httptest.Server {
	t.Helper()
	commit := strings.Repeat("a", 40)
	pull := fmt.Sprintf(`{"number":7,"html_url":"https://forge.test/o/r/pulls/7","state":"open","head":{"ref":"story/x","sha":%q,"repo_id":1},"base":{"ref":"main","sha":%q,"repo_id":1}}`, commit, commit)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /repos/o/r/pulls", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "["+pull+"]") })
	mux.HandleFunc("GET /repos/o/r/pulls/7", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, pull) })
	mux.HandleFunc("POST /repos/o/r/pulls", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprint(w, pull)
	})
	mux.HandleFunc("GET /repos/o/r/commits/"+commit+"/status", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, `{"state":"failure","total_count":1,"statuses":[{"id":1,"status":"failure","context":"ci/unit","description":"assertion 7","target_url":"https://forge.test/ci/1"}]}`)
	})
	mux.HandleFunc("GET /repos/o/r/commits/"+commit+"/statuses", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, `[{"id":1,"status":"failure","context":"ci/unit","description":"assertion 7","target_url":"https://forge.test/ci/1"}]`)
	})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Authorization"); got != "token "+forgeToken {
			t.Errorf("asked with %q", got)
		}
		if *status != 0 {
			if *status == http.StatusTooManyRequests {
				w.Header().Set("Retry-After", "60")
			}
			w.WriteHeader(*status)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server
}

func TestForgeOfAProject(t *testing.T) {
	t.Parallel()
	status := 0
	api := gitea(t, &status)
	mask := telemetry.NewMask()
	p := &pulls{masks: []*telemetry.Mask{mask}, getenv: func(name string) string {
		if name == "GITEA_TOKEN" {
			return forgeToken
		}
		return ""
	}}
	r := engine.PullRequest{Forge: work.Forge{Kind: forge.Gitea, API: api.URL}, Remote: "https://forge.test/o/r.git", Branch: "story/x", Target: "main", Title: "x"}
	pull, err := p.Open(t.Context(), r)
	if err != nil || pull.Number != 7 || pull.State != "open" || pull.URL == "" {
		t.Fatalf("opened %+v, %v", pull, err)
	}
	if got := string(mask.Apply([]byte("a " + forgeToken))); strings.Contains(got, forgeToken) {
		t.Errorf("the token is not hidden: %s", got)
	}
	look, err := p.Look(t.Context(), r, 7)
	if err != nil || look.Pull.Checks != "failed" || !strings.Contains(look.Red, "ci/unit: failed https://forge.test/ci/1") || !strings.Contains(look.Red, "assertion 7") {
		t.Errorf("looked at %+v, %v", look, err)
	}
	for code, want := range map[int]work.Code{401: work.Unauthenticated, 403: work.Forbidden, 404: work.NotFound, 502: work.Unavailable} {
		status = code
		if _, err := p.Look(t.Context(), r, 7); work.CodeOf(err) != want {
			t.Errorf("at %d: %v, code %s, want %s", code, err, work.CodeOf(err), want)
		}
	}
	status = http.StatusTooManyRequests
	_, err = p.Look(t.Context(), r, 7)
	if later, ok := errors.AsType[*engine.LaterError](err); !ok || time.Until(later.At) < 30*time.Second || work.CodeOf(err) != work.Exhausted {
		t.Errorf("at 429: %v, code %s", err, work.CodeOf(err))
	}
}

// The token is the server's alone: one that agents are given is not used.
func TestForgeTokenIsNotTheAgents(t *testing.T) {
	t.Parallel()
	p := &pulls{
		agents: map[string]config.Agent{"codex": {Inherit: []string{"GITHUB_TOKEN"}}},
		getenv: func(name string) string { return map[string]string{"GITHUB_TOKEN": forgeToken}[name] },
	}
	for name, test := range map[string]struct {
		r    engine.PullRequest
		code work.Code
		says string
	}{
		"inherited": {engine.PullRequest{Remote: "git@github.com:o/r.git"}, work.Forbidden, "agents.codex.inherit"},
		"missing":   {engine.PullRequest{Remote: "https://gitea.test/o/r"}, work.Unauthenticated, "GITEA_TOKEN"},
		"named":     {engine.PullRequest{Remote: "https://github.com/o/r", Forge: work.Forge{TokenEnv: "SHIP_TOKEN"}}, work.Unauthenticated, "SHIP_TOKEN"},
	} {
		_, err := p.Open(t.Context(), test.r)
		e, ok := work.AsError(err)
		if !ok || e.Code != test.code || !strings.Contains(e.Message+e.Hint, test.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The name of a variable follows from what is known of the forge.
func TestUsualToken(t *testing.T) {
	t.Parallel()
	p := &pulls{getenv: func(string) string { return "" }}
	for _, c := range []struct {
		remote string
		forge  work.Forge
		want   string // of the error
	}{
		{"git@github.com:o/r.git", work.Forge{}, "no GITHUB_TOKEN"},
		{"https://github.example.org/o/r", work.Forge{}, "no GITHUB_TOKEN"},
		{"/srv/o/r", work.Forge{Kind: "github"}, "no GITHUB_TOKEN"},
		{"/srv/o/r", work.Forge{API: "https://git.test/api/v3"}, "no GITHUB_TOKEN"},
		{"https://user@forgejo.test/o/github", work.Forge{}, "no GITEA_TOKEN"},
		{"ssh://git@codeberg.org/github/r", work.Forge{Kind: "gitea"}, "no GITEA_TOKEN"},
		{"ssh://git@codeberg.org/github/r", work.Forge{}, "what kind of forge codeberg.org is"},
		{"/srv/git/github/r", work.Forge{}, "no forge"},
	} {
		_, err := p.Open(t.Context(), engine.PullRequest{Remote: c.remote, Forge: c.forge})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %+v: %v, want %q", c.remote, c.forge, err, c.want)
		}
	}
}

package forge

import (
	"encoding/json"
	"strings"
	"testing"
)

// where is what a Forge would talk to.
func where(t *testing.T, f Forge) (kind string, c *client) {
	t.Helper()
	switch f := f.(type) {
	case *github:
		return GitHub, f.client
	case *gitea:
		return Gitea, f.client
	}
	t.Fatalf("a %T", f)
	return "", nil
}

func TestFor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		remote string
		conf   Config
		kind   string
		want   string // base and repository
	}{
		{"https://github.com/acme/widget.git", Config{}, GitHub, "https://api.github.com /repos/acme/widget"},
		{"https://github.com/acme/widget/", Config{}, GitHub, "https://api.github.com /repos/acme/widget"},
		{"http://www.GitHub.com/acme/widget", Config{}, GitHub, "https://api.github.com /repos/acme/widget"},
		{"https://me:s3cret@github.com/acme/widget.git", Config{}, GitHub, "https://api.github.com /repos/acme/widget"},
		{"git@github.com:acme/widget.git", Config{}, GitHub, "https://api.github.com /repos/acme/widget"},
		{"github.com:acme/widget", Config{}, GitHub, "https://api.github.com /repos/acme/widget"},
		{"ssh://git@ssh.github.com:443/acme/my.widget.git", Config{}, GitHub, "https://api.github.com /repos/acme/my.widget"},
		{"git://github.com/acme/widget", Config{}, GitHub, "https://api.github.com /repos/acme/widget"},
		{"git@github.example.org:acme/widget.git", Config{}, GitHub, "https://github.example.org/api/v3 /repos/acme/widget"},
		{"https://code.example.org:8443/acme/widget.git", Config{Kind: GitHub}, GitHub, "https://code.example.org:8443/api/v3 /repos/acme/widget"},
		{"https://gitea.example.org/acme/widget.git", Config{}, Gitea, "https://gitea.example.org/api/v1 /repos/acme/widget"},
		{"ssh://git@forgejo.example.org:2222/acme/widget.git", Config{}, Gitea, "https://forgejo.example.org/api/v1 /repos/acme/widget"},
		{"https://example.org/git/acme/widget.git", Config{Kind: Gitea}, Gitea, "https://example.org/git/api/v1 /repos/acme/widget"},
		{"http://127.0.0.1:3000/acme/widget.git", Config{Kind: Gitea}, Gitea, "http://127.0.0.1:3000/api/v1 /repos/acme/widget"},
		{"git@code.example.org:acme/widget.git", Config{API: "https://code.example.org/api/v1/"}, Gitea, "https://code.example.org/api/v1 /repos/acme/widget"},
		{"git@code.example.org:acme/widget.git", Config{API: "https://code.example.org/api/v3"}, GitHub, "https://code.example.org/api/v3 /repos/acme/widget"},
		{"https://github.com/acme/widget.git", Config{API: "http://127.0.0.1:9"}, GitHub, "http://127.0.0.1:9 /repos/acme/widget"},
		{"/srv/git/acme/widget.git", Config{API: "http://127.0.0.1:9/api/v1"}, Gitea, "http://127.0.0.1:9/api/v1 /repos/acme/widget"},
		{"file:///srv/git/acme/widget.git", Config{Kind: GitHub, API: "http://127.0.0.1:9"}, GitHub, "http://127.0.0.1:9 /repos/acme/widget"},
	} {
		f, err := For(c.remote, c.conf)
		if err != nil {
			t.Errorf("%s: %v", c.remote, err)
			continue
		}
		if kind, err := Which(c.remote, c.conf); err != nil || kind != c.kind {
			t.Errorf("%s is at %s, %v, want %s", c.remote, kind, err, c.kind)
		}
		if kind, at := where(t, f); kind != c.kind || at.base+" "+at.repo != c.want {
			t.Errorf("%s: %s at %s %s, want %s at %s", c.remote, kind, at.base, at.repo, c.kind, c.want)
		}
	}
}

func TestForNothing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		remote string
		conf   Config
		kind   Kind
	}{
		{"", Config{}, KindUnknown},
		{"/srv/git/acme/widget.git", Config{}, KindUnknown},
		{"/srv/git/acme/widget.git", Config{Kind: Gitea}, KindUnknown},
		{"../acme/widget.git", Config{Kind: GitHub}, KindUnknown},
		{"https://me:s3cret@code.example.org/acme/widget.git", Config{}, KindUnknown},
		{"https://me:s3cret@github.com/widget.git", Config{}, KindUnknown},
		{"https://me:s3cret@github.com/acme/", Config{}, KindUnknown},
		{"https://me:s3cret@github.com/group/acme/widget", Config{}, KindUnknown},
		{"https://me:s3cret@github.com/acme/..", Config{}, KindUnknown},
		{"https://me:s3cret@github.com/a%2f..%2fb/widget", Config{}, KindUnknown},
		{"https://me:s3cret@github.com/acme/wid get", Config{}, KindUnknown},
		{"https://me:s3cret%zz@github.com/acme/widget", Config{}, KindUnknown},
		{"https:///acme/widget", Config{Kind: Gitea}, KindUnknown},
		{"ftp://github.com/acme/widget", Config{}, KindUnknown},
		{"ext::touch x", Config{Kind: GitHub}, KindUnknown},
		{"https://github.com/acme/widget", Config{Kind: "gitlab"}, KindUnknown},
		{"https://github.com/acme/widget", Config{API: "ftp://x"}, KindUnknown},
		{"https://github.com/acme/widget", Config{API: "github.example"}, KindUnknown},
		{"https://github.com/acme/widget", Config{API: "https://me:s3cret@h.example/api"}, KindUnknown},
		{"https://github.com/acme/widget", Config{API: "https://h.example/api?token=s3cret"}, KindUnknown},
		{"https://github.com/acme/widget", Config{Token: "two words"}, KindUnauthenticated},
		{"https://github.com/acme/widget", Config{Token: "line\r\nX-Evil: 1"}, KindUnauthenticated},
	} {
		_, err := For(c.remote, c.conf)
		if e := wantError(t, err, c.kind); e.Hint == "" || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %+v", c.remote, e)
		}
	}
}

// Whatever a remote is called, requests stay below the repository of one host.
func FuzzFor(f *testing.F) {
	f.Add("https://github.com/acme/widget.git", "")
	f.Add("git@code.example.org:acme/widget.git", "https://code.example.org/api/v1")
	f.Add("ssh://git@h:22/a/../b", "http://[::1]:80")
	f.Fuzz(func(t *testing.T, remote, api string) {
		forge, err := For(remote, Config{Kind: Gitea, API: api})
		if err != nil {
			if KindOf(err) == "" {
				t.Error(err)
			}
			return
		}
		_, c := where(t, forge)
		parts := strings.Split(c.repo, "/")
		if len(parts) != 4 || strings.Trim(parts[2], ".") == "" || strings.Trim(parts[3], ".") == "" || strings.ContainsAny(c.repo, "?#%\\ ") || strings.HasSuffix(c.base, "/") {
			t.Errorf("%q, %q: %s %s", remote, api, c.base, c.repo)
		}
	})
}

// Whatever a forge sends, what is believed is whole.
func FuzzPull(f *testing.F) {
	f.Add(`{"number":7,"html_url":"https://h/7","state":"open","head":{"sha":"` + head + `"}}`)
	f.Add(`{"number":7,"html_url":"https://h/7","state":"closed","merged":true,"merge_commit_sha":"` + merge + `","head":{"sha":"` + head + `"}}`)
	f.Fuzz(func(t *testing.T, data string) {
		var body pullBody
		if json.Unmarshal([]byte(data), &body) != nil {
			return
		}
		p, err := body.pull()
		if err == nil && (p.Number <= 0 || webURL(p.URL) == "" || !commitPattern.MatchString(p.Head) || (p.State == StateMerged) != (p.MergeCommit != "")) {
			t.Errorf("%+v", p)
		}
	})
}

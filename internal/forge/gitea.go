package forge

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strings"
)

// gitea is a repository at Gitea or Forgejo.
type gitea struct{ client *client }

const (
	giteaPage  = 50 // what a server gives at most, unless it was told otherwise
	giteaPages = 40
)

// Open implements Forge.
func (g *gitea) Open(ctx context.Context, s PullSpec) (Pull, error) {
	var made pullBody
	err := g.client.call(ctx, http.MethodPost, "/pulls", nil, s.body(), &made)
	if says(err, http.StatusConflict, "already exists") {
		return g.find(ctx, s, err)
	}
	if err != nil {
		return Pull{}, err
	}
	return made.pull()
}

// Find implements Forge.
func (g *gitea) Find(ctx context.Context, head, base string) (Pull, error) {
	return g.find(ctx, PullSpec{Head: head, Base: base}, nil)
}

// Close implements Forge.
func (g *gitea) Close(ctx context.Context, number int, comment string) (Pull, error) {
	return g.client.close(ctx, number, comment)
}

// find looks through the open pull requests, newest first: there is an address for
// the one of a head and a base, but not for branches with a slash everywhere.
func (g *gitea) find(ctx context.Context, s PullSpec, refused error) (Pull, error) {
	for page := 1; page <= giteaPages; page++ {
		query := pageQuery(page, "limit", giteaPage)
		query.Set("state", "open")
		query.Set("sort", "recentupdate")
		var open []pullBody
		if err := g.client.call(ctx, http.MethodGet, "/pulls", query, nil, &open); err != nil {
			return Pull{}, err
		}
		if len(open) == 0 {
			break
		}
		for _, p := range open {
			if p.Head.Ref == s.Head && p.Base.Ref == s.Base && p.Head.RepoID == p.Base.RepoID {
				return p.pull()
			}
		}
	}
	return Pull{}, refused
}

// Look implements Forge.
func (g *gitea) Look(ctx context.Context, number int) (Pull, error) {
	p, err := g.client.pull(ctx, number)
	if err != nil || p.State != StateOpen {
		return p, err
	}
	var t tally
	if err := g.statuses(ctx, p.Head, &t); err != nil {
		return p, err
	}
	p.Checks, p.Failed = t.together(), t.failed
	return p, nil
}

// statuses counts the latest status per context. How many there are is told
// differently from version to version, so that only an empty page is the end.
func (g *gitea) statuses(ctx context.Context, commit string, t *tally) error {
	seen := map[string]bool{}
	for page := 1; page <= giteaPages; page++ {
		var body struct {
			Statuses []struct {
				Context     string `json:"context"`
				Status      string `json:"status"`
				State       string `json:"state"` // in place of status, as GitHub calls it
				Description string `json:"description"`
				TargetURL   string `json:"target_url"`
			} `json:"statuses"`
		}
		if err := g.client.call(ctx, http.MethodGet, "/commits/"+commit+"/status", pageQuery(page, "limit", giteaPage), nil, &body); err != nil {
			return err
		}
		fresh := false
		for _, s := range body.Statuses {
			if seen[s.Context] {
				continue
			}
			seen[s.Context], fresh = true, true
			t.status(cmp.Or(s.Status, s.State), Check{Name: s.Context, URL: g.client.absolute(s.TargetURL), Excerpt: g.client.mask(s.Description)})
		}
		if !fresh {
			return nil
		}
	}
	return badAnswer("more than %d statuses of one commit", giteaPage*giteaPages)
}

// absolute completes the path that the forge's own Actions name in place of an
// address.
func (c *client) absolute(target string) string {
	base, err := url.Parse(c.base)
	if err != nil || !strings.HasPrefix(target, "/") {
		return target
	}
	return base.Scheme + "://" + base.Host + target
}

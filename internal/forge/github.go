package forge

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// github is a repository at GitHub or an Enterprise server.
type github struct {
	client *client
	owner  string
}

const (
	perPage  = 100
	maxPages = 10
)

// Open implements Forge.
func (g *github) Open(ctx context.Context, s PullSpec) (Pull, error) {
	var made pullBody
	err := g.client.call(ctx, http.MethodPost, "/pulls", nil, s.body(), &made)
	if says(err, http.StatusUnprocessableEntity, "already exists") {
		return g.find(ctx, s, err)
	}
	if err != nil {
		return Pull{}, err
	}
	return made.pull()
}

// Find implements Forge.
func (g *github) Find(ctx context.Context, head, base string) (Pull, error) {
	return g.find(ctx, PullSpec{Head: head, Base: base}, nil)
}

// Close implements Forge.
func (g *github) Close(ctx context.Context, number int, comment string) (Pull, error) {
	return g.client.close(ctx, number, comment)
}

// find is the open pull request of a head and a base; refused is the
// error without one.
func (g *github) find(ctx context.Context, s PullSpec, refused error) (Pull, error) {
	var open []pullBody
	query := url.Values{"state": {"open"}, "head": {g.owner + ":" + s.Head}, "base": {s.Base}, "per_page": {strconv.Itoa(perPage)}}
	if err := g.client.call(ctx, http.MethodGet, "/pulls", query, nil, &open); err != nil {
		return Pull{}, err
	}
	for _, p := range open {
		if p.Head.Ref == s.Head && p.Base.Ref == s.Base {
			return p.pull()
		}
	}
	return Pull{}, refused
}

// Look implements Forge.
func (g *github) Look(ctx context.Context, number int) (Pull, error) {
	p, err := g.client.pull(ctx, number)
	if err != nil || p.State != StateOpen {
		return p, err
	}
	var t tally
	runs, err := g.runs(ctx, p.Head, &t)
	if err == nil {
		err = g.statuses(ctx, p.Head, &t)
	}
	if err != nil {
		return p, err
	}
	p.Checks, p.Failed = t.together(), t.failed
	g.excerpts(ctx, p.Failed, runs)
	return p, nil
}

// checkRun is one of the checks API: what apps, Actions among them, report.
type checkRun struct {
	ID         int64  `json:"id"`
	Name       string `json:"name"`
	Status     string `json:"status"`
	Conclusion string `json:"conclusion"`
	HTMLURL    string `json:"html_url"`
	Output     struct {
		Title   string `json:"title"`
		Summary string `json:"summary"`
		Text    string `json:"text"`
	} `json:"output"`
	App struct {
		Slug string `json:"slug"`
	} `json:"app"`
}

// runs counts the latest check runs of a commit and gives back those among the
// first of the tally's failed checks.
func (g *github) runs(ctx context.Context, commit string, t *tally) (failed []checkRun, err error) {
	for page, seen := 1, 0; ; page++ {
		if page > maxPages {
			return nil, badAnswer("more than %d checks of one commit", maxPages*perPage)
		}
		var body struct {
			Total int        `json:"total_count"`
			Runs  []checkRun `json:"check_runs"`
		}
		err = g.client.call(ctx, http.MethodGet, "/commits/"+commit+"/check-runs", pageQuery(page, "per_page", perPage), nil, &body)
		if e, ok := errors.AsType[*Error](err); ok && e.Kind == KindForbidden {
			return nil, e.hint("use a classic token with the scope repo, or an app's that may read checks: fine-grained personal tokens cannot")
		}
		if err != nil {
			return nil, err
		}
		for _, r := range body.Runs {
			switch {
			case r.Status != "completed":
				t.waits()
			case r.Conclusion == "success", r.Conclusion == "neutral", r.Conclusion == "skipped":
				t.passed()
			default: // failure, timed_out, cancelled, action_required, …: nobody said that it is well
				if t.fails(Check{Name: r.Name, URL: r.HTMLURL}) {
					failed = append(failed, r)
				}
			}
		}
		if seen += len(body.Runs); len(body.Runs) == 0 || seen >= body.Total {
			return failed, nil
		}
	}
}

// statuses counts the older kind of checks: the latest status per context.
func (g *github) statuses(ctx context.Context, commit string, t *tally) error {
	for page, seen := 1, 0; ; page++ {
		if page > maxPages {
			return badAnswer("more than %d statuses of one commit", maxPages*perPage)
		}
		var body struct {
			Total    int `json:"total_count"`
			Statuses []struct {
				Context     string `json:"context"`
				State       string `json:"state"`
				Description string `json:"description"`
				TargetURL   string `json:"target_url"`
			} `json:"statuses"`
		}
		err := g.client.call(ctx, http.MethodGet, "/commits/"+commit+"/status", pageQuery(page, "per_page", perPage), nil, &body)
		if err != nil {
			return err
		}
		for _, s := range body.Statuses {
			t.status(s.State, Check{Name: s.Context, URL: s.TargetURL, Excerpt: g.client.mask(s.Description)})
		}
		if seen += len(body.Statuses); len(body.Statuses) == 0 || seen >= body.Total {
			return nil
		}
	}
}

// status counts one status of a commit, in the words of either forge.
func (t *tally) status(state string, c Check) {
	switch state {
	case "success", "skipped", "warning":
		t.passed()
	case "failure", "error":
		_ = t.fails(c) // of statuses there is no more to tell
	default: // pending, or a word that is not known
		t.waits()
	}
}

// excerpts fills in what the runs say, which are the first of the failed checks:
// their own output, else the end of the job's log. A log that cannot be had is said, not an error: the check has failed
// all the same.
func (g *github) excerpts(ctx context.Context, failed []Check, runs []checkRun) {
	logs := 0
	for i, run := range runs {
		out := run.Output
		said := strings.TrimSpace(out.Title + "\n\n" + beginning(out.Summary, maxSummary))
		if out.Summary != "" || out.Text != "" || run.App.Slug != "github-actions" || logs == maxLogs {
			failed[i].Excerpt = g.client.mask(strings.TrimSpace(said + "\n\n" + end(out.Text, maxExcerpt)))
			continue
		}
		logs++
		// A check run of Actions has the number of its job.
		log, err := g.client.log(ctx, "/actions/jobs/"+strconv.FormatInt(run.ID, 10)+"/logs")
		if err != nil {
			log = "The log could not be read: " + err.Error()
		}
		failed[i].Excerpt = g.client.mask(strings.TrimSpace(said + "\n\n" + log))
	}
}

func pageQuery(page int, name string, size int) url.Values {
	return url.Values{"page": {strconv.Itoa(page)}, name: {strconv.Itoa(size)}}
}

// pull is a pull request of either forge, without its checks.
func (c *client) pull(ctx context.Context, number int) (Pull, error) {
	var body pullBody
	if err := c.call(ctx, http.MethodGet, "/pulls/"+strconv.Itoa(number), nil, nil, &body); err != nil {
		return Pull{}, err
	}
	return body.pull()
}

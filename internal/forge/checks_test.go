package forge

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// run is a check run of GitHub.
func (d *double) run(id int, name, status, conclusion string, changes ...map[string]any) string {
	c := map[string]any{"id": id, "name": name, "status": status, "conclusion": conclusion, "html_url": fmt.Sprintf("https://github.example/runs/%d", id)}
	if conclusion == "" {
		c["conclusion"] = nil
	}
	return d.fixture("check_run", append([]map[string]any{c}, changes...)...)
}

// status is one of a commit, at either forge.
func (d *double) status(name, state, description string) string {
	member := "state"
	if d.kind == Gitea {
		member = "status"
	}
	return d.fixture("status", map[string]any{"context": name, member: state, "description": description})
}

// checked lets the double have an open pull request with these checks.
func (d *double) checked(runs, statuses []string) {
	d.on("GET /pulls/7", ok(d.pull()))
	if d.kind == GitHub {
		d.on("GET /commits/"+head+"/check-runs", ok(fmt.Sprintf(`{"total_count":%d,"check_runs":%s}`, len(runs), list(runs...))))
		d.on("GET /commits/"+head+"/status", ok(fmt.Sprintf(`{"state":"pending","total_count":%d,"sha":"%s","statuses":%s}`, len(statuses), head, list(statuses...))))
		return
	}
	combined := func(all []string) string {
		return strings.Replace(d.fixture("combined"), `"statuses":[]`, `"statuses":`+list(all...), 1)
	}
	d.on("GET /commits/"+head+"/status", ok(combined(statuses)), ok(combined(nil)))
}

func TestChecksOfGitHub(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		runs     [][3]string // name, status, conclusion
		statuses [][2]string // context, state
		want     Checks
		failed   string
	}{
		"none":              {nil, nil, ChecksNone, ""},
		"green runs":        {[][3]string{{"a", "completed", "success"}, {"b", "completed", "neutral"}, {"c", "completed", "skipped"}}, nil, ChecksPassed, ""},
		"green status":      {nil, [][2]string{{"ci", "success"}}, ChecksPassed, ""},
		"queued":            {[][3]string{{"a", "queued", ""}, {"b", "completed", "success"}}, nil, ChecksPending, ""},
		"in progress":       {[][3]string{{"a", "in_progress", ""}}, [][2]string{{"ci", "success"}}, ChecksPending, ""},
		"waiting":           {[][3]string{{"a", "waiting", ""}}, nil, ChecksPending, ""},
		"pending status":    {[][3]string{{"a", "completed", "success"}}, [][2]string{{"ci", "pending"}}, ChecksPending, ""},
		"unknown status":    {nil, [][2]string{{"ci", "perhaps"}}, ChecksPending, ""},
		"failure":           {[][3]string{{"a", "completed", "failure"}, {"b", "completed", "success"}}, nil, ChecksFailed, "a"},
		"timed out":         {[][3]string{{"a", "completed", "timed_out"}}, nil, ChecksFailed, "a"},
		"cancelled":         {[][3]string{{"a", "completed", "cancelled"}}, nil, ChecksFailed, "a"},
		"action required":   {[][3]string{{"a", "completed", "action_required"}}, nil, ChecksFailed, "a"},
		"did not start":     {[][3]string{{"a", "completed", "startup_failure"}}, nil, ChecksFailed, "a"},
		"unknown end":       {[][3]string{{"a", "completed", "perhaps"}}, nil, ChecksFailed, "a"},
		"no end":            {[][3]string{{"a", "completed", ""}}, nil, ChecksFailed, "a"},
		"red status":        {[][3]string{{"a", "completed", "success"}}, [][2]string{{"ci", "failure"}, {"lint", "error"}}, ChecksFailed, "ci lint"},
		"red and running":   {[][3]string{{"a", "completed", "failure"}, {"b", "in_progress", ""}}, nil, ChecksPending, "a"},
		"red and no status": {[][3]string{{"a", "completed", "failure"}}, [][2]string{{"ci", "pending"}}, ChecksPending, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDouble(t, GitHub)
			var runs, statuses []string
			for i, r := range c.runs {
				runs = append(runs, d.run(i+1, r[0], r[1], r[2], map[string]any{"app": map[string]any{"slug": "acme-ci"}}))
			}
			for _, s := range c.statuses {
				statuses = append(statuses, d.status(s[0], s[1], "said so"))
			}
			d.checked(runs, statuses)
			got, err := d.forge().Look(t.Context(), 7)
			if err != nil || got.Checks != c.want || names(got.Failed) != c.failed || got.State != StateOpen || got.Head != head {
				t.Errorf("%+v, %v, want %s, failed %q", got, err, c.want, c.failed)
			}
		})
	}
}

func names(checks []Check) string {
	var all []string
	for _, c := range checks {
		all = append(all, c.Name)
	}
	return strings.Join(all, " ")
}

func TestChecksOfGitea(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		statuses [][2]string
		want     Checks
		failed   string
	}{
		"none":            {nil, ChecksNone, ""},
		"green":           {[][2]string{{"a", "success"}, {"b", "warning"}, {"c", "skipped"}}, ChecksPassed, ""},
		"pending":         {[][2]string{{"a", "success"}, {"b", "pending"}}, ChecksPending, ""},
		"unknown":         {[][2]string{{"a", "perhaps"}}, ChecksPending, ""},
		"failure":         {[][2]string{{"a", "failure"}, {"b", "success"}}, ChecksFailed, "a"},
		"error":           {[][2]string{{"a", "error"}}, ChecksFailed, "a"},
		"red and running": {[][2]string{{"a", "failure"}, {"b", "pending"}}, ChecksPending, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDouble(t, Gitea)
			var statuses []string
			for _, s := range c.statuses {
				statuses = append(statuses, d.status(s[0], s[1], "Failing after 3s"))
			}
			d.checked(nil, statuses)
			got, err := d.forge().Look(t.Context(), 7)
			if err != nil || got.Checks != c.want || names(got.Failed) != c.failed {
				t.Errorf("%+v, %v, want %s, failed %q", got, err, c.want, c.failed)
			}
			for _, f := range got.Failed { // Actions of Gitea name a path
				if f.Excerpt != "Failing after 3s" || f.URL != d.URL+"/acme/widget/actions/runs/5/jobs/0" {
					t.Errorf("failed %+v", f)
				}
			}
		})
	}
}

// More checks than fit on a page: the one that failed is on the last.
func TestChecksInPages(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, d *double) {
		var first, second []string
		for i := range 50 {
			first = append(first, d.status(fmt.Sprintf("check %d", i), "success", ""))
		}
		second = append(second, d.status("last", "failure", "broken"))
		d.checked(nil, nil)
		page := func(all []string) reply {
			return ok(fmt.Sprintf(`{"state":"failure","total_count":51,"statuses":%s}`, list(all...)))
		}
		d.on("GET /commits/"+head+"/status", page(first), page(second), page(nil))
		got, err := d.forge().Look(t.Context(), 7)
		if err != nil || got.Checks != ChecksFailed || names(got.Failed) != "last" {
			t.Errorf("%+v, %v", got, err)
		}
		if d.kind == Gitea {
			return
		}
		runs := func(all ...string) reply { return ok(fmt.Sprintf(`{"total_count":2,"check_runs":%s}`, list(all...))) }
		d.checked(nil, nil)
		d.on("GET /commits/"+head+"/check-runs", runs(d.run(1, "a", "completed", "success")), runs(d.run(2, "b", "queued", "")))
		if got, err := d.forge().Look(t.Context(), 7); err != nil || got.Checks != ChecksPending {
			t.Errorf("%+v, %v", got, err)
		}
		// A forge that never comes to an end is not followed forever.
		d.on("GET /commits/"+head+"/check-runs", ok(fmt.Sprintf(`{"total_count":1000000,"check_runs":%s}`, list(d.run(1, "a", "completed", "success")))))
		_, err = d.forge().Look(t.Context(), 7)
		wantKind(t, err, KindBadAnswer)
	})
}

// A check's own words, else the log of its job, which lies on another host: the
// token does not go there.
func TestWhatFailedChecksSay(t *testing.T) {
	t.Parallel()
	d := newDouble(t, GitHub)
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a := r.Header.Get("Authorization"); a != "" || r.URL.Query().Get("sig") != "s1gned" {
			t.Errorf("the store got %q, %s", a, r.URL)
		}
		for i := range 100_000 {
			_, _ = fmt.Fprintf(w, "2030-01-02T03:05:00.0000000Z line %d\n", i)
		}
		_, _ = fmt.Fprintln(w, "--- FAIL: TestPasskey, "+token)
	}))
	t.Cleanup(store.Close)
	gone := map[string]any{"output": map[string]any{"title": "Job failed"}}
	words := map[string]any{"app": map[string]any{"slug": "acme-ci"}, "output": map[string]any{"title": "2 failures", "summary": "**TestPasskey** failed", "text": strings.Repeat("x", 2*maxExcerpt) + "\nthe end"}}
	silent := map[string]any{"app": map[string]any{"slug": "acme-ci"}, "html_url": "javascript:alert(1)"}
	d.checked([]string{
		d.run(1, "build", "completed", "failure"), d.run(2, "gone", "completed", "cancelled", gone),
		d.run(3, "acme", "completed", "failure", words), d.run(4, "silent", "completed", "failure", silent),
		d.run(5, "build", "completed", "failure"), // of another workflow
	}, []string{d.status("ci/old", "failure", "exit status 1, "+token)})
	d.on("GET /actions/jobs/1/logs", reply{Status: http.StatusFound, Header: http.Header{"Location": {store.URL + "/log?sig=s1gned"}}})
	d.on("GET /actions/jobs/2/logs", reply{Status: http.StatusGone, Body: `{"message":"Gone"}`})
	away := httptest.NewServer(http.NotFoundHandler())
	away.Close()
	d.on("GET /actions/jobs/5/logs", reply{Status: http.StatusFound, Header: http.Header{"Location": {away.URL + "/log?sig=s1gned"}}})
	got, err := d.forge().Look(t.Context(), 7)
	if err != nil || names(got.Failed) != "build gone acme silent build ci/old" {
		t.Fatalf("%+v, %v", got, err)
	}
	log := got.Failed[0].Excerpt
	if !strings.HasPrefix(log, "…\n2030-01-02T") || !strings.HasSuffix(log, "line 99999\n--- FAIL: TestPasskey, ***") || len(log) > maxExcerpt+10 || len(log) < maxExcerpt/2 {
		t.Errorf("the log has %d bytes: %.60s … %s", len(log), log, log[max(0, len(log)-60):])
	}
	if e := got.Failed[1].Excerpt; !strings.HasPrefix(e, "Job failed\n\nThe log could not be read: ") || !strings.Contains(e, "410") {
		t.Errorf("gone: %q", e)
	}
	if e := got.Failed[2].Excerpt; !strings.HasPrefix(e, "2 failures\n\n**TestPasskey** failed\n\n") || !strings.HasSuffix(e, "\nthe end") || len(e) > maxExcerpt+100 {
		t.Errorf("acme: %d bytes: %q", len(e), e)
	}
	if diff := cmp.Diff([]Check{{Name: "silent"}, got.Failed[4], {Name: "ci/old", URL: "https://ci.example/builds/1", Excerpt: "exit status 1, ***"}}, got.Failed[3:]); diff != "" {
		t.Error(diff)
	}
	if got.Failed[0].URL != "https://github.example/runs/1" {
		t.Errorf("%+v", got.Failed[0])
	}
	if e := got.Failed[4].Excerpt; !strings.Contains(e, "did not answer") {
		t.Errorf("away: %q", e)
	}
	for _, secret := range []string{token, "s1gned"} {
		if strings.Contains(fmt.Sprintf("%+v", got), secret) {
			t.Errorf("%s is shown", secret)
		}
	}
}

// Where the API is encrypted, the log is not fetched without.
func TestLogStaysEncrypted(t *testing.T) {
	t.Parallel()
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "the log") }))
	t.Cleanup(store.Close)
	d := newDouble(t, GitHub)
	d.checked([]string{d.run(1, "build", "completed", "failure")}, nil)
	d.on("GET /actions/jobs/1/logs", reply{Status: http.StatusFound, Header: http.Header{"Location": {store.URL}}})
	tls := httptest.NewTLSServer(d)
	t.Cleanup(tls.Close)
	for address, read := range map[string]bool{d.URL: true, tls.URL: false} {
		f, err := For("git@github.example:acme/widget.git", Config{API: address + "/api/v3", Token: token, HTTP: tls.Client()})
		if err != nil {
			t.Fatal(err)
		}
		got, err := f.Look(t.Context(), 7)
		if err != nil || len(got.Failed) != 1 || (got.Failed[0].Excerpt == "the log") != read {
			t.Errorf("%s: %+v, %v", address, got, err)
		}
	}
}

// Many failed checks: some are named, and few logs are fetched.
func TestManyFailedChecks(t *testing.T) {
	t.Parallel()
	d := newDouble(t, GitHub)
	var runs []string
	for i := range 60 {
		runs = append(runs, d.run(i+1, fmt.Sprintf("matrix %d", i), "completed", "failure"))
	}
	d.checked(runs, nil)
	got, err := d.forge().Look(t.Context(), 7)
	if err != nil || len(got.Failed) != maxFailed || strings.Count(d.lines(), "/logs") != maxLogs {
		t.Errorf("%d named, %v, asked %s", len(got.Failed), err, d.lines())
	}
}

// Checks that cannot be read: the rest is known all the same.
func TestChecksThatAreForbidden(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, d *double) {
		d.checked(nil, nil)
		no := reply{Status: http.StatusForbidden, Body: d.fixture("forbidden")}
		d.on("GET /commits/"+head+"/check-runs", no)
		d.on("GET /commits/"+head+"/status", no)
		got, err := d.forge().Look(t.Context(), 7)
		if e := wantError(t, err, KindForbidden); got.State != StateOpen || got.Number != 7 || got.Checks != "" || !strings.Contains(e.Hint, "checks") || (d.kind == GitHub) != strings.Contains(e.Hint, "classic") {
			t.Errorf("%+v, %+v", got, e)
		}
	})
}

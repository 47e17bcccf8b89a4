package forgetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Pull is a pull request of a double that hosts them.
type Pull struct {
	Number   int      `json:"number"`
	Title    string   `json:"title"`
	Body     string   `json:"body"`
	Head     string   `json:"head"` // branch
	Base     string   `json:"base"` // branch
	Commit   string   `json:"commit"`
	State    string   `json:"state"` // open, closed or merged
	Merge    string   `json:"merge_commit"`
	Comments []string `json:"comments"`
}

// host is what a double has of its own.
type host struct {
	d      *Double // its lock is held
	token  string
	head   func(branch string) (commit string, ok bool)
	pulls  []*Pull
	checks []check // the job of each is numbered by its place, from 1
}

type check struct{ commit, state, log string }

const firstNumber = 7 // issues have taken the numbers before it

// Host gives the double pull requests. head is where a branch of its repository stands;
// token is the one it lets in.
func (d *Double) Host(token string, head func(branch string) (commit string, ok bool)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.host = &host{d: d, token: token, head: head}
}

// Pulls are the pull requests that it has, in the order they were opened.
func (d *Double) Pulls() []Pull {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := []Pull{}
	for _, p := range d.host.pulls {
		d.host.follow(p)
		out = append(out, *p)
	}
	return out
}

// Check sets what the check of a commit says: pending, passed or failed; its log is
// what a failed one has printed, or the words of its status.
func (d *Double) Check(commit, state, log string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := check{commit, state, log}
	if i := d.host.checkOf(commit); i >= 0 {
		d.host.checks[i] = c
		return
	}
	d.host.checks = append(d.host.checks, c)
}

// Merge notes that a pull request has become a commit of its base.
func (d *Double) Merge(number int, commit string) { d.end(number, "merged", commit) }

// Say lets somebody comment on a pull request.
func (d *Double) Say(number int, text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.host.pull(number)
	p.Comments = append(p.Comments, text)
}

// End closes a pull request unmerged.
func (d *Double) End(number int) { d.end(number, "closed", "") }

func (d *Double) end(number int, state, commit string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.host.pull(number)
	d.host.follow(p)
	p.State, p.Merge = state, commit
}

// follow brings an open pull request to where its branch is.
func (h *host) follow(p *Pull) {
	if commit, ok := h.head(p.Head); ok && p.State == "open" {
		p.Commit = commit
	}
}

func (h *host) pull(number int) *Pull {
	if number < firstNumber || number >= firstNumber+len(h.pulls) {
		return nil
	}
	return h.pulls[number-firstNumber]
}

func (h *host) answer(a Asked) Reply {
	scheme := "token "
	if h.d.Kind == GitHub {
		scheme = "Bearer "
	}
	method, path, _ := strings.Cut(a.Line, " ")
	query, err := url.ParseQuery(a.Query)
	switch {
	case err != nil:
		return h.d.NotFound()
	case strings.HasPrefix(path, "/storage/"): // of logs, where the token does not belong
		return Reply{Status: http.StatusOK, Body: h.log(strings.TrimPrefix(path, "/storage/"))}
	case a.Header.Get("Authorization") != scheme+h.token:
		return Reply{Status: http.StatusUnauthorized, Body: h.d.Fixture("bad_credentials")}
	case path == "/pulls" && method == http.MethodPost:
		return h.open(a.Body)
	case path == "/pulls" && method == http.MethodGet:
		return h.list(query)
	case strings.HasPrefix(path, "/commits/") && method == http.MethodGet:
		commit, what, _ := strings.Cut(strings.TrimPrefix(path, "/commits/"), "/")
		return h.checked(commit, what, query)
	case strings.HasPrefix(path, "/actions/jobs/") && h.d.Kind == GitHub:
		job, _, _ := strings.Cut(strings.TrimPrefix(path, "/actions/jobs/"), "/")
		return Reply{Status: http.StatusFound, Header: http.Header{"Location": {h.d.URL + "/storage/" + job}}}
	}
	place, number, below := h.place(path)
	switch {
	case place == nil:
		return h.d.NotFound()
	case below == "" && method == http.MethodGet:
		h.follow(place)
		return Reply{Status: http.StatusOK, Body: h.describe(place, true)}
	case below == "" && method == http.MethodPatch:
		return h.close(place, a.Body)
	case below == "comments" && method == http.MethodGet:
		return h.comments(place, query)
	case below == "comments" && method == http.MethodPost:
		return h.comment(place, number, a.Body)
	}
	return h.d.NotFound()
}

// place is the pull request that a path below /pulls or /issues names.
func (h *host) place(path string) (p *Pull, number int, below string) {
	rest, pulls := strings.CutPrefix(path, "/pulls/")
	rest, issues := strings.CutPrefix(rest, "/issues/")
	text, below, _ := strings.Cut(rest, "/")
	number, err := strconv.Atoi(text)
	if err != nil || !pulls && !issues || issues != (below != "") {
		return nil, 0, ""
	}
	return h.pull(number), number, below
}

func (h *host) open(body string) Reply {
	var in struct{ Title, Body, Head, Base string }
	if err := json.Unmarshal([]byte(body), &in); err != nil {
		return Reply{Status: http.StatusBadRequest, Body: `{"message":"Problems parsing JSON"}`}
	}
	commit, has := h.head(in.Head)
	if _, base := h.head(in.Base); !has || !base {
		if h.d.Kind == GitHub {
			return Reply{Status: http.StatusUnprocessableEntity, Body: h.d.Fixture("bad_base")}
		}
		return h.d.NotFound()
	}
	for _, p := range h.pulls {
		if p.State == "open" && p.Head == in.Head && p.Base == in.Base {
			return h.d.Exists()
		}
	}
	p := &Pull{
		Number: firstNumber + len(h.pulls), Title: in.Title, Body: in.Body, Head: in.Head, Base: in.Base,
		Commit: commit, State: "open", Comments: []string{},
	}
	h.pulls = append(h.pulls, p)
	return Reply{Status: http.StatusCreated, Body: h.describe(p, true)}
}

// list gives what is asked for on the first page; Gitea knows neither head nor base.
func (h *host) list(query url.Values) Reply {
	var items []string
	for _, p := range h.pulls {
		_, ref, _ := strings.Cut(query.Get("head"), ":")
		other := h.d.Kind == GitHub && (ref != p.Head || query.Get("base") != p.Base)
		if other || page(query) > 1 || query.Get("state") == "open" && p.State != "open" {
			continue
		}
		h.follow(p)
		items = append(items, h.describe(p, h.d.Kind == Gitea))
	}
	return Reply{Status: http.StatusOK, Body: List(items...)}
}

func page(query url.Values) int {
	n, err := strconv.Atoi(query.Get("page"))
	if err != nil {
		return 1
	}
	return n
}

// describe is a pull request in the forge's words; whole ones say whether they are
// merged.
func (h *host) describe(p *Pull, whole bool) string {
	base, _ := h.head(p.Base)
	by := map[string]any{
		"number": p.Number, "title": p.Title, "body": p.Body, "html_url": h.web(p), "state": "open", "comments": len(p.Comments),
		"head": map[string]any{"ref": p.Head, "sha": p.Commit}, "base": map[string]any{"ref": p.Base, "sha": base},
	}
	if p.State != "open" {
		by["state"] = "closed"
	}
	if p.State == "merged" {
		by["merged"], by["merge_commit_sha"] = true, p.Merge
	}
	if !whole {
		by["merged"] = nil
	}
	return h.d.Fixture("pull", by)
}

func (h *host) web(p *Pull) string {
	if h.d.Kind == GitHub {
		return fmt.Sprintf("https://github.example/acme/widget/pull/%d", p.Number)
	}
	return fmt.Sprintf("https://gitea.example/acme/widget/pulls/%d", p.Number)
}

// close takes the only change that is made of a pull request.
func (h *host) close(p *Pull, body string) Reply {
	var in struct{ State string }
	if err := json.Unmarshal([]byte(body), &in); err != nil || in.State != "closed" {
		return Reply{Status: http.StatusUnprocessableEntity, Body: `{"message":"Validation Failed"}`}
	}
	h.follow(p)
	status := http.StatusOK
	switch {
	case p.State == "open":
		p.State = "closed"
	case p.State == "merged" && h.d.Kind == Gitea:
		return Reply{Status: http.StatusPreconditionFailed, Body: h.d.Fixture("merged")}
	}
	if h.d.Kind == Gitea {
		status = http.StatusCreated
	}
	return Reply{Status: status, Body: h.describe(p, true)}
}

// comments gives those of a page; Gitea gives all of them on each.
func (h *host) comments(p *Pull, query url.Values) Reply {
	size, err := strconv.Atoi(query.Get("per_page"))
	from, to := 0, len(p.Comments)
	if err == nil && h.d.Kind == GitHub {
		from, to = min((page(query)-1)*size, to), min(page(query)*size, to)
	}
	var items []string
	for i, text := range p.Comments[from:to] {
		items = append(items, h.d.Fixture("comment", map[string]any{"id": from + i + 1, "body": text}))
	}
	return Reply{Status: http.StatusOK, Body: List(items...)}
}

func (h *host) comment(p *Pull, number int, body string) Reply {
	var in struct{ Body string }
	if err := json.Unmarshal([]byte(body), &in); err != nil || in.Body == "" {
		return Reply{Status: http.StatusUnprocessableEntity, Body: `{"message":"Validation Failed"}`}
	}
	p.Comments = append(p.Comments, in.Body)
	return Reply{Status: http.StatusCreated, Body: h.d.Fixture("comment", map[string]any{"id": len(p.Comments), "body": in.Body, "html_url": fmt.Sprintf("%s#issuecomment-%d", h.web(p), number)})}
}

// checked is what was said of a commit: at GitHub by a job of Actions, at Gitea by a
// status.
func (h *host) checked(commit, what string, query url.Values) Reply {
	runs, statuses := []string{}, []string{}
	switch i := h.checkOf(commit); {
	case i < 0 || page(query) > 1:
	case h.d.Kind == GitHub:
		runs = append(runs, h.run(i))
	default:
		word := map[string]string{"pending": "pending", "passed": "success", "failed": "failure"}[h.checks[i].state]
		statuses = append(statuses, h.d.Fixture("status", map[string]any{"context": "unit", "status": word, "description": h.checks[i].log}))
	}
	switch {
	case what == "check-runs" && h.d.Kind == GitHub:
		return Reply{Status: http.StatusOK, Body: fmt.Sprintf(`{"total_count":%d,"check_runs":%s}`, len(runs), List(runs...))}
	case what == "status" && h.d.Kind == GitHub:
		return Reply{Status: http.StatusOK, Body: `{"state":"pending","total_count":0,"statuses":[]}`}
	case what == "status":
		return Reply{Status: http.StatusOK, Body: strings.Replace(h.d.Fixture("combined"), `"statuses":[]`, `"statuses":`+List(statuses...), 1)}
	}
	return h.d.NotFound()
}

func (h *host) checkOf(commit string) int {
	return slices.IndexFunc(h.checks, func(c check) bool { return c.commit == commit })
}

// run is the job of Actions that has checked a commit.
func (h *host) run(i int) string {
	by := map[string]any{"id": i + 1, "name": "unit", "head_sha": h.checks[i].commit, "status": "completed", "conclusion": "success"}
	switch h.checks[i].state {
	case "pending":
		by["status"], by["conclusion"] = "in_progress", nil
	case "failed":
		by["conclusion"] = "failure"
	}
	return h.d.Fixture("check_run", by)
}

func (h *host) log(job string) string {
	if n, err := strconv.Atoi(job); err == nil && n >= 1 && n <= len(h.checks) {
		return h.checks[n-1].log
	}
	return ""
}

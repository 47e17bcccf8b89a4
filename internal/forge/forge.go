package forge

import (
	"context"
	"net/http"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"
)

// Forge is one repository at a place that has pull requests.
type Forge interface {
	// Open asks for a branch to be merged. A pull request that is open for the
	// same head and base is given back instead. Its Checks are not looked at.
	Open(ctx context.Context, s PullSpec) (Pull, error)

	// Look says how a pull request stands. Checks are looked at while it is open;
	// when that fails, the rest comes beside the error.
	Look(ctx context.Context, number int) (Pull, error)

	// Find is the open pull request of a branch and a base, the zero Pull without one.
	// Its Checks are not looked at.
	Find(ctx context.Context, head, base string) (Pull, error)

	// Close closes a pull request without merging it, once a comment (Markdown) says
	// why: one that is there already is not repeated. What is merged or closed is left
	// as it is. When only the comment was refused, the closed pull request comes beside
	// the error.
	Close(ctx context.Context, number int, comment string) (Pull, error)
}

// PullSpec describes a pull request to be.
type PullSpec struct {
	Title string // longer ones than the forges take are cut
	Body  string // Markdown; the same
	Head  string // branch with the work, in the same repository
	Base  string // branch it is to be merged into
}

// State is how far a pull request is.
type State string

// The states of a pull request.
const (
	StateOpen   State = "open"
	StateMerged State = "merged"
	StateClosed State = "closed" // without being merged
)

// Checks is what the checks of a head say together.
type Checks string

// Checks together. Pending means that one has not ended, whatever the others say.
const (
	ChecksNone    Checks = "none"
	ChecksPending Checks = "pending"
	ChecksPassed  Checks = "passed"
	ChecksFailed  Checks = "failed"
)

// Pull is a pull request.
type Pull struct {
	Number      int
	URL         string // for people
	Head        string // commit that is to be merged
	State       State
	MergeCommit string  // what the base got, once merged
	Checks      Checks  // of Head; "" when they were not looked at
	Failed      []Check // those that have failed so far, at most maxFailed
}

// Check is one that failed.
type Check struct {
	Name    string
	URL     string // for people; may be empty
	Excerpt string // of its summary, its log or its description; may be empty
}

const (
	maxFailed  = 20      // checks that are named
	maxLogs    = 5       // logs that are fetched for them
	maxExcerpt = 8 << 10 // bytes of each text or log, its end
	maxSummary = 2000    // characters of each summary, its beginning
	maxTitle   = 250     // characters
	maxBody    = 60_000  // characters
)

// Config says how to reach a forge. What is empty follows from the remote.
type Config struct {
	Kind  string           // "github" or "gitea" (Forgejo too)
	API   string           // base address of its API, such as https://git.example.org/api/v1
	Token string           // secret
	HTTP  *http.Client     // its transport is used; nil: the usual one
	Now   func() time.Time // the clock; nil: the date in an answer counts
}

// The kinds of forges.
const (
	GitHub = "github"
	Gitea  = "gitea"
)

// Which is the kind of the forge that For would find: GitHub or Gitea.
func Which(remoteURL string, c Config) (string, error) {
	at, err := parseRemote(remoteURL)
	if err != nil {
		return "", err
	}
	return kindOf(at, c)
}

// For is the forge that a remote's address belongs to: https, http, ssh and git
// URLs, and the short form of ssh. A path on this machine does, when Config.API is
// set: its last two parts are owner and repository. Nothing is contacted.
func For(remoteURL string, c Config) (Forge, error) {
	at, err := parseRemote(remoteURL)
	if err != nil {
		return nil, err
	}
	kind, err := kindOf(at, c)
	if err != nil {
		return nil, err
	}
	base, err := apiBase(kind, at, c.API)
	if err != nil {
		return nil, err
	}
	if strings.ContainsFunc(c.Token, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return nil, fail(KindUnauthenticated, "the token holds spaces or line breaks").hint("set the token alone, without quotes")
	}
	client := newClient(base, "/repos/"+at.owner+"/"+at.repo, c)
	if kind == GitHub {
		client.scheme = "Bearer"
		client.header.Set("Accept", "application/vnd.github+json")
		client.header.Set("X-GitHub-Api-Version", "2022-11-28")
		return &github{client: client, owner: at.owner}, nil
	}
	client.scheme = "token"
	client.header.Set("Accept", "application/json")
	return &gitea{client: client}, nil
}

// pullBody is a pull request as both forges describe it.
type pullBody struct {
	Number      int     `json:"number"`
	HTMLURL     string  `json:"html_url"`
	State       string  `json:"state"`
	Merged      bool    `json:"merged"`           // not in GitHub's lists
	MergeCommit string  `json:"merge_commit_sha"` // GitHub: of a trial, until merged
	Head        endBody `json:"head"`
	Base        endBody `json:"base"`
}

type endBody struct {
	Ref    string `json:"ref"`
	SHA    string `json:"sha"`
	RepoID int64  `json:"repo_id"` // only Gitea's
}

var commitPattern = regexp.MustCompile(`^[0-9a-f]{40}(?:[0-9a-f]{24})?$`)

// pull checks what a forge said before anybody believes it.
func (b pullBody) pull() (Pull, error) {
	p := Pull{Number: b.Number, URL: webURL(b.HTMLURL), Head: b.Head.SHA, State: StateOpen}
	switch {
	case b.Merged:
		p.State, p.MergeCommit = StateMerged, b.MergeCommit
	case b.State == "closed":
		p.State = StateClosed
	case b.State != "open":
		return Pull{}, badAnswer("a pull request in the state %q", b.State)
	}
	if p.Number <= 0 || p.URL == "" || !commitPattern.MatchString(p.Head) || p.State == StateMerged && !commitPattern.MatchString(p.MergeCommit) {
		return Pull{}, badAnswer("a pull request without a number, an address or its commits")
	}
	return p, nil
}

func badAnswer(format string, args ...any) *Error {
	return fail(KindBadAnswer, "the forge described "+format, args...).hint("is the address of the API right, and the kind of the forge?")
}

// body is what both forges want to know of a new pull request.
func (s PullSpec) body() map[string]string {
	title, _, _ := strings.Cut(strings.TrimSpace(s.Title), "\n")
	return map[string]string{"title": beginning(title, maxTitle), "body": beginning(s.Body, maxBody), "head": s.Head, "base": s.Base}
}

// tally adds checks up.
type tally struct {
	seen, pending, bad bool
	failed             []Check
}

func (t *tally) passed() { t.seen = true }
func (t *tally) waits()  { t.seen, t.pending = true, true }

// fails notes a failed check, and tells whether it is one of those that are named.
func (t *tally) fails(c Check) bool {
	t.seen, t.bad = true, true
	if len(t.failed) == maxFailed {
		return false
	}
	c.URL = webURL(c.URL)
	t.failed = append(t.failed, c)
	return true
}

func (t *tally) together() Checks {
	switch {
	case t.pending:
		return ChecksPending
	case t.bad:
		return ChecksFailed
	case t.seen:
		return ChecksPassed
	}
	return ChecksNone
}

// webURL is an address that may become a link, else "".
func webURL(text string) string {
	if strings.HasPrefix(text, "https://") || strings.HasPrefix(text, "http://") {
		return text
	}
	return ""
}

// beginning cuts a text to a number of characters.
func beginning(text string, limit int) string {
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	return string([]rune(text)[:limit-1]) + "…"
}

// end is the last bytes of a text, from the beginning of a line where one is near.
func end(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	text = text[len(text)-limit:]
	if at := strings.IndexByte(text[:limit/4], '\n'); at >= 0 {
		text = text[at+1:]
	}
	return "…\n" + strings.ToValidUTF8(text, "")
}

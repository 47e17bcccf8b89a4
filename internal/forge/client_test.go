package forge

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// wantError also holds every error to what holds for all: it has words, and no
// secret.
func wantError(t *testing.T, err error, kind Kind) *Error {
	t.Helper()
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Kind != kind || KindOf(err) != kind {
		t.Fatalf("got error %v (kind %q), want kind %q", err, KindOf(err), kind)
	}
	if e.Message == "" || strings.Contains(err.Error()+e.Hint, token) {
		t.Fatalf("error %q", err)
	}
	return e
}

func wantKind(t *testing.T, err error, kind Kind) {
	t.Helper()
	_ = wantError(t, err, kind)
}

func TestAnswersThatRefuse(t *testing.T) {
	t.Parallel()
	at := func(seconds int) time.Time { return time.Date(2030, 1, 2, 3, 4, 5+seconds, 0, time.UTC) }
	both(t, func(t *testing.T, d *double) {
		rows := map[string]struct {
			reply
			kind  Kind
			retry time.Time
			words string
		}{
			"bad token":     {answered(401, nil, d.fixture("bad_credentials")), KindUnauthenticated, time.Time{}, ""},
			"no right":      {answered(403, nil, d.fixture("forbidden")), KindForbidden, time.Time{}, "token"},
			"not there":     {answered(404, nil, d.fixture("not_found")), KindNotFound, time.Time{}, "ound"},
			"too many":      {answered(429, http.Header{"Retry-After": {"17"}}, `{"message":"Too Many Requests"}`), KindRateLimited, at(17), "Too Many"},
			"at a date":     {answered(429, http.Header{"Retry-After": {"Wed, 02 Jan 2030 03:05:00 GMT"}}, ""), KindRateLimited, at(55), ""},
			"no time given": {answered(429, nil, "slow down"), KindRateLimited, at(60), ""},
			"absurd":        {answered(429, http.Header{"Retry-After": {"99999999999"}}, ""), KindRateLimited, at(86400), ""},
			"a year":        {answered(429, http.Header{"Retry-After": {"31536000"}}, ""), KindRateLimited, at(86400), ""},
			"fault":         {answered(500, nil, "<html>"), KindUnreachable, time.Time{}, ""},
			"down":          {answered(503, http.Header{"Retry-After": {"5"}}, ""), KindUnreachable, at(5), ""},
			"conflict":      {answered(409, nil, `{"message":"locked: `+token+`","errors":["one","two"]}`), KindRefused, time.Time{}, "locked: ***: one: two"},
			"odd":           {answered(418, nil, `{"message":"\u001b[31mtea\npot\u0000"}`), KindRefused, time.Time{}, "[31mtea pot"},
			"long":          {answered(422, nil, `{"message":`+quoted(strings.Repeat("word ", 1000))+`}`), KindRefused, time.Time{}, "word word…"},
			"limit": {answered(403, http.Header{"X-Ratelimit-Limit": {"5000"}, "X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {"1893553200"}}, `{"message":"API rate limit exceeded"}`),
				KindRateLimited, time.Date(2030, 1, 2, 3, 0, 0, 0, time.UTC), "rate limit"},
		}
		if d.kind == GitHub {
			rows["secondary"] = rows["bad token"]
			second := rows["secondary"]
			second.reply, second.kind, second.retry = answered(403, nil, d.fixture("secondary_limit")), KindRateLimited, at(60)
			rows["secondary"] = second
			limit := rows["limit"]
			limit.Body = d.fixture("rate_limit")
			rows["limit"] = limit
		}
		for name, c := range rows {
			d.on("GET /pulls/7", c.reply)
			_, err := d.forge().Look(t.Context(), 7)
			e := wantError(t, err, c.kind)
			if e.Status != c.Status || !e.RetryAt.Equal(c.retry) || !strings.Contains(e.Message+" ", c.words) || e.Hint == "" && c.kind != KindRefused {
				t.Errorf("%s: %+v, want %q at %s", name, e, c.words, c.retry)
			}
			if strings.ContainsAny(e.Message, "\n\x1b\x00") || len(e.Message) > 1000 {
				t.Errorf("%s: message %q", name, e.Message)
			}
			d.on("POST /pulls", c.reply)
			_, err = d.forge().Open(t.Context(), spec())
			wantKind(t, err, c.kind)
		}
	})
}

// Without a clock of its own, the server's counts.
func TestRetryByTheServersClock(t *testing.T) {
	t.Parallel()
	d := newDouble(t, Gitea)
	f, err := For("https://gitea.example/acme/widget", Config{API: d.URL + "/api/v1"})
	if err != nil {
		t.Fatal(err)
	}
	d.on("GET /pulls/7", answered(429, http.Header{"Retry-After": {"5"}, "Date": {"Wed, 02 Jan 2030 03:04:05 GMT"}}, ""))
	_, err = f.Look(t.Context(), 7)
	if e := wantError(t, err, KindRateLimited); !e.RetryAt.Equal(time.Date(2030, 1, 2, 3, 4, 10, 0, time.UTC)) {
		t.Errorf("%+v", e)
	}
	if d.asked()[0].Header.Get("Authorization") != "" {
		t.Error("there is no token to send")
	}
}

func TestAnswersThatAreNone(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, d *double) {
		for name, body := range map[string]string{
			"a page":        "<!DOCTYPE html><title>Sign in</title>",
			"nothing":       "",
			"cut off":       d.pull()[:200],
			"a list":        "[]",
			"an object":     "{}",
			"null":          "null",
			"other types":   `{"number":"7"}`,
			"huge":          `{"title":"` + strings.Repeat("x", maxAnswer) + `"}`,
			"no number":     d.pull(map[string]any{"number": 0}),
			"no page":       d.pull(map[string]any{"html_url": "javascript:alert(1)"}),
			"no commit":     d.pull(map[string]any{"head": map[string]any{"sha": "../../secret"}}),
			"unknown state": d.pull(map[string]any{"state": "perhaps"}),
			"merged where?": d.pull(map[string]any{"state": "closed", "merged": true, "merge_commit_sha": nil}),
		} {
			d.on("GET /pulls/7", ok(body))
			_, err := d.forge().Look(t.Context(), 7)
			if e := wantError(t, err, KindBadAnswer); (name == "huge") != strings.Contains(e.Message, "more than 8 MB") || name != "huge" && e.Hint == "" {
				t.Errorf("%s: %+v", name, e)
			}
			d.on("POST /pulls", reply{Status: http.StatusCreated, Body: body})
			_, err = d.forge().Open(t.Context(), spec())
			wantKind(t, err, KindBadAnswer)
		}
	})
}

// deaf is an address at which nobody listens, and that nobody gets by asking for a
// free port.
const deaf = "127.0.0.1:1"

func TestNoAnswer(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, d *double) {
		cut := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte(`{"number":`))
		}))
		t.Cleanup(cut.Close)
		hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
		t.Cleanup(hangs.Close)
		for _, server := range []string{cut.URL, hangs.URL, "http://" + deaf} {
			f, err := For("git@h.example:acme/widget.git", Config{Kind: d.kind, API: server, Token: token})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := t.Context(), func() {}
			if server == hangs.URL {
				ctx, cancel = context.WithTimeout(ctx, 50*time.Millisecond)
			}
			_, err = f.Look(ctx, 7)
			cancel()
			e := wantError(t, err, KindUnreachable)
			if e.Hint == "" || (server == hangs.URL) != errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%+v", e)
			}
		}
	})
}

// The token stays on the API's host: what moved on it is found, what points away
// from it is named and not asked.
func TestRedirects(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, d *double) {
		asked := 0
		other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
		t.Cleanup(other.Close)
		to := func(status int, where string) reply {
			return reply{Status: status, Header: http.Header{"Location": {where}}, Body: `{"message":"Moved Permanently"}`}
		}
		d.on("GET /pulls/7", to(301, d.prefix()+"/pulls/8"))
		d.on("GET /pulls/8", ok(d.pull(map[string]any{"state": "closed"})))
		if got, err := d.forge().Look(t.Context(), 7); err != nil || got.State != StateClosed {
			t.Errorf("%+v, %v", got, err)
		}
		d.on("POST /pulls", to(307, d.prefix()+"/moved"))
		d.on("POST /moved", reply{Status: http.StatusCreated, Body: d.pull()})
		if got, err := d.forge().Open(t.Context(), spec()); err != nil || got.Number != 7 {
			t.Errorf("%+v, %v", got, err)
		}
		for _, a := range d.asked() {
			if !strings.HasSuffix(a.Header.Get("Authorization"), " "+token) || strings.HasPrefix(a.Line, "POST") && !strings.Contains(a.Body, branch) {
				t.Errorf("%s came without its token or body", a.Line)
			}
		}
		for name, r := range map[string]reply{
			"elsewhere":       to(301, other.URL+"/x"),
			"for a moment":    to(307, other.URL+"/x"),
			"another scheme":  to(308, strings.Replace(d.URL, "http:", "https:", 1)+"/x"),
			"round and round": to(307, d.prefix()+"/pulls/7"),
			"nowhere":         to(302, ""),
		} {
			d.on("GET /pulls/7", r)
			_, err := d.forge().Look(t.Context(), 7)
			if e, ok := errors.AsType[*Error](err); !ok || name != "nowhere" && e.Kind != KindMoved {
				t.Errorf("%s: %v", name, err)
			}
		}
		d.on("POST /pulls", to(301, d.prefix()+"/moved")) // would become a GET
		d.on("GET /moved", ok(d.pull()))
		_, err := d.forge().Open(t.Context(), spec())
		wantKind(t, err, KindMoved)
		if asked != 0 || strings.Contains(d.lines(), "GET /moved") {
			t.Errorf("the other host was asked %d times; asked %q", asked, d.lines())
		}
	})
}

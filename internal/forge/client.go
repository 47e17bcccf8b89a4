package forge

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
)

const (
	timeout   = 30 * time.Second // per request, its answer read
	maxAnswer = 8 << 20          // bytes; a page of a hundred pull requests is below 4 MB
	maxLog    = 64 << 20         // bytes that are read of a log, to keep its end
	maxHops   = 5                // redirects in a row, all on the API's host
	maxWords  = 500              // characters of a forge's own words that an error repeats
)

// client sends requests to one API.
type client struct {
	base   string // of the API
	repo   string // path of the repository, below base
	token  string
	scheme string // how the token is named in the Authorization header
	header http.Header
	http   *http.Client
	now    func() time.Time
}

func newClient(base, repo string, c Config) *client {
	plain := &http.Client{CheckRedirect: stay}
	if c.HTTP != nil {
		plain.Transport, plain.Timeout = c.HTTP.Transport, c.HTTP.Timeout
	}
	return &client{base: base, repo: repo, token: c.Token, header: http.Header{"User-Agent": {"claudomator"}}, http: plain, now: c.Now}
}

// stay follows a redirect only where the token may go, and only if the request
// stays what it was. Any other is an answer.
func stay(next *http.Request, via []*http.Request) error {
	first := via[0]
	if len(via) > maxHops || next.URL.Scheme != first.URL.Scheme || next.URL.Host != first.URL.Host || next.Method != first.Method {
		return http.ErrUseLastResponse
	}
	return nil
}

// call sends one request below the repository and decodes the answer into out.
func (c *client) call(ctx context.Context, method, path string, query url.Values, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	resp, err := c.send(ctx, method, path, query, in)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	what := method + " " + c.repo + path
	switch {
	case err != nil:
		return c.unreachable(ctx, what, err)
	case len(data) > maxAnswer:
		return fail(KindBadAnswer, "%s answered %s with more than %d MB", c.base, what, maxAnswer>>20).answered(resp.StatusCode)
	case resp.StatusCode >= 300:
		return c.refusal(resp, what, data)
	}
	if err := json.Unmarshal(data, out); err != nil {
		return fail(KindBadAnswer, "%s answered %s with something else than was asked for", c.base, what).
			answered(resp.StatusCode).hint("is the address of the API right, and the kind of the forge?")
	}
	return nil
}

// send starts a request; the caller closes the answer's body.
func (c *client) send(ctx context.Context, method, path string, query url.Values, in any) (*http.Response, error) {
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return nil, fail(KindRefused, "encode a request").because(err)
		}
		body = bytes.NewReader(data)
	}
	address := c.base + c.repo + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		return nil, fail(KindUnknown, "make a request to %s", c.base)
	}
	req.Header = c.header.Clone()
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		req.Header.Set("Authorization", c.scheme+" "+c.token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.unreachable(ctx, method+" "+c.repo+path, err)
	}
	return resp, nil
}

// log is the end of a text that the API has, mostly behind an address of another
// host that is good for a moment. The token does not go there.
func (c *client) log(ctx context.Context, path string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	what := "GET " + c.repo + path
	resp, err := c.send(ctx, http.MethodGet, path, nil, nil)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusFound || resp.StatusCode == http.StatusTemporaryRedirect {
		next, err := resp.Location()
		if err != nil || next.Scheme != "https" && next.Scheme != resp.Request.URL.Scheme {
			return "", c.refusal(resp, what, nil)
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, next.String(), nil)
		if err != nil {
			return "", c.refusal(resp, what, nil)
		}
		there, err := c.http.Do(req)
		if err != nil {
			return "", c.unreachable(ctx, what, err)
		}
		defer there.Body.Close()
		resp = there
	}
	if resp.StatusCode != http.StatusOK {
		return "", c.refusal(resp, what, nil)
	}
	var last tail
	if _, err := io.Copy(&last, io.LimitReader(resp.Body, maxLog)); err != nil {
		return "", c.unreachable(ctx, what, err)
	}
	return end(string(last.data), maxExcerpt), nil
}

// tail keeps the end of what is written to it.
type tail struct{ data []byte }

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.data = append(t.data, p...)
	if len(t.data) > 4*maxExcerpt {
		t.data = append([]byte(nil), t.data[len(t.data)-2*maxExcerpt:]...)
	}
	return len(p), nil
}

// unreachable is a request without a whole answer. The address is left out: of a
// redirect it may hold a secret.
func (c *client) unreachable(ctx context.Context, what string, err error) *Error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	if ctx.Err() != nil {
		err = errors.Join(err, context.Cause(ctx))
	}
	return fail(KindUnreachable, "%s did not answer %s", c.base, what).because(err).hint("check the address of the forge's API and the network")
}

// refusal turns an answer that is no success into an error.
func (c *client) refusal(resp *http.Response, what string, data []byte) *Error {
	words := c.words(data)
	text := strings.TrimSuffix("answered "+what+" with "+strconv.Itoa(resp.StatusCode)+": "+words, ": ")
	e := fail(KindRefused, "%s %s", c.base, text).answered(resp.StatusCode)
	e.RetryAt = c.retryAt(resp.Header)
	switch status := resp.StatusCode; {
	case status == http.StatusTooManyRequests, status == http.StatusForbidden && limited(resp.Header, words):
		e.Kind, e.Hint = KindRateLimited, "wait; with a token of its own the server may ask more often"
		if e.RetryAt.IsZero() { // GitHub wants a minute, then
			e.RetryAt = c.later(resp.Header, time.Minute)
		}
	case status == http.StatusUnauthorized:
		e.Kind, e.Hint = KindUnauthenticated, "set the project's forge token (the server's environment variable that forge.token_env names) to one that is valid"
	case status == http.StatusForbidden:
		e.Kind, e.Hint = KindForbidden, "give the forge token the right to read the repository and its checks and to write pull requests"
	case status == http.StatusNotFound:
		e.Kind, e.Hint = KindNotFound, "check the remote's address and the forge's API; a forge also says this when the token may not see the repository"
	case status >= 300 && status < 400:
		e.Kind, e.Hint = KindMoved, "set the remote or the address of the forge's API to where the repository is now"
		if to, err := resp.Location(); err == nil {
			e.Message += ": it points to " + to.Scheme + "://" + to.Host
		}
	case status >= 500:
		e.Kind, e.Hint = KindUnreachable, "the forge has a fault; try again later"
	}
	return e
}

// limited tells the two kinds of 403 apart.
func limited(h http.Header, words string) bool {
	return h.Get("Retry-After") != "" || h.Get("X-RateLimit-Remaining") == "0" || strings.Contains(words, "rate limit")
}

// retryAt is the instant that an answer asks to wait for, zero when it does not.
func (c *client) retryAt(h http.Header) time.Time {
	after := h.Get("Retry-After")
	if seconds, err := strconv.Atoi(after); err == nil && seconds >= 0 {
		return c.later(h, time.Duration(min(seconds, 24*60*60))*time.Second)
	}
	if at, err := http.ParseTime(after); err == nil {
		return at
	}
	if h.Get("X-RateLimit-Remaining") == "0" {
		if at, err := strconv.ParseInt(h.Get("X-RateLimit-Reset"), 10, 64); err == nil && at > 0 {
			return time.Unix(at, 0)
		}
	}
	return time.Time{}
}

// later is some time from now, zero when nobody knows what time it is.
func (c *client) later(h http.Header, d time.Duration) time.Time {
	if c.now != nil {
		return c.now().Add(d)
	}
	at, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return time.Time{}
	}
	return at.Add(d)
}

// words is what a forge says about a refusal, on one line, never with the token.
func (c *client) words(data []byte) string {
	var body struct {
		Message string            `json:"message"`
		Errors  []json.RawMessage `json:"errors"`
	}
	if json.Unmarshal(data, &body) != nil {
		return ""
	}
	var said []string
	if body.Message != "" {
		said = append(said, body.Message)
	}
	for _, raw := range body.Errors {
		var text string
		var detail struct{ Message, Resource, Field, Code string }
		if json.Unmarshal(raw, &text) == nil {
			said = append(said, text)
		} else if json.Unmarshal(raw, &detail) == nil {
			said = append(said, cmp.Or(detail.Message, strings.TrimSpace(detail.Resource+" "+detail.Field+" "+detail.Code)))
		}
	}
	text := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.Join(said, ": "))
	return beginning(c.mask(strings.Join(strings.Fields(text), " ")), maxWords)
}

// mask takes the token out of what a forge says.
func (c *client) mask(text string) string {
	if c.token == "" {
		return text
	}
	return strings.ReplaceAll(text, c.token, "***")
}

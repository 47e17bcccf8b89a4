package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

// Client implements app.API against a server. It is safe for concurrent use.
type Client struct {
	base  string
	token string
	http  *http.Client
}

var _ app.API = (*Client)(nil)

// New makes a client for the server at base ("http://127.0.0.1:8080"); it
// connects when it is first asked for something. A nil h is http.DefaultClient;
// one with a Timeout ends streams, too.
func New(base, token string, h *http.Client) *Client {
	if h == nil {
		h = http.DefaultClient
	}
	return &Client{base: strings.TrimSuffix(base, "/"), token: token, http: h}
}

// request is what is asked of the server.
type request struct {
	method string
	path   string
	query  url.Values
	body   any    // nil: none
	key    string // idempotency key; empty: a fresh one where it is needed
	header http.Header
}

// path joins segments; what they contain does not matter.
func path(segments ...string) string {
	var b strings.Builder
	b.WriteString("/api")
	for _, s := range segments {
		b.WriteByte('/')
		s = url.PathEscape(s)
		if s == "." || s == ".." { // a router would resolve these
			s = strings.ReplaceAll(s, ".", "%2E")
		}
		b.WriteString(s)
	}
	return b.String()
}

// call asks and decodes the answer, once more when the connection broke.
func call[T any](ctx context.Context, c *Client, r request) (T, error) {
	var out T
	data, err := c.bytes(ctx, r)
	if err != nil || len(data) == 0 {
		return out, err
	}
	if err := json.Unmarshal(data, &out); err != nil {
		return out, work.Errorf(work.Internal, "read the answer of %s: %w", c.base, err).WithHint("is this a Claudomator server of the same version?")
	}
	return out, nil
}

func (c *Client) bytes(ctx context.Context, r request) ([]byte, error) {
	if r.method != http.MethodGet && r.key == "" {
		r.key = app.RandomIDs{}.New()
	}
	data, err := c.once(ctx, r)
	if broken := (*brokenError)(nil); errors.As(err, &broken) && ctx.Err() == nil {
		data, err = c.once(ctx, r)
	}
	return data, err
}

func (c *Client) once(ctx context.Context, r request) ([]byte, error) {
	body, err := c.open(ctx, r)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return io.ReadAll(body)
}

// open asks and gives the body of a successful answer, for the caller to close.
func (c *Client) open(ctx context.Context, r request) (io.ReadCloser, error) {
	req, err := c.build(ctx, r)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	if resp.StatusCode/100 == 2 {
		return &pipe{resp.Body, func(err error) error { return c.unreachable(ctx, err) }}, nil
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	return nil, refusal(resp.StatusCode, data)
}

func (c *Client) build(ctx context.Context, r request) (*http.Request, error) {
	address := c.base + r.path
	if len(r.query) > 0 {
		address += "?" + r.query.Encode()
	}
	var content []byte
	if r.body != nil {
		var err error
		if content, err = json.Marshal(r.body); err != nil {
			return nil, work.Errorf(work.Internal, "write the request: %w", err)
		}
	}
	req, err := http.NewRequestWithContext(ctx, r.method, address, bytes.NewReader(content))
	if err != nil {
		return nil, work.Errorf(work.Invalid, "the server's address %q is not one", c.base).WithHint("for example http://127.0.0.1:8080")
	}
	if r.header != nil {
		req.Header = r.header.Clone()
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	if r.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if r.key != "" {
		req.Header.Set("Idempotency-Key", r.key)
	}
	return req, nil
}

// brokenError marks a connection that ended before the whole answer was there:
// the request may have been carried out.
type brokenError struct{ cause error }

func (e *brokenError) Error() string { return e.cause.Error() }
func (e *brokenError) Unwrap() error { return e.cause }

// unreachable is why there is no answer.
func (c *Client) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return work.Errorf(work.Timeout, "ask %s: %w", c.base, context.Cause(ctx))
	}
	if op := (*net.OpError)(nil); errors.Is(err, syscall.ECONNREFUSED) || (errors.As(err, &op) && op.Op == "dial") {
		return work.Errorf(work.Unavailable, "reach the server at %s: %w", c.base, err).WithReason("unreachable").
			WithHint("start it with `claudomator serve`, or name another one in CLAUDOMATOR_SERVER")
	}
	return work.Errorf(work.Unavailable, "the connection to %s broke: %w", c.base, &brokenError{err}).WithReason("broken").WithHint("try again")
}

// refusal is the error that an answer stands for. What has no code comes from
// something that stands between us and the server.
func refusal(status int, data []byte) error {
	var p app.Problem
	if err := json.Unmarshal(data, &p); err != nil || p.Code == "" {
		return work.Errorf(codeOf(status), "the server's address answers %d %s", status, http.StatusText(status)).
			WithHint("is this a Claudomator server, and does a proxy stand before it?")
	}
	return p.WorkError()
}

// codeOf is the class of a status that came without a code.
func codeOf(status int) work.Code {
	switch status {
	case http.StatusBadRequest, http.StatusMethodNotAllowed, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return work.Invalid
	case http.StatusNotFound, http.StatusGone:
		return work.NotFound
	case http.StatusConflict:
		return work.Conflict
	case http.StatusUnauthorized:
		return work.Unauthenticated
	case http.StatusForbidden, http.StatusMisdirectedRequest:
		return work.Forbidden
	case http.StatusTooManyRequests:
		return work.Exhausted
	case http.StatusBadGateway, http.StatusServiceUnavailable:
		return work.Unavailable
	case http.StatusRequestTimeout, http.StatusGatewayTimeout:
		return work.Timeout
	}
	return work.Internal
}

// String names the server, never the token.
func (c *Client) String() string { return fmt.Sprintf("server %s", c.base) }

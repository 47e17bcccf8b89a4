package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

// Problem is how every error is answered: RFC 9457, and what the domain adds.
type Problem struct {
	Type    string         `json:"type" doc:"Always about:blank: the code says what kind of problem it is"`
	Title   string         `json:"title" doc:"The status in words"`
	Status  int            `json:"status"`
	Detail  string         `json:"detail" doc:"What is wrong, for a person"`
	Code    work.Code      `json:"code" doc:"The class of the error"`
	Reason  string         `json:"reason,omitempty" doc:"A stable word for one kind of refusal, such as superseded or integrating"`
	Hint    string         `json:"hint,omitempty" doc:"What can be done about it"`
	Allowed []work.Action  `json:"allowed,omitzero" doc:"What can be asked of the task instead"`
	Details map[string]any `json:"details,omitempty" doc:"Machine-readable facts, such as the path of a cycle"`
}

// Error makes a problem an error.
func (p *Problem) Error() string { return p.Detail }

// GetStatus is huma's question for the HTTP status.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType is huma's question for the media type.
func (p *Problem) ContentType(string) string { return "application/problem+json" }

// GetHeaders is huma's question for more headers.
func (p *Problem) GetHeaders() http.Header {
	h := http.Header{}
	p.headers(h)
	return h
}

func (p *Problem) headers(h http.Header) {
	switch p.Status {
	case http.StatusUnauthorized:
		h.Set("WWW-Authenticate", `Bearer realm="claudomator"`)
	case http.StatusTooManyRequests:
		h.Set("Retry-After", "60")
	case http.StatusServiceUnavailable:
		h.Set("Retry-After", "1")
	}
}

func (p *Problem) write(w http.ResponseWriter) {
	p = p.fill()
	p.headers(w.Header())
	w.Header().Set("Content-Type", p.ContentType(""))
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // a client that is gone misses nothing
}

func (p *Problem) fill() *Problem {
	p.Type, p.Title = "about:blank", http.StatusText(p.Status)
	return p
}

// problem turns any error into what is answered. What is a bug is logged here,
// once, and answered with the id it is logged under.
func (s *server) problem(ctx context.Context, doing string, err error) *Problem {
	var ready *Problem
	if errors.As(err, &ready) {
		return ready.fill()
	}
	if ctx.Err() != nil { // the client is gone: nobody reads this, and it is no bug
		err = work.Errorf(work.Unavailable, "the request was given up: %w", context.Cause(ctx))
	}
	e, ok := work.AsError(err)
	if !ok || e.Code == work.Internal {
		return s.bug(ctx, doing, err)
	}
	p := &Problem{Status: app.HTTPStatus(e.Code), Detail: e.Message, Code: e.Code, Reason: e.Reason, Hint: e.Hint}
	for key, value := range e.Details {
		if allowed, ok := value.([]work.Action); ok && key == "allowed" {
			p.Allowed = append([]work.Action{}, allowed...) // nothing is allowed: say so
			continue
		}
		if p.Details == nil {
			p.Details = map[string]any{}
		}
		p.Details[key] = value
	}
	return p.fill()
}

func (s *server) bug(ctx context.Context, doing string, err error) *Problem {
	id := app.RandomIDs{}.New()
	s.o.Log.ErrorContext(ctx, "internal error", "id", id, "doing", doing, "error", err)
	p := &Problem{Status: http.StatusInternalServerError, Code: work.Internal,
		Detail: "internal error " + id, Hint: "the server's log has the details under this id", Details: map[string]any{"id": id}}
	return p.fill()
}

func (s *server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	s.problem(r.Context(), r.Method+" "+r.URL.Path, err).write(w)
}

func missing(r *http.Request) *Problem {
	return &Problem{Status: http.StatusNotFound, Code: work.NotFound, Reason: "route",
		Detail: fmt.Sprintf("there is nothing at %s", r.URL.Path), Hint: "/docs lists what there is"}
}

func wrongMethod(r *http.Request, allow string) *Problem {
	return &Problem{Status: http.StatusMethodNotAllowed, Code: work.Invalid, Reason: "method",
		Detail: fmt.Sprintf("%s is not possible at %s", r.Method, r.URL.Path), Hint: "possible: " + allow}
}

func tooLarge() *Problem {
	return &Problem{Status: http.StatusRequestEntityTooLarge, Code: work.Invalid, Reason: "too_large",
		Detail: fmt.Sprintf("the request body is larger than %d MiB", maxBody>>20), Hint: "put long material into a file of the repository"}
}

// ownProblems puts our problem in the place of the framework's: what it found
// wrong with a request before any handler saw it.
func ownProblems(_ huma.Context, _ string, v any) (any, error) {
	m, ok := v.(*huma.ErrorModel)
	if !ok {
		return v, nil
	}
	p := &Problem{Status: m.Status, Detail: m.Detail, Code: work.Invalid}
	switch m.Status {
	case http.StatusRequestEntityTooLarge:
		return tooLarge().fill(), nil
	case http.StatusUnsupportedMediaType:
		p.Reason, p.Detail, p.Hint = "content_type", "the body is not JSON", "send Content-Type: application/json"
		return p.fill(), nil
	case http.StatusInternalServerError: // a body that stopped coming
		p.Code = work.Unavailable
		return p.fill(), nil
	case http.StatusBadRequest:
		p.Reason, p.Hint = "unreadable", "the body must be one JSON document"
	default:
		p.Reason, p.Hint = "fields", "/docs names the fields and their types"
	}
	var texts []string
	for _, e := range m.Errors {
		texts = append(texts, strings.TrimPrefix(e.Location+": "+e.Message, ": "))
	}
	if len(texts) > 0 {
		slices.Sort(texts) // keys come in no order
		p.Detail = strings.Join(slices.Compact(texts), "; ")
		p.Details = map[string]any{"fields": slices.Compact(fields(m.Errors))}
	}
	p.Detail = cmp.Or(p.Detail, http.StatusText(m.Status))
	return p.fill(), nil
}

// fields names where something is wrong, as a client spells it.
func fields(list []*huma.ErrorDetail) []string {
	var names []string
	for _, e := range list {
		name := e.Location
		for _, place := range []string{"body.", "query.", "header.", "path."} {
			name = strings.TrimPrefix(name, place)
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

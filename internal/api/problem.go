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

// Problem is how every error is answered, with what huma asks of an answer.
type Problem struct{ app.Problem }

// GetStatus is huma's question for the HTTP status.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType is huma's question for the media type.
func (p *Problem) ContentType(string) string { return "application/problem+json" }

// GetHeaders is huma's question for more headers.
func (p *Problem) GetHeaders() http.Header {
	h := http.Header{}
	p.Headers(h, "claudomator")
	return h
}

func (p *Problem) write(w http.ResponseWriter) {
	p.Headers(w.Header(), "claudomator")
	w.Header().Set("Content-Type", p.ContentType(""))
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // a client that is gone misses nothing
}

// refusal is a problem that no code alone stands for.
func refusal(p app.Problem) *Problem { return &Problem{*p.Fill()} }

// problem turns any error into what is answered. What is a bug is logged here,
// once, and answered with the id it is logged under.
func (s *server) problem(ctx context.Context, doing string, err error) *Problem {
	if ready := (*app.Problem)(nil); errors.As(err, &ready) {
		return &Problem{*ready}
	}
	if ctx.Err() != nil { // the client is gone: nobody reads this, and it is no bug
		err = work.Errorf(work.Unavailable, "the request was given up: %w", context.Cause(ctx))
	}
	e, ok := work.AsError(err)
	if !ok || e.Code == work.Internal {
		return s.bug(ctx, doing, err)
	}
	return &Problem{*app.ProblemOf(e)}
}

func (s *server) bug(ctx context.Context, doing string, err error) *Problem {
	return &Problem{*app.ProblemOf(app.Bug(ctx, s.o.Log, doing, err))}
}

func (s *server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	s.problem(r.Context(), r.Method+" "+r.URL.Path, err).write(w)
}

func missing(r *http.Request) *Problem {
	return refusal(app.Problem{Status: http.StatusNotFound, Code: work.NotFound, Reason: "route",
		Detail: fmt.Sprintf("there is nothing at %s", r.URL.Path), Hint: "/docs lists what there is"})
}

func wrongMethod(r *http.Request, allow string) *Problem {
	return refusal(app.Problem{Status: http.StatusMethodNotAllowed, Code: work.Invalid, Reason: "method",
		Detail: fmt.Sprintf("%s is not possible at %s", r.Method, r.URL.Path), Hint: "possible: " + allow})
}

func tooLarge() *Problem {
	return refusal(app.Problem{Status: http.StatusRequestEntityTooLarge, Code: work.Invalid, Reason: "too_large",
		Detail: fmt.Sprintf("the request body is larger than %d MiB", app.MaxBody>>20), Hint: "put long material into a file of the repository"})
}

// ownProblems puts our problem in the place of the framework's: what it found
// wrong with a request before any handler saw it.
func ownProblems(_ huma.Context, _ string, v any) (any, error) {
	m, ok := v.(*huma.ErrorModel)
	if !ok {
		return v, nil
	}
	p := app.Problem{Status: m.Status, Detail: m.Detail, Code: work.Invalid}
	switch m.Status {
	case http.StatusRequestEntityTooLarge:
		return tooLarge(), nil
	case http.StatusUnsupportedMediaType:
		p.Reason, p.Detail, p.Hint = "content_type", "the body is not JSON", "send Content-Type: application/json"
		return refusal(p), nil
	case http.StatusInternalServerError: // a body that stopped coming
		p.Code = work.Unavailable
		return refusal(p), nil
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
	return refusal(p), nil
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

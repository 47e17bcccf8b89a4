package app

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"

	"github.com/claudomator/claudomator/internal/work"
)

// Problem is an error as surfaces write it and clients read it: RFC 9457, and
// what the domain adds. It is an error itself, for what is refused with a status
// that no code stands for.
type Problem struct {
	Type    string         `json:"type" doc:"Always about:blank: the code says what kind of problem it is"`
	Title   string         `json:"title" doc:"The status in words"`
	Status  int            `json:"status,omitempty" required:"true" doc:"The HTTP status"` // 0: not over HTTP
	Detail  string         `json:"detail" doc:"What is wrong, for a person"`
	Code    work.Code      `json:"code" doc:"The class of the error"`
	Reason  string         `json:"reason,omitempty" doc:"A stable word for one kind of refusal, such as superseded or integrating"`
	Hint    string         `json:"hint,omitempty" doc:"What can be done about it"`
	Allowed []string       `json:"allowed,omitzero" doc:"What can be asked of the task, or of the story, instead"`
	Details map[string]any `json:"details,omitempty" doc:"Machine-readable facts, such as the path of a cycle"`
}

// ProblemOf is how an error is answered over HTTP.
func ProblemOf(e *work.Error) *Problem {
	p := &Problem{Status: httpStatus(e.Code), Detail: e.Message, Code: e.Code, Reason: e.Reason, Hint: e.Hint}
	for key, value := range e.Details {
		if allowed := words(value); allowed != nil && key == "allowed" {
			p.Allowed = allowed
			continue
		}
		if p.Details == nil {
			p.Details = map[string]any{}
		}
		p.Details[key] = value
	}
	return p.Fill()
}

// words are the actions of a task, or the acts of a story, as texts; not nil where
// nothing is allowed, which must be said, too.
func words(value any) []string {
	switch allowed := value.(type) {
	case []work.Action:
		return texts(allowed)
	case []work.Act:
		return texts(allowed)
	case []string: // of a problem that came over HTTP
		return texts(allowed)
	}
	return nil
}

func texts[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, word := range list {
		out[i] = string(word)
	}
	return out
}

// Bug logs an error that nobody may see, once, and gives what is shown instead: the
// id that it is logged under.
func Bug(ctx context.Context, log *slog.Logger, doing string, err error) *work.Error {
	id := RandomIDs{}.New()
	log.ErrorContext(ctx, "internal error", "id", id, "doing", doing, "error", err)
	return work.Errorf(work.Internal, "internal error %s", id).WithHint("the server's log has the details under this id").With("id", id)
}

// Fill writes what follows from the status.
func (p *Problem) Fill() *Problem {
	p.Type, p.Title = "about:blank", http.StatusText(p.Status)
	return p
}

// Error is the problem in words.
func (p *Problem) Error() string { return p.Detail }

// Headers sets what an answer with this status says besides; realm names who
// asks for the credential.
func (p *Problem) Headers(h http.Header, realm string) {
	switch p.Status {
	case http.StatusUnauthorized:
		h.Set("WWW-Authenticate", `Bearer realm="`+realm+`"`)
	case http.StatusTooManyRequests:
		h.Set("Retry-After", "60")
	case http.StatusServiceUnavailable:
		h.Set("Retry-After", "1")
	}
}

// WorkError is the error that a problem was made of.
func (p *Problem) WorkError() *work.Error {
	e := work.Errorf(p.Code, "%s", cmp.Or(p.Detail, p.Title))
	e.Reason, e.Hint, e.Details = p.Reason, p.Hint, p.Details
	if p.Allowed != nil {
		return e.With("allowed", p.Allowed)
	}
	return e
}

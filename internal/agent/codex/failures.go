package codex

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/claudomator/claudomator/internal/agent"
)

// Failure is one row of the table of why turns fail: the kind of error, as the
// conversation's file has it, and the words of the error that stand for it
// where the kind is not known.
type Failure struct {
	Name string
	// Info are kinds of error (codex_error_info); nil takes any.
	Info []string
	// Busy: only with an HTTP status with which a provider asks to come back
	// (408, 429, 5xx), or with none, which means no answer at all.
	Busy bool
	// Says are parts of the message; nil takes any.
	Says []string
	// Met is the limit that was met.
	Met agent.LimitKind
	// NoResume: the conversation cannot go on.
	NoResume bool
}

// Failures is the table; the first row that fits decides.
func Failures() []Failure {
	return []Failure{
		{
			Name: "usage limit", Info: []string{"usage_limit_exceeded"},
			Says: []string{"hit your usage limit", "Quota exceeded"}, Met: agent.LimitUsage,
		},
		{
			Name: "provider busy", Info: []string{"server_overloaded", "internal_server_error"},
			Says: []string{"at capacity", "experiencing high demand"}, Met: agent.LimitLoad,
		},
		{
			Name: "provider does not answer", Busy: true,
			Info: []string{"http_connection_failed", "response_stream_connection_failed", "response_stream_disconnected", "response_too_many_failed_attempts"},
			Says: []string{"unexpected status", "exceeded retry limit", "stream disconnected", "Connection failed", "waiting for network"},
			Met:  agent.LimitLoad,
		},
		{
			Name: "conversation too long", Info: []string{"context_window_exceeded"},
			Says: []string{"ran out of room in the model's context window"}, NoResume: true,
		},
		{Name: "other"},
	}
}

// explain finds the row of an error. kind may be empty: unknown.
func explain(kind json.RawMessage, message string) Failure {
	info, status := readInfo(kind)
	message = strings.ReplaceAll(message, "’", "'")
	if info == "" {
		status = statusIn(message)
	}
	rows := Failures()
	return rows[slices.IndexFunc(rows, func(f Failure) bool {
		if f.Busy && status != 0 && status != 408 && status != 429 && status < 500 {
			return false
		}
		if info != "" {
			return f.Info == nil || slices.Contains(f.Info, info)
		}
		return f.Says == nil || slices.ContainsFunc(f.Says, func(part string) bool { return strings.Contains(message, part) })
	})]
}

// readInfo takes a kind of error apart: a name, or an object of one name with
// the HTTP status, 0 for none.
func readInfo(kind json.RawMessage) (name string, status int) {
	if json.Unmarshal(kind, &name) == nil {
		return name, 0
	}
	var object map[string]struct {
		Status int `json:"http_status_code"`
	}
	if json.Unmarshal(kind, &object) == nil && len(object) == 1 {
		for name, detail := range object {
			return name, detail.Status
		}
	}
	return "", 0
}

// statusIn finds the HTTP status that an error speaks of; 0: none.
func statusIn(message string) int {
	if m := regexp.MustCompile(`\bstatus:? (\d{3})\b`).FindStringSubmatch(message); m != nil {
		status, _ := strconv.Atoi(m[1])
		return status
	}
	return 0
}

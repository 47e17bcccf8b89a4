package claude

import (
	"slices"
	"strings"

	"github.com/claudomator/claudomator/internal/agent"
)

// result are the fields read of a line of type "result": how a turn ended.
// Subtype alone says nothing: it is "success" for a request that failed, too.
type result struct {
	Subtype  string   `json:"subtype"`
	IsError  bool     `json:"is_error"`
	Terminal string   `json:"terminal_reason"`
	Status   int      `json:"api_error_status"`
	APIError string   `json:"api_error"`
	Text     string   `json:"result"`
	Errors   []string `json:"errors"`

	TotalCost float64          `json:"total_cost_usd"`
	Usage     turnUsage        `json:"usage"`
	Since     map[string]since `json:"model_usage_since_last_result"`
}

// turnUsage are the tokens of the turn's own requests.
type turnUsage struct {
	Input      int64 `json:"input_tokens"`
	Output     int64 `json:"output_tokens"`
	CacheRead  int64 `json:"cache_read_input_tokens"`
	CacheWrite int64 `json:"cache_creation_input_tokens"`
}

// since is what one model has used since the last result of this process, with
// what subagents and a compaction of the conversation took.
type since struct {
	Input      int64   `json:"inputTokens"`
	Output     int64   `json:"outputTokens"`
	CacheRead  int64   `json:"cacheReadInputTokens"`
	CacheWrite int64   `json:"cacheCreationInputTokens"`
	Cost       float64 `json:"costUSD"`
}

// Ending is one row of the table: what a result must say, and what it means.
// Empty fields take anything.
type Ending struct {
	Name     string
	OK       bool      // is_error is false
	Subtype  string    // exactly
	Terminal string    // how terminal_reason begins
	APIError string    // exactly
	Statuses []int     // api_error_status
	Error    string    // part of one of errors
	End      agent.End // EndNone: the result is our own doing and counts for nothing
	Met      agent.LimitKind
	NoResume bool // where a conversation was to be resumed
}

// Endings is the table; the first row that fits a result decides. The limits of
// a provider come first, then why a conversation cannot go on, then the rest. A
// result that no row before the last one knows is a failure.
func Endings() []Ending {
	return []Ending{
		{Name: "usage limit", APIError: "usage_limit_reached", End: agent.EndFailure, Met: agent.LimitUsage},
		{Name: "too many requests", Statuses: []int{429}, End: agent.EndFailure, Met: agent.LimitLoad},
		{Name: "provider in trouble", Statuses: []int{500, 502, 503, 504, 529}, End: agent.EndFailure, Met: agent.LimitLoad},
		{Name: "provider not reached", APIError: "connection_failed", End: agent.EndFailure, Met: agent.LimitLoad},
		{Name: "unknown conversation", Error: "No conversation found", End: agent.EndFailure, NoResume: true},
		{Name: "prompt too long", Terminal: "prompt_too_long", End: agent.EndFailure, NoResume: true},
		{Name: "interrupted", Terminal: "aborted"},
		{Name: "completed", OK: true, Subtype: "success", End: agent.EndSuccess},
		{Name: "failed", End: agent.EndFailure},
	}
}

// ending finds the row of a result. The last row takes anything.
func (r *result) ending() Ending {
	rows := Endings()
	return rows[slices.IndexFunc(rows, func(e Ending) bool {
		return (!e.OK || !r.IsError) &&
			(e.Subtype == "" || e.Subtype == r.Subtype) &&
			(e.Terminal == "" || strings.HasPrefix(r.Terminal, e.Terminal)) &&
			(e.APIError == "" || e.APIError == r.APIError) &&
			(e.Statuses == nil || slices.Contains(e.Statuses, r.Status)) &&
			(e.Error == "" || slices.ContainsFunc(r.Errors, func(text string) bool { return strings.Contains(text, e.Error) }))
	})]
}

// why says in the program's words why it failed.
func (r *result) why() string {
	switch {
	case r.Text != "":
		return r.Text
	case len(r.Errors) > 0:
		return strings.Join(r.Errors, "; ")
	case r.Terminal != "":
		return r.Terminal
	}
	return r.Subtype
}

package claude

import (
	"fmt"

	"github.com/claudomator/claudomator/internal/agent"
)

// system are the fields read of lines of type "system".
type system struct {
	Subtype string `json:"subtype"`
	// init
	Version string `json:"claude_code_version"`
	Model   string `json:"model"`
	Servers []struct {
		Name   string `json:"name"`
		Status string `json:"status"`
	} `json:"mcp_servers"`
	// api_retry
	Attempt    int     `json:"attempt"`
	MaxRetries int     `json:"max_retries"`
	DelayMS    float64 `json:"retry_delay_ms"`
	Status     *int    `json:"error_status"` // null: no answer came
	Error      string  `json:"error"`
	// tasks in the background
	Tasks      []task `json:"tasks"`
	TaskID     string `json:"task_id"`
	TaskStatus string `json:"status"`
	// compact_boundary
	Compact struct {
		Before int64 `json:"pre_tokens"`
		After  int64 `json:"post_tokens"`
	} `json:"compact_metadata"`
}

type task struct {
	ID          string `json:"task_id"`
	Description string `json:"description"`
}

func (r *reader) system(e system) bool {
	switch e.Subtype {
	case "init":
		r.began(e)
	case "api_retry":
		r.retry(e)
	case "background_tasks_changed":
		r.tasks(e)
	case "task_notification":
		if r.finished && (e.TaskStatus == "stopped" || e.TaskStatus == "killed") {
			return true // the program is leaving: it is still unfinished
		}
		delete(r.work, e.TaskID)
	case "compact_boundary":
		r.session.Emit(agent.Event{Kind: agent.KindLog, Stream: agent.Stdout, Text: fmt.Sprintf(
			"the conversation was compacted from %d to %d tokens", e.Compact.Before, e.Compact.After)})
	case "status": // said by the line above, and of no interest otherwise
	case "task_started", "task_updated", "task_progress", "permission_denied": // said by other lines as well
	default:
		return false
	}
	return true
}

// began says what runs, and warns where the run's tools are not there: without
// them the agent can neither ask nor report.
func (r *reader) began(e system) {
	r.session.Emit(agent.Event{Kind: agent.KindLog, Stream: agent.Stdout, Text: fmt.Sprintf("Claude Code %s, model %s", e.Version, e.Model)})
	if older(e.Version, oldest) {
		r.session.Warn(fmt.Sprintf("Claude Code %s is too old: failures, limits and allowed tools may be misread before %s", e.Version, oldest))
	}
	for _, s := range e.Servers {
		if s.Name == server && (s.Status == "failed" || s.Status == "needs-auth") {
			r.session.Warn("the agent could not reach the run's tools: " + s.Status)
		}
	}
}

// retry: the program repeats a request. Where the provider is the reason, what
// becomes of the run may be the provider's doing, too.
func (r *reader) retry(e system) {
	status, kind := "no answer", agent.LimitLoad
	if e.Status != nil {
		status = fmt.Sprint(*e.Status)
		if *e.Status != 429 && *e.Status < 500 {
			kind = agent.LimitWarning
		}
	}
	text := fmt.Sprintf("request failed (%s, %s), attempt %d of %d, again in %.1f s", e.Error, status, e.Attempt, e.MaxRetries+1, e.DelayMS/1000)
	r.session.Emit(agent.Event{Kind: agent.KindLimit, Limit: &agent.Limit{Kind: kind, Text: text}})
}

// tasks is the whole list of what runs in the background. What the program ends
// while it leaves stays unfinished work.
func (r *reader) tasks(e system) {
	now := make(background, len(e.Tasks))
	for _, t := range e.Tasks {
		now[t.ID] = t.Description
		if t.Description == "" {
			now[t.ID] = t.ID
		}
	}
	if !r.finished {
		r.work = now
	}
}

// rateLimit is how the subscription's usage limit stands.
type rateLimit struct {
	Info struct {
		Status      string  `json:"status"`
		ResetsAt    float64 `json:"resetsAt"` // seconds since 1970
		Type        string  `json:"rateLimitType"`
		Utilization float64 `json:"utilization"`
	} `json:"rate_limit_info"`
}

func (r *reader) rateLimit(e rateLimit) bool {
	limit := agent.Limit{ResetAt: agent.Unix(e.Info.ResetsAt)}
	switch e.Info.Status {
	case "allowed_warning":
		limit.Kind = agent.LimitWarning
		limit.Text = fmt.Sprintf("%s usage limit at %.0f %%", e.Info.Type, e.Info.Utilization*100)
	case "rejected":
		limit.Kind = agent.LimitUsage
		limit.Text = e.Info.Type + " usage limit reached"
		r.resetAt = limit.ResetAt
	case "allowed":
		return true
	default:
		return false
	}
	r.session.Emit(agent.Event{Kind: agent.KindLimit, Limit: &limit})
	return true
}

package agent

import (
	"slices"
	"strings"
)

// inherited names what an agent gets of the server's environment: who and
// where the user is, language, terminal type, the way out to the network. A
// "*" at the end stands for any rest. Provider keys are not among them: they
// are given by name (RunnerOptions.Inherit) or in Job.Env.
func inherited() []string {
	return []string{
		"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TZ",
		"LANG", "LANGUAGE", "LC_*", "TERM", "TMPDIR",
		"XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME",
		"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS",
		"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY",
		"http_proxy", "https_proxy", "no_proxy", "all_proxy",
	}
}

// withheld names what no agent inherits, also when asked for by name: the
// server's own variables, and the marks by which agent programs notice that
// they run inside another one (and then refuse or behave differently).
func withheld() []string {
	return []string{
		"CLAUDOMATOR_*",
		"CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT", "CLAUDE_CODE_SESSION_ID",
		"CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED", "CODEX_THREAD_ID",
		"GEMINI_CLI", "QWEN_CODE", "OPENCODE",
	}
}

// unattended keeps programs from waiting for a person: there is none at a
// terminal.
func unattended() []string {
	return []string{"GIT_TERMINAL_PROMPT=0", "GIT_EDITOR=true", "GIT_PAGER=cat", "PAGER=cat"}
}

// Environment picks from base what an agent may inherit, also being the names
// allowed besides the usual ones, and adds the settings for running
// unattended. It is sorted by name.
func Environment(base, also []string) []string {
	allowed := slices.Concat(inherited(), also)
	kept := slices.DeleteFunc(slices.Clone(base), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return !matches(allowed, name) || matches(withheld(), name)
	})
	return merge(kept, unattended())
}

// merge joins lists of NAME=value; of two with one name the later stays.
func merge(lists ...[]string) []string {
	byName := make(map[string]string)
	for _, entry := range slices.Concat(lists...) {
		name, _, _ := strings.Cut(entry, "=")
		byName[name] = entry
	}
	entries := make([]string, 0, len(byName))
	for _, entry := range byName {
		entries = append(entries, entry)
	}
	slices.Sort(entries)
	return entries
}

func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		prefix, open := strings.CutSuffix(pattern, "*")
		return name == pattern || open && strings.HasPrefix(name, prefix)
	})
}

// own are the job's additions; names of the server's kind are not its to give.
func (j *Job) own() []string {
	return slices.DeleteFunc(slices.Clone(j.Env), func(entry string) bool {
		return strings.HasPrefix(entry, "CLAUDOMATOR_")
	})
}

// environ is what every agent learns about its run, whatever the adapter.
func (j *Job) environ() []string {
	env := slices.Clone(j.Facts)
	for _, v := range []struct{ name, value string }{
		{"CLAUDOMATOR_TASK_ID", j.TaskID},
		{"CLAUDOMATOR_EXECUTION_ID", j.ID},
		{"CLAUDOMATOR_MCP_URL", j.MCP.URL},
		{"CLAUDOMATOR_MCP_TOKEN", j.MCP.Token},
		{"CLAUDOMATOR_BIN", j.Bin},
	} {
		if v.value != "" {
			env = append(env, v.name+"="+v.value)
		}
	}
	return env
}

// Value is what the job's program will see of a variable; empty where it sees
// none.
func (r *Runner) Value(job Job, name string) string {
	for _, entry := range merge(r.env, job.own(), job.environ()) {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}

package fakellm

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Scripts are conversations by the word that a prompt names them with.
type Scripts map[string][]Turn

// Turn is one reply: text and calls, or a fault. The turn after it is answered
// when the results of its calls have come back.
type Turn struct {
	Text    string
	Calls   []Call
	Fault   *Fault
	Usage   Usage             // zero: something plausible
	Headers map[string]string // of a good answer; {{now+1h}} is a Unix time
	Expect  string            // regexp that the last tool result must match
}

// Call is one call of a tool.
type Call struct {
	Shell string         // a command, for whatever tool the program has for them
	Tool  string         // else the end of an offered tool's name
	Args  map[string]any // of Tool, or further ones of Shell
}

// Usage counts tokens.
type Usage struct{ Input, Output, CacheRead int }

// Kind is the kind of a fault, answered in the protocol's own form.
type Kind string

const (
	RateLimit  Kind = "rate_limit"   // 429
	UsageLimit Kind = "usage_limit"  // 429 of a subscription that is spent for ResetsIn seconds
	Overloaded Kind = "overloaded"   // 529, 503
	Broken     Kind = "server_error" // 500
	Denied     Kind = "auth"         // 401
	TooLong    Kind = "context"      // 400
	Hang       Kind = "hang"         // never an answer
)

// Fault is a failure.
type Fault struct {
	Kind       Kind
	Times      int // then the turn is answered; 0: always
	RetryAfter int // seconds
	ResetsIn   int // seconds
}

// tool is one that a request offers.
type tool struct {
	name, namespace, kind string
	schema                map[string]any
}

func (t tool) full() string { return strings.TrimPrefix(t.namespace+"/"+t.name, "/") }

// conversation is a request in common terms.
type conversation struct {
	model  string
	stream bool
	tools  []tool
	word   string   // of the newest prompt that names a script
	words  []string // all those named so far
	since  int      // tool results after it
	result string   // the last one
	size   int      // bytes of the request
}

var named = regexp.MustCompile(`SCRIPT:([a-z0-9]+)`)

// The parsers call these two in the conversation's order.

func (c *conversation) user(text string) {
	found := named.FindAllStringSubmatch(text, -1)
	if found == nil || found[len(found)-1][1] == c.word {
		return // some programs repeat the prompt behind the results
	}
	c.word, c.since = found[len(found)-1][1], 0
	c.words = append(c.words, c.word)
}

func (c *conversation) answered(text string) {
	c.since++
	c.result = text
}

// reply is what to answer.
type reply struct {
	turn  int
	text  string
	calls []toolCall
	usage Usage
	fault *Fault
	miss  string
	head  map[string]string
}

type toolCall struct {
	id   string
	tool tool
	args map[string]any
}

func (k toolCall) json() string {
	data, _ := json.Marshal(k.args)
	return string(data)
}

// decide finds the turn of a request and fills it in.
func (s Scripts) decide(c *conversation) reply {
	if len(c.tools) == 0 {
		return reply{text: "Scripted side answer", usage: Usage{Input: 1, Output: 1}}
	}
	turns, known := s[c.word]
	if !known {
		return missed(fmt.Sprintf("no script %q", c.word))
	}
	i, left := 0, c.since
	for i < len(turns)-1 && left >= len(turns[i].Calls) && len(turns[i].Calls) > 0 {
		left -= len(turns[i].Calls)
		i++
	}
	t := turns[i]
	if t.Expect != "" && !regexp.MustCompile("(?s)"+t.Expect).MatchString(c.result) {
		return missed(fmt.Sprintf("tool result %.300q does not match %s", c.result, t.Expect))
	}
	r := reply{turn: i, text: t.Text, fault: t.Fault, usage: t.Usage, head: t.Headers}
	for n, call := range t.Calls {
		tool, args, ok := c.fill(call)
		if !ok {
			return missed(fmt.Sprintf("no tool for %+v among %d", call, len(c.tools)))
		}
		r.calls = append(r.calls, toolCall{id: fmt.Sprintf("call_%s_%d_%d", c.word, i, n), tool: tool, args: args})
	}
	if r.usage == (Usage{}) {
		r.usage = Usage{Input: c.size/4 + 1, Output: len(r.text)/4 + 1}
	}
	return r
}

func missed(text string) reply {
	return reply{miss: text, text: "FAKELLM: " + text, usage: Usage{Input: 1, Output: 1}}
}

// fill finds the tool for a call among those offered, and its arguments.
func (c *conversation) fill(call Call) (tool, map[string]any, bool) {
	if call.Shell == "" {
		i := slices.IndexFunc(c.tools, func(t tool) bool { return strings.HasSuffix(t.name, call.Tool) })
		if i < 0 {
			return tool{}, nil, false
		}
		args := call.Args
		if args == nil {
			args = map[string]any{}
		}
		return c.tools[i], args, true
	}
	// What programs call the tool that runs a command.
	for _, name := range []string{"Bash", "exec_command", "shell_command", "shell", "local_shell", "container.exec"} {
		for _, t := range c.tools {
			if t.name == name {
				return t, shell(t, call), true
			}
		}
	}
	return tool{}, nil, false
}

// shell fills a shell tool's own form.
func shell(t tool, call Call) map[string]any {
	args := map[string]any{}
	for name, value := range call.Args {
		args[name] = value
	}
	properties, _ := t.schema["properties"].(map[string]any)
	if _, ok := properties["description"]; ok {
		args["description"] = "scripted command"
	}
	for _, name := range []string{"command", "cmd"} {
		property, ok := properties[name].(map[string]any)
		if !ok {
			continue
		}
		args[name] = call.Shell
		if property["type"] == "array" {
			args[name] = []string{"bash", "-lc", call.Shell}
		}
		return args
	}
	args["command"] = call.Shell
	return args
}

package scripted

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	sdk "github.com/coder/acp-go-sdk"
)

const (
	maxOutput = 64 << 10        // bytes of a command's output that are told
	pipeGrace = 2 * time.Second // for what a command leaves behind to close its output
)

// errEnded ends a turn for a reason.
type errEnded struct{ reason sdk.StopReason }

func (e *errEnded) Error() string { return "the turn ends: " + string(e.reason) }

// turn is one prompt being carried out.
type turn struct {
	*program
	s      *session
	prompt string
	usage  *sdk.Usage
	asked  bool // known is filled
	known  taskContext
}

// taskContext is what is read of the tool get_context.
type taskContext struct {
	Task struct {
		Name      string `json:"name"`
		AttemptNo int    `json:"attempt_no"`
		Agent     struct {
			Role         string `json:"role"`
			Instructions string `json:"instructions"`
		} `json:"agent"`
	} `json:"task"`
	Interactions []struct {
		Question string `json:"question"`
		Answer   string `json:"answer"`
	} `json:"interactions"`
}

// play does what is left of the script.
func (t *turn) play(ctx context.Context) (sdk.StopReason, error) {
	source, err := t.source(ctx)
	if err != nil {
		return "", err
	}
	script, err := Parse([]byte(source))
	if err != nil {
		return "", err
	}
	t.mu.Lock()
	t.script = script
	t.mu.Unlock()
	t.s.Script = source
	t.s.prompts++
	steps := script.Steps
	if len(script.Roles) > 0 {
		if err := t.learn(ctx); err != nil {
			return "", err
		}
		if own, ok := script.Roles[t.known.Task.Agent.Role]; ok {
			steps = own
		}
	}
	from, first := t.s.Next, true
	if from >= len(steps) {
		first = false
		steps, from = script.Again, 0
		if len(steps) == 0 {
			return sdk.StopReasonEndTurn, nil
		}
	}
	for i := from; i < len(steps); i++ {
		doing := ctx
		if t.stays() {
			doing = context.WithoutCancel(ctx)
		}
		if first {
			t.s.Next = i + 1
		}
		if err := t.step(doing, script, steps[i]); err != nil {
			if ended, ok := errors.AsType[*errEnded](err); ok {
				return ended.reason, nil
			}
			if _, ok := errors.AsType[*sdk.RequestError](err); ok {
				return "", err
			}
			return "", fmt.Errorf("line %d, %s: %w", steps[i].Line, steps[i].Action, err)
		}
	}
	return sdk.StopReasonEndTurn, nil
}

// step does one step, which counts as done from its beginning: a conversation that
// is resumed after it has ended the run goes on behind it.
func (t *turn) step(ctx context.Context, script *Script, step Step) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if script.Forget {
		t.store.forget(t.s.ID)
	} else if err := t.store.save(&t.s.conversation); err != nil {
		return err
	}
	if ok, err := t.applies(ctx, &step.When); err != nil || !ok {
		return err
	}
	s, err := t.filled(ctx, step)
	if err != nil {
		return err
	}
	if do := t.faults()[s.Action]; do != nil {
		return do(ctx, &s)
	}
	return t.deeds()[s.Action](ctx, &s)
}

// deeds are the actions of an agent that works.
func (t *turn) deeds() map[string]func(context.Context, *Step) error {
	return map[string]func(context.Context, *Step) error{
		"say": func(ctx context.Context, s *Step) error {
			return t.update(ctx, sdk.UpdateAgentMessageText(s.Value+"\n\n"))
		},
		"think": func(ctx context.Context, s *Step) error {
			return t.update(ctx, sdk.UpdateAgentThoughtText(s.Value+"\n\n"))
		},
		"edit": t.edit, "run": t.run, "commit": t.commit, "call": t.call, "ask": t.ask, "permission": t.permission,
		"sleep": t.sleep, "usage": t.count,
	}
}

func (t *turn) update(ctx context.Context, u sdk.SessionUpdate) error {
	return t.conn.SessionUpdate(ctx, sdk.SessionNotification{SessionId: sdk.SessionId(t.s.ID), Update: u}) //nolint:wrapcheck // play names the step
}

// applies says whether a step's conditions hold.
func (t *turn) applies(ctx context.Context, w *When) (bool, error) {
	if w.Attempt != nil || w.Role != nil || w.Task != "" || w.Answered != nil {
		if err := t.learn(ctx); err != nil {
			return false, err
		}
	}
	there := func(path string) bool {
		_, err := os.Stat(t.path(path))
		return err == nil
	}
	return (w.Attempt == nil || *w.Attempt == t.known.Task.AttemptNo) &&
		(w.Role == nil || *w.Role == t.known.Task.Agent.Role) &&
		(w.Task == "" || w.Task == t.known.Task.Name || strings.HasSuffix(t.known.Task.Name, ": "+w.Task)) &&
		(w.Answered == nil || *w.Answered == (t.answer() != "")) &&
		(w.Resumed == nil || *w.Resumed == t.s.resumed) &&
		(w.Exists == "" || there(w.Exists)) && (w.Missing == "" || !there(w.Missing)), nil
}

// learn asks the server for the task, once.
func (t *turn) learn(ctx context.Context) error {
	if t.asked {
		return nil
	}
	data, err := t.tool(ctx, "get_context", nil)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, &t.known); err != nil {
		return fmt.Errorf("read the task: %w", err)
	}
	t.known.Task.Agent.Role = cmp.Or(t.known.Task.Agent.Role, "builder")
	t.asked = true
	return nil
}

func (t *turn) tool(ctx context.Context, name string, arguments json.RawMessage) (json.RawMessage, error) {
	if t.s.url == "" {
		return nil, errors.New("this conversation was given no tools of a run")
	}
	return t.o.Call(ctx, t.s.url, t.s.token, name, arguments)
}

func (t *turn) answer() string {
	for i := len(t.known.Interactions) - 1; i >= 0; i-- {
		if t.known.Interactions[i].Question != "" {
			return t.known.Interactions[i].Answer
		}
	}
	return ""
}

// filled is a step with what stands in braces filled in.
func (t *turn) filled(ctx context.Context, s Step) (Step, error) {
	var failed error
	fill := func(text string) string {
		if strings.Contains(text, "{{answer}}") || strings.Contains(text, "{{attempt}}") {
			failed = cmp.Or(failed, t.learn(ctx))
		}
		pairs := []string{"{{answer}}", t.answer(), "{{attempt}}", strconv.Itoa(t.known.Task.AttemptNo), "{{prompt}}", t.prompt}
		for _, entry := range t.o.Environ {
			name, value, _ := strings.Cut(entry, "=")
			pairs = append(pairs, "{{"+name+"}}", value)
		}
		return strings.NewReplacer(pairs...).Replace(text)
	}
	for _, field := range []*string{&s.Value, &s.Content, &s.Replace, &s.With} {
		if strings.Contains(*field, "{{") {
			*field = fill(*field)
		}
	}
	if bytes.Contains(s.Arguments, []byte("{{")) {
		var value any
		if err := json.Unmarshal(s.Arguments, &value); err != nil {
			return s, fmt.Errorf("read arguments: %w", err)
		}
		var err error
		if s.Arguments, err = json.Marshal(mapTexts(value, fill)); err != nil {
			return s, fmt.Errorf("write arguments: %w", err)
		}
	}
	return s, failed
}

// mapTexts applies a function to every text of a JSON value.
func mapTexts(value any, do func(string) string) any {
	switch v := value.(type) {
	case string:
		return do(v)
	case []any:
		for i := range v {
			v[i] = mapTexts(v[i], do)
		}
	case map[string]any:
		for key := range v {
			v[key] = mapTexts(v[key], do)
		}
	}
	return value
}

func (t *turn) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(t.s.dir, name)
}

// acts tells a tool call around a deed: what it does, and what came of it.
func (t *turn) acts(ctx context.Context, kind sdk.ToolKind, title string, input any, do func() (output string, content []sdk.ToolCallContent, err error)) error {
	t.s.lastTool++
	id := sdk.ToolCallId(fmt.Sprintf("call-%d-%d", t.s.prompts, t.s.lastTool))
	if err := t.update(ctx, sdk.StartToolCall(id, title, sdk.WithStartKind(kind), sdk.WithStartStatus(sdk.ToolCallStatusInProgress), sdk.WithStartRawInput(input))); err != nil {
		return err
	}
	output, content, err := do()
	status := sdk.ToolCallStatusCompleted
	if err != nil {
		status, output = sdk.ToolCallStatusFailed, strings.TrimSpace(output+"\n"+err.Error())
	}
	if output != "" {
		content = append(content, sdk.ToolContent(sdk.TextBlock(output)))
	}
	if told := t.update(ctx, sdk.UpdateToolCall(id, sdk.WithUpdateStatus(status), sdk.WithUpdateContent(content))); told != nil {
		return told
	}
	return err
}

func (t *turn) edit(ctx context.Context, s *Step) error {
	return t.acts(ctx, sdk.ToolKindEdit, "edit", map[string]any{"path": s.Value}, func() (string, []sdk.ToolCallContent, error) {
		if !filepath.IsLocal(s.Value) {
			return "", nil, fmt.Errorf("%s is not inside of the workspace", s.Value)
		}
		path := t.path(s.Value)
		old, err := os.ReadFile(path)
		if err != nil && (!errors.Is(err, os.ErrNotExist) || s.given["replace"]) {
			return "", nil, fmt.Errorf("read file: %w", err)
		}
		text := s.Content
		if s.given["replace"] {
			if !strings.Contains(string(old), s.Replace) {
				return "", nil, fmt.Errorf("%s does not contain %q", s.Value, s.Replace)
			}
			text = strings.Replace(string(old), s.Replace, s.With, 1)
		}
		if err = os.MkdirAll(filepath.Dir(path), 0o755); err == nil {
			err = os.WriteFile(path, []byte(text), 0o644)
		}
		if err != nil {
			return "", nil, fmt.Errorf("write file: %w", err)
		}
		return "", []sdk.ToolCallContent{sdk.ToolDiffContent(path, text, string(old))}, nil
	})
}

// command is a program in the workspace, with the prompt as its input.
func (t *turn) command(ctx context.Context, argv ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, argv[0], argv[1:]...)
	c.Dir, c.Env, c.Stdin, c.WaitDelay = t.s.dir, t.o.Environ, strings.NewReader(t.prompt), pipeGrace
	return c
}

// captured runs a command and returns the end of what it prints.
func captured(c *exec.Cmd) (string, error) {
	data, err := c.CombinedOutput()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // the command has ended; what it left behind holds its output
	}
	if len(data) > maxOutput {
		data = data[len(data)-maxOutput:]
	}
	return string(data), err //nolint:wrapcheck // "exit status 1" says it
}

func (t *turn) run(ctx context.Context, s *Step) error {
	c := t.command(ctx, "sh", "-c", s.Value)
	if s.Raw {
		c.Stdout, c.Stderr = t.o.Out, t.o.Err
		t.out.borrowed()
		err := c.Run()
		if s.MayFail || errors.Is(err, exec.ErrWaitDelay) {
			return nil
		}
		return err //nolint:wrapcheck // "exit status 1" says it
	}
	err := t.acts(ctx, sdk.ToolKindExecute, "shell", map[string]any{"command": s.Value}, func() (string, []sdk.ToolCallContent, error) {
		output, err := captured(c)
		return output, nil, err
	})
	if s.MayFail && ctx.Err() == nil {
		return nil
	}
	return err
}

func (t *turn) commit(ctx context.Context, s *Step) error {
	return t.acts(ctx, sdk.ToolKindExecute, "commit", map[string]any{"message": s.Value}, func() (string, []sdk.ToolCallContent, error) {
		if output, err := captured(t.command(ctx, "git", "add", "-A")); err != nil {
			return output, nil, err
		}
		output, err := captured(t.command(ctx, "git", "commit", "-q", "-m", s.Value))
		return output, nil, err
	})
}

func (t *turn) call(ctx context.Context, s *Step) error {
	err := t.acts(ctx, sdk.ToolKindOther, s.Value, s.Arguments, func() (string, []sdk.ToolCallContent, error) {
		result, err := t.tool(ctx, s.Value, s.Arguments)
		return string(result), nil, err
	})
	if s.MayFail && ctx.Err() == nil {
		return nil
	}
	return err
}

// ask asks, and is ended with the run. When the run is resumed with the answer, the
// script goes on behind it.
func (t *turn) ask(ctx context.Context, s *Step) error {
	arguments, err := json.Marshal(map[string]any{"question": s.Value, "options": s.Options})
	if err != nil {
		return fmt.Errorf("write the question: %w", err)
	}
	s.Value, s.Arguments = "ask_user", arguments
	if err := t.call(ctx, s); err != nil {
		return err
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

func (t *turn) permission(ctx context.Context, s *Step) error {
	t.s.lastTool++
	id := sdk.ToolCallId(fmt.Sprintf("permission-%d-%d", t.s.prompts, t.s.lastTool))
	r, err := t.conn.RequestPermission(ctx, sdk.RequestPermissionRequest{
		SessionId: sdk.SessionId(t.s.ID),
		ToolCall:  sdk.ToolCallUpdate{ToolCallId: id, Title: &s.Value, RawInput: map[string]any{"of": s.Value}},
		Options: []sdk.PermissionOption{
			{OptionId: "no", Kind: sdk.PermissionOptionKindRejectOnce, Name: "No"},
			{OptionId: "yes", Kind: sdk.PermissionOptionKindAllowOnce, Name: "Yes"},
		},
	})
	if err != nil {
		return err //nolint:wrapcheck // play names the step
	}
	if r.Outcome.Selected == nil || r.Outcome.Selected.OptionId != "yes" {
		return errors.New("refused")
	}
	return t.update(ctx, sdk.UpdateToolCall(id, sdk.WithUpdateStatus(sdk.ToolCallStatusCompleted)))
}

func (t *turn) sleep(ctx context.Context, s *Step) error {
	d, err := time.ParseDuration(s.Value)
	if err != nil {
		return fmt.Errorf("read duration: %w", err)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// count reports tokens with the end of the turn, as the protocol has it, and cost at
// once.
func (t *turn) count(ctx context.Context, s *Step) error {
	input, err := number(s.Value)
	if err != nil {
		return err
	}
	read, write := int(s.CacheRead), int(s.CacheWrite)
	t.usage = &sdk.Usage{InputTokens: int(input), OutputTokens: int(s.Output), CachedReadTokens: &read, CachedWriteTokens: &write}
	t.usage.TotalTokens = t.usage.InputTokens + t.usage.OutputTokens + read + write
	return t.update(ctx, sdk.SessionUpdate{UsageUpdate: &sdk.SessionUsageUpdate{
		SessionUpdate: "usage_update", Cost: &sdk.Cost{Amount: s.Cost, Currency: "USD"}, Size: 1_000_000, Used: t.usage.TotalTokens,
	}})
}

package scripted

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	sdk "github.com/coder/acp-go-sdk"
)

// statusSignalled is the exit status after a request to end.
const statusSignalled = 143

// Options are what the program is given.
type Options struct {
	Args     []string // at most one: the script's file
	In       io.Reader
	Out, Err io.Writer
	Environ  []string
	Now      func() time.Time
	// Call calls a tool of the run at its endpoint.
	Call func(ctx context.Context, url, token, tool string, arguments json.RawMessage) (json.RawMessage, error)
}

// Run speaks the protocol until its input ends or ctx does, and returns the exit
// status.
func Run(ctx context.Context, o Options) int {
	a := &program{o: o, out: &output{w: o.Out}, exit: make(chan int, 1)}
	a.store = openStore(a.env, o.Now)
	if len(o.Args) > 1 {
		_, _ = fmt.Fprintln(o.Err, "scripted-agent takes one script")
		return 2
	}
	// The library reads as soon as it has its reader, before it can be told anything.
	ready := make(chan struct{})
	a.conn = sdk.NewAgentSideConnection(a, a.out, &gate{Reader: o.In, open: ready})
	a.conn.SetLogger(slog.New(slog.DiscardHandler))
	close(ready)
	for done := a.conn.Done(); ; {
		select {
		case status := <-a.exit:
			return status
		case <-ctx.Done():
			return statusSignalled
		case <-done:
			if !a.stays() {
				return a.status()
			}
			done = nil
		}
	}
}

// program is one life of the agent: one connection, one conversation at a time.
type program struct {
	o     Options
	conn  *sdk.AgentSideConnection
	out   *output
	store store
	exit  chan int // takes the status to end with at once

	mu      sync.Mutex
	session *session
	script  *Script // of the last prompt
	stuck   bool    // ignores requests to end
}

// session is a conversation in this life.
type session struct {
	conversation
	dir      string
	url      string // of the run's tools
	token    string
	resumed  bool
	prompts  int
	lastTool int
}

func (a *program) env(name string) string {
	value := ""
	for _, entry := range a.o.Environ {
		if v, ok := strings.CutPrefix(entry, name+"="); ok {
			value = v
		}
	}
	return value
}

func (a *program) stays() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.stuck || a.script != nil && a.script.Stay
}

func (a *program) status() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.script == nil {
		return 0
	}
	return a.script.ExitCode
}

// Initialize implements sdk.Agent.
func (a *program) Initialize(context.Context, sdk.InitializeRequest) (sdk.InitializeResponse, error) {
	return sdk.InitializeResponse{
		ProtocolVersion: sdk.ProtocolVersionNumber,
		AgentInfo:       &sdk.Implementation{Name: "scripted", Version: "1"},
		AuthMethods:     []sdk.AuthMethod{},
		AgentCapabilities: sdk.AgentCapabilities{
			LoadSession:         a.store.dir != "",
			McpCapabilities:     sdk.McpCapabilities{Http: true},
			SessionCapabilities: sdk.SessionCapabilities{Resume: &sdk.SessionResumeCapabilities{}},
		},
	}, nil
}

// Authenticate implements sdk.Agent: there is nothing to log in to.
func (a *program) Authenticate(context.Context, sdk.AuthenticateRequest) (sdk.AuthenticateResponse, error) {
	return sdk.AuthenticateResponse{}, nil
}

// NewSession implements sdk.Agent.
func (a *program) NewSession(_ context.Context, r sdk.NewSessionRequest) (sdk.NewSessionResponse, error) {
	a.store.prune()
	s := a.open(conversation{ID: rand.Text()}, r.Cwd, r.McpServers)
	return sdk.NewSessionResponse{SessionId: sdk.SessionId(s.ID), Modes: modes(), Models: models()}, nil
}

// LoadSession implements sdk.AgentLoader. What was said is not said again.
func (a *program) LoadSession(_ context.Context, r sdk.LoadSessionRequest) (sdk.LoadSessionResponse, error) {
	err := a.resume(string(r.SessionId), r.Cwd, r.McpServers)
	return sdk.LoadSessionResponse{Modes: modes(), Models: models()}, err
}

// ResumeSession implements sdk.Agent.
func (a *program) ResumeSession(_ context.Context, r sdk.ResumeSessionRequest) (sdk.ResumeSessionResponse, error) {
	err := a.resume(string(r.SessionId), r.Cwd, r.McpServers)
	return sdk.ResumeSessionResponse{Modes: modes(), Models: models()}, err
}

func (a *program) resume(id, dir string, servers []sdk.McpServer) error {
	c, err := a.store.load(id)
	if err != nil {
		return &sdk.RequestError{Code: -32002, Message: err.Error()}
	}
	a.open(*c, dir, servers).resumed = true
	return nil
}

func (a *program) open(c conversation, dir string, servers []sdk.McpServer) *session {
	s := &session{conversation: c, dir: dir}
	for _, server := range servers {
		if server.Http == nil {
			continue
		}
		s.url = server.Http.Url
		for _, h := range server.Http.Headers {
			if strings.EqualFold(h.Name, "Authorization") {
				s.token = strings.TrimPrefix(h.Value, "Bearer ")
			}
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.session = s
	return s
}

func modes() *sdk.SessionModeState {
	return &sdk.SessionModeState{CurrentModeId: "ask", AvailableModes: []sdk.SessionMode{{Id: "ask", Name: "Ask"}, {Id: "yolo", Name: "Do everything"}}}
}

func models() *sdk.SessionModelState {
	return &sdk.SessionModelState{CurrentModelId: "scripted", AvailableModels: []sdk.ModelInfo{{ModelId: "scripted", Name: "The script"}}}
}

// SetSessionMode implements sdk.Agent: a script does what it does in any mode.
func (a *program) SetSessionMode(context.Context, sdk.SetSessionModeRequest) (sdk.SetSessionModeResponse, error) {
	return sdk.SetSessionModeResponse{}, nil
}

// UnstableSetSessionModel takes any model.
func (a *program) UnstableSetSessionModel(context.Context, sdk.UnstableSetSessionModelRequest) (sdk.UnstableSetSessionModelResponse, error) {
	return sdk.UnstableSetSessionModelResponse{}, nil
}

// SetSessionConfigOption implements sdk.Agent: there are none.
func (a *program) SetSessionConfigOption(context.Context, sdk.SetSessionConfigOptionRequest) (sdk.SetSessionConfigOptionResponse, error) {
	return sdk.SetSessionConfigOptionResponse{}, sdk.NewMethodNotFound(sdk.AgentMethodSessionSetConfigOption)
}

// ListSessions implements sdk.Agent: it is not offered.
func (a *program) ListSessions(context.Context, sdk.ListSessionsRequest) (sdk.ListSessionsResponse, error) {
	return sdk.ListSessionsResponse{}, sdk.NewMethodNotFound(sdk.AgentMethodSessionList)
}

// CloseSession implements sdk.Agent: it is not offered.
func (a *program) CloseSession(context.Context, sdk.CloseSessionRequest) (sdk.CloseSessionResponse, error) {
	return sdk.CloseSessionResponse{}, sdk.NewMethodNotFound(sdk.AgentMethodSessionClose)
}

// Cancel implements sdk.Agent: the connection ends the prompt's context.
func (a *program) Cancel(context.Context, sdk.CancelNotification) error { return nil }

// Prompt implements sdk.Agent: it does the steps.
func (a *program) Prompt(ctx context.Context, r sdk.PromptRequest) (sdk.PromptResponse, error) {
	a.mu.Lock()
	s := a.session
	a.mu.Unlock()
	if s == nil || s.ID != string(r.SessionId) {
		return sdk.PromptResponse{}, &sdk.RequestError{Code: -32002, Message: "no such conversation"}
	}
	t := &turn{program: a, s: s, prompt: text(r.Prompt)}
	stop, err := t.play(ctx)
	if ctx.Err() != nil && !a.stays() {
		stop, err = sdk.StopReasonCancelled, nil
	}
	if err != nil {
		if _, ok := errors.AsType[*sdk.RequestError](err); !ok {
			err = &sdk.RequestError{Code: -32603, Message: err.Error()}
		}
		return sdk.PromptResponse{}, err
	}
	return sdk.PromptResponse{StopReason: stop, Usage: t.usage}, nil
}

func text(blocks []sdk.ContentBlock) string {
	var b strings.Builder
	for _, block := range blocks {
		if block.Text != nil {
			b.WriteString(block.Text.Text)
		}
	}
	return b.String()
}

// source finds the script for a prompt, and keeps it with the conversation.
func (t *turn) source(ctx context.Context) (string, error) {
	file := t.env("SCRIPTED_AGENT_SCRIPT")
	if len(t.o.Args) == 1 {
		file = t.o.Args[0]
	}
	if t.s.Script != "" {
		return t.s.Script, nil
	}
	if file != "" {
		data, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("read script: %w", err)
		}
		return string(data), nil
	}
	// What the task asks is the script to the letter; the prompt says more.
	if t.s.url != "" {
		if err := t.learn(ctx); err != nil {
			return "", err
		}
		if strings.HasPrefix(strings.TrimSpace(t.known.Task.Agent.Instructions), Marker) {
			return t.known.Task.Agent.Instructions, nil
		}
	}
	script, ok := inPrompt(t.prompt)
	if !ok {
		return "", errors.New(`there is no script: begin the instructions with a line "` + Marker + `", or name a file`)
	}
	return script, nil
}

// gate is a reader that waits until it is open.
type gate struct {
	io.Reader
	open <-chan struct{}
}

// Read implements io.Reader.
func (g *gate) Read(p []byte) (int, error) {
	<-g.open
	return g.Reader.Read(p) //nolint:wrapcheck // a reader's error is its own, io.EOF above all
}

// output is the protocol's stream. What is printed beside the protocol goes
// through it as well, so that a message begins on a line of its own.
type output struct {
	mu    sync.Mutex
	w     io.Writer
	dirty bool // a line may be open that is none of the protocol's
}

// Write writes a message.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.dirty {
		if _, err := io.WriteString(o.w, "\n"); err != nil {
			return 0, err //nolint:wrapcheck // a writer's error is its own
		}
		o.dirty = false
	}
	return o.w.Write(p) //nolint:wrapcheck // a writer's error is its own
}

// print writes what is no message. The next one follows as if nothing were wrong
// with that.
func (o *output) print(p []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, err := o.w.Write(p)
	return err //nolint:wrapcheck // a writer's error is its own
}

// borrowed notes that another program prints to the stream.
func (o *output) borrowed() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.dirty = true
}

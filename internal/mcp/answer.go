package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/claudomator/claudomator/internal/work"
)

// failure is a domain error as a tool's answer holds it.
type failure struct {
	Code    work.Code      `json:"code"`
	Reason  string         `json:"reason,omitempty"`
	Message string         `json:"message"`
	Hint    string         `json:"hint,omitempty"`
	Details map[string]any `json:"details,omitempty"`
}

// error makes a failure the error it was.
func (f failure) error() *work.Error {
	e := work.Errorf(f.Code, "%s", f.Message).WithReason(f.Reason)
	e.Hint, e.Details = f.Hint, f.Details
	return e
}

// text is the failure for an agent whose program shows it nothing else.
func (f failure) text() string {
	var b strings.Builder
	b.WriteString(string(f.Code))
	if f.Reason != "" {
		fmt.Fprintf(&b, " (%s)", f.Reason)
	}
	fmt.Fprintf(&b, ": %s", f.Message)
	if f.Hint != "" {
		fmt.Fprintf(&b, "\nhint: %s", f.Hint)
	}
	return b.String()
}

func failed(e *work.Error) (*sdk.CallToolResult, error) {
	f := failure{Code: e.Code, Reason: e.Reason, Message: e.Message, Hint: e.Hint, Details: e.Details}
	structured, err := encode(f)
	if err != nil {
		return nil, err
	}
	return &sdk.CallToolResult{IsError: true, StructuredContent: structured, Content: []sdk.Content{&sdk.TextContent{Text: f.text()}}}, nil
}

// done is a result twice, as the protocol asks for: for programs, and as text.
func done(result any) (*sdk.CallToolResult, error) {
	structured, err := encode(result)
	if err != nil {
		return nil, err
	}
	return &sdk.CallToolResult{StructuredContent: structured, Content: []sdk.Content{&sdk.TextContent{Text: string(structured)}}}, nil
}

// encode writes JSON as it is read best: without escapes for web pages.
func encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("encode an answer: %w", err)
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

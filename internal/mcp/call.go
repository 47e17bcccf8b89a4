package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

// Call calls a run tool at url with a run's token and returns its JSON result.
// What the server refuses comes back as the *work.Error it was there; a server
// that cannot be reached is Unavailable. The endpoint needs no session, so one
// request is all. Empty arguments are none.
func Call(ctx context.Context, url, token, tool string, arguments json.RawMessage) (json.RawMessage, error) {
	if len(bytes.TrimSpace(arguments)) == 0 {
		arguments = json.RawMessage("{}")
	}
	if !json.Valid(arguments) {
		return nil, work.Errorf(work.Invalid, "the arguments of %s are not JSON", tool).WithReason("arguments").WithHint(`for example: '{"text": "..."}'`)
	}
	body, err := encode(map[string]any{
		"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{"name": tool, "arguments": arguments},
	})
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, work.Errorf(work.Invalid, "address the run endpoint: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Mcp-Protocol-Version", "2025-11-25")
	// The endpoint is the server that started the run: no proxy is between.
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return nil, work.Errorf(work.Unavailable, "reach the run endpoint: %w", err).WithHint("the call may have been carried out")
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, work.Errorf(work.Unavailable, "read the run endpoint's answer: %w", err).WithHint("the call may have been carried out")
	}
	if resp.StatusCode != http.StatusOK {
		return nil, refusal(resp, data)
	}
	return resultOf(data)
}

// refusal reads an answer that is none of the protocol's.
func refusal(resp *http.Response, data []byte) error {
	var p app.Problem
	if err := json.Unmarshal(data, &p); err == nil && p.Code != "" {
		return p.WorkError()
	}
	code := work.Internal
	switch {
	case resp.StatusCode >= http.StatusBadGateway:
		code = work.Unavailable
	case resp.StatusCode < http.StatusInternalServerError:
		code = work.Invalid
	}
	return work.Errorf(code, "the run endpoint answers %s: %.200s", resp.Status, bytes.TrimSpace(data))
}

// resultOf takes the tool's result out of the protocol's answer.
func resultOf(data []byte) (json.RawMessage, error) {
	var answer struct {
		Error *struct {
			Code    int64  `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
		Result *struct {
			IsError           bool            `json:"isError"`
			StructuredContent json.RawMessage `json:"structuredContent"`
		} `json:"result"`
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		return nil, fmt.Errorf("read the run endpoint's answer: %w", err)
	}
	switch {
	case answer.Error != nil && answer.Error.Code == jsonrpc.CodeInvalidParams:
		return nil, work.Errorf(work.Invalid, "%s", answer.Error.Message)
	case answer.Error != nil:
		return nil, work.Errorf(work.Internal, "%s", answer.Error.Message)
	case answer.Result == nil || len(answer.Result.StructuredContent) == 0:
		return nil, errors.New("the run endpoint's answer holds no result")
	case !answer.Result.IsError:
		return answer.Result.StructuredContent, nil
	}
	var f failure
	if err := json.Unmarshal(answer.Result.StructuredContent, &f); err != nil {
		return nil, fmt.Errorf("read the tool's error: %w", err)
	}
	return nil, f.error()
}

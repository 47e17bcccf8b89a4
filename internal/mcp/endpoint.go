package mcp

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

// endpoint speaks the protocol for one set of tools. Who asks is in the context
// of its requests.
type endpoint struct {
	// offered lists the tools that the caller may use; nil: all there are.
	offered func(ctx context.Context) ([]app.Tool, error)
	// who names the caller in the log.
	who      func(ctx context.Context) string
	log      *slog.Logger
	protocol http.Handler
}

// serve builds the protocol's side of an endpoint.
func (e *endpoint) serve(version, instructions string, tools []*tool) {
	m := sdk.NewServer(&sdk.Implementation{Name: "claudomator", Title: "Claudomator", Version: version}, &sdk.ServerOptions{
		Instructions: strings.TrimSpace(instructions),
		Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}},
		// What is offered depends on the token.
		SetCacheable: func(_ context.Context, _ sdk.Request, c *sdk.Cacheable) { c.CacheScope = "private" },
	})
	for _, t := range tools {
		described := &sdk.Tool{Name: string(t.name), Description: t.description, InputSchema: t.schema}
		if t.reads {
			described.Annotations = &sdk.ToolAnnotations{ReadOnlyHint: true}
		}
		m.AddTool(described, e.handle(t))
	}
	m.AddReceivingMiddleware(e.around)
	e.protocol = sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return m }, &sdk.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, Logger: e.log, MaxRequestBodyBytes: app.MaxBody,
		DisableLocalhostProtection: true, // app.Door does it, and knows the allowed names
	})
}

// around stands before every method of the protocol: it shows a caller only what
// it is offered, and keeps a panic, which would end the process here, to its call.
func (e *endpoint) around(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (result sdk.Result, err error) {
		defer func() {
			if cause := recover(); cause != nil {
				shown := e.explain(ctx, method, fmt.Errorf("panic: %v\n%s", cause, debug.Stack()))
				result, err = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: shown.Message}
			}
		}()
		if method == "subscriptions/listen" { // nothing here ever changes, and streams would outlive their caller
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "there is nothing to listen to"}
		}
		result, err = next(ctx, method, req)
		if list, ok := result.(*sdk.ListToolsResult); ok && err == nil && e.offered != nil {
			return e.filter(ctx, list)
		}
		return result, err
	}
}

func (e *endpoint) filter(ctx context.Context, list *sdk.ListToolsResult) (sdk.Result, error) {
	offered, err := e.offered(ctx)
	if err != nil {
		shown := e.explain(ctx, "tools/list", err)
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: shown.Message}
	}
	list.Tools = slices.DeleteFunc(list.Tools, func(t *sdk.Tool) bool { return !slices.Contains(offered, app.Tool(t.Name)) })
	return list, nil
}

// handle makes a tool's handler: an error is an answer that an agent can read.
func (e *endpoint) handle(t *tool) sdk.ToolHandler {
	return func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		result, err := e.call(ctx, t, req)
		if err != nil {
			return failed(e.explain(ctx, string(t.name), err))
		}
		return done(result)
	}
}

func (e *endpoint) call(ctx context.Context, t *tool, req *sdk.CallToolRequest) (any, error) {
	if e.offered != nil {
		offered, err := e.offered(ctx)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(offered, t.name) {
			return nil, work.Errorf(work.Forbidden, "this run may not use %s", t.name).WithReason("not_offered").WithHint("offered: %v", offered)
		}
	}
	return t.call(ctx, req.Params.Arguments)
}

// explain makes any error one that can be shown. A bug is logged here, once, and
// shown as the id it is logged under.
func (e *endpoint) explain(ctx context.Context, doing string, err error) *work.Error {
	if known, ok := work.AsError(err); ok && known.Code != work.Internal {
		return known
	}
	return app.Bug(ctx, e.log.With("caller", e.who(ctx)), doing, err)
}

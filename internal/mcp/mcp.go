package mcp

import (
	"context"
	_ "embed"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

// maxBody is the largest request body, in bytes; that of the other surface.
const maxBody = 16 << 20

//go:embed instructions.md
var instructions string

// Options is what the endpoint stands on; cmd wires it.
type Options struct {
	Tools app.RunTools
	// AllowedHosts are the names under which the server may be asked for, besides
	// localhost and addresses: "name" or "name:port".
	AllowedHosts []string
	Version      string
	Log          *slog.Logger
}

type server struct {
	o        Options
	origins  *http.CrossOriginProtection
	protocol http.Handler
}

// New makes the handler of POST /mcp; it starts nothing.
func New(o Options) http.Handler {
	s := &server{o: o, origins: http.NewCrossOriginProtection()}
	m := sdk.NewServer(&sdk.Implementation{Name: "claudomator", Title: "Claudomator", Version: o.Version}, &sdk.ServerOptions{
		Instructions: strings.TrimSpace(instructions),
		Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}},
		// What is offered depends on the token.
		SetCacheable: func(_ context.Context, _ sdk.Request, c *sdk.Cacheable) { c.CacheScope = "private" },
	})
	for _, t := range tools(o.Tools) {
		m.AddTool(&sdk.Tool{Name: string(t.name), Description: t.description, InputSchema: t.schema}, s.handle(t))
	}
	m.AddReceivingMiddleware(s.around)
	s.protocol = sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return m }, &sdk.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, Logger: o.Log, MaxRequestBodyBytes: maxBody,
		DisableLocalhostProtection: true, // knownHost does it, and knows the allowed names
	})
	return s
}

// ServeHTTP lets the protocol speak with runs that are alive, and nobody else.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	caller, err := s.admit(r)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	s.protocol.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, caller)))
}

// admit finds the run that asks. Browsers hold no run tokens; that their
// requests are refused nonetheless is the second fence.
func (s *server) admit(r *http.Request) (app.RunCaller, error) {
	caller, err := s.o.Tools.AuthenticateRun(r.Context(), bearer(r))
	switch {
	case err != nil && r.Context().Err() != nil: // hung up: nobody reads this, and it is no bug
		return caller, work.Errorf(work.Unavailable, "the request was given up: %w", context.Cause(r.Context()))
	case err != nil:
		return caller, err
	case !s.knownHost(r.Host):
		return caller, work.Errorf(work.Forbidden, "the server is not known as %q", r.Host).WithReason("host").
			WithHint("add the name to the allowed hosts of the server's configuration")
	case s.origins.Check(r) != nil:
		return caller, work.Errorf(work.Forbidden, "the request comes from another site").WithReason("cross_origin")
	}
	return caller, nil
}

// bearer is the token of the Authorization header; the scheme is spelled in any
// case.
func bearer(r *http.Request) string {
	scheme, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(secret)
}

// knownHost holds the Host header against the names the server goes by. A page
// can point a name of its own at this machine, but no address and no localhost.
func (s *server) knownHost(host string) bool {
	host = strings.ToLower(host)
	name, _, err := net.SplitHostPort(host)
	if err != nil { // no port
		name = strings.Trim(host, "[]")
	}
	if _, err := netip.ParseAddr(name); err == nil || name == "localhost" {
		return true
	}
	return slices.ContainsFunc(s.o.AllowedHosts, func(h string) bool {
		return strings.EqualFold(h, host) || strings.EqualFold(h, name)
	})
}

type callerKey struct{}

// callerOf is the run that admit has found.
func callerOf(ctx context.Context) app.RunCaller {
	caller, _ := ctx.Value(callerKey{}).(app.RunCaller) // none: a caller that nothing knows
	return caller
}

// around stands before every method of the protocol: it shows a run only what it
// is offered, and keeps a panic, which would end the process here, to its call.
func (s *server) around(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (result sdk.Result, err error) {
		defer func() {
			if cause := recover(); cause != nil {
				e := s.explain(ctx, method, fmt.Errorf("panic: %v\n%s", cause, debug.Stack()))
				result, err = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: e.Message}
			}
		}()
		if method == "subscriptions/listen" { // nothing here ever changes, and streams would outlive their run
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "there is nothing to listen to"}
		}
		result, err = next(ctx, method, req)
		if list, ok := result.(*sdk.ListToolsResult); ok && err == nil {
			return s.offered(ctx, list)
		}
		return result, err
	}
}

func (s *server) offered(ctx context.Context, list *sdk.ListToolsResult) (sdk.Result, error) {
	offered, err := s.o.Tools.Offered(ctx, callerOf(ctx))
	if err != nil {
		e := s.explain(ctx, "tools/list", err)
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: e.Message}
	}
	list.Tools = slices.DeleteFunc(list.Tools, func(t *sdk.Tool) bool { return !slices.Contains(offered, app.Tool(t.Name)) })
	return list, nil
}

// handle makes a tool's handler: an error is an answer that an agent can read.
func (s *server) handle(t *tool) sdk.ToolHandler {
	return func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		result, err := s.call(ctx, t, req)
		if err != nil {
			return failed(s.explain(ctx, string(t.name), err))
		}
		return done(result)
	}
}

func (s *server) call(ctx context.Context, t *tool, req *sdk.CallToolRequest) (any, error) {
	caller := callerOf(ctx)
	offered, err := s.o.Tools.Offered(ctx, caller)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(offered, t.name) {
		return nil, work.Errorf(work.Forbidden, "this run may not use %s", t.name).WithReason("not_offered").WithHint("offered: %v", offered)
	}
	return t.call(ctx, caller, req.Params.Arguments)
}

// explain makes any error one that can be shown. A bug is logged here, once, and
// shown as the id it is logged under.
func (s *server) explain(ctx context.Context, doing string, err error) *work.Error {
	if e, ok := work.AsError(err); ok && e.Code != work.Internal {
		return e
	}
	id := app.RandomIDs{}.New()
	caller := callerOf(ctx)
	s.o.Log.ErrorContext(ctx, "internal error", "id", id, "doing", doing, "execution", caller.Execution, "error", err)
	return work.Errorf(work.Internal, "internal error %s", id).WithHint("the server's log has the details under this id")
}
